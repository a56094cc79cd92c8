# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The operator attnc::run of PyTorch: (tensors, text of a problem, name of its op) to results, with shapes for tracing
and a rule for vmap. Gradients are in _autograd.py, outside of the operator."""
import ctypes
import functools
import re

import torch

from .. import _library, errors
from .._axes import reads
from .._signature import Signature

_BY_NAME = {kind.__name__: kind for kind in errors.Error.__subclasses__()}
_BY_NAME["Error"] = errors.Error
_KIND = re.compile(r"attnc\.(\w*Error): (.*)", re.DOTALL)
_DTYPES = {"bf16": torch.bfloat16, "f16": torch.float16, "f32": torch.float32, "i32": torch.int32}


def _load():
    path = _library.path()
    _library.library()
    own = path.with_name("libattnc_torch.so")
    try:
        loaded = ctypes.CDLL(str(own))
    except OSError as error:
        raise errors.Error(f"cannot load {own}: {error}") from None
    loaded.attncTorchRegister.restype = ctypes.c_char_p
    failure = loaded.attncTorchRegister()
    if failure:
        raise errors.Error(f"attnc.torch does not work with torch {torch.__version__}: {failure.decode()}")
    try:
        convert = (torch._C._aoti.unsafe_alloc_void_ptrs_from_tensors,
                   torch._C._aoti.alloc_tensors_by_stealing_from_void_ptrs)
    except AttributeError:
        return None
    direct = ctypes.PyDLL(str(own)).attncTorchDirect
    direct.restype, direct.argtypes = ctypes.py_object, [ctypes.py_object] * 2
    return direct(*convert)


_direct = _load()  # attnc::run on plain tensors without PyTorch's dispatcher; None if this PyTorch lacks what it needs
_run = torch.ops.attnc.run.default
_PLAIN = frozenset((torch.Tensor, torch.nn.Parameter))


def _is_plain(tensors):
    """Whether nothing but the kernel itself has to see the call: no mode, transform, profiler, subclass or lazy
    sign."""
    first = tensors[0]
    watched = (torch._C._len_torch_dispatch_stack() or torch._C._are_functorch_transforms_active() or
               torch.autograd._profiler_enabled() or torch._C._is_tracing())
    return not watched and not first.is_meta and _PLAIN.issuperset(map(type, tensors)) and (
        first.dtype != torch.float32 or not any(t.is_neg() for t in tensors))


def run(tensors, text, name):
    """attnc::run, with errors of attnc."""
    try:
        if _direct and not torch.compiler.is_compiling() and _is_plain(tensors):
            return _direct(tensors, text, name)
        return _run(tensors, text, name)
    except RuntimeError as error:
        raise typed(error) from None


def typed(error):
    """The exception that a RuntimeError of the operator stands for."""
    found = _KIND.match(str(error))
    return _BY_NAME[found[1]](found[2].strip()) if found else error


@functools.lru_cache(maxsize=1024)
def signature(text, name):
    return Signature(text, name, torch.sym_min, torch.sym_max)


@torch.library.register_fake("attnc::run")
def _fake(tensors, text, name):
    spec = signature(text, name)
    return [tensors[0].new_empty(shape, dtype=_DTYPES[own["dtype"]])
            for own, shape in zip(spec.results, spec.result_shapes([t.shape for t in tensors]))]


# ---- vmap ----

def _fold(tensor, dim, axis, size):
    """Puts the mapped dimension, or `size` copies, in front of the axis that it is folded into."""
    tensor = tensor.movedim(dim, axis) if dim is not None else tensor.unsqueeze(axis).expand(
        *tensor.shape[:axis], size, *tensor.shape[axis:])
    return tensor.flatten(axis, axis + 1)


def _vmap(info, in_dims, tensors, text, name):
    """Dense layouts: the mapped dimension becomes a part of the batch. What has no batch axis, and what depends on the
    number of a sequence, as dropout does, runs entry by entry."""
    spec, folded = signature(text, name), []
    apart = reads(text, "b") or " dropout(" in text or any(_batch_axis(own) is None for own in spec.results)
    for tensor, dim, own in zip(tensors, in_dims[0], spec.inputs, strict=True):
        axis = _batch_axis(own)
        if axis is None and own["role"] == "operand":
            raise errors.UnsupportedError(
                f"vmap over `{own['name']}` is not possible, since it has no batch of its own: pack the sequences "
                "(layout thd, cu_seqlens) in place of vmap")
        apart = apart or (axis is None and dim is not None)
    if apart:
        return _entry_by_entry(info.batch_size, in_dims[0], tensors, text, name)
    for tensor, dim, own in zip(tensors, in_dims[0], spec.inputs, strict=True):
        axis = _batch_axis(own)
        if axis is not None:
            tensor = _fold(tensor, dim, axis, info.batch_size)
        folded.append(tensor.contiguous() if own["role"] == "array" else tensor)
    axes = [_batch_axis(own) for own in spec.results]
    return [result.unflatten(axis, (info.batch_size, -1)) for result, axis in zip(_run(folded, text, name), axes)], axes


def _batch_axis(tensor):
    axis = next((i for i, e in enumerate(tensor["extents"]) if e.size == "batch"), None)
    return None if axis is None or tensor["extents"][axis].less or tensor["leading_dims"] != "none" else axis


def _entry_by_entry(size, dims, tensors, text, name):
    found = [_run([t if dim is None else t.select(dim, i).contiguous() for t, dim in zip(tensors, dims)], text, name)
             for i in range(size)]
    return [torch.stack(results) for results in zip(*found)], [0] * len(signature(text, name).results)


torch.library.register_vmap("attnc::run", _vmap)
