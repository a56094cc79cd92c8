# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Context-parallel plans of libattnc.so through ctypes (include/attn-c/Plan.h)."""
import ctypes
import functools
import typing

from . import _library
from ._library import Tensor, check, encoded
from .errors import Error


class _Run(ctypes.Structure):
    """attnRun."""
    _fields_ = [(name, ctypes.c_int64) for name in ("row", "sequence", "position", "length")]


class _Shard(ctypes.Structure):
    """attnShard."""
    _fields_ = [("name", ctypes.c_char_p), ("rank", ctypes.c_int32), ("rows", ctypes.c_int64),
                ("runs", ctypes.POINTER(_Run)), ("run_count", ctypes.c_int64)]


class _Sequences(ctypes.Structure):
    """attnSequences."""
    _fields_ = [("count", ctypes.c_int64)] + [
        (name, ctypes.POINTER(ctypes.c_int64)) for name in ("lengths_q", "slots_q", "lengths_kv", "slots_kv")] + [
        ("shards", ctypes.POINTER(_Shard)), ("shard_count", ctypes.c_int64)]


class MessagePart(ctypes.Structure):
    """attnMessagePart."""
    _fields_ = [("data", ctypes.c_void_p), ("bytes", ctypes.c_size_t)]


# Functions of attnTransportCallbacks. They return the address of a text, or None.
_parts, _at, _number = ctypes.POINTER(MessagePart), ctypes.c_void_p, ctypes.c_int64
AllGather = ctypes.CFUNCTYPE(_at, _at, _at, _at, ctypes.c_size_t)
Post = ctypes.CFUNCTYPE(_at, _at, _number, ctypes.c_int32, _parts, ctypes.c_int32, ctypes.c_int32, _parts,
                        ctypes.c_int32, _at)
Wait = ctypes.CFUNCTYPE(_at, _at, _number, _at)
Finish = ctypes.CFUNCTYPE(_at, _at, _at)


class Callbacks(ctypes.Structure):
    """attnTransportCallbacks."""
    _fields_ = [("user", ctypes.c_void_p), ("all_gather", AllGather), ("post", Post), ("wait", Wait),
                ("finish", Finish)]


NCCL_ID_BYTES = 128
_handle, _text, _tensors = ctypes.c_void_p, ctypes.c_char_p, ctypes.POINTER(Tensor)
_sequences, _size = ctypes.POINTER(_Sequences), ctypes.POINTER(ctypes.c_size_t)
_SIGNATURES = {
    "attnTransportPeer": (ctypes.c_int, (ctypes.c_int32, ctypes.c_int32, AllGather, ctypes.c_void_p, ctypes.c_double,
                                         ctypes.POINTER(_handle))),
    "attnNcclId": (ctypes.c_int, (ctypes.c_char * NCCL_ID_BYTES,)),
    "attnTransportNccl": (ctypes.c_int, (ctypes.c_int32, ctypes.c_int32, ctypes.c_char * NCCL_ID_BYTES,
                                         ctypes.c_double, ctypes.POINTER(_handle))),
    "attnLocalRanksCreate": (ctypes.c_int, (ctypes.c_int32, ctypes.c_double, ctypes.POINTER(_handle))),
    "attnLocalRanksDestroy": (None, (_handle,)),
    "attnTransportLocal": (ctypes.c_int, (_handle, ctypes.c_int32, ctypes.c_int, ctypes.POINTER(_handle))),
    "attnTransportFromCallbacks": (ctypes.c_int, (ctypes.c_int32, ctypes.c_int32, ctypes.POINTER(Callbacks),
                                                  ctypes.POINTER(_handle))),
    "attnTransportCheck": (ctypes.c_int, (_handle,)),
    "attnTransportDestroy": (None, (_handle,)),
    "attnPlanCreate": (ctypes.c_int, (_text, _text, _text, _text, ctypes.POINTER(_handle))),
    "attnPlanText": (_text, (_handle,)),
    "attnPlanTensorCount": (ctypes.c_int, (_handle,)),
    "attnPlanTensorName": (_text, (_handle, ctypes.c_int)),
    "attnPlanDestroy": (None, (_handle,)),
    "attnPlanShard": (ctypes.c_int, (_handle, _sequences, ctypes.c_int32, ctypes.c_int, ctypes.POINTER(ctypes.c_int64),
                                     ctypes.POINTER(ctypes.POINTER(_Run)), ctypes.POINTER(ctypes.c_int64))),
    "attnPlanChoose": (ctypes.c_int, (_text, _text, ctypes.POINTER(_Sequences), ctypes.POINTER(_text))),
    "attnPlanBind": (ctypes.c_int, (_handle, _sequences, _handle, ctypes.POINTER(_handle))),
    "attnBoundPlanDestroy": (None, (_handle,)),
    "attnPlanWorkspaceSize": (ctypes.c_int, (_handle, _tensors, _size)),
    "attnPlanRun": (ctypes.c_int, (_handle, _tensors, ctypes.c_void_p, ctypes.c_void_p)),
}


@functools.cache
def library():
    loaded = _library.library()
    for name, (result, arguments) in _SIGNATURES.items():
        function = getattr(loaded, name, None)
        if function is None:
            raise Error(f"{_library.path()} has no {name}: it is of another version than this package")
        function.restype, function.argtypes = result, arguments
    return loaded


class Run(typing.NamedTuple):
    """Rows from `row` on that hold positions from `position` on of a sequence."""
    row: int
    sequence: int
    position: int
    length: int


class Shard(typing.NamedTuple):
    """What a rank has: rows, padding included, and the runs in which they hold tokens, ascending by rows."""
    rows: int
    runs: tuple


class Sequences(typing.NamedTuple):
    """The whole sequences of a call, as tuples. slots None: as many as lengths; lengths_kv None: keys are as queries.
    shards: of `#plan.runs`, by name the Shard of each rank."""
    lengths_q: tuple
    slots_q: tuple = None
    lengths_kv: tuple = None
    slots_kv: tuple = None
    shards: tuple = ()

    def structure(self):
        """attnSequences. What it points to lives as long as it does."""
        own = [None if numbers is None else (ctypes.c_int64 * max(len(numbers), 1))(*numbers) for numbers in self[:4]]
        shards = [(name.encode(), rank, shard) for name, ranks in self.shards for rank, shard in enumerate(ranks)]
        made = (_Shard * max(len(shards), 1))()
        kept = [own, made]
        for slot, (name, rank, shard) in zip(made, shards):
            runs = (_Run * max(len(shard.runs), 1))(*[tuple(run) for run in shard.runs])
            kept += [name, runs]
            slot.name, slot.rank, slot.rows, slot.runs, slot.run_count = name, rank, shard.rows, runs, len(shard.runs)
        result = _Sequences(len(self.lengths_q), *own, made if shards else None, len(shards))
        result.kept = kept
        return result


class Transport:
    """How ranks reach each other. A failure stays: all later calls say why."""

    def __init__(self, handle, kept=None):
        self.handle, self._kept = handle, kept

    @classmethod
    def from_callbacks(cls, rank, ranks, callbacks):
        handle = ctypes.c_void_p()
        check(library().attnTransportFromCallbacks(rank, ranks, ctypes.byref(callbacks), ctypes.byref(handle)))
        return cls(handle, callbacks)

    @classmethod
    def peer(cls, rank, ranks, all_gather, timeout):
        handle = ctypes.c_void_p()
        check(library().attnTransportPeer(rank, ranks, all_gather, None, timeout, ctypes.byref(handle)))
        return cls(handle, all_gather)

    @classmethod
    def nccl(cls, rank, ranks, nccl_id, timeout):
        handle, own = ctypes.c_void_p(), (ctypes.c_char * NCCL_ID_BYTES)(*nccl_id)
        check(library().attnTransportNccl(rank, ranks, own, timeout, ctypes.byref(handle)))
        return cls(handle)

    @classmethod
    def local(cls, ranks, timeout):
        """The transports of CPU ranks that are threads of this process."""
        ranks_of, made = ctypes.c_void_p(), []
        check(library().attnLocalRanksCreate(ranks, timeout, ctypes.byref(ranks_of)))
        for rank in range(ranks):
            handle = ctypes.c_void_p()
            check(library().attnTransportLocal(ranks_of, rank, 0, ctypes.byref(handle)))
            made.append(cls(handle))
        library().attnLocalRanksDestroy(ranks_of)
        return made

    def check(self):
        check(library().attnTransportCheck(self.handle))

    def destroy(self):
        library().attnTransportDestroy(self.handle)
        self.handle = None


def nccl_id():
    made = (ctypes.c_char * NCCL_ID_BYTES)()
    check(library().attnNcclId(made))
    return made.raw


def choose(text, name, sequences):
    """Options of plan-make-steps of the least computed time for whole sequences (attnPlanChoose)."""
    own, steps = sequences.structure(), ctypes.c_char_p()
    check(library().attnPlanChoose(text.encode(), encoded(name), ctypes.byref(own), ctypes.byref(steps)))
    return steps.value.decode()


class Plan:
    """The plan `name` of a module's text, with steps by options of plan-make-steps (attnPlanCreate)."""

    def __init__(self, text, name, steps=None, target=None):
        self.handle, self._destroy = ctypes.c_void_p(), library().attnPlanDestroy
        check(library().attnPlanCreate(text.encode(), encoded(name), encoded(steps), encoded(target),
                                       ctypes.byref(self.handle)))
        count = library().attnPlanTensorCount(self.handle)
        self.names = tuple([library().attnPlanTensorName(self.handle, i).decode() for i in range(count)])

    def __del__(self):
        if getattr(self, "handle", None):
            self._destroy(self.handle)

    @property
    def text(self):
        """The module with the plan's steps."""
        return library().attnPlanText(self.handle).decode()

    def shard(self, sequences, rank, keys=False):
        """The Shard of a rank, of queries or of keys."""
        own, rows, count = sequences.structure(), ctypes.c_int64(), ctypes.c_int64()
        runs = ctypes.POINTER(_Run)()
        check(library().attnPlanShard(self.handle, ctypes.byref(own), rank, keys, ctypes.byref(rows),
                                      ctypes.byref(runs), ctypes.byref(count)))
        return Shard(rows.value, tuple([Run(r.row, r.sequence, r.position, r.length) for r in runs[:count.value]]))

    def bind(self, sequences, transport):
        """The address of a bound plan, which the caller destroys. All ranks have to call it."""
        own, bound = sequences.structure(), ctypes.c_void_p()
        check(library().attnPlanBind(self.handle, ctypes.byref(own), transport.handle, ctypes.byref(bound)))
        return bound


def destroy_bound(handle):
    library().attnBoundPlanDestroy(handle)


def workspace_size(bound, tensors):
    """Bytes; `tensors` is an array of attnTensor in the order of the plan's names."""
    size = ctypes.c_size_t()
    check(library().attnPlanWorkspaceSize(bound, tensors, ctypes.byref(size)))
    return size.value


def run(bound, tensors, workspace, stream):
    check(library().attnPlanRun(bound, tensors, workspace, stream))
