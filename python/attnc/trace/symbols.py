# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a traced function is called with: symbols, whose operators make expressions in place of numbers."""
import linecache
import operator
import re

from . import calls
from . import entries
from ..errors import TraceError
from .functions import TABLE
from .session import place, refusal, session, torch_module


class _NoAttribute(TraceError, AttributeError):
    pass


_ADVICE = (  # where a line has such words
    (r"\band\b", "`&` with parentheses in place of `and`"), (r"\bor\b", "`|` with parentheses in place of `or`"),
    (r"\bnot\b", "`~` in place of `not`"), (r"\b(if|while|assert)\b", "np.where, attnc.select(condition, a, b) or "
                                                                        "torch.where in place of `if`"),
    (r"\b(min|max)\(", "a.minimum(b) and a.maximum(b) in place of min and max"),
    (r"\bin\b", "`(x == a) | (x == b)` in place of `x in (a, b)`"),
    (r"[<>]=?[^<>=,()&|:]+[<>=]", "`(a <= b) & (b < c)` in place of `a <= b < c`"))


def _truth_message(where):
    line = linecache.getline(*where) if where else ""
    advice = [text for words, text in _ADVICE if re.search(words, line)]
    return ("a condition on q, k, b or h has no truth value while the function is traced: it holds for some pairs and "
            "not for others; write " + (", ".join(advice) or "`&`, `|`, `~` and attnc.select(condition, a, b)"))


class Symbol:
    """A value of a traced function that depends on b, h, q, k or a score. Python's operators, methods of a torch tensor
    such as `clamp`, `minimum`, `where` and `abs`, and functions of torch and NumPy make symbols of symbols."""

    __slots__ = ("_node",)
    __array_priority__ = 1000

    def __init__(self, node):
        object.__setattr__(self, "_node", node)

    def __repr__(self):
        return f"<symbol {self._node!r}>" if self._node.size < 50 else "<symbol>"

    def __bool__(self):
        where = place()
        raise refusal(_truth_message(where), where)

    def _no_number(self, *_):
        raise refusal("a symbol is not a number: math.exp(x) is written x.exp(), np.exp(x) or torch.exp(x), int(x) "
                      "x.int(), float(x) x.float()")

    __int__ = __float__ = __complex__ = item = tolist = numpy = _no_number

    def _no_index(self, *_, **__):
        raise refusal("only arrays of attnc.array(...), tensors of torch and arrays of JAX can be read at a symbol; "
                      "wrap the list or the NumPy array: attnc.array(values)[symbol]")

    __index__ = __array__ = _no_index

    def __hash__(self):
        raise refusal("a symbol is no key of a dictionary or set; read a table: attnc.array(values)[symbol]")

    def __setattr__(self, name, value):
        raise refusal(f"a symbol's {name} cannot be set")

    def __setitem__(self, index, value):
        raise refusal("values cannot be assigned to entries of a symbol; use attnc.select(condition, a, b)")

    def __len__(self):
        if not self._node.shape:
            raise refusal("a symbol is one value and has no length")
        return self._node.shape[0]

    def __iter__(self):
        return iter([self[i] for i in range(len(self))])

    def __contains__(self, value):
        raise refusal("`in` has no answer for a symbol; compare by `==` and combine by `|`")

    def __getitem__(self, index):
        return entries.entry(self, index)

    def __floor__(self):
        return self.floor()

    def __ceil__(self):
        return self.ceil()

    def __trunc__(self):
        return self.trunc()

    def __divmod__(self, other):
        return self // other, self % other

    @property
    def shape(self):
        torch = torch_module()
        return torch.Size(self._node.shape) if torch else self._node.shape

    @property
    def ndim(self):
        return len(self._node.shape)

    @property
    def dtype(self):
        names = {"int": "int64", "bool": "bool", "real": "float32"}
        torch = torch_module()
        return getattr(torch, names[self._node.kind]) if torch else names[self._node.kind]

    @property
    def device(self):
        torch = torch_module()
        return torch.device("cpu") if torch else "cpu"

    def __getattr__(self, name):
        torch = torch_module()
        if name == "where":
            return lambda condition, other: calls.call("where", None, (condition, self, other), {})
        method = getattr(torch.Tensor, name, None) if torch and not name.startswith("__") else None
        if name in TABLE and not name.startswith("_") or callable(method):
            return lambda *args, **kwargs: calls.call(name, method, (self, *args), kwargs)
        raise _NoAttribute(str(refusal(f"a symbol of a traced function has no {name!r}")))

    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        return calls.call_torch(function, args, kwargs or {})

    def __array_ufunc__(self, ufunc, method, *args, **kwargs):
        if method != "__call__":
            raise refusal(f"numpy.{ufunc.__name__}.{method} cannot be traced")
        return calls.call(ufunc.__name__, None, args, kwargs)

    def __array_function__(self, function, types, args, kwargs):
        return calls.call(function.__name__, None, args, kwargs)


def _operator(name, reverse=False):
    method = getattr(operator, name, None) or getattr(operator, name + "_")

    def apply(self, *args):
        if args and not calls.is_operand(args[0]):
            return NotImplemented
        return calls.call(name, method, (*args, self) if reverse else (self, *args), {})

    return apply


for _name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "and", "or", "xor", "lshift", "rshift"):
    setattr(Symbol, f"__{_name}__", _operator(_name))
    setattr(Symbol, f"__r{_name}__", _operator(_name, reverse=True))
for _name in ("neg", "pos", "abs", "invert", "lt", "le", "eq", "ne", "gt", "ge"):
    setattr(Symbol, f"__{_name}__", _operator(_name))


def symbol(node):
    """The symbol of an expression, whose line is remembered; of several ones, as torch returns them, as many."""
    if isinstance(node, calls.Several):
        return node.type([symbol(part) for part in node])
    session().note(node)
    return Symbol(node)
