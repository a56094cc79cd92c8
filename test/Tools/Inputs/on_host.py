# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""libattnc.so of the build in sys.argv[1], on the CPU, through ctypes: what tests of launches have in common."""
import ctypes
import sys

import numpy as np

c = ctypes.CDLL(sys.argv[1] + "/lib/libattnc.so")
c.attnLastError.restype = ctypes.c_char_p
c.attnTensorName.restype = ctypes.c_char_p


class Tensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("dtype", ctypes.c_int), ("rank", ctypes.c_int32),
                ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64))]


def aligned(shape, dtype):
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    raw = np.zeros(size + 64, np.uint8)
    start = -raw.ctypes.data % 64
    return raw[start:start + size].view(dtype).reshape(shape)


def compiled(text):
    kernel = ctypes.c_void_p()
    assert c.attnCompile(text, None, b"cpu", ctypes.byref(kernel)) == 0, c.attnLastError()
    return kernel


def bind(kernel, arrays):
    """Tensors and a workspace; both lead into `arrays`, which the caller keeps."""
    names = [c.attnTensorName(kernel, i).decode() for i in range(c.attnTensorCount(kernel))]
    tensors = (Tensor * len(names))()
    for slot, name in zip(tensors, names):
        array, dtype = arrays[name]
        shape = (ctypes.c_int64 * array.ndim)(*array.shape)
        arrays[name + " shape"] = shape
        slot.data, slot.dtype, slot.rank, slot.shape = array.ctypes.data, dtype, array.ndim, shape
    size = ctypes.c_size_t()
    assert c.attnWorkspaceSize(kernel, tensors, ctypes.byref(size)) == 0, c.attnLastError()
    return tensors, aligned((size.value,), np.uint8)
