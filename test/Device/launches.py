#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checks on a GPU of what problem and shapes decide together: gradients of a part of the keys (`partial_kv`) under any
hint, and launches without one.

  launches.py BUILD [--out FILE.jsonl]

o and lse of all keys, gradients of half of them, against double; a CUDA graph of a launch that gets its program by its
shapes, replayed with other lengths, one sequence with nearly all rows among them. One JSON line a check; exit 1 if one
fails."""
import json
import math
import sys

import torch

import backward
import bench
from bench import emit

args, library = bench.begin()
failed = 0


def report(check, error, most, **facts):
    global failed
    failed += not error < most
    emit(check=check, ok=error < most, rel_err=round(error, 5), **facts)


def schedule(kernel, bound):
    return kernel.schedule(bound)


def stream():
    return torch.cuda.current_stream().cuda_stream


def merged(dim, rows, batch, hint, layout, heads=4):
    def random(count):
        return torch.randn(batch, count, heads, dim, device="cuda", dtype=torch.bfloat16)
    q, do, k, v = random(rows), random(rows), random(2 * rows), random(2 * rows)
    Q, dO, K, V = (x.double().transpose(1, 2) for x in (q, do, k, v))
    scores = Q @ K.transpose(-1, -2) * dim**-0.5
    lse = scores.logsumexp(-1)
    P = (scores - lse[..., None]).exp()
    o = (P @ V).transpose(1, 2).to(torch.bfloat16).contiguous()
    P, K, V = P[..., :rows], K[..., :rows, :], V[..., :rows, :]
    dS = P * (dO @ V.transpose(-1, -2) - (dO * o.double().transpose(1, 2)).sum(-1, keepdim=True))
    want = dict(dq=dS @ K * dim**-0.5, dk=dS.transpose(-1, -2) @ Q * dim**-0.5, dv=P.transpose(-1, -2) @ dO)
    kernel = library.compile(f"attn.problem @p mask(#attn.full) layout({layout}) heads({heads}) dims({dim}) "
                             f"dtype(bf16){hint}\nattn.backward @g of(@p) merged")
    tensors = dict(q=q, do=do, o=o, k=k[:, :rows].contiguous(), v=v[:, :rows].contiguous())
    tensors.update({name: torch.full_like(q, math.nan) for name in want}, lse=lse.float().contiguous())
    if layout == "thd":
        tensors = {name: x.reshape(-1, heads, dim) for name, x in tensors.items() if name != "lse"}
        tensors["lse"] = lse.float().transpose(0, 1).reshape(heads, -1).contiguous()
        cu_seqlens = torch.arange(batch + 1, device="cuda", dtype=torch.int32) * rows
        tensors["cu_seqlens_q"] = tensors["cu_seqlens_kv"] = cu_seqlens
    bound = kernel.bind(**tensors)
    kernel.launch(bound, stream())
    torch.cuda.synchronize()
    error = max(((tensors[n].double().reshape(batch, rows, heads, dim).transpose(1, 2) - w).norm() / w.norm()).item()
                for n, w in want.items())
    report("gradients of half of the keys", error, 6e-3, dim=dim, rows=rows, batch=batch, hint=hint.strip(),
           layout=layout, schedule=schedule(kernel, bound))


def causal(tensors, lengths, dim):
    wanted, begin = torch.empty_like(tensors["o"], dtype=torch.float64), 0
    for rows in filter(None, lengths):
        own, begin = slice(begin, begin + rows), begin + rows
        q, k, v = (tensors[n][own] for n in "qkv")
        visible = torch.ones(rows, rows, device="cuda").tril().bool()
        wanted[own] = backward.reference(q, k, v, torch.zeros_like(q), visible, dim**-0.5)[0]
    return wanted


def replays(batch=600, each=9, heads=8, dim=128):
    kernel = library.compile(f"attn.problem @p mask(#attn.causal) layout(thd) heads({heads}) dims({dim}) dtype(bf16)")
    total = batch * each
    tensors = {n: torch.randn(total, heads, dim, device="cuda", dtype=torch.bfloat16) for n in "qkvo"}
    offsets = torch.arange(batch + 1, device="cuda", dtype=torch.int32) * each
    tensors.update(lse=torch.empty(heads, total, device="cuda"), cu_seqlens_q=offsets, cu_seqlens_kv=offsets)
    bound = kernel.bind(**tensors)
    kernel.launch(bound, stream())
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        kernel.launch(bound, stream())
    for replay in range(4):
        weights = torch.rand(batch)
        lengths = (weights / weights.sum() * total).long()
        lengths[replay] += total - lengths.sum()
        if replay == 3:
            lengths = torch.zeros(batch, dtype=torch.int64)
            lengths[5], lengths[7] = total - 500, 500
        offsets.copy_(torch.cat([torch.zeros(1, dtype=torch.int64), lengths.cumsum(0)]).int())
        tensors["o"].fill_(math.nan)
        graph.replay()
        torch.cuda.synchronize()
        wanted = causal(tensors, lengths.tolist(), dim)
        error = ((tensors["o"].double() - wanted).norm() / wanted.norm()).item()
        report("a graph of a launch without a hint, other lengths", error, 5e-3, longest=int(lengths.max()),
               schedule=schedule(kernel, bound))


for dim in (64, 128):
    for rows, batch in ((8, 600), (100, 40), (300, 6)):
        for hint in ("", f" expected_seqlen({rows})", f" max_seqlen({rows})"):
            for layout in ("thd", "bshd"):
                merged(dim, rows, batch, hint, layout)
replays()
sys.exit(failed)
