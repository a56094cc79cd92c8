# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The ranks of a process group as the host reaches them, through gloo: small texts of all, and messages between
tensors on the CPU."""
import ctypes
import datetime
import time

import torch
import torch.distributed as dist

from .. import _plans
from ..errors import Error

_GATHERED, _MESSAGES = 1 << 28, 1 << 29  # tags of gloo, out of the way of a caller's
_TAGS = 1 << 20
_EXCHANGES, _PLANS = 1 << 12, 1 << 16  # messages of different plans have different tags


class Ranks:
    """This process's rank in a group, and how many there are.

    timeout: seconds that each wait for another rank takes at most. After a time-out gloo closes the connections of a
    group, on all ranks.
    """

    def __init__(self, group, timeout):
        if not dist.is_initialized():
            raise Error("expected torch.distributed.init_process_group before a ContextParallel, got: no process group")
        self.group, self.timeout = group, timeout
        self.rank, self.count = dist.get_rank(group), dist.get_world_size(group)
        if self.rank < 0:
            raise Error("expected a process group of which this process is a rank, got: another group")
        self._host, self._calls = None, 0

    def host(self):
        """A group with gloo for tensors on the CPU: that of the caller, or one of the same ranks."""
        if self._host is None:
            if "cpu:gloo" in dist.get_backend_config(self.group):
                self._host = self.group or dist.group.WORLD
            else:
                try:
                    self._host = dist.new_group(dist.get_process_group_ranks(self.group), backend="gloo",
                                                timeout=datetime.timedelta(seconds=self.timeout),
                                                use_local_synchronization=True)
                except RuntimeError as error:
                    raise Error(f"expected all {self.count} ranks of the group to use the ContextParallel within "
                                f"{self.timeout:g} s, got: {_first_line(error)}") from None
        return self._host

    def all_gather(self, own, what):
        """Bytes of each rank, as many as these of this rank. what: what each of them does, for errors."""
        if not own:
            return [b""] * self.count
        tag, self._calls = _GATHERED + self._calls % _TAGS, self._calls + 1
        sent = torch.frombuffer(bytearray(own), dtype=torch.uint8)
        parts = [sent if rank == self.rank else torch.empty_like(sent) for rank in range(self.count)]
        others = [rank for rank in range(self.count) if rank != self.rank]
        started = time.monotonic()
        works = [(rank, self.receive(parts[rank], rank, tag, what)) for rank in others]
        works += [(rank, self.send(sent, rank, tag, what)) for rank in others]
        for rank, work in works:
            self.wait(work, rank, what, started)
        return [ctypes.string_at(part.data_ptr(), len(own)) for part in parts]

    def send(self, part, rank, tag, what):
        return self._posted(dist.isend, part, rank, tag, what, group_dst=rank)

    def receive(self, part, rank, tag, what):
        return self._posted(dist.irecv, part, rank, tag, what, group_src=rank)

    def _posted(self, function, part, rank, tag, what, **options):
        try:
            return function(part, group=self.host(), tag=tag, **options)
        except RuntimeError as error:
            raise Error(f"expected rank {rank} {what}, got: {_first_line(error)}") from None

    def wait(self, work, rank, what, started):
        """Waits for a message of a rank until the time-out has passed since `started`."""
        left = started + self.timeout - time.monotonic()
        try:
            work.wait(datetime.timedelta(seconds=max(left, 0.001)))
        except RuntimeError as error:
            if time.monotonic() - started >= self.timeout - 0.01:  # gloo counts milliseconds
                raise Error(f"expected rank {rank} {what} within {self.timeout:g} s, got: nothing") from None
            raise Error(f"expected rank {rank} {what}, got: {_first_line(error)}") from None


def _first_line(error):
    return str(error).strip().partition("\n")[0]


def _bytes_at(address, count):
    """The memory itself, as a tensor."""
    return torch.frombuffer((ctypes.c_char * count).from_address(address), dtype=torch.uint8)


class Calls:
    """Functions that the library calls, which raise nothing: they return a text that lives until the next one."""

    def __init__(self, ranks):
        self._ranks, self._text, self._stopped = ranks, None, None
        self.all_gather = _plans.AllGather(self._guarded(self._all_gather))
        self.structure = _plans.Callbacks(None, self.all_gather, _plans.Post(self._guarded(self._post)),
                                          _plans.Wait(self._guarded(self._wait)),
                                          _plans.Finish(self._guarded(self._finish)))
        self._works = {}  # messages of an exchange, by its number
        self.plan = 0  # the number of the bound plan that runs

    def raise_stopped(self):
        """Raises what is no error but ends the process, as KeyboardInterrupt, if it came in one of these functions."""
        stopped, self._stopped = self._stopped, None
        if stopped is not None:
            raise stopped

    def _guarded(self, function):
        def call(user, *arguments):
            try:
                function(*arguments)
                return None
            except BaseException as error:
                if not isinstance(error, Exception):
                    self._stopped = error
                self._text = ctypes.create_string_buffer((str(error) or type(error).__name__).encode())
                return ctypes.addressof(self._text)
        return call

    def _all_gather(self, own, all_ranks, count):
        found = self._ranks.all_gather(ctypes.string_at(own, count), "to bind the same plan")
        ctypes.memmove(all_ranks, b"".join(found), count * len(found))

    def _post(self, number, to, sent, sent_count, source, received, received_count, stream):
        ranks, step = self._ranks, f"exchange {number} of bound plan {self.plan}"
        tag = _MESSAGES + self.plan % _PLANS * _EXCHANGES + number % _EXCHANGES
        self._works[number] = [
            (ranks.receive(_bytes_at(part.data, part.bytes), source, tag, f"to send {step}"), source, f"to send {step}")
            for part in received[:received_count] if part.bytes]
        self._works[number] += [
            (ranks.send(_bytes_at(part.data, part.bytes), to, tag, f"to receive {step}"), to, f"to receive {step}")
            for part in sent[:sent_count] if part.bytes]

    def _wait(self, number, stream):
        for work, rank, what in self._works.pop(number, ()):
            self._ranks.wait(work, rank, what, time.monotonic())

    def _finish(self, stream):
        self._works.clear()
