// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// `single_pass_backward` and `stationary_q_backward`: gradients with one CTA for each sequence, on Hopper. Measured on
// an H100 (docs/Schedules/trials/short-sequences.md).
//
#include "ShortHopperBackward.h"
#include "PerSequenceKernels.h"
#include "Schedules/Choices.h"
#include "Schedules/Common/Registry.h"
#include "attn/Schedules/KeyWalk.h"

using namespace attn;
using namespace attn::tile;

namespace {
struct Lengths {
  int64_t queries, keys;
};
} // namespace

int64_t attn::keysOfAll(ScheduleInterface schedule) {
  auto stationary = llvm::dyn_cast<StationaryQBackwardAttr>(schedule);
  return schedule.getKvTile() * (stationary ? int64_t(stationary.getKvTiles()) : 1);
}

int64_t attn::bytesOfStationaryQ(ProblemOp problem, StationaryQBackwardAttr schedule, bool outputs) {
  constexpr int64_t chunk = 64; // columns of a TMA box, and of tiles of P and dS
  int64_t ofQk = llvm::alignTo(problem.getDimQk(), chunk), ofV = llvm::alignTo(problem.getDimV(), chunk),
          rows = schedule.getQTile();
  return 2 * ((ofQk + ofV) * (schedule.getQStages() * rows + schedule.getStages() * schedule.getKvTile()) +
              (outputs ? ofV * rows : 0) + 2 * chunk * rows);
}

bool attn::loadsOutputs(ProblemOp problem, ScheduleInterface schedule) {
  if (problem.dropoutInForce() &&
      dividesRows(problem.getMask())) // 160 and 176 rows of 64 columns leave no register for another ring
    return false;
  auto stationary = llvm::cast<StationaryQBackwardAttr>(schedule);
  return bytesOfStationaryQ(problem, stationary, /*outputs=*/true) <=
         TargetInfo::get("sm_90a")->roomForTiles() / stationary.getCtasPerSm();
}

/// Can a CTA compute a whole sequence? Queries and keys have to be both packed or both dense, with no modifiers, no
/// block maps, one kv head for each head, and head dims to 128, whose results fit registers.
static bool isPossible(ProblemOp problem) {
  bool lists =
      llvm::any_of(problem.getMask().operands(), [](const MaskOperand &array) { return array.lists.has_value(); });
  return problem.getQLayout().isPacked() == problem.getKLayout().isPacked() && problem.getModifiers().empty() &&
         !lists && problem.getHeads() == problem.getKvHeads() && widthOf(problem) <= 128;
}

/// Masks that leave registers for dropout.
static bool isPlain(MaskInterface mask) {
  auto causal = llvm::dyn_cast<CausalMaskAttr>(mask);
  return llvm::isa<FullMaskAttr>(mask) || (causal && causal.getDiagonal() == Diagonal::top_left);
}

/// For more than 64 rows and keys: a tile that they fill, or without max_seqlen the largest. Second stages for all
/// operands pay where shared memory has room for them.
static ScheduleInterface chooseSinglePass(ProblemOp problem, Lengths lengths, const TargetInfo &target) {
  constexpr int64_t most = 128;
  if (!problem.getMaxSeqlenQ())
    lengths = {most, most};
  int64_t qTile = llvm::alignTo(lengths.queries, 16), kvTile = llvm::alignTo(lengths.keys, 16); // 80 at least
  if (problem.dropoutInForce() &&
      (!isPlain(problem.getMask()) || (widthOf(problem) > 96 && std::max(qTile, kvTile) > 112)))
    return {};
  auto bytes = [&](int64_t stages, int64_t qStages) {
    int64_t ofQk = llvm::alignTo(problem.getDimQk(), 64) * (qTile * qStages + kvTile * stages),
            ofV = llvm::alignTo(problem.getDimV(), 64) * (qTile + kvTile) * stages;
    return 2 * (ofQk + ofV + 2 * qTile * most);
  };
  return SinglePassBackwardAttr::get(problem.getContext(), qTile, kvTile, /*warps=*/8, /*ctas_per_sm=*/1,
                                     bytes(2, 2) <= target.roomForTiles() ? 2 : 1, /*q_stages=*/2);
}

/// Do registers suffice for `rows` stationary rows? Wide heads have no registers for dropout with a mask of many terms;
/// the widest have none for either. With two row blocks a division counts as many terms.
static bool fits(ProblemOp problem, int64_t rows) {
  int64_t dim = widthOf(problem);
  bool draws = problem.dropoutInForce().has_value(),
       isSimple = !hasManyTests(problem.getMask()) && !(rows > 192 && dividesRows(problem.getMask()));
  return dim <= 96 || rows <= 144 || (dim <= 112 ? isSimple || !draws : isSimple && !draws);
}

/// For more than 128 rows or keys: K/V tiles of 64 keys, or of 48 where sequences fill these better.
static ScheduleInterface chooseStationaryQ(ProblemOp problem, Lengths lengths, const TargetInfo &target) {
  constexpr int64_t least = 144, mostOfThree = 192, most = 256;
  int64_t longer = std::max(lengths.queries, lengths.keys);
  if (!problem.getMaxSeqlenQ())
    lengths = longer > mostOfThree ? Lengths{most, most} : Lengths{mostOfThree, mostOfThree};
  int64_t qTile = std::max<int64_t>(llvm::alignTo(lengths.queries, 16), least);
  int64_t kvTile = lengths.keys <= 144 && llvm::alignTo(lengths.keys, 48) < llvm::alignTo(lengths.keys, 64) ? 48 : 64;
  bool three = qTile <= mostOfThree;
  if (three && widthOf(problem) > 64 &&
      (qTile > least || kvTile > 48)) // sizes between leave ptxas fewer registers for little gain
    qTile = mostOfThree;
  if (!fits(problem, qTile))
    return {};
  int64_t tiles = llvm::divideCeil(lengths.keys, kvTile);
  auto schedule = StationaryQBackwardAttr::get(problem.getContext(), qTile, kvTile, tiles, /*warps=*/three ? 12 : 8,
                                               /*ctas_per_sm=*/1);
  // The next sequence's operands are prefetched where shared memory has room: O first, then Q and dO, and as many K/V
  // tiles as a sequence has.
  const std::pair<int64_t, int64_t> stageCounts[] = {{tiles, 2}, {tiles, 1}, {2, 1}, {1, 1}};
  for (auto [stages, qStages] : stageCounts)
    if (auto early = schedule.withStages(stages).withQStages(qStages); loadsOutputs(problem, early))
      return early;
  bool two = bytesOfStationaryQ(problem, schedule.withStages(2), /*outputs=*/false) <= target.roomForTiles();
  return schedule.withStages(two ? 2 : 1);
}

ScheduleInterface attn::chooseShortOnHopper(BackwardOp backward, const TargetInfo &target) {
  ProblemOp problem = backward.getProblemOp();
  MaskInterface mask = problem.getMask();
  if (!target.specializesWarps || !problem.expectedQueries() || !isPossible(problem) || !mask.operands().empty() ||
      !showsIntervals(mask) || isCostly(problem))
    return {};
  Lengths lengths = {*problem.expectedQueries(), *problem.expectedKeys()};
  // Dense sequences of up to 80 rows are nearly as fast with `cta_per_sequence` and five warps.
  int64_t least = widthOf(problem) <= 64 && !problem.getQLayout().isPacked() ? 80 : 64;
  int64_t longer = std::max(lengths.queries, lengths.keys);
  if (std::min(lengths.queries, lengths.keys) <= least || longer > 256)
    return {};
  return longer > 128 ? chooseStationaryQ(problem, lengths, target) : chooseSinglePass(problem, lengths, target);
}

namespace {
/// The schedule of both attributes.
class ShortBackwardOnHopper : public Schedule {
public:
  bool owns(mlir::Attribute schedule) const override {
    return llvm::isa<SinglePassBackwardAttr, StationaryQBackwardAttr>(schedule);
  }

  mlir::Attribute complete(Computation of, const TargetInfo &target, mlir::Attribute schedule) const override {
    BackwardChoice longOnes = chooseBackwardKernels(of.backward, target, /*index=*/0);
    return ByLengthAttr::get(schedule.getContext(), llvm::cast<ScheduleInterface>(schedule), longOnes.kernels);
  }

  std::optional<std::string> refusal(Computation of, const TargetInfo &target,
                                     mlir::Attribute schedule) const override {
    if (std::optional<std::string> refusal = refusalOfSequences(of.backward, schedule))
      return refusal;
    if (target.specializesWarps && isPossible(of.problem))
      return std::nullopt;
    return withSchedule(
        "expected target `sm_90a`, rows and keys both packed or both dense, as many kv heads as heads, dims to "
        "128, no score modifiers and no block maps for a single pass over short sequences, got: ",
        schedule);
  }

  std::string describe(Computation, mlir::Attribute schedule) const override {
    return llvm::isa<SinglePassBackwardAttr>(schedule) ? "one CTA per sequence, single pass"
                                                       : "one CTA per sequence, Q stationary";
  }

  void lower(Computation of, mlir::Attribute schedule, Lowering &lowering) const override {
    lowerPerSequence(of.backward, llvm::cast<ScheduleInterface>(schedule), lowering);
  }
};
} // namespace

const Schedule &attn::shortBackwardOnHopper() {
  static const ShortBackwardOnHopper schedule;
  return schedule;
}
