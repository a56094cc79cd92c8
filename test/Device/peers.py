# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What bench_peers.py runs as processes of their own: attnc and its peers, checked and timed by turns.

  peers.py bench BUILD     times cases; what to do is a JSON object in $ATTNC_PEERS (see bench_peers.py)
  peers.py compile I N     compiles every N-th kernel of the peers that compile at run time into their caches on disk

Lines of JSON go to stdout: results, and where the process is, so that the one that started it can go on without a
peer that hangs or takes the CUDA context with it."""
import contextlib
import importlib
import importlib.metadata
import json
import os
import statistics
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import torch
import torch.nn.functional as F

import attnc
import peer_cases
from bench import elapsed_ms, emit, short
from limits import WRONG_BEYOND
from peer_cases import SOFTCAP, batched, error_of, error_of_slice, reference, slices

DEVICE = "cuda"
SAMPLE_MS, LONG_MS = 4, 40
HOST_BOUND = 0.6  # of a call's time, what the host takes to enqueue it; above, calls are captured in a CUDA graph
MOST_TFLOPS = 1000  # a bf16 kernel of these GPUs cannot be faster
CONTEXT_LOST = 75  # exit status
WRONG = WRONG_BEYOND["rel_err_vs_float64"]
OUTPUTS = {"forward": ("o",), "backward": ("dq", "dk", "dv")}
plan = json.loads(os.environ.get("ATTNC_PEERS", "{}"))


class Unsupported(Exception):
    """The peer has no kernel for a case; not an error."""


def leaves(t, *names):
    return [t[name].detach().requires_grad_() for name in names]


def gradients(o, inputs, do):
    """The backward pass alone: the graph of the forward pass is kept."""
    return lambda: torch.autograd.grad(o, inputs, do, retain_graph=True)


def first(result):
    return result[0] if isinstance(result, tuple) else result


# The peers. Each has `forward` and `backward`, which return what to call; the call returns o, or dq, dk and dv, in our layout.

class Cudnn:
    """cuDNN through torch's scaled_dot_product_attention."""

    def __init__(self):
        for other in ("flash", "mem_efficient", "math"):
            getattr(torch.backends.cuda, f"enable_{other}_sdp")(False)
        torch.backends.cuda.enable_cudnn_sdp(True)
        self.version = torch.backends.cudnn.version()

    def call(self, case, q, k, v):
        if case.lengths or case.score or case.kind not in ("full", "causal"):
            raise Unsupported("torch's attention through cuDNN has no such mask or score modifier")
        if case.kind == "causal" and case.queries != case.keys:
            raise Unsupported("torch's causal mask begins at the upper left corner")
        return F.scaled_dot_product_attention(q, k, v, is_causal=case.kind == "causal", enable_gqa=case.heads != case.kv_heads)

    def forward(self, case, t):
        q, k, v = (t[x].transpose(1, 2) for x in "qkv")
        return lambda: self.call(case, q, k, v).transpose(1, 2)

    def backward(self, case, t):
        q, k, v = (t[x].detach().transpose(1, 2).requires_grad_() for x in "qkv")
        call = gradients(self.call(case, q, k, v), (q, k, v), t["do"].transpose(1, 2))
        return lambda: [x.transpose(1, 2) for x in call()]


def flash_options(case):
    """The options that FlashAttention-3 and -4 share."""
    if case.kind == "other" or "alibi" in case.score:
        raise Unsupported("no such mask or score modifier")
    return dict(causal=case.kind == "causal", **(dict(softcap=SOFTCAP) if case.score else {}))


class FlashAttention3:
    def __init__(self):
        self.m = importlib.import_module("fa3_fwd_interface")
        self.version = importlib.metadata.version("fa3_fwd")

    def forward(self, case, t):
        options = flash_options(case)
        if case.kind == "window":
            raise Unsupported("the wheel is built without windows")
        q, k, v = (t[x] for x in "qkv")
        if case.lengths:
            q, k, v = (batched(x)[0] for x in (q, k, v))
            most = max(case.lengths)
            return lambda: first(self.m.flash_attn_varlen_func(q, k, v, t["cu"], t["cu"], most, most, **options))
        splits = 0 if case.queries < 64 else 1  # 0: its own choice
        return lambda: first(self.m.flash_attn_func(q, k, v, num_splits=splits, **options))

    def backward(self, case, t):
        raise Unsupported("the wheel has no backward pass")


class FlashAttention4:
    def __init__(self):
        self.m = importlib.import_module("flash_attn.cute")
        self.version = importlib.metadata.version("flash_attn_4")

    def call(self, case, t, q, k, v):
        options = flash_options(case)
        if case.kind == "window":
            options["window_size"] = (case.left, 0)
        if case.lengths:
            q, k, v = (batched(x)[0] for x in (q, k, v))
            most = max(case.lengths)
            return first(self.m.flash_attn_varlen_func(q, k, v, cu_seqlens_q=t["cu"], cu_seqlens_k=t["cu"], max_seqlen_q=most,
                                                       max_seqlen_k=most, return_lse=True, **options))
        return first(self.m.flash_attn_func(q, k, v, return_lse=True, **options))

    def forward(self, case, t):
        flash_options(case)
        return lambda: self.call(case, t, t["q"], t["k"], t["v"])

    def backward(self, case, t):
        inputs = leaves(t, "q", "k", "v")
        o = self.call(case, t, *inputs)
        return gradients(o, inputs, t["do"].view(o.shape))


class CudnnFlex:
    """cudnn.flex_attention: masks of two intervals, of which it makes a plan ahead of its kernels. Packed sequences are one
    sequence with a mask of documents."""

    def __init__(self):
        self.m = importlib.import_module("cudnn.flex_attention")
        self.version = importlib.metadata.version("nvidia_cudnn_frontend")
        self.case = None

    def prepare(self, case, t):
        if self.case is case:
            return
        b0, e0, b1, e1 = case.rows.int().unbind(-1)
        later = b0 > 0  # [0, F0) and [F1, F2): an interval that begins behind key 0 is the second
        ends = torch.stack([torch.where(later, 0, e0), torch.where(later, b0, b1), torch.where(later, e0, e1)])
        self.inputs = [batched(x).detach().requires_grad_() for x in (t["q"], t["k"], t["v"])]
        self.plan = self.m.create_mask_plan(ends[None].contiguous().to(DEVICE), *self.inputs, build_backward=True)
        self.case = case

    def forward(self, case, t):
        self.prepare(case, t)
        q, k, v = (x.detach() for x in self.inputs)
        return lambda: self.m.flex_attn_func(q, k, v, mask_plan=self.plan)

    def backward(self, case, t):
        self.prepare(case, t)
        return gradients(self.m.flex_attn_func(*self.inputs, mask_plan=self.plan), self.inputs, batched(t["do"]))


PEERS = {"cudnn": Cudnn, "fa3": FlashAttention3, "fa4": FlashAttention4, "cudnn flex": CudnnFlex}
COMPILED = ("cudnn flex", "fa4")  # at run time


class Ours:
    """`kernels`: by the name of a peer and the pass; an exception where one did not compile."""

    def __init__(self, kernels, name):
        self.kernels, self.name = kernels, name

    def call(self, case, t, which):
        kernel = self.kernels.get((case.name, self.name, which))
        if kernel is None:
            raise Unsupported("not timed")
        if isinstance(kernel, Exception):
            raise kernel
        arrays = {"q": t["q"], "k": t["k"], "v": t["v"], "o": t["o"], "lse": t["lse"]}
        if case.packed:
            arrays.update(cu_seqlens_q=t["cu"], cu_seqlens_kv=t["cu"])
        if which == "backward":
            arrays.update({name: t[name] for name in ("do", "dq", "dk", "dv")})
        bound, outputs = kernel.bind(**arrays), [t[name] for name in OUTPUTS[which]]
        stream = torch.cuda.current_stream().cuda_stream

        def launch():
            kernel.launch(bound, stream)
            return outputs
        return launch

    def forward(self, case, t):
        call = self.call(case, t, "forward")
        return lambda: call()[0]

    def backward(self, case, t):
        return self.call(case, t, "backward")


def prepared(peer, case, t, which):
    return getattr(peer, which)(case, t)


def outputs(result):
    return result if isinstance(result, (list, tuple)) else [result]


# Checks.

def poison(t, which):
    for name in OUTPUTS[which]:
        t[name].fill_(float("nan"))


class Judge:
    """Results of a case against float64 in some heads, and against ours everywhere."""

    def __init__(self, case, t, which, wanted):
        self.case, self.t, self.names, self.wanted, self.ours = case, t, OUTPUTS[which], wanted, None

    def error(self, results):
        return max(error_of_slice(self.case, self.names, results, wanted, *of) for of, wanted in self.wanted.items())

    def distance(self, results):
        """None without a right result of ours."""
        if self.ours is None:
            return None
        return max(error_of(batched(got), batched(x)) for got, x in zip(results, self.ours))

    def facts(self, name, results):
        """Raises where a result is wrong."""
        results = outputs(results)
        error = self.error(results)
        if not error <= WRONG:
            raise RuntimeError(f"wrong: relative error {error:.3g} against float64")
        if name == "attnc":
            self.ours = [x.clone() for x in results]
            return {"rel_err_vs_float64": round(error, 5)}
        distance = self.distance(results)
        if distance is not None and not distance <= WRONG:
            raise RuntimeError(f"differs from attnc by {distance:.3g}, though both are right in the heads compared with float64")
        return {"rel_err_vs_float64": round(error, 5)}


# Timing.

def host_share(call, ms):
    """Of a call's time, what it takes to enqueue it."""
    count = max(3, min(50, round(10 / max(ms, 0.005))))
    torch.cuda.synchronize()
    start = time.perf_counter()
    for _ in range(count):
        call()
    host = (time.perf_counter() - start) / count
    torch.cuda.synchronize()
    return host * 1e3 / ms


def captured(peer, case, t, which, expected):
    """The call in a CUDA graph; raises where it cannot be captured, or its results change."""
    expected = [x.clone() for x in expected]
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        call = prepared(peer, case, t, which)
        call()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=side):
        results = outputs(call())
    graph.replay()
    torch.cuda.synchronize()
    if not max(error_of(got, x) for got, x in zip(results, expected)) <= WRONG:
        raise RuntimeError("results of the CUDA graph differ")
    graph.kept = call, results
    return graph


def take_turns(calls, rounds):
    """Milliseconds by peer: a median of rounds, and how far apart the middle half of them is. Each round begins with another peer."""
    counts = {name: max(1, round(SAMPLE_MS / max(elapsed_ms(call, 2), 0.005))) for name, call in calls.items()}
    samples, names = {name: [] for name in calls}, list(calls)
    for turn in range(rounds):
        shift = turn % len(names)
        for name in names[shift:] + names[:shift]:
            samples[name].append(elapsed_ms(calls[name], counts[name]))
    found = {}
    for name, times in samples.items():
        low, middle, high = statistics.quantiles(times, n=4, method="inclusive")
        found[name] = middle, (high - low) / middle
    return found


def context_lost():
    try:
        torch.cuda.synchronize()
        torch.zeros(1, device=DEVICE).item()
        return False
    except Exception:
        return True


class Bench:
    def __init__(self, library, cases):
        self.library, self.cases, self.peers = library, cases, {}

    def import_peers(self):
        versions = {}
        for name, peer in PEERS.items():
            if plan.get("peers") and name not in plan["peers"]:
                continue
            try:
                self.peers[name] = peer()
                versions[name] = self.peers[name].version
            except Exception as e:
                emit(peer=name, case="import", error=f"{type(e).__name__}: {short(e)}")
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            versions["cutlass dsl"] = importlib.metadata.version("nvidia_cutlass_dsl")
        return versions

    def compile(self):
        """All of our kernels, on many threads."""
        start = time.perf_counter()
        texts = {(case.name, *key): text for case in self.cases for key, text in case.texts().items()}

        def one(text):
            try:
                return self.library.compile(text, plan.get("target"))
            except Exception as e:
                return e
        with ThreadPoolExecutor(min(14, os.cpu_count())) as pool:
            kernels = dict(zip(texts, pool.map(one, texts.values())))
        for name in ("attnc", "attnc deterministic"):
            self.peers[name] = Ours(kernels, name)
        emit(peer="attnc", case="compile all", kernels=len(set(texts.values())), s=round(time.perf_counter() - start, 1))

    def ready(self, name, case, t, which, judge):
        """The call of a peer, checked, and facts for its line; None if it cannot be timed, of which there is a line then."""
        facts = {"peer": name, "case": case.name, "group": case.group, "pass": which}
        emit(at=[case.name, which, name])
        if [case.name, which, name] in plan.get("without", []):
            return None
        try:
            peer = self.peers[name]
            if name.startswith("attnc"):
                poison(t, which)
            call = prepared(peer, case, t, which)
            results = call()
            torch.cuda.synchronize()
            facts.update(judge.facts(name, results))
            ms = elapsed_ms(call, 2)
            if ms < LONG_MS and host_share(call, ms) > HOST_BOUND:
                try:
                    call, facts["graph"] = captured(peer, case, t, which, outputs(results)).replay, True
                except Exception as e:
                    facts["host_bound"] = short(e)
            return call, facts, ms
        except Unsupported as e:
            if name != "attnc deterministic":
                emit(**facts, none=str(e))
        except Exception as e:
            emit(**facts, error=f"{type(e).__name__}: {short(e)}")
            if context_lost():
                os._exit(CONTEXT_LOST)
        return None

    def company(self, case, which):
        """cuDNN's causal pass, for rows that no peer has: a GPU that runs nothing but our kernels lowers its clocks."""
        if "cudnn" not in self.peers:
            return {}
        like = next(c for c in peer_cases.all_cases() if c.group == "dense" and c.kind == "causal" and c.dim == 128)
        return {None: prepared(self.peers["cudnn"], like, like.tensors(DEVICE), which)}

    def run_pass(self, case, t, which, judge):
        names = ["attnc", "attnc deterministic", *(name for name in PEERS if name in self.peers)]
        if case.group != "masks" and "cudnn flex" in names:
            names.remove("cudnn flex")  # no more than a detour to what the others have
        found = {name: ready for name in names if (ready := self.ready(name, case, t, which, judge))}
        if not found:
            return
        emit(at=[case.name, which, "turns"])
        calls = {name: call for name, (call, _, _) in found.items()}
        if all(name.startswith("attnc") for name in calls):
            calls.update(self.company(case, which))
        longest = max(ms for _, _, ms in found.values())
        times = take_turns(calls, min(plan["rounds"], 5) if longest > LONG_MS else plan["rounds"])
        for name, (ms, spread) in times.items():
            if name is None:
                continue
            tf = case.flops(which) / ms / 1e9
            line = dict(found[name][1], ms=round(ms, 5), tf=round(tf, 1), spread=round(spread, 4))
            emit(**line if tf < MOST_TFLOPS else dict(line, error=f"{tf:.0f} TFLOP/s cannot be"))

    def run_case(self, case, done):
        t = wanted = None
        for which in ("forward", "backward") if case.backward else ("forward",):
            if [case.name, which] in done:
                continue
            facts = {"peer": "any", "case": case.name, "group": case.group, "pass": which}
            if time.time() > plan["until"]:
                emit(**facts, error="the time limit came first")
                continue
            try:
                if t is None:
                    emit(at=[case.name, which, "reference"])
                    t = case.tensors(DEVICE)
                    wanted = {of: reference(case, t, *of) for of in slices(case, plan["slices"])}
                if which == "backward":
                    with contextlib.suppress(Exception):  # o and lse, which our backward pass reads: it is wrong without them
                        prepared(self.peers["attnc"], case, t, "forward")()
                self.run_pass(case, t, which, Judge(case, t, which, wanted))
            except Exception as e:
                emit(**facts, error=f"{type(e).__name__}: {short(e)}")
                if context_lost():
                    os._exit(CONTEXT_LOST)
            emit(done=[case.name, which])
        if "cudnn flex" in self.peers:
            self.peers["cudnn flex"].case = self.peers["cudnn flex"].plan = self.peers["cudnn flex"].inputs = None


def bench(build):
    torch.manual_seed(0)
    cases = peer_cases.chosen(plan["groups"], plan["filter"])
    it = Bench(attnc.Library(os.path.join(build, "lib", "libattnc.so")), cases)
    it.compile()
    versions = it.import_peers()
    emit(peer="env", commit=plan["commit"], gpu=torch.cuda.get_device_name(), torch=torch.__version__, cudnn=versions.pop("cudnn", None),
         cuda=torch.version.cuda, date=time.strftime("%Y-%m-%d"), rounds=plan["rounds"], versions=versions)
    emit(ready=True)
    sys.stdin.readline()  # until kernels of peers are compiled: what is timed has the machine to itself
    a, b = (torch.randn(8192, 8192, device=DEVICE, dtype=torch.bfloat16) for _ in "ab")
    elapsed_ms(lambda: a @ b, 20)  # the clocks come up
    emit(peer="cublas", case="matmul8192", tf=round(2 * 8192 ** 3 / elapsed_ms(lambda: a @ b, 50) / 1e9, 1))
    del a, b
    for case in cases:
        it.run_case(case, plan.get("done", []))
        torch.cuda.empty_cache()
    emit(finished=True)


def compile_peers(part, parts):
    """Kernels get into the caches on disk as they are called once, by one process each."""
    cases = peer_cases.chosen(plan["groups"], plan["filter"])
    work = {}
    for name in COMPILED:
        for case in cases:
            if name == "fa4" or case.group == "masks":
                work.setdefault((name, case.signature() if name == "fa4" else case.dim), (name, case))
    mine = list(work.values())[part::parts]
    if not mine:
        return
    peers = {name: PEERS[name]() for name in sorted({name for name, _ in mine})}
    for name, case in mine:
        t = case.tensors(DEVICE)
        for which in ("forward", "backward") if case.backward else ("forward",):
            try:
                prepared(peers[name], case, t, which)()
                torch.cuda.synchronize()
            except Exception as e:  # the one that times it will say so
                print(f"{name}, {case.name}, {which}: {short(e)}", file=sys.stderr)


if __name__ == "__main__":
    if sys.argv[1] == "bench":
        bench(sys.argv[2])
    else:
        compile_peers(int(sys.argv[2]), int(sys.argv[3]))
