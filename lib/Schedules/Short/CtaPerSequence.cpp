// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// `cta_per_sequence`: a tile for the rows of one short sequence, on tensor cores (docs/Schedules/cta_per_sequence.md).
//
#include "PerSequenceKernels.h"
#include "Schedules/Choices.h"
#include "Schedules/Common/Registry.h"
#include "attn/Schedules/KeyWalk.h"
#include "llvm/Support/FormatVariadic.h"
#include <numeric>

using namespace attn;
using namespace attn::tile;

/// The number of column parts in which results are computed, each at most `width` wide, if they divide `dim`.
static int64_t partsOf(int64_t dim, int64_t width) {
  for (int64_t parts = llvm::divideCeil(dim, width); parts <= dim / 16; ++parts)
    if (dim % (16 * parts) == 0)
      return parts;
  return 1;
}

/// One compare for each score, and no modifiers.
static bool isLean(ProblemOp problem, int64_t rowsTogether) {
  return problem.getModifiers().empty() && rowsTogether == 8 &&
         llvm::isa<FullMaskAttr, CausalMaskAttr>(problem.getMask());
}

// For sequences with enough rows for tensor cores and all keys in one tile: one warp for sixteen rows.
static CtaPerSequenceAttr sizesFor(ProblemOp problem) {
  int64_t queries = problem.expectedQueries().value_or(1), keys = problem.expectedKeys().value_or(16);
  int64_t group = groupOf(problem), pack = 1;
  if (!dependsOnHead(problem.getMask())) // a tile has one mask
    for (int64_t heads = 2; heads <= group; ++heads)
      if (group % heads == 0 && heads * queries <= (group * queries > 64 ? 96 : 64))
        pack = heads;
  int64_t kvHeads = kvHeadsToPack(problem, pack == group ? pack * queries : 16, keys);
  pack *= kvHeads;
  int64_t warps = std::clamp<int64_t>(llvm::divideCeil(pack * queries, 16), 1, 6), dim = widthOf(problem);
  int64_t together = problem.dropoutInForce() ? 16 : 8; // granularity of keys, and with dropout of rows
  int64_t qTile = std::min(together == 16 ? 16 * warps : pack * queries, 16 * warps);
  if (int64_t kvTile = llvm::alignTo(keys * kvHeads, std::max(together, kvHeads)); kvTile <= (warps > 4 ? 96 : 64)) {
    bool lean = isLean(problem, together);
    int64_t parts = partsOf(problem.getDimV(), warps > 5 ? 32 : 64),
            width = llvm::alignTo(problem.getDimV(), 16) / parts;
    int64_t registers = !lean || width > 64 || pack > 1 ? 128 : kvTile <= 32 ? 80 : 96;
    int64_t bytes = (qTile + 2 * kvTile) * (llvm::alignTo(dim, 16) + 8) * 2,
            ctas = ctasPerMultiprocessor(warps, registers, bytes);
    // Longer sequences then loop over keys once, not once for each part.
    if (problem.getDimV() <= 128 && warps <= 4 && lean && ctas == ctasPerMultiprocessor(warps, 128, bytes))
      parts = 1;
    return CtaPerSequenceAttr::get(problem.getContext(), qTile, kvTile, warps, ctas, pack, /*head_loop=*/1, parts);
  }
  int64_t kvTile = std::clamp<int64_t>(llvm::alignTo(keys, 16), 16, warps > 4 ? 96 : 64);
  int64_t ctas = std::max<int64_t>(1, 16 / warps);
  if (dim > 128)
    kvTile = std::min<int64_t>(kvTile, 32), ctas = std::max<int64_t>(1, ctas / 2);
  return CtaPerSequenceAttr::get(problem.getContext(), 16 * warps, kvTile, warps, ctas).withPackHeads(pack);
}

// One warp for sixteen rows, and for as many keys as its accumulators allow. A warp has two fragments of sixteen rows
// and all keys, and later the accumulators: 168 registers suffice for 96 keys, 255 for 128.
static CtaPerSequenceAttr sizesFor(BackwardOp backward, const TargetInfo &target) {
  ProblemOp problem = backward.getProblemOp();
  int64_t queries = *problem.expectedQueries(), keys = *problem.expectedKeys(), dim = widthOf(problem),
          group = groupOf(problem);
  int64_t own = dim <= 128 ? 32 : 16, rows = queries * group, kvHeads = kvHeadsToPack(problem, rows, keys);
  int64_t warps = std::max(llvm::divideCeil(rows, 16), llvm::divideCeil(keys, own));
  int64_t together = problem.dropoutInForce() ? 16 : 8;
  int64_t qTile = llvm::alignTo(rows * kvHeads, together),
          kvTile = llvm::alignTo(keys * kvHeads, std::max(together, kvHeads));
  int64_t bytes = 4 * (qTile + kvTile) * (llvm::alignTo(dim, 16) + 8) + 8 * 16 * warps + 256;
  if (bytes > target.sharedMemory)
    return {};
  int64_t ctas = dim > 128                                                ? 4 / warps
                 : kvTile > 96                                            ? 8 / warps
                 : kvTile > 88                                            ? (warps > 4 ? 12 : 9) / warps
                 : isLean(problem, together) && kvTile <= 64 && warps < 5 ? ctasPerMultiprocessor(warps, 128, bytes)
                                                                          : 12 / warps;
  bool reusesScoreRegisters = kvTile > 88 && warps > 5; // accumulators reuse the registers of scores
  // A head loop pays where a tile has spare rows, or few CTAs are co-resident. Some of these, and of results in two
  // parts, spill (found by compiling all).
  bool crowded = group > 1 && dim > 64 && kvTile > 56;
  int64_t tiles = problem.getKvHeads() / kvHeads,
          loop = (warps == 2 && !crowded) || (warps == 1 && rows * kvHeads < 16) ? 2 : 1;
  bool quarters = dim > 96 && problem.getDimQk() % 64 == 0 && problem.getDimV() % 64 == 0 && qTile > 40 && qTile < 64 &&
                  kvTile > 112 && !llvm::isa<FullMaskAttr>(problem.getMask());
  return CtaPerSequenceAttr::get(problem.getContext(), qTile, kvTile, warps, std::max<int64_t>(1, ctas),
                                 group * kvHeads, std::gcd(loop, tiles),
                                 reusesScoreRegisters || (warps <= 4 && kvTile <= 64) ? 0
                                 : quarters                                           ? 4
                                                                                      : 2);
}

/// On a CPU, a thread is a CTA.
static CtaPerSequenceAttr onTarget(CtaPerSequenceAttr schedule, const TargetInfo &target) {
  return schedule && target.isHost() ? schedule.withWarps(1) : schedule;
}

CtaPerSequenceAttr attn::ctaPerSequenceFor(ProblemOp problem, const TargetInfo &target) {
  return onTarget(sizesFor(problem), target);
}

CtaPerSequenceAttr attn::ctaPerSequenceFor(BackwardOp backward, const TargetInfo &target) {
  return onTarget(sizesFor(backward, target), target);
}

namespace {
class CtaPerSequenceSchedule : public Schedule {
public:
  bool owns(mlir::Attribute schedule) const override { return llvm::isa<CtaPerSequenceAttr>(schedule); }

  mlir::Attribute complete(Computation, const TargetInfo &target, mlir::Attribute schedule) const override {
    return onTarget(llvm::cast<CtaPerSequenceAttr>(schedule), target);
  }

  std::string describe(Computation, mlir::Attribute) const override { return "one CTA per sequence"; }

  mlir::Attribute fallback(Computation of, mlir::Attribute schedule) const override {
    auto cta = llvm::cast<CtaPerSequenceAttr>(schedule);
    if (cta.getHeadLoop() > 1) // one loop less around a CTA's state
      return cta.withHeadLoop(1);
    if (of.backward && cta.getKvTile() > 88)
      if (CtaPerSequenceAttr less = fewerSums(of.problem, cta))
        return less;
    // Fewer co-resident CTAs, with more registers for each.
    return cta.getCtasPerSm() == 1 ? CtaPerSequenceAttr() : cta.withCtasPerSm(cta.getCtasPerSm() * 3 / 4);
  }

protected:
  /// Why dropout does not fit: random bits are computed for 16 rows and keys at a time.
  static std::optional<std::string> refusalOfDropout(ProblemOp problem, CtaPerSequenceAttr schedule) {
    bool isMultiple = schedule.getKvTile() % 16 == 0 && (schedule.getPackHeads() > 1 || schedule.getQTile() % 16 == 0);
    if (!problem.dropoutInForce() || isMultiple)
      return std::nullopt;
    return withSchedule("expected a q_tile and a kv_tile in multiples of 16 with dropout, got: ", schedule);
  }

  /// Why kv heads cannot be packed into a tile.
  static std::optional<std::string> refusalOfHeads(ProblemOp problem, CtaPerSequenceAttr schedule) {
    int64_t group = groupOf(problem), kvHeads = schedule.getPackHeads() / group;
    if (group % schedule.getPackHeads() == 0)
      return std::nullopt;
    if (schedule.getPackHeads() % group || problem.getKvHeads() % kvHeads || schedule.getKvTile() % kvHeads ||
        !problem.getModifiers().empty())
      return withSchedule(
          llvm::formatv(
              "expected pack_heads to be {0}, the query heads of a kv head, or, without score modifiers, a multiple of "
              "it of which there are whole tiles of heads and in each whole keys, got: ",
              group),
          schedule);
    return std::nullopt;
  }

private:
  /// Accumulators of many keys for fewer columns at a time.
  static CtaPerSequenceAttr fewerSums(ProblemOp problem, CtaPerSequenceAttr cta) {
    int64_t parts = 2 * std::max<int64_t>(cta.getColumnParts(), 1), warps = cta.getWarps();
    int64_t columns = std::gcd(problem.getDimQk(), problem.getDimV());
    if (parts <= (warps > 4 ? 2 : 4) && columns % (16 * parts) == 0)
      return cta.withColumnParts(parts);
    if (cta.getCtasPerSm() == 1 && warps > 4 && warps < 8)
      return cta.withWarps(8).withColumnParts(columns % 64 == 0 ? 4 : 0);
    return {};
  }
};

class CtaPerSequenceForward : public CtaPerSequenceSchedule {
public:
  mlir::Attribute choose(Computation of, const TargetInfo &target, std::string &why) const override {
    return ifKind<CtaPerSequenceAttr>(chooseShort(of.problem, target, why));
  }

  std::optional<std::string> refusal(Computation of, const TargetInfo &, mlir::Attribute schedule) const override {
    ProblemOp problem = of.problem;
    auto cta = llvm::cast<CtaPerSequenceAttr>(schedule);
    if (problem.getTiles())
      return withSchedule("expected a schedule with tiles of a grid for tiles(M), got: ", schedule);
    if (cta.getPackHeads() > groupOf(problem)) {
      if (std::optional<std::string> refusal = refusalOfHeads(problem, cta))
        return refusal;
      if (dependsOnHead(problem.getMask()))
        return withSchedule("expected pack_heads = 1 with a mask that differs between heads, got: ", schedule);
    } else if (std::optional<std::string> refusal = refusalOfPackedHeads(problem, cta)) {
      return refusal;
    }
    if (int64_t dim = widthOf(problem); dim > widestOfTiles)
      return withSchedule(llvm::formatv("expected #tile.simt_rows for head dims beyond 256, got: dim {0} with ", dim),
                          schedule);
    if (int64_t parts = cta.getColumnParts(); parts > 1 && problem.getDimV() % (16 * parts))
      return withSchedule(
          llvm::formatv("expected parts of v's columns in multiples of 16, got: dim {0} with ", problem.getDimV()),
          schedule);
    return refusalOfDropout(problem, cta);
  }

  void lower(Computation of, mlir::Attribute schedule, Lowering &lowering) const override {
    lowerPerSequence(of.problem, llvm::cast<CtaPerSequenceAttr>(schedule), lowering);
  }
};

class CtaPerSequenceBackward : public CtaPerSequenceSchedule {
public:
  mlir::Attribute choose(Computation of, const TargetInfo &target, std::string &why) const override {
    return ifKind<CtaPerSequenceAttr>(chooseShort(of.backward, target, why));
  }

  /// The last fallbacks are kernels on tiles of a grid.
  std::vector<ChosenSchedule> alternatives(Computation of, const TargetInfo &target, std::string &why) const override {
    std::vector<ChosenSchedule> all = Schedule::alternatives(of, target, why);
    std::string whyNot = why + ", but registers do not suffice";
    if (!all.empty())
      llvm::append_range(all, backwardKernels().alternatives(of, target, whyNot));
    return all;
  }

  std::optional<std::string> refusal(Computation of, const TargetInfo &, mlir::Attribute schedule) const override {
    ProblemOp problem = of.problem;
    auto cta = llvm::cast<CtaPerSequenceAttr>(schedule);
    int64_t group = groupOf(problem), dim = widthOf(problem);
    if (std::optional<std::string> refusal = refusalOfSequences(of.backward, schedule))
      return refusal;
    if (std::optional<std::string> refusal = attn::refusalOfHeads(of.backward, schedule))
      return refusal;
    if (cta.getPackHeads() % group)
      return withSchedule(
          llvm::formatv("expected all {0} query heads of a kv head packed in a backward pass, got: ", group), schedule);
    if (std::optional<std::string> refusal = refusalOfHeads(problem, cta))
      return refusal;
    if (dim > widestOfTiles || cta.getQTile() % 8)
      return withSchedule(
          llvm::formatv("expected head dims up to 256 and a q_tile in multiples of 8, got: dim {0} with ", dim),
          schedule);
    if (int64_t parts = cta.getColumnParts();
        parts > 1 && (problem.getDimQk() % (16 * parts) || problem.getDimV() % (16 * parts)))
      return withSchedule(llvm::formatv("expected parts of columns in multiples of 16, got: dims {0}, {1} with ",
                                        problem.getDimQk(), problem.getDimV()),
                          schedule);
    return refusalOfDropout(problem, cta);
  }

  void lower(Computation of, mlir::Attribute schedule, Lowering &lowering) const override {
    lowerPerSequence(of.backward, llvm::cast<CtaPerSequenceAttr>(schedule), lowering);
  }
};
} // namespace

const Schedule &attn::ctaPerSequenceForward() {
  static const CtaPerSequenceForward schedule;
  return schedule;
}

const Schedule &attn::ctaPerSequenceBackward() {
  static const CtaPerSequenceBackward schedule;
  return schedule;
}
