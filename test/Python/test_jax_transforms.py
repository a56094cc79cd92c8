# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""attnc.jax under vmap, scan, checkpoint, threads and jax.export; derivatives that it does not have."""
import functools
import itertools
import os
import subprocess
import sys
import threading

import pytest
from jax_cases import attention, close, jax, jnp, make, np, qkv, same, total, wide, B, D, H, S
import attnc
import attnc.jax as aj
from attnc import UnsupportedError

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
