#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Draws the pictures of docs/Masks.md with `attn-opt --explain`, which is looked for in build/bin.

  mask-figures.py [--check] [--attn-opt=PATH]

A picture is of the mask in the code block before it, 64 queries and 64 keys in tiles of 8 x 8, or as a line
`<!-- drawn with: OPTIONS -->` between the two says. `--check` draws nothing and fails where a picture is stale.
"""
import argparse
import os
import re
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PICTURE = re.compile(r"```mlir\n(?P<mask>#[^`]*)```\n+(?:<!-- drawn with: (?P<options>[^\n]*) -->\n+)?"
                     r"!\[[^\]]*\]\((?P<path>[^)]+\.svg)\)", re.S)


def draw(attn_opt, mask, options, path):
    problem = (f"attn.problem @picture mask({mask.strip()}) layout(bshd) heads(4, 2) dims(64) dtype(bf16)\n")
    command = [attn_opt, "--explain", "-", "--batch=1", "--seqlen-q=64", "--tile=8x8", f"--svg={path}"]
    given = {option.split("=")[0] for option in options}
    command = [part for part in command if part.split("=")[0] not in given] + options
    run = subprocess.run(command, input=problem, capture_output=True, text=True, check=False)
    if run.returncode:
        sys.exit(f"`{' '.join(command)}` failed for {mask}:\n{run.stderr}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--attn-opt", default=os.path.join(ROOT, "build", "bin", "attn-opt"))
    given = parser.parse_args()
    with open(os.path.join(ROOT, "docs", "Masks.md"), encoding="utf-8") as page:
        text = page.read()
    pictures = list(PICTURE.finditer(text))
    if len(pictures) != text.count(".svg)"):
        sys.exit(f"docs/Masks.md: {text.count('.svg)')} pictures, {len(pictures)} behind the code of a mask")
    stale = []
    with tempfile.TemporaryDirectory() as folder:
        for picture in pictures:
            path = os.path.join(ROOT, "docs", picture["path"])
            drawn = os.path.join(folder, "drawn.svg") if given.check else path
            os.makedirs(os.path.dirname(path), exist_ok=True)
            draw(given.attn_opt, picture["mask"], (picture["options"] or "").split(), drawn)
            if given.check and (not os.path.exists(path) or open(path, "rb").read() != open(drawn, "rb").read()):
                stale.append(picture["path"])
    for path in stale:
        print(f"docs/{path} is stale: run tools/mask-figures.py")
    print(f"{len(pictures)} pictures" + (" are true" if given.check and not stale else ""))
    return bool(stale)


sys.exit(main())
