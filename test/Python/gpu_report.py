# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checks on a GPU as JSON lines, one a check: what gpu.py, gpu_jax.py and gpu_zoo.py have in common."""
import argparse
import json
import pathlib
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "python"))
_args, _out, _failed = None, None, 0


def options(description, add=None):
    """The options of a script: --out and --commit, and those that add(parser) adds."""
    global _args, _out
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", help="a file for the lines, too")
    parser.add_argument("--commit", default="unknown", help="what the line of the machine says was measured")
    if add:
        add(parser)
    _args = parser.parse_args()
    _out = open(_args.out, "w") if _args.out else None
    return _args


def adopt(args):
    """Goes on with the options of another process, whose lines are there already."""
    global _args, _out
    _args, _out = args, open(args.out, "a") if args.out else None


def report(check, ok, **facts):
    global _failed
    _failed += not ok
    line = json.dumps({"check": check, "ok": bool(ok), **facts})
    print(line, flush=True)
    if _out:
        print(line, file=_out, flush=True)


def relative_error(actual, expected):
    """Relative error of a tensor in the 2-norm; infinite for NaN."""
    if actual.shape != expected.shape:
        raise ValueError(f"expected a result of shape {tuple(expected.shape)}, got: {tuple(actual.shape)}")
    error = (actual.float() - expected.float()).norm().item() / (expected.float().norm().item() or 1.0)
    return error if error == error else float("inf")


def machine(**facts):
    report("machine", True, **facts, date=time.strftime("%Y-%m-%d"), commit=_args.commit)


def run_check(name, check):
    """An exception of a check is a line, too."""
    try:
        check()
    except Exception as error:
        report(name, False, error=f"{type(error).__name__}: {error}"[:600])


def finish():
    """Exits, with status 1 if a check failed."""
    sys.exit(_failed > 0)


def run(checks, **facts):
    """Reports the machine, runs the checks, and exits."""
    machine(**facts)
    for check in checks:
        run_check(check.__name__, check)
    finish()
