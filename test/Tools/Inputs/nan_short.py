# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A NaN or Inf in a key or value of a short sequence stays in the rows that may see it. Results of the other rows are
the same up to rounding: keys of such a sequence are walked in steps."""
import numpy as np
from run import must_run

LENGTH, D = 21, 128
rng = np.random.default_rng(8)
clean = {name: rng.standard_normal((2, LENGTH, 2, D)).astype(np.float32) for name in "qkv"}
rows = np.arange(LENGTH)
checked = 0
for mask, visible in (("#attn.causal", lambda at: at <= rows),
                      ("#attn.band<left = 4, right = 2>", lambda at: (rows - 4 <= at) & (at <= rows + 2))):
    problem = f"attn.problem @p mask({mask}) layout(bshd) heads(2) dims({D}) dtype(bf16) max_seqlen({LENGTH})\n"
    before = must_run(problem, clean, ("o", "lse"))
    for name in "kv":
        for at in (0, 7, 16, LENGTH - 1):
            for value in (np.nan, np.inf):
                dirty = {key: array.copy() for key, array in clean.items()}
                dirty[name][1, at, 1, 100] = value
                after = must_run(problem, dirty, ("o", "lse"))
                sees, what = visible(at), f"{mask}: {value} in {name}[{at}]"
                assert np.array_equal(before["o"][0], after["o"][0]), what
                assert np.array_equal(before["o"][1, :, 0], after["o"][1, :, 0]), what
                assert np.allclose(before["o"][1, ~sees, 1], after["o"][1, ~sees, 1], atol=0.02), what
                assert np.allclose(before["lse"][1, 1, ~sees], after["lse"][1, 1, ~sees], atol=1e-4), what
                if name == "v" or np.isnan(value):
                    assert not np.isfinite(after["o"][1, sees, 1, 100]).any(), what
                checked += 1
print(f"{checked} short sequences with a NaN or Inf keep it in their rows")
