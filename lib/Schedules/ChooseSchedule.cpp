// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Chooses the schedule of a pass, the first of the registry whose rule accepts the problem, and its fallbacks.
//
#include "Schedules/Backward/BackwardKernel.h"
#include "Schedules/Common/Registry.h"
#include "Schedules/Common/Rules.h"
#include "attn/Schedules/KeyWalk.h"
#include <numeric>

namespace attn {
#define GEN_PASS_DEF_ATTNCHOOSESCHEDULE
#include "attn/Schedules/Passes.h.inc"
} // namespace attn

using namespace attn;
using namespace attn::tile;

llvm::ArrayRef<const Schedule *> attn::schedulesOf(Computation of) {
  static const Schedule *const forward[] = {&byLengthForward(),
                                            &simtRowsForward(),
                                            &ctaPerSequenceForward(),
                                            &splitKv(),
                                            &singlePass(),
                                            &warpSpecialized(),
                                            &tiled()};
  static const Schedule *const backward[] = {&byLengthBackward(), &simtRowsBackward(), &ctaPerSequenceBackward(),
                                             &shortBackwardOnHopper(), &backwardKernels()};
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

std::optional<std::string> attn::refusalOfSchedule(Computation of, const TargetInfo &target) {
  mlir::Attribute schedule = givenTo(of);
  return scheduleOf(of, schedule)->refusal(of, target, schedule);
}

mlir::Attribute attn::chooseTiles(ProblemOp problem, const TargetInfo &target) {
  std::string why;
  for (const Schedule *schedule : {&splitKv(), &singlePass(), &warpSpecialized(), &tiled()})
    if (mlir::Attribute chosen = schedule->choose(problem, target, why))
      return chosen;
  llvm_unreachable("each target has tiles");
}

mlir::Attribute attn::chooseShort(ProblemOp problem, const TargetInfo &target, std::string &why) {
  if (!areSequencesShort(problem, why) || mayBeLonger(problem) || fillTilesOfGrid(problem, target, why))
    return {};
  std::string how;
  mlir::Attribute schedule = chooseForShort(problem, target, how);
  if (!how.empty())
    why += ", and " + how;
  return schedule;
}

//===----------------------------------------------------------------------===//
// Forward passes
//===----------------------------------------------------------------------===//

/// A schedule and its fallbacks, in order.
static llvm::SmallVector<mlir::Attribute> withFallbacks(Computation of, mlir::Attribute schedule) {
  llvm::SmallVector<mlir::Attribute> all;
  for (; schedule; schedule = scheduleOf(of, schedule)->fallback(of, schedule))
    all.push_back(schedule);
  return all;
}

static ChosenSchedule chooseForward(ProblemOp problem, const TargetInfo &target, int64_t fallback) {
  ChosenSchedule result;
  for (const Schedule *schedule : schedulesOf(problem))
    if ((result.schedule = schedule->choose(problem, target, result.why)))
      break;
  result.isDoubtful = target.specializesWarps && isCostly(problem);
  auto both = llvm::dyn_cast<ByLengthAttr>(result.schedule);
  if (!both) {
    llvm::SmallVector<mlir::Attribute> all = withFallbacks(problem, result.schedule);
    int64_t last = int64_t(all.size()) - 1, at = std::min(fallback, last);
    result.schedule = all[at], result.hasFallback = at < last;
    return result;
  }
  // All combinations: after the first trial it is known which part does not fit, and the rest are skipped.
  llvm::SmallVector<mlir::Attribute> forLong = withFallbacks(problem, both.getLongSequences()),
                                     forShort = withFallbacks(problem, both.getShortSequences());
  int64_t last = int64_t(forLong.size() * forShort.size()) - 1, at = std::min(fallback, last);
  result.hasFallback = at < last;
  result.schedule =
      ByLengthAttr::get(problem.getContext(), llvm::cast<ScheduleInterface>(forShort[at % forShort.size()]),
                        forLong[at / forShort.size()]);
  return result;
}

//===----------------------------------------------------------------------===//
// Backward passes
//===----------------------------------------------------------------------===//

// Measured on an H200 (docs/Schedules/trials/short-sequences.md): with max_seqlen in this range, kernels on tiles of a
// grid are faster than a CTA of seven or eight warps, if they store dQ of a single KV tile without an accumulator. (If
// these do not fit beside a dQ MMA warpgroup, the problem keeps tiles of a grid.)
static bool fillTilesOfGrid(BackwardOp backward, const TargetInfo &target) {
  ProblemOp problem = backward.getProblemOp();
  bool packed = problem.getQLayout().isPacked() && problem.getKLayout().isPacked(), narrow = widthOf(problem) <= 64;
  bool plain =
      problem.getModifiers().empty() && !problem.dropoutInForce() && problem.getHeads() == problem.getKvHeads();
  int64_t least = narrow || backward.getDeterministic() ? 112 : 96;
  if (!packed || !plain || !problem.getMaxSeqlenQ() ||
      int64_t(std::min(*problem.getMaxSeqlenQ(), *problem.getMaxSeqlenKv())) <= least)
    return false;
  return storesDqDirectly(problem, chooseBackwardKernels(backward, target, /*index=*/0).kernels);
}

static ScheduleInterface chooseByLengths(BackwardOp backward, const TargetInfo &target, std::string &why) {
  ProblemOp problem = backward.getProblemOp();
  std::optional<int64_t> queries = problem.expectedQueries(), keys = problem.expectedKeys();
  int64_t dim = widthOf(problem);
  int64_t most =
      dim <= 128 && problem.getDimQk() % 32 == 0 && problem.getDimV() % 32 == 0 ? 128 : 64; // in column parts, or whole
  bool isShort = queries && *queries * groupOf(problem) <= most && *keys <= most;
  auto because = [&](const llvm::Twine &text, ScheduleInterface schedule = {}) {
    why = text.str();
    return schedule;
  };
  if (backward.getPartialKv())
    return because(
        "with partial_kv, o and lse are of more keys than the problem has, and delta is no sum over its keys");
  if (ScheduleInterface onHopper = chooseShortOnHopper(backward, target))
    return because(lengthsOf(problem) +
                       (llvm::isa<StationaryQBackwardAttr>(onHopper)
                            ? ": all query rows of a sequence stay in one CTA, and K/V tiles are streamed past them"
                            : ": one tile has all pairs of a sequence"),
                   onHopper);
  if (dim <= widestOfTiles &&
      (!isShort || dependsOnHead(problem.getMask()))) // SIMT rows have one mask for a kv head's rows
    return because(!queries  ? nothingSaid
                   : isShort ? "its mask differs between heads"
                             : lengthsOf(problem) + ": long sequences");
  if (isShort && fillTilesOfGrid(backward, target))
    return because(lengthsOf(problem) + ": one tile has all keys of a sequence, and dQ needs no accumulation");
  if (isShort && dim <= widestOfTiles && (*keys > 40 || fillsTiles(problem, 2))) {
    CtaPerSequenceAttr cta = ctaPerSequenceFor(backward, target);
    return cta ? because(lengthsOf(problem) + ": short sequences, and " +
                             (fillsTiles(problem, 2) ? enoughRows : "too many keys for SIMT rows"),
                         cta)
               : because(lengthsOf(problem) + ": too long for shared memory");
  }
  return because(dim > widestOfTiles ? std::string(noTiles) : lengthsOf(problem) + ": short sequences, and " + fewRows,
                 simtRowsFor(backward, target));
}

ScheduleInterface attn::chooseForShort(BackwardOp backward, const TargetInfo &target, std::string &why) {
  ScheduleInterface schedule = chooseByLengths(backward, target, why);
  if (!schedule || !backward.getRequiresGrad())
    return schedule;
  why = "requires_grad needs what the tiled kernels store";
  return {};
}

std::optional<std::string> attn::refusalOfSequences(BackwardOp backward, mlir::Attribute schedule) {
  if (backward.getRequiresGrad()) // requires_grad needs row statistics of the kernels on tiles
    return withSchedule("expected a schedule with tiles of a grid with requires_grad, got: ", schedule);
  if (backward.getPartialKv()) // delta is a sum over a sequence's own keys here
    return withSchedule("expected a schedule with tiles of a grid with partial_kv, got: ", schedule);
  return std::nullopt;
}

std::optional<std::string> attn::refusalOfHeads(BackwardOp backward, mlir::Attribute schedule) {
  if (dependsOnHead(backward.getProblemOp().getMask()))
    return withSchedule("expected a schedule with tiles of a grid for a mask that differs between heads, got: ",
                        schedule);
  return std::nullopt;
}

/// Does the schedule have a fallback? At the end, `cta_per_sequence` falls back to tiles of a grid.
static bool mayFall(BackwardOp backward, mlir::Attribute schedule) {
  return llvm::isa<CtaPerSequenceAttr>(schedule) || scheduleOf(backward, schedule)->fallback(backward, schedule);
}

static ChosenSchedule chooseBackward(BackwardOp backward, const TargetInfo &target, int64_t fallback) {
  ProblemOp problem = backward.getProblemOp();
  ChosenSchedule result;
  mlir::Attribute forShort = chooseForShort(backward, target, result.why);
  bool isOnHopper = forShort && shortBackwardOnHopper().owns(forShort);
  bool mayBeLonger = forShort && (isOnHopper || (!problem.getMaxSeqlenQ() && problem.getQLayout().isPacked() &&
                                                 problem.getKLayout().isPacked() && widthOf(problem) <= widestOfTiles));
  // With kernels on tiles for long sequences, fallbacks are for those: a single pass is chosen only where it is known
  // to fit.
  for (; fallback > 0 && forShort && !mayBeLonger && mayFall(backward, forShort); --fallback)
    if (forShort = scheduleOf(backward, forShort)->fallback(backward, forShort); !forShort)
      result.why += ", but registers do not suffice";
  if (forShort && !mayBeLonger) {
    result.schedule = forShort, result.hasFallback = mayFall(backward, forShort);
    return result;
  }
  BackwardChoice tiles = chooseBackwardKernels(backward, target, fallback);
  result.hasFallback = tiles.hasFallback, result.isDoubtful = tiles.isDoubtful;
  result.schedule = tiles.kernels;
  if (forShort)
    result.schedule = ByLengthAttr::get(backward.getContext(), llvm::cast<ScheduleInterface>(forShort), tiles.kernels);
  if (forShort && !problem.getMaxSeqlenQ())
    result.why += "; without max_seqlen some sequences may be longer";
  if (!tiles.whySeparate.empty())
    result.why += "; dQ has a kernel of its own: " + tiles.whySeparate;
  return result;
}

//===----------------------------------------------------------------------===//
// Both
//===----------------------------------------------------------------------===//

ChosenSchedule attn::chooseSchedule(Computation of, const TargetInfo &target, int64_t fallback) {
  if (mlir::Attribute given = givenTo(of)) {
    auto reason = of.backward ? of.backward.getScheduleReasonAttr() : of.problem.getScheduleReasonAttr();
    ChosenSchedule result;
    result.schedule = scheduleOf(of, given)->complete(of, target, given);
    result.why = reason ? reason.str() : "the schedule is given";
    return result;
  }
  return of.backward ? chooseBackward(of.backward, target, fallback) : chooseForward(of.problem, target, fallback);
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
    for (ProblemOp problem : module.getOps<ProblemOp>())
      if (!problem.isPrivate()) // only described, for use by others
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
