# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Functions of flex_attention, evaluated as it means them; and attention with traced ones on the CPU target."""
import importlib
import math

import attnc
import pytest

torch = pytest.importorskip("torch")
importlib.import_module("torch.nn.attention.flex_attention")


def dense(function, sizes):
    """As flex_attention means it."""
    return torch.nn.attention.flex_attention.create_mask(function, *sizes, device="cpu").expand(sizes)


def inputs(sizes, kv_heads=2, dim=16):
    batch, heads, seqlen_q, seqlen_kv = sizes
    generator = torch.Generator().manual_seed(0)
    return [torch.randn(batch, length, count, dim, generator=generator).bfloat16()
            for length, count in ((seqlen_q, heads), (seqlen_kv, kv_heads), (seqlen_kv, kv_heads))]


def attention(q, k, v, mask=None, score=()):
    """o of the CPU's kernel."""
    (batch, seqlen_q, heads, dim), (_, seqlen_kv, kv_heads, _) = q.shape, k.shape
    mask = attnc.full() if mask is None else mask
    problem = attnc.Problem(mask, heads=(heads, kv_heads), dims=dim, score=score)
    kernel = problem.compile("cpu")
    tensors = {"q": q, "k": k, "v": v, "o": torch.empty_like(q), "lse": torch.empty(batch, heads, seqlen_q)}
    for name, array in {**mask.arrays, **(score.arrays if score else {})}.items():
        tensors[name] = array.evaluate(batch, heads, kv_heads, seqlen_q, seqlen_kv, "cpu")
    size = kernel.workspace_size(tensors)
    kernel.launch(tensors, workspace=torch.empty(size, dtype=torch.uint8) if size else None)
    return tensors["o"]


def modified(function, scores):
    """Scores as flex_attention modifies them."""
    from torch._dynamo._trace_wrapped_higher_order_op import TransformGetItemToIndex
    with TransformGetItemToIndex():
        of_all = torch.nn.attention.flex_attention._vmap_for_bhqkv(function, prefix=(0,))
        return of_all(scores, *map(torch.arange, scores.shape))


def reference(q, k, v, mask_function=None, score_function=None):
    """o in float64, by torch's vmap of the functions."""
    (batch, seqlen_q, heads, dim), seqlen_kv = q.shape, k.shape[1]
    q, k, v = (x.double().transpose(1, 2) for x in (q, k, v))
    k, v = (x.repeat_interleave(heads // x.shape[1], 1) for x in (k, v))
    scores = q @ k.transpose(-1, -2) / math.sqrt(dim)
    if score_function:
        scores = modified(score_function, scores.float()).double()
    if mask_function:
        scores = scores.masked_fill(~dense(mask_function, (batch, heads, seqlen_q, seqlen_kv)), -math.inf)
    return (torch.softmax(scores, -1).nan_to_num(0.0) @ v).transpose(1, 2)
