# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Score modifiers as values: what becomes of scale * dot(q, k) before the softmax, in the order of a problem's list.

Arrays are float32, contiguous, and named; the call gives them (`arrays={"bias": tensor}`), or they are bound by passing
the array in place of its name.
"""
from ._text import Value, arrays_of, attribute, diagonal, float_text, identifier, integer, number
from .errors import ProblemError


class Score(Value):
    """A score modifier. Made by the functions of this module."""

    __slots__ = ()

    def __repr__(self):
        return f"attnc.Score({self._text!r})"


def softcap(cap):
    """s becomes cap * tanh(s / cap)."""
    cap = number(cap, "a cap")
    if cap <= 0:
        raise ProblemError(f"expected a cap above 0, got: {cap!r}")
    return Score(f"#attn.softcap<{float_text(cap)}>")


def alibi(slopes=None, align="start"):
    """s becomes s - slope[h] * |D - k|. The slopes are ALiBi's own, or an array [heads] (or its name)."""
    if slopes is None:
        return Score(attribute("alibi", diagonal(align, "alibi")))
    (name,), bound = arrays_of((slopes, "slopes", "slopes"))
    return Score(attribute("alibi", f'"{name}"', diagonal(align, "alibi")), bound)


def bias(array, axes):
    """s becomes s + array[axes]; `axes` are some of "bhqk" in this order. An entry of -inf hides a key."""
    if not isinstance(axes, str):
        raise ProblemError(f"expected axes as a string, such as 'hqk', got: {axes!r}")
    (name,), bound = arrays_of((array, "bias", "bias"))
    return Score(attribute("bias", f'"{name}"', identifier(axes, "axes")), bound)


def relative_bias(table, reach, align="start"):
    """s becomes s + table[h, clamp(k - D, -reach, reach) + reach], with table [heads, 2 * reach + 1]."""
    (name,), bound = arrays_of((table, "table", "table"))
    reach = integer(reach, "the reach of a relative bias", 1, 2**20)
    return Score(attribute("relative_bias", f'"{name}"', str(reach), diagonal(align, "relative_bias")), bound)


def head_scale(scales):
    """s becomes s * scales[h], with scales [heads]."""
    (name,), bound = arrays_of((scales, "scales", "scales"))
    return Score(f'#attn.head_scale<"{name}">', bound)


def score(expression):
    """s becomes an expression, as `score("s - 0.1 * abs(q - k)")`, or what a Python function of (s, b, h, q, k)
    returns. See `#attn.score` in docs/generated/Attn.md."""
    if callable(expression):
        from .trace import trace_score
        return trace_score(expression)
    if not isinstance(expression, str) or '"' in expression:
        raise ProblemError(f"expected an expression as a string without quotes, got: {expression!r}")
    return Score(f'#attn.score<"{expression}">')
