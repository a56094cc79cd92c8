// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Gradients of sequences that a block has as a whole. Measured on an H100 (docs/Schedules/streaming.md, 9).
//
#include "ChooseConfig.h"
#include "attn/Conversion/KeyWalk.h"
#include "attn/Conversion/Schedule.h"

using namespace attn;

namespace {
struct Sides {
  int64_t queries, keys;
};
} // namespace

static int64_t widthOf(ProblemOp problem) { return std::max(problem.getDimQk(), problem.getDimV()); }

/// To draw numbers takes registers that other masks' tests have.
static bool isPlain(MaskInterface mask) {
  auto causal = llvm::dyn_cast<CausalMaskAttr>(mask);
  return llvm::isa<FullMaskAttr>(mask) || (causal && causal.getDiagonal() == Diagonal::top_left);
}

/// All pairs in one go: of more than 64 rows and keys, in a tile that these fill, or, where no bounds say that all do, the largest. Second slots for all pay
/// where shared memory has room for them.
static tile::ConfigAttr lookAtOnce(ProblemOp problem, Sides sides, llvm::StringRef target, int64_t arch) {
  constexpr int64_t most = 128;
  if (!problem.getMaxSeqlenQ())
    sides = {most, most};
  int64_t qTile = llvm::alignTo(sides.queries, 16), kvTile = llvm::alignTo(sides.keys, 16); // from 80 on
  if (problem.dropoutInForce() && (!isPlain(problem.getMask()) || (widthOf(problem) > 96 && std::max(qTile, kvTile) > 112)))
    return {};
  auto bytes = [&](int64_t stages, int64_t qStages) {
    int64_t ofQk = llvm::alignTo(problem.getDimQk(), 64) * (qTile * qStages + kvTile * stages), ofV = llvm::alignTo(problem.getDimV(), 64) * (qTile + kvTile) * stages;
    return 2 * (ofQk + ofV + 2 * qTile * most);
  };
  return tile::ConfigAttr::get(problem.getContext(), qTile, /*kv_tile=*/16, /*warps=*/8, /*blocks=*/1)
      .withStages(bytes(2, 2) <= roomForTiles(target, arch) ? 2 : 1, /*qStages=*/2)
      .withLook(kvTile / 16);
}

/// Have warpgroups registers for so many rows at rest? Of wide heads random numbers and tests of masks of many parts leave none, if not each then both. With two blocks of
/// rows a division is as much as many parts.
static bool fits(ProblemOp problem, int64_t rows) {
  int64_t dim = widthOf(problem);
  bool draws = problem.dropoutInForce().has_value(), isSimple = !hasManyTests(problem.getMask()) && !(rows > 192 && dividesRows(problem.getMask()));
  return dim <= 96 || rows <= 144 || (dim <= 112 ? isSimple || !draws : isSimple && !draws);
}

/// Rows at rest, of more than 128 of a side: keys pass in tiles of 64, or of 48 where these fill better.
static tile::ConfigAttr letKeysPass(ProblemOp problem, Sides sides, llvm::StringRef target, int64_t arch) {
  constexpr int64_t least = 144, mostOfThree = 192, most = 256;
  int64_t longer = std::max(sides.queries, sides.keys);
  if (!problem.getMaxSeqlenQ())
    sides = longer > mostOfThree ? Sides{most, most} : Sides{mostOfThree, mostOfThree};
  int64_t qTile = std::max<int64_t>(llvm::alignTo(sides.queries, 16), least);
  int64_t kvTile = sides.keys <= 144 && llvm::alignTo(sides.keys, 48) < llvm::alignTo(sides.keys, 64) ? 48 : 64;
  bool three = qTile <= mostOfThree;
  if (three && widthOf(problem) > 64 && (qTile > least || kvTile > 48)) // between them ptxas finds fewer registers, and it would win little
    qTile = mostOfThree;
  if (!fits(problem, qTile))
    return {};
  int64_t tiles = llvm::divideCeil(sides.keys, kvTile);
  auto config = tile::ConfigAttr::get(problem.getContext(), qTile, kvTile, /*warps=*/three ? 12 : 8, /*blocks=*/1).withLook(tiles);
  // What the next sequence needs comes ahead of it where there is room: O first, then rows, and as many keys as a sequence has.
  const std::pair<int64_t, int64_t> slots[] = {{tiles, 2}, {tiles, 1}, {2, 1}, {1, 1}};
  for (auto [stages, qStages] : slots)
    if (auto early = config.withStages(stages, qStages); bringsOutputs(problem, early))
      return early;
  return config.withStages(bytesAtRest(problem, config.withStages(2, 1), /*outputs=*/false) <= roomForTiles(target, arch) ? 2 : 1, 1);
}

tile::ConfigAttr attn::chooseLookBackward(ProblemOp problem, llvm::StringRef target, int64_t arch) {
  MaskInterface mask = problem.getMask();
  if (target != "sm_90a" || !problem.expectedQueries() || !mayLookBackward(problem) || !mask.operands().empty() || !showsIntervals(mask) || isCostly(problem))
    return {};
  Sides sides = {*problem.expectedQueries(), *problem.expectedKeys()};
  int64_t least = widthOf(problem) <= 64 && !problem.getQLayout().isPacked() ? 80 : 64; // dense rows that a block of five warps has leave little to win
  int64_t longer = std::max(sides.queries, sides.keys);
  if (std::min(sides.queries, sides.keys) <= least || longer > 256)
    return {};
  return longer > 128 ? letKeysPass(problem, sides, target, arch) : lookAtOnce(problem, sides, target, arch);
}
