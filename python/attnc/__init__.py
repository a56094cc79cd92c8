# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""attnc: attention kernels from masks, layouts and score modifiers.

    import attnc
    mask = attnc.causal() & (attnc.window(1024) | attnc.sink(4))
    problem = attnc.Problem(mask, heads=(32, 8), dims=128)
    print(problem.explain(seqlen_q=4096))
    kernel = problem.compile()

`attnc.torch` and `attnc.jax` call kernels with tensors of PyTorch and JAX; this module imports neither.
"""
from .errors import CompileError, DriverError, Error, ProblemError, TensorError, TraceError, UnsupportedError
from .masks import (Mask, ancestors, band, block_list, block_map, causal, chunk, columns, document, full, global_rows,
                    heads, mask, parse, pooled, prefix, rows, sink, strided, tree, where, window)
from .scores import Score, alibi, bias, head_scale, relative_bias, score, softcap

_LAZY = {"Problem": "problem", "Gradient": "problem", "Kernel": "problem", "Program": "problem",
         "NativeSparseAttention": "sparse", "MobaAttention": "sparse", "BlockMaxAttention": "sparse",
         "Shape": "_tensors", "Explanation": "explain", "Support": "explain", "Equivalence": "explain",
         "equiv": "explain", "pack": "cache", "cache": None, "array": "trace", "select": "trace", "Hoisted": "trace"}


def __getattr__(name):
    """Loads what needs ctypes and more at its first use, so that `import attnc` stays cheap."""
    if name not in _LAZY:
        raise AttributeError(f"module 'attnc' has no attribute {name!r}")
    import importlib
    module = importlib.import_module(f".{_LAZY[name] or name}", __name__)
    value = globals()[name] = getattr(module, name) if _LAZY[name] else module
    return value


def __dir__():
    return sorted({*globals(), *_LAZY})


def compile_count():
    """How many kernels this process has compiled so far; those from the cache do not count."""
    from ._library import library
    return library().attnCompileCount()


def version():
    """The version of libattnc.so, as "0.1.0"."""
    from ._library import library
    number = library().attnVersion()
    return f"{number // 10000}.{number // 100 % 100}.{number % 100}"
