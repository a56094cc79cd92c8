# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Shards of batch and heads in attnc.jax, on 4 CPU devices."""
import os
import re
import subprocess
import sys

import pytest
from jax_cases import attention, close, jax, jnp, make, np, positions_of, qkv, rows_of_ids, same, total, wide, H
import attnc
import attnc.jax as aj
from attnc import UnsupportedError
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P


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
    sink, ids = make(H, dtype=jnp.float32), jnp.tile(rows_of_ids(1), (4, 1))
    positions = positions_of(ids)[0]  # of all rows
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
