#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Attention over lists of selected blocks on a GPU: attnc.torch beside Triton kernels of others, on the same lists.

  gpu_sparse_peers.py --peers DIR [--out FILE.jsonl] [--commit HASH] [--only checks|times] [--without NAME]...

DIR holds packages of others, which are not part of this repository (whole, they need einops; these files do not):
  fsa     fsa/ops/FSA_topk_sparse_attention.py and nsa_ref/ops/{topk_sparse_attention,utils}.py of
          github.com/Relaxed-System-Lab/Flash-Sparse-Attention; Triton 3.6 refuses its tuple
          `lse_ptrs = (lse_ptr + ...,)` in reduce_kernel: take the comma and the parentheses away
  xunhao  native_sparse_attention/ops/triton/{topk_sparse_attention,utils}.py of
          github.com/XunhaoLai/native-sparse-attention-triton
and, if there, a file COMMITS, which is printed.

Lists name blocks of 64 keys: block 0, the own, the previous one, and others at random, apart in each row or alike in
neighbours, for each query (rows = 1) or shared by 64; those of others are for each query.
Prints one JSON line a case; exit status 1 if a check of ours fails. A library that raises, needs more than 60 s at
first, or is wrong is named so. Times are medians of interleaved calls, in ms, of each pass alone (those of others
include their reads by the host, ours in CUDA graphs are given besides); memory is what calls allocate beside inputs.
"""
import argparse
import datetime
import faulthandler
import importlib
import json
import os
import random
import signal
import sys
import time

import attnc
import torch
from attnc.torch import attention

KEYS, DIM, TOKENS, SHAPES = 64, 128, 65536, ((64, 4), (32, 8), (16, 16))
ENOUGH, LIMIT = 190, 225  # seconds after which no case begins, and the script ends
PEERS = {"fsa": ("fsa.ops.FSA_topk_sparse_attention", "FSA_topk_sparse_attention"),
         "xunhao": ("native_sparse_attention.ops.triton.topk_sparse_attention", "topk_sparse_attention")}

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--peers", required=True)
parser.add_argument("--out")
parser.add_argument("--commit", default="")
parser.add_argument("--only", choices=("checks", "times"))
parser.add_argument("--without", action="append", default=[])
parser.add_argument("--first", type=int, default=0, help="the first case")
parser.add_argument("--began", type=float, default=time.time())
parser.add_argument("--failures", type=int, default=0)
args = parser.parse_args()
failures = args.failures
reached = args.first
skipped = {name: "--without" for name in args.without}


def emit(**line):
    text = json.dumps(line)
    print(text, flush=True)
    if args.out:
        with open(args.out, "a", encoding="utf-8") as file:
            file.write(text + "\n")


# ---- lists: [heads, lines, count], blocks in ascending order, then -1 ----

def with_forced(free, own):
    forced = torch.stack([torch.zeros_like(own), torch.where(own > 0, own, -1), torch.where(own > 1, own - 1, -1)], -1)
    lists = torch.cat([free, forced.expand(len(free), -1, -1)], -1)
    lists = torch.where(lists < 0, 1 << 30, lists).sort(-1).values
    return torch.where(lists == 1 << 30, -1, lists).int().contiguous()


def random_lists(heads, tokens, count, rows):
    own = torch.arange(0, tokens, rows, device="cuda") // KEYS
    blocks = torch.arange(-(-tokens // KEYS), device="cuda")
    others = (blocks >= 1) & (blocks <= own[:, None] - 2)
    free = []
    for _ in range(heads):
        best = torch.where(others, torch.rand(others.shape, device="cuda"), -1.0).topk(count - 3)
        free.append(torch.where(best.values < 0, -1, best.indices))
    return with_forced(torch.stack(free), own)


def alike_lists(heads, tokens, count, kept=0.947):
    """Lists of single rows, of whose entries `kept` are those of the row before; the forced ones always are."""
    free, dice = count - 3, random.Random(0)
    table = torch.full((heads, tokens, free), -2)  # -2: as in the row before
    table[:, 0] = -1
    for i in range(free):  # while there is no choice
        table[:, KEYS * (i + 3):KEYS * (i + 3) + 1, i] = i + 1
    changes = torch.rand(table.shape) < 1 - (kept * count - 3) / free
    changes[:, :KEYS * count] = False
    for h in range(heads):
        chosen, found = list(range(1, free + 1)), []
        places = changes[h].nonzero()
        for t, i in places.tolist():
            block = chosen[i]
            while block in chosen:
                block = 1 + int(dice.random() * (t // KEYS - 2))
            chosen[i] = block
            found.append(block)
        table[h, places[:, 0], places[:, 1]] = torch.tensor(found, dtype=table.dtype)
    t = torch.arange(tokens)
    last = torch.where(table != -2, t[None, :, None], 0).cummax(1).values
    return with_forced(table.gather(1, last).cuda(), (t // KEYS).cuda())


def likeness(lists):
    """The mean Jaccard index of neighbouring rows, from where on there is a choice."""
    found = []
    for a, b in zip(lists[:, KEYS * lists.shape[-1]:-1], lists[:, KEYS * lists.shape[-1] + 1:]):
        shared = ((a[:, :, None] == b[:, None]) & (a >= 0)[:, :, None]).sum((1, 2))
        found.append(shared / ((a >= 0).sum(1) + (b >= 0).sum(1) - shared))
    return round(float(torch.cat(found).mean()), 3)


def pairs(lists):
    """How many keys all rows of one query head of each group see."""
    t = torch.arange(lists.shape[1], device=lists.device)
    return int((lists >= 0).sum()) * KEYS - int((KEYS - 1 - t % KEYS).sum()) * len(lists)


# ---- libraries: functions of q, k, v [tokens, heads, dim] ----

def libraries(lists, rows):
    tokens = lists.shape[1] * rows
    each = lists.repeat_interleave(rows, 1).contiguous()
    cu = torch.tensor([0, tokens], dtype=torch.int32, device="cuda")
    mask, arrays = attnc.block_list("lists", rows=rows, keys=KEYS) & attnc.causal(), {"lists": lists[None]}
    found = {"attnc": lambda q, k, v: attention(q[None], k[None], v[None], mask=mask,
                                                  arrays=arrays).squeeze(0)}
    for name, (module, function) in PEERS.items():
        if name not in skipped:
            try:
                call = getattr(importlib.import_module(module), function)
            except Exception as error:
                skipped[name] = short(error)
            else:
                found[name] = lambda q, k, v, call=call: call(q, k, v, each, KEYS, cu)
    return found, each


def short(error):
    lines = str(error).strip().splitlines() or [""]
    return f"{type(error).__name__}: " + " ... ".join(line[:150] for line in dict.fromkeys((lines[0], lines[-1])))


def late(*_):
    raise TimeoutError("takes too long")


def attempt(name, call):
    """What a call returns, and why there is nothing. A library behind which the GPU does not answer is left out: the
    script begins again at this case."""
    signal.signal(signal.SIGALRM, late)
    signal.alarm(120 if name == "attnc" else 60)
    try:
        result = call()
        torch.cuda.synchronize()
        return result, None
    except Exception as error:
        reason = short(error)
    finally:
        signal.alarm(0)
    try:
        torch.cuda.synchronize()
    except Exception as error:
        emit(lost=name, case=reached, reason=reason, then=short(error))
        if name == "attnc":
            sys.exit(1)
        os.execv(sys.executable, [sys.executable, *sys.argv, "--without", name, "--first", str(reached), "--began",
                                  str(args.began), "--failures", str(failures)])
    torch.cuda.empty_cache()
    return None, reason


def inputs(tokens, heads, kv_heads):
    return [torch.randn(tokens, h, DIM, device="cuda", dtype=torch.bfloat16)
            for h in (heads, kv_heads, kv_heads, heads)]


def both(call, q, k, v, do):
    leaves = [x.detach().requires_grad_() for x in (q, k, v)]
    o = call(*leaves)
    return leaves, o, torch.autograd.grad(o, leaves, do, retain_graph=True)


def relative(x, y):
    x, y = x.detach().double(), y.detach().double()
    return round(float((x - y).abs().max() / y.abs().max()), 5)


# ---- against float64 ----

def reference(q, k, v, do, each):
    """o and gradients in float64."""
    leaves = [x.double().requires_grad_() for x in (q, k, v)]
    group, t = q.shape[1] // k.shape[1], torch.arange(len(q), device="cuda")
    blocks = -(-len(q) // KEYS)
    chosen = torch.zeros(*each.shape[:2], blocks + 1, dtype=torch.bool, device="cuda")
    chosen.scatter_(2, torch.where(each < 0, blocks, each).long(), True)
    seen = chosen[..., :blocks].repeat_interleave(KEYS, 2)[..., :len(q)] & (t <= t[:, None])
    wide = [leaves[0], *(x.repeat_interleave(group, 1) for x in leaves[1:])]
    s = torch.einsum("qhd,khd->hqk", *wide[:2]) / DIM**0.5
    p = torch.softmax(s.masked_fill(~seen.repeat_interleave(group, 0), float("-inf")), -1)
    o = torch.einsum("hqk,khd->qhd", p, wide[2])
    return o, *torch.autograd.grad(o, leaves, do.double())


def check(heads, kv_heads, rows, count, tokens):
    global failures
    q, k, v, do = inputs(tokens, heads, kv_heads)
    calls, each = libraries(random_lists(kv_heads, tokens, count, rows), rows)
    expected, found, verdicts = reference(q, k, v, do, each), {}, dict(skipped)
    for name, call in calls.items():
        result, reason = attempt(name, lambda: both(call, q, k, v, do))
        if reason:
            verdicts[name] = reason
            continue
        found[name] = {what: relative(x, y) for what, x, y in zip(("o", "dq", "dk", "dv"), (result[1], *result[2]),
                                                                  expected)}
        verdicts[name] = "right" if all(error < 0.02 for error in found[name].values()) else "wrong"
    failures += verdicts["attnc"] != "right"
    emit(check="against float64", ok=verdicts["attnc"] == "right", tokens=tokens, heads=[heads, kv_heads], dim=DIM,
         rows=rows, count=count, verdicts=verdicts, relative_errors=found)


def check_rows(q, k, v, o, each):
    """The largest error of some rows of o."""
    worst, within = 0.0, torch.arange(KEYS, device="cuda")
    for t in [0, KEYS - 1, KEYS, len(q) // 2 + 17, len(q) - 1] + torch.randint(0, len(q), (11,)).tolist():
        for h in (0, q.shape[1] - 1, t * 7 % q.shape[1]):
            kv = h * k.shape[1] // q.shape[1]
            blocks = each[kv, t].long()
            keys = (blocks[blocks >= 0, None] * KEYS + within).flatten()
            keys = keys[keys <= t]
            p = torch.softmax(k[keys, kv].double() @ q[t, h].double() / DIM**0.5, 0)
            error = float((o[t, h].double() - p @ v[keys, kv].double()).abs().max())
            worst = error if not error <= worst else worst  # NaN too
    return round(worst, 5)


# ---- times ----

def medians_ms(calls, rounds=7):
    times = {name: [] for name in calls}
    for _ in range(rounds):
        for name, call in calls.items():
            start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            start.record()
            call()
            end.record()
            torch.cuda.synchronize()
            times[name].append(start.elapsed_time(end))
    return {name: round(sorted(t)[len(t) // 2], 3) for name, t in times.items()}


def captured(call):
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        call()
    return graph.replay


def peak_gb(call):
    """What a call returns, and the GB that it allocates at most."""
    torch.cuda.synchronize()
    before = torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    result = call()
    torch.cuda.synchronize()
    return result, round((torch.cuda.max_memory_allocated() - before) / 1e9, 2)


@torch.no_grad()
def without_gradients(call, *x):
    return call(*x)


def time_case(name, lists, rows, heads, kv_heads):
    global failures
    q, k, v, do = inputs(TOKENS, heads, kv_heads)
    calls, each = libraries(lists, rows)
    seen, lines, forward, backward, ours = pairs(each) * heads // kv_heads, {}, {}, {}, None
    for library, call in calls.items():
        def first(call=call):
            call_forward = lambda: without_gradients(call, q, k, v)
            o, gb = peak_gb(call_forward)
            line = dict(forward_gb=gb, largest_error_of_rows=check_rows(q, k, v, o, each))
            del o
            (leaves, o, grads), line["both_gb"] = peak_gb(lambda: both(call, q, k, v, do))
            call_backward = lambda: torch.autograd.grad(o, leaves, do, retain_graph=True)
            call_backward()
            return line, call_forward, call_backward, (o.detach(), *grads)
        result, reason = attempt(library, first)
        if reason:
            lines[library] = dict(skipped=reason)
            continue
        lines[library], forward[library], backward[library], found = result
        if library == "attnc":
            ours = found
        elif ours:
            lines[library]["differs_from_ours"] = {what: relative(x, y) for what, x, y in zip(("o", "dq", "dk", "dv"),
                                                                                              found, ours)}
        del result, found
    ours = None
    for what, ms, flops in (("forward", medians_ms(forward), 4), ("backward", medians_ms(backward), 10)):
        for library, value in ms.items():
            lines[library][f"{what}_ms"] = value
            lines[library][f"{what}_tflops"] = round(flops * DIM * seen / value / 1e9)
    backward.clear()
    if "attnc" in forward:
        def graphs():
            replays = dict(forward_graph_ms=captured(forward["attnc"]),
                           both_graph_ms=captured(lambda: both(calls["attnc"], q, k, v, do)))
            return medians_ms(replays)
        result, reason = attempt("attnc", graphs)
        lines["attnc"].update(result or dict(graph=reason))
    ok = lines["attnc"].get("largest_error_of_rows", float("nan")) < 0.02
    failures += not ok
    emit(time=name, ok=ok, tokens=TOKENS, heads=[heads, kv_heads], dim=DIM, rows=rows, count=lists.shape[-1],
         jaccard=likeness(each), libraries={**lines, **{name: dict(skipped=why) for name, why in skipped.items()}})


def main():
    global failures, reached
    faulthandler.dump_traceback_later(max(1, LIMIT - (time.time() - args.began)), exit=True)
    sys.path.insert(0, args.peers)
    torch.manual_seed(0)
    if not args.first:
        about, commits = {}, os.path.join(args.peers, "COMMITS")
        if os.path.exists(commits):
            with open(commits, encoding="utf-8") as file:
                about["peers"] = file.read().splitlines()
        try:
            about["triton"] = importlib.import_module("triton").__version__
        except ImportError:
            pass
        emit(machine=torch.cuda.get_device_name(), torch=torch.__version__, date=str(datetime.date.today()),
             commit=args.commit, **about)
    cases = []
    if args.only != "times":
        # of 1K tokens 16 blocks would be all
        cases += [(check, heads, kv_heads, rows, 8, 1024) for heads, kv_heads in SHAPES for rows in (1, 64)]
        cases += [(check, 32, 8, 1, 16, 2048)]
    if args.only != "checks":
        made = []

        def alike(kv_heads):
            if not made:
                made.append(alike_lists(16, TOKENS, 16))
            return made[0][:kv_heads].contiguous()

        for heads, kv_heads in SHAPES:
            for name, rows, lists in (("random lists", 1, lambda n=kv_heads: random_lists(n, TOKENS, 16, 1)),
                                      ("alike lists", 1, lambda n=kv_heads: alike(n)),
                                      ("random lists", 64, lambda n=kv_heads: random_lists(n, TOKENS, 16, 64))):
                cases.append((time_case, name, lists, rows, heads, kv_heads))
    for number, (function, *rest) in enumerate(cases):
        if number < args.first:
            continue
        reached = number
        label = dict(case=number, of=function.__name__, parameters=[x for x in rest if not callable(x)])
        if time.time() - args.began > ENOUGH:
            emit(**label, skipped=f"began later than {ENOUGH} s")
            continue
        try:
            function(*(x() if callable(x) else x for x in rest))
        except Exception as error:
            failures += 1
            emit(**label, ok=False, raised=short(error))
        torch.cuda.empty_cache()
    emit(cases=len(cases), failures=failures, seconds=round(time.time() - args.began, 1))
    return failures > 0


sys.exit(main())
