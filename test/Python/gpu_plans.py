#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Context-parallel plans on several GPUs, a process each: results beside those of one GPU, repeated runs with ranks
that are late, CUDA graphs, faults.

    gpu_plans.py [--ranks N] [--what check,learned,repeat,graph,faults] [--transport peer|nccl] [--out FILE.jsonl]

Fewer GPUs than ranks are shared ("peer" alone). `error` is the largest relative error (2-norm) of a rank's o, dq, dk
or dv beside its rows of one GPU's result, which other tests compare with the reference. ATTN_LIBRARY selects the build.
"""
import datetime
import os
import random
import tempfile
import time

import gpu_report  # first: it finds the package
from gpu_report import relative_error, report

import torch
import torch.distributed as dist

import attnc
import attnc.torch as at

MOST_OFF = 0.01
HEADS, KV_HEADS, DIM = 4, 2, 64
MASKS = {"full": attnc.full(), "causal": attnc.causal(), "window (99, 0)": attnc.window(100),
         "window (0, 70)": attnc.band(0, 70), "window (130, 41)": attnc.band(130, 41),
         "documents": attnc.causal() & attnc.document(), "prefix": attnc.causal() | attnc.prefix(77),
         "chunk": attnc.causal() & attnc.chunk(128),
         "block map": attnc.causal() & attnc.block_map("offsets", "columns", 64, 48)}
CROSS = {"full": attnc.full(), "causal": attnc.causal("end"), "window (99, 0)": attnc.window(100, align="end"),
         "window (0, 70)": attnc.band(0, 70, "end"), "window (130, 41)": attnc.band(130, 41, "end"),
         "documents": attnc.document(), "prefix": attnc.causal("end") | attnc.prefix(77),
         "chunk": attnc.chunk(128, "end"), "block map": attnc.block_map("offsets", "columns", 64, 48)}
PLANS = [("gather", 1, "dual_chunk"), ("cast", 1, "dual_chunk"), ("cast", 1, "contiguous"), ("ring", 1, "dual_chunk"),
         ("ring", 1, "contiguous"), ("ulysses", 1, "dual_chunk")]
LENGTHS, CROSS_LENGTHS = (333, 0, 1, 517, 150), (200, 7, 64, 517, 301)
DENSE, CROSS_DENSE = 501, 730  # which 2 ranks do not divide


class Case:
    """Whole tensors, one GPU's results, and calls of one rank for parts of them."""

    def __init__(self, mask, layout, is_cross, seed=0):
        self.name = f"{mask}, {layout}, {'cross' if is_cross else 'self'}"
        self.mask, self.layout = (CROSS if is_cross else MASKS)[mask], layout
        torch.manual_seed(seed)
        lengths = LENGTHS, CROSS_LENGTHS if is_cross else LENGTHS
        self.options, self.arrays = {}, {}
        if layout == "bshd":
            shapes = [(2, length) for length in (DENSE, CROSS_DENSE if is_cross else DENSE)]
            tokens = [2 * shape[1] for shape in shapes]
            self.whole_lengths = tuple(shape[1] for shape in shapes)
        else:
            sums = [[sum(of[:i]) for i in range(len(of) + 1)] for of in lengths]
            slots = [[length + 3 * i for i, length in enumerate(of)] for of in lengths]
            starts = [[sum(of[:i]) for i in range(len(of) + 1)] for of in slots]
            shapes = [(of[-1],) for of in starts]
            tokens = [of[-1] for of in sums]
            for i, side in enumerate(("q", "kv")):
                for name, values in (("cu_seqlens", sums), ("padded_offsets", starts)):
                    self.options[f"{name}_{side}"] = torch.tensor(values[i], dtype=torch.int32)
        if mask == "documents":
            ids = [torch.arange(n, device="cuda", dtype=torch.int32) // 90 % 5 + 1 for n in tokens]
            self.arrays = dict(segment_ids_q=ids[0], segment_ids_kv=ids[1])
        if mask == "block map":  # two of three blocks, and those of the diagonal
            shown = [[j for j in range(6) if (i + j) % 3 or i == j] for i in range(16)]
            sums = [sum(map(len, shown[:i])) for i in range(len(shown) + 1)]
            self.arrays = dict(offsets=torch.tensor(sums, dtype=torch.int32, device="cuda"), columns=torch.tensor(
                sum(shown, []), dtype=torch.int32, device="cuda"))
        self.x = [torch.randn(*shape, heads, DIM, device="cuda", dtype=torch.bfloat16)
                  for shape, heads in ((shapes[0], HEADS), (shapes[1], KV_HEADS), (shapes[1], KV_HEADS),
                                       (shapes[0], HEADS))]

    def one(self):
        options = {name: value.cuda() for name, value in self.options.items()}
        q, k, v = (x.clone().requires_grad_() for x in self.x[:3])
        if self.layout == "bshd":
            arrays = {name: ids.view(2, -1) if "ids" in name else ids for name, ids in self.arrays.items()}
        else:  # one GPU has ids of padding, too
            arrays = {name: self.padded(name.removeprefix("segment_ids_"), ids) if "ids" in name else ids
                      for name, ids in self.arrays.items()}
        o = at.attention(q, k, v, mask=self.mask, layout=self.layout, arrays=arrays, **options)
        o.backward(self.x[3])
        return o.detach(), q.grad, k.grad, v.grad

    def padded(self, side, ids):
        sums, starts = (self.options[f"{name}_{side}"].tolist() for name in ("cu_seqlens", "padded_offsets"))
        whole = ids.new_zeros(starts[-1])
        for i, start in enumerate(starts[:-1]):
            length = sums[i + 1] - sums[i]
            whole[start:start + length] = ids[sums[i]:sums[i + 1]]
        return whole

    def own(self, cp, x, keys):
        side = "kv" if keys else "q"
        given = {name.removesuffix(f"_{side}"): value for name, value in self.options.items() if name.endswith(side)}
        return cp.shard(x, keys=keys, **given)

    def ranks(self, cp, delay=None):
        """This rank's results."""
        q, k, v, do = (self.own(cp, x, i in (1, 2)) for i, x in enumerate(self.x))
        q, k, v = (x.detach().requires_grad_() for x in (q, k, v))
        options = dict(self.options)
        arrays = self.arrays
        if self.layout == "bshd":
            options["seqlens"] = self.whole_lengths
            arrays = {name: ids.view(2, -1) if "ids" in name else ids for name, ids in arrays.items()}
        if delay:
            torch.cuda._sleep(delay[0])
        o = at.attention(q, k, v, mask=self.mask, layout=self.layout, arrays=arrays, context_parallel=cp, **options)
        if delay:
            torch.cuda._sleep(delay[1])
        o.backward(do)
        return o.detach(), q.grad, k.grad, v.grad

    def error(self, cp, found, whole):
        return max(relative_error(a, self.own(cp, b, i > 1)) for i, (a, b) in enumerate(zip(found, whole)))


def worst(value):
    """The largest value of all ranks; NaN counts as the largest."""
    values = [None] * dist.get_world_size()
    dist.all_gather_object(values, value)
    return max(v if v == v else float("inf") for v in values)


def parallel(args, **options):
    return at.ContextParallel(dist.group.WORLD, transport=args.transport, timeout=args.timeout, **options)


def check(args, emit):
    for strategy, group, sharding in PLANS:
        cp = parallel(args, strategy=strategy, head_group=group, sharding=sharding)
        for mask in MASKS:
            for layout in ("bshd", "thd padded"):
                for is_cross in (False, True):
                    case = Case(mask, layout, is_cross)
                    name = f"{strategy} {sharding}, {case.name}"
                    if args.filter not in name:
                        continue
                    start = time.monotonic()
                    error = worst(case.error(cp, case.ranks(cp), case.one()))
                    emit(name, error <= MOST_OFF, error=error, s=round(time.monotonic() - start, 2))
        cp.check()
        cp.close()


def learned(args, emit):
    """Gradients of slopes and of a table of distances, as the sum of all ranks', beside those of one GPU. Runs have
    equal bits."""
    torch.manual_seed(1)
    arrays = {"slopes": torch.rand(HEADS, device="cuda"), "table": torch.randn(HEADS, 2 * 40 + 1, device="cuda")}
    score = [attnc.alibi("slopes"), attnc.relative_bias("table", 40)]
    for strategy, group, sharding in PLANS:
        cp = parallel(args, strategy=strategy, head_group=group, sharding=sharding)
        for mask in ("causal", "window (130, 41)", "full"):
            case = Case(mask, "thd padded", False)

            def gradients(tensors, do, **options):
                own = {name: array.clone().requires_grad_() for name, array in arrays.items()}
                q, k, v = (x.detach().clone().requires_grad_() for x in tensors)
                o = at.attention(q, k, v, mask=case.mask, layout=case.layout, score=score, arrays=own, **options)
                o.backward(do)
                return [own["slopes"].grad, own["table"].grad, q.grad, k.grad, v.grad]
            expected = gradients(case.x[:3], case.x[3], **{name: value.cuda() for name, value in case.options.items()})
            parts = [case.own(cp, x, i in (1, 2)) for i, x in enumerate(case.x)]
            runs = [gradients(parts[:3], parts[3], context_parallel=cp, **case.options) for _ in range(3)]
            same = all(torch.equal(a, b) for run in runs[1:] for a, b in zip(run, runs[0]))
            found = runs[0]
            for gradient in found[:2]:
                summed = [None] * dist.get_world_size()
                dist.all_gather_object(summed, gradient.cpu())
                gradient.copy_(sum(summed))
            whole = expected[:2] + [case.own(cp, gradient, i > 0) for i, gradient in enumerate(expected[2:])]
            errors = [relative_error(a, b) for a, b in zip(found, whole)]
            error, different = worst(max(errors)), worst(not same)
            emit(f"learned arrays, {strategy} {sharding}, {mask}", error <= MOST_OFF and not different, error=error,
                 other_bits=bool(different))
        cp.check()
        cp.close()


def repeat(args, emit):
    """Ranks are late by turns, and all runs have equal bits."""
    generator = random.Random(dist.get_rank())
    for strategy, group, sharding in PLANS:
        cp = parallel(args, strategy=strategy, head_group=group, sharding=sharding)
        case = Case("window (130, 41)", "thd padded", True)
        first, different = case.ranks(cp), 0
        for _ in range(args.repeats):
            delay = [generator.choice((0, 0, 100_000, 1_000_000, 4_000_000)) for _ in range(2)]
            found = case.ranks(cp, delay)
            different += not all(torch.equal(a, b) for a, b in zip(found, first))
        different = worst(different)
        emit(f"late ranks, {strategy} {sharding}", not different, runs=args.repeats, runs_with_other_bits=different)
        cp.check()
        cp.close()


def graph(args, emit):
    """Both passes in a CUDA graph, replayed with other inputs."""
    for strategy, group, sharding in PLANS:
        cp = parallel(args, strategy=strategy, head_group=group, sharding=sharding)
        case = Case("causal", "thd padded", False)
        case.ranks(cp)  # binds
        q, k, v, do = (case.own(cp, x, i in (1, 2)).clone() for i, x in enumerate(case.x))
        inputs = [x.requires_grad_() for x in (q, k, v)]
        captured = torch.cuda.CUDAGraph()
        torch.cuda.synchronize()
        dist.barrier()
        with torch.cuda.graph(captured):
            o = at.attention(q, k, v, mask=case.mask, layout=case.layout, context_parallel=cp, **case.options)
            grads = torch.autograd.grad(o, inputs, do)
        different = 0
        for seed in range(20):
            other = Case("causal", "thd padded", False, seed)
            expected = other.ranks(cp)
            with torch.no_grad():
                for x, y in zip((q, k, v, do), (other.own(cp, x, i in (1, 2)) for i, x in enumerate(other.x))):
                    x.copy_(y)
            captured.replay()
            different += not all(torch.equal(a, b) for a, b in zip((o, *grads), expected))
        different = worst(different)
        emit(f"graph, {strategy} {sharding}", not different, replays=20, replays_with_other_bits=different)
        cp.check()
        del captured
        cp.close()


def faults(args, emit):
    """A rank that does not run: the others learn which within the time-out, and go on with a new ContextParallel."""
    rank, last = dist.get_rank(), dist.get_world_size() - 1
    case = Case("causal", "thd padded", False)
    cp = at.ContextParallel(dist.group.WORLD, transport=args.transport, timeout=3.0, strategy="ring")
    case.ranks(cp)
    torch.cuda.synchronize()
    dist.barrier()
    said, begun = None, time.monotonic()
    if rank != last:
        case.ranks(cp)
        torch.cuda.synchronize()
        try:
            cp.check()
        except attnc.Error as error:
            said = str(error)
    took = time.monotonic() - begun
    words = [None] * dist.get_world_size()
    dist.all_gather_object(words, said)
    expected = [word for word in words[:-1] if word and "exchange" in word and "rank" in word]
    emit("a rank does not run", len(expected) == last, said=words[0], s=round(took, 1))
    dist.barrier()
    fresh = at.ContextParallel(dist.group.WORLD, transport=args.transport, strategy="ring")
    error = worst(case.error(fresh, case.ranks(fresh), case.one()))
    emit("a new ContextParallel afterwards", error <= MOST_OFF, error=error)
    fresh.close()
    # Other lengths on one rank.
    other = at.ContextParallel(dist.group.WORLD, transport=args.transport, strategy="ring")
    said = None
    try:
        q = torch.randn(64 // dist.get_world_size(), HEADS, DIM, device="cuda", dtype=torch.bfloat16)
        sums = [0, 64] if rank != last else [0, 32, 64]
        at.attention(q, q, q, mask=attnc.causal(), layout="thd", cu_seqlens_q=sums, context_parallel=other)
    except attnc.Error as error:
        said = str(error)
    words = [None] * dist.get_world_size()
    dist.all_gather_object(words, said)
    emit("other sequences on a rank", all(f"rank {last}" in str(word) for word in words), said=words[0])


def work(rank, args, rendezvous):
    torch.cuda.set_device(rank % torch.cuda.device_count())
    dist.init_process_group("gloo", init_method=f"file://{rendezvous}", rank=rank, world_size=args.ranks,
                            timeout=datetime.timedelta(seconds=120))
    if rank == 0:
        gpu_report.adopt(args)
        gpu_report.machine(gpu=torch.cuda.get_device_name(), gpus=torch.cuda.device_count(), ranks=args.ranks,
                           transport=args.transport, heads=[HEADS, KV_HEADS], dim=DIM, dtype="bf16")
    emit = report if rank == 0 else (lambda *facts, **more: None)
    for what in args.what.split(","):
        {"check": check, "learned": learned, "repeat": repeat, "graph": graph, "faults": faults}[what](args, emit)
        dist.barrier()
    dist.destroy_process_group()
    if rank == 0:
        gpu_report.finish()


def add_options(parser):
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--what", default="check,learned,repeat,graph,faults")
    parser.add_argument("--transport", default="peer")
    parser.add_argument("--timeout", type=float, default=60.0, help="seconds that a rank waits for another one")
    parser.add_argument("--repeats", type=int, default=100)
    parser.add_argument("--filter", default="", help="only checks whose name contains this")


if __name__ == "__main__":
    args = gpu_report.options(__doc__, add_options)
    with tempfile.TemporaryDirectory() as folder:
        torch.multiprocessing.spawn(work, (args, os.path.join(folder, "rendezvous")), nprocs=args.ranks)
