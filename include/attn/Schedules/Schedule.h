// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Schedules: which kernels compute a pass. `attn-choose-schedule` writes one on each problem and backward pass, with
// the reason; the lowering and the tools that describe it ask the same objects. RationaleTile.md says how to add one.
//
#ifndef ATTN_SCHEDULES_SCHEDULE_H
#define ATTN_SCHEDULES_SCHEDULE_H

#include "attn-rt/Specialization.h"
#include "attn/Dialect/Attn/IR/ProblemTensors.h"
#include "attn/Schedules/AttnToTile.h"

namespace attn {

class Lowering;

/// One way to compute a pass: what a `#tile` schedule attribute stands for.
class Schedule {
public:
  virtual ~Schedule() = default;
  /// Is this the attribute's schedule?
  virtual bool owns(mlir::Attribute schedule) const = 0;
  /// Of a forward pass: the attribute with the sizes that were measured to be the fastest, if the problem is one of
  /// those that this schedule is for; null otherwise. `why`: set to the rule that decided, half a sentence for a
  /// reader. (Rules of backward passes depend on one another: `chooseSchedule` has them.)
  virtual mlir::Attribute choose(Computation, const TargetInfo &, std::string &) const { return {}; }
  /// What may be given for a part of this schedule as a whole one; others are returned as they are.
  virtual mlir::Attribute complete(Computation, const TargetInfo &, mlir::Attribute schedule) const { return schedule; }
  /// Why these sizes cannot compute the pass on this target: a message that begins with `expected`. Nothing if they
  /// can.
  virtual std::optional<std::string> refusal(Computation computation, const TargetInfo &target,
                                             mlir::Attribute schedule) const = 0;
  /// What to try where a kernel with these sizes does not fit its registers; null at the end.
  virtual mlir::Attribute fallback(Computation, mlir::Attribute) const { return {}; }
  /// Sizes that are worth timing for a problem (`attn-bench --tune`), likely to fit. Some may be refused.
  virtual void addCandidates(Computation, const TargetInfo &, std::vector<mlir::Attribute> &) const {}
  /// The name for a reader: `warp-specialized tiles of packed rows`.
  virtual std::string describe(Computation computation, mlir::Attribute schedule) const = 0;
  /// Writes the kernels and their launches.
  virtual void lower(Computation computation, mlir::Attribute schedule, Lowering &lowering) const = 0;
};

/// Schedules of a pass, in the order in which they are asked; the last one takes every problem.
llvm::ArrayRef<const Schedule *> schedulesOf(Computation computation);
/// The schedule of an attribute; null if it is none of this pass.
const Schedule *scheduleOf(Computation computation, mlir::Attribute attribute);

/// What `attn-choose-schedule` decides.
struct ChosenSchedule {
  mlir::Attribute schedule;
  std::string why;          ///< the measured rule that decided, or `the schedule is given`
  bool hasFallback = false; ///< is there something else to try? (Not where the schedule is given.)
  bool isDoubtful = false;  ///< and may it well be needed?
};

/// The masks of problems are canonical, and a schedule that is given belongs to the pass. `fallback`: which of the
/// alternatives for kernels that do not fit their registers, 0: none; where there are fewer, the last.
ChosenSchedule chooseSchedule(Computation computation, const TargetInfo &target, int64_t fallback = 0);

/// Writes it on the op, with the reason.
void setSchedule(Computation computation, const ChosenSchedule &chosen);

/// What is wrong with the schedule that an op was given; nothing if it has none, or a good one.
std::optional<std::string> faultOfSchedule(Computation computation);
/// The same of the sizes of an op's schedule on a target.
std::optional<std::string> refusalOfSchedule(Computation computation, const TargetInfo &target);

/// The schedule of the kernel that an explanation shows: the forward kernel, or the one of dK; of long sequences where
/// short ones have another.
tile::ScheduleInterface mainKernelOf(mlir::Attribute schedule);
/// `describe` of its schedule.
std::string describeSchedule(Computation computation, mlir::Attribute schedule);

using rt::areFew;
using rt::manyKeys;

/// Is so much done for each pair that copies of the walk's body take seconds to compile, or do not fit their registers?
/// Several modifiers are, one that reads an entry for each pair, and an expression whose test has several compares.
bool isCostly(ProblemOp problem);

} // namespace attn

#endif // ATTN_SCHEDULES_SCHEDULE_H
