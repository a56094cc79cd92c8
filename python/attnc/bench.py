# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""python -m attnc bench: times of forward and backward passes on this machine, as a table and as JSON lines."""
import argparse
import contextlib
import datetime
import json
import statistics
import sys
import time

import attnc
from ._library import ask
from ._signature import Signature
from ._timing import Gpu, Host, numpy_module
from ._workload import Inputs, Pass, Sizes, passes_of, prepared


_OF_MASK = {"heads": 16, "dims": 128, "layout": "bshd", "dtype": "bf16"}


def all_sizes(arguments, device, signature):
    """A `Sizes` for each row that the options ask for."""
    packed = ["total_" in str(tensor["shape"]) for tensor in signature.tensors[:2]]
    if any(tensor["leading_dims"] != "none" for tensor in signature.tensors):
        raise attnc.UnsupportedError("expected problems whose sequences are given, got: one with segments")
    if arguments.lengths:
        if not all(packed):
            raise attnc.ProblemError("expected --batch and --seqlen for sequences that are not packed, got: --lengths")
        return [Sizes(arguments.lengths, arguments.lengths, *packed)]
    return [Sizes([q] * batch, [kv] * batch, *packed) for q, kv in arguments.seqlen or [(device.seqlen, device.seqlen)]
            for batch in [arguments.batch or device.batch or max(1, 16384 // kv)]]


def measured(one, inputs, target, arguments):
    """What a row says of a pass."""
    start, device = time.perf_counter(), inputs.device
    if one.backward:  # its o and lse are results of the forward pass
        _, results, launch = prepared(Pass(one.text, one.problem, one.problem, False), target, inputs)
        launch()
        inputs.made |= results
    kernel, _, launch = prepared(one, target, inputs)
    seconds = time.perf_counter() - start
    device.times(launch, arguments.warmup if arguments.warmup is not None else device.warmup)
    times = device.times(launch, arguments.iterations or device.iterations)
    row = {"ms_median": statistics.median(times), "ms_min": min(times), "tflops": None, "exact": None}
    if inputs.counted:
        told = ask("attnExplain", one.text, one.problem, target, json.dumps(inputs.sizes.options))
        row["exact"] = told["counts"]["exact"]
        row["tflops"] = told["flops"]["visible"] * (2.5 if one.backward else 1) / row["ms_median"] / 1e9
    return {**row, "iterations": len(times), "prepare_s": round(seconds, 3), "schedule": kernel.schedule}


def line_of(row):
    """The columns of a row behind its names."""
    if "error" in row:
        return row["error"]
    rate = "-" if row["tflops"] is None else ("" if row["exact"] else "~") + f"{row['tflops']:.4g}"
    return f"{row['ms_median']:>10.4g}  {row['ms_min']:>10.4g}  {rate:>9}"


def rows_of(passes, device, target, arguments):
    """(names and sizes, results) of the passes of a problem."""
    wanted = {"forward": (False,), "backward": (True,), "both": (False, True)}[arguments.passes]
    for sizes in all_sizes(arguments, device, Signature(passes[0].text, passes[0].name)):
        inputs = Inputs(device, sizes, passes[0].text, arguments.given)
        for one in passes:
            if one.backward not in wanted:
                continue
            print(f"{one.name}, {sizes.text}: compiling and timing ...", file=sys.stderr, flush=True)
            facts = {"name": one.name, "pass": "backward" if one.backward else "forward", **sizes.options}
            (support,) = one.supported(target)
            yield facts, sizes, measured(one, inputs, target, arguments) if support else {
                "error": f"no kernel: {support.reason}"}
        arguments.read.update(inputs.made)


def run(arguments):
    settle(arguments)
    target = attnc.Problem(attnc.causal(), heads=1, dims=64).explain(arguments.target, seqlen_q=1).data["target"]
    device = Host() if target == "cpu" else Gpu(target)
    problems = list(passes_of(arguments.text, arguments.name))
    now = datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")
    machine = {"date": now, "device": device.device, "attnc": attnc.version(), "target": target}
    width, failed = max(len(one.name) for passes in problems for one in passes), None
    print(f"{device.device}, {target}, attnc {attnc.version()}")
    print(f"{'':{width}}  {'':8}  {'sequences':>20}  {'median ms':>10}  {'min ms':>10}  {'TFLOP/s':>9}")
    with open(arguments.json, "w") if arguments.json else contextlib.nullcontext() as file:
        for passes in problems:
            for facts, sizes, row in rows_of(passes, device, target, arguments):
                failed = failed or "error" in row
                print(f"{facts['name']:{width}}  {facts['pass']:8}  {sizes.text:>20}  {line_of(row)}", flush=True)
                if file:
                    print(json.dumps({**machine, **facts, **row, "problem": passes[0].text}), file=file, flush=True)
    if failed is None:
        raise attnc.ProblemError(f"expected --pass=backward with --name={arguments.name}, got: {arguments.passes}")
    unread = [name for name in arguments.given if name not in arguments.read]
    if unread:
        raise attnc.TensorError(f"expected arrays that a problem reads in --arrays, got also: {', '.join(unread)}")
    return int(failed)


def settle(arguments):
    """Reads files, and checks options that exclude each other."""
    of_mask = {name: value for name in _OF_MASK if (value := getattr(arguments, name)) is not None}
    if arguments.file and (arguments.mask or of_mask):
        raise attnc.ProblemError(f"expected a file or --mask with its options, got: both {arguments.file!r} and "
                                 f"--{'mask' if arguments.mask else next(iter(of_mask))}")
    if arguments.lengths and (arguments.seqlen or arguments.batch):
        raise attnc.ProblemError("expected --lengths, or --batch and --seqlen, got: both")
    if arguments.file:
        arguments.text = sys.stdin.read() if arguments.file == "-" else open(arguments.file).read()
    else:
        arguments.text = attnc.Problem(attnc.parse(arguments.mask or "#attn.causal"), **{**_OF_MASK, **of_mask}).text
    arguments.given, arguments.read = {}, set()
    if arguments.arrays:
        arguments.given = dict(numpy_module().load(arguments.arrays))


def numbers(least, separator=",", most=None):
    """A parser of integers between separators."""
    def parse(text):
        try:
            values = [int(word) for word in text.split(separator)]
        except ValueError:
            values = []
        if not values or len(values) > (most or len(values)) or min(values) < least:
            kind = {1: "an integer", 2: "one or two integers", None: "integers"}[most]
            raise argparse.ArgumentTypeError(f"expected {kind} from {least} on, got: {text}")
        return values
    return parse


def pair(text):
    """`16` as 16, `16,4` as (16, 4)."""
    values = numbers(1, most=2)(text)
    return values[0] if len(values) == 1 else tuple(values)


def seqlens(text):
    """1024,1x8192: pairs of queries and keys."""
    parsed = [numbers(1, "x", 2)(word) for word in text.split(",")]
    return [(sizes[0], sizes[-1]) for sizes in parsed]


def one_number(least):
    return lambda text: numbers(least, most=1)(text)[0]


def add_command(commands):
    command = commands.add_parser("bench", help="time forward and backward passes on this machine")
    command.add_argument("file", nargs="?", help="a file with problems; - is standard input")
    command.add_argument("--name", help="which problem or backward pass of the file; default: all")
    command.add_argument("--mask", help="without a file: a mask; default: #attn.causal")
    command.add_argument("--heads", type=pair, help="of --mask: query heads, or query heads,kv heads; default: 16")
    command.add_argument("--dims", type=pair, help="of --mask: head dim, or those of q and v; default: 128")
    command.add_argument("--layout", help="of --mask: bshd, sbhd, bhsd, thd; default: bshd")
    command.add_argument("--dtype", help="of --mask: bf16 or f16; default: bf16")
    command.add_argument("--pass", dest="passes", choices=("forward", "backward", "both"), default="both")
    command.add_argument("--seqlen", type=seqlens, metavar="N,...",
                         help="lengths, a row each, or QxKV; default: 4096 on a GPU, 1024 on a CPU")
    command.add_argument("--batch", type=one_number(1), metavar="N",
                         help="sequences; default: for 16384 tokens on a GPU, 1 on a CPU")
    command.add_argument("--lengths", type=numbers(0), metavar="N,...", help="lengths of packed sequences, in one row")
    command.add_argument("--arrays", metavar="FILE.npz", help="int32 arrays that the mask reads, by name")
    command.add_argument("--target", help="cpu, sm_80, sm_90a; default: this machine's GPU, or its CPU")
    command.add_argument("--warmup", type=one_number(0), metavar="N",
                         help="launches that are not timed; default: 5 on a GPU, 1 on a CPU")
    command.add_argument("--iterations", type=one_number(1), metavar="N",
                         help="launches that are; default: 20 on a GPU, 5 on a CPU")
    command.add_argument("--json", metavar="FILE", help="write a JSON line a row")
    command.set_defaults(run=run)
