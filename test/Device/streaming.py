#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checks of short sequences on a GPU, forward and backward: what kernels for them elsewhere got wrong.

  streaming.py BUILD [--out FILE.jsonl]

Odd numbers of sequences and heads; sequences without queries or keys, in float16; padding with NaN in it, whose results
are exactly 0; offsets beyond 2^31 elements; lengths that change between replays of a CUDA graph, beyond the bounds too;
errors of at most twice those of rounding inputs and output; equal bits. One JSON line a check; exit 1 if one fails."""
import argparse
import json
import math
import os
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

os.environ.setdefault("ATTN_CACHE_DIR", tempfile.mkdtemp(prefix="attnc-cache-"))
import torch  # noqa: E402

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import attnc  # noqa: E402

parser = argparse.ArgumentParser()
parser.add_argument("build")
parser.add_argument("--out")
args = parser.parse_args()
library = attnc.Library(os.path.join(args.build, "lib", "libattnc.so"))
out = open(args.out, "w") if args.out else None
failed = 0


def report(check, ok, **facts):
    global failed
    failed += not ok
    line = json.dumps(dict(check=check, ok=bool(ok),
                           **{k: round(v, 4) if isinstance(v, float) else v for k, v in facts.items()}))
    print(line, file=out or sys.stdout, flush=True)


class Batch:
    """A padded packed batch: `gap` rows of NaN before, between and behind sequences."""

    def __init__(self, heads, kv_heads, dim, bounds, mask="#attn.full", dtype=torch.bfloat16, score="", rows=0,
                 hint="bounds"):
        self.heads, self.kv_heads, self.dim, self.dtype, self.mask, self.rows = heads, kv_heads, dim, dtype, mask, rows
        name = {torch.bfloat16: "bf16", torch.float16: "f16"}[dtype]
        self.text = (f"attn.problem @p mask({mask}) layout(thd padded) heads({heads}, {kv_heads}) dims({dim}) "
                     f"dtype({name}){score} {hint}({bounds[0]}, {bounds[1]})")
        self.both = self.text + "\nattn.backward @g of(@p)"

    def fill(self, lengths_q, lengths_kv, gap=3, scale=1.0):
        self.lengths = lengths_q, lengths_kv
        t, starts = {}, []
        for side, lengths in (("q", lengths_q), ("kv", lengths_kv)):
            begin = torch.tensor([gap + sum(lengths[:i]) + gap * i for i in range(len(lengths) + 1)], dtype=torch.int32)
            ends = torch.tensor([sum(lengths[:i]) for i in range(len(lengths) + 1)], dtype=torch.int32)
            t["cu_seqlens_" + side], t["padded_offsets_" + side] = ends.cuda(), begin.cuda()
            starts.append([int(x) for x in begin])
        self.starts = starts
        total = [max(s[-1] + gap, self.rows) for s in starts]
        for x, n, h in (("q", total[0], self.heads), ("k", total[1], self.kv_heads), ("v", total[1], self.kv_heads),
                        ("do", total[0], self.heads)):
            t[x] = torch.full((n, h, self.dim), math.nan, device="cuda", dtype=self.dtype)
            begin, lengths = (starts[0], lengths_q) if n == total[0] and x in ("q", "do") else (starts[1], lengths_kv)
            for i, length in enumerate(lengths):
                numbers = torch.randn(length, h, self.dim, device="cuda") * scale
                t[x][begin[i]:begin[i] + length] = numbers.to(self.dtype)
        t["o"], t["lse"] = torch.empty_like(t["q"]), torch.empty(self.heads, total[0], device="cuda")
        for x in "qkv":
            t["d" + x] = torch.empty_like(t[x])
        self.t = t

    def bind(self, forward, backward):
        self.kernels = [(k, k.bind(**{n: self.t[n] for n in k.names})) for k in (forward, backward)]

    def launch(self):
        for kernel, bound in self.kernels:
            kernel.launch(bound, torch.cuda.current_stream().cuda_stream)

    def poison(self):
        for x in ("o", "lse", "dq", "dk", "dv"):
            self.t[x].fill_(math.nan)

    def check(self, only=None):
        """Worst ratio of the error's norm to that of rounding exact results; inf where padding is not what it should
        be."""
        t, apart, floor = self.t, 0.0, 0.0
        for x, side, lengths in (("o", 0, self.lengths[0]), ("dq", 0, self.lengths[0]), ("dk", 1, self.lengths[1]),
                                 ("dv", 1, self.lengths[1])):
            padding = torch.ones(t[x].shape[0], dtype=torch.bool)
            for begin, length in zip(self.starts[side], lengths):
                padding[begin:begin + length] = False
            padding = padding.to("cuda")
            if (t[x][padding] != 0).any() or (x == "o" and (t["lse"][:, padding] != -math.inf).any()):
                return math.inf, x
        for i in range(len(self.lengths[0])) if only is None else only:
            n, m = self.lengths[0][i], self.lengths[1][i]
            a, b = self.starts[0][i], self.starts[1][i]
            group = self.heads // self.kv_heads
            q, k, v = (t[x][c:c + s].double().requires_grad_() for x, c, s in (("q", a, n), ("k", b, m), ("v", b, m)))
            scores = torch.einsum("qhd,khd->hqk", q, k.repeat_interleave(group, 1)) * self.dim ** -0.5
            if self.mask == "#attn.causal":
                scores = scores.masked_fill(~torch.ones(n, m, device="cuda", dtype=torch.bool).tril(), -math.inf)
            elif self.mask.startswith("#attn.band"):
                near = torch.arange(n, device="cuda")[:, None] - torch.arange(m, device="cuda")[None]
                scores = scores.masked_fill((near > 2) | (near < -1), -math.inf)
            p = torch.nan_to_num(scores.softmax(-1)) if m else scores
            exact = torch.einsum("hqk,khd->qhd", p, v.repeat_interleave(group, 1))
            lse = torch.logsumexp(scores, -1) if m else torch.full((self.heads, n), -math.inf, device="cuda")
            mine = t["lse"][:, a:a + n].double()
            if ((mine == -math.inf) != (lse == -math.inf)).any() or ((mine - lse).abs() > 1e-4 * (1 + lse.abs())).any():
                return math.inf, "lse"
            grads = torch.autograd.grad(exact, (q, k, v), t["do"][a:a + n].double(), allow_unused=True)
            for x, c, s, want in (("o", a, n, exact.detach()), ("dq", a, n, grads[0]), ("dk", b, m, grads[1]),
                                  ("dv", b, m, grads[2])):
                got = t[x][c:c + s].double()
                want = torch.zeros_like(got) if want is None else torch.nan_to_num(want)
                apart += (got - want).square().sum().item()
                floor += (want.to(self.dtype).double() - want).square().sum().item()
        return math.sqrt(apart / floor) if floor else (0.0 if apart == 0 else math.inf), ""


def small(count, most, seed, empty=True):
    g = torch.Generator().manual_seed(seed)
    lengths = torch.randint(0 if empty else 1, most + 1, (count,), generator=g)
    return [int(x) for x in lengths]


def main():
    cases = {}
    for bounds in ((1, 16), (5, 5), (16, 16), (17, 17), (33, 40), (2, 3)):
        for heads, kv_heads in ((1, 1), (3, 3), (4, 2), (8, 1)):
            cases[f"{bounds} h {heads}/{kv_heads}"] = Batch(heads, kv_heads, 128, bounds)
    cases["causal, d 64, f16"] = Batch(4, 4, 64, (9, 9), "#attn.causal", torch.float16)
    cases["window, d 80, f16"] = Batch(6, 3, 80, (4, 16), "#attn.band<left = 2, right = 1>", torch.float16)
    cases["d 256"] = Batch(4, 4, 256, (16, 16))
    cases["d 512"] = Batch(2, 2, 512, (1, 16))
    # What a tile or two of tensor cores' rows are, all of whose keys may be looked at in one go.
    large = {f"{bounds} h {heads}/{kv_heads}": Batch(heads, kv_heads, 128, bounds) for bounds, heads, kv_heads in (
        ((96, 96), 3, 3), ((128, 100), 4, 2), ((144, 144), 3, 3), ((160, 160), 4, 2), ((192, 192), 3, 3),
        ((224, 224), 4, 2), ((240, 240), 3, 3), ((256, 256), 4, 2), ((100, 190), 3, 3), ((200, 90), 3, 3),
        # Their gradients, too, if each head has keys of its own.
        ((66, 66), 3, 3), ((80, 70), 4, 4), ((112, 97), 3, 3), ((65, 128), 3, 3), ((128, 128), 4, 4),
        ((130, 100), 3, 3), ((70, 150), 4, 4))}
    large["(144, 144) causal, f16"] = Batch(3, 3, 96, (144, 144), "#attn.causal", torch.float16)
    large["(192, 192) d 64, f16"] = Batch(4, 2, 64, (192, 192), "#attn.full", torch.float16)
    large["(128, 128) causal, d 96, f16"] = Batch(3, 3, 96, (128, 128), "#attn.causal", torch.float16)
    large["(90, 120) window, d 64"] = Batch(4, 4, 64, (90, 120), "#attn.band<left = 2, right = 1>")
    large["(128, 100) causal, d 40"] = Batch(3, 3, 40, (128, 100), "#attn.causal")
    large["(192, 192) causal, d 96, f16"] = Batch(3, 3, 96, (192, 192), "#attn.causal", torch.float16)
    large["(150, 180) window, d 64"] = Batch(4, 4, 64, (150, 180), "#attn.band<left = 2, right = 1>")
    large["(144, 129) causal, d 40"] = Batch(3, 3, 40, (144, 129), "#attn.causal")
    large["typical (150, 150)"] = Batch(4, 4, 128, (150, 150), "#attn.causal", hint="typical")
    large["typical (100, 100)"] = Batch(4, 4, 128, (100, 100), "#attn.causal", hint="typical")
    large["(256, 256) d 40"] = Batch(4, 2, 40, (256, 256))
    cases |= large
    far = Batch(16, 16, 512, (1, 16))
    with ThreadPoolExecutor(16) as pool:
        texts = {t for b in [*cases.values(), far] for t in (b.text, b.both)}
        kernels = dict(zip(texts, pool.map(library.compile, texts)))
    torch.manual_seed(0)
    for name, batch in cases.items():
        most = 280 if name in large else 20 if "16" in name or "17" in name else 8
        worst, where = 0.0, ""
        for count in (1, 3, 7, 9):
            batch.fill(small(count, most, count), small(count, most, 100 + count))
            batch.poison()
            batch.bind(kernels[batch.text], kernels[batch.both])
            batch.launch()
            torch.cuda.synchronize()
            worst, where = max((worst, where), batch.check())
        report(f"odd and empty, padding of NaN: {name}", worst <= 2, error_of_2=worst, where=where)

    for name, count, most in (("(16, 16) h 4/2", 257, 16), ("(128, 128) h 4/4", 65, 128)):
        batch = cases[name]
        batch.fill(small(count, most, 1), small(count, most, 2))
        batch.bind(kernels[batch.text], kernels[batch.both])
        batch.launch()
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            batch.launch()
        worst, same = 0.0, True
        for i in range(6):  # the same room, other lengths: to twice the bounds
            for side, x in ((0, "q"), (1, "kv")):
                room = [b - a - 3 for a, b in zip(batch.starts[side], batch.starts[side][1:])]
                lengths = [int(torch.randint(0, r + 1, ())) for r in room]
                batch.lengths = (lengths, batch.lengths[1]) if side == 0 else (batch.lengths[0], lengths)
                sums = torch.tensor([sum(lengths[:i]) for i in range(len(lengths) + 1)], dtype=torch.int32)
                batch.t["cu_seqlens_" + x].copy_(sums)
            batch.poison()
            graph.replay()
            torch.cuda.synchronize()
            worst = max(worst, batch.check()[0])
            first = [batch.t[x].clone() for x in ("o", "dq", "dk", "dv")]
            graph.replay()
            torch.cuda.synchronize()
            same &= all(torch.equal(a, batch.t[x]) for a, x in zip(first, ("o", "dq", "dk", "dv")))
        report(f"a CUDA graph with 6 sets of lengths: {name}", worst <= 2, error_of_2=worst)
        report(f"equal bits from equal inputs: {name}", same)

    # 30720 sequences of 16 keys, 16 heads of 512: 4.03e9 elements, beyond int32. Without padding between them.
    b, s = 30720, 16
    q = torch.zeros(b + 1, 16, 512, device="cuda", dtype=torch.bfloat16)
    k = torch.zeros(b * s + 1, 16, 512, device="cuda", dtype=torch.bfloat16)
    far.t = dict(q=q, do=torch.zeros_like(q), k=k, v=torch.zeros_like(k), o=torch.empty_like(q),
                 lse=torch.empty(16, b + 1, device="cuda"), dq=torch.empty_like(q), dk=torch.empty_like(k),
                 dv=torch.empty_like(k))
    for side, n in (("q", 1), ("kv", s)):
        sums = torch.arange(b + 1, dtype=torch.int32, device="cuda") * n
        far.t["cu_seqlens_" + side] = far.t["padded_offsets_" + side] = sums
    some = [0, 15359, 16384, b - 1]
    for i in some:
        for x, n in (("q", 1), ("do", 1), ("k", s), ("v", s)):
            far.t[x][i * n:i * n + n].normal_()
    far.lengths, far.starts = ([1] * b, [s] * b), (list(range(b + 1)), [i * s for i in range(b + 1)])
    for x in ("o", "dq", "dk", "dv"):
        far.t[x][-s:].fill_(math.nan)
    far.bind(kernels[far.text], kernels[far.both])
    far.launch()
    torch.cuda.synchronize()
    error, where = far.check(only=some)
    report("offsets beyond 2^31 elements", error <= 2, error_of_2=error, where=where)
    sys.exit(failed != 0)


main()
