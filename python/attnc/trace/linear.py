# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Integers as sums of multiples, comparisons in forms of which families are recognised, and sides of expressions."""
import fractions
import math

from . import algebra as n
from .nodes import is_const, make, num
from .values import LARGEST, LEAST


def side(*nodes):
    """"q" of what depends on rows, "k" on keys, "" on neither, None on both; b and h may be there."""
    q, k = (any(axis in node.deps for node in nodes) for axis in "qk")
    return None if q and k else "q" if q else "k" if k else ""


class Linear:
    """const + the sum of factor * atom over `terms`."""

    __slots__ = ("terms", "const")

    def __init__(self, terms=(), const=0):
        self.terms, self.const = {atom: factor for atom, factor in dict(terms).items() if factor}, const

    def plus(self, other, factor=1):
        terms = dict(self.terms)
        for atom, times in other.terms.items():
            terms[atom] = terms.get(atom, 0) + factor * times
        return Linear(terms, self.const + factor * other.const)

    def part(self, chosen):
        """Its terms for which `chosen(atom)` holds, without the constant."""
        return Linear({atom: factor for atom, factor in self.terms.items() if chosen(atom)})

    def node(self):
        """The expression: what is added first, then what is subtracted."""
        result = None
        for atom, factor in sorted(self.terms.items(), key=lambda term: term[1] < 0):
            if result is None:
                result = n.mul(atom, num(factor))
            elif factor < 0:
                result = n.sub(result, n.mul(atom, num(-factor)))
            else:
                result = n.add(result, n.mul(atom, num(factor)))
        return num(self.const) if result is None else n.add(result, num(self.const))


def linear(node):
    if node.op == "const":
        return Linear(const=node.value)
    if node.op in ("add", "sub"):
        return linear(node.args[0]).plus(linear(node.args[1]), 1 if node.op == "add" else -1)
    if node.op == "neg":
        return Linear().plus(linear(node.args[0]), -1)
    if node.op == "mul" and is_const(node.args[1]):
        return Linear().plus(linear(node.args[0]), node.args[1].value)
    return Linear({node: 1})


def difference(node):
    """The expression that is at most 0, or equal to it, if a comparison of integers holds, without common factors."""
    result = linear(node.args[0]).plus(linear(node.args[1]), -1)
    const, divisor = result.const + (node.op == "lt"), math.gcd(*result.terms.values())
    if divisor > 1 and (node.op != "eq" or const % divisor == 0):
        result = Linear({atom: factor // divisor for atom, factor in result.terms.items()})
        const = -(-const // divisor)
    return Linear(result.terms, const)


# Comparisons with real numbers ---------------------------------------------------------------------------------------

def _solved(a, bound, upper):
    """An integer x for which `a <= bound` (upper; else >=) is `x <= bound'`, and so on: (x, bound', upper), or None."""
    while a.kind == "real":
        if a.op == "real":
            a = a.args[0]
        elif a.op == "neg":
            a, bound, upper = a.args[0], -bound, not upper
        elif a.op in ("add", "mul", "truediv") and is_const(a.args[1]) and math.isfinite(a.args[1].value):
            x = fractions.Fraction(a.args[1].value)
            is_power = a.op == "mul" and x.numerator == 1 and x.denominator & x.denominator - 1 == 0
            if a.op != "add" and (x <= 0 or x.denominator != 1 and not is_power):
                return None  # float32 may round it across the bound
            a, bound = a.args[0], bound - x if a.op == "add" else bound / x if a.op == "mul" else bound * x
        else:
            return None
    return a, bound, upper


def integral(node):
    """A comparison of real numbers as one of integers, if it is of an integer with a constant or with what depends on
    one side, or of what depends on q with what depends on k; else None."""
    a, b = node.args
    strict = node.op == "lt"
    if node.op == "eq":
        pair = [integral(make("le", pair, kind="bool")) for pair in ((a, b), (b, a))]
        return n.both(*pair) if None not in pair else None
    for x, bound, upper in ((a, b, True), (b, a, False)):
        if is_const(bound):
            value = bound.value
            if value != value:
                return n.FALSE
            if math.isinf(value):
                return num(upper == (value > 0)) if x.kind == "int" else None
            solved = _solved(x, fractions.Fraction(value), upper)
            if solved is None:
                return None
            x, value, upper = solved
            if upper:
                return n.less_equal(x, num(math.ceil(value) - 1 if strict else math.floor(value)))
            return n.less_equal(num(math.floor(value) + 1 if strict else math.ceil(value)), x)
    if a.kind == b.kind and {side(a), side(b)} == {"q", "k"}:
        a, b = n.ordered(a, LARGEST - 1), n.ordered(b, LEAST + 1)
    elif a.kind == "int" and side(b) is not None:  # a NaN hides: no integer is below the least, or above the largest
        b = n.limited(b, "ceil" if strict else "floor", LEAST)
    elif b.kind == "int" and side(a) is not None:
        a = n.limited(a, "floor" if strict else "ceil", LARGEST)
    else:
        return None
    return make(node.op, (a, b), kind="bool")
