# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sparse attention by programs on tensors of PyTorch, with gradients."""
import functools
import operator
import typing

import torch

from ..errors import TensorError, UnsupportedError
from .. import sparse
from . import _ops
from ._segments import int32

_DTYPES = {torch.bfloat16: "bf16", torch.float16: "f16", torch.float32: "f32"}


class _Plan(typing.NamedTuple):
    """What a call compiles to, by everything but sizes; plain values, which torch.compile takes as constants."""
    name: str  # of the forward programs
    text: str  # without what the backward pass reads
    training: str
    backward: str
    results: tuple  # of the training program
    inputs: tuple  # of the backward program
    gradients: tuple


@torch._dynamo.assume_constant_result
def _plan_of(*options):
    return _cached_plan(*options)


@functools.lru_cache(maxsize=1024)
def _cached_plan(kind, options, deterministic):
    program = getattr(sparse, kind)(**dict(options))
    training = program.replace(saves=True)
    backward = training.gradient(deterministic=deterministic)
    own = _ops.signature(backward.text, backward.name)
    return _Plan(program.name, program.text, training.text, backward.text,
                 tuple(t["name"] for t in _ops.signature(training.text, program.name).results),
                 tuple(t["name"] for t in own.inputs), tuple(t["name"] for t in own.results))


class _Cut(typing.NamedTuple):
    """How a call is cut into launches: each has the query heads of so many kv heads."""
    launches: int
    axis: int  # of heads
    axis_of_gates: int

    def _axis_of(self, name):
        return self.axis_of_gates if name == "gates" else self.axis

    def part(self, name, tensor, number):
        """The tensor's heads of one launch."""
        if self.launches == 1 or name == "cu_seqlens":
            return tensor
        axis = self._axis_of(name)
        heads = tensor.shape[axis] // self.launches
        own = tensor.narrow(axis, number * heads, heads)
        return own.contiguous() if name == "gates" else own

    def fill(self, whole, name, part, like, number):
        """`whole`, of the shape of `like` with the last axis of `part`, with the heads of one launch; it is made at the
        first one."""
        if self.launches == 1:
            return part
        if whole is None:
            whole = part.new_empty((*like.shape[:-1], part.shape[-1]))
        axis = self._axis_of(name)
        heads = part.shape[axis]
        whole.narrow(axis, number * heads, heads).copy_(part)
        return whole


def _outputs(plan, names, cut, tensors, kept):
    """o of all launches. kept: None, or a list that gets what the backward pass reads beside operands."""
    o = None
    for number in range(cut.launches):
        parts = [cut.part(name, tensor, number) for name, tensor in zip(names, tensors)]
        if kept is None:
            own = _ops.run(parts, plan.text, plan.name)[0]
        else:
            results = dict(zip(plan.results, _ops.run(parts, plan.training, plan.name)))
            own = results["o"]
            kept += [results[name] for name in plan.inputs if name != "do" and name not in names]
        o = cut.fill(o, "o", own, tensors[0], number)
    return o


class _Sparse(torch.autograd.Function):
    @staticmethod
    def forward(ctx, plan, names, cut, recompute, *tensors):
        kept = []
        o = _outputs(plan, names, cut, tensors, None if recompute else kept)
        # Operands that the backward pass reads, or of whose shape its results are; it recomputes from all.
        read = [recompute or name in plan.inputs or "d" + name in plan.gradients for name in names]
        ctx.save_for_backward(*[tensor for tensor, needed in zip(tensors, read) if needed], *kept)
        ctx.plan, ctx.names, ctx.cut, ctx.recompute = plan, names, cut, recompute
        ctx.saved_names = tuple([name for name, needed in zip(names, read) if needed])
        return o

    @staticmethod
    def backward(ctx, do):
        plan, names, cut = ctx.plan, ctx.saved_names, ctx.cut
        if torch.is_grad_enabled():
            raise UnsupportedError("attnc has no second derivatives: gradients of attention cannot be differentiated")
        if do.stride(-1) != 1 or any(s % 8 for s in do.stride()[:-1]):
            do = do.contiguous()
        elif not torch.compiler.is_compiling() and do.data_ptr() % 16:
            do = do.clone()
        saved = ctx.saved_tensors  # once: hooks, such as those of checkpoints, unpack what is read
        tensors, kept = saved[:len(names)], saved[len(names):]
        grads = dict.fromkeys(ctx.names)
        for number in range(cut.launches):
            parts = [cut.part(name, tensor, number) for name, tensor in zip(names, tensors)]
            of_launch = len(kept) // cut.launches
            found = _gradients(plan, names, parts, kept[number * of_launch:(number + 1) * of_launch],
                               cut.part("do", do, number), ctx.recompute)
            for gradient, part in zip(plan.gradients, found):
                name = gradient[1:]
                grads[name] = cut.fill(grads[name], name, part, tensors[names.index(name)], number)
        return (None, None, None, None, *grads.values())


def _gradients(plan, names, tensors, kept, do, recompute):
    """Results of one launch of the backward pass. (What it recomputes lives no longer than this call.)"""
    given = {**dict(zip(names, tensors)), "do": do}
    if recompute:
        given.update(zip(plan.results, _ops.run(tensors, plan.training, plan.name)))
    else:
        given.update(zip([name for name in plan.inputs if name not in given], kept))
    return _ops.run([given[name] for name in plan.inputs], plan.backward, f"{plan.name}_backward")


_BESIDE = 8_000_000_000  # bytes that a launch may have beside the caller's tensors, as `_launches` counts them


def _launches(q, k, axis, training, at_once):
    """How many launches a call has. Training: a backward pass has three dq in float32 (that of the branches before, the
    own one, and what it is summed in), and two pairs of dk and dv; else the three branches' o."""
    kv_heads, dim = operator.index(k.shape[axis]), operator.index(q.shape[-1])
    if at_once is not None:
        at_once = operator.index(at_once)
        if at_once < 1 or kv_heads % at_once:
            raise TensorError(f"expected kv_heads_at_once to divide the {kv_heads} kv heads, got: {at_once}")
        return kv_heads // at_once
    rows, group = q.numel() // (q.shape[axis] * dim), q.shape[axis] // kv_heads
    of_head = rows * dim * (4 * (3 * group + 4) if training else q.element_size() * 3 * group)
    return next(n for n in range(1, kv_heads + 1)
                if kv_heads % n == 0 and (n == kv_heads or of_head * (kv_heads // n) <= _BESIDE))


def _trains(tensors):
    return torch.is_grad_enabled() and any([t.requires_grad for t in tensors])


def _attend(kind, options, operands, deterministic, cut=None, recompute=False):
    """o of a program of `attnc.sparse`, by the class's name. deterministic: None is PyTorch's setting. cut: None is one
    launch; options are those of a launch."""
    if deterministic is None:
        deterministic = torch.are_deterministic_algorithms_enabled()
    if cut is None:
        cut = _Cut(1, 0, 0)
    plan, names, tensors = _plan_of(kind, options, bool(deterministic)), tuple(operands), list(operands.values())
    if _trains(tensors):
        return _Sparse.apply(plan, names, cut, recompute, *tensors)
    return _outputs(plan, names, cut, tensors, None)


def native_sparse_attention(q, k, v, gates=None, *, layout="bshd", length=32, stride=16, block=64, count=16, first=1,
                            local=2, window=512, rows=64, scale=None, cu_seqlens=None, deterministic=None,
                            expected_seqlen=None, recompute=False, kv_heads_at_once=None):
    """Native sparse attention (Yuan et al. 2025): the gated sum of attention to compressed keys, to selected blocks of
    keys, and to a window, with gradients of q, k, v and gates.

    q, k, v: bfloat16 or float16 tensors (on the CPU also float32), [batch, seqlen, heads, dim] in the layout "bshd", or
        "sbhd", "bhsd", "thd" (packed: [tokens, heads, dim], with cu_seqlens). k and v may be three tensors each, for
        the compressed branch, the selected one and the window; heads of k and v divide those of q.
    gates: logits of the gates, float32 or the dtype of q, [batch, seqlen, heads, 3] or packed [tokens, heads, 3], in
        the order of the branches; None: each branch counts 1/3.
    length, stride: window i of compressed keys is the mean of the tokens from i * stride to i * stride + length - 1;
        a query sees those that end at or before it.
    block, count: each tile of `rows` queries and kv head selects `count` blocks of `block` keys, among them the `first`
        ones of the sequence and the `local` last ones up to that of the tile's first query, and those whose compressed
        keys have the largest probabilities for that query, over the heads of the group.
    window: keys of the window, the query's own included.
    rows: 1 selects for each query, as the paper does; with more, tiles share lists, which is faster. No query's result
        depends on a later token in either case.
    cu_seqlens: packed: int32 or int64 [sequences + 1] on the device.
    deterministic: equal bits each time; None is torch.are_deterministic_algorithms_enabled().
    expected_seqlen: a hint, which chooses kernels and changes no result.
    recompute: the backward pass computes the outputs of the three branches again in place of keeping them: 3 * heads *
        dim elements a token less, for the time of one more forward pass.
    kv_heads_at_once: a divisor of kv heads. Each launch has this many and their query heads, and the memory of one
        launch serves the next. None: as many as keep what a launch has beside the caller's tensors within 8 GB, or one.

    Returns o, as q. Raises attnc.ProblemError, TensorError, UnsupportedError, CompileError.
    """
    ks, vs = (tuple(x) if isinstance(x, (tuple, list)) else (x,) for x in (k, v))
    offsets = None if cu_seqlens is None else int32("cu_seqlens", cu_seqlens)
    options, operands = sparse.call_of(
        q, ks, vs, None if gates is None else gates.contiguous(), _DTYPES, layout, offsets,
        dict(length=length, stride=stride, block=block, count=count, first=first, local=local, window=window, rows=rows,
             scale=scale, expected_seqlen=expected_seqlen))
    axis, training = sparse.axis_of_heads(layout), _trains(operands.values())
    cut = _Cut(_launches(q, ks[0], axis, training, kv_heads_at_once), axis, 1 if layout == "thd" else 2)
    if cut.launches > 1:
        heads = tuple(operator.index(t.shape[axis]) // cut.launches for t in (q, ks[0]))
        options = tuple({**dict(options), "heads": heads}.items())
    return _attend("NativeSparseAttention", options, operands, deterministic, cut, bool(recompute))


def moba_attention(q, k, v, *, layout="bshd", block=512, count=3, rows=64, scale=None, cu_seqlens=None,
                   deterministic=None, expected_seqlen=None):
    """Mixture of block attention (MoBA: Lu et al. 2025): causal attention of each query to its own block of keys and to
    the blocks before it whose mean keys have the largest products with it, with gradients of q, k and v.

    q, k, v: bfloat16 or float16 tensors (on the CPU also float32), [batch, seqlen, heads, dim] in the layout "bshd", or
        "sbhd", "bhsd", "thd" (packed: [tokens, heads, dim], with cu_seqlens). Heads of k and v divide those of q; the
        head dim of v may be another.
    block, count: each query head and tile of `rows` queries selects `count` blocks of `block` keys, its own included.
    rows: 1 selects for each query, as the paper does; with more, tiles share what is selected for their first query,
        and have the own blocks of all, which is faster. It divides block, or block divides it. No query's result
        depends on a later token in either case.
    cu_seqlens: packed: int32 or int64 [sequences + 1] on the device.
    deterministic: equal bits each time; None is torch.are_deterministic_algorithms_enabled().
    expected_seqlen: a hint, which chooses kernels and changes no result.

    Returns o: as q, with the head dim of v. Raises attnc.ProblemError, TensorError, UnsupportedError, CompileError.
    """
    options, operands = sparse.selected_call_of(
        dict(q=q, k=k, v=v), _DTYPES, layout, None if cu_seqlens is None else int32("cu_seqlens", cu_seqlens),
        dict(block=block, count=count, rows=rows, scale=scale, expected_seqlen=expected_seqlen))
    return _attend("MobaAttention", options, operands, deterministic)


def block_max_attention(q, k, v, index_q, index_k, *, layout="bshd", block=128, count=16, rows=64, scale=None,
                        cu_seqlens=None, deterministic=None, expected_seqlen=None):
    """Causal attention of each query to its own block of keys and to the blocks before it that an index branch ranks
    highest, by the largest product of an index query with the block's index keys (as in MiniMax-M3's sparse attention,
    MSA), with gradients of q, k and v.

    q, k, v: as in `moba_attention`.
    index_q: [batch, seqlen, heads of k, index dim] in the layout, of q's dtype: an index query for each kv head.
    index_k: index keys in the same layout, with as many heads as index_q, or fewer, which divide them (MSA: 1).
        Lists are constants of the backward pass: index_q and index_k get no gradients.
    block, count: each kv head and tile of `rows` queries selects `count` blocks of `block` keys, its own included.
    rows, cu_seqlens, deterministic, expected_seqlen: as in `moba_attention`. The index branch has no scale, which would
        change no ranking; `scale` is that of attention.

    Returns o: as q, with the head dim of v. Raises attnc.ProblemError, TensorError, UnsupportedError, CompileError.
    """
    options, operands = sparse.selected_call_of(
        dict(q=q, k=k, v=v, index_q=index_q, index_k=index_k), _DTYPES, layout,
        None if cu_seqlens is None else int32("cu_seqlens", cu_seqlens),
        dict(block=block, count=count, rows=rows, scale=scale, expected_seqlen=expected_seqlen))
    return _attend("BlockMaxAttention", options, operands, deterministic)
