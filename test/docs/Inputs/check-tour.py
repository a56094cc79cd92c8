#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Holds the dumps in a Markdown page against what the tools print today.

  check-tour.py PAGE ROOT [--update]

A code block behind a line `<!-- $ COMMAND -->` is the output of that command, run in ROOT; with
`<!-- $ COMMAND | from "A" to "B" -->` it is the lines from the first that contains A to the next
that contains B. `--update` writes the page anew."""
import difflib
import re
import subprocess
import sys

MARK = re.compile(r'^<!-- \$ (?P<command>.*?)(?: \| from "(?P<first>[^"]*)" to "(?P<last>[^"]*)")? -->$')


def output_of(command, first, last, root):
    run = subprocess.run(command, shell=True, cwd=root, capture_output=True, text=True)
    if run.returncode:
        sys.exit(f"`{command}` failed:\n{run.stderr}")
    lines = run.stdout.rstrip("\n").split("\n")
    if first is None:
        return lines
    begin = next((i for i, line in enumerate(lines) if first in line), None)
    if begin is None:
        sys.exit(f"`{command}` prints no line with `{first}`")
    end = next((i for i, line in enumerate(lines) if i > begin and last in line), len(lines) - 1)
    lines = lines[begin:end + 1]
    margin = min(len(line) - len(line.lstrip()) for line in lines if line.strip())
    return [line[margin:] for line in lines]


def main():
    page, root = sys.argv[1], sys.argv[2]
    with open(page) as f:
        lines = f.read().split("\n")
    result, blocks, i = [], 0, 0
    while i < len(lines):
        result.append(lines[i])
        mark = MARK.match(lines[i])
        i += 1
        if not mark:
            continue
        if not lines[i].startswith("```"):
            sys.exit(f"{page}:{i + 1}: expected a code block")
        end = lines.index("```", i + 1)
        result += [lines[i], *output_of(mark["command"], mark["first"], mark["last"], root), "```"]
        blocks, i = blocks + 1, end + 1
    if "--update" in sys.argv:
        with open(page, "w") as f:
            f.write("\n".join(result))
    elif result != lines:
        print("\n".join(difflib.unified_diff(lines, result, page, "what the tools print", lineterm="")))
        sys.exit(f"{page} is stale: {sys.argv[0]} {page} . --update, with the tools in PATH")
    if not blocks:
        sys.exit(f"{page} has no dumps")
    print(f"{blocks} dumps are true")


main()
