# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Arrays that a traced mask or score reads: expressions of one side's positions, evaluated ahead of the kernel."""
import re
import threading
import weakref

from ..errors import TensorError
from .nodes import walk
from .session import is_tensor, torch_module
from .values import NumPyValues, TorchValues

_interned = weakref.WeakValueDictionary()
_KEPT = 4


def hoisted(name, axes, node, dtype="i32", exact=False, reach=None):
    """The array of these parts: the same one as long as it lives, so that it is evaluated once."""
    key = name, axes, id(node), dtype, exact, reach
    found = _interned.get(key)
    if found is None:
        found = _interned[key] = Hoisted(name, axes, node, dtype, exact, reach)
    return found


class Hoisted:
    """An array of a traced function, bound to a name of its mask or score. `evaluate` gives the tensor.

    name: what it is bound to, unless masks were combined.
    axes: of "bhqk", in the order of the array's dimensions; "hd" is a table by q - k.
    dtype: "i32" of masks, "f32" of scores.
    node: the expression. exact: its integers must fit; else those beyond 32 bits become the nearest that does.
    reach: of a table: the largest distance, and the least and the largest one for which it has entries.
    captured: the tensors that it is made of.
    """

    __slots__ = ("name", "axes", "dtype", "exact", "reach", "node", "captured", "_cache", "_lock", "__weakref__")

    def __init__(self, name, axes, node, dtype, exact, reach):
        self.name, self.axes, self.dtype, self.exact, self.reach, self.node = name, axes, dtype, exact, reach, node
        self.captured = tuple(part.value for part in walk(node) if part.op == "tensor")
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

    def evaluate(self, batch, heads, kv_heads, seqlen_q, seqlen_kv, device=None):
        """The dense array for these sizes: a contiguous torch tensor on `device`, or of NumPy if no torch is involved.

        It is kept, and made again when a size or a captured tensor's version changed, and at each call under stream
        capture. One of a score may have a gradient function, by which gradients reach captured tensors.
        """
        sizes = {"b": batch, "h": heads, "q": seqlen_q, "k": seqlen_kv}
        if self.reach:
            sizes["d"] = 2 * self.reach[0] + 1
            self._check_reach(seqlen_q, seqlen_kv)
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

    def evaluate_packed(self, heads, cu_seqlens_q, cu_seqlens_kv, tokens_q, tokens_kv):
        """The array for packed sequences, whose entries are of tokens: [tokens], [heads, tokens], or as the dense one.

        It is not kept.
        """
        try:
            return TorchValues(cu_seqlens_q.device).packed_array(self, heads, {"q": (cu_seqlens_q, tokens_q),
                                                                          "k": (cu_seqlens_kv, tokens_kv)})
        except (IndexError, RuntimeError) as error:
            raise TensorError(f"cannot evaluate {self.name!r} of a traced function for packed sequences: "
                              f"{error}") from error

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
        return torch.is_grad_enabled() and any(is_tensor(x) and x.requires_grad for x in self.captured)

    def _check_reach(self, seqlen_q, seqlen_kv):
        _, least, largest = self.reach
        if 1 - seqlen_kv < least or seqlen_q - 1 > largest:
            raise TensorError(f"expected at most {largest + 1} queries and {1 - least} keys, as {self.name!r} of a "
                              f"traced function has entries for q - k from {least} to {largest}, got: {seqlen_q} and "
                              f"{seqlen_kv}")

    def _made(self, sizes, device):
        tensor = self._plain(sizes, device)
        if tensor is not None:
            return tensor
        self._check_extents(sizes)  # an index out of range ends a process that uses a GPU
        needs_torch = device is not None or any(map(is_tensor, self.captured)) or any(
            part.op in ("foreign", "pick") for part in walk(self.node))
        backend = (TorchValues if needs_torch else NumPyValues)(device)
        try:
            return backend.array(self, sizes, device)
        except TensorError:
            raise
        except (IndexError, RuntimeError, ValueError, ZeroDivisionError) as error:
            shapes = ", ".join(str(tuple(x.shape)) for x in self.captured) or "none"
            wanted = ", ".join(f"{n} of {axis}" for axis, n in sizes.items() if axis in self.node.deps)
            raise TensorError(f"cannot evaluate {self.name!r} of a traced function for {wanted} (captured shapes: "
                              f"{shapes}): {error}") from error

    def _check_extents(self, sizes):
        for part in walk(self.node):
            for extent, place in zip(part.args[0].shape, part.args[1:]) if part.op == "load" else ():
                if sizes.get(place.op, 0) > extent:
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


def _same_device(a, b):
    torch = torch_module()
    b = torch.device(b)
    return a == b or a.type == b.type and b.index is None


def _mode():
    torch = torch_module()
    return torch is not None and torch.is_inference_mode_enabled()


def _version(x):
    return (x._version, x.data_ptr()) if is_tensor(x) else 0


def apart(*values):
    """Masks and score modifiers for one problem: traced arrays that are different ones get different names."""
    taken, result = {}, []
    for value in values:
        bound, moved = {}, {}
        for name, array in value._bound.items():
            own, count = name, 0
            while isinstance(array, Hoisted) and (taken.get(own, array) is not array or
                                                  count and own in {*value._bound, *bound}):
                count += 1
                own = f"{name}_{count}"
                array = hoisted(own, array.axes, array.node, array.dtype, array.exact, array.reach)
            bound[own] = array
            if count:
                moved[name] = own
        if moved:
            value = type(value)(re.sub(r"\w+", lambda word: moved.get(word[0], word[0]), str(value)), bound)
        taken.update(bound)
        result.append(value)
    return result
