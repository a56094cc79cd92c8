# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Expressions in the language of `#attn.predicate`; what is of one side and not of the language becomes an array."""
from typing import NamedTuple

from . import algebra as n
from .arrays import hoisted
from .linear import Linear, difference, linear, side
from .nodes import is_const, walk

BIT_SIGNS = {"bitand": "&", "bitor": "|", "bitxor": "^"}
_PLAIN = {"b", "h", "q", "k", "const", "add", "sub", "neg", "min", "max", "abs", "select", "le", "lt", "eq", "iff",
          "not", "and", "or", *BIT_SIGNS}
OR, AND, COMPARE, SUM, TERM, UNARY, PRIMARY = range(1, 8)


class Condition(NamedTuple):
    """A text, how tightly its operator binds, and how many instructions and numbers it is."""
    text: str
    level: int
    cost: int

    def at(self, level):
        """In parentheses, if it binds less tightly."""
        return self.text if self.level >= level else f"({self.text})"


class Predicates:
    """Texts of expressions, and the arrays that they read, by name. `normal(condition, negated)` is the subclass's."""

    def __init__(self, session, long):
        self.session, self.long = session, long
        self.arrays, self.conditions, self._named, self._needs = {}, [], {}, {}

    # What is evaluated ahead -----------------------------------------------------------------------------------------

    def needs(self, node):
        """Is there anything in it that the language does not have?"""
        if node not in self._needs:
            op = node.op
            if node.kind == "real" or node.shape:
                result = True
            elif op in ("mul", "div", "mod"):
                constant = is_const(node.args[1]) and (op == "mul" or node.args[1].value > 0)
                result = not constant or self.needs(node.args[0])
            else:
                result = op not in _PLAIN or any(map(self.needs, node.args))
            self._needs[node] = result
        return self._needs[node]

    def needs_sum(self, total):
        """The same of a sum of one side; what is long counts as well."""
        return sum(atom.size for atom in total.terms) > self.long or any(map(self.needs, total.terms))

    def is_array(self, node):
        """Is it of one side, and to be evaluated ahead?"""
        return side(node) is not None and (self.needs(node) or node.size > self.long) and not is_const(node)

    def array(self, role, axes, node, exact=False):
        """The array of an expression with such axes."""
        node = n.as_int(node)
        found = self._named.get((node, axes))
        if found is None:
            count = sum(known[1] == role for known in self._named.values())
            name = f"traced_{role}" + (f"_{count}" if count else "")
            self._named[node, axes] = found = hoisted(name, axes, node, exact=exact), role
            self.arrays[name] = found[0]
        return found[0]

    def entry(self, total):
        """The entry of an array of one side, as in `name[h, q]`, for a sum or another expression."""
        node = total.node() if isinstance(total, Linear) else total
        of, head = side(node), "h" in node.deps
        if head and "b" in node.deps:
            of = of or "q"  # there is no `name[b, h]`
        axes = ("" if head and not of else "b") + ("h" if head else "") + of
        role = {"": "b", "q": "q", "k": "k"}[of] if not head else "h" + of
        position = ", ".join(["h"] * head + [of] * bool(of)) or "b"
        return Condition(f"{self.array(role, axes, node, exact=True).name}[{position}]", PRIMARY, 2)

    # Conditions ------------------------------------------------------------------------------------------------------

    def condition(self, node):
        if self.is_array(node):
            opposite = node.op == "not"
            entry = self.entry(node.args[0] if opposite else node)
            return Condition(f"{entry.text} {'==' if opposite else '!='} 0", COMPARE, entry.cost + 4)
        if node.op == "const":
            return Condition("0 == 0" if node.value else "0 != 0", COMPARE, 5)
        if node.op in ("and", "or"):
            return self.joined(node.op, list(map(self.condition, node.args)))
        if node.op == "not" and node.args[0].op == "eq":
            return self.relation(node.args[0], "!=")
        if node.op in ("le", "lt", "eq"):
            return self.relation(node, "==" if node.op == "eq" else "<=")
        raise self.refusal(node)

    def joined(self, op, conditions):
        if len(conditions) == 1:
            return conditions[0]
        level, sign = (AND, " && ") if op == "and" else (OR, " || ")
        return Condition(sign.join(c.at(level) for c in conditions), level, sum(c.cost + 1 for c in conditions))

    def relation(self, node, sign):
        if n.joined(*node.args) == "real":
            raise self.refusal(node)
        terms, const = self.terms(difference(node))
        left = [(factor, text) for factor, text in terms if factor > 0]
        right = [(-factor, text) for factor, text in terms if factor < 0]
        if not left:  # of -x: x >= const
            left, right, const, sign = right, [], -const, ">=" if sign == "<=" else sign
        elif sign == "<=" and const == 1:
            sign, const = "<", 0
        first = self.sum_text(left, max(const, 0) if right else 0)
        second = self.sum_text(right, max(-const, 0) if right else -const)
        return Condition(f"{first.text} {sign} {second.text}", COMPARE, first.cost + second.cost + 2)

    # Integers --------------------------------------------------------------------------------------------------------

    def terms(self, total):
        """(factor, text) of a sum, and what is left of its constant; parts of one side that need it are entries."""
        result, const = [], total.const
        parts = {name: total.part(lambda atom, name=name: side(atom) == name) for name in ("q", "k", "", None)}
        free = parts[""].part(lambda atom: self.needs(atom) and atom.deps != {"h"})  # goes with rows or keys
        of_heads = parts[""].part(lambda atom: self.needs(atom) and atom.deps == {"h"})
        parts[""] = parts[""].plus(free, -1).plus(of_heads, -1)
        for name in ("q", "k"):
            if parts[name].terms and self.needs_sum(parts[name]):
                whole = parts[name].plus(free)
                whole.const, const, free = const, 0, Linear()
                sign = -1 if next(iter(whole.terms.values())) < 0 else 1
                result.append((sign, self.entry(Linear().plus(whole, sign))))
                parts[name] = Linear()
        for part in filter(lambda part: part.terms, (free, of_heads)):
            sign = -1 if next(iter(part.terms.values())) < 0 else 1
            result.append((sign, self.entry(Linear().plus(part, sign))))
        for part in parts.values():
            result.extend((factor, self.atom(atom)) for atom, factor in part.terms.items())
        return result, const

    def sum_text(self, terms, const):
        text, cost = "", 0
        for factor, atom in sorted(terms, key=lambda term: term[0] < 0):
            part = atom.at(TERM) if abs(factor) == 1 else f"{atom.at(UNARY)} * {abs(factor)}"
            sign = " - " if factor < 0 else " + "
            text = f"{text}{sign}{part}" if text else f"-{atom.at(UNARY)}" if factor == -1 else \
                f"{atom.at(UNARY)} * {factor}" if factor < 0 else part
            cost += atom.cost + 3
        if not text:
            return Condition(str(const), PRIMARY if const >= 0 else UNARY, 2)
        if const:
            text, cost = f"{text} {'-' if const < 0 else '+'} {abs(const)}", cost + 3
        single = len(terms) == 1 and not const
        level = SUM if not single else terms[0][1].level if terms[0][0] == 1 else UNARY if terms[0][0] == -1 else TERM
        return Condition(text, level, cost)

    def integer(self, node):
        """The text of an expression of integers."""
        return self.sum_text(*self.terms(linear(node)))

    def atom(self, node):
        if self.is_array(node):
            return self.entry(node)
        op, args = node.op, node.args
        if node.kind == "real" or op not in (*_PLAIN, "div", "mod"):
            raise self.refusal(node)
        if op in ("b", "h", "q", "k"):
            return Condition(op, PRIMARY, 1)
        if op in ("div", "mod"):
            if not is_const(args[1]):
                raise self.refusal(node)
            inside = self.integer(args[0])
            return Condition(f"{inside.at(TERM)} {'/' if op == 'div' else '%'} {args[1].value}", TERM, inside.cost + 2)
        if op in ("min", "max", "abs"):
            parts = list(map(self.integer, args))
            cost = sum(part.cost for part in parts) * (2 if op == "abs" else 1) + 3
            return Condition(f"{op}({', '.join(part.text for part in parts)})", PRIMARY, cost)
        if op == "select":
            c, (a, b) = self.condition(self.normal(args[0], False)), map(self.integer, args[1:])
            return Condition(f"({c.at(OR)} ? {a.text} : {b.text})", PRIMARY, c.cost + a.cost + b.cost + 1)
        a, b = map(self.integer, args)
        return Condition(f"({a.at(UNARY)} {BIT_SIGNS[op]} {b.at(UNARY)})", PRIMARY, a.cost + b.cost + 1)

    def refusal(self, node):
        return self.session.refusal_of(*culprit(node))


def _is_alien(node):
    """Is its operator, whatever the operands, one that masks do not have?"""
    if node.op in ("mul", "div", "mod"):
        return node.kind == "real" or not is_const(node.args[1])
    return node.kind == "real" or bool(node.shape) or node.op not in _PLAIN


def culprit(node):
    """The innermost part that mixes q and k in a way that no mask has, and what to write instead."""
    part = next((part for part in walk(node) if side(part) is None and _is_alien(part)), node)
    op = part.op
    if op == "load":
        return part, ("a table that is read at q and k cannot be a mask: it would be a matrix of all pairs. Give "
                      "blocks of it by attnc.block_map, a tree's paths by attnc.tree or attnc.ancestors, or add it as "
                      "a bias with entries of -inf: attnc.bias(tensor, \"qk\")")
    if op in ("shl", "shr"):
        return part, ("q and k meet in a shift that is not by a constant; in masks `<<` and `>>` of both are by "
                      "numbers from 0 to 62")
    if op in ("mul", "div", "mod", "pow") and part.kind == "int":
        return part, ("q and k meet in a product, quotient or power that is not by a constant; in masks `*`, `//` and "
                      "`%` of both are by constants")
    if op in ("foreign", "pick"):
        name = (part if op == "foreign" else part.args[0]).value[0]
        return part, (f"`{name}` of q and k together is not in the language of masks; functions of one side alone are "
                      "evaluated ahead, so split it, or give blocks by attnc.block_map")
    return part, ("real numbers that mix q and k are for scores only; compare integers: `//` in place of `/`, and "
                  "q < bound(k) in place of q - bound(k) < 0.0")
