# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""attnDescribe: what a binding learns of a module, and that it agrees with the tensors of compiled kernels."""
import ctypes as C
import json

from attnc_host import compile_problem, lib

PROBLEM = ('attn.problem @p mask(#attn.and<#attn.causal, #attn.block_map<"offsets", "columns", q = 64, kv = 64>>) '
           'layout(thd padded) heads(8, 2) dims(64, 32) dtype(bf16) score(#attn.bias<"b", h>)')
MODULE = f"""
{PROBLEM}
attn.backward @first of(@p) dlse
attn.backward @second of(@p) deterministic requires_grad(["b"])
attn.problem @other mask(#attn.full) layout(sbhd, bshd, bhsd, bshd) heads(4) dims(16) dtype(f16) outputs(o)
attn.problem @by_ids mask(#attn.causal) layout(thd padded) heads(4) dims(16) dtype(f16) segments(5)
attn.segments @ids mask(#attn.causal) segments(5) maps tiles(64)
"""


def describe(name, text=MODULE):
    out = C.c_char_p()
    failed = lib.attnDescribe(text.encode(), name and name.encode(), C.byref(out))
    return lib.attnLastError().decode() if failed else json.loads(out.value)


def line(d):
    shapes = ", ".join(f"{t['name']} {t['role']} {t['dtype']} [{', '.join(t['shape'])}]"
                       + (f" leading_dims {t['leading_dims']}" if t["leading_dims"] != "none" else "")
                       + (f" strided {t['strided']}" if t["strided"] else "") for t in d["tensors"])
    return f"{d['name']}: {d['pass']} of {d.get('forward')}, {d.get('backward')}, {d.get('dtype')}: {shapes}"


for name in ("p", "first", "other", "by_ids", "ids"):
    print(line(describe(name)))
for name in ("p", "first", "second", "other", "by_ids", "ids"):  # as kernels have them
    text = "\n".join(part for part in MODULE.strip().split("\n")
                     if f"@{name} " in part or ("@p " in part and name in ("first", "second")))
    kernel = compile_problem(text)
    names = [lib.attnTensorName(kernel, i).decode() for i in range(lib.attnTensorCount(kernel))]
    results = [lib.attnTensorIsResult(kernel, i) for i in range(len(names))]
    tensors = describe(name)["tensors"]
    assert names == [t["name"] for t in tensors], (name, names)
    assert results == [int(t["role"] == "result") for t in tensors], name
heads = ('attn.problem @p mask(#attn.predicate<"own[h] < some[b] + own_kv[g] + of_rows[g, q]">) layout(bshd) '
         "heads(8, 2) dims(16) dtype(f16)")
print(", ".join(f"{t['name']} {t['shape']}" for t in describe("p", heads)["tensors"] if t["role"] == "array"))
print(describe("none"))
print(describe(None))
print(describe("p", "attn.problem @p").split("\n")[0])
print(lib.attnDescribe(None, None, None), lib.attnLastError().decode())
