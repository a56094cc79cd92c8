// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Chooses the schedule of a pass, the first of the registry whose rule accepts the problem, and its fallbacks.
//
#include "Schedules/Choices.h"
#include "Schedules/Common/Registry.h"

namespace attn {
#define GEN_PASS_DEF_ATTNCHOOSESCHEDULE
#include "attn/Schedules/Passes.h.inc"
} // namespace attn

using namespace attn;
using namespace attn::tile;

llvm::ArrayRef<const Schedule *> attn::tileSchedules() {
  static const Schedule *const tiles[] = {&byResidueForward(), &splitKv(), &singlePass(), &warpSpecialized(), &tiled()};
  return tiles;
}

llvm::ArrayRef<const Schedule *> attn::schedulesOf(Computation of) {
  static const auto forward = [] {
    llvm::SmallVector<const Schedule *> all = {&byLengthForward(), &simtRowsForward(), &ctaPerSequenceForward()};
    llvm::append_range(all, tileSchedules());
    return all;
  }();
  static const Schedule *const backward[] = {&byLengthBackward(),      &simtRowsBackward(),  &ctaPerSequenceBackward(),
                                             &shortBackwardOnHopper(), &byResidueBackward(), &backwardKernels()};
  return of.backward ? llvm::ArrayRef(backward) : llvm::ArrayRef(forward);
}

const Schedule *attn::scheduleOf(Computation of, mlir::Attribute attribute) {
  for (const Schedule *schedule : schedulesOf(of))
    if (schedule->owns(attribute))
      return schedule;
  return nullptr;
}

std::string attn::describeSchedule(Computation of, mlir::Attribute schedule) {
  return scheduleOf(of, schedule)->describe(of, schedule);
}

ScheduleInterface attn::mainKernelOf(mlir::Attribute schedule) {
  if (auto both = llvm::dyn_cast<ByLengthAttr>(schedule))
    schedule = both.getLongSequences();
  if (auto residues = llvm::dyn_cast<ByResidueAttr>(schedule))
    schedule = residues.getOf();
  if (auto kernels = llvm::dyn_cast<BackwardKernelsAttr>(schedule))
    return kernels.getDkdv();
  return llvm::cast<ScheduleInterface>(schedule);
}

static mlir::Attribute givenTo(Computation of) {
  return of.backward ? of.backward.getScheduleAttr() : of.problem.getScheduleAttr();
}

std::optional<std::string> attn::faultOfSchedule(Computation of) {
  mlir::Attribute given = givenTo(of);
  if (!given || scheduleOf(of, given))
    return std::nullopt;
  return withSchedule(llvm::Twine("expected a schedule of a ") + (of.backward ? "backward" : "forward") +
                          " pass, such as #tile." + (of.backward ? "tiled_backward" : "tiled") + "<...>, got: ",
                      given);
}

/// What excludes kernels for short sequences and for residues, if anything does.
static std::optional<llvm::StringRef> whyGridOfTiles(Computation of) {
  if (of.problem.getQLayout().hasPieces())
    return "layout(thd pieces)";
  if (BackwardOp backward = of.backward)
    for (auto [isGiven, what] : {std::pair(backward.getFloat32Dq() || backward.getFloat32Dkv(), "float32 gradients"),
                                 {backward.getAddDq(), "add_dq"},
                                 {backward.getDelta(), "delta"}})
      if (isGiven)
        return what;
  return std::nullopt;
}

std::optional<std::string> attn::refusalOfSchedule(Computation of, const TargetInfo &target) {
  mlir::Attribute schedule = givenTo(of);
  const Schedule &owner = *scheduleOf(of, schedule);
  if (std::optional<llvm::StringRef> what = whyGridOfTiles(of); what && !owner.takesPieces())
    return withSchedule("expected tiles of a grid with " + *what + ", got: ", schedule);
  return owner.refusal(of, target, schedule);
}

//===----------------------------------------------------------------------===//
// The choice
//===----------------------------------------------------------------------===//

std::vector<ChosenSchedule> Schedule::alternatives(Computation of, const TargetInfo &target, std::string &why) const {
  mlir::Attribute schedule = choose(of, target, why);
  return withFallbacks(of, target, schedule, why);
}

std::vector<ChosenSchedule> attn::withFallbacks(Computation of, const TargetInfo &target, mlir::Attribute schedule,
                                                const std::string &why) {
  std::vector<ChosenSchedule> all;
  bool mayNotFit = !of.backward && target.specializesWarps && isCostly(of.problem);
  for (; schedule; schedule = scheduleOf(of, schedule)->fallback(of, schedule))
    all.push_back({schedule, why, mayNotFit});
  return all;
}

ChosenSchedule attn::chooseSchedule(Computation of, const TargetInfo &target, int64_t fallback) {
  if (mlir::Attribute given = givenTo(of)) {
    auto reason = of.backward ? of.backward.getScheduleReasonAttr() : of.problem.getScheduleReasonAttr();
    return {scheduleOf(of, given)->complete(of, target, given), reason ? reason.str() : "the schedule is given"};
  }
  std::string why;
  for (const Schedule *schedule : schedulesOf(of)) {
    if (whyGridOfTiles(of) && !schedule->takesPieces())
      continue;
    if (std::vector<ChosenSchedule> all = schedule->alternatives(of, target, why); !all.empty()) {
      int64_t last = int64_t(all.size()) - 1, at = std::min(fallback, last);
      all[at].hasFallback = at < last;
      return all[at];
    }
  }
  llvm_unreachable("the last schedule accepts every problem");
}

void attn::setSchedule(Computation of, const ChosenSchedule &chosen) {
  auto why = mlir::StringAttr::get(of.problem.getContext(), chosen.why);
  if (of.backward)
    of.backward.setScheduleAttr(chosen.schedule), of.backward.setScheduleReasonAttr(why);
  else
    of.problem.setScheduleAttr(chosen.schedule), of.problem.setScheduleReasonAttr(why);
}

namespace {
struct AttnChooseSchedulePass : attn::impl::AttnChooseScheduleBase<AttnChooseSchedulePass> {
  using Base::Base;

  void runOnOperation() final {
    mlir::ModuleOp module = getOperation();
    if (TargetInfo::chipsOf(target).empty()) {
      module.emitError("expected target `cpu`, `sm_80` or `sm_90a`, got: ") << target.getValue();
      return signalPassFailure();
    }
    std::optional<TargetInfo> info = TargetInfo::get(target, arch);
    if (!info) {
      module.emitError("expected arch ") << TargetInfo::textOfChips(target) << " for target `" << target
                                         << "` (or 0, its own), got: " << arch.getValue();
      return signalPassFailure();
    }
    if (fallback < 0) {
      module.emitError("expected fallback not to be negative, got: ") << fallback.getValue();
      return signalPassFailure();
    }
    module->setAttr(targetAttrName, TargetAttr::get(&getContext(), info->name, info->chip));
    bool failed = false;
    for (BackwardOp backward : module.getOps<BackwardOp>())
      failed |= !choose(backward, *info);
    llvm::StringSet<> called = calleesOf(module);
    for (ProblemOp problem : module.getOps<ProblemOp>())
      if (!problem.isPrivate() || called.contains(problem.getSymName())) // only described, for use by others
        failed |= !choose(problem, *info);
    if (failed)
      signalPassFailure();
  }

  bool choose(Computation of, const TargetInfo &info) {
    mlir::Operation *op = of.getOperation();
    auto refuse = [&](const std::optional<std::string> &reason) {
      if (reason)
        op->emitOpError(*reason);
      return reason.has_value();
    };
    if (!llvm::is_contained(dataTypesOf(info.name, &getContext()), of.problem.getDtype())) {
      op->emitOpError("expected dtype ") << textOfDataTypes(info.name) << " for target `" << info.name
                                         << "` (`cpu`: " << textOfDataTypes("cpu")
                                         << "), got: " << of.problem.getDtype();
      return false;
    }
    if (refuse(faultOfSchedule(of)))
      return false;
    ChosenSchedule chosen = chooseSchedule(of, info, fallback);
    setSchedule(of, chosen);
    return !refuse(refusalOfSchedule(of, info));
  }
};
} // namespace
