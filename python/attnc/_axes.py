# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the axes of a pass are: which of them may be computed in parts, by vmap and by shards."""
import re

from . import errors


class Axes:
    """What the axes of a pass are, by names: "b" (batch; "b0", "b1", ... of several), "h" (heads of q), "g" (heads of
    k), "n_..." (another size), "" (a constant).

    inputs, results: a tuple of names for each tensor.
    heads: of q and k. by_batch, by_head: may a part of them be computed alone?
    """

    def __init__(self, inputs, results, heads, by_batch, by_head):
        self.inputs, self.results, self.heads = tuple(inputs), tuple(results), heads
        self.by_batch, self.by_head = by_batch, by_head


def is_batch(name):
    return name[:1] == "b"


_EXPRESSION = re.compile(r'#attn\.(?:predicate|score)<"([^"]*)">')


def reads(text, letter):
    """Does an expression of a text use the number of the sequence (b) or head (h), other than as an index of arrays?"""
    return any(re.search(rf"\b{letter}\b", re.sub(r"\w+\[[^\[\]]*\]", "", found))
               for found in _EXPRESSION.findall(text))


def axes_of(text_of, name, heads, signature):
    """The axes of the pass `name` of text_of(heads), whose Signature is signature(text, name)."""
    text = text_of(heads)
    spec, by_head = signature(text, name), True
    random = " dropout(" in text  # which pairs are dropped goes by the numbers of sequence and head
    if random or "#attn.heads<" in text or re.search(r"#attn\.alibi(?!<\")", text) or reads(text, "h"):
        by_head = False
    try:
        other = signature(text_of((2 * heads[0], 2 * heads[1])), name)
    except errors.Error:
        other, by_head = spec, False
    names = {"inputs": [], "results": []}
    for kind in names:
        for tensor, doubled in zip(getattr(spec, kind), getattr(other, kind)):
            own = []
            for extent, twice in zip(tensor["extents"], doubled["extents"]):
                if extent.text == "batch":
                    own.append("b")
                elif extent.text != twice.text and extent.text in (str(heads[0]), str(heads[1])):
                    own.append("g" if extent.text == str(heads[1]) else "h")
                else:
                    by_head = by_head and extent.text == twice.text
                    own.append("n_" + extent.text.replace(" + ", "_") if extent.size else "")
            names[kind].append(tuple(own))
    return Axes(names["inputs"], names["results"], heads, not random and not reads(text, "b"), by_head)
