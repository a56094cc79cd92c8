# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Segments of rows of tokens: ids and positions, and the lengths and offsets that are made of them."""
import functools
import typing

import jax
import jax.numpy as jnp
import numpy as np

from .. import errors
from ..errors import ProblemError, TensorError, UnsupportedError
from ..masks import Mask, full
from .._text import integer
from . import _ops
from ._arrays import int32, is_array, is_at_hand, platform_of

_MOST = 2048  # segments of a row


def _side(value, what):
    return int32(f"{what} of segments", value if is_array(value) else jnp.asarray(value))


def _pair(value):
    return value if isinstance(value, (tuple, list)) else (value, value)


@functools.partial(jax.tree_util.register_dataclass, data_fields=["q", "kv", "positions_q", "positions_kv"],
                   meta_fields=["max_segments"])
class SegmentIds:
    """Which segment each token is of, and where in it: int32 arrays [..., tokens], a pytree.

    q, kv: ids from 1 on, 0 being padding; kv None is q.
    positions_q, positions_kv: from 0 on in each segment, with the last of the leading dimensions of ids: what is
        missing is shared and never copied. Without them tokens count from the start of their run of equal ids.
    max_segments: ids are at most this; tokens with others are as padding. None is the number of tokens, up to 2048.
    """

    def __init__(self, q, kv=None, positions_q=None, positions_kv=None, *, max_segments=None):
        if kv is None:
            kv = q
            positions_kv = positions_q if positions_kv is None else positions_kv
        self.q, self.kv, self.positions_q, self.positions_kv = q, kv, positions_q, positions_kv
        self.max_segments = max_segments

    def __repr__(self):
        shapes = ", ".join(f"{name}={getattr(getattr(self, name), 'shape', None)}" for name in
                           ("q", "kv", "positions_q", "positions_kv"))
        return f"SegmentIds({shapes}, max_segments={self.max_segments})"

    @classmethod
    def from_segment_ids_and_pos(cls, segment_ids, segment_pos, *, max_segments=None):
        """Of ids and positions, each an array or a pair for queries and keys."""
        (q, kv), (positions_q, positions_kv) = _pair(segment_ids), _pair(segment_pos)
        return cls(q, kv, positions_q, positions_kv, max_segments=max_segments)

    @classmethod
    def from_seqlens(cls, seqlens):
        """Segments from the lengths of rows, int32 [...], an array or a pair: one each, padding behind it."""
        q, kv = _pair(seqlens)
        return _Lengths(*(_side(side, "lengths")[..., None] for side in (q, kv)), None, None)

    @classmethod
    def from_seqlens_and_offsets(cls, seqlens, seq_offsets):
        """Of lengths [..., segments] and starts [..., segments] or [..., segments + 1] (the last one is not read), each
        an array or a pair. Entries below 0 are unused; length number i starts at offset number i."""
        return _Lengths(*(_side(side, "lengths") for side in _pair(seqlens)),
                        *(_side(side, "offsets") for side in _pair(seq_offsets)))

    def ids(self, tokens_q, tokens_kv):
        return self


@functools.partial(jax.tree_util.register_dataclass, data_fields=["q", "kv", "offsets_q", "offsets_kv"], meta_fields=[])
class _Lengths:
    """Lengths [..., segments] and their starts, which become SegmentIds where the number of tokens is known."""

    def __init__(self, q, kv, offsets_q, offsets_kv):
        self.q, self.kv, self.offsets_q, self.offsets_kv = q, kv, offsets_q, offsets_kv

    def ids(self, tokens_q, tokens_kv):
        q, kv = _ids_of(self.q, self.offsets_q, tokens_q), _ids_of(self.kv, self.offsets_kv, tokens_kv)
        return SegmentIds(q, kv, max_segments=max(self.q.shape[-1], self.kv.shape[-1], 1))


def _ids_of(lengths, starts, tokens):
    """Ids [..., tokens] of segments that do not overlap."""
    count, token = lengths.shape[-1], jnp.arange(tokens, dtype=jnp.int32)
    starts = jnp.zeros_like(lengths) if starts is None else starts[..., :count]
    if starts.shape != lengths.shape:
        raise TensorError(f"expected offsets [..., {count} or {count + 1}] with the dimensions of lengths "
                          f"{lengths.shape}, got: {starts.shape}")
    inside = (token >= starts[..., None]) & (token < (starts + lengths)[..., None]) & (starts >= 0)[..., None]
    return jnp.max(jnp.where(inside, jnp.arange(1, count + 1, dtype=jnp.int32)[:, None], 0), -2, initial=0)


def _int32(name, value):
    array = int32(f"segment_ids.{name}", value if is_array(value) else jnp.asarray(value))
    if array.ndim == 0:
        raise TensorError(f"expected segment_ids.{name} of shape [..., tokens], got: a scalar")
    return array


def checked(segment_ids, mask):
    """The text of attn.segments for ids and a mask, and its inputs."""
    names = ("q", "kv", "positions_q", "positions_kv")
    given = {name: getattr(segment_ids, name) for name in names}
    arrays = {name: None if value is None else _int32(name, value) for name, value in given.items()}
    leading = arrays["q"].shape[:-1]
    if arrays["kv"].shape[:-1] != leading:
        raise TensorError("expected ids of queries and keys with the same leading dimensions, got: "
                          f"{arrays['q'].shape} and {arrays['kv'].shape}")
    for side in ("q", "kv"):
        ids, positions = arrays[side], arrays[f"positions_{side}"]
        if positions is not None and positions.shape != ids.shape[ids.ndim - positions.ndim:]:
            raise TensorError(f"expected positions_{side} with the last dimensions of ids {ids.shape}, got: "
                              f"{positions.shape}")
    if (arrays["positions_q"] is None) != (arrays["positions_kv"] is None):
        raise TensorError("expected positions of both queries and keys, or of neither")
    most = segment_ids.max_segments
    if most is None:
        most = max(arrays["q"].shape[-1], arrays["kv"].shape[-1], 1)
        if most > _MOST:
            raise ProblemError(f"expected max_segments, how many ids a row has at most, with more than {_MOST} "
                               f"tokens in a row, got: None and {most} tokens")
    text = f"attn.segments @{_ops.SEGMENTS} mask({mask}) segments({integer(most, 'max_segments')})"
    if arrays["positions_q"] is None:
        text = f"attn.segments @{_ops.SEGMENTS} mask({full()}) segments({integer(most, 'max_segments')})"
    else:
        try:
            _ops.signature(text, _ops.SEGMENTS)
        except ProblemError as error:
            raise UnsupportedError(f"attnc cannot tell which tokens of segments see each other by positions under "
                                   f"{mask}; without positions tokens count from the start of their run of ids "
                                   f"({error})") from None
    of = {"ids_q": "q", "ids_kv": "kv"}
    return text, [arrays[of.get(t["name"], t["name"])] for t in _ops.signature(text, _ops.SEGMENTS).inputs]


def check_contents(segment_ids, mask):
    """Raises TensorError for ids and positions on the CPU that cannot be said as lengths and offsets, where their
    contents are known."""
    given = [t for t in (segment_ids.q, segment_ids.kv, segment_ids.positions_q, segment_ids.positions_kv)
             if t is not None]
    if not all(is_at_hand(t) and platform_of(t) == "cpu" for t in given):
        return
    with jax.ensure_compile_time_eval():
        status = np.asarray(lengths_and_offsets(segment_ids, mask=mask).status)
    if (status > 1).any():
        raise TensorError("expected one run of tokens for each id, and positions that mean one diagonal (docs/Thd.md, "
                          f"\"What they cannot say\"), got: status {int(status.max())}")


class Lengths(typing.NamedTuple):
    """seqlens_q, seqlens_kv [..., max_segments] and offsets_q, offsets_kv [..., max_segments + 1] of segments, unused
    offsets being -1, and status [...]: 0, or why a row cannot be said so (docs/Thd.md). int32."""
    seqlens_q: jax.Array
    seqlens_kv: jax.Array
    offsets_q: jax.Array
    offsets_kv: jax.Array
    status: jax.Array


def lengths_and_offsets(segment_ids, *, mask):
    """The `Lengths` of segments under a mask (full, causal, and windows): what attention visits. Raises TensorError,
    ProblemError, UnsupportedError."""
    if not isinstance(segment_ids, SegmentIds):
        raise TensorError(f"expected attnc.jax.SegmentIds, got: {type(segment_ids).__name__}")
    if not isinstance(mask, Mask):
        raise errors.ProblemError(f"expected an attnc.Mask as the mask, got: {mask!r}")
    text, arrays = checked(segment_ids, mask)
    return Lengths(*_ops.segments(text, tuple(a.ndim for a in arrays))(*arrays))
