# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tensors whose rows lie 2^24 elements and more apart, or backwards, on the CPU: results of their contiguous copies,
bit by bit."""
import ctypes

import numpy as np
from on_host import aligned, bind, c, compiled

rng = np.random.default_rng(0)
shape = (5, 2, 2, 16)
kernel = compiled(b"attn.problem @p mask(#attn.causal) layout(sbhd) heads(2) dims(16) dtype(bf16)")
base = {name: (aligned(shape, np.uint16), 0) for name in "qkvo"}
for name in "qkv":
    base[name][0][...] = rng.standard_normal(shape).astype(np.float32).view(np.uint32) >> 16


def launch(arrays, rows=None):
    tensors, workspace = bind(kernel, {**arrays, "lse": (aligned((2, 2, 5), np.float32), 2)})
    strides = (ctypes.c_int64 * 4)(rows or 64, 32, 16, 1)
    for slot in tensors[:4]:
        slot.strides = strides
    if c.attnLaunch(kernel, tensors, ctypes.c_void_p(workspace.ctypes.data), None):
        return c.attnLastError().decode()
    return arrays["o"][0].copy()


expected = launch(base)
for rows in (1 << 24, (1 << 25) + 8, -64):
    room = np.lib.stride_tricks.as_strided
    arrays, kept = {}, []
    for name in "qkvo":  # memory between rows is never touched
        memory = np.empty(abs(rows) * 4 + 128, np.uint16)
        start = -memory.ctypes.data % 16 // 2 + (4 * -rows if rows < 0 else 0)
        kept.append(memory)
        arrays[name] = (room(memory[start:], shape, (rows * 2, 64, 32, 2)), 0)
        arrays[name][0][...] = base[name][0]
    got = launch(arrays, rows)
    print(f"{rows}:", got if isinstance(got, str) else "right" if np.array_equal(got, expected) else "wrong")
