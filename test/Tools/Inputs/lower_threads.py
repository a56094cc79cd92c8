# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Threads that lower different problems, and threads that want one kernel."""
import ctypes as C
import threading
from concurrent.futures import ThreadPoolExecutor

from attnc_host import lib

lib.attnSource.restype = C.c_char_p
lib.attnSource.argtypes = lib.attnBuild.argtypes = [C.c_void_p]
lib.attnLower.argtypes = lib.attnCompile.argtypes = [C.c_char_p, C.c_char_p, C.c_char_p, C.POINTER(C.c_void_p)]
MASKS = ["#attn.full", "#attn.causal", "#attn.and<#attn.causal, #attn.document>",
         "#attn.or<#attn.prefix<4>, #attn.band<left = 127, right = 0>>"]
PROBLEMS = [(f"attn.problem @p mask({mask}) layout({layout}) heads(4, 2) dims({dim}) dtype(bf16)\n"
             "attn.backward @g of(@p)", target)
            for mask in MASKS for layout, dim in (("thd", 64), ("bshd", 128))
            for target in (b"cpu", b"sm_80", b"sm_90a")]
together = threading.Barrier(8)


def lower(text, target):
    kernel = C.c_void_p()
    assert lib.attnLower(text.encode(), b"g", target, C.byref(kernel)) == 0, lib.attnLastError()
    source = lib.attnSource(kernel)
    lib.attnDestroy(kernel)
    return source


def lower_all(first):
    """All problems, each thread from another one on."""
    together.wait()
    order = PROBLEMS[first:] + PROBLEMS[:first]
    found = {problem: lower(*problem) for problem in order}
    return [found[problem] for problem in PROBLEMS]


alone = [lower(*problem) for problem in PROBLEMS]
assert len(set(alone)) == len(PROBLEMS) and all(alone)
with ThreadPoolExecutor(8) as pool:
    for found in pool.map(lower_all, range(0, 24, 3)):
        assert found == alone
print(f"{len(PROBLEMS)} problems, 8 threads: the same texts")

before, one = lib.attnCompileCount(), C.c_void_p()
assert lib.attnLower(b"attn.problem @one mask(#attn.causal) layout(bshd) heads(1) dims(8) dtype(bf16)", None, b"cpu",
                     C.byref(one)) == 0


def build(_):
    together.wait()
    return lib.attnBuild(one)


with ThreadPoolExecutor(8) as pool:
    assert not any(pool.map(build, range(8)))
print(f"8 threads build one kernel: {lib.attnCompileCount() - before} compiled")
