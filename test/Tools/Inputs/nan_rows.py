# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A NaN or Inf in one row of an input changes the rows that may see it, and no others, bit for bit."""
import numpy as np
from run import must_run

LENGTH, D = 150, 16
MASKS = {
    "#attn.full": lambda q, k: k >= 0,
    "#attn.causal": lambda q, k: k <= q,
    "#attn.band<left = 20, right = 0>": lambda q, k: (q - 20 <= k) & (k <= q),
    "#attn.and<#attn.or<#attn.prefix<4>, #attn.band<left = 20, right = 0>>, #attn.causal>":
        lambda q, k: (k <= q) & ((k < 4) | (q - 20 <= k)),
    "#attn.or<#attn.prefix<70>, #attn.causal>": lambda q, k: (k < 70) | (k <= q),
    "#attn.and<#attn.document, #attn.causal>": lambda q, k: (k <= q) & (q // 40 == k // 40),
}
rng = np.random.default_rng(7)
clean = {name: rng.standard_normal((1, LENGTH, 2, D)).astype(np.float32) for name in "qkv"}
rows, keys = np.arange(LENGTH)[:, None], np.arange(LENGTH)[None, :]
checked = 0
for mask, visible in MASKS.items():
    arrays = {}
    if "document" in mask:
        ids = (np.arange(LENGTH, dtype=np.int32) // 40 + 1)[None]
        arrays = dict(segment_ids_q=ids, segment_ids_kv=ids)
    problem = f"attn.problem @p mask({mask}) layout(bshd) heads(2) dims({D}) dtype(bf16)\n"
    sees = visible(rows, keys) & np.ones((LENGTH, LENGTH), bool)
    before = must_run(problem, {**clean, **arrays}, ("o", "lse"))
    for name in "qkv":
        for at in (0, 3, 63, 64, 100, LENGTH - 1):
            for value in (np.nan, np.inf, -np.inf):
                dirty = {key: array.copy() for key, array in clean.items()}
                dirty[name][0, at, 1, 5] = value
                after = must_run(problem, {**dirty, **arrays}, ("o", "lse"))
                changed = np.arange(LENGTH) == at if name == "q" else sees[:, at]
                what = f"{mask}: {value} in {name}[{at}]"
                # The other head, and the rows that may not see it.
                assert np.array_equal(before["o"][0, :, 0], after["o"][0, :, 0]), what
                assert np.array_equal(before["o"][0, ~changed, 1], after["o"][0, ~changed, 1]), what
                assert np.array_equal(before["lse"][0, 1, ~changed], after["lse"][0, 1, ~changed]), what
                if np.isnan(value):
                    part = after["o"][0, changed, 1]
                    assert np.isnan(part[:, 5] if name == "v" else part).all(), what
                elif name == "v":
                    assert not np.isfinite(after["o"][0, changed, 1, 5]).any(), what
                checked += 1
print(f"{checked} inputs with a NaN or Inf stay in their rows")
