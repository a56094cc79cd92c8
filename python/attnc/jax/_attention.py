# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""attention() on arrays of JAX, with gradients."""
import functools
import reprlib
import typing

import jax
import jax.numpy as jnp
import numpy as np
from jax.custom_derivatives import SymbolicZero

from .. import errors
from .._calls import (AXES, SEED, SINK, as_mask, as_scores, as_written, collect, extents, given_by, hashable,
                      put_both)
from .._text import apart, merged, number
from ..errors import ProblemError, TensorError, UnsupportedError
from ..masks import Mask
from ..problem import Problem, gradient_text
from ..scores import Score
from . import _ops, _segments
from ._arrays import Needed, int32, is_array, platform_of

_DTYPES = {np.dtype(jnp.bfloat16): "bf16", np.dtype(jnp.float16): "f16", np.dtype(jnp.float32): "f32"}


class Pass(typing.NamedTuple):
    """The text of a pass for numbers of heads: a forward pass, or with `gradient` (deterministic, dlse, names of
    arrays) a backward pass."""
    options: tuple
    gradient: tuple | None = None

    @property
    def name(self):
        return _ops.GRADIENT if self.gradient else _ops.NAME

    def __call__(self, heads):
        return _text(self, heads)


@functools.lru_cache(maxsize=4096)
def _text(one, heads):
    mask, score, layout, dims, dtype, scale, sink, dropout, expected_seqlen, max_seqlen = one.options
    text = Problem(Mask(mask), score=tuple(map(Score, score)), layout=layout, heads=heads, dims=dims, dtype=dtype,
                   scale=scale, sink=sink, dropout=dropout, expected_seqlen=expected_seqlen, max_seqlen=max_seqlen).text
    if one.gradient:
        deterministic, dlse, requires_grad = one.gradient
        text = gradient_text(text, _ops.NAME, deterministic=deterministic, dlse=dlse, requires_grad=requires_grad)
    return text


class Plan(typing.NamedTuple):
    """What a call of attention() compiles to, by everything but its arrays' sizes."""
    options: tuple
    heads: tuple
    arrays: tuple  # names, in the order of the pass
    dtypes: tuple
    deterministic: bool
    segments: tuple | None  # the text that finds them, and the ranks of ids and positions


def _function(plan, one):
    """A pass as a function of arrays, and names of its inputs."""
    if plan.segments:
        made = _ops.rows_of(one, one.name, plan.heads, *plan.segments)
        return made, made.names
    names = [t["name"] for t in _ops.signature(one(plan.heads), one.name).inputs]
    return _ops.dense_of(one, one.name, plan.heads), names


@functools.partial(jax.custom_jvp, nondiff_argnums=(0,))
def _backward(function, *tensors):
    return function(*tensors)


@_backward.defjvp
def _second(function, primals, tangents):
    raise UnsupportedError("attnc has no second derivatives: gradients of attention cannot be differentiated")


@functools.partial(jax.custom_vjp, nondiff_argnums=(0,))
def _attention(plan, q, k, v, ids, arrays):
    """o and lse of arrays: `ids` of segments in the order of their pass, `arrays` in that of the plan."""
    function, names = _function(plan, Pass(plan.options))
    given = {"q": q, "k": k, "v": v, **dict(zip(plan.arrays, arrays)), **_named_ids(plan, ids)}
    return tuple(function(*(given[name] for name in names))[:2])


def _named_ids(plan, ids):
    if not plan.segments:
        return {}
    return dict(zip([t["name"] for t in _ops.signature(plan.segments[0], _ops.SEGMENTS).inputs], ids))


def _fwd(plan, q, k, v, ids, arrays):
    needed = Needed(name for name, array, dtype in zip(plan.arrays, arrays, plan.dtypes)
                    if dtype == "f32" and array.perturbed)
    q, k, v = q.value, k.value, v.value
    ids, arrays = tuple(t.value for t in ids), tuple(t.value for t in arrays)
    o, lse = _attention(plan, q, k, v, ids, arrays)
    return (o, lse), (q, k, v, ids, arrays, o, lse, needed)


def _bwd(plan, kept, cotangents):
    q, k, v, ids, arrays, o, lse, needed = kept
    do, dlse = cotangents
    do = jnp.zeros_like(o) if isinstance(do, SymbolicZero) else do
    dlse = None if isinstance(dlse, SymbolicZero) else dlse
    one = Pass(plan.options, (plan.deterministic, dlse is not None, tuple(needed)))
    function, names = _function(plan, one)
    given = {"q": q, "k": k, "v": v, "o": o, "lse": lse, "do": do, "dlse": dlse, **dict(zip(plan.arrays, arrays)),
             **_named_ids(plan, ids)}
    results = [t["name"] for t in _ops.signature(one(plan.heads), one.name).results]
    found = dict(zip(results, _backward(function, *(given[name] for name in names))))
    return (found["dq"], found["dk"], found["dv"], (None,) * len(ids),
            tuple(found.get("d" + name) if name in needed else None for name in plan.arrays))


_attention.defvjp(_fwd, _bwd, symbolic_zeros=True)
_jitted = jax.jit(_attention, static_argnums=0)


def attention(q, k, v, *, mask, layout="bshd", scale=None, score=(), sink=None, cu_seqlens_q=None, cu_seqlens_kv=None,
              padded_offsets_q=None, padded_offsets_kv=None, segment_ids=None, arrays=None, dropout=0.0, seed=None,
              deterministic=False, expected_seqlen=None, max_seqlen=None, return_lse=False, context_parallel=None,
              seqlens=None):
    """softmax(scores(q k^T) under the mask) v, with gradients of q, k, v, of float32 arrays of score modifiers, and of
    sinks.

    q, k, v: bfloat16 or float16 arrays (on the CPU also float32), [batch, seqlen, heads, dim] in the layout "bshd", and
        so on for "sbhd", "bhsd", "thd" (packed: [tokens, heads, dim]) and "thd padded". Heads of k and v divide those
        of q (GQA).
    mask: an attnc.Mask, or a function of (b, h, q, k). Arrays that it names are in `arrays`, or bound to it.
    scale: of q k^T; None is 1 / sqrt(dim). score: score modifiers, in order.
    sink: a number or a float32 array [heads]: one key more for each row, without a value.
    cu_seqlens_q, cu_seqlens_kv: packed layouts: int32 [sequences + 1], prefix sums of lengths from 0; of one alone,
        both sides have it. Tokens behind the last are padding. padded_offsets_q, padded_offsets_kv: where sequences
        begin, [sequences + 1] as well ("thd padded").
    segment_ids: attnc.jax.SegmentIds of rows [batch, tokens] (layout "bshd") or [tokens] ("thd"): the tokens of an id
        are one run, a sequence. Ids that are not so are an error on the CPU where their contents are known (not as
        arguments of jit), and else rows of zeros, with a `status` in lengths_and_offsets.
    arrays: other arrays by name; integers become int32.
    dropout: a probability; seed: int32 [4] that says which pairs are dropped, or a key of jax.random (typed, or uint32
        [2]).
    deterministic: gradients have equal bits each time.
    expected_seqlen, max_seqlen: hints, (queries, keys) or one for both, which choose kernels and change no result.
    context_parallel: an attnc.jax.ContextParallel, inside of jax.shard_map: q, k and v are this device's rows of whole
        sequences (layouts "bshd", "thd", "thd padded"), whose lengths are known while tracing: cu_seqlens and
        padded_offsets, or seqlens, an integer or a pair (queries, keys) of dense ones (None: the local ones times the
        number of ranks). Arrays with an entry for each token have those of the whole sequences, packed.
    return_lse: also return the logarithms of the softmax's sums, float32 [batch, heads, seqlen] or [heads, tokens].

    vmap folds into the batch, or into rows of segment_ids; packed calls refuse it. Batch and heads may be sharded.
    Returns o, as q but for the head dim of v; a row that sees no key is 0. Raises attnc.ProblemError, TensorError,
    UnsupportedError; what only a compiler finds, and bad contents of arrays, is an error of XLA with attnc's text.
    There is never a fallback to another implementation.
    """
    layouts = _layouts(layout)
    q, k, v = (_operand(name, array, own) for name, array, own in zip("qkv", (q, k, v), layouts))
    heads = (q.shape[AXES[layouts[0]][1]], k.shape[AXES[layouts[1]][1]])
    if heads[1] == 0 or heads[0] % heads[1]:
        raise TensorError(f"expected heads of q in multiples of those of k, got: {heads[0]} and {heads[1]}")
    mask, score = as_mask(mask), as_scores(score)
    if score:
        mask, *score = apart(mask, *score)
    given, written = given_by(arrays), {SINK: "sink", SEED: "seed"}
    sink_key = None if sink is None else SINK if np.ndim(sink) else number(sink, "a sink")
    if sink_key == SINK:
        given[SINK] = sink
    put_both(given, written, "cu_seqlens", cu_seqlens_q, cu_seqlens_kv, layout)
    put_both(given, written, "padded_offsets", padded_offsets_q, padded_offsets_kv, layout)
    dropout = number(dropout, "a probability of dropout")
    if dropout:
        if seed is None:
            raise ProblemError("expected a seed with dropout: int32 [4], or a key of jax.random, got: None")
        given[SEED] = _seed(seed)
    if context_parallel is not None or seqlens is not None:
        return _of_ranks(context_parallel, q, k, v, mask, score, layout, scale, sink_key, dropout, given, written,
                         segment_ids, (cu_seqlens_q, cu_seqlens_kv), (padded_offsets_q, padded_offsets_kv), seqlens,
                         return_lse)
    segments, ids, layout_of = None, (), tuple(layout) if isinstance(layout, list) else layout
    if segment_ids is not None:
        segments, ids = _segment_ids(segment_ids, mask, q, k, layout, given)
        layout_of = "thd padded"
    options = (mask._text, tuple(s._text for s in score), layout_of, (q.shape[-1], v.shape[-1]),
               _DTYPES[np.dtype(q.dtype)], scale if scale is None else number(scale, "scale"), sink_key,
               (dropout, SEED) if dropout else None, hashable(expected_seqlen), hashable(max_seqlen))
    listed = [t for t in _ops.signature(Pass(options)(heads), _ops.NAME).inputs
              if t["role"] == "array" and not (segments and t["name"] in _ops.Rows.OFFSETS)]
    names, dtypes = tuple(t["name"] for t in listed), tuple(t["dtype"] for t in listed)
    if dropout and SEED not in names:  # a probability that is rounded to none
        del given[SEED]

    def convert(what, value, dtype):
        if hasattr(value, "evaluate"):  # of a traced function
            value = _evaluated(value, given, q, k, layout, segment_ids)
        return _array(what, value, dtype)
    bound = merged(mask, *score)
    read = collect(names, dtypes, given, bound, written, convert)
    plan = Plan(options, heads, names, dtypes, bool(deterministic), segments)
    q, k, v, ids, read = _alike(q, k, v, ids, tuple(read))
    try:
        o, lse = _jitted(plan, q, k, v, ids, read)
    except errors.Error as error:
        raise as_written(error, names, given, bound, written) from None
    return (o, lse) if return_lse else o


def _of_ranks(parallel, q, k, v, mask, score, layout, scale, sink_key, dropout, given, written, segment_ids,
              cu_seqlens, padded_offsets, seqlens, return_lse):
    """attention() of this device's rows."""
    from ._of_ranks import of_ranks
    if parallel is None:
        raise TensorError("expected seqlens beside context_parallel, got: seqlens alone")
    if segment_ids is not None:
        raise UnsupportedError("attnc has context parallelism of sequences by cu_seqlens, got: 'segment_ids'")
    for name in _ops.Rows.OFFSETS:
        given.pop(name, None)
    heads = q.shape[-2], k.shape[-2]

    def text_of(layout):
        return Pass((mask._text, tuple(s._text for s in score), layout, (q.shape[-1], v.shape[-1]),
                     _DTYPES[np.dtype(q.dtype)], scale if scale is None else number(scale, "scale"), sink_key,
                     (dropout, SEED) if dropout else None, None, None))(heads)

    def convert(what, value, dtype, sides):
        if hasattr(value, "evaluate"):  # of a traced function, for the whole sequences
            sums = [np.cumsum([0, *side.lengths]).astype(np.int32) for side in sides]
            value = jnp.asarray(value.evaluate(len(sides[0].lengths), *heads, *(int(s[-1]) for s in sums), packed={
                side: (jnp.asarray(s), None) for side, s in zip("qk", sums)}))
        return _array(what, value, dtype)
    bound = merged(mask, *score)
    if SEED in given and getattr(parallel, "axis", None) in _ops.varying(given[SEED]):
        raise TensorError(f"expected one seed of dropout for all ranks along {parallel.axis!r}, got: one that varies")
    q, k, v, given = _alike(q, k, v, {n: t if hasattr(t, "evaluate") else jnp.asarray(t) for n, t in given.items()})
    try:
        o, lse = of_ranks(parallel, q, k, v, layout=layout, text_of=text_of, arrays=(given, bound, written, convert),
                          seqlens=seqlens, cu_seqlens=cu_seqlens, padded_offsets=padded_offsets)
    except errors.Error as error:
        raise as_written(error, (), given, bound, written) from None
    return (o, lse) if return_lse else o


def _operand(name, array, layout):
    if not is_array(array):
        raise TensorError(f"expected an array as {name!r}, got: {type(array).__name__}")
    rank = 3 if layout.startswith("thd") else 4
    if array.ndim != rank:
        raise TensorError(f"expected {name!r} of {rank} dimensions in the layout {layout!r}, got: {tuple(array.shape)}")
    dtype, platform = array.dtype, platform_of(array)
    if dtype not in _DTYPES or (dtype == np.float32 and platform != "cpu"):
        raise TensorError(f"expected {name!r} to be bfloat16 or float16 (on the CPU also float32), got: {dtype} on "
                          f"{platform}")
    return jnp.asarray(array)


def _layouts(layout):
    layouts = (layout,) * 4 if isinstance(layout, str) else layout
    if not isinstance(layouts, (tuple, list)) or len(layouts) != 4 or any(own not in list(AXES) for own in layouts):
        raise ProblemError(f"expected a layout of {', '.join(map(repr, AXES))}, or four for q, k, v and o, got: "
                           f"{layout!r}")
    return tuple(layouts)


def _seed(seed):
    """Four words, of a key of jax.random as well: a typed one, or uint32 [2] of jax.random.PRNGKey."""
    if not is_array(seed):
        raise TensorError("expected int32 [4] or a key of jax.random, as jax.random.key(0), as 'seed', got: "
                          f"{reprlib.repr(seed)}")
    if jnp.issubdtype(seed.dtype, jax.dtypes.prng_key) or (seed.dtype == jnp.uint32 and seed.shape == (2,)):
        seed = jax.random.bits(jnp.asarray(seed), (4,), jnp.uint32)
    return jax.lax.bitcast_convert_type(jnp.asarray(seed), jnp.int32) if seed.dtype == jnp.uint32 else seed


def _segment_ids(segment_ids, mask, q, k, layout, given):
    """The text that finds segments with the ranks of its inputs, and these."""
    if layout not in ("bshd", "thd"):
        raise UnsupportedError("attnc has segment_ids in the layouts 'bshd' (rows) and 'thd' (one row), got: "
                               f"{layout!r}")
    if extra := [name for name in given if name in _ops.Rows.OFFSETS]:
        raise TensorError(f"expected {', '.join(extra)} or segment_ids, got: both")
    if not hasattr(segment_ids, "ids"):
        raise TensorError(f"expected attnc.jax.SegmentIds as 'segment_ids', got: {type(segment_ids).__name__}")
    segment_ids = segment_ids.ids(q.shape[-3], k.shape[-3])
    text, ids = _segments.checked(segment_ids, mask)
    for name, side, tensor in (("q", segment_ids.q, q), ("kv", segment_ids.kv, k)):
        if np.shape(side) != tensor.shape[:-2]:
            raise TensorError(f"expected segment_ids.{name} of shape {tensor.shape[:-2]}, got: {np.shape(side)}")
    _segments.check_contents(segment_ids, mask)
    return (text, tuple(a.ndim for a in ids)), tuple(ids)


def _evaluated(hoisted, given, q, k, layout, segment_ids):
    """An array of a traced function, for the sizes or the lengths of a call."""
    if segment_ids is not None:
        raise UnsupportedError(f"attnc.jax does not evaluate {hoisted!r} with segment ids: which sequence a token "
                               "belongs to is found in the same program. Give the array, or cu_seqlens and "
                               "padded_offsets of attnc.jax.lengths_and_offsets")
    offsets = {name: jnp.asarray(given[name]) for name in _ops.Rows.OFFSETS if given.get(name) is not None}
    *sizes, packed = extents(offsets, q, k, layout)
    return jnp.asarray(hoisted.evaluate(*sizes, packed=packed))


def _array(what, value, dtype):
    if not is_array(value):
        raise TensorError(f"expected an array as {what}, got: {type(value).__name__}")
    if dtype == "i32":
        return int32(what, value)
    array = jnp.asarray(value)
    wanted = np.dtype(_ops.DTYPES[dtype])
    if np.dtype(array.dtype) != wanted:
        raise TensorError(f"expected {what} to be {wanted}, got: {array.dtype}")
    return array


def _alike(*trees):
    """Arrays that vary along the same axes of a shard_map: gradients of those that do not are then summed."""
    leaves, structure = jax.tree.flatten(trees)
    for leaf in leaves:
        mesh = getattr(getattr(jax.typeof(leaf), "sharding", None), "mesh", None)
        if mesh is not None and jax.sharding.AxisType.Explicit in (getattr(mesh, "axis_types", None) or ()):
            raise UnsupportedError("attnc does not take arrays of a mesh with explicit axes outside of jax.shard_map: "
                                   "make the axes jax.sharding.AxisType.Auto, or call attention inside of it")
    own = [_ops.varying(t) for t in leaves]
    union = frozenset().union(*own)
    leaves = [jax.lax.pcast(t, tuple(sorted(union - axes)), to="varying") if union - axes else t
              for t, axes in zip(leaves, own)]
    return jax.tree.unflatten(structure, leaves)
