# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""One trace: which lines expressions were made in, and errors that name them."""
import linecache
import os
import sys
import threading

from ..errors import TraceError
from .nodes import ZERO, walk

_OWN = os.path.dirname(os.path.abspath(__file__))
_local = threading.local()


def torch_module():
    """torch, where the program has imported it."""
    torch = sys.modules.get("torch")
    return torch if hasattr(torch, "Tensor") and hasattr(torch, "overrides") else None


def is_tensor(x):
    torch = torch_module()
    return torch is not None and isinstance(x, torch.Tensor)


class Session:
    """The trace of a function in this thread. `mode` sees torch's functions meanwhile (see calls.py).

    constants: tensors without dimensions that the function itself makes, by id, and their values.
    arrays: those of JAX that were read, by id, and their values.
    """

    def __init__(self, function, mode):
        self.function, self.places, self.constants, self.arrays = function, {}, {}, {}
        self._mode = mode(self)

    def __enter__(self):
        self._outer, _local.session = getattr(_local, "session", None), self
        if self._mode is not None:
            self._mode.__enter__()
        return self

    def __exit__(self, *error):
        if self._mode is not None:
            self._mode.__exit__(*error)
        _local.session = self._outer

    def note(self, node):
        """Remembers the line that makes an expression for the first time."""
        if node not in self.places:
            self.places[node] = place()

    def place_of(self, node=ZERO):
        """The line that an expression was made in, or that of the nearest part of it; else the function's own."""
        for part in reversed(walk(node)):
            if part in self.places:
                return self.places[part]
        code = getattr(self.function, "__code__", None)
        return (code.co_filename, code.co_firstlineno) if code else None

    def refusal_of(self, node, message):
        return refusal(message, self.place_of(node))


def session():
    """The trace that runs in this thread."""
    found = getattr(_local, "session", None)
    if found is None:
        raise TraceError("a symbol of a traced function was used after the trace")
    return found


def place():
    """File and line of the traced function: the innermost ones that are neither ours nor torch's."""
    torch = torch_module()
    folders = (_OWN, os.path.dirname(torch.__file__) + os.sep) if torch else (_OWN,)
    frame = sys._getframe(1)
    while frame is not None and (frame.f_code.co_filename.startswith(folders) or frame.f_code.co_filename[:1] == "<"
                                 and frame.f_code.co_filename != "<stdin>"):
        frame = frame.f_back
    return (frame.f_code.co_filename, frame.f_lineno) if frame else None


def refusal(message, where=None):
    """The exception for what cannot be traced, with file, line and text of the line."""
    where = where or place()
    if where is None:
        return TraceError(message)
    line = linecache.getline(*where).strip()
    return TraceError(f"{where[0]}:{where[1]}: {message}" + (f"\n    {line}" if line else ""))
