# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Problems, their inputs, and what they mean: a formulation in numpy of its own,
from the text of the dialect's reference and not from lib/Reference.

A case is plain data (JSON):
  mask      nested lists: ["full"] ["causal", D] ["band", left, right, D] (null: no bound) ["prefix", P or name]
            ["document"] ["chunk", N, D] ["strided", stride, offset, D] ["and", mask...] ["or", mask...] ["not", mask]
            ["diff", mask, mask] ["global_rows", R or name] ["document", ids of queries, ids of keys]
            ["row_interval", begin, end, H] ["column_interval", begin, end, H] (names; null: no bound)
            ["tree", node, first, end] ["ancestors", parent] (names) ["heads", mask...];
            ["pooled", length, stride, name or null]
            ["block_map", offsets, columns, rows of a block, keys of a block, for each sequence (0 or 1), H]
            ["block_list", blocks, rows of a tile, keys of a block, H]
            ["predicate", condition, the same for numpy, arrays as `operands` returns them]
            D is "top_left" or "bottom_right", H "shared", "per_kv_head" or "per_head"
  layouts   of q, k, v, o: "bshd" "sbhd" "bhsd" "thd" "thd padded"
  heads, kv_heads, dim_qk, dim_v, scale
  score     (optional) modifiers in order: ["softcap", cap] ["alibi", D] ["alibi", D, name] ["head_scale", name]
            ["bias", name, axes] ["relative_bias", name, reach, D]
            ["score", expression, the same for numpy, axes of its arrays by name]
  learned   (optional) names of arrays of which a backward pass computes gradients
  sink      (optional) a number, or the name of an array of a number for each head
  dropout   (optional) [probability, name of an array of words]
  len_q, len_kv          lengths of the sequences; dense: all the same
  gaps_q, gaps_kv        "thd padded": padding rows before each sequence, and after the last
  tail_q, tail_kv        "thd": rows after the last sequence
  arrays    of the mask, by name; salt: which inputs
"""
import re

import numpy as np


def values(shape, salt):
    """Numbers in [-2, 2] that bf16 holds, the same on every machine."""
    i = np.arange(int(np.prod(shape)), dtype=np.int64) + 1000 * salt
    return (((i * i * 31 + i * 17 + salt) % 127 - 63) / 32).reshape(shape)


def mask_text(m):
    diagonal = lambda d: [] if d == "top_left" else [d]
    names = lambda x: ", ".join(f'"{n}"' for n in x)
    if m[0] == "full" or m == ["document"]:
        return f"#attn.{m[0]}"
    if m[0] in ("document", "tree", "ancestors"):
        return f"#attn.{m[0]}<{names(m[1:])}>"
    if m[0] == "predicate":
        return f'#attn.predicate<"{m[1]}">'
    if m[0] in ("row_interval", "column_interval"):
        bounds = [f'{n} = "{b}"' for n, b in (("begin", m[1]), ("end", m[2])) if b is not None]
        return f"#attn.{m[0]}<{', '.join(bounds + [m[3]])}>"
    if m[0] == "block_list":
        return f"#attn.block_list<{names(m[1:2])}, rows = {m[2]}, keys = {m[3]}, {m[4]}>"
    if m[0] == "block_map":
        lines = [f"{names(m[1:3])}, q = {m[3]}, kv = {m[4]}"] + ["per_sequence"] * m[5] + [m[6]]
        return f"#attn.block_map<{', '.join(lines)}>"
    if m[0] == "causal":
        return "#attn.causal" + "".join(f"<{d}>" for d in diagonal(m[1]))
    if m[0] == "band":
        bounds = [f"{n} = {b}" for n, b in (("left", m[1]), ("right", m[2])) if b is not None]
        return f"#attn.band<{', '.join(bounds + diagonal(m[3]))}>"
    if m[0] == "chunk":
        return f"#attn.chunk<{', '.join([str(m[1])] + diagonal(m[2]))}>"
    if m[0] == "pooled":
        keys = [] if m[3] is None else [f'keys = "{m[3]}"']
        return f"#attn.pooled<{', '.join([f'length = {m[1]}', f'stride = {m[2]}'] + keys)}>"
    if m[0] == "strided":
        return f"#attn.strided<{', '.join([f'stride = {m[1]}', f'offset = {m[2]}'] + diagonal(m[3]))}>"
    if m[0] in ("prefix", "global_rows"):
        return f"#attn.{m[0]}<{m[1]}>" if isinstance(m[1], int) else f'#attn.{m[0]}<"{m[1]}">'
    return f"#attn.{m[0]}<{', '.join(map(mask_text, m[1:]))}>"


def score_text(c):
    alibi = lambda d, name=None: f'#attn.alibi<"{name}", {d}>' if name else f"#attn.alibi<{d}>"
    texts = {"softcap": lambda cap: f"#attn.softcap<{float(cap)!r}>", "alibi": alibi,
             "head_scale": lambda name: f'#attn.head_scale<"{name}">',
             "score": lambda text, _, __: f'#attn.score<"{text}">',
             "bias": lambda name, axes: f'#attn.bias<"{name}", {axes}>',
             "relative_bias": lambda name, reach, d: f'#attn.relative_bias<"{name}", {reach}, {d}>'}
    modifiers = [texts[m[0]](*m[1:]) for m in c.get("score", [])]
    sink, dropout = c.get("sink"), c.get("dropout")
    return (f" score([{', '.join(modifiers)}])" if modifiers else "") + \
        ("" if sink is None else f' sink("{sink}")' if isinstance(sink, str) else f" sink({float(sink)!r})") + \
        (f' dropout({float(dropout[0])!r}, "{dropout[1]}")' if dropout else "")


def sink_of(c, h):
    """The score of the key more that each row of a head sees."""
    sink = c.get("sink")
    return -np.inf if sink is None else c["arrays"][sink][h] if isinstance(sink, str) else sink


def philox(counter, key, multipliers, weyl, rounds):
    """Philox of two or four numbers of 32 bits, each an array, as Salmon et al. (2011) define it."""
    x, key = [np.asarray(n, np.uint64) & 0xffffffff for n in counter], list(key)
    for _ in range(rounds):
        products = [m * n for m, n in zip(multipliers, x[::2])]
        high, low = [p >> np.uint64(32) for p in products], [p & np.uint64(0xffffffff) for p in products]
        n = len(products)
        x = [y for i in range(n) for y in (high[n - 1 - i] ^ x[2 * i + 1] ^ np.uint64(key[i]), low[n - 1 - i])]
        key = [(k + w) & 0xffffffff for k, w in zip(key, weyl)]
    return x


def philox2(counter, key, rounds=7):
    return philox(counter, [key], [np.uint64(0xD256D193)], [0x9E3779B9], rounds)


def philox4(counter, key):
    return philox(counter, key, [np.uint64(0xD2511F53), np.uint64(0xCD9E8D57)], [0x9E3779B9, 0xBB67AE85], 10)


def dropped(threshold, seed, b, h, q, k):
    """Of rows q and keys k, two arrays that broadcast, whether a head's pairs are dropped."""
    seed = [int(w) & 0xffffffff for w in seed]
    key, x, y, _ = (int(w) for w in philox4((seed[2], seed[3], b, h), seed[:2]))
    q, k = np.broadcast_arrays(q, k)
    words = philox2((x ^ (q // 16 * 8 + q % 8), y ^ (k // 16 * 8 + k % 8)), key)
    word = np.where(k // 8 % 2, words[1], words[0])
    return (word.astype(np.int64) >> (16 * (q // 8 % 2)) & 0x7fff) < threshold


def kept_weights(c, b, h, i, keys):
    """By what dropout multiplies the probabilities of row i and these keys."""
    if not c.get("dropout"):
        return np.ones(len(keys))
    threshold = int(np.floor(c["dropout"][0] * 2**15 + 0.5))
    if threshold == 0:
        return np.ones(len(keys))
    return np.where(dropped(threshold, c["arrays"][c["dropout"][1]], b, h, i, keys), 0, 1 / (1 - threshold / 2**15))


def problem_text(c, name="p"):
    return (f"attn.problem @{name} mask({mask_text(c['mask'])}) layout({', '.join(c['layouts'])}) "
            f"heads({c['heads']}, {c['kv_heads']}) "
            f"dims({c['dim_qk']}, {c['dim_v']}) dtype(bf16) scale({float(c['scale'])!r}){score_text(c)}\n")


def operands(m):
    """The arrays a mask reads: (name, "b" "q" or "kv", H); of block maps "lists", of each sequence "b lists", and
    "columns"."""
    if m[0] in ("and", "or", "not", "diff", "heads"):
        return [x for part in m[1:] for x in operands(part)]
    if m[0] in ("prefix", "global_rows"):
        return [] if isinstance(m[1], int) else [(m[1], "b", "shared")]
    if m[0] == "pooled":
        return [] if m[3] is None else [(m[3], "b", "shared")]
    if m[0] == "document":
        q, kv = m[1:] or ("segment_ids_q", "segment_ids_kv")
        return [(q, "q", "shared"), (kv, "kv", "shared")]
    if m[0] == "predicate":
        return m[3]
    if m[0] == "block_list":
        return [(m[1], f"{m[2]} lines", m[4])]
    if m[0] == "block_map":
        return [(m[1], "b lists" if m[5] else "lists", m[6]), (m[2], "columns", "shared")]
    if m[0] == "tree":
        return [(name, side, "shared") for name, side in zip(m[1:], ("q", "kv", "kv"))]
    if m[0] == "ancestors":
        return [(m[1], "kv", "shared")]
    if m[0] in ("row_interval", "column_interval"):
        return [(name, "q" if m[0] == "row_interval" else "kv", m[3]) for name in m[1:3] if name is not None]
    return []


def own_arrays(c, q, kv, b, h):
    """Of a mask's arrays, what belongs to sequence b and query head h."""
    own = {}
    for name, side, heads in operands(c["mask"]):
        x = np.array(c["arrays"][name])
        lines = {"q": q, "kv": kv}.get(side)
        if side in ("b", "b lists") or lines is not None and not lines.packed:
            x = x[b]
        if side.endswith(" lines") and not q.packed:
            x = x[b]
        if heads != "shared":
            x = x[h if heads == "per_head" else h * c["kv_heads"] // c["heads"]]
        if lines is not None and lines.packed:
            x = x[lines.starts[b]:lines.starts[b] + lines.lengths[b]]
        if side.endswith(" lines") and q.packed:
            rows = int(side.split()[0])
            first = int(q.arrays["cu_seqlens_q"][b]) // rows + b
            x = x[first:first - (-q.lengths[b] // rows)]
        own[name] = x
    return own


def visible(m, lq, lk, arrays, head):
    """[lq, lk] bool: what a sequence's rows see as a head; its arrays, (head, heads)."""
    q, k = np.arange(lq)[:, None], np.arange(lk)[None, :]
    everything = np.ones((lq, lk), bool)
    if m[0] == "full":
        return everything
    if m[0] in ("prefix", "global_rows"):
        limit = m[1] if isinstance(m[1], int) else arrays[m[1]]
        return everything & ((k if m[0] == "prefix" else q) < limit)
    if m[0] == "pooled":
        position = q if m[3] is None else q + arrays[m[3]] - lq
        return everything & (k * m[2] + m[1] - 1 <= position)
    if m[0] == "document":
        ids, others = [arrays[name] for name, _, _ in operands(m)]
        return (ids[:, None] == others[None, :]) & (ids[:, None] != 0)
    if m[0] == "tree":
        node, first, end = [arrays[name] for name in m[1:]]
        return (first[None, :] <= node[:, None]) & (node[:, None] < end[None, :])
    if m[0] == "ancestors":
        seen = np.eye(lk, dtype=bool)  # by key: a line is its parent's, and itself
        for key, parent in enumerate(arrays[m[1]]):
            if 0 <= parent < key:
                seen[key] |= seen[parent]
        own = np.arange(lq) + lk - lq
        return everything & (own >= 0)[:, None] & seen[np.maximum(own, 0)] if lk else everything
    if m[0] in ("row_interval", "column_interval"):
        other, line = (k, np.s_[:, None]) if m[0] == "row_interval" else (q, np.s_[None, :])
        if m[1] is not None:
            everything = everything & (arrays[m[1]][line] <= other)
        return everything if m[2] is None else everything & (other < arrays[m[2]][line])
    if m[0] == "block_list":
        lists = arrays[m[1]].astype(int)  # of the sequence
        return everything & np.array([np.isin(k[0] // m[3], lists[i // m[2]]) for i in range(lq)],
                                     bool).reshape(lq, lk)
    if m[0] == "block_map":
        offsets, columns = arrays[m[1]].astype(int), arrays[m[2]].astype(int)
        rows = [columns[offsets[i]:offsets[i + 1]] for i in range(len(offsets) - 1)]
        return everything & np.array([np.isin(k[0] // m[4], rows[i // m[3]]) if i // m[3] < len(rows) else k[0] < 0
                                      for i in range(lq)], bool).reshape(lq, lk)
    if m[0] == "predicate":
        of = {"b": lambda x: x, "": lambda x: x, "q": lambda x: x[:, None], "kv": lambda x: x[None, :]}
        names = {name: of[side](arrays[name]) for name, side, _ in m[3]}
        return everything & eval(m[2], {"np": np, "q": q, "k": k, "h": head[0], "len_q": lq, "len_k": lk, **names})
    if m[0] == "heads":
        return visible(m[1 + head[0] * (len(m) - 1) // head[1]], lq, lk, arrays, head)
    if m[0] in ("and", "or"):
        parts = [visible(x, lq, lk, arrays, head) for x in m[1:]]
        return np.all(parts, axis=0) if m[0] == "and" else np.any(parts, axis=0)
    if m[0] in ("not", "diff"):
        *first, last = [visible(x, lq, lk, arrays, head) for x in m[1:]]
        return np.logical_and.reduce(first + [~last])
    shifted = q + (lk - lq if m[-1] == "bottom_right" else 0)
    if m[0] == "chunk":
        return shifted // m[1] == k // m[1]
    if m[0] == "strided":
        return (shifted - k) % m[1] == m[2]
    left, right, d = (None, 0, m[1]) if m[0] == "causal" else m[1:]
    from_diagonal = k - q - (lk - lq if d == "bottom_right" else 0)
    if left is not None:
        everything &= from_diagonal >= -left
    if right is not None:
        everything &= from_diagonal <= right
    return everything


def slopes(heads):
    """ALiBi's, as the paper's code has them."""
    def of_power(n):
        start = 2 ** (-8 / n)
        return [start ** (i + 1) for i in range(n)]
    power = 2 ** int(np.floor(np.log2(heads)))
    return of_power(power) + of_power(2 * power)[0::2][:heads - power]


def entries_of(m, b, h, i, keys, lq, lk):
    """The arrays that a modifier reads, each with the index of its entries for row i and these keys."""
    axes = lambda names: tuple({"b": b, "h": h, "q": i, "k": keys}[axis] for axis in names)
    if m[0] == "head_scale":
        return {m[1]: (h,)}
    if m[0] == "bias":
        return {m[1]: axes(m[2])}
    if m[0] == "relative_bias":
        away = keys - i - (lk - lq if m[3] == "bottom_right" else 0)
        return {m[1]: (h, np.clip(away, -m[2], m[2]) + m[2])}
    if m[0] == "alibi" and len(m) > 2:
        return {m[2]: (h,)}
    return {name: axes(own) for name, own in m[3].items()} if m[0] == "score" else {}


def modified(c, s, b, h, i, keys, lq, lk):
    """The scores s of row i of sequence b and these keys, after the modifiers."""
    for m in c.get("score", []):
        own = {name: np.array(c["arrays"][name])[at] for name, at in entries_of(m, b, h, i, keys, lq, lk).items()}
        if m[0] == "softcap":
            s = m[1] * np.tanh(s / m[1])
        elif m[0] == "head_scale":
            s = s * own[m[1]]
        elif m[0] in ("bias", "relative_bias"):
            s = s + own[m[1]]
        elif m[0] == "score":
            s = np.zeros_like(s) + eval(m[2], {"np": np, "s": s, "q": i, "k": keys, "b": b, "h": h, "len_q": lq,
                                               "len_k": lk, **own})
        else:
            slope = own[m[2]] if len(m) > 2 else slopes(c["heads"])[h]
            s = s - slope * np.abs(i + (lk - lq if m[1] == "bottom_right" else 0) - keys)
    return s


class Side:
    """How the rows of q and o, or of k and v, lie in memory."""

    def __init__(self, c, side):
        self.lengths = c["len_" + side]
        self.packed = c["layouts"][0 if side == "q" else 1].startswith("thd")
        self.arrays = {}
        if not self.packed:
            self.rows = self.lengths[0] if self.lengths else 0
            return
        ends = np.cumsum(self.lengths)
        self.starts = np.r_[0, ends[:-1]].astype(int)
        self.arrays[f"cu_seqlens_{side}"] = np.r_[0, ends].astype(np.int32)
        self.rows = int(ends[-1]) + c.get("tail_" + side, 0)
        if "padded" in c["layouts"][0 if side == "q" else 1]:
            # Padding before sequence b belongs to the slot before it.
            gaps = c["gaps_" + side]
            self.starts = self.starts + np.cumsum(gaps)[:-1]
            self.rows = int(ends[-1]) + sum(gaps)
            # Even sequences: the buffer ends after the last slot; odd: the slot is exact and padding follows.
            end = self.rows if len(self.lengths) % 2 == 0 else self.rows - gaps[-1]
            self.arrays[f"padded_offsets_{side}"] = np.r_[self.starts, end].astype(np.int32)

    def shape(self, layout, heads, dim):
        b, s = len(self.lengths), self.rows
        return {"bshd": (b, s, heads, dim), "sbhd": (s, b, heads, dim), "bhsd": (b, heads, s, dim)}.get(
            layout, (s, heads, dim))

    def sequence(self, x, layout, b):
        """Sequence b of a tensor as [rows, heads, dim], a view."""
        if self.packed:
            return x[self.starts[b]:self.starts[b] + self.lengths[b]]
        return {"bshd": lambda: x[b], "sbhd": lambda: x[:, b], "bhsd": lambda: x[b].transpose(1, 0, 2)}[layout]()


def inputs(c):
    """All tensors of a case, by name."""
    q, kv = Side(c, "q"), Side(c, "kv")
    result = {"q": values(q.shape(c["layouts"][0], c["heads"], c["dim_qk"]), c["salt"]),
              "k": values(kv.shape(c["layouts"][1], c["kv_heads"], c["dim_qk"]), c["salt"] + 1),
              "v": values(kv.shape(c["layouts"][2], c["kv_heads"], c["dim_v"]), c["salt"] + 2)}
    for name, x in {**q.arrays, **kv.arrays, **c["arrays"]}.items():
        x = np.array(x)
        result[name] = x.astype(np.float32 if x.dtype == np.float64 and x.size else np.int32)
    return result


def attention(c, x):
    """o and lse of a case with inputs x, float64."""
    q, kv = Side(c, "q"), Side(c, "kv")
    lq, lk, lv, lo = c["layouts"]
    o = np.zeros(q.shape(lo, c["heads"], c["dim_v"]))
    lse = np.full(q.shape("bhsd", c["heads"], 1)[:3] if not q.packed else (c["heads"], q.rows), -np.inf)
    for b in range(len(q.lengths)):
        Q, K, V = q.sequence(x["q"], lq, b), kv.sequence(x["k"], lk, b), kv.sequence(x["v"], lv, b)
        O = q.sequence(o, lo, b)
        L = lse[:, q.starts[b]:q.starts[b] + q.lengths[b]] if q.packed else lse[b]
        for h in range(c["heads"]):
            sees = visible(c["mask"], len(Q), len(K), own_arrays(c, q, kv, b, h), (h, c["heads"]))
            g = h * c["kv_heads"] // c["heads"]
            for i in range(len(Q)):
                keys = np.flatnonzero(sees[i])
                s = modified(c, c["scale"] * (K[keys, g] @ Q[i, h]), b, h, i, keys, len(Q), len(K))
                s = np.append(s, sink_of(c, h))
                if np.all(s == -np.inf):
                    continue
                p = np.exp(s - np.max(s))  # np.max keeps NaN
                weights = kept_weights(c, b, h, i, keys)
                kept = weights > 0
                O[i, h] = (p[:-1] * weights)[kept] @ V[keys[kept], g] / p.sum()
                L[h, i] = np.max(s) + np.log(p.sum())
    return o, lse


def derivative(c, s, b, h, i, keys, lq, lk):
    """By what a change of the scores s, before the modifiers, changes them behind."""
    slope = np.ones_like(s)
    for n, m in enumerate(c.get("score", [])):
        if m[0] == "softcap":
            before = modified({**c, "score": c["score"][:n]}, s, b, h, i, keys, lq, lk)
            slope = slope / np.cosh(before / m[1]) ** 2
        elif m[0] == "head_scale":
            slope = slope * c["arrays"][m[1]][h]
        elif m[0] == "score":
            before = modified({**c, "score": c["score"][:n]}, s, b, h, i, keys, lq, lk)
            behind = [modified({**c, "score": [m]}, before + by, b, h, i, keys, lq, lk) for by in (-1e-5, 1e-5)]
            slope = slope * (behind[1] - behind[0]) / 2e-5
    return slope


def by_entry(c, name, s, b, h, i, keys, lq, lk):
    """By what the modified scores change with the entries of an array, and where these are."""
    moved = [{**c, "arrays": {**c["arrays"], name: np.array(c["arrays"][name]) + by}} for by in (-1e-5, 1e-5)]
    behind = [modified(m, s, b, h, i, keys, lq, lk) for m in moved]
    at = next(own[name] for m in c["score"] if name in (own := entries_of(m, b, h, i, keys, lq, lk)))
    return (behind[1] - behind[0]) / 2e-5, at


def gradients(c, x):
    """dq, dk, dv and those of learned arrays of a case with inputs x, among them o, lse, do and, maybe, dlse;
    float64."""
    q, kv = Side(c, "q"), Side(c, "kv")
    lq, lk, lv, lo = c["layouts"]
    result = {"dq": np.zeros(x["q"].shape), "dk": np.zeros(x["k"].shape), "dv": np.zeros(x["v"].shape)}
    learned = c.get("learned", [])
    result.update({"d" + name: np.zeros(np.array(c["arrays"][name]).shape) for name in learned})
    per_head = lambda t, b: t[:, q.starts[b]:q.starts[b] + q.lengths[b]] if q.packed else t[b]
    for b in range(len(q.lengths)):
        Q, K, V = q.sequence(x["q"], lq, b), kv.sequence(x["k"], lk, b), kv.sequence(x["v"], lv, b)
        O, dO, L = q.sequence(x["o"], lo, b), q.sequence(x["do"], lo, b), per_head(x["lse"], b)
        dL = per_head(x["dlse"], b) if "dlse" in x else np.zeros(L.shape)
        dQ, dK = q.sequence(result["dq"], lq, b), kv.sequence(result["dk"], lk, b)
        dV = kv.sequence(result["dv"], lv, b)
        for h in range(c["heads"]):
            sees = visible(c["mask"], len(Q), len(K), own_arrays(c, q, kv, b, h), (h, c["heads"]))
            g = h * c["kv_heads"] // c["heads"]
            for i in range(len(Q)):
                keys = np.flatnonzero(sees[i])
                if c.get("sink") in learned and L[h, i] > -np.inf:
                    delta = O[i, h] @ dO[i, h] - dL[h, i]
                    result["d" + c["sink"]][h] -= np.exp(sink_of(c, h) - L[h, i]) * delta
                if len(keys) == 0:
                    continue
                raw = c["scale"] * (K[keys, g] @ Q[i, h])
                p = np.exp(modified(c, raw, b, h, i, keys, len(Q), len(K)) - L[h, i])
                weights = kept_weights(c, b, h, i, keys)
                ds = p * (weights * (V[keys, g] @ dO[i, h]) - O[i, h] @ dO[i, h] + dL[h, i])
                for name in learned:
                    if name != c.get("sink"):
                        slope, at = by_entry(c, name, raw, b, h, i, keys, len(Q), len(K))
                        one_entry = all(np.ndim(x) == 0 for x in at)
                        np.add.at(result["d" + name], at, np.sum(ds * slope) if one_entry else ds * slope)
                ds = c["scale"] * ds * derivative(c, raw, b, h, i, keys, len(Q), len(K))
                dQ[i, h] += ds @ K[keys, g]
                dK[keys, g] += np.outer(ds, Q[i, h])
                dV[keys, g] += np.outer(p * weights, dO[i, h])
    return result
