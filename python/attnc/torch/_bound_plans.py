# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Plans that are bound to a transport, and their runs on tensors of PyTorch."""
import contextlib
import typing

import torch

from .. import _plans
from .._shared import Recent
from .._tensors import Pack, shape_of
from ..errors import Error, UnsupportedError
from ._ranks import Calls

_KEPT = 64  # bound plans of a device


class _Unused:
    """Bound plans that nobody has any more, and whose runs may not be complete."""

    def __init__(self, device):
        self._device, self._handles, self._is_closed = device, [], False

    def add(self, handle):
        self._handles.append(handle)
        if self._is_closed:  # nothing runs
            self.destroy()

    def destroy(self):
        if self._handles and self._device.type == "cuda" and not self._is_closed:
            torch.cuda.synchronize(self._device)
        while self._handles:
            _plans.destroy_bound(self._handles.pop())

    def close(self):
        self.destroy()
        self._is_closed = True


class Bound:
    """A bound plan. A backward pass to come may have it longer than the ContextParallel.

    number: how many were bound before it, the same on all ranks.
    """

    def __init__(self, handle, names, number, unused):
        self.handle, self.names, self.number, self._unused = handle, names, number, unused

    def __del__(self):
        self._unused.add(self.handle)


class Device:
    """A transport for tensors of one device, and plans that are bound to it."""

    def __init__(self, ranks, device, transport, lock):
        self.device, self._lock, self._calls = device, lock, Calls(ranks)
        self._bound, self._unused, self._failed, self._count = Recent(_KEPT), _Unused(device), [], 0
        with self._current():
            self._transport = self._made(ranks, transport)

    def _made(self, ranks, transport):
        try:
            if self.device.type == "cpu":
                if transport is not None:
                    raise UnsupportedError(f"expected CUDA tensors with the transport {transport!r}, got: the CPU's")
                return _plans.Transport.from_callbacks(ranks.rank, ranks.count, self._calls.structure)
            if transport == "nccl":
                return _plans.Transport.nccl(ranks.rank, ranks.count, _nccl_id(ranks), ranks.timeout)
            ranks.host()
            return _plans.Transport.peer(ranks.rank, ranks.count, self._calls.all_gather, ranks.timeout)
        except Error:
            self._calls.raise_stopped()
            raise

    def _current(self):
        return torch.cuda.device(self.device) if self.device.type == "cuda" else contextlib.nullcontext()

    def bind(self, text, name, sequences, plan):
        """The bound plan `name` of a text for whole sequences. All ranks call it in the same order."""
        key = text, sequences
        found = self._bound.get(key)
        if found is None:
            with self._current():
                self._unused.destroy()
                made = plan()
                number, self._count = self._count, self._count + 1
                try:
                    handle = made.bind(sequences, self._transport)
                except Error:
                    self._calls.raise_stopped()
                    raise
            found = Bound(handle, made.names, number, self._unused)
            self._bound.put(key, found)
        return found

    def run(self, bound, tensors):
        """Runs a plan on the current stream, with tensors by name."""
        pack = Pack(len(bound.names))
        for i, name in enumerate(bound.names):
            pack.put(i, shape_of(tensors[name], name), tensors[name].data_ptr())
        with self._lock, self._current():
            if self._transport is None:
                raise Error("expected an open ContextParallel, got: a closed one")
            size = _plans.workspace_size(bound.handle, pack.array)
            workspace = torch.empty(size + 255, dtype=torch.uint8, device=self.device)
            address = -(-workspace.data_ptr() // 256) * 256
            stream = torch.cuda.current_stream().cuda_stream if self.device.type == "cuda" else None
            self._calls.plan = bound.number
            try:
                _plans.run(bound.handle, pack.array, address, stream)
            except Error:
                self._failed.append((tensors, workspace))  # messages may still be under way
                self._calls.raise_stopped()
                raise

    def check(self):
        with self._lock, self._current():
            if self._transport is not None:
                self._transport.check()

    def close(self):
        with self._current():
            if self.device.type == "cuda":
                torch.cuda.synchronize()
            self._bound.clear()
            self._unused.close()
            transport, self._transport = self._transport, None
            transport.destroy()


def _nccl_id(ranks):
    """An id that rank 0 makes; if it cannot, that is an error on all ranks."""
    made, failure = bytes(_plans.NCCL_ID_BYTES), "none"
    if ranks.rank == 0:
        try:
            made = _plans.nccl_id()
        except Error as error:
            failure = str(error)
    made = ranks.all_gather(made, "to use the ContextParallel")[0]
    if not any(made):
        raise Error(f"expected an id for NCCL from rank 0, got: {failure}")
    return made


class Call(typing.NamedTuple):
    """Plans that a call runs, bound to its sequences; backward is None without gradients."""
    device: Device
    forward: Bound
    backward: Bound
