# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Expressions of traced functions.

Equal expressions are one object, also across traces: arrays that are made of them are found again. An expression is an
integer, a truth value ("bool") or a real number; those of a shape are rows of a captured tensor, or what torch made of
them.
"""
import weakref

AXES = "bhqk"
_interned = weakref.WeakValueDictionary()


class Node:
    """An expression: operator, operands, value (of constants, captured tensors and foreign functions), kind, shape.

    deps: which of b, h, q, k, the score s and the distance d = q - k it depends on. size: of its tree.
    """

    __slots__ = ("op", "args", "value", "kind", "shape", "deps", "size", "__weakref__")

    def __repr__(self):
        if self.op == "const":
            return repr(self.value)
        return f"{self.op}({', '.join(map(repr, self.args))})" if self.args else self.op


def make(op, args=(), value=None, kind="int", shape=(), key=None):
    """The expression of these parts. `key` stands for a value that cannot be hashed."""
    key = (op, kind, shape, value if key is None else key, tuple(map(id, args)))
    node = _interned.get(key)
    if node is None:
        node = Node()
        node.op, node.args, node.value, node.kind, node.shape = op, args, value, kind, shape
        own = (op,) if op in ("b", "h", "q", "k", "s", "d") else ()
        node.deps = frozenset(own).union(*(arg.deps for arg in args))
        node.size = 1 + sum(arg.size for arg in args)
        _interned[key] = node
    return node


def variable(name):
    return make(name, kind="real" if name == "s" else "int")


def num(value):
    """A constant."""
    if isinstance(value, bool):
        return make("const", value=value, kind="bool")
    if isinstance(value, int):
        return make("const", value=value)
    return make("const", value=float(value), kind="real", key=repr(float(value)))


ZERO = num(0)


def is_const(*nodes):
    return all(node.op == "const" for node in nodes)


def walk(node, known=()):
    """It and all that it is made of, operands first, without those of `known` and their operands."""
    seen, order, waiting = set(known), [], [(node, False)]
    while waiting:
        part, is_ready = waiting.pop()
        if is_ready:
            order.append(part)
        elif part not in seen:
            seen.add(part)
            waiting.append((part, True))
            waiting.extend((arg, False) for arg in reversed(part.args))
    return order
