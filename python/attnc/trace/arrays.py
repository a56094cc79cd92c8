# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Arrays that a traced mask or score reads: expressions of one side's positions, evaluated ahead of the kernel."""
import itertools
import sys
import threading
import weakref

from ..errors import Error, TensorError
from .nodes import walk
from .session import is_tensor, torch_module
from .values import JaxValues, NumPyValues, TorchValues

_interned, _by_key = weakref.WeakValueDictionary(), weakref.WeakValueDictionary()
_KEPT = 4
_count = itertools.count()


def hoisted(name, axes, node, dtype="i32", exact=False, reach=None):
    """The array of these parts: the same one as long as it lives, so that it is evaluated once."""
    key = name, axes, id(node), dtype, exact, reach
    found = _interned.get(key)
    if found is None:
        found = _interned[key] = Hoisted(name, axes, node, dtype, exact, reach)
        _by_key[found.key] = found
    return found


def with_key(key):
    """The array of this key, which is alive."""
    return _by_key[key]


class Hoisted:
    """An array of a traced function, bound to a name of its mask or score. `evaluate` gives the tensor.

    name: what it is bound to, unless masks were combined.
    axes: of "bhqk", in the order of the array's dimensions; "hd" is a table by q - k.
    dtype: "i32" of masks, "f32" of scores.
    node: the expression. exact: its integers must fit; else those beyond 32 bits become the nearest that does.
    reach: of a table: the largest distance, and the least and the largest one for which it has entries.
    captured: the tensors and NumPy arrays that it is made of; tensors: those of torch. key: another for each object.
    """

    __slots__ = ("name", "axes", "dtype", "exact", "reach", "node", "captured", "tensors", "key", "_cache", "_lock",
                 "__weakref__")

    def __init__(self, name, axes, node, dtype, exact, reach):
        self.name, self.axes, self.dtype, self.exact, self.reach, self.node = name, axes, dtype, exact, reach, node
        self.captured = tuple(part.value for part in walk(node) if part.op == "tensor")
        self.tensors, self.key = tuple(filter(is_tensor, self.captured)), f"{name} {next(_count)}"
        self._cache, self._lock = {}, threading.Lock()

    def __repr__(self):
        return f"<attnc.Hoisted {self.name}[{', '.join(self.axes)}] of {self.dtype}>"

    def __reduce__(self):
        raise TypeError(f"cannot pickle {self.name!r}, an array of a traced function")

    @property
    def source(self):
        """The captured tensor whose entries these are, read at plain positions as `t[h, q]`; else None."""
        node = self.node
        plain = node.op == "load" and len(node.args) > 1 and "".join(arg.op for arg in node.args[1:]) == self.axes
        return node.args[0].value if plain else None

    def evaluate(self, batch, heads, kv_heads, seqlen_q, seqlen_kv, device=None, packed=None):
        """The array for these sizes: a contiguous torch tensor on `device`, or of NumPy if no torch is involved.

        It is kept, and made again when a size or a captured tensor's version changed, and at each call under stream
        capture. One of a score may have a gradient function, by which gradients reach captured tensors.

        packed: of "q" and "k", sides that are packed: (cu_seqlens, padded_offsets or None). The side's length is then
        its tokens; its arrays are [tokens] or [heads, tokens], and not kept.
        """
        sizes = self._sizes(batch, heads, seqlen_q, seqlen_kv)
        if self.reach:
            self._check_reach(*(_longest(length, *(packed or {}).get(side, ()))
                                for side, length in (("q", seqlen_q), ("k", seqlen_kv))))
        if any(side in self.axes for side in packed or ()):
            return self._made(sizes, device, packed)
        try:
            key = (*sizes.values(), str(device), _mode(), *map(_version, self.captured))
        except RuntimeError:  # tensors of inference mode have no version
            key = None
        if key is None or self._is_live():
            return self._made(sizes, device)
        with self._lock:
            if key in self._cache:
                return self._cache[key]
        result = self._made(sizes, device)
        with self._lock:
            while len(self._cache) >= _KEPT:
                del self._cache[next(iter(self._cache))]
            self._cache[key] = result
        return result

    def evaluate_in_graph(self, tensors, batch, heads, seqlen_q, seqlen_kv, device, packed):
        """The same in a graph of torch.compile, of tensors in place of `self.tensors`. Numbers are not checked."""
        sizes = self._sizes(batch, heads, seqlen_q, seqlen_kv)
        if self.reach and not packed:
            self._check_reach(seqlen_q, seqlen_kv)
        self._check_extents(sizes, packed)
        given = {id(own): tensor for own, tensor in zip(self.tensors, tensors)}
        return TorchValues(device, given).array(self, sizes, device, packed, is_checked=False)

    def _sizes(self, *lengths):
        return {**dict(zip("bhqk", lengths)), "d": 2 * self.reach[0] + 1 if self.reach else 0}

    def check(self, low, high):
        """Raises TensorError if integers from low to high do not fit."""
        limit = 2**24 if self.dtype == "f32" and self.node.kind == "int" else 2**31 if self.exact else None
        if limit and (low < -limit or high > limit - (limit == 2**31)):
            raise TensorError(f"expected integers of {limit.bit_length()} bits in {self.name!r} of a traced function, "
                              f"got: from {low} to {high}")

    def _is_live(self):
        """Must it be made at each call: under stream capture, or for gradients?"""
        torch = torch_module()
        if torch is None:
            return False
        if torch.cuda.is_initialized() and torch.cuda.is_current_stream_capturing():
            return True
        return torch.is_grad_enabled() and any(x.requires_grad for x in self.tensors)

    def _check_reach(self, seqlen_q, seqlen_kv):
        _, least, largest = self.reach
        if 1 - seqlen_kv < least or seqlen_q - 1 > largest:
            raise TensorError(f"expected at most {largest + 1} queries and {1 - least} keys, as {self.name!r} of a "
                              f"traced function has entries for q - k from {least} to {largest}, got: {seqlen_q} and "
                              f"{seqlen_kv}")

    def _made(self, sizes, device, packed=None):
        tensor = self._plain(sizes, device)
        if tensor is not None:
            return tensor
        self._check_extents(sizes, packed)  # an index out of range ends a process that uses a GPU
        needs_torch = device is not None or self.tensors or any(
            part.op in ("foreign", "pick") for part in walk(self.node))
        try:
            if packed and _is_of_jax(next(iter(packed.values()))[0]):
                return JaxValues().array(self, sizes, packed)
            if needs_torch:
                return TorchValues(device).array(self, sizes, device, packed)
            return NumPyValues().array(self, sizes, packed)
        except Error:
            raise
        except (IndexError, RuntimeError, ValueError, ZeroDivisionError) as error:
            shapes = ", ".join(str(tuple(x.shape)) for x in self.captured) or "none"
            wanted = ", ".join(f"{n} {'tokens ' * (axis in (packed or ()))}of {axis}" for axis, n in sizes.items()
                               if axis in self.node.deps)
            raise TensorError(f"cannot evaluate {self.name!r} of a traced function for {wanted} (captured shapes: "
                              f"{shapes}): {error}") from error

    def _check_extents(self, sizes, packed):
        for part in walk(self.node):
            for extent, place in zip(part.args[0].shape, part.args[1:]) if part.op == "load" else ():
                if place.op in sizes and place.op not in (packed or ()) and sizes[place.op] > extent:
                    raise TensorError(f"expected captured tensors of a traced function to have entries for "
                                      f"{sizes[place.op]} of {place.op}, got: the shape {tuple(part.args[0].shape)}, "
                                      f"in {self.name!r}")

    def _plain(self, sizes, device):
        """The captured tensor itself, if it is what is wanted."""
        tensor = self.source
        if self.dtype != "f32" or tensor is None or not is_tensor(tensor) or str(tensor.dtype) != "torch.float32":
            return None
        fits = tuple(tensor.shape) == tuple(sizes[axis] for axis in self.axes) and tensor.is_contiguous()
        return tensor if fits and (device is None or _same_device(tensor.device, device)) else None


def _longest(tokens, cu_seqlens=None, padded_offsets=None):
    """The longest sequence of so many tokens, where that is known: for a GPU one would wait."""
    if cu_seqlens is None:
        return tokens
    if _is_of_jax(cu_seqlens) or len(cu_seqlens) < 2 or str(cu_seqlens.device) != "cpu":
        return 0
    return int((cu_seqlens[1:] - cu_seqlens[:-1]).max())


def _is_of_jax(x):
    jax = sys.modules.get("jax")
    return jax is not None and isinstance(x, jax.Array)


def _same_device(a, b):
    torch = torch_module()
    b = torch.device(b)
    return a == b or a.type == b.type and b.index is None


def _mode():
    torch = torch_module()
    return torch is not None and torch.is_inference_mode_enabled()


def _version(x):
    return (x._version, x.data_ptr()) if is_tensor(x) else 0
