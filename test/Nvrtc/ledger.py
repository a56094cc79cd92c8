#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The ledger of kernels: what the GPU compiler makes of each case of the matrix.

    ledger.py --update [--only=<substring of case names>]    compiles what has changed, and writes ledger.csv
    ledger.py --compare OLD NEW                               which rows differ, and in what

`--update` runs two compilers (`--jobs`). It may be stopped and started again: kernels that are
compiled stay in the kernel cache of the build folder (`--build`). Rows are written when all are known.
`--compare` reads two ledgers, for instance that of an earlier commit:

    git show HEAD~:test/Nvrtc/ledger.csv > /tmp/old.csv
    test/Nvrtc/ledger.py --compare /tmp/old.csv test/Nvrtc/ledger.csv

A change that only moves or renames code leaves all digests of machine code as they are. Rows of
different compilers are not compared. The exit status of `--compare` is 1 if machine code, registers,
stack or spills of a row differ or a row is gone.
"""
import argparse
import csv
import os
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor

from cases import cases, name_of
from kernels import Builder, Row

HERE = os.path.dirname(os.path.abspath(__file__))
LEDGER = os.path.join(HERE, "ledger.csv")
BUILD = os.path.join(HERE, "..", "..", "build")
COMPARED = ("text", "registers", "stack", "spills", "fault")


def read(path):
    """Rows by case; none if there is no such file."""
    if not os.path.exists(path):
        return {}
    with open(path, encoding="utf-8", newline="") as file:
        return {line["case"]: Row(**line) for line in csv.DictReader(file)}


def write(path, rows):
    """Sorted, so that a difference of two ledgers is a difference of their lines."""
    with open(path + ".new", "w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(Row._fields)
        writer.writerows(rows[case] for case in sorted(rows))
    os.replace(path + ".new", path)


def differences(old, new):
    """The fields in which two rows of one case differ, as text."""
    return [f"{field} {getattr(old, field) or 'none'} -> {getattr(new, field) or 'none'}"
            for field in COMPARED if getattr(old, field) != getattr(new, field)]


def compare(old, new, out=sys.stdout):
    """Prints what differs; how many rows do."""
    changed = others = renewed = 0
    added = len(new.keys() - old.keys())
    for case in sorted(old):
        if case not in new:
            print(f"{case}: gone", file=out)
            changed += 1
        elif old[case].compiler != new[case].compiler:
            others += 1
        elif differ := differences(old[case], new[case]):
            print(f"{case}: {', '.join(differ)}", file=out)
            changed += 1
        else:
            renewed += old[case].source != new[case].source
    print(f"{len(new)} rows, {added} new, {changed} changed, {renewed} with other sources and the same machine code, "
          f"{others} of another compiler and not compared", file=out)
    return changed


def update(path, build, only, jobs):
    rows, start = read(path), time.monotonic()
    known = {name_of(case): case for case in cases()}
    rows = {name: row for name, row in rows.items() if name in known}
    wanted = [case for name, case in known.items() if only in name]
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(jobs) as pool:
        builder = Builder(build, folder)
        for number, row in enumerate(pool.map(builder.build, wanted), 1):
            rows[row.case] = row
            if number % 50 == 0 or number == len(wanted):
                print(f"{number} of {len(wanted)} in {time.monotonic() - start:.0f} s", flush=True)
    old = read(path)
    write(path, rows)
    compare(old, rows)
    for row in rows.values():
        if row.fault:
            print(f"{row.case}: {row.fault}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--update", action="store_true", help="write the ledger anew")
    parser.add_argument("--compare", nargs=2, metavar=("OLD", "NEW"), help="two ledgers")
    parser.add_argument("--only", default="", help="update cases with this in their name")
    parser.add_argument("--ledger", default=LEDGER)
    parser.add_argument("--build", default=BUILD)
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    if options.compare:
        missing = [path for path in options.compare if not os.path.exists(path)]
        if missing:
            parser.error(f"expected a ledger, got: `{missing[0]}`, which is not there")
        return bool(compare(*map(read, options.compare)))
    if options.update:
        return update(options.ledger, options.build, options.only, options.jobs)
    parser.error("expected `--update` or `--compare OLD NEW`")


if __name__ == "__main__":
    sys.exit(main())
