# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Python functions as masks and score modifiers.

    window = torch.tensor([64, 128, 256, 512], device="cuda")
    mask = attnc.mask(lambda b, h, q, k: (q >= k) & (q - k < window[h]))
    score = attnc.score(lambda s, b, h, q, k: s - slopes[h] * (q - k))

The function is called once, with symbols, and becomes an expression of the dialect: families where its comparisons
are such, else `#attn.predicate` or `#attn.score`. Conditions combine by `&`, `|` and `~`; attnc.select, np.where or
torch.where stands in place of `if`. q and k count from the start of their sequence.

What depends on one side only (on q, or on k, with b and h) may be anything that torch has, and may read captured
tensors: it is evaluated ahead into arrays, which are bound to the mask as `attnc.Hoisted`. What mixes q and k is of the
language. Raises TraceError with the line that cannot be traced.
"""
import reprlib

from . import calls, compiled, jax_arrays
from ..errors import TraceError
from ..masks import Mask
from ..scores import Score
from .arrays import Hoisted
from .calls import Array
from .masks import mask_of
from .nodes import ZERO, variable
from .scores import score_of
from .session import Session, refusal
from .symbols import Symbol

__all__ = ["Array", "Hoisted", "array", "select", "trace_mask", "trace_score"]


def trace_mask(function):
    """The mask of a function of (b, h, q, k) that returns a condition: may row q of head h see key k?"""
    if compiled.is_compiling():
        return Mask(*compiled.traced(_mask, function))
    return _mask(function)


def trace_score(function):
    """The score modifier of a function of (s, b, h, q, k) that returns what becomes of the score s."""
    if compiled.is_compiling():
        return Score(*compiled.traced(_score, function))
    return _score(function)


def _mask(function):
    session, root = _called(function, "b, h, q, k")
    if root.kind != "bool":
        got = "a real number" if root.kind == "real" else "an integer"
        raise session.refusal_of(root, f"expected a condition as the mask of {_name(function)}, got: {got}; compare "
                                       "it, as in `x != 0`")
    return _lowered(mask_of, root, session)


def _score(function):
    session, root = _called(function, "s, b, h, q, k")
    if root.kind == "bool":
        raise session.refusal_of(root, f"expected a number as the score of {_name(function)}, got: a condition; use "
                                       "attnc.mask for it, or attnc.select(condition, a, b)")
    return _lowered(score_of, root, session)


def array(values):
    """A copy of a NumPy array or a list that functions can read at symbols, as in `lengths[b]`."""
    return Array(values)


def select(condition, a, b):
    """a where a condition holds, else b; in traced functions, in place of `a if condition else b`."""
    if not calls.has_symbol((condition, a, b)):
        return a if condition else b
    return calls.call("where", None, (condition, a, b), {})


def _name(function):
    return getattr(function, "__name__", None) or type(function).__name__


def _lowered(make, root, session):
    try:
        return make(root, session)
    except RecursionError:
        raise session.refusal_of(root, "the function is nested too deeply to be traced") from None


def _called(function, names):
    """The expression that a function returns for symbols of these names."""
    if not callable(function):
        raise TraceError(f"expected a function of ({names}), got: {reprlib.repr(function)}")
    with Session(function, calls.mode) as session, jax_arrays.read_by(calls.entry_of_jax, calls.has_symbol):
        arguments = [Symbol(variable(name)) for name in names.split(", ")]
        try:
            result = function(*arguments)
        except TraceError:
            raise
        except (TypeError, IndexError) as error:
            inside = error.__traceback__.tb_next
            if inside is None:
                raise refusal(f"expected a function of ({names}): {error}", session.place_of()) from None
            if "symbol" in str(error):  # of a library that does not know it
                message = jax_arrays.UNKNOWN if jax_arrays.is_of_jax(error) else (
                    f"{error}; attnc.array(values)[symbol] can be read, tensors of torch and arrays of JAX")
                raise refusal(message, (inside.tb_frame.f_code.co_filename, inside.tb_lineno)) from error
            raise
        except RecursionError:
            raise refusal(f"{_name(function)} recurses without an end", session.place_of()) from None
        root = calls.lifted(result) if calls.is_operand(result) else None
        if root is None or root.shape:
            got = f"a value of shape {tuple(root.shape)}" if root is not None else repr(type(result).__name__)
            raise session.refusal_of(root or ZERO,
                                     f"expected one value for each pair from {_name(function)}, got: {got}")
        return session, root
