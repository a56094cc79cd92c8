#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Host time of calls, of two builds of libattnc.so by turns.

  host_time.py BUILD --before LIBRARY [--out FILE.jsonl] [--rounds 15]

One JSON line a call: the median of `now / before` over the rounds, and both medians in microseconds, ctypes included.
Calls: launches of a forward pass and of gradients (three kernels), packed and dense, and the workspace query of each.
Tensors are small, so that the GPU is never waited for."""
import ctypes
import statistics
import time

import torch

import attnc
import backward
import bench

bench.parser.add_argument("--before", required=True)
bench.parser.add_argument("--rounds", type=int, default=15)
args, now = bench.begin()
before = attnc.Library(args.before)
CALLS = 300


def passes(library):
    """Of each pass: its name, kernel and bound tensors."""
    dense = backward.Dense(library, "#attn.causal", 1, 256, 256, 8, 2, 128)
    packed = backward.Packed(library, 256, 2)
    packed.set_lengths(torch.Generator().manual_seed(0))
    for name, x in (("dense", dense), ("packed", packed)):
        x.run()
        yield f"{name} forward", x.forward, x.of_forward
        yield f"{name} gradients", x.backward, x.of_backward


def launching(kernel, bound):
    launch, handle = kernel.library.c.attnLaunch, bound[3]
    pointer = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
    return lambda: launch(handle, bound[0], bound[2], pointer)


def asking(kernel, bound):
    query, handle, size = kernel.library.c.attnWorkspaceSize, bound[3], ctypes.c_size_t()
    return lambda: query(handle, bound[0], ctypes.byref(size))


def time_of(call):
    torch.cuda.synchronize()
    start = time.perf_counter()
    for _ in range(CALLS):
        call()
    taken = time.perf_counter() - start
    torch.cuda.synchronize()
    return taken / CALLS * 1e6


for (name, *new), (_, *old) in zip(list(passes(now)), list(passes(before))):
    for what, make in (("launch", launching), ("workspace query", asking)):
        calls = make(*new), make(*old)
        for call in calls:
            assert call() == 0
        times = [[time_of(call) for call in calls] for _ in range(args.rounds)]
        bench.emit(call=f"{name}: {what}", ratio=round(statistics.median(a / b for a, b in times), 4),
                   now_us=round(statistics.median(a for a, _ in times), 3),
                   before_us=round(statistics.median(b for _, b in times), 3))
