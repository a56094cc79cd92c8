#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""attnc beside FlashAttention-3, FlashAttention-4, cuDNN (torch SDPA) and cudnn.flex_attention, both passes, in one
run.

  bench_peers.py BUILD [--out FILE.jsonl] [--commit HASH] [--groups dense,masks,scores,models,scale] [--filter TEXT]
                 [--peers cudnn,fa3,fa4,"cudnn flex"] [--target T] [--quick] [--limit SECONDS] [--kernels FOLDER]

One JSON line for each case, pass and peer: milliseconds, TFLOP/s on visible pairs (backward at 2.5 times the forward
pass's operations), how far the middle half of the rounds spreads, and the relative error against float64. A peer that
has no kernel for a case, cannot be imported, fails or is wrong has a line with the reason. The peers of a case take
turns; calls that are bound by the host are captured in CUDA graphs (`graph`).

The work is done by processes of peer_worker.py. This one starts them, records their lines, and starts another one
without the peer that hung or took the CUDA context with it. FlashAttention-4 and cudnn.flex_attention compile their
kernels at run time; several processes do so first, into caches on disk (`--kernels`, kept if given)."""
import argparse
import json
import math
import os
import queue
import subprocess
import sys
import tempfile
import threading
import time

PEERS = ("cudnn", "fa3", "fa4", "cudnn flex")
PASSES = ("forward", "backward")
STALL_S, START_S, COMPILE_S, MOST_STARTS = 90, 240, 120, 12
here = os.path.dirname(os.path.abspath(__file__))

parser = argparse.ArgumentParser()
parser.add_argument("build")
parser.add_argument("--out")
parser.add_argument("--commit", default="unknown")
parser.add_argument("--filter", default="", help="only cases whose name contains this")
parser.add_argument("--groups", default="dense,masks,scores,models,scale")
parser.add_argument("--peers", default="", help="only these, separated by commas")
parser.add_argument("--target")
parser.add_argument("--quick", action="store_true", help="3 rounds in place of 9, one slice of results checked")
parser.add_argument("--limit", type=float, help="seconds after which no other case is begun (default 480, quick 210)")
parser.add_argument("--kernels", help="a folder for compiled kernels of peers, which may hold some")
parser.add_argument("--compilers", type=int, default=max(1, min(12, (os.cpu_count() or 1) * 3 // 4)))
parser.add_argument("--rounds", type=int)


class Record:
    """Lines, in the file at once; the first one of a case, pass and peer counts."""

    def __init__(self, path):
        self.file, self.lines, self.seen = open(path, "w") if path else None, [], set()

    def add(self, line):
        key = tuple(line.get(name) for name in ("peer", "case", "pass"))
        if key in self.seen:
            return
        self.seen.add(key)
        self.lines.append(line)
        text = json.dumps(line)
        print(text, flush=True)
        if self.file:
            print(text, file=self.file, flush=True)


def environment(args, plan, kernels):
    return {**os.environ, "ATTNC_PEERS": json.dumps(plan), "PYTHONUNBUFFERED": "1",
            "TORCHINDUCTOR_COMPILE_THREADS": "1",
            "ATTN_CACHE_DIR": os.environ.get("ATTN_CACHE_DIR") or os.path.join(kernels, "attnc"),
            "FLASH_ATTENTION_CUTE_DSL_CACHE_ENABLED": "1",
            "FLASH_ATTENTION_CUTE_DSL_CACHE_DIR": os.path.join(kernels, "fa4"),
            "FLEX_ATTENTION_CUTE_DSL_CACHE_ENABLED": "1",
            "FLEX_ATTENTION_CUTE_DSL_CACHE_DIR": os.path.join(kernels, "cudnn_flex")}


def start(args, plan, kernels, *what, **more):
    command = [sys.executable, os.path.join(here, "peer_worker.py"), *map(str, what)]
    return subprocess.Popen(command, env=environment(args, plan, kernels), **more)


def compiled(compilers, until):
    """Waits for the processes that compile, and ends those that take too long."""
    for process in compilers:
        try:
            process.wait(max(0, until - time.time()))
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def follow(process, record, plan, compilers, hard_limit):
    """Reads a process's lines to its end. Returns where it was, and why it ended; None if it finished."""
    lines = queue.Queue()

    def read():
        for text in process.stdout:
            lines.put(text)
        lines.put(None)
    threading.Thread(target=read, daemon=True).start()
    at = None
    while True:
        patience = STALL_S if at else START_S
        try:
            text = lines.get(timeout=max(0.1, min(patience, hard_limit - time.time())))
        except queue.Empty:
            process.kill()
            process.wait()
            return at, "the time limit ended it" if time.time() >= hard_limit else f"no progress in {patience} s"
        if text is None:
            status = process.wait()
            return at, "the CUDA context was lost" if status == 75 else f"the process ended with {status}"
        try:
            line = json.loads(text)
            assert isinstance(line, dict)
        except (ValueError, AssertionError):
            print(text, end="", file=sys.stderr, flush=True)
            continue
        if "at" in line:
            at = line["at"]
        elif "uncaptured" in line:
            plan["uncaptured"].append(line["uncaptured"])
            process.wait(30)
            return at, None
        elif "done" in line:
            plan["done"].append(line["done"])
        elif "ready" in line:
            compiled(compilers, plan["began"] + COMPILE_S)
            print(json.dumps(line | {"s": round(time.time() - plan["began"], 1)}), file=sys.stderr, flush=True)
            process.stdin.write("go\n")
            process.stdin.flush()
        elif "finished" in line:
            process.wait(30)
            return None
        else:
            record.add(line)


def run(args, record):
    began = time.time()
    limit = args.limit or (210 if args.quick else 480)
    plan = {"groups": args.groups.split(","), "filter": args.filter, "peers": [p for p in args.peers.split(",") if p],
            "target": args.target, "commit": args.commit, "rounds": args.rounds or (3 if args.quick else 9),
            "slices": 1 if args.quick else 2, "until": began + limit, "began": began, "done": [], "without": [],
            "uncaptured": []}
    with tempfile.TemporaryDirectory(prefix="attnc-peers-") as scratch:
        kernels = os.path.abspath(args.kernels or scratch)
        os.makedirs(os.path.join(kernels, "attnc"), exist_ok=True)
        compilers = [start(args, plan, kernels, "compile", part, args.compilers, stdout=subprocess.DEVNULL)
                     for part in range(args.compilers)]
        for attempt in range(MOST_STARTS):
            process = start(args, plan, kernels, "bench", args.build, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                            text=True)
            end = follow(process, record, plan, compilers, began + limit + 25)
            if end is None:
                break
            at, why = end
            if why is None:  # the same again, without a CUDA graph
                continue
            if at is None or time.time() > began + limit:
                record.add({"peer": "any", "case": at[0] if at else "start", "pass": at[1] if at else "", "error": why})
                break
            case, which, peer = at
            if peer in ("turns", "reference"):  # whose fault it is is not known: the pass is not tried again
                record.add({"peer": "any", "case": case, "pass": which, "error": why})
                plan["done"].append([case, which])
            else:
                record.add({"peer": peer, "case": case, "pass": which, "error": why})
                plan["without"].append(at)
        for process in compilers:
            if process.poll() is None:
                process.kill()
    record.add({"peer": "end", "s": round(time.time() - began, 1)})


def mean(values):
    return math.exp(sum(map(math.log, values)) / len(values)) if values else math.nan


def summary(lines):
    """TFLOP/s of all, and ours over the best peer."""
    table, groups, faults = {}, {}, []
    for line in lines:
        if "error" in line:
            faults.append(line)
        elif "ms" in line:
            table.setdefault((line["group"], line["case"]), {})[line["pass"], line["peer"]] = line
    for which in PASSES:
        print(f"\n{which:50} {'attnc':>8} " + " ".join(f"{peer:>10}" for peer in PEERS) + "  attnc / best")
        for (group, case), found in table.items():
            ours = found.get((which, "attnc"))
            theirs = {peer: found[which, peer] for peer in PEERS if (which, peer) in found}
            if not ours and not theirs:
                continue
            shown = " ".join(f"{theirs[peer]['tf']:10.1f}" if peer in theirs else f"{'':10}" for peer in PEERS)
            ratio, behind = math.nan, ""
            if ours and theirs:
                best = min(theirs, key=lambda peer: theirs[peer]["ms"])
                ratio = theirs[best]["ms"] / ours["ms"]
                groups.setdefault((which, group), {})[case] = ratio
                behind = f"  behind {best}" if ratio < 1 else ""
            print(f"{case:50} {ours['tf'] if ours else math.nan:8.1f} {shown} {ratio:8.3f}{behind}")
    print(f"\n{'attnc / best peer':20} {'cases':>5} {'mean':>6} {'least':>6} {'most':>6}")
    for (which, group), ratios in groups.items():
        least = min(ratios, key=ratios.get)
        print(f"{which + ', ' + group:20} {len(ratios):5} {mean(ratios.values()):6.3f} {ratios[least]:6.3f} "
              f"{max(ratios.values()):6.3f}  least: {least}")
    for line in faults:
        print(f"error: {line['peer']}, {line.get('case', '')}, {line.get('pass', '')}: {line['error']}")
    return [line for line in faults if line["peer"].startswith("attnc") or line.get("case") == "start"]


def main():
    args = parser.parse_args()
    record = Record(args.out)
    run(args, record)
    ours = summary(record.lines)
    sys.exit(f"{len(ours)} wrong or failed results of attnc" if ours else 0)


if __name__ == "__main__":
    main()
