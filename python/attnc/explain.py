# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Answers about masks and problems: pictures and counts of tiles, supported targets, equal masks."""
import collections
import html
import json

from ._library import ask
from .errors import ProblemError


class Explanation:
    """Which tiles a kernel visits, what that costs, and which schedule it has (`attnExplain` in attn-c/Attn.h).

    text: all of it for a reader. svg: a drawing of the tile map. schedule: the kernels of the forward pass, and why.
    counts: tiles (visited, full, partial, empty) and pairs (visible) of all sequences and heads.
    flops, bytes, milliseconds: of the forward pass; the time is a lower bound.
    backward: name and schedule of each backward pass. data: the whole answer, as a dictionary.
    """

    def __init__(self, data):
        self.data = data
        self.text, self.svg, self.schedule = data["text"], data["svg"], data["schedule"]
        self.counts, self.flops, self.bytes = data["counts"], data["flops"], data["bytes"]
        self.milliseconds, self.backward = data["milliseconds"], data["backward"]

    @classmethod
    def ask(cls, text, name, target, options):
        tile = options.get("tile")
        if isinstance(tile, (tuple, list)):
            options = {**options, "tile": "x".join(map(str, tile))}
        try:
            encoded = json.dumps({**options, "svg": True})
        except TypeError:
            raise ProblemError(f"expected integers, numbers and lists as options, got: {options!r}") from None
        return cls(ask("attnExplain", text, name, target, encoded))

    def __str__(self):
        return self.text

    def __repr__(self):
        return f"<attnc.Explanation of {self.data['mask']}: {self.schedule}>"

    def _repr_html_(self):
        counts = self.counts
        line = (f"{counts['visited']} of {counts['tiles']} tiles visited ({counts['full']} full, {counts['partial']} "
                f"partial), {counts['visible']} of {counts['pairs']} pairs visible")
        return (f"<figure style='margin:0'>{self.svg}<figcaption><code>{html.escape(self.data['mask'])}</code><br>"
                f"{html.escape(line)}<br>{html.escape(self.schedule)}</figcaption></figure>")


class Support(collections.namedtuple("Support", "name target supported reason nearest")):
    """Whether a target has a kernel for a pass: `supported`, else the `reason`, and the text of the `nearest` that has
    one."""

    __slots__ = ()

    def __bool__(self):
        return self.supported


class Equivalence:
    """Whether two masks show the same pairs for all lengths; true if they do.

    verdict: "equal", "different" or "unknown". where: a pair that one shows and the other hides, if they are different.
    """

    def __init__(self, data):
        self.data, self.verdict, self.text = data, data["verdict"], data["text"]
        self.where, self.forms = data.get("where"), tuple(data["forms"])

    def __bool__(self):
        return self.verdict == "equal"

    def __str__(self):
        return self.text

    def __repr__(self):
        return f"<attnc.Equivalence: {self.verdict}>"


def equiv(a, b):
    """Compares what two masks mean, not their texts: an `attnc.Equivalence`."""
    return Equivalence(ask("attnEquiv", str(a), str(b)))
