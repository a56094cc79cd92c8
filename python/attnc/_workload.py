# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Passes that are timed, and tensors for them."""
import itertools
import re

from ._library import ask
from ._signature import Signature
from .errors import TensorError, UnsupportedError
from .problem import _Pass, gradient_text


class Pass(_Pass):
    """A pass of a module's text: `name`, of the problem `problem`."""
    __slots__ = ("name", "problem", "backward")

    def __init__(self, text, name, problem, backward):
        super().__init__(text)
        for slot, value in (("name", name), ("problem", problem), ("backward", backward)):
            object.__setattr__(self, slot, value)


def passes_of(text, name):
    """The problems of a text with their backward passes, or with a gradient where there is none: lists of `Pass`."""
    for op in [name] if name else dict.fromkeys(answer["name"] for answer in ask("attnSupported", text, None, "cpu")):
        described = ask("attnDescribe", text, op)
        if described["pass"] == "segments":
            raise UnsupportedError(f"expected problems and backward passes, got: the attn.segments @{op}")
        if described["pass"] == "backward":
            if name:
                yield [Pass(text, op, described["forward"], True)]
        elif described["backward"]:
            yield [Pass(text, op, op, False), *[Pass(text, own, op, True) for own in described["backward"]]]
        else:
            yield [Pass(text, op, op, False), Pass(gradient_text(text + "\n", op), f"{op}_gradient", op, True)]


class Sizes:
    """Lengths of sequences, for a problem whose queries, and whose keys, are packed or not."""

    def __init__(self, lengths_q, lengths_kv, packed_q, packed_kv):
        batch, q, kv = len(lengths_q), lengths_q[0], lengths_kv[0]
        self.lengths = {"q": lengths_q, "kv": lengths_kv}
        self.extents = {"batch": batch, "seqlen_q": q, "seqlen_kv": kv, "total_q": sum(lengths_q),
                        "total_kv": sum(lengths_kv)}
        self.options = {} if packed_q or packed_kv else {"batch": batch}  # of attnExplain
        for side, packed, lengths in (("q", packed_q, lengths_q), ("kv", packed_kv, lengths_kv)):
            self.options |= {f"lengths_{side}": lengths} if packed else {f"seqlen_{side}": lengths[0]}
        if len({*lengths_q}) > 1:
            shown = ",".join(map(str, lengths_q))
            self.text = shown if len(shown) <= 30 else f"{shown[:shown.rindex(',', 0, 20)]},... ({batch})"
        else:
            self.text = f"{batch} of {q}" + (f", {kv} keys" if q != kv else "")


class Inputs:
    """Tensors of the passes of a problem, made up but for run-time arrays of the mask, which are given."""

    def __init__(self, device, sizes, text, given):
        self.device, self.sizes, self.given, self.made = device, sizes, given, {}
        self.seeds = re.findall(r'\bdropout\([^")]*"(\w+)"', text)
        self.counted = True  # does the mask alone say which pairs are visible?

    def of(self, one, kernel):
        """Those of a pass, by name."""
        for tensor in Signature(one.text, one.name).inputs:
            name = tensor["name"]
            if name not in self.made:
                self.made[name] = self.integers(tensor) if tensor["dtype"] == "i32" else self.device.random(
                    [extent.value(self.sizes.extents) for extent in tensor["extents"]], tensor["dtype"])
        return {name: self.made[name] for name in kernel.names if name not in kernel.results}

    def integers(self, tensor):
        name = tensor["name"]
        kind, _, side = name.rpartition("_")
        if kind in ("cu_seqlens", "padded_offsets"):
            return self.device.integers(list(itertools.accumulate(self.sizes.lengths[side], initial=0)))
        if name in self.seeds:
            return self.device.integers([1, 2, 3, 4])
        self.counted = False
        if name not in self.given:
            extents = ", ".join(tensor["shape"])
            raise TensorError(f"expected --arrays=FILE.npz with {name!r}, int32 [{extents}], got: none")
        return self.device.array(self.given[name])


def prepared(one, target, inputs):
    """A pass's kernel for these inputs, its results, and a function that launches it once."""
    device, kernel = inputs.device, one.compile(target)
    tensors = inputs.of(one, kernel)
    kernel = kernel.specialize(tensors)
    results = {name: device.empty(shape.shape, shape.dtype) for name, shape in kernel.infer_shapes(tensors).items()}
    workspace = device.workspace(kernel.workspace_size(tensors))
    return kernel, results, lambda: kernel.launch({**tensors, **results}, workspace, device.stream)
