#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""attnc beside FlashAttention-2 and cuDNN (through torch SDPA and varlen) in one run, the same timer for all.

  bench_peers.py BUILD [--out FILE.jsonl] [--commit HASH] [--target T] [--config CONFIG] [--quick]

One JSON line a case and peer, with the keys of attn-bench; TFLOP/s on visible pairs."""
import argparse
import json
import math
import os
import sys
import tempfile
import time

os.environ.setdefault("ATTN_CACHE_DIR", tempfile.mkdtemp(prefix="attnc-cache-"))
import torch  # noqa: E402
import torch.nn.functional as F  # noqa: E402
import triton  # noqa: E402
from torch.nn.attention import SDPBackend, sdpa_kernel  # noqa: E402

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import attnc  # noqa: E402

parser = argparse.ArgumentParser()
parser.add_argument("build")
parser.add_argument("--out")
parser.add_argument("--commit", default="unknown")
parser.add_argument("--target")
parser.add_argument("--config")
parser.add_argument("--quick", action="store_true")
args = parser.parse_args()
library = attnc.Library(os.path.join(args.build, "lib", "libattnc.so"))
out = open(args.out, "w") if args.out else None
torch.manual_seed(0)
rows = {}


def emit(**line):
    text = json.dumps(line)
    print(text, flush=True)
    if out:
        print(text, file=out, flush=True)
    if "fwd_tf" in line:
        rows.setdefault(line["case"], {})[line["peer"]] = line["fwd_tf"]


def timed(peer, case, run, flops, **facts):
    try:
        run()
        torch.cuda.synchronize()
        ms = triton.testing.do_bench(run, warmup=10, rep=25 if args.quick else 60, return_mode="median")
        emit(peer=peer, case=case, fwd_ms=round(ms, 4), fwd_tf=round(flops / ms / 1e9, 1), **facts)
    except Exception as e:
        emit(peer=peer, case=case, error=(str(e).splitlines() or [repr(e)])[0][:200])


def randn(*shape):
    return torch.randn(*shape, device="cuda", dtype=torch.bfloat16)


def ours(text, case, flops, expected=None, **tensors):
    if args.config:
        text += f" config({args.config})"
    try:
        t = time.perf_counter()
        kernel = library.compile(text, args.target)
        compile_ms = (time.perf_counter() - t) * 1e3
        bound = kernel.bind(**tensors)
        stream = torch.cuda.current_stream().cuda_stream
        tensors["o"].fill_(math.nan)
        kernel.launch(bound, stream)
        torch.cuda.synchronize()
        facts = {"compile_ms": round(compile_ms, 1)}
        if expected is not None:
            facts["rel_err_vs_peer"] = round(((tensors["o"].float() - expected.float()).norm() /
                                              expected.float().norm()).item(), 5)
        timed("attnc", case, lambda: kernel.launch(bound, stream), flops, **facts)
    except Exception as e:
        emit(peer="attnc", case=case, error=str(e)[:300])


def dense(d, s, mask_name, mask, visible, causal=None, h=None):
    b, h = max(1, 16384 // s), h or 2048 // d
    case = f"d{d} b{b} h{h} s{s} {mask_name}"
    flops = 4 * b * visible * h * d
    q, k, v = randn(b, s, h, d), randn(b, s, h, d), randn(b, s, h, d)
    o, lse = torch.empty_like(q), torch.empty(b, h, s, device="cuda")
    expected = None
    if causal is not None:
        qt, kt, vt = (x.transpose(1, 2) for x in (q, k, v))
        with sdpa_kernel(SDPBackend.FLASH_ATTENTION):
            expected = F.scaled_dot_product_attention(qt, kt, vt, is_causal=causal).transpose(1, 2)
    ours(f"attn.problem @d mask({mask}) layout(bshd) heads({h}) dims({d}) dtype(bf16)", case, flops, expected,
         q=q, k=k, v=v, o=o, lse=lse)
    if causal is None:
        return
    for peer, backend in (("fa2", SDPBackend.FLASH_ATTENTION), ("cudnn", SDPBackend.CUDNN_ATTENTION)):
        with sdpa_kernel(backend):
            timed(peer, case, lambda: F.scaled_dot_product_attention(qt, kt, vt, is_causal=causal), flops)


def packed(d, name, lengths, mask, visible, peer_window=None):
    h, tokens = 2048 // d, sum(lengths)
    case = f"d{d} h{h} {name}"
    flops = 4 * sum(visible(n) for n in lengths) * h * d
    q, k, v = randn(tokens, h, d), randn(tokens, h, d), randn(tokens, h, d)
    o, lse = torch.empty_like(q), torch.empty(h, tokens, device="cuda")
    cu = torch.tensor([0] + list(torch.tensor(lengths).cumsum(0)), device="cuda", dtype=torch.int32)
    ours(f"attn.problem @p mask({mask}) layout(thd) heads({h}) dims({d}) dtype(bf16)", case, flops,
         q=q, k=k, v=v, o=o, lse=lse, cu_seqlens_q=cu, cu_seqlens_kv=cu)
    if peer_window is not None:
        try:
            from torch.nn.attention.varlen import varlen_attn
            timed("varlen", case, lambda: varlen_attn(q, k, v, cu, cu, max(lengths), max(lengths),
                                                      window_size=peer_window), flops)
        except ImportError as e:
            emit(peer="varlen", case=case, error=str(e)[:200])


def triangle(n):
    return n * (n + 1) / 2


def band(n, window):
    return triangle(min(n, window)) + max(0, n - window) * window


emit(peer="env", commit=args.commit, gpu=torch.cuda.get_device_name(), torch=torch.__version__,
     cudnn=torch.backends.cudnn.version(), cuda=torch.version.cuda, date=time.strftime("%Y-%m-%d"))
a, b_ = randn(8192, 8192), randn(8192, 8192)
ms = triton.testing.do_bench(lambda: a @ b_, warmup=20, rep=100, return_mode="median")
emit(peer="cublas", case="matmul8192", tf=round(2 * 8192 ** 3 / ms / 1e9, 1))
for d in (64, 128, 256):
    for s in (1024, 4096, 16384):
        dense(d, s, "full", "#attn.full", s * s, False)
        dense(d, s, "causal", "#attn.causal", triangle(s), True)
    dense(d, 2048, "causal", "#attn.causal", triangle(2048), True)  # as many visible pairs as the window below
    dense(d, 16384, "causal window1024", "#attn.band<left = 1023, right = 0>", band(16384, 1024))
    for n in (256, 1024, 4096, 16384):
        packed(d, f"docs {16384 // n}x{n} full", [n] * (16384 // n), "#attn.full", lambda n: n * n)
        packed(d, f"docs {16384 // n}x{n} causal", [n] * (16384 // n), "#attn.causal", triangle)
    packed(d, "docs uneven10 causal", [4096, 3072, 2560, 2048, 1536, 1024, 896, 512, 384, 256], "#attn.causal", triangle,
           (-1, 0))
s = 16384
dense(128, s, "window1024 or 64 sinks", "#attn.or<#attn.prefix<64>, #attn.band<left = 1023, right = 0>>",
      band(s, 1024) + sum(min(64, max(0, i - 1023)) for i in range(s)))
dense(128, s, "prefix4096 or causal", "#attn.or<#attn.prefix<4096>, #attn.causal>",
      sum(max(4096, i + 1) for i in range(s)))
for n in (8, 32, 128):
    g = torch.Generator().manual_seed(n)
    cuts = [0] + sorted((torch.randperm(32767, generator=g)[: n - 1] + 1).tolist()) + [32768]
    packed(128, f"T32768 docs{n} causal", [hi - lo for lo, hi in zip(cuts, cuts[1:])], "#attn.causal", triangle, (-1, 0))

print(f"{'case':44} {'attnc':>7} {'fa2':>7} {'cudnn':>7} {'varlen':>7} {'/fa2':>6}")
for case, peers in rows.items():
    ratio = peers["attnc"] / peers["fa2"] if {"attnc", "fa2"} <= peers.keys() else float("nan")
    print(f"{case:44} " + " ".join(f"{peers.get(p, float('nan')):7.1f}" for p in ("attnc", "fa2", "cudnn", "varlen")) +
          f" {ratio:6.2f}")
