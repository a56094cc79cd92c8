# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""libattnc.so (the first argument) by ctypes, on numpy arrays."""
import ctypes as C
import sys

import numpy as np

BF16, F16, F32, I32 = range(4)


class Tensor(C.Structure):
    _fields_ = [("data", C.c_void_p), ("dtype", C.c_int), ("rank", C.c_int32), ("shape", C.POINTER(C.c_int64)),
                ("strides", C.POINTER(C.c_int64))]


lib = C.CDLL(sys.argv[1])
lib.attnLastError.restype = lib.attnTensorName.restype = C.c_char_p
lib.attnSchedule.restype = C.c_char_p
lib.attnCompileCount.restype = C.c_int64
lib.attnLaunch.argtypes = [C.c_void_p, C.POINTER(Tensor), C.c_void_p, C.c_void_p]
lib.attnWorkspaceSize.argtypes = [C.c_void_p, C.POINTER(Tensor), C.POINTER(C.c_size_t)]
lib.attnSpecialize.argtypes = [C.c_void_p, C.POINTER(Tensor), C.POINTER(C.c_void_p)]
lib.attnTensorName.argtypes = [C.c_void_p, C.c_int]
lib.attnTensorCount.argtypes = lib.attnDestroy.argtypes = lib.attnSchedule.argtypes = [C.c_void_p]


def compile_problem(text, target=b"cpu"):
    kernel = C.c_void_p()
    assert lib.attnCompile(text.encode(), None, target, C.byref(kernel)) == 0, lib.attnLastError()
    return kernel


def tensors_of(kernel, arrays):
    """Of arrays by name, any strides."""
    tensors = []
    for i in range(lib.attnTensorCount(kernel)):
        array = arrays[lib.attnTensorName(kernel, i).decode()]
        dtype = {np.float16: F16, np.float32: F32, np.int32: I32}[array.dtype.type]
        extents, steps = (C.c_int64 * array.ndim), [stride // array.itemsize for stride in array.strides]
        tensors.append(Tensor(array.ctypes.data, dtype, array.ndim, extents(*array.shape), extents(*steps)))
    return (Tensor * len(tensors))(*tensors)


def specialize(kernel, arrays):
    """The kernel for arrays of such shapes."""
    special = C.c_void_p()
    assert lib.attnSpecialize(kernel, tensors_of(kernel, arrays), C.byref(special)) == 0, lib.attnLastError()
    return special


def launch(kernel, arrays, workspace=None):
    """The last error, or None."""
    memory = workspace.ctypes.data if workspace is not None and workspace.size else None
    return lib.attnLastError() if lib.attnLaunch(kernel, tensors_of(kernel, arrays), memory, None) else None


def workspace_of(kernel, arrays):
    """As many bytes as a launch asks for, each 0xff."""
    size = C.c_size_t()
    assert lib.attnWorkspaceSize(kernel, tensors_of(kernel, arrays), C.byref(size)) == 0, lib.attnLastError()
    return np.full(size.value // 4, np.nan, np.float32)
