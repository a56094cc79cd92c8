# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What bench_peers.py runs as processes of their own: attnc and its peers, checked and timed by turns.

  peer_worker.py bench BUILD     times cases; what to do is a JSON object in $ATTNC_PEERS (see bench_peers.py)
  peer_worker.py compile I N     compiles every N-th kernel of the peers that compile at run time into their caches on
                                 disk

Lines of JSON go to stdout: results, and where the process is, so that the one that started it can go on without a
peer that hangs or takes the CUDA context with it."""
import contextlib
import importlib.metadata
import json
import os
import statistics
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import torch

import attnc
import peer_cases
from bench import elapsed_ms, emit, short
from limits import WRONG_BEYOND
from peer_cases import batched, error_of, error_of_slice, reference, slices
from peers import COMPILED, DEVICE, OUTPUTS, PEERS, Ours, Unsupported, outputs, prepared

SAMPLE_MS, LONG_MS = 4, 40
HOST_BOUND = 0.6  # of a call's time, what the host takes to enqueue it; above, calls are captured in a CUDA graph
MOST_TFLOPS = 1000  # a bf16 kernel of these GPUs cannot be faster
CONTEXT_LOST, CAPTURE_FAILED = 75, 76  # exit statuses
WRONG = WRONG_BEYOND["rel_err_vs_float64"]
plan = json.loads(os.environ.get("ATTNC_PEERS", "{}"))


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
            raise RuntimeError(f"differs from attnc by {distance:.3g}, though both are right in the heads compared "
                               "with float64")
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
    """Milliseconds by peer: a median of rounds, and how far apart the middle half of them is. Each round begins with
    another peer."""
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
        emit(peer="attnc", case="compile all", kernels=len(set(texts.values())),
             s=round(time.perf_counter() - start, 1))

    def ready(self, name, case, t, which, judge):
        """The call of a peer, checked, and facts for its line; None if it cannot be timed, of which there is a line
        then."""
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
                uncaptured = next((why for *call_of, why in plan.get("uncaptured", []) if call_of == [name, which]),
                                  None)
                if uncaptured:
                    facts["host_bound"] = uncaptured
                else:
                    try:
                        call, facts["graph"] = captured(peer, case, t, which, outputs(results)).replay, True
                    except Exception as e:  # torch's random numbers and streams may still be in the capture
                        emit(uncaptured=[name, which, short(e)])
                        os._exit(CAPTURE_FAILED)
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
                    # Our backward pass reads o and lse: it is wrong without them.
                    with contextlib.suppress(Exception):
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
    emit(peer="env", commit=plan["commit"], gpu=torch.cuda.get_device_name(), torch=torch.__version__,
         cudnn=versions.pop("cudnn", None), cuda=torch.version.cuda, date=time.strftime("%Y-%m-%d"),
         rounds=plan["rounds"], versions=versions)
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
