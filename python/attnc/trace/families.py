# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Comparisons that are families of masks: facts of a pair, and the masks of facts."""
import math
from typing import NamedTuple

from .. import masks
from . import algebra as n
from .linear import Linear, difference, linear, side
from .nodes import Node, is_const, num, variable

Q, K = variable("q"), variable("k")
_FAR = 2**30
_LONGEST = 2**29


class Band(NamedTuple):
    """low <= q - k <= high; None does not limit."""
    low: int | None
    high: int | None


class First(NamedTuple):
    """k < length (`prefix`) or q < length (`global_rows`), or the opposite."""
    family: str
    length: Node
    inverted: bool


class Interval(NamedTuple):
    """begin <= k < end of expressions of q (`row_interval`), or begin <= q < end of ones of k (`column_interval`)."""
    family: str
    begin: Node | None
    end: Node | None


class Ids(NamedTuple):
    """An expression of q equals one of k."""
    q: Node
    k: Node


class Known(NamedTuple):
    """A mask without arrays."""
    mask: masks.Mask


ALWAYS, NEVER = Known(masks.full()), Known(~masks.full())


def facts_of(node, needs):
    """The facts that all hold iff a comparison of integers does; None if it is no family.

    needs(Linear): must it be evaluated ahead of the kernel?
    """
    if node.op not in ("le", "lt", "eq") or n.joined(*node.args) == "real":
        return None
    return (_equal if node.op == "eq" else _at_most)(difference(node), needs)


def _variable_and_rest(total, variable):
    """The factor of q or k, and the other terms, if these do not depend on it; else None."""
    name = variable.op
    if [atom for atom in total.terms if name in atom.deps] != [variable]:
        return None
    return total.terms[variable], Linear(total.part(lambda atom: atom is not variable).terms, total.const)


def _quotients(total):
    """n and the factor of q // n, if the terms are it and k // n with the opposite factor."""
    atoms = {atom.args[0]: atom for atom in total.terms if atom.op == "div" and is_const(atom.args[1])}
    if len(total.terms) != 2 or atoms.keys() != {Q, K} or atoms[Q].args[1] is not atoms[K].args[1]:
        return None
    factors = total.terms[atoms[Q]], total.terms[atoms[K]]
    length = atoms[Q].args[1].value
    return (length, factors[0]) if factors in ((1, -1), (-1, 1)) and length <= _LONGEST else None


def _at_most(total, needs):
    """total <= 0."""
    terms, const = total.terms, total.const
    if not terms:
        return [ALWAYS if const <= 0 else NEVER]
    if terms == {Q: 1, K: -1}:
        return [Band(None, -const)]
    if terms == {Q: -1, K: 1}:
        return [Band(const, None)]
    if chunk := _quotients(total):
        length, factor = chunk
        same = masks.chunk(length)
        if factor == -1 and const == 0:
            return [Known(masks.causal() | same)]
        if factor == -1 and const == 1:
            return [Band(0, None), Known(~same)]
        if factor == 1 and const == 0:
            return [Known(~masks.causal() | same)]
        if factor == 1 and const == 1:
            return [Band(None, -1), Known(~same)]
    for variable, first, interval in ((K, "prefix", "row_interval"), (Q, "global_rows", "column_interval")):
        found = _variable_and_rest(total, variable)
        if not found:
            continue
        factor, rest = found
        highest = n.floordiv(Linear().plus(rest, -1).node(), num(abs(factor)))  # that the variable may be, or
        behind = linear(n.add(highest, n.ONE)).node()
        least = rest.node() if factor == -1 else n.neg(highest)  # that it must be
        if all(atom.deps <= {"b"} for atom in rest.terms):
            return [First(first, behind, False) if factor > 0 else First(first, least, True)]
        if needs(rest):
            return [Interval(interval, None, behind) if factor > 0 else Interval(interval, least, None)]
    for name in "kq":
        atoms = [atom for atom in terms if name in atom.deps]
        if len(atoms) == 1 and atoms[0].op == "div" and is_const(atoms[0].args[1]) and abs(terms[atoms[0]]) == 1:
            inner, length = linear(atoms[0].args[0]), atoms[0].args[1].value
            rest = Linear(total.part(lambda atom: atom is not atoms[0]).terms, const)
            if terms[atoms[0]] == 1:  # x // n <= y is x <= n * y + n - 1
                opened = Linear(const=1 - length).plus(inner).plus(rest, length)
            else:
                opened = Linear().plus(inner, -1).plus(rest, length)
            return _at_most(opened, needs)
    return None


def _equal(total, needs):
    """total == 0."""
    terms, const = total.terms, total.const
    if not terms:
        return [ALWAYS if const == 0 else NEVER]
    if const % math.gcd(*terms.values()):
        return [NEVER]
    if set(terms) == {Q, K} and terms[Q] == -terms[K] and abs(terms[Q]) == 1:
        distance = -const * terms[Q]
        return [Band(distance, distance)]
    if (chunk := _quotients(total)) and const == 0:
        return [Known(masks.chunk(chunk[0]))]
    if strided := _strided(total):
        return [strided]
    for variable, first, interval in ((K, "prefix", "row_interval"), (Q, "global_rows", "column_interval")):
        found = _variable_and_rest(total, variable)
        if not found or abs(found[0]) != 1:
            continue
        value = Linear().plus(found[1], -found[0]).node()
        behind = n.add(value, n.ONE)
        if all(atom.deps <= {"b"} for atom in found[1].terms):
            return [First(first, behind, False), First(first, value, True)]
        if needs(found[1]):
            return [Interval(interval, value, behind)]
    return _documents(total, needs)


def _strided(total):
    atoms, factors = list(total.terms), list(total.terms.values())
    if any(atom.op != "mod" or not is_const(atom.args[1]) or atom.args[1] is not atoms[0].args[1] for atom in atoms):
        return None
    stride = atoms[0].args[1].value
    if len(atoms) == 1 and abs(factors[0]) == 1:
        remainder, inner = -total.const * factors[0], atoms[0].args[0]
        if inner.op == "abs" and remainder == 0:
            inner = inner.args[0]
        inner = linear(inner)
    elif len(atoms) == 2 and factors in ([1, -1], [-1, 1]) and total.const == 0:
        remainder, inner = 0, linear(atoms[0].args[0]).plus(linear(atoms[1].args[0]), -1)
    else:
        return None
    if inner.terms not in ({Q: 1, K: -1}, {Q: -1, K: 1}) or stride > _LONGEST:
        return None
    if not 0 <= remainder < stride:
        return NEVER
    return Known(masks.strided(stride, (remainder - inner.const) * inner.terms[Q] % stride))


def _documents(total, needs):
    of_q, of_k = (total.part(lambda atom, name=name: side(atom) == name) for name in "qk")
    free = total.part(lambda atom: side(atom) == "")
    if not of_q.terms or not of_k.terms or len(of_q.terms) + len(of_k.terms) + len(free.terms) < len(total.terms):
        return None
    if any("h" in atom.deps for atom in total.terms) or not (needs(of_q) or needs(of_k)):
        return None
    sign = -1 if next(iter(of_k.terms.values())) > 0 else 1
    first = Linear(const=total.const).plus(of_q).plus(free)
    return [Ids(Linear().plus(first, sign).node(), Linear().plus(of_k, -sign).node())]


def band_mask(low, high):
    low = None if low is not None and low <= -_FAR else low
    high = None if high is not None and high >= _FAR else high
    if (low or 0) > _FAR or (high or 0) < -_FAR or None not in (low, high) and low > high:
        return NEVER.mask
    if (low, high) == (0, None):
        return masks.causal()
    return masks.band(left=high, right=None if low is None else -low)


def first_mask(fact, name_of):
    """`name_of(node)`: the name of an array with an entry for each sequence."""
    if is_const(fact.length):
        length = fact.length.value
        if length <= 0 or length >= _FAR:
            return (ALWAYS if fact.inverted == (length <= 0) else NEVER).mask
    else:
        length = name_of(fact.length)
    mask = (masks.prefix if fact.family == "prefix" else masks.global_rows)(length)
    return ~mask if fact.inverted else mask

