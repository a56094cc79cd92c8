# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The whole sequences of a call, and which of their rows ranks have."""
import itertools
import operator
import typing

import torch

from .._plans import Run, Shard
from .._text import float_text, identifier, integer
from ..errors import ProblemError, TensorError

SHARDINGS = {"contiguous": "#plan.contiguous", "dual_chunk": "#plan.dual_chunk",
              "dual_chunk padded": "#plan.dual_chunk<padded>", "striped": "#plan.striped",
              "documents": "#plan.documents", "runs": '#plan.runs<"shards">'}
_SLICES = 256  # more spans are moved by indices
OWN = ("of queries", "of keys")  # names of shards that are made here; those of callers are identifiers


def quoted(names):
    return ", ".join(map(repr, names))


def name_of(text):
    """The name of the caller's shards in a sharding's text."""
    return text.partition('"')[2].partition('"')[0]


def sharding_text(sharding):
    """A sharding in the dialect's syntax."""
    name, *parameter = sharding if isinstance(sharding, (tuple, list)) and sharding else (sharding,)
    if isinstance(name, str) and name in SHARDINGS and not parameter:
        return SHARDINGS[name]
    if len(parameter) == 1 and name == "striped":
        return f"#plan.striped<{integer(parameter[0], 'rows of a stripe', 1)}>"
    if len(parameter) == 1 and name == "documents":
        if not isinstance(parameter[0], (int, float)) or not 0 <= parameter[0] <= 100:
            raise ProblemError(f"expected a slack from 0 to 100, got: {parameter[0]!r}")
        return f"#plan.documents<{float_text(parameter[0])}>"
    if len(parameter) == 1 and name == "runs":
        return f'#plan.runs<"{identifier(parameter[0], "a name of shards")}">'
    raise ProblemError(f"expected a sharding of {quoted(SHARDINGS)}, ('striped', rows), ('documents', slack) or "
                       f"('runs', name), got: {sharding!r}")


class Side(typing.NamedTuple):
    """The whole sequences of queries or of keys. slots: rows that each has in the buffer of all; None: as lengths."""
    lengths: tuple
    slots: tuple
    is_dense: bool

    @property
    def rows(self):
        return sum(self.slots or self.lengths)

    @property
    def starts(self):
        return list(itertools.accumulate(self.slots or self.lengths, initial=0))


def side_of(seqlen, batch, cu_seqlens, padded_offsets):
    if cu_seqlens is None:
        if seqlen is None:
            raise TensorError("expected cu_seqlens or seqlen, got: None")
        if padded_offsets is not None:
            raise TensorError("expected cu_seqlens beside padded_offsets, got: None")
        return Side((integer(seqlen, "seqlen", 0),) * integer(batch, "batch", 0), None, True)
    if seqlen is not None:
        raise TensorError("expected cu_seqlens or seqlen, got: both")
    lengths = _differences("cu_seqlens", cu_seqlens)
    slots = None if padded_offsets is None else _differences("padded_offsets", padded_offsets)
    if slots is not None and len(slots) != len(lengths):
        raise TensorError(f"expected {len(lengths) + 1} padded_offsets, as there are cu_seqlens, got: {len(slots) + 1}")
    return Side(lengths, None if slots == lengths else slots, False)


def _differences(what, sums):
    """Lengths, of prefix sums from 0 on, in a sequence or in a tensor, which is copied to the host."""
    if isinstance(sums, torch.Tensor):
        if sums.dim() != 1 or sums.dtype not in (torch.int32, torch.int64):
            raise TensorError(f"expected {what} to be int32 or int64 [sequences + 1], got: {sums.dtype} "
                              f"{list(sums.shape)}")
        sums = sums.tolist()
    try:
        sums = [operator.index(number) for number in sums]
    except TypeError:
        raise TensorError(f"expected integers or a tensor as {what}, got: {type(sums).__name__}") from None
    lengths = tuple(map(operator.sub, sums[1:], sums))
    if not sums or sums[0] != 0 or min(lengths, default=0) < 0 or sums[-1] >= 1 << 31:
        raise TensorError(f"expected {what} to begin with 0, to descend nowhere and to be below 2^31, got: {sums[:8]}")
    return lengths


def positions_of(shard):
    """int64 [rows]: positions of a rank's rows in their sequences, -1 in padding."""
    found = torch.full((shard.rows,), -1)
    for row, _, position, length in shard.runs:
        torch.arange(position, position + length, out=found[row:row + length])
    return found


class Moves(typing.NamedTuple):
    """Rows of one tensor in another: `length` rows from `source` on are those from `target` on, for each of `spans`,
    (target, source, length), ascending by targets. The others of the other's `rows` rows are 0."""
    rows: int
    spans: tuple

    def inverse(self, rows):
        """From the other tensor to the one, which has `rows` rows."""
        return Moves(rows, tuple(sorted([(source, target, length) for target, source, length in self.spans])))

    def apply(self, x):
        """The other tensor, without gradients."""
        ends = [target + length for target, _, length in self.spans]
        is_whole = [target for target, _, _ in self.spans] == [0, *ends[:-1]] and ends[-1:] == [self.rows]
        if len(self.spans) <= _SLICES:
            if is_whole:
                return torch.cat([x[source:source + length] for _, source, length in self.spans])
            made = x.new_zeros(self.rows, *x.shape[1:])
            for target, source, length in self.spans:
                made[target:target + length] = x[source:source + length]
            return made
        targets, sources = (torch.cat([torch.arange(span[i], span[i] + span[2]) for span in self.spans]).to(x.device)
                            for i in (0, 1))
        taken = x.index_select(0, sources)
        return taken if is_whole else x.new_zeros(self.rows, *x.shape[1:]).index_copy_(0, targets, taken)


class Moved(torch.autograd.Function):
    """Moves.apply with gradients."""

    @staticmethod
    def forward(ctx, x, moves):
        ctx.moves, ctx.rows = moves, x.shape[0]
        return moves.apply(x)

    @staticmethod
    def backward(ctx, grad):
        return Moved.apply(grad, ctx.moves.inverse(ctx.rows)), None


def moves_of(shard, starts):
    """From the buffer of all tokens to a rank's rows; starts: of sequences in that buffer."""
    return Moves(shard.rows, tuple([(run.row, starts[run.sequence] + run.position, run.length) for run in shard.runs]))


def contiguous(side, ranks):
    """Equal parts of each sequence."""
    made = []
    for rank in range(ranks):
        runs, row = [], 0
        for sequence, length in enumerate(side.lengths):
            begin, end = rank * length // ranks, (rank + 1) * length // ranks
            if end > begin:
                runs.append(Run(row, sequence, begin, end - begin))
            row += end - begin
        made.append(Shard(row, tuple(runs)))
    return tuple(made)
