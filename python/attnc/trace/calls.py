# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Functions of torch and NumPy, and methods of tensors, that are called with symbols.

Those that functions.py knows become expressions; any other function of torch is kept as it is (entries.py).
"""
import functools

from . import entries
from . import jax_arrays
from . import symbols
from .functions import DECOMPOSED, TABLE, kind_of
from .nodes import Node, make, num
from .session import TraceError, is_tensor, refusal, session, torch_module

_INPLACE = {"__setitem__", "__delitem__", *(f"__i{name}__" for name in (
    "add", "sub", "mul", "truediv", "div", "floordiv", "mod", "pow", "and", "or", "xor", "lshift", "rshift"))}


class Several(tuple):
    """Expressions that a function returns together; `type` makes what torch would return of a list."""


class Array:
    """An array that can be read at symbols of a traced function: a copy of a NumPy array, list or the like."""

    __slots__ = ("values",)

    def __init__(self, values):
        import numpy
        self.values = numpy.array(values)
        self.values.setflags(write=False)

    def __getitem__(self, index):
        if has_symbol(index):
            return entries.entry(self, index)
        part = self.values[index]
        return Array(part) if part.shape else part.item()

    def __len__(self):
        return len(self.values)

    def __repr__(self):
        return f"attnc.array({self.values!r})"

    def __array__(self, dtype=None, copy=None):
        return self.values.astype(dtype or self.values.dtype)

    shape = property(lambda self: self.values.shape)
    dtype = property(lambda self: self.values.dtype)


def captured(tensor):
    """The expression of a tensor, or of an array's values."""
    tensor = tensor.values if isinstance(tensor, Array) else tensor
    return make("tensor", (), tensor, kind_of(tensor.dtype), tuple(tensor.shape), key=id(tensor))


def entry_of_jax(array, index):
    """array[index] of JAX, with a symbol in the index."""
    if jax_arrays.is_traced(array):
        raise refusal(jax_arrays.TRACED)
    kept = session().arrays
    if id(array) not in kept:
        kept[id(array)] = array, Array(array)
    return entries.entry(kept[id(array)][1], index)


def is_operand(x):
    return isinstance(x, (bool, int, float, symbols.Symbol, Array)) or is_tensor(x) or _is_of_numpy(x) or (
        jax_arrays.is_array(x))


def _is_of_numpy(x):
    return hasattr(x, "__array_interface__") or getattr(x, "shape", None) == () and hasattr(x, "item")  # or like it


def lifted(x):
    """The expression of what can be one; anything else as it is."""
    if isinstance(x, symbols.Symbol):
        return x._node
    if isinstance(x, (bool, int, float)):
        return num(x)
    if is_tensor(x) or isinstance(x, Array):
        constant = session().constants.get(id(x))
        if constant is not None:
            return num(constant[1])
        node = captured(x)
        return node if node.shape else make("load", (node,), kind=node.kind)
    if jax_arrays.is_traced(x):
        raise refusal(jax_arrays.TRACED)
    if jax_arrays.is_array(x) and x.shape:
        raise refusal("an array of JAX meets a symbol; read one entry of it: array[symbol]")
    if _is_of_numpy(x):
        if x.shape:
            raise refusal("a NumPy array meets a symbol; wrap it and read one entry: attnc.array(values)[symbol]")
        return num(x.item())
    return x


def has_symbol(x):
    if isinstance(x, (tuple, list)):
        return any(map(has_symbol, x))
    if isinstance(x, dict):
        return any(map(has_symbol, x.values()))
    return isinstance(x, symbols.Symbol) or isinstance(x, slice) and has_symbol((x.start, x.stop, x.step))


def call(name, function, args, kwargs):
    """A symbol of what a function makes of symbols. `name`: in TABLE, or None; `function`: that of torch, or None."""
    known = TABLE.get(name)
    if kwargs.get("out") is not None:
        raise refusal(f"{name}(..., out=...) changes a tensor and cannot be traced")
    try:
        if known:
            parts = list(map(lifted, args)), {key: lifted(value) for key, value in kwargs.items()}
            every = [part for part in (*parts[0], *parts[1].values()) if isinstance(part, Node)]
            if not any(part.shape for part in every):
                if name in DECOMPOSED and function and not every[0].deps >= {"q", "k"} and "s" not in every[0].deps:
                    known = None  # of one side: evaluated ahead, as torch has it
                else:
                    return symbols.symbol(known(*parts[0], **parts[1]))
        return symbols.symbol(entries.foreign(name, function, args, kwargs))
    except (TypeError, ZeroDivisionError, OverflowError) as error:
        if isinstance(error, TraceError):
            raise
        raise refusal(f"{name} cannot be traced with these arguments: {error}") from None


def _changes(name):
    """Does a function of torch of this name change its first argument?"""
    return name in _INPLACE or name.endswith("_") and not name.endswith("__")


def call_torch(function, args, kwargs):
    """The same of a function of torch, by its name there."""
    name = getattr(function, "__name__", "?").partition(".")[0]
    qualified = getattr(function, "_qualified_op_name", None) or getattr(function, "_name", None)
    own = not isinstance(qualified, str) or qualified.startswith(("aten::", "prims::"))
    if _changes(name):
        raise refusal(f"{name} changes a tensor by a symbol, which cannot be traced")
    plain = name.strip("_") if name.startswith("__") else name
    if plain == "getitem":
        return entries.entry(*args)
    return call(plain if own else qualified, function, args, kwargs)


@functools.cache
def _mode_class(torch):
    class Mode(torch.overrides.TorchFunctionMode):
        """Sees functions of torch while a function is traced: `tensor[symbol]` asks nobody else."""

        def __init__(self, session):
            super().__init__()
            self.session = session

        def __torch_function__(self, function, types, args=(), kwargs=None):
            kwargs = kwargs or {}
            if has_symbol(args) or has_symbol(kwargs):
                return call_torch(function, args, kwargs)
            result, constants = function(*args, **kwargs), self.session.constants
            tensors = [arg for arg in (*args, *kwargs.values()) if isinstance(arg, torch.Tensor)]
            are_known = all(id(tensor) in constants for tensor in tensors)
            if _changes(getattr(function, "__name__", "")) and args:
                constants.pop(id(args[0]), None)
            if are_known and isinstance(result, torch.Tensor) and not result.dim():
                if result.device.type == "cpu":  # torch.tensor(3), and what is made of it
                    constants[id(result)] = result, result.item()
                elif function in (torch.tensor, torch.scalar_tensor) and not tensors:  # no other device is waited for
                    constants[id(result)] = result, function(*args, **{**kwargs, "device": "cpu"}).item()
            return result

    return Mode


def mode(session):
    """What sees functions of torch while a function is traced, where torch is loaded."""
    torch = torch_module()
    return None if torch is None else _mode_class(torch)(session)
