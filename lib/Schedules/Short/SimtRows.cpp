// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// `simt_rows`: rows distributed over lane groups (docs/Schedules/simt_rows.md).
//
#include "PerSequenceKernels.h"
#include "Schedules/Choices.h"
#include "Schedules/Common/Registry.h"
#include "llvm/Support/FormatVariadic.h"

using namespace attn;
using namespace attn::tile;

/// On a CPU, a thread is a warp with one lane group.
static SimtRowsAttr onHost(SimtRowsAttr schedule) { return schedule.withLanes(32).withWarps(1).withCtasPerSm(1); }

// Measured on an H200. Four keys in flight, two for each lane, are enough with as many warps as registers allow; more
// cost warps and are slower.
SimtRowsAttr attn::simtRowsFor(ProblemOp problem, const TargetInfo &target) {
  int64_t dim = widthOf(problem);
  bool single = dependsOnHead(problem.getMask()); // a warp has one head
  int64_t lanes = single ? 32 : std::min<int64_t>(llvm::PowerOf2Ceil(dim / 8), 32),
          own = llvm::divideCeil(dim / 8, lanes);
  // Rows of a lane group share loaded keys; each row costs 16 registers for each chunk of columns.
  int64_t most = own == 1 ? 4 : 2, group = groupOf(problem), pack = 1;
  for (int64_t heads = 2; heads <= most; ++heads)
    if (group % heads == 0 && !single)
      pack = heads;
  int64_t queries = std::clamp<int64_t>(most / pack, 1, problem.expectedQueries().value_or(1));
  int64_t rows = pack * queries, keys = std::min<int64_t>(4, problem.expectedKeys().value_or(4));
  int64_t ctasPerSm = rows * own == 1 ? 10 : rows * own == 2 ? 6 : 4; // CTAs of four warps
  auto schedule = SimtRowsAttr::get(problem.getContext(), rows, keys, lanes, /*warps=*/4, ctasPerSm, pack);
  return target.isHost() ? onHost(schedule) : schedule;
}

// Measured on an H200. With one row for each lane group, one key at a time leaves registers for 32 warps and for loads
// in flight. Where rows have to be reloaded for each key, two rows and two keys at a time; a score then takes 0.13 ns,
// and kernels on tiles of a grid take 60 ns for each sequence and head.
SimtRowsAttr attn::simtRowsFor(BackwardOp backward, const TargetInfo &target) {
  ProblemOp problem = backward.getProblemOp();
  std::optional<int64_t> queries = problem.expectedQueries(), keys = problem.expectedKeys();
  int64_t dim = widthOf(problem), lanes = std::min<int64_t>(llvm::PowerOf2Ceil(dim / 8), 32),
          own = llvm::divideCeil(dim / 8, lanes), rows = own == 1 && queries.value_or(1) > 1 ? 2 : 1;
  if (target.isHost())
    return SimtRowsAttr::get(problem.getContext(), rows, /*keys=*/4, /*lanes=*/32, /*warps=*/1, /*ctas_per_sm=*/1);
  bool lean = groupOf(problem) == 1 && problem.getModifiers().empty() && !problem.getQLayout().getPadded() &&
              !problem.getKLayout().getPadded() &&
              llvm::isa<FullMaskAttr>(problem.getMask()); // masks and modifiers take registers
  // Lanes cache two values for each key; strides of dense layouts take registers, too.
  int64_t cached = 2 * llvm::divideCeil(keys.value_or(1), lanes),
          each = llvm::alignTo((problem.getQLayout().isPacked() ? 60 : 72) + cached, 8);
  int64_t most = rows == 2 || own == 2 ? 4 : lean ? 8 : 6, ctasPerSm = std::clamp<int64_t>(65536 / 128 / each, 1, most);
  return SimtRowsAttr::get(problem.getContext(), rows, /*keys=*/rows, lanes, /*warps=*/4, ctasPerSm);
}

namespace {
class SimtRowsSchedule : public Schedule {
public:
  bool owns(mlir::Attribute schedule) const override { return llvm::isa<SimtRowsAttr>(schedule); }

  mlir::Attribute complete(Computation, const TargetInfo &target, mlir::Attribute schedule) const override {
    return target.isHost() ? onHost(llvm::cast<SimtRowsAttr>(schedule)) : schedule;
  }

  mlir::Attribute fallback(Computation, mlir::Attribute schedule) const override {
    auto simt = llvm::cast<SimtRowsAttr>(schedule);
    if (simt.getKeys() > 1)
      return simt.withKeys(simt.getKeys() / 2);
    // Fewer co-resident CTAs, with more registers for each.
    return simt.getCtasPerSm() == 1 ? SimtRowsAttr() : simt.withCtasPerSm(simt.getCtasPerSm() * 3 / 4);
  }

  std::string describe(Computation, mlir::Attribute) const override { return "SIMT rows"; }
};

class SimtRowsForward : public SimtRowsSchedule {
public:
  mlir::Attribute choose(Computation of, const TargetInfo &target, std::string &why) const override {
    return ifKind<SimtRowsAttr>(chooseShort(of.problem, target, why));
  }

  std::optional<std::string> refusal(Computation of, const TargetInfo &, mlir::Attribute schedule) const override {
    ProblemOp problem = of.problem;
    auto simt = llvm::cast<SimtRowsAttr>(schedule);
    if (problem.getTiles())
      return withSchedule("expected a schedule with tiles of a grid for tiles(M), got: ", schedule);
    if (std::optional<std::string> refusal = refusalOfPackedHeads(problem, simt))
      return refusal;
    if (simt.getLanes() != 32 && dependsOnHead(problem.getMask()))
      return withSchedule("expected 32 lanes with a mask that differs between heads, got: ", schedule);
    return std::nullopt;
  }

  void addCandidates(Computation of, const TargetInfo &target, std::vector<mlir::Attribute> &all) const override {
    SimtRowsAttr chosen = simtRowsFor(of.problem, target);
    int64_t pack = chosen.getPackHeads();
    for (int64_t rows : {pack, 2 * pack, 4 * pack})
      for (int64_t keys : {1, 2, 3, 4, 6, 8})
        for (int64_t lanes : {chosen.getLanes() / 2, chosen.getLanes()})
          for (int64_t warps : {4, 8})
            for (int64_t warpsPerSm : {8, 12, 16, 24, 32, 40})
              if (rows <= 16 && lanes)
                all.push_back(SimtRowsAttr::get(of.problem.getContext(), rows, keys, lanes, warps,
                                                std::min<int64_t>(16, warpsPerSm / warps), pack));
  }

  void lower(Computation of, mlir::Attribute schedule, Lowering &lowering) const override {
    lowerPerSequence(of.problem, llvm::cast<SimtRowsAttr>(schedule), lowering);
  }
};

class SimtRowsBackward : public SimtRowsSchedule {
public:
  mlir::Attribute choose(Computation of, const TargetInfo &target, std::string &why) const override {
    return ifKind<SimtRowsAttr>(chooseShort(of.backward, target, why));
  }

  std::optional<std::string> refusal(Computation of, const TargetInfo &, mlir::Attribute schedule) const override {
    if (std::optional<std::string> refusal = refusalOfSequences(of.backward, schedule))
      return refusal;
    if (std::optional<std::string> refusal = attn::refusalOfHeads(of.backward, schedule))
      return refusal;
    if (llvm::cast<SimtRowsAttr>(schedule).getPackHeads() != 1)
      return withSchedule("expected pack_heads = 1 in a backward pass with #tile.simt_rows, got: ", schedule);
    return std::nullopt;
  }

  void lower(Computation of, mlir::Attribute schedule, Lowering &lowering) const override {
    lowerPerSequence(of.backward, llvm::cast<SimtRowsAttr>(schedule), lowering);
  }
};
} // namespace

const Schedule &attn::simtRowsForward() {
  static const SimtRowsForward schedule;
  return schedule;
}

const Schedule &attn::simtRowsBackward() {
  static const SimtRowsBackward schedule;
  return schedule;
}
