# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""attention() of DTensors: shards of the batch and of whole groups of heads are computed where they are."""
import torch
from torch.distributed.tensor import DTensor, Partial, Replicate, Shard

from .._axes import axes_of
from .._calls import AXES
from ..errors import TensorError, UnsupportedError
from . import _ops


def of_shards(q, k, v, arrays, layout, text_of, names, heads, local_call):
    """o and lse, sharded as q is. No collective runs, but for sums of gradients of arrays that shards share.

    arrays: tensors or DTensors in the order of names. text_of(heads): of the problem. local_call(q, k, v, arrays,
    heads): o and lse of local tensors.
    """
    for name, tensor in (("q", q), ("k", k), ("v", v)):
        if not isinstance(tensor, DTensor):
            raise TensorError(f"expected q, k and v to be DTensors, got: {type(tensor).__name__} as {name!r}")
    mesh, placements = q.device_mesh, q.placements
    for name, tensor in (("k", k), ("v", v)):
        if tensor.device_mesh != mesh or tensor.placements != placements:
            raise TensorError(f"expected {name!r} with the mesh and placements of 'q', {_listed(placements)}, got: "
                              f"{_listed(tensor.placements)}; tensor.redistribute() changes them")
    axes = axes_of(text_of, "attention", heads, _ops.signature)
    if layout not in AXES:
        raise UnsupportedError(f"attnc has DTensors in one layout for all tensors, got: {layout!r}")
    sequence, head = AXES[layout]
    batch = None if layout.startswith("thd") else 3 - sequence - head
    letters = {batch: "b", head: "h"}
    shards = 1
    for placement, ranks in zip(placements, mesh.shape):
        if isinstance(placement, Replicate):
            continue
        letter = letters.get(placement.dim) if type(placement) is Shard else None
        if letter is None:
            raise UnsupportedError("attnc computes shards of the batch and of heads, got: 'q' with the placement "
                                   f"{placement} in the layout {layout!r}")
        if not (axes.by_batch if letter == "b" else axes.by_head):
            of, number = ("the batch", "sequence") if letter == "b" else ("heads", "head")
            raise UnsupportedError(f"attnc does not compute shards of {of} with dropout, or with a mask or score that "
                                   f"reads the number of the {number}")
        shards *= ranks if letter == "h" else 1
    if heads[1] % shards:
        raise TensorError(f"expected heads of 'k' in multiples of {shards} shards, got: {heads[1]}")
    inputs = dict(zip([t["name"] for t in _ops.signature(text_of(heads), "attention").inputs], axes.inputs))
    local = [_local_array(name, array, inputs[name], mesh, placements, letters) for name, array in zip(names, arrays)]
    o, lse = local_call(q.to_local(), k.to_local(), v.to_local(), local, (heads[0] // shards, heads[1] // shards))
    o_shape = (*q.shape[:-1], v.shape[-1])
    lse_shape = (q.shape[head], q.shape[0]) if batch is None else (q.shape[batch], q.shape[head], q.shape[sequence])
    axis_of_lse = {"b": 0, "h": 0 if batch is None else 1}
    of_lse = [Shard(axis_of_lse[letters[p.dim]]) if p.is_shard() else p for p in placements]
    return _wrapped(o, mesh, placements, o_shape), _wrapped(lse, mesh, of_lse, lse_shape)


def _wrapped(tensor, mesh, placements, shape):
    shape = torch.Size(shape)
    return DTensor.from_local(tensor, mesh, placements, run_check=False, shape=shape,
                              stride=torch.empty(shape, device="meta").stride())


def _local_array(name, array, axes, mesh, placements, letters):
    """The part of an array that belongs to the shard of q. Gradients of what shards share are summed."""
    wanted = []
    for placement in placements:
        letter = letters[placement.dim] if placement.is_shard() else None
        own = [i for i, axis in enumerate(axes) if axis == letter or letter == "h" and axis == "g"]
        wanted.append(Shard(own[0]) if own else Replicate())
    if not isinstance(array, DTensor):
        if any(w.is_shard() for w in wanted):
            raise TensorError(f"expected {name!r} to be a DTensor with the placements {_listed(wanted)}, got: a tensor")
        if not array.requires_grad:
            return array
        array = DTensor.from_local(array, mesh, [Replicate()] * len(placements), run_check=False)
    if array.device_mesh != mesh or tuple(array.placements) != tuple(wanted):
        raise TensorError(f"expected {name!r} with the mesh of 'q' and the placements {_listed(wanted)}, got: "
                          f"{_listed(array.placements)}")
    summed = [Partial() if own.is_replicate() and of_q.is_shard() else own for own, of_q in zip(wanted, placements)]
    return array.to_local(grad_placements=summed)


def _listed(placements):
    return f"({', '.join(map(str, placements))})"
