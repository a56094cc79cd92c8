# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The cache of compiled kernels on disk (docs/Cache.md), and packs of kernels (docs/Packs.md)."""
import ctypes

from ._library import ask_with, check, library
from ._text import integer
from .errors import ProblemError


def list(deep=False):
    """The roots of the cache, the writable one first, each a dictionary with path, read_only, problem and entries
    (`attnCacheList` in attn-c/Attn.h). With `deep` every file is read and checked."""
    return ask_with("attnCacheList", int(bool(deep)))


def verify():
    """The entries that are damaged, after reading every file."""
    return [entry for root in list(deep=True) for entry in root["entries"] if entry["problem"]]


def prune(bytes=None):
    """Removes bad entries, and the least recently used ones until at most `bytes` are left (None: $ATTN_CACHE_SIZE);
    returns how many went."""
    removed = ctypes.c_int()
    check(library().attnCachePrune(-1 if bytes is None else integer(bytes, "bytes"), ctypes.byref(removed)))
    return removed.value


def path():
    """The directory that takes new entries."""
    return next((root["path"] for root in list() if not root["read_only"]), None)


def pack(problems, file, targets="cpu", sizes=()):
    """Compiles problems and gradients, each of another name, into a file that libattnrt.so loads without compilers.

    targets: "cpu", "sm_80", "sm_90a", "sm_80:CHIP", several with commas; GPU targets need NVRTC and no GPU.
    sizes: dictionaries of sizes of calls, as {"batch": 4000, "total_q": 16000, "total_kv": 16000}, that are to have
    programs of their own beside the general one.
    """
    problems = [problems] if hasattr(problems, "text") else [*problems]
    targets = targets if isinstance(targets, str) else ",".join(targets)
    if not problems:
        raise ProblemError("expected problems for the pack, got: none")
    texts, names = [], set()
    for problem in problems:
        own = getattr(problem, "problem", None)  # of a gradient, whose text has both
        for op in (own, problem):
            if op is not None and op.name not in names:
                names.add(op.name)
                texts.append(op.text.removeprefix(own.text).strip() if own is not None and op is problem else op.text)
            elif op is problem:
                raise ProblemError(f"expected problems of different names, got: {problem.name!r} again "
                                   "(Problem(..., name=))")
    encoded = [",".join(f"{name}={integer(value, name)}" for name, value in size.items()).encode() for size in sizes]
    array = (ctypes.c_char_p * max(len(encoded), 1))(*encoded)
    check(library().attnPack(" ".join(texts).encode(), targets.encode(), array, len(encoded), str(file).encode()))
