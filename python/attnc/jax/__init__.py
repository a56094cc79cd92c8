# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""attnc for JAX: attention on arrays, with jit, gradients, vmap, and sharding of batch and heads."""
from ._attention import attention
from ._context_parallel import ContextParallel
from ._dot_product import dot_product_attention
from ._segments import Lengths, SegmentIds, lengths_and_offsets
from ._sparse import block_max_attention, moba_attention, native_sparse_attention

__all__ = ["ContextParallel", "Lengths", "SegmentIds", "attention", "block_max_attention", "dot_product_attention",
           "lengths_and_offsets", "moba_attention", "native_sparse_attention"]
