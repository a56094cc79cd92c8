# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tensors of a pass and their shapes (attnDescribe), without a kernel and without a framework."""
import re

from . import _library


def _floor_div(a, b):
    return a // b


def _ceil_div(a, b):
    return -(-a // b)


class Extent:
    """An extent of attnDescribe, for integers and symbolic integers."""

    def __init__(self, text, functions):
        self.text, self.size, self.less, self.functions = text, None, 0, functions
        if found := re.fullmatch(r"([a-z_]\w*)( \+ 1)?", text):  # `n` or `n + 1`: the extent makes n known
            self.size, self.less = found[1], 1 if found[2] else 0
        self.code = compile(text, "<extent>", "eval")

    def value(self, sizes):
        return eval(self.code, self.functions, sizes)  # texts are libattnc.so's own


class Signature:
    """The tensors of a pass: inputs and results, and shapes of results from those of inputs.

    `smaller` and `larger` are min and max of the framework's symbolic integers.
    """

    def __init__(self, text, name, smaller=min, larger=max):
        functions = {"floor_div": _floor_div, "ceil_div": _ceil_div, "round_up": lambda a, b: _ceil_div(a, b) * b,
                     "min": smaller, "max": larger, "__builtins__": {}}
        described = _library.ask("attnDescribe", text, name)
        self.tensors = described["tensors"]
        for tensor in self.tensors:
            tensor["extents"] = [Extent(e, functions) for e in tensor["shape"]]
        self.inputs = [t for t in self.tensors if t["role"] != "result"]
        self.results = [t for t in self.tensors if t["role"] == "result"]
        self.derived = [(s["name"], Extent(s["value"], functions)) for s in described["sizes"]]

    def sizes(self, shapes):
        """The sizes that shapes of inputs make known, and the dimensions ahead of ids."""
        sizes, leading = {}, ()
        for shape, spec in zip(shapes, self.inputs, strict=True):
            own = len(spec["extents"])
            if spec["leading_dims"] == "all" and len(shape) >= own:
                leading = tuple(shape[:len(shape) - own])
                rows = 1
                for extent in leading:
                    rows = rows * extent
                sizes.setdefault("id_rows", rows)
            for extent, known in zip(reversed(spec["extents"]), reversed(shape)):
                if extent.size:
                    sizes.setdefault(extent.size, known - extent.less)
        for name, value in self.derived:
            sizes.setdefault(name, value.value(sizes))
        return sizes, leading

    def result_shapes(self, shapes):
        """The shape of each result."""
        sizes, leading = self.sizes(shapes)
        return [[*(leading if spec["leading_dims"] == "all" else ()), *(e.value(sizes) for e in spec["extents"])]
                for spec in self.results]
