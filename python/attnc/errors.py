# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What attnc raises. Every class is an `attnc.Error` and the built-in exception that Python users expect."""


class Error(Exception):
    """Base of all errors of attnc."""


class ProblemError(Error, ValueError):
    """A mask, a score modifier or a problem is not valid. The text has the verifier's message and, for a text, a
    caret."""


class TraceError(Error, TypeError):
    """A Python function cannot be a mask or a score modifier. The text names its file and line."""


class TensorError(Error, ValueError):
    """A tensor has another dtype, shape, stride or device than the problem wants. The text says which, and what it
    has."""


class UnsupportedError(Error, NotImplementedError):
    """The problem is valid and the target has no kernel for it. The text has the reason, and the nearest problem with
    one."""


class CompileError(Error, RuntimeError):
    """A kernel could not be compiled: no compiler, no NVRTC, or a fault of ours. The text has the reproducer's path."""


class DriverError(Error, RuntimeError):
    """The CUDA driver refused a call, or there is no driver."""
