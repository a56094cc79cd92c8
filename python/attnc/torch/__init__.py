# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""attnc for PyTorch 2.10 and later: attention on tensors, with gradients, torch.compile, vmap, autocast and CUDA
graphs."""
from . import _flops
from ._attention import attention
from ._context_parallel import ContextParallel
from ._segments import Lengths, lengths_and_offsets
from ._sparse import block_max_attention, moba_attention, native_sparse_attention
from .module import Attention
from .transformers import register_transformers

__all__ = ["Attention", "ContextParallel", "Lengths", "attention", "block_max_attention", "lengths_and_offsets",
           "moba_attention", "native_sparse_attention", "register_transformers"]
