# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Context parallelism as other libraries are told of it: signatures and meanings are theirs (shims.py)."""
import contextlib
import typing
import weakref

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import DeviceMesh

from ..errors import TensorError, UnsupportedError
from ._context_parallel import ContextParallel

_blocks = []  # of context_parallel() that are open: of all threads, since autograd runs backward in other threads
_of_groups = weakref.WeakKeyDictionary()


class Block(typing.NamedTuple):
    """A context_parallel(). length: of the whole sequences of buffers; None: there are none, and local rows are all of
    one number."""
    parallel: ContextParallel
    length: int

    def whole(self, rows):
        """The length of whole sequences of which a rank has `rows` rows."""
        if self.length is None:
            return rows * self.parallel.ranks
        own = self.parallel.rows(seqlen=self.length).rows
        if rows != own:
            raise TensorError(f"expected {own} rows, those of this rank of the buffers' {self.length}, got: {rows}")
        return self.length


def current():
    """The Block that calls are in, or None."""
    return _blocks[-1] if _blocks else None


def _check_buffers(buffers, dims, kept):
    if any([not isinstance(buffer, torch.Tensor) for buffer in buffers]):
        raise TensorError("expected tensors as buffers, got: another type")
    if len(buffers) != len(dims):
        raise TensorError(f"expected buffer_seq_dims of {len(buffers)} buffers, got: {len(dims)} dimensions")
    if any([all([own is not buffer for buffer in buffers]) for own in kept]):
        raise TensorError("expected no_restore_buffers among the buffers, got: another tensor")
    for number, (buffer, dim) in enumerate(zip(buffers, dims)):
        if buffer.requires_grad or not buffer.is_contiguous() or buffer.untyped_storage().nbytes() != buffer.nbytes:
            raise TensorError(f"expected buffer {number} to be contiguous, without gradients and alone in its memory, "
                              "since it is resized, got: another tensor (clone() makes such a one)")
        if not -buffer.dim() <= dim < buffer.dim():
            raise TensorError(f"expected buffer_seq_dims[{number}] to be a dimension of {list(buffer.shape)}, got: "
                              f"{dim}")
        if buffer.shape[dim] != buffers[0].shape[dims[0]]:
            raise TensorError(f"expected buffers of one length, got: {buffers[0].shape[dims[0]]} and "
                              f"{buffer.shape[dim]}")
    if len({buffer.data_ptr() for buffer in buffers if buffer.numel()}) < sum(bool(b.numel()) for b in buffers):
        raise TensorError("expected each buffer once, got: one twice")


@contextlib.contextmanager
def context_parallel(mesh, *, buffers=None, buffer_seq_dims=None, no_restore_buffers=None):
    """torch.distributed.tensor.experimental.context_parallel: in it, attnc.torch.shims.scaled_dot_product_attention
    computes attention of whole sequences from the rows of each rank. (That of torch.nn.functional stays as it is.)
    `buffers` become the rank's rows in place, and are whole again behind it but for `no_restore_buffers`. Ranks have
    two chunks of each sequence. All buffers have one length, which need not divide; without buffers whole sequences
    have the local length times the number of ranks. What a backward pass computes anew (checkpoints) has to be computed
    in it.
    """
    if not isinstance(mesh, DeviceMesh) or mesh.ndim != 1:
        raise UnsupportedError("attnc has context parallelism along one axis of a DeviceMesh, as mesh['cp'], got: "
                               f"{mesh!r:.80}")
    listed = [buffers] if isinstance(buffers, torch.Tensor) else list(buffers or ())
    dims = [buffer_seq_dims] if isinstance(buffer_seq_dims, int) else list(buffer_seq_dims or ())
    kept = [no_restore_buffers] if isinstance(no_restore_buffers, torch.Tensor) else list(no_restore_buffers or ())
    _check_buffers(listed, dims, kept)
    group = mesh.get_group()
    parallel = _of_groups.get(group)
    if parallel is None or parallel.is_closed:
        parallel = _of_groups[group] = ContextParallel(group)
    length = listed[0].shape[dims[0]] if listed else next(
        (block.length for block in reversed(_blocks) if block.parallel is parallel), None)
    with torch.no_grad():
        own = [parallel.shard(buffer.movedim(dim, 0)[None])[0].movedim(0, dim).contiguous()
               for buffer, dim in zip(listed, dims)]
        whole = [None if any([one is buffer for one in kept]) else buffer.clone() for buffer in listed]
        for buffer, rows in zip(listed, own):
            buffer.resize_(rows.shape).copy_(rows)
    block = Block(parallel, length)
    _blocks.append(block)
    try:
        yield
    finally:
        _blocks.remove(block)
        with torch.no_grad():
            for buffer, before in zip(listed, whole):
                if before is not None:
                    buffer.resize_(before.shape).copy_(before)


def set_context_parallel_group(cp_group, cp_global_ranks, cp_stream, cp_comm_type="p2p"):
    """Returns what TransformerEngine's DotProductAttention.set_context_parallel_group sets: a ContextParallel, for
    attention(context_parallel=...). Rows are its two chunks of padded slots.

    cp_group: a process group; None: no context parallelism, and None is returned; with "a2a+p2p" two, of the ranks that
        exchange heads and of those that exchange keys, and the ranks of both are neighbours in the default group.
    cp_global_ranks: its ranks, or None. cp_stream: not used: a transport makes its streams.
    cp_comm_type: "p2p", "all_gather", "a2a", "a2a+p2p".
    """
    strategies = {"p2p": dict(strategy="ring"), "all_gather": dict(strategy="gather"), "a2a": dict(strategy="ulysses"),
                  "a2a+p2p": dict(strategy="ring")}
    if cp_group is None:
        return None
    if not isinstance(cp_comm_type, str) or cp_comm_type not in strategies:
        raise UnsupportedError(f"attnc does not have cp_comm_type = {cp_comm_type!r}: expected one of "
                               f"{', '.join(map(repr, strategies))}")
    options, group = strategies[cp_comm_type], cp_group
    groups = list(cp_group) if isinstance(cp_group, (list, tuple)) else [cp_group]
    count = 2 if cp_comm_type == "a2a+p2p" else 1
    if len(groups) != count or any([not isinstance(own, dist.ProcessGroup) for own in groups]):
        raise TensorError(f"expected {'two process groups' if count == 2 else 'a process group'} as cp_group with "
                          f"{cp_comm_type!r}, got: {cp_group!r:.80}")
    if cp_comm_type == "a2a+p2p":
        of_heads, of_keys = groups
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
