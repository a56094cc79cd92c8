// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Choices among schedules that more than one schedule needs. Common/Rules.h has the rules that depend on no schedule.
//
#ifndef ATTN_LIB_SCHEDULES_CHOICES_H
#define ATTN_LIB_SCHEDULES_CHOICES_H

#include "Schedules/Common/Rules.h"

namespace attn {

//===----------------------------------------------------------------------===//
// Forward passes
//===----------------------------------------------------------------------===//

/// A schedule and its fallbacks, in the order of trials; empty for a null schedule.
std::vector<ChosenSchedule> withFallbacks(Computation computation, const TargetInfo &target, mlir::Attribute schedule,
                                          const std::string &why);
/// The first schedule on tiles of a grid that accepts the problem.
mlir::Attribute chooseTiles(ProblemOp problem, const TargetInfo &target);
/// Do short sequences fill tiles of a grid, so that these are faster than a CTA or a warp for each sequence?
bool fillTilesOfGrid(ProblemOp problem, const TargetInfo &target, std::string &why);
/// Sizes for one schedule each, accepting every problem that the schedule can compute.
tile::SimtRowsAttr simtRowsFor(ProblemOp problem, const TargetInfo &target);
tile::CtaPerSequenceAttr ctaPerSequenceFor(ProblemOp problem, const TargetInfo &target);
/// The faster schedule with a CTA or a warp for each sequence, with the reason.
mlir::Attribute chooseForShort(ProblemOp problem, const TargetInfo &target, std::string &why);
/// The schedule for all sequences where they are short and none may be longer; null otherwise, with the reason.
mlir::Attribute chooseShort(ProblemOp problem, const TargetInfo &target, std::string &why);

//===----------------------------------------------------------------------===//
// Backward passes
//===----------------------------------------------------------------------===//

/// Sizes that accept every problem that the schedule can compute. `ctaPerSequenceFor` returns null if the tile exceeds
/// shared memory.
tile::SimtRowsAttr simtRowsFor(BackwardOp backward, const TargetInfo &target);
tile::CtaPerSequenceAttr ctaPerSequenceFor(BackwardOp backward, const TargetInfo &target);
/// `single_pass_backward` or `stationary_q_backward`, for sequences of up to 256 rows and keys; null where other
/// kernels are faster, or these are not known to fit their registers.
tile::ScheduleInterface chooseShortOnHopper(BackwardOp backward, const TargetInfo &target);
/// The backward schedule with a CTA or a warp for each sequence; null if there is none, with the reason.
tile::ScheduleInterface chooseForShort(BackwardOp backward, const TargetInfo &target, std::string &why);
/// May a batch have sequences that are too long for this schedule, so that others compute those?
bool mayBeLonger(BackwardOp backward, tile::ScheduleInterface schedule);
/// The schedule for all sequences where they are short and none may be longer; null otherwise, with the reason.
mlir::Attribute chooseShort(BackwardOp backward, const TargetInfo &target, std::string &why);

/// The kernels of a backward pass on tiles.
struct BackwardChoice {
  tile::BackwardKernelsAttr kernels;
  std::string whySeparate;  ///< the reason for a dQ kernel of its own; empty without one
  bool hasFallback = false; ///< is there a further alternative, with fewer registers?
  bool mayNotFit = false;   ///< are registers likely not to suffice for `kernels`?
};
/// `index`: which of the alternatives; beyond the end the last.
BackwardChoice chooseBackwardKernels(BackwardOp backward, const TargetInfo &target, int64_t index);
/// The same with a given schedule of dK and dV.
BackwardChoice backwardKernelsWith(BackwardOp backward, const TargetInfo &target, tile::ScheduleInterface dkdv);

/// Common `refusal` of backward schedules with a CTA or a warp for each sequence.
std::optional<std::string> refusalOfSequences(BackwardOp backward, mlir::Attribute schedule);
/// Common `refusal` of schedules with one mask for all rows that share keys.
std::optional<std::string> refusalOfHeads(BackwardOp backward, mlir::Attribute schedule);

} // namespace attn

#endif // ATTN_LIB_SCHEDULES_CHOICES_H
