# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checks the reference interpreter (attn-reference-test) and problems.py against golden.json, then against each
other on random problems, some with NaN and infinities in their inputs. Gradients likewise: numpy's against finite
differences of its forward pass, the interpreter's against numpy's, until each mask, modifier and kind of learned array
of the dialect has been among them with a gradient that is not 0.

  python against_oracle.py [--random N] [--seed S]
"""
import argparse
import json
import os
import random
import re
import subprocess
import sys
import tempfile

import numpy as np

from problems import Side, attention, entries_of, gradients, inputs, operands, problem_text, values


def interpret(c, x, folder, options=(), results=("o", "lse", "known"), more=""):
    """o, lse and known of a case, or gradients, by attn-reference-test."""
    path = lambda name: os.path.join(folder, name)
    with open(path("p.mlir"), "w") as f:
        f.write(problem_text(c) + more)
    command = ["attn-reference-test", path("p.mlir"), *options]
    for name, value in x.items():
        np.save(path(name + ".npy"), value if value.dtype == np.int32 else value.astype(np.float32))
        command.append(f"--arg={name}={path(name + '.npy')}")
    command += [f"--result={r}={path(r + '.npy')}" for r in results]
    run = subprocess.run(command, capture_output=True, text=True)
    if run.returncode:
        sys.exit(f"{problem_text(c)}{json.dumps(c)}\n{run.stderr}")
    return [np.load(path(r + ".npy")) for r in results]


def compare(c, what, got, want, tolerance):
    if got.shape != want.shape or not np.allclose(got, want, rtol=tolerance, atol=tolerance, equal_nan=True):
        given = json.dumps({k: v for k, v in c.items() if k not in ("o", "lse", "gradients")})
        sys.exit(f"{what} differs in case {given}\n{problem_text(c)}got:\n{got}\nexpected:\n{want}")


def check_golden(folder):
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "golden.json")) as f:
        cases = json.load(f)["cases"]
    for c in cases:
        x = inputs(c)
        numpy_o, numpy_lse = attention(c, x)
        o = np.array(c["o"]).reshape(numpy_o.shape)
        lse = np.array([-np.inf if v is None else v for v in c["lse"]]).reshape(numpy_lse.shape)
        compare(c, "o of numpy", numpy_o, o, 1e-7)
        compare(c, "lse of numpy", numpy_lse, lse, 1e-7)
        got_o, got_lse, known = interpret(c, x, folder)
        compare(c, "o", got_o, o, 1e-6)
        compare(c, "lse", got_lse, lse, 1e-6)
        assert known.all()
        if "gradients" in c:
            check_golden_gradients(c, dict(x, o=numpy_o, lse=numpy_lse, do=values(numpy_o.shape, c["salt"] + 3)),
                                   folder)
    print(f"{len(cases)} golden cases agree, {sum('gradients' in c for c in cases)} with gradients")


def check_golden_gradients(c, x, folder):
    names = ("dq", "dk", "dv")
    found = gradients({"learned": [], "score": [], "sink": None, **c}, x)
    for name, got in zip(names, interpret(c, x, folder, results=names, more="attn.backward @grads of(@p)\n")):
        want = np.array(c["gradients"][name]).reshape(got.shape)
        compare(c, f"{name} of numpy", found[name], want, 1e-7)
        compare(c, name, got, want, 2e-6)


PREDICATES = [
    ["(q - k) % 3 == 0 && q >= k", "((q - k) % 3 == 0) & (q >= k)", []],
    ["kind[q] == 1 || kind_kv[k] == kind[q] && abs(q - k) < 2", "(kind == 1) | (kind_kv == kind) & (abs(q - k) < 2)",
     [("kind", "q", "shared"), ("kind_kv", "kv", "shared")]],
    ["!(h < 1 || (k - q - 4) / 3 == 1 - k / 2) && level[g, k] != 2",
     "(h >= 1) & ((k - q - 4) // 3 != 1 - k // 2) & (level != 2)", [("level", "kv", "per_kv_head")]],
    ["(q < 2 ? min(k, 3) : some[b] % 3) * -2 <= len_k - len_q - max(q, min(marks[h, q], 100))",
     "np.where(q < 2, np.minimum(k, 3), some % 3) * -2 <= len_k - len_q - np.maximum(q, np.minimum(marks, 100))",
     [("some", "b", "shared"), ("marks", "q", "per_head")]],
    ["(kind[q] & kind_kv[k]) != 0 && (q ^ ~k) << 1 < of_head[h] || (k >> 1 & 3 | of_kv[g]) == (q & 1) - 1",
     "((kind & kind_kv) != 0) & ((q ^ ~k) << 1 < of_head) | ((k >> 1 & 3 | of_kv) == (q & 1) - 1)",
     [("kind", "q", "shared"), ("kind_kv", "kv", "shared"), ("of_head", "", "per_head"), ("of_kv", "", "per_kv_head")]],
]


def random_mask(r, heads, depth=0):
    diagonal = r.choice(["top_left", "bottom_right"])
    leaves = ["full", "causal", "band", "band", "prefix", "array", "chunk", "strided", "document", "named", "rows",
              "row_interval", "column_interval", "tree", "ancestors", "predicate", "predicate", "block_map", "pooled",
              "block_list"]
    groups = [n for n in (2, 3, 4) if heads % n == 0]
    connectives = ["and", "or", "not", "diff"] + ["heads"] * bool(groups)
    kind = r.choice(leaves + connectives * (2 if depth < 2 else 0))
    if kind in connectives:
        count = {"not": 1, "diff": 2, "heads": r.choice(groups or [0])}.get(kind) or r.randint(2, 3)
        return [kind] + [random_mask(r, heads, depth + 1) for _ in range(count)]
    if kind == "strided":
        stride = r.randint(1, 6)
        return [kind, stride, r.randint(0, stride - 1), diagonal]
    if kind == "band":
        left = r.randint(-3, 8)
        return r.choice([["band", left, r.randint(-left, 8), diagonal], ["band", left, None, diagonal],
                         ["band", None, left, diagonal]])
    if kind == "predicate":
        return [kind] + r.choice(PREDICATES)
    if kind == "block_map":
        of = r.choice(["shared", "per_kv_head", "per_head"])
        q, kv, sequences = r.randint(1, 5), r.randint(1, 5), r.randint(0, 1)
        name = f"{q}_{kv}_{sequences}_{of}"
        return [kind, "offsets_" + name, "columns_" + name, q, kv, sequences, of]
    if kind == "block_list":
        of, rows, keys = r.choice(["shared", "per_kv_head", "per_head"]), r.randint(1, 5), r.randint(1, 5)
        return [kind, f"blocks_{rows}_{keys}_{of}", rows, keys, of]
    if kind in ("row_interval", "column_interval"):
        of = r.choice(["shared", "per_kv_head", "per_head"])
        begin, end = (f"{kind}_{bound}_{of}" for bound in ("begin", "end"))
        return [kind] + r.choice([[begin, end], [begin, None], [None, end]]) + [of]
    return {"full": ["full"], "document": ["document"], "named": ["document", "own_q", "own_kv"],
            "causal": ["causal", diagonal], "chunk": ["chunk", r.randint(1, 6), diagonal],
            "prefix": ["prefix", r.randint(0, 9)], "array": ["prefix", "lengths"],
            "pooled": ["pooled", r.randint(1, 5), r.randint(1, 4), r.choice([None, "lengths"])],
            "rows": ["global_rows", r.choice([r.randint(0, 9), "globals"])],
            "tree": ["tree", "node", "first", "end"], "ancestors": ["ancestors", "parent"]}[kind]


def arrays_of(r, c):
    """Made up for the case's mask."""
    sides = {"q": Side(c, "q"), "kv": Side(c, "kv")}
    result = {}
    for name, side, of in operands(c["mask"]):
        batch = len(c["len_q"])
        if side == "columns":
            continue  # with the offsets
        if side.endswith("lists"):
            if name in result:
                continue
            q, kv = map(int, name.split("_")[1:3])
            lines = [batch] * (side == "b lists")
            lines += {"shared": [], "per_kv_head": [c["kv_heads"]], "per_head": [c["heads"]]}[of]
            rows, blocks, columns = r.randint(0, -(-sides["q"].rows // q) + 1), -(-sides["kv"].rows // kv), []
            offsets = np.zeros(lines + [rows + 1], int)
            for at in np.ndindex(*offsets.shape):
                if at[-1]:
                    columns += [r.randrange(blocks) for _ in range(r.randint(0, 2 * blocks))]
                offsets[at] = len(columns)
            result[name], result[name.replace("offsets", "columns")] = offsets.tolist(), columns
            continue
        if side.endswith(" lines"):
            rows, keys = map(int, name.split("_")[1:3])
            q = sides["q"]
            lines = [] if q.packed else [batch]
            lines += {"shared": [], "per_kv_head": [c["kv_heads"]], "per_head": [c["heads"]]}[of]
            lines += [q.rows // rows + batch if q.packed else -(-q.rows // rows), r.randint(0, 6)]
            blocks = -(-sides["kv"].rows // keys)
            result[name] = np.array([r.randint(-1, blocks + 1) for _ in range(int(np.prod(lines)))],
                                    np.int32).reshape(lines).tolist()
            continue
        if side in ("", "b"):
            count = batch if side else c["heads" if of == "per_head" else "kv_heads"]
            result[name] = [r.randint(-1, 12) for _ in range(count)]
            continue
        if name == "parent":
            own = [[r.choice([key - 1, r.randint(-1, key - 1)]) for key in range(n)] for n in sides[side].lengths]
            if sides[side].packed:
                result[name] = [r.randint(-9, 99)] * sides[side].rows
                for start, line in zip(sides[side].starts, own):
                    result[name][start:start + len(line)] = line
            else:
                result[name] = own
            continue
        shape = [] if sides[side].packed else [batch]
        shape += {"shared": [], "per_kv_head": [c["kv_heads"]], "per_head": [c["heads"]]}[of] + [sides[side].rows]
        high = 2 if name.startswith(("segment", "own")) else 10
        result[name] = np.array([r.randint(-1 if high > 2 else 0, high) for _ in range(int(np.prod(shape)))],
                                np.int32).reshape(shape).tolist()
    return result


def random_case(r):
    dense = ["bshd", "sbhd", "bhsd"]
    pick = lambda: r.choice(dense * 2 + ["thd"] * 3 + ["thd padded"] * 3)
    q, k = pick(), pick()
    like = lambda layout: r.choice(dense) if layout in dense else layout
    batch = r.randint(1, 4)
    ragged = lambda: [r.choice([0, 1, r.randint(2, 12)]) for _ in range(batch)]
    lengths = lambda layout: [r.randint(1, 9)] * batch if layout in dense else ragged()
    kv_heads = r.randint(1, 3)
    heads = kv_heads * r.randint(1, 4)
    c = dict(mask=random_mask(r, heads), layouts=[q, k, like(k), like(q)], heads=heads, kv_heads=kv_heads,
             dim_qk=8 * r.randint(1, 3), dim_v=8 * r.randint(1, 3),
             scale=r.choice([0.1, 0.5, 1.0, -0.25]), len_q=lengths(q), len_kv=lengths(k), salt=r.randint(0, 99))
    for side in ("q", "kv"):
        c["gaps_" + side] = [r.choice([0, 0, 1, 3]) for _ in range(batch + 1)]
        c["tail_" + side] = r.randint(0, 2)
    modifiers = [["softcap", r.choice([0.5, 5.0, 100.0])], ["alibi", r.choice(["top_left", "bottom_right"])]]
    c["score"] = r.choice([[], [], modifiers[:1], modifiers[1:], modifiers, modifiers[::-1]])
    eighths = lambda count: np.array([r.randint(-16, 16) for _ in range(count)]) / 8.0
    numbers = lambda *shape: eighths(int(np.prod(shape))).reshape(shape).tolist()
    biases = {}
    if r.randint(0, 1):
        axes = r.choice(["bhqk", "hqk", "qk", "bk", "q"] if q in dense and k in dense else ["bh", "h", "b"])
        extents = dict(b=batch, h=heads, q=c["len_q"][0], k=c["len_kv"][0])
        reach = r.randint(1, 6)
        scale, shift = r.choice([("gate[h]", "gate"), ("shift[b, h]", "shift")])
        functions = [["score", "s - 0.25 * abs(q - k) / (1 + len_q)", "s - 0.25 * abs(q - k) / (1.0 + len_q)", {}],
                     ["score", "h % 2 == 0 && s < 0.513 ? s * s - log(2.0 + s * s) : exp(min(s, 1.0137)) + q / 2 - k",
                      "np.where((h % 2 == 0) & (s < 0.513), s * s - np.log(2 + s * s), "
                      "np.exp(np.minimum(s, 1.0137)) + q // 2 - k)", {}],
                     ["score", f"tanh(s) * {scale} - max(s, {scale}) / (sqrt(abs({scale})) + 3.0)",
                      f"np.tanh(s) * {shift} - np.maximum(s, {shift}) / (np.sqrt(np.abs({shift})) + 3)",
                      {shift: scale[len(shift) + 1:-1].replace(", ", "")}]]
        others = [r.choice(functions), ["head_scale", "temperatures"], ["bias", "bias", axes],
                  ["relative_bias", "table", reach, r.choice(["top_left", "bottom_right"])]]
        c["score"] = r.sample(c["score"] + others, 2)
        biases = {"temperatures": numbers(heads), "bias": numbers(*[extents[a] for a in axes]),
                  "table": numbers(heads, 2 * reach + 1),
                  "gate": (np.array(numbers(heads)) + 0.07).tolist(),
                  "shift": (np.array(numbers(batch, heads)) + 0.07).tolist()}
    c["sink"] = r.choice([None, None, 0.0, -2.5, 3.0, "sinks"])
    biases["sinks"] = numbers(heads)
    c["arrays"] = arrays_of(r, c)
    if c["sink"] == "sinks":
        c["arrays"]["sinks"] = biases["sinks"]
    c["arrays"].update((m[1], biases[m[1]]) for m in c["score"] if m[1] in biases)
    for m in c["score"]:
        c["arrays"].update((name, biases[name]) for name in (m[3] if m[0] == "score" else []))
    if any(m[0] == "alibi" for m in c["score"]) and r.randint(0, 1):
        c["score"] = [m + ["slopes"] if m[0] == "alibi" else m for m in c["score"]]
        c["arrays"]["slopes"] = [r.randint(-8, 16) / 16 for _ in range(c["heads"])]
    drops = random.Random(c["salt"] + 1000 * batch + heads)  # of its own: the other choices stay
    if drops.randint(0, 2) == 0:
        c["dropout"] = [drops.choice([0.0, 0.1, 0.5, 0.9]), "words"]
        if c["dropout"][0]:
            c["arrays"]["words"] = [drops.randint(-2**31, 2**31 - 1) for _ in range(4)]
    own = [name for m in c["score"] for name in entries_of(m, 0, 0, 0, 0, 1, 1)]
    if isinstance(c["sink"], str):
        own.append(c["sink"])
    c["learned"] = sorted(set(name for name in own if r.randint(0, 1)))
    return c


def check_random(count, seed, folder):
    r = random.Random(seed)
    for number in range(count):
        c = random_case(r)
        x = inputs(c)
        if number % 4 == 0:  # reaches the rows that may see it, and no others
            for name in r.sample(["q", "k", "v"], r.randint(1, 2)):
                for _ in range(r.randint(1, 2) if x[name].size else 0):
                    x[name].flat[r.randrange(x[name].size)] = r.choice([np.nan, np.inf, -np.inf])
        if number % 10 == 1:  # all scores of a row are -inf: it has seen nothing
            x["q"][:], x["k"][:] = 1, -np.inf
            c["scale"] = 1.0
        n = 3 if number % 5 == 2 else 1
        o, lse, known = interpret(c, x, folder, [f"--one-row-in={n}"])
        with np.errstate(all="ignore"):
            want_o, want_lse = attention(c, x)
        unknown = known == 0
        assert n > 1 or not unknown.any()
        want_lse[unknown] = np.nan
        axes = {"bshd": (0, 2, 1), "sbhd": (2, 0, 1), "bhsd": (0, 1, 2)}.get(c["layouts"][3], (1, 0))
        want_o[unknown.transpose(axes)] = np.nan
        compare(c, "o", o, want_o, 2e-6)
        compare(c, "lse", lse, want_lse, 2e-6)
    print(f"{count} random problems agree")


def dialect_kinds():
    """What gradients are to be checked of, as ODS has it: "mask causal", "score softcap", "learned alibi"."""
    ods = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../include/attn/Dialect/Attn/IR")
    with open(os.path.join(ods, "AttnMasks.td")) as masks, open(os.path.join(ods, "AttnScores.td")) as scores:
        masks, scores = masks.read(), scores.read()
    names = re.findall(r'^def \w+\s*: Attn_(?:Mask|IntervalMask|Composite)<"\w+",\s*"(\w+)"', masks, re.M)
    names += re.findall(r'^def \w+\s*: AttrDef<[^{]*{\s*let mnemonic = "(\w+)"', masks, re.M)
    modifiers = re.findall(r'^def \w+\s*: Attn_ScoreModifier<"\w+",\s*"(\w+)",([^>]*)>', scores, re.M)
    assert "causal" in names and "diff" in names and "softcap" in dict(modifiers), "ODS is written in another way"
    return {"mask " + name for name in names} | {"score " + name for name, _ in modifiers} | \
        {"learned " + name for name, methods in modifiers if "entryDerivative" in methods} | \
        {"sink", "learned sink", "dropout", "dlse"}


def kinds_of(c, x, found):
    """Those of a case with inputs x, and gradients that are evidence of them."""
    def masks(m):
        parts = m[1:] if m[0] in ("and", "or", "not", "diff", "heads") else []
        return {m[0]}.union(*map(masks, parts))
    moves = lambda name: np.any(found["d" + name] != 0)
    result = {"learned " + m[0] for m in c["score"] for name in entries_of(m, 0, 0, 0, 0, 1, 1)
              if name in c["learned"] and moves(name)}
    if c["sink"] in c["learned"] and moves(c["sink"]):
        result.add("learned sink")
    if moves("q") and moves("k"):
        result |= {"mask " + m for m in masks(c["mask"])} | {"score " + m[0] for m in c["score"]}
        result |= {name for name, there in [("sink", c["sink"] is not None), ("dlse", "dlse" in x),
                                            ("dropout", c.get("dropout", [0])[0] != 0)] if there}
    return result


def cases_of_all_kinds(r, count, check):
    """Calls `check`, which returns kinds, with `count` cases, and with more until all kinds have been among them."""
    missing, cases = dialect_kinds(), 0
    while cases < count or missing:
        if cases == 20 * count:
            sys.exit(f"no case of {', '.join(sorted(missing))} among {cases}")
        missing -= check(random_case(r))
        cases += 1
    return cases


def cotangents(r, c, x):
    """The case's inputs with o and lse, and with gradients of both that are numbers float32 holds."""
    o, lse = attention(c, x)
    numbers = lambda shape: np.round(np.random.default_rng(r.randint(0, 1 << 30)).normal(size=shape) * 64) / 64
    x = {**x, "o": o, "lse": lse, "do": numbers(o.shape)}
    if r.randint(0, 1):
        x["dlse"] = numbers(lse.shape)
    return x


def check_differences(count, seed):
    """d(sum of do * o + dlse * lse) by each input, by differences."""
    r = random.Random(seed)
    entries = 0

    def check(c):
        nonlocal entries
        c["dim_qk"] = c["dim_v"] = 8
        x = cotangents(r, c, inputs(c))
        found = gradients(c, x)

        def loss(name, index, by):
            moved = np.array(x[name], np.float64)
            moved[index] += by
            o, lse = attention({**c, "arrays": {**c["arrays"], name: moved}} if name in c["arrays"] else c,
                               {**x, name: moved})
            seen = np.isfinite(lse)
            return np.sum(o * x["do"]) + (np.sum(lse[seen] * x["dlse"][seen]) if "dlse" in x else 0)
        for name in ["q", "k", "v"] + c["learned"]:
            anywhere = lambda n: [r.randrange(x[name].size) for _ in range(n if x[name].size else 0)]
            moving = np.flatnonzero(found["d" + name])  # one of these is among them, if there is any
            for at in anywhere(3) + ([r.choice(moving)] if moving.size else anywhere(1)):
                index = np.unravel_index(at, x[name].shape)
                step = 2.0 ** -16 if any(m[0] == "score" for m in c["score"]) else 2.0 ** -12
                slope = (loss(name, index, step) - loss(name, index, -step)) / (2 * step)
                got = found["d" + name][index]
                entries += 1
                if abs(got - slope) > 1e-4 * (1 + abs(slope)):
                    sys.exit(f"d{name}{index}: {got}, by differences {slope}\n{problem_text(c)}{json.dumps(c)}")
        return kinds_of(c, x, found)
    cases = cases_of_all_kinds(r, count, check)
    print(f"{entries} entries of gradients of {cases} problems, of all masks and modifiers, agree with differences")


def check_gradients(count, seed, folder):
    r = random.Random(seed)

    def check(c):
        x = cotangents(r, c, inputs(c))
        x = {name: value if value.dtype == np.int32 else value.astype(np.float32).astype(np.float64)
             for name, value in x.items()}
        more = "attn.backward @grads of(@p)" + (" dlse" if "dlse" in x else "")
        if c["learned"]:
            more += f" learned({json.dumps(c['learned'])})"
        names = ["dq", "dk", "dv"] + ["d" + name for name in c["learned"]]
        got = interpret(c, x, folder, results=names, more=more)
        want = gradients(c, x)
        for name, values in zip(names, got):
            compare(c, name, values, want[name], 2e-6 * max(1, np.max(np.abs(want[name]), initial=0)))
        return kinds_of(c, x, want)
    cases = cases_of_all_kinds(r, count, check)
    print(f"gradients of {cases} random problems, of all masks and modifiers, agree")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--random", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        check_golden(folder)
        check_random(options.random, options.seed, folder)
        check_differences(options.random // 4, options.seed)
        check_gradients(options.random // 2, options.seed + 1, folder)


main()
