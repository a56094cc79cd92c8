#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Speed of context-parallel plans on several GPUs, a process each, beside one GPU and beside what is written by hand.

    gpu_plans_speed.py [--ranks N] [--what one,ours,hand,peers,torch,helpers,exposed] [--tokens N,N] [--filter TEXT]
                       [--cases full,causal,window,documents] [--plans cast:peer,...] [--out FILE.jsonl]

bf16, 32 query heads, 8 kv heads, head dim 128, packed sequences, both passes apart. `ms` is the time on the device
between two events, of the slowest rank, the median of some repetitions; ranks begin together behind an all-reduce, and
the host puts a call on the stream while it sleeps (up to 3 ms). Those of a case take turns, so that all have the same
clocks. `efficiency` is the time of one GPU / (ranks * ms), `tflops` those of a GPU on visible pairs. `error` is the
largest relative error (2-norm) of a rank's o, dq, dk or dv beside its rows of one GPU's result.

one      attention() of the whole sequences; each GPU does the same, and the time is that of rank 0
ours     plans by strategy and transport; chunks of sequences, equal parts under the window, whole documents
hand     ring, all-gather and Ulysses by hand (plans_by_hand.py) with NCCL and kernels of attnc
peers    the same with kernels of cuDNN, of FlashAttention-2 in torch, and of FlashAttention-3 where it is installed
torch    torch.distributed.tensor.experimental.context_parallel, full and causal
helpers  ContextParallel.shard and unshard beside a copy on the device; their time is the host's, too
exposed  not by default. One profiled run of a plan on rank 0: its kernels (`kernels_ms`), and how much longer it
         takes from the first of them to the end of the last (`exposed_ms`)

A case's last lines are a row for each pass: t1, the best of ours with its efficiency E, and the best of the others.
What fails on a rank is left out on all of them, and is a line, too; where a rank hangs, the script ends.
--device cpu runs small sizes with gloo, to test this script: --device cpu --tokens 256. ATTN_LIBRARY selects the build.
"""
import argparse
import concurrent.futures
import contextlib
import datetime
import json
import os
import re
import statistics
import sys
import tempfile
import time

import gpu_report  # first: it finds the package
from gpu_report import relative_error, report

os.environ.setdefault("NCCL_NVLS_ENABLE", "0")  # NVLink multicast stays off
os.environ.setdefault("TORCH_SYMM_MEM_DISABLE_MULTICAST", "1")
os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "1")  # for one small kernel

import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402

import attnc  # noqa: E402
import attnc.torch as at  # noqa: E402
import plans_by_hand  # noqa: E402
from plans_by_hand import KERNELS, STRATEGIES, WINDOW, Ours, sums  # noqa: E402

MOST_OFF = 0.02
HEADS, KV_HEADS, DIM = 32, 8, 128
CASES = ("full", "causal", "window", "documents")
UNEVEN = (4096, 3072, 2560, 2048, 1536, 1024, 896, 512, 384, 256)  # of 16384: the benchmarks' documents
SHARDINGS = {"full": "dual_chunk", "causal": "dual_chunk", "window": "contiguous", "documents": "documents"}
PLANS = "cast:peer,ring:peer,gather:peer,ulysses:peer,cast:nccl"
PASSES = ("forward", "backward")
SLEEP = 6_000_000  # cycles
REPEATED = ", repeated heads"


class Failed(Exception):
    """Something failed on a rank; all ranks raise it."""


class Stuck(Exception):
    """A rank waits for the device in vain; nothing can be done behind that."""


class World:
    """This rank, and what all ranks do together."""

    def __init__(self, rank, args):
        self.rank, self.ranks, self.args = rank, args.ranks, args
        self.device = torch.device("cpu" if args.device == "cpu" else f"cuda:{rank}")
        self.on_gpu = self.device.type == "cuda"
        self.merge, self._parallel = plans_by_hand.merge, {}
        self.flag = torch.zeros(1, device=self.device)

    def emit(self, check, ok=True, **facts):
        if self.rank == 0:
            report(check, ok, **facts)

    def together(self, action):
        """What action() returned on each rank, by rank. Raises Failed on all ranks if it raised on one."""
        value = error = None
        try:
            value = action()
            self.settle()
        except Exception as e:
            text = f"{type(e).__name__}: {e}".split("\nException raised from")[0]
            error, value = (isinstance(e, Stuck), text[:400]), None
        found = [None] * self.ranks
        dist.all_gather_object(found, (error, value))
        wrong = [(rank, error) for rank, (error, _) in enumerate(found) if error]
        if wrong:
            texts = {text: f"rank {rank}: {text}" for rank, (_, text) in reversed(wrong)}
            text = "; ".join(reversed(texts.values()))  # each once
            raise (Stuck if any(is_stuck for _, (is_stuck, _) in wrong) else Failed)(text)
        return [value for _, value in found]

    def settle(self):
        """Waits for the device, but not for ever."""
        if not self.on_gpu:
            return
        done = torch.cuda.Event()
        done.record()
        begun = time.monotonic()
        while not done.query():
            if time.monotonic() - begun > self.args.timeout:
                raise Stuck(f"the device is not done after {self.args.timeout:g} s")
            time.sleep(0.0002)

    def timed(self, call, sleep=SLEEP):
        """Milliseconds of a call on this rank, and what it returns. All ranks call it."""
        if not self.on_gpu:
            dist.barrier()
            begun = time.perf_counter()
            result = call()
            return (time.perf_counter() - begun) * 1e3, result
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        if sleep:
            torch.cuda._sleep(sleep)
        dist.all_reduce(self.flag)
        begin.record()
        result = call()
        end.record()
        self.settle()
        return begin.elapsed_time(end), result

    def parallel(self, *key):
        """The ContextParallel of a sharding, a strategy and a transport."""
        if key not in self._parallel:
            sharding, strategy, transport = key
            self._parallel[key] = at.ContextParallel(
                sharding=sharding, strategy=strategy, transport=transport if self.on_gpu else None,
                timeout=self.args.timeout)
        return self._parallel[key]

    def close(self):
        for parallel in self._parallel.values():
            parallel.close()


def size_text(tokens):
    return f"{tokens // 1024}K" if tokens % 1024 == 0 else str(tokens)


def documents(tokens):
    """Ten lengths in multiples of 16."""
    lengths = [max(16, tokens * length // sum(UNEVEN) // 16 * 16) for length in UNEVEN]
    lengths[0] += tokens - sum(lengths)
    return lengths


class Case:
    """Whole tensors, and what one GPU makes of them."""

    def __init__(self, kind, tokens, device):
        self.kind, self.tokens, self.device = kind, tokens, device
        self.mask = {"full": attnc.full(), "window": attnc.window(WINDOW)}.get(kind, attnc.causal())
        self.by_hand = "causal" if kind == "documents" else kind  # the mask there
        self.lengths = documents(tokens) if kind == "documents" else [tokens]
        self.sums = sums(self.lengths)
        name = {"window": f"window ({WINDOW - 1}, 0)", "documents": f"{len(self.lengths)} documents causal"}
        self.name = f"{name.get(kind, kind)} {size_text(tokens)}"

    def draw(self):
        torch.manual_seed(0)
        self.x = [torch.randn(self.tokens, heads, DIM, device=self.device, dtype=torch.bfloat16)
                  for heads in (HEADS, KV_HEADS, KV_HEADS, HEADS)]

    def tflops(self, which, ms, ranks):
        pairs = sum({"full": n * n, "window": n * (n + 1) // 2 - max(n - WINDOW, 0) * (max(n - WINDOW, 0) + 1) // 2}
                    .get(self.kind, n * (n + 1) // 2) for n in self.lengths)
        return 4 * pairs * HEADS * DIM * (2.5 if which == "backward" else 1) / (ranks * ms) / 1e9


# ---- Those that take turns: forward() gives o and what backward() takes; take() a rank's rows of a whole tensor. ----

class Competitor:
    def __init__(self, case):
        self.inputs = [self.take(x, i in (1, 2)).clone() for i, x in enumerate(case.x)]

    def active(self):
        return contextlib.nullcontext()

    def packed(self, found):
        """o, dq, dk and dv as packed tensors."""
        return found

    def check(self):
        pass


class Attention(Competitor):
    """attention(), with gradients."""

    def __init__(self, case, **options):
        super().__init__(case)
        *self.inputs, self.do = self.inputs
        self.inputs = [x.requires_grad_() for x in self.inputs]
        self.options = dict(mask=case.mask, layout="thd", **options)

    def forward(self):
        o = at.attention(*self.inputs, **self.options)
        return o.detach(), o

    def backward(self, o):
        return torch.autograd.grad(o, self.inputs, self.do)


class One(Attention):
    def __init__(self, world, case):
        super().__init__(case, cu_seqlens_q=torch.tensor(case.sums, dtype=torch.int32, device=world.device))

    def take(self, x, keys):
        return x


class Plan(Attention):
    def __init__(self, world, case, strategy, transport):
        self.parallel = world.parallel(SHARDINGS[case.kind], strategy, transport)
        self.sums = case.sums
        super().__init__(case, cu_seqlens_q=case.sums, context_parallel=self.parallel)

    def take(self, x, keys):
        return self.parallel.shard(x, keys=keys, cu_seqlens=self.sums)

    def check(self):
        self.parallel.check()


class ByHand(Competitor):
    def __init__(self, world, case, strategy, kernels):
        self.strategy = strategy(world, kernels, case.by_hand, case.lengths)
        super().__init__(case)

    def take(self, x, keys):
        return self.strategy.take(x)

    def forward(self):
        with torch.no_grad():
            return self.strategy.forward(*self.inputs[:3])

    def backward(self, kept):
        with torch.no_grad():
            return self.strategy.backward(self.inputs[3], kept)


class TorchParallel(Competitor):
    """torch's own, around cuDNN. `expands`: with heads of k and v repeated."""

    def __init__(self, world, case, rotation, expands):
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.tensor.experimental import _attention
        self.module, self.rotation, self.expands, self.is_causal = _attention, rotation, expands, case.kind == "causal"
        self.mesh = init_device_mesh(world.device.type, (world.ranks,))
        if self.is_causal:  # it has the same chunks as the ring
            self.own = plans_by_hand.Ring(world, None, "causal", case.lengths).own
        else:
            count = case.tokens // world.ranks
            self.own = plans_by_hand.Rows([(world.rank * count, (world.rank + 1) * count)], world.device)
        self.whole = case.x

    def take(self, x, keys):
        return self.own.take(x)

    @contextlib.contextmanager
    def active(self):
        from torch.nn.attention import SDPBackend, sdpa_kernel
        self.module.set_rotate_method(self.rotation)
        self.module._cp_options.enable_load_balance = self.is_causal
        buffers = [x.transpose(0, 1)[None].clone() for x in self.whole]
        if self.expands:
            buffers[1:3] = [x.repeat_interleave(HEADS // KV_HEADS, 1) for x in buffers[1:3]]
        failure = None
        with self.module.context_parallel(self.mesh, buffers=buffers, buffer_seq_dims=[2] * 4,
                                          no_restore_buffers=set(buffers)):
            *inputs, self.do = buffers
            self.inputs = [x.requires_grad_() for x in inputs]
            try:  # it would leave torch as it is then
                with sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
                    yield
            except Exception as e:
                failure = e
        self.inputs = self.do = None
        if failure is not None:
            raise failure

    def forward(self):
        o = torch.nn.functional.scaled_dot_product_attention(*self.inputs, is_causal=self.is_causal,
                                                             enable_gqa=not self.expands)
        return o.detach(), o

    def backward(self, o):
        return torch.autograd.grad(o, self.inputs, self.do)

    def packed(self, found):
        o, dq, *of_keys = [x[0].transpose(0, 1) for x in found]
        if self.expands:
            of_keys = [x.float().unflatten(1, (KV_HEADS, -1)).sum(2) for x in of_keys]
        return o, dq, *of_keys


def both_passes(competitor):
    with competitor.active():
        o, kept = competitor.forward()
        return competitor.packed((o, *competitor.backward(kept)))


def error_of(world, case, competitor):
    """The largest of this rank's errors, of a first run."""
    found = both_passes(competitor)
    world.settle()
    competitor.check()
    return max(relative_error(a, competitor.take(b, i > 1)) for i, (a, b) in enumerate(zip(found, case.expected)))


def turn(world, competitor):
    """Milliseconds of both passes on this rank."""
    with competitor.active():
        forward, (_, kept) = world.timed(competitor.forward)
        backward, _ = world.timed(lambda: competitor.backward(kept))
    competitor.check()
    return forward, backward


def take_turns(world, ready, repeats):
    """What turn() gave on each rank, by name and repetition. Each repetition begins with another name."""
    times, names = {name: [] for name in ready}, list(ready)
    for number in range(repeats):
        shift = number % len(names)
        for name in names[shift:] + names[:shift]:
            if name in ready:
                try:
                    times[name].append(world.together(lambda: turn(world, ready[name])))
                except Failed as failure:
                    failed(world, name, failure)
                    del ready[name], times[name]
    return times


def failed(world, name, failure):
    world.emit(name, False, error=str(failure))


# ---- Cases. ----

def makers(world, case, kernels):
    """By name (group, maker) of what takes turns in a case."""
    found, what = {}, world.args.what
    if "ours" in what:
        for strategy, transport in world.args.plans:
            found[f"{strategy} by {transport}"] = "ours", lambda key=(strategy, transport): Plan(world, case, *key)
    for kind in kernels.values():
        group = "hand" if kind.name == "ours" else "peers"
        if group in what and kind.has(case.by_hand, case.lengths):
            for strategy in STRATEGIES:
                if strategy.has(case.by_hand):
                    found[f"{strategy.name} by hand, {kind.name}"] = (
                        group, lambda key=(strategy, kind): ByHand(world, case, *key))
    if "torch" in what and case.kind in ("full", "causal") and world.on_gpu:
        for rotation in ("allgather", "alltoall"):
            for expands in (False, True):
                found[f"torch {rotation}{REPEATED * expands}"] = (
                    "torch", lambda key=(rotation, expands): TorchParallel(world, case, *key))
    return {name: made for name, made in found.items() if world.args.filter in f"{case.name}, {name}"}


def prepared(world, case, chosen):
    """Those that are right, and their errors."""
    ready, errors = {}, {}
    for name, (_, make) in chosen.items():
        label, made = f"{case.name}, {name}", {}
        if label.removesuffix(REPEATED) in ready:  # it can do without
            continue
        try:
            world.together(lambda: made.update(it=make()))
            error = max(world.together(lambda: error_of(world, case, made["it"])))
            if error <= MOST_OFF:
                ready[label], errors[label] = made["it"], error
            else:
                world.emit(label, False, error=error)
        except Failed as failure:
            failed(world, label, failure)
    return ready, errors


def run_case(world, case, chosen):
    one, made, begun = f"{case.name}, one", {}, time.monotonic()

    def first():
        case.draw()
        made[one] = One(world, case)
        case.expected = both_passes(made[one])
    try:
        world.together(first)
    except Failed as failure:
        failed(world, one, failure)
        return
    ready, errors = prepared(world, case, chosen)
    prepared_s = time.monotonic() - begun
    times = take_turns(world, {**made, **ready}, world.args.repeats)
    if one in times:
        world.emit(f"{case.name}, all", prepare_s=round(prepared_s, 1), s=round(time.monotonic() - begun, 1))
        groups = {f"{case.name}, {name}": group for name, (group, _) in chosen.items()}
        rows = [report_pass(world, case, which, {name: [[ms[number] for ms in ranks] for ranks in rounds]
                                                 for name, rounds in times.items()}, errors, groups)
                for number, which in enumerate(PASSES)]
        for row in rows:
            world.emit("row", row=row)


def report_pass(world, case, which, times, errors, groups):
    """A line for each; returns the case's row. times: by name of each repetition the milliseconds of ranks."""
    alone = statistics.median(ranks[0] for ranks in times[f"{case.name}, one"])
    best = {}
    for name, rounds in times.items():
        is_one = name not in groups
        rounds, ranks = [ranks[0] if is_one else max(ranks) for ranks in rounds], 1 if is_one else world.ranks
        ms = statistics.median(rounds)
        facts = dict(ms=round(ms, 4), tflops=round(case.tflops(which, ms, ranks), 1),
                     spread=round((max(rounds) - min(rounds)) / ms, 4))
        if not is_one:
            facts.update(efficiency=round(alone / (ranks * ms), 4), error=round(errors[name], 5))
            group = "peers" if groups[name] == "torch" else groups[name]
            short = name.removeprefix(f"{case.name}, ").replace(" by hand", "")
            best[group] = min(best.get(group, (ms, short)), (ms, short))
        world.emit(f"{name}, {which}", **facts)

    def cell(group):
        return "{:.3f} ({})".format(*best[group]) if group in best else "none"
    efficiency = f"{alone / (world.ranks * best['ours'][0]):.3f}" if "ours" in best else "none"
    return (f"{case.name} | {which} | one {alone:.3f} | ours {cell('ours')} | E {efficiency} | "
            f"by hand {cell('hand')} | peers {cell('peers')}")


# ---- What is not shown of messages by their overlap. ----

def kernel_times(events):
    """Milliseconds in a trace: the kernels' sum, and from the first one to the end of the last; those of NCCL, and of
    the alignment, do not count."""
    events = [e for e in events if e.get("cat") == "kernel" and not re.search("nccl|spin_kernel", e["name"])]
    if not events:
        raise ValueError("expected kernels in the trace, got: none")
    span = max(e["ts"] + e["dur"] for e in events) - min(e["ts"] for e in events)
    return sum(e["dur"] for e in events) / 1e3, span / 1e3


def profiled(world, call):
    """The events of a call's trace on rank 0, and what it returns; other ranks run it without a profiler."""
    if world.rank:
        return [], world.timed(call)[1]
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
        _, result = world.timed(call)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "trace.json")
        profile.export_chrome_trace(path)
        with open(path) as file:
            return json.load(file)["traceEvents"], result


def exposed(world, case):
    for strategy, transport in world.args.plans:
        label = f"{case.name}, {strategy} by {transport}, exposed"
        if world.args.filter not in label:
            continue
        made = {}

        def make():
            case.draw()
            made["plan"] = Plan(world, case, strategy, transport)

        def run():
            plan = made["plan"]
            both_passes(plan)
            times = [turn(world, plan) for _ in range(3)]
            forward, (_, kept) = profiled(world, plan.forward)
            backward, _ = profiled(world, lambda: plan.backward(kept))
            plan.check()
            return times, None if world.rank else [kernel_times(forward), kernel_times(backward)]
        try:
            world.together(make)
            found = world.together(run)
        except Failed as failure:
            failed(world, label, failure)
            continue
        for number, which in enumerate(PASSES):
            ms = statistics.median(max(times[number] for times in of_ranks)
                                   for of_ranks in zip(*(times for times, _ in found)))
            kernels, span = found[0][1][number]
            world.emit(f"{label}, {which}", ms=round(ms, 4), kernels_ms=round(kernels, 4), span_ms=round(span, 4),
                       exposed_ms=round(span - kernels, 4), exposed=round((span - kernels) / span, 4),
                       ms_minus_kernels=round(ms - kernels, 4))


# ---- shard and unshard. ----

def helpers(world):
    rows = 65536 if world.on_gpu else world.args.tokens[0]
    x = torch.randn(rows, 16, 64, device=world.device, dtype=torch.bfloat16)
    starts = [rows // 16 * i for i in range(17)]
    parallel = world.parallel("dual_chunk", "cast", "peer")
    own = parallel.shard(x, cu_seqlens=starts)
    same = torch.equal(parallel.unshard(own, cu_seqlens=starts), x)
    facts = {}
    for name, call, of in (("shard", lambda: parallel.shard(x, cu_seqlens=starts), own),
                           ("unshard", lambda: parallel.unshard(own, cu_seqlens=starts), x)):
        if world.args.filter not in name:
            continue
        to, source = torch.empty_like(of), of.clone()
        for key, run, sleep in ((name, call, 0), (f"copy for {name}", lambda: to.copy_(source), SLEEP)):
            run()
            times = [world.timed(run, sleep)[0] for _ in range(world.args.repeats)]
            facts[key] = statistics.median(times), 2 * of.numel() * of.element_size()
    return same, facts


def run_helpers(world):
    try:
        found = world.together(lambda: helpers(world))
    except Failed as failure:
        failed(world, "helpers", failure)
        return
    for name in ("shard", "unshard"):
        if name not in found[0][1]:
            continue
        (ms, size), (copy, _) = (max(facts[key] for _, facts in found) for key in (name, f"copy for {name}"))
        world.emit(name, all(same for same, _ in found), ms=round(ms, 4), copy_ms=round(copy, 4),
                   gbps=round(size / ms / 1e6, 1), copy_gbps=round(size / copy / 1e6, 1), of_copy=round(copy / ms, 3))


# ---- Ahead of cases. ----

def warm(world, chosen):
    """Compiles kernels of one GPU on several threads; plans compile theirs as they are bound."""
    wanted = {}

    def add(mask, is_square, ranks, is_partial):
        problem = Ours.problem(mask, is_square, (HEADS // ranks, KV_HEADS // ranks), DIM)
        for pass_ in (problem, problem.gradient(partial_kv=is_partial)):
            wanted[pass_.text, pass_.name] = pass_
    for case, found in chosen.items():
        mask = case.by_hand
        add(mask, True, 1, False)
        if "all-gather by hand, ours" in found:
            add(mask, False, 1, False)
        if "ring by hand, ours" in found:
            add(mask, True, 1, True), add("full", False, 1, True)
        if "ulysses by hand, ours" in found and HEADS % world.ranks == 0 == KV_HEADS % world.ranks:
            add(mask, True, world.ranks, False)
    begun = time.monotonic()
    start = (torch.cuda.set_device, (world.device,)) if world.on_gpu else (None, ())
    with concurrent.futures.ThreadPoolExecutor(min(16, os.cpu_count() or 1), "warm", *start) as pool:
        list(pool.map(lambda pass_: pass_.warm(), wanted.values()))
    return len(wanted), round(time.monotonic() - begun, 1)


@torch.no_grad()
def fastest_merge(world):
    """merge() compiled by torch, if it is faster so; milliseconds of both on this rank."""
    import torch._dynamo
    torch._dynamo.config.recompile_limit = 64
    compiled = torch.compile(plans_by_hand.merge, dynamic=True)
    out = torch.randn(8192, HEADS, DIM, device=world.device)
    lse, part_lse = (torch.randn(HEADS, 8192, device=world.device) for _ in range(2))
    part, found = out.to(torch.bfloat16), []
    for function in (plans_by_hand.merge, compiled):
        for rows in (4096, 8192):  # a half, too
            for _ in range(2):
                function(out[-rows:], lse[:, -rows:], part[-rows:], part_lse[:, -rows:].contiguous())
        ms = [world.timed(lambda: function(out, lse, part, part_lse))[0] for _ in range(3)]
        found.append(statistics.median(ms))
    return compiled, found


def choose_merge(world):
    made = {}

    def both():
        made["compiled"], ms = fastest_merge(world)
        return ms
    try:
        plain, compiled = (max(ms) for ms in zip(*world.together(both)))
        if compiled < plain:
            world.merge = made["compiled"]
        world.emit("merge by hand", plain_ms=round(plain, 4), compiled_ms=round(compiled, 4),
                   chosen="compiled" if compiled < plain else "plain")
    except Failed as failure:
        world.emit("merge by hand", chosen="plain", compiled=str(failure))


def run(world):
    args, kernels = world.args, {}
    if {"hand", "peers"} & set(args.what):
        for name in args.kernels:
            if name == "ours" or (world.on_gpu or name == "cudnn"):
                try:
                    world.together(lambda: kernels.setdefault(name, KERNELS[name](world)) and None)
                except Failed as failure:
                    kernels.pop(name, None)
                    world.emit(f"kernels of {name}", skipped=str(failure))
    cases = [Case(kind, tokens, world.device) for tokens in args.tokens for kind in args.cases]
    chosen = {case: makers(world, case, kernels) for case in cases}
    chosen = {case: found for case, found in chosen.items()
              if found or "one" in args.what and args.filter in f"{case.name}, one"}
    if chosen:
        try:
            count, s = world.together(lambda: warm(world, chosen))[0]
            world.emit("kernels of one GPU", count=count, s=s)
        except Failed as failure:
            failed(world, "kernels of one GPU", failure)
    groups = {group for found in chosen.values() for group, _ in found.values()}
    if groups & {"hand", "peers"} and world.on_gpu and args.merge == "fastest":
        choose_merge(world)
    for case in cases:
        if case in chosen:
            run_case(world, case, chosen[case])
        if "exposed" in args.what and world.on_gpu:
            exposed(world, case)
        case.x = case.expected = None
        if world.on_gpu:
            torch.cuda.empty_cache()
    if "helpers" in args.what:
        run_helpers(world)
    world.together(world.close)


def work(rank, args, rendezvous):
    if args.device == "cuda":
        torch.cuda.set_device(rank)
    else:
        torch.set_num_threads(1)
    dist.init_process_group("gloo" if args.device == "cpu" else "cpu:gloo,cuda:nccl", rank=rank, world_size=args.ranks,
                            init_method=f"file://{rendezvous}", timeout=datetime.timedelta(seconds=180))
    if rank == 0:
        gpu_report.adopt(args)
        machine = {} if args.device == "cpu" else dict(
            gpu=torch.cuda.get_device_name(), gpus=torch.cuda.device_count(), cudnn=torch.backends.cudnn.version(),
            nccl=".".join(map(str, torch.cuda.nccl.version())), cuda=torch.version.cuda)
        gpu_report.machine(**machine, ranks=args.ranks, torch=torch.__version__, heads=[HEADS, KV_HEADS], dim=DIM,
                           dtype="bf16", repeats=args.repeats)
    if args.device == "cpu":
        args.plans = [(strategy, "gloo") for strategy, transport in args.plans if transport != "nccl"]
    world, begun = World(rank, args), time.monotonic()
    try:
        run(world)
    except Stuck as stuck:
        world.emit("all", False, error=str(stuck))
        sys.stdout.flush()
        os._exit(1)  # collectives that hang cannot be ended otherwise
    world.emit("all", s=round(time.monotonic() - begun, 1))
    dist.barrier()
    dist.destroy_process_group()
    if rank == 0:
        gpu_report.finish()


def some_of(*choices):
    def parse(text):
        wrong = [word for word in text.split(",") if word not in choices]
        if wrong:
            raise argparse.ArgumentTypeError(f"expected some of {', '.join(choices)}, got: {', '.join(wrong)}")
        return text.split(",")
    return parse


def add_options(parser):
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--what", default="one,ours,hand,peers,torch,helpers",
                        type=some_of("one", "ours", "hand", "peers", "torch", "helpers", "exposed"))
    parser.add_argument("--cases", default=",".join(CASES), type=some_of(*CASES))
    parser.add_argument("--kernels", default=",".join(KERNELS), type=some_of(*KERNELS), help="of hand and peers")
    parser.add_argument("--plans", default=PLANS, type=lambda text: [plan.split(":") for plan in text.split(",")],
                        help="strategies and transports of ours and exposed")
    parser.add_argument("--tokens", default="65536", type=lambda text: [int(n) for n in text.split(",")],
                        help="of all sequences, such as 8192,65536")
    parser.add_argument("--filter", default="", help="only what has this in its name, such as `causal 64K, cast`")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--merge", default="fastest", choices=("fastest", "plain"),
                        help="how torch merges by hand: compiled if that is faster, or operation by operation")
    parser.add_argument("--timeout", type=float, default=30.0, help="seconds that a rank waits for another one")
    parser.add_argument("--device", default="cuda", choices=("cuda", "cpu"))


if __name__ == "__main__":
    args = gpu_report.options(__doc__, add_options)
    with tempfile.TemporaryDirectory() as folder:
        torch.multiprocessing.spawn(work, (args, os.path.join(folder, "rendezvous")), nprocs=args.ranks)
