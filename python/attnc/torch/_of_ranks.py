# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""attention() of the rows that ranks have of whole sequences, with gradients."""
import contextlib
import functools
import itertools
import typing

import torch
from torch.autograd import forward_ad

from .._calls import SEED, SINK, as_mask, as_scores, as_written, collect, given_by
from .._shared import axes_of_rows, check_kv, dense_sides, packed, packed_sides
from .._text import apart, merged
from ..errors import Error, ProblemError, TensorError, UnsupportedError
from . import _ops
from ._attention import _DTYPES, _array, _check_tensor, _sink
from ._autograd import plan_of, refuse_batched
from ._context_parallel import ContextParallel


def _fitted(tensor):
    """The same values with a contiguous last axis, strides of multiples of 8, and an aligned address."""
    tensor = tensor.resolve_neg()
    if tensor.stride(-1) != 1 or any(s % 8 for s in tensor.stride()[:-1]):
        return tensor.contiguous()
    return tensor.clone() if tensor.data_ptr() % 16 else tensor


def _run_forward(call, names, q, k, v, arrays):
    o, lse = q.new_empty((*q.shape[:-1], v.shape[-1])), q.new_empty(q.shape[1::-1], dtype=torch.float32)
    call.device.run(call.forward, dict(zip(names, arrays), q=q, k=k, v=v, o=o, lse=lse))
    return o, lse


def _gradient_of_sinks(sinks, o, lse, do, dlse, tokens, rows=4096):
    """From this rank's rows, so many at a time: the sum over rows of p (dlse - o do), p the probability of the sink.
    tokens: numbers of the rows that are no padding; None: all."""
    total = torch.zeros_like(sinks)
    for begin in range(0, o.shape[0] if tokens is None else len(tokens), rows):
        own = slice(begin, begin + rows) if tokens is None else tokens[begin:begin + rows]
        gradient = -torch.linalg.vecdot(o[own].float(), do[own].float()).T
        if dlse is not None:
            gradient += dlse[:, own]
        total += ((sinks[:, None] - lse[:, own]).exp() * gradient).sum(1)
    return total


class _Once(torch.autograd.Function):
    """Results of a backward pass, which have no derivative."""

    @staticmethod
    def forward(ctx, watched, *grads):
        return tuple([t.view_as(t) for t in grads])

    @staticmethod
    def backward(ctx, *grads):
        raise UnsupportedError("attnc has no second derivatives: gradients of attention cannot be differentiated")


class _OfRanks(torch.autograd.Function):
    """Both passes of rows that ranks share."""

    @staticmethod
    def forward(ctx, call, names, learned, with_dlse, tokens, q, k, v, *arrays):
        q, k, v = map(_fitted, (q, k, v))
        o, lse = _run_forward(call, names, q, k, v, arrays)
        ctx.save_for_backward(q, k, v, o, lse, *arrays)
        ctx.call, ctx.names, ctx.learned, ctx.with_dlse, ctx.tokens = call, names, learned, with_dlse, tokens
        ctx.set_materialize_grads(False)
        if not with_dlse:
            ctx.mark_non_differentiable(lse)
        return o, lse

    @staticmethod
    def backward(ctx, do, dlse):
        q, k, v, o, lse, *arrays = ctx.saved_tensors
        refuse_batched(do, dlse)
        do = torch.zeros_like(o) if do is None else _fitted(do)
        tensors = dict(zip(ctx.names, arrays), q=q, k=k, v=v, o=o, lse=lse, do=do)
        if ctx.with_dlse:
            tensors["dlse"] = torch.zeros_like(lse) if dlse is None else dlse.contiguous()
        grads = [t.new_empty(t.shape) for t in (q, k, v)]
        of_arrays = [torch.empty_like(array) if name in ctx.learned else None
                     for name, array in zip(ctx.names, arrays)]
        results = {f"d{name}": gradient for name, gradient in zip(ctx.names, of_arrays) if gradient is not None}
        with torch.no_grad():
            ctx.call.device.run(ctx.call.backward, tensors | results | dict(zip(("dq", "dk", "dv"), grads)))
            number = ctx.names.index(SINK) if SINK in ctx.names else None
            if number is not None and ctx.needs_input_grad[8 + number]:
                of_arrays[number] = _gradient_of_sinks(arrays[number], o, lse, do, tensors.get("dlse"), ctx.tokens)
        if torch.is_grad_enabled():
            found = [gradient for gradient in of_arrays if gradient is not None]
            grads = _Once.apply(torch.empty(0, requires_grad=True), *grads, *found)
            found = iter(grads[3:])
            grads, of_arrays = grads[:3], [gradient if gradient is None else next(found) for gradient in of_arrays]
        return None, None, None, None, None, *grads, *of_arrays

    @staticmethod
    def jvp(ctx, *tangents):
        raise UnsupportedError("attnc has no forward-mode derivatives (jvp)")


@torch.compiler.disable
def of_ranks(cp, q, k, v, *, mask, layout, scale, score, sink, arrays, dropout, seed, return_lse, seqlens,
             cu_seqlens_q, cu_seqlens_kv, padded_offsets_q, padded_offsets_kv, ids, positions, segments):
    """attention() of this rank's rows. torch.compile runs it as it is, between its graphs."""
    if not isinstance(cp, ContextParallel):
        raise TensorError(f"expected an attnc.torch.ContextParallel as context_parallel, got: {type(cp).__name__}")
    for name, value in (("ids", ids), ("positions", positions), ("segments", segments)):
        if value is not None:
            raise UnsupportedError(f"attnc has context parallelism of sequences by cu_seqlens, got: {name!r}")
    if layout not in ("bshd", "thd", "thd padded"):
        raise UnsupportedError("attnc has context parallelism in the layouts 'bshd', 'thd' and 'thd padded', got: "
                               f"{layout!r}")
    for name, tensor in (("q", q), ("k", k), ("v", v)):
        kind = "a nested tensor" if getattr(tensor, "is_nested", False) else "a DTensor"
        if kind == "a nested tensor" or hasattr(tensor, "placements"):
            raise UnsupportedError(f"attnc has context parallelism of this rank's rows as a plain tensor, got: {kind} "
                                   f"as {name!r}")
        if not isinstance(tensor, torch.Tensor):
            raise TensorError(f"expected a torch.Tensor as {name!r}, got: {type(tensor).__name__}")
    if q.device.type not in ("cpu", "cuda"):
        raise UnsupportedError(f"attnc has context parallelism on the CPU and on CUDA devices, got: {q.device}")
    if torch._C._are_functorch_transforms_active():
        raise UnsupportedError("attnc has context parallelism without torch.func's transforms, got: one of them")
    is_cast = torch.is_autocast_enabled(q.device.type)
    if is_cast:
        dtype = torch.get_autocast_dtype(q.device.type)
        q, k, v = (t.to(dtype) if t.is_floating_point() else t for t in (q, k, v))
    with torch.autocast(q.device.type, enabled=False) if is_cast else contextlib.nullcontext():
        return _attention(cp, q, k, v, mask, layout, scale, score, sink, arrays, dropout, seed, return_lse, seqlens,
                          (cu_seqlens_q, cu_seqlens_kv), (padded_offsets_q, padded_offsets_kv))


def _attention(cp, q, k, v, mask, layout, scale, score, sink, arrays, dropout, seed, return_lse, seqlens, cu_seqlens,
               padded_offsets):
    _check_tensors(q, k, v, layout)
    if dropout and seed is None:
        raise UnsupportedError("attnc does not draw seeds of dropout for ranks: expected `seed`, the same on all of "
                               "them, got: None")
    if layout == "bshd":
        sides = dense_sides(cp.ranks, q, k, seqlens, cu_seqlens, padded_offsets)
    else:
        sides = packed_sides(layout, seqlens, cu_seqlens, padded_offsets)
    for keys, (name, tensor) in enumerate((("q", q), ("k", k))):
        cp._check_rows(name, tensor.shape[int(sides[keys].is_dense)], sides[keys], bool(keys), cp.rank)
    given, written = given_by(arrays), {SINK: "sink", SEED: "seed"}
    sink_key = None if sink is None else _sink(sink, given)
    mask, score = as_mask(mask), as_scores(score)
    if score:
        mask, *score = apart(mask, *score)
    bound = mask._bound if not score else merged(mask, *score)
    made = _text_of(mask._text, tuple([s._text for s in score]), layout, (q.shape[-2], k.shape[-2]),
                    (q.shape[-1], v.shape[-1]), _DTYPES[q.dtype], scale, sink_key, (dropout, SEED) if dropout else None)
    if dropout and SEED in made.arrays:  # a small probability is rounded to none
        given[SEED] = seed

    def convert(what, value, dtype):
        if hasattr(value, "evaluate"):  # of a traced function
            value = _evaluated(value, q, k, sides)
        value = _array(what, value, dtype, q.device)
        return packed(what, value, next(extents), next(axes), sides, _pack)
    extents, axes = iter(made.extents), iter(made.dense_axes)
    read = collect(made.arrays, made.dtypes, given, bound, written, convert)
    needs_gradients = torch.is_grad_enabled() and any([t.requires_grad for t in (q, k, v, *read)])
    learned = tuple([name for name, t in zip(made.arrays, read) if t.requires_grad and name != SINK])
    tokens = cp._tokens(sides[0], q.device) if needs_gradients and sink_key == SINK else None
    rows = [t.flatten(0, 1) if layout == "bshd" else t for t in (q, k, v)]
    try:
        call = cp._call(made.text, sides, q.device, needs_gradients, return_lse, learned)
        if needs_gradients or forward_ad._current_level >= 0:
            o, lse = _OfRanks.apply(call, made.arrays, learned, return_lse, tokens, *rows, *read)
        else:
            o, lse = _run_forward(call, made.arrays, *map(_fitted, rows), read)
    except Error as error:
        raise as_written(error, made.arrays, given, bound, written) from None
    if layout == "bshd":
        o, lse = o.unflatten(0, q.shape[:2]), lse.unflatten(1, q.shape[:2]).movedim(1, 0)
    return (o, lse) if return_lse else o


def _check_tensors(q, k, v, layout):
    for name, tensor in (("q", q), ("k", k), ("v", v)):
        _check_tensor(name, tensor, layout)
        if tensor.device != q.device or tensor.dtype != q.dtype:
            raise TensorError(f"expected {name!r} to be {q.dtype} on {q.device} as 'q' is, got: {tensor.dtype} on "
                              f"{tensor.device}")
    if k.shape[-2] == 0 or q.shape[-2] % k.shape[-2]:
        raise TensorError(f"expected heads of q in multiples of those of k, got: {q.shape[-2]} and {k.shape[-2]}")
    check_kv(q, k, v, layout)


class _Text(typing.NamedTuple):
    """A problem of packed rows, and its arrays, but for lengths: the `Extent` of each axis, and the axes of batch and
    of rows in the layout "bshd", or None."""
    text: str
    arrays: tuple
    dtypes: tuple
    extents: tuple
    dense_axes: tuple


@functools.lru_cache(maxsize=1024)
def _text_of(mask, score, layout, heads, dims, dtype, scale, sink, dropout):
    key = heads, dims, dtype, scale, sink, dropout, None, None
    axes = {}
    if layout == "bshd":
        dense = plan_of(mask, score, layout, *key)
        axes = axes_of_rows(_ops.signature(dense.text, "attention").inputs)
    try:
        text = plan_of(mask, score, "thd", *key).text
    except ProblemError as error:
        if layout != "bshd":
            raise
        raise UnsupportedError(f"attnc has context parallelism of problems that packed sequences have, too: {error}"
                               ) from None
    arrays = [t for t in _ops.signature(text, "attention").inputs
              if t["role"] == "array" and not t["name"].startswith("cu_seqlens_")]
    return _Text(text, *(tuple([t[what] for t in arrays]) for what in ("name", "dtype", "extents")),
                 tuple([axes.get(t["name"]) for t in arrays]))


def _pack(value, batch, rows):
    return value.movedim(batch, rows - 1).flatten(rows - 1, rows).contiguous()


def _evaluated(hoisted, q, k, sides):
    """An array of a traced function for the whole sequences, packed."""
    sequences = {name: (torch.tensor([*itertools.accumulate(side.lengths, initial=0)], dtype=torch.int32,
                                     device=q.device), None) for name, side in zip("qk", sides)}
    totals = [sum(side.lengths) for side in sides]
    return hoisted.evaluate(len(sides[0].lengths), q.shape[-2], k.shape[-2], *totals, q.device, sequences)
