# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Calls of other libraries, computed by attnc: signatures and meanings are theirs.

Each argument is mapped or refused with the reason (attnc.UnsupportedError); nothing is ignored but tile sizes, and
nothing is replaced in the other library. `from attnc.torch.shims import flash_attn_func`.
"""
import warnings

import torch
from torch.nn.attention.bias import CausalBias, CausalVariant

from .. import masks, scores
from ..errors import TensorError, UnsupportedError
from ._attention import attention
from ._of_others import context_parallel, current, set_context_parallel_group  # noqa: F401


def _check_alone(name):
    """Calls that would compute attention of local rows alone."""
    if current() is not None:
        raise UnsupportedError(f"attnc has {name} outside of context_parallel() only: take "
                               "attnc.torch.attention(context_parallel=...), or scaled_dot_product_attention")


def _refuse(name, value, why):
    raise UnsupportedError(f"attnc does not have {name} = {value!r}: {why}")


def _check_heads(query, key, enable_gqa):
    """Of [batch, heads, seqlen, dim]."""
    heads, kv_heads = query.shape[1], key.shape[1]
    if not enable_gqa and heads != kv_heads:
        raise TensorError(f"expected as many heads of query and key without enable_gqa, got: {heads} and {kv_heads}")


def _window(causal, window_size):
    """flash-attn's masks, aligned to the last query and key; -1 or None does not limit."""
    left, right = (None if side is None or side < 0 else side for side in window_size)
    if causal:
        right = 0
    if left is None and right is None:
        return masks.full()
    if left is None and right == 0:
        return masks.causal(align="end")
    return masks.band(left, right, align="end")


def _modifiers(softcap, alibi_slopes, heads):
    listed, arrays = [], {}
    if softcap:
        listed.append(scores.softcap(softcap))
    if alibi_slopes is not None:
        if alibi_slopes.dim() != 1 or alibi_slopes.shape[0] != heads:
            _refuse("alibi_slopes of shape", tuple(alibi_slopes.shape),
                    f"slopes are one for each query head, [{heads}]")
        listed.append(scores.alibi("alibi_slopes", align="end"))
        arrays["alibi_slopes"] = alibi_slopes.float()
    return listed, arrays


def flash_attn_func(q, k, v, dropout_p=0.0, softmax_scale=None, causal=False, window_size=(-1, -1), softcap=0.0,
                    alibi_slopes=None, deterministic=False, return_attn_probs=False):
    """flash-attn's call on [batch, seqlen, heads, dim]; causal and windows are aligned to the last query and key."""
    _check_alone("flash_attn_func")
    if return_attn_probs:
        _refuse("return_attn_probs", True, "probabilities are never in memory; attnc.torch.attention returns lse")
    score, arrays = _modifiers(softcap, alibi_slopes, q.shape[2])
    return attention(q, k, v, mask=_window(causal, window_size), scale=softmax_scale, score=score, arrays=arrays,
                     dropout=dropout_p, deterministic=deterministic or None)


def flash_attn_varlen_func(q, k, v, cu_seqlens_q, cu_seqlens_k, max_seqlen_q=None, max_seqlen_k=None, dropout_p=0.0,
                           softmax_scale=None, causal=False, window_size=(-1, -1), softcap=0.0, alibi_slopes=None,
                           deterministic=False, return_attn_probs=False, block_table=None):
    """flash-attn's call on packed [tokens, heads, dim]. Maximum lengths are not needed, and not read."""
    _check_alone("flash_attn_varlen_func")
    if return_attn_probs:
        _refuse("return_attn_probs", True, "probabilities are never in memory; attnc.torch.attention returns lse")
    if block_table is not None:
        _refuse("block_table", "a tensor", "keys and values in pages are not supported")
    score, arrays = _modifiers(softcap, alibi_slopes, q.shape[1])
    return attention(q, k, v, mask=_window(causal, window_size), layout="thd", scale=softmax_scale, score=score,
                     arrays=arrays, cu_seqlens_q=cu_seqlens_q, cu_seqlens_kv=cu_seqlens_k, dropout=dropout_p,
                     deterministic=deterministic or None)


def varlen_attn(query, key, value, cu_seq_q, cu_seq_k, max_q, max_k, *, return_aux=None, scale=None,
                window_size=(-1, -1)):
    """torch.nn.attention.varlen.varlen_attn; the lse that return_aux asks for is [heads, tokens], as there."""
    _check_alone("varlen_attn")
    o, lse = attention(query, key, value, mask=_window(False, window_size), layout="thd", scale=scale,
                       cu_seqlens_q=cu_seq_q, cu_seqlens_kv=cu_seq_k, return_lse=True)
    return (o, lse) if return_aux is not None and return_aux.lse else o


def scaled_dot_product_attention(query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None,
                                 enable_gqa=False):
    """torch.nn.functional's call on [batch, heads, seqlen, dim]. is_causal is aligned to the first query and key. A
    float mask is a bias; a bool mask has to vary along queries or along keys alone; those of torch.nn.attention.bias
    are causal masks. In context_parallel() it takes this rank's rows."""
    if query.dim() != 4:
        _refuse("a query of shape", tuple(query.shape), "it is [batch, heads, seqlen, dim]")
    _check_heads(query, key, enable_gqa)
    if attn_mask is not None and is_causal:
        _refuse("attn_mask", type(attn_mask).__name__, "is_causal and attn_mask exclude each other")
    mask, score, arrays = masks.causal() if is_causal else masks.full(), [], {}
    if current() is not None:
        return _of_ranks(query, key, value, mask, attn_mask, dropout_p, scale)
    if isinstance(attn_mask, CausalBias):
        mask = _causal(attn_mask, query, key)
    elif attn_mask is not None:
        dtype = getattr(attn_mask, "dtype", None)
        if not isinstance(attn_mask, torch.Tensor) or not (dtype == torch.bool or dtype.is_floating_point):
            raise TensorError("expected a torch.Tensor of truth values or of float numbers as attn_mask, got: "
                              f"{dtype or type(attn_mask).__name__}")
        if dtype == torch.bool:
            mask, arrays = _bool_mask(attn_mask, query, key)
        else:
            score, arrays = _bias(attn_mask, query, key)
    return attention(query, key, value, mask=mask, layout="bhsd", scale=scale, score=score, arrays=arrays,
                     dropout=dropout_p)


def _of_ranks(query, key, value, mask, attn_mask, dropout_p, scale):
    """In context_parallel(): [batch, heads, local seqlen, dim]."""
    if attn_mask is not None:
        raise UnsupportedError("attnc has no attn_mask in context_parallel(): it would be of whole sequences; say it "
                               "as a mask (attnc.torch.attention(mask=..., context_parallel=...))")
    if dropout_p:
        _refuse("dropout_p", dropout_p, "ranks need one seed (attnc.torch.attention(seed=..., context_parallel=...))")
    block = current()
    rows = [t.transpose(1, 2) for t in (query, key, value)]
    whole = tuple([block.whole(t.shape[1]) for t in rows[:2]])
    return attention(*rows, mask=mask, scale=scale, seqlens=whole, context_parallel=block.parallel).transpose(1, 2)


def _causal(bias, query, key):
    """The mask that a CausalBias stands for."""
    made, own = (bias.seq_len_q, bias.seq_len_kv), (query.shape[2], key.shape[2])
    if made != own:
        raise TensorError(f"expected a causal bias of {own[0]} queries and {own[1]} keys as attn_mask, got: {made[0]} "
                          f"and {made[1]}")
    return masks.causal("start" if bias.variant == CausalVariant.UPPER_LEFT else "end")


def _sizes(attn_mask, query, key):
    """Its four extents, and [batch, heads, queries, keys], which they broadcast to."""
    whole = (query.shape[0], query.shape[1], query.shape[2], key.shape[2])
    own = (1,) * (4 - attn_mask.dim()) + tuple(attn_mask.shape)
    if len(own) > 4 or any([a not in (1, b) for a, b in zip(own, whole)]):
        raise TensorError(f"expected attn_mask to broadcast to {whole}, got: {tuple(attn_mask.shape)}")
    return own, whole


def _bool_mask(attn_mask, query, key):
    """True is visible. A mask of keys or of rows alone becomes an interval of all rows, or of none."""
    (batch, heads, rows, keys), whole = _sizes(attn_mask, query, key)
    if heads != 1 or (rows != 1 and keys != 1):
        _refuse("a bool attn_mask of shape", tuple(attn_mask.shape), "it would be a tensor of queries times keys; say "
                "it as a mask (attnc.torch.attention(mask=...)), or as a float bias")
    of_keys = keys != 1 or rows == 1
    flat = attn_mask.reshape(batch, rows * keys).expand(whole[0], whole[3 if of_keys else 2])
    ends = torch.where(flat, 2**30, 0).to(torch.int32)
    return (masks.columns if of_keys else masks.rows)(end="attn_mask"), {"attn_mask": ends}


def _bias(attn_mask, query, key):
    own, whole = _sizes(attn_mask, query, key)
    kept = [axis for axis, extent in enumerate(own) if extent != 1] or [3]
    bias = attn_mask.reshape(own).expand(*(whole[a] if a in kept else 1 for a in range(4)))
    bias = bias.reshape([whole[a] for a in kept]).float()
    return [scores.bias("attn_mask", "".join("bhqk"[a] for a in kept))], {"attn_mask": bias}


class BlockMask:
    """What create_block_mask returns: a mask, and the sizes that it was made for."""

    def __init__(self, mask, sizes):
        self.mask, self.sizes = mask, sizes

    def __repr__(self):
        batch, heads, rows, keys = self.sizes
        return f"BlockMask({self.mask}, B={batch}, H={heads}, Q_LEN={rows}, KV_LEN={keys})"


def create_block_mask(mask_mod, B, H, Q_LEN, KV_LEN, device=None, BLOCK_SIZE=128, _compile=False):
    """FlexAttention's call: the function is traced, and nothing of its size is made. BLOCK_SIZE has no meaning here."""
    from ..trace import trace_mask
    return BlockMask(trace_mask(mask_mod), (B, H, Q_LEN, KV_LEN))


_warned = set()


def flex_attention(query, key, value, score_mod=None, block_mask=None, scale=None, enable_gqa=False, return_lse=False,
                   kernel_options=None, *, return_aux=None):
    """FlexAttention's call on [batch, heads, seqlen, dim]. block_mask is of create_block_mask, here or in PyTorch,
    whose mask_mod is traced; kernel_options may have tile sizes, which are ignored with a warning."""
    _check_alone("flex_attention")
    _check_heads(query, key, enable_gqa)
    for option in kernel_options or {}:
        if not option.isupper() and option not in ("num_warps", "num_stages"):
            _refuse(f"kernel_options[{option!r}]", kernel_options[option], "there is one backend")
        if option not in _warned:
            _warned.add(option)
            warnings.warn(f"attnc ignores kernel_options[{option!r}]: it chooses tiles itself", stacklevel=2)
    mask = masks.full()
    if block_mask is not None:
        if not isinstance(block_mask, BlockMask):
            batch, heads = block_mask.shape[:2]
            block_mask = create_block_mask(block_mask.mask_mod, batch, heads, *block_mask.seq_lengths)
        sizes = (query.shape[0], query.shape[1], query.shape[2], key.shape[2])
        for name, made, own in zip(("B", "H", "Q_LEN", "KV_LEN"), block_mask.sizes, sizes):
            if made != own and not (name in "BH" and made in (None, 1)):
                raise TensorError(f"expected a block_mask of {name} = {own}, got: {made}")
        mask = block_mask.mask
    score = []
    if score_mod is not None:
        from ..trace import trace_score
        score = [score_mod if isinstance(score_mod, scores.Score) else trace_score(score_mod)]
    o, lse = attention(query, key, value, mask=mask, layout="bhsd", scale=scale, score=score, return_lse=True)
    if return_aux is not None:
        from torch.nn.attention.flex_attention import AuxOutput
        if getattr(return_aux, "max_scores", False):
            _refuse("return_aux.max_scores", True, "kernels do not keep the largest scores")
        return o, AuxOutput(lse=lse if return_aux.lse else None, max_scores=None)
    return (o, lse) if return_lse else o
