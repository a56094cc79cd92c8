# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""libattnc.so through ctypes (include/attn-c/Attn.h). It is loaded at the first use, not by `import attnc`."""
import ctypes
import functools
import json
import os
import pathlib

from . import errors

_KINDS = (errors.Error, errors.ProblemError, errors.UnsupportedError, errors.TensorError, errors.CompileError,
          errors.DriverError)  # attnErrorKind


class Tensor(ctypes.Structure):
    """attnTensor."""
    _fields_ = [("data", ctypes.c_void_p), ("dtype", ctypes.c_int), ("rank", ctypes.c_int32),
                ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64))]


MAX_RANK = 8
Extents = ctypes.c_int64 * MAX_RANK
_kernel, _tensors, _text = ctypes.c_void_p, ctypes.POINTER(Tensor), ctypes.c_char_p
_answer = ctypes.POINTER(ctypes.c_char_p)
_SIGNATURES = {
    "attnVersion": (ctypes.c_int, ()),
    "attnLastError": (_text, ()),
    "attnLastErrorKind": (ctypes.c_int, ()),
    "attnDescribe": (ctypes.c_int, (_text, _text, _answer)),
    "attnExplain": (ctypes.c_int, (_text, _text, _text, _text, _answer)),
    "attnSupported": (ctypes.c_int, (_text, _text, _text, _answer)),
    "attnEquiv": (ctypes.c_int, (_text, _text, _answer)),
    "attnLower": (ctypes.c_int, (_text, _text, _text, ctypes.POINTER(_kernel))),
    "attnBuild": (ctypes.c_int, (_kernel,)),
    "attnSpecialize": (ctypes.c_int, (_kernel, _tensors, ctypes.POINTER(_kernel))),
    "attnDestroy": (None, (_kernel,)),
    "attnTensorCount": (ctypes.c_int, (_kernel,)),
    "attnTensorName": (_text, (_kernel, ctypes.c_int)),
    "attnTensorIsResult": (ctypes.c_int, (_kernel, ctypes.c_int)),
    "attnInferShapes": (ctypes.c_int, (_kernel, _tensors, ctypes.POINTER(Extents))),
    "attnWorkspaceSizeFor": (ctypes.c_int, (_kernel, _tensors, ctypes.c_int, ctypes.POINTER(ctypes.c_size_t))),
    "attnLaunch": (ctypes.c_int, (_kernel, _tensors, ctypes.c_void_p, ctypes.c_void_p)),
    "attnLaunchReuseMetadata": (ctypes.c_int, (_kernel, _tensors, ctypes.c_void_p, ctypes.c_void_p)),
    "attnWarm": (ctypes.c_int, (_text, _text, _text)),
    "attnCacheList": (ctypes.c_int, (ctypes.c_int, _answer)),
    "attnCachePrune": (ctypes.c_int, (ctypes.c_int64, ctypes.POINTER(ctypes.c_int))),
    "attnPack": (ctypes.c_int, (_text, _text, ctypes.POINTER(_text), ctypes.c_int, _text)),
    "attnCompileCount": (ctypes.c_int64, ()),
    "attnSource": (_text, (_kernel,)),
    "attnResources": (_text, (_kernel,)),
    "attnSchedule": (_text, (_kernel,)),
}


def path():
    """Where libattnc.so is: `$ATTN_LIBRARY`, beside this package (a wheel), or in the build directory of a checkout."""
    given = os.environ.get("ATTN_LIBRARY")
    here = pathlib.Path(__file__).resolve().parent
    places = [pathlib.Path(given)] if given else [here / "lib" / "libattnc.so",
                                                  here.parents[1] / "build" / "lib" / "libattnc.so"]
    for place in places:
        if place.is_file():
            return place
    raise errors.Error("libattnc.so is in none of these places: " + ", ".join(map(str, places)) +
                       ("" if given else "; build it (./setup.sh), or say where it is by $ATTN_LIBRARY"))


@functools.cache
def library():
    where = path()
    try:
        loaded = ctypes.CDLL(str(where))
    except OSError as error:
        raise errors.Error(f"cannot load {where}: {error}") from None
    for name, (result, arguments) in _SIGNATURES.items():
        function = getattr(loaded, name, None)
        if function is None:
            raise errors.Error(f"{where} has no {name}: it is of another version than this package")
        function.restype, function.argtypes = result, arguments
    return loaded


def last_error():
    """The exception for what went wrong in this thread's last call."""
    c = library()
    kind = c.attnLastErrorKind()
    text = c.attnLastError().decode(errors="replace")
    whole_problem = ": note: see current operation: "
    lines = [line for line in text.split("\n") if whole_problem not in line]
    return _KINDS[kind if 0 <= kind < len(_KINDS) else 0]("\n".join(lines))


def check(status):
    if status:
        raise last_error()


def encoded(text):
    return None if text is None else text.encode()


def ask(function, *texts):
    """The answer of a call that gives JSON."""
    return ask_with(function, *map(encoded, texts))


def ask_with(function, *arguments):
    answer = ctypes.c_char_p()
    check(getattr(library(), function)(*arguments, ctypes.byref(answer)))
    return json.loads(answer.value)
