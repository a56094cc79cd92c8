# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""attnc.torch on the CPU: values against float64, gradients, torch.compile, vmap, autocast, checkpoint, errors."""
import copy
import gc
import os
import pickle
import subprocess
import sys
import threading

import pytest

torch = pytest.importorskip("torch")
import attnc  # noqa: E402
import attnc.torch as at  # noqa: E402
from attnc import ProblemError, TensorError, UnsupportedError  # noqa: E402

B, S, H, G, D = 2, 37, 4, 2, 16
LAYOUTS = {"bshd": (0, 1, 2, 3), "sbhd": (1, 0, 2, 3), "bhsd": (0, 2, 1, 3)}


def make(*shape, seed=0, dtype=torch.bfloat16):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed + sum(shape))).to(dtype)


def qkv(batch=B, seqlen=S, requires_grad=False, dtype=torch.bfloat16):
    return [make(batch, seqlen, heads, D, seed=i, dtype=dtype).requires_grad_(requires_grad)
            for i, heads in enumerate((H, G, G))]


def dense(q, k, v, visible, bias=0, sink=None, scale=D**-0.5):
    """Attention of [batch, seqlen, heads, dim] in the dtype of q, and the logarithms of the sums."""
    q, k, v = (t.transpose(1, 2) for t in (q, k, v))
    k, v = (t.repeat_interleave(q.shape[1] // t.shape[1], 1) for t in (k, v))
    s = (q @ k.mT * scale + bias).masked_fill(~visible, -float("inf"))
    columns = s if sink is None else torch.cat([s, sink.view(1, -1, 1, 1).expand(*s.shape[:3], 1)], -1)
    lse = columns.logsumexp(-1)
    p = (s - lse[..., None]).exp().masked_fill(~visible, 0)
    return (p @ v).transpose(1, 2), lse


CAUSAL = torch.ones(S, S, dtype=torch.bool).tril()


def check_gradients(call, reference, inputs, tolerance=0.03):
    """The output and gradients of a call against those of a float64 formula on the same (rounded) inputs."""
    own = [t.detach().clone().requires_grad_() for t in inputs]
    wide = [t.detach().double().requires_grad_() for t in inputs]
    o, expected = call(*own), reference(*wide)
    do = make(*o.shape, seed=99, dtype=o.dtype)
    o.backward(do)
    expected.backward(do.double())
    assert (o - expected).abs().max() < tolerance
    for a, b in zip(own, wide):
        assert (a.grad - b.grad).abs().max() < tolerance * max(1, float(b.grad.abs().max()))


@pytest.mark.parametrize("layout", LAYOUTS)
def test_layouts(layout):
    order = LAYOUTS[layout]
    inverse = [order.index(i) for i in range(4)]
    check_gradients(
        lambda q, k, v: at.attention(*(t.permute(order).contiguous() for t in (q, k, v)), mask=attnc.causal(),
                                     layout=layout).permute(inverse),
        lambda q, k, v: dense(q, k, v, CAUSAL)[0], qkv())


@pytest.mark.parametrize("heads, axis", [("kv", G), ("query", H), (None, None)])
def test_block_lists(heads, axis):
    """Lists in any order, with a block twice, none and one beyond the sequence; blocks of whole tiles and others."""
    for seqlen, rows, keys in ((S, 8, 5), (200, 64, 64)):
        lists = torch.randint(-1, seqlen // keys + 3, (B, *([axis] if axis else []), -(-seqlen // rows), 3),
                              generator=torch.Generator().manual_seed(seqlen), dtype=torch.int32)
        lists[..., 0] = torch.arange(lists.shape[-2]) * rows // keys  # each row sees a key
        lists[..., -1, 2] = lists[..., -1, 0]
        own = lists if axis else lists[:, None]
        own = own.repeat_interleave(H // own.shape[1], 1).repeat_interleave(rows, 2)[:, :, :seqlen]
        listed = (own[..., None, :] == (torch.arange(seqlen) // keys)[:, None]).any(-1)
        causal = torch.ones(seqlen, seqlen, dtype=torch.bool).tril()
        mask = attnc.causal() & attnc.block_list(lists, rows, keys, heads)
        check_gradients(lambda q, k, v: at.attention(q, k, v, mask=mask),
                        lambda q, k, v: dense(q, k, v, causal & listed)[0], qkv(seqlen=seqlen))


def test_block_that_all_rows_list():
    """More tiles of rows than parts in which lists are transposed; nobody lists block 2."""
    seqlen, size = 2500, 64
    tiles = torch.arange(-(-seqlen // size), dtype=torch.int32)
    lists = torch.stack([tiles, torch.zeros_like(tiles), tiles // 2, tiles // 2], 1)
    lists[lists == 2] = -1
    listed = (lists.repeat_interleave(size, 0)[:seqlen, None, :] == (torch.arange(seqlen) // size)[:, None]).any(-1)
    causal = torch.ones(seqlen, seqlen, dtype=torch.bool).tril()
    mask = attnc.causal() & attnc.block_list(lists[None].clone(), heads=None)
    check_gradients(lambda q, k, v: at.attention(q, k, v, mask=mask),
                    lambda q, k, v: dense(q, k, v, causal & listed)[0], qkv(batch=1, seqlen=seqlen))


def test_lse_and_its_gradient():
    def both(o, lse):
        return torch.cat([o.flatten(), lse.flatten().to(o.dtype)])
    check_gradients(lambda q, k, v: both(*at.attention(q, k, v, mask=attnc.causal(), return_lse=True)),
                    lambda q, k, v: both(*dense(q, k, v, CAUSAL)), qkv())


def test_packed():
    lengths = [0, 5, 17, 1, 14]
    cu = torch.tensor([0, 5, 22, 23, 37])
    cu = torch.cat([torch.zeros(1, dtype=torch.int64), torch.tensor(lengths).cumsum(0)])
    document = torch.repeat_interleave(torch.arange(5), torch.tensor(lengths))
    visible = (document[:, None] == document) & CAUSAL
    q, k, v = (t[0] for t in qkv(1))
    check_gradients(lambda q, k, v: at.attention(q, k, v, mask=attnc.causal(), layout="thd", cu_seqlens_q=cu),
                    lambda q, k, v: dense(q[None], k[None], v[None], visible)[0][0], [q, k, v])
    ids = (document + 1).expand(1, S)
    by_ids = at.attention(q[None], k[None], v[None], mask=attnc.document("ids") & attnc.causal(), arrays={"ids": ids})
    assert (by_ids[0] - dense(*(t[None].double() for t in (q, k, v)), visible)[0][0]).abs().max() < 0.03


def test_bound_arrays():
    ids = torch.randint(1, 4, (B, S), dtype=torch.int32)
    visible = (ids[:, :, None] == ids[:, None])[:, None]
    check_gradients(lambda q, k, v: at.attention(q, k, v, mask=attnc.document(ids=ids)),
                    lambda q, k, v: dense(q, k, v, visible)[0], qkv())


def test_scores_and_sinks():
    bias, sink = make(H, S, S, seed=5, dtype=torch.float32), make(H, seed=6, dtype=torch.float32)
    check_gradients(
        lambda q, k, v, bias, sink: at.attention(q, k, v, mask=attnc.causal(), score=attnc.bias("pairs", "hqk"),
                                                 sink=sink, arrays={"pairs": bias}),
        lambda q, k, v, bias, sink: dense(q, k, v, CAUSAL, bias=bias, sink=sink)[0], [*qkv(), bias, sink])


def test_views_and_empty():
    packed = make(B, S, H + 2 * G, D)
    views = packed[:, :, :H], packed[:, :, H:H + G], packed[:, :, H + G:]
    o = at.attention(*views, mask=attnc.causal())
    assert torch.equal(o, at.attention(*(t.contiguous() for t in views), mask=attnc.causal()))
    transposed = [t.transpose(1, 2).contiguous().transpose(1, 2) for t in views]
    assert torch.equal(o, at.attention(*transposed, mask=attnc.causal()))
    assert at.attention(*(t[:0] for t in views), mask=attnc.causal()).shape == (0, S, H, D)
    no_keys = at.attention(views[0], views[1][:, :0], views[2][:, :0], mask=attnc.full())
    assert no_keys.shape == (B, S, H, D) and not no_keys.any()


def test_dropout():
    q, k, v = qkv()
    seed = torch.tensor([1, 2, 3, 4], dtype=torch.int32)
    def call(**options):
        return at.attention(q, k, v, mask=attnc.causal(), dropout=0.5, **options)
    assert torch.equal(call(seed=seed), call(seed=seed))
    assert not torch.equal(call(seed=seed), call(seed=seed + 1))
    torch.manual_seed(7)
    first = call()
    second = call()
    torch.manual_seed(7)
    assert torch.equal(first, call()) and not torch.equal(first, second)
    module = at.Attention(attnc.causal(), dropout=0.5)
    assert torch.equal(module.eval()(q, k, v), at.attention(q, k, v, mask=attnc.causal()))
    assert not torch.equal(module.train()(q, k, v), module.eval()(q, k, v))


def test_checkpoint():
    from torch.utils.checkpoint import checkpoint
    inputs = qkv(requires_grad=True)
    def step(q, k, v):
        return at.attention(q, k, v, mask=attnc.causal(), dropout=0.3).float().square().sum()
    found = []
    for use in (step, lambda *a: checkpoint(step, *a, use_reentrant=False),
                lambda *a: checkpoint(step, *a, use_reentrant=True)):
        torch.manual_seed(3)
        found.append(torch.autograd.grad(use(*inputs), inputs) if use is not None else None)
        if len(found) == 2:
            break  # torch.autograd.grad does not go with reentrant checkpoints
    assert all(torch.equal(a, b) for a, b in zip(*found))


def test_autocast():
    inputs = [t.float().requires_grad_() for t in qkv()]
    assert at.attention(*inputs, mask=attnc.causal()).dtype == torch.float32
    with torch.autocast("cpu", dtype=torch.bfloat16):
        o = at.attention(*inputs, mask=attnc.causal())
    o.float().sum().backward()
    assert o.dtype == torch.bfloat16 and inputs[0].grad.dtype == torch.float32


@pytest.mark.parametrize("layout", ["bshd", "thd"])
def test_compile(layout):
    """50 lengths: one frame, and no kernel more than the first calls made."""
    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()
    def step(q, k, v, cu):
        mask = attnc.causal() & (attnc.window(8) | attnc.sink(2))
        return at.attention(q, k, v, mask=mask, layout=layout, cu_seqlens_q=cu).float().square().sum()
    def inputs(n):
        made = qkv(seqlen=n, requires_grad=True) if layout == "bshd" else [
            t[0].detach().requires_grad_() for t in qkv(1, n)]
        return *made, torch.tensor([0, n // 3, n], dtype=torch.int32) if layout == "thd" else None
    compiled = torch.compile(step, fullgraph=True, dynamic=True, backend="aot_eager")
    compiled(*inputs(20))[None].sum().backward()
    step(*inputs(21)).backward()
    kernels = attnc.compile_count()
    for n in range(22, 72):
        own, eager = inputs(n), inputs(n)
        compiled(*own).backward()
        step(*eager).backward()
        assert all(torch.equal(a.grad, b.grad) for a, b in zip(own[:3], eager[:3]))
    assert torch._dynamo.utils.counters["stats"]["unique_graphs"] == 1
    assert attnc.compile_count() == kernels


def test_opcheck():
    text = attnc.Problem(attnc.document() & attnc.causal(), heads=(H, G), dims=D, score=attnc.bias("pairs", "qk")).text
    ids = torch.randint(1, 4, (B, S), dtype=torch.int32)
    torch.library.opcheck(torch.ops.attnc.run.default, ([*qkv(), ids, ids, torch.zeros(S, S)], text, "attention"))


@pytest.mark.parametrize("dims", [(0, None, None), (0, 0, 0), (None, 1, 1), (2, None, 0)])
def test_vmap(dims):
    n = 3
    stacked = [t if d is None else torch.stack([make(*t.shape, seed=50 + i) for i in range(n)], d)
               for t, d in zip(qkv(), dims)]
    def call(q, k, v):
        return at.attention(q, k, v, mask=attnc.causal())
    def loop(function):
        return [function(*(t if d is None else t.select(d, i) for t, d in zip(stacked, dims))) for i in range(n)]
    assert torch.equal(torch.vmap(call, dims)(*stacked), torch.stack(loop(call)))
    def loss(q, k, v):
        return call(q, k, v).float().square().sum()
    per_sample = torch.vmap(torch.func.grad(loss, argnums=(0, 1, 2)), dims)(*stacked)
    for mapped, single in zip(per_sample, zip(*loop(torch.func.grad(loss, argnums=(0, 1, 2))))):
        assert torch.equal(mapped, torch.stack(single))
    total = torch.func.grad(lambda q: torch.vmap(loss, dims)(q, *stacked[1:]).sum())(stacked[0])
    assert total.shape == stacked[0].shape


def test_vmap_refused():
    q, k, v = (t[0] for t in qkv(1))
    cu = torch.tensor([0, S], dtype=torch.int32)
    with pytest.raises(UnsupportedError, match="pack the sequences"):
        torch.vmap(lambda q: at.attention(q, k, v, mask=attnc.causal(), layout="thd", cu_seqlens_q=cu))(
            torch.stack([q, q]))


def test_no_other_derivatives():
    q, k, v = qkv(requires_grad=True)
    with pytest.raises(UnsupportedError, match="no forward-mode derivatives"):
        torch.func.jvp(lambda q: at.attention(q, k.detach(), v.detach(), mask=attnc.causal()), (q.detach(),),
                       (q.detach(),))
    grad, = torch.autograd.grad(at.attention(q, k, v, mask=attnc.causal()).sum(), q, create_graph=True)
    with pytest.raises(UnsupportedError, match="no second derivatives"):
        grad.sum().backward()


@pytest.mark.parametrize("change, kind, message", [
    (dict(q="q"), TensorError, "expected a torch.Tensor as 'q', got: str"),
    (dict(q=make(B, S, H, D, dtype=torch.float64)), TensorError, "expected 'q' to be bfloat16 or float16 (on the CPU "
     "also float32), got: torch.float64 on cpu (torch.autocast casts float32)"),
    (dict(q=make(B, S, 3, D)), TensorError, "expected heads of q in multiples of those of k, got: 3 and 2"),
    (dict(q=make(S, H, D)), TensorError, "expected 'q' of 4 dimensions in the layout 'bshd'"),
    (dict(v=make(B, S, G, D).to("meta")), TensorError, "on cpu as 'q' is, got: torch.bfloat16 on meta"),
    (dict(v=make(B, S, G, D, dtype=torch.float16)), TensorError, "got: torch.float16 on cpu"),
    (dict(mask=torch.ones(S, S)), ProblemError, "function of (b, h, q, k) as mask, got: Tensor"),
    (dict(score="softcap"), ProblemError, "expected score modifiers"),
    (dict(sink=[0.0] * H), TensorError, "as sink, got: list"),
    (dict(mask=attnc.document("ids"), arrays={"id": torch.ones(B, S)}), TensorError,
     "got none for: ids, and unknown ones: id"),
    (dict(mask=attnc.document("ids"), arrays={"ids": torch.full((B, S), 2**32)}), TensorError,
     "numbers of 32 bits in 'ids'"),
    (dict(k=make(B, S, G, D + 8)), TensorError, "`k`"),
    (dict(k=make(B, S - 1, G, D)), TensorError, "`v`"),
    (dict(v=make(B, S, G, D + 1)), ProblemError, "dim_v to be a multiple of 8"),
    (dict(q=make(B, S, H, 2 * D)[..., ::2]), TensorError, "stride"),
    (dict(layout="bsdh"), ProblemError, "expected a layout of 'bshd'"),
    (dict(mask=attnc.document()), TensorError, "got none for: segment_ids"),
    (dict(arrays={"ids": torch.zeros(1)}), TensorError, "got also: ids"),
    (dict(mask=attnc.document("ids"), arrays={"ids": torch.zeros(B, S)}), TensorError,
     "torch.int64, got: torch.float32"),
    (dict(mask=attnc.document("ids"), arrays={"ids": torch.zeros(B, S + 1, dtype=torch.int32)}), TensorError,
     "`ids` of queries"),
    (dict(mask=attnc.document("ids"), arrays={"ids": torch.zeros(B, S, dtype=torch.int32, device="meta")}), TensorError,
     "expected 'ids' on cpu, got: meta"),
    (dict(ids=torch.ones(B, S, dtype=torch.int32)), ProblemError, "`segments`"),
    (dict(dropout=1.5), ProblemError, "probability"),
])
def test_errors(change, kind, message):
    options = {**dict(zip("qkv", qkv())), "mask": attnc.causal(), **change}
    with pytest.raises(kind) as error:
        at.attention(**options)
    assert message in str(error.value), str(error.value)
    at.attention(*qkv(), mask=attnc.causal())  # the process goes on


@pytest.mark.parametrize("cu, message", [([0, 9, 4, S], "ascend"), ([0, S + 9], "at most"), ([1, S], "0")])
def test_bad_cu_seqlens(cu, message):
    q, k, v = (t[0] for t in qkv(1))
    with pytest.raises(TensorError) as error:
        at.attention(q, k, v, mask=attnc.causal(), layout="thd", cu_seqlens_q=torch.tensor(cu))
    assert "cu_seqlens" in str(error.value)


def test_nothing_leaks():
    q, k, v = qkv(requires_grad=True)
    def step():
        at.attention(q, k, v, mask=attnc.causal()).sum().backward()
        q.grad = k.grad = v.grad = None
    import resource
    for _ in range(50):
        step()
    gc.collect()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for _ in range(1500):
        step()
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 20000  # KB


def test_threads():
    inputs = qkv()
    expected = [at.attention(*inputs, mask=mask) for mask in (attnc.causal(), attnc.full())]
    kernels, failures = attnc.compile_count(), []
    def work():
        for _ in range(50):
            for mask, o in zip((attnc.causal(), attnc.full()), expected):
                if not torch.equal(at.attention(*inputs, mask=mask), o):
                    failures.append(mask)
    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures and attnc.compile_count() == kernels


def test_fork():
    """A child made by fork after the CPU target was used runs attention, too."""
    code = ("import os, torch, attnc, attnc.torch as at\n"
            "t = torch.ones(1, 8, 2, 16, dtype=torch.bfloat16)\n"
            "at.attention(t, t, t, mask=attnc.causal())\n"
            "pid = os.fork()\n"
            "if not pid:\n    at.attention(t, t, t, mask=attnc.causal()); os._exit(0)\n"
            "print(os.waitpid(pid, 0)[1])")
    environment = {**os.environ, "PYTHONPATH": ":".join(sys.path)}
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment,
                          timeout=120).stdout == "0\n"


def test_module():
    module = at.Attention(attnc.causal() & attnc.window(8), scale=0.5)
    assert not module.state_dict() and "mask=#attn.and<#attn.causal" in repr(module)
    other = pickle.loads(pickle.dumps(module))
    inputs = qkv()
    assert torch.equal(module(*inputs), other(*inputs)) and torch.equal(module(*inputs), copy.deepcopy(module)(*inputs))


def test_traced_functions():
    """Python functions as masks and scores, dense and packed, with arrays that they capture."""
    limit = torch.tensor([[3, 20, 9, 30], [8, 2, 40, 1]])
    slopes = torch.rand(H, requires_grad=True)
    distance = torch.arange(S)[:, None] - torch.arange(S)
    visible = (distance >= 0) & (distance < limit[:, :, None, None])
    q, k, v = qkv(requires_grad=True)
    o = at.attention(q, k, v, mask=lambda b, h, q, k: (q >= k) & (q - k < limit[b, h]),
                     score=attnc.score(lambda s, b, h, q, k: s - slopes[h] * (q - k)))
    wide = [t.detach().double().requires_grad_() for t in (q, k, v, slopes)]
    expected, _ = dense(*wide[:3], visible, bias=-wide[3].view(1, -1, 1, 1) * distance)
    assert (o - expected).abs().max() < 0.03
    o.backward(torch.ones_like(o))
    expected.backward(torch.ones_like(expected))
    assert (slopes.grad - wide[3].grad).abs().max() < 0.03 * max(1, float(wide[3].grad.abs().max()))
    per_sequence = torch.tensor([4, 9])
    cu = torch.tensor([0, 20, S])
    start = torch.repeat_interleave(cu[:-1], cu.diff())
    position, sequence = torch.arange(S) - start, torch.repeat_interleave(torch.arange(2), cu.diff())
    shown = (sequence[:, None] == sequence) & (position < per_sequence[sequence][:, None] + position[:, None] // 2)
    packed = [t[0] for t in qkv(1)]
    o = at.attention(*packed, mask=lambda b, h, q, k: k < per_sequence[b] + q // 2, layout="thd", cu_seqlens_q=cu)
    assert (o - dense(*(t[None].double() for t in packed), shown)[0][0]).abs().max() < 0.03


def test_gradients_of_any_layout():
    """The gradient of o may lie anywhere, as here in the middle of a buffer."""
    q, k, v = qkv(requires_grad=True)
    found = []
    for pad in (0, 1):
        o = at.attention(q, k, v, mask=attnc.causal())
        whole = torch.cat([torch.zeros(pad).bfloat16(), o.flatten()])
        found.append(torch.autograd.grad((whole * whole.detach()).sum(), (q, k, v)))
    assert all(torch.equal(a, b) for a, b in zip(*found))


def test_meta():
    q, k, v = (t.to("meta") for t in qkv())
    o, lse = at.attention(q, k, v, mask=attnc.causal(), return_lse=True)
    assert o.shape == (B, S, H, D) and lse.shape == (B, H, S) and o.device.type == "meta"


@pytest.mark.parametrize("grad", [False, True])
def test_compile_with_arrays(grad):
    torch._dynamo.reset()
    cu, ids = torch.tensor([0, 9, S]), torch.randint(1, 3, (B, S))
    def step(q, k, v):
        packed = at.attention(q[0], k[0], v[0], mask=attnc.causal(), layout="thd", cu_seqlens_q=cu)
        return packed.sum() + at.attention(q, k, v, mask=attnc.document("ids"), arrays={"ids": ids}).sum()
    inputs = qkv(requires_grad=grad)
    assert torch.equal(torch.compile(step, fullgraph=True, backend="aot_eager")(*inputs), step(*inputs))


def test_functions_combine_with_masks():
    near = attnc.causal() & (lambda b, h, q, k: q - k < 5)
    assert attnc.equiv(near, attnc.window(5)) and attnc.equiv((lambda b, h, q, k: q - k < 5) & attnc.causal(), near)
