#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The kernels of one rank of several (`layout(thd pieces)`) beside the kernel of the whole sequence. A rank has a
part of the queries of one sequence, and the keys that these may see, in the order in which ranks sent them.

  pieces.py BUILD [--out FILE.jsonl]

`of_whole` is the whole kernel's time, divided by the ranks, over the time of the rank's kernel: 1 if no time is lost.
Results are compared with the whole kernel's (`rel_err_vs_whole`), which other tests compare with the reference."""
import datetime
import math
from concurrent.futures import ThreadPoolExecutor

import torch

import bench
from bench import emit

HEADS, KV_HEADS, DIM, LEFT = 32, 8, 128, 1023
MASKS = {"causal": "#attn.causal", "full": "#attn.full", "window": f"#attn.band<left = {LEFT}, right = 0>"}
CASES = [("causal", 65536, 4), ("full", 65536, 4), ("window", 65536, 4), ("causal", 131072, 8)]


def problem(mask, layout, clauses="", backward=None):
    text = (f"attn.problem @p mask({MASKS[mask]}) layout({layout}) heads({HEADS}, {KV_HEADS}) dims({DIM}) "
            f"dtype(bf16){clauses}")
    return text if backward is None else f"{text}\nattn.backward @g of(@p) deterministic{backward}"


def texts():
    for mask in MASKS:
        yield (mask, "whole", "forward"), problem(mask, "bshd")
        yield (mask, "whole", "backward"), problem(mask, "bshd", backward="")
        yield (mask, "rank", "forward"), problem(mask, "thd pieces")
        yield (mask, "rank", "partial"), problem(mask, "thd pieces", " partial(out)")
        yield (mask, "rank", "backward"), problem(mask, "thd pieces", backward=" float32_dq float32_dkv")


def random(rows, heads):
    return torch.randn(rows, heads, DIM, device="cuda", dtype=torch.bfloat16)


def poisoned(shape, dtype=torch.float32):
    return torch.full(shape, math.nan, device="cuda", dtype=dtype)


def timed(kernel, tensors, count):
    bound = kernel.bind(**tensors)
    return min(bench.elapsed_ms(lambda: kernel.launch(bound, torch.cuda.current_stream().cuda_stream), count)
               for _ in range(3))


def error(actual, expected):
    return ((actual.float() - expected.float()).norm() / expected.float().norm()).item()


def arrays(side, spans, length):
    """The arrays of a side whose pieces are `spans`, (position, rows) in the order of their rows."""
    lines, end = torch.zeros(5, len(spans) + 1, dtype=torch.int32), 0
    for number, (position, rows) in enumerate(spans):
        lines[0, number], lines[1, number], lines[2, number] = end, end, position
        end += rows
    lines[0, -1] = lines[1, -1] = end
    lines[4, :-1] = torch.tensor(sorted(range(len(spans)), key=lambda number: spans[number][0]))
    return {f"pieces_{side}": lines.cuda(), f"first_pieces_{side}": torch.tensor([0, len(spans)]).int().cuda(),
            f"cu_seqlens_{side}": torch.tensor([0, length]).int().cuda()}


def shares(mask, length, ranks, rank):
    """Spans of a rank's queries, and of the keys that it has: under a window those of neighbours, else two chunks from
    either end of each rank."""
    if mask == "window":
        rows = length // ranks
        first = max(rank * rows - LEFT, 0)
        return [(rank * rows, rows)], [(first, (rank + 1) * rows - first)]
    rows = length // (2 * ranks)
    chunks = [[(r * rows, rows), ((2 * ranks - 1 - r) * rows, rows)] for r in range(ranks)]
    return chunks[rank], [chunk for both in chunks for chunk in both]


def part(whole, spans):
    return torch.cat([whole[position:position + rows] for position, rows in spans])


def case(kernels, mask, length, ranks):
    q, do, k, v = random(length, HEADS), random(length, HEADS), random(length, KV_HEADS), random(length, KV_HEADS)
    whole = dict(q=q, k=k, v=v, o=poisoned(q.shape, q.dtype), do=do, dq=poisoned(q.shape, q.dtype),
                 dk=poisoned(k.shape, q.dtype), dv=poisoned(v.shape, q.dtype))
    whole = {name: x[None] for name, x in whole.items()} | dict(lse=poisoned((1, HEADS, length)))
    forward = {name: whole[name] for name in ("q", "k", "v", "o", "lse")}
    times = dict(forward=timed(kernels[mask, "whole", "forward"], forward, 3),
                 backward=timed(kernels[mask, "whole", "backward"], whole, 1))
    for rank in (0, ranks - 1):
        queries, keys = shares(mask, length, ranks, rank)
        given = arrays("q", queries, length) | arrays("kv", keys, length)
        given |= dict(q=part(q, queries), k=part(k, keys), v=part(v, keys))
        o, lse = part(whole["o"][0], queries), part(whole["lse"][0].T, queries).T.contiguous()
        rows = lse.shape[1]
        tensors = {"forward": dict(o=poisoned(o.shape, o.dtype), lse=poisoned(lse.shape)),
                   "partial": dict(o=poisoned(o.shape), row_max=poisoned(lse.shape), row_sum=poisoned(lse.shape)),
                   "backward": dict(o=o, lse=lse, do=part(do, queries), dq=poisoned((rows, HEADS, DIM)),
                                    dk=poisoned(given["k"].shape), dv=poisoned(given["v"].shape))}
        for name, own in tensors.items():
            ms = timed(kernels[mask, "rank", name], {**given, **own}, 1 if name == "backward" else 3)
            # Keys are those that this rank has, and dK and dV of other queries are missing: dQ is complete.
            wrong = error(own["dq"], part(whole["dq"][0], queries)) if name == "backward" else error(own["o"], o)
            emit(case=mask, rows=length, ranks=ranks, rank=rank, kernel=name, ms=round(ms, 3),
                 of_whole=round(times["backward" if name == "backward" else "forward"] / ranks / ms, 3),
                 **bench.judged("rel_err_vs_whole", wrong))


args, library = bench.begin()
with ThreadPoolExecutor(15) as pool:
    made = dict(pool.map(lambda item: (item[0], library.compile(item[1])), texts()))
emit(peer="env", gpu=torch.cuda.get_device_name(), date=datetime.date.today().isoformat(),
     commit=args.commit, heads=[HEADS, KV_HEADS], dim=DIM, dtype="bf16")
for mask, length, ranks in CASES:
    if args.filter in f"{mask} {length}":
        case(made, mask, length, ranks)
bench.end()
