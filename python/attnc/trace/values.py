# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Values of expressions at many positions at once, with NumPy or torch.

Integers are computed in 64 bits, real numbers in float32, or what torch makes of them.
"""
from .algebra import BITS
from .entries import thawed
from .nodes import walk
from .session import is_tensor

LEAST, LARGEST = -2**31, 2**31 - 1
_OPS = {
    "add": lambda v, a, b: a + b, "sub": lambda v, a, b: a - b, "mul": lambda v, a, b: a * b,
    "div": lambda v, a, b: a // b, "mod": lambda v, a, b: a % b, "truediv": lambda v, a, b: a / b,
    "pow": lambda v, a, b: a ** b,
    "neg": lambda v, a: -a, "abs": lambda v, a: abs(a),
    "min": lambda v, a, b: v.module.where(a <= b, a, b), "max": lambda v, a, b: v.module.where(a >= b, a, b),
    "lt": lambda v, a, b: a < b, "le": lambda v, a, b: a <= b, "eq": lambda v, a, b: a == b,
    "iff": lambda v, a, b: a == b, "and": lambda v, a, b: a & b, "or": lambda v, a, b: a | b, "not": lambda v, a: ~a,
    "select": lambda v, c, a, b: v.module.where(c, a, b), "real": lambda v, a: v.real(a),
    "trunc": lambda v, a: v.integer(v.module.trunc(a)),
    **{op: lambda v, a, op=op: v.integer(getattr(v.module, op)(a)) for op in ("floor", "ceil")},
    **{op: lambda v, a, op=op: getattr(v.module, op)(v.real(a)) for op in ("exp", "log", "sqrt", "tanh")},
    **{op: lambda v, a, b, of=of: of(a, b) for op, of in BITS.items()},
}


class _Values:
    def value(self, node, positions, known=None):
        """The value of an expression. `positions`: of variables, by name. `known`: values of parts."""
        values = dict(known or {})
        for part in walk(node, values):
            args = [values[arg] for arg in part.args]
            if part.op in positions:
                result = positions[part.op]
            elif part.op == "const":
                result = part.value
            elif part.op == "tensor":
                result = self.tensor(part.value)
            elif part.op == "load":
                result = self.wide(self.load(*args), part.kind)
            elif part.op == "limit":
                result = self.limit(*args, *part.value)
            elif part.op == "order":
                result = self.order(*args, part.value)
            elif part.op in ("foreign", "pick"):
                result = self.foreign(part, args)
                result = result if part.kind == "tuple" else self.wide(result, part.kind)
            else:
                result = _OPS[part.op](self, *args)
            values[part] = result
        return values[node]

    def limit(self, a, way, otherwise):
        a, where = getattr(self.module, way)(a), self.module.where
        inside = where(a < LEAST, LEAST, where(a > LARGEST, LARGEST, a))
        return self.integer(where(a == a, inside, otherwise))

    def order(self, a, otherwise):
        where, exact = self.module.where, self.narrow(a)
        bits = (exact + 0.0).view(self.module.int32)  # of 0.0 and -0.0 the same
        return self.integer(where(a == a, where(bits < 0, bits ^ LARGEST, bits), otherwise))

    def wide(self, a, kind):
        return self.integer(a) if kind == "int" else self.real(a) if kind == "real" else a


class NumPyValues(_Values):
    def __init__(self, device):
        import numpy
        self.module = numpy

    def tensor(self, x):
        return x

    def load(self, tensor, *positions):
        return tensor[positions]

    def integer(self, a):
        return self.module.asarray(a).astype(self.module.int64)

    def real(self, a):
        return self.module.asarray(a).astype(self.module.float64)

    def narrow(self, a):
        a = self.module.asarray(a)
        return _exactly(a, a.astype(self.module.float32))

    def array(self, owner, sizes, device):
        """The dense array of a `Hoisted`."""
        np = self.module
        axes = [axis for axis in owner.axes if axis in owner.node.deps]
        positions = {axis: np.arange(sizes[axis]) for axis in axes}
        if "d" in positions:
            positions["d"] = owner.reach[0] - positions["d"]
        result = self.value(owner.node, {axis: x.reshape(_along(axis, owner.axes)) for axis, x in positions.items()})
        result = np.broadcast_to(np.asarray(result), [sizes[axis] for axis in owner.axes])
        if result.size and owner.node.kind == "int":
            owner.check(result.min(), result.max())
        if owner.dtype == "i32":
            return np.ascontiguousarray(result.clip(LEAST, LARGEST), dtype=np.int32)
        return np.ascontiguousarray(result, dtype=np.float32)


def _exactly(a, narrow):
    if not ((narrow == a) | (a != a)).all():
        raise ValueError("real numbers of q and of k are compared in float32, in which some of these are others")
    return narrow


def _outermost(node):
    """The parts of functions of torch that no other one is made of."""
    foreign = {part for part in walk(node) if part.op in ("foreign", "pick")}
    return foreign.intersection(walk(node, {arg for part in foreign for arg in part.args}))


def _along(axis, axes):
    return [-1 if other == axis else 1 for other in axes]


class TorchValues(_Values):
    """Functions of torch that are kept are called under vmap, for one position, as flex_attention calls the whole."""

    def __init__(self, device):
        import torch
        self.device, self.module = torch.device(device or "cpu"), torch

    def tensor(self, x):
        return x if is_tensor(x) else self.module.from_numpy(x.copy()).to(self.device)

    def load(self, tensor, *positions):
        positions = [self.module.as_tensor(x, device=tensor.device) for x in positions]
        return self.module.ops.aten.index.Tensor(tensor, positions) if positions else tensor

    def foreign(self, part, args):
        if part.op == "pick":
            return args[0][part.value]
        _, function, spec = part.value
        called, more = thawed(spec, args)
        return function(*called, **more)

    def narrow(self, a):
        narrow = a.to(self.module.float32)
        return narrow if a.dtype != self.module.float64 else _exactly(a, narrow)

    def integer(self, a):
        return self.module.as_tensor(a).to(self.module.int64)

    def real(self, a):
        a = self.module.as_tensor(a)
        return a if a.dtype in (self.module.float32, self.module.float64) else a.to(self.module.float32)

    def array(self, owner, sizes, device):
        """The dense array of a `Hoisted`, on `device`; it is computed where captured tensors are."""
        self._move_to(owner)
        axes = [axis for axis in owner.axes if axis in owner.node.deps]
        positions = {axis: self.module.arange(sizes[axis], device=self.device) for axis in axes}
        if "d" in positions:
            positions["d"] = owner.reach[0] - positions["d"]
        result = self._at(owner.node, [{axis: positions.get(axis)} for axis in owner.axes])
        return self._finished(owner, result, [sizes[axis] for axis in owner.axes], device)

    def packed_array(self, owner, heads, tokens):
        """The same with tokens in place of sequences and positions. `tokens`: cu_seqlens and count by side."""
        torch, wanted = self.module, self.device
        self._move_to(owner)
        side = next((axis for axis in "qk" if axis in owner.axes), None)
        cu, count = tokens[side or "q"]
        cu, batch = cu.to(self.device), len(cu) - 1
        head = {"h": torch.arange(heads, device=self.device)}
        if side is None:
            groups, extents = [{"b": torch.arange(batch, device=self.device)}, head], [batch, heads]
            chosen = [i for i, axis in enumerate("bh") if axis in owner.axes]
        else:
            token = torch.arange(count, device=self.device)
            sequence = torch.searchsorted(cu[1:].contiguous(), token, right=True)
            beyond = sequence >= batch  # tokens of no sequence
            sequence = sequence.masked_fill(beyond, 0)
            groups = [head, {"b": sequence, side: (token - cu[sequence]).masked_fill(beyond, 0)}]
            extents, chosen = [heads, count], [0, 1] if "h" in owner.axes else [1]
        groups = [{axis: x for axis, x in groups[i].items() if axis in owner.node.deps} for i in chosen]
        return self._finished(owner, self._at(owner.node, groups), [extents[i] for i in chosen], wanted)

    def _move_to(self, owner):
        tensors = sorted(filter(is_tensor, owner.captured), key=lambda x: -x.dim())
        if tensors:
            self.device = tensors[0].device

    def _at(self, node, groups):
        """The value with a dimension for each group of positions, of extent 1 if it has none."""
        groups = [{axis: x for axis, x in group.items() if x is not None} for group in groups]
        known = {part: self._foreign_at(part, groups) for part in _outermost(node)}
        result = self.value(node, {axis: x.reshape([-1 if i == other else 1 for other in range(len(groups))])
                                   for i, group in enumerate(groups) for axis, x in group.items()}, known)
        result = self.module.as_tensor(result, device=self.device)
        return result.reshape([1] * (len(groups) - result.dim()) + list(result.shape))

    def _foreign_at(self, node, groups):
        groups = [{axis: x for axis, x in group.items() if axis in node.deps} for group in groups]
        names = [axis for group in groups for axis in group]
        function = lambda *positions: self.value(node, dict(zip(names, positions)))  # noqa: E731
        for group in reversed(groups):
            if group:
                function = self.module.vmap(function, in_dims=tuple(0 if name in group else None for name in names))
        extents = [len(next(iter(group.values()))) if group else 1 for group in groups]
        if 0 in extents:
            return self.wide(self.module.zeros(extents, device=self.device), node.kind)
        return function(*(x for group in groups for x in group.values())).reshape(extents)

    def _finished(self, owner, result, extents, device):
        torch = self.module
        if result.device.type == "cpu" and result.numel() and owner.node.kind == "int":  # for a GPU one would wait
            owner.check(result.min().item(), result.max().item())
        if owner.dtype == "i32":
            result = result.clamp(LEAST, LARGEST)
        result = result.to(torch.int32 if owner.dtype == "i32" else torch.float32)
        return (result if device is None else result.to(device)).expand(extents).contiguous()
