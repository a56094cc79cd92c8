#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Selected blocks (attn.select) of long sequences: lists of some tiles against float64, equal bits, and times.

  selected_blocks.py BUILD [--out FILE.jsonl]

Prints one JSON line a case; exit status 1 if a list is wrong."""
import sys

import torch

import bench
from bench import elapsed_ms, emit

args, library = bench.begin()
CASES = [  # tokens of each sequence, heads, kv heads, dim, length, stride, block, count, first, local, rows
    ([65536], 32, 8, 128, 64, 64, 64, 16, 1, 2, 64),
    ([65536], 64, 4, 128, 32, 16, 64, 16, 1, 2, 1),
    ([1 << 20], 32, 8, 128, 64, 64, 64, 16, 1, 2, 64),
    ([8192, 1, 20000, 777, 36566], 32, 8, 128, 64, 64, 64, 16, 1, 2, 64),
    ([16384], 16, 16, 128, 64, 64, 64, 16, 1, 2, 64),
    ([16384], 20, 1, 192, 32, 16, 32, 64, 1, 2, 16),
    ([16384], 128, 1, 64, 32, 16, 64, 100, 0, 1, 128),
    ([16384], 6, 2, 72, 16, 8, 24, 32, 0, 1, 8),
]
failures = 0


def windows_of(tokens, length, stride):
    return 0 if tokens < length else (tokens - length) // stride + 1


def scores(q, k, scale):
    """Of rows [n, heads, dim] with all windows, in float64: [heads, n, windows]."""
    group = q.shape[1] // k.shape[1]
    return torch.einsum("ngrd,igd->grni", q.double().unflatten(1, (-1, group)), k.double()).flatten(0, 1) * scale


def importances(q, k, lse, at, length, stride, block):
    """[kv heads, rows, blocks] of rows at positions `at`."""
    heads, kv_heads, parts, in_window = q.shape[1], k.shape[1], block // stride, length // stride
    windows = torch.arange(k.shape[0], device="cuda")
    p = torch.exp(scores(q, k, q.shape[2] ** -0.5) - lse[:, :, None].double())
    p = torch.where((windows * stride + length - 1)[None] <= at[:, None], p, 0).unflatten(0, (kv_heads, -1)).sum(1)
    blocks = int(at.max()) // block + 1
    units = torch.zeros(*p.shape[:2], blocks * parts + k.shape[0] + in_window, dtype=torch.float64, device="cuda")
    for n in range(in_window):
        units[..., n:n + k.shape[0]] += p
    return units[..., :blocks * parts].unflatten(2, (blocks, parts)).sum(3)


for lengths, heads, kv_heads, dim, length, stride, block, count, first, local, rows in CASES:
    text = (f"attn.select @select prob length({length}) stride({stride}) block({block}) count({count}) first({first}) "
            f"local({local}) rows({rows}) layout(thd) heads({heads}, {kv_heads}) dim({dim}) dtype(bf16)")
    kernel = library.compile(text)
    cu = [sum(lengths[:i]) for i in range(len(lengths) + 1)]
    cu_c = [0]
    for n in lengths:
        cu_c.append(cu_c[-1] + windows_of(n, length, stride))
    q = torch.randn(cu[-1], heads, dim, device="cuda").bfloat16()
    k = (2 * torch.randn(cu_c[-1], kv_heads, dim, device="cuda")).bfloat16()
    lse = torch.full((heads, cu[-1]), 30.0, device="cuda")  # of rows that are not tested
    chosen = []
    for b, n in enumerate(lengths):
        tiles = torch.randperm(-(-n // rows), device="cuda")[:24].sort().values
        at = tiles * rows
        own_q, own_k = q[cu[b] + at], k[cu_c[b]:cu_c[b + 1]]
        if len(own_k):
            seen = (torch.arange(len(own_k), device="cuda") * stride + length - 1)[None] <= at[:, None]
            s = torch.where(seen, scores(own_q, own_k, dim ** -0.5), -torch.inf)
            lse[:, cu[b] + at] = torch.logsumexp(s, 2).float()
        chosen.append((tiles, at, own_q, own_k))
    lines, width = cu[-1] // rows + len(lengths), count + max(rows // block - 1, 0)
    results = [torch.full((kv_heads, lines, width), 77, dtype=torch.int32, device="cuda") for _ in range(2)]
    offsets = {"cu_seqlens": torch.tensor(cu, dtype=torch.int32, device="cuda"),
               "cu_seqlens_compressed": torch.tensor(cu_c, dtype=torch.int32, device="cuda")}
    stream = torch.cuda.current_stream().cuda_stream
    bound = [kernel.bind(q=q, compressed_k=k, lse=lse, blocks=blocks, **offsets) for blocks in results]
    for one in bound:
        kernel.launch(one, stream)
    torch.cuda.synchronize()
    wrong, tested = int(not torch.equal(*results)), 0
    for b, (tiles, at, own_q, own_k) in enumerate(chosen):
        rank = importances(own_q, own_k, lse[:, cu[b] + at], at, length, stride, block).cpu()
        lists = results[0][:, cu[b] // rows + b + tiles].cpu()
        for i, t in enumerate(at.tolist()):
            current, last = t // block, (min(t + rows, lengths[b]) - 1) // block
            forced = [j for j in range(current + 1) if j < first or j > current - local]
            free = [j for j in range(current + 1) if first <= j <= current - local]
            for g in range(kv_heads):
                row = rank[g, i].tolist()
                order = sorted(free, key=lambda j: (-row[j], j))
                left = min(count, current + 1) - len(forced)
                threshold = row[order[left - 1]] if left else float("inf")
                found = lists[g, i][lists[g, i] >= 0].tolist()
                taken = set(found)
                good = (found == sorted(taken) and set(forced) <= taken and
                        len(found) == min(count, current + 1) + last - current and
                        all(j in taken for j in range(current + 1, last + 1)) and
                        all(row[j] >= threshold * (1 - 1e-3) for j in found if first <= j <= current - local) and
                        all(j in taken for j in order[:left] if row[j] > threshold * (1 + 1e-3)))
                wrong, tested = wrong + (not good), tested + 1
    failures += wrong
    emit(case=text.split("prob ")[1], lengths=lengths, tested=tested, wrong=wrong,
         ms=round(elapsed_ms(lambda: kernel.launch(bound[0], stream), 20), 4), resources=kernel.resources())
sys.exit(f"{failures} wrong lists" if failures else 0)
