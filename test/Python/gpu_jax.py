# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What attnc.jax shows on a GPU: values and gradients under jit, vmap and scan, lengths that change, many launches.

    gpu_jax.py --out FILE.jsonl [--commit HASH]

Prints one JSON line a check; exit status 1 if one fails. Needs $ATTN_LIBRARY, or a build.
"""
import os

from gpu_report import options, report, run  # ahead of attnc: it finds the package

options(__doc__)
os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
import attnc  # noqa: E402
import attnc.jax as aj  # noqa: E402


def make(*shape, seed=0):
    return jax.random.normal(jax.random.key(seed + sum(shape)), shape, jnp.bfloat16)


def dense(q, k, v, visible):
    """Attention in float32 by XLA, on the rounded inputs."""
    q, k, v = (t.astype(jnp.float32).swapaxes(1, 2) for t in (q, k, v))
    k, v = (jnp.repeat(t, q.shape[1] // t.shape[1], 1) for t in (k, v))
    s = jnp.where(visible, jnp.matmul(q, k.swapaxes(2, 3), precision="highest") / q.shape[-1]**0.5, -jnp.inf)
    return jnp.matmul(jax.nn.softmax(s), v, precision="highest").swapaxes(1, 2)


def error(a, b):
    a, b = np.asarray(a, np.float64), np.asarray(b, np.float64)
    return float(np.linalg.norm(a - b) / np.linalg.norm(b))


def values():
    for heads, dim, n in (((8, 2), 128, 1000), ((4, 4), 64, 333)):
        q, k, v = (make(2, n, h, dim, seed=i) for i, h in enumerate((heads[0], heads[1], heads[1])))
        visible = jnp.tri(n, dtype=bool) & ~jnp.tri(n, k=-64, dtype=bool) | jnp.tri(n, dtype=bool) & (jnp.arange(n) < 4)
        mask = attnc.causal() & (attnc.window(64) | attnc.sink(4))
        do = make(*q.shape, seed=9).astype(jnp.float32)
        ours, theirs = (jax.jit(jax.value_and_grad(lambda q, k, v, call=call: (call(q, k, v) * do).sum(), (0, 1, 2)))(
            q, k, v) for call in (lambda *t: aj.attention(*t, mask=mask), lambda *t: dense(*t, visible)))
        worst = [error(aj.attention(q, k, v, mask=mask), dense(q, k, v, visible))]
        worst += [error(a, b) for a, b in zip(ours[1], theirs[1])]
        report("causal, window and sinks, jit", max(worst) < 0.01, rel_err=[round(w, 5) for w in worst], heads=heads,
               dim=dim)


def mapped():
    q, k, v = (make(3, 2, 200, h, 64, seed=i) for i, h in enumerate((4, 2, 2)))
    def call(q, k, v):
        return aj.attention(q, k, v, mask=attnc.causal())
    loop = jnp.stack([call(*(t[i] for t in (q, k, v))) for i in range(3)])
    report("vmap", bool((jax.jit(jax.vmap(call))(q, k, v) == loop).all()))


def packed():
    """One program for all lengths, run many times, as in a captured command buffer."""
    q, k, v = (make(600, h, 64, seed=i) for i, h in enumerate((4, 2, 2)))
    call = jax.jit(lambda q, k, v, cu: aj.attention(q, k, v, mask=attnc.causal(), layout="thd", cu_seqlens_q=cu))
    call(q, k, v, jnp.array([0, 100, 600], jnp.int32)).block_until_ready()
    kernels, worst = attnc.compile_count(), 0.0
    for cut in (0, 1, 77, 300, 600):
        for _ in range(4):
            o = call(q, k, v, jnp.array([0, cut, 600], jnp.int32))
        first = jnp.arange(600) < cut
        visible = (first[:, None] == first) & jnp.tri(600, dtype=bool)
        worst = max(worst, error(o, dense(*(t[None] for t in (q, k, v)), visible)[0]))
    report("packed, other lengths", worst < 0.01 and attnc.compile_count() == kernels, rel_err=round(worst, 5))


def scanned():
    q, k, v = (make(1, 256, 4, 64, seed=i) for i in range(3))
    def step(x, _):
        return aj.attention(x, k, v, mask=attnc.causal()), None
    by_scan = jax.jit(lambda q: jax.lax.scan(step, q, None, length=5)[0])(q)
    x = q
    for _ in range(5):
        x = step(x, None)[0]
    report("scan", bool((by_scan == x).all()))


run((values, mapped, packed, scanned), gpu=jax.devices()[0].device_kind, jax=jax.__version__)
