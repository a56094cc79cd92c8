# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""libattnc.so through ctypes, on torch tensors: what the device tests use."""
import ctypes
import json
import os
import statistics
import time

DTYPES = {"torch.bfloat16": 0, "torch.float16": 1, "torch.float32": 2, "torch.int32": 3}


class Tensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("dtype", ctypes.c_int), ("rank", ctypes.c_int32),
                ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64))]


class Library:
    def __init__(self, path):
        self.c = ctypes.CDLL(os.path.abspath(path))
        self.c.attnLastError.restype = ctypes.c_char_p
        self.c.attnTensorName.restype = ctypes.c_char_p
        self.c.attnResources.restype = self.c.attnSource.restype = self.c.attnSchedule.restype = ctypes.c_char_p
        self.c.attnCompileCount.restype = ctypes.c_int64

    def check(self, status):
        if status:
            raise RuntimeError(self.c.attnLastError().decode())

    def compile(self, text, target=None, general=False):
        """`general`: launches are not specialised for their shapes. `target`: by default what $ATTN_TEST_TARGET says
        (`sm_80:90` is the older schedule on a Hopper GPU), else this machine's."""
        return Kernel(self, text, target or os.environ.get("ATTN_TEST_TARGET"), general)

    def explain(self, text, target=None):
        """What the kernel of a module's only problem is and does, for made-up arrays and sizes (attnExplain)."""
        answer, target = ctypes.c_char_p(), target or os.environ.get("ATTN_TEST_TARGET")
        self.check(self.c.attnExplain(text.encode(), None, target.encode() if target else None, None,
                                      ctypes.byref(answer)))
        return json.loads(answer.value)


class Kernel:
    def __init__(self, library, text, target, general):
        self.library, self.handle, self.general = library, ctypes.c_void_p(), general
        library.check(library.c.attnCompile(text.encode(), None, target.encode() if target else None,
                                            ctypes.byref(self.handle)))
        count = library.c.attnTensorCount(self.handle)
        self.names = [library.c.attnTensorName(self.handle, i).decode() for i in range(count)]

    def resources(self):
        return self.library.c.attnResources(self.handle).decode()

    def source(self):
        return self.library.c.attnSource(self.handle).decode()

    def bind(self, **tensors):
        """The tensors of a launch and the kernel for their shapes; keep the result alive while it is used."""
        assert sorted(tensors) == sorted(self.names), (sorted(tensors), sorted(self.names))
        array = (Tensor * len(self.names))()
        keep = []
        for slot, name in zip(array, self.names):
            t = tensors[name]
            shape = (ctypes.c_int64 * t.dim())(*t.shape)
            strides = (ctypes.c_int64 * t.dim())(*t.stride())
            keep += [shape, strides, t]
            slot.data, slot.dtype, slot.rank = t.data_ptr(), DTYPES[str(t.dtype)], t.dim()
            slot.shape, slot.strides = shape, strides
        special, size = ctypes.c_void_p(), ctypes.c_size_t()
        if hasattr(self.library.c, "attnSpecialize") and not self.general:  # an older library does so in each launch
            self.library.check(self.library.c.attnSpecialize(self.handle, array, ctypes.byref(special)))
        else:
            special = self.handle
        self.library.check(self.library.c.attnWorkspaceSize(special, array, ctypes.byref(size)))
        workspace = None
        if size.value:
            import torch
            workspace = torch.empty(size.value, dtype=torch.uint8, device=tensors["q"].device)
            keep.append(workspace)
        return array, keep, ctypes.c_void_p(workspace.data_ptr() if size.value else None), special

    def schedule(self, bound):
        """Of the kernel for such shapes, without its reason."""
        return self.library.c.attnSchedule(bound[3]).decode().split(";")[0]

    def launch(self, bound, stream):
        self.library.check(self.library.c.attnLaunch(bound[3], bound[0], bound[2], ctypes.c_void_p(stream)))

    def launch_us(self, bound, stream):
        """Host time of a launch, ctypes included: the median of 30 times 100 launches, in microseconds."""
        import torch
        launch, pointer = self.library.c.attnLaunch, ctypes.c_void_p(stream)
        array, _, workspace, handle = bound
        samples = []
        for _ in range(30):
            torch.cuda.synchronize()
            start = time.perf_counter()
            for _ in range(100):
                launch(handle, array, workspace, pointer)
            samples.append((time.perf_counter() - start) / 100 * 1e6)
        torch.cuda.synchronize()
        return statistics.median(samples)
