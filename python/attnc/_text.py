# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checks and texts that masks, score modifiers and problems have in common."""
import operator
import re
import reprlib
import sys
import weakref

from .errors import ProblemError


def integer(value, what, least=None, most=None):
    """`value` as an int of `least` to `most`; anything with `__index__` is one, but no bool."""
    is_bool = isinstance(value, bool) if isinstance(value, int) else str(getattr(value, "dtype", "")).endswith("bool")
    try:
        number = None if is_bool else operator.index(value)
    except TypeError:
        number = None
    if number is None:
        raise ProblemError(f"expected {what} to be an integer, got: {reprlib.repr(value)}")
    if most is None and least is not None and number < least:
        raise ProblemError(f"expected {what} to be {least} or more, got: {number}")
    if most is not None and not least <= number <= most:
        raise ProblemError(f"expected {what} within [{_power(least)}, {_power(most)}], got: {number}")
    return number


def _power(number):
    """A number as text; a large power of 2 as one."""
    size = abs(number)
    if size < 2**16 or size & (size - 1):
        return str(number)
    return f"{'-' * (number < 0)}2^{size.bit_length() - 1}"


def number(value, what):
    """`value` as a float that is neither NaN nor infinite."""
    try:  # in torch.compile, a float may be a symbol, of which __float__ makes a constant
        result = value.__float__() if isinstance(value, float) else float(value)
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


def arrays_of(*wanted, others=""):
    """Names of arguments that are names or arrays, and the arrays by name.

    wanted: (argument, an array's name, what the argument is). others: what else it might have been, for the error.
    """
    names, bound = [identifier(value, what) if isinstance(value, str) else None for value, _, what in wanted], {}
    for i, (value, name, what) in enumerate(wanted):
        if names[i] is None:
            if not is_array(value):
                raise ProblemError(f"expected {what} to be {others}an array or the name of one, got: "
                                   f"{reprlib.repr(value)}")
            names[i] = _numbered(name, lambda own: own not in names)
            bound[names[i]] = _kept(value)
    return names, bound


_copies = {}  # of NumPy arrays, by their id: a weak reference, and the copy


def _kept(array):
    """A NumPy array as a copy that is not written, the same one as long as it has these values; others as they are."""
    numpy = sys.modules.get("numpy")
    if numpy is None or not isinstance(array, numpy.ndarray):
        return array
    key = id(array)
    owner, copy = _copies.get(key, (lambda: None, None))
    if owner() is not array or copy.dtype != array.dtype or not numpy.array_equal(copy, array):
        copy = array.copy()
        copy.setflags(write=False)
        _copies[key] = weakref.ref(array, lambda _: _copies.pop(key, None)), copy
    return copy


def is_array(value):
    """Is it an array of one dimension or more, or what a traced function has for one?"""
    return bool(getattr(value, "shape", ())) and hasattr(value, "dtype") or hasattr(value, "evaluate")


def _numbered(name, is_free):
    """The first of name, name_1, name_2, ... that is free."""
    own, count = name, 0
    while not is_free(own):
        count += 1
        own = f"{name}_{count}"
    return own


def apart(*values):
    """Values for one text: arrays that are bound to a name which stands for another array get names of their own.

    Names that the call gives stay as they are. Equal values get equal names.
    """
    if not any([value._bound for value in values]):
        return values
    given = {name for value in values for name in _names(value._text) if name not in value._bound}
    taken, result = {}, []
    for value in values:
        bound, moved = {}, []
        for name, array in value._bound.items():
            own = _numbered(name, lambda own: own not in given and taken.get(own, array) is array and (
                own == name or own not in value._bound))
            taken[own] = bound[own] = array
            if own != name:
                moved.append((name, own))
        result.append(type(value)(_renamed(value._text, tuple(moved)), bound) if moved else value)
    return result


def merged(*values):
    """The bound arrays of values that are `apart`."""
    bound = {}
    for value in values:
        bound.update(value._bound)
    return bound


_QUOTED = re.compile(r'(#attn\.(?:predicate|score)\s*<\s*)?"([^"]*)"')  # an expression, or a name
_ENTRY = re.compile(r"\b[A-Za-z_]\w*(?=\s*\[)")
_BARE_DOCUMENT = re.compile(r"#attn\.document\b(?!\s*<)")
_DOCUMENT = '#attn.document<"segment_ids_q", "segment_ids_kv">'


def _names(text):
    """The names of arrays in a text."""
    found = _QUOTED.findall(_BARE_DOCUMENT.sub(_DOCUMENT, text))
    return tuple([name for head, body in found for name in (_ENTRY.findall(body) if head else [body])])


def _renamed(text, moved):
    """A text with other names of arrays: pairs of old and new ones."""
    new = dict(moved)

    def renamed(found):
        head, body = found[1] or "", found[2]
        body = _ENTRY.sub(lambda word: new.get(word[0], word[0]), body) if head else new.get(body, body)
        return f'{head}"{body}"'

    if "segment_ids_q" in new or "segment_ids_kv" in new:
        text = _BARE_DOCUMENT.sub(_DOCUMENT, text)
    return _QUOTED.sub(renamed, text)


_names._dynamo_marked_constant = _renamed._dynamo_marked_constant = True  # torch.compile calls them as they are
