#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checks on two GPUs: the stream decides where a launch runs, and memory that its device cannot reach is refused
before anything runs.

  two_devices.py BUILD [--before BUILD] [--out FILE.jsonl]

Run it again with PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True and =backend:cudaMallocAsync, for mappings and pools,
and with ATTN_CHECK_ARRAYS=1, for all tensors. `--before`: a build to compare the host time of a launch with, in turns.
One JSON line a check; exit 1 if one fails. Peer access comes last: once torch has copied from device to device, it is
there for the rest of the process."""
import ctypes
import math
import os
import statistics
import sys
import threading
import time

import torch

import attnc
import bench
from bench import emit

bench.parser.add_argument("--before")
args, library = bench.begin()
failed = 0
ALL = os.environ.get("ATTN_CHECK_ARRAYS", "0") not in ("", "0")
ALLOCATOR = os.environ.get("PYTORCH_CUDA_ALLOC_CONF", "")
PROBLEM = "attn.problem @p mask(#attn.causal) layout(bshd) heads(4, 4) dims(64) dtype(bf16) expected_seqlen(256)"
SPLIT = "attn.problem @p mask(#attn.full) layout(bshd) heads(4, 4) dims(64) dtype(bf16) expected_seqlen(1, 16384)"
cuda = ctypes.CDLL("libcuda.so.1")


def report(check, ok, **facts):
    global failed
    failed += not ok
    emit(check=check, ok=bool(ok), **facts)


def tensors_on(device, rows_q=256, rows_kv=256):
    with torch.cuda.device(device):
        q, o = (torch.randn(2, rows_q, 4, 64, device="cuda", dtype=torch.bfloat16) for _ in range(2))
        k, v = (torch.randn(2, rows_kv, 4, 64, device="cuda", dtype=torch.bfloat16) for _ in range(2))
        lse = torch.zeros(2, 4, rows_q, device="cuda")
    return dict(q=q, k=k, v=v, o=o.fill_(math.nan), lse=lse)


def error_of(tensors, causal=True):
    """Of o, against double on the host, which asks for no peer access."""
    q, k, v, o = (tensors[n].cpu().double().transpose(1, 2) for n in "qkvo")
    scores = q @ k.transpose(-1, -2) / 8
    if causal:
        scores = scores.masked_fill(~torch.ones(scores.shape[-2:]).tril().bool(), -math.inf)
    wanted = scores.softmax(-1) @ v
    return ((o - wanted).norm() / wanted.norm()).item()


def runs(check, kernel, tensors, stream, causal=True):
    """A launch that has to be taken, and right."""
    tensors["o"].fill_(math.nan)
    torch.cuda.synchronize(0), torch.cuda.synchronize(1)
    current = torch.cuda.current_device()
    try:
        kernel.launch(kernel.bind(**tensors), stream)
        torch.cuda.synchronize(0), torch.cuda.synchronize(1)
        error = error_of(tensors, causal)
        report(check, error < 5e-3 and torch.cuda.current_device() == current, rel_err=round(error, 5))
    except RuntimeError as said:
        report(check, False, error=str(said)[:300])


def refused(check, kernel, tensors, stream, *words):
    """A launch that has to be refused in these words, with all devices unharmed."""
    bound = kernel.bind(**tensors)
    try:
        kernel.launch(bound, stream)
        said = "nothing"
    except RuntimeError as error:
        said = str(error)
    torch.cuda.synchronize(0), torch.cuda.synchronize(1)
    report(check, all(word in said for word in words), said=said[:300])


def call(name, *arguments):
    status = getattr(cuda, name)(*arguments)
    assert status == 0, (name, status)


def placement(kernel):
    first, second = tensors_on(0), tensors_on(1)
    streams = [torch.cuda.Stream(device=d) for d in (0, 1)]
    of_first, of_second = (s.cuda_stream for s in streams)
    peer = ("expected `q`", "device 0", "memory of device 1")
    for handle in (0, 1, 2):
        runs(f"default stream {handle}", kernel, first, handle)
        refused(f"tensors of device 1, default stream {handle}", kernel, second, handle, *peer)
    refused("tensors of device 1, stream of device 0", kernel, second, of_first, *peer)
    refused("tensors of device 0, stream of device 1", kernel, first, of_second,
            "expected `q`", "device 1", "memory of device 0")
    runs("stream of device 1, device 0 current", kernel, second, of_second)
    runs("stream of device 0", kernel, first, of_first)
    with torch.cuda.device(1):
        runs("default stream, device 1 current", kernel, second, 0)
        runs("stream of device 0, device 1 current", kernel, first, of_first)
    if ALL:
        for name in ("k", "v", "o", "lse"):
            refused(f"`{name}` of device 1", kernel, {**first, name: second[name]}, 0,
                    f"expected `{name}`", "memory of device 1")
    bound = kernel.bind(**second)
    second["o"].fill_(math.nan)
    torch.cuda.synchronize(1)
    bare = threading.Thread(target=lambda: kernel.launch(bound, of_second))
    bare.start(), bare.join()
    torch.cuda.synchronize(1)
    report("stream of device 1, a thread without a context", error_of(second) < 5e-3)
    split = library.compile(SPLIT)
    runs("keys shared out on device 1, device 0 current", split, tensors_on(1, 1, 16384), of_second, causal=False)
    # A graph that is captured while the other device is current.
    bound = kernel.bind(**second)
    with torch.cuda.device(1), torch.cuda.stream(streams[1]):
        kernel.launch(bound, of_second)
        streams[1].synchronize()
        graph = torch.cuda.CUDAGraph()
        graph.capture_begin()
    torch.cuda.set_device(0)
    kernel.launch(bound, of_second)
    with torch.cuda.device(1), torch.cuda.stream(streams[1]):
        graph.capture_end()
        second["o"].fill_(math.nan)
        graph.replay()
        streams[1].synchronize()
    report("a captured launch", error_of(second) < 5e-3)
    return first, second


def shared(kernel, first):
    """Memory of the host that both reach, and memory of the host that the driver does not know."""
    pinned = dict(first, q=first["q"].cpu().pin_memory())
    runs("q pinned", kernel, pinned, 0)
    q = first["q"].cpu()
    bound = kernel.bind(**first)
    managed = ctypes.c_uint64()
    call("cuMemAllocManaged", ctypes.byref(managed), ctypes.c_size_t(q.numel() * 2), 1)
    torch.cuda.synchronize()
    ctypes.memmove(managed.value, q.data_ptr(), q.numel() * 2)
    bound[0][kernel.names.index("q")].data = managed.value
    first["o"].fill_(math.nan)
    try:
        kernel.launch(bound, 0)
        torch.cuda.synchronize()
        report("q managed", error_of(first) < 5e-3)
    except RuntimeError as said:
        report("q managed", False, error=str(said)[:300])
    pageable = ctypes.c_int()
    call("cuDeviceGetAttribute", ctypes.byref(pageable), 88, 0)
    if not pageable.value:
        refused("q of the host", kernel, dict(first, q=q), 0, "expected `q`", "memory of the host")


def peers(kernel, second):
    """Last: torch enables peer access at its first copy."""
    if not torch.cuda.can_device_access_peer(0, 1):
        return emit(check="peer access", skipped="these devices have none")
    refused("tensors of a peer, not enabled", kernel, second, 0, "expected `q`", "memory of device 1")
    for source, target in ((1, 0), (0, 1)):
        torch.ones(4, device=f"cuda:{source}").to(f"cuda:{target}")
    if not ALLOCATOR:  # torch shares its mappings and pools with whom it copies to, as it likes
        runs("tensors of a peer", kernel, second, 0)


def timing(builds):
    """Host time of a launch of each build, in turns; and what the calls of the driver that it gained take."""
    kernels = {name: attnc.Library(os.path.join(build, "lib", "libattnc.so")).compile(PROBLEM)
               for name, build in builds.items()}
    tensors = tensors_on(0)
    for kind, handle in (("default", 0), ("stream", torch.cuda.Stream(device=0).cuda_stream)):
        samples = {name: [] for name in kernels}
        for _ in range(11):
            for name, kernel in kernels.items():
                samples[name].append(kernel.launch_us(kernel.bind(**tensors), handle))
        medians = {name: round(statistics.median(values), 3) for name, values in samples.items()}
        added = round(medians["now"] - medians["before"], 3) if "before" in medians else None
        report(f"host time of a launch, {kind}", added is None or added <= 0.3, us=medians, added_us=added)

    def cost(function, *arguments):
        begin = time.perf_counter()
        for _ in range(100000):
            function(*arguments)
        return (time.perf_counter() - begin) * 10
    value, stream = ctypes.c_uint64(), ctypes.c_void_p(torch.cuda.Stream(device=0).cuda_stream)
    empty = cost(cuda.cuDriverGetVersion, ctypes.byref(value))
    pointer = cost(cuda.cuPointerGetAttribute, ctypes.byref(value), 9, ctypes.c_uint64(tensors["q"].data_ptr()))
    context = cost(cuda.cuStreamGetCtx, stream, ctypes.byref(value))
    emit(cost_of="cuPointerGetAttribute and cuStreamGetCtx", us=[round(pointer - empty, 3), round(context - empty, 3)],
         beside_an_empty_call=round(empty, 3))


assert torch.cuda.device_count() > 1, "this is for two GPUs"
torch.cuda.set_device(0)
emit(gpu=torch.cuda.get_device_name(0), allocator=ALLOCATOR, all_tensors=ALL)
main = library.compile(PROBLEM)
of_first_device, of_second_device = placement(main)
shared(main, of_first_device)
if not ALL:
    timing({"now": args.build} | ({"before": args.before} if args.before else {}))
peers(main, of_second_device)
sys.exit(failed)
