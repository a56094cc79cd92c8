# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checks on a GPU as JSON lines, one a check: what gpu.py and gpu_jax.py have in common."""
import argparse
import json
import pathlib
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "python"))
parser = argparse.ArgumentParser()
parser.add_argument("--out")
parser.add_argument("--commit", default="unknown")
args = parser.parse_args()
out, failed = open(args.out, "w") if args.out else None, 0


def report(check, ok, **facts):
    global failed
    failed += not ok
    line = json.dumps({"check": check, "ok": bool(ok), **facts})
    print(line, flush=True)
    if out:
        out.write(line + "\n")
        out.flush()


def run(checks, **machine):
    """Reports the machine and runs the checks; exits with status 1 if one fails. An exception is a line, too."""
    report("machine", True, **machine, date=time.strftime("%Y-%m-%d"), commit=args.commit)
    for check in checks:
        try:
            check()
        except Exception as error:
            report(check.__name__, False, error=f"{type(error).__name__}: {error}"[:600])
    sys.exit(failed > 0)
