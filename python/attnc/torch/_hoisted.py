# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Arrays of traced functions for the sizes or the lengths of a call, also in graphs of torch.compile."""
import torch

from .._calls import AXES
from ..errors import TensorError
from ..trace.arrays import with_key


def evaluated(hoisted, given, q, k, layout):
    """An array of a traced function. given: cu_seqlens and padded_offsets by name."""
    layouts = (layout, layout) if isinstance(layout, str) else layout[:2]
    (seqlen_q, heads), (seqlen_k, kv_heads) = ([t.shape[axis] for axis in AXES[own]]
                                               for t, own in zip((q, k), layouts))
    packed = {side: (_given(given, f"cu_seqlens_{name}", own),
                     _given(given, f"padded_offsets_{name}", own) if own == "thd padded" else None)
              for side, name, own in zip("qk", ("q", "kv"), layouts) if own.startswith("thd")}
    if packed:
        batch = next(iter(packed.values()))[0].shape[0] - 1
    else:
        batch = q.shape[1 if layouts[0] == "sbhd" else 0]
    if torch.compiler.is_compiling():
        return _in_graph(hoisted.key, hoisted.tensors, batch, heads, seqlen_q, seqlen_k, q.device, packed)
    return hoisted.evaluate(batch, heads, kv_heads, seqlen_q, seqlen_k, q.device, packed)


def _given(given, name, layout):
    if given.get(name) is None:
        raise TensorError(f"expected {name} with the layout {layout!r}, got: None")
    return given[name]


@torch.compiler.allow_in_graph
def _in_graph(key, *args):
    """The array of a key. torch.compile takes strings for constants, and traces through with the tensors."""
    return with_key(key).evaluate_in_graph(*args)
