# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Entries of captured tensors, and functions of torch that are kept as they are ("foreign").

What these make of one side's positions is evaluated ahead, with tensors. The shape of a result is asked of torch's meta
device.
"""
from . import calls
from . import symbols
from .functions import kind_of
from .nodes import Node, is_const, make, num
from .session import refusal, torch_module


def entry(x, index):
    """x[index]; t[i][j] is t[i, j]."""
    items = index if isinstance(index, tuple) else (index,)
    items = [item if item is None or isinstance(item, (slice, type(...))) else calls.lifted(item) for item in items]
    base = x._node if isinstance(x, symbols.Symbol) else calls.captured(x)
    if any(isinstance(item, Node) and (item.kind != "int" or item.shape) for item in items):
        raise refusal("tensors are read at integers: a condition or a real number is none (use .int())")
    given = base.args if base.op == "load" else (base,)
    if base.op not in ("load", "tensor") or not all(isinstance(item, Node) for item in items):
        function = torch_entry if torch_module() else None
        return symbols.symbol(foreign("[...]", function, (symbols.Symbol(base), tuple(items)), {}))
    tensor, shape, args = given[0], base.shape, list(given)
    if len(items) > len(shape):
        raise refusal(f"a tensor of {len(tensor.shape)} dimensions is read at {len(given) - 1 + len(items)} positions")
    for extent, item in zip(shape, items):
        if is_const(item):
            if not -extent <= item.value < extent:
                raise refusal(f"position {item.value} is not in a dimension of {extent}")
            item = num(item.value % extent)
        args.append(item)
    return symbols.symbol(make("load", tuple(args), kind=tensor.kind, shape=shape[len(items):]))


def torch_entry(tensor, index):
    """tensor[index] where positions may be tensors of no dimension, also under vmap."""
    torch = torch_module()
    basic, positions, axis = [], [], 0
    taken = sum(item is not None and item is not ... for item in index)
    for item in index:
        if item is ...:
            fill = tensor.dim() - taken
            basic.extend([slice(None)] * fill)
            axis += fill
        elif isinstance(item, torch.Tensor):
            basic.append(slice(None))
            positions.append((axis, item))
            axis += 1
        else:
            basic.append(item)
            axis += not isinstance(item, int)
    tensor = tensor[tuple(basic)]
    if not positions:
        return tensor
    places = [None] * (positions[-1][0] + 1)
    for axis, item in positions:
        places[axis] = item.to(tensor.device)
    return torch.ops.aten.index.Tensor(tensor, places)


class _ById:
    __slots__ = ("value",)

    def __init__(self, value):
        self.value = value

    def __eq__(self, other):
        return isinstance(other, _ById) and self.value is other.value

    def __hash__(self):
        return id(self.value)


def frozen(x, args):
    """Arguments as a value that can be hashed; expressions and tensors go to `args`."""
    x = calls.lifted(x) if calls.is_operand(x) and not isinstance(x, (bool, int, float)) else x
    if isinstance(x, Node):
        args.append(x)
        return "arg", len(args) - 1
    if isinstance(x, (tuple, list)):
        return type(x).__name__ if type(x) in (tuple, list) else "tuple", *(frozen(part, args) for part in x)
    if isinstance(x, dict):
        return "dict", *((key, frozen(value, args)) for key, value in x.items())
    if isinstance(x, slice):
        return "slice", *(frozen(part, args) for part in (x.start, x.stop, x.step))
    try:
        hash(x)
    except TypeError:
        x = _ById(x)
    return "const", type(x), x


def thawed(x, values):
    kind, *parts = x
    if kind == "arg":
        return values[parts[0]]
    if kind == "const":
        return parts[1].value if isinstance(parts[1], _ById) else parts[1]
    if kind == "dict":
        return {key: thawed(value, values) for key, value in parts}
    return {"tuple": tuple, "list": list, "slice": lambda x: slice(*x)}[kind]([thawed(part, values) for part in parts])


def foreign(name, function, args, kwargs):
    if function is None:
        raise refusal(f"{name} of a symbol cannot be traced")
    torch, nodes = torch_module(), []
    spec = frozen((args, kwargs), nodes)
    if torch is None:
        raise refusal(f"{name} of these symbols cannot be traced without torch")
    dtypes = {"int": torch.int64, "bool": torch.bool, "real": torch.float32}
    values = [node.value if is_const(node) else torch.empty(node.shape, dtype=dtypes[node.kind], device="meta")
              for node in nodes]
    try:
        called, more = thawed(spec, values)
        with torch.device("meta"):  # in place of a default device
            result = function(*called, **more)
    except Exception as error:
        raise refusal(f"{name} of a symbol cannot be traced: {(str(error) or '?').splitlines()[0]}") from None
    value = (name, function, spec)
    if isinstance(result, torch.Tensor):
        return make("foreign", tuple(nodes), value, kind_of(result.dtype), tuple(result.shape))
    if not isinstance(result, (tuple, list)) or not all(isinstance(part, torch.Tensor) for part in result):
        raise refusal(f"{name} of a symbol cannot be traced: it gives a {type(result).__name__}")
    whole = make("foreign", tuple(nodes), value, "tuple", (len(result),))
    several = calls.Several(make("pick", (whole,), i, kind_of(part.dtype), tuple(part.shape))
                            for i, part in enumerate(result))
    several.type = type(result)
    return several
