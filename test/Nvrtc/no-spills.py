# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""No kernel of the matrix spills, has a stack frame or has products that wait for one another.

    no-spills.py <folder> --build=<build> --shard=<i>/<n> [--all | --most=<count>]
        [--ledger=<file>] [--only=<substring of case names>]

A case whose sources, headers, flags and compiler are those of its row in the ledger (ledger.py) needs no
compile: the row says what it has. Other cases are compiled, at most `--most` of each shard, those
first that stand for a group of cases. With `--all` every case is compiled, and a row that is not what
the same compiler makes of the same text is a fault of the ledger.
Plain problems on Hopper must fit with the first choice of tiles: a fallback would hide
one that does not behind a second compile and a slower kernel.
"""
import argparse
import hashlib
import sys

import ledger
from cases import SPLIT, cases, name_of
from kernels import Builder


def group_of(case):
    """Cases of a group have the same chip and the same kind of kernel."""
    chip, mask, layout = case[:3]
    if layout == "segments":
        return chip, "segments"
    if "backward" in layout:
        return chip, "single-pass gradients" if " looks " in layout else "gradients"
    if mask.endswith("_grads"):
        return chip, "short gradients"
    return chip, "split" if mask in SPLIT else "forward"


def representatives_first(all_cases):
    """One case of each group, then a second one of each, and so on; the same order in every run."""
    groups = {}
    for case in sorted(all_cases, key=lambda case: hashlib.sha256(name_of(case).encode()).digest()):
        groups.setdefault(group_of(case), []).append(case)
    largest = max(map(len, groups.values()))
    return [group[i] for i in range(largest) for _, group in sorted(groups.items()) if i < len(group)]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", help="for the problems")
    parser.add_argument("--build", default=ledger.BUILD)
    parser.add_argument("--shard", default="0/1")
    parser.add_argument("--only", default="", help="cases with this in their name")
    parser.add_argument("--all", action="store_true", help="compile known cases too")
    parser.add_argument("--most", type=int, default=sys.maxsize, help="compile at most so many unknown cases")
    parser.add_argument("--ledger", default=ledger.LEDGER)
    options = parser.parse_args()
    shard, shards = map(int, options.shard.split("/"))
    rows, builder = ledger.read(options.ledger), Builder(options.build, options.folder)
    mine = representatives_first(cases())[shard::shards]
    mine = [case for case in mine if options.only in name_of(case)]
    compiled = known = bad = left = 0

    def complain(case, what):
        nonlocal bad
        bad += 1
        print(f"{name_of(case)}: {what}")

    for case in mine:
        inputs = builder.inputs_of(case)
        row = rows.get(name_of(case))
        same_compiler = row is not None and row.compiler == inputs.compiler
        unchanged = same_compiler and row.source == inputs.source
        if unchanged and not options.all and known:  # one known row of each shard is compiled anyway
            known += 1
            if row.fault:
                complain(case, row.fault)
            continue
        if not unchanged and not options.all and compiled == options.most:
            left += 1
            continue
        built = builder.build(case, inputs)
        known, compiled = known + unchanged, compiled + (not unchanged)
        if built.fault:
            complain(case, f"{built.fault}: {built.registers} registers, {built.stack} bytes stack, "
                           f"{built.spills} bytes spills")
        if unchanged and (differ := ledger.differences(row, built)):
            complain(case, f"the ledger is wrong: {', '.join(differ)}")
        elif options.all and not unchanged and (same_compiler or row is None):
            complain(case, "the ledger has no row of these sources; `ledger.py --update` writes it")
    print(f"{len(mine)} cases, {known} known to the ledger, {compiled} others compiled, "
          f"{left} left to the long tier, {bad} bad")
    return bool(bad) or not mine


if __name__ == "__main__":
    sys.exit(main())
