# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""attnc.jax.attention of devices that share the tokens of sequences, against one device (float32, on CPU devices)."""
import itertools
import socket
import subprocess
import sys
import threading

import pytest
from jax.sharding import Mesh, PartitionSpec as P
from jax_cases import aj, attnc, jax, jnp, make, np
from attnc import ProblemError, TensorError, UnsupportedError
from attnc._tensors import Pack, Shape

H, G, D = 4, 2, 16
CAUSAL = attnc.causal()
WINDOW = attnc.window(6, 2)
LENGTHS = (0, 13, 1, 0, 22, 7)


def sums(lengths):
    return tuple(itertools.accumulate(lengths, initial=0))


def mesh_of(**axes):
    devices = np.array(jax.devices()[:int(np.prod(list(axes.values())))])
    return Mesh(devices.reshape(*axes.values()), tuple(axes))


def tensors(rows_q, rows_kv=None, heads=(H, G)):
    """q, k, v and do of all tokens."""
    rows_kv = rows_q if rows_kv is None else rows_kv
    return [make(*rows, n, D, seed=i, dtype=jnp.float32) for i, (rows, n) in enumerate(
        ((rows_q, heads[0]), (rows_kv, heads[1]), (rows_kv, heads[1]), (rows_q, heads[0])))]


def close(found, expected, tolerance=2e-5):
    assert found.shape == expected.shape and found.dtype == expected.dtype
    found, expected = (np.nan_to_num(np.asarray(t, np.float64), neginf=-99) for t in (found, expected))
    assert np.abs(found - expected).max(initial=0) <= tolerance * max(1, np.abs(expected).max(initial=0))


def of_ranks(cp, sides, dense=False, **options):
    """attention() as a function of whole tensors: o and lse."""
    spec = P(None, cp.axis) if dense else P(cp.axis)

    def own(q, k, v, *more):
        return aj.attention(q, k, v, context_parallel=cp, return_lse=True, **options)
    lse_spec = P(None, None, cp.axis) if dense else P(None, cp.axis)
    mapped = jax.shard_map(own, mesh=cp.mesh, in_specs=(spec,) * 3, out_specs=(spec, lse_spec))

    def call(q, k, v):
        parts = [cp.shard(t, keys=keys, **sides[keys]) for t, keys in zip((q, k, v), (False, True, True))]
        o, lse = mapped(*parts)
        seqlen = dict(seqlen=q.shape[1]) if dense else {}
        rows = cp.unshard(jnp.moveaxis(lse, 1, -1) if dense else lse.T, **seqlen, **sides[0])
        return cp.unshard(o, **seqlen, **sides[0]), jnp.moveaxis(rows, -1, 1) if dense else rows.T
    return call


def same(cp, whole, *, lengths_q=None, lengths_kv=None, dlse=True, **options):
    """Results and gradients of the ranks' rows, and those of one device."""
    *inputs, do = whole
    if lengths_q is None:
        sides = ({}, {})
        ours = of_ranks(cp, sides, dense=True, seqlens=(inputs[0].shape[1], inputs[1].shape[1]), **options)
        alone = options
    else:
        sides = tuple(dict(cu_seqlens=sums(lengths)) for lengths in (lengths_q, lengths_kv or lengths_q))
        packed = dict(layout="thd", cu_seqlens_q=sides[0]["cu_seqlens"], cu_seqlens_kv=sides[1]["cu_seqlens"])
        ours = of_ranks(cp, sides, **packed, **options)
        alone = dict(options, layout="thd", **{n: jnp.asarray(packed[n], jnp.int32) for n in list(packed)[1:]})
    one = lambda *t: aj.attention(*t, return_lse=True, **alone)
    (o, lse), pull = jax.vjp(jax.jit(ours), *inputs)
    (want, want_lse), expected = jax.vjp(one, *inputs)
    close(o, want)
    close(lse, want_lse)
    of_lse = jnp.where(jnp.isfinite(want_lse), make(*lse.shape, seed=7, dtype=jnp.float32), 0) * dlse
    for a, b in zip(pull((do, of_lse)), expected((do, of_lse))):
        close(a, b)


@pytest.mark.parametrize("strategy, mask", [
    ("gather", CAUSAL), ("cast", CAUSAL), ("cast", WINDOW), ("ring", WINDOW), ("ring", attnc.full()),
    ("ulysses", CAUSAL), ("auto", attnc.full())])
def test_packed(strategy, mask):
    cp = aj.ContextParallel(mesh_of(cp=2), "cp", strategy=strategy, timeout=20)
    same(cp, tensors([sum(LENGTHS)]), lengths_q=LENGTHS, mask=mask)


@pytest.mark.parametrize("sharding", ["contiguous", "dual_chunk", ("striped", 3), "documents"])
def test_four_ranks(sharding):
    """Ranks with other numbers of rows; other lengths of keys; rows that see nothing."""
    cp = aj.ContextParallel(mesh_of(cp=4), "cp", sharding=sharding, strategy="ring", timeout=20)
    lengths = (6, 9, 3, 0), (13, 4, 0, 2)
    same(cp, tensors([18], [19]), lengths_q=lengths[0], lengths_kv=lengths[1], mask=attnc.causal("end"))


@pytest.mark.parametrize("seqlen", [16, 24])
def test_dense(seqlen):
    cp = aj.ContextParallel(mesh_of(cp=4), "cp", timeout=20)
    same(cp, tensors([2, seqlen]), mask=CAUSAL)
    same(cp, tensors([1, seqlen + 3]), mask=WINDOW, dlse=False)
    positions = cp.positions(seqlen=seqlen, batch=2)
    whole = jnp.tile(jnp.arange(seqlen)[None, :, None], (2, 1, 1))
    assert np.array_equal(cp.shard(whole)[..., 0], positions)


def test_other_axes():
    """Groups of devices that share sequences of their own, and heads that are split."""
    mesh = mesh_of(dp=2, cp=2)
    cp = aj.ContextParallel(mesh, "cp", timeout=20)
    q, k, v, do = tensors([4, 12])
    spec = P("dp", "cp")

    def own(*t):
        return jax.shard_map(lambda *t: aj.attention(*t, mask=CAUSAL, context_parallel=cp), mesh=mesh,
                             in_specs=(spec,) * 3, out_specs=spec)(*t)
    found, pull = jax.vjp(jax.jit(lambda *t: cp.unshard(own(*map(cp.shard, t)))), q, k, v)
    want, expected = jax.vjp(lambda *t: aj.attention(*t, mask=CAUSAL), q, k, v)
    close(found, want)
    for a, b in zip(pull(do), expected(do)):
        close(a, b)
    spec = P(None, "cp", "dp")
    found = jax.jit(jax.shard_map(lambda *t: aj.attention(*t, mask=CAUSAL, context_parallel=cp), mesh=mesh,
                                  in_specs=(spec,) * 3, out_specs=spec))(*map(cp.shard, (q, k, v)))
    close(cp.unshard(found), want)


def test_sinks_dropout_and_modifiers():
    cp = aj.ContextParallel(mesh_of(cp=2), "cp", timeout=20)
    q, k, v, do = tensors([sum(LENGTHS)])
    learned = [make(H, seed=3, dtype=jnp.float32), abs(make(H, seed=4, dtype=jnp.float32)),
               make(H, 11, seed=5, dtype=jnp.float32)]
    seed = jnp.array([1, 2, 3, 4], jnp.int32)
    score = [attnc.softcap(5.0), attnc.alibi("slopes"), attnc.relative_bias("table", 5)]
    options = dict(mask=CAUSAL, score=score, dropout=0.25, layout="thd")
    side = dict(cu_seqlens=sums(LENGTHS))

    def own(q, k, v, sinks, slopes, table, seed, cu_seqlens=side["cu_seqlens"], cp=cp):
        return aj.attention(q, k, v, sink=sinks, seed=seed, cu_seqlens_q=cu_seqlens, context_parallel=cp,
                            arrays={"slopes": slopes, "table": table}, **options)
    mapped = jax.shard_map(own, mesh=cp.mesh, in_specs=(P("cp"),) * 3 + (P(),) * 4, out_specs=P("cp"))
    ours = lambda *t: cp.unshard(mapped(*(cp.shard(x, **side) for x in t[:3]), *t[3:], seed), **side)
    one = lambda *t: own(*t, seed, jnp.asarray(side["cu_seqlens"], jnp.int32), None)
    (found, pull), (want, expected) = (jax.vjp(f, q, k, v, *learned) for f in (jax.jit(ours), one))
    close(found, want)
    for a, b in zip(pull(do), expected(do)):
        close(a, b)


def test_padding():
    """Slots of sequences. Padding has NaN, and results have zeros there."""
    lengths, slots = (9, 0, 4), (16, 8, 8)
    cp = aj.ContextParallel(mesh_of(cp=2), "cp", sharding="dual_chunk padded", timeout=20)
    side = dict(cu_seqlens=sums(lengths), padded_offsets=sums(slots))
    q, k, v, do = tensors([sum(slots)])
    is_token = np.concatenate([np.arange(slot) < n for n, slot in zip(lengths, slots)])
    q, k, v = (jnp.where(is_token[:, None, None], t, jnp.nan) for t in (q, k, v))
    own = jax.shard_map(lambda *t: aj.attention(*t, mask=CAUSAL, layout="thd padded", context_parallel=cp,
                                                cu_seqlens_q=side["cu_seqlens"],
                                                padded_offsets_q=side["padded_offsets"]),
                        mesh=cp.mesh, in_specs=(P("cp"),) * 3, out_specs=P("cp"))
    found = jax.jit(own)(*(cp.shard(t, **side) for t in (q, k, v)))
    assert np.all(np.asarray(found)[cp.positions(**side) < 0] == 0)
    want = aj.attention(q, k, v, mask=CAUSAL, layout="thd padded", **{
        f"{n}_q": jnp.asarray(side[f], jnp.int32) for n, f in (("cu_seqlens", "cu_seqlens"),
                                                               ("padded_offsets", "padded_offsets"))})
    close(cp.unshard(found, **side), want)


def test_calls_of_a_program():
    """Calls that do not depend on each other, a scan over layers, and equal bits each time."""
    cp = aj.ContextParallel(mesh_of(cp=4), "cp", strategy="ring", timeout=20)
    q, k, v, _ = tensors([1, 32], heads=(H, H))
    call = jax.jit(lambda *t: aj.attention(*t, mask=CAUSAL, context_parallel=cp))

    def own(q, k, v):
        layers, _ = jax.lax.scan(lambda x, _: (call(x, k, v), None), q, None, length=3)
        return layers, call(q, k, v), call(k, q, v), call(v, k, q)
    spec = P(None, "cp")
    mapped = jax.jit(jax.shard_map(own, mesh=cp.mesh, in_specs=(spec,) * 3, out_specs=(spec,) * 4))
    parts = [cp.shard(t) for t in (q, k, v)]
    first = mapped(*parts)
    one = lambda *t: aj.attention(*t, mask=CAUSAL)
    close(cp.unshard(first[0]), one(one(one(q, k, v), k, v), k, v))
    for found, t in zip(first[1:], ((q, k, v), (k, q, v), (v, k, q))):
        close(cp.unshard(found), one(*t))
    for _ in range(10):
        assert all(np.array_equal(a, b) for a, b in zip(mapped(*parts), first))


def test_errors():
    mesh = mesh_of(cp=2)
    cp = aj.ContextParallel(mesh, "cp", timeout=20)
    q, k, v, _ = tensors([12])

    def call(function=None, **options):
        options = dict(mask=CAUSAL, layout="thd", cu_seqlens_q=(0, 12), context_parallel=cp) | options
        own = function or (lambda *t: aj.attention(*t, **options))
        return jax.jit(jax.shard_map(own, mesh=mesh, in_specs=(P("cp"),) * 3, out_specs=P("cp")))(q, k, v)
    cases = [(ProblemError, "one of its axes", lambda: aj.ContextParallel(mesh, "tp")),
             (ProblemError, "expected a strategy of", lambda: aj.ContextParallel(mesh, "cp", strategy="tree")),
             (ProblemError, "head_group that divides 2", lambda: aj.ContextParallel(mesh, "cp", head_group=3)),
             (TensorError, "'q' to have 7 rows", lambda: call(cu_seqlens_q=(0, 13))),
             (TensorError, "expected cu_seqlens_q", lambda: call(cu_seqlens_q=None)),
             (TensorError, "to begin with 0", lambda: call(cu_seqlens_q=(1, 12))),
             (TensorError, "known while tracing", lambda: call(lambda q, k, v: aj.attention(
                 q, k, v, mask=CAUSAL, layout="thd", cu_seqlens_q=jnp.arange(2) + q.shape[0], context_parallel=cp))),
             (TensorError, "a call outside of it", lambda: aj.attention(
                 q, k, v, mask=CAUSAL, layout="thd", cu_seqlens_q=(0, 12), context_parallel=cp)),
             (TensorError, "attnc.jax.ContextParallel as", lambda: call(context_parallel=mesh)),
             (TensorError, "seqlens alone", lambda: call(context_parallel=None, seqlens=12)),
             (UnsupportedError, "by cu_seqlens", lambda: call(segment_ids=aj.SegmentIds(jnp.ones(6, jnp.int32)))),
             (UnsupportedError, "layouts 'bshd', 'thd'", lambda: call(lambda *t: aj.attention(
                 *(x[None] for x in t), mask=CAUSAL, layout="bhsd", context_parallel=cp)[0])),
             (UnsupportedError, "without trees", lambda: call(
                 mask=attnc.ancestors("parent"), arrays=dict(parent=jnp.arange(12, dtype=jnp.int32) - 1))),
             (TensorError, "expected 12 rows of all", lambda: cp.shard(q[:11], cu_seqlens=(0, 12))),
             (TensorError, "rows of all ranks", lambda: cp.unshard(q[:11], cu_seqlens=(0, 12)))]
    for kind, text, bad in cases:
        with pytest.raises(kind, match=text):
            bad()
    inputs = [cp.unshard(t, cu_seqlens=(0, 12)) for t in (q, k, v)]
    want = aj.attention(*inputs, mask=CAUSAL, layout="thd", cu_seqlens_q=jnp.array([0, 12], jnp.int32))
    close(call(), cp.shard(want, cu_seqlens=(0, 12)))  # after all of these
    with pytest.raises(UnsupportedError, match="no second derivatives"):
        jax.grad(lambda q: jax.grad(lambda q: call(lambda *t: aj.attention(
            q, *t[1:], mask=CAUSAL, layout="thd", cu_seqlens_q=(0, 12), context_parallel=cp)).sum())(q[:6]).sum())(q)


def test_other_meshes_and_tensors():
    """What does not belong to the ContextParallel is refused; a permuted mesh is as good as any."""
    devices = np.array(jax.devices())
    cp = aj.ContextParallel(mesh_of(cp=4), "cp", timeout=20)
    q, k, v, _ = tensors([2, 16])
    spec = P(None, "cp")

    def call(cp, *t, mesh=None, mask=CAUSAL, check_vma=True, **options):
        own = lambda *t: aj.attention(*t, mask=mask, context_parallel=cp, **options)
        return jax.jit(jax.shard_map(own, mesh=mesh or cp.mesh, in_specs=(spec,) * 3, out_specs=spec,
                                     check_vma=check_vma))(*map(cp.shard, t))
    want = aj.attention(q, k, v, mask=CAUSAL)
    with pytest.raises(Exception, match="mesh of the ContextParallel, got: a mesh in which the device of rank"):
        jax.block_until_ready(call(cp, q, k, v, mesh=Mesh(devices[::-1], ("cp",))))
    close(cp.unshard(call(cp, q, k, v)), want)
    for reordered in (devices[::-1], devices[[0, 1, 3, 2]]):  # of some ranks only
        with pytest.raises(Exception, match="mesh of the ContextParallel, got: a mesh in which the device of rank"):
            jax.block_until_ready(call(cp, q, k, v, mesh=Mesh(reordered, ("cp",))))
    close(cp.unshard(call(cp, q, k, v)), want)
    with pytest.raises(TensorError, match="with 4 devices along 'cp', got: 2"):
        call(cp, q, k, v, mesh=Mesh(devices[:2], ("cp",)))
    permuted = aj.ContextParallel(Mesh(devices[::-1], ("cp",)), "cp", timeout=20)
    close(permuted.unshard(call(permuted, q, k, v)), want)
    fresh = aj.ContextParallel(mesh_of(cp=4), "cp", timeout=20)
    close(fresh.unshard(call(fresh, q, k, v, check_vma=False)), want)
    for text, bad in (("'k' of batch 2", (q, k[:1], v[:1])), ("'k' to be float32", (q, k.astype(jnp.bfloat16), v)),
                      ("'k' of head dim 16", (q, k[..., :8], v)), ("'v' of shape", (q, k, v[:, :, :1]))):
        with pytest.raises(TensorError, match=text):
            call(fresh, *bad)
    with pytest.raises(UnsupportedError, match="no vmap of attention with context parallelism"):
        jax.vmap(lambda x: call(fresh, x, k, v))(q[None])
    with pytest.raises(UnsupportedError, match="of problems that packed sequences have, too"):
        call(fresh, q, k, v, score=attnc.bias("b", "hqk"), arrays=dict(b=jnp.zeros((H, 16, 16))))
    ids = jnp.tile(jnp.array([1] * 9 + [2] * 7, jnp.int32), (2, 1))
    documents = dict(mask=CAUSAL & attnc.document("ids"), arrays={"ids": ids})
    close(fresh.unshard(call(fresh, q, k, v, **documents)), aj.attention(q, k, v, **documents))
    with pytest.raises(TensorError, match=r"of shape \[2, 16\], of the whole sequences"):
        call(fresh, q, k, v, **documents | dict(arrays={"ids": ids[:, :4]}))
    blocks = dict(mask=attnc.block_map("offsets", "columns", q=4, kv=3), arrays=dict(
        offsets=jnp.array([0, 2, 3, 6, 7], jnp.int32), columns=jnp.array([0, 2, 1, 3, 0, 5, 4], jnp.int32)))
    close(fresh.unshard(call(fresh, q, k, v, **blocks)), aj.attention(q, k, v, **blocks))


def test_other_shards():
    mesh = mesh_of(cp=4)
    cases = [[(4, [(0, 0, 4 * r, 4)]) for r in ranks] for ranks in ((0, 1, 2, 3), (3, 2, 1, 0))]
    cp = aj.ContextParallel(mesh, "cp", sharding="runs", shards=cases[0], timeout=20)
    q, k, v, _ = tensors([16])
    side = dict(cu_seqlens=(0, 16))
    for shards in cases:
        cp.shards = shards
        found = jax.shard_map(lambda *t: aj.attention(*t, mask=CAUSAL, layout="thd", cu_seqlens_q=(0, 16),
                                                      context_parallel=cp), mesh=mesh, in_specs=(P("cp"),) * 3,
                              out_specs=P("cp"))(*(cp.shard(t, **side) for t in (q, k, v)))
        close(cp.unshard(found, **side), aj.attention(q, k, v, mask=CAUSAL, layout="thd",
                                                      cu_seqlens_q=jnp.array([0, 16], jnp.int32)))
    cp = aj.ContextParallel(mesh, "cp")
    assert cp.shard(q[:0], cu_seqlens=(0,)).shape == (0, H, D) and cp.shard(q[:0][None]).shape == (1, 0, H, D)
    with pytest.raises(TensorError, match="cu_seqlens that are known while tracing"):
        jax.jit(lambda n: cp.shard(q, cu_seqlens=n))(jnp.array([0, 16]))


def test_ranks_that_are_threads():
    """The transport below: a rank that does not come is an error that names it, and stays one."""
    from attnc import _plans
    text = ("attn.problem @p mask(#attn.causal) layout(thd) heads(2) dims(16) dtype(bf16) "
            "plan.def @x of(@p) ranks(2) sharding(#plan.dual_chunk) {}")
    plan, sequences = _plans.Plan(text, "x", "strategy=ring", "cpu"), _plans.Sequences((16,))
    first, second = _plans.Transport.local(2, 0.3)
    with pytest.raises(attnc.Error, match="expected rank 1 to bind the same plan within 0.3 s, got: nothing"):
        plan.bind(sequences, first)
    for transport in (first, second):
        with pytest.raises(attnc.Error, match="expected rank 1 to bind the same plan"):
            transport.check()
        transport.destroy()
    for ranks, timeout in ((0, 1.0), (2, -1.0)):
        with pytest.raises(attnc.Error):
            _plans.Transport.local(ranks, timeout)
    # A rank that binds, and does not run.
    transports, bound, errors = _plans.Transport.local(2, 1.0), [None, None], []
    def bind(rank):
        bound[rank] = plan.bind(sequences, transports[rank])
    threads = [threading.Thread(target=bind, args=(rank,)) for rank in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    arrays = {name: np.zeros((8, 2, 16), np.uint16) for name in "qkvo"} | {"lse": np.zeros((2, 8), np.float32)}
    pack = Pack(len(plan.names))
    for i, name in enumerate(plan.names):
        pack.put(i, Shape(arrays[name].shape, "f32" if name == "lse" else "bf16"), arrays[name].ctypes.data)
    workspace = np.zeros(_plans.workspace_size(bound[0], pack.array) + 256, np.uint8)
    address = -(-workspace.ctypes.data // 256) * 256
    with pytest.raises(attnc.Error, match="expected exchange 0 .kv. of `@x` from rank 1 on rank 0 within 1 s"):
        _plans.run(bound[0], pack.array, address, None)
    for handle in bound:
        _plans.destroy_bound(handle)


PROCESS = """
import sys
import jax
jax.config.update("jax_platforms", "cpu")
jax.distributed.initialize(sys.argv[1], 2, int(sys.argv[2]))
import numpy as np
import attnc.jax
from jax.sharding import Mesh
try:
    attnc.jax.ContextParallel(Mesh(np.array(jax.devices()), ("cp",)), "cp")
except attnc.UnsupportedError as error:
    print(error)
print(attnc.jax.ContextParallel(Mesh(np.array(jax.local_devices()), ("cp",)), "cp"))
"""


def test_processes_of_cpus():
    """CPUs of two processes are refused in both, and those of each process are not."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    processes = [subprocess.Popen([sys.executable, "-c", PROCESS, address, str(number)], stdout=subprocess.PIPE,
                                  text=True) for number in range(2)]
    for number, process in enumerate(processes):
        said, _ = process.communicate(timeout=120)
        assert "context parallelism of CPUs of one process in JAX, got: " in said, (number, said)
        assert f"of process {1 - number}" in said and "<attnc.jax.ContextParallel: " in said, (number, said)
