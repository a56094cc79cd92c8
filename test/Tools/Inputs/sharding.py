# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The rule of docs/Sharding.md for several devices: sequences and whole groups of heads computed apart, offsets
rebased, give what they give together, forward and gradients."""
import numpy as np
from run import must_run, round_bf16

LENGTHS_Q, LENGTHS_KV = [5, 0, 70, 33, 130, 1], [9, 3, 64, 0, 150, 2]
HEADS, KV_HEADS, DIM = 8, 2, 16
rng = np.random.default_rng(3)
shards = 0


def packed(lengths, padded):
    """cu_seqlens, and where sequences start, with rows of padding before, between and behind them."""
    cu = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    return cu, (cu + 3 * np.arange(1, len(cu) + 1)).astype(np.int32) if padded else cu


def problem(heads, kv_heads, layout, hints):
    return (f'attn.problem @p mask(#attn.band<left = 40, right = 2, bottom_right>) layout({layout}) '
            f'heads({heads}, {kv_heads}) dims({DIM}) dtype(bf16) score([#attn.alibi<"slopes">]) {hints}\n')


def run(heads, kv_heads, layout, hints, arrays):
    text = problem(heads, kv_heads, layout, hints)
    forward = must_run(text, {name: value for name, value in arrays.items() if name != "do"}, ("o", "lse"))
    return {**forward, **must_run(text + "attn.backward @g of(@p)\n", {**arrays, **forward}, ("dq", "dk", "dv"))}


def compare(whole, shard, rows, heads, what):
    global shards
    shards += 1
    for name, value in shard.items():
        side = "kv" if name in ("dk", "dv") else "q"
        index = (heads[side], rows[side]) if name == "lse" else (rows[side], heads[side])
        expected = whole[name][index]
        assert value.shape == expected.shape, (what, name)
        assert np.allclose(value, expected, rtol=0.02, atol=0.02, equal_nan=True), (what, name)


for layout, hints in (("thd", ""), ("thd padded", ""), ("thd", "max_seqlen(4, 16)"),
                      ("thd padded", "expected_seqlen(4, 16)")):
    padded = "padded" in layout
    (cu_q, at_q), (cu_kv, at_kv) = packed(LENGTHS_Q, padded), packed(LENGTHS_KV, padded)
    rows_q, rows_kv = at_q[-1] + 4, at_kv[-1] + 4
    normal = lambda *shape: round_bf16(rng.standard_normal(shape))
    arrays = dict(q=normal(rows_q, HEADS, DIM), k=normal(rows_kv, KV_HEADS, DIM), v=normal(rows_kv, KV_HEADS, DIM),
                  do=normal(rows_q, HEADS, DIM), slopes=rng.random(HEADS, np.float32),
                  cu_seqlens_q=cu_q, cu_seqlens_kv=cu_kv)
    if padded:
        arrays |= dict(padded_offsets_q=at_q, padded_offsets_kv=at_kv)
    whole = run(HEADS, KV_HEADS, layout, hints, arrays)
    everyone = dict(q=slice(None), kv=slice(None))
    for first, last in ((0, 3), (3, 6), (1, 2)):  # the batch: rows of these sequences, offsets that begin with them
        cut = dict(arrays)
        rows = dict(q=slice(at_q[first], at_q[last]), kv=slice(at_kv[first], at_kv[last]))
        for name, side in (("q", "q"), ("do", "q"), ("k", "kv"), ("v", "kv")):
            cut[name] = arrays[name][rows[side]]
        for name in arrays:
            if name.startswith(("cu_seqlens", "padded_offsets")):
                cut[name] = arrays[name][first:last + 1] - arrays[name][first]
        compare(whole, run(HEADS, KV_HEADS, layout, hints, cut), rows, everyone,
                f"{layout} {hints}: sequences {first} to {last}")
    for group in range(KV_HEADS):  # heads: a kv head with the query heads that read it
        size = HEADS // KV_HEADS
        heads = dict(q=slice(group * size, (group + 1) * size), kv=slice(group, group + 1))
        cut = {name: np.ascontiguousarray(value[:, heads["kv" if name in "kv" else "q"]])
               if name in ("q", "k", "v", "do") else value
               for name, value in arrays.items()}
        cut["slopes"] = arrays["slopes"][heads["q"]]
        compare(whole, run(size, 1, layout, hints, cut), everyone, heads, f"{layout} {hints}: group {group}")
print(f"{shards} shards are as the whole")
