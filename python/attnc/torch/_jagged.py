# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""attention() of nested tensors with the layout torch.jagged: packed sequences whose lengths are theirs."""
import torch

from ..errors import TensorError, UnsupportedError

_RAGGED = {"bshd": 1, "bhsd": 2}  # axis of the sequence


def of_jagged(attention, q, k, v, *, layout, offsets, return_lse, **options):
    """o is jagged as q is; lse is packed, [heads, tokens]."""
    if layout not in _RAGGED:
        raise UnsupportedError(f"attnc has jagged tensors in the layouts 'bshd' and 'bhsd', got: {layout!r}")
    if any(given is not None for given in offsets):
        raise TensorError("expected jagged tensors, or cu_seqlens and padded_offsets, got: both")
    axis = _RAGGED[layout]
    for name, tensor in (("q", q), ("k", k), ("v", v)):
        if not (isinstance(tensor, torch.Tensor) and tensor.is_nested and tensor.layout == torch.jagged):
            raise TensorError(f"expected q, k and v with the layout torch.jagged, got {name!r}: "
                              f"{getattr(tensor, 'layout', type(tensor).__name__)}")
        if tensor.dim() != 4 or tensor._ragged_idx != axis:
            raise TensorError(f"expected {name!r} of 4 dimensions with sequences of any length as dimension {axis} in "
                              f"the layout {layout!r}, got: {tuple(tensor.shape)}")
    if k.shape[axis] != v.shape[axis]:
        raise TensorError(f"expected 'v' with the sequences of 'k', got: {v.shape[axis]} and {k.shape[axis]}")
    if q.shape[0] != k.shape[0]:
        raise TensorError(f"expected as many sequences of 'k' as of 'q', got: {k.shape[0]} and {q.shape[0]}")
    sides = (q, k)
    if q.lengths() is None and k.lengths() is None:
        packed, own = "thd", {f"cu_seqlens_{side}": t.offsets() for side, t in zip(("q", "kv"), sides)}
    else:  # with gaps between sequences
        packed, own = "thd padded", {}
        for side, t in zip(("q", "kv"), sides):
            starts, lengths = t.offsets(), t.lengths()
            own[f"padded_offsets_{side}"] = starts
            sums = None if lengths is None else torch.nn.functional.pad(lengths.cumsum(0), (1, 0))
            own[f"cu_seqlens_{side}"] = starts if lengths is None else sums
    values = ((t if axis == 1 else t.transpose(1, 2)).values() for t in (q, k, v))
    o, lse = attention(*values, layout=packed, return_lse=True, **own, **options)
    o = torch.nested.nested_tensor_from_jagged(o, q.offsets(), q.lengths(), jagged_dim=1)
    o = o if axis == 1 else o.transpose(1, 2)
    return (o, lse) if return_lse else o
