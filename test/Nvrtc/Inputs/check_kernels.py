# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checks of kernels.py without a compiler: which bytes of an ELF file count, and what is a fault."""
import struct
import sys

sys.path.insert(0, sys.argv[1])
from kernels import fault_of, sections_of, text_digest  # noqa: E402


def elf(sections):
    """An ELF file of sections by name."""
    names = b"\0" + b"".join(name.encode() + b"\0" for name in [*sections, ".shstrtab"])
    body, headers = b"", [struct.pack("<IIQQQQIIQQ", 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)]
    for name, bytes_ in [*sections.items(), (".shstrtab", names)]:
        start = names.index(b"\0" + name.encode() + b"\0") + 1
        headers.append(struct.pack("<IIQQQQIIQQ", start, 1, 0, 0, 64 + len(body), len(bytes_), 0, 0, 1, 0))
        body += bytes_
    head = struct.pack("<HHIQQQIHHHHHH", 2, 190, 1, 0, 0, 64 + len(body), 0, 64, 0, 0, 64,
                       len(headers), len(headers) - 1)
    return b"\x7fELF\x02\x01" + bytes(10) + head + body + b"".join(headers)


code, other = b"\x01\x02\x03\x04" * 8, b"\x05" * 32
assert sections_of(elf({".text.p": code, ".nv.info": other})) == {".text.p": code}
same = text_digest([elf({".text.p": code, ".debug_line": b"a"})])
assert text_digest([elf({".debug_line": b"bc", ".text.q": code})]) == same
assert text_digest([elf({".text.p": other})]) != same
assert text_digest([elf({".text.p": code}), elf({".text.q": code})]) != same

case = ("sm_90a", "full", "bshd", 64, 64, "bf16")
good, kernels = [168, 0, 0, 0, 0, 0], [("p", "1")]
assert fault_of(case, [good], kernels, kernels, ["text"]) == ""
for report in ([168, 8, 0, 0, 0, 0], [168, 0, 4, 0, 0, 0], [168, 0, 0, 4, 0, 0]):
    assert fault_of(case, [good, report], kernels, kernels, ["text"]) == "spills or a stack frame"
assert fault_of(case, [[168, 0, 0, 0, 0, 1]], kernels, kernels, ["text"]) == "products wait for one another"
assert fault_of(case, [[-1] * 6], kernels, kernels, ["text"]) == "the compiler reports no registers"
first = ("sm_90a", "full", "bshd first", 64, 64, "bf16")
assert "first choice" in fault_of(first, [good], kernels, [("p", "2")], ["text"])
assert not fault_of(first, [good], kernels, kernels, ["text"])
looks = ("sm_90a", "full", "thd backward looks 80", 64, 64, "bf16")
assert "single-pass" in fault_of(looks, [good], kernels, kernels, ["text"])
of_short = [("p_short", "1")]
assert not fault_of(looks, [good], of_short, of_short, ["attn::begin_roles();"])
assert "single-pass" in fault_of(looks, [good], kernels, kernels, ["attn::begin_roles();"])
grads = ("sm_90a", "short_grads", "thd padded", 64, 64, "bf16")
assert "one CTA" in fault_of(grads, [good], kernels, [("p", "1"), ("grads_preprocess", "3")], ["text"])
print("ok")
