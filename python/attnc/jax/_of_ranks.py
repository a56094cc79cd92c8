# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""attention() of the rows that devices have of whole sequences, with gradients."""
import functools
import typing

import jax
import jax.numpy as jnp
import numpy as np
from jax.custom_derivatives import SymbolicZero

from .._calls import SEED, SINK, collect
from .._shared import BACKWARD, FORWARD, axes_of_rows, check_kv, dense_sides, gradient_text, packed, packed_sides
from ..errors import ProblemError, TensorError, UnsupportedError
from . import _ops
from ._arrays import Needed
from ._context_parallel import ContextParallel, call


class Call(typing.NamedTuple):
    """What a call of attention() runs; static."""
    parallel: ContextParallel
    text: str
    sides: tuple
    names: tuple  # of arrays, in the problem's order
    shards: tuple  # of the ContextParallel, which may get others


def _rows(one, name, tensor, keys):
    """Zeros in rows that are no rank's tokens' rows: a rank with fewer rows than others leaves them as they are."""
    counts = [one.parallel._shard(one.sides[keys], keys, rank).rows for rank in range(one.parallel.ranks)]
    axis = 1 if name == "lse" else 0
    if min(counts) == tensor.shape[axis]:
        return tensor
    own = jnp.asarray(np.array(counts, np.int32))[jax.lax.axis_index(one.parallel.axis)]
    shown = (jnp.arange(tensor.shape[axis]) < own).reshape((-1,) if axis else (-1,) + (1,) * (tensor.ndim - 1))
    return jnp.where(shown, tensor, jnp.array(-jnp.inf if name == "lse" else 0, tensor.dtype))


@functools.partial(jax.custom_jvp, nondiff_argnums=(0, 1, 2))
def _backward(one, with_dlse, learned, *tensors):
    """Gradients of q, k and v, and of arrays: of `learned`, names and shapes."""
    key = one.parallel._plan_key(one.text, one.sides, BACKWARD, with_dlse, tuple(name for name, _ in learned))
    shapes = [jax.ShapeDtypeStruct(t.shape, t.dtype) for t in tensors[:3]]
    shapes += [jax.ShapeDtypeStruct(shape, jnp.float32) for _, shape in learned]
    grads = call(one.parallel, key, shapes, tensors)
    return (*[_rows(one, name, t, keys) for name, t, keys in zip(("dq", "dk", "dv"), grads, (False, True, True))],
            *grads[3:])


@_backward.defjvp
def _second(one, with_dlse, learned, primals, tangents):
    raise UnsupportedError("attnc has no second derivatives: gradients of attention cannot be differentiated")


@functools.partial(jax.custom_vjp, nondiff_argnums=(0,))
def _attention(one, q, k, v, arrays):
    key = one.parallel._plan_key(one.text, one.sides, FORWARD, False)
    results = [jax.ShapeDtypeStruct((*q.shape[:-1], v.shape[-1]), q.dtype),
               jax.ShapeDtypeStruct(q.shape[1::-1], jnp.float32)]
    o, lse = call(one.parallel, key, results, (q, k, v, *arrays))
    return _rows(one, "o", o, False), _rows(one, "lse", lse, False)


def _fwd(one, q, k, v, arrays):
    needed = Needed(name for name, array in zip(one.names, arrays)
                    if array.perturbed and array.value.dtype == jnp.float32)
    q, k, v, arrays = q.value, k.value, v.value, tuple(t.value for t in arrays)
    o, lse = _attention(one, q, k, v, arrays)
    return (o, lse), (q, k, v, arrays, o, lse, needed)


def _bwd(one, kept, cotangents):
    q, k, v, arrays, o, lse, needed = kept
    do, dlse = cotangents
    do = jnp.zeros_like(o) if isinstance(do, SymbolicZero) else do
    more = () if isinstance(dlse, SymbolicZero) else (dlse,)
    named = dict(zip(one.names, arrays))
    names = ["q", "k", "v", "o", "lse", "do", *(["dlse"] if more else [])]
    given = dict(zip(names, (q, k, v, o, lse, do, *more)), **named)
    learned = tuple((name, named[name].shape) for name in one.names if name in needed and name != SINK)
    order = _ops.signature(one.text + gradient_text(bool(more), [name for name, _ in learned]), "grads").inputs
    tensors = [given[t["name"]] for t in order if not t["name"].startswith("cu_seqlens_")]
    *grads, = _backward(one, bool(more), learned, *tensors)
    by_name = dict(zip([name for name, _ in learned], grads[3:]))
    if SINK in needed:
        by_name[SINK] = _gradient_of_sinks(one, named[SINK], o, lse, do, *more)
    return (*grads[:3], tuple(by_name.get(name) for name in one.names))


_attention.defvjp(_fwd, _bwd, symbolic_zeros=True)
_jitted = jax.jit(_attention, static_argnums=0)


def _gradient_of_sinks(one, sinks, o, lse, do, dlse=0.0):
    """From a rank's rows: the sum over rows of p (dlse - o do), p the probability of the sink."""
    delta = dlse - jnp.einsum("thd,thd->ht", o, do, preferred_element_type=jnp.float32)
    tokens = jnp.asarray(one.parallel._table(one.sides[0], False, lambda side, run: run.position).reshape(
        one.parallel.ranks, -1) >= 0)[jax.lax.axis_index(one.parallel.axis)]
    return jnp.sum(jnp.where(tokens, jnp.exp(sinks[:, None] - lse) * delta, 0), axis=1)


def _check_tensors(q, k, v, layout):
    for name, tensor in (("k", k), ("v", v)):
        if tensor.dtype != q.dtype:
            raise TensorError(f"expected {name!r} to be {q.dtype} as 'q' is, got: {tensor.dtype}")
    check_kv(q, k, v, layout)


def _pack(value, batch, rows):
    moved = jnp.moveaxis(value, batch, rows - 1)
    return moved.reshape(*moved.shape[:rows - 1], -1, *moved.shape[rows + 1:])


def of_ranks(parallel, q, k, v, *, layout, text_of, arrays, seqlens, cu_seqlens, padded_offsets):
    """o and lse of this device's rows. text_of(layout): the problem. arrays: given, bound, written, convert."""
    if not isinstance(parallel, ContextParallel):
        raise TensorError(f"expected an attnc.jax.ContextParallel as context_parallel, got: {type(parallel).__name__}")
    if layout not in ("bshd", "thd", "thd padded"):
        raise UnsupportedError("attnc has context parallelism in the layouts 'bshd', 'thd' and 'thd padded', got: "
                               f"{layout!r}")
    try:
        ranks = jax.lax.axis_size(parallel.axis)
    except NameError:
        raise TensorError(f"expected rows of each device inside of jax.shard_map over {parallel.axis!r}, got: a call "
                          "outside of it") from None
    if ranks != parallel.ranks:
        raise TensorError(f"expected jax.shard_map over the mesh of the ContextParallel, with {parallel.ranks} devices "
                          f"along {parallel.axis!r}, got: {ranks}")
    _check_tensors(q, k, v, layout)
    is_dense = layout == "bshd"
    sides = tuple(dense_sides(parallel.ranks, q, k, seqlens, cu_seqlens, padded_offsets) if is_dense else
                  packed_sides(layout, seqlens, cu_seqlens, padded_offsets))
    for keys, (name, tensor) in enumerate((("q", q), ("k", k))):
        counts = parallel._counts(sides[keys], bool(keys))
        if is_dense and min(counts) != max(counts) and len(sides[0].lengths) > 1:
            raise UnsupportedError("attnc has dense arrays in JAX where all devices have as many rows of a sequence, "
                                   f"got: from {min(counts)} to {max(counts)} of {sides[keys].lengths[0]}; pack them "
                                   "(layout 'thd')")
        if tensor.shape[int(is_dense)] != max(counts):
            raise TensorError(f"expected {name!r} to have {max(counts)} rows, those of the rank with most by "
                              f"`{parallel._words[keys]}`, got: {tensor.shape[int(is_dense)]}")
    try:
        text = text_of("thd")
        listed = [t for t in _ops.signature(text, _ops.NAME).inputs
                  if t["role"] == "array" and not t["name"].startswith("cu_seqlens_")]
    except ProblemError as error:
        if not is_dense:
            raise
        raise UnsupportedError(f"attnc has context parallelism of problems that packed sequences have, too: {error}"
                               ) from None
    axes = axes_of_rows(_ops.signature(text_of(layout), _ops.NAME).inputs) if is_dense else {}
    names, dtypes = tuple(t["name"] for t in listed), tuple(t["dtype"] for t in listed)
    given, bound, written, convert = arrays
    if SEED not in names:  # a probability that is rounded to none
        given.pop(SEED, None)
    specs = iter(listed)

    def converted(what, value, dtype):
        own = next(specs)
        return packed(what, convert(what, value, dtype, sides), own["extents"], axes.get(own["name"]), sides, _pack)
    read = collect(names, dtypes, given, bound, written, converted)
    rows = [t.reshape(-1, *t.shape[2:]) if is_dense else t for t in (q, k, v)]
    o, lse = _jitted(Call(parallel, text, sides, names, parallel._shards), *rows, tuple(read))
    if is_dense:
        o = o.reshape(*q.shape[:2], *o.shape[1:])
        lse = jnp.moveaxis(lse.reshape(lse.shape[0], *q.shape[:2]), 0, 1)
    return o, lse
