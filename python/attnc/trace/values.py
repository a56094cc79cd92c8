# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Values of expressions at many positions at once, with NumPy or torch.

Integers are computed in 64 bits, real numbers in float32, or what torch makes of them.
"""
from .algebra import BITS
from ..errors import UnsupportedError
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
    def __init__(self):
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

    def array(self, owner, sizes, packed=None):
        """The array of a `Hoisted`. `packed`: see evaluate()."""
        np, axes, positions = self.module, _axes(owner, packed), {}
        for axis in axes:
            group = self._tokens(axis, sizes[axis], *packed[axis]) if axis in (packed or ()) else {
                axis: np.arange(sizes[axis])}
            positions.update({name: x.reshape([-1 if other == axis else 1 for other in axes])
                              for name, x in group.items()})
        if "d" in axes:
            positions["d"] = owner.reach[0] - positions["d"]
        result = np.broadcast_to(np.asarray(self.value(owner.node, positions)), [sizes[axis] for axis in axes])
        self.check(owner, result)
        if owner.dtype == "i32":
            return result.clip(LEAST, LARGEST).astype(np.int32)
        return np.array(result, np.float32)

    def check(self, owner, result):
        if result.size and owner.node.kind == "int":
            owner.check(result.min(), result.max())

    def _tokens(self, side, count, cu_seqlens, padded_offsets):
        """Sequence and position of each token; the first ones for tokens of no sequence."""
        np = self.module
        cu_seqlens = np.asarray(cu_seqlens, np.int64)
        lengths = np.append(np.diff(cu_seqlens), 0)
        starts = cu_seqlens if padded_offsets is None else np.asarray(padded_offsets, np.int64)
        starts = np.where(lengths > 0, starts, count)
        order = np.argsort(starts)  # offsets of keys need not ascend
        token = np.arange(count)
        place = np.searchsorted(starts[order], token, side="right") - 1
        sequence, position = order[place], token - starts[order[place]]
        is_own = (place >= 0) & (position < lengths[sequence])
        return {"b": np.where(is_own, sequence, 0), side: np.where(is_own, position, 0)}


class JaxValues(NumPyValues):
    """For packed sequences in a program of JAX, which knows their lengths when it runs. Numbers are not checked, and a
    position outside of a captured array is its last one."""

    def __init__(self):
        import jax
        self.jax, self.module = jax, jax.numpy

    def tensor(self, x):
        return self.module.asarray(x)

    def order(self, a, otherwise):
        raise UnsupportedError("attnc does not compare real numbers of q with real numbers of k in packed sequences of "
                               "JAX: capture integers")

    def foreign(self, part, args):
        raise UnsupportedError(f"attnc does not evaluate {part.value[0]!r} of torch in packed sequences of JAX")

    def check(self, owner, result):
        pass

    def array(self, owner, sizes, packed=None):
        with self.jax.enable_x64(True):
            return super().array(owner, sizes, packed)


def _exactly(a, narrow):
    if not ((narrow == a) | (a != a)).all():
        raise ValueError("real numbers of q and of k are compared in float32, in which some of these are others")
    return narrow


def _outermost(node):
    """The parts of functions of torch that no other one is made of."""
    foreign = {part for part in walk(node) if part.op in ("foreign", "pick")}
    return foreign.intersection(walk(node, {arg for part in foreign for arg in part.args}))


def _axes(owner, packed):
    """The axes of an array: a packed side's tokens are of all sequences."""
    return owner.axes.replace("b", "") if any(axis in owner.axes for axis in packed or ()) else owner.axes


class TorchValues(_Values):
    """Functions of torch that are kept are called under vmap, for one position, as flex_attention calls the whole.

    Nothing is made on, or moved to, torch's default device.
    """

    def __init__(self, device, given=()):
        """given: tensors by the id of those captured that they stand for."""
        import torch
        self.device, self.module, self.given = torch.device(device or "cpu"), torch, dict(given)

    def tensor(self, x):
        return self.given.get(id(x), x) if is_tensor(x) else self.made(x)

    def made(self, a):
        """A tensor as it is; anything else as one."""
        return a if is_tensor(a) else self.module.tensor(a, device=self.device)

    def load(self, tensor, *positions):
        positions = [self.module.as_tensor(x, device=tensor.device) for x in positions]
        return self.module.ops.aten.index.Tensor(tensor, positions) if positions else tensor

    def foreign(self, part, args):
        if part.op == "pick":
            return args[0][part.value]
        _, function, spec = part.value
        called, more = thawed(spec, args)
        with self.device:  # where the function itself makes tensors
            return function(*called, **more)

    def narrow(self, a):
        narrow = a.to(self.module.float32)
        return narrow if a.dtype != self.module.float64 else _exactly(a, narrow)

    def integer(self, a):
        return self.made(a).to(self.module.int64)

    def real(self, a):
        a = self.made(a)
        return a if a.dtype in (self.module.float32, self.module.float64) else a.to(self.module.float32)

    def array(self, owner, sizes, device, packed=None, is_checked=True):
        """The array of a `Hoisted`, on `device`; it is computed where captured tensors are."""
        if owner.tensors:
            self.device = self.tensor(max(owner.tensors, key=lambda x: x.dim())).device
        axes = _axes(owner, packed)
        groups = [self._tokens(axis, sizes[axis], *packed[axis]) if axis in (packed or ()) else
                  {axis: self.module.arange(sizes[axis], device=self.device)} for axis in axes]
        if "d" in axes:
            groups[-1] = {"d": owner.reach[0] - groups[-1]["d"]}
        groups = [{axis: x for axis, x in group.items() if axis in owner.node.deps} for group in groups]
        result = self._at(owner.node, groups)
        if is_checked and result.device.type == "cpu" and result.numel() and owner.node.kind == "int":
            owner.check(result.min().item(), result.max().item())  # a GPU would be waited for
        if owner.dtype == "i32":
            result = result.clamp(LEAST, LARGEST)
        result = result.to(self.module.int32 if owner.dtype == "i32" else self.module.float32)
        result = result if device is None else result.to(device)
        return result.expand([sizes[axis] for axis in axes]).contiguous()

    def _tokens(self, side, count, cu_seqlens, padded_offsets):
        """Sequence and position of each token; the first ones for tokens of no sequence."""
        torch = self.module
        cu_seqlens = cu_seqlens.to(self.device, torch.int64)
        lengths = torch.cat([cu_seqlens.diff(), cu_seqlens.new_zeros(1)])
        starts = cu_seqlens if padded_offsets is None else padded_offsets.to(self.device, torch.int64)
        starts, order = torch.where(lengths > 0, starts, count).sort()  # offsets of keys need not ascend
        token = torch.arange(count, device=self.device)
        place = torch.searchsorted(starts, token, right=True) - 1
        sequence, position = order[place], token - starts[place]
        is_own = (place >= 0) & (position < lengths[sequence])
        return {"b": torch.where(is_own, sequence, 0), side: torch.where(is_own, position, 0)}

    def _at(self, node, groups):
        """The value with a dimension for each group of positions, of extent 1 if it has none."""
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
        extents = [next(iter(group.values())).shape[0] if group else 1 for group in groups]
        if 0 in extents:
            return self.wide(self.module.zeros(extents, device=self.device), node.kind)
        return function(*(x for group in groups for x in group.values())).reshape(extents)
