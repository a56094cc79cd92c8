# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs the Python code of a page, in its order and in one process; tracebacks have the page's lines."""
import sys

path = sys.argv[1]
lines, block, scope = open(path).read().split("\n"), None, {"__name__": "page"}
for number, line in enumerate(lines, 1):
    if block is None and line == "```python":
        block = []
        first = number
    elif block is not None and line == "```":
        exec(compile("\n" * first + "\n".join(block), path, "exec"), scope)
        block = None
    elif block is not None:
        block.append(line)
assert block is None, f"{path}:{first}: expected the block to end, got: the end of the page"
print("page: ok")
