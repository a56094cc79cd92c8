# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The score modifier of a traced number: `#attn.score`, or the modifier that says the same.

Entries of captured tensors at plain positions, as t[h, q], are arrays of these axes. What else is of one side and not
of the language becomes an array, as does what exp, log, sqrt and tanh make of one side; a table that is read at q - k
becomes a relative bias.
"""
import math

from . import algebra as n
from .._text import float_text
from ..scores import Score
from .arrays import hoisted
from .linear import side
from .nodes import AXES, is_const, num, variable, walk
from .predicates import AND, BIT_SIGNS, COMPARE, OR, PRIMARY, SUM, TERM, UNARY
from .tables import is_of_distance, table_of

S = variable("s")
_PLAIN = {*AXES, "s", "const", "add", "sub", "neg", "mul", "truediv", "min", "max", "abs", "select", "le", "lt", "eq",
          "iff", "not", "and", "or", "real"}
_FUNCTIONS = ("exp", "log", "sqrt", "tanh")
_SIGNS = {"div": "//", "mod": "%", "shl": "<<", "shr": ">>", **BIT_SIGNS}


def score_of(root, session):
    """The score modifier of a number, which is an expression of kind "int" or "real"."""
    return Lowering(session).score(n.as_real(root))


def _addends(node, sign=1):
    if node.op in ("add", "sub"):
        return _addends(node.args[0], sign) + _addends(node.args[1], sign if node.op == "add" else -sign)
    return _addends(node.args[0], -sign) if node.op == "neg" else [(sign, node)]


def _axes(node):
    """The axes of a captured tensor that is read at plain positions in order, as t[h, q]; else None."""
    if node.op != "load" or node.kind != "real":
        return None
    axes = "".join(position.op if len(position.op) == 1 else "?" for position in node.args[1:])
    in_order = [axis for axis in AXES if axis in axes]
    return axes if axes and list(axes) == in_order else None


class Lowering:
    def __init__(self, session):
        self.session, self.arrays, self._named, self._needs = session, {}, {}, {}

    def score(self, root):
        made = self._known(root)
        if made is None:
            tables, others = [], []
            for term in _addends(root):
                (tables if self.is_table(term[1]) else others).append(term)
            rest = root if not tables else self._sum(others)
            made = [] if rest is S else [self._known(rest) or f'#attn.score<"{self.text(n.as_real(rest))[0]}">']
            if tables:
                made.append(self._relative(self._sum(tables)))
            made = ", ".join(made)
        return Score(made or '#attn.score<"s">', self.arrays)

    @staticmethod
    def _sum(terms):
        result = n.ZERO
        for sign, term in terms:
            result = n.add(result, term) if sign > 0 else n.sub(result, term)
        return result

    def _known(self, root):
        """softcap, bias and head_scale."""
        if root.op == "mul" and is_const(root.args[1]) and root.args[0].op == "tanh":
            inner, cap = root.args[0].args[0], root.args[1].value
            if inner.op == "truediv" and inner.args[0] is S and cap == inner.args[1].value and cap > 0:
                return f"#attn.softcap<{float_text(cap)}>"
        if root.op in ("add", "mul") and S in root.args:
            other = root.args[0] if root.args[1] is S else root.args[1]
            axes = _axes(other)
            if axes and root.op == "add":
                return f'#attn.bias<"{self.array(other).name}", {axes}>'
            if axes == "h":
                return f'#attn.head_scale<"{self.array(other).name}">'
        return None

    # Arrays ----------------------------------------------------------------------------------------------------------

    def needs(self, node):
        """Is there anything in it that the language does not have, or that is better evaluated ahead?"""
        if node not in self._needs:
            op = node.op
            if node.shape or op == "load":
                result = _axes(node) is None or bool(node.shape)
            elif op in ("div", "mod", *BIT_SIGNS):
                divides = op in BIT_SIGNS or is_const(node.args[1]) and node.args[1].value > 0
                result = not divides or any(map(self.needs, node.args)) or any(
                    part.op == "mul" and not is_const(part.args[1]) for part in walk(node))  # a real number there
            elif op in _FUNCTIONS:
                result = self._is_one_sided(node) or self.needs(node.args[0])
            else:
                result = op not in _PLAIN or any(map(self.needs, node.args))
            self._needs[node] = result
        return self._needs[node]

    @staticmethod
    def _is_one_sided(node):
        return side(node) is not None and "s" not in node.deps

    def is_array(self, node):
        return self._is_one_sided(node) and self.needs(node) and not is_const(node)

    def array(self, node):
        node = n.as_int(node)
        if node not in self._named:
            name = "traced_score" + (f"_{len(self._named)}" if self._named else "")
            axes = _axes(node) or "".join(axis for axis in AXES if axis in node.deps) or "h"
            self._named[node] = self.arrays[name] = hoisted(name, axes, node, "f32")
        return self._named[node]

    def is_table(self, node):
        return "s" not in node.deps and is_of_distance(node) and any(
            part.op == "load" and side(part) is None for part in walk(node))

    def _relative(self, node):
        node, reach, message = table_of(node)
        if message:
            raise self.session.refusal_of(node, message)
        self.arrays["traced_table"] = hoisted("traced_table", "hd", node, "f32", reach=reach)
        return f'#attn.relative_bias<"traced_table", {reach[0]}>'

    # Texts: (text, level, kind) --------------------------------------------------------------------------------------

    def entry(self, node):
        array = self.array(node)
        text = f"{array.name}[{', '.join(array.axes)}]"
        return (f"{text} > 0.5", COMPARE, "bool") if node.kind == "bool" else (text, PRIMARY, "real")

    def text(self, node):
        if self.is_array(node) or _axes(node):
            return self.entry(node)
        op = node.op
        if op == "const":
            return self._constant(node)
        if op in ("div", "mod", *BIT_SIGNS, *_PLAIN, *_FUNCTIONS):
            parts = [self.text(arg) for arg in node.args]
            made = getattr(self, "_" + op, self._other)(node, *parts)
            if made is not None:
                return made
        raise self.refusal(node)

    def _constant(self, node):
        value = node.value
        if node.kind == "int":
            return str(value), PRIMARY if value >= 0 else UNARY, "int"
        if not math.isfinite(value) or abs(value) > 2.0**100:
            raise self.session.refusal_of(node, "a score of -inf hides a pair: make the condition a mask, as "
                                          "attnc.mask(lambda b, h, q, k: q >= k), beside this score" if value < 0 else
                                          f"{value} cannot be a score; real numbers go up to 2^100")
        return float_text(value), PRIMARY if value >= 0 else UNARY, "real"

    def _other(self, node, *parts):
        op = node.op
        if op in (*AXES, "s"):
            return op, PRIMARY, node.kind
        kind = "real" if any(part[2] == "real" for part in parts) else "int"
        if op in ("add", "sub"):
            sign, b = "+-"[op == "sub"], parts[1]
            if is_const(node.args[1]) and node.args[1].value < 0:
                sign, b = "-+"[op == "sub"], self._constant(n.neg(node.args[1]))
            return f"{_at(parts[0], SUM)} {sign} {_at(b, TERM)}", SUM, kind
        if op == "neg":
            return "-" + _at(parts[0], UNARY), UNARY, kind
        if op in BIT_SIGNS and kind == "int":
            return f"({_at(parts[0], UNARY)} {BIT_SIGNS[op]} {_at(parts[1], UNARY)})", PRIMARY, kind
        if op in ("min", "max", "abs", *_FUNCTIONS):
            return f"{op}({', '.join(part[0] for part in parts)})", PRIMARY, "real" if op in _FUNCTIONS else kind
        if op in ("and", "or"):
            level, sign = (AND, "&&") if op == "and" else (OR, "||")
            return f"{_at(parts[0], level)} {sign} {_at(parts[1], level)}", level, "bool"
        if op in ("lt", "le"):
            return f"{_at(parts[0], SUM)} {'<' if op == 'lt' else '<='} {_at(parts[1], SUM)}", COMPARE, "bool"
        return None

    def _mul(self, node, a, b):
        real = "real" in (a[2], b[2])
        between = "" if real or is_const(node.args[1]) else "1.0 * "  # integers are multiplied by constants only
        return f"{_at(a, TERM)} * {between}{_at(b, UNARY)}", TERM, "real" if real or between else "int"

    def _truediv(self, node, a, b):
        between = ""
        if "real" not in (a[2], b[2]):  # that would round down
            if is_const(node.args[1]):
                b = self._constant(num(float(node.args[1].value)))
            else:
                between = " * 1.0"
        return f"{_at(a, TERM)}{between} / {_at(b, UNARY)}", TERM, "real"

    def _real(self, node, a):
        return a if a[2] == "real" else (f"{_at(a, TERM)} * 1.0", TERM, "real")

    def _div(self, node, a, b):
        if a[2] == "real" or not is_const(node.args[1]) or node.args[1].value <= 0:
            return None
        return f"{_at(a, TERM)} {'/' if node.op == 'div' else '%'} {b[0]}", TERM, "int"

    _mod = _div

    def _eq(self, node, a, b):
        a_text, b_text = _at(a, SUM), _at(b, SUM)
        if "real" not in (a[2], b[2]):
            return f"{a_text} == {b_text}", COMPARE, "bool"
        return f"{a_text} <= {b_text} && {a_text} >= {b_text}", AND, "bool"

    def _iff(self, node, a, b):
        return (f"{_at(a, AND)} && {_at(b, AND)} || !{_at(a, UNARY)} && !{_at(b, UNARY)}"), OR, "bool"

    def _not(self, node, a):
        return "!" + _at(a, UNARY), UNARY, "bool"

    def _select(self, node, c, a, b):
        kinds = {a[2], b[2]}
        return f"({c[0]} ? {a[0]} : {b[0]})", PRIMARY, kinds.pop() if len(kinds) == 1 else "real"

    def refusal(self, node):
        known = (*_PLAIN, *_FUNCTIONS)
        part = next((part for part in walk(node) if not self._is_one_sided(part) and part.op not in known and
                     not _axes(part)), node)
        name = part.value[0] if part.op == "foreign" else _SIGNS.get(part.op, part.op)
        if "s" in part.deps:
            message = (f"`{name}` of a score is not in the language of scores, which has + - * /, min, max, abs, exp, "
                       "log, sqrt, tanh, comparisons and where")
        elif part.op == "load":
            message = ("a table that is read at positions which mix q and k, other than plain ones as t[h, q, k] or a "
                       "distance q - k, is not in the language of scores: make it a tensor of [b, h, q, k] (some of "
                       "these axes) ahead, and add its entries: s + bias[b, h, q, k]")
        else:
            limit = ", in which entries of tables are real numbers, and `//`, `%`, `<<` and `>>` are by constants"
            message = (f"`{name}` of q and k together is not in the language of scores{limit * (part.op in _SIGNS)}; "
                       "what is of one side is evaluated ahead; a tensor of [b, h, q, k] that is made ahead can be "
                       "added: s + bias[b, h, q, k]")
        return self.session.refusal_of(part, message)


def _at(part, level):
    return part[0] if part[1] >= level else f"({part[0]})"
