# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""One kv head and several query heads, sharded, in attnc.jax: on 4 CPU devices, against float64."""
import re

import pytest
from jax_cases import attention, close, dense, jax, jnp, make, np, rows_of_ids, wide, D, S
import attnc.jax as aj
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P

COLLECTIVE = re.compile(r"all-gather|all-reduce|all-to-all|collective-permute|reduce-scatter")
MESH = Mesh(np.array(jax.devices()).reshape(2, 2), ("x", "y"))


def placed(tensor, *spec):
    return jax.device_put(tensor, NamedSharding(MESH, P(*spec)))


@pytest.mark.parametrize("heads, kv_heads, batch, by_head", [
    (4, 1, "x", None), (4, 1, None, None), (4, 1, "x", "y"), (4, 1, None, "y"), (4, 1, ("x", "y"), None),
    (1, 1, "x", None), (2, 2, "x", "y")])
def test_heads(heads, kv_heads, batch, by_head):
    """Both passes, with a sink for each head; no collective where only the batch is split."""
    q, k, v = (make(4, S, n, D, seed=i) for i, n in enumerate((heads, kv_heads, kv_heads)))
    sink, do = make(heads, seed=6, dtype=jnp.float32), make(4, S, heads, D, seed=9)

    @jax.jit
    def both(q, k, v, sink, do):
        o, pull = jax.vjp(lambda *t: attention(*t[:3], sink=t[3]), q, k, v, sink)
        return o, *pull(do)

    of_k = by_head if kv_heads > 1 else None
    inputs = (placed(q, batch, None, by_head), placed(k, batch, None, of_k), placed(v, batch, None, of_k), placed(sink),
              placed(do, batch, None, by_head))
    o, *gradients = both(*inputs)
    close(o, dense(q, k, v, sink=sink)[0])
    expected = dense(q, k, v, sink=sink, do=do)
    for found, wanted in zip(gradients, [*expected[:3], expected[4]]):
        close(found, wanted)
    without_sink = jax.jit(lambda q, k, v, do: jax.vjp(attention, q, k, v)[1](do))
    if not by_head:
        text = without_sink.lower(*inputs[:3], inputs[4]).compile().as_text()
        assert not COLLECTIVE.search(text)


@pytest.mark.parametrize("by_head", [None, "y"])
def test_packed(by_head):
    q, k, v = (make(S, n, D, seed=i) for i, n in enumerate((4, 1, 1)))
    cu = jnp.array([0, 20, 20, S - 3], jnp.int32)
    document = np.array([0] * 20 + [1] * (S - 23) + [-1] * 3)
    visible = np.tril((document[:, None] == document) & (document >= 0))
    call = jax.jit(lambda *t: attention(*t, layout="thd", cu_seqlens_q=cu))
    do = make(S, 4, D, seed=9)
    o, pull = jax.vjp(call, placed(q, None, by_head), placed(k), placed(v))
    close(o[None], dense(q[None], k[None], v[None], visible)[0])
    for found, wanted in zip(pull(do), dense(q[None], k[None], v[None], visible, do=do[None])):
        close(found[None], wanted)


def test_segments():
    q, k, v = (make(4, S, n, D, seed=i) for i, n in enumerate((4, 1, 1)))
    ids = rows_of_ids(4)
    shown = np.asarray(ids)
    visible = np.tril((shown[:, :, None] == shown[:, None]) & (shown > 0)[:, None])[:, None]
    call = jax.jit(lambda *t: attention(*t[:3], segment_ids=aj.SegmentIds(t[3], max_segments=4)))
    split = [placed(t, "x") for t in (q, k, v, ids)]
    o = call(*split)
    close(o, dense(q, k, v, visible)[0])
    assert not COLLECTIVE.search(call.lower(*split).compile().as_text())
    assert np.isfinite(wide(o)).all()
