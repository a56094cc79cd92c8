# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""attnc.jax on 4 CPU devices: values against float64, gradients, vmap, scan, segments, sharding, export, errors."""
import functools
import inspect
import itertools
import os
import re
import subprocess
import sys
import threading

import pytest

os.environ["XLA_FLAGS"] = os.environ.get("XLA_FLAGS", "") + " --xla_force_host_platform_device_count=4"
jax = pytest.importorskip("jax")
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P  # noqa: E402

import attnc  # noqa: E402
import attnc.jax as aj  # noqa: E402
from attnc import ProblemError, TensorError, UnsupportedError  # noqa: E402

B, S, H, G, D = 2, 37, 4, 2, 16
LAYOUTS = {"bshd": (0, 1, 2, 3), "sbhd": (1, 0, 2, 3), "bhsd": (0, 2, 1, 3)}
CAUSAL = np.tril(np.ones((S, S), bool))
attention = functools.partial(aj.attention, mask=attnc.causal())


def make(*shape, seed=0, dtype=jnp.bfloat16):
    return jnp.asarray(np.random.default_rng(seed + sum(shape)).standard_normal(shape), dtype)


def qkv(batch=B, seqlen=S, lead=()):
    return [make(*lead, batch, seqlen, heads, D, seed=i) for i, heads in enumerate((H, G, G))]


def wide(x):
    return np.asarray(x.astype(jnp.float32), np.float64)


def total(call):
    """The sum of squares of what a call returns."""
    return lambda *a: sum(jnp.square(t.astype(jnp.float32)).sum() for t in jax.tree.leaves(call(*a)))


def same(a, b):
    a, b = jax.tree.leaves(a), jax.tree.leaves(b)
    assert len(a) == len(b) and all(x.shape == y.shape for x, y in zip(a, b))
    return all(np.array_equal(wide(x), wide(y)) for x, y in zip(a, b))


def dense(q, k, v, visible=CAUSAL, bias=0.0, sink=None, do=None, dlse=0.0):
    """o, lse, and with `do` the gradients of q, k, v, bias and sink of [batch, seqlen, heads, dim], in float64."""
    scale, groups = D**-0.5, q.shape[2] // k.shape[2]
    q, k, v = (wide(t).transpose(0, 2, 1, 3) for t in (q, k, v))
    k, v = (np.repeat(t, groups, 1) for t in (k, v))
    s = np.where(visible, q @ k.swapaxes(-1, -2) * scale + bias, -np.inf)
    more = np.zeros(0) if sink is None else np.exp(np.asarray(sink, np.float64))[:, None]
    sums = np.exp(s).sum(-1) + (0 if sink is None else more)
    with np.errstate(divide="ignore", invalid="ignore"):
        lse, p = np.log(sums), np.nan_to_num(np.exp(s) / sums[..., None])
    o = p @ v
    if do is None:
        return o.transpose(0, 2, 1, 3), lse
    do = wide(do).transpose(0, 2, 1, 3)
    delta = (do * o).sum(-1) - dlse
    ds = p * (do @ v.swapaxes(-1, -2) - delta[..., None])
    grouped = [t.reshape(t.shape[0], -1, groups, *t.shape[2:]).sum(2)
               for t in (ds.swapaxes(-1, -2) @ q * scale, p.swapaxes(-1, -2) @ do)]
    dsink = None if sink is None else -(more[:, 0] * (delta / sums).sum((0, 2)))
    return [t.transpose(0, 2, 1, 3) for t in (ds @ k * scale, *grouped)] + [ds, dsink]


def close(found, expected, tolerance=0.03):
    assert found.shape == expected.shape
    difference = np.abs(wide(found) - expected).max(initial=0)
    assert difference < tolerance * max(1, np.abs(expected).max(initial=0)), difference


# ---- Values and gradients ----

@pytest.mark.parametrize("layout", LAYOUTS)
def test_layouts(layout):
    order = LAYOUTS[layout]
    inverse = [order.index(i) for i in range(4)]
    def call(q, k, v):
        return attention(*(t.transpose(order) for t in (q, k, v)), layout=layout, return_lse=True)
    q, k, v = qkv()
    (o, lse), pull = jax.vjp(jax.jit(call), q, k, v)
    expected, sums = dense(q, k, v)
    close(o.transpose(inverse), expected)
    close(lse, sums)
    do, dlse = make(B, S, H, D, seed=9), make(B, H, S, seed=8, dtype=jnp.float32)
    for found, wanted in zip(pull((do.transpose(order), dlse)), dense(q, k, v, do=do, dlse=wide(dlse))):
        close(found, wanted)


def test_scores_and_sinks():
    bias, sink = make(H, S, S, seed=5, dtype=jnp.float32), make(H, seed=6, dtype=jnp.float32)
    def call(q, k, v, bias, sink):
        return attention(q, k, v, score=attnc.bias("pairs", "hqk"), sink=sink, arrays={"pairs": bias})
    q, k, v = qkv()
    do = make(B, S, H, D, seed=9)
    o, pull = jax.vjp(call, q, k, v, bias, sink)
    close(o, dense(q, k, v, bias=wide(bias), sink=sink)[0])
    *expected, ds, dsink = dense(q, k, v, bias=wide(bias), sink=sink, do=do)
    for found, wanted in zip(pull(do), [*expected, ds.sum(0), dsink]):
        close(found, wanted)
    only, = jax.grad(total(lambda sink: call(q, k, v, bias, sink)), (0,))(sink)  # no gradient of the bias is computed
    text = str(jax.make_jaxpr(jax.grad(total(lambda sink: call(q, k, v, bias, sink))))(sink))
    assert 'requires_grad(["sinks"])' in text and "pairs\", " not in text.split("requires_grad")[1]
    assert only.shape == (H,)


def lengths_of(total, count):
    cuts = np.sort(np.random.default_rng(total).integers(0, total + 1, count - 1))
    return np.diff([0, *cuts, total])


def by_document(lengths, tokens=S):
    """Which pairs of packed tokens causal attention shows."""
    document = np.repeat(np.arange(len(lengths)), lengths)
    document = np.concatenate([document, np.full(tokens - len(document), -1)])
    return (document[:, None] == document) & (document >= 0) & CAUSAL[:tokens, :tokens]


def test_packed_lengths():
    """50 lengths in a padded buffer: one program of XLA, one kernel for each pass."""
    @jax.jit
    def step(q, k, v, cu):
        return jax.value_and_grad(total(lambda *t: attention(*t, layout="thd", cu_seqlens_q=cu)), (0, 1, 2))(q, k, v)
    q, k, v = (t[0] for t in qkv(1))
    run = jax.jit(lambda q, k, v, cu: attention(q, k, v, layout="thd", cu_seqlens_q=cu))
    kernels = None
    for n in range(50):
        lengths = lengths_of(S - n % 20, 5)
        cu = jnp.asarray([0, *lengths.cumsum()], jnp.int32)
        grads = step(q, k, v, cu)[1]
        o = run(q, k, v, cu)
        if n % 10 == 0:
            visible = by_document(lengths)
            expected, _ = dense(*(t[None] for t in (q, k, v)), visible=visible)
            close(o, expected[0])
            wanted = dense(*(t[None] for t in (q, k, v)), visible=visible, do=2 * o[None])
            for found, own in zip(grads, wanted):
                close(found, own[0])
        kernels = attnc.compile_count() if kernels is None else kernels
    assert attnc.compile_count() == kernels and step._cache_size() == 1


def test_empty():
    q, k, v = qkv()
    assert attention(q[:0], k[:0], v[:0]).shape == (0, S, H, D)
    o = aj.attention(q, k[:, :0], v[:, :0], mask=attnc.full())
    assert o.shape == q.shape and not wide(o).any()


def test_dropout():
    q, k, v = qkv()
    def call(seed):
        return attention(q, k, v, dropout=0.5, seed=seed)
    seed = jnp.arange(4, dtype=jnp.int32)
    assert same(call(seed), call(seed)) and not same(call(seed), call(seed + 1))
    key = jax.random.key(3)
    assert same(call(key), call(key)) and not same(call(key), call(jax.random.key(4)))
    with pytest.raises(ProblemError, match="expected a seed with dropout"):
        call(None)
    seeds = jnp.stack([seed, seed + 1])
    assert same(jax.vmap(call)(seeds), jnp.stack([call(s) for s in seeds]))


def test_functions_and_bound_arrays():
    """A Python function with a captured array as the mask; bound arrays."""
    q, k, v = qkv()
    limit = np.array([3, 20], np.int32)
    distance = np.arange(S)[:, None] - np.arange(S)
    visible = ((distance >= 0) & (distance < limit[:, None, None]))[:, None]
    table = attnc.array(limit)
    o = jax.jit(lambda q: aj.attention(q, k, v, mask=lambda b, h, q, k: (q >= k) & (q - k < table[b])))(q)
    close(o, dense(q, k, v, visible)[0])
    ids = jnp.asarray(np.repeat([[1, 2, 3]], B, 0).repeat([10, 20, 7], 1), jnp.int32)
    shown = np.asarray(ids[:, :, None] == ids[:, None])[:, None]
    close(aj.attention(q, k, v, mask=attnc.document(ids=ids)), dense(q, k, v, shown)[0])
    close(aj.attention(q, k, v, mask=attnc.document("ids"), arrays={"ids": ids}), dense(q, k, v, shown)[0])


# ---- Transformations ----

N = 3


@pytest.mark.parametrize("dims", list(itertools.product((0, None), repeat=3))[:-1] + [(2, None, 1)])
def test_vmap(dims):
    stacked = [t if d is None else jnp.stack([make(*t.shape, seed=50 + i) for i in range(N)], d)
               for t, d in zip(qkv(), dims)]
    def loop(function):
        made = [function(*(t if d is None else jnp.take(t, i, d) for t, d in zip(stacked, dims))) for i in range(N)]
        return jax.tree.map(lambda *x: jnp.stack(x), *made)
    assert same(jax.vmap(attention, dims)(*stacked), loop(attention))
    grad = jax.grad(total(attention), (0, 1, 2))
    assert same(jax.vmap(grad, dims)(*stacked), loop(grad))
    whole = jax.jit(jax.grad(lambda *t: jax.vmap(total(attention), dims)(*t).sum(), (0, 1, 2)))(*stacked)
    for found, each, d in zip(whole, loop(grad), dims):
        close(found, wide(each).sum(0) if d is None else np.moveaxis(wide(each), 0, d))


def test_vmap_nested_and_arrays():
    q, k, v = qkv(lead=(2, N))
    twice = jax.vmap(jax.vmap(attention, (0, None, 0)), (0, 0, None))(q, k[:, 0], v[0])
    assert same(twice, jnp.stack([jnp.stack([attention(q[i, j], k[i, 0], v[0, j]) for j in range(N)])
                                  for i in range(2)]))
    q, k, v = q[0], k[0, 0], v[0, 0]
    sinks = make(N, H, dtype=jnp.float32)
    def call(q, sink):
        return attention(q, k, v, sink=sink)
    assert same(jax.vmap(call)(q, sinks), jnp.stack([call(*t) for t in zip(q, sinks)]))
    shared = jax.grad(lambda sink: jax.vmap(lambda q: total(call)(q, sink))(q).sum())(sinks[0])
    close(shared, sum(wide(jax.grad(total(call), 1)(t, sinks[0])) for t in q))
    numbered = functools.partial(aj.attention, k=k, v=v, mask=attnc.where("q - k < 4 * (b + 1) && k <= q"))
    assert same(jax.vmap(lambda q: numbered(q))(q), jnp.stack([numbered(t) for t in q]))  # b counts in each entry
    assert jax.vmap(attention, (0, None, None))(q[:0], k, v).shape == (0, B, S, H, D)


def test_vmap_refused():
    q, k, v = (t[0] for t in qkv(1))
    cu = jnp.array([0, S], jnp.int32)
    with pytest.raises(UnsupportedError, match="pack the sequences"):
        jax.vmap(lambda q: attention(q, k, v, layout="thd", cu_seqlens_q=cu))(jnp.stack([q, q]))


def test_scan_remat():
    q, k, v = qkv()
    def step(x, _):
        return attention(x, k, v), None
    def scanned(q):
        return jax.lax.scan(step, q, None, length=3)[0]
    def looped(q):
        return attention(attention(attention(q, k, v), k, v), k, v)
    expected = jax.grad(total(looped))(q)
    assert same(scanned(q), looped(q)) and same(jax.jit(jax.grad(total(scanned)))(q), expected)
    assert same(jax.grad(total(jax.checkpoint(looped)))(q), expected)


def test_no_other_derivatives():
    q, k, v = qkv()
    with pytest.raises(TypeError, match="forward-mode"):
        jax.jvp(lambda q: attention(q, k, v), (q,), (q,))
    with pytest.raises(UnsupportedError, match="no second derivatives"):
        jax.grad(lambda q: total(jax.grad(total(lambda q: attention(q, k, v))))(q))(q)


# ---- Segments ----

ROW = ([1, 1, 1, 0, 2, 2, 0, 0, 3, 3, 3, 3], [0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3])


def test_golden():
    """E04 of docs/Thd.md, and V1: positions that two leading dimensions share."""
    ids, positions = (jnp.array(x, jnp.int32) for x in ROW)
    found = aj.lengths_and_offsets(aj.SegmentIds(ids, None, positions, max_segments=4), mask=attnc.causal())
    assert [x.tolist() for x in found] == [[3, 2, 4, 0], [3, 2, 4, 0], [0, 4, 8, -1, -1], [0, 4, 8, -1, -1], 0]
    ids = jnp.array([[[1, 1, 2, 2], [1, 1, 1, 0]], [[1, 2, 2, 2], [1, 1, 0, 0]]])
    positions = jnp.array([[0, 1, 0, 1], [0, 1, 2, 3]])
    found = aj.lengths_and_offsets(aj.SegmentIds(ids, None, positions, max_segments=2), mask=attnc.full())
    assert found.seqlens_q.tolist() == [[[2, 2], [3, 0]], [[1, 3], [2, 0]]]
    assert found.offsets_kv.tolist() == [[[0, 2, -1], [0, -1, -1]], [[0, 1, -1], [0, -1, -1]]]


def rows_of_ids(*lead, tokens=S, count=4):
    made = [np.repeat(np.arange(1, count + 1), lengths_of(tokens - 3 - i % 4, count))
            for i in range(int(np.prod(lead, initial=1)))]
    padded = np.stack([np.pad(ids, (0, tokens - len(ids))) for ids in made])
    return jnp.asarray(padded.reshape(*lead, tokens), jnp.int32)


def positions_of(ids):
    flat = np.asarray(ids).reshape(-1, ids.shape[-1])
    starts = np.maximum.accumulate(np.where(np.diff(flat, axis=1, prepend=-1) != 0, np.arange(flat.shape[1]), 0), 1)
    return jnp.asarray((np.arange(flat.shape[1]) - starts).reshape(ids.shape), jnp.int32)


@pytest.mark.parametrize("ids_q, positions_q, ids_kv, positions_kv, message", [
    ((2, 128), (2, 128), (2, 128), (2, 128), None),
    ((1, 2, 128), (2, 128), (1, 2, 128), (2, 128), None),
    ((5, 2, 128), (2, 128), (5, 2, 256), (2, 256), None),
    ((3, 5, 2, 128), (2, 128), (3, 5, 2, 128), (5, 2, 128), None),
    ((2, 128), (128,), (2, 128), (128,), None),
    ((2, 128), (3, 2, 128), (2, 128), (2, 128), "positions_q"),
    ((5, 2, 128), (3, 128), (5, 2, 128), (2, 128), "positions_q"),
    ((5, 2, 128), (2, 64), (5, 2, 128), (2, 128), "positions_q"),
    ((2, 3, 2, 128), (2, 128), (3, 2, 2, 128), (2, 128), "same leading dimensions"),
    ((5, 2, 128), (2, 128), (2, 128), (2, 128), "same leading dimensions"),
])
def test_leading_dimensions(ids_q, positions_q, ids_kv, positions_kv, message):
    """The table of docs/Thd.md; equal to a loop over rows."""
    ids = [rows_of_ids(*shape[:-1], tokens=shape[-1]) for shape in (ids_q, ids_kv)]
    positions = [jnp.broadcast_to(jnp.arange(shape[-1], dtype=jnp.int32), shape)
                 for shape in (positions_q, positions_kv)]
    def call(*a):
        return aj.lengths_and_offsets(aj.SegmentIds(*a, max_segments=4), mask=attnc.causal())
    if message:
        with pytest.raises(TensorError, match=message):
            call(*ids, *positions)
        return
    found = call(*ids, *positions)
    whole = [jnp.broadcast_to(p, i.shape).reshape(-1, i.shape[-1]) for p, i in zip(positions, ids)]
    loop = [call(*row) for row in zip(*(i.reshape(-1, i.shape[-1]) for i in ids), *whole)]
    for one, *rows in zip(found, *loop):
        assert np.array_equal(np.asarray(one).reshape(len(rows), *rows[0].shape), np.stack(rows))


def test_segments_vmap():
    """16 in_axes and nested vmaps of ids and positions; what is not mapped of positions is not copied."""
    one = rows_of_ids(2)
    values = [jnp.stack([rows_of_ids(2, count=c) for c in (2, 3, 4)])] * 2
    values += [jnp.stack([positions_of(one), positions_of(one) + 1, positions_of(one)])] * 2
    def call(*a):
        return aj.lengths_and_offsets(aj.SegmentIds(*a, max_segments=4), mask=attnc.causal())
    for dims in itertools.product((0, None), repeat=4):
        if not any(d == 0 for d in dims):
            continue
        given = [v if d == 0 else v[0] for v, d in zip(values, dims)]
        found = jax.vmap(call, dims)(*given)
        loop = [call(*(v[i] if d == 0 else v for v, d in zip(given, dims))) for i in range(3)]
        assert all(np.array_equal(a, np.stack(b)) for a, b in zip(found, zip(*loop))), dims
    for outer, inner in itertools.product(((0, 0, None, None), (None, None, 0, 0), (0, None, 0, None)), repeat=2):
        given = []
        for value, a, b in zip(values, outer, inner):
            own = value[0]
            own = jnp.stack([own] * 3) if b == 0 else own
            given.append(jnp.stack([own, own]) if a == 0 else own)
        found = jax.vmap(jax.vmap(call, inner), outer)(*given)
        assert all(np.array_equal(f, np.broadcast_to(o, f.shape)) for f, o in zip(found, call(*(v[0] for v in values))))
    text = str(jax.make_jaxpr(jax.vmap(call, (0, 0, None, None)))(values[0], values[1], values[2][0], values[3][0]))
    assert "broadcast" not in text
    assert "i32[3,2,37]" in text and "i32[2,37]" in text


@pytest.mark.parametrize("with_positions", [True, False])
def test_segment_attention(with_positions):
    q, k, v = qkv()
    ids = rows_of_ids(B)
    positions = positions_of(ids) if with_positions else None
    def call(q, k, v, ids=ids, positions=positions):
        return attention(q, k, v, segment_ids=aj.SegmentIds(ids, None, positions, max_segments=4), return_lse=True)
    visible = (np.asarray(ids)[:, :, None] == np.asarray(ids)[:, None]) & (np.asarray(ids) > 0)[:, None] & CAUSAL
    (o, lse), pull = jax.vjp(call, q, k, v)
    expected, sums = dense(q, k, v, visible[:, None])
    close(o, expected)
    assert np.allclose(np.where(np.isinf(sums), 0, sums), np.where(np.isinf(lse), 0, lse), atol=0.03)
    do = make(B, S, H, D, seed=9)
    for found, wanted in zip(pull((do, jnp.zeros_like(lse))), dense(q, k, v, visible[:, None], do=do)):
        close(found, wanted)
    assert same(call(q, k, v), jax.tree.map(lambda *x: jnp.stack(x), *(
        attention(q[i], k[i], v[i], layout="thd", segment_ids=aj.SegmentIds(ids[i], max_segments=4), return_lse=True)
        for i in range(B))))
    # ids mapped, positions not; q mapped, ids not; gradients of both
    more = jnp.stack([ids, ids]), jnp.stack([q, 2 * q])
    mapped = jax.vmap(lambda ids, q: call(q, k, v, ids))(*more)
    assert same(mapped, jax.tree.map(lambda *x: jnp.stack(x), *(call(t, k, v) for t in more[1])))
    grad = jax.grad(total(lambda q: call(q, k, v)[0]))
    assert same(jax.vmap(grad)(more[1]), jnp.stack([grad(t) for t in more[1]]))


@pytest.mark.parametrize("mask", [attnc.causal(align="end"), attnc.causal(), attnc.window(3, align="end")])
def test_segments_cross(mask):
    """E06, E07 and W3 of docs/Thd.md: other rows for keys, whose segments have other lengths."""
    ids_q, ids_kv = (jnp.array([np.repeat(*np.transpose(runs))]) for runs in (
        [(1, 3), (0, 1), (2, 4)], [(1, 4), (0, 2), (2, 10)]))
    q, k, v = make(1, 8, H, D), make(1, 16, G, D, seed=1), make(1, 16, G, D, seed=2)
    visible = np.zeros((8, 16), bool)
    for (begin, end), (first, last) in (((0, 3), (0, 4)), ((4, 8), (6, 16))):
        row, key = np.arange(end - begin)[:, None], np.arange(last - first)
        diagonal = row + (last - first - end + begin if "bottom_right" in str(mask) else 0)
        visible[begin:end, first:last] = (key <= diagonal) & ((key > diagonal - 3) | ("band" not in str(mask)))
    for positions in ((None, None), (positions_of(ids_q), positions_of(ids_kv))):
        ids = aj.SegmentIds(ids_q, ids_kv, *positions, max_segments=3)
        call = functools.partial(aj.attention, mask=mask, segment_ids=ids)
        o, pull = jax.vjp(call, q, k, v)
        close(o, dense(q, k, v, visible)[0])
        for found, wanted in zip(pull(o), dense(q, k, v, visible, do=o)):
            close(found, wanted)


def test_segment_constructors():
    q, k, v = qkv()
    seqlens = jnp.array([30, S], jnp.int32)
    shown = CAUSAL & (np.arange(S) < np.asarray(seqlens)[:, None, None])
    shown = (shown & shown.swapaxes(1, 2).any(1, keepdims=True))[:, None]
    rows = (np.arange(S) < np.asarray(seqlens)[:, None])[:, :, None, None]
    o = jax.jit(lambda n: attention(q, k, v, segment_ids=aj.SegmentIds.from_seqlens(n)))(seqlens)
    close(o, dense(q, k, v, shown)[0] * rows)
    lengths = jnp.array([[3, 5, 7, -1], [2, 4, 6, -1]], jnp.int32)
    offsets = jnp.array([[0, 3, 20, -1, -1], [1, 6, 12, -1, -1]], jnp.int32)
    ids = np.zeros((B, S), np.int32)
    for b, s in itertools.product(range(B), range(3)):
        ids[b, offsets[b, s]:offsets[b, s] + lengths[b, s]] = s + 1
    expected = attention(q, k, v, segment_ids=aj.SegmentIds(jnp.asarray(ids)))
    assert same(attention(q, k, v, segment_ids=aj.SegmentIds.from_seqlens_and_offsets(lengths, offsets)), expected)
    given = aj.SegmentIds.from_segment_ids_and_pos(jnp.asarray(ids), positions_of(ids), max_segments=3)
    assert same(attention(q, k, v, segment_ids=given), expected)
    leaves, tree = jax.tree.flatten(given)
    assert len(leaves) == 4 and jax.tree.unflatten(tree, leaves).max_segments == 3
    assert same(jax.jit(lambda s: attention(q, k, v, segment_ids=s))(given), expected)


# ---- Sharding ----

def hlo(function, *arguments):
    return function.lower(*arguments).compile().as_text()


COLLECTIVE = re.compile(r"all-gather|all-reduce|all-to-all|collective-permute|reduce-scatter")


@pytest.mark.parametrize("spec", [P("x"), P(None, None, "x"), P("x", None, "y"), P(("x", "y"))])
def test_sharding(spec):
    """Batch and heads: every shard computes its own, in both passes."""
    sizes = {"x": 2, "y": 2} if "y" in str(spec) else {"x": 2}
    mesh = Mesh(np.array(jax.devices()[:int(np.prod(list(sizes.values())))]).reshape(*sizes.values()), tuple(sizes))
    tensors = qkv(4)
    placed = [jax.device_put(t, NamedSharding(mesh, spec)) for t in tensors]
    step = jax.jit(jax.value_and_grad(lambda *t: (total(attention)(*t)), (0, 1, 2)))
    forward = jax.jit(attention)
    backward = jax.jit(lambda do, *t: jax.vjp(attention, *t)[1](do))
    assert same(forward(*placed), forward(*tensors)) and same(step(*placed)[1], step(*tensors)[1])
    assert not COLLECTIVE.search(hlo(forward, *placed))
    assert not COLLECTIVE.search(hlo(backward, placed[0], *placed))
    for found, own in zip(backward(placed[0], *placed), placed):
        assert found.sharding.is_equivalent_to(own.sharding, 4)


@pytest.mark.parametrize("spec", [P(None, "x"), P(None, None, None, "x"), P(None, None, "x")])
def test_sharding_gathers(spec):
    """Along the sequence, along dims, and more shards than kv heads: gathered and right."""
    mesh = Mesh(np.array(jax.devices()), ("x",))
    tensors = qkv(2, 40)
    of_k = P() if spec[2:3] == ("x",) else spec
    placed = [jax.device_put(t, NamedSharding(mesh, s)) for t, s in zip(tensors, (spec, of_k, of_k))]
    step = jax.jit(jax.grad(total(attention), (0, 1, 2)))
    assert same(jax.jit(attention)(*placed), attention(*tensors)) and same(step(*placed), step(*tensors))


def test_sharding_with_vmap():
    """The mapped axis, the batch and heads, each split: no collective."""
    mesh = jax.make_mesh((2, 2), ("x", "y"), axis_types=(jax.sharding.AxisType.Auto,) * 2)
    tensors = qkv(2, lead=(2,))
    mapped = jax.jit(jax.vmap(lambda do, *t: jax.vjp(attention, *t)[1](do)))
    with jax.set_mesh(mesh):
        for spec in (P("x", "y"), P(None, "x", None, "y"), P("x", None, None, "y")):
            placed = [jax.device_put(t, NamedSharding(mesh, spec)) for t in tensors]
            assert same(mapped(placed[0], *placed), mapped(tensors[0], *tensors))
            assert not COLLECTIVE.search(hlo(mapped, placed[0], *placed))


def test_sharding_of_others():
    """Sinks and ALiBi slopes have heads; a default ALiBi, dropout and segments."""
    mesh = Mesh(np.array(jax.devices()).reshape(2, 2), ("x", "y"))
    tensors = qkv(4)
    placed = [jax.device_put(t, NamedSharding(mesh, P("x", None, "y"))) for t in tensors]
    sink, ids, positions = make(H, dtype=jnp.float32), rows_of_ids(4), positions_of(rows_of_ids(1))[0]
    def sinks(q, k, v, sink):
        return attention(q, k, v, sink=sink, score=attnc.alibi("slopes"), arrays={"slopes": sink})
    step = jax.jit(jax.grad(total(sinks), (0, 3)))
    for found, wanted in zip(step(*placed, sink), step(*tensors, sink)):
        close(found, wide(wanted), 1e-2)
    def numbered(q, k, v):
        return attention(q, k, v, score=attnc.alibi())
    def random(q, k, v):
        return attention(q, k, v, dropout=0.3, seed=jnp.arange(4))
    def segments(q, k, v, ids=ids):
        return attention(q, k, v, segment_ids=aj.SegmentIds(ids, None, positions, max_segments=4))
    for call in (numbered, random, segments):
        assert same(jax.jit(call)(*placed), call(*tensors)), call
        grad = jax.jit(jax.grad(total(call), (0, 1, 2)))
        assert same(grad(*placed), grad(*tensors)), call
    own = jax.device_put(ids, NamedSharding(mesh, P("x")))
    assert not COLLECTIVE.search(hlo(jax.jit(segments), *placed, own))


def test_shard_map():
    mesh = Mesh(np.array(jax.devices()).reshape(2, 2), ("x", "y"))
    tensors, sink = qkv(4), make(H, dtype=jnp.float32)
    def call(q, k, v, sink):
        return attention(q, k, v, sink=sink)
    mapped = jax.shard_map(call, mesh=mesh, in_specs=(P("x", None, "y"),) * 3 + (P("y"),), out_specs=P("x", None, "y"))
    assert same(jax.jit(mapped)(*tensors, sink), call(*tensors, sink))
    expected = jax.grad(total(call), (0, 1, 2, 3))(*tensors, sink)
    for found, wanted in zip(jax.jit(jax.grad(total(mapped), (0, 1, 2, 3)))(*tensors, sink), expected):
        close(found, wide(wanted), 1e-2)


def test_explicit_mesh():
    mesh = jax.make_mesh((2,), ("x",), axis_types=(jax.sharding.AxisType.Explicit,))
    q, k, v = (jax.device_put(t, NamedSharding(mesh, P("x"))) for t in qkv())
    with pytest.raises(UnsupportedError, match="jax.shard_map"):
        attention(q, k, v)


# ---- The rest ----

def test_dot_product_attention():
    theirs, own = (inspect.signature(f).parameters.values()
                   for f in (jax.nn.dot_product_attention, aj.dot_product_attention))
    assert [p.replace(annotation=inspect.Parameter.empty) for p in theirs] == list(own)
    q, k, v = qkv()
    lengths = jnp.array([20, S], jnp.int32)
    rows = (jnp.arange(S) < lengths[:, None])[:, None, None]
    bias = make(1, H, S, S, dtype=jnp.float32)
    for options in (dict(is_causal=True), dict(local_window_size=(4, 2)), dict(local_window_size=3, scale=0.5),
                    dict(key_value_seq_lengths=lengths), dict(query_seq_lengths=lengths, key_value_seq_lengths=lengths),
                    dict(bias=bias), dict(mask=rows), dict(mask=rows, bias=bias[:, :, :1], is_causal=True)):
        own, theirs = (f(q, k, v, **options) for f in (aj.dot_product_attention, jax.nn.dot_product_attention))
        close(own, wide(theirs))
        close(aj.dot_product_attention(q[0], k[0], v[0], **{n: x[:1] if n.endswith("lengths") or n == "mask" else x
                                                            for n, x in options.items()}), wide(own[0]))
    own, theirs = (f(q, k, v, is_causal=True, return_residual=True)[1]
                   for f in (aj.dot_product_attention, jax.nn.dot_product_attention))
    close(own, wide(theirs))
    learned = jax.grad(lambda b: total(aj.dot_product_attention)(q, k, v, b))(bias)
    close(learned, wide(jax.grad(lambda b: total(jax.nn.dot_product_attention)(q, k, v, b))(bias)))
    for options, message in ((dict(implementation="xla"), "implementation"),
                             (dict(mask=jnp.ones((S, S), bool)), "queries times keys")):
        with pytest.raises(UnsupportedError, match=message):
            aj.dot_product_attention(q, k, v, **options)


ONES = aj.SegmentIds(jnp.ones((B, S), jnp.int32))


@pytest.mark.parametrize("change, kind, message", [
    (dict(q="q"), TensorError, "expected an array as 'q', got: str"),
    (dict(q=np.zeros((B, S, H, D))), TensorError, "expected 'q' to be bfloat16 or float16 (on the CPU also float32), got: float64"),
    (dict(q=make(B, S, 3, D)), TensorError, "expected heads of q in multiples of those of k, got: 3 and 2"),
    (dict(q=make(S, H, D)), TensorError, "expected 'q' of 4 dimensions in the layout 'bshd'"),
    (dict(k=make(B, S, G, D + 8)), TensorError, "`k`"),
    (dict(k=make(B, S - 1, G, D)), TensorError, "`v`"),
    (dict(v=make(B, S, G, D + 1)), ProblemError, "dim_v to be a multiple of 8"),
    (dict(layout="bsdh"), ProblemError, "expected a layout of 'bshd'"),
    (dict(mask=attnc.document()), TensorError, "got none for: segment_ids_q, segment_ids_kv"),
    (dict(arrays={"ids": jnp.zeros(1)}), TensorError, "got also: ids"),
    (dict(mask=attnc.document("ids"), arrays={"ids": jnp.zeros((B, S))}), TensorError, "to be int32, got: float32"),
    (dict(mask=attnc.document("ids"), arrays={"ids": jnp.zeros((B, S + 1), jnp.int32)}), TensorError, "`ids_rows`"),
    (dict(segment_ids=ONES, mask=attnc.prefix("n"), arrays={"n": jnp.ones(B, jnp.int32)}), UnsupportedError,
     "no array `n`"),
    (dict(segment_ids=ONES, cu_seqlens_q=jnp.array([0, S])), TensorError, "or segment_ids"),
    (dict(segment_ids=aj.SegmentIds(jnp.ones((B, S)))), TensorError, "expected 'q' to be int32"),
    (dict(scale="x"), ProblemError, "expected scale to be a number"),
    (dict(segment_ids=aj.SegmentIds(jnp.ones((B, S + 1), jnp.int32))), TensorError, "ids of q of shape (2, 37)"),
    (dict(segment_ids=ONES, layout="bhsd"), UnsupportedError, "segment_ids in the layouts"),
    (dict(segment_ids=aj.SegmentIds(ONES.q, None, ONES.q), mask=attnc.sink(2)), UnsupportedError, "by positions"),
    (dict(segment_ids=aj.SegmentIds(jnp.ones((B, 3000), jnp.int32))), ProblemError, "expected max_segments"),
    (dict(dropout=1.5, seed=jnp.arange(4)), ProblemError, "probability"),
])
def test_errors(change, kind, message):
    options = {**dict(zip("qkv", qkv())), "mask": attnc.causal(), **change}
    with pytest.raises(kind) as error:
        aj.attention(**options)
    assert message in str(error.value), str(error.value)


def test_errors_of_xla():
    """A text without a kernel fails in XLA's compilation, bad contents where the program runs; the process goes on."""
    from attnc.jax import _ops
    text = "attn.problem @attention mask(#attn.causal) layout(bshd) heads(4) dims(17) dtype(bf16)"
    result = [jax.ShapeDtypeStruct((1,), jnp.uint8)] * 3
    call = jax.jit(lambda x: jax.ffi.ffi_call(_ops.TARGET, result)(x, problem=text, name="attention"))
    lowered = call.lower(jnp.zeros(1))
    with pytest.raises(jax.errors.JaxRuntimeError, match="(?s)attnc.ProblemError.*multiple of 8"):
        lowered.compile()
    q, k, v = (t[0] for t in qkv(1))
    for cu, message in (([0, 9, 4, S], "ascend"), ([0, S + 9], "at most")):
        with pytest.raises(jax.errors.JaxRuntimeError, match="attnc.TensorError.*cu_seqlens"):
            jax.block_until_ready(attention(q, k, v, layout="thd", cu_seqlens_q=jnp.array(cu, jnp.int32)))
    jax.block_until_ready(attention(q, k, v, layout="thd", cu_seqlens_q=jnp.array([0, S], jnp.int32)))


def test_threads():
    tensors, kernels, failures = qkv(), None, []
    calls = [jax.jit(functools.partial(aj.attention, mask=mask)) for mask in (attnc.causal(), attnc.full())]
    expected = [call(*tensors) for call in calls]
    kernels = attnc.compile_count()
    def work():
        for _ in range(20):
            failures.extend(call for call, o in zip(calls, expected) if not same(call(*tensors), o))
    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures and attnc.compile_count() == kernels


def test_without_shardy():
    """JAX's older partitioner."""
    code = ("import jax, numpy as np, jax.numpy as jnp, attnc, attnc.jax as aj\nfrom jax.sharding import *\n"
            "jax.config.update('jax_use_shardy_partitioner', False)\n"
            "mesh = Mesh(np.array(jax.devices()).reshape(2, 2), ('x', 'y'))\n"
            "q = jnp.ones((4, 8, 4, 16), jnp.bfloat16)\nk = jnp.ones((4, 8, 2, 16), jnp.bfloat16)\n"
            "put = lambda t: jax.device_put(t, NamedSharding(mesh, PartitionSpec('x', None, 'y')))\n"
            "f = jax.jit(lambda q, k: aj.attention(q, k, k, mask=attnc.causal()))\n"
            "print((f(put(q), put(k)) == f(q, k)).all(), 'all-' in f.lower(put(q), put(k)).compile().as_text())")
    environment = {**os.environ, "PYTHONPATH": ":".join(sys.path)}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, timeout=120)
    assert done.stdout == "True False\n", done.stderr


def test_export(tmp_path):
    """An exported step runs in another process."""
    from jax import export
    pytest.importorskip("flatbuffers", reason="jax.export needs flatbuffers")
    tensors = qkv()
    step = jax.jit(jax.grad(total(attention), (0, 1, 2)))
    made = export.export(step, disabled_checks=[export.DisabledSafetyCheck.custom_call("attnc_run")])(*tensors)
    (tmp_path / "step").write_bytes(made.serialize())
    np.savez(tmp_path / "data", *(wide(t) for t in (*tensors, *step(*tensors))))
    code = ("import sys, numpy as np, jax, jax.numpy as jnp, attnc.jax\nfrom jax import export\n"
            "data = list(np.load(sys.argv[1] + '/data.npz').values())\n"
            "step = export.deserialize(open(sys.argv[1] + '/step', 'rb').read())\n"
            "found = step.call(*(jnp.asarray(t, jnp.bfloat16) for t in data[:3]))\n"
            "print(all(np.array_equal(np.asarray(a, np.float64), b) for a, b in zip(found, data[3:])))")
    environment = {**os.environ, "PYTHONPATH": ":".join(sys.path)}
    assert subprocess.run([sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, env=environment,
                          timeout=120).stdout == "True\n"
