#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Times two builds of libattnc.so by turns: what a change of device code costs.

  compare_builds.py BUILD --before LIBRARY [--out FILE.jsonl] [--rounds 11] [--quick]

One JSON line a case and pass: the median of `before / now` over the rounds (above 1: the new build is faster), and both
times in milliseconds. Passes are plain, with a bias and with ALiBi; head dims 64, 128 and 256; 4096 and 16384 rows."""
import statistics
from concurrent.futures import ThreadPoolExecutor

import torch

import attnc
import backward
import bench

bench.parser.add_argument("--before", required=True)
bench.parser.add_argument("--rounds", type=int, default=11)
bench.parser.add_argument("--quick", action="store_true", help="4096 rows only")
args, now = bench.begin()
before = attnc.Library(args.before)

SCORES = {"plain": "", "bias": 'score([#attn.bias<"b", k>])', "alibi": "score([#attn.alibi])"}


def cases():
    for d in (64, 128, 256):
        for s in (4096,) if args.quick else (4096, 16384):
            for mask in ("full", "causal"):
                for score in SCORES:
                    if args.filter in f"d{d} s{s} {mask} {score}":
                        yield d, s, mask, score


def make(library, d, s, mask, score):
    h = 2048 // d
    arrays = {"b": torch.zeros(s, device="cuda")} if score == "bias" else None
    return backward.Dense(library, f"#attn.{mask}", 16384 // s, s, s, h, h, d, score=SCORES[score], arrays=arrays)


def compile_all(work):
    library, (d, s, mask, score) = work
    h = 2048 // d
    text = (f"attn.problem @p mask(#attn.{mask}) layout(bshd) heads({h}, {h}) dims({d}, {d}) "
            f"dtype(bf16) {SCORES[score]}\n")
    for source in (text, text + "attn.backward @grads of(@p) "):
        library.compile(source, None)


with ThreadPoolExecutor(14) as pool:
    list(pool.map(compile_all, [(library, case) for case in cases() for library in (now, before)]))
torch.cuda.init()
for case in cases():
    d, s, mask, score = case
    pair = {library: make(library, *case) for library in (before, now)}
    stream = torch.cuda.current_stream().cuda_stream
    for x in pair.values():
        x.run()
    torch.cuda.synchronize()
    for which in ("forward", "backward"):
        launches = {library: lambda x=x: getattr(x, which).launch(getattr(x, f"of_{which}"), stream)
                    for library, x in pair.items()}
        count = max(2, int(10 / bench.elapsed_ms(launches[now], 3)))
        times = {library: [] for library in pair}
        for turn in range(args.rounds):
            for library in list(pair)[:: 1 if turn % 2 else -1]:
                times[library].append(bench.elapsed_ms(launches[library], count))
        ratios = [b / n for b, n in zip(times[before], times[now])]
        bench.emit(case=f"d{d} b{16384 // s} h{2048 // d} s{s} {mask} {score}", which=which,
                   ratio=round(statistics.median(ratios), 4), before_ms=round(statistics.median(times[before]), 4),
                   now_ms=round(statistics.median(times[now]), 4))
bench.end()
