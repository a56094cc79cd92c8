# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What attnc.jax shows of context parallelism on several GPUs of one process, against one of them.

    gpu_jax_plans.py --out FILE.jsonl [--commit HASH]

Prints one JSON line a check; exit status 1 if one fails. Needs $ATTN_LIBRARY, or a build.
"""
import os
import time

from gpu_report import options, report, run  # ahead of attnc: it finds the package

options(__doc__)
os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
from jax.sharding import Mesh, PartitionSpec as P  # noqa: E402
import attnc  # noqa: E402
import attnc.jax as aj  # noqa: E402

HEADS, KV_HEADS, DIM = 8, 2, 128
LENGTHS = (0, 1500, 7, 3000, 1, 2111)
MASKS = {"causal": attnc.causal(), "window": attnc.window(300, 60), "full": attnc.full()}


def make(*shape, seed=0):
    return jax.random.normal(jax.random.key(seed + sum(shape)), shape, jnp.bfloat16)


def error(a, b):
    a, b = (np.asarray(t, np.float64) for t in (a, b))
    return float(np.linalg.norm(a - b) / np.linalg.norm(b))


def functions(cp, mask, cu):
    def own(q, k, v):
        return aj.attention(q, k, v, mask=mask, layout="thd", cu_seqlens_q=cu, context_parallel=cp)
    mapped = jax.shard_map(own, mesh=cp.mesh, in_specs=(P("cp"),) * 3, out_specs=P("cp"))

    def ranks(q, k, v):
        return cp.unshard(mapped(*(cp.shard(t, cu_seqlens=cu) for t in (q, k, v))), cu_seqlens=cu)

    def one(q, k, v):
        return aj.attention(q, k, v, mask=mask, layout="thd", cu_seqlens_q=jnp.asarray(cu, jnp.int32))
    return ranks, one


def values():
    mesh = Mesh(np.array(jax.devices()), ("cp",))
    cu = tuple(int(n) for n in np.cumsum([0, *LENGTHS]))
    q, k, v, do = (make(cu[-1], h, DIM, seed=i) for i, h in enumerate((HEADS, KV_HEADS, KV_HEADS, HEADS)))
    for strategy in ("gather", "cast", "ring", "ulysses"):
        cp = aj.ContextParallel(mesh, "cp", strategy=strategy, timeout=60)
        for name, mask in MASKS.items():
            begun = time.monotonic()
            found, pull = jax.vjp(jax.jit(functions(cp, mask, cu)[0]), q, k, v)
            want, expected = jax.vjp(jax.jit(functions(cp, mask, cu)[1]), q, k, v)
            worst = max([error(found, want)] + [error(a, b) for a, b in zip(pull(do), expected(do))])
            report(f"{strategy}, {name}, jit, both passes", worst < 0.01, error=worst, gpus=len(jax.devices()),
                   s=round(time.monotonic() - begun, 2))


def repeats():
    """100 runs in a scan, and a training step: equal bits, and memory that does not grow."""
    mesh = Mesh(np.array(jax.devices()), ("cp",))
    cp = aj.ContextParallel(mesh, "cp", timeout=60)
    cu = (0, 4096)
    call = functions(cp, MASKS["causal"], cu)[0]
    q, k, v = (make(cu[-1], h, DIM, seed=i) for i, h in enumerate((HEADS, KV_HEADS, KV_HEADS)))
    step = jax.jit(jax.value_and_grad(lambda q, k, v: jnp.square(call(q, k, v).astype(jnp.float32)).sum(), (0, 1, 2)))
    first = jax.tree.leaves(step(q, k, v))
    other = sum(not all(bool((a == b).all()) for a, b in zip(jax.tree.leaves(step(q, k, v)), first))
                for _ in range(100))
    report("100 training steps, equal bits", other == 0, runs_with_other_bits=other)
    layers = jax.jit(lambda q, k, v: jax.lax.scan(lambda x, _: (call(x, k, v), None), q, None, length=12)[0])
    report("12 layers in a scan", bool(jnp.isfinite(layers(q, k, v).astype(jnp.float32)).all()))


run((values, repeats), gpu=jax.devices()[0].device_kind, gpus=len(jax.devices()), jax=jax.__version__)
