// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Rules that choose among schedules: for short sequences a CTA, a warp, or tiles of a grid.
//
#include "Choices.h"
#include "Schedules/Backward/GradientsKernel.h"
#include "Schedules/Common/Registry.h"

using namespace attn;
using namespace attn::tile;

//===----------------------------------------------------------------------===//
// Forward passes
//===----------------------------------------------------------------------===//

mlir::Attribute attn::chooseTiles(ProblemOp problem, const TargetInfo &target) {
  std::string why;
  for (const Schedule *schedule : tileSchedules())
    if (mlir::Attribute chosen = schedule->choose(problem, target, why))
      return chosen;
  llvm_unreachable("each target has tiles");
}

mlir::Attribute attn::chooseForShort(ProblemOp problem, const TargetInfo &target, std::string &why) {
  auto simt = [&](const char *reason) {
    why = reason;
    return simtRowsFor(problem, target);
  };
  if (widthOf(problem) > widestOfTiles)
    return simt(""); // keeps the reason why sequences are short
  if (problem.expectedKeys().value_or(1) > 128)
    return simt("too many keys for one CTA per sequence");
  if (!fillsTiles(problem, 3))
    return simt(fewRows);
  why = enoughRows;
  return ctaPerSequenceFor(problem, target);
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
// Backward passes
//===----------------------------------------------------------------------===//

// Measured on an H200 (docs/Schedules/trials/short-sequences.md): with max_seqlen in this range, kernels on tiles of a
// grid are faster than a CTA of seven or eight warps, if they store dQ of a single KV tile without an accumulator. (If
// these do not fit beside a dQ MMA warpgroup, the problem keeps tiles of a grid.)
static bool fillsTilesOfGridBackward(BackwardOp backward, const TargetInfo &target) {
  ProblemOp problem = backward.getProblemOp();
  bool packed = problem.getQLayout().isPacked() && problem.getKLayout().isPacked(), narrow = widthOf(problem) <= 64;
  bool plain =
      problem.getModifiers().empty() && !problem.dropoutInForce() && problem.getHeads() == problem.getKvHeads();
  int64_t least = narrow || backward.getDeterministic() ? 112 : 96;
  if (!packed || !plain || !problem.getMaxSeqlenQ() ||
      int64_t(std::min(*problem.getMaxSeqlenQ(), *problem.getMaxSeqlenKv())) <= least)
    return false;
  return storesDqDirectly(backward, chooseBackwardKernels(backward, target, /*index=*/0).kernels);
}

static ScheduleInterface chooseShortBackward(BackwardOp backward, const TargetInfo &target, std::string &why) {
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
  if (isShort && fillsTilesOfGridBackward(backward, target))
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
  ScheduleInterface schedule = chooseShortBackward(backward, target, why);
  if (!schedule || !backward.getRequiresGrad())
    return schedule;
  why = "requires_grad needs what the tiled kernels store";
  return {};
}

bool attn::mayBeLonger(BackwardOp backward, ScheduleInterface schedule) {
  ProblemOp problem = backward.getProblemOp();
  return warpSpecializationOf(schedule) || (!problem.getMaxSeqlenQ() && problem.getQLayout().isPacked() &&
                                            problem.getKLayout().isPacked() && widthOf(problem) <= widestOfTiles);
}

mlir::Attribute attn::chooseShort(BackwardOp backward, const TargetInfo &target, std::string &why) {
  ScheduleInterface schedule = chooseForShort(backward, target, why);
  return schedule && !mayBeLonger(backward, schedule) ? schedule : mlir::Attribute();
}

std::optional<std::string> attn::refusalOfSequences(BackwardOp backward, mlir::Attribute schedule) {
  if (backward.getRequiresGrad()) // requires_grad needs row statistics of the kernels on tiles
    return withSchedule("expected a schedule with tiles of a grid with requires_grad, got: ", schedule);
  if (backward.getPartialKv()) // these kernels compute delta as a sum over a sequence's own keys
    return withSchedule("expected a schedule with tiles of a grid with partial_kv, got: ", schedule);
  return std::nullopt;
}

std::optional<std::string> attn::refusalOfHeads(BackwardOp backward, mlir::Attribute schedule) {
  if (dependsOnHead(backward.getProblemOp().getMask()))
    return withSchedule("expected a schedule with tiles of a grid for a mask that differs between heads, got: ",
                        schedule);
  return std::nullopt;
}
