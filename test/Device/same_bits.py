#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checks on a GPU that equal inputs give equal bits: forward passes, and gradients in a fixed order (`deterministic`).

  same_bits.py BUILD [--out FILE.jsonl]

200 launches in a row; 20, on one stream or another, beside other work, so that tiles go to other multiprocessors; a
sequence alone and among others; and on parts of the chip, which green contexts are. One JSON line a check; exit 1 if
one fails."""
import math
import sys
from concurrent.futures import ThreadPoolExecutor

import torch
from torch.cuda.green_contexts import GreenContext

import backward
import bench

args, library = bench.begin()
noise = torch.randn(4096, 4096, device="cuda", dtype=torch.bfloat16)
side, other = torch.cuda.Stream(), torch.cuda.Stream()
failed = 0


def report(check, ok, **facts):
    global failed
    failed += not ok
    bench.emit(check=check, ok=bool(ok), **facts)


def bits(tensors):
    return [t.view(torch.int16 if t.element_size() == 2 else torch.int32).clone() for t in tensors]


def equal(one, another):
    return all(torch.equal(x, y) for x, y in zip(one, another))


def check_launches(name, run, results):
    """`run(stream)` writes all of the results, and no NaN."""
    first, same, written = None, True, True
    for repeat in range(20):
        for t in results:
            t.fill_(math.nan)
        torch.cuda.synchronize()
        with torch.cuda.stream(side):
            for _ in range(repeat % 4):
                noise @ noise
            if repeat % 5 == 4:  # a multiprocessor is taken all along
                torch.cuda._sleep(2_000_000)
        run((other if repeat % 2 else torch.cuda.current_stream()).cuda_stream)
        torch.cuda.synchronize()
        written &= not any(t.isnan().any() for t in results)
        first = first or bits(results)
        same &= equal(first, bits(results))
    report(f"20 launches give the same bits: {name}", same and written)


def check_rows_of_launches(name, run, results, launches=200):
    """Launches one behind the other, whose results are compared on the GPU: what goes wrong in one tile of a
    million."""
    run()
    first, apart = bits(results), []
    for _ in range(launches):
        run()
        found = (t.view(b.dtype) for t, b in zip(results, first))
        apart.append(sum((now != then).sum() for now, then in zip(found, first)))
    report(f"{launches} launches in a row give the same bits: {name}",
           not torch.stack(apart).any() and not any(t.isnan().any() for t in results))


def check_in_a_row():
    # whose reads of a slot are over when it is filled again: of O, where keys are streamed, and of statistics, by
    # default in any order, so not of dq
    cases = [(d, s, "#attn.causal") for d in (32, 64, 96, 128) for s in (129, 192, 250)]
    cases += [(64, 129, "#attn.full"), (64, 100, "#attn.causal")]
    cases += [(d, 2048, mask) for d in (64, 128, 192, 256)
              for mask in ("#attn.causal", "#attn.band<left = 99, right = 0>")]
    cases += [(64, 2048, "#attn.full"), (128, 2048, "#attn.full")]

    def dense(case):
        d, s, mask = case
        return backward.Dense(library, mask, 4 if s == 2048 else 400, s, s, 8, 8, d)

    with ThreadPoolExecutor() as pool:  # many compile at a time
        problems = list(pool.map(dense, cases))
    for (d, s, mask), x in zip(cases, problems):
        results = (x.dk, x.dv) if s == 2048 else (x.dq, x.dk, x.dv)
        check_rows_of_launches(f"gradients, dense, d {d}, {s} rows, {mask}", x.run, results)


def check_forward():
    generator = torch.Generator().manual_seed(3)
    for d, mask in ((64, "#attn.causal"), (128, "#attn.causal"), (128, "#attn.full"), (256, "#attn.causal"),
                    (128, "#attn.or<#attn.prefix<64>, #attn.band<left = 300, right = 0>>")):
        kernel = library.compile(f"attn.problem @r mask({mask}) layout(thd) heads(8, 2) dims({d}) dtype(bf16)")
        q, k, v = (backward.randn(9000, heads, d) for heads in (8, 2, 2))
        o, lse = torch.empty_like(q), torch.empty(8, 9000, device="cuda")
        cuts = torch.randint(0, 9001, (11,), generator=generator).sort().values.int()
        cu = torch.cat([torch.zeros(1, dtype=torch.int32), cuts]).cuda()
        bound = kernel.bind(q=q, k=k, v=v, o=o, lse=lse, cu_seqlens_q=cu, cu_seqlens_kv=cu)
        check_launches(f"d {d} {mask}", lambda stream: kernel.launch(bound, stream), (o, lse))


def by_arrays(s, batch):
    """Masks that lists of tiles are made of, or that read arrays: (mask, arrays)."""
    generator = torch.Generator().manual_seed(5)
    ints = lambda low, high, *shape: torch.randint(low, high, shape, generator=generator, dtype=torch.int32)
    cut = (torch.rand(batch, s, generator=generator) < 1 / 200).cumsum(1).int()
    ids = torch.where(torch.rand(batch, s, generator=generator) < 0.02, 0, cut * 7919 % 13 + 1).int()
    at = torch.arange(s, dtype=torch.int32).repeat(batch, 1)
    # Blocks of 64 nodes of three rows, each behind those before it.
    node, first, end = at // 3, at // 3 // 64 * 64, at // 3 + 1
    parent = torch.where(at % 300 == 0, -1, at - 1 - ints(0, 3, batch, s) * (at % 50 == 49)).clamp(min=-1).int()
    counts = ints(0, 6, s // 128)
    lists = dict(offsets=torch.cat([torch.zeros(1, dtype=torch.int32), counts.cumsum(0).int()]),
                 columns=ints(0, s // 128, int(counts.sum())))
    found = [("#attn.and<#attn.document, #attn.causal>", dict(segment_ids_q=ids, segment_ids_kv=ids)),
             ("#attn.document", dict(segment_ids_q=ids, segment_ids_kv=ids)),
             ('#attn.and<#attn.tree<"node", "first", "end">, #attn.causal>', dict(node=node, first=first, end=end)),
             ('#attn.ancestors<"parent">', dict(parent=parent)),
             ('#attn.block_map<"offsets", "columns", q = 128, kv = 128>', lists),
             ('#attn.row_interval<begin = "begin", end = "end", shared>',
              dict(begin=at - ints(0, 500, batch, s), end=at + ints(0, 300, batch, s))),
             ('#attn.column_interval<end = "end", shared>', dict(end=at + ints(0, 700, batch, s)))]
    return [(mask, {name: array.cuda() for name, array in arrays.items()}) for mask, arrays in found]


def check_gradients():
    lengths = [700, 0, 129, 1, 64, 1500, 128, 333]
    window = "#attn.band<left = 99, right = 0>"
    dense = [(64, 8, "#attn.causal"), (64, 2, "#attn.full"), (128, 2, "#attn.causal"), (128, 8, "#attn.causal"),
             (128, 8, window), (256, 8, "#attn.causal"), (192, 8, "#attn.full"),
             # no single run of tiles: queries stationary
             (128, 8, '#attn.predicate<"q >= 200 && k >= 200 && q >= k">'),
             (256, 8, f"#attn.or<#attn.prefix<64>, {window}>")]
    for d, g, mask in dense:
        x = backward.Dense(library, mask, 2, 2048, 2048, 8, g, d, options="deterministic")
        check_launches(f"gradients, dense, d {d}, {g} heads of keys, {mask}", x.run, (x.dq, x.dk, x.dv))
    for mask, arrays in by_arrays(2048, 2):
        for d, g in ((64, 8), (128, 2), (256, 8)):
            x = backward.Dense(library, mask, 2, 2048, 2048, 8, g, d, options="deterministic", arrays=arrays)
            check_launches(f"gradients, dense, d {d}, {g} heads of keys, {mask}", x.run, (x.dq, x.dk, x.dv))
    for d in (64, 128, 256):  # programs by the lengths of a launch
        for s in (2, 16, 100, 129, 200):
            x = backward.Dense(library, "#attn.causal", 40, s, s, 8, 8, d, options="deterministic")
            check_launches(f"gradients, dense, d {d}, {s} rows", x.run, (x.dq, x.dk, x.dv))
    for d in (64, 128, 256):
        for mask in ("#attn.causal", window):
            x = backward.Documents(library, lengths, d, 8, "deterministic", mask)
            check_launches(f"gradients, packed, d {d}, {mask}", x.run, (x.dq, x.dk, x.dv))
            x = backward.Documents(library, [16] * 300 + lengths + [7] * 200 + [2048], d, 8, "deterministic", mask,
                                   hints="expected_seqlen(16)")
            check_launches(f"gradients, long ones among short ones, d {d}, {mask}", x.run, (x.dq, x.dk, x.dv))


def check_modified():
    """What is done to scores, dropout, float16, gradients of arrays, padding, heads that share keys in packed rows."""
    seed = torch.tensor([1, 2, 3, 4], device="cuda", dtype=torch.int32)
    bias = torch.randn(8, 1100, 1100, device="cuda")
    slopes, sinks = torch.rand(8, device="cuda"), torch.randn(8, device="cuda")
    learned = lambda **arrays: {**arrays, **{"d" + name: torch.empty_like(array) for name, array in arrays.items()}}
    dropped = ' dropout(0.1, "seed")'
    for d, g, dtype, score, clauses, arrays in (
            (64, 8, "f16", "score([#attn.softcap<30.0>])", "", {}), (128, 2, "f16", "", "dlse", {}),
            (256, 8, "f16", "", "", {}),
            (128, 8, "bf16", "score([#attn.alibi])" + dropped, "", dict(seed=seed)),
            (64, 2, "bf16", dropped, "", dict(seed=seed)), (256, 8, "bf16", dropped, "", dict(seed=seed)),
            (128, 8, "bf16", 'score([#attn.bias<"bias", hqk>])', 'requires_grad(["bias"])', learned(bias=bias)),
            (64, 2, "bf16", 'score([#attn.head_scale<"slopes">, #attn.softcap<20.0>]) sink("sinks")',
             'requires_grad(["slopes", "sinks"])', learned(slopes=slopes, sinks=sinks)),
            (192, 8, "bf16", 'score([#attn.bias<"bias", hqk>])', 'requires_grad(["bias"])', learned(bias=bias))):
        x = backward.Dense(library, "#attn.causal", 2, 1100, 1100, 8, g, d, dtype=dtype, score=score,
                           options=f"deterministic {clauses}", arrays=arrays)
        results = [x.dq, x.dk, x.dv, *(array for name, array in arrays.items() if name[0] == "d")]
        check_launches(f"gradients, dense, d {d}, {g} heads of keys, {dtype} {score} {clauses}", x.run, results)
    for d in (64, 128, 256):
        for left, g in ((None, 2), (None, 8), (99, 2)):
            x = backward.Packed(library, 4000, 9, d, "deterministic", left, g)
            x.set_lengths(torch.Generator().manual_seed(4))
            what = "causal" if left is None else f"window of {left + 1}"
            check_launches(f"gradients, packed with padding, d {d}, {g} heads of keys, {what}", x.run,
                           (x.dq, x.dk, x.dv))


def check_neighbours():
    for d in (64, 128, 256):
        found = []
        for before, behind in (([], []), ([1, 300], [129, 0, 64]), ([], [128]), ([64] * 9, [])):
            x = backward.Documents(library, [*before, 700, *behind], d, 8, "deterministic")
            own = slice(sum(before), sum(before) + 700)
            generator = torch.Generator(device="cuda").manual_seed(9)
            for t in (x.q, x.k, x.v, x.do):
                t[own] = torch.randn(700, 8, d, device="cuda", generator=generator).to(t.dtype)
            x.run()
            torch.cuda.synchronize()
            found.append([t[own].clone() for t in (x.dq, x.dk, x.dv)])
        written = not any(t.isnan().any() for t in found[0])
        report(f"gradients of a sequence, whatever its neighbours are: d {d}",
               written and all(equal(bits(found[0]), bits(other)) for other in found[1:]))
        for s in (2, 16, 100, 129, 200):
            found = []
            for batch in (1, 40):
                x = backward.Dense(library, "#attn.causal", batch, s, s, 8, 8, d, options="deterministic")
                generator = torch.Generator(device="cuda").manual_seed(9)
                for t in (x.q, x.k, x.v, x.do):
                    t[-1] = torch.randn(s, 8, d, device="cuda", generator=generator).to(t.dtype)
                x.run()
                # Forward passes have programs by the number of sequences, too.
                for t, first in zip((x.o, x.lse), found[0] if found else ()):
                    t[-1] = first
                x.backward.launch(x.of_backward, torch.cuda.current_stream().cuda_stream)
                torch.cuda.synchronize()
                found.append([t[-1].clone() for t in (x.o, x.lse, x.dq, x.dk, x.dv)])
            written = not any(t.isnan().any() for t in found[0])
            report(f"gradients of dense rows, alone and among others: d {d}, {s} rows",
                   written and equal(bits(found[0]), bits(found[1])))


def check_parts():
    """All of the chip and some of its multiprocessors; milliseconds say that these are fewer."""
    arrays = by_arrays(2048, 2)
    lengths = [700, 0, 129, 1, 64, 1500, 128, 333]
    dense = lambda mask, g, d, **more: backward.Dense(library, mask, 2, 2048, 2048, 8, g, d, options="deterministic",
                                                      **more)
    problems = {f"dense, d {d}, {g} heads of keys, {mask}": dense(mask, g, d)
                for d, g, mask in ((64, 8, "#attn.causal"), (64, 2, "#attn.full"), (128, 8, "#attn.causal"),
                                   (128, 2, "#attn.full"), (256, 8, "#attn.causal"))}
    problems.update({f"dense, d 128, {mask}": dense(mask, 8, 128, arrays=own) for mask, own in (arrays[0], arrays[4])})
    problems.update({f"packed, d {d}": backward.Documents(library, lengths, d, 8, "deterministic")
                     for d in (64, 128, 256)})
    parts = [(n, GreenContext.create(n, 0)) for n in (8, 40, 104)]
    for name, x in problems.items():
        results, found, times = (x.o, x.lse, x.dq, x.dk, x.dv), [], {}
        x.run()  # compiled, and workspaces there
        torch.cuda.synchronize()
        for n, part in ((0, None), *parts):
            for t in results:
                t.fill_(math.nan)
            torch.cuda.synchronize()
            if part:
                part.set_context()
            x.run()  # modules are loaded for a context
            torch.cuda.synchronize()
            each = []
            for _ in range(5):
                begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
                begin.record()
                x.run()
                end.record()
                torch.cuda.synchronize()
                each.append(begin.elapsed_time(end))
            times[n or "all"] = round(min(each), 3)
            if part:
                part.pop_context()
            found.append(bits(results))
        written = not any(t.isnan().any() for t in results)
        same = all(equal(found[0], other) for other in found[1:])
        report(f"the same bits on parts of the chip: {name}", same and written and times[8] > 2 * times["all"],
               same_bits=same, ms=times)


bench.emit(check="machine", ok=True, gpu=torch.cuda.get_device_name(), torch=torch.__version__)
for check in (check_in_a_row, check_forward, check_gradients, check_modified, check_neighbours, check_parts):
    check()
sys.exit(failed != 0)
