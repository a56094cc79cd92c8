# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What attnc.jax shows of context parallelism on several GPUs, of one process or of as many processes, against one of
them.

    gpu_jax_plans.py --out FILE.jsonl [--commit HASH] [--processes N]

Prints one JSON line a check; exit status 1 if one fails. Needs $ATTN_LIBRARY, or a build.
"""
import os
import socket
import subprocess
import sys
import time

import gpu_report  # ahead of attnc: it finds the package
from gpu_report import report, run


def add_options(parser):
    parser.add_argument("--processes", type=int, default=1, help="a GPU each")
    parser.add_argument("--process", type=int, help="the number of this one, which the first starts")
    parser.add_argument("--coordinator", help="address of the first")


args = gpu_report.options(__doc__, add_options)
os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
others = []
if args.processes > 1 and args.process is None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        args.coordinator, args.process = f"127.0.0.1:{free.getsockname()[1]}", 0
    others = [subprocess.Popen([sys.executable, __file__, "--processes", str(args.processes), "--process", str(number),
                                "--coordinator", args.coordinator], stdout=subprocess.DEVNULL)
              for number in range(1, args.processes)]
import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P  # noqa: E402

if args.processes > 1:
    jax.distributed.initialize(args.coordinator, args.processes, args.process, local_device_ids=[args.process])
import attnc  # noqa: E402
import attnc.jax as aj  # noqa: E402

HEADS, KV_HEADS, DIM = 8, 2, 128
LENGTHS = (0, 1500, 7, 3000, 1, 2111)
MASKS = {"causal": attnc.causal(), "window": attnc.window(300, 60), "full": attnc.full()}


def make(*shape, seed=0):
    return np.asarray(jax.random.normal(jax.random.key(seed + sum(shape)), shape, jnp.bfloat16))


def error(a, b):
    a, b = (np.asarray(t, np.float64) for t in (a, b))
    return float(np.linalg.norm(a - b) / np.linalg.norm(b))


def functions(cp, mask, cu):
    """Of all ranks and of one GPU, for whole sequences and slopes."""
    def own(q, k, v, slopes, cu_seqlens=cu, cp=cp):
        return aj.attention(q, k, v, mask=mask, score=attnc.alibi("slopes"), arrays={"slopes": slopes}, layout="thd",
                            cu_seqlens_q=cu_seqlens, context_parallel=cp)
    mapped = jax.shard_map(own, mesh=cp.mesh, in_specs=(P("cp"),) * 3 + (P(),), out_specs=P("cp"))

    def ranks(q, k, v, slopes):
        return cp.unshard(mapped(*(cp.shard(t, cu_seqlens=cu) for t in (q, k, v)), slopes), cu_seqlens=cu)

    def one(q, k, v, slopes):
        return own(q, k, v, slopes, jnp.asarray(cu, jnp.int32), None)
    return ranks, one


def both_passes(function):
    def run(do, *inputs):
        o, pull = jax.vjp(function, *inputs)
        return o, *pull(do)
    return run


def values():
    mesh = Mesh(np.array(jax.devices()), ("cp",))
    cu = tuple(int(n) for n in np.cumsum([0, *LENGTHS]))
    q, k, v, do = (make(cu[-1], h, DIM, seed=i) for i, h in enumerate((HEADS, KV_HEADS, KV_HEADS, HEADS)))
    slopes = np.linspace(0.01, 0.3, HEADS, dtype=np.float32)
    for strategy in ("gather", "cast", "ring", "ulysses"):
        cp = aj.ContextParallel(mesh, "cp", strategy=strategy, timeout=60)
        for name, mask in MASKS.items():
            begun = time.monotonic()
            ranks, one = map(both_passes, functions(cp, mask, cu))
            found = jax.jit(ranks, out_shardings=NamedSharding(mesh, P()))(do, q, k, v, slopes)
            worst = max(error(a, b) for a, b in zip(found, jax.jit(one)(do, q, k, v, slopes)))
            report(f"{strategy}, {name}, jit, both passes", worst < 0.01, error=worst, gpus=len(jax.devices()),
                   s=round(time.monotonic() - begun, 2))


def repeats():
    """100 runs in a scan, and a training step: equal bits, and memory that does not grow."""
    mesh = Mesh(np.array(jax.devices()), ("cp",))
    cp = aj.ContextParallel(mesh, "cp", timeout=60)
    cu = (0, 4096)
    call, replicated = functions(cp, MASKS["causal"], cu)[0], NamedSharding(mesh, P())
    q, k, v = (make(cu[-1], h, DIM, seed=i) for i, h in enumerate((HEADS, KV_HEADS, KV_HEADS)))
    slopes = np.full(HEADS, 0.1, np.float32)

    def loss(*t):
        return jnp.square(call(*t).astype(jnp.float32)).sum()
    step = jax.jit(jax.value_and_grad(loss, (0, 1, 2, 3)), out_shardings=replicated)
    runs = [jax.tree.map(np.asarray, jax.tree.leaves(step(q, k, v, slopes))) for _ in range(100)]
    other = sum(not all(np.array_equal(a, b) for a, b in zip(one, runs[0])) for one in runs)
    report("100 training steps, equal bits", other == 0, runs_with_other_bits=other)
    layers = jax.jit(lambda q, *t: jax.lax.scan(lambda x, _: (call(x, *t), None), q, None, length=12)[0],
                     out_shardings=replicated)
    report("12 layers in a scan", bool(np.isfinite(np.asarray(layers(q, k, v, slopes), np.float32)).all()))


def processes_end():
    jax.distributed.shutdown()  # which the others wait for
    for number, other in enumerate(others, 1):
        status = other.wait(timeout=120)
        report(f"process {number}", status == 0, status=status)


checks = (values, repeats) + ((processes_end,) if others else ())
run(checks, gpu=jax.devices()[0].device_kind, gpus=len(jax.devices()), processes=args.processes, jax=jax.__version__)
