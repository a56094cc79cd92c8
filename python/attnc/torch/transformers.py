# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""attnc as an attention implementation of Hugging Face transformers: `attn_implementation="attnc"`.

transformers calls two functions of ours. One makes masks, once in each forward pass, from a Python function of
(b, h, q, k) and from the padding; the other computes the attention of a layer.
"""
import re

import torch

from .. import masks, scores
from ..errors import TensorError
from ._attention import attention
from .shims import _bias, _bool_mask, _refuse

_LAYOUT = ("bhsd", "bhsd", "bhsd", "bshd")  # of query, key, value, and of what transformers wants back
# Keyword arguments that say how other implementations build their masks.
_MASK_OPTIONS = {"allow_is_causal_skip", "allow_is_bidirectional_skip", "allow_torch_fix", "dtype", "local_size",
                 "use_vmap"}
# Keyword arguments that layers hand down and that do not change attention: masks have positions in them already.
_LAYER_OPTIONS = {"cache_position", "layer_idx", "max_length_k", "max_length_q", "num_items_in_batch",
                  "output_hidden_states", "output_router_logits", "position_ids", "return_dict", "seq_idx", "use_cache"}
_RELATIVE = {"and", "or", "not", "diff", "full", "causal", "band", "strided"}  # masks that depend on q - k alone


def register_transformers():
    """Makes `attn_implementation="attnc"` known to transformers (5.0 or later). It may be called more than once."""
    from transformers import AttentionInterface, AttentionMaskInterface
    AttentionInterface.register("attnc", attention_forward)
    AttentionMaskInterface.register("attnc", make_mask)


class AttentionMask:
    """What make_mask() makes: a mask, its arrays, and the sizes [batch, 1, queries, keys] that it is for.

    transformers passes it on where other implementations have a tensor of these four dimensions.
    """
    ndim = 4

    def __init__(self, mask, arrays, shape):
        self.mask, self.arrays, self.shape = mask, arrays, shape

    def __repr__(self):
        return f"AttentionMask({self.mask}, shape={tuple(self.shape)})"

    def to(self, device, **options):
        """The same with its arrays on another device, for models on several."""
        arrays = {name: array.to(device, **options) for name, array in self.arrays.items()}
        return AttentionMask(self.mask, arrays, self.shape)


def make_mask(batch_size, q_length, kv_length, q_offset=0, kv_offset=0, mask_function=lambda b, h, q, k: k <= q,
              attention_mask=None, config=None, device="cpu", **options):
    """A mask of transformers. mask_function takes positions from q_offset and kv_offset on; attention_mask is the
    padding, [batch, keys from position 0 on], or a mask that this function made before."""
    if isinstance(attention_mask, AttentionMask):
        return attention_mask
    for name, value in options.items():
        if name not in _MASK_OPTIONS and value is not None:
            _refuse(name, value, "it is not known what it changes in a mask")
    return _made_mask(batch_size, q_length, kv_length, q_offset, kv_offset, mask_function, attention_mask, config,
                      device)


@torch.compiler.disable
def _made_mask(batch, q_length, kv_length, q_offset, kv_offset, function, padding, config, device):
    mask = _traced(function, q_offset, kv_offset, q_length, kv_length, device)
    heads = getattr(config, "num_attention_heads", 1)
    # Evaluated now: caches change their lengths in place before the first layer attends.
    arrays = {name: array.evaluate(batch, heads, heads, q_length, kv_length, device)
              for name, array in mask.arrays.items()}
    mask = masks.Mask(str(mask))
    if padding is not None:
        kept = padding[:, kv_offset:kv_offset + kv_length].to(torch.bool)
        ends = torch.where(kept, 2**30, 0).to(torch.int32)
        arrays["attention_mask"] = torch.nn.functional.pad(ends, (0, kv_length - kept.shape[1]))
        mask = mask & masks.columns(end="attention_mask")
    return AttentionMask(mask, arrays, (batch, 1, q_length, kv_length))


def _traced(function, q_offset, kv_offset, q_length, kv_length, device):
    """The mask of a function. Its text has no offsets in it, so that one kernel is for all steps of a decoding."""
    if not any(isinstance(offset, torch.Tensor) for offset in (q_offset, kv_offset)):
        mask = masks.mask(function)
        if q_offset == kv_offset == 0:
            return mask
        kinds = re.findall(r"#attn\.(\w+)", str(mask))
        if q_offset + q_length == kv_offset + kv_length and _RELATIVE.issuperset(kinds):
            return _aligned_to_end(mask)
    first_q, first_k = (offset if isinstance(offset, torch.Tensor) else torch.full((), offset, device=device)
                        for offset in (q_offset, kv_offset))
    return masks.mask(lambda b, h, q, k: function(b, h, q + first_q, k + first_k))


def _aligned_to_end(mask):
    """A mask that depends on q - k alone, with its diagonals moved from the first query and key to the last ones."""
    def moved(found):
        options = [found[2], "bottom_right"] if found[2] else ["bottom_right"]
        return f"#attn.{found[1]}<{', '.join(options)}>"
    return masks.Mask(re.sub(r"#attn\.(causal|band|strided)\b(?:<([^>]*)>)?", moved, str(mask)))


def attention_forward(module, query, key, value, attention_mask, *, scaling=None, dropout=0.0, is_causal=None,
                      sliding_window=None, softcap=None, s_aux=None, position_bias=None, cu_seq_lens_q=None,
                      cu_seq_lens_k=None, deterministic=None, output_attentions=None, **options):
    """Attention of a layer of transformers on [batch, heads, seqlen, dim]; gives ([batch, seqlen, heads, dim], None).

    attention_mask: of make_mask(); or a tensor of four dimensions: of float numbers, which are added to scores, or of
        truth values, True being visible, that vary along queries or along keys alone; or None, where is_causal and
        sliding_window say what is visible. As in transformers, they say nothing beside a mask.
    s_aux: sinks. cu_seq_lens_q, cu_seq_lens_k: of sequences that are packed in a batch of one.
    """
    if output_attentions:
        _refuse("output_attentions", True, "probabilities are never in memory")
    for name, option in options.items():
        if name not in _LAYER_OPTIONS and option is not None:
            _refuse(name, type(option).__name__ if isinstance(option, torch.Tensor) else option,
                    "it is not known what it changes in attention")
    mask, arrays, bias = _understood(module, query, key, attention_mask, is_causal, sliding_window)
    if position_bias is not None:
        bias = position_bias if bias is None else bias + position_bias
    score = [] if softcap is None else [scores.softcap(_constant(softcap))]
    if bias is not None:
        of_bias, more = _bias(bias, query, key)
        score, arrays = [*score, *of_bias], {**arrays, **more}
    if cu_seq_lens_q is not None or cu_seq_lens_k is not None:
        documents, more = _documents(query, key, cu_seq_lens_q, cu_seq_lens_k)
        mask, arrays = mask & documents, {**arrays, **more}
    o = attention(query, key, value, mask=mask, layout=_LAYOUT, scale=_constant(scaling), score=score, arrays=arrays,
                  dropout=_constant(dropout), sink=None if s_aux is None else s_aux.float(),
                  deterministic=deterministic)
    return o, None


def _constant(number):
    """A float, in torch.compile too, for which attributes of modules are symbols; float() of a symbol is one."""
    return None if number is None else number.__float__()


def _understood(module, query, key, given, is_causal, sliding_window):
    """What attention_mask says: a mask, its arrays, and a bias or None."""
    rows, keys = query.shape[2], key.shape[2]
    if isinstance(given, AttentionMask):
        if given.shape[0] != query.shape[0] or given.shape[2] != rows or given.shape[3] != keys:
            raise TensorError(f"expected a mask for [batch, 1, queries, keys] = {(query.shape[0], 1, rows, keys)}, "
                              f"got: {tuple(given.shape)}")
        return given.mask, given.arrays, None
    if given is None:
        return _unmasked(module, rows, keys, is_causal, sliding_window), {}, None
    if not isinstance(given, torch.Tensor):
        _refuse("an attention_mask of type", type(given).__name__, "it is None, a tensor, or made by make_mask()")
    if given.dim() != 4:
        _refuse("an attention_mask of shape", tuple(given.shape), "layers get [batch, heads, queries, keys]")
    if given.dtype == torch.bool:
        return *_bool_mask(given, query, key), None
    if not given.is_floating_point():
        _refuse("an attention_mask of", given.dtype, "it is of float numbers or of truth values")
    return masks.full(), {}, given


def _unmasked(module, rows, keys, is_causal, sliding_window):
    if not (getattr(module, "is_causal", True) if is_causal is None else is_causal):
        if sliding_window is not None:
            _refuse("sliding_window", sliding_window, "it has no one meaning without a mask and without is_causal")
        return masks.full()
    if rows not in (1, keys):
        _refuse("attention_mask", None, f"it has no one meaning in causal attention of {rows} queries and {keys} keys")
    return masks.causal("end") if sliding_window is None else masks.window(sliding_window, align="end")


def _documents(query, key, cu_q, cu_k):
    """Packed sequences as ids of tokens, in a mask of its own. Tokens behind the last sequence see nothing."""
    cu_q, cu_k = cu_k if cu_q is None else cu_q, cu_q if cu_k is None else cu_k
    if query.shape[0] != 1:
        raise TensorError(f"expected a batch of 1 with cu_seq_lens_q, got: {query.shape[0]}")
    arrays = {}
    for name, cu, tensor in (("cu_seq_lens_q", cu_q, query), ("cu_seq_lens_k", cu_k, key)):
        tokens = torch.arange(tensor.shape[2], dtype=cu.dtype, device=cu.device)
        ids = torch.searchsorted(cu[1:].contiguous(), tokens, right=True) + 1
        arrays[name] = torch.where(tokens < cu[-1], ids, 0).to(torch.int32)[None]
    return masks.document("cu_seq_lens_q", "cu_seq_lens_k"), arrays
