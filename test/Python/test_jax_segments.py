# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Segments by ids in attnc.jax: lengths and offsets, leading dimensions, vmap, attention."""
import functools
import itertools

import pytest
from jax_cases import (attention, close, dense, jax, jnp, make, np, positions_of, qkv, rows_of_ids, same, total, B,
                       CAUSAL, D, G, H, S)
import attnc
import attnc.jax as aj
from attnc import TensorError

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
