# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs the Python code of a page, in its order and in one process; tracebacks have the page's lines.

    run-page.py PAGE [PACKAGE...]

Blocks that import one of these packages are left out, with a line that says so, where it is not installed.
"""
import importlib.util
import sys

path, optional = sys.argv[1], sys.argv[2:]
missing = [package for package in optional if importlib.util.find_spec(package) is None]
lines, block, scope = open(path).read().split("\n"), None, {"__name__": "page"}
for number, line in enumerate(lines, 1):
    if block is None and line == "```python":
        block = []
        first = number
    elif block is not None and line == "```":
        lacking = [package for package in missing if f"import {package}" in block]
        if lacking:
            print(f"page: left out line {first}: {lacking[0]} is not installed")
        else:
            exec(compile("\n" * first + "\n".join(block), path, "exec"), scope)
        block = None
    elif block is not None:
        block.append(line)
assert block is None, f"{path}:{first}: expected the block to end, got: the end of the page"
print("page: ok")
