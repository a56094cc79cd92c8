# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Evaluates the texts of traced masks and scores, by the dialect's documentation and nothing of the tracer."""
import re

import pytest
from attnc.trace import Array

np = pytest.importorskip("numpy")


class Reader:
    """Evaluates a mask's or score's text: `Reader(arrays, sizes).mask(text)` is a matrix [batch, heads, rows, keys]."""

    def __init__(self, arrays, sizes, score=None):
        self.arrays, self.sizes = arrays, sizes
        self.b, self.h, self.q, self.k = np.ix_(*map(range, sizes))
        self.s = score

    def mask(self, text):
        self.tokens = re.findall(r'"[^"]*"|#attn\.\w+|-?\d+|\w+|[<>,=]', text)
        result = self.node()
        assert not self.tokens, text
        return np.broadcast_to(result, self.sizes)

    def node(self):
        name = self.tokens.pop(0).removeprefix("#attn.")
        values, named, masks = [], {}, []
        if self.tokens and self.tokens[0] == "<":
            while self.tokens.pop(0) != ">":
                if self.tokens[0].startswith("#"):
                    masks.append(self.node())
                elif self.tokens[1] == "=":
                    key, _, value = self.tokens[:3]
                    named[key], self.tokens[:3] = value, []
                else:
                    values.append(self.tokens.pop(0))
        return getattr(self, name + "_")(masks, values, named)

    def entries(self, name, axes):
        """An array of such axes, in the order of b, h, q, k, as one over all of them."""
        values, shape = np.asarray(self.arrays[name.strip('"')]), [1, 1, 1, 1]
        assert values.dtype in (np.int32, np.float32) and values.ndim == len(axes)
        for axis, extent in zip(axes, values.shape):
            shape["bhqk".index(axis)] = extent
            assert extent == self.sizes["bhqk".index(axis)]
        return values.astype(np.int64 if values.dtype == np.int32 else np.float64).reshape(shape)

    full_ = lambda self, *_: np.full(self.sizes, True)
    and_ = lambda self, masks, *_: np.logical_and.reduce(np.broadcast_arrays(*masks))
    or_ = lambda self, masks, *_: np.logical_or.reduce(np.broadcast_arrays(*masks))
    not_ = lambda self, masks, *_: ~masks[0]
    causal_ = lambda self, *_: self.k <= self.q
    chunk_ = lambda self, masks, values, named: self.q // int(values[0]) == self.k // int(values[0])

    def band_(self, masks, values, named):
        left, right = (int(named.get(side, 2**30)) for side in ("left", "right"))
        return (self.q - left <= self.k) & (self.k <= self.q + right)

    def strided_(self, masks, values, named):
        return (self.q - self.k) % int(named["stride"]) == int(named.get("offset", 0))

    def prefix_(self, masks, values, named):
        return self.k < (self.entries(values[0], "b") if values[0].startswith('"') else int(values[0]))

    def global_rows_(self, masks, values, named):
        return self.q < (self.entries(values[0], "b") if values[0].startswith('"') else int(values[0]))

    def document_(self, masks, values, named):
        q, k = self.entries(values[0], "bq"), self.entries(values[1], "bk")
        return (q == k) & (q != 0)

    def interval(self, x, axis, values, named):
        axes = ("bh" if "per_head" in values else "b") + axis
        begin, end = (self.entries(named[side], axes) if side in named else other
                      for side, other in (("begin", -2**31), ("end", 2**31)))
        return (begin <= x) & (x < end)

    row_interval_ = lambda self, masks, values, named: self.interval(self.k, "q", values, named)
    column_interval_ = lambda self, masks, values, named: self.interval(self.q, "k", values, named)

    def predicate_(self, masks, values, named):
        return self.expression(values[0].strip('"'))

    # Expressions bind as in C.
    COMPARES = "==", "!=", "<=", ">=", "<", ">"
    LEVELS = [("||",), ("&&",), ("|",), ("^",), ("&",), COMPARES[:2], COMPARES[2:], ("<<", ">>"), ("+", "-"),
              ("*", "/", "%")]

    def expression(self, text):
        outer = getattr(self, "tokens", None)
        self.tokens = re.findall(r"\d+\.\d*(?:e[+-]?\d+)?|\w+|\|\||&&|<<|>>|[<>=!]=|[-+*/%<>!?:(),\[\]&|^~]", text)
        result = self.conditional()
        assert not self.tokens, self.tokens
        self.tokens = outer
        return result

    def take(self, *tokens):
        return self.tokens.pop(0) if self.tokens and self.tokens[0] in tokens else None

    def conditional(self):
        c = self.binary(0)
        if not self.take("?"):
            return c
        a = self.conditional()
        assert self.take(":")
        return np.where(c, a, self.conditional())

    def binary(self, level):
        if level == len(self.LEVELS):
            return self.unary()
        a = self.binary(level + 1)
        while sign := self.take(*self.LEVELS[level]):
            b = self.binary(level + 1)
            real = np.asarray(a).dtype.kind == "f" or np.asarray(b).dtype.kind == "f"
            a = {"||": np.logical_or, "&&": np.logical_and, "<=": np.less_equal, ">=": np.greater_equal, "<": np.less,
                 ">": np.greater, "==": np.equal, "!=": np.not_equal, "+": np.add, "-": np.subtract, "*": np.multiply,
                 "/": np.divide if real else np.floor_divide, "%": np.mod, "&": np.bitwise_and, "|": np.bitwise_or,
                 "^": np.bitwise_xor, "<<": np.left_shift, ">>": np.right_shift}[sign](a, b)
            if sign in self.COMPARES:
                break
        return a

    def unary(self):
        if self.take("!"):
            return np.logical_not(self.unary())
        if self.take("-"):
            return -self.unary()
        if self.take("~"):
            return ~self.unary()
        if self.take("("):
            result = self.conditional()
            assert self.take(")")
            return result
        word = self.tokens.pop(0)
        if word[0].isdigit():
            return float(word) if "." in word or "e" in word else int(word)
        if self.take("["):
            axes = ""
            while not axes or self.take(","):
                axes += self.tokens.pop(0)
            assert self.take("]")
            return self.entries(word, axes if self.s is not None or axes in "bh" else "b" + axes)
        if self.take("("):
            arguments = [self.conditional()]
            while self.take(","):
                arguments.append(self.conditional())
            assert self.take(")")
            return {"min": np.minimum, "max": np.maximum, "abs": np.abs, "exp": np.exp, "log": np.log, "sqrt": np.sqrt,
                    "tanh": np.tanh}[word](*arguments)
        return {"b": self.b, "h": self.h, "q": self.q, "k": self.k, "s": self.s}[word]

SIZES = (2, 3, 13, 11)


def evaluated_arrays(value, sizes):
    return {name: of.evaluate(sizes[0], sizes[1], sizes[1], *sizes[2:]) for name, of in value.arrays.items()}


def shown(mask, sizes=SIZES):
    """What a traced mask shows."""
    return Reader(evaluated_arrays(mask, sizes), sizes).mask(str(mask))


def positions(sizes=SIZES):
    return np.ix_(*map(range, sizes))


def as_numpy(function):
    """The function, to be called with arrays of positions: what it captures are NumPy's arrays."""
    names = {name: value.values for name, value in function.__globals__.items() if isinstance(value, Array)}
    return type(function)(function.__code__, {**function.__globals__, **names}, function.__name__)


def scored(score, s, sizes=SIZES):
    """What a traced score modifier makes of scores."""
    reader = Reader(evaluated_arrays(score, sizes), sizes, s)
    for name, text in re.findall(r'#attn\.(\w+)<((?:"[^"]*"|[^">])*)>', str(score)):
        first, *rest = text.split(", ") if name != "score" else [text]
        if name == "score":
            reader.s = reader.expression(first.strip('"'))
        elif name == "softcap":
            reader.s = float(first) * np.tanh(reader.s / float(first))
        elif name == "bias":
            reader.s = reader.s + reader.entries(first, rest[0])
        elif name == "head_scale":
            reader.s = reader.s * reader.entries(first, "h")
        else:
            reach = int(rest[0])
            place = np.clip(reader.k - reader.q, -reach, reach) + reach
            reader.s = reader.s + np.asarray(reader.arrays[first.strip('"')])[reader.h, place]
    return np.broadcast_to(reader.s, sizes)
