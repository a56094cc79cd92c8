# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Floating-point operations of attnc::run for torch.utils.flop_counter, counted as those of PyTorch's SDPA: products of
matrices, of all query heads, without regard to the mask."""
import logging

import torch

from . import _ops

_log = logging.getLogger("torch.utils.flop_counter")
_log.addFilter(_quiet := lambda record: False)  # without Triton, it warns that kernels of Triton are not counted
try:
    from torch.utils.flop_counter import register_flop_formula
finally:
    _log.removeFilter(_quiet)


@register_flop_formula(torch.ops.attnc.run, get_raw=True)
def flops(tensors, text, name, **_):
    """2 for each pair of a query and a key of a sequence, and each dimension of q or v, of two products (backward:
    five)."""
    spec = _ops.signature(text, name)
    given = {own["name"]: tensor for own, tensor in zip(spec.inputs, tensors, strict=True)}
    if "q" not in given:  # attn.segments
        return 0
    sizes, _ = spec.sizes([tensor.shape for tensor in tensors])
    of_lse = next(own["extents"] for own in spec.tensors if own["name"] == "lse")
    heads = next(int(extent.text) for extent in of_lse if not extent.size)
    of_qk, of_v = (3, 2) if "do" in given else (1, 1)
    return 2 * heads * _pairs(sizes, given) * (of_qk * given["q"].shape[-1] + of_v * given["v"].shape[-1])


def _pairs(sizes, given):
    """Pairs of a query and a key of the same sequence. Where contents of tensors are not at hand, packed tokens count
    as one sequence, which is more."""
    offsets = [given.get(f"cu_seqlens_{side}") for side in ("q", "kv")]
    if all(own is None or _is_readable(own) for own in offsets):
        lengths = [[sizes[f"seqlen_{side}"]] * sizes["batch"] if own is None else own.diff().tolist()
                   for side, own in zip(("q", "kv"), offsets)]
        return sum(of_q * of_k for of_q, of_k in zip(*lengths, strict=True))
    queries = sizes["total_q"] if offsets[0] is not None else sizes["batch"] * sizes["seqlen_q"]
    return queries * (sizes["total_kv"] if offsets[1] is not None else sizes["seqlen_kv"])


def _is_readable(tensor):
    from torch._subclasses.fake_tensor import FakeTensor
    from torch._subclasses.functional_tensor import FunctionalTensor
    return not isinstance(tensor, (FakeTensor, FunctionalTensor)) and not tensor.is_meta
