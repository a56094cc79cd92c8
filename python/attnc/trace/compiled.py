# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Functions that become masks and scores while torch.compile reads their caller.

torch.compile does not read the tracer: it calls `_made` as it is, with constants. What a function reads of its
surroundings is read here before, so that torch.compile compiles again when it changes, and so that tensors are inputs
of the graph; the tracer sees tensors of the meta device in their place.
"""
import builtins
import dis
import operator
import sys
import types
import weakref

from ..errors import TraceError

_kept = {}  # results by what they were made of: graphs need the arrays as long as the process lives

_seen = weakref.WeakSet()
_LIBRARIES = "torch", "numpy", "math", "operator", "attnc"
_ADVICE = "call attnc.mask or attnc.score outside of torch.compile"


class InGraph:
    """An array of a traced function in a graph: the key of a `Hoisted`, and tensors in place of its own."""

    __slots__ = ("key", "tensors")

    def __init__(self, key, tensors):
        self.key, self.tensors = key, tensors

    def evaluate(self, *_):
        raise TraceError("a mask or score of a function that torch.compile traced was used outside of the graph")


def is_compiling():
    torch = sys.modules.get("torch")
    return torch is not None and torch.compiler.is_compiling()


def traced(make, function):
    """Text and bound arrays of what `make` (trace_mask or trace_score) makes of a function."""
    if not isinstance(function, types.FunctionType):
        raise TraceError(f"expected a plain function where torch.compile traces it, got: a {type(function).__name__}; "
                         f"{_ADVICE}")
    if not hasattr(function, "__closure__"):  # of functions that torch.compile makes
        raise TraceError("expected a function made inside of torch.compile to capture numbers and text alone, got: "
                         "one that captures tensors, objects or numbers that change; read tensors as globals, or "
                         f"{_ADVICE}")
    tensors = []
    text, arrays = _made(make, _read_function(function, tensors, ()))
    return text, {name: InGraph(key, tuple([tensors[i] for i in numbers])) for name, key, numbers in arrays}


# What torch.compile reads --------------------------------------------------------------------------------------------

def _read(value, tensors, outer):
    """A value that a function reads, as constants; tensors are added to `tensors`."""
    torch = sys.modules["torch"]
    if isinstance(value, torch.Tensor):
        tensors.append(value)
        return "tensor", len(tensors) - 1, value.dtype, tuple([operator.index(n) for n in value.shape])
    if isinstance(value, types.FunctionType):
        if value.__module__.partition(".")[0] in _LIBRARIES and value.__closure__ is None:
            return "value", value
        return _read_function(value, tensors, outer)
    if isinstance(value, tuple):
        return "tuple", tuple([_read(part, tensors, outer) for part in value])
    if isinstance(value, bool) or value is None:
        return str(value), value  # True is no 1 here
    if isinstance(value, int):
        return "value", operator.index(value)  # a constant for torch.compile, too
    if isinstance(value, float):
        return "float", value
    if isinstance(value, (str, torch.dtype, types.BuiltinFunctionType)):
        return "value", value
    if isinstance(value, types.ModuleType) and value.__name__.partition(".")[0] in _LIBRARIES:
        return "value", value
    raise TraceError("expected a function that reads numbers, tensors, functions and modules of "
                     f"{', '.join(_LIBRARIES)} where torch.compile traces it, got: a {type(value).__name__}; {_ADVICE}")


def _read_function(function, tensors, outer):
    """outer: the code of functions that lead to this one."""
    code, known = function.__code__, function.__globals__
    if code in outer:
        raise TraceError(f"expected a function that does not call itself where torch.compile traces it, got: "
                         f"{code.co_name}; {_ADVICE}")
    outer = (*outer, code)
    _lasts(function)
    if _lasts(function):
        cells, defaults, named, own = function.__closure__, function.__defaults__, function.__kwdefaults__, None
        variables = [(name, known[name]) for name in _global_names(code) if name in known]
    else:  # made by what torch.compile reads: it gives the function itself, if this captured only constants
        cells, defaults, named, own, place = None, None, None, function, sys.modules[known["__name__"]]
        variables = [(name, getattr(place, name)) for name in _global_names(code) if hasattr(place, name)]
    cells = [] if cells is None else [_read(cell.cell_contents, tensors, outer) for cell in cells]
    defaults = [] if defaults is None else [_read(part, tensors, outer) for part in defaults]
    named = [] if named is None else [(name, _read(part, tensors, outer)) for name, part in named.items()]
    variables = [(name, _read(value, tensors, outer)) for name, value in variables]
    return "function", code, own, tuple(cells), tuple(defaults), tuple(named), tuple(variables)


# What torch.compile calls --------------------------------------------------------------------------------------------

def _global_names(code):
    """The global names that a function reads, and functions in it."""
    inner = [part for part in code.co_consts if isinstance(part, types.CodeType)]
    own = [step.argval for step in dis.get_instructions(code) if step.opname == "LOAD_GLOBAL"]
    return tuple(dict.fromkeys([*own, *(name for part in inner for name in _global_names(part))]))


def _lasts(function):
    """Was it given before? One that is made by what torch.compile reads is made anew each time that it is given."""
    found = function in _seen
    _seen.add(function)
    return found


def _made(make, parts):
    """Text, and (name, key, numbers of tensors) of arrays."""
    if (make, parts) not in _kept:
        tensors = {}
        value = make(_again(parts, tensors))
        numbers = {id(tensor): number for number, tensor in tensors.items()}
        for name, array in value.arrays.items():
            if not all(id(tensor) in numbers for tensor in array.tensors):
                raise TraceError(f"expected {name!r} to be made of tensors that the traced function reads itself where "
                                 f"torch.compile traces it, got: others; {_ADVICE}")
        arrays = tuple((name, array.key, tuple(numbers[id(tensor)] for tensor in array.tensors))
                       for name, array in value.arrays.items())
        _kept[make, parts] = (str(value), arrays), value
    return _kept[make, parts][0]


def _again(parts, tensors):
    """The value of such constants, with tensors of the meta device, which are put into `tensors` by number."""
    kind, *more = parts
    if kind == "tensor":
        number, dtype, shape = more
        tensors[number] = sys.modules["torch"].empty(shape, dtype=dtype, device="meta")
        return tensors[number]
    if kind == "tuple":
        return tuple(_again(part, tensors) for part in more[0])
    if kind != "function":
        return more[0]
    code, own, cells, defaults, named, variables = more
    known = {"__builtins__": builtins, **{name: _again(part, tensors) for name, part in variables}}
    if own is not None:
        function = types.FunctionType(code, known, own.__name__, own.__defaults__, own.__closure__)
        function.__kwdefaults__ = own.__kwdefaults__
        return function
    cells = tuple(types.CellType(_again(part, tensors)) for part in cells)
    function = types.FunctionType(code, known, code.co_name, tuple(_again(part, tensors) for part in defaults), cells)
    function.__kwdefaults__ = {name: _again(part, tensors) for name, part in named}
    return function


for _function in (_global_names, _lasts, _made):
    _function._dynamo_marked_constant = True
