# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""attention() on tensors of PyTorch, with gradients."""
import functools
import operator
import typing

import torch

from .. import errors, masks, scores
from .._calls import AXES, SEED, SINK, collect, hashable, put_both
from .._text import apart, merged
from ..errors import TensorError, UnsupportedError
from ..masks import Mask
from ..problem import Problem, gradient_text
from ..scores import Score
from . import _ops

_DTYPES = {torch.bfloat16: "bf16", torch.float16: "f16"}
_NAME, _GRADIENT = "attention", "attention_gradient"


class Plan(typing.NamedTuple):
    """What a call of attention() compiles to, by everything but its tensors' sizes; plain values, which torch.compile
    takes as constants."""
    text: str
    arrays: tuple  # names, in the order of the operator
    dtypes: tuple


@torch._dynamo.assume_constant_result
def _plan(*key):
    return _cached_plan(*key)


@functools.lru_cache(maxsize=4096)
def _cached_plan(mask, score, layout, heads, dims, dtype, scale, sink, dropout, expected_seqlen, max_seqlen, segments):
    text = Problem(Mask(mask), score=tuple(map(Score, score)), layout=layout, heads=heads, dims=dims, dtype=dtype, scale=scale,
                   sink=sink, dropout=dropout, expected_seqlen=expected_seqlen, max_seqlen=max_seqlen, segments=segments).text
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


def _backward(ctx, do, dlse):
    plan, deterministic = ctx.plan, ctx.deterministic
    q, k, v, o, lse, *arrays = ctx.saved_tensors  # once: checkpoint unpacks them a single time
    if do is None:
        do = torch.zeros_like(o)
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


def attention(q, k, v, *, mask, layout="bshd", scale=None, score=(), sink=None, cu_seqlens_q=None, cu_seqlens_kv=None,
              padded_offsets_q=None, padded_offsets_kv=None, ids=None, positions=None, segments=None, arrays=None, dropout=0.0,
              seed=None, deterministic=None, expected_seqlen=None, max_seqlen=None, return_lse=False):
    """softmax(scores(q k^T) under the mask) v, with gradients of q, k, v, of float32 arrays of score modifiers, and of sinks.

    q, k, v: bfloat16 or float16 tensors of one device, [batch, seqlen, heads, dim] in the layout "bshd", and so on for
        "sbhd", "bhsd", "thd" (packed: [tokens, heads, dim]) and "thd padded". Heads of k and v divide those of q (GQA).
        Strided views are taken as they are, if the last axis is contiguous, other strides are multiples of 8 and the
        address is aligned to 16 bytes.
    mask: an attnc.Mask. Arrays that it names are in `arrays`, or bound to it.
    scale: of q k^T; None is 1 / sqrt(dim). score: score modifiers, in order.
    sink: a number or a float32 tensor [heads]: one key more for each row, without a value.
    cu_seqlens_q, cu_seqlens_kv: packed layouts: int32 or int64 [sequences + 1], prefix sums of lengths from 0, on the
        device; of one alone, both sides have it. padded_offsets_q, padded_offsets_kv: where sequences begin ("thd padded").
    ids, positions, segments: in place of these: ids of tokens, [..., tokens], from 1 on, 0 being padding, their positions,
        and how many ids a row has at most; each a tensor or a pair for queries and keys.
    arrays: other arrays by name. int64 becomes int32: numbers have to fit (checked on the CPU alone).
    dropout: a probability; seed: int32 [4] that says which pairs are dropped; None draws it from PyTorch's generator.
    deterministic: equal bits each time; None is torch.are_deterministic_algorithms_enabled().
    expected_seqlen, max_seqlen: hints, (queries, keys) or one for both, which choose kernels and change no result.
    return_lse: also return the logarithms of the softmax's sums, float32 [batch, heads, seqlen] or [heads, tokens].

    Returns o, as q but for the head dim of v; a row that sees no key is 0. Raises attnc.ProblemError, TensorError,
    UnsupportedError, CompileError; there is never a fallback to another implementation.
    """
    layout = layout if isinstance(layout, str) else tuple(layout or ("",))
    autocast = isinstance(q, torch.Tensor) and q.device.type != "meta" and torch.is_autocast_enabled(q.device.type)
    if autocast:
        dtype = torch.get_autocast_dtype(q.device.type)
        q, k, v = (t.to(dtype) if isinstance(t, torch.Tensor) and t.is_floating_point() else t for t in (q, k, v))
    for name, tensor in (("q", q), ("k", k), ("v", v)):
        _check_tensor(name, tensor, layout)
        if tensor.device != q.device or tensor.dtype != q.dtype:
            raise TensorError(f"expected {name!r} to be {q.dtype} on {q.device} as 'q' is, got: {tensor.dtype} on {tensor.device}")
    layout_q, layout_k = (layout, layout) if isinstance(layout, str) else layout[:2]
    heads = (operator.index(q.shape[AXES[layout_q][1]]), operator.index(k.shape[AXES[layout_k][1]]))
    if heads[1] == 0 or heads[0] % heads[1]:
        raise TensorError(f"expected heads of q in multiples of those of k, got: {heads[0]} and {heads[1]}")
    if isinstance(score, Score) or callable(score):
        score = (score,)
    if not all([isinstance(s, Score) for s in score]):
        score = [_as_score(s) for s in score]
    if not isinstance(mask, Mask):
        if not callable(mask):
            raise errors.ProblemError(f"expected an attnc.Mask or a function of (b, h, q, k) as mask, got: {type(mask).__name__}")
        mask = masks.mask(mask)
    if sink is not None and not isinstance(sink, (torch.Tensor, int, float)):
        raise TensorError(f"expected a number or a torch.Tensor as sink, got: {type(sink).__name__}")
    if arrays is not None and not isinstance(arrays, dict):
        raise TensorError(f"expected a dictionary of tensors by name as arrays, got: {type(arrays).__name__}")
    if score:
        mask, *score = apart(mask, *score)
    sink_key = None if sink is None else SINK if isinstance(sink, torch.Tensor) else float(sink)
    given = dict(arrays or {})
    if ids is not None:
        _put_pair(given, "ids", ids)
        if positions is not None:
            _put_pair(given, "positions", positions)
        if segments is None:
            raise errors.ProblemError("expected `segments`, how many ids a row has at most, beside ids")
    plan = _plan(mask._text, tuple([s._text for s in score]), layout, heads,
                 (operator.index(q.shape[-1]), operator.index(v.shape[-1])), _DTYPES[q.dtype], scale, sink_key, (dropout, SEED) if dropout else None, hashable(expected_seqlen),
                 hashable(max_seqlen), segments)
    put_both(given, "cu_seqlens", cu_seqlens_q, cu_seqlens_kv)
    put_both(given, "padded_offsets", padded_offsets_q, padded_offsets_kv)
    if sink_key == SINK:
        given[SINK] = sink
    if dropout:
        given[SEED] = torch.randint(-2**31, 2**31 - 1, (4,), dtype=torch.int32, device=q.device) if seed is None else seed
    bound = mask._bound if not score else merged(mask, *score)

    def convert(name, value, dtype):
        if hasattr(value, "evaluate"):  # of a traced function
            value = _evaluated(value, given, q, k, layout)
        return _array(name, value, dtype, q.device)
    read = collect(plan.arrays, plan.dtypes, given, bound, convert)
    if deterministic is None:
        deterministic = torch.are_deterministic_algorithms_enabled()
    if autocast:
        with torch.autocast(q.device.type, enabled=False):
            o, lse = _apply(plan, deterministic, q, k, v, read)
    else:
        o, lse = _apply(plan, deterministic, q, k, v, read)
    return (o, lse) if return_lse else o


def _apply(plan, deterministic, q, k, v, read):
    compiling = torch.compiler.is_compiling()
    if not compiling and torch._C._are_functorch_transforms_active():
        return _MappedAttention.apply(plan, deterministic, q, k, v, *read)
    if torch.is_grad_enabled() and any([t.requires_grad for t in (q, k, v, *read)]):
        return (_CompiledAttention if compiling else _Attention).apply(plan, deterministic, q, k, v, *read)
    return _ops.run([q, k, v, *read], plan.text, _NAME)[:2]


def _as_score(score):
    if isinstance(score, Score):
        return score
    if not callable(score):
        raise errors.ProblemError(f"expected score modifiers, as attnc.softcap(30.0), or functions, got: {score!r}")
    return scores.score(score)


def _check_tensor(name, tensor, layout):
    if not isinstance(tensor, torch.Tensor):
        raise TensorError(f"expected a torch.Tensor as {name!r}, got: {type(tensor).__name__}")
    own = layout if isinstance(layout, str) else layout["qkv".index(name)] if len(layout) == 4 else layout
    if own not in AXES:
        raise errors.ProblemError(f"expected a layout of {', '.join(map(repr, AXES))}, or four, got: {own!r}")
    rank = 3 if own.startswith("thd") else 4
    if tensor.dim() != rank:
        raise TensorError(f"expected {name!r} of {rank} dimensions in the layout {own!r}, got: {tuple(tensor.shape)}")
    if tensor.dtype not in _DTYPES:
        raise TensorError(f"expected {name!r} to be bfloat16 or float16, got: {tensor.dtype} (torch.autocast casts float32)")


def _put_pair(given, name, value):
    first, second = value if isinstance(value, (tuple, list)) else (value, value)
    given[f"{name}_q"], given[f"{name}_kv"] = first, second


def _evaluated(hoisted, given, q, k, layout):
    """An array of a traced function, for the sizes or the lengths of a call."""
    layout_q, layout_k = (layout, layout) if isinstance(layout, str) else layout[:2]
    if "thd padded" in (layout_q, layout_k) or (layout_q == "thd") != (layout_k == "thd") or "ids_q" in given:
        raise UnsupportedError(f"attnc does not evaluate {hoisted!r} for layouts with padding or ids: give it as an array")
    (seqlen_q, heads), (seqlen_k, kv_heads) = ([int(t.shape[axis]) for axis in AXES[own]]
                                               for t, own in ((q, layout_q), (k, layout_k)))
    if layout_q == "thd":
        if "cu_seqlens_q" not in given:
            raise TensorError("expected cu_seqlens_q with the layout 'thd', got: None")
        return hoisted.evaluate_packed(heads, given["cu_seqlens_q"], given["cu_seqlens_kv"], seqlen_q, seqlen_k)
    batch = int(q.shape[1 if layout_q == "sbhd" else 0])
    return hoisted.evaluate(batch, heads, kv_heads, seqlen_q, seqlen_k, q.device)


def _array(name, value, dtype, device):
    if not isinstance(value, torch.Tensor):
        raise TensorError(f"expected a torch.Tensor as {name!r}, got: {type(value).__name__}")
    if value.device != device:
        raise TensorError(f"expected {name!r} on {device}, got: {value.device}")
    wanted = torch.float32 if dtype == "f32" else torch.int32
    if value.dtype == torch.int64 and wanted == torch.int32:
        narrow = value.to(torch.int32)
        if device.type == "cpu" and not torch.compiler.is_compiling() and not torch.equal(narrow.long(), value):
            raise TensorError(f"expected numbers of 32 bits in {name!r}, got: {int(value.abs().max())}")
        value = narrow
    if value.dtype != wanted:
        raise TensorError(f"expected {name!r} to be {wanted}, got: {value.dtype}")
    return value.contiguous()
