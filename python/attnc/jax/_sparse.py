# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sparse attention by programs on arrays of JAX, with gradients."""
import functools
import typing

import jax
import jax.numpy as jnp
import numpy as np

from ..errors import UnsupportedError
from .. import sparse
from . import _ops
from ._arrays import int32

_DTYPES = {np.dtype(jnp.bfloat16): "bf16", np.dtype(np.float16): "f16", np.dtype(np.float32): "f32"}


class _Plan(typing.NamedTuple):
    """What a call compiles to, by everything but sizes."""
    kind: str  # the class of `attnc.sparse`
    options: tuple
    deterministic: bool
    names: tuple
    recompute: bool = False


@functools.lru_cache(maxsize=1024)
def _programs(kind, options, deterministic):
    program = getattr(sparse, kind)(**dict(options))
    training = program.replace(saves=True)
    return program, training, training.gradient(deterministic=deterministic)


@functools.partial(jax.custom_jvp, nondiff_argnums=(0, 1))
def _undifferentiated(text, name, *tensors):
    return _ops.run(text, name, tensors)


@_undifferentiated.defjvp
def _second(text, name, primals, tangents):
    raise UnsupportedError("attnc has no second derivatives: gradients of attention cannot be differentiated")


@functools.partial(jax.custom_vjp, nondiff_argnums=(0,))
def _attention(plan, *tensors):
    program, _, _ = _programs(*plan[:3])
    return _ops.run(program.text, program.name, tensors)[0]


def _with_saves(training, tensors):
    return dict(zip([t["name"] for t in _ops.signature(training.text, training.name).results],
                    _undifferentiated(training.text, training.name, *tensors)))


def _fwd(plan, *tensors):
    program, training, _ = _programs(*plan[:3])
    if plan.recompute:
        return _undifferentiated(program.text, program.name, *tensors)[0], (tensors, {})
    results = _with_saves(training, tensors)
    return results["o"], (tensors, results)


def _bwd(plan, kept, do):
    tensors, results = kept
    _, training, backward = _programs(*plan[:3])
    if plan.recompute:
        tensors, do = jax.lax.optimization_barrier((tensors, do))  # not before do is there
        results = _with_saves(training, tensors)
    spec = _ops.signature(backward.text, backward.name)
    given = {**dict(zip(plan.names, tensors)), **results, "do": do}
    found = _undifferentiated(backward.text, backward.name, *(given[t["name"]] for t in spec.inputs))
    grads = dict(zip([t["name"] for t in spec.results], found))
    return tuple(grads.get("d" + name) for name in plan.names)


_attention.defvjp(_fwd, _bwd)
_jitted = jax.jit(_attention, static_argnums=0)


def _attend(kind, options, operands, deterministic, recompute=False):
    return _jitted(_Plan(kind, options, bool(deterministic), tuple(operands), bool(recompute)), *operands.values())


def native_sparse_attention(q, k, v, gates=None, *, layout="bshd", length=32, stride=16, block=64, count=16, first=1,
                            local=2, window=512, rows=64, scale=None, cu_seqlens=None, deterministic=True,
                            expected_seqlen=None, recompute=False):
    """Native sparse attention (Yuan et al. 2025): the gated sum of attention to compressed keys, to selected blocks of
    keys, and to a window, with gradients of q, k, v and gates.

    Arguments are those of `attnc.torch.native_sparse_attention`, but kv_heads_at_once: all heads are one launch. There
    are no rules for vmap and sharding: map over sequences by packing them (layout "thd"), and shard by `jax.shard_map`.

    Returns o, as q. Raises attnc.ProblemError, TensorError, UnsupportedError, CompileError.
    """
    ks, vs = (tuple(x) if isinstance(x, (tuple, list)) else (x,) for x in (k, v))
    offsets = None if cu_seqlens is None else int32("cu_seqlens", cu_seqlens)
    options, operands = sparse.call_of(
        q, ks, vs, gates, _DTYPES, layout, offsets,
        dict(length=length, stride=stride, block=block, count=count, first=first, local=local, window=window, rows=rows,
             scale=scale, expected_seqlen=expected_seqlen))
    return _attend("NativeSparseAttention", options, operands, deterministic, recompute)


def moba_attention(q, k, v, *, layout="bshd", block=512, count=3, rows=64, scale=None, cu_seqlens=None,
                   deterministic=True, expected_seqlen=None):
    """Mixture of block attention (MoBA: Lu et al. 2025): causal attention of each query to its own block of keys and to
    the blocks before it whose mean keys have the largest products with it, with gradients of q, k and v.

    Arguments are those of `attnc.torch.moba_attention`; rules for vmap and sharding are missing as in
    `native_sparse_attention`.

    Returns o: as q, with the head dim of v. Raises attnc.ProblemError, TensorError, UnsupportedError, CompileError.
    """
    options, operands = sparse.selected_call_of(
        dict(q=q, k=k, v=v), _DTYPES, layout, None if cu_seqlens is None else int32("cu_seqlens", cu_seqlens),
        dict(block=block, count=count, rows=rows, scale=scale, expected_seqlen=expected_seqlen))
    return _attend("MobaAttention", options, operands, deterministic)


def block_max_attention(q, k, v, index_q, index_k, *, layout="bshd", block=128, count=16, rows=64, scale=None,
                        cu_seqlens=None, deterministic=True, expected_seqlen=None):
    """Causal attention of each query to its own block of keys and to the blocks before it that an index branch ranks
    highest, by the largest product of an index query with the block's index keys (as in MiniMax-M3's sparse attention,
    MSA), with gradients of q, k and v; those of index_q and index_k are 0.

    Arguments are those of `attnc.torch.block_max_attention`; rules for vmap and sharding are missing as in
    `native_sparse_attention`.

    Returns o: as q, with the head dim of v. Raises attnc.ProblemError, TensorError, UnsupportedError, CompileError.
    """
    options, operands = sparse.selected_call_of(
        dict(q=q, k=k, v=v, index_q=index_q, index_k=index_k), _DTYPES, layout,
        None if cu_seqlens is None else int32("cu_seqlens", cu_seqlens),
        dict(block=block, count=count, rows=rows, scale=scale, expected_seqlen=expected_seqlen))
    return _attend("BlockMaxAttention", options, operands, deterministic)
