# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Context parallelism as other libraries are told of it: signatures and meanings are theirs (shims.py)."""
import contextlib
import contextvars
import weakref

import torch
import torch.distributed as dist

from ..errors import TensorError, UnsupportedError
from ._context_parallel import ContextParallel

_current = contextvars.ContextVar("attnc_context_parallel", default=None)
_of_groups = weakref.WeakKeyDictionary()


def current():
    """The ContextParallel of the context_parallel() that a call is in, and the whole lengths of local ones; or None."""
    return _current.get()


@contextlib.contextmanager
def context_parallel(mesh, *, buffers=None, buffer_seq_dims=None, no_restore_buffers=None):
    """torch.distributed.tensor.experimental.context_parallel: in it, attnc.torch.shims.scaled_dot_product_attention
    computes attention of whole sequences from the rows of each rank. `buffers` become the rank's rows in place, and are
    whole again behind it but for `no_restore_buffers`. Ranks have two chunks of each sequence. Lengths need not divide.
    """
    if mesh.ndim != 1:
        raise UnsupportedError(f"attnc has context parallelism along one axis, got: a mesh with {mesh.ndim}; take the "
                               "axis, as mesh['cp']")
    buffers, dims = list(buffers or ()), list(buffer_seq_dims or ())
    if len(buffers) != len(dims):
        raise TensorError(f"expected a dimension of each of {len(buffers)} buffers as buffer_seq_dims, got: "
                          f"{len(dims)}")
    kept = list(no_restore_buffers or ())
    if any([all([own is not buffer for buffer in buffers]) for own in kept]):
        raise TensorError("expected no_restore_buffers among the buffers, got: another tensor")
    group = mesh.get_group()
    parallel = _of_groups.get(group)
    if parallel is None:
        parallel = _of_groups[group] = ContextParallel(group)
    lengths, whole = {}, []
    with torch.no_grad():
        for buffer, dim in zip(buffers, dims):
            whole.append(None if any([own is buffer for own in kept]) else buffer.clone())
            own = parallel.shard(buffer.movedim(dim, 0)[None])[0].movedim(0, dim).contiguous()
            length = lengths.setdefault(own.shape[dim], buffer.shape[dim])
            if length != buffer.shape[dim]:
                raise TensorError(f"expected buffers of one length, got: {length} and {buffer.shape[dim]}")
            buffer.resize_(own.shape).copy_(own)
    token = _current.set((parallel, lengths))
    try:
        yield
    finally:
        _current.reset(token)
        with torch.no_grad():
            for buffer, before in zip(buffers, whole):
                if before is not None:
                    buffer.resize_(before.shape).copy_(before)


def set_context_parallel_group(cp_group, cp_global_ranks, cp_stream, cp_comm_type="p2p"):
    """TransformerEngine's DotProductAttention.set_context_parallel_group, as the ContextParallel for
    attention(context_parallel=...). Rows are its two chunks of padded slots.

    cp_group: a process group; with "a2a+p2p" two, of the ranks that exchange heads and of those that exchange keys,
        and the ranks of both are neighbours in the default group. cp_global_ranks: its ranks, or None. cp_stream: not
        used: transports have streams of their own. cp_comm_type: "p2p", "all_gather", "a2a", "a2a+p2p".
    """
    strategies = {"p2p": dict(strategy="ring"), "all_gather": dict(strategy="gather"), "a2a": dict(strategy="ulysses"),
                  "a2a+p2p": dict(strategy="ring")}
    if cp_comm_type not in strategies:
        raise UnsupportedError(f"attnc does not have cp_comm_type = {cp_comm_type!r}: expected one of "
                               f"{', '.join(map(repr, strategies))}")
    options, group = strategies[cp_comm_type], cp_group
    if cp_comm_type == "a2a+p2p":
        of_heads, of_keys = cp_group
        options["head_group"] = dist.get_world_size(of_heads)
        group = None
        if options["head_group"] * dist.get_world_size(of_keys) != dist.get_world_size():
            raise UnsupportedError("attnc does not have cp_comm_type = 'a2a+p2p' of some ranks of the default group: "
                                   "make ContextParallel(group, strategy='ring', head_group=n)")
        first = dist.get_rank() // options["head_group"] * options["head_group"]
        if dist.get_process_group_ranks(of_heads) != list(range(first, first + options["head_group"])):
            raise UnsupportedError("attnc does not have cp_comm_type = 'a2a+p2p' of ranks that are no neighbours, got: "
                                   f"{dist.get_process_group_ranks(of_heads)}")
    own = dist.get_process_group_ranks(group)
    if cp_global_ranks is not None and list(cp_global_ranks) != own:
        raise TensorError(f"expected the ranks of the group, {own}, as cp_global_ranks, got: {list(cp_global_ranks)}")
    return ContextParallel(group, sharding="dual_chunk padded", **options)
