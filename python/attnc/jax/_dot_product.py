# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""jax.nn.dot_product_attention, computed by attnc. Each argument is mapped, or refused with the reason."""
import jax
import jax.numpy as jnp

from .. import masks, scores
from ..errors import TensorError, UnsupportedError
from ._attention import attention

_VISIBLE = 2**30  # an end behind all rows and keys


def dot_product_attention(query, key, value, bias=None, mask=None, *, scale=None, is_causal=False,
                          query_seq_lengths=None, key_value_seq_lengths=None, local_window_size=None,
                          implementation=None, return_residual=False):
    """JAX's call on [batch, seqlen, heads, dim] or [seqlen, heads, dim], bfloat16 or float16 (on the CPU also float32).
    Causal masks and windows are aligned to the first query and key. A bias that broadcasts to [batch, heads, seqlen_q,
    seqlen_kv] is never expanded; a bool mask has to vary along queries or along keys alone. A row that sees no key is
    0.

    return_residual: also the logarithms of the sums, [batch, seqlen, heads] in the dtype of key, without a gradient.
    """
    if implementation is not None:
        raise UnsupportedError(f"attnc does not have implementation = {implementation!r}: it is one itself")
    rank = query.ndim
    if rank not in (3, 4):
        raise TensorError("expected a query of shape [batch, seqlen, heads, dim] or [seqlen, heads, dim], got: "
                          f"{query.shape}")
    if rank == 3:
        query, key, value = (t[None] for t in (query, key, value))
    sizes = (query.shape[0], query.shape[2], query.shape[1], key.shape[1])
    seen, score, arrays = masks.causal() if is_causal else masks.full(), [], {}
    if local_window_size is not None:
        left, right = local_window_size if isinstance(local_window_size, (tuple, list)) else (local_window_size,) * 2
        seen = seen & masks.band(left, right)
    for name, letter, lengths in (("query_seq_lengths", "q", query_seq_lengths),
                                  ("key_value_seq_lengths", "k", key_value_seq_lengths)):
        if lengths is not None:
            seen = seen & masks.where(f"{letter} < {name}[b]")
            arrays[name] = jnp.asarray(lengths)
            if arrays[name].shape != sizes[:1]:
                raise TensorError(f"expected {name} of shape [{sizes[0]}], got: {arrays[name].shape}")
    if mask is not None:
        of_mask, arrays["mask"] = _bool_mask(jnp.asarray(mask), sizes)
        seen = seen & of_mask
    if bias is not None:
        score, arrays["bias"] = _bias(jnp.asarray(bias), sizes)
    o, lse = attention(query, key, value, mask=seen, scale=scale, score=score, arrays=arrays, return_lse=True)
    if rank == 3:
        o, lse = o[0], lse[0]
    if return_residual:
        return o, jax.lax.stop_gradient(jnp.swapaxes(lse, -1, -2).astype(key.dtype))
    return o


def _shape(name, array, sizes):
    shape = (1,) * (4 - array.ndim) + tuple(array.shape)
    if array.ndim > 4 or any(own not in (1, whole) for own, whole in zip(shape, sizes)):
        raise TensorError(f"expected {name} to broadcast to {sizes}, got: {tuple(array.shape)}")
    return shape


def _bool_mask(mask, sizes):
    """True is visible. A mask of keys or of rows alone becomes an interval of all rows, or of none."""
    if mask.dtype != jnp.bool_:
        raise TensorError(f"expected a bool mask, got: {mask.dtype}; an additive one is a bias")
    batch, heads, rows, keys = _shape("mask", mask, sizes)
    if heads != 1 or (rows != 1 and keys != 1):
        raise UnsupportedError(f"attnc does not have a bool mask of shape {tuple(mask.shape)}: it would be an array of "
                               "queries times keys; say it as a mask (attnc.jax.attention(mask=...)), or as a bias")
    of_keys = keys != 1 or rows == 1
    flat = jnp.broadcast_to(mask.reshape(batch, rows * keys), (sizes[0], sizes[3] if of_keys else sizes[2]))
    return (masks.columns if of_keys else masks.rows)(end="mask"), jnp.where(flat, _VISIBLE, 0).astype(jnp.int32)


def _bias(bias, sizes):
    shape = _shape("bias", bias, sizes)
    kept = [axis for axis, own in enumerate(shape) if own != 1] or [3]
    bias = jnp.broadcast_to(bias.reshape(shape), [sizes[a] if a in kept else 1 for a in range(4)])
    bias = bias.reshape([sizes[a] for a in kept]).astype(jnp.float32)
    return [scores.bias("bias", "".join("bhqk"[a] for a in kept))], bias
