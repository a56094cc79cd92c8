# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sequences of tokens with ids and positions: where each starts and how long it is, found on the device."""
import typing

import torch

from .._calls import reworded
from .._text import integer
from ..errors import ProblemError, TensorError, UnsupportedError
from ..masks import full
from . import _ops

_NAME = "segments"
_WORDS = {f"{name}_{side}": ("", name, f" of {of}") for name in ("ids", "positions")
          for side, of in (("q", "queries"), ("kv", "keys"))}  # for errors


class Lengths(typing.NamedTuple):
    """int32: cu_seqlens_q, cu_seqlens_kv, padded_offsets_q and padded_offsets_kv [sequences + 1], which attention()
    takes in the layout "thd padded"; status [...]: 0, or why a row cannot be said so (docs/Thd.md)."""
    cu_seqlens_q: torch.Tensor
    cu_seqlens_kv: torch.Tensor
    padded_offsets_q: torch.Tensor
    padded_offsets_kv: torch.Tensor
    status: torch.Tensor


def lengths_and_offsets(ids, positions=None, *, mask, segments):
    """The `Lengths` of segments under a mask: for layers that share ids.

    ids: int32 or int64 [..., tokens], from 1 on, 0 being padding; the tokens of an id are one run of the row. A tensor,
        or a pair for queries and keys.
    positions: of tokens in their segments, with the last of the dimensions of ids; a tensor or a pair. Without them
        tokens count from the start of their run. With them the mask is full, causal or a window, and tokens that cannot
        see or be seen under it are left out.
    segments: ids are at most this, up to 2048; tokens with others are as padding.
    Raises TensorError, ProblemError, UnsupportedError.
    """
    if segments is None:
        raise ProblemError("expected `segments`, how many ids a row has at most, beside ids")
    named = dict(zip(("ids_q", "ids_kv"), _pair("ids", ids)))
    if positions is not None:
        named |= dict(zip(("positions_q", "positions_kv"), _pair("positions", positions)))
    text, inputs, results = _pass(None if positions is None else str(mask), segments)
    tensors = [_given(name, named[name], named["ids_q"].device) for name in inputs]
    try:
        found = _ops.run(tensors, text, _NAME)
    except TensorError as error:
        raise reworded(error, _WORDS) from None
    made = Lengths(*(found[results.index(name)] for name in Lengths._fields))
    if made.status.device.type == "cpu" and _may_read() and (made.status > 1).any():
        raise TensorError("expected one run of tokens for each id, and positions that mean one diagonal (docs/Thd.md, "
                          f"\"What they cannot say\"), got: status {int(made.status.max())}")
    return made


@torch._dynamo.assume_constant_result
def _pass(mask, segments):
    """The text of attn.segments, with a mask if there are positions, and the names of its inputs and results."""
    text = f"attn.segments @{_NAME} mask({mask or full()}) segments({integer(segments, 'segments')})"
    try:
        spec = _ops.signature(text, _NAME)
    except ProblemError as error:
        if mask is None:
            raise
        raise UnsupportedError(f"attnc cannot tell which tokens of segments see each other by positions under {mask}; "
                               f"without positions tokens count from the start of their run of ids ({error})") from None
    return text, tuple(t["name"] for t in spec.inputs), tuple(t["name"] for t in spec.results)


def _pair(what, value):
    """Tensors of queries and of keys."""
    pair = tuple(value) if isinstance(value, (tuple, list)) else (value, value)
    if len(pair) != 2 or not all([isinstance(own, torch.Tensor) for own in pair]):
        got = type(value).__name__
        if isinstance(value, (tuple, list)):
            got += f" of {len(pair)}: {', '.join([type(own).__name__ for own in pair[:3]])}"
        raise TensorError(f"expected a torch.Tensor or a pair of them as {what!r}, got: {got}")
    return pair


def _given(name, value, device):
    what = f"'{_WORDS[name][1]}'{_WORDS[name][2]}"
    if value.dim() == 0:
        raise TensorError(f"expected {what} of shape [..., tokens], got: a scalar")
    if value.device != device:
        raise TensorError(f"expected {what} on {device}, got: {value.device}")
    return int32(what, value)


def _may_read():
    """Are the contents of tensors at hand?"""
    return not (torch.compiler.is_compiling() or torch._C._are_functorch_transforms_active() or
                torch._C._len_torch_dispatch_stack())


def int32(what, value):
    """A contiguous int32 tensor of one of int32 or int64, whose numbers are checked where that does not wait for a
    GPU."""
    if value.dtype not in (torch.int32, torch.int64):
        raise TensorError(f"expected {what} to be torch.int32 or torch.int64, got: {value.dtype}")
    narrow = value.to(torch.int32)
    is_checked = value.dtype == torch.int64 and value.device.type == "cpu" and _may_read()
    if is_checked and not torch.equal(narrow.long(), value):
        raise TensorError(f"expected numbers of 32 bits in {what}, got: {int(value.abs().max())}")
    return narrow.contiguous()


def by_ids(attention, q, k, v, ids, positions, segments, *, mask, layout, offsets, return_lse, **options):
    """attention() of sequences that ids tell apart."""
    if layout not in ("bshd", "thd padded"):
        raise UnsupportedError(f"attnc has ids in the layouts 'bshd' and 'thd padded', got: {layout!r}")
    if any(given is not None for given in offsets):
        raise TensorError("expected ids, or cu_seqlens and padded_offsets, got: both")
    for name, tensor in (("q", q), ("k", k), ("v", v)):
        rank = 4 if layout == "bshd" else 3
        if not isinstance(tensor, torch.Tensor) or tensor.dim() != rank:
            raise TensorError(f"expected {name!r} of {rank} dimensions in the layout {layout!r}, got: "
                              f"{tuple(getattr(tensor, 'shape', ())) or type(tensor).__name__}")
    for name, tensor, own in zip("qk", (q, k), _pair("ids", ids)):
        if own.device != tensor.device:
            raise TensorError(f"expected 'ids' of {name!r} on {tensor.device}, got: {own.device}")
        if own.numel() != tensor.shape[:-2].numel():
            raise TensorError(f"expected 'ids' of {name!r} for {tensor.shape[:-2].numel()} tokens, got: "
                              f"{tuple(own.shape)}")
    lengths = lengths_and_offsets(ids, positions, mask=mask, segments=segments)
    rows = q.shape[:-2]
    if layout == "bshd":
        q, k, v = (t.flatten(0, 1) for t in (q, k, v))
    o, lse = attention(q, k, v, mask=mask, layout="thd padded", return_lse=True, cu_seqlens_q=lengths.cu_seqlens_q,
                       cu_seqlens_kv=lengths.cu_seqlens_kv, padded_offsets_q=lengths.padded_offsets_q,
                       padded_offsets_kv=lengths.padded_offsets_kv, **options)
    if layout == "bshd":
        o, lse = o.unflatten(0, rows), lse.unflatten(1, rows).movedim(1, 0)
    return (o, lse) if return_lse else o
