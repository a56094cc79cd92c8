# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""C++, CUDA and ODS are as clang-format has them, and no line of theirs or of Python is longer than 120 columns.

    check-format.py <source> [--fix]    --fix formats the files instead
"""
import os
import subprocess
import sys

WIDTH = 120
FOLDERS = ["include", "kernels-runtime", "lib", "python", "test", "tools"]
FORMATTED = (".c", ".cpp", ".cuh", ".h", ".td")
CHECKED = FORMATTED + (".py",)


def files_of(source):
    yield from (os.path.join(source, name) for name in sorted(os.listdir(source)) if name.endswith(".py"))
    for folder in FOLDERS:
        for path, folders, names in os.walk(os.path.join(source, folder)):
            folders[:] = sorted(name for name in folders if name not in ("__pycache__", "Output", "third_party"))
            yield from (os.path.join(path, name) for name in sorted(names) if name.endswith(CHECKED))


def main():
    source, fix = sys.argv[1], "--fix" in sys.argv[2:]
    files = list(files_of(source))
    if len(files) < 100:
        sys.exit(f"expected the sources of attnc, got: {len(files)} files in {source}")
    clang_format = os.path.join(os.path.dirname(sys.executable), "clang-format")
    command = [clang_format, "--style=file:" + os.path.join(source, ".clang-format")]
    command += ["-i"] if fix else ["--dry-run", "-Werror"]
    status = subprocess.run(command + [name for name in files if name.endswith(FORMATTED)], check=False).returncode
    for name in files:
        with open(name, encoding="utf-8") as file:
            for number, line in enumerate(file, 1):
                if (columns := len(line.rstrip("\n"))) > WIDTH:
                    print(f"{os.path.relpath(name, source)}:{number}: expected at most {WIDTH} columns, got: {columns}")
                    status = 1
    if status:
        sys.exit("format them by .venv/bin/python test/lib/check-format.py . --fix")


main()
