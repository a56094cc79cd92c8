# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Functions that make expressions: constants are computed, and what is plainly simpler is written so.

`/` and `%` of integers round down, as in Python, PyTorch and the dialect.
"""
import functools
import math
import operator

from .nodes import ZERO, is_const, make, num

BITS = {"bitand": operator.and_, "bitor": operator.or_, "bitxor": operator.xor, "shl": operator.lshift,
        "shr": operator.rshift}
ONE, TRUE, FALSE = num(1), num(True), num(False)


def joined(a, b):
    return "real" if "real" in (a.kind, b.kind) else "int"


def as_int(a):
    """A truth value as 0 or 1; a number as it is."""
    return select(a, ONE, ZERO) if a.kind == "bool" else a


def as_bool(a):
    return a if a.kind == "bool" else inverse(eq(a, ZERO))


def as_real(a):
    a = as_int(a)
    if is_const(a):
        return num(float(a.value))
    return a if a.kind == "real" else make("real", (a,), kind="real")


def truncated(a):
    """A number without what is behind its point."""
    if a.kind != "real":
        return as_int(a)
    if is_const(a) and math.isfinite(a.value):
        return num(math.trunc(a.value))
    if is_nonnegative(a):
        return rounded(a, "floor")
    return make("trunc", (a,))


def rounded(a, way):
    """floor or ceil, as an integer."""
    if a.kind != "real":
        return as_int(a)
    if is_const(a) and math.isfinite(a.value):
        return num(getattr(math, way)(a.value))
    if a.op == "truediv" and a.args[0].kind == a.args[1].kind == "int" and is_const(a.args[1]) and a.args[1].value:
        return floordiv(*a.args) if way == "floor" else neg(floordiv(neg(a.args[0]), a.args[1]))
    return make(way, (a,))


def is_nonnegative(a):
    if a.op == "const":
        return a.value >= 0
    if a.size > 500:
        return False
    if a.op in ("b", "h", "q", "k", "abs") or a.kind == "bool":
        return True
    if a.op == "mod":
        return is_const(a.args[1]) and a.args[1].value > 0
    if a.op in ("add", "mul", "div", "truediv", "min", "bitor", "bitxor"):
        return all(map(is_nonnegative, a.args))
    if a.op in ("max", "bitand"):
        return any(map(is_nonnegative, a.args))
    return a.op == "select" and all(map(is_nonnegative, a.args[1:]))


def limited(a, way, otherwise):
    """A real number rounded by "ceil" or "floor" to 32 bits; NaN becomes the last. Only arrays have it."""
    return make("limit", (a,), (way, otherwise))


def ordered(a, otherwise):
    """An integer for a float32, greater for greater ones; NaN becomes the last. Only arrays have it."""
    return make("order", (a,), otherwise)


def add(a, b):
    a, b = as_int(a), as_int(b)
    if is_const(a, b):
        return num(a.value + b.value)
    if is_const(a):
        a, b = b, a
    if is_const(b) and b.value == 0:
        return a if b.kind == "int" else as_real(a)
    return make("add", (a, b), kind=joined(a, b))


def neg(a):
    a = as_int(a)
    if is_const(a):
        return num(-a.value)
    return a.args[0] if a.op == "neg" else make("neg", (a,), kind=a.kind)


def sub(a, b):
    a, b = as_int(a), as_int(b)
    if is_const(a, b):
        return num(a.value - b.value)
    if is_const(b):
        return add(a, neg(b))
    if a is b and a.kind == "int":
        return ZERO
    return neg(b) if is_const(a) and a.value == 0 and joined(a, b) == b.kind else make("sub", (a, b), kind=joined(a, b))


def mul(a, b):
    a, b = as_int(a), as_int(b)
    if is_const(a, b):
        return num(a.value * b.value)
    if is_const(a):
        a, b = b, a
    if is_const(b) and b.value == 1:
        return a if b.kind == "int" else as_real(a)
    if is_const(b) and b.value == 0 and joined(a, b) == "int":
        return ZERO
    return make("mul", (a, b), kind=joined(a, b))


def truediv(a, b):
    a, b = as_int(a), as_int(b)
    if is_const(a, b) and b.value:
        return num(a.value / b.value)
    return make("truediv", (a, b), kind="real")


def floordiv(a, b):
    a, b = as_int(a), as_int(b)
    if joined(a, b) == "real":
        return as_real(rounded(truediv(a, b), "floor"))
    if is_const(b) and b.value == 0:
        raise ZeroDivisionError("integer division by zero")
    if is_const(a, b):
        return num(a.value // b.value)
    if is_const(b) and b.value < 0:
        a, b = neg(a), num(-b.value)
    if is_const(b) and b.value == 1:
        return a
    if is_const(b) and a.op == "div" and is_const(a.args[1]):
        a, b = a.args[0], num(a.args[1].value * b.value)
    return make("div", (a, b))


def mod(a, b):
    a, b = as_int(a), as_int(b)
    if joined(a, b) == "real":
        return sub(a, mul(b, floordiv(a, b)))
    if is_const(b) and b.value == 0:
        raise ZeroDivisionError("integer modulo by zero")
    if is_const(a, b):
        return num(a.value % b.value)
    if is_const(b) and b.value < 0:
        return neg(mod(neg(a), num(-b.value)))
    if is_const(b) and a.op == "mod" and is_const(a.args[1]) and a.args[1].value % b.value == 0:
        a = a.args[0]
    return ZERO if is_const(b) and b.value == 1 else make("mod", (a, b))


def truncdiv(a, b):
    """Division that rounds to zero."""
    a, b = as_int(a), as_int(b)
    if joined(a, b) == "real":
        return truncated(truediv(a, b))
    if is_nonnegative(a) and is_nonnegative(b):
        return floordiv(a, b)
    positive = floordiv(absolute(a), absolute(b))
    return select(eq(less(a, ZERO), less(b, ZERO)), positive, neg(positive))


def absolute(a):
    a = as_int(a)
    if is_const(a):
        return num(abs(a.value))
    return a if is_nonnegative(a) else make("abs", (a,), kind=a.kind)


def minimum(a, b):
    return _least("min", min, as_int(a), as_int(b))


def maximum(a, b):
    return _least("max", max, as_int(a), as_int(b))


def _least(op, function, a, b):
    if is_const(a, b):
        return num(function(a.value, b.value))
    if is_const(a):
        a, b = b, a
    if is_const(b) and joined(a, b) == "int":
        if b.value <= 0 and is_nonnegative(a):
            return b if op == "min" else a
        if a.op in ("min", "max") and is_const(a.args[1]):
            known = a.args[1].value
            if a.op == op:
                return _least(op, function, a.args[0], num(function(known, b.value)))
            if function(known, b.value) == b.value:  # min(max(x, 3), 2)
                return b
    return a if a is b else make(op, (a, b), kind=joined(a, b))


def function(op, a):
    """exp, log, sqrt and tanh of a number."""
    if is_const(a):
        try:
            return num(getattr(math, op)(a.value))
        except (ValueError, OverflowError):
            pass
    return make(op, (as_real(a),), kind="real")


def power(a, b):
    a, b = as_int(a), as_int(b)
    if is_const(b) and b.kind == "int" and 1 <= b.value <= 4:
        return a if b.value == 1 else mul(power(a, num(b.value - 1)), a)
    if is_const(b) and b.value in (0.5, 2.0):
        return function("sqrt", a) if b.value == 0.5 else mul(as_real(a), as_real(a))
    return num(a.value ** b.value) if is_const(a, b) else make("pow", (a, b), kind=joined(a, b))


def bits(op, a, b):
    """Bitwise operators of integers. Shifts by a constant are products and quotients, masks of low bits remainders."""
    a, b = as_int(a), as_int(b)
    if "real" in (a.kind, b.kind):
        raise TypeError("a bitwise operator of a real number")
    if op in ("shl", "shr"):
        if is_const(b) and not 0 <= b.value < 63:
            raise TypeError(f"expected a shift by a number from 0 to 62, got: {b.value}")
        return (mul if op == "shl" else floordiv)(a, num(1 << b.value)) if is_const(b) else make(op, (a, b))
    if is_const(a):
        a, b = b, a
    if is_const(a, b):
        return num(BITS[op](a.value, b.value))
    if a is b:
        return ZERO if op == "bitxor" else a
    if is_const(b) and b.value in (0, -1):  # no bit, or all of them
        if op == "bitxor":
            return sub(num(b.value), a) if b.value else a
        return b if (op == "bitand") == (b.value == 0) else a
    if op == "bitand" and is_const(b) and b.value > 0 and b.value & (b.value + 1) == 0:
        return mod(a, num(b.value + 1))
    return make(op, (a, b))


def less(a, b):
    return _compare("lt", operator.lt, a, b)


def less_equal(a, b):
    return _compare("le", operator.le, a, b)


def _compare(op, function, a, b):
    a, b = as_int(a), as_int(b)
    if a.op == b.op == "real":
        a, b = a.args[0], b.args[0]
    for x, y in ((a, b), (b, a)):  # of a condition as a number, with a number
        if x.op == "select" and is_const(y, *x.args[1:]):
            return select(x.args[0], *(_compare(op, function, *((z, y) if x is a else (y, z))) for z in x.args[1:]))
    if op != "eq" and is_const(a) and a.value <= (0 if op == "le" else -1) and b.kind == "int" and is_nonnegative(b):
        return TRUE
    return num(function(a.value, b.value)) if is_const(a, b) else make(op, (a, b), kind="bool")


def eq(a, b):
    """Equality: of two truth values, op `iff`."""
    if a.kind == b.kind == "bool":
        for x, y in ((a, b), (b, a)):
            if is_const(x):
                return y if x.value else inverse(y)
        return TRUE if a is b else make("iff", (a, b), kind="bool")
    return _compare("eq", operator.eq, a, b)


def inverse(a):
    """not."""
    if is_const(a):
        return num(not a.value)
    if a.op == "not":
        return a.args[0]
    if a.op in ("le", "lt") and joined(*a.args) == "int":
        return make("lt" if a.op == "le" else "le", a.args[::-1], kind="bool")
    return make("not", (a,), kind="bool")


def both(a, b):
    return _logic("and", False, a, b)


def either(a, b):
    return _logic("or", True, a, b)


def _logic(op, absorbing, a, b):
    for x, y in ((a, b), (b, a)):
        if is_const(x):
            return x if x.value is absorbing else y
    return a if a is b else make(op, (a, b), kind="bool")


def select(c, a, b):
    if is_const(c):
        return a if c.value else b
    if a.kind != b.kind:
        a, b = as_int(a), as_int(b)
    if a.kind == "bool" and is_const(a, b):
        return a if a.value == b.value else c if a.value else inverse(c)
    return a if a is b else make("select", (c, a, b), kind="bool" if a.kind == b.kind == "bool" else joined(a, b))


_MAKERS = {"add": add, "sub": sub, "neg": neg, "mul": mul, "div": floordiv, "mod": mod, "abs": absolute, "min": minimum,
           "max": maximum, "lt": less, "le": less_equal, "eq": eq, "iff": eq, "not": inverse, "and": both, "or": either,
           "select": select, "truediv": truediv, **{op: functools.partial(bits, op) for op in BITS}}


def replaced(node, of):
    """The expression with `of(node)` in place of those for which it is not None."""
    done = {}

    def walk(node):
        if node not in done:
            new = of(node)
            if new is None:
                args = tuple(map(walk, node.args))
                new = node if args == node.args else _MAKERS[node.op](*args) if node.op in _MAKERS else \
                    make(node.op, args, node.value, node.kind, node.shape)
            done[node] = new
        return done[node]

    return walk(node)
