# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels lowered on the CPU target from a text with an old clause, and from the same text with the new one."""
import ctypes

from on_host import c

c.attnSource.restype = ctypes.c_char_p
sources = []
for clause in ("typical(16)", "expected_seqlen(16)", "typical(16)", "typical(16)"):
    kernel = ctypes.c_void_p()
    text = f"attn.problem @p mask(#attn.causal) layout(bshd) heads(2) dims(16) dtype(bf16) {clause}".encode()
    assert c.attnLower(text, None, b"cpu", ctypes.byref(kernel)) == 0, c.attnLastError()
    sources.append(c.attnSource(kernel))
    c.attnDestroy(kernel)
print("same source:", len(set(sources)) == 1 and len(sources[0]) > 100, flush=True)
