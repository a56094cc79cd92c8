# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Traced functions in attnc.jax: dense, packed and padded, also under jit; against float64."""
import attnc
import pytest
from attnc.trace import array
from trace_reader import np

jax = pytest.importorskip("jax")
import attnc.jax as aj  # noqa: E402
import jax.numpy as jnp  # noqa: E402

LENGTHS = (7, 0, 12, 5)
CU = np.array([0, *np.cumsum(LENGTHS)], np.int32)
SLOTS, SHUFFLED = np.array([2, 9, 11, 25, 30], np.int32), np.array([20, 8, 0, 13, 32], np.int32)
RANDOM = np.random.default_rng(0)
limit, windows, keep = array([3, 0, 9, 2]), array([4, 6]), array(RANDOM.random((4, 12)) < 0.7)
slopes, table = array([0.1, 0.5]), array(RANDOM.random((2, 23)))
FAR = 2**33


def visible(b, h, q, k):
    return (q - k < windows[h]) & keep[b, k] & (k * FAR < (limit[b] + q) * FAR) | (q == k)


def modified(s, b, h, q, k):
    return s * slopes[h] + table[h, q - k + 11]


def wanted(q, k, v, b):
    """Attention of a sequence in float64."""
    if not len(q):
        return q
    h, i, j = np.ix_(range(2), range(len(q)), range(len(k)))
    seen = (i - j < windows.values[h]) & keep.values[b, j] & (j < limit.values[b] + i) | (i == j)
    s = np.einsum("ihd,jhd->hij", q, k) / 4 * slopes.values[h] + table.values[h, i - j + 11]
    p = np.exp(np.where(seen, s, -np.inf))
    return np.einsum("hij,jhd->ihd", p / p.sum(-1, keepdims=True), v)


def made(length):
    return [np.asarray(jnp.asarray(RANDOM.standard_normal((length, 2, 16)), jnp.bfloat16), np.float64) for _ in "qkv"]


@pytest.mark.parametrize("starts_q, starts_k, tokens", [(CU, CU, 26), (SLOTS, SLOTS, 31), (SLOTS, SHUFFLED, 40)])
def test_packed(starts_q, starts_k, tokens):
    sequences, whole = list(map(made, LENGTHS)), [np.full((tokens, 2, 16), np.nan) for _ in "qkv"]
    for b, (own, length) in enumerate(zip(sequences, LENGTHS)):
        for t, part, starts in zip(whole, own, (starts_q, starts_k, starts_k)):
            t[starts[b]:starts[b] + length] = part
    offsets = {} if starts_q is CU else {"padded_offsets_q": starts_q, "padded_offsets_kv": starts_k}
    layout = "thd padded" if offsets else "thd"
    mask, score = attnc.mask(visible), attnc.score(modified)

    def call(q, k, v, cu, offsets):
        return aj.attention(q, k, v, mask=mask, score=score, layout=layout, cu_seqlens_q=cu, **offsets)

    for each in (call, jax.jit(call)) if layout == "thd" else (jax.jit(call),):
        o = np.asarray(each(*(jnp.asarray(t, jnp.bfloat16) for t in whole), CU, offsets), np.float64)
        for b, (start, own) in enumerate(zip(starts_q, sequences)):
            np.testing.assert_allclose(o[start:start + LENGTHS[b]], wanted(*own, b), atol=0.01)


def test_dense():
    sequences = [made(12) for _ in LENGTHS]
    q, k, v = (jnp.asarray(np.stack(t), jnp.bfloat16) for t in zip(*sequences))
    o = np.asarray(aj.attention(q, k, v, mask=visible, score=attnc.score(modified)), np.float64)
    for b, own in enumerate(sequences):
        np.testing.assert_allclose(o[b], wanted(*own, b), atol=0.01)


@pytest.mark.parametrize("mask, kind, words", [
    (lambda b, h, q, k: slopes[q % 2] < table[0, k], attnc.UnsupportedError, "real numbers of q with real numbers of"),
    (lambda b, h, q, k: q - k < windows[h], attnc.TensorError, "cu_seqlens_q with the layout 'thd', got: None"),
])
def test_refused(mask, kind, words):
    tensors = [jnp.asarray(t, jnp.bfloat16) for t in made(24)]
    with pytest.raises(kind, match=words):
        aj.attention(*tensors, mask=mask, layout="thd", cu_seqlens_q=None if kind is attnc.TensorError else CU)


def test_segment_ids_refused():
    q, k, v = (jnp.asarray(t[None], jnp.bfloat16) for t in made(24))
    ids = aj.SegmentIds(jnp.ones((1, 24), jnp.int32), max_segments=2)
    with pytest.raises(attnc.UnsupportedError, match="with segment ids"):
        aj.attention(q, k, v, mask=lambda b, h, q, k: q - k < windows[h], segment_ids=ids)
