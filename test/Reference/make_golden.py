# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writes golden.json: small cases, evaluated by the project's specification oracles
(smallseq_oracle.py and thd_oracle.py, float64 numpy, which know nothing of this repository).
They are not in the repository; this is only run to add cases:

  python make_golden.py FOLDER_OF_ORACLES > golden.json
"""
import json
import sys

import numpy as np

from problems import Side, inputs, values

sys.path.insert(0, sys.argv[1])
import smallseq_oracle
import thd_oracle


def case(name, mask, layouts, len_q, len_kv, heads=2, kv_heads=1, dim_qk=8, dim_v=8, scale=0.35, arrays=None, **more):
    layouts = [layouts] * 4 if isinstance(layouts, str) else layouts
    return dict(name=name, mask=mask, layouts=layouts, len_q=len_q, len_kv=len_kv, heads=heads, kv_heads=kv_heads,
                dim_qk=dim_qk, dim_v=dim_v, scale=scale, arrays=arrays or {}, **more)


def rows(x, layout):
    """A dense tensor as packed rows [batch * seqlen, heads, dim]."""
    x = {"bshd": x, "sbhd": x.swapaxes(0, 1) if layout == "sbhd" else x, "bhsd": x.swapaxes(1, 2)}.get(layout, x)
    return x.reshape(-1, *x.shape[-2:])


def by_smallseq(c, mode):
    """full and causal, by the oracle of packed small sequences; gradients too, where all is packed."""
    x, q, kv = inputs(c), Side(c, "q"), Side(c, "kv")
    starts = lambda side: side.starts if side.packed else np.arange(len(side.lengths)) * side.rows
    operands = [rows(x[name], layout) for name, layout in zip("qkv", c["layouts"])]
    rest = np.r_[0, np.cumsum(q.lengths)], np.r_[0, np.cumsum(kv.lengths)], c["scale"], starts(q), starts(kv), mode
    o, lse = smallseq_oracle.forward(*operands, *rest)
    if q.packed and kv.packed:
        found = smallseq_oracle.backward(*operands, values(o.shape, c["salt"] + 3), *rest)
        c["gradients"] = {name: [round(x, 8) for x in np.ravel(gradient).tolist()]
                          for name, gradient in zip(("dq", "dk", "dv"), found)}
    return o, lse.T


def by_varlen(c, causal, window, align):
    """Windows, by the packed reference kernel, head by head."""
    x, q, kv = inputs(c), Side(c, "q"), Side(c, "kv")
    o, lse = [], []
    for h in range(c["heads"]):
        g = h // (c["heads"] // c["kv_heads"])
        offsets = lambda side: list(side.starts) + [side.rows]
        oh, lh = thd_oracle.varlen_kernel(x["q"][:, h], x["k"][:, g], x["v"][:, g], x["cu_seqlens_q"], offsets(q),
                                          x["cu_seqlens_kv"], offsets(kv), causal, window, align, c["scale"])
        o.append(oh), lse.append(lh)
    return np.stack(o, 1), np.stack(lse)


def by_mask(c, mask_of_batch):
    """Dense bshd, by a dense mask."""
    x = inputs(c)
    o, lse = np.zeros(x["q"].shape[:3] + (c["dim_v"],)), np.zeros((len(c["len_q"]), c["heads"], c["len_q"][0]))
    for b in range(len(c["len_q"])):
        for h in range(c["heads"]):
            g = h // (c["heads"] // c["kv_heads"])
            o[b, :, h], lse[b, h] = thd_oracle.attn_dense(x["q"][b, :, h], x["k"][b, :, g], x["v"][b, :, g],
                                                          mask_of_batch(b), c["scale"])
    return o, lse


def by_bias(c, score):
    """Dense bhsd, no mask, from all scores at once: `score` gets them as [batch, head, row, key]."""
    x, group = inputs(c), c["heads"] // c["kv_heads"]
    k, v = x["k"].repeat(group, axis=1), x["v"].repeat(group, axis=1)
    p = np.exp(score(np.einsum("bhqd,bhkd->bhqk", x["q"], k) * c["scale"]))
    return np.einsum("bhqk,bhkd->bhqd", p, v) / p.sum(-1, keepdims=True), np.log(p.sum(-1))


def dense(c, o, lse):
    """What by_smallseq returns, in the case's layout of o."""
    b, s, h = len(c["len_q"]), c["len_q"][0], c["heads"]
    o = o.reshape(b, s, h, -1)
    axes = {"bshd": (0, 1, 2, 3), "sbhd": (1, 0, 2, 3), "bhsd": (0, 2, 1, 3)}[c["layouts"][3]]
    return o.transpose(axes), lse.reshape(h, b, s).transpose(1, 0, 2)


def ids_and_positions(ids):
    ids = np.array(ids)
    pos = np.array([t - np.flatnonzero(ids == s)[0] for t, s in enumerate(ids)])
    return ids, pos


def causal(lq, lk):
    return thd_oracle.dense_mask([1] * lq, [1] * lk, range(lq), range(lk), "causal")


def all_cases():
    ragged = dict(len_q=[1, 3, 0, 5], len_kv=[2, 3, 4, 0])
    padded = dict(layouts="thd padded", gaps_q=[0, 2, 1, 0, 3], gaps_kv=[1, 0, 2, 1, 2])
    modes = {"none": ["full"], "causal_tl": ["causal", "top_left"], "causal_br": ["causal", "bottom_right"]}
    for mode, mask in modes.items():
        c = case(f"thd gqa {mode}", mask, "thd", len_q=[2, 0, 5, 1], len_kv=[4, 1, 3, 0], heads=4, kv_heads=2, tail_q=2,
                 tail_kv=1)
        yield c, lambda: by_smallseq(c, mode)
        c = case(f"thd padded, empty sequences, {mode}", mask, **ragged, **padded)
        yield c, lambda: by_smallseq(c, mode)
        for layout in ("bshd", "sbhd", "bhsd"):
            keys = [3, 3] if layout == "sbhd" else [7, 7]
            c = case(f"{layout} {mode}", mask, layout, [5, 5], keys, kv_heads=2, dim_v=16)
            yield c, lambda: dense(c, *by_smallseq(c, mode))
        c = case(f"packed q, dense keys, {mode}", mask, ["thd", "bshd", "bhsd", "thd"], [2, 0, 3], [4, 4, 4])
        yield c, lambda: by_smallseq(c, mode)
        c = case(f"dense q, packed keys, {mode}", mask, ["bhsd", "thd padded", "thd padded", "sbhd"], [3, 3], [4, 1],
                 gaps_kv=[2, 0, 1])
        yield c, lambda: dense(c, *by_smallseq(c, mode))
    for align, d in (("tl", "top_left"), ("br", "bottom_right")):
        for left, right in ((2, 0), (1, 1), (0, 3)):
            c = case(f"thd padded, window ({left}, {right}) {align}", ["band", left, right, d], "thd padded", [4, 0, 3],
                     [6, 2, 2], gaps_q=[1, 0, 2, 1], gaps_kv=[0, 3, 0, 0])
            yield c, lambda: by_varlen(c, False, (left, right), align)
        c = case(f"thd, causal and left 2, {align}", ["and", ["band", 2, None, d], ["causal", d]], "thd", [6, 3],
                 [4, 7])
        yield c, lambda: by_varlen(c, True, (2, -1), align)
    ids = [[1, 1, 1, 2, 2, 3, 3, 0], [7, 7, 7, 7, 7, 0, 0, 0]]
    for mode in ("padding", "causal"):
        mask = ["document"] if mode == "padding" else ["and", ["document"], ["causal", "top_left"]]
        c = case(f"document {mode}", mask, "bshd", [8, 8], [8, 8], arrays={"segment_ids_q": ids, "segment_ids_kv": ids})

        def documents(b):
            i, p = ids_and_positions(ids[b])
            return thd_oracle.dense_mask(i, i, p, p, mode)
        yield c, lambda: by_mask(c, documents)
    c = case("prefix of 3 or causal", ["or", ["prefix", 3], ["causal", "top_left"]], "bshd", [6, 6], [6, 6])
    yield c, lambda: by_mask(c, lambda b: causal(6, 6) | (np.arange(6) < 3)[None, :])
    prefixes = [0, 4, 9]
    c = case("prefix by sequence", ["prefix", "prefix_lengths"], "bshd", [4] * 3, [6] * 3,
             arrays={"prefix_lengths": prefixes})
    yield c, lambda: by_mask(c, lambda b: np.tile(np.arange(6) < prefixes[b], (4, 1)))
    yield from modified_cases()
    yield from pattern_cases()


def pattern_cases():
    """Masks drawn by hand: `x` is visible, rows are queries."""
    draw = lambda *rows: np.array([[c == "x" for c in row] for row in rows])
    tl, br = "top_left", "bottom_right"
    cases = [
        (["chunk", 3, tl], draw("xxx..", "xxx..", "xxx..", "...xx", "...xx", "...xx", ".....")),
        (["chunk", 2, br], draw(".....", ".....", "xx...", "xx...", "..xx.", "..xx.", "....x")),
        (["chunk", 4, br], draw("xxxx..", "xxxx..", "....xx", "....xx")),
        (["and", ["chunk", 3, tl], ["causal", tl]], draw("x.....", "xx....", "xxx...", "...x..", "...xx.", "...xxx")),
        (["strided", 3, 0, tl], draw("x..x..x", ".x..x..", "..x..x.", "x..x..x")),
        (["strided", 3, 1, tl], draw("..x..", "x..x.", ".x..x", "..x..")),
        (["strided", 2, 1, br], draw("x.x", ".x.", "x.x", ".x.")),
        (["strided", 4, 3, br], draw(".x...x.", "..x...x", "...x...")),
        (["not", ["causal", tl]], draw(".xxx", "..xx", "...x", "....")),
        (["not", ["full"]], draw("...", "...")),
        (["not", ["band", 1, 1, tl]], draw("..xxx", "...xx", "x...x", "xx...")),
        (["diff", ["causal", br], ["band", 1, None, br]], draw("x...", "xx..")),
        (["diff", ["causal", tl], ["or", ["prefix", 1], ["chunk", 2, tl]]],
         draw("......", "......", ".x....", ".x....", ".xxx..", ".xxx..")),
    ]
    for mask, drawn in cases:
        c = case(f"drawn: {json.dumps(mask)}", mask, "bshd", [drawn.shape[0]], [drawn.shape[1]])
        yield c, lambda: by_mask(c, lambda b: drawn)


def modified_cases():
    """Slopes and distances are written out here as they stand in the papers' examples."""
    level = lambda s, cap: cap * (1 - 2 / (np.exp(2 * s / cap) + 1))
    slopes = {2: [1 / 16, 1 / 256], 3: [1 / 16, 1 / 256, 1 / 4], 8: [2.0 ** -n for n in range(1, 9)],
              12: [2.0 ** -n for n in range(1, 9)] + [2.0 ** -n for n in (0.5, 1.5, 2.5, 3.5)]}
    bias = lambda heads, lq, lk, shift: -np.array(slopes[heads])[None, :, None, None] * np.abs(
        np.arange(lk)[None, :] - np.arange(lq)[:, None] - shift)
    for cap in (0.5, 30.0):
        c = case(f"softcap {cap}", ["full"], "bhsd", [3, 3], [5, 5], score=[["softcap", cap]])
        yield c, lambda: by_bias(c, lambda s: level(s, cap))
    for heads in slopes:
        c = case(f"alibi, {heads} heads", ["full"], "bhsd", [3], [4], heads=heads, score=[["alibi", "top_left"]])
        yield c, lambda: by_bias(c, lambda s: s + bias(heads, 3, 4, 0))
    both = [["softcap", 2.0], ["alibi", "bottom_right"]]
    c = case("softcap, then alibi", ["full"], "bhsd", [3], [7], score=both)
    yield c, lambda: by_bias(c, lambda s: level(s, 2.0) + bias(2, 3, 7, 4))
    c = case("alibi, then softcap", ["full"], "bhsd", [5], [3], score=both[::-1])
    yield c, lambda: by_bias(c, lambda s: level(s + bias(2, 5, 3, -2), 2.0))


def main():
    result = []
    for number, (c, oracle) in enumerate(all_cases()):
        c["salt"] = 10 * number + 1
        o, lse = oracle()
        c["o"] = [round(x, 8) for x in np.ravel(o).tolist()]
        c["lse"] = [None if x == -np.inf else round(x, 8) for x in np.ravel(lse).tolist()]
        result.append(c)
    provenance = ("Written by make_golden.py from the specification oracles smallseq_oracle.{forward, backward} and "
                  "thd_oracle.{varlen_kernel, dense_mask, attn_dense}, score modifiers by_bias; inputs: "
                  "problems.inputs. lse: null is -inf. "
                  "SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception")
    cases = ",\n".join(json.dumps(c, separators=(",", ":")) for c in result)
    print(f'{{"provenance": {json.dumps(provenance)},\n"cases": [\n{cases}\n]}}')


main()
