# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Memory of this machine's CPU or GPU, and the times of launches there."""
import time
import types

from .errors import DriverError, Error

_FLOAT = {"bf16": "bfloat16", "f16": "float16", "f32": "float32"}


def numpy_module():
    try:
        import numpy
    except ImportError:
        raise Error("expected NumPy, whose arrays this needs, got: none installed") from None
    return numpy


class _Array:
    """Memory of NumPy as a tensor; NumPy has no bfloat16."""

    def __init__(self, values, dtype):
        self.values, self.shape, self.dtype = values, values.shape, types.SimpleNamespace(name=dtype)
        self.__array_interface__ = values.__array_interface__


class Host:
    """Arrays of NumPy, timed by the wall clock: a launch returns when its work is done."""
    stream, seqlen, batch, warmup, iterations = None, 1024, 1, 1, 5

    def __init__(self):
        self.np = numpy_module()
        self.generator = self.np.random.default_rng(0)
        with open("/proc/cpuinfo") as info:
            names = [line.partition(":")[2].strip() for line in info if line.startswith("model name")]
        self.device = names[0] if names else "CPU"

    def random(self, shape, dtype):
        values = self.generator.standard_normal(shape, dtype="float32")
        values = (values.view("uint32") >> 16).astype("uint16") if dtype == "bf16" else values.astype(_FLOAT[dtype])
        return _Array(values, _FLOAT[dtype])

    def empty(self, shape, dtype):
        return _Array(self.np.zeros(shape, "uint16" if dtype == "bf16" else _FLOAT[dtype]), _FLOAT[dtype])

    def array(self, values):
        return self.np.ascontiguousarray(values)

    def integers(self, values):
        return self.np.array(values, "int32")

    def workspace(self, size):
        return self.np.zeros(size, "uint8") if size else None

    def times(self, launch, count):
        result = []
        for _ in range(count):
            start = time.perf_counter()
            launch()
            result.append((time.perf_counter() - start) * 1e3)
        return result


class Gpu:
    """Tensors of PyTorch, timed by CUDA events on the device."""
    seqlen, batch, warmup, iterations = 4096, None, 5, 20

    def __init__(self, target):
        try:
            import torch
        except ImportError:
            raise Error(f"expected PyTorch, whose CUDA events time kernels for {target}, got: none installed; "
                        "--target=cpu times those of the CPU") from None
        if not torch.cuda.is_available():
            raise DriverError(f"expected a GPU that PyTorch can use for {target}, got: none; --target=cpu times "
                              "kernels of the CPU")
        self.torch, self.device = torch, torch.cuda.get_device_name()
        self.stream = torch.cuda.current_stream().cuda_stream
        self.scratch = scratch(torch)

    def random(self, shape, dtype):
        return self.torch.randn(shape, device="cuda").to(getattr(self.torch, _FLOAT[dtype]))

    def empty(self, shape, dtype):
        return self.torch.empty(shape, device="cuda", dtype=getattr(self.torch, _FLOAT[dtype]))

    def array(self, values):
        return self.torch.from_numpy(values).cuda().contiguous()

    def integers(self, values):
        return self.torch.tensor(values, dtype=self.torch.int32, device="cuda")

    def workspace(self, size):
        return self.torch.empty(size, dtype=self.torch.uint8, device="cuda") if size else None

    def times(self, launch, count):
        return [ms for first in range(0, count, 10)
                for ms in queued_ms(self.torch, [launch] * min(10, count - first), self.scratch)]


def scratch(torch):
    """Memory of four times the L2 cache."""
    return torch.empty(4 * torch.cuda.get_device_properties().L2_cache_size, dtype=torch.uint8, device="cuda")


def queued_ms(torch, launches, overwritten=None):
    """Milliseconds of each of some launches on the device alone, in their order.

    They are put on the stream while it sleeps, each between two events, so that the host's time is in none of them;
    where the host was slower than that, they are timed again behind a longer sleep. `overwritten`: memory that is
    filled ahead of each, so that the L2 cache holds nothing of its tensors.
    """
    cycles = 2_000_000
    while cycles < 2_000_000_000:
        events = [[torch.cuda.Event(enable_timing=True) for _ in range(2)] for _ in launches]
        torch.cuda.synchronize()
        torch.cuda._sleep(cycles)
        asleep = torch.cuda.Event()
        asleep.record()
        for launch, (begin, end) in zip(launches, events):
            if overwritten is not None:
                overwritten.zero_()
            begin.record()
            launch()
            end.record()
        late = asleep.query()
        torch.cuda.synchronize()
        if not late:
            return [begin.elapsed_time(end) for begin, end in events]
        cycles *= 4
    raise Error(f"expected {len(launches)} launches to be queued within a second, got: more")
