# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Directional derivatives of long sequences: how sum(do * o) changes along a direction, by differences of float64's
forward pass, and by gradients. Along the gradients themselves, where each part that is missing or wrong counts by its
square, and along a random direction."""
import numpy as np
from attnc_host import compile_problem, launch, lib, workspace_of

ROWS, HEADS, KV_HEADS, DIM = 2048, 2, 1, 64
SCALE, SLOPES = DIM**-0.5, (2.0**-4, 2.0**-8)  # of ALiBi with two heads
rng = np.random.default_rng(11)
q, do = (rng.standard_normal((1, ROWS, HEADS, DIM)).astype(np.float16) for _ in range(2))
k, v = (rng.standard_normal((1, ROWS, KV_HEADS, DIM)).astype(np.float16) for _ in range(2))
i, j = np.arange(ROWS)[:, None], np.arange(ROWS)[None]
CASES = (("#attn.full", "", (i >= 0) & (j >= 0)), ("#attn.causal", "", j <= i),
         ("#attn.band<left = 99, right = 0>", "", (j <= i) & (i - j < 100)),
         ("#attn.causal", "#attn.softcap<2.0>", j <= i), ("#attn.causal", "#attn.alibi", j <= i))


def loss(Q, K, V, visible, score):
    total = 0.0
    for h in range(HEADS):
        S = SCALE * Q[0, :, h] @ K[0, :, 0].T
        if "softcap" in score:
            S = 2 * np.tanh(S / 2)
        if "alibi" in score:
            S -= SLOPES[h] * np.abs(i - j)
        S[~visible] = -np.inf
        P = np.exp(S - S.max(axis=1)[:, None])
        total += (do[0, :, h] * (P @ V[0, :, 0]) / P.sum(axis=1)[:, None]).sum()
    return total


def gradients(mask, score):
    problem = (f"attn.problem @p mask({mask}) layout(bshd) heads({HEADS}, {KV_HEADS}) dims({DIM}) dtype(f16) "
               f"score([{score}])")
    arrays = dict(q=q, k=k, v=v, do=do, o=np.full(q.shape, np.nan, np.float16),
                  lse=np.full((1, HEADS, ROWS), np.nan, np.float32))
    arrays.update({"d" + name: np.full(arrays[name].shape, np.nan, np.float16) for name in "qkv"})
    for text in (problem, f"{problem}\nattn.backward @g of(@p)"):
        kernel = compile_problem(text)
        assert launch(kernel, arrays, workspace_of(kernel, arrays)) is None, lib.attnLastError()
    return [arrays["d" + name].astype(np.float64) for name in "qkv"]


for mask, score, visible in CASES:
    at = [x.astype(np.float64) for x in (q, k, v)]
    grads = gradients(mask, score)
    size = np.sqrt(sum((g * g).sum() for g in grads))
    for name, direction in (("gradients", [g / size for g in grads]),
                            ("random", [rng.standard_normal(x.shape) / np.sqrt(x.size) for x in at])):
        step = 1e-3
        ahead, back = (loss(*[x + sign * step * d for x, d in zip(at, direction)], visible, score) for sign in (1, -1))
        by_differences, by_gradients = (ahead - back) / (2 * step), sum((g * d).sum() for g, d in zip(grads, direction))
        norm = np.sqrt(sum((d * d).sum() for d in direction)) * size  # most that it can be
        error = abs(by_differences - by_gradients) / norm
        assert error < (3e-5 if name == "gradients" else 3e-6), (mask, score, name, by_differences, by_gradients, error)
print(f"gradients of {len(CASES)} problems agree with differences along two directions")
