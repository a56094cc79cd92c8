#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs of sparse attention with kernels of the CPU against the reference, both passes, on random problems.

  sparse_programs.py --random COUNT [--seed SEED]

Runs `attn-run --check` on the forward program, and on the backward program with what the forward one left."""
import argparse
import os
import random
import subprocess
import sys
import tempfile

import attnc
import numpy as np

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--random", type=int, required=True)
parser.add_argument("--seed", type=int, default=0)
args = parser.parse_args()


def program_of(r):
    kind = r.choice(["NativeSparseAttention"] * 2 + ["MobaAttention", "BlockMaxAttention"])
    o = options_of(r)
    if kind != "NativeSparseAttention":
        o["dims"] = (o["dims"], 8 * r.randint(1, 5))
        o["count"] = r.randint(1, 6)
        for name in ("length", "stride", "first", "local", "window", "gates", "gates_dtype", "shared_kv"):
            del o[name]
    if kind == "BlockMaxAttention":
        kv_heads = o["heads"][1]
        o.update(index_heads=r.choice([n for n in range(1, kv_heads + 1) if kv_heads % n == 0]),
                 index_dim=8 * r.randint(1, 4))
    return getattr(attnc, kind)(**o, saves=True), o


def options_of(r):
    stride = r.choice([1, 2, 4, 8])
    length, block = stride * r.randint(1, 3), stride * r.choice([1, 2, 3, 4])
    rows = [1, block, block * r.randint(2, 4)] + [n for n in range(1, block) if block % n == 0]
    if r.choice([True, False, False, False]):  # kernels read lists of whole tiles instead of bits
        block, rows = 64, [16, 32, 64, 128]
    first, local = r.randint(0, 2), r.randint(1, 3)
    kv_heads, dtype = r.randint(1, 3), r.choice(["f32", "f32", "bf16", "f16"])
    return dict(heads=(kv_heads * r.randint(1, 4), kv_heads), dims=8 * r.randint(1, 5),
                layout=r.choice(["thd", "thd", "bshd", "sbhd", "bhsd"]), dtype=dtype,
                length=length, stride=stride, block=block, first=first, local=local,
                count=first + local + r.randint(0, 4), window=r.choice([1, 7, 40, 1000]),
                rows=r.choice(rows),
                gates=r.choice(["sigmoid", "sigmoid", "uniform"]), gates_dtype=r.choice(["f32", dtype]),
                shared_kv=r.choice([True, True, False]), scale=r.choice([None, 0.5, -0.25]))


def inputs_of(program, o, r):
    """Operands by name; rows in no sequence are NaN."""
    numbers = np.random.default_rng(r.randrange(2**32))
    if o["layout"] == "thd":
        window = o.get("length", o["block"])
        lengths = [r.choice([0, 1, window - 1, window, o["block"], r.randint(2, 150)])
                   for _ in range(r.randint(1, 4))]
        tokens, behind = sum(lengths), r.choice([0, 0, 5])
        lead = lambda h: (tokens + behind, h)
        offsets = np.cumsum([0, *lengths]).astype(np.int32)
    else:
        batch, seqlen = r.randint(1, 2), r.choice([1, o["block"], r.randint(2, 120)])
        lead = {"bshd": lambda h: (batch, seqlen, h), "sbhd": lambda h: (seqlen, batch, h),
                "bhsd": lambda h: (batch, h, seqlen)}[o["layout"]]
        tokens, offsets = None, None
    made = {}
    for operand in program.describe()["tensors"]:
        name = operand["name"]
        if operand["role"] == "result" or name.startswith("cu_seqlens"):
            continue
        if name == "gates":
            shape = (*lead(o["heads"][0]), 3) if o["layout"] == "thd" else (batch, seqlen, o["heads"][0], 3)
        else:
            heads = {"index_k": o.get("index_heads")}.get(name, o["heads"][name not in ("q", "do")])
            dims = o["dims"] if isinstance(o["dims"], tuple) else (o["dims"], o["dims"])
            is_value = name.startswith("v") or name == "do"
            shape = (*lead(heads), o["index_dim"] if name.startswith("index") else dims[is_value])
        made[name] = numbers.standard_normal(shape).astype(np.float32)
        if tokens is not None:
            made[name][tokens:] = np.nan
    if offsets is not None:
        made["cu_seqlens"] = offsets
    return made


def run(program, given, results, folder, description):
    path = lambda name: os.path.join(folder, name)
    with open(path("program.mlir"), "w", encoding="utf-8") as file:
        file.write(program.text)
    command = ["attn-run", path("program.mlir"), f"--problem={program.name}", "--target=cpu", "--check"]
    for name, array in given.items():
        np.save(path(name + ".npy"), array)
        command.append(f"--arg={name}={path(name + '.npy')}")
    command += [f"--result={name}={path('out_' + name + '.npy')}" for name in results]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{description}\n{program.name}:\n{done.stdout}{done.stderr}")
    return {name: np.load(path("out_" + name + ".npy")) for name in results}


def main():
    for number in range(args.random):
        r = random.Random(1000003 * args.seed + number)
        program, o = program_of(r)
        backward = program.gradient(deterministic=r.choice([True, False]))
        given = inputs_of(program, o, r)
        with tempfile.TemporaryDirectory() as folder:
            saved = run(program, given, ("o", *program.saved), folder, f"case {number}: {o}")
            needed = [t["name"] for t in backward.describe()["tensors"] if t["role"] != "result"]
            shape = saved["o"].shape
            both = {**given, **saved, "do": np.random.default_rng(number).standard_normal(shape).astype(np.float32)}
            run(backward, {name: both[name] for name in needed}, [], folder, f"case {number}: {o}")
    print(f"{args.random} random programs and their gradients agree")


main()
