# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Scores that are large and finite, as padding hidden by a finite bias makes them.

    large_scores.py [--target=cpu] [--short]

Each case runs through attn-run and is compared with attention in float64, written down here anew. Scores are
exact in float32 wherever results are compared with the definition: integers, or one large number for all keys.
"""
import argparse
import concurrent.futures
import itertools
import os
import subprocess
import sys
import tempfile

import numpy as np

LEAST = float(np.finfo(np.float32).min)
LEAST_BF16 = -3.3895313892515355e38
NAMES = {"bf16": 1 / 128, "f16": 1 / 1024}


def rounded(x, dtype):
    """Float64 numbers that `dtype` has."""
    if dtype == "f16":
        return x.astype(np.float16).astype(np.float64)
    bits = np.ascontiguousarray(x, np.float32).view(np.uint32)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) & 0xFFFF0000).astype(np.uint32).view(np.float32).astype(np.float64)


def forward(q, k, v, scale, bias, causal, sink=None):
    """O, LSE and P of [b, s, h, d] tensors; bias is [b, s_q, s_k] or broadcasts to it."""
    rows, keys = q.shape[1], k.shape[1]
    s = np.einsum("bqhd,bkhd->bhqk", q, k) * scale + bias[:, None]
    if causal:
        s = np.where(np.arange(keys)[None, :] <= np.arange(rows)[:, None], s, -np.inf)
    top = s.max(-1, keepdims=True)
    if sink is not None:
        top = np.maximum(top, sink)
    top = np.where(np.isfinite(top), top, 0)
    e = np.exp(s - top)
    total = e.sum(-1, keepdims=True) + (0 if sink is None else np.exp(sink - top))
    p = e / np.where(total == 0, 1, total)
    with np.errstate(divide="ignore"):
        lse = (top + np.log(total))[..., 0]
    return np.einsum("bhqk,bkhd->bqhd", p, v), lse, p


def backward(q, k, v, do, scale, p):
    dp = np.einsum("bqhd,bkhd->bhqk", do, v)
    ds = p * (dp - (p * dp).sum(-1, keepdims=True))
    products = [("dq", "bhqk,bkhd->bqhd", ds, k * scale), ("dk", "bhqk,bqhd->bkhd", ds, q * scale),
                ("dv", "bhqk,bqhd->bkhd", p, do)]
    # Errors are relative to what is added up, not to what may be left of it.
    return {name: (np.einsum(how, a, b), np.einsum(how, abs(a), abs(b)).max()) for name, how, a, b in products}


class Case:
    def __init__(self, name, rows, keys, dim, dtype="bf16", causal=False, scale=None, bias=None, heads=1, batch=1,
                 clauses="", q=None, k=None, grads=False, axes="bk", do=None, expression=False, known=True, sink=None):
        self.name, self.dtype, self.causal, self.grads, self.known, self.sink = name, dtype, causal, grads, known, sink
        rng = np.random.default_rng(sum(map(ord, name)))

        def random(n):
            return rounded(rng.standard_normal((batch, n, heads, dim)), dtype)

        self.q = random(rows) if q is None else np.broadcast_to(rounded(q, dtype), (batch, rows, heads, dim)).copy()
        self.k = random(keys) if k is None else np.broadcast_to(rounded(k, dtype), (batch, keys, heads, dim)).copy()
        self.v = random(keys)
        self.do = random(rows)
        if do is not None:
            self.do *= do
        self.scale = dim**-0.5 if scale is None else scale
        self.bias = None if bias is None else np.asarray(bias, np.float32).astype(np.float64)
        mask = "#attn.causal" if causal else "#attn.full"
        text = f"mask({mask}) layout(bshd) heads({heads}) dims({dim}) dtype({dtype})"
        if scale is not None:
            text += f" scale({scale:.9e})"
        if bias is not None:
            score = '#attn.score<"s + b[k]">' if expression else f'#attn.bias<"b", {axes}>'
            text += f" score([{score}])"
        if sink is not None:
            text += f" sink({sink:.9e})"
        self.text = f"attn.problem @p {text} {clauses}\n" + ("attn.backward @g of(@p)\n" if grads else "")

    def full_bias(self):
        rows, keys = self.q.shape[1], self.k.shape[1]
        if self.bias is None:
            return np.zeros((1, rows, keys))
        b = self.bias
        return np.broadcast_to(b.reshape((-1, 1, keys)) if b.ndim < 3 else b, (self.q.shape[0], rows, keys))

    def run(self, target):
        o, lse, p = forward(self.q, self.k, self.v, self.scale, self.full_bias(), self.causal, self.sink)
        want = {"o": (o, abs(o).max()), "lse": (lse, 1)}
        if self.grads:
            want |= backward(self.q, self.k, self.v, self.do, self.scale, p)
        got = self.call(target, want)
        return [problem for name in want for problem in self.compare(name, *want[name], got[name])]

    def call(self, target, want):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "p.mlir")
            with open(path, "w") as file:
                file.write(self.text)
            inputs = {"q": self.q, "k": self.k, "v": self.v}
            if self.bias is not None:
                inputs["b"] = self.bias
            got = {}
            for problem in ["p", "g"] if self.grads else ["p"]:
                command = ["attn-run", path, f"--target={target}", f"--problem={problem}"]
                if problem == "g":  # gradients of what this target's own forward pass left
                    inputs |= {"do": self.do, "o": got["o"], "lse": got["lse"]}
                for name, array in inputs.items():
                    np.save(os.path.join(folder, name + ".npy"), array.astype(np.float32))
                    command.append(f"--arg={name}={folder}/{name}.npy")
                names = [name for name in want if (name[0] == "d") == (problem == "g")]
                command += [f"--result={name}={folder}/{name}.npy" for name in names]
                done = subprocess.run(command, capture_output=True, text=True, check=False)
                if done.returncode:
                    raise SystemExit(f"{self.name}: {self.text}\n{done.stdout}{done.stderr}")
                got |= {name: np.load(f"{folder}/{name}.npy").astype(np.float64) for name in names}
        return got

    def compare(self, name, want, size, got):
        got = got.reshape(want.shape)
        tolerance = NAMES[self.dtype]
        if name == "lse":
            empty = np.isneginf(want)
            if not np.isfinite(got[~empty]).all() or not np.isneginf(got[empty]).all():
                yield f"lse is {got[~np.isfinite(got)][:1]} where it is {want[~np.isfinite(got)][:1]}"
                return
            apart = np.abs(got - want)[~empty] / np.maximum(1, np.abs(want[~empty]))
            if apart.size and apart.max() > 1e-4:
                yield f"lse is off by {apart.max():.3g} of itself"
            return
        if not np.isfinite(got).all():
            yield f"{name} has {np.count_nonzero(~np.isfinite(got))} NaNs or infinities"
            return
        if name[0] == "d" and not self.known:  # bounded by probabilities that are at most 1 + 2^-10
            most = np.abs(self.do).sum(1, keepdims=True) * (1 + 2**-7) + 1e-6 if name == "dv" else None
            if most is not None and (np.abs(got) > most).any():
                yield f"{name} is {np.abs(got / most).max():.3g} times what probabilities of 1 make"
            return
        if not self.known:
            return
        apart = np.abs(got - want)
        # Rows without a gradient may have scores whose differences float32 does not hold.
        if name == "o" and self.grads:
            apart = apart * (np.abs(self.do).max(-1, keepdims=True) > 0)
        apart, limit = apart.max(), tolerance * max(size, 1e-3)
        # P is rounded for this product, by up to 2^-25: four standard deviations.
        if name == "dv" and self.dtype == "f16":
            limit += 4 * 2.0**-25 / 3**0.5 * np.sqrt((self.do**2).sum(1)).max()
        if apart > limit:
            yield f"{name} is off by {apart:.3g}, of {limit:.3g} allowed"


def padded(n, batch, keys, padding):
    bias = np.zeros((batch, keys))
    bias[:, :padding] = n
    return bias


LARGE = [-1e4, -65504.0, -1e6, -1e7, -1e9, -1e10, -1e11, -1e12, -1e13, -1e15, -1e16, -1e20, -1e30, LEAST_BF16, LEAST]


def cases():
    for n in LARGE:
        first = padded(n, 1, 8, 4)
        zero = np.zeros(1)
        # Rows 0 to 3 see only keys whose scores are n: their result is the mean of V.
        yield Case(f"first rows {n:g}", 8, 8, 16, causal=True, bias=first, q=zero)
        yield Case(f"first rows f16 {n:g}", 8, 8, 16, dtype="f16", causal=True, bias=first, q=zero)
        yield Case(f"expression {n:g}", 8, 8, 16, causal=True, bias=first[0], q=zero, expression=True)
        yield Case(f"short rows {n:g}", 8, 8, 16, causal=True, bias=first, q=zero, clauses="max_seqlen(8, 8)")
        for rows, keys, padding, clauses in [(1, 600, 300, ""), (200, 400, 150, ""),
                                             (4, 3000, 1400, "expected_seqlen(4, 32768)")]:
            bias = padded(n, 1, keys, padding)
            yield Case(f"padding {rows} x {keys} {n:g}", rows, keys, 64, bias=bias, clauses=clauses)
            yield Case(f"all padding {rows} x {keys} {n:g}", rows, keys, 64, bias=padded(n, 1, keys, keys), q=zero,
                       clauses=clauses)
        own = np.zeros((1, 1, 200, 1))
        own[:, :, 70:] = 1
        do = own.reshape(1, 200, 1, 1)
        bias = padded(n, 1, 200, 70)
        for dtype, clauses in itertools.product(NAMES, ["", "max_seqlen(200, 200)"]):
            yield Case(f"gradients {n:g} {dtype} {clauses}", 200, 200, 64, dtype=dtype, causal=True, bias=bias, do=do,
                       grads=True, clauses=clauses)
        # Rows that see padding alone have a gradient, too: it is bounded, and exact as long as float32 holds the
        # scores' differences.
        yield Case(f"gradients of padding {n:g}", 200, 200, 64, causal=True, bias=bias, grads=True, q=zero,
                   known=n >= -65504)
        yield Case(f"short gradients {n:g}", 16, 16, 32, causal=True, bias=padded(n, 1, 16, 5), grads=True,
                   clauses="max_seqlen(16, 16)", do=(np.arange(16) > 4).reshape(1, 16, 1, 1))
    for score in (3.003e9, -3.003e9):
        q = np.full(8, 2.0**14) * np.sign(score)
        yield Case(f"one key {score:g}", 1, 1, 8, scale=1.0, q=q, k=np.full(8, 22912.0))
        yield Case(f"one key, gradients {score:g}", 1, 1, 8, scale=1.0, q=q, k=np.full(8, 22912.0), grads=True,
                   known=False)
    # Integers near 2^23 to 2^30, whose differences float32 holds: weights are e^-j.
    for power, dim in itertools.product(range(8, 31, 2), (16, 128)):
        for sign in (1, -1):
            half = power // 2
            k = np.zeros((1, 300, 1, dim))
            k[..., 0] = 2.0**half
            k[..., 1] = np.arange(300).reshape(1, 300, 1) % 7
            q = np.zeros((1, 1, 1, dim))
            q[..., 0] = sign * 2.0 ** (power - half)
            q[..., 1] = 2.0 ** max(0, power - 23)  # a step of what float32 holds there
            for rows in (1, 130):
                yield Case(f"integers {sign * power} {dim} {rows}", rows, 300, dim, scale=1.0, q=q, k=k)
            yield Case(f"integers, split {sign * power} {dim}", 4, 300, dim, scale=1.0, q=q, k=k,
                       clauses="expected_seqlen(4, 32768)")
            yield Case(f"integers, streamed {sign * power} {dim}", 5, 9, dim, scale=1.0, q=q, k=k[:, :9],
                       clauses="max_seqlen(8, 16)")
            if power <= 16:
                yield Case(f"integers, gradients {sign * power} {dim}", 130, 300, dim, scale=1.0, q=q, k=k, grads=True)
    # Products whose sums are rounded: nothing is known but that gradients are bounded.
    for size, dim, clauses in itertools.product((64.0, 1e3, 3e4, 1e9), (64, 128), ("", "max_seqlen(200, 200)")):
        q = np.random.default_rng(dim).standard_normal((1, 200, 1, dim)) * size
        for bias, sign in ((None, 1), (padded(-1e9, 1, 200, 70), -1)):
            yield Case(f"large products {size:g} {dim} {sign} {clauses}", 200, 200, dim, scale=sign * dim**-0.5, q=q,
                       k=q[:, ::-1] * 8, bias=bias, grads=True, clauses=clauses, known=False, causal=sign < 0)
    # Probabilities far below the normal numbers of float16, whose gradients are not small.
    for dtype, clauses, causal in itertools.product(NAMES, ["", "max_seqlen(200, 200)"], [False, True]):
        yield Case(f"small probabilities {dtype} {clauses} {causal}", 200, 200, 64, dtype=dtype, sink=14.0,
                   do=np.full(1, 64.0), grads=True, clauses=clauses, causal=causal)
    # A sink as large as the scores that are seen is one key more.
    for n, clauses in itertools.product((-1e5, -1e9, -1e15), ("", "max_seqlen(8, 8)", "expected_seqlen(1, 4096)")):
        rows = 1 if "typical" in clauses else 8
        yield Case(f"equal sink {n:g} {clauses}", rows, 8, 16, bias=padded(n, 1, 8, 8), q=np.zeros(1),
                   sink=float(np.float32(n)), clauses=clauses)
    for sink in (-1e9, 0.0, 1e9):
        yield Case(f"sink {sink:g}", 8, 8, 16, causal=True, bias=padded(-1e12, 1, 8, 4), q=np.zeros(1), sink=sink)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--target", default="cpu")
    parser.add_argument("--short", action="store_true", help="every fifth case")
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args()
    chosen = list(cases())
    if options.short:
        chosen = chosen[::5]
    failures = 0
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for case, problems in zip(chosen, pool.map(lambda case: case.run(options.target), chosen)):
            for problem in problems:
                print(f"FAILED {case.name}: {problem}")
            failures += bool(problems)
    print(f"{len(chosen)} cases of large scores on {options.target}, {failures} failures")
    return failures != 0


if __name__ == "__main__":
    sys.exit(main())
