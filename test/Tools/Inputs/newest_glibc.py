# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""newest_glibc.py VERSION FILE...: does no file need symbols of a glibc newer than VERSION?"""
import re
import subprocess
import sys


def number(version):
    return tuple(int(part) for part in version.split("."))


failed = False
for path in sys.argv[2:]:
    symbols = subprocess.run(["nm", "-D", "--undefined-only", path], capture_output=True, text=True, check=True).stdout
    needs = re.findall(r"(\w+)@GLIBC_([0-9.]+)", symbols)
    assert needs, f"{path}: expected symbols of glibc, got none"
    for name, version in needs:
        if number(version) > number(sys.argv[1]):
            print(f"{path}: expected symbols of glibc {sys.argv[1]} or older, got: {name} of {version}")
            failed = True
sys.exit(failed)
