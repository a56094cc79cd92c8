// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// `tiled`: forward passes on tiles of a grid for targets `cpu` and `sm_80` (docs/Schedules/README.md).
//
#include "ForwardKernel.h"
#include "Schedules/Common/Registry.h"
#include "Schedules/Common/Rules.h"
#include "attn/Schedules/KeyWalk.h"

using namespace attn;
using namespace attn::tile;

// Measured on an H200 (docs/results). A thread has 255 registers, and the output accumulator takes q_tile * dim_v / (32
// * warps) of them, so wide heads get shorter query tiles. (At 256, 128 x 128 with eight warps is up to a tenth faster
// on long sequences and slower on short ones, and takes 1.4 s to compile.) Two CTAs of four warps hide each other's
// barriers.
//
// In a window a query tile has few KV tiles: twice as many CTAs of half the rows hide each other's prologue and
// epilogue, and compute fewer hidden scores.
//
// A loop for each segment is faster where it fits: mostly by 5 % over a single loop. It does not fit for wide heads
// with three segments, whose loops take 1.5 s to compile, nor around head dim 128 with a full mask, where ptxas runs
// out of registers.
static TiledAttr sizesFor(ProblemOp problem, const TargetInfo &target) {
  auto sizes = [&](int64_t qTile, int64_t kvTile, int64_t warps, int64_t ctasPerSm, bool qInRegisters,
                   bool singleLoop) {
    return TiledAttr::get(problem.getContext(), qTile, kvTile, warps, ctasPerSm, qInRegisters, singleLoop,
                          /*pack_heads=*/1);
  };
  if (target.isHost())
    return sizes(64, 64, 1, 1, false, false).withPackHeads(headsOfListedTile(problem, 64, 64));
  int64_t dimQk = problem.getDimQk(), dimV = problem.getDimV();
  KeyWalk walk(problem.getMask(), MaskScope());
  bool local = walk.isLocal(), small = dimQk <= 64 && dimV <= 64;
  if (small || (local && dimQk <= 128 && dimV <= 128)) // four small CTAs, or two of the usual size
    return sizes(local ? 64 : 128, 64, local ? 2 : 4, local ? 4 : 2, /*qInRegisters=*/small,
                 /*singleLoop=*/local && dimV > 64);
  if (dimV <= 128)
    return sizes(128, dimQk > 192 && target.sharedMemory < 128 * 1024 ? 32 : 64, 4, 2, false,
                 /*singleLoop=*/dimV > 96 && (walk.hasLowerTest() || !walk.growsWithRows()));
  return sizes(64, 64, 4, 2, false, /*singleLoop=*/walk.hasLowerTest());
}

/// Minimum registers of a thread: O, S in float32 and converted, and a few scalars.
static int64_t registersFor(ProblemOp problem, int64_t qTile, int64_t kvTile, int64_t warps, bool qInRegisters) {
  int64_t rows = qTile / warps; // rows of a warp, in 32 threads
  return rows * (2 * problem.getDimV() + 3 * kvTile + (qInRegisters ? problem.getDimQk() : 0)) / 64 + 8;
}

namespace {
class TiledSchedule : public Schedule {
public:
  bool owns(mlir::Attribute schedule) const override { return llvm::isa<TiledAttr>(schedule); }
  bool takesPieces() const override { return true; }

  mlir::Attribute choose(Computation of, const TargetInfo &target, std::string &) const override {
    return target.specializesWarps ? TiledAttr() : sizesFor(of.problem, target);
  }

  mlir::Attribute complete(Computation, const TargetInfo &target, mlir::Attribute schedule) const override {
    auto tiled = llvm::cast<TiledAttr>(schedule);
    return target.isHost() ? tiled.withQInRegisters(false) : tiled; // a CPU has no registers for Q
  }

  std::optional<std::string> refusal(Computation of, const TargetInfo &target,
                                     mlir::Attribute schedule) const override {
    if (target.specializesWarps)
      return withSchedule("expected #tile.warp_specialized for target `" + target.name + "`, got: ", schedule);
    return refusalOfTiles(of.problem, llvm::cast<TiledAttr>(schedule));
  }

  mlir::Attribute fallback(Computation, mlir::Attribute schedule) const override {
    return narrower(llvm::cast<TiledAttr>(schedule));
  }

  void addCandidates(Computation of, const TargetInfo &target, std::vector<mlir::Attribute> &all) const override {
    auto add = [&](int64_t qTile, int64_t kvTile, int64_t warps, int64_t ctasPerSm, bool qInRegisters,
                   bool singleLoop) {
      all.push_back(
          TiledAttr::get(of.problem.getContext(), qTile, kvTile, warps, ctasPerSm, qInRegisters, singleLoop, 1));
    };
    if (target.specializesWarps)
      return;
    if (target.isHost()) {
      for (int64_t qTile : {16, 32, 64, 128})
        for (int64_t kvTile : {16, 32, 64, 128})
          add(qTile, kvTile, /*warps=*/1, /*ctas_per_sm=*/1, false, false);
      return;
    }
    for (int64_t warps : {2, 4, 8})
      for (int64_t qTile : {16 * warps, 32 * warps})
        for (int64_t ctasPerSm : {1, 2, 3, 4})
          for (bool qInRegisters : {false, true})
            for (int64_t kvTile : {32, 48, 64, 80, 96, 128}) {
              int64_t most = std::min<int64_t>(255, 2048 / (warps * ctasPerSm));
              if (qTile > 256 || registersFor(of.problem, qTile, kvTile, warps, qInRegisters) > most)
                continue;
              for (bool singleLoop : {false, true})
                add(qTile, kvTile, warps, ctasPerSm, qInRegisters, singleLoop);
            }
  }

  std::string describe(Computation of, mlir::Attribute schedule) const override {
    return describeTiles(of.problem, llvm::cast<TiledAttr>(schedule));
  }

  void lower(Computation of, mlir::Attribute schedule, Lowering &lowering) const override {
    lowerTiles(of.problem, llvm::cast<TiledAttr>(schedule), lowering);
  }
};
} // namespace

const Schedule &attn::tiled() {
  static const TiledSchedule schedule;
  return schedule;
}
