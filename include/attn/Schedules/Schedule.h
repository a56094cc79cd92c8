// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Schedules: the kernels that compute a pass. `attn-choose-schedule` sets one on each problem and backward pass, with
// the reason; the lowering and inspection tools use the same objects. RationaleTile.md describes how to add one.
//
#ifndef ATTN_SCHEDULES_SCHEDULE_H
#define ATTN_SCHEDULES_SCHEDULE_H

#include "attn-rt/Specialization.h"
#include "attn/Dialect/Attn/IR/ProblemTensors.h"
#include "attn/Schedules/Passes.h"

namespace attn {

class Lowering;

/// The decision of `attn-choose-schedule`.
struct ChosenSchedule {
  mlir::Attribute schedule;
  std::string why;          ///< the measured rule that decided, or `the schedule is given`
  bool mayNotFit = false;   ///< are registers likely not to suffice, so that the next alternative is needed?
  bool hasFallback = false; ///< is there a further alternative? (Not if the schedule is given.)
};

/// One way to compute a pass, represented by `#tile` schedule attributes.
class Schedule {
public:
  virtual ~Schedule() = default;
  /// Does the attribute belong to this schedule?
  virtual bool owns(mlir::Attribute schedule) const = 0;
  /// The attribute with the sizes measured fastest, if this schedule is meant for the pass; otherwise null. `why` is
  /// set to the deciding rule, as a phrase.
  virtual mlir::Attribute choose(Computation, const TargetInfo &, std::string &) const { return {}; }
  /// Completes a schedule given for a part of this one; others are returned unchanged.
  virtual mlir::Attribute complete(Computation, const TargetInfo &, mlir::Attribute schedule) const { return schedule; }
  /// Why these sizes cannot compute the pass on this target: a message that begins with `expected`; none if they can.
  virtual std::optional<std::string> refusal(Computation computation, const TargetInfo &target,
                                             mlir::Attribute schedule) const = 0;
  /// The next smaller sizes if a kernel with these does not fit its registers; null at the end.
  virtual mlir::Attribute fallback(Computation, mlir::Attribute) const { return {}; }
  /// What to build, in the order of trials until the kernels fit their registers: the choice and then its fallbacks.
  /// Empty if the schedule is not meant for the pass.
  virtual std::vector<ChosenSchedule> alternatives(Computation, const TargetInfo &, std::string &why) const;
  /// Do its kernels compute problems with pieces (`layout(thd pieces)`)?
  virtual bool takesPieces() const { return false; }
  /// Sizes worth timing (`attn-bench --tune`) that are likely to fit. Some may be refused.
  virtual void addCandidates(Computation, const TargetInfo &, std::vector<mlir::Attribute> &) const {}
  /// The name for a reader: `warp-specialized tiles of packed rows`.
  virtual std::string describe(Computation computation, mlir::Attribute schedule) const = 0;
  /// Writes the kernels and their launches.
  virtual void lower(Computation computation, mlir::Attribute schedule, Lowering &lowering) const = 0;
};

/// The schedules of a pass, in the order of their rules; the last accepts every problem.
llvm::ArrayRef<const Schedule *> schedulesOf(Computation computation);
/// The schedule of an attribute; null if it does not belong to this pass.
const Schedule *scheduleOf(Computation computation, mlir::Attribute attribute);

/// Masks have to be canonical, and a given schedule has to belong to the pass. `fallback`: which alternative for
/// kernels that do not fit their registers, 0: none; beyond the end the last.
ChosenSchedule chooseSchedule(Computation computation, const TargetInfo &target, int64_t fallback = 0);

/// Sets the schedule and the reason on the op.
void setSchedule(Computation computation, const ChosenSchedule &chosen);

/// What is wrong with the given schedule of an op; none without one or if it is valid.
std::optional<std::string> faultOfSchedule(Computation computation);
/// The same for the sizes of an op's schedule on a target.
std::optional<std::string> refusalOfSchedule(Computation computation, const TargetInfo &target);

/// The schedule of the main kernel: the forward kernel, or that of dK; of long sequences if short ones have another
/// schedule.
tile::ScheduleInterface mainKernelOf(mlir::Attribute schedule);
/// The residues of the schedule's stride under a mask; none if the schedule is refused for it.
std::optional<ResidueMask> residuesOf(MaskInterface mask, tile::ByResidueAttr schedule);
/// The `describe` text of a schedule.
std::string describeSchedule(Computation computation, mlir::Attribute schedule);

using rt::areFew;
using rt::manyKeys;

/// Is the work for each score so much that several copies of the loop body take seconds to compile or do not fit their
/// registers? So for several modifiers, one that reads an entry for each score, and masks with several compares.
bool isCostly(ProblemOp problem);

} // namespace attn

#endif // ATTN_SCHEDULES_SCHEDULE_H
