# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""attnc.jax: values and gradients against float64; packed lengths, dropout, functions as masks."""
import pytest
from jax_cases import (attention, close, dense, jax, jnp, lengths_of, make, np, qkv, same, total, wide, B, CAUSAL, D,
                       H, S)
import attnc
import attnc.jax as aj
from attnc import ProblemError

LAYOUTS = {"bshd": (0, 1, 2, 3), "sbhd": (1, 0, 2, 3), "bhsd": (0, 2, 1, 3)}


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
