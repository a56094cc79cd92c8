# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Context parallelism in JAX: devices along an axis of a mesh share tokens of sequences (docs/ContextParallel.md)."""
import ctypes
import functools
import hashlib
import itertools
import threading

import jax
import jax.numpy as jnp
import numpy as np
from jax.custom_batching import custom_vmap

from .. import _library, _plans
from .._shared import BACKWARD, FORWARD, Shared, gradient_text, side_of
from ..errors import Error, ProblemError, TensorError, UnsupportedError
from . import _ops

TARGET = "attnc_plan_run"


@functools.cache
def _loaded():
    """libattnc_jax.so, with the target of plans registered."""
    loaded = ctypes.CDLL(str(_library.path().with_name("libattnc_jax.so")))  # _ops has loaded it
    for platform, handler in (("cpu", loaded.attncJaxPlanCpu), ("CUDA", loaded.attncJaxPlanCuda)):
        jax.ffi.register_ffi_target(TARGET, jax.ffi.pycapsule(handler), platform=platform)
    numbers = ctypes.POINTER(ctypes.c_int32)
    loaded.attncJaxWorld.restype = ctypes.c_void_p
    loaded.attncJaxWorld.argtypes = [ctypes.c_int32] * 3 + [numbers] * 2 + [ctypes.c_double, ctypes.c_char_p]
    loaded.attncJaxPlan.restype = None
    loaded.attncJaxPlan.argtypes = [ctypes.c_char_p] + [ctypes.c_void_p] * 3 + [
        ctypes.c_int32, ctypes.POINTER(ctypes.c_int64), ctypes.c_char_p]
    return loaded


_kept = []  # plans and sequences that programs of XLA name
_meshes = {}  # how many ContextParallels a mesh of several processes has


def _is_own(device):
    return device.process_index == jax.process_index()


def _ordinal(device):
    """The number by which XLA knows a device of this process."""
    local = getattr(device, "local_hardware_id", None)
    return device.id if local is None else local


class ContextParallel(Shared):
    """Devices along an axis of a mesh that share the tokens of sequences. attention(context_parallel=...) takes it
    inside of jax.shard_map over the mesh, and computes attention of the whole sequences from the rows that each device
    has. Devices are of one kind: CPUs of this process, GPUs of this process that can access each other's memory, or
    GPUs of several processes (jax.distributed), for which NCCL is opened at run time (libnccl.so.2).

    mesh: a jax.sharding.Mesh. axis: the name of its axis whose devices share sequences; each is a rank, by its place
        along the axis. Other axes may split the batch or the heads.
    sharding: which rows a rank has (docs/generated/Plan.md). Every token is on one rank.
        "dual_chunk": two chunks of each sequence (zigzag), which balance a causal mask; "dual_chunk padded": chunks of
        slots, as TransformerEngine has them. "contiguous": equal parts, for windows. "striped" or ("striped", rows):
        stripes in turn. "documents" or ("documents", slack): whole sequences where the work of `mask` stays balanced.
        "runs" or ("runs", name): those of `shards`.
    kv_sharding: of keys and values, if theirs is another one; then shard(x, keys=True) is for k and v.
    strategy: what ranks send each other. "gather": all keys; "cast": keys that the receiver's queries see; "ring": keys
        from rank to rank; "ulysses": heads for rows. "auto": the one of these, of hybrids too, that takes the least
        time as an H200 and its links are modelled.
    head_group: so many neighbours exchange heads for rows first; it divides the number of ranks.
    timeout: seconds that a rank waits for another one. A time-out is an error that names the rank; later calls fail,
        too.
    mask: an attnc.Mask, for "documents": the one with the most work; None is causal.
    shards: for "runs": of each rank a pair (rows, [(row, sequence, position, length), ...]): rows of the rank's
        tensors, and runs of tokens in them, ascending by rows. For several names: a dictionary of such lists.

    Arrays inside of shard_map have as many rows on each device as the rank with most rows has; those behind a rank's
    own rows, and padding, may have any values, and get zeros in results. `shard` makes arrays of this order from arrays
    with all tokens.

    Lengths are known while tracing: integers, or arrays of NumPy. Each combination of a problem and lengths is
    compiled, and compared among the ranks, at its first call. Results have equal bits each time. Processes make their
    ContextParallels in the same order. A key or seed of
    dropout is the same along `axis`, and may be another one along axes that split the batch.

    Plans stay for as long as the process does: make one ContextParallel for a program.

    Raises attnc.ProblemError and UnsupportedError.
    """

    def __init__(self, mesh, axis, *, sharding="dual_chunk", kv_sharding=None, strategy="cast", head_group=1,
                 timeout=60.0, mask=None, shards=None):
        if not isinstance(mesh, jax.sharding.Mesh) or axis not in mesh.axis_names:
            raise ProblemError(f"expected a jax.sharding.Mesh and the name of one of its axes, got: {mesh!r:.100} and "
                               f"{axis!r}")
        if isinstance(timeout, bool) or not isinstance(timeout, (int, float)) or not 0 < timeout < 1e6:
            raise ProblemError(f"expected a timeout of more than 0 seconds, got: {timeout!r}")
        super().__init__(mesh.shape[axis], sharding, kv_sharding, strategy, head_group, mask, shards)
        self.mesh, self.axis, self.platform = mesh, axis, mesh.devices.flat[0].platform
        self._timeout, self._lock, self._made, self._world = float(timeout), threading.Lock(), {}, None
        self._name = None
        self._ids = self._ids_of_processes()

    def __repr__(self):
        shardings = ", ".join(dict.fromkeys(self._words))
        return f"<attnc.jax.ContextParallel: {self.ranks} ranks along {self.axis!r}, {shardings}, {self._steps}>"

    # Rows of ranks. Lengths are those of one side, the whole sequences' ones.

    def rows(self, rank, *, keys=False, seqlen=None, batch=1, cu_seqlens=None, padded_offsets=None):
        """The `Shard` of a rank: its number of rows, padding included, and runs of (row, sequence, position, length):
        `length` rows from `row` on hold positions from `position` on of the whole sequence.

        seqlen, batch: of whole dense sequences. cu_seqlens: in place of these, of packed ones, [sequences + 1] integers
        or an array. padded_offsets: where they begin in a buffer with padding. keys: of keys and values.
        """
        return self._shard(side_of(seqlen, batch, cu_seqlens, padded_offsets), keys, rank)

    def positions(self, *, keys=False, seqlen=None, batch=1, cu_seqlens=None, padded_offsets=None):
        """The positions of all ranks' rows in their sequences, in the order of `shard`, -1 in padding: for rotary
        embeddings and labels. An int32 array of NumPy, [ranks * rows] of packed sequences, [batch, ranks * local
        seqlen] of dense ones."""
        return self._table(side_of(seqlen, batch, cu_seqlens, padded_offsets), keys, lambda side, run: run.position)

    def shard(self, x, *, keys=False, cu_seqlens=None, padded_offsets=None):
        """The rows of all ranks, one rank behind another, of an array with all tokens; 0 in padding. For jax.shard_map
        with `axis` at the axis of rows.

        x: with cu_seqlens, [rows, ...] of packed sequences, with padded_offsets those of the padded buffer; without
        them [batch, seqlen, ...].
        """
        side = self._side_of(x, cu_seqlens, padded_offsets)
        places = self._table(side, keys, lambda side, run: side.starts[run.sequence] + run.position)
        flat = x.reshape(side.rows, *x.shape[2:]) if side.is_dense else x
        if not side.rows:
            return jnp.zeros((*places.shape, *flat.shape[1:]), x.dtype)
        return jnp.take(flat, jnp.asarray(_to_fill(places, side.rows)), axis=0, mode="fill", fill_value=0)

    def unshard(self, x, *, keys=False, seqlen=None, cu_seqlens=None, padded_offsets=None):
        """The array with all tokens, of one in the order of `shard`; 0 in padding.

        x: with cu_seqlens, [ranks * rows, ...]; without them [batch, ranks * local seqlen, ...], for whole sequences of
        `seqlen` tokens (None: as many as x has).
        """
        if cu_seqlens is None:
            side = side_of(x.shape[1] if seqlen is None else seqlen, x.shape[0], None, None)
        else:
            side = side_of(None, 1, cu_seqlens, padded_offsets)
        places = self._table(side, keys, lambda side, run: side.starts[run.sequence] + run.position)
        if tuple(x.shape[:places.ndim]) != places.shape:
            raise TensorError(f"expected {list(places.shape)} rows of all ranks, got: {list(x.shape[:places.ndim])}")
        back = np.full(side.rows, -1, np.int32)
        known = places.reshape(-1) >= 0
        back[places.reshape(-1)[known]] = np.flatnonzero(known)
        flat = x.reshape(places.size, *x.shape[places.ndim:])
        whole = jnp.take(flat, jnp.asarray(_to_fill(back, places.size)), axis=0, mode="fill", fill_value=0)
        if not side.is_dense:
            return whole
        return whole.reshape(x.shape[0], side.lengths[0] if side.lengths else 0, *x.shape[2:])

    def _side_of(self, x, cu_seqlens, padded_offsets):
        if cu_seqlens is not None:
            side = side_of(None, 1, cu_seqlens, padded_offsets)
            if x.ndim < 1 or x.shape[0] != side.rows:
                raise TensorError(f"expected {side.rows} rows of all sequences, got: {tuple(x.shape)}")
            return side
        if x.ndim < 2:
            raise TensorError(f"expected cu_seqlens, or an array [batch, seqlen, ...], got: {tuple(x.shape)}")
        return side_of(x.shape[1], x.shape[0], None, padded_offsets)

    def _counts(self, side, keys):
        """The rows of each rank; of dense tensors for each sequence."""
        batch = max(len(side.lengths), 1) if side.is_dense else 1
        return [self._shard(side, keys, rank).rows // batch for rank in range(self.ranks)]

    def _table(self, side, keys, entry):
        """int32, of each row of all ranks entry(side, run) and what its row in the run adds; -1 in padding."""
        batch, counts = len(side.lengths) if side.is_dense else 1, self._counts(side, keys)
        most = max(counts)
        made = np.full((self.ranks, batch, most), -1, np.int32)
        for rank in range(self.ranks):
            for run in self._shard(side, keys, rank).runs:
                sequence, row = divmod(run.row, counts[rank]) if side.is_dense else (0, run.row)
                made[rank, sequence, row:row + run.length] = entry(side, run) + np.arange(run.length)
        if side.is_dense:
            return made.transpose(1, 0, 2).reshape(batch, self.ranks * most)
        return made.reshape(self.ranks * most)

    # Plans

    def _groups(self):
        """The devices of each group that share sequences, by their ranks; groups without one of this process are
        empty."""
        axis = self.mesh.axis_names.index(self.axis)
        groups = np.moveaxis(self.mesh.devices, axis, -1).reshape(-1, self.ranks)
        return [list(group) if any(map(_is_own, group)) else [] for group in groups]

    def _ids_of_processes(self):
        """What reads the id for NCCL of each group, where these have devices of several processes; else None. The
        process of a group's first device makes its id."""
        foreign = [device for device in self.mesh.devices.flat if not _is_own(device)]
        if not foreign:
            return None
        if self.platform == "cpu":
            raise UnsupportedError("attnc has context parallelism of CPUs of one process in JAX, got: "
                                   f"{foreign[0]} of process {foreign[0].process_index}")
        mesh = hashlib.sha256(repr([(device.id, device.process_index) for device in self.mesh.devices.flat]
                                   + [self.mesh.devices.shape, self.axis]).encode()).hexdigest()
        number = _meshes[mesh] = _meshes.get(mesh, 0) + 1
        self._name = f"{mesh} {number}"  # the same in all processes, whose programs have to be
        groups = self._groups()
        if all(_is_own(device) for group in groups for device in group):
            return None
        from jax._src import distributed  # JAX has no public way to it
        client = distributed.global_state.client
        if client is None:
            raise ProblemError("expected jax.distributed.initialize() before devices of several processes, got: none")
        keys = [f"attnc/{mesh}/{number}/{group}" for group in range(len(groups))]
        for key, group in zip(keys, groups):
            if group and _is_own(group[0]):
                try:
                    made = _plans.nccl_id().hex()
                except Error as error:
                    made = f"error: {error}"
                client.key_value_set(key, made)

        def read(key):
            try:
                made = client.blocking_key_value_get(key, int(self._timeout * 1000))
            except Exception as error:
                raise Error("expected the process of rank 0 to make this ContextParallel within "
                            f"{self._timeout:g} s, got: {error}") from None
            if made.startswith("error: "):
                raise Error(f"expected an id for NCCL from rank 0, got: {made.removeprefix('error: ')}")
            return bytes.fromhex(made)
        unused = bytes(_plans.NCCL_ID_BYTES)
        return lambda: b"".join([read(key) if group else unused for key, group in zip(keys, groups)])

    def _plan_key(self, text, sides, name, dlse, learned=()):
        """Registers a plan for calls of XLA, and returns what names it there. learned: names of arrays that have
        gradients."""
        definition, sequences = self._defined(sides)
        if name == BACKWARD:
            text += gradient_text(dlse, learned)
        module = f"{text} {definition(name)}"
        with self._lock:
            known = module, sequences, name
            if known in self._made:
                return self._made[known]
            if self._world is None:
                groups = self._groups()
                of_devices = {_ordinal(device): (number, rank) for number, group in enumerate(groups)
                              for rank, device in enumerate(group) if _is_own(device)}
                devices = max(of_devices) + 1
                numbers = [(ctypes.c_int32 * devices)(*[of_devices.get(i, (-1, -1))[what] for i in range(devices)])
                           for what in (0, 1)]
                self._world = _loaded().attncJaxWorld(len(groups), self.ranks, devices, *numbers, self._timeout,
                                                      self._ids and self._ids())
            plan = self._plan(module, name, "cpu" if self.platform == "cpu" else None,
                              self._steps_of(module, name, sequences))
            digest = hashlib.sha256(f"{self._name or self._world} {plan.text} {sequences}".encode()).hexdigest()
            rows = [self._shard(side, keys, rank).rows for keys, side in enumerate(sides)
                    for rank in range(self.ranks)]
            structure = sequences.structure()
            _kept.append((plan, structure))
            results = ("dq", "dk", "dv", *[f"d{array}" for array in learned]) if name == BACKWARD else ("o", "lse")
            _loaded().attncJaxPlan(digest.encode(), self._world, plan.handle, ctypes.addressof(structure), self.ranks,
                                   (ctypes.c_int64 * len(rows))(*rows), " ".join(results).encode())
            self._made[known] = digest
            return digest


def _to_fill(places, rows):
    """-1 as an index that jnp.take fills; negative ones count from the end."""
    return np.where(places < 0, rows, places)


_sites = itertools.count()


def call(parallel, key, results, tensors):
    """A plan's results, as the ShapeDtypeStruct of each says."""
    @custom_vmap
    def run(rank, *tensors):
        made = jax.ffi.ffi_call(TARGET, [_ops.typed(shape.shape, shape.dtype, tensors[0]) for shape in results])
        site = next(_sites) if parallel._ids is None else 0
        return tuple(made(*tensors, rank, plan=key, site=np.int64(site)))

    @run.def_vmap
    def rule(size, batched, *tensors):
        raise UnsupportedError("attnc has no vmap of attention with context parallelism: fold the mapped axis into the "
                               "batch, or pack sequences (layout 'thd')")
    return run(jax.lax.axis_index(parallel.axis).astype(jnp.int32).reshape(1), *tensors)
