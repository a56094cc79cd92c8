#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Native sparse attention on a GPU, through attnc.torch: results and gradients against float64, equal bits, graphs, and
times beside our own dense causal attention.

  gpu_sparse.py [--out FILE.jsonl] [--commit HASH] [--only checks|times] [--most TOKENS] [--profile]

Prints one JSON line a case; exit status 1 if a check fails. Times are medians of `repeats` calls, in ms."""
import argparse
import datetime
import json
import sys

import attnc
import torch
from attnc.torch import _ops, attention, native_sparse_attention

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--out")
parser.add_argument("--commit", default="")
parser.add_argument("--only", choices=("checks", "times"))
parser.add_argument("--most", type=int, default=1 << 20)
parser.add_argument("--profile", action="store_true")
args = parser.parse_args()
failures = 0
OPTIONS = dict(length=64, stride=64, block=64, count=16, first=1, local=2, window=512, rows=64)
PAPER = dict(OPTIONS, length=32, stride=16)


def emit(**line):
    text = json.dumps(line)
    print(text, flush=True)
    if args.out:
        with open(args.out, "a", encoding="utf-8") as file:
            file.write(text + "\n")


def inputs(tokens, heads, kv_heads, dim, lead=()):
    made = lambda h: torch.randn(*lead, tokens, h, dim, device="cuda", dtype=torch.bfloat16)
    q, k, v, do = made(heads), made(kv_heads), made(kv_heads), made(heads)
    return q, k, v, torch.randn(*lead, tokens, heads, 3, device="cuda"), do


# ---- against float64 ----

def branch(q, k, v, visible):
    """Attention in float64 of one sequence; visible [heads or 1, rows, keys]."""
    group = q.shape[1] // k.shape[1]
    s = torch.einsum("qhd,khd->hqk", q, k.repeat_interleave(group, 1)) / q.shape[-1]**0.5
    none = ~visible.any(-1, keepdim=True)
    p = torch.softmax(s.masked_fill(~visible & ~none, float("-inf")), -1).masked_fill(none, 0)
    return torch.einsum("hqk,khd->qhd", p, v.repeat_interleave(group, 1))


def rounded(x):
    """x with the value of its bfloat16."""
    return x + (x.to(torch.bfloat16).double() - x).detach()


def reference(q, k, v, gates, do, offsets, lists, o):
    """o and gradients with these lists, in float64."""
    q, k, v, gates = leaves = [x.double().requires_grad_() for x in (q, k, v, gates)]
    parts = []
    for number, (a, b) in enumerate(zip(offsets[:-1], offsets[1:])):
        n = b - a
        if n == 0:
            continue
        qs, ks, vs, g = q[a:b], k[a:b], v[a:b], torch.sigmoid(gates[a:b])
        t = torch.arange(n, device="cuda")
        windows = 0 if n < o["length"] else (n - o["length"]) // o["stride"] + 1
        compressed = torch.zeros_like(qs)
        if windows:
            means = [rounded(torch.stack([x[i * o["stride"]:i * o["stride"] + o["length"]].mean(0)
                                          for i in range(windows)])) for x in (ks, vs)]
            ends = torch.arange(windows, device="cuda") * o["stride"] + o["length"] - 1
            compressed = branch(qs, *means, (ends[None] <= t[:, None])[None])
        blocks = -(-n // o["block"])
        first = a // o["rows"] + number
        lines = lists[:, first:first - (-n // o["rows"])].long()
        chosen = torch.zeros(lines.shape[0], lines.shape[1], blocks + 1, dtype=torch.bool, device="cuda")
        chosen.scatter_(2, torch.where(lines < 0, blocks, lines), True)
        seen = chosen[..., :blocks].repeat_interleave(o["rows"], 1)[:, :n].repeat_interleave(o["block"], 2)[..., :n]
        selected = branch(qs, ks, vs, (seen & (t[None] <= t[:, None])).repeat_interleave(q.shape[1] // k.shape[1], 0))
        window = branch(qs, ks, vs, ((t[None] <= t[:, None]) & (t[None] > t[:, None] - o["window"]))[None])
        parts.append(g[..., 0:1] * compressed + g[..., 1:2] * selected + g[..., 2:3] * window)
    result = torch.cat(parts)
    return result, *torch.autograd.grad(result, leaves, do.double())


def check(name, lengths, heads, kv_heads, dim, **options):
    global failures
    o, offsets = {**OPTIONS, **options}, [0]
    for length in lengths:
        offsets.append(offsets[-1] + length)
    cu = torch.tensor(offsets, dtype=torch.int32, device="cuda")
    q, k, v, gates, do = inputs(offsets[-1], heads, kv_heads, dim)
    leaves = [x.clone().requires_grad_() for x in (q, k, v, gates)]
    call = lambda: native_sparse_attention(*leaves, layout="thd", cu_seqlens=cu, deterministic=True, **o)
    found = call()
    grads = torch.autograd.grad(found, leaves, do)
    again = call()
    same = all(torch.equal(x, y) for x, y in zip((found, *grads), (again, *torch.autograd.grad(again, leaves, do))))
    program = attnc.NativeSparseAttention(heads=(heads, kv_heads), dims=dim, layout="thd", saves=True, **o)
    names = [t["name"] for t in _ops.signature(program.text, "nsa").results]
    lists = dict(zip(names, _ops.run([q, k, v, gates, cu], program.text, "nsa")))["lists"]
    expected = reference(q, k, v, gates, do, offsets, lists, o)
    errors = {n: round(float((x.double() - y).abs().max() / y.abs().max()), 5)
              for n, x, y in zip(("o", "dq", "dk", "dv", "dgates"), (found, *grads), expected)}
    ok = same and max(errors.values()) < 0.02
    failures += not ok
    emit(check=name, ok=ok, lengths=lengths, heads=[heads, kv_heads], dim=dim, same_bits=same, relative_errors=errors,
         **options)


def check_causal():
    """Rows before t are the same bits whatever follows; with NaN they are the same numbers, because rows of a tile that
    has a NaN are computed once more, one by one."""
    global failures
    q, k, v, gates, _ = inputs(640, 8, 2, 64)
    cu = torch.tensor([0, 640], dtype=torch.int32, device="cuda")
    for rows in (1, 16, 64):
        call = lambda *x: native_sparse_attention(*x, layout="thd", cu_seqlens=cu, **dict(PAPER, count=4, rows=rows))
        whole = call(q, k, v, gates)
        for t in (1, 15, 16, 31, 32, 63, 64, 65, 300, 639):
            for fill in (float("nan"), 7.0):
                others = [x.clone() for x in (q, k, v, gates)]
                for x in others:
                    x[t:] = fill
                found = call(*others)[:t]
                ok = torch.equal(found, whole[:t]) if fill == fill else torch.allclose(found, whole[:t], 0, 0.02)
                failures += not ok
                if not ok:
                    emit(check="causal", ok=False, rows=rows, t=t, fill=str(fill))
    emit(check="causal", ok=True, cases=60)


def check_packed():
    """A sequence of a packed batch has the bits that it has alone."""
    global failures
    lengths = [0, 1, 31, 32, 64, 700, 4097]
    q, k, v, gates, _ = inputs(sum(lengths), 8, 2, 64)
    options = dict(PAPER, count=6)
    offsets = [0]
    for n in lengths:
        offsets.append(offsets[-1] + n)
    of = lambda a, b: native_sparse_attention(
        *(x[a:b] for x in (q, k, v, gates)), layout="thd",
        cu_seqlens=torch.tensor([0, b - a], dtype=torch.int32, device="cuda"), **options)
    whole = native_sparse_attention(q, k, v, gates, layout="thd", **options,
                                    cu_seqlens=torch.tensor(offsets, dtype=torch.int32, device="cuda"))
    ok = all(torch.equal(whole[a:b], of(a, b)) for a, b in zip(offsets[:-1], offsets[1:]) if b > a)
    failures += not ok
    emit(check="packed equals alone", ok=ok, lengths=lengths)


def check_graph():
    """One graph of both passes, replayed with other inputs and lengths."""
    global failures
    q, k, v, gates, do = inputs(2000, 8, 2, 64)
    leaves = [x.requires_grad_() for x in (q, k, v, gates)]
    cu = torch.tensor([0, 600, 600, 1400, 2000], dtype=torch.int32, device="cuda")

    def both():
        o = native_sparse_attention(*leaves, layout="thd", cu_seqlens=cu, deterministic=True, **dict(PAPER, count=6))
        return o, *torch.autograd.grad(o, leaves, do)

    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        both()
    torch.cuda.current_stream().wait_stream(stream)
    graph, compiled = torch.cuda.CUDAGraph(), attnc.compile_count()
    with torch.cuda.graph(graph):
        captured = both()
    ok = True
    for replay in range(10):
        with torch.no_grad():
            for x in (*leaves, do):
                x.normal_()
            cu.copy_(torch.tensor([0, *sorted(torch.randint(0, 2001, (3,)).tolist()), 2000], dtype=torch.int32))
        graph.replay()
        got = [x.clone() for x in captured]
        ok = ok and all(torch.equal(x, y) for x, y in zip(got, both()))
    ok = ok and attnc.compile_count() == compiled
    failures += not ok
    emit(check="graph of both passes, 10 replays with other lengths", ok=ok)


def check_long(tokens, heads, kv_heads, dim, **options):
    """Some rows of a long sequence, whose tensors have more than 2^31 elements, against float64 with its own lists."""
    global failures
    o = {**OPTIONS, **options}
    q, k, v, gates, _ = inputs(tokens, heads, kv_heads, dim, lead=(1,))
    program = attnc.NativeSparseAttention(heads=(heads, kv_heads), dims=dim, saves=True, **o)
    names = [t["name"] for t in _ops.signature(program.text, "nsa").results]
    saved = dict(zip(names, _ops.run([q, k, v, gates], program.text, "nsa")))

    def attend(row, keys, values):
        if not len(keys):
            return torch.zeros(dim, device="cuda", dtype=torch.float64)
        return torch.softmax(keys.double() @ row / dim**0.5, 0) @ values.double()

    worst, within = 0, torch.arange(o["block"], device="cuda")
    for t in [0, o["length"] - 1, o["length"], o["window"], tokens // 2 + 17, tokens - 1] + torch.randint(
            0, tokens, (12,)).tolist():
        for h in (0, heads - 1, t * 7 % heads):
            row, kv = q[0, t, h].double(), h * kv_heads // heads
            windows = 0 if t + 1 < o["length"] else (t + 1 - o["length"]) // o["stride"] + 1
            blocks = saved["lists"][0, kv, t // o["rows"]].long()
            seen = (blocks[blocks >= 0, None] * o["block"] + within).flatten()
            seen = seen[seen <= t]
            first = max(0, t + 1 - o["window"])
            branches = [attend(row, saved["compressed_k"][0, :windows, kv], saved["compressed_v"][0, :windows, kv]),
                        attend(row, k[0, seen, kv], v[0, seen, kv]),
                        attend(row, k[0, first:t + 1, kv], v[0, first:t + 1, kv])]
            wanted = sum(g * b for g, b in zip(torch.sigmoid(gates[0, t, h].double()), branches))
            worst = max(worst, float((saved["o"][0, t, h].double() - wanted).abs().max()))
    for i in torch.randint(0, saved["compressed_k"].shape[1], (50,)).tolist():
        mean = k[0, i * o["stride"]:i * o["stride"] + o["length"]].float().mean(0)
        worst = max(worst, float((saved["compressed_k"][0, i] - mean).abs().max()))
    failures += worst > 0.02
    emit(check="rows of a long sequence", ok=worst <= 0.02, tokens=tokens, heads=[heads, kv_heads], largest_error=worst,
         **options)


# ---- times ----

def median_ms(call, repeats):
    call()
    times = []
    for _ in range(repeats):
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        call()
        end.record()
        torch.cuda.synchronize()
        times.append(start.elapsed_time(end))
    return round(sorted(times)[len(times) // 2], 3)


def captured(call):
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        call()
    return graph.replay


def time_case(name, tokens, heads, kv_heads, dim, dense=True, backward=True, recompute=False, **options):
    o = {**OPTIONS, **options}
    repeats = 9 if tokens <= 65536 else 3
    q, k, v, gates, do = inputs(tokens, heads, kv_heads, dim, lead=(1,))
    plain = (q, k, v, gates)
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    line = dict(time=name, tokens=tokens, heads=[heads, kv_heads], dim=dim, **options)
    forward = lambda: native_sparse_attention(*plain, **o)
    line["forward_ms"] = median_ms(forward, repeats)
    if tokens <= 65536:
        line["forward_graph_ms"] = median_ms(captured(forward), repeats)
    line["forward_peak_gb"] = round(torch.cuda.max_memory_allocated() / 1e9, 2)
    leaves = [x.detach().requires_grad_() for x in plain]

    def both():
        return torch.autograd.grad(native_sparse_attention(*leaves, recompute=recompute, **o), leaves, do)

    if backward:
        line["recompute"] = recompute
        torch.cuda.reset_peak_memory_stats()
        line["both_ms"] = median_ms(both, repeats)
        line["both_peak_gb"] = round(torch.cuda.max_memory_allocated() / 1e9, 2)
        if tokens <= 65536:
            line["both_graph_ms"] = median_ms(captured(both), repeats)
    if dense:
        causal = attnc.causal()
        line["dense_forward_ms"] = median_ms(lambda: attention(q, k, v, mask=causal), repeats)
        line["dense_both_ms"] = median_ms(
            lambda: torch.autograd.grad(attention(*leaves[:3], mask=causal), leaves[:3], do), repeats)
    emit(**line)
    if args.profile:
        from torch.profiler import ProfilerActivity, profile
        with profile(activities=[ProfilerActivity.CUDA]) as profiler:
            (both if backward else forward)()
            torch.cuda.synchronize()
        events = sorted(profiler.key_averages(), key=lambda e: -e.device_time_total)
        emit(profile=name, tokens=tokens, kernels_ms={e.key[:48]: round(e.device_time_total / 1000, 3)
                                                      for e in events[:26]})


def main():
    torch.manual_seed(0)
    emit(machine=torch.cuda.get_device_name(), torch=torch.__version__, date=str(datetime.date.today()),
         commit=args.commit, options=OPTIONS)
    if args.only != "times":
        check("lengths", [300, 0, 5, 63, 64, 1000], 8, 2, 64, count=4)
        check("seed shape", [700, 129], 32, 8, 128)
        check("paper shape", [333, 640], 64, 4, 128, length=32, stride=16)
        check("rows that share no list", [200, 77], 6, 2, 64, length=32, stride=16, count=4, rows=1)
        check("one group of 20", [257, 300], 20, 1, 64, length=32, stride=16, count=5, rows=16)
        check("no groups", [257, 300], 4, 4, 96, length=16, stride=8, block=32, count=5, rows=32)
        check_causal()
        check_packed()
        check_graph()
        check_long(1 << 20, 32, 8, 128)
        check_long(3 << 19, 16, 4, 128, length=32, stride=16)
        torch.cuda.empty_cache()
    if args.only != "checks":
        for tokens in (4096, 8192, 16384, 32768, 65536, 131072, 262144, 524288, 1 << 20):
            if tokens <= args.most:
                time_case("seed shape", tokens, 32, 8, 128, dense=tokens <= 131072)
                torch.cuda.empty_cache()
        if args.most >= 1 << 20:
            time_case("seed shape", 1 << 21, 32, 8, 128, dense=False, recompute=True)
            torch.cuda.empty_cache()
        for rows in (64, 1):
            time_case(f"paper shape, rows {rows}", 65536, 64, 4, 128, dense=rows == 64, length=32, stride=16, rows=rows)
        time_case("seed shape, rows 1", 65536, 32, 8, 128, dense=False, rows=1)
    return failures > 0


sys.exit(main())
