# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Rows of ranks among those of whole sequences, as tensors of PyTorch."""
import typing

import torch

_SLICES = 256  # more spans are moved by indices


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
