# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Native sparse attention on tensors of PyTorch, with gradients."""
import functools
import typing

import torch

from ..errors import UnsupportedError
from ..sparse import NativeSparseAttention, call_of
from . import _ops
from ._segments import int32

_DTYPES = {torch.bfloat16: "bf16", torch.float16: "f16", torch.float32: "f32"}


class _Plan(typing.NamedTuple):
    """What a call compiles to, by everything but sizes; plain values, which torch.compile takes as constants."""
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
def _cached_plan(options, deterministic):
    program = NativeSparseAttention(**dict(options))
    training = program.replace(saves=True)
    backward = training.gradient(deterministic=deterministic)
    own = _ops.signature(backward.text, backward.name)
    return _Plan(program.text, training.text, backward.text,
                 tuple(t["name"] for t in _ops.signature(training.text, "nsa").results),
                 tuple(t["name"] for t in own.inputs), tuple(t["name"] for t in own.results))


class _Nsa(torch.autograd.Function):
    @staticmethod
    def forward(ctx, plan, names, *tensors):
        results = dict(zip(plan.results, _ops.run(list(tensors), plan.training, "nsa")))
        given = {**dict(zip(names, tensors)), **results}
        ctx.save_for_backward(*[given[name] for name in plan.inputs if name != "do"])
        ctx.plan, ctx.names = plan, names
        return results["o"]

    @staticmethod
    def backward(ctx, do):
        plan, names = ctx.plan, ctx.names
        if torch.is_grad_enabled():
            raise UnsupportedError("attnc has no second derivatives: gradients of attention cannot be differentiated")
        if do.stride(-1) != 1 or any(s % 8 for s in do.stride()[:-1]):
            do = do.contiguous()
        elif not torch.compiler.is_compiling() and do.data_ptr() % 16:
            do = do.clone()
        saved = iter(ctx.saved_tensors)
        found = _ops.run([do if name == "do" else next(saved) for name in plan.inputs], plan.backward, "nsa_backward")
        grads = dict(zip(plan.gradients, found))
        return (None, None, *[grads.get("d" + name) for name in names])


def native_sparse_attention(q, k, v, gates=None, *, layout="bshd", length=32, stride=16, block=64, count=16, first=1,
                            local=2, window=512, rows=64, scale=None, cu_seqlens=None, deterministic=None,
                            expected_seqlen=None):
    """Native sparse attention (Yuan et al. 2025): the gated sum of attention to compressed keys, to selected blocks of
    keys, and to a window, with gradients of q, k, v and gates.

    q, k, v: bfloat16 or float16 tensors (on the CPU also float32), [batch, seqlen, heads, dim] in the layout "bshd", or
        "sbhd", "bhsd", "thd" (packed: [tokens, heads, dim], with cu_seqlens). k and v may be three tensors each, for
        the compressed branch, the selected one and the window; heads of k and v divide those of q.
    gates: logits of the gates, float32 (16-bit gates are refused), [batch, seqlen, heads, 3] or packed
        [tokens, heads, 3], in the order of the branches; None: each branch counts 1/3.
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

    Returns o, as q. Raises attnc.ProblemError, TensorError, UnsupportedError, CompileError.
    """
    ks, vs = (tuple(x) if isinstance(x, (tuple, list)) else (x,) for x in (k, v))
    if deterministic is None:
        deterministic = torch.are_deterministic_algorithms_enabled()
    offsets = None if cu_seqlens is None else int32("cu_seqlens", cu_seqlens)
    options, operands = call_of(
        q, ks, vs, None if gates is None else gates.contiguous(), _DTYPES, layout, offsets,
        dict(length=length, stride=stride, block=block, count=count, first=first, local=local, window=window, rows=rows,
             scale=scale, expected_seqlen=expected_seqlen))
    plan, tensors = _plan_of(options, bool(deterministic)), list(operands.values())
    if torch.is_grad_enabled() and any([t.requires_grad for t in tensors]):
        return _Nsa.apply(plan, tuple(operands), *tensors)
    return _ops.run(tensors, plan.text, "nsa")[0]
