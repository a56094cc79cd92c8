# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Arrays of traced functions for the sizes or the lengths of a call, also in graphs of torch.compile."""
import torch

from .._calls import extents
from ..trace.arrays import with_key


def evaluated(hoisted, given, q, k, layout):
    """An array of a traced function. given: cu_seqlens and padded_offsets by name."""
    batch, heads, kv_heads, seqlen_q, seqlen_k, packed = extents(given, q, k, layout)
    if torch.compiler.is_compiling():
        return _in_graph(hoisted.key, hoisted.tensors, batch, heads, seqlen_q, seqlen_k, q.device, packed)
    return hoisted.evaluate(batch, heads, kv_heads, seqlen_q, seqlen_k, q.device, packed)


@torch.compiler.allow_in_graph
def _in_graph(key, *args):
    """The array of a key. torch.compile takes strings for constants, and traces through with the tensors."""
    return with_key(key).evaluate_in_graph(*args)
