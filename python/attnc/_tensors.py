# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tensors of NumPy, PyTorch and others as attnTensor, without importing any of them."""
import ctypes

from ._library import MAX_RANK, Tensor
from .errors import TensorError

DTYPES = {"bf16": 0, "f16": 1, "f32": 2, "i32": 3}
_NAMES = {"bfloat16": "bf16", "float16": "f16", "float32": "f32", "int32": "i32"}
SIZES = {"bf16": 2, "f16": 2, "f32": 4, "i32": 4}


class Shape:
    """A tensor's dtype ("bf16", "f16", "f32" or "i32"), shape, and strides in elements (None: contiguous), without
    data."""

    __slots__ = ("shape", "dtype", "strides")

    def __init__(self, shape, dtype, strides=None):
        self.shape, self.dtype = tuple(map(int, shape)), dtype
        self.strides = None if strides is None else tuple(map(int, strides))
        if dtype not in DTYPES:
            raise TensorError(f"expected dtype bf16, f16, f32 or i32, got: {dtype!r}")
        if self.strides is not None and len(self.strides) != len(self.shape):
            raise TensorError(f"expected a stride for each of {len(self.shape)} axes, got: {len(self.strides)}")

    def __repr__(self):
        return f"attnc.Shape({self.shape}, {self.dtype!r}" + (f", strides={self.strides})" if self.strides else ")")

    def __eq__(self, other):
        return isinstance(other, Shape) and (self.shape, self.dtype, self.strides) == (
            other.shape, other.dtype, other.strides)

    def __hash__(self):
        return hash((self.shape, self.dtype, self.strides))


def shape_of(tensor, name):
    """The dtype, shape and strides of anything that has them."""
    if isinstance(tensor, Shape):
        return tensor
    dtype, shape = getattr(tensor, "dtype", None), getattr(tensor, "shape", None)
    if dtype is None or shape is None:
        raise TensorError(f"expected a tensor as {name!r}, got: {type(tensor).__name__}")
    word = getattr(dtype, "name", None) or str(dtype).rpartition(".")[2]  # numpy's and jax's, torch's
    if word not in _NAMES:
        raise TensorError(f"expected {name!r} to be bfloat16, float16, float32 or int32, got: {word}")
    if not getattr(dtype, "isnative", True):
        raise TensorError(f"expected {name!r} in this machine's byte order, got: {dtype.str}")
    if len(shape) > MAX_RANK:
        raise TensorError(f"expected {name!r} to have at most {MAX_RANK} dimensions, got: {len(shape)}")
    strides = None
    if callable(getattr(tensor, "stride", None)):  # torch
        strides = tuple(map(int, tensor.stride()))
    elif getattr(tensor, "strides", None) is not None:  # numpy: bytes
        size = SIZES[_NAMES[word]]
        if any(s % size for s in tensor.strides):
            raise TensorError(f"expected {name!r} to have strides of whole elements, got: {tensor.strides} bytes")
        strides = tuple(s // size for s in tensor.strides)
    return Shape(shape, _NAMES[word], strides)


def pointer_of(tensor, name, written=False):
    """The address of a tensor's memory, which has to be writable if it is written."""
    if callable(getattr(tensor, "data_ptr", None)):
        return tensor.data_ptr()
    interface = getattr(tensor, "__cuda_array_interface__", None) or getattr(tensor, "__array_interface__", None)
    if interface is not None:
        if written and interface["data"][1]:
            raise TensorError(f"expected {name!r} in memory that may be written, got: a read-only array")
        return interface["data"][0]
    raise TensorError(f"expected {name!r} to have memory (a tensor of NumPy or PyTorch), got: {type(tensor).__name__}")


class Pack:
    """An array of attnTensor, and what it points to."""

    def __init__(self, count):
        self.array, self._keep = (Tensor * count)(), []

    def put(self, index, shape, data=None):
        """Fills in a tensor. `data`: its address, or None where only shapes are read."""
        slot, rank = self.array[index], len(shape.shape)
        extents = (ctypes.c_int64 * max(rank, 1))(*shape.shape)
        self._keep.append(extents)
        slot.data, slot.dtype, slot.rank = data, DTYPES[shape.dtype], rank
        slot.shape, slot.strides = extents, None
        if shape.strides is not None:
            strides = (ctypes.c_int64 * max(rank, 1))(*shape.strides)
            self._keep.append(strides)
            slot.strides = strides
