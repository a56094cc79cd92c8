// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// `by_length`: short sequences of a batch have one schedule, long ones another (docs/Schedules/by_length.md).
//
#include "Schedules/Backward/ArrayGradKernels.h"
#include "Schedules/Backward/GradientsKernel.h"
#include "Schedules/Choices.h"
#include "Schedules/Common/Registry.h"
#include "Schedules/Metadata/DerivedArrays.h"
#include "Schedules/Short/PerSequenceKernels.h"
#include "Schedules/Short/ShortHopperBackward.h"

using namespace attn;
using namespace attn::tile;

// Measured on an H200 (docs/Schedules/by_length.md). An iteration of a one-warp CTA takes a sixteenth of the time of a
// 128 x 128 tile in the other kernels, a score on SIMT tiles a thousandth: so short sequences have up to four
// iterations over rows times four over keys, or a thousand scores. Beyond 64 rows the other kernels are faster in any
// case.
static ShortLimit shortLimit(ProblemOp problem, ScheduleInterface schedule) {
  if (auto tiles = llvm::dyn_cast<CtaPerSequenceAttr>(schedule)) {
    int64_t queries = tiles.getFragmentRows() / schedule.getPackHeads(), keys = llvm::alignTo(schedule.getKvTile(), 16);
    return {std::clamp<int64_t>(4 * queries, 16, std::max<int64_t>(64, queries)),
            std::clamp<int64_t>(4 * keys / kvHeadsOf(problem, schedule), 16, 128)};
  }
  return problem.expectedKeys().value_or(1) <= 128 ? ShortLimit{8, 128} : ShortLimit{4, 1023};
}

// Sequences that do not fit a tile use SIMT tiles, where a score takes 0.13 ns; the other kernels take 60 ns for each
// sequence and head.
static ShortLimit shortLimit(BackwardOp backward, ScheduleInterface schedule) {
  ProblemOp problem = backward.getProblemOp();
  if (warpSpecializationOf(schedule))
    return {schedule.getQTile(), keysOfAll(schedule)};
  if (llvm::isa<CtaPerSequenceAttr>(schedule))
    return {std::max<int64_t>(schedule.getQueries(), 16),
            std::max<int64_t>(schedule.getKvTile() / kvHeadsOf(problem, schedule), 16)};
  return {8, 64};
}

namespace {
class ByLengthSchedule : public Schedule {
public:
  bool owns(mlir::Attribute schedule) const override { return llvm::isa<ByLengthAttr>(schedule); }

  mlir::Attribute complete(Computation of, const TargetInfo &target, mlir::Attribute schedule) const override {
    auto both = llvm::cast<ByLengthAttr>(schedule);
    auto part = [&](mlir::Attribute one) {
      const Schedule *owner = scheduleOf(of, one);
      return owner ? owner->complete(of, target, one) : one;
    };
    mlir::Attribute forShort = part(both.getShortSequences());
    if (auto completed = llvm::dyn_cast<ByLengthAttr>(forShort)) // kernels for long sequences are given separately
      forShort = completed.getShortSequences();
    return ByLengthAttr::get(both.getContext(), llvm::cast<ScheduleInterface>(forShort), part(both.getLongSequences()));
  }

  std::optional<std::string> refusal(Computation of, const TargetInfo &target,
                                     mlir::Attribute schedule) const override {
    auto both = llvm::cast<ByLengthAttr>(schedule);
    bool packed = of.problem.getQLayout().isPacked() && of.problem.getKLayout().isPacked();
    if (!packed && !warpSpecializationOf(both.getShortSequences())) // these compute dense sequences, too
      return withSchedule("expected packed rows and keys for schedules by length, got: ", schedule);
    for (mlir::Attribute one : {mlir::Attribute(both.getShortSequences()), both.getLongSequences()}) {
      const Schedule *owner = scheduleOf(of, one);
      if (!owner)
        return withSchedule("expected schedules of this pass, got: ", one);
      if (std::optional<std::string> refusal = owner->refusal(of, target, one))
        return refusal;
    }
    return std::nullopt;
  }

  std::string describe(Computation of, mlir::Attribute schedule) const override {
    auto both = llvm::cast<ByLengthAttr>(schedule);
    auto part = [&](mlir::Attribute one) { // a given one may belong to the other pass
      const Schedule *owner = scheduleOf(of, one);
      return owner ? owner->describe(of, one) : withSchedule("", one);
    };
    return part(both.getShortSequences()) + " for short sequences, " + part(both.getLongSequences()) + " for long ones";
  }
};

class ByLengthForward : public ByLengthSchedule {
public:
  /// All combinations of both schedules' fallbacks. (After the first trial it is known which part does not fit, and the
  /// combinations with it are skipped.)
  std::vector<ChosenSchedule> alternatives(Computation of, const TargetInfo &target, std::string &why) const override {
    if (!mayBeLonger(of.problem))
      return {};
    std::string how;
    areSequencesShort(of.problem, why);
    mlir::Attribute forShort = chooseForShort(of.problem, target, how);
    why += ", and " + how + "; without max_seqlen some sequences may be longer";
    std::vector<ChosenSchedule> all;
    for (const ChosenSchedule &tiles : withFallbacks(of, target, chooseTiles(of.problem, target), why))
      for (const ChosenSchedule &own : withFallbacks(of, target, forShort, why))
        all.push_back({ByLengthAttr::get(tiles.schedule.getContext(), llvm::cast<ScheduleInterface>(own.schedule),
                                         tiles.schedule),
                       why, tiles.mayNotFit});
    return all;
  }

  void lower(Computation of, mlir::Attribute schedule, Lowering &lowering) const override {
    auto both = llvm::cast<ByLengthAttr>(schedule);
    writeDerivedArrays(of, lowering);
    lowering.limit = shortLimit(of.problem, both.getShortSequences());
    scheduleOf(of, both.getLongSequences())->lower(of, both.getLongSequences(), lowering);
    scheduleOf(of, both.getShortSequences())->lower(of, both.getShortSequences(), lowering);
  }
};

class ByLengthBackward : public ByLengthSchedule {
public:
  /// Only the kernels for long sequences have fallbacks: the others are chosen where they are known to fit.
  std::vector<ChosenSchedule> alternatives(Computation of, const TargetInfo &target, std::string &why) const override {
    ScheduleInterface forShort = chooseForShort(of.backward, target, why);
    if (!forShort || !mayBeLonger(of.backward, forShort))
      return {};
    if (!of.problem.getMaxSeqlenQ())
      why += "; without max_seqlen some sequences may be longer";
    std::vector<ChosenSchedule> all = backwardKernels().alternatives(of, target, why);
    for (ChosenSchedule &chosen : all)
      chosen.schedule = ByLengthAttr::get(forShort.getContext(), forShort, chosen.schedule);
    return all;
  }

  void lower(Computation of, mlir::Attribute schedule, Lowering &lowering) const override {
    auto both = llvm::cast<ByLengthAttr>(schedule);
    auto kernels = llvm::cast<BackwardKernelsAttr>(both.getLongSequences());
    writeDerivedArrays(of, lowering);
    lowering.limit = shortLimit(of.backward, both.getShortSequences());
    lowering.classesOfDq = storesDqDirectly(of.backward, kernels) ? 3 : 2;
    scheduleOf(of, both.getShortSequences())->lower(of, both.getShortSequences(), lowering);
    scheduleOf(of, kernels)->lower(of, kernels, lowering);
  }
};
} // namespace

const Schedule &attn::byLengthForward() {
  static const ByLengthForward schedule;
  return schedule;
}

const Schedule &attn::byLengthBackward() {
  static const ByLengthBackward schedule;
  return schedule;
}
