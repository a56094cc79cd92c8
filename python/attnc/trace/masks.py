# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The mask of a traced condition: families where there are such, a predicate for the rest, arrays of one side."""
import re

from .. import masks
from . import algebra as n
from .families import ALWAYS, NEVER, Band, First, Ids, Interval, Known, band_mask, facts_of, first_mask
from .linear import Linear, difference, integral, linear, side
from .nodes import is_const, num
from .predicates import Condition, Predicates
from .values import LARGEST

_LONG = (16, 4, 1)  # what has more parts is evaluated ahead; a condition that is too long takes the next
_MASKS, _DEPTH, _CODE = 64, 32, 512
_LARGEST_TREE = 20000


def mask_of(root, session):
    """The mask of a condition, which is an expression of kind "bool"."""
    for long in _LONG:
        lowering = Lowering(session, long)
        mask = lowering.mask(root)
        if mask is not None:
            return mask
    raise session.refusal_of(root, f"the condition is too long: a mask has at most {_CODE} instructions and numbers")


class Lowering(Predicates):
    """One way to make a mask of a condition."""

    def __init__(self, session, long):
        super().__init__(session, long)
        self._facts = {}

    def mask(self, root):
        """The mask, or None if it is too long."""
        node = self.normal(root, False)
        made = self.lowered(node)
        if isinstance(made, masks.Mask) and not _fits(str(made)):
            made = self.condition(node)
        if isinstance(made, Condition) and made.cost > _CODE:
            return None
        text = str(self.closed(made))
        longest = max((condition.cost for condition in self.conditions), default=0)
        if longest > _CODE:
            return None
        words = set(re.findall(r"\w+", text))
        return masks.Mask(text, {name: array for name, array in self.arrays.items() if name in words})

    # Conditions without `not`, but of what has no opposite -----------------------------------------------------------

    def normal(self, node, negated):
        if node.size > _LARGEST_TREE:
            raise self.session.refusal_of(node, "the condition is too long")
        op, args = node.op, node.args
        if op == "const":
            return num(node.value != negated)
        if op == "not":
            return self.normal(args[0], not negated)
        if op in ("and", "or"):
            make = n.both if (op == "and") != negated else n.either
            return make(self.normal(args[0], negated), self.normal(args[1], negated))
        if op in ("iff", "select") and not self.is_array(node):
            return self.normal(self._expanded(node), negated)
        if op in ("le", "lt", "eq"):
            if n.joined(*args) == "real":
                integers = integral(node)
                if integers is not None:
                    return self.normal(integers, negated)
            else:
                opened = self._without_abs(n.inverse(node) if negated else node)
                if opened is not None:
                    return self.normal(opened, False)
        return n.inverse(node) if negated else node

    def _expanded(self, node):
        if node.op == "select":
            c, a, b = node.args
            return n.either(n.both(c, a), n.both(n.inverse(c), b))
        a, b = node.args
        if self.is_array(a) and self.is_array(b):
            return n.eq(n.as_int(a), n.as_int(b))
        return n.either(n.both(a, b), n.both(n.inverse(a), n.inverse(b)))

    def _without_abs(self, node):
        """|x| <= y as two comparisons, if both are of a family."""
        if node.op == "not" or n.joined(*node.args) == "real":
            return None
        total = difference(node)
        atoms = [atom for atom in total.terms if atom.op == "abs" and side(atom) is None]
        if len(atoms) != 1 or node.op == "eq":
            return None
        rest = Linear({atom: times for atom, times in total.terms.items() if atom is not atoms[0]}, total.const)
        factor, inner = total.terms[atoms[0]], linear(atoms[0].args[0])
        parts = [n.less_equal(rest.plus(inner, sign * factor).node(), n.ZERO) for sign in (1, -1)]
        if any(self.facts(part) is None for part in parts):
            return None
        return (n.both if factor > 0 else n.either)(*parts)

    def facts(self, node):
        if node not in self._facts:
            self._facts[node] = facts_of(node, self.needs_sum)
        return self._facts[node]

    # Masks of conditions ---------------------------------------------------------------------------------------------

    def lowered(self, node):
        """A Mask, or a Condition where no family says it."""
        if node.op in ("and", "or"):
            return self._combined(node.op, _flat(node.op, node))
        facts = self.facts(node if node.op != "not" else node.args[0])
        if facts is not None:
            mask = self._all(facts)
            return mask if node.op != "not" else ALWAYS.mask if mask == NEVER.mask else ~mask
        if node.op == "const":
            return (ALWAYS if node.value else NEVER).mask
        return self.condition(node)

    def closed(self, made):
        if isinstance(made, masks.Mask):
            return made
        self.conditions.append(made)
        return masks.Mask(f'#attn.predicate<"{made.text}">')

    def is_family(self, node):
        """Is it made of families only?"""
        if node.op in ("and", "or"):
            return all(map(self.is_family, node.args))
        return self.facts(node if node.op != "not" else node.args[0]) is not None

    def _combined(self, op, parts):
        facts, made, conditions, arrays = [], [], [], {}
        for part in self._implied(parts) if op == "and" else parts:
            found = self.facts(part)
            if found is not None and (op == "and" or len(found) == 1):
                facts.extend(found)
            elif self.is_array(part) and not self.is_family(part):
                name = side(part) + ("h" if "h" in part.deps else "")
                arrays[name] = (n.both if op == "and" else n.either)(arrays[name], part) if name in arrays else part
            else:
                result = self.lowered(part)
                (made if isinstance(result, masks.Mask) else conditions).append(result)
        if op == "and":
            result = [self._all(facts, arrays)] if facts else []
        else:
            result = [self._all([fact]) for fact in facts]
        result = _without_equal([*result, *made])
        neutral, absorbing = (ALWAYS.mask, NEVER.mask) if op == "and" else (NEVER.mask, ALWAYS.mask)
        if absorbing in result:
            return absorbing
        conditions = [self.condition(part) for part in arrays.values()] + conditions
        result = [mask for mask in result if mask != neutral] or ([] if conditions else [neutral])
        if conditions:
            joined = self.joined(op, conditions)
            if not result:
                return joined
            result.append(self.closed(joined))
        whole = result[0]
        for mask in result[1:]:
            whole = whole & mask if op == "and" else whole | mask
        return whole

    def _implied(self, parts):
        """Comparisons of an `and` as what they are where an equality of it holds: with id[q] == id[k], q - start[id[q]]
        >= k - start[id[k]] is q >= k."""
        equal = {}
        for part in parts:
            if part.op == "eq" and n.joined(*part.args) == "int":
                total = difference(part)
                of = {side(atom): atom for atom in total.terms}
                if len(total.terms) == 2 and of.keys() == {"q", "k"} and total.const == 0 and \
                        total.terms[of["q"]] == -total.terms[of["k"]]:
                    equal.setdefault(of["k"], of["q"])

        known = {*equal, *equal.values()}

        def other(node):
            if node.op == "mod" and n.floordiv(*node.args) in known:
                node = n.sub(node.args[0], n.mul(n.floordiv(*node.args), node.args[1]))
                return n.replaced(node, equal.get)
            return equal.get(node)

        def simpler(part):
            if part.op in ("and", "or"):
                return (n.both if part.op == "and" else n.either)(*map(simpler, part.args))
            if part.op in ("le", "lt") and n.joined(*part.args) == "int":
                new = n.replaced(part, other)
                found = new if is_const(new) else None if new is part else self.facts(new)
                if found is not None and (is_const(new) or all(isinstance(fact, Band) for fact in found)):
                    return new
            return part

        return _flat("and", *map(simpler, parts)) if equal else parts

    def _all(self, facts, conditions=None):
        """The mask of facts that all hold, with conditions of one side (by side) where arrays can hold them as well."""
        conditions = {} if conditions is None else conditions
        lows = [fact.low for fact in facts if isinstance(fact, Band) and fact.low is not None]
        highs = [fact.high for fact in facts if isinstance(fact, Band) and fact.high is not None]
        result = [band_mask(max(lows, default=None), min(highs, default=None))] if lows or highs else []
        for fact in facts:
            if isinstance(fact, Known):
                result.append(fact.mask)
            elif isinstance(fact, First):
                result.append(first_mask(fact, lambda node, fact=fact: self.array(
                    "prefix" if fact.family == "prefix" else "global_rows", "b", node).name))
        for fact in facts:
            if isinstance(fact, Ids):
                result.append(self._document(fact, conditions))
        for family, of in (("row_interval", "q"), ("column_interval", "k")):
            intervals = [fact for fact in facts if isinstance(fact, Interval) and fact.family == family]
            if intervals:
                result.append(self._interval(family, of, intervals, conditions))
        whole = None
        for mask in _without_equal(result):
            whole = mask if whole in (None, ALWAYS.mask) else whole & mask if mask != ALWAYS.mask else whole
        return NEVER.mask if NEVER.mask in result else whole

    def _interval(self, family, of, intervals, conditions):
        begin = end = None
        for fact in intervals:
            if fact.begin is not None:
                begin = fact.begin if begin is None else n.maximum(begin, fact.begin)
            if fact.end is not None:
                end = fact.end if end is None else n.minimum(end, fact.end)
        for name in [name for name in (of, of + "h", "", "h") if name in conditions]:
            condition = conditions.pop(name)
            if end is not None:
                end = n.select(condition, end, n.ZERO)
            else:
                begin = n.select(condition, begin, num(LARGEST))
        axes = "bhqk" if any("h" in node.deps for node in (begin, end) if node is not None) else "bqk"
        axes = axes.replace("k" if of == "q" else "q", "")
        parts = [f'{name} = "{self.array(("row_" if of == "q" else "column_") + name, axes, node).name}"'
                 for name, node in (("begin", begin), ("end", end)) if node is not None]
        return masks.Mask(f"#attn.{family}<{', '.join(parts)}{', per_head' if 'h' in axes else ''}>")

    def _document(self, fact, conditions):
        """Equal ids, none of which is 0: that hides."""
        ids = [fact.q, fact.k]
        nonzero = [n.inverse(n.eq(node, n.ZERO)) for node in ids]
        if not any(_has(conditions.get(name), own) for name, own in zip("qk", nonzero)):
            ids = [n.add(node, n.select(n.less(node, n.ZERO), n.ZERO, n.ONE)) for node in ids]
        for i, names in enumerate((("q", ""), ("k",))):
            for name in [name for name in names if name in conditions]:
                left = [part for part in _flat("and", conditions.pop(name)) if part is not nonzero[i]]
                for condition in left:
                    ids[i] = n.select(condition, ids[i], n.ZERO)
        names = [self.array(role, axes, node, exact=True).name
                 for role, axes, node in zip(("ids_q", "ids_kv"), ("bq", "bk"), ids)]
        return masks.Mask(f'#attn.document<"{names[0]}", "{names[1]}">')


def _has(condition, part):
    return condition is not None and part in _flat("and", condition)


def _flat(op, *nodes):
    return [part for node in nodes for part in (_flat(op, *node.args) if node.op == op else [node])]


def _without_equal(made):
    return list({str(mask): mask for mask in made}.values())


def _fits(text):
    depth = deepest = 0
    for part in re.findall(r"#attn\.(?:and|or|not)<|<|>", text):
        depth += -1 if part == ">" else 1
        deepest = max(deepest, depth)
    leaves = len(re.findall(r"#attn\.(?!and<|or<|not<)", text))
    return leaves <= _MASKS and deepest < _DEPTH
