#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""attnc beside FlashAttention-2 and cuDNN (through torch SDPA and varlen) in one run, the same timer for all.

  bench_peers.py BUILD [--out FILE.jsonl] [--commit HASH] [--target T] [--config CONFIG] [--filter TEXT] [--quick]

One JSON line a case and peer, with the keys of attn-bench; TFLOP/s on visible pairs. All kernels are compiled
first, on many threads (`compile_ms` is of that crowd: nearly nothing where another case has the same kernel). Then
the peers of a case take turns: a sample is some launches, about 4 ms, between two CUDA events, and a figure the
median of the rounds, since a GPU's clocks drift by a tenth over a run. Rows that no peer has take turns with both
peers' dense causal kernels, of which no line is written."""
import contextlib
import dataclasses
import math
import os
import statistics
import time
from concurrent.futures import ThreadPoolExecutor

began = time.perf_counter()
import torch  # noqa: E402
import torch.nn.functional as F  # noqa: E402
from torch.nn.attention import SDPBackend, sdpa_kernel  # noqa: E402

import bench  # noqa: E402
from bench import elapsed_ms, parser, short  # noqa: E402

parser.add_argument("--target")
parser.add_argument("--config")
parser.add_argument("--quick", action="store_true", help="2 rounds in place of 9")
args, library = bench.begin()
SAMPLE_MS, ROUNDS = 4, 2 if args.quick else 9
rows = {}


def emit(**line):
    bench.emit(**line)
    if "fwd_tf" in line:
        rows.setdefault(line["case"], {})[line["peer"]] = line["fwd_tf"]


def randn(*shape, dtype=torch.bfloat16):
    return torch.randn(*shape, device="cuda", dtype=dtype)


def triangle(n):
    return n * (n + 1) / 2


def band(n, window):
    return triangle(min(n, window)) + max(0, n - window) * window


# What there is to time.

@dataclasses.dataclass
class Case:
    name: str
    mask: str
    visible: object  # pairs of a sequence of n
    heads: int
    kv_heads: int
    dim: int
    dim_v: int
    batch: int = 1
    seqlen: int = 0
    lengths: tuple = ()  # of packed sequences; empty: dense
    score: str = ""
    scale: object = None
    dtype: str = "bf16"
    causal: object = None  # dense: what SDPA is told; None: it has no such mask
    varlen: bool = False   # packed: time varlen_attn too
    segments: int = 0      # packed: by ids and positions, of which there may be so many

    def text(self):
        typical = round(sum(self.lengths) / len(self.lengths)) if self.lengths else self.seqlen
        layout = ("thd padded" if self.segments else "thd") if self.lengths else "bshd"
        return (f"attn.problem @bench mask({self.mask}) layout({layout}) "
                f"heads({self.heads}, {self.kv_heads}) dims({self.dim}, {self.dim_v}) dtype({self.dtype})" +
                (f" scale({self.scale:f})" if self.scale else "") +
                (f" score([{self.score}])" if self.score else "") + f" typical({typical})" +
                (f" segments({self.segments})" if self.segments else "") +
                (f" config({args.config})" if args.config else ""))

    def flops(self):
        pairs = sum(map(self.visible, self.lengths or (self.seqlen,) * self.batch))
        return 2 * pairs * self.heads * (self.dim + self.dim_v)


CAUSAL, WINDOW = "#attn.causal", "#attn.band<left = 1023, right = 0>"
cases = []


def dense(d, s, what, mask, visible, causal=None, h=None, g=None, dv=None, score="", dtype="bf16"):
    b, h = max(1, 16384 // s), h or 2048 // d
    dims, heads = f"d{d}/{dv}" if dv else f"d{d}", f"h{h}/{g}" if g else f"h{h}"
    prefix = ("gqa " if g else "") + ("f16 " if dtype == "f16" else "")
    cases.append(Case(f"{prefix}{dims} b{b} {heads} s{s} {what}", mask, visible, h, g or h, d, dv or d, b, s,
                      score=score, dtype=dtype, causal=causal))


def packed(d, what, lengths, mask, visible, varlen=False, segments=0):
    h = 2048 // d
    cases.append(Case(f"d{d} h{h} {what}", mask, visible, h, h, d, d, lengths=tuple(lengths), varlen=varlen,
                      segments=segments))


for d in (64, 128, 256):
    for s in (1024, 4096, 16384):
        dense(d, s, "full", "#attn.full", lambda n: n * n, False)
        dense(d, s, "causal", CAUSAL, triangle, True)
    dense(d, 2048, "causal", CAUSAL, triangle, True)  # as many visible pairs as the window below
    dense(d, 16384, "causal window1024", WINDOW, lambda n: band(n, 1024))
    for n in (256, 1024, 4096, 16384):
        packed(d, f"docs {16384 // n}x{n} full", [n] * (16384 // n), "#attn.full", lambda n: n * n)
        packed(d, f"docs {16384 // n}x{n} causal", [n] * (16384 // n), CAUSAL, triangle)
    packed(d, "docs uneven10 causal", [4096, 3072, 2560, 2048, 1536, 1024, 896, 512, 384, 256], CAUSAL, triangle, True)
    packed(d, "docs uneven10 causal by ids", [4096, 3072, 2560, 2048, 1536, 1024, 896, 512, 384, 256], CAUSAL, triangle,
           segments=16)
dense(128, 16384, "window1024 or 64 sinks", f"#attn.or<#attn.prefix<64>, {WINDOW}>",
      lambda n: band(n, 1024) + sum(min(64, max(0, i - 1023)) for i in range(n)))
dense(128, 16384, "prefix4096 or causal", "#attn.or<#attn.prefix<4096>, #attn.causal>",
      lambda n: sum(max(4096, i + 1) for i in range(n)))
dense(128, 16384, "causal softcap", CAUSAL, triangle, score="#attn.softcap<30.0>")
dense(128, 16384, "causal alibi", CAUSAL, triangle, score="#attn.alibi")
for s in (4096, 16384):
    dense(128, s, "causal", CAUSAL, triangle, True, h=32, g=8)
dense(96, 4096, "causal", CAUSAL, triangle, True, h=16)
dense(192, 4096, "causal", CAUSAL, triangle, True, h=16, dv=128)
dense(128, 4096, "causal", CAUSAL, triangle, True, dtype="f16")
for n in (8, 32, 128):
    g = torch.Generator().manual_seed(n)
    cuts = [0] + sorted((torch.randperm(32767, generator=g)[: n - 1] + 1).tolist()) + [32768]
    lengths = [hi - lo for lo, hi in zip(cuts, cuts[1:])]
    packed(128, f"T32768 docs{n} causal", lengths, CAUSAL, triangle, True)
    packed(128, f"T32768 docs{n} causal by ids", lengths, CAUSAL, triangle, segments=n)
cases = [case for case in cases if args.filter in case.name]


# Timing.

def timed(case, flops, runs):
    """`runs`: peer -> (context, call, facts). Rounds in which each peer has its turn."""
    counts, samples = {}, {}
    for peer, (context, call, _) in runs.items():
        try:
            with context():
                call()
                torch.cuda.synchronize()
                counts[peer] = max(1, round(SAMPLE_MS / max(elapsed_ms(call, 2), 0.005)))
        except Exception as e:
            emit(peer=peer, case=case, error=short(e))
    for _ in range(ROUNDS):
        for peer, count in counts.items():
            with runs[peer][0]():
                samples.setdefault(peer, []).append(elapsed_ms(runs[peer][1], count))
    for peer, times in samples.items():
        ms = statistics.median(times)
        if runs[peer][2] is None:
            continue
        emit(peer=peer, case=case, fwd_ms=round(ms, 4), fwd_tf=round(flops / ms / 1e9, 1), **runs[peer][2])


def compile_case(case):
    start = time.perf_counter()
    try:
        return library.compile(case.text(), args.target), (time.perf_counter() - start) * 1e3
    except Exception as e:
        return e, 0


def dense_tensors(case):
    dtype = {"bf16": torch.bfloat16, "f16": torch.float16}[case.dtype]
    b, s = case.batch, case.seqlen
    q, k = randn(b, s, case.heads, case.dim, dtype=dtype), randn(b, s, case.kv_heads, case.dim, dtype=dtype)
    v = randn(b, s, case.kv_heads, case.dim_v, dtype=dtype)
    o, lse = randn(b, s, case.heads, case.dim_v, dtype=dtype), torch.empty(b, case.heads, s, device="cuda")
    return dict(q=q, k=k, v=v, o=o, lse=lse)


BACKENDS = {"fa2": lambda: sdpa_kernel(SDPBackend.FLASH_ATTENTION), "cudnn": lambda: sdpa_kernel(SDPBackend.CUDNN_ATTENTION)}


def sdpa(case, t):
    q, k, v = (t[x].transpose(1, 2) for x in "qkv")
    gqa = {"enable_gqa": True} if case.heads != case.kv_heads else {}
    call = lambda: F.scaled_dot_product_attention(q, k, v, is_causal=case.causal, **gqa)  # noqa: E731
    return {peer: (context, call, {}) for peer, context in BACKENDS.items()}


def packed_tensors(case):
    tokens, h = sum(case.lengths), case.heads
    q, k, v, o = (randn(tokens, h, case.dim) for _ in "qkvo")
    tensors = dict(q=q, k=k, v=v, o=o, lse=torch.empty(h, tokens, device="cuda"))
    lengths = torch.tensor(case.lengths)
    if case.segments:  # the same tensor on both sides, as it is where queries and keys are
        ids = torch.arange(1, len(lengths) + 1).repeat_interleave(lengths).int().cuda()
        positions = torch.cat([torch.arange(n) for n in case.lengths]).int().cuda()
        return dict(tensors, ids_q=ids, positions_q=positions, ids_kv=ids, positions_kv=positions,
                    status=torch.empty((), device="cuda", dtype=torch.int32))
    cu = torch.tensor([0] + list(lengths.cumsum(0)), device="cuda", dtype=torch.int32)
    return dict(tensors, cu_seqlens_q=cu, cu_seqlens_kv=cu)


def varlen(case, t):
    def call():
        from torch.nn.attention.varlen import varlen_attn
        cu, longest = t["cu_seqlens_q"], max(case.lengths)
        return varlen_attn(t["q"], t["k"], t["v"], cu, cu, longest, longest, window_size=(-1, 0))
    return {"varlen": (contextlib.nullcontext, call, {})}


def company(case):
    """For rows that no peer has, so that all are timed alike and figures of two rows may be compared: a GPU that runs
    nothing but our kernels for long gets as hot as it may and lowers its clocks, by up to a fifth, and one that runs
    peers' in between does not."""
    q, k, v = (randn(1, case.heads, max(case.seqlen, sum(case.lengths)), case.dim) for _ in "qkv")
    call = lambda: F.scaled_dot_product_attention(q, k, v, is_causal=True)  # noqa: E731
    return {peer: (context, call, None) for peer, context in BACKENDS.items()}


def first_result(peers, shape):
    """What the first peer that can do it computes, as [b, s, h, d]."""
    for context, call, _ in peers.values():
        with contextlib.suppress(Exception), context():
            result = call()
            result = result.transpose(1, 2) if result.dim() == 4 else result
            if result.shape == shape:
                return result.float()
    return None


def ours(case, compiled, tensors, expected):
    kernel, compile_ms = compiled
    if isinstance(kernel, Exception):
        raise kernel
    bound, stream = kernel.bind(**tensors), torch.cuda.current_stream().cuda_stream
    tensors["o"].fill_(math.nan)
    kernel.launch(bound, stream)
    torch.cuda.synchronize()
    facts = {"compile_ms": round(compile_ms, 1)}
    if expected is not None:
        error = ((tensors["o"].float() - expected).norm() / expected.norm()).item()
        facts.update(bench.judged("rel_err_vs_peer", error))
    return {"attnc": (contextlib.nullcontext, lambda: kernel.launch(bound, stream), facts)}


def run_case(case, compiled):
    tensors = packed_tensors(case) if case.lengths else dense_tensors(case)
    peers = varlen(case, tensors) if case.varlen else sdpa(case, tensors) if case.causal is not None else {}
    runs = {}
    try:
        runs = ours(case, compiled, tensors, first_result(peers, tensors["o"].shape))
    except Exception as e:
        emit(peer="attnc", case=case.name, error=short(e))
    timed(case.name, case.flops(), {**runs, **(peers or company(case))})


def launches():
    """Host time of a launch, and the same launches replayed from a graph."""
    case = Case("d128 b1 h16 s1024 causal", CAUSAL, triangle, 16, 16, 128, 128, 1, 1024)
    count, tensors, stream = 20, dense_tensors(case), torch.cuda.current_stream().cuda_stream
    kernel, _ = compile_case(case)
    if isinstance(kernel, Exception):
        raise kernel
    bound = kernel.bind(**tensors)
    emit(peer="attnc", case="host time of a launch (ctypes included)", us=round(kernel.launch_us(bound, stream), 2))

    expected = tensors["o"].clone()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(count):
            kernel.launch(bound, torch.cuda.current_stream().cuda_stream)
    tensors["o"].fill_(math.nan)
    graph.replay()
    torch.cuda.synchronize()
    timed(f"{case.name}, {count} launches", count * case.flops(), {
        "attnc": (contextlib.nullcontext, lambda: [kernel.launch(bound, stream) for _ in range(count)], {}),
        "graph": (contextlib.nullcontext, graph.replay, {"same_bits": torch.equal(tensors["o"], expected)})})


emit(peer="env", commit=args.commit, gpu=torch.cuda.get_device_name(), torch=torch.__version__,
     cudnn=torch.backends.cudnn.version(), cuda=torch.version.cuda, date=time.strftime("%Y-%m-%d"),
     target=args.target or "the device's own")
threads = min(14, os.cpu_count())
with ThreadPoolExecutor(threads) as pool:
    kernels = list(pool.map(compile_case, cases))
emit(peer="attnc", case="compile all", kernels=library.c.attnCompileCount(), threads=threads,
     s=round(time.perf_counter() - began, 1))
SCORES = {"": "", " softcap": "#attn.softcap<30.0>", " alibi": "#attn.alibi"}
COLD = [(d, "causal", CAUSAL, "") for d in (64, 128, 256)] + [(d, "window1024", WINDOW, "") for d in (64, 128, 256)]
COLD += [(128, "full", "#attn.full", "")] + [(128, "causal", CAUSAL, score) for score in (" softcap", " alibi")]
for d, what, mask, score in () if args.quick else COLD:  # one at a time; the scale makes them kernels that are not there yet
    case = Case(f"cold compile, d{d} {what}{score}", mask, triangle, 16, 16, d, d, 1, 4096, score=SCORES[score], scale=0.0625 + d / 2 ** 20)
    kernel, compile_ms = compile_case(case)
    emit(peer="attnc", case=case.name, compile_ms=round(compile_ms, 1),
         **({"error": short(kernel)} if isinstance(kernel, Exception) else {"resources": kernel.resources()}))
a, b_ = randn(8192, 8192), randn(8192, 8192)
elapsed_ms(lambda: a @ b_, 20)  # the clocks come up
emit(peer="cublas", case="matmul8192", tf=round(2 * 8192 ** 3 / elapsed_ms(lambda: a @ b_, 50) / 1e9, 1))
del a, b_
for case, compiled in zip(cases, kernels):
    try:
        run_case(case, compiled)
    except Exception as e:  # out of memory, or a context that is lost: the rest may still run
        emit(peer="any", case=case.name, error=short(e))
try:
    launches()
except Exception as e:
    emit(peer="attnc", case="host time of a launch (ctypes included)", error=short(e))
emit(peer="end", s=round(time.perf_counter() - began, 1))

PEERS = ("attnc", "fa2", "cudnn", "varlen", "graph")
print(f"{'case':44} " + " ".join(f"{peer:>7}" for peer in PEERS) + "  /best")
for case, by_peer in rows.items():
    best = max((tf for peer, tf in by_peer.items() if peer != "attnc"), default=math.nan)
    print(f"{case:44} " + " ".join(f"{by_peer.get(peer, math.nan):7.1f}" for peer in PEERS) +
          f" {by_peer.get('attnc', math.nan) / best:6.2f}")
bench.end()
