# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What attnc.torch shows on a GPU alone: values, CUDA graphs, torch.compile, streams, seeds, host time beside SDPA.

    gpu.py --out FILE.jsonl [--commit HASH]

Prints one JSON line a check; exit status 1 if one fails. Needs $ATTN_LIBRARY, or a build.
"""
import os
import select
import signal
import time

from gpu_report import options, report, run  # first: it finds the package

options(__doc__)
import torch  # noqa: E402
import torch.nn.functional as F  # noqa: E402
import attnc  # noqa: E402
import attnc.torch as at  # noqa: E402

cuda = torch.device("cuda")


def make(*shape, dtype=torch.bfloat16, requires_grad=True):
    return torch.randn(shape, device=cuda).to(dtype).requires_grad_(requires_grad)


def dense(q, k, v, visible):
    q, k, v = (t.transpose(1, 2) for t in (q, k, v))
    k, v = (t.repeat_interleave(q.shape[1] // t.shape[1], 1) for t in (k, v))
    s = (q @ k.mT / q.shape[-1]**0.5).masked_fill(~visible, -float("inf"))
    return (torch.nan_to_num(s.softmax(-1)) @ v).transpose(1, 2)


def compare(name, call, visible, inputs, **facts):
    own = [t.detach().clone().requires_grad_() for t in inputs]
    wide = [t.detach().double().requires_grad_() for t in inputs]
    o, expected = call(*own), dense(*(t if t.dim() == 4 else t[None] for t in wide), visible)
    expected = expected if o.dim() == 4 else expected[0]
    do = torch.randn_like(o)
    o.backward(do)
    expected.backward(do.double())
    worst = [float((o - expected).norm() / expected.norm())]
    worst += [float((a.grad - b.grad).norm() / b.grad.norm()) for a, b in zip(own, wide)]
    report(name, max(worst) < 0.01, rel_err=[round(w, 5) for w in worst], **facts)


def lower(n):
    return torch.ones(n, n, dtype=torch.bool, device=cuda).tril()


def values():
    for heads, dim, seqlen in (((8, 2), 128, 1000), ((4, 4), 64, 333), ((8, 1), 256, 200)):
        compare("causal, window and sinks", lambda q, k, v: at.attention(
            q, k, v, mask=attnc.causal() & (attnc.window(64) | attnc.sink(4))),
                lower(seqlen) & (~lower(seqlen).tril(-64) | (torch.arange(seqlen, device=cuda) < 4)),
                [make(2, seqlen, h, dim) for h in (heads[0], heads[1], heads[1])], heads=heads, dim=dim)
    lengths = torch.tensor([100, 0, 317, 1, 82], device=cuda)
    cu = torch.cat([lengths.new_zeros(1), lengths.cumsum(0)])
    ids = torch.repeat_interleave(torch.arange(1, 6, device=cuda), lengths)
    visible = (ids[:, None] == ids) & lower(500)
    packed = [make(500, h, 64) for h in (4, 2, 2)]
    compare("packed, int64 cu_seqlens", lambda q, k, v: at.attention(
        q, k, v, mask=attnc.causal(), layout="thd", cu_seqlens_q=cu), visible, packed)
    compare("jagged", lambda q, k, v: at.attention(*(torch.nested.nested_tensor_from_jagged(t, cu) for t in (q, k, v)),
                                                   mask=attnc.causal()).values(), visible, packed)
    compare("segments by ids", lambda q, k, v: at.attention(q, k, v, mask=attnc.causal(), layout="thd padded", ids=ids,
                                                            segments=5), visible, packed)
    compare("documents by ids", lambda q, k, v: at.attention(
        q[None], k[None], v[None], mask=attnc.causal() & attnc.document("ids"), arrays={"ids": ids[None]})[0], visible,
            packed)


def cuda_graph():
    """A graph of a forward and backward pass, replayed with other lengths and other tensors."""
    q, k, v = (make(600, h, 64) for h in (4, 2, 2))
    do = torch.randn(600, 4, 64, device=cuda, dtype=torch.bfloat16)
    cu = torch.tensor([0, 200, 600], device=cuda, dtype=torch.int32)

    def step():
        o = at.attention(q, k, v, mask=attnc.causal(), layout="thd", cu_seqlens_q=cu)
        return o, *torch.autograd.grad(o, (q, k, v), do)

    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(2):
            step()
    torch.cuda.current_stream().wait_stream(stream)
    kernels, graph = attnc.compile_count(), torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        captured = step()
    for lengths in ([0, 200, 600], [0, 1, 350], [0, 0, 600]):
        cu.copy_(torch.tensor(lengths))
        with torch.no_grad():
            q.normal_(), k.normal_(), v.normal_()
        graph.replay()
        found = [t.clone() for t in captured]
        expected = step()
        worst = max(float((a.float() - b.float()).abs().max()) for a, b in zip(found, expected))
        report("CUDA graph replayed with other lengths", worst < 0.02, lengths=lengths, worst=worst)
    report("capture compiles nothing", attnc.compile_count() == kernels)


def seeds_under_capture():
    q, k, v = (make(1, 128, 2, 64, requires_grad=False) for _ in range(3))
    at.attention(q, k, v, mask=attnc.full(), dropout=0.5)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        o = at.attention(q, k, v, mask=attnc.full(), dropout=0.5)
    results = []
    for _ in range(3):
        graph.replay()
        results.append(o.clone())
    are_others = not torch.equal(results[0], results[1]) and not torch.equal(results[1], results[2])
    report("replays drop other pairs", are_others)


def side_streams():
    q, k, v = (make(4, 512, 4, 128, requires_grad=False) for _ in range(3))
    expected = at.attention(q, k, v, mask=attnc.causal())
    streams, wrong = [torch.cuda.Stream() for _ in range(4)], 0
    torch.cuda.synchronize()
    for i in range(40):
        with torch.cuda.stream(streams[i % 4]):
            junk = torch.full((1 << 20,), float("nan"), device=cuda)  # memory that results must not share too early
            o = at.attention(q, k, v, mask=attnc.causal())
            del junk
            wrong += 1 - (o == expected).all().int()
    torch.cuda.synchronize()
    report("four streams", int(wrong) == 0, wrong=int(wrong))


def compiled():
    for mode in (None, "reduce-overhead"):
        torch._dynamo.reset()
        torch._dynamo.utils.counters.clear()

        def step(q, k, v):
            return at.attention(q * 1.0, k, v, mask=attnc.causal() & attnc.window(100)).float().square().sum()
        function = torch.compile(step, fullgraph=True, dynamic=mode is None, mode=mode)
        worst = 0.0
        for n in (256, 300, 411, 256) if mode is None else (256, 256, 256, 256):
            inputs = [make(2, n, h, 64) for h in (4, 2, 2)]
            other = [t.detach().clone().requires_grad_() for t in inputs]
            function(*inputs).backward()
            step(*other).backward()
            worst = max(worst, *(float((a.grad - b.grad).abs().max() / b.grad.abs().max())
                                 for a, b in zip(inputs, other)))
        report("torch.compile", worst < 0.01, mode=mode or "default", worst=worst,
               graphs=torch._dynamo.utils.counters["stats"]["unique_graphs"])


def forked():
    """A child of a process that has used CUDA cannot use it: an error, not a hang."""
    q, k, v = (make(1, 64, 4, 64, requires_grad=False) for _ in range(3))
    o = at.attention(q, k, v, mask=attnc.causal())
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        text = "no error"
        try:
            at.attention(q, k, v, mask=attnc.causal())
            torch.cuda.synchronize()
        except Exception as error:
            text = f"{type(error).__name__}: {error}"
        os.write(writer, text.encode()[:4000])
        os._exit(0)
    os.close(writer)
    ready, _, _ = select.select([reader], [], [], 20)
    text = os.read(reader, 4000).decode() if ready else "nothing within 20 s"
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    again = torch.equal(at.attention(q, k, v, mask=attnc.causal()), o)
    report("fork after CUDA was used", "Error: " in text and again, child=text[:300])


def host_us(calls, n=200, rounds=12):
    """Host time of each call by name, in us: the least of several windows, which take turns, since the host's speed
    drifts. The device is idle before each window, and its queue does not fill."""
    best = dict.fromkeys(calls, float("inf"))
    for _ in range(rounds):
        for name, call in calls.items():
            torch.cuda.synchronize()
            start = time.perf_counter()
            for _ in range(n):
                call()
            best[name] = min(best[name], (time.perf_counter() - start) / n * 1e6)
    torch.cuda.synchronize()
    return {name: round(us, 2) for name, us in best.items()}


def host_time():
    q, k, v = (make(1, 16, 4, 64, requires_grad=False) for _ in range(3))
    qt, kt, vt = (t.transpose(1, 2) for t in (q, k, v))
    grads = [t.detach().clone().requires_grad_() for t in (q, k, v)]
    grads_t = [t.transpose(1, 2).detach().requires_grad_() for t in (q, k, v)]
    mask = attnc.causal()
    ours = lambda q, k, v: at.attention(q, k, v, mask=mask)  # noqa: E731
    sdpa = lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True)  # noqa: E731
    whole, whole_sdpa = (torch.compile(call, fullgraph=True) for call in (ours, sdpa))
    backward_do = torch.ones_like(q)

    def both(call, inputs, do):
        return lambda: torch.autograd.grad(call(*inputs), inputs, do)
    report("host time, us", True, **host_us({
        "attnc": lambda: ours(q, k, v), "sdpa": lambda: sdpa(qt, kt, vt),
        "attnc_grad": lambda: ours(*grads), "sdpa_grad": lambda: sdpa(*grads_t),
        "attnc_both": both(ours, grads, backward_do), "sdpa_both": both(sdpa, grads_t, backward_do.transpose(1, 2)),
        "attnc_compiled": lambda: whole(q, k, v), "sdpa_compiled": lambda: whole_sdpa(qt, kt, vt),
        "attnc_direct": lambda: at._ops._direct([q, k, v], TEXT, "attention"),
        "attnc_operator": lambda: torch.ops.attnc.run.default([q, k, v], TEXT, "attention")}))


TEXT = attnc.Problem(attnc.causal(), heads=4, dims=64).text
run((values, cuda_graph, seeds_under_capture, side_streams, compiled, forked, host_time),
    gpu=torch.cuda.get_device_name(), torch=torch.__version__)
