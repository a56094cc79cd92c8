# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""check-examples.py <attn-opt> <source>: parses every example of the .td files.

An example is a ```mlir block or the code after `Example:`. Attributes and types
go into an op of no dialect. Ops may use values that the example doesn't define
(`%K`): the parser itself says which and of what type, and they are defined in
front of it, so that op, types and verifier are checked as in a program.
"""
import os
import re
import subprocess
import sys
import textwrap
from concurrent.futures import ThreadPoolExecutor


def examples_in(path):
    """Line and text of each example."""
    text = open(path, encoding="utf-8").read()
    for block in re.finditer(r"^ *```mlir\n(.*?)^ *```", text, re.M | re.S):
        line = text.count("\n", 0, block.start()) + 2
        code = textwrap.dedent(block.group(1))
        if code[0] not in "#!":
            yield line, code
            continue
        for one in re.split(r"^(?=[#!])", code, flags=re.M)[1:]:
            yield line, one.strip()
    for inline in re.finditer(r"Example:((?:,? `[#!][^`]+`)+)", text):
        for one in re.findall(r"`([^`]+)`", inline.group(1)):
            yield text.count("\n", 0, inline.start()) + 1, one


def parse(attn_opt, program):
    done = subprocess.run([attn_opt, "--allow-unregistered-dialect", "--no-implicit-module", "-"],
                          input=f'module {{\n{program}\n}}\n', capture_output=True, text=True, check=False)
    return None if done.returncode == 0 else done.stderr


def complaint(attn_opt, code):
    """None, or what attn-opt has against an example."""
    if code[0] == "#":
        return parse(attn_opt, f'"an.example"() {{x = {code}}} : () -> ()')
    if code[0] == "!":
        return parse(attn_opt, f'"an.example"() : () -> ({code})')
    values = {}
    for _ in range(100):
        defined = "".join(f'{name} = "a.value"() : () -> {kind}\n' for name, kind in values.items())
        error = parse(attn_opt, defined + code)
        if not error:
            return None
        unknown = {mark.group(1) for mark in re.finditer(
            r"error: use of undeclared SSA value name\n.*\n *\^", error) for mark in [name_at(error, mark)] if mark}
        wanted = re.search(r"error: use of value '(%[\w$.-]+)' expects different type than prior uses: "
                           r"'([^\n]*)' vs '", error)
        if unknown - values.keys():
            values.update((name, "none") for name in unknown)
        elif wanted and values.get(wanted.group(1)) == "none":
            values[wanted.group(1)] = wanted.group(2)
        else:
            return error
    return error


def name_at(error, mark):
    """The %name above the caret of a diagnostic."""
    _, line, caret = mark.group(0).split("\n")
    return re.match(r"(%[\w$.-]+)", line[caret.index("^"):])


def main():
    attn_opt, source = sys.argv[1:]
    found, wrong = [], []
    for folder, _, files in os.walk(os.path.join(source, "include", "attn")):
        for path in (os.path.join(folder, file) for file in files if file.endswith(".td")):
            found += [(path, line, code) for line, code in examples_in(path)]
            for name in re.findall(r"`(test/[^`]+)`", open(path, encoding="utf-8").read()):
                if not os.path.exists(os.path.join(source, name)):
                    wrong.append(f"{path}: names `{name}`, which does not exist")
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for (path, line, code), error in zip(found, pool.map(lambda one: complaint(attn_opt, one[2]), found)):
            if error:
                wrong.append(f"{path}:{line}: this example does not parse\n{textwrap.indent(code, '  | ')}\n{error}")
    print("\n".join(wrong))
    print(f"{len(found)} examples, {len(wrong)} wrong")
    return bool(wrong) or not found


sys.exit(main())
