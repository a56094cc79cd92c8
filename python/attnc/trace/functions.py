# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What functions of torch and NumPy, and methods of tensors, mean of expressions, by name."""
import functools
import math

from . import algebra as n
from .nodes import Node, num
from .session import refusal


def kind_of(dtype):
    word = str(dtype).rpartition(".")[2]
    if word.startswith("complex"):
        raise refusal("complex numbers cannot be traced")
    return "bool" if word == "bool" else "int" if word.startswith(("int", "uint")) else "real"


def _number(x):
    if not isinstance(x, Node):
        raise TypeError(f"expected a number, got: {x!r}")
    return x


def _logical(of):
    return lambda *args: of(*map(n.as_bool, map(_number, args)))


def _bitwise(of_truths, op):
    def apply(a, b):
        _number(a), _number(b)
        return of_truths(a, b) if a.kind == b.kind == "bool" else n.bits(op, a, b)
    return apply


def _of_truths(of_truths, of):
    """Sums and products of two truth values are truth values in NumPy and torch."""
    return lambda a, b: of_truths(a, b) if _number(a).kind == _number(b).kind == "bool" else of(a, b)


_add, _mul = _of_truths(n.either, n.add), _of_truths(n.both, n.mul)
_minimum, _maximum = _of_truths(n.both, n.minimum), _of_truths(n.either, n.maximum)


def _sub(a, b):
    if _number(a).kind == _number(b).kind == "bool":
        raise TypeError("conditions are not subtracted; `^` and `~` are what there is")
    return n.sub(a, b)


def _xor(a, b):
    return n.inverse(n.eq(a, b))


def _invert(a):
    return n.inverse(a) if a.kind == "bool" else n.bits("bitxor", a, num(-1))


def _clamp(x, min=None, max=None, a_min=None, a_max=None):
    low, high = (a if a is not None else b for a, b in ((min, a_min), (max, a_max)))
    x = x if low is None else n.maximum(x, _number(low))
    return x if high is None else n.minimum(x, _number(high))


def _divide(a, b, rounding_mode=None):
    return {None: n.truediv, "floor": n.floordiv, "trunc": n.truncdiv}[rounding_mode](a, b)


def _cast(x, *args, **kwargs):
    """`to`, `type` and `astype`; a device is none of an expression's."""
    for arg in (*args, *kwargs.values()):
        if isinstance(arg, Node):
            return _as(arg.kind)(x)
        word = getattr(arg, "__name__", None) or getattr(arg, "name", None) or str(arg).rpartition(".")[2]
        if word.startswith(("int", "uint", "bool", "float", "bfloat", "double", "half", "long")):
            return _as("int" if word == "long" else "real" if word in ("double", "half") else kind_of(word))(x)
    return x


def _filled(value, dtype=None):
    """`ones_like` and the like, of one value."""
    return value if dtype is None else _cast(value, dtype)


def _new(x, size, value, dtype=None, **_):
    """`new_ones` and the like: and_masks and or_masks of torch start with one."""
    if tuple(size if isinstance(size, (tuple, list)) else [size]):
        raise TypeError("expected the shape () of something new")
    return _as(x.kind)(value) if dtype is None else _cast(value, dtype)


def _as(kind):
    return {"int": n.truncated, "bool": n.as_bool, "real": n.as_real}[kind]


def _scaled(op, factor):
    return lambda x: n.function(op, n.mul(x, num(factor)))


def _sigmoid(x):
    return n.truediv(num(1.0), n.add(num(1.0), n.function("exp", n.neg(x))))


def _erf(x):
    """To 1.5e-7 (Abramowitz and Stegun 7.1.26), which is what float32 has."""
    size = n.absolute(n.as_real(x))
    t, total = n.truediv(num(1.0), n.add(num(1.0), n.mul(size, num(0.3275911)))), num(1.061405429)
    for factor in (-1.453152027, 1.421413741, -0.284496736, 0.254829592, 0.0):
        total = n.add(n.mul(total, t), num(factor))
    value = n.sub(num(1.0), n.mul(total, n.function("exp", n.neg(n.mul(size, size)))))
    return n.select(n.less(x, num(0.0)), n.neg(value), value)


def _gelu(x, approximate="none"):
    if approximate == "tanh":
        cubic = n.add(x, n.mul(num(0.044715), n.mul(x, n.mul(x, x))))
        part = n.function("tanh", n.mul(cubic, num(math.sqrt(2 / math.pi))))
    else:
        part = _erf(n.mul(x, num(math.sqrt(0.5))))
    return n.mul(n.mul(x, num(0.5)), n.add(num(1.0), part))


def _softplus(x):
    return n.add(n.maximum(x, num(0.0)), n.function("log", n.add(num(1.0), n.function("exp", n.neg(n.absolute(x))))))


def _pair(of):
    return lambda a, b=None: _number(a) if b is None else of(a, _number(b))


DECOMPOSED = {"exp2", "log2", "log10", "log1p", "expm1", "sigmoid", "silu", "gelu", "erf", "softplus", "rsqrt", "expit"}
TABLE = {
    "add": lambda a, b, alpha=None: _add(a, b if alpha is None else n.mul(b, alpha)),
    "sub": lambda a, b, alpha=None: _sub(a, b if alpha is None else n.mul(b, alpha)),
    "rsub": lambda a, b, alpha=None: _sub(b, a if alpha is None else n.mul(a, alpha)), "mul": _mul,
    "truediv": n.truediv, "div": _divide, "floordiv": n.floordiv, "mod": n.mod, "pow": n.power,
    "neg": n.neg, "pos": _number, "abs": n.absolute,
    "fmod": lambda a, b: n.sub(a, n.mul(b, n.truncdiv(a, b))),
    "minimum": _minimum, "maximum": _maximum, "min": _pair(_minimum), "max": _pair(_maximum), "clamp": _clamp,
    "clamp_min": lambda x, min: n.maximum(x, min), "clamp_max": lambda x, max: n.minimum(x, max),
    "where": lambda c, a, b: n.select(n.as_bool(c), _number(a), _number(b)),
    "lt": n.less, "le": n.less_equal, "gt": lambda a, b: n.less(b, a), "ge": lambda a, b: n.less_equal(b, a),
    "eq": n.eq, "ne": lambda a, b: n.inverse(n.eq(a, b)),
    "and": _bitwise(n.both, "bitand"), "or": _bitwise(n.either, "bitor"), "xor": _bitwise(_xor, "bitxor"),
    "invert": _invert,
    "logical_and": _logical(n.both), "logical_or": _logical(n.either), "logical_xor": _logical(_xor),
    "logical_not": _logical(n.inverse), "any": n.as_bool, "all": n.as_bool,
    "lshift": functools.partial(n.bits, "shl"), "rshift": functools.partial(n.bits, "shr"),
    "floor": lambda x: n.rounded(x, "floor"), "ceil": lambda x: n.rounded(x, "ceil"), "trunc": n.truncated,
    "exp2": _scaled("exp", math.log(2)), "expm1": lambda x: n.sub(n.function("exp", x), num(1.0)),
    "log2": lambda x: n.mul(n.function("log", x), num(1 / math.log(2))),
    "log10": lambda x: n.mul(n.function("log", x), num(1 / math.log(10))),
    "log1p": lambda x: n.function("log", n.add(x, num(1.0))), "sigmoid": _sigmoid, "erf": _erf, "gelu": _gelu,
    "relu": lambda x, inplace=None: n.maximum(x, num(0.0) if x.kind == "real" else n.ZERO),
    "silu": lambda x, inplace=None: n.mul(x, _sigmoid(x)), "softplus": _softplus,
    "leaky_relu": lambda x, negative_slope=num(0.01), inplace=None: n.select(
        n.less(x, n.ZERO), n.mul(x, negative_slope), x),
    "rsqrt": lambda x: n.truediv(num(1.0), n.function("sqrt", x)), "reciprocal": lambda x: n.truediv(num(1.0), x),
    "to": _cast, "type": _cast, "astype": _cast, "type_as": _cast,
    "int": n.truncated, "long": n.truncated, "bool": n.as_bool, "float": n.as_real, "double": n.as_real,
    "new_ones": lambda x, size, **options: _new(x, size, n.ONE, **options),
    "new_zeros": lambda x, size, **options: _new(x, size, n.ZERO, **options), "new_full": _new,
    "ones_like": lambda x, dtype=None, **_: _filled(_as(x.kind)(n.ONE), dtype),
    "zeros_like": lambda x, dtype=None, **_: _filled(_as(x.kind)(n.ZERO), dtype),
    "full_like": lambda x, fill_value, dtype=None, **_: _filled(_as(x.kind)(fill_value), dtype),
    "clone": lambda x, **_: x, "detach": _number, "contiguous": _number, "cpu": _number, "cuda": lambda x, *_, **__: x,
}
TABLE["approx::tanh"] = functools.partial(n.function, "tanh")  # attention-gym's name for the GPU's instruction
TABLE["square"] = lambda x: n.mul(x, x)
TABLE.update({op: functools.partial(n.function, op) for op in ("exp", "log", "sqrt", "tanh")})
TABLE.update({other: TABLE[own] for other, own in {
    "subtract": "sub", "multiply": "mul", "divide": "div", "true_divide": "div", "floor_divide": "floordiv",
    "remainder": "mod",
    "negative": "neg", "positive": "pos", "absolute": "abs", "fmin": "minimum", "fmax": "maximum", "clip": "clamp",
    "less": "lt", "less_equal": "le", "greater": "gt", "greater_equal": "ge", "equal": "eq", "not_equal": "ne",
    "bitwise_and": "and", "bitwise_or": "or", "bitwise_xor": "xor", "bitwise_not": "invert", "bitwise_invert": "invert",
    "bitwise_left_shift": "lshift", "bitwise_right_shift": "rshift", "left_shift": "lshift", "right_shift": "rshift",
    "power": "pow", "fix": "trunc", "expit": "sigmoid", "not": "invert"}.items()})
