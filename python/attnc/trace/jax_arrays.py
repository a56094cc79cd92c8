# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Arrays of JAX that traced functions capture.

JAX has nothing like torch's modes: while a function is traced, its arrays ask here first when they are read at a
symbol. Those with values become attnc.array; those of jit, grad or vmap have none yet.
"""
import contextlib
import os
import sys
import threading

_lock, _plain, _traces = threading.Lock(), {}, 0


def jax_module():
    """jax, where the program has imported it."""
    jax = sys.modules.get("jax")
    return jax if hasattr(jax, "Array") and hasattr(jax, "core") else None


def is_array(x):
    jax = jax_module()
    return jax is not None and isinstance(x, jax.Array)


def is_traced(x):
    jax = jax_module()
    return jax is not None and isinstance(x, jax.core.Tracer)


TRACED = ("an array that JAX traces (in jit, grad or vmap) has no values yet; name it in the mask and give it at the "
          "call: attnc.where('q - k < seen[b]') with arrays={'seen': array}")
UNKNOWN = ("functions of jax.numpy do not take symbols; write those of NumPy in their place: np.where, np.logical_and, "
           "np.abs, np.minimum, np.tanh and so on")


def is_of_jax(error):
    """Did JAX raise it?"""
    jax, trace = jax_module(), error.__traceback__
    folder = os.path.dirname(jax.__file__) + os.sep if jax else None
    while folder and trace:
        if trace.tb_frame.f_code.co_filename.startswith(folder):
            return True
        trace = trace.tb_next
    return bool(jax) and "jax." in str(error)  # JAX may hide its frames


@contextlib.contextmanager
def read_by(entry, has_symbol):
    """Inside, array[index] is entry(array, index) where has_symbol(index)."""
    global _traces
    jax = jax_module()
    if jax is None:
        yield
        return
    with _lock:
        _traces += 1
        if _traces == 1:
            for kind in (jax.core.Tracer, *jax.Array.__subclasses__()):
                if "__getitem__" in vars(kind):
                    _plain[kind] = kind.__getitem__
                    kind.__getitem__ = _reader(kind.__getitem__, entry, has_symbol)
    try:
        with jax.ensure_compile_time_eval():  # in jit too, what is made of arrays with values has values
            yield
    finally:
        with _lock:
            _traces -= 1
            if not _traces:
                for kind, plain in _plain.items():
                    kind.__getitem__ = plain
                _plain.clear()


def _reader(plain, entry, has_symbol):
    def __getitem__(self, index):
        return entry(self, index) if has_symbol(index) else plain(self, index)
    return __getitem__
