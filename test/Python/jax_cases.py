# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the tests of attnc.jax have in common: 4 CPU devices, inputs, a dense formula in float64."""
import functools
import os

import pytest

os.environ["XLA_FLAGS"] = os.environ.get("XLA_FLAGS", "") + " --xla_force_host_platform_device_count=4"
jax = pytest.importorskip("jax")
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402

import attnc  # noqa: E402
import attnc.jax as aj  # noqa: E402

B, S, H, G, D = 2, 37, 4, 2, 16
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


def lengths_of(total, count):
    cuts = np.sort(np.random.default_rng(total).integers(0, total + 1, count - 1))
    return np.diff([0, *cuts, total])


def rows_of_ids(*lead, tokens=S, count=4):
    made = [np.repeat(np.arange(1, count + 1), lengths_of(tokens - 3 - i % 4, count))
            for i in range(int(np.prod(lead, initial=1)))]
    padded = np.stack([np.pad(ids, (0, tokens - len(ids))) for ids in made])
    return jnp.asarray(padded.reshape(*lead, tokens), jnp.int32)


def positions_of(ids):
    flat = np.asarray(ids).reshape(-1, ids.shape[-1])
    starts = np.maximum.accumulate(np.where(np.diff(flat, axis=1, prepend=-1) != 0, np.arange(flat.shape[1]), 0), 1)
    return jnp.asarray((np.arange(flat.shape[1]) - starts).reshape(ids.shape), jnp.int32)
