#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sparse attention on a GPU, through attnc.torch: lists, results and gradients against float64, equal bits, graphs, and
times beside our own dense causal attention.

  gpu_sparse.py [--out FILE.jsonl] [--commit HASH] [--only checks|times] [--programs nsa|selected] [--most TOKENS]
                [--profile]

--programs: only native sparse attention, or only MoBA and attention to blocks by their largest score.

Prints one JSON line a case; exit status 1 if a check fails. Times are medians of `repeats` calls, in ms."""
import argparse
import datetime
import json
import sys

import attnc
import torch
from attnc.torch import _ops, attention, block_max_attention, moba_attention, native_sparse_attention

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--out")
parser.add_argument("--commit", default="")
parser.add_argument("--only", choices=("checks", "times"))
parser.add_argument("--programs", choices=("nsa", "selected"))
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


def chosen_of(lists, number, start, tokens, o):
    """Which blocks are on the lists of a packed sequence: bool [heads of lists, tiles, blocks]."""
    blocks, first = -(-tokens // o["block"]), start // o["rows"] + number
    lines = lists[:, first:first - (-tokens // o["rows"])].long()
    chosen = torch.zeros(lines.shape[0], lines.shape[1], blocks + 1, dtype=torch.bool, device="cuda")
    chosen.scatter_(2, torch.where(lines < 0, blocks, lines), True)
    return chosen[..., :blocks]


def seen_of(chosen, tokens, heads, o):
    """Which keys each query of a sequence sees by these blocks: bool [heads, tokens, tokens]."""
    seen = chosen.repeat_interleave(o["rows"], 1)[:, :tokens].repeat_interleave(o["block"], 2)[..., :tokens]
    t = torch.arange(tokens, device="cuda")
    return (seen & (t[None] <= t[:, None])).repeat_interleave(heads // seen.shape[0], 0)


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
        selected = branch(qs, ks, vs, seen_of(chosen_of(lists, number, a, n, o), n, q.shape[1], o))
        window = branch(qs, ks, vs, ((t[None] <= t[:, None]) & (t[None] > t[:, None] - o["window"]))[None])
        parts.append(g[..., 0:1] * compressed + g[..., 1:2] * selected + g[..., 2:3] * window)
    result = torch.cat(parts)
    return result, *torch.autograd.grad(result, leaves, do.double())


def check(name, lengths, heads, kv_heads, dim, dense=False, **options):
    """dense: the one sequence as a batch, whose long loops over queries several CTAs share."""
    global failures
    o, offsets = {**OPTIONS, **options}, [0]
    for length in lengths:
        offsets.append(offsets[-1] + length)
    cu = torch.tensor(offsets, dtype=torch.int32, device="cuda")
    q, k, v, gates, do = inputs(offsets[-1], heads, kv_heads, dim)
    leaves = [x.clone().requires_grad_() for x in (q, k, v, gates)]
    if dense:
        call = lambda: native_sparse_attention(*(x[None] for x in leaves), deterministic=True, **o)[0]
    else:
        call = lambda: native_sparse_attention(*leaves, layout="thd", cu_seqlens=cu, deterministic=True, **o)
    found = call()
    grads = torch.autograd.grad(found, leaves, do)
    again = call()
    same = all(torch.equal(x, y) for x, y in zip((found, *grads), (again, *torch.autograd.grad(again, leaves, do))))
    program = attnc.NativeSparseAttention(heads=(heads, kv_heads), dims=dim, layout="bshd" if dense else "thd",
                                          saves=True, **o)
    names = [t["name"] for t in _ops.signature(program.text, "nsa").results]
    given = [x[None] for x in (q, k, v, gates)] if dense else [q, k, v, gates, cu]
    lists = dict(zip(names, _ops.run(given, program.text, "nsa")))["lists"]
    lists = lists[0] if dense else lists
    expected = reference(q, k, v, gates, do, offsets, lists, o)
    errors = {n: round(float((x.double() - y).abs().max() / y.abs().max()), 5)
              for n, x, y in zip(("o", "dq", "dk", "dv", "dgates"), (found, *grads), expected)}
    ok = same and max(errors.values()) < 0.02
    failures += not ok
    emit(check=name, ok=ok, lengths=lengths, heads=[heads, kv_heads], dim=dim, dense=dense, same_bits=same,
         relative_errors=errors, **options)


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


# ---- attention to selected blocks alone ----

SELECTED = {"moba": (attnc.MobaAttention, moba_attention), "block_max": (attnc.BlockMaxAttention, block_max_attention)}


def selected_inputs(name, tokens, heads, kv_heads, dim, lead=(), index_dim=128):
    """q, k, v, do, and the index operands of the program."""
    q, k, v, _, do = inputs(tokens, heads, kv_heads, dim, lead)
    made = lambda h: torch.randn(*lead, tokens, h, index_dim, device="cuda", dtype=torch.bfloat16)
    return (q, k, v), do, [made(kv_heads), made(1)] if name == "block_max" else []


def ranks(name, q, k, index, o):
    """What the tiles of one sequence rank each block by, in float64: [heads of lists, tiles, whole blocks]."""
    first, block = slice(0, None, o["rows"]), o["block"]
    whole = len(q) // block * block
    if name == "moba":
        means = k[:whole].float().unflatten(0, (-1, block)).mean(1).to(torch.bfloat16).double()
        return torch.einsum("thd,jhd->htj", q[first].double(), means.repeat_interleave(q.shape[1] // k.shape[1], 1))
    index_q, index_k = (x.double() for x in index)
    s = torch.einsum("thd,shd->hts", index_q[first], index_k[:whole].expand(-1, index_q.shape[1], -1))
    return s.unflatten(2, (-1, block)).amax(3)


def wrong_lists(chosen, rank, tokens, o, near=2e-3):
    """How many lists of one sequence are not by these ranks; blocks whose ranks differ by less may be exchanged."""
    block, tiles, blocks = o["block"], chosen.shape[1], chosen.shape[2]
    at, j = torch.arange(tiles, device="cuda") * o["rows"], torch.arange(blocks, device="cuda")
    own, last = (at // block)[:, None], ((at + o["rows"]).clamp(max=tokens) - 1)[:, None] // block
    before = (j[None] < own)[None]
    rank = torch.nn.functional.pad(rank, (0, blocks - rank.shape[2])).masked_fill(~before, float("-inf"))
    free = torch.minimum(own[:, 0], torch.tensor(o["count"] - 1, device="cuda"))
    ordered = rank.sort(2, descending=True).values
    least = ordered.gather(2, (free - 1).clamp(min=0)[None, :, None].expand(rank.shape[0], -1, 1))
    wrong = (chosen & before).sum(2) != free[None]
    wrong |= (chosen & before & (rank < least - near)).any(2)
    wrong |= (~chosen & before & (rank > least + near)).any(2) & (free > 0)
    wrong |= ((chosen != (j[None] >= own) & (j[None] <= last)) & ~before).any(2)
    return int(wrong.sum())


def check_selected(name, lengths, heads, kv_heads, dim, **options):
    """Lists, results and gradients of packed sequences; one of them has its bits alone, and rows before t theirs."""
    global failures
    kind, call = SELECTED[name]
    o, offsets = dict(dict(block=64, count=4, rows=64), **options), [0]
    for length in lengths:
        offsets.append(offsets[-1] + length)
    cu = torch.tensor(offsets, dtype=torch.int32, device="cuda")
    (q, k, v), do, index = selected_inputs(name, offsets[-1], heads, kv_heads, dim)
    leaves = [x.clone().requires_grad_() for x in (q, k, v)]
    run = lambda: call(*leaves, *index, layout="thd", cu_seqlens=cu, deterministic=True, **o)
    found = run()
    grads = torch.autograd.grad(found, leaves, do)
    again = run()
    same = all(torch.equal(x, y) for x, y in zip((found, *grads), (again, *torch.autograd.grad(again, leaves, do))))
    program = kind(heads=(heads, kv_heads), dims=dim, layout="thd", saves=True, **o)
    names = [t["name"] for t in _ops.signature(program.text, program.name).results]
    lists = dict(zip(names, _ops.run([q, k, v, *index, cu], program.text, program.name)))["lists"]
    exact, wrong, parts = [x.double().requires_grad_() for x in (q, k, v)], 0, []
    for number, (a, b) in enumerate(zip(offsets[:-1], offsets[1:])):
        if a == b:
            continue
        chosen = chosen_of(lists, number, a, b - a, o)
        wrong += wrong_lists(chosen, ranks(name, q[a:b], k[a:b], [x[a:b] for x in index], o), b - a, o)
        parts.append(branch(*(x[a:b] for x in exact), seen_of(chosen, b - a, heads, o)))
    wanted = torch.cat(parts)
    expected = (wanted, *torch.autograd.grad(wanted, exact, do.double()))
    errors = {n: round(float((x.double() - y).abs().max() / y.abs().max()), 5)
              for n, x, y in zip(("o", "dq", "dk", "dv"), (found, *grads), expected)}
    a, b = offsets[-2:]
    alone = call(*(x[a:b] for x in (q, k, v, *index)), layout="thd", **o,
                 cu_seqlens=torch.tensor([0, b - a], dtype=torch.int32, device="cuda"))
    packed, t = torch.equal(alone, found[a:b]), (b - a) * 2 // 3
    others = [x[a:b].clone() for x in (q, k, v, *index)]
    for x in others:
        x[t:] = 7
    causal = torch.equal(alone[:t], call(*others, layout="thd", **o, cu_seqlens=torch.tensor(
        [0, b - a], dtype=torch.int32, device="cuda"))[:t])
    ok = same and packed and causal and not wrong and max(errors.values()) < 0.02
    failures += not ok
    emit(check=name, ok=ok, lengths=lengths, heads=[heads, kv_heads], dim=dim, wrong_lists=wrong, same_bits=same,
         packed_equals_alone=packed, causal=causal, relative_errors=errors, **options)


def check_selected_ties(name):
    """Equal keys, and NaN in one of them, whose block comes last."""
    global failures
    kind, _ = SELECTED[name]
    o = dict(block=64, count=4, rows=16)
    (q, k, v), _, index = selected_inputs(name, 1024, 4, 2, 64, lead=(1,))
    q, index = q.abs(), [x.abs() for x in index]
    for x in (k, *index[1:]):
        x[:] = x[:, :1]
        x[:, 70] = float("nan")
    program = kind(heads=(4, 2), dims=64, saves=True, **o)
    names = [t["name"] for t in _ops.signature(program.text, program.name).results]
    lists = dict(zip(names, _ops.run([q, k, v, *index], program.text, program.name)))["lists"][0]
    wanted = [[0, 2, 3, own] if own > 3 else list(range(own + 1)) + [-1] * (3 - own)
              for own in (tile * 16 // 64 for tile in range(64))]
    ok = all(line.tolist() == wanted for line in lists)
    failures += not ok
    emit(check=f"{name}: ties and NaN", ok=ok)


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


def time_selected(name, tokens, heads, kv_heads, dim, **options):
    """Both passes, and the selection alone, for tiles of rows and for each query."""
    kind, call = SELECTED[name]
    (q, k, v), do, index = selected_inputs(name, tokens, heads, kv_heads, dim, lead=(1,))
    time_calls(name, (q, k, v), do, lambda q, k, v: call(q, k, v, *index, **options), heads, kv_heads, dim, **options)
    for rows in (64, 1):
        text = kind(heads=(heads, kv_heads), dims=dim, **dict(options, rows=rows)).text
        lines = {line.split("@")[1].split()[0]: line for line in text.split("\n") if line.startswith("attn.")}
        given = index or [q, _ops.run([k], lines["compress"], "compress")[0]]
        line = dict(time=f"{name}, lists alone", tokens=tokens, rows=rows, heads=[heads, kv_heads], dim=dim,
                    select_ms=median_ms(lambda: _ops.run(given, lines["select"], "select"), 9))
        if not index:
            line["compress_ms"] = median_ms(lambda: _ops.run([k], lines["compress"], "compress"), 9)
        emit(**line)


def time_case(name, tokens, heads, kv_heads, dim, dense=True, backward=True, **options):
    q, k, v, gates, do = inputs(tokens, heads, kv_heads, dim, lead=(1,))
    time_calls(name, (q, k, v, gates), do, lambda *x: native_sparse_attention(*x, **{**OPTIONS, **options}), heads,
               kv_heads, dim, dense, backward, **options)


def time_calls(name, plain, do, call, heads, kv_heads, dim, dense=True, backward=True, **options):
    (q, k, v), tokens = plain[:3], plain[0].shape[1]
    torch.cuda.empty_cache()
    repeats = 9 if tokens <= 65536 else 3
    torch.cuda.reset_peak_memory_stats()
    line = dict(time=name, tokens=tokens, heads=[heads, kv_heads], dim=dim, **options)
    forward = lambda: call(*plain)
    line["forward_ms"] = median_ms(forward, repeats)
    if tokens <= 65536:
        line["forward_graph_ms"] = median_ms(captured(forward), repeats)
    line["forward_peak_gb"] = round(torch.cuda.max_memory_allocated() / 1e9, 2)
    leaves = [x.detach().requires_grad_() for x in plain]

    def both():
        return torch.autograd.grad(call(*leaves), leaves, do)

    if backward:
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
    if args.only != "times" and args.programs != "nsa":
        for name in SELECTED:
            check_selected(name, [300, 0, 5, 63, 64, 1000], 8, 2, 64)
            check_selected(name, [700, 129, 1500], 32, 8, 128, block=128, count=6)
            check_selected(name, [1111, 2000], 16, 4, 128, block=512, count=3)
            check_selected(name, [200, 777], 6, 2, 64, block=32, count=5, rows=1)
            check_selected(name, [257, 900], 4, 4, 96, block=24, count=9, rows=48)
            check_selected(name, [257, 900], 20, 1, 64, block=20, count=9, rows=20)
            check_selected(name, [3000, 1200], 8, 8, 128, block=16, count=60, rows=16)
            check_selected_ties(name)
    if args.only != "times" and args.programs != "selected":
        check("lengths", [300, 0, 5, 63, 64, 1000], 8, 2, 64, count=4)
        check("seed shape", [700, 129], 32, 8, 128)
        check("paper shape", [333, 640], 64, 4, 128, length=32, stride=16)
        check("rows that share no list", [200, 77], 6, 2, 64, length=32, stride=16, count=4, rows=1)
        check("one group of 20", [257, 300], 20, 1, 64, length=32, stride=16, count=5, rows=16)
        check("no groups", [257, 300], 4, 4, 96, length=16, stride=8, block=32, count=5, rows=32)
        for rows in (1, 16, 64):
            check("loops that CTAs share", [2048], 32, 8, 128, dense=True, rows=rows)
        check_causal()
        check_packed()
        check_graph()
        check_long(1 << 20, 32, 8, 128)
        check_long(3 << 19, 16, 4, 128, length=32, stride=16)
        torch.cuda.empty_cache()
    if args.only != "checks" and args.programs != "nsa":
        time_selected("moba", 65536, 32, 8, 128, block=512, count=8, rows=64)
        time_selected("moba", 65536, 32, 32, 128, block=512, count=3, rows=64)
        time_selected("block_max", 65536, 64, 4, 128, block=128, count=16, rows=64)
    if args.only != "checks" and args.programs != "selected":
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
