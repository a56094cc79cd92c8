# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""attention-gym's masks and score modifiers: attnc.torch beside compiled flex_attention on a GPU.

    gpu_zoo.py --gym FOLDER --out FILE.jsonl [--only PATTERN] [--shard I/N] [--jobs N] [--seconds N] [--attn-bench PATH]

One JSON line for each function, with

- rel_err_dense: of o, dq, dk and dv of ours, at --small positions, against the dense formula in float64;
- rel_err_flex: the same against flex_attention, at --seqlen positions, where its times are taken as well;
- fwd_ms, bwd_ms and flex_fwd_ms, flex_bwd_ms: medians of calls that take turns. A call's launches are queued while the
  stream sleeps and timed by events on the device (attnc._timing.queued_ms), since host time may be longer than that of
  a sparse mask's kernels, and would differ between the two; the L2 cache is overwritten ahead of each call;
- prep_ms, flex_prep_ms: what a new mask costs before the first launch, by the wall clock: attnc.mask and the arrays of
  the mask, and create_block_mask, compiled before. BlockMasks are made with B = H = None where the mask allows it;
- first_call_s, flex_first_call_s: the first forward and backward call, with compilation; flex_prep_first_s likewise.
  With --jobs these are of the processes that compile ahead, several at a time;

and lines of geometric means. Ratios above 1 say that attnc is faster. Without time left (--seconds) functions are
listed as left out. --attn-bench compares times of attnc.torch with those of attn-bench instead.
"""
import gc
import json
import math
import re
import statistics
import subprocess
import sys
import time

from gpu_report import finish, machine, options, report, run_check  # first: it finds the package

START = time.monotonic()


def add_options(parser):
    parser.add_argument("--gym", help="a folder that has attn_gym, if Python does not find it")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--no-time", action="store_true", help="values alone; flex_attention is not compiled")
    parser.add_argument("--seqlen", type=int, default=8192, help="128 * 2^n")
    parser.add_argument("--small", type=int, default=1024, help="128 * 2^n, for the dense formula")
    parser.add_argument("--heads", type=int, default=16)
    parser.add_argument("--dim", type=int, default=128)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--only", default="", help="a regular expression, found in the function's name")
    parser.add_argument("--shard", default="0/1", help="I/N: every N-th function, from the I-th on")
    parser.add_argument("--jobs", type=int, default=0, help="processes that compile ahead, into caches on disk")
    parser.add_argument("--seconds", type=float, default=math.inf, help="start no function after so many")
    parser.add_argument("--prepare", action="store_true",
                        help="call each function once, with its times: what --jobs start")
    parser.add_argument("--attn-bench", metavar="PATH", help="the program: compare its times with ours")


args = options(__doc__, add_options)
sys.path[:0] = [args.gym] if args.gym else []
import torch  # noqa: E402
from torch.nn.attention import flex_attention as flex  # noqa: E402
import attnc  # noqa: E402
import attnc.torch  # noqa: E402
from attnc._timing import queued_ms, scratch  # noqa: E402

torch._dynamo.config.fail_on_recompile_limit_hit = True  # in place of dense attention
torch._functorch.config.donated_buffer = False  # backward passes run more than once
device = torch.device(args.device)
FLEX_HAS_BACKWARD = device.type == "cuda"


def left():
    return args.seconds - (time.monotonic() - START)


def wait():
    if device.type == "cuda":
        torch.cuda.synchronize()


def seconds(call):
    """Time of the wall clock until the device has done it, and the result."""
    wait()
    start = time.perf_counter()
    result = call()
    wait()
    return time.perf_counter() - start, result


def median_ms(call, count=5):
    """Time of the wall clock for calls that find nothing kept from the one before."""
    samples = []
    for _ in range(count + 1):
        gc.collect()
        samples.append(seconds(call)[0] * 1e3)
    return round(statistics.median(samples[1:]), 4)


# Values --------------------------------------------------------------------------------------------------------------

def dense(q, k, v, mask, score):
    """Attention in the dtype of q, by the functions as flex_attention means them."""
    sizes = *q.shape[:3], k.shape[2]
    scores = q @ k.mT / q.shape[-1]**0.5
    if score:
        from torch._dynamo._trace_wrapped_higher_order_op import TransformGetItemToIndex
        with TransformGetItemToIndex():
            scores = flex._vmap_for_bhqkv(score, prefix=(0,))(scores, *(torch.arange(n, device=device) for n in sizes))
    if mask:
        scores = scores.masked_fill(~flex.create_mask(mask, *sizes, device=device), -math.inf)
    return torch.nan_to_num(scores.softmax(-1)) @ v


def results(call, q, k, v, do, backward=True):
    """o, dq, dk and dv."""
    own = [t.detach().requires_grad_(backward) for t in (q, k, v)]
    o = call(*own)
    return [o.detach(), *(torch.autograd.grad(o, own, do) if backward else ())]


def apart(found, expected):
    return [float(f"{(a.double() - b).norm() / b.double().norm():.2e}") for a, b in zip(found, expected)]


def tensors(batch, seqlen):
    torch.manual_seed(0)
    return [torch.randn(batch, args.heads, seqlen, args.dim, device=device).bfloat16() for _ in range(4)]


class Case:
    """A mask or a score modifier at a length, and the calls that are compared."""

    def __init__(self, name, length):
        import zoo
        self.batch = 2 if name in zoo.READ_BATCH else 1
        makers = zoo.Makers(self.batch, args.heads, length, args.device)
        self.is_mask, self.length = name in makers.masks, length
        function = (makers.masks if self.is_mask else makers.scores)[name]()
        self.mask, self.score = (function, None) if self.is_mask else (None, function)
        self.block_sizes = *((self.batch, args.heads) if name in zoo.READ_BATCH else (None, None)), length, length

    def traced(self):
        """Our arguments, with the arrays in the mask evaluated."""
        value = attnc.mask(self.mask) if self.is_mask else attnc.score(self.score)
        for array in value.arrays.values():
            array.evaluate(self.batch, args.heads, args.heads, self.length, self.length, device)
        return {"mask": value} if self.is_mask else {"mask": attnc.full(), "score": value}

    def ours(self, traced):
        return lambda q, k, v: attnc.torch.attention(q, k, v, layout="bhsd", **traced)

    def flex(self, attention, create):
        """flex_attention with its BlockMask."""
        blocks = create(self.mask, *self.block_sizes, device=args.device) if self.is_mask else None
        return lambda q, k, v: attention(q, k, v, score_mod=self.score, block_mask=blocks)


def names():
    """Those that options ask for, each with the reason if it is not traced."""
    import zoo
    small = zoo.Makers(2, args.heads, 128)
    found = [name for name in (*small.masks, *small.scores) if re.search(args.only, name)]
    if not found:
        sys.exit(f"expected --only to be found in a name, got: {args.only}")
    index, count = map(int, args.shard.split("/"))
    for name in found[index::count]:
        try:
            attnc.mask(small.masks[name]()) if name in small.masks else attnc.score(small.scores[name]())
            yield name, None
        except attnc.TraceError as error:
            yield name, str(error).splitlines()[0].rpartition("attn_gym/")[2]


# Times ---------------------------------------------------------------------------------------------------------------

def first_calls(case):
    """How long the first calls of both take, and these calls, and the function that makes BlockMasks."""
    create = torch.compile(flex.create_block_mask)
    attention = torch.compile(flex.flex_attention, dynamic=False, fullgraph=True)
    inputs = tensors(case.batch, case.length)
    ours = case.ours(case.traced())
    times = {"first_call_s": seconds(lambda: results(ours, *inputs))[0]}
    times["flex_prep_first_s"], theirs = seconds(lambda: case.flex(attention, create))
    times["flex_first_call_s"] = seconds(lambda: results(theirs, *inputs, backward=FLEX_HAS_BACKWARD))[0]
    return {name: round(value, 2) for name, value in times.items()}, ours, theirs, create


def times_of(ours, theirs, inputs):
    """Medians of calls that take turns, forward and backward."""
    *qkv, do = inputs
    qkv = [t.detach().requires_grad_(device.type == "cuda") for t in qkv]
    calls = [[lambda call=call: call(*qkv) for call in (ours, theirs)]]
    if device.type == "cuda":
        calls.append([lambda o=call(*qkv): torch.autograd.grad(o, qkv, do, retain_graph=True)
                      for call in (ours, theirs)])
        memory = scratch(torch)
    times = {}
    for kind, pair in zip(("fwd", "bwd"), calls):
        def once():
            if device.type == "cuda":
                return queued_ms(torch, pair, memory)
            return [seconds(call)[0] * 1e3 for call in pair]
        samples = [once() for _ in range(args.rounds + 3)][3:]  # the first ones warm up
        own, other = (round(statistics.median(column), 4) for column in zip(*samples))
        times |= {f"{kind}_ms": own, f"flex_{kind}_ms": other, f"{kind}_ratio": round(other / own, 3)}
    return times


def measured(name, compiled):
    """The facts of a row."""
    small = Case(name, args.small)
    inputs = tensors(small.batch, small.length)
    found = results(small.ours(small.traced()), *inputs)
    wanted = results(lambda q, k, v: dense(q, k, v, small.mask, small.score), *(t.double() for t in inputs))
    facts = {"rel_err_dense": apart(found, wanted)}
    del small, found, wanted
    torch._dynamo.reset()
    case = Case(name, args.seqlen)
    facts |= {"shape": [case.batch, args.heads, args.seqlen, args.dim],
              "text": str(next(reversed(case.traced().values())))}
    inputs = tensors(case.batch, case.length)
    if not args.no_time:
        facts["prep_ms"] = median_ms(case.traced)  # while no other mask has these arrays
    try:
        if args.no_time:
            ours, theirs = case.ours(case.traced()), case.flex(flex.flex_attention, flex.create_block_mask)
        else:
            first, ours, theirs, create = first_calls(case)
            facts |= compiled.get(name, first)
            if case.is_mask:
                facts["flex_prep_ms"] = median_ms(lambda: create(case.mask, *case.block_sizes, device=args.device))
                facts["prep_ratio"] = round(facts["flex_prep_ms"] / facts["prep_ms"], 3)
        expected = results(theirs, *inputs, backward=FLEX_HAS_BACKWARD)
        facts["rel_err_flex"] = apart(results(ours, *inputs, backward=FLEX_HAS_BACKWARD), expected)
        if not args.no_time:
            facts |= times_of(ours, theirs, inputs)
    except attnc.Error:
        raise
    except Exception as error:  # of flex_attention or its compiler: our values are checked all the same
        facts["flex_error"] = f"{type(error).__name__}: {error}"[:600]
    return facts


def compile_ahead():
    """first_calls of all functions, in --jobs processes: their times by name."""
    command = [sys.executable, *sys.argv, "--prepare", "--jobs=0", "--out="]
    children = [subprocess.Popen([*command, f"--shard={i}/{args.jobs}", f"--seconds={left() / 2}"],
                                 stdout=subprocess.PIPE, text=True) for i in range(args.jobs)]
    found = {}
    for child in children:
        try:
            text, _ = child.communicate(timeout=None if left() == math.inf else max(left() * 2 / 3, 1))
        except subprocess.TimeoutExpired:
            child.kill()
            text, _ = child.communicate()
        for line in map(json.loads, text.splitlines()):
            found |= {line["check"]: line["times"]} if "times" in line else {}
    return found


def geometric_means(rows):
    for kind in ("masks", "score modifiers"):
        means = {}
        for ratio in ("fwd_ratio", "bwd_ratio", "prep_ratio"):
            values = [row[ratio] for is_mask, row in rows if ratio in row and is_mask == (kind == "masks")]
            if values:
                means |= {ratio: round(statistics.geometric_mean(values), 3), f"{ratio}s": len(values)}
        if means:
            report(f"geometric means, {kind}", True, **means)


def run_function(name, compiled, is_mask, rows):
    """The line of a function, or with --prepare its first calls; rows: (is_mask, facts) of those that are right."""
    if args.prepare:
        torch._dynamo.reset()
        report(name, True, times=first_calls(Case(name, args.seqlen))[0])
        return
    facts = measured(name, compiled)
    ok = all(error < bound for key, bound in (("rel_err_dense", 0.01), ("rel_err_flex", 0.02))
             for error in facts.get(key, ()))  # NaN is not below
    report(name, ok, **facts)
    if ok:
        rows.append((is_mask, facts))


def run_zoo():
    import zoo
    masks = zoo.Makers(2, args.heads, 128).masks
    compiled = compile_ahead() if args.jobs else {}
    rows, left_out = [], []
    for name, refused in names():
        if left() < 0:
            left_out.append(name)
            continue
        if refused:
            report(name, True, refused=refused)
            continue
        run_check(name, lambda name=name: run_function(name, compiled, name in masks, rows))
    geometric_means(rows)
    if left_out:
        report("out of time", True, left_out=left_out)


# attn-bench ----------------------------------------------------------------------------------------------------------

def bench_ms(case, backward):
    """attn-bench's time of a case, and of a launch on the host, which is in it where the device is idle before."""
    command = [args.attn_bench, "--suite=dense", f"--filter={case}", *(["--backward"] if backward else [])]
    lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
    line = json.loads(lines[1])
    return line["bwd_ms" if backward else "fwd_ms"], line["launch_us"] / 1e3


def run_attn_bench():
    """Causal, D 128, H 16, 16384 tokens. Both take turns, as clocks drift; launches of ours are queued back to back."""
    for seqlen in (1024, 4096, 16384):
        batch = 16384 // seqlen
        q, k, v = (torch.randn(batch, seqlen, 16, 128, device=device).bfloat16().requires_grad_() for _ in range(3))
        do = torch.randn_like(q)

        def forward():
            return attnc.torch.attention(q, k, v, mask=attnc.causal(), expected_seqlen=seqlen)
        o = forward()
        for kind, call in (("fwd", forward), ("bwd", lambda: torch.autograd.grad(o, (q, k, v), do, retain_graph=True))):
            case, own, other = f"d128 b{batch} h16 s{seqlen} causal", [], []
            for _ in range(3):
                other.append(bench_ms(case, kind == "bwd"))
                queued_ms(torch, [call] * 5)
                own += queued_ms(torch, [call] * 20)
            other.append(bench_ms(case, kind == "bwd"))
            bench, launch, ms = *(statistics.mean(column) for column in zip(*other)), statistics.median(own)
            report(f"{case}, {kind}: attnc.torch as attn-bench within 2 %", 0.98 * bench - launch <= ms <= 1.02 * bench,
                   ms=round(ms, 4), attn_bench_ms=round(bench, 4), attn_bench_launch_ms=round(launch, 4),
                   ratio=round(ms / bench, 4))


if not args.prepare:
    machine(gpu=torch.cuda.get_device_name() if device.type == "cuda" else "cpu", torch=torch.__version__,
            attnc=attnc.version())
run_attn_bench() if args.attn_bench else run_zoo()
finish()
