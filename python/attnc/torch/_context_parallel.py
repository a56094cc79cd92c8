# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Context parallelism: ranks of a process group share the tokens of sequences (docs/ContextParallel.md)."""
import hashlib
import json
import threading

import torch
import torch.distributed as dist

from .._shared import BACKWARD, FORWARD, Shared, gradient_text, side_of
from ..errors import Error, ProblemError, TensorError
from ._bound_plans import Call, Device
from ._ranks import Ranks
from ._shards import Moved, Moves, moves_of, positions_of


class ContextParallel(Shared):
    """Ranks that share the tokens of sequences. attention(context_parallel=...) takes it, and computes attention of
    the whole sequences from the rows that each rank has.

    group: a process group of torch.distributed; None is the default one.
    sharding: which rows a rank has (docs/generated/Plan.md). Every token is on one rank.
        "dual_chunk": two chunks of each sequence, which balance a causal mask; "dual_chunk padded": chunks of slots, as
        TransformerEngine has them. "contiguous": equal parts, for windows. "striped" or ("striped", rows): stripes in
        turn. "documents" or ("documents", slack): whole sequences where the work of `mask` stays balanced. "runs" or
        ("runs", name): those of `shards`.
    kv_sharding: of keys and values, if theirs is another one.
    strategy: what ranks send each other. "gather": all keys; "cast": keys that the receiver's queries see; "ring": keys
        from rank to rank; "ulysses": heads for rows. "auto": for each problem and lengths the one of these, of hybrids
        too, that takes the least time as an H200 and its links are modelled.
    head_group: so many neighbours exchange heads for rows first; it divides the number of ranks.
    transport: None: gloo for tensors on the CPU, "peer" for CUDA tensors. "peer": GPUs of one host that can access each
        other's memory; "nccl": NCCL, also between hosts.
    timeout: seconds that a rank waits for another one. A time-out is an error that names the rank. Later calls fail,
        too; a group with gloo is then of no more use, and a new ContextParallel needs a new one.
    mask: an attnc.Mask, for "documents": the one with the most work; None is causal. Calls may have any mask.
    shards: for "runs": of each rank a pair (rows, [(row, sequence, position, length), ...]): rows of the rank's
        tensors, and runs of tokens in them, ascending by rows. Rows in no run are padding. For several names: a
        dictionary of such lists. The attribute `shards` may be set between calls.

    All ranks make the same calls in the same order, with equal masks, options, lengths, arrays and seeds; on all of
    them the same tensors and arrays require grad. Backward passes run in the same order, too. Each combination of a
    problem and lengths is compiled and compared among the ranks at its first call; this call and `unshard` wait for the
    other ranks. Results have equal bits each time. `close` frees what ranks share.

    Raises attnc.ProblemError, and attnc.Error for a process that is no rank of the group.
    """

    def __init__(self, group=None, *, sharding="dual_chunk", kv_sharding=None, strategy="cast", head_group=1,
                 transport=None, timeout=60.0, mask=None, shards=None):
        if transport not in (None, "peer", "nccl"):
            raise ProblemError(f"expected None, 'peer' or 'nccl' as transport, got: {transport!r}")
        if not isinstance(timeout, (int, float)) or not 0 < timeout < 1e6:
            raise ProblemError(f"expected a timeout of more than 0 seconds, got: {timeout!r}")
        ranks = Ranks(group, float(timeout))
        super().__init__(ranks.count, sharding, kv_sharding, strategy, head_group, mask, shards)
        self.group, self.rank, self._ranks = group, ranks.rank, ranks
        self._transport, self._lock = transport, threading.RLock()
        self._devices, self._is_closed = {}, False

    def __repr__(self):
        shardings = ", ".join(dict.fromkeys(self._words))
        return f"<attnc.torch.ContextParallel: rank {self.rank} of {self.ranks}, {shardings}, {self._steps}>"

    # Rows of ranks. Lengths are those of one side, the whole sequences' ones.

    def rows(self, *, keys=False, rank=None, seqlen=None, batch=1, cu_seqlens=None, padded_offsets=None):
        """The `Shard` of a rank (None: this one): its number of rows, padding included, and runs of (row, sequence,
        position, length): `length` rows from `row` on hold positions from `position` on of the whole sequence.

        seqlen, batch: of whole dense sequences. cu_seqlens: in place of these, of packed ones, [sequences + 1] integers
        or a tensor, which is copied to the host. padded_offsets: where they begin in a buffer with padding. keys: of
        keys and values.
        """
        side = side_of(seqlen, batch, cu_seqlens, padded_offsets)
        return self._shard(side, keys, self.rank if rank is None else rank)

    def positions(self, *, keys=False, rank=None, seqlen=None, batch=1, cu_seqlens=None, padded_offsets=None,
                  device=None):
        """The positions of a rank's rows in their sequences, -1 in padding: for rotary embeddings and labels. int64
        [rows] of packed sequences, [batch, local seqlen] of dense ones, on `device` (None: the CPU). Lengths are as in
        `rows`."""
        side = side_of(seqlen, batch, cu_seqlens, padded_offsets)
        shard = self._shard(side, keys, self.rank if rank is None else rank)
        found = positions_of(shard)
        batch = len(side.lengths)
        return (found.view(batch, shard.rows // max(batch, 1)) if side.is_dense else found).to(device)

    def shard(self, x, *, keys=False, cu_seqlens=None, padded_offsets=None):
        """This rank's rows of a tensor with all tokens; 0 in padding. Gradients go to the rows that it took.

        x: with cu_seqlens, [rows, ...] of packed sequences, with padded_offsets those of the padded buffer; without
        them [batch, seqlen, ...].
        """
        side = self._side_of(x, cu_seqlens, padded_offsets)
        if side.is_dense and x.shape[0] == 0:
            one = self._shard(side._replace(lengths=(x.shape[1],)), keys, self.rank)
            return x.new_empty(0, one.rows, *x.shape[2:])
        own = Moved.apply(x.flatten(0, 1) if side.is_dense else x, self._moves(side, keys, self.rank))
        return own.unflatten(0, (x.shape[0], -1)) if side.is_dense and x.shape[0] else own

    def unshard(self, x, *, keys=False, seqlen=None, cu_seqlens=None, padded_offsets=None):
        """The tensor with all tokens from the rows of all ranks; 0 in padding. All ranks call it. It has no gradient.

        x: with cu_seqlens, [rows, ...]; without them [batch, local seqlen, ...], for whole sequences of `seqlen` tokens
        (None: the local ones times the number of ranks).
        """
        if cu_seqlens is None:
            seqlen = x.shape[1] * self.ranks if seqlen is None else seqlen
            side = side_of(seqlen, x.shape[0], None, None)
        else:
            side = side_of(None, 1, cu_seqlens, padded_offsets)
        own = x.detach().flatten(0, 1) if side.is_dense else x.detach()
        said = json.dumps([side, keys, list(own.shape[1:]), str(own.dtype)]).encode()
        said = self._ranks.all_gather(hashlib.sha256(said).digest(), "to call unshard")
        if len(set(said)) > 1:
            raise TensorError("expected all ranks to call unshard with equal lengths, dtypes and axes, got: other ones "
                              f"on rank {[one == said[0] for one in said].index(False)} than on rank 0 (`seqlen` says "
                              "how long whole sequences are)")
        counts = [self._shard(side, keys, rank).rows for rank in range(self.ranks)]
        if own.shape[0] != counts[self.rank]:
            raise TensorError(f"expected {counts[self.rank]} rows, those of rank {self.rank} by "
                              f"`{self._words[keys]}`, got: {own.shape[0]}")
        sent = own.contiguous()
        if own.shape[0] != max(counts):
            sent = own.new_zeros(max(counts), *own.shape[1:])
            sent[:own.shape[0]] = own
        gathered = own.new_empty(self.ranks * max(counts), *own.shape[1:])
        group = self._ranks.host() if x.device.type == "cpu" else self.group
        dist.all_gather(list(gathered.split(max(counts))) if max(counts) else [sent] * self.ranks, sent, group=group)
        spans = [(source, rank * max(counts) + target, length) for rank in range(self.ranks)
                 for target, source, length in self._moves(side, keys, rank).spans]
        whole = Moves(side.rows, tuple(sorted(spans))).apply(gathered)
        return whole.view(x.shape[0], seqlen, *x.shape[2:]) if side.is_dense else whole

    @property
    def is_closed(self):
        return self._is_closed

    def check(self):
        """Raises what went wrong in runs that are complete, such as a rank that did not come in time. It does not
        wait for those that are not."""
        for own in self._devices.values():
            own.check()

    def close(self):
        """Waits for what runs, and frees the transport, on all ranks. Later calls fail."""
        with self._lock:
            self._is_closed = True
            devices, self._devices = self._devices, {}
            for own in devices.values():
                own.close()

    def _side_of(self, x, cu_seqlens, padded_offsets):
        if cu_seqlens is not None:
            side = side_of(None, 1, cu_seqlens, padded_offsets)
            if x.dim() < 1 or x.shape[0] != side.rows:
                raise TensorError(f"expected {side.rows} rows of all sequences, got: {tuple(x.shape)}")
            return side
        if x.dim() < 2:
            raise TensorError(f"expected cu_seqlens, or a tensor [batch, seqlen, ...], got: {tuple(x.shape)}")
        return side_of(x.shape[1], x.shape[0], None, padded_offsets)

    def _moves(self, side, keys, rank):
        """From the buffer of all tokens to the rows of a rank."""
        key = "moves", side, keys, rank, self._shards
        found = self._found.get(key)
        if found is None:
            found = moves_of(self._shard(side, keys, rank), side.starts)
            self._found.put(key, found)
        return found

    def _tokens(self, side, device):
        """The numbers of this rank's rows that are no padding; None: all."""
        positions = positions_of(self._shard(side, False, self.rank))
        return None if (positions >= 0).all() else (positions >= 0).nonzero().flatten().to(device)

    def _on(self, device):
        """What there is for tensors of a device. All ranks make it at the same time."""
        if self._is_closed:
            raise Error("expected an open ContextParallel, got: a closed one")
        found = self._devices.get(device)
        if found is None:
            found = self._devices[device] = Device(self._ranks, device, self._transport, self._lock)
        return found

    def _call(self, text, sides, device, needs_gradients, dlse, learned):
        """Bound plans of a problem's text for whole sequences. learned: names of arrays that have gradients."""
        with self._lock:
            own = self._on(device)
            definition, sequences = self._defined(sides)
            target = "cpu" if device.type == "cpu" else None

            def bound(name, module):
                module = f"{module} {definition(name)}"
                return own.bind(module, name, sequences, lambda: self._plan(
                    module, name, target, self._steps_of(module, name, sequences)))
            forward = bound(FORWARD, text)
            if not needs_gradients:
                return Call(own, forward, None)
            return Call(own, forward, bound(BACKWARD, text + gradient_text(dlse, learned)))
