# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The passes of a problem as functions of tensors, with gradients."""
import functools
import typing

import torch
from torch.autograd import forward_ad

from ..errors import UnsupportedError
from ..masks import Mask
from ..problem import Problem, gradient_text
from ..scores import Score
from . import _ops

_NAME, _GRADIENT = "attention", "attention_gradient"


class Plan(typing.NamedTuple):
    """What a call of attention() compiles to, by everything but its tensors' sizes; plain values, which torch.compile
    takes as constants."""
    text: str
    arrays: tuple  # names, in the order of the operator
    dtypes: tuple


@torch._dynamo.assume_constant_result
def plan_of(*key):
    return _cached_plan(*key)


@functools.lru_cache(maxsize=4096)
def _cached_plan(mask, score, layout, heads, dims, dtype, scale, sink, dropout, expected_seqlen, max_seqlen):
    text = Problem(Mask(mask), score=tuple(map(Score, score)), layout=layout, heads=heads, dims=dims, dtype=dtype,
                   scale=scale, sink=sink, dropout=dropout, expected_seqlen=expected_seqlen, max_seqlen=max_seqlen).text
    arrays = [t for t in _ops.signature(text, _NAME).inputs if t["role"] == "array"]
    return Plan(text, tuple(t["name"] for t in arrays), tuple(t["dtype"] for t in arrays))


@torch._dynamo.assume_constant_result
def _gradient_plan(*key):
    return _cached_gradient_plan(*key)


@functools.lru_cache(maxsize=4096)
def _cached_gradient_plan(text, deterministic, dlse, requires_grad):
    """Text of a backward pass, and names of its inputs and results."""
    made = gradient_text(text, _NAME, deterministic=deterministic, dlse=dlse, requires_grad=requires_grad)
    spec = _ops.signature(made, _GRADIENT)
    return made, tuple(t["name"] for t in spec.inputs), tuple(t["name"] for t in spec.results)


def _run_backward(plan, deterministic, needed, q, k, v, arrays, o, lse, do, dlse):
    """Gradients of q, k, v, and of the arrays in `needed`."""
    text, inputs, results = _gradient_plan(plan.text, deterministic, dlse is not None, needed)
    given = {"q": q, "k": k, "v": v, "o": o, "lse": lse, "do": do, "dlse": dlse}
    for name, array in zip(plan.arrays, arrays):
        given[name] = array
    found = _ops.run([given[name] for name in inputs], text, _GRADIENT)
    return tuple([found[results.index(name)] for name in ("dq", "dk", "dv", *["d" + name for name in needed])])


class _Backward(torch.autograd.Function):
    """The backward pass, which has no derivative."""
    generate_vmap_rule = True

    @staticmethod
    def forward(plan, deterministic, needed, q, k, v, o, lse, do, dlse, *arrays):
        return _run_backward(plan, deterministic, needed, q, k, v, arrays, o, lse, do, dlse)

    @staticmethod
    def setup_context(ctx, inputs, output):
        pass

    @staticmethod
    def backward(ctx, *grads):
        raise UnsupportedError("attnc has no second derivatives: gradients of attention cannot be differentiated")


def refuse_batched(do, dlse):
    if not torch.compiler.is_compiling() and any(
            [t is not None and torch._C._functorch.is_legacy_batchedtensor(t) for t in (do, dlse)]):
        raise UnsupportedError("attnc has no gradients of several outputs at once (is_grads_batched, vectorize): take "
                               "torch.func.vmap of torch.func.vjp, or torch.func.jacrev")


def _backward(ctx, do, dlse):
    plan, deterministic = ctx.plan, ctx.deterministic
    q, k, v, o, lse, *arrays = ctx.saved_tensors  # once: checkpoint unpacks them a single time
    if do is None:
        do = torch.zeros_like(o)
    refuse_batched(do, dlse)
    if do.stride(-1) != 1 or any(s % 8 for s in do.stride()[:-1]):
        do = do.contiguous()
    elif not torch.compiler.is_compiling() and not torch._C._are_functorch_transforms_active() and do.data_ptr() % 16:
        do = do.clone()
    dlse = None if dlse is None else dlse.contiguous()
    needed = tuple([name for name, wanted in zip(plan.arrays, ctx.needs_input_grad[5:]) if wanted])
    if torch.is_grad_enabled() and not torch.compiler.is_compiling():
        grads = _Backward.apply(plan, deterministic, needed, q, k, v, o, lse, do, dlse, *arrays)
    else:
        grads = _run_backward(plan, deterministic, needed, q, k, v, arrays, o, lse, do, dlse)
    of_arrays = [grads[3 + needed.index(name)] if name in needed else None for name in plan.arrays]
    return (None, None, *grads[:3], *of_arrays)


class _CompiledAttention(torch.autograd.Function):
    """The forward pass under torch.compile."""

    @staticmethod
    def forward(ctx, plan, deterministic, q, k, v, *arrays):
        o, lse = _ops.run([q, k, v, *arrays], plan.text, _NAME)[:2]
        ctx.save_for_backward(q, k, v, o, lse, *arrays)
        ctx.plan, ctx.deterministic = plan, deterministic
        ctx.set_materialize_grads(False)
        return o, lse

    backward = staticmethod(_backward)


class _Attention(_CompiledAttention):
    """The forward pass in eager mode. (torch.compile takes no Function with a jvp.)"""

    @staticmethod
    def jvp(ctx, *tangents):
        raise UnsupportedError("attnc has no forward-mode derivatives (jvp)")


class _MappedAttention(torch.autograd.Function):
    """The same under torch.func's transforms, which want the context set up apart."""
    generate_vmap_rule = True

    @staticmethod
    def forward(plan, deterministic, q, k, v, *arrays):
        return tuple(_ops.run([q, k, v, *arrays], plan.text, _NAME)[:2])

    @staticmethod
    def setup_context(ctx, inputs, output):
        plan, deterministic, q, k, v, *arrays = inputs
        ctx.save_for_backward(q, k, v, *output, *arrays)
        ctx.plan, ctx.deterministic = plan, deterministic
        ctx.set_materialize_grads(False)

    backward = staticmethod(_backward)

    @staticmethod
    def jvp(ctx, *tangents):
        raise UnsupportedError("attnc has no forward-mode derivatives (jvp)")


def apply(plan, deterministic, q, k, v, arrays):
    """o and lse."""
    compiling = torch.compiler.is_compiling()
    if not compiling and torch._C._are_functorch_transforms_active():
        return _MappedAttention.apply(plan, deterministic, q, k, v, *arrays)
    if not (compiling or forward_ad._current_level < 0) or torch.is_grad_enabled() and (
            q.requires_grad or k.requires_grad or v.requires_grad or any([t.requires_grad for t in arrays])):
        return (_CompiledAttention if compiling else _Attention).apply(plan, deterministic, q, k, v, *arrays)
    return _ops.run([q, k, v, *arrays], plan.text, _NAME)[:2]
