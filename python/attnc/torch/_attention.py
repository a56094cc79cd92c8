# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""attention() on tensors of PyTorch, with gradients."""
import operator

import torch

from .. import errors
from .._calls import AXES, SEED, SINK, as_mask, as_scores, as_written, collect, given_by, hashable, put_both
from .._text import apart, merged
from ..errors import TensorError, UnsupportedError
from ._autograd import apply, plan_of
from ._hoisted import evaluated
from ._jagged import of_jagged
from ._segments import by_ids, int32

_DTYPES = {torch.bfloat16: "bf16", torch.float16: "f16", torch.float32: "f32"}
_known = {}  # plans of eager calls without bound arrays, whose arguments were valid


def attention(q, k, v, *, mask, layout="bshd", scale=None, score=(), sink=None, cu_seqlens_q=None, cu_seqlens_kv=None,
              padded_offsets_q=None, padded_offsets_kv=None, ids=None, positions=None, segments=None, arrays=None,
              dropout=0.0, seed=None, deterministic=None, expected_seqlen=None, max_seqlen=None, return_lse=False,
              context_parallel=None, seqlens=None):
    """softmax(scores(q k^T) under the mask) v, with gradients of q, k, v, of float32 arrays of score modifiers, and of
    sinks.

    q, k, v: bfloat16 or float16 tensors of one device (on the CPU also float32), [batch, seqlen, heads, dim] in the
        layout "bshd", and so on for "sbhd", "bhsd", "thd" (packed: [tokens, heads, dim]) and "thd padded". Heads of k
        and v divide those of q (GQA).
        Strided views are taken as they are, if the last axis is contiguous, other strides are multiples of 8 and the
        address is aligned to 16 bytes.
    mask: an attnc.Mask, or a function of (b, h, q, k). Arrays that it names are in `arrays`, or bound to it.
    scale: of q k^T; None is 1 / sqrt(dim).
    score: one or several attnc.Score, or functions of (s, b, h, q, k), in order.
    sink: a number or a float32 tensor [heads]: one key more for each row, without a value.
    cu_seqlens_q, cu_seqlens_kv: packed layouts: int32 or int64 [sequences + 1], prefix sums of lengths from 0, on the
        device; of one alone, both sides have it. padded_offsets_q, padded_offsets_kv: where sequences begin ("thd
        padded").
    ids, positions, segments: in place of these, in the layouts "bshd" and "thd padded": ids of tokens, [..., tokens],
        from 1 on, 0 being padding, their positions, and how many ids a row has at most; each a tensor or a pair for
        queries and keys. The tokens of an id are one run, a sequence; without positions they count from its start.
    arrays: other arrays by name. int64 becomes int32: numbers have to fit (checked on the CPU alone).
    dropout: a probability; seed: int32 [4] that says which pairs are dropped; None draws it from PyTorch's generator.
    deterministic: equal bits each time; None is torch.are_deterministic_algorithms_enabled().
    expected_seqlen, max_seqlen: hints, (queries, keys) or one for both, which choose kernels and change no result.
    return_lse: also return the logarithms of the softmax's sums, float32 [batch, heads, seqlen] or [heads, tokens].
    context_parallel: a ContextParallel: q, k, v, and o are this rank's rows, in the layouts "bshd", "thd" and "thd
        padded". All else is of the whole sequences, the same on all ranks: cu_seqlens and padded_offsets (sequences of
        integers or tensors; one on a GPU is copied to the host, which waits), seed, and arrays, of which those with an
        entry for each token have those of all tokens, without padding. Gradients of sinks and arrays are what this
        rank computed of them, to be summed over ranks as those of other parameters. Results have equal bits each time;
        hints are not read.
    seqlens: with context_parallel in the layout "bshd": how long the whole sequences are, (queries, keys) or one for
        both; None: those of the rank times the number of ranks.

    Returns o, as q but for the head dim of v; a row that sees no key is 0. Raises attnc.ProblemError, TensorError,
    UnsupportedError, CompileError; there is never a fallback to another implementation.
    """
    if context_parallel is not None:
        from ._of_ranks import of_ranks
        return of_ranks(
            context_parallel, q, k, v, mask=mask, layout=layout, scale=scale, score=score, sink=sink, arrays=arrays,
            dropout=dropout, seed=seed, return_lse=return_lse, seqlens=seqlens, cu_seqlens_q=cu_seqlens_q,
            cu_seqlens_kv=cu_seqlens_kv, padded_offsets_q=padded_offsets_q, padded_offsets_kv=padded_offsets_kv,
            ids=ids, positions=positions, segments=segments)
    if ids is not None or getattr(q, "is_nested", False):
        options = dict(mask=mask, layout=layout, return_lse=return_lse, scale=scale, score=score, sink=sink,
                       arrays=arrays, dropout=dropout, seed=seed, deterministic=deterministic,
                       expected_seqlen=expected_seqlen, max_seqlen=max_seqlen,
                       offsets=(cu_seqlens_q, cu_seqlens_kv, padded_offsets_q, padded_offsets_kv))
        return of_jagged(attention, q, k, v, **options) if ids is None else by_ids(
            attention, q, k, v, ids, positions, segments, **options)
    if positions is not None or segments is not None or seqlens is not None:
        raise errors.ProblemError("expected ids beside `positions` and `segments`, got: None" if seqlens is None else
                                  "expected context_parallel beside `seqlens`, got: None")
    given, written = given_by(arrays), {SINK: "sink", SEED: "seed"}
    put_both(given, written, "cu_seqlens", cu_seqlens_q, cu_seqlens_kv, layout)
    put_both(given, written, "padded_offsets", padded_offsets_q, padded_offsets_kv, layout)
    sink_key = None if sink is None else _sink(sink, given)
    if deterministic is None:
        deterministic = torch.are_deterministic_algorithms_enabled()
    key = None
    if not torch.compiler.is_compiling() and not torch._C._is_any_autocast_enabled():
        try:
            key = (mask._text, layout, type(q), type(k), type(v), q.dtype, q.shape, k.shape, v.shape, scale, sink_key,
                   dropout, expected_seqlen, max_seqlen, *[s._text for s in score])
            bound = mask._bound or [s for s in score if s._bound]
            plan = None if bound else _known.get(key)
        except (AttributeError, TypeError):  # a function, a list, no tensor: see below
            key = plan = None
        if plan:
            try:
                return _call(plan, q, k, v, given, {}, written, layout, dropout, seed, deterministic, return_lse)
            except TensorError:  # devices, dtypes, arrays: the checks below know the exact reason
                pass

    scale, dropout = _constant(scale), _constant(dropout)
    layout = layout if isinstance(layout, str) else tuple(layout or ("",))
    autocast = isinstance(q, torch.Tensor) and q.device.type != "meta" and torch.is_autocast_enabled(q.device.type)
    if autocast:
        dtype = torch.get_autocast_dtype(q.device.type)
        q, k, v = (t.to(dtype) if isinstance(t, torch.Tensor) and t.is_floating_point() else t for t in (q, k, v))
    for name, tensor in (("q", q), ("k", k), ("v", v)):
        _check_tensor(name, tensor, layout)
        if tensor.device != q.device or tensor.dtype != q.dtype:
            raise TensorError(f"expected {name!r} to be {q.dtype} on {q.device} as 'q' is, got: {tensor.dtype} on "
                              f"{tensor.device}")
    layout_q, layout_k = (layout, layout) if isinstance(layout, str) else layout[:2]
    heads = (operator.index(q.shape[AXES[layout_q][1]]), operator.index(k.shape[AXES[layout_k][1]]))
    if heads[1] == 0 or heads[0] % heads[1]:
        raise TensorError(f"expected heads of q in multiples of those of k, got: {heads[0]} and {heads[1]}")
    mask, score = as_mask(mask), as_scores(score)
    if score:
        mask, *score = apart(mask, *score)
    bound = mask._bound if not score else merged(mask, *score)

    def plan_for(heads):
        return plan_of(mask._text, tuple([s._text for s in score]), layout, heads,
                       (operator.index(q.shape[-1]), operator.index(v.shape[-1])), _DTYPES[q.dtype], scale, sink_key,
                       (dropout, SEED) if dropout else None, hashable(expected_seqlen), hashable(max_seqlen))
    plan = plan_for(heads)
    if hasattr(q, "placements") or hasattr(k, "placements") or hasattr(v, "placements"):  # DTensors
        from ._sharded import of_shards
        if dropout and seed is None:
            raise UnsupportedError("attnc does not draw seeds of dropout for DTensors: expected `seed`, got: None")
        read = _read(plan, q, k, given, bound, written, layout, dropout, seed)
        try:
            o, lse = of_shards(q, k, v, read, layout, lambda heads: plan_for(heads).text, plan.arrays, heads,
                               lambda q, k, v, read, heads: apply(plan_for(heads), deterministic, q, k, v, read))
        except errors.Error as error:
            raise as_written(error, plan.arrays, given, bound, written) from None
        return (o, lse) if return_lse else o
    if autocast:
        with torch.autocast(q.device.type, enabled=False):
            return _call(plan, q, k, v, given, bound, written, layout, dropout, seed, deterministic, return_lse)
    result = _call(plan, q, k, v, given, bound, written, layout, dropout, seed, deterministic, return_lse)
    if key and not bound:
        if len(_known) == 4096:
            _known.clear()
        _known[key] = plan
    return result


def _call(plan, q, k, v, given, bound, written, layout, dropout, seed, deterministic, return_lse):
    read = _read(plan, q, k, given, bound, written, layout, dropout, seed) if given or plan.arrays else ()
    try:
        o, lse = apply(plan, deterministic, q, k, v, read)
    except errors.Error as error:
        raise as_written(error, plan.arrays, given, bound, written) from None
    return (o, lse) if return_lse else o


def _read(plan, q, k, given, bound, written, layout, dropout, seed):
    """The arrays of a call, in the order of its plan."""
    if dropout and SEED in plan.arrays:  # a small probability is rounded to none
        given[SEED] = seed
        if seed is None:
            given[SEED] = torch.randint(-2**31, 2**31 - 1, (4,), dtype=torch.int32, device=q.device)

    def convert(what, value, dtype):
        if hasattr(value, "evaluate"):  # of a traced function
            value = evaluated(value, given, q, k, layout)
        return _array(what, value, dtype, q.device)
    return collect(plan.arrays, plan.dtypes, given, bound, written, convert)


def _constant(value):
    """The same; in torch.compile, for which attributes of modules are symbols, a constant."""
    return value.__float__() if isinstance(value, float) else value


def _sink(sink, given):
    """What a problem says of a sink: a number, or the name of its array, which is put among those given."""
    if isinstance(sink, torch.Tensor):
        given[SINK] = sink
        return SINK
    if not isinstance(sink, (int, float)):
        raise TensorError(f"expected a number or a torch.Tensor as sink, got: {type(sink).__name__}")
    return float(sink)


def _check_tensor(name, tensor, layout):
    if not isinstance(tensor, torch.Tensor):
        raise TensorError(f"expected a torch.Tensor as {name!r}, got: {type(tensor).__name__}")
    own = layout if isinstance(layout, str) else layout["qkv".index(name)] if len(layout) == 4 else layout
    if own not in AXES:
        raise errors.ProblemError(f"expected a layout of {', '.join(map(repr, AXES))}, or four, got: {own!r}")
    if tensor.layout != torch.strided:
        raise TensorError(f"expected {name!r} to be a strided tensor, got: {tensor.layout}")
    rank = 3 if own.startswith("thd") else 4
    if tensor.dim() != rank:
        raise TensorError(f"expected {name!r} of {rank} dimensions in the layout {own!r}, got: {tuple(tensor.shape)}")
    if tensor.dtype not in _DTYPES or (tensor.dtype == torch.float32 and tensor.is_cuda):
        raise TensorError(f"expected {name!r} to be bfloat16 or float16 (on the CPU also float32), got: {tensor.dtype} "
                          f"on {tensor.device} (torch.autocast casts float32)")


def _array(what, value, dtype, device):
    if not isinstance(value, torch.Tensor):
        raise TensorError(f"expected a torch.Tensor as {what}, got: {type(value).__name__}")
    if value.device != device:
        raise TensorError(f"expected {what} on {device}, got: {value.device}")
    if dtype == "i32":
        return int32(what, value)
    if value.dtype != torch.float32:
        raise TensorError(f"expected {what} to be torch.float32, got: {value.dtype}")
    return value.contiguous().resolve_neg()
