# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Traced functions against the functions themselves.

Masks are read by `Reader` below, which knows the dialect's documentation and nothing of the tracer, and compared with
the function evaluated on positions, by NumPy or by torch's vmap as flex_attention does it. Some are run on the CPU
target, and compared with attention in float64.
"""
import math
import random
import re
import subprocess
import sys
import textwrap

import attnc
import pytest
from attnc.trace import Array, apart, array, select, trace_mask, trace_score

np = pytest.importorskip("numpy")


# Masks by their texts ------------------------------------------------------------------------------------------------

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
    LEVELS = [("||",), ("&&",), ("<=", ">=", "==", "!=", "<", ">"), ("+", "-"), ("*", "/", "%")]

    def expression(self, text):
        outer = getattr(self, "tokens", None)
        self.tokens = re.findall(r"\d+\.\d*(?:e[+-]?\d+)?|\w+|\|\||&&|[<>=!]=|[-+*/%<>!?:(),\[\]]", text)
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
                 "/": np.divide if real else np.floor_divide, "%": np.mod}[sign](a, b)
            if level == 2:
                break
        return a

    def unary(self):
        if self.take("!"):
            return np.logical_not(self.unary())
        if self.take("-"):
            return -self.unary()
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


# Functions that are made up ------------------------------------------------------------------------------------------

TABLES = {
    "of_q": [3, -2, 0, 7, 7, 1, 0, -5, 12, 2, 2, 0, 4], "of_k": [1, 0, 0, -2, 5, 7, 7, 3, 11, -1, 2],
    "of_b": [4, 9], "of_h": [1, 5, 8], "of_bq": [[0, 0, 1, 1, 1, 2, 2, 2, 2, -1, 3, 3, 3], [5] * 7 + [0] * 6],
    "of_bk": [[0, 1, 1, 1, 2, 2, -1, 3, 3, 3, 3], [5] * 6 + [0] * 5], "of_bh": [[2, 0, 6], [-3, 4, 1]],
    "flags_q": [True, False, False] * 4 + [True], "flags_k": [False, True, True, False] * 2 + [True] * 3,
    "reals_b": [2.5, 7.0], "reals_q": [0.5, 3.0, -1.25, math.nan, 4.0, 7.5, 2.0, 0.0, -0.0, math.inf, 1.0, 6.0, 9.5],
    "reals_k": [0.5, -0.0, 4.0, math.nan, 1.0, 2.0, 8.0, 6.5, -math.inf, 3.0, 7.5],
}
PLACES = {"of_q": "q", "of_k": "k", "of_b": "b", "of_h": "h", "of_bq": "b, q", "of_bk": "b, k", "of_bh": "b, h",
          "flags_q": "q", "flags_k": "k", "reals_b": "b", "reals_q": "q", "reals_k": "k"}


class Functions:
    """Sources of functions, made up at random."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.one_of = self.random.choice

    def table(self, *words):
        word = self.one_of(words)
        return f"{word}[{PLACES[word]}]"

    def constant(self):
        return str(self.random.randint(-3, 14))

    def integer(self, leaf, depth=2):
        """Of what `leaf` gives, and constants."""
        inner = lambda: self.integer(leaf, depth - 1)  # noqa: E731
        if depth == 0 or self.random.random() < 0.25:
            return leaf() if self.random.random() < 0.8 else self.constant()
        return self.one_of([
            lambda: f"({inner()} {self.one_of('+-')} {inner()})", lambda: f"({inner()} * {self.constant()})",
            lambda: f"({inner()} {self.one_of(['//', '%'])} {self.random.randint(1, 6)})", lambda: f"np.abs({inner()})",
            lambda: f"np.{self.one_of(['minimum', 'maximum'])}({inner()}, {inner()})",
            lambda: f"np.where({inner()} < {inner()}, {inner()}, {inner()})"])()

    def one_side(self, axis):
        words = [word for word in PLACES if word.startswith("of") and (axis in PLACES[word] or "q" not in PLACES[word]
                                                                       and "k" not in PLACES[word])]
        return self.integer(lambda: self.one_of([lambda: axis, lambda: axis, lambda: self.table(*words), lambda: (
            f"({self.table(*words)} {self.one_of('^&|*')} {axis})")])())

    def atom(self):
        sign = self.one_of(["<", "<=", ">", ">=", "==", "!="])
        axis = self.one_of("qk")
        if self.random.random() < 0.4:
            left = self.one_of(["q", "k", "q - k", "k - q", "abs(q - k)", "q // 4 - k // 4", "(q - k) % 3",
                                "q % 5 - k % 5", "q + k", "2 * q - 2 * k", "k // 3"])
            return f"({left} {sign} {self.constant()})"
        return self.one_of([
            lambda: f"({self.one_side('q')} {sign} {self.one_side('k')})",
            lambda: f"({self.integer(lambda: self.one_of('qkhb'))} {sign} {self.constant()})",
            lambda: f"({self.one_side(axis)} {sign} {self.constant()})", lambda: self.table("flags_q", "flags_k"),
            lambda: f"({axis} {sign} {self.one_side('k')})", lambda: f"({axis} {sign} {self.one_side('q')})",
            lambda: f"({axis} {sign} {self.table('of_b', 'of_h', 'of_bh', 'reals_b', 'reals_q', 'reals_k')})",
            lambda: f"({self.table('reals_q')} {sign} {self.table('reals_k')})",
            lambda: "(of_bq[b, q] == of_bk[b, k])", lambda: "(q // 4 == k // 4)"])()

    def condition(self, depth=3):
        inner = lambda: self.condition(depth - 1)  # noqa: E731
        if depth == 0 or self.random.random() < 0.3:
            return self.atom()
        return self.one_of([lambda: f"({inner()} & {inner()})"] * 3 + [lambda: f"({inner()} | {inner()})"] * 2 + [
            lambda: f"(~{inner()})", lambda: f"({inner()} ^ {inner()})", lambda: f"({inner()} == {inner()})",
            lambda: f"np.where({inner()}, {inner()}, {inner()})"])()


def evaluated(source, tables):
    return eval(f"lambda b, h, q, k: {source}", {"np": np, **tables})


ARRAYS = {name: array(values) for name, values in TABLES.items()}
PLAIN = {name: np.array(values) for name, values in TABLES.items()}


@pytest.mark.parametrize("library, seeds", [("numpy", range(500)), ("torch", range(500, 600))])
def test_made_up_masks(library, seeds):
    refused, arrays = 0, ARRAYS
    if library == "torch":
        torch = pytest.importorskip("torch")
        arrays = {name: torch.tensor(values, dtype=torch.float32 if name.startswith("reals") else None)
                  for name, values in TABLES.items()}
    for seed in seeds:
        source = Functions(seed).condition()
        with np.errstate(all="ignore"):
            expected = np.broadcast_to(evaluated(source, PLAIN)(*positions()), SIZES)
        try:
            mask = trace_mask(evaluated(source, arrays))
        except attnc.TraceError as error:  # the language has no such thing
            assert any(word in str(error) for word in ("mix q and k", "too long", "meet in")), f"{source}: {error}"
            refused += 1
            continue
        np.testing.assert_array_equal(shown(mask), expected, err_msg=f"{seed}: {source}\n{mask}")
        assert trace_mask(evaluated(source, arrays)) == mask
    assert refused < len(seeds) / 10


# Families ------------------------------------------------------------------------------------------------------------

IDS_Q, IDS_KV = "traced_ids_q", "traced_ids_kv"
of_q, of_k, of_b, of_h, of_bq, of_bk = (ARRAYS[name] for name in ("of_q", "of_k", "of_b", "of_h", "of_bq", "of_bk"))
FAMILIES = [
    (lambda b, h, q, k: True, attnc.full()),
    (lambda b, h, q, k: (q >= 0) | (k < 4), attnc.full()),
    (lambda b, h, q, k: False, ~attnc.full()),
    (lambda b, h, q, k: q >= k, attnc.causal()),
    (lambda b, h, q, k: k <= q, attnc.causal()),
    (lambda b, h, q, k: ~(q < k), attnc.causal()),
    (lambda b, h, q, k: q - k > -1, attnc.causal()),
    (lambda b, h, q, k: 2 * (k - q) < 1, attnc.causal()),
    (lambda b, h, q, k: q < k, ~attnc.causal()),
    (lambda b, h, q, k: (q >= k) & (q - k < 64), attnc.window(64)),
    (lambda b, h, q, k: (k > q - 64) & (k <= q), attnc.window(64)),
    (lambda b, h, q, k: (q - k <= 3.5) & ((k - q) / 2 <= 1), attnc.band(3, 2)),
    (lambda b, h, q, k: abs(q - k) <= 5, attnc.band(5, 5)),
    (lambda b, h, q, k: np.abs(k - q) < 6, attnc.band(5, 5)),
    (lambda b, h, q, k: ~(abs(q - k) <= 5), ~attnc.band(5, 5)),
    (lambda b, h, q, k: q == k, attnc.band(0, 0)),
    (lambda b, h, q, k: k < 16, attnc.prefix(16)),
    (lambda b, h, q, k: k // 4 < 4, attnc.prefix(16)),
    (lambda b, h, q, k: q < 16, attnc.global_rows(16)),
    (lambda b, h, q, k: q // 8 == k // 8, attnc.chunk(8)),
    (lambda b, h, q, k: q // 2 // 4 == k >> 3, attnc.chunk(8)),
    (lambda b, h, q, k: q // 8 >= k // 8, attnc.chunk(8) | attnc.causal()),
    (lambda b, h, q, k: q // 8 > k // 8, attnc.causal() - attnc.chunk(8)),
    (lambda b, h, q, k: (q // 8 == k // 8) & (q % 8 >= k % 8), attnc.chunk(8) & attnc.causal()),
    (lambda b, h, q, k: (q - k) % 3 == 1, attnc.strided(3, 1)),
    (lambda b, h, q, k: (k - q) % 3 == 1, attnc.strided(3, 2)),
    (lambda b, h, q, k: q % 3 == k % 3, attnc.strided(3)),
    (lambda b, h, q, k: abs(q - k) % 3 == 0, attnc.strided(3)),
    (lambda b, h, q, k: (k < 4) | (q >= k) & (q - k < 8), attnc.sink(4) | attnc.window(8)),
    (lambda b, h, q, k: k < of_b[b], attnc.prefix("traced_prefix")),
    (lambda b, h, q, k: ~(of_b[b] > k), ~attnc.prefix("traced_prefix")),
    (lambda b, h, q, k: q < of_b[b], attnc.global_rows("traced_global_rows")),
    (lambda b, h, q, k: of_bq[b, q] == of_bk[b, k], attnc.document(IDS_Q, IDS_KV)),
    (lambda b, h, q, k: (of_bq[b, q] == of_bk[b, k]) & (of_bq[b, q] != 0) & (q >= k),
     attnc.causal() & attnc.document(IDS_Q, IDS_KV)),
    (lambda b, h, q, k: (of_q[q] == of_k[k]) & (q - of_b[of_q[q] % 2] >= k - of_b[of_k[k] % 2]),
     attnc.causal() & attnc.document(IDS_Q, IDS_KV)),
    (lambda b, h, q, k: (k >= of_q[q]) & (k < of_q[q] + 3), attnc.rows("traced_row_begin", "traced_row_end")),
    (lambda b, h, q, k: q - k < of_h[h], attnc.rows("traced_row_begin", heads="query")),
    (lambda b, h, q, k: q < of_k[k], attnc.columns(end="traced_column_end")),
]


def as_numpy(function):
    """The function, to be called with arrays of positions: what it captures are NumPy's arrays."""
    names = {name: value.values for name, value in globals().items() if isinstance(value, Array)}
    return type(function)(function.__code__, {**globals(), **names}, function.__name__)


@pytest.mark.parametrize("function, expected", FAMILIES)
def test_families(function, expected):
    mask = trace_mask(function)
    assert str(mask) == str(expected) or attnc.equiv(mask, expected).verdict == "equal", f"{mask}\n{expected}"
    wanted = np.broadcast_to(as_numpy(function)(*positions()), SIZES)
    np.testing.assert_array_equal(shown(mask), wanted, err_msg=str(mask))


def test_zero_is_an_id():
    """0 hides in #attn.document and is an id like others in Python."""
    ids = np.array([0, 0, -1, -1, 5, -2**31, 2**31 - 2, 1, 0, 3, 3])
    mask = trace_mask(lambda b, h, q, k: array(ids)[q] == array(ids)[k])
    np.testing.assert_array_equal(shown(mask, (1, 1, 11, 11))[0, 0], ids[:, None] == ids)
    beyond = array([0, 2**31 - 1])
    with pytest.raises(attnc.TensorError, match="integers of 32 bits in 'traced_ids_q'"):
        shown(trace_mask(lambda b, h, q, k: beyond[q] == beyond[k]), (1, 1, 2, 2))


def test_large_bounds():
    ends = array([2**40, -2**40, 5])
    mask = trace_mask(lambda b, h, q, k: k < ends[q])
    np.testing.assert_array_equal(shown(mask, (1, 1, 3, 9))[0, 0], np.arange(9) < np.array([[9], [0], [5]]))
    assert trace_mask(lambda b, h, q, k: q - k < 2**40) == attnc.full()
    assert trace_mask(lambda b, h, q, k: k < math.inf) == attnc.full()
    assert trace_mask(lambda b, h, q, k: k < math.nan) == ~attnc.full()


def test_long_conditions():
    """What passes 512 instructions takes arrays for less, and what passes them all the same is refused."""
    wide = trace_mask(lambda b, h, q, k: sum(q * i % 7 for i in range(1, 30)) < sum(k * i % 5 for i in range(99)))
    assert len(str(wide)) < 200 and set(wide.arrays) == {"traced_q", "traced_k"}
    with pytest.raises(attnc.TraceError, match="at most 512 instructions"):
        trace_mask(lambda b, h, q, k: sum(((q + i * k) % (7 + i) for i in range(1, 99)), k) < 3)
    with pytest.raises(attnc.TraceError, match="too long|too deeply"):
        trace_mask(lambda b, h, q, k: sum(((q + k) % 7 // (i + 1) for i in range(3000)), k) < 3)


# Scores --------------------------------------------------------------------------------------------------------------

slopes, gate, pairs, table = (array(np.random.default_rng(1).random(shape))
                              for shape in ((3,), (2, 3), (13, 11), (3, 41)))
SCORES = [
    (lambda s, b, h, q, k: s, '#attn.score<"s">'),
    (lambda s, b, h, q, k: 3.0 * np.tanh(s / 3.0), "#attn.softcap<3.0>"),
    (lambda s, b, h, q, k: s + pairs[q, k], '#attn.bias<"traced_score", qk>'),
    (lambda s, b, h, q, k: slopes[h] * s, '#attn.head_scale<"traced_score">'),
    (lambda s, b, h, q, k: s * gate[b, h], '#attn.score<"s * traced_score[b, h]">'),
    (lambda s, b, h, q, k: s - slopes[h] * abs(q - k), '#attn.score<"s - traced_score[h] * abs(q - k)">'),
    (lambda s, b, h, q, k: s + (k - q) * np.exp2(-(h + 1) * 8 / 3), '#attn.score<"s + (k - q) * traced_score[h]">'),
    (lambda s, b, h, q, k: np.where(q - k < 4, s, s - np.log(1 + (q - k) / 64)),
     '#attn.score<"(q - k < 4 ? s : s - log((q - k) / 64.0 + 1))">'),
    (lambda s, b, h, q, k: s + table[h, q - k + 20], '#attn.relative_bias<"traced_table", 20>'),
    (lambda s, b, h, q, k: s + table[h, np.clip(q - k, -3, 5) + 3], '#attn.relative_bias<"traced_table", 5>'),
    (lambda s, b, h, q, k: 2 * s - table[h, abs(k - q)] * slopes[h],
     '#attn.score<"s * 2">, #attn.relative_bias<"traced_table", 40>'),
    (lambda s, b, h, q, k: s + q // 3 - k % 4 + 5 // 2 + q * k + q / (k + 1), None),
    (lambda s, b, h, q, k: np.minimum(s, of_bq[b, q]) + np.maximum(0.5, np.abs(s)), None),
    (lambda s, b, h, q, k: np.where((of_q[q] == of_k[k]) & (q != k) | (slopes[h] > 0.5), s, -100.0) ** 2, None),
    (lambda s, b, h, q, k: np.where((q < 3) == (k < 4), -s, s / (1.5 + q)) * 1e-5, None),
    (lambda s, b, h, q, k: np.sqrt(np.abs(s)) - np.exp(-np.abs(s)) + np.where(s < 0, pairs[q, k], slopes[h] - s), None),
    (lambda s, b, h, q, k: s + np.log(slopes[h]) * of_k[k % 5], None),
]


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


@pytest.mark.parametrize("function, text", SCORES)
def test_scores(function, text):
    s = np.random.default_rng(2).standard_normal(SIZES)
    expected = as_numpy(function)(s, *positions())
    score = trace_score(function)
    np.testing.assert_allclose(scored(score, s), np.broadcast_to(expected, SIZES), 2e-5, 2e-5, err_msg=str(score))
    assert text in (None, str(score))
    attnc.Problem(attnc.full(), heads=3, dims=16, score=score).describe()  # its verifier has no complaint


# What is refused -----------------------------------------------------------------------------------------------------

numpy_array = np.arange(20)
square = array(np.eye(20, dtype=bool))
REFUSED = [
    (lambda b, h, q, k: q >= k and q < 3, "write `&` with parentheses in place of `and`"),
    (lambda b, h, q, k: q >= k or q < 3, "write `|` with parentheses in place of `or`"),
    (lambda b, h, q, k: not q >= k, "write `~` in place of `not`"),
    (lambda b, h, q, k: (q if q > k else k) < 3, r"attnc.select\(condition, a, b\) or torch.where in place of `if`"),
    (lambda b, h, q, k: 0 <= q - k < 5, r"`\(a <= b\) & \(b < c\)` in place of `a <= b < c`"),
    (lambda b, h, q, k: min(q, k) < 3, "a.minimum"),
    (lambda b, h, q, k: q in (1, 2), "in place of `x in"),
    (lambda b, h, q, k: [1, 2, 3][h] < k, r"attnc.array\(values\)\[symbol\]"),
    (lambda b, h, q, k: {0: 1}[h] < k, "no key of a dictionary"),
    (lambda b, h, q, k: numpy_array[q] < k, r"attnc.array\(values\)\[symbol\]"),
    (lambda b, h, q, k: numpy_array < k, "a NumPy array meets a symbol"),
    (lambda b, h, q, k: math.exp(q) < k, "x.exp"),
    (lambda b, h, q, k: q.gamma < k, "no 'gamma'"),
    (lambda b, h, q, k: q - k, "expected a condition as the mask of <lambda>, got: an integer"),
    (lambda b, h, q, k: q / 2, "got: a real number"),
    (lambda b, h, q, k: None, "expected one value for each pair from <lambda>, got: 'NoneType'"),
    (lambda b, h, q, k: square[q], r"got: a value of shape \(20,\)"),
    (lambda b, h, q, k: square[q, k], "block_map.*-inf"),
    (lambda b, h, q, k: (k < 4) | square[q, (k - 4).clamp(min=0, max=19)], "block_map.*-inf"),
    (lambda b, h, q, k: square[q, k, b], "2 dimensions is read at 3 positions"),
    (lambda b, h, q, k: square[q < k], "read at integers"),
    (lambda b, h, q, k: square[q, 20], "position 20 is not in a dimension of 20"),
    (lambda b, h, q, k: q * k < 9, "not by a constant"),
    (lambda b, h, q, k: q % k < 9, "not by a constant"),
    (lambda b, h, q, k: (q ^ k) < 9, "bitwise operators of integers that mix q and k"),
    (lambda b, h, q, k: (q & k) == 0, "bitwise operators of integers that mix q and k"),
    (lambda b, h, q, k: q / (k + 1) < 0.5, "real numbers that mix q and k are for scores only"),
    (lambda b, h, q, k: q // 0 < k, "integer division by zero"),
    (lambda b, h, q: q >= 0, r"expected a function of \(b, h, q, k\)"),
]
REFUSED_SCORES = [
    (lambda s, b, h, q, k: np.where(q >= k, s, -math.inf), "attnc.mask"),
    (lambda s, b, h, q, k: s > 0, "expected a number as the score"),
    (lambda s, b, h, q, k: s.floor(), "`floor` of a score is not in the language of scores"),
    (lambda s, b, h, q, k: s ** 2.5, "`pow` of a score"),
    (lambda s, b, h, q, k: s * 1e40, "up to 2\\^100"),
    (lambda s, b, h, q, k: s + slopes[(q * k) % 3], "s \\+ bias\\[b, h, q, k\\]"),
    (lambda s, b, h, q, k: s + slopes[q - k + 50], "no entry for q - k = 0"),
    (lambda s, b, h, q, k: s + slopes[q - k + of_q[q]], "s \\+ bias\\[b, h, q, k\\]"),
]


@pytest.mark.parametrize("function, words", REFUSED + REFUSED_SCORES)
def test_refused(function, words):
    trace = trace_mask if (function, words) in REFUSED else trace_score
    with pytest.raises(attnc.TraceError, match=words) as caught:
        trace(function)
    assert isinstance(caught.value, TypeError)
    assert str(caught.value).startswith(f"{__file__}:{function.__code__.co_firstlineno}: ")


def test_the_line_is_named():
    def helper(q, k):
        distance = q - k
        return square[distance, q]

    def mask(b, h, q, k):
        near = q - k < 4
        return near & helper(q, k)

    with pytest.raises(attnc.TraceError) as caught:
        trace_mask(mask)
    message, line = str(caught.value), helper.__code__.co_firstlineno + 2
    assert message.startswith(f"{__file__}:{line}: a table") and "return square[distance, q]" in message


def test_other_errors_are_the_functions_own():
    with pytest.raises(KeyError):
        trace_mask(lambda b, h, q, k: {}["x"] < q)
    with pytest.raises(attnc.TraceError, match="expected a function"):
        trace_mask(7)
    symbols = []
    trace_mask(lambda b, h, q, k: (symbols.append(q), q >= k)[1])
    with pytest.raises(attnc.TraceError, match="after the trace"):
        symbols[0] + 1


# Values --------------------------------------------------------------------------------------------------------------

def test_equal_functions_are_equal_masks():
    def make(values):
        values = array(values)
        return lambda b, h, q, k: (q - k < values[h]) | (values[(q * 3) % 2] == k)

    function = make([1, 2, 3])
    first, second = trace_mask(function), trace_mask(function)
    assert first == second and hash(first) == hash(second)
    assert all(first.arrays[name] is second.arrays[name] for name in first.arrays)
    other = trace_mask(make([4, 5, 6]))
    assert str(other) == str(first) and other != first
    with pytest.raises(TypeError, match="pickle"):
        __import__("pickle").dumps(first)
    calls = []
    trace_mask(lambda b, h, q, k: (calls.append(1), q >= k)[1])
    assert calls == [1]


def test_masks_apart():
    """Two traced masks have names of their own in one."""
    first, second = (trace_mask(lambda b, h, q, k, values=array(values): (q - k < values[h]) & (values[h] != k % 7))
                     for values in ([1, 2, 3], [9, 9, 9]))
    whole = (lambda x, y: x | y)(*apart(first, second))
    assert len(whole.arrays) == 4
    np.testing.assert_array_equal(shown(whole), shown(first) | shown(second))
    same = apart(first, first)
    assert same[0] == same[1] == first


def test_array_values():
    values = np.array([1, 2, 3])
    wrapped = array(values)
    values[0] = 9  # it is a copy
    assert wrapped[0] == 1 and len(wrapped) == 3 and wrapped.shape == (3,) and list(np.asarray(wrapped)) == [1, 2, 3]
    assert select(True, 3, 4) == 3
    mask = trace_mask(lambda b, h, q, k: select(h < 1, q - k, wrapped[h]) < 2)
    np.testing.assert_array_equal(shown(mask)[:, 1:], np.broadcast_to(False, (2, 2, 13, 11)))
    with pytest.raises(attnc.TensorError, match=r"entries for 5 of q, got: the shape \(3,\), in 'traced_q'"):
        trace_mask(lambda b, h, q, k: wrapped[q] == 2).arrays["traced_q"].evaluate(1, 1, 1, 5, 5)
    with pytest.raises(attnc.TensorError, match=r"cannot evaluate 'traced_q' of a traced function for 5 of q "
                                                r"\(captured shapes: \(3,\)\)"):
        trace_mask(lambda b, h, q, k: wrapped[q + 1] == 2).arrays["traced_q"].evaluate(1, 1, 1, 5, 5)


def test_a_table_has_an_end():
    score = trace_score(lambda s, b, h, q, k: s + table[h, q - k + 20])
    with pytest.raises(attnc.TensorError, match="at most 21 queries and 21 keys"):
        score.arrays["traced_table"].evaluate(1, 3, 3, 22, 8)


def test_without_torch():
    code = """
        import sys
        sys.modules["torch"] = sys.modules["jax"] = None
        from attnc.trace import array, trace_mask
        ids = array([1, 1, 2])
        mask = trace_mask(lambda b, h, q, k: (ids[q] == ids[k]) & (q >= k) & (q.minimum(k).clamp(min=1) < 9))
        print(mask, mask.arrays["traced_ids_q"].evaluate(1, 1, 1, 3, 3).tolist())
    """
    answer = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=True)
    assert answer.stdout == ('#attn.and<#attn.causal, #attn.document<"traced_ids_q", "traced_ids_kv">, '
                      '#attn.predicate<"max(min(q, k), 1) <= 8">> [[2, 2, 3]]\n')


# Torch ---------------------------------------------------------------------------------------------------------------

def torch_functions(torch):
    """Functions of torch tensors, and words of the masks that they become."""
    generator = torch.Generator().manual_seed(0)
    ids = torch.tensor([[0] * 5 + [1] * 8, [3] * 7 + [-1] * 6])
    windows, ends, flags = torch.tensor([2, 5, 9]), torch.tensor([4, 9]), torch.rand(13, generator=generator) < 0.3
    offsets = torch.tensor([0, 4, 9, 13], dtype=torch.int32)
    spans = torch.tensor([[0, 4], [3, 9], [9, 13]], dtype=torch.int16)
    times, ratio = torch.randn(2, 13, generator=generator), torch.tensor([0.25, 0.6])
    limit, document = torch.tensor(5), torch.tensor([0] * 4 + [1] * 5 + [2] * 4)
    packed = torch.nn.attention.flex_attention
    return [
        (lambda b, h, q, k: ids[b, q] == ids[b, k], "document"),
        (lambda b, h, q, k: ids[b][q] == ids[b][k], "document"),
        (lambda b, h, q, k: q - k < windows[h], "per_head"), (lambda b, h, q, k: (q >= k) & (k < ends[b]), "prefix"),
        (lambda b, h, q, k: (torch.abs(q - k) <= 2) | flags[q] | flags[k], "band"),
        (lambda b, h, q, k: torch.logical_or(torch.logical_not(flags[q]), torch.logical_xor(q > k, flags[k])),
         "predicate"),
        (lambda b, h, q, k: torch.where(flags[q], k < 5, torch.ge(q, k)), "prefix"),
        (lambda b, h, q, k: torch.searchsorted(offsets, q, right=True) == torch.searchsorted(offsets, k, right=True),
         "document"),
        (lambda b, h, q, k: (document[q] == document[k]) & (q - offsets[document[q]] >= k - offsets[document[k]]),
         "causal"),
        (lambda b, h, q, k: (spans[document[k]][0] <= q) & (q < spans[document[k]][1]), "column_interval<begin"),
        (lambda b, h, q, k: (lambda low, high: (low <= q) & (q < high))(*spans[document[k]]), "column_interval<begin"),
        (lambda b, h, q, k: k < torch.floor(ends[b] * ratio[b]), "prefix"),
        (lambda b, h, q, k: k <= ends[b] * 0.7, "prefix"),
        (lambda b, h, q, k: times[b, q] >= times[b, k], "predicate"),
        (lambda b, h, q, k: torch.sin(times[b, q]) < torch.cos(times[b, k]), "predicate"),
        (lambda b, h, q, k: q - k < limit, "row_interval"), (lambda b, h, q, k: q - k < torch.tensor(3) * 2, "band"),
        (lambda b, h, q, k: torch.isin(k, torch.tensor([3, 5, 7])) | (q >= k), "causal"),
        (lambda b, h, q, k: (ids[b].max() > k) & (ids[b].max(dim=0).indices >= 0), "prefix"),
        (lambda b, h, q, k: ids[b, :, None][q, 0] == torch.minimum(k, q), "predicate"),
        (lambda b, h, q, k: torch.clamp(torch.maximum(q, k), max=5) > torch.remainder(torch.floor_divide(q, 2), 3),
         "predicate"),
        (lambda b, h, q, k: flags[q] == flags[k], "document"), (lambda b, h, q, k: windows[h] - q > -k, "per_head"),
        (lambda b, h, q, k: torch.stack([q, q + 3])[h % 2] >= k, "per_head"),
        (lambda b, h, q, k: q.ge(k).to(torch.int32) != 0, "causal"),
        (lambda b, h, q, k: torch.bitwise_and(flags[q], ~flags[k]), "predicate"),
        (lambda b, h, q, k: (q ^ 5) < (k | 2), "predicate"),
        (lambda b, h, q, k: torch.any(ids[b, q] == torch.tensor([1, 3])) & (k <= q), "causal"),
        (packed.and_masks(lambda b, h, q, k: q >= k, lambda b, h, q, k: q - k < 4), "band<left = 3, right = 0>"),
        (packed.or_masks(lambda b, h, q, k: q >= k, lambda b, h, q, k: k < 4), "or<#attn.causal, #attn.prefix<4>>"),
    ]


def more_torch_functions(torch):
    """Functions whose operators mean something else in C, and ways to write numbers and conditions."""
    flags, table = torch.tensor([1, 0, 1, 1, 0, 0, 1, 0, 1, 1, 0, 1, 1]).bool(), torch.arange(13) - 6
    return [
        lambda b, h, q, k: (flags[q] + flags[k]) == 1, lambda b, h, q, k: flags[q] * flags[k],
        lambda b, h, q, k: torch.maximum(flags[q], flags[k]), lambda b, h, q, k: sum([q > k, q > 3, k < 5]) >= 2,
        lambda b, h, q, k: (q - k) // -3 < 1, lambda b, h, q, k: (q - k) % -3 < -1,
        lambda b, h, q, k: torch.fmod(q - k, 3) == -1,
        lambda b, h, q, k: torch.div(q - k, 3, rounding_mode="trunc") == -1,
        lambda b, h, q, k: torch.div(q - k, -2, rounding_mode="trunc") > 1,
        lambda b, h, q, k: torch.fmod(table[q], table[q] * 2 + 1) == k - 3, lambda b, h, q, k: (q / 3).int() >= k // 2,
        lambda b, h, q, k: torch.ceil(q / 3) > k, lambda b, h, q, k: torch.round(q / 4) > k,
        lambda b, h, q, k: q**2 < k**2,
        lambda b, h, q, k: 2 ** (q % 4) > k, lambda b, h, q, k: ((q >> 1) & 1) == ((k >> 1) & 1),
        lambda b, h, q, k: ~q < -k,
        lambda b, h, q, k: k * 1.0 < q * 1.0, lambda b, h, q, k: (q - k) * 0.5 <= 2.25,
        lambda b, h, q, k: -(q - k) / 4 > -1.2,
        lambda b, h, q, k: abs(q - k) / 2 < 1.5, lambda b, h, q, k: torch.abs(q - k).float() <= 2.5,
        lambda b, h, q, k: q == 2.5,
        lambda b, h, q, k: (q - k) == 2.0, lambda b, h, q, k: torch.logical_and(q, k),
        lambda b, h, q, k: q.bool() & (k > 2),
        lambda b, h, q, k: (q >= k) == True, lambda b, h, q, k: torch.ones_like(q, dtype=torch.bool),  # noqa: E712
        lambda b, h, q, k: torch.full_like(q, 3) > k, lambda b, h, q, k: torch.zeros((), dtype=torch.bool) | (q >= k),
        lambda b, h, q, k: torch.min(q, k) > 2, lambda b, h, q, k: torch.sub(q, k, alpha=2) > 0,
        lambda b, h, q, k: torch.rsub(q, k) > 0, lambda b, h, q, k: table[q - 3] > table[k - 5],
        lambda b, h, q, k: table[-1] - q > k, lambda b, h, q, k: torch.tensor([2, 4, 6])[h] > q - k,
        lambda b, h, q, k: k < torch.tensor([4, 6])[b].clamp(max=5),
        lambda b, h, q, k: torch.eq(q % 3, k % 3).logical_not(),
    ]


def dense(torch, function, sizes):
    """As flex_attention means it."""
    return torch.nn.attention.flex_attention.create_mask(function, *sizes, device="cpu").expand(sizes)


@pytest.mark.filterwarnings("ignore:There is a performance drop")
def test_torch_functions():
    torch = pytest.importorskip("torch")
    __import__("torch.nn.attention.flex_attention")
    listed = torch_functions(torch) + [(function, "") for function in more_torch_functions(torch)]
    for number, (function, words) in enumerate(listed):
        mask = trace_mask(function)
        assert words in str(mask), f"{number}: {mask}"
        expected = dense(torch, function, (2, 3, 13, 13)).numpy()
        np.testing.assert_array_equal(shown(mask, (2, 3, 13, 13)), expected, err_msg=f"{number}: {mask}")
        assert str(trace_mask(function)) == str(mask)


def test_torch_functions_refused():
    torch = pytest.importorskip("torch")
    ids, seen = torch.tensor([1, 2, 3]), torch.ones(9, 9, dtype=torch.bool)
    for function, words in (
            (lambda b, h, q, k: seen[q, k], "block_map"), (lambda b, h, q, k: seen[q][k], "block_map"),
            (lambda b, h, q, k: (ids[h] == torch.stack([q, k])).any(), "`(stack|eq)` of q and k together"),
            (lambda b, h, q, k: ids.add_(q) > k, "add_ changes a tensor"), (lambda b, h, q, k: ids > k, "shape"),
            (lambda b, h, q, k: ids.__setitem__(q, 3), "__setitem__ changes"),
            (lambda b, h, q, k: q.item() < 3, "not a number"),
            (lambda b, h, q, k: torch.nonzero(q) > k, "cannot be traced"),
            (lambda b, h, q, k: (q - k).sin() < 0.5, "`sin` of"),
            (lambda b, h, q, k: torch.abs(q, out=ids) < k, "out="),
            (lambda b, h, q, k: bool(torch.ge(q, k)), "truth value")):
        with pytest.raises(attnc.TraceError, match=words) as caught:
            print(trace_mask(function))
        assert str(caught.value).startswith(__file__)
    assert torch.equal(ids, torch.tensor([1, 2, 3]))


def test_captured_tensors_that_change():
    torch = pytest.importorskip("torch")
    windows = torch.tensor([1, 2])
    array = trace_mask(lambda b, h, q, k: q - k < windows[h]).arrays["traced_row_begin"]
    assert array.captured == (windows,) and array.axes == "bhq" and array.dtype == "i32"
    first = array.evaluate(1, 2, 1, 4, 4)
    assert first.dtype == torch.int32 and first.is_contiguous() and array.evaluate(1, 2, 1, 4, 4) is first
    assert first.tolist() == [[[0, 1, 2, 3], [-1, 0, 1, 2]]]
    windows[0] = 3
    assert array.evaluate(1, 2, 1, 4, 4).tolist() == [[[-2, -1, 0, 1], [-1, 0, 1, 2]]]
    assert array.evaluate(2, 2, 1, 3, 9, torch.device("cpu")).shape == (2, 2, 3)
    assert array.evaluate(0, 2, 1, 3, 9).shape == (0, 2, 3)
    with torch.inference_mode():
        of_inference = torch.tensor([1, 2])
        array = trace_mask(lambda b, h, q, k: q - k < of_inference[h]).arrays["traced_row_begin"]
        before = array.evaluate(1, 2, 1, 4, 4)
        of_inference[0] = 3
        assert not torch.equal(array.evaluate(1, 2, 1, 4, 4), before)


def test_gradients_of_captured_tensors():
    torch = pytest.importorskip("torch")
    slopes, table = torch.rand(3, requires_grad=True), torch.rand(3, 9, requires_grad=True)
    score = trace_score(lambda s, b, h, q, k: s - slopes[h] * (q - k) + torch.exp(slopes[h]) + table[h, q - k + 4])
    plain, made, relative = (score.arrays[name] for name in ("traced_score", "traced_score_1", "traced_table"))
    assert plain.evaluate(2, 3, 3, 4, 4) is slopes and plain.source is slopes and made.source is None
    result = made.evaluate(2, 3, 3, 4, 4)
    assert torch.allclose(torch.autograd.grad(result.sum(), slopes)[0], slopes.exp())
    assert made.evaluate(2, 3, 3, 4, 4) is not result  # its graph may be gone
    gradient, = torch.autograd.grad(relative.evaluate(2, 3, 3, 4, 4)[0, 0], table)
    assert gradient[0].tolist() == [0.0] * 8 + [1.0]  # of k - q = -4
    half = slopes.detach().bfloat16()
    converted = trace_score(lambda s, b, h, q, k: s * half[h]).arrays["traced_score"].evaluate(2, 3, 3, 4, 4)
    assert converted.dtype == torch.float32 and torch.equal(converted, half.float())
    longer = torch.rand(5, 20)
    cut = trace_score(lambda s, b, h, q, k: s + longer[h, q]).arrays["traced_score"].evaluate(2, 3, 3, 4, 4)
    assert torch.equal(cut, longer[:3, :4])


def test_packed_arrays():
    torch = pytest.importorskip("torch")
    ids, windows = torch.tensor([[1] * 3 + [2] * 7, [3] * 10]), torch.tensor([1, 5])
    mask = trace_mask(lambda b, h, q, k: (ids[b, q] == ids[b, k]) & (q - k < windows[h]) & (k < ids[b, 0] * 2))
    cu = torch.tensor([0, 4, 10], dtype=torch.int32)
    packed = {name: array.evaluate_packed(2, cu, cu, 12, 10) for name, array in mask.arrays.items()}
    dense = {name: array.evaluate(2, 2, 2, 6, 6) for name, array in mask.arrays.items()}
    assert {name: tuple(x.shape) for name, x in packed.items()} == {
        "traced_ids_q": (12,), "traced_ids_kv": (10,), "traced_row_begin": (2, 12), "traced_prefix": (2,)}
    for name in ("traced_ids_q", "traced_ids_kv", "traced_row_begin"):
        assert torch.equal(packed[name][..., :10], torch.cat([dense[name][0, ..., :4], dense[name][1, ..., :6]], -1))
    assert torch.equal(packed["traced_prefix"], dense["traced_prefix"])


# Kernels -------------------------------------------------------------------------------------------------------------

def inputs(torch, sizes, kv_heads=2, dim=16):
    batch, heads, seqlen_q, seqlen_kv = sizes
    generator = torch.Generator().manual_seed(0)
    return [torch.randn(batch, length, count, dim, generator=generator).bfloat16()
            for length, count in ((seqlen_q, heads), (seqlen_kv, kv_heads), (seqlen_kv, kv_heads))]


def attention(torch, q, k, v, mask=None, score=()):
    """o of the CPU's kernel."""
    (batch, seqlen_q, heads, dim), (_, seqlen_kv, kv_heads, _) = q.shape, k.shape
    mask = attnc.full() if mask is None else mask
    problem = attnc.Problem(mask, heads=(heads, kv_heads), dims=dim, score=score)
    kernel = problem.compile("cpu")
    tensors = {"q": q, "k": k, "v": v, "o": torch.empty_like(q), "lse": torch.empty(batch, heads, seqlen_q)}
    for name, array in {**mask.arrays, **(score.arrays if score else {})}.items():
        tensors[name] = array.evaluate(batch, heads, kv_heads, seqlen_q, seqlen_kv, "cpu")
    size = kernel.workspace_size(tensors)
    kernel.launch(tensors, workspace=torch.empty(size, dtype=torch.uint8) if size else None)
    return tensors["o"]


def modified(torch, function, scores):
    """Scores as flex_attention modifies them."""
    from torch._dynamo._trace_wrapped_higher_order_op import TransformGetItemToIndex
    with TransformGetItemToIndex():
        of_all = torch.nn.attention.flex_attention._vmap_for_bhqkv(function, prefix=(0,))
        return of_all(scores, *map(torch.arange, scores.shape))


def reference(torch, q, k, v, mask_function=None, score_function=None):
    """o in float64, by torch's vmap of the functions."""
    (batch, seqlen_q, heads, dim), seqlen_kv = q.shape, k.shape[1]
    q, k, v = (x.double().transpose(1, 2) for x in (q, k, v))
    k, v = (x.repeat_interleave(heads // x.shape[1], 1) for x in (k, v))
    scores = q @ k.transpose(-1, -2) / math.sqrt(dim)
    if score_function:
        scores = modified(torch, score_function, scores.float()).double()
    if mask_function:
        scores = scores.masked_fill(~dense(torch, mask_function, (batch, heads, seqlen_q, seqlen_kv)), -math.inf)
    return (torch.softmax(scores, -1).nan_to_num(0.0) @ v).transpose(1, 2)


@pytest.mark.filterwarnings("ignore:There is a performance drop")
@pytest.mark.parametrize("number", [2, 4, 9, 13, 25])
def test_kernels(number):
    torch = pytest.importorskip("torch")
    __import__("torch.nn.attention.flex_attention")
    function, _ = torch_functions(torch)[number]
    tensors = inputs(torch, (2, 2, 13, 13), kv_heads=1)
    got = attention(torch, *tensors, mask=trace_mask(function))
    error = (got - reference(torch, *tensors, mask_function=function)).abs().max().item()
    assert error < 0.01
