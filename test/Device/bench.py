# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the scripts that time kernels beside peers have in common: options, the library, JSON lines, timing by events.
Kernels go to a cache of the process's own, if $ATTN_CACHE_DIR names no other."""
import argparse
import json
import math
import os
import sys
import tempfile

os.environ.setdefault("ATTN_CACHE_DIR", tempfile.mkdtemp(prefix="attnc-cache-"))
import torch  # noqa: E402

import attnc  # noqa: E402
from limits import WRONG_BEYOND  # noqa: E402

parser = argparse.ArgumentParser()
parser.add_argument("build")
parser.add_argument("--out")
parser.add_argument("--commit", default="unknown")
parser.add_argument("--filter", default="", help="only cases whose name contains this")
out = None
wrong = 0


def begin():
    """The options, a script's own among them, and the library of the build."""
    global out
    args = parser.parse_args()
    out = open(args.out, "w") if args.out else None
    torch.manual_seed(0)
    return args, attnc.Library(os.path.join(args.build, "lib", "libattnc.so"))


def emit(**line):
    text = json.dumps(line)
    print(text, flush=True)
    if out:
        print(text, file=out, flush=True)


def judged(name, error):
    """An error for a line of results, by its name there. What is too far off lets the run fail at its end: a wrong
    kernel has no speed."""
    global wrong
    if not error <= WRONG_BEYOND[name]:
        wrong += 1
        print(f"wrong: {name} of {error} is more than {WRONG_BEYOND[name]}", file=sys.stderr, flush=True)
    return {name: round(error, 5) if math.isfinite(error) else repr(error)}


def end():
    sys.exit(f"{wrong} wrong results" if wrong else 0)


def short(error):
    return (str(error).splitlines() or [repr(error)])[0][:300]


def elapsed_ms(call, count):
    """Per call. One more goes ahead, so that the device is busy while the host catches up."""
    start, stop = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    call()
    start.record()
    for _ in range(count):
        call()
    stop.record()
    stop.synchronize()
    return start.elapsed_time(stop) / count
