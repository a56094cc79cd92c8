# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Holds the reference of sparse attention (`attn-run --reference`) against golden_nsa.json: programs of Native Sparse
Attention with gradients, from inputs that a hash makes, and attention to lists of blocks that other methods chose.
Then lists of `attn.select` against numpy on random problems, some with NaN, and bad inputs.

  python sparse_goldens.py [--random N] [--seed S]
"""
import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import zlib

import numpy as np


def filled(name, *shape):
    """Element i is (fmix32(crc32(name) + i) >> 24) - 128, divided by 64: a number that each dtype has."""
    h = np.arange(int(np.prod(shape)), dtype=np.uint64) + np.uint64(zlib.crc32(name.encode())) & np.uint64(0xFFFFFFFF)
    for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35)):
        h = (h ^ h >> np.uint64(shift)) * np.uint64(factor) & np.uint64(0xFFFFFFFF)
    h ^= h >> np.uint64(16)
    return ((h >> np.uint64(24)).astype(np.float64) - 128).reshape(shape) / 64


def check_digest(what, got, want):
    """`want` has the shape of an array, its sums, and its first and last elements, to 10 digits."""
    flat = got.ravel()
    found = {"sum": flat.sum(), "squares": (flat * flat).sum(), "dot": (flat * filled("digest", flat.size)).sum(),
             "head": flat[:6], "tail": flat[-6:]}
    assert list(got.shape) == want["shape"], (what, got.shape, want["shape"])
    for key, value in found.items():
        limit = 1e-8 * np.maximum(1, np.abs(want[key]))
        assert (np.abs(value - np.array(want[key])) <= limit).all(), (what, key, value, want[key])


def check_lse(what, got, want):
    empty = np.isneginf(got)
    assert empty.sum() == want["empty"], (what, empty.sum(), want["empty"])
    check_digest(what, np.where(empty, 0, got), want)


def interpret(folder, text, pass_name, inputs, results):
    """Results of the reference, from float64 files."""
    path = lambda name: os.path.join(folder, name)
    with open(path("p.mlir"), "w") as f:
        f.write(text)
    command = ["attn-run", path("p.mlir"), "--reference", f"--problem={pass_name}"]
    for name, value in inputs.items():
        np.save(path(name + ".npy"), value if value.dtype == np.int32 else value.astype(np.float64))
        command.append(f"--arg={name}={path(name + '.npy')}")
    command += [f"--result={r}={path(r + '_result.npy')}" for r in results]
    run = subprocess.run(command, capture_output=True, text=True)
    if run.returncode:
        sys.exit(f"{text}\n{run.stderr}")
    found = {r: np.load(path(r + "_result.npy")) for r in results}
    assert all(value.dtype in (np.float64, np.int32) for value in found.values())
    return found


# ----------------------------------------------------------------------------
# Layouts: tensors of tests are packed, [tokens, heads, dim]
# ----------------------------------------------------------------------------
def laid_out(x, layout, batch=1):
    if layout == "thd":
        return x
    x = x.reshape(batch, -1, *x.shape[1:])
    return {"bshd": x, "sbhd": x.swapaxes(0, 1), "bhsd": x.swapaxes(1, 2)}[layout]


def packed(x, layout):
    if layout == "thd":
        return x
    x = {"bshd": x, "sbhd": x.swapaxes(0, 1), "bhsd": x.swapaxes(1, 2)}[layout]
    return x.reshape(-1, *x.shape[2:])


def packed_lse(x, layout):
    return x if layout == "thd" else x.swapaxes(0, 1).reshape(x.shape[1], -1)


def list_of(blocks, layout, c, b):
    """Lines [kv heads, tiles, entries] of a sequence."""
    if layout != "thd":
        return blocks[b]
    first = c["cu"][b] // c["m"] + b
    return blocks[:, first:first + -(-(c["cu"][b + 1] - c["cu"][b]) // c["m"])]


# ----------------------------------------------------------------------------
# Native Sparse Attention
# ----------------------------------------------------------------------------
BRANCHES = ("cmp", "slc", "sld")


def program_text(c, layout, compresses):
    """Forward and backward pass as one program. Compressed keys are its own, or the caller's. `masks` of a case are in
    place of the usual ones, with lists that are the caller's."""
    heads, layout_clause = f"heads({c['H']}, {c['Hk']})", f"layout({layout})"
    dims = f"dims({c['D']}, {c['Dv']})"
    same, sigmoid, is_packed = c["same_kv"], c["gates"] == "sigmoid", layout == "thd"
    windows = f"length({c['l']}) stride({c['d']})"
    masks = {"cmp": f"#attn.pooled<length = {c['l']}, stride = {c['d']}>",
             "slc": f"#attn.and<#attn.block_list<\"lists\", rows = {c['m']}, keys = {c['lp']}>, #attn.causal>",
             "sld": f"#attn.band<left = {c['w'] - 1}, right = 0>", **c.get("masks", {})}
    ops = [f"attn.problem @{b} mask({masks[b]}) {layout_clause} {heads} {dims} dtype(f32)\n"
           f"attn.backward @{b}_grads of(@{b}) delta" for b in BRANCHES]
    add = " add(2)" if same else ""
    if compresses:
        ops.append(f"attn.compress @pool mean {windows} {layout_clause} heads({c['Hk']}) {dims} dtype(f32)\n"
                   f"attn.compress_backward @pool_grads of(@pool){add}")
    if "masks" not in c:
        ops.append(f"attn.select @top prob {windows} block({c['lp']}) count({c['n']}) first({c['n_init']}) "
                   f"local({c['n_local']}) rows({c['m']}) {layout_clause} {heads} dim({c['D']}) dtype(f32)")
    ops.append(f"attn.combine @gated {'sigmoid' if sigmoid else 'uniform'} branches(3) {layout_clause} "
               f"heads({c['H']}) dim({c['Dv']}) dtype(f32)\nattn.combine_backward @gated_grads of(@gated)")
    ops.append(f"attn.add @sum parts(3) {layout_clause} heads({c['H']}) dim({c['D']}) dtype(f32)")

    body, operands, results = [], [], []
    operand = lambda name: (operands.append(name) if name not in operands else None) or "%" + name
    offsets = lambda kv: f", cu_seqlens_q = %cu_seqlens, cu_seqlens_kv = {kv}" if is_packed else ""
    own = ", cu_seqlens = %cu_seqlens" if is_packed else ""
    both = own + (", cu_seqlens_compressed = %cu_c" if is_packed else "")
    call = lambda given, callee, named, of: body.append(f"{given} = attn.call @{callee}({named}) -> ({of})")
    if is_packed:
        operand("cu_seqlens")
    q, do = operand("q"), operand("do")
    kv = {b: [operand(f"{x}_{'all' if same else b}") for x in "kv"] for b in BRANCHES if compresses or b != "cmp"}
    if compresses:
        more = ("%cu_c", "cu_seqlens_compressed") if is_packed else None
        call("%ck, %cv" + (f", {more[0]}" if more else ""), "pool", f"k = {kv['cmp'][0]}, v = {kv['cmp'][1]}{own}",
             "compressed_k, compressed_v" + (f", {more[1]}" if more else ""))
        tokens, kv["cmp"] = kv["cmp"][0], ["%ck", "%cv"]
    else:
        kv["cmp"] = [operand("compressed_k"), operand("compressed_v")]
        both = both.replace("%cu_c", operand("cu_seqlens_compressed")) if is_packed else both
    cu_c = "%cu_c" if compresses else "%cu_seqlens_compressed"
    extra = {"cmp": offsets(cu_c), "slc": offsets("%cu_seqlens") + ", lists = %lists", "sld": offsets("%cu_seqlens")}
    for b in BRANCHES:
        if b == "slc" and "masks" in c:
            operand("lists")
        elif b == "slc":
            call("%lists", "top", f"q = {q}, compressed_k = {kv['cmp'][0]}, lse = %lse_cmp{both}", "blocks")
            results.append(("lists", "%lists"))
        call(f"%o_{b}, %lse_{b}", b, f"q = {q}, k = {kv[b][0]}, v = {kv[b][1]}{extra[b]}", "o, lse")
        results.append((f"lse_{b}", f"%lse_{b}"))
    branches = ", ".join(f"o_{i} = %o_{b}" for i, b in enumerate(BRANCHES))
    gates = f", gates = {operand('gates')}" if sigmoid else ""
    call("%o", "gated", branches + gates, "o")
    results.append(("o", "%o"))
    lses = ", ".join(f"lse_{i} = %lse_{b}" for i, b in enumerate(BRANCHES))
    call("".join(f"%delta_{b}, %gated_lse_{b}, " for b in BRANCHES)[:-2] + (", %dgates" if sigmoid else ""),
         "gated_grads", f"{branches}, {lses}{gates}, do = {do}",
         "".join(f"delta_{i}, gated_lse_{i}, " for i in range(3))[:-2] + (", dgates" if sigmoid else ""))
    if sigmoid:
        results.append(("dgates", "%dgates"))
    for b in BRANCHES:
        call(f"%dq_{b}, %dk_{b}, %dv_{b}", b + "_grads",
             f"q = {q}, k = {kv[b][0]}, v = {kv[b][1]}, lse = %gated_lse_{b}, delta = %delta_{b}, do = {do}{extra[b]}",
             "dq, dk, dv")
        if not same and b != "cmp":
            results += [(f"{d}_{b}", f"%{d}_{b}") for d in ("dk", "dv")]
    call("%dq", "sum", ", ".join(f"part_{i} = %dq_{b}" for i, b in enumerate(BRANCHES)), "result")
    results.append(("dq", "%dq"))
    if compresses:
        before = "".join(f", before_{d}_{i} = %{d}_{b}" for i, b in enumerate(BRANCHES[1:]) for d in ("dk", "dv"))
        call("%dk, %dv", "pool_grads",
             f"dcompressed_k = %dk_cmp, dcompressed_v = %dv_cmp{before if same else ', k = ' + tokens}{both}", "dk, dv")
        results += [(f"{d}{'' if same else '_cmp'}", f"%{d}") for d in ("dk", "dv")]
    else:
        results += [(f"dcompressed_{x}", f"%d{x}_cmp") for x in "kv"]
    lines = [f"%{name} = attn.operand \"{name}\"" for name in operands] + body
    lines += [f"attn.result \"{name}\" = {value}" for name, value in results]
    text = "\n".join(ops) + "\nattn.program @nsa {\n  " + "\n  ".join(lines) + "\n}\n"
    return text, operands, [name for name, _ in results]


class Learned:
    """phi as a layer over a window's tokens and their positions: `linear`, or `mlp` with a SiLU in the middle."""

    def __init__(self, c, letter, dim):
        name, heads, self.length, self.stride = f"phi_{letter}", c["Hk"], c["l"], c["d"]
        self.pe = filled(name + "_pe", heads, self.length, dim)
        hidden = 6
        if c["phi"] == "linear":
            self.weights = [filled(name + "_W", heads, self.length * dim, dim) / 16]
        else:
            self.weights = [filled(name + "_W1", heads, self.length * dim, hidden) / 16,
                            filled(name + "_W2", heads, hidden, dim)]

    def windows(self, cu):
        starts = lambda a, b: range(a, b - self.length + 1, self.stride)
        return [start for a, b in zip(cu, cu[1:]) for start in starts(a, b)]

    def forward(self, x, cu):
        """[windows of all sequences, heads, dim]"""
        self.starts, self.shape = self.windows(cu), x.shape
        tokens = np.array([x[s:s + self.length] for s in self.starts]).swapaxes(1, 2) + self.pe
        self.flat = tokens.reshape(*tokens.shape[:2], -1)
        self.inner = np.einsum("nhx,hxe->nhe", self.flat, self.weights[0])
        if len(self.weights) == 1:
            return self.inner
        return np.einsum("nhm,hme->nhe", self.inner / (1 + np.exp(-self.inner)), self.weights[1])

    def backward(self, dy):
        """The gradients of tokens and of parameters."""
        found = {}
        if len(self.weights) == 2:
            s = 1 / (1 + np.exp(-self.inner))
            found["W2"] = np.einsum("nhm,nhe->hme", self.inner * s, dy)
            dy = np.einsum("nhe,hme->nhm", dy, self.weights[1]) * s * (1 + self.inner * (1 - s))
        found["W" if len(self.weights) == 1 else "W1"] = np.einsum("nhx,nhe->hxe", self.flat, dy)
        dtokens = np.einsum("nhe,hxe->nhx", dy, self.weights[0]).reshape(*dy.shape[:2], self.length, -1)
        found["pe"] = dtokens.sum(0)
        dx = np.zeros(self.shape)
        for start, d in zip(self.starts, dtokens):
            dx[start:start + self.length] += d.swapaxes(0, 1)
        return dx, found


def inputs_of(name, c):
    n, h, hk, d, dv = (c[x] for x in ("N", "H", "Hk", "D", "Dv"))
    x = {"q": filled("q", n, h, d), "do": filled("do", n, h, dv)}
    if c["gates"] == "sigmoid":
        x["gates"] = filled("gate", n, h, 3)
    for b in ("all",) if c["same_kv"] else BRANCHES:
        x["k_" + b], x["v_" + b] = filled("k_" + b, n, hk, d), filled("v_" + b, n, hk, dv)
        if name == "ties":
            x["k_" + b] = np.broadcast_to(x["k_" + b][:1], x["k_" + b].shape)
    return x


def run_program(c, x, layout, folder, batch=1):
    """Results of the program, all packed."""
    compresses = c["phi"] == "mean"
    text, operands, results = program_text(c, layout, compresses)
    given = {}
    for name in operands:
        if name == "gates":
            given[name] = x[name] if layout == "thd" else x[name].reshape(batch, -1, *x[name].shape[1:])
        elif x[name].dtype == np.int32:
            given[name] = x[name]
        else:
            given[name] = laid_out(x[name], layout, batch)
    found = interpret(folder, text, "nsa", given, results)
    for name, value in found.items():
        if name.startswith("lse"):
            found[name] = packed_lse(value, layout)
        elif name == "dgates":
            found[name] = value.reshape(-1, *value.shape[-2:])
        elif name != "lists":
            found[name] = packed(value, layout)
    return found


def check_paper(name, c, layout, folder):
    x, phis = inputs_of(name, c), {}
    x["cu_seqlens"] = np.array(c["cu"], np.int32)
    if c["phi"] != "mean":
        for letter, dim in (("k", c["D"]), ("v", c["Dv"])):
            phis[letter] = Learned(c, letter, dim)
            x[f"compressed_{letter}"] = phis[letter].forward(x[f"{letter}_cmp"], c["cu"])
        x["cu_seqlens_compressed"] = np.array(c["cu_cmp"], np.int32)
    found = run_program(c, x, layout, folder)
    what = lambda result: f"{result} of {name}, {layout}"
    for b in BRANCHES:
        check_lse(what(f"lse_{b}"), found[f"lse_{b}"], c[f"lse_{b}"])
    for b, want in enumerate(c["lists"]):
        if want is None:
            continue
        lines = list_of(found["lists"], layout, c, b)
        rows = range(c["cu"][b + 1] - c["cu"][b])
        got = ["|".join(",".join(str(j) for j in head[t // c["m"]] if j >= 0) for t in rows) for head in lines]
        assert got == want, (what("lists"), b, got, want)
    for letter, phi in phis.items():
        found[f"d{letter}_cmp"], parameters = phi.backward(found[f"dcompressed_{letter}"])
        for parameter, gradient in parameters.items():
            check_digest(what(f"dphi_{letter}_{parameter}"), gradient, c[f"dphi_{letter}_{parameter}"])
    found["dgate"] = found.get("dgates")
    gradients = [key for key in c if key in ("dq", "dk", "dv", "dgate") or key[:3] in ("dk_", "dv_")]
    assert len(gradients) == (3 if c["same_kv"] else 8), gradients
    for key in ["o"] + gradients:
        check_digest(what(key), found[key], c[key])


def check_batches(folder):
    """Two dense sequences are what they are packed."""
    n = 37
    c = dict(N=2 * n, H=4, Hk=2, D=16, Dv=8, phi="mean", same_kv=False, gates="sigmoid", l=8, d=4, lp=8, n=4, n_init=1,
             n_local=2, w=7, m=4, cu=[0, n, 2 * n])
    x = inputs_of("batches", c)
    x["cu_seqlens"] = np.array(c["cu"], np.int32)
    want = run_program(c, x, "thd", folder)
    for layout in ("bshd", "sbhd", "bhsd"):
        got = run_program(c, x, layout, folder, batch=2)
        for b in range(2):
            lists = [list_of(found["lists"], of, c, b) for found, of in ((got, layout), (want, "thd"))]
            assert (lists[0] == lists[1]).all(), (layout, b, lists)
        for name, value in got.items():
            assert name == "lists" or np.allclose(value, want[name], rtol=1e-13, atol=1e-13), (layout, name)
    print("dense sequences are what they are packed")


# ----------------------------------------------------------------------------
# Other methods: what attends where is given
# ----------------------------------------------------------------------------
def lists_in(texts):
    """[heads, lists, entries], filled up with -1."""
    rows = [[[int(j) for j in line.split(",")] for line in head.split("|")] for head in texts]
    width = max(len(line) for head in rows for line in head)
    return np.array([[line + [-1] * (width - len(line)) for line in head] for head in rows], np.int32)


def check_mslk(golden, folder):
    """Lists of each query head, compressed keys that are seen from their first token on, and gates that are a product
    with q."""
    c = dict(golden, Dv=golden["D"], phi="mean", same_kv=True, gates="sigmoid", d=golden["l"], cu=[0, golden["N"]],
             m=golden["q_tile"], lp=golden["l"], w=golden["window_keys"])
    c["masks"] = {"cmp": f"#attn.pooled<length = 1, stride = {c['l']}>",
                  "slc": f"#attn.and<#attn.block_list<\"lists\", rows = {c['m']}, keys = {c['lp']}, per_head>, "
                         "#attn.causal>"}
    x = inputs_of("mslk_compat", c)
    weights = filled("gate_w", c["H"], 3, c["D"]) / 8
    x["gates"] = np.einsum("thd,hid->thi", x["q"], weights)
    x["lists"] = lists_in(c["lists"])[None]
    found = run_program(c, x, "bshd", folder)
    assert np.isneginf(found["lse_slc"]).sum() == c["empty_slc"]
    found["dq"] += np.einsum("thi,hid->thd", found["dgates"], weights)
    for name in ("o", "dq", "dk", "dv"):
        check_digest(f"{name} of mslk_compat", found[name][None], golden[name])
    check_digest("dgate_w of mslk_compat", np.einsum("thi,thd->hid", found["dgates"], x["q"]), golden["dgate_w"])


def program_of_problem(problem, arrays, more_gradients=()):
    """A problem @p and its gradients, of arrays by name."""
    names = ["q", "k", "v", "do"] + list(arrays)
    given = ", ".join(f"{name} = %{name}" for name in ["q", "k", "v"] + list(arrays))
    gradients = ["dq", "dk", "dv"] + ["d" + name for name in more_gradients]
    learned = "requires_grad([" + ", ".join(f'"{name}"' for name in more_gradients) + "])" if more_gradients else ""
    body = [f'%{name} = attn.operand "{name}"' for name in names]
    body += [f"%o, %lse = attn.call @p({given}) -> (o, lse)",
             f"{', '.join('%' + d for d in gradients)} = attn.call @p_grads({given}, o = %o, lse = %lse, do = %do) "
             f"-> ({', '.join(gradients)})"]
    body += [f'attn.result "{name}" = %{name}' for name in ["o", "lse"] + gradients]
    lines = "\n  ".join(body)
    return f"{problem}\nattn.backward @p_grads of(@p) {learned}\nattn.program @both {{\n  {lines}\n}}\n"


def problem_inputs(c):
    n, h, hk, d, dv = (c[x] for x in ("N", "H", "Hk", "D", "Dv"))
    return {"q": filled("q", 1, n, h, d), "k": filled("k_all", 1, n, hk, d), "v": filled("v_all", 1, n, hk, dv),
            "do": filled("do", 1, n, h, dv)}


def problem_of(c, mask, more=""):
    return (f"attn.problem @p mask({mask}) layout(bshd) heads({c['H']}, {c['Hk']}) dims({c['D']}, {c['Dv']}) dtype(f32)"
            f" {more}")


def check_union(c, folder):
    """One softmax over a window and over compressed keys, which are further keys here, and sinks."""
    n, x = c["N"], problem_inputs(c)
    mask = f'#attn.predicate<"k < {n} ? q - k < 7 && k <= q : (k - {n}) * 8 + 7 <= q">'
    for name in "kv":
        means = [x[name][:, i:i + 8].mean(1, keepdims=True) for i in range(0, n - 7, 8)]
        x[name] = np.concatenate([x[name]] + means, 1)
    x["sinks"] = filled("sinks", c["H"])
    text = program_of_problem(problem_of(c, mask, 'sink("sinks")'), ["sinks"], ["sinks"])
    found = interpret(folder, text, "both", x, ("o", "lse", "dq", "dk", "dv", "dsinks"))
    for name in "kv":
        found[f"d{name}_sld"], found[f"d{name}_cmp"] = np.split(found[f"d{name}"], [n], 1)
    for name in ("o", "lse", "dq", "dk_sld", "dv_sld", "dk_cmp", "dv_cmp", "dsinks"):
        check_digest(f"{name} of union", found[name], c[name])


def check_listed(name, c, keys, heads, folder):
    """Attention to given lists of blocks of each row, and its gradients. `heads`: which have lists of their own; empty:
    kv heads."""
    lists = lists_in(c["lists"])
    lists = lists[0] if heads == "shared" else lists
    mask = f"#attn.and<#attn.block_list<\"lists\", rows = 1, keys = {keys}{heads and ', ' + heads}>, #attn.causal>"
    results = ("o", "lse", "dq", "dk", "dv")
    found = interpret(folder, program_of_problem(problem_of(c, mask), ["lists"]), "both",
                      {**problem_inputs(c), "lists": lists[None]}, results)
    for result in results:
        check_digest(f"{result} of {name}", found[result], c[result])


def check_scored(name, c, folder):
    """MoBA and MSA as programs of a selection and attention: lists, results and gradients."""
    n, h, hk, d = (c[x] for x in ("N", "H", "Hk", "D"))
    x, common = problem_inputs(c), "layout(bshd)"
    clauses = f"block({c['lp']}) count({c['k' if name == 'moba' else 'n']}) first(0) local(1) rows(1) per_head {common}"
    if name == "moba":
        ops = [f"attn.compress @means mean k_only length({c['lp']}) stride({c['lp']}) {common} heads({hk}) dims({d}) "
               "dtype(f32)",
               f"attn.select @select mean_key {clauses} heads({h}, {hk}) dim({d}) dtype(f32)"]
        calls = ["%ck = attn.call @means(k = %k) -> (compressed_k)",
                 "%lists = attn.call @select(q = %q, compressed_k = %ck) -> (blocks)"]
    else:
        ops = [f"attn.select @select max {clauses} heads({hk}, 1) dim({c['Di']}) dtype(f32)"]
        calls = ["%lists = attn.call @select(q = %q_index, k = %k_index) -> (blocks)"]
        x |= {"q_index": filled("q_index", 1, n, hk, c["Di"]), "k_index": filled("k_index", 1, n, 1, c["Di"])}
    heads = ", per_head" if name == "moba" else ""
    mask = f"#attn.and<#attn.block_list<\"lists\", rows = 1, keys = {c['lp']}{heads}>, #attn.causal>"
    given = "q = %q, k = %k, v = %v, lists = %lists"
    calls += [f"%o, %lse = attn.call @p({given}) -> (o, lse)",
              f"%dq, %dk, %dv = attn.call @p_grads({given}, o = %o, lse = %lse, do = %do) -> (dq, dk, dv)"]
    results = ["lists", "o", "lse", "dq", "dk", "dv"]
    lines = [f'%{operand} = attn.operand "{operand}"' for operand in x] + calls
    lines += [f'attn.result "{result}" = %{result}' for result in results]
    ops += [problem_of(c, mask), "attn.backward @p_grads of(@p)"]
    text = "\n".join([*ops, "attn.program @scored {", *lines, "}\n"])
    found = interpret(folder, text, "scored", x, results)
    assert (found["lists"][0] == lists_in(c["lists"])).all(), (name, found["lists"])
    for result in results[1:]:
        check_digest(f"{result} of {name}", found[result], c[result])


# ----------------------------------------------------------------------------
# attn.select by itself
# ----------------------------------------------------------------------------
def select_by_numpy(c, q, ck, lse, cu, cu_c):
    """Lists by a matrix of how much of each block each window covers. Keys are windows of one token, of which the
    largest product counts."""
    lists, width = c["heads"] if c["per_head"] else c["kv"], c["count"] + max(c["rows"] // c["block"] - 1, 0)
    group = c["heads"] // lists
    blocks = np.full((lists, q.shape[0] // c["rows"] + len(cu) - 1, width), -1)
    for b, (start, end) in enumerate(zip(cu, cu[1:])):
        n, windows = end - start, cu_c[b + 1] - cu_c[b]
        for t in range(0, n, c["rows"]):
            own, line = t // c["block"], start // c["rows"] + b + t // c["rows"]
            cover = np.zeros((windows, own + 1))
            for j in range(own + 1):
                for m in range(c["block"] // c["stride"]):
                    for k in range(c["length"] // c["stride"]):
                        if 0 <= (i := j * (c["block"] // c["stride"]) + m - k) < windows:
                            cover[i, j] += 1
            seen = [i for i in range(windows) if i * c["stride"] + c["length"] - 1 <= t]
            for g in range(lists):
                importance = np.full(own + 1, -np.inf if c["scorer"] == "max" else 0.0)
                for h in range(g * group, (g + 1) * group):
                    p = ck[cu_c[b]:cu_c[b + 1], h * c["kv"] // c["heads"]][seen] @ q[start + t, h]
                    if c["scorer"] == "prob":
                        p = np.exp(c["scale"] * p - lse[h, start + t])
                    for i, weight in zip(seen, p):  # a NaN reaches no block that its window has no part of
                        has = cover[i] > 0
                        importance[has] = (np.maximum(importance[has], weight) if c["scorer"] == "max" else
                                           importance[has] + weight * cover[i][has])
                forced = {j for j in range(own + 1) if j < c["first"] or j > own - c["local"]}
                rank = sorted(set(range(own + 1)) - forced,
                              key=lambda j: (np.inf if np.isnan(importance[j]) else -importance[j], j))
                taken = forced | set(rank[:max(c["count"] - len(forced), 0)])
                taken |= {j for j in range(own + 1, -(-n // c["block"])) if j * c["block"] < t + c["rows"]}
                blocks[g, line, :len(taken)] = sorted(taken)
    return blocks


def check_select(r, number, folder):
    stride = r.choice([1, 2, 4])
    c = dict(stride=stride, length=stride * r.randint(1, 4), block=stride * r.choice([1, 2, 3, 4]), kv=r.choice([1, 2]),
             first=r.randint(0, 2), local=r.randint(1, 3), scale=r.choice([0.25, -0.5, 1.0]))
    c["heads"] = c["kv"] * r.randint(1, 3)
    c["scorer"], c["per_head"] = r.choice(["prob", "mean_key", "max"]), r.choice([False, True])
    if c["scorer"] != "prob":
        c["length"] = c["stride"] = stride = c["block"] if c["scorer"] == "mean_key" else 1
    c["count"] = c["first"] + c["local"] + r.randint(0, 3)
    c["rows"] = c["block"] * r.randint(1, 3) if r.random() < 0.5 else r.choice(
        [k for k in range(1, c["block"] + 1) if c["block"] % k == 0])
    lengths = [r.choice([0, 1, 3, 20, r.randint(0, 70)]) for _ in range(r.randint(1, 3))]
    cu = np.concatenate([[0], np.cumsum(lengths)])
    windows = [0 if n < c["length"] else (n - c["length"]) // stride + 1 for n in lengths]
    cu_c = np.concatenate([[0], np.cumsum(windows)])
    total, rng = cu[-1] + r.choice([0, 5]), np.random.default_rng(number)
    q = rng.standard_normal((total, c["heads"], 8))
    ck = rng.standard_normal((total if c["scorer"] == "max" else total // stride + 1, c["kv"], 8))
    lse = rng.standard_normal((c["heads"], total))
    if r.random() < 0.3:  # all weights are 1: importances are equal in any order of additions
        q[:], lse[:] = 0, 0
    if r.random() < 0.3:
        ck[rng.random(ck.shape[:2]) < 0.2] = np.nan
    windows, scale = f"length({c['length']}) stride({stride}) ", f" scale({c['scale']})"
    if c["scorer"] != "prob":
        windows = scale = ""
    text = (f"attn.select @top {c['scorer']} {windows}block({c['block']}) count({c['count']}) first({c['first']}) "
            f"local({c['local']}) rows({c['rows']}) {'per_head ' * c['per_head']}layout(thd) "
            f"heads({c['heads']}, {c['kv']}) dim(8) dtype(f32){scale}\n")
    x = {"q": q, "k" if c["scorer"] == "max" else "compressed_k": ck, "cu_seqlens": cu.astype(np.int32)}
    if c["scorer"] == "prob":
        x["lse"] = lse
    if c["scorer"] != "max":
        x["cu_seqlens_compressed"] = cu_c.astype(np.int32)
    got = interpret(folder, text, "top", x, ["blocks"])["blocks"]
    want = select_by_numpy(c, q, ck, lse, cu, cu_c)
    assert got.shape == want.shape and (got == want).all(), (c, lengths, got, want)


# ----------------------------------------------------------------------------
# Bad inputs
# ----------------------------------------------------------------------------
def check_refused(folder):
    text = """attn.compress @pool mean length(8) stride(4) layout(thd) heads(2) dims(8) dtype(bf16)
attn.compress_backward @pool_grads of(@pool)
attn.select @top prob length(8) stride(4) block(8) count(4) first(1) local(2) rows(4) layout(thd) heads(2) dim(8)
  dtype(bf16)
attn.combine @gated sigmoid branches(2) layout(bshd) heads(2) dim(8) dtype(bf16)
attn.gather_rows @rows parts(1) heads(1) dim(8) dtype(bf16)
attn.program @means {
  %k = attn.operand "k"
  %offsets = attn.operand "offsets"
  %ck = attn.call @pool(k = %k, v = %k, cu_seqlens = %offsets) -> (compressed_k)
  attn.result "means" = %ck
}
"""
    path = lambda name: os.path.join(folder, name)
    with open(path("bad.mlir"), "w") as f:
        f.write(text)
    array = lambda *numbers: np.array(numbers, np.int32)
    refused = [
        ("means", {}, [], "expected --arg=offsets=FILE, which cannot be made up"),
        ("means", {"k": np.zeros((9, 3, 8)), "offsets": array(0, 9)}, [], "expected shape [9, 2, 8] for `k`"),
        ("means", {"k": np.zeros((9, 2)), "offsets": array(0, 9)}, [], "expected 3 axes for `k`, got: [9, 2]"),
        ("means", {"k": np.zeros((9, 2, 8)), "offsets": array(0, 10)}, [], "@means, call of @pool: "),
        ("means", {"q": np.zeros(1)}, [], "expected --arg=NAME=FILE with an input of @means"),
        ("means", {"k": array(1)}, [], "expected dtype float32 or float64"),
        ("pool", {}, ["--result=k=k.npy"], "expected --result=NAME=FILE with a result of @pool"),
        ("pool", {}, ["--lengths-kv=4"], "expected options that decide something"),
        ("pool", {}, ["--seqlen-q=4"], "expected options that decide something"),
        ("pool", {"cu_seqlens": array(0, 9)}, ["--lengths-q=9"], "expected lengths of sequences from `cu_seqlens`"),
        ("pool", {"cu_seqlens": array(1, 9)}, [], "cu_seqlens"),
        ("pool", {}, ["--check"], "expected kernels to run with --check, got: --reference"),
        ("top", {"cu_seqlens": array(0, 20), "cu_seqlens_compressed": array(0, 5)}, [],
         "expected 4 for `cu_seqlens_compressed`[1]"),
        ("pool_grads", {"cu_seqlens": array(0, 20), "cu_seqlens_compressed": array(0, 3)}, [],
         "expected 4 for `cu_seqlens_compressed`[1]"),
        ("gated", {}, ["--lengths-q=3"], "expected options that decide something"),
        ("rows", {"part_0": np.zeros((3, 1, 8)), "index": array(0, 3).reshape(1, 2)}, [], "expected rows below 3"),
    ]
    for name, inputs, options, message in refused:
        command = ["attn-run", path("bad.mlir"), "--reference", f"--problem={name}", *options]
        for key, value in inputs.items():
            np.save(path(key + ".npy"), value)
            command.append(f"--arg={key}={path(key + '.npy')}")
        run = subprocess.run(command, capture_output=True, text=True, cwd=folder)
        assert run.returncode == 1 and message in run.stderr, (name, options, run.returncode, run.stderr, message)
    print(f"{len(refused)} bad inputs refused")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--random", type=int, default=40)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "golden_nsa.json")) as f:
        golden = json.load(f)
    cases = golden["cases"]
    assert filled("q", 8).tolist() == golden["first_q"]
    with tempfile.TemporaryDirectory() as folder:
        for name in ("token", "one_pair", "mlp", "linear_long", "ties", "varlen", "tile16", "short"):
            c = cases[name]
            layouts = ["thd"] + (["bshd", "sbhd", "bhsd"] if c["cu"] == [0, c["N"]] else [])
            for layout in layouts:
                check_paper(name, c, layout, folder)
            print(f"{name}: program and gradients agree, {', '.join(layouts)}")
        for name, keys, heads in (("moba", cases["moba"]["lp"], "per_head"), ("msa", cases["msa"]["lp"], ""),
                                  ("dsa", 1, "shared")):
            check_listed(name, cases[name], keys, heads, folder)
            print(f"{name}: attention to its lists and gradients agree")
        for name in ("moba", "msa"):
            check_scored(name, cases[name], folder)
            print(f"{name}: selection, attention and gradients agree")
        check_mslk(cases["mslk_compat"], folder)
        print("mslk_compat: program of its lists and gradients agree")
        check_union(cases["union"], folder)
        print("union: one softmax over two sets of keys and gradients agree")
        check_batches(folder)
        r = random.Random(options.seed)
        for number in range(options.random):
            check_select(r, number, folder)
        print(f"lists of {options.random} random problems agree")
        check_refused(folder)


if __name__ == "__main__":
    main()
