# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels that are wrong on purpose: of a mask that is one key or one tile off, or given heads of keys in another
order. Both passes of the right one are within a limit of float64's results (2-norms, relative), and each wrong one is
beyond it in all that it changes."""
import numpy as np
from attnc_host import compile_problem, launch, lib, workspace_of
from run import attend, differentiate

ROWS, HEADS, KV_HEADS, DIM = 700, 4, 2, 32
LIMIT = {"o": 5e-4, "dq": 8e-4, "dk": 8e-4, "dv": 8e-4}  # rounding to float16 is 2e-4
rng = np.random.default_rng(5)
q, do = (rng.standard_normal((1, ROWS, HEADS, DIM)).astype(np.float16) for _ in range(2))
k, v = (rng.standard_normal((1, ROWS, KV_HEADS, DIM)).astype(np.float16) for _ in range(2))
i, j = np.arange(ROWS)[:, None], np.arange(ROWS)[None]
SHOWS = {"#attn.causal": j <= i, "#attn.band<left = 499, right = 0>": (j <= i) & (i - j < 500),
         "#attn.band<left = 39, right = 20>": (j <= i + 20) & (i - j < 40)}


def reference(visible):
    want = {"o": np.zeros(q.shape), "dq": np.zeros(q.shape), "dk": np.zeros(k.shape), "dv": np.zeros(v.shape)}
    scale = DIM**-0.5
    for h in range(HEADS):
        g = h // (HEADS // KV_HEADS)
        own = (q[0, :, h], k[0, :, g], v[0, :, g])
        o, lse = attend(*own, visible, scale)
        dq, dk, dv = differentiate(*own, o, lse, do[0, :, h], visible, scale)
        want["o"][0, :, h], want["dq"][0, :, h] = o, dq
        want["dk"][0, :, g] += dk
        want["dv"][0, :, g] += dv
    return want


def errors(mask, want, options, swapped=False):
    """Of o, and of the gradients."""
    problem = f"attn.problem @p mask({mask}) layout(bshd) heads({HEADS}, {KV_HEADS}) dims({DIM}) dtype(f16)"
    keys = [np.ascontiguousarray(x[:, :, ::-1]) if swapped else x for x in (k, v)]
    arrays = dict(q=q, k=keys[0], v=keys[1], do=do, lse=np.full((1, HEADS, ROWS), np.nan, np.float32))
    arrays.update({name: np.full(x.shape, np.nan, np.float16) for name, x in want.items()})
    for text in (problem, f"{problem}\nattn.backward @g of(@p) {options}"):
        kernel = compile_problem(text)
        assert launch(kernel, arrays, workspace_of(kernel, arrays)) is None, lib.attnLastError()
    return {name: np.linalg.norm(arrays[name] - x) / np.linalg.norm(x) for name, x in want.items()}


def check(mask, wrong):
    """`wrong`: masks in place of it."""
    want, found = reference(SHOWS[mask]), []
    for options in ("", "deterministic"):
        right = errors(mask, want, options)
        assert all(error < LIMIT[name] for name, error in right.items()), (mask, right)
        found += [errors(other, want, options) for other in wrong] + [errors(mask, want, options, swapped=True)]
    for error in found:
        assert all(error[name] > LIMIT[name] for name in LIMIT), (mask, wrong, error)
    return len(found)


caught = (
    check("#attn.band<left = 39, right = 20>",
          ["#attn.band<left = 40, right = 20>", "#attn.band<left = 38, right = 20>",
           "#attn.band<left = 39, right = 21>"]) +
    check("#attn.band<left = 499, right = 0>",
          ["#attn.band<left = 500, right = 0>", "#attn.band<left = 498, right = 0>"]) +
    check("#attn.causal",
          ['#attn.predicate<"q >= k && (q < 256 || q >= 320 || k < 64 || k >= 128)">',
           "#attn.band<left = 699, right = -1>"]))
print(f"{caught} mutations, each of which is found in o, dq, dk and dv")
