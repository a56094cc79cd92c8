# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""$ATTN_VALIDATE on the CPU, through ctypes: right launches, and launches whose results are spoilt by another result
that overlaps them."""
import ctypes

import numpy as np
from on_host import aligned, bind, c, compiled

rng = np.random.default_rng(0)


def launch(what, kernel, arrays, overlap=None, strides=()):
    """`overlap`: two results; the first one begins 16 bytes behind the other one's beginning."""
    tensors, workspace = bind(kernel, arrays)
    names = [c.attnTensorName(kernel, i).decode() for i in range(c.attnTensorCount(kernel))]
    if overlap:
        tensors[names.index(overlap[0])].data = arrays[overlap[1]][0].ctypes.data + 16
    for name, numbers in strides:
        arrays[name + " strides"] = tensors[names.index(name)].strides = (ctypes.c_int64 * len(numbers))(*numbers)
    failed = c.attnLaunch(kernel, tensors, ctypes.c_void_p(workspace.ctypes.data), None) != 0
    print(what + ":", c.attnLastError().decode() if failed else "right")


def numbers(shape, dtype):
    array = aligned(shape, np.uint16)
    values = rng.standard_normal(shape).astype(np.float32)
    array[...] = values.view(np.uint32) >> 16 if dtype == "bf16" else values.astype(np.float16).view(np.uint16)
    return array


def dense(dtype, s, heads=4, kv_heads=2, d=16, extra=()):
    code = 0 if dtype == "bf16" else 1
    arrays = {name: (numbers((2, s, heads, d), dtype), code) for name in ("q", "o", "do", "dq")}
    arrays.update({name: (numbers((2, s + s // 16, kv_heads, d), dtype), code) for name in ("k", "v", "dk", "dv")})
    arrays["lse"] = (aligned((2, heads, s), np.float32), 2)
    arrays.update(extra)
    return arrays


for dtype, scores, learned in (("bf16", "", ""), ("f16", "score([#attn.softcap<5.0>])", ""),
                               ("bf16", 'score([#attn.bias<"b", hk>])', ' requires_grad(["b"])')):
    text = f"attn.problem @p mask(#attn.causal) layout(bshd) heads(4, 2) dims(16) dtype({dtype}) {scores}"
    arrays = dense(dtype, 160, extra={name: (aligned((4, 170), np.float32), 2) for name in ("b", "db")})
    launch("forward", compiled(text.encode()), arrays)
    backward = compiled((text + "\nattn.backward @grads of(@p)" + learned).encode())
    launch("backward", backward, arrays)
    launch("spoilt", backward, arrays, ("dk", "dv"))

ids = np.repeat(np.arange(1, 9, dtype=np.int32), 32)[None]
arrays = {name: (ids, 3) for name in ("ids_q", "ids_kv")}
for name, count in dict(seqlens_q=8, seqlens_kv=8, offsets_q=9, offsets_kv=9, cu_seqlens_q=9, cu_seqlens_kv=9,
                        padded_offsets_q=9, padded_offsets_kv=9, tiles_q=14, tile_count=1, status=1).items():
    shape = (1, count) if name.startswith(("seq", "off")) else (count,)
    arrays[name] = (aligned(shape, np.int32), 3)
segments = compiled(b"attn.segments @rows mask(#attn.full) segments(8) tiles(64)")
launch("segments", segments, arrays)
launch("spoilt", segments, arrays, ("padded_offsets_q", "padded_offsets_kv"))

empty = dense("bf16", 0, extra={name: (aligned((2, 0), np.int32), 3) for name in ("segment_ids_q", "segment_ids_kv")})
documents = compiled(b"attn.problem @d mask(#attn.document) layout(bshd) heads(4, 2) dims(16) dtype(bf16)")
launch("empty", documents, empty, strides=[("segment_ids_q", [1, 1]), ("segment_ids_kv", [1, 1])])
