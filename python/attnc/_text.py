# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checks and texts that masks, score modifiers and problems have in common."""
import operator

from .errors import ProblemError


def integer(value, what, least=None):
    """`value` as an int of `least` or more; anything with `__index__` is one, but no bool."""
    if isinstance(value, bool):
        raise ProblemError(f"expected {what} to be an integer, got: {value!r}")
    try:
        number = operator.index(value)
    except TypeError:
        raise ProblemError(f"expected {what} to be an integer, got: {value!r}") from None
    if least is not None and number < least:
        raise ProblemError(f"expected {what} to be {least} or more, got: {number}")
    return number


def number(value, what):
    """`value` as a float that is neither NaN nor infinite."""
    try:
        result = float(value)
    except (TypeError, ValueError):
        raise ProblemError(f"expected {what} to be a number, got: {value!r}") from None
    if isinstance(value, (bool, str)) or result != result or result in (float("inf"), float("-inf")):
        raise ProblemError(f"expected {what} to be a finite number, got: {value!r}")
    return result


def float_text(value):
    """A float in the dialect's syntax, exactly."""
    text = repr(float(value))
    if "e" in text and "." not in text:  # 1e-05: MLIR wants a point
        text = text.replace("e", ".0e")
    return text


def identifier(name, what):
    """The name of a run-time array."""
    if not isinstance(name, str) or not (name.isascii() and name.isidentifier()):
        raise ProblemError(f"expected {what} to be an identifier, got: {name!r}")
    return name


def quoted(name, what):
    return f'"{identifier(name, what)}"'


def diagonal(align, what):
    """The dialect's word for where the diagonal of a rectangular score matrix starts; empty for its start."""
    if align not in ("start", "end"):
        raise ProblemError(f"expected {what}'s align to be 'start' or 'end', got: {align!r}")
    return "bottom_right" if align == "end" else ""


def heads_of(axis, what):
    """The dialect's word for arrays with entries for each head."""
    words = {None: "", "kv": "per_kv_head", "query": "per_head"}
    if axis not in words:
        raise ProblemError(f"expected {what}'s heads to be None, 'kv' or 'query', got: {axis!r}")
    return words[axis]


def attribute(name, *parameters):
    """`#attn.name<a, b>`; empty parameters are left out."""
    given = [p for p in parameters if p]
    return f"#attn.{name}<{', '.join(given)}>" if given else f"#attn.{name}"


class Value:
    """A frozen value of the dialect: its text, and arrays that were bound to names in it.

    Equal texts are equal values; bound arrays are compared by identity. A value without bound arrays can be pickled.
    """

    __slots__ = ("_text", "_bound")

    def __init__(self, text, bound=()):
        object.__setattr__(self, "_text", text)
        object.__setattr__(self, "_bound", dict(bound))

    def __setattr__(self, name, value):
        raise AttributeError(f"{type(self).__name__} is frozen: cannot set {name!r}")

    def __delattr__(self, name):
        raise AttributeError(f"{type(self).__name__} is frozen: cannot delete {name!r}")

    @property
    def arrays(self):
        """The arrays that are bound, by name. Arrays that are only named are given at the call."""
        return dict(self._bound)

    def __str__(self):
        return self._text

    def __eq__(self, other):
        if type(other) is not type(self):
            return NotImplemented
        return self._text == other._text and self._bound.keys() == other._bound.keys() and all(
            self._bound[name] is other._bound[name] for name in self._bound)

    def __hash__(self):
        return hash(self._text)

    def __reduce__(self):
        if self._bound:
            raise TypeError(f"cannot pickle a {type(self).__name__.lower()} with bound arrays "
                            f"({', '.join(self._bound)}); name them, and give them at the call")
        return type(self), (self._text,)

    def __copy__(self):
        return self

    def __deepcopy__(self, memo):
        return self


def apart(*values):
    """Values of which arrays of traced functions have names of their own."""
    if sum(bool(value._bound) for value in values) < 2:
        return values
    from .trace.arrays import apart as renamed
    return renamed(*values)


def merged(*values):
    """The bound arrays of several values. A name stands for one array."""
    bound = {}
    for value in values:
        for name, array in value._bound.items():
            if bound.setdefault(name, array) is not array:
                raise ProblemError(f"expected one array of the name {name!r}, got: two different ones")
    return bound
