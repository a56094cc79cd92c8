# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Native sparse attention on arrays of JAX, with gradients."""
import functools
import typing

import jax
import jax.numpy as jnp
import numpy as np

from ..errors import UnsupportedError
from ..sparse import NativeSparseAttention, call_of
from . import _ops
from ._arrays import int32

_DTYPES = {np.dtype(jnp.bfloat16): "bf16", np.dtype(np.float16): "f16", np.dtype(np.float32): "f32"}


class _Plan(typing.NamedTuple):
    """What a call compiles to, by everything but sizes."""
    options: tuple
    deterministic: bool
    names: tuple


@functools.lru_cache(maxsize=1024)
def _programs(options, deterministic):
    program = NativeSparseAttention(**dict(options))
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
    program, _, _ = _programs(plan.options, plan.deterministic)
    return _ops.run(program.text, "nsa", tensors)[0]


def _fwd(plan, *tensors):
    _, training, _ = _programs(plan.options, plan.deterministic)
    results = dict(zip([t["name"] for t in _ops.signature(training.text, "nsa").results],
                       _undifferentiated(training.text, "nsa", *tensors)))
    return results["o"], (tensors, results)


def _bwd(plan, kept, do):
    tensors, results = kept
    _, _, backward = _programs(plan.options, plan.deterministic)
    spec = _ops.signature(backward.text, backward.name)
    given = {**dict(zip(plan.names, tensors)), **results, "do": do}
    found = _undifferentiated(backward.text, backward.name, *(given[t["name"]] for t in spec.inputs))
    grads = dict(zip([t["name"] for t in spec.results], found))
    return tuple(grads.get("d" + name) for name in plan.names)


_attention.defvjp(_fwd, _bwd)
_jitted = jax.jit(_attention, static_argnums=0)


def native_sparse_attention(q, k, v, gates=None, *, layout="bshd", length=32, stride=16, block=64, count=16, first=1,
                            local=2, window=512, rows=64, scale=None, cu_seqlens=None, deterministic=True,
                            expected_seqlen=None):
    """Native sparse attention (Yuan et al. 2025): the gated sum of attention to compressed keys, to selected blocks of
    keys, and to a window, with gradients of q, k, v and gates.

    Arguments are those of `attnc.torch.native_sparse_attention`. There are no rules for vmap and sharding: map over
    sequences by packing them (layout "thd"), and shard by `jax.shard_map`.

    Returns o, as q. Raises attnc.ProblemError, TensorError, UnsupportedError, CompileError.
    """
    ks, vs = (tuple(x) if isinstance(x, (tuple, list)) else (x,) for x in (k, v))
    offsets = None if cu_seqlens is None else int32("cu_seqlens", cu_seqlens)
    options, operands = call_of(
        q, ks, vs, gates, _DTYPES, layout, offsets,
        dict(length=length, stride=stride, block=block, count=count, first=first, local=local, window=window, rows=rows,
             scale=scale, expected_seqlen=expected_seqlen))
    return _jitted(_Plan(options, bool(deterministic), tuple(operands)), *operands.values())
