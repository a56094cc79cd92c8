# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the GPU compiler is given for a case, and what it makes of it: a row of the ledger.

`Builder.inputs_of` compiles nothing. `Builder.build` goes through the kernel cache of the
build folder, so a kernel is compiled once for all runs of tests and of `ledger.py`.
"""
import hashlib
import json
import os
import struct
import subprocess
from typing import NamedTuple

from cases import name_of, text_of


class Row(NamedTuple):
    """One line of the ledger. Lists have a number for each kernel of the program, joined by spaces."""
    case: str
    source: str  # digest of target, flags, headers and sources, those of fallbacks too
    compiler: str  # NVRTC's version
    text: str  # digest of the machine code
    registers: str
    stack: str
    spills: str  # bytes stored and loaded
    fault: str  # empty for a good kernel


class Inputs(NamedTuple):
    """What decides the machine code of a case."""
    source: str
    compiler: str
    first: list  # kernels of the first choice: (name, digest of its source)


def short(digest):
    return digest[:16]  # 64 bits, of some hundred rows


def sections_of(cubin):
    """The bytes of each section of machine code of an ELF file, by name."""
    assert cubin[:6] == b"\x7fELF\x02\x01", "expected a 64-bit little-endian ELF file"
    at, = struct.unpack_from("<Q", cubin, 0x28)
    size, count, names = struct.unpack_from("<HHH", cubin, 0x3A)
    headers = [struct.unpack_from("<IIQQQQ", cubin, at + i * size) for i in range(count)]
    strings = headers[names][4]
    sections = {}
    for name, _, _, _, offset, length in headers:
        start = strings + name
        name = cubin[start:cubin.index(b"\0", start)].decode()
        if name.startswith(".text"):
            sections[name] = cubin[offset:offset + length]
    return sections


def text_digest(cubins):
    """Of the machine code alone: names, line tables and the order of sections do not count."""
    digest = hashlib.sha256()
    for cubin in cubins:
        sections = sections_of(cubin)
        assert sections, "expected a section `.text.<kernel>`"
        for code in sorted(sections.values()):
            digest.update(struct.pack("<Q", len(code)) + code)
    return short(digest.hexdigest())


class Builder:
    """Asks `attn-cache` of a build folder; problems are written to `folder`."""

    def __init__(self, build, folder):
        self.tool = os.path.join(build, "bin", "attn-cache")
        self.environment = dict(os.environ, ATTN_CACHE_DIR=os.path.join(build, "test", "kernels"))
        self.folder = folder
        os.makedirs(folder, exist_ok=True)

    def ask(self, command, case, *options):
        path = os.path.join(self.folder, name_of(case) + ".mlir")
        with open(path, "w", encoding="utf-8") as file:
            file.write(text_of(case))
        run = subprocess.run([self.tool, command, "--target", case[0], path, *options], env=self.environment,
                             capture_output=True, text=True, check=False)
        if run.returncode:
            raise RuntimeError(f"{name_of(case)}: {run.stderr.strip() or f'exit status {run.returncode}'}")
        return [json.loads(line) for line in run.stdout.splitlines()]

    def inputs_of(self, case):
        keys = self.ask("keys", case)
        parts = [[key[field] for field in ("target", "flags", "headers", "source")] for key in keys]
        digest = hashlib.sha256(json.dumps(parts).encode()).hexdigest()
        return Inputs(source=short(digest), compiler=keys[0]["compiler"],
                      first=[(key["kernel"], key["source"]) for key in keys if key["fallback"] == 0])

    def build(self, case, inputs=None):
        """The case's row, compiled if the kernel cache does not have it."""
        inputs = inputs or self.inputs_of(case)
        entries = []
        for line in self.ask("warm", case, "--json"):
            assert line["entry"], f"{name_of(case)}: expected an entry in `{self.environment['ATTN_CACHE_DIR']}`"
            with open(os.path.join(line["entry"], "entry.json"), encoding="utf-8") as file:
                entries.append((line, json.load(file)))
        cubins, sources = [], []
        for line, _ in entries:
            with open(os.path.join(line["entry"], "kernel.cubin"), "rb") as file:
                cubins.append(file.read())
            with open(os.path.join(line["entry"], "kernel.cu"), encoding="utf-8") as file:
                sources.append(file.read())
        reports = [entry["report"] for _, entry in entries]  # registers, stack, stores, loads, static, serialized

        def column(of):
            return " ".join(str(of(report)) for report in reports)

        compiled = [(line["kernel"], entry["key"]["source"]) for line, entry in entries]
        return Row(case=name_of(case), source=inputs.source, compiler=inputs.compiler, text=text_digest(cubins),
                   registers=column(lambda report: report[0]), stack=column(lambda report: report[1]),
                   spills=column(lambda report: report[2] + report[3]),
                   fault=fault_of(case, reports, inputs.first, compiled, sources))


def fault_of(case, reports, first, compiled, sources):
    """What is wrong with the kernels of a case; empty if nothing is."""
    if not reports or any(report[0] < 0 for report in reports):
        return "the compiler reports no registers"
    if any(report[1] or report[2] or report[3] for report in reports):
        return "spills or a stack frame"
    if any(report[5] for report in reports):
        return "products wait for one another"
    layout = case[2]
    roles = [name for (name, _), source in zip(compiled, sources) if "attn::begin_roles" in source]
    if " looks " in layout and not any(name.endswith("_short") for name in roles):  # a CTA for each short sequence
        return "softmax is not single-pass"
    names, first_names = ([name for name, _ in kernels] for kernels in (compiled, first))
    if "_grads_" in name_of(case) and "grads_preprocess" in names and "grads_preprocess" not in first_names:
        return "one CTA per sequence does not fit, and tiles are taken"
    if "first" in layout and compiled != first:
        return "the first choice does not fit, and a fallback is taken"
    return ""
