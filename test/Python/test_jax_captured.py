# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Arrays of JAX that functions capture as masks and scores, against float64; what is traced, and jax.numpy."""
import threading

import pytest
from jax_cases import close, dense, jax, jnp, np, qkv, B, H, S
import attnc
import attnc.jax as aj
from attnc import TraceError

LIMIT, STEEP = np.array([3, 20]), np.array([0.1, 0.2, 0.3, 0.4], np.float32)
DISTANCE = np.arange(S)[:, None] - np.arange(S)
VISIBLE = ((DISTANCE >= 0) & (DISTANCE < LIMIT[:, None, None]))[:, None]
limit = jnp.asarray(LIMIT)


def near(b, h, q, k):
    return (q >= k) & (q - k < limit[b])


@pytest.mark.parametrize("transform", [lambda f: f, jax.jit])
def test_entries(transform):
    q, k, v = qkv()
    steep, table = jnp.asarray(STEEP), {"of": jnp.asarray(np.outer(LIMIT, np.ones(H, int)))}
    def score(s, b, h, q, k):
        return s - steep[h] * (q - k)
    bias = -STEEP[:, None, None] * DISTANCE
    o = transform(lambda q: aj.attention(q, k, v, mask=near, score=score))(q)
    close(o, dense(q, k, v, VISIBLE, bias=bias)[0])
    for mask in (lambda b, h, q, k: (q >= k) & (q - k < table["of"][b, h]),
                 lambda b, h, q, k: (q >= k) & (q - k < (limit + 0)[b]),
                 lambda b, h, q, k: np.logical_and(q >= k, q - k < np.where(b == 0, limit[0], limit[1]))):
        close(transform(lambda q: aj.attention(q, k, v, mask=mask))(q), dense(q, k, v, VISIBLE)[0])
    one = limit[0]
    shown = (DISTANCE >= 0) & (DISTANCE < 3)
    for mask in (lambda b, h, q, k: (q >= k) & (q - k < one), lambda b, h, q, k: (q >= k) & (one > q - k)):
        close(transform(lambda q: aj.attention(q, k, v, mask=mask))(q), dense(q, k, v, shown)[0])


def test_packed():
    q, k, v = qkv()
    cu = jnp.array([0, S, 2 * S], jnp.int32)
    o = jax.jit(lambda *t: aj.attention(*(x.reshape(B * S, *x.shape[2:]) for x in t), mask=near, layout="thd",
                                        cu_seqlens_q=cu))(q, k, v)
    close(o.reshape(q.shape), dense(q, k, v, VISIBLE)[0])


def test_read_once():
    """An array that is read twice is one array; JAX reads as before behind a trace, in other threads meanwhile too."""
    mask = attnc.mask(lambda b, h, q, k: (q - k < limit[b]) & (k - q < limit[b]))
    assert len({id(own) for array in mask.arrays.values() for own in array.captured}) == 1
    seen, inside = [], threading.Event()
    def slow(b, h, q, k):
        inside.set()
        seen.append(limit[1])
        other.join()
        return q - k < limit[b]
    other = threading.Thread(target=lambda: (inside.wait(), seen.append(limit[jnp.array([1, 0])].tolist())))
    other.start()
    attnc.mask(slow)
    assert seen[0] == 20 and seen[1] == [20, 3] and limit[0] == 3
    kind = type(limit)
    before = kind.__getitem__
    attnc.mask(near)
    with pytest.raises(TraceError):
        attnc.mask(lambda b, h, q, k: bool(q - k < limit[b]))
    assert kind.__getitem__ is before


@pytest.mark.parametrize("transform, given", [(jax.jit, limit), (jax.vmap, limit[None])])
def test_traced(transform, given):
    """The error says what works, and that works."""
    q, k, v = qkv()
    for mask in (lambda own: lambda b, h, q, k: (q >= k) & (q - k < own[b]),
                 lambda own: lambda b, h, q, k: (q >= k) & (q - k < own[0]),
                 lambda own: lambda b, h, q, k: (q >= k) & (own[0] > q - k),
                 lambda own: lambda b, h, q, k: (q >= k) & (q - k < own)):
        with pytest.raises(TraceError, match=r"(?s)that JAX traces.*attnc.where\('q - k < seen\[b\]'\) with arrays=\{'"
                                             r"seen': array\}.*own") as error:
            transform(lambda own: aj.attention(q, k, v, mask=mask(own)))(given)
        assert __file__ in str(error.value)
    seen = attnc.causal() & attnc.where("q - k < seen[b]")
    o = transform(lambda own: aj.attention(q, k, v, mask=seen, arrays={"seen": own}))(given)
    close(o.reshape(q.shape), dense(q, k, v, VISIBLE)[0])


@pytest.mark.parametrize("mask", [
    lambda b, h, q, k: jnp.where(q > k, True, False),
    lambda b, h, q, k: jnp.logical_and(q >= k, q - k < 3),
    lambda b, h, q, k: jnp.abs(q - k) < 3,
    lambda b, h, q, k: jnp.minimum(q, 3) < k,
    lambda b, h, q, k: jnp.tanh(q) < k,
    lambda b, h, q, k: jnp.take(limit, b) > q - k,
])
def test_functions_of_jax(mask):
    with pytest.raises(TraceError, match="(?s)functions of jax.numpy do not take symbols; write those of NumPy.*jnp"):
        attnc.mask(mask)


def test_whole_arrays():
    for mask in (lambda b, h, q, k: q - k < limit, lambda b, h, q, k: limit > q - k):
        with pytest.raises(TraceError, match="an array of JAX meets a symbol; read one entry of it"):
            attnc.mask(mask)
