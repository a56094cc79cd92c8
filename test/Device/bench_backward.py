#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Backward passes of attnc, both ways to dQ, beside cuDNN and FlashAttention-2 (through torch SDPA) in one run.

  bench_backward.py BUILD [--out FILE.jsonl] [--commit HASH] [--filter TEXT] [--quick]

One JSON line a case and peer: milliseconds of the whole pass, what prepares and rounds included, and TFLOP/s at 2.5 times
the forward pass's operations on visible pairs. The peers of a case take turns, a sample is some launches between two
CUDA events, and a figure the median of the rounds. Rows that no peer has take turns with both peers' causal passes, of
which no line is written: a GPU that runs nothing but our kernels lowers its clocks."""
import statistics
import time
from concurrent.futures import ThreadPoolExecutor

import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

import backward
import bench
from bench import emit, parser

parser.add_argument("--quick", action="store_true", help="3 rounds in place of 9")
args, library = bench.begin()

MASKS = {"full": ("#attn.full", lambda n: n * n), "causal": ("#attn.causal", lambda n: n * (n + 1) / 2),
         "causal window1024": ("#attn.band<left = 1023, right = 0>", lambda n: sum(min(i + 1, 1024) for i in range(n)))}
CASES = [(d, s, mask, "") for d in (64, 128, 256) for s in (1024, 4096, 16384) for mask in ("full", "causal")]
UNEVEN = [4096, 3072, 2560, 2048, 1536, 1024, 896, 512, 384, 256]
CASES += [(128, 16384, "causal window1024", ""), (128, 16384, "causal", "#attn.softcap<30.0>"), (128, 16384, "causal", "#attn.alibi")]


def name_of(d, s, mask, score):
    return f"d{d} b{16384 // s} h{2048 // d} s{s} {mask}" + (" " + score.split("<")[0].split(".")[1] if score else "")


def random_documents(count, tokens=32768):
    cuts = torch.randperm(tokens - 1, generator=torch.Generator().manual_seed(count))[: count - 1].sort().values + 1
    return torch.cat([torch.tensor([0]), cuts, torch.tensor([tokens])]).diff().tolist()


# Packed, causal: head dim, name and lengths.
DOCUMENTS = [(d, "docs uneven10", UNEVEN) for d in (64, 128, 256)]
DOCUMENTS += [(128, f"T32768 docs{n}", random_documents(n)) for n in (8, 32, 128)]


def make(d, s, mask, score, options):
    h = 2048 // d
    return backward.Dense(library, MASKS[mask][0], 16384 // s, s, s, h, h, d, score=f"score([{score}])" if score else "",
                          options=options)


def sample(launch, count):
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    begin.record()
    for _ in range(count):
        launch()
    end.record()
    end.synchronize()
    return begin.elapsed_time(end) / count


COMPANY = "company:"


def peers(x, mask, score):
    stream = torch.cuda.current_stream().cuda_stream
    found = {"attnc": lambda: x[""].backward.launch(x[""].of_backward, stream),
             "attnc deterministic": lambda: x["deterministic"].backward.launch(x["deterministic"].of_backward, stream)}
    has = not score and "window" not in mask
    q, k, v = (t.transpose(1, 2).detach().requires_grad_() for t in (x[""].q, x[""].k, x[""].v))
    do = x[""].do.transpose(1, 2)
    for peer, backend in (("cudnn", SDPBackend.CUDNN_ATTENTION), ("fa2", SDPBackend.FLASH_ATTENTION)):
        with sdpa_kernel(backend):
            o = F.scaled_dot_product_attention(q, k, v, is_causal=mask != "full")
        found[peer if has else f"{COMPANY} {peer}"] = lambda o=o: torch.autograd.grad(o, (q, k, v), do, retain_graph=True)
    return found


def peers_of_documents(x):
    """Of packed sequences torch has FlashAttention-2."""
    stream = torch.cuda.current_stream().cuda_stream
    found = {"attnc": lambda: x[""].backward.launch(x[""].of_backward, stream),
             "attnc deterministic": lambda: x["deterministic"].backward.launch(x["deterministic"].of_backward, stream)}
    try:
        from torch.nn.attention.varlen import varlen_attn
        q, k, v = (t.detach().requires_grad_() for t in (x[""].q, x[""].k, x[""].v))
        most = int(x[""].cu.diff().max())
        o = varlen_attn(q, k, v, x[""].cu, x[""].cu, most, most, window_size=(-1, 0))
        found["varlen"] = lambda: torch.autograd.grad(o, (q, k, v), x[""].do, retain_graph=True)
    except Exception as error:  # a peer that is not there is said to be so
        emit(peer="varlen", error=bench.short(error))
    return found


def time_turns(name, flops, launches, count):
    """The peers of a case take turns; the first round warms up."""
    times = {peer: [] for peer in launches}
    for turn in range(4 if args.quick else 10):
        for peer, launch in launches.items():
            ms = sample(launch, count)
            if turn:
                times[peer].append(ms)
    for peer, all_ms in times.items():
        if peer.startswith(COMPANY):
            continue
        ms = statistics.median(all_ms)
        emit(peer=peer, case=name, bwd_ms=round(ms, 4), bwd_tf=round(flops / ms / 1e9, 1))


emit(peer="env", commit=args.commit, gpu=torch.cuda.get_device_name(), torch=torch.__version__, cuda=torch.version.cuda,
     cudnn=torch.backends.cudnn.version(), date=time.strftime("%Y-%m-%d"))
wanted = [case for case in CASES if args.filter in name_of(*case)]
with ThreadPoolExecutor(12) as pool:  # all kernels are in the cache before anything is timed
    def compile_case(case):
        d, s, mask, score = case
        h = 2048 // d
        text = f"attn.problem @p mask({MASKS[mask][0]}) layout(bshd) heads({h}, {h}) dims({d}, {d}) dtype(bf16) " + (
            f"score([{score}])" if score else "") + "\n"
        for more in ("", "attn.backward @grads of(@p) ", "attn.backward @grads of(@p) deterministic"):
            library.compile(text + more)

    def compile_documents(d):
        for options in ("", "deterministic"):
            for text in backward.Documents.texts(d, 2048 // d, options):
                library.compile(text)
    packed = [case for case in DOCUMENTS if args.filter in f"d{case[0]} h{2048 // case[0]} {case[1]} causal"]
    list(pool.map(compile_case, wanted))
    list(pool.map(compile_documents, {d for d, _, _ in packed}))
for d, s, mask, score in wanted:
    flops = 2.5 * 4 * MASKS[mask][1](s) * (16384 // s) * (2048 // d) * d
    x = {options: make(d, s, mask, score, options) for options in ("deterministic", "")}
    for one in x.values():
        one.run()
    launches = peers(x, mask, score)
    time_turns(name_of(d, s, mask, score), flops, launches, 2 if s == 16384 else 4)
    del x, launches
    torch.cuda.empty_cache()
for d, name, lengths in packed:
    flops = 2.5 * 4 * sum(n * (n + 1) / 2 for n in lengths) * 2048
    x = {options: backward.Documents(library, lengths, d, 2048 // d, options) for options in ("deterministic", "")}
    for one in x.values():
        one.run()
    launches = peers_of_documents(x)
    time_turns(f"d{d} h{2048 // d} {name} causal", flops, launches, 4)
    del x, launches
    torch.cuda.empty_cache()
