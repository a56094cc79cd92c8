#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Short sequences: attnc beside a copy, cuDNN, FlashAttention-2 and torch.compile in one run, the same timer for all.

  bench_short.py BUILD [--out FILE.jsonl] [--commit HASH] [--filter TEXT] [--rounds N] [--crossover] [--mixed]
                 [--no-peers]
                 [--backward]

One JSON line a case and peer. Bytes are those that have to move: q, k, v and o of all rows once, and LSE; `of_copy` is
their rate over that of a copy of 2 GB (read and written) in the same run. A sample is one launch between two events,
`fwd_ms` the median, `fwd_ms_min` the least; `graph` replays the launch. L2 is flushed before each sample where the
bytes of a case are fewer than 200 MB. Peers get padded [b, h, s, d] tensors, which is what they do best; with
--crossover there are none, but the schedule that is not chosen by itself; with --mixed batches of short and long
sequences, by what is `typical` (two kernels share them out), by bounds (all streamed), without either (what their sizes
say) and on tiles. With --backward the gradients are timed: q, k, v, do and LSE are read and dq, dk and dv written once
each; peers' are torch.autograd.grad of their forward pass."""
import contextlib
import json
import math
import statistics
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

import bench
from bench import parser

parser.add_argument("--rounds", type=int, default=50)
parser.add_argument("--crossover", action="store_true")
parser.add_argument("--mixed", action="store_true")
parser.add_argument("--no-peers", action="store_true")
parser.add_argument("--backward", action="store_true")
args, library = bench.begin()


def emit(**line):
    print(json.dumps(line), file=bench.out or sys.stdout, flush=True)


def sample(call, rounds, flush=None):
    """Milliseconds of single launches: median and least."""
    for _ in range(3):
        call()
    events = []
    for _ in range(rounds):
        if flush is not None:
            flush.zero_()
        start, stop = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        call()
        stop.record()
        events.append((start, stop))
    torch.cuda.synchronize()
    times = [start.elapsed_time(stop) for start, stop in events]
    return statistics.median(times), min(times)


def prefix_sums(lengths):
    return torch.cat([torch.zeros(1, dtype=torch.int64), lengths.cumsum(0)]).to("cuda", torch.int32)


TILES = " expected_seqlen(4096)"  # what says that sequences are long


class Case:
    def __init__(self, name, heads, dim, lengths_q, lengths_kv, kv_heads=None, mask="#attn.full", bounds=None,
                 typical=None):
        self.name, self.heads, self.dim, self.mask = name, heads, dim, mask
        self.kv_heads = kv_heads or heads
        self.lengths_q, self.lengths_kv = torch.as_tensor(lengths_q), torch.as_tensor(lengths_kv)
        self.bounds = bounds or (int(self.lengths_q.max()), int(self.lengths_kv.max()))
        self.typical = typical
        self.tokens_q, self.tokens_kv = int(self.lengths_q.sum()), int(self.lengths_kv.sum())
        rows_q, rows_kv = self.tokens_q * heads, self.tokens_kv * self.kv_heads
        self.bytes = 2 * dim * (3 * rows_q + 4 * rows_kv if args.backward else 2 * (rows_q + rows_kv)) + 4 * rows_q
        self.uniform = len(set(self.lengths_q.tolist())) == len(set(self.lengths_kv.tolist())) == 1

    def text(self, hint="bounds", schedule="", backward=False):
        lengths = self.typical or self.bounds
        return (f"attn.problem @bench mask({self.mask}) layout(thd) heads({self.heads}, {self.kv_heads}) "
                f"dims({self.dim}) dtype(bf16)" +
                (TILES if hint == "tiles" else " {}({}, {})".format(hint, *lengths) if hint else "") +
                (f" schedule({schedule})" if schedule and not backward else "") +
                ("\nattn.backward @grads of(@bench)" if backward else "") +
                (f" schedule({schedule})" if schedule and backward else ""))

    def tensors(self):
        rows = lambda n, h: torch.randn(n, h, self.dim, device="cuda", dtype=torch.bfloat16)  # noqa: E731
        return dict(q=rows(self.tokens_q, self.heads), k=rows(self.tokens_kv, self.kv_heads),
                    v=rows(self.tokens_kv, self.kv_heads), o=rows(self.tokens_q, self.heads),
                    lse=torch.empty(self.heads, self.tokens_q, device="cuda"),
                    cu_seqlens_q=prefix_sums(self.lengths_q), cu_seqlens_kv=prefix_sums(self.lengths_kv))


def error_of(case, tensors):
    """Of the first and the last sequences, in float64, over what rounding exact results once makes: rms."""
    cq, ck = tensors["cu_seqlens_q"].tolist(), tensors["cu_seqlens_kv"].tolist()
    apart = floor = 0.0

    def compare(actual, exact):
        nonlocal apart, floor
        apart += (actual.double() - exact).square().sum().item()
        floor += (exact.bfloat16().double() - exact).square().sum().item()
    for i in {0, (len(cq) - 1) // 2, len(cq) - 2}:
        operands = [tensors[x][c[i]:c[i + 1]].double().requires_grad_() for x, c in (("q", cq), ("k", ck), ("v", ck))]
        q, k, v = operands[0], *(x.repeat_interleave(case.heads // case.kv_heads, 1) for x in operands[1:])
        scores = torch.einsum("qhd,khd->hqk", q, k) * case.dim ** -0.5
        if case.mask == "#attn.causal":
            scores = scores.masked_fill(~torch.ones(scores.shape[1:], device="cuda").tril().bool(), -math.inf)
        exact = torch.einsum("hqk,khd->qhd", scores.softmax(-1), v)
        if not args.backward:
            compare(tensors["o"][cq[i]:cq[i + 1]], exact.detach())
            continue
        grads = torch.autograd.grad(exact, operands, tensors["do"][cq[i]:cq[i + 1]].double())
        for x, c, grad in zip("qkv", (cq, ck, ck), grads):
            compare(tensors["d" + x][c[i]:c[i + 1]], grad)
    return math.sqrt(apart / floor) if floor else 0.0


def run(case, peer, call, copy, flush, **facts):
    try:
        median, least = sample(call, args.rounds, flush)
    except Exception as e:
        return emit(peer=peer, case=case.name, error=(str(e).splitlines() or [repr(e)])[0][:200])
    rate, what = case.bytes / median / 1e6, "bwd_ms" if args.backward else "fwd_ms"
    emit(peer=peer, case=case.name, **{what: round(median, 4), what + "_min": round(least, 4)}, gb_s=round(rate),
         of_copy=round(rate / copy, 3), flushed=flush is not None, **facts)


def ours(case, tensors, copy, flush, peer="attnc", **choice):
    stream = torch.cuda.current_stream().cuda_stream
    try:
        kernel = library.compile(case.text(backward=args.backward, **choice))
        if args.backward:  # which takes what a forward pass left
            forward = library.compile(case.text())
            forward.launch(forward.bind(**tensors), stream)
            results = {"d" + x: torch.full_like(tensors[x], math.nan) for x in "qkv"}
            tensors = dict(tensors, do=torch.randn_like(tensors["o"]), **results)
    except Exception as e:
        return emit(peer=peer, case=case.name, error=str(e)[:300])
    bound = kernel.bind(**tensors)
    launch = lambda: kernel.launch(bound, torch.cuda.current_stream().cuda_stream)  # noqa: E731
    if not args.backward:
        tensors["o"].fill_(math.nan)
    launch()
    torch.cuda.synchronize()
    run(case, peer, launch, copy, flush, **bench.judged("error_of_2", error_of(case, tensors)))
    if args.crossover or args.mixed:
        return None
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        launch()
    return run(case, peer + " graph", graph.replay, copy, flush)


def peers(case, copy, flush):
    b, s_q, s_kv = len(case.lengths_q), case.bounds[0], case.bounds[1]
    q, k, v = (torch.randn(b, case.heads, s, case.dim, device="cuda", dtype=torch.bfloat16, requires_grad=args.backward)
               for s in (s_q, s_kv, s_kv))

    def measured(peer, function, q, k, v):
        if not args.backward:
            return run(case, peer, lambda: function(q, k, v), copy, flush)
        try:
            o = function(q, k, v)
        except Exception as e:
            return emit(peer=peer, case=case.name, error=(str(e).splitlines() or [repr(e)])[0][:200])
        grad = torch.randn_like(o)
        return run(case, peer, lambda: torch.autograd.grad(o, (q, k, v), grad, retain_graph=True), copy, flush)
    # FlashAttention-2's backward pass of these shapes ends in an illegal access, and the process with it.
    for peer, backend in (("cudnn", SDPBackend.CUDNN_ATTENTION),
                          ("fa2", SDPBackend.FLASH_ATTENTION))[:2 - args.backward]:
        with contextlib.suppress(Exception), sdpa_kernel(backend):
            measured(peer, F.scaled_dot_product_attention, q, k, v)
    q, k, v = (x.detach().transpose(1, 2).contiguous().requires_grad_(args.backward) for x in (q, k, v))
    if s_q != 1 or case.dim != 128 or case.kv_heads != case.heads or s_kv not in (2, 4, 8, 16) or b != 30720:
        return  # each takes seconds to compile

    @torch.compile(dynamic=False)
    def compiled(q, k, v):
        p = torch.softmax((q.float() * k.float()).sum(-1) * case.dim ** -0.5, dim=1)
        return (p[..., None] * v.float()).sum(1).to(q.dtype)
    measured("torch.compile", compiled, q, k, v)


def small_cases():
    ones = torch.ones(30720, dtype=torch.int64)
    random = torch.randint(2, 17, (30720,), generator=torch.Generator().manual_seed(1))
    mostly2 = torch.where(torch.rand(30720, generator=torch.Generator().manual_seed(2)) < 0.9, 2, random)
    for s in (2, 3, 4, 5, 6, 7, 8, 9, 12, 16, 17):
        yield Case(f"d128 b30720 h16 sq1 skv{s}", 16, 128, ones, s * ones)
    yield Case("d128 b30720 h16 sq1 skv random 2..16", 16, 128, ones, random)
    yield Case("d128 b30720 h16 sq1 skv 90% of 2", 16, 128, ones, mostly2)
    for d, h in ((64, 16), (256, 16), (512, 16)):
        for s in (4, 16):
            yield Case(f"d{d} b30720 h{h} sq1 skv{s}", h, d, ones, s * ones)
    yield Case("d128 b30720 h16/4 sq1 skv16", 16, 128, ones, 16 * ones, kv_heads=4)
    for b in (1, 32, 500, 2000, 4000):
        yield Case(f"d128 b{b} h16 sq1 skv16", 16, 128, ones[:b], 16 * ones[:b])
    for s in (16, 17):
        yield Case(f"d128 b2048 h16 sq{s} skv{s}", 16, 128, s * ones[:2048], s * ones[:2048])
    yield Case("d128 b2048 h16 sq2 skv4", 16, 128, 2 * ones[:2048], 4 * ones[:2048])
    for s in (2, 3, 4, 5, 6, 7, 8, 9, 12, 15, 16, 17):
        yield Case(f"d128 b16384 h16 self {s}", 16, 128, s * ones[:16384], s * ones[:16384])
    for s in (24, 32, 33, 48, 64, 65, 80, 96):
        n = (1 << 18) // s
        yield Case(f"d128 b{n} h16 self {s}", 16, 128, [s] * n, [s] * n)
    yield Case("d128 b16384 h16 self random 2..16", 16, 128, random[:16384], random[:16384])
    yield Case("d128 b16384 h16 self 90% of 2", 16, 128, mostly2[:16384], mostly2[:16384])
    yield Case("d128 b16384 h16 self 16 causal", 16, 128, 16 * ones[:16384], 16 * ones[:16384], mask="#attn.causal")
    yield Case("d256 b8192 h16 self 16", 16, 256, 16 * ones[:8192], 16 * ones[:8192])
    for s in (1, 4):
        yield Case(f"d128 b16384 h16/4 sq{s} skv16", 16, 128, s * ones[:16384], 16 * ones[:16384], kv_heads=4)


def compile_ahead(cases):
    """What the cases need, side by side, into the cache."""
    texts = {case.text(backward=back, hint=hint) for case in cases for back in {False, args.backward}
             for hint in ("bounds", *(("tiles",) if args.crossover or args.mixed else ()),
                          *(("typical", "") if args.mixed else ()))}
    texts |= {case.text(backward=args.backward, schedule=simt_rows(case)) for case in cases if args.crossover}

    def compiled(text):
        with contextlib.suppress(Exception):  # is told of where it is measured
            library.compile(text)
    with ThreadPoolExecutor() as pool:
        list(pool.map(compiled, sorted(texts)))


def simt_rows(case):
    rows = 1 if args.backward else min(4, case.bounds[0])
    keys, blocks = 1 if args.backward else 4, 12 - 2 * rows
    return f"#tile.simt_rows<rows = {rows}, keys = {keys}, lanes = 16, warps = 4, ctas_per_sm = {blocks}>"


def crossover_cases():
    for s_q, lengths in ((1, (16, 32, 64, 128, 256, 512)), (2, (16, 64, 256)), (4, (16, 32, 64, 128)), (8, (16, 64)),
                         (16, (16, 32, 64))):
        for s_kv in lengths:
            b = min(30720, (1 << 19) // (s_q + s_kv))
            ones = torch.ones(b, dtype=torch.int64)
            yield Case(f"d128 b{b} h16 sq{s_q} skv{s_kv}", 16, 128, s_q * ones, s_kv * ones)
    for s in (4, 8, 9, 12, 16, 17, 20, 24, 32, 33, 40, 48, 49, 56, 64, 65, 72, 80, 81, 88, 90, 91, 96, 97, 104, 112,
              120, 128, 129, 160, 161, 192, 193, 256):
        b = (1 << 18) // s
        ones = torch.ones(b, dtype=torch.int64)
        yield Case(f"d128 b{b} h16 self {s}", 16, 128, s * ones, s * ones)


def mixed_cases():
    """Short ones of the length that is typical, and some long ones among them."""
    def case(name, short_q, short_kv, shorts, longs, typical=None, mask="#attn.full"):
        lengths = [torch.tensor([s] * shorts + longs, dtype=torch.int64) for s in (short_q, short_kv)]
        order = torch.randperm(len(lengths[0]), generator=torch.Generator().manual_seed(1))
        typical = typical or (short_q, short_kv)
        return Case(name, 16, 128, lengths[0][order], lengths[1][order], mask=mask, bounds=typical, typical=typical)
    yield case("30720 of 1x16", 1, 16, 30720, [])
    yield case("2000 of 1x16", 1, 16, 2000, [])
    yield case("16384 of 16", 16, 16, 16384, [])
    yield case("16384 of 4", 4, 4, 16384, [])
    yield case("16000 of 16, 8 of 2048", 16, 16, 16000, [2048] * 8)
    yield case("16000 of 16, 64 of 512 causal", 16, 16, 16000, [512] * 64, mask="#attn.causal")
    yield case("4000 of 4, 1000 of 48", 4, 4, 4000, [48] * 1000)
    yield case("10 of 1638, typical 16", 16, 16, 0, [1638] * 10, (16, 16))
    yield case("200 of 80, typical 16", 16, 16, 0, [80] * 200, (16, 16))


def main():
    began = time.perf_counter()
    x = torch.empty(1 << 30, dtype=torch.int8, device="cuda")
    y = torch.empty_like(x)
    copy = 2 * x.numel() / sample(lambda: y.copy_(x), 20)[0] / 1e6
    emit(peer="env", commit=args.commit, gpu=torch.cuda.get_device_name(), torch=torch.__version__,
         cudnn=torch.backends.cudnn.version(), cuda=torch.version.cuda, date=time.strftime("%Y-%m-%d"),
         copy_gb_s=round(copy))
    del x, y
    scratch = torch.empty(256 << 20, dtype=torch.int8, device="cuda")
    cases = crossover_cases() if args.crossover else mixed_cases() if args.mixed else small_cases()
    cases = [case for case in cases if args.filter in case.name]
    compile_ahead(cases)
    for case in cases:
        flush = scratch if case.bytes < 200e6 else None
        tensors = case.tensors()
        ours(case, tensors, copy, flush)
        if args.crossover:
            ours(case, tensors, copy, flush, "SIMT rows", schedule=simt_rows(case))
            ours(case, tensors, copy, flush, "tiles", hint="tiles")
        if args.mixed:
            ours(case, tensors, copy, flush, "by class", hint="typical")
            ours(case, tensors, copy, flush, "no hint", hint="")
            ours(case, tensors, copy, flush, "tiles", hint="tiles")
        del tensors
        if not args.crossover and not args.mixed and not args.no_peers and case.uniform and len(case.lengths_q) > 1000:
            peers(case, copy, flush)
        torch.cuda.empty_cache()
    emit(peer="end", s=round(time.perf_counter() - began, 1))


if __name__ == "__main__":
    main()
    bench.end()
