# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A NaN or Inf of one kv head of a short sequence reaches gradients of that head of that sequence and no others, also
where heads lie side by side in a tile."""
import itertools

import numpy as np
from run import must_run

B, D = 3, 32
rng = np.random.default_rng(8)
checked = reached = 0
cases = itertools.product(((1, 8), (2, 2), (4, 4), (8, 8), (17, 20)), ((4, 4), (8, 2)), ("#attn.full", "#attn.causal"))
for (rows, keys), (heads, kv_heads), mask in cases:
    problem = (f"attn.problem @p mask({mask}) layout(bshd) heads({heads}, {kv_heads}) dims({D}) dtype(bf16) "
               f"max_seqlen({rows}, {keys})\n")
    backward = problem + "attn.backward @g of(@p)\n"
    make = lambda length, count: rng.standard_normal((B, length, count, D)).astype(np.float32)
    clean = dict(q=make(rows, heads), k=make(keys, kv_heads), v=make(keys, kv_heads), do=make(rows, heads))

    def gradients(inputs):
        results = must_run(problem, {name: inputs[name] for name in "qkv"}, ("o", "lse"))
        return must_run(backward, {**inputs, **results}, ("dq", "dk", "dv"))

    before, group = gradients(clean), heads // kv_heads
    for name, value in itertools.product(clean, (np.nan, np.inf)):
        dirty = {key: array.copy() for key, array in clean.items()}
        own = 1 if name in "kv" else group  # a head of kv head 1
        dirty[name][1, -1, own, 5] = value
        after = gradients(dirty)
        for result, array in after.items():
            rest = np.ones(array.shape[:3:2], bool)  # sequences and heads
            rest[1, slice(group, 2 * group) if result == "dq" else 1] = False
            same = np.allclose(np.moveaxis(array, 2, 1)[rest], np.moveaxis(before[result], 2, 1)[rest], atol=0.02)
            assert same, f"{problem}: {value} in {name}: {result}"
            reached += not np.isfinite(array).all()
        checked += 1
assert reached > checked / 2
print(f"{checked} batches with a NaN or Inf keep it in their kv head's gradients")
