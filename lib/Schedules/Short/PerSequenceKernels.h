// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef ATTN_LIB_SCHEDULES_SHORT_PERSEQUENCEKERNELS_H
#define ATTN_LIB_SCHEDULES_SHORT_PERSEQUENCEKERNELS_H

#include "Schedules/Common/Rules.h"

namespace attn {

/// The kv heads that a schedule packs into a tile.
int64_t kvHeadsOf(ProblemOp problem, tile::ScheduleInterface schedule);

/// Tiles of heads that a CTA computes one after the other.
int64_t headLoopOf(tile::ScheduleInterface schedule);

/// The grid of a kernel of `problem` with a CTA or a warp for each sequence.
KernelGrid sequenceGrid(ProblemOp problem, tile::ScheduleInterface schedule);

/// Writes the body of `kernel`, which has that grid: the program of a warp for the query rows of a few heads of a
/// sequence, or of a CTA for a tile of them. With a limit, for sequences within it and padding outside sequences.
void writePerSequenceForward(ProblemOp problem, tile::KernelOp kernel, tile::ScheduleInterface schedule,
                             std::optional<ShortLimit> limit = std::nullopt);

/// Writes the backward kernel: all gradients of all rows and keys of a sequence. With a limit, its dQ rows are the
/// first of `classesOfDq` classes.
void writePerSequenceBackward(BackwardOp backward, ProgramBuilder &program, llvm::StringRef name,
                              llvm::StringRef target, tile::ScheduleInterface schedule, std::optional<ShortLimit> limit,
                              int64_t classesOfDq);

/// The same for sm_90a, with `single_pass_backward` or `stationary_q_backward`, for sequences within the limit.
void writeShortHopperBackward(BackwardOp backward, ProgramBuilder &program, llvm::StringRef name,
                              tile::ScheduleInterface schedule, ShortLimit limit, int64_t classesOfDq);

/// Lowers a forward pass with a CTA or a warp for each sequence, or a backward pass with one kernel of all gradients.
void lowerPerSequence(ProblemOp problem, tile::ScheduleInterface schedule, Lowering &lowering);
void lowerPerSequence(BackwardOp backward, tile::ScheduleInterface schedule, Lowering &lowering);

} // namespace attn

#endif // ATTN_LIB_SCHEDULES_SHORT_PERSEQUENCEKERNELS_H
