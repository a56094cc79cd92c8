// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef ATTN_LIB_SCHEDULES_BACKWARDKERNEL_H
#define ATTN_LIB_SCHEDULES_BACKWARDKERNEL_H

#include "Schedules/Common/SizeClasses.h"

namespace attn {

/// Writes the kernels of a backward pass, before the op: what rows need to know
/// (`<name>_preprocess`), dK and dV with key tiles at rest (`<name>`; dV in a kernel of its own,
/// `<name>_dv`, where a thread has no registers for both), dQ with query tiles at rest
/// (`<name>_dq`). With a limit of sequences that are not within it, ahead of them the kernel that
/// lists their slots (`<name>_work_tiles`).
void writeBackward(BackwardOp backward, ProgramBuilder &program, const TargetInfo &target,
                   tile::BackwardKernelsAttr kernels, std::optional<ShortLimit> limit = std::nullopt);

/// Which results a kernel of gradients writes.
struct GradientResults {
  bool dq = false, dk = false, dv = false;
  tile::DqAccumulation order = tile::DqAccumulation::separate; ///< how key tiles add dQ to `dq_accumulator`, if they do
  bool alone = false;                                          ///< rows of dQ of one key tile only are written at once
  bool clears = false;                                         ///< sums, for a kernel behind this one

  /// Is dQ added to `dq_accumulator`,
  bool sums() const { return order != tile::DqAccumulation::separate; }
  /// and does the first CTA of a query tile store?
  bool isOrdered() const { return sums() && order != tile::DqAccumulation::unordered; }
};
/// Gradients of one side: of queries, or else of keys.
void writeGradients(ProblemOp problem, tile::KernelOp kernel, GradientResults results);
/// Columns of a block of 64 rows of dQ: all of them, or as many as a reducer takes, or so many that each warpgroup has
/// a block.
int64_t sumFragmentColumns(ProblemOp problem, tile::ScheduleInterface schedule);
/// Is it added from registers? Wide sums are, for which there is no other room, and narrow ones in turns, where room
/// for the next tile's keys is worth more: of d 64 at s 1024 that is 0.98 of the speed in any order for 0.89. (Of d 128
/// the same for s 1024, and 0.95 of staged ones at 16384.) `together`: with dV.
bool addsFromRegisters(ProblemOp problem, tile::ScheduleInterface schedule, tile::DqAccumulation order, bool together);

/// Of rows, as `PreprocessOp` and `PostprocessOp` define it.
struct RoundedSums {
  int64_t columns;    ///< of the fragments that were added,
  bool held;          ///< from registers, as they held them
  bool clearedByKeys; ///< by blocks of key tiles, of which there may be none
  bool mayBeDone;     ///< rows may have been written (`GradientResults::alone`)
};
/// Kernels that hold probabilities rounded, for both products that follow, have them 2^this times as large in float16:
/// below 2^-14 its numbers have fewer bits, and beside 16384 keys and more a mean probability is as small. At most 2^12
/// they are normal numbers down to 2^-26. (Where scores are modified, slopes that are not small may multiply them.)
int64_t exponentOfProbabilities(ProblemOp problem, llvm::StringRef target);
/// Are rows of dQ that one key tile alone sees stored by its CTA, without an accumulator?
bool storesDqDirectly(ProblemOp problem, tile::BackwardKernelsAttr kernels);
void writePreprocess(ProblemOp problem, tile::KernelOp kernel, int64_t exponent);
void writePostprocess(ProblemOp problem, tile::KernelOp kernel, RoundedSums sums);

} // namespace attn

#endif // ATTN_LIB_SCHEDULES_BACKWARDKERNEL_H
