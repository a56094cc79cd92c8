#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Draws docs/plots/sparse/selected.svg: what native sparse attention lets 64 queries see, by `attn-run --reference`.

  sparse-figure.py [--check] [--attn-run=PATH]

`--check` draws nothing and fails where the picture is stale."""
import argparse
import os
import subprocess
import sys
import tempfile

import numpy as np

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PICTURE = os.path.join(ROOT, "docs", "plots", "sparse", "selected.svg")
TOKENS, LENGTH, STRIDE, BLOCK, WINDOW, ROWS, CELL = 64, 8, 4, 8, 8, 8, 4
PROGRAM = f"""
attn.compress @compress mean length({LENGTH}) stride({STRIDE}) layout(bshd) heads(1) dims(16) dtype(f32)
attn.problem @compressed mask(#attn.pooled<length = {LENGTH}, stride = {STRIDE}>) layout(bshd) heads(2, 1) dims(16)
  dtype(f32)
attn.select @select prob length({LENGTH}) stride({STRIDE}) block({BLOCK}) count(4) first(1) local(1) rows({ROWS})
  layout(bshd) heads(2, 1) dim(16) dtype(f32)
attn.program @lists {{
  %q = attn.operand "q"
  %k = attn.operand "k"
  %ck, %cv = attn.call @compress(k = %k, v = %k) -> (compressed_k, compressed_v)
  %lse = attn.call @compressed(q = %q, k = %ck, v = %cv) -> (lse)
  %lists = attn.call @select(q = %q, compressed_k = %ck, lse = %lse) -> (blocks)
  attn.result "lists" = %lists
}}
"""


def lists_of(attn_run):
    """The selected blocks of each tile of queries."""
    numbers = np.random.default_rng(5)
    with tempfile.TemporaryDirectory() as folder:
        path = lambda name: os.path.join(folder, name)
        with open(path("lists.mlir"), "w", encoding="utf-8") as file:
            file.write(PROGRAM)
        np.save(path("q.npy"), 3 * numbers.standard_normal((1, TOKENS, 2, 16)).astype(np.float32))
        np.save(path("k.npy"), numbers.standard_normal((1, TOKENS, 1, 16)).astype(np.float32))
        subprocess.run([attn_run, path("lists.mlir"), "--problem=lists", "--reference", f"--arg=q={path('q.npy')}",
                        f"--arg=k={path('k.npy')}", f"--result=lists={path('lists.npy')}"], check=True,
                       stdout=subprocess.DEVNULL)
        return np.load(path("lists.npy"))[0, 0].astype(int)


def drawn(lists):
    cells = {"compressed": [], "selected": [], "window": []}
    windows = (TOKENS - LENGTH) // STRIDE + 1
    for q in range(TOKENS):
        cells["compressed"] += [(i, q) for i in range(windows) if i * STRIDE + LENGTH - 1 <= q]
        blocks = set(lists[q // ROWS]) - {-1}
        cells["selected"] += [(k, q) for k in range(q + 1) if k // BLOCK in blocks]
        cells["window"] += [(k, q) for k in range(max(0, q - WINDOW + 1), q + 1)]
    widths, x, parts = {"compressed": windows, "selected": TOKENS, "window": TOKENS}, 0, []
    for name, width in widths.items():
        parts.append(f'<text x="{x}" y="11" font-family="sans-serif" font-size="12" fill="#444">{name}</text>')
        parts.append(f'<rect x="{x}" y="16" width="{width * CELL}" height="{TOKENS * CELL}" fill="#eee"/>')
        path = "".join(f"M{x + k * CELL} {16 + q * CELL}h{CELL}v{CELL}h-{CELL}z" for k, q in cells[name])
        parts.append(f'<path d="{path}" fill="#2b6cb0"/>')
        x += width * CELL + 24
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {x - 24} {TOKENS * CELL + 16}" '
            f'width="{x - 24}">\n' + "\n".join(parts) + "\n</svg>\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--attn-run", default=os.path.join(ROOT, "build", "bin", "attn-run"))
    given = parser.parse_args()
    text = drawn(lists_of(given.attn_run))
    if not given.check:
        with open(PICTURE, "w", encoding="utf-8") as file:
            file.write(text)
    elif open(PICTURE, encoding="utf-8").read() != text:
        sys.exit("docs/plots/sparse/selected.svg is stale: run tools/sparse-figure.py")
    print("the picture is true" if given.check else "1 picture")


main()
