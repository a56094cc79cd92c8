// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Tile sizes of Hopper's forward kernels.
//
#include "ChooseConfig.h"
#include "attn/Conversion/KeyWalk.h"

using namespace attn;

static bool readsBy(ProblemOp problem, ScoreOperand::Axis axis) {
  return llvm::any_of(scoreOperands(problem), [=](const ScoreOperand &array) { return array.has(axis); });
}

bool attn::isCostly(ProblemOp problem) {
  int64_t dim = std::max(problem.getDimQk(), problem.getDimV());
  unsigned many = dim > 64 && dim <= 128 ? 4 : 6; // these lose nothing by one body; others turns, or up to 9 %
  return comparesOf(problem.getMask()) >= many || problem.getModifiers().size() > 1 ||
         readsBy(problem, ScoreOperand::Key) || readsBy(problem, ScoreOperand::Table);
}

/// Of masks that read an entry for each key, the first tiles that have registers for that; null where the usual ones have. Tiles of
/// which most is hidden cost as much as others, so block maps have tiles that blocks are whole numbers of (else the smallest),
/// and so has what sees now this key and now that one. (docs/Schedules/hopper-forward.md)
static tile::ConfigAttr chooseListed(ProblemOp problem, bool isLocal, bool turns) {
  int64_t dim = std::max(problem.getDimQk(), problem.getDimV());
  auto config = [&](int64_t warps, int64_t kvTile, int64_t blocks, int64_t qStages) {
    return tile::ConfigAttr::get(problem.getContext(), 16 * warps, kvTile, warps, blocks)
        .withStages(2, qStages)
        .withOneBody(isCostly(problem) || dim > 192);
  };
  auto small = [&] { return config(4, 64, dim <= 128 ? 2 : 1, 1); };
  if (auto maps = boundingLists(problem.getMask())) {
    auto areWhole = [&](int64_t rows, int64_t keys) {
      return llvm::all_of(*maps, [=](const MaskOperand &map) { return map.lists->q % rows == 0 && map.lists->kv % keys == 0; });
    };
    if (dim <= 64 && areWhole(192, 128))
      return {};
    if (areWhole(128, 128))
      return dim <= 64 ? config(8, 128, 1, 2) : dim <= 128 ? tile::ConfigAttr() : config(8, 64, 1, 1);
    return dim <= 128 || areWhole(64, 64) ? small() : config(8, 48, 1, 1);
  }
  int64_t keyArrays = llvm::count_if(distinctOperands(problem.getMask()),
                                     [](const MaskOperand &array) { return array.shape == OperandShape::PerKey; });
  if (!keyArrays)
    return {};
  bool many = keyArrays >= 4, scattered = hasPredicate(problem.getMask());
  if (dim <= 128 && (scattered || isLocal))
    return small();
  if (dim <= 64) // 64x128 in two blocks is up to 9 % faster, and has three times the lists
    return many ? config(8, 96, 1, 2) : config(12, 96, 1, 2).withOneBody(true).withTurns(turns);
  if (dim <= 128)
    return many ? small() : tile::ConfigAttr();
  if (dim <= 192)
    return many || scattered ? config(8, 64, 1, 1) : tile::ConfigAttr();
  return config(8, scattered ? 48 : 64, 1, 1);
}

// Measured on an H200 (docs/Schedules/hopper-forward.md). Three warpgroups of 64 rows
// hide each other's exponents, which at 64 columns take as long as the products, and
// more so if they take turns; at 128 they have registers for 80 keys only, which pays
// from about 8192 keys on. Not with ALiBi. A second slot for Q has the next tile's
// queries there in time: it pays where all tiles of a grid are alike. At 64, where the
// query tile is longer than the key tile, rows of one tile differ in the tiles they need:
// walking by warpgroup pays where walks are short, and has registers for 96 keys. Where
// all sequences are short, two small blocks hide each other's beginning and end.
tile::ConfigAttr attn::chooseHopper(ProblemOp problem) {
  KeyWalk walk(problem.getMask(), MaskScope());
  int64_t typical = hasSizeClasses(problem) ? 4096 : problem.getTypicalKv().value_or(4096);
  bool costly = isCostly(problem);
  auto config = [&](int64_t warps, int64_t kvTile, bool turns, bool narrow) {
    return tile::ConfigAttr::get(problem.getContext(), 16 * warps, kvTile, warps, /*blocks=*/1)
        .withTurns(turns)
        .withNarrow(narrow)
        .withOneBody(costly);
  };
  int64_t dim = std::max(problem.getDimQk(), problem.getDimV());
  if (hasFewQueries(problem)) {
    int64_t rows = int64_t(*problem.getTypicalQ()) * (problem.getHeads() / problem.getKvHeads());
    int64_t warps = rows <= 64 ? 4 : 8, kvTile = dim <= 128 ? 128 : dim <= 192 ? 96 : 80;
    return config(warps, kvTile, false, false).withSplits(0).withPackHeads(headsToPack(problem, 16 * warps));
  }
  bool packed = problem.getKLayout().isPacked();
  bool peaked = llvm::any_of(problem.getModifiers(), [](ScoreModifierInterface m) { return m.peak().has_value(); });
  bool turns = !peaked && !costly;
  // Two warpgroups have registers to draw random numbers while products run.
  bool drops = problem.dropoutInForce().has_value();
  if (dim <= 64 && drops)
    return config(8, 128, false, false).withStages(2, /*qStages=*/packed && !walk.hidesKeys() ? 1 : 2);
  if (!drops && !readsBy(problem, ScoreOperand::Key))
    if (tile::ConfigAttr listed = chooseListed(problem, walk.isLocal(), turns))
      return listed;
  auto twoBlocks = [&](int64_t kvTile, int64_t qStages) {
    return tile::ConfigAttr::get(problem.getContext(), 64, kvTile, /*warps=*/4, /*blocks=*/2).withStages(2, qStages);
  };
  // Where rows of a tile see few keys, and not the same, most of a larger one is hidden.
  int64_t few = dim <= 64 || dim > 96 ? 768 : 256;
  if (dim <= 128 && !drops && !dependsOnHead(problem.getMask()) && walk.slides() && walk.isShort(few))
    return twoBlocks(64, /*qStages=*/dim <= 64 ? 2 : 1);
  // Beside what is read for each pair, three have registers for 64.
  if (dim <= 64 && readsBy(problem, ScoreOperand::Key))
    return config(12, 64, false, false).withStages(2, /*qStages=*/2);
  if (dim <= 64 && walk.isLocal() && typical > 1024 && !walk.isShort())
    return config(12, 96, turns, false).withStages(2, /*qStages=*/2);
  if (dim <= 64 && walk.hidesKeys() && (typical <= 1024 || walk.isLocal()))
    return config(12, 96, false, /*narrow=*/true).withStages(2, /*qStages=*/walk.isLocal() ? 1 : 2);
  if (dim <= 64)
    return config(12, 128, turns, false).withStages(2, /*qStages=*/packed && !walk.hidesKeys() ? 1 : 2);
  // Bounds say how many rows and keys there are at most: tiles that these fill (docs/Schedules/streaming.md).
  int64_t most = std::max(problem.getBoundQ().value_or(4096), problem.getBoundKv().value_or(4096));
  if (dim <= 128 && most <= 224 && walk.hidesKeys())
    return twoBlocks(64, 2);
  if (dim <= 128 && most <= 192 && !walk.hidesKeys() && !drops) {
    if (most <= 128)
      return config(8, most <= 112 ? 112 : 128, false, false).withStages(2, /*qStages=*/2);
    return most <= 160 ? config(12, 80, false, false).withStages(2, /*qStages=*/1) : twoBlocks(96, 1);
  }
  if (dim <= 128 && typical <= 384 && packed)
    return twoBlocks(64, 2);
  int64_t qStages = dim <= 128 && !walk.hidesKeys() ? 2 : 1;
  if (dim <= 128 && typical >= 8192 && !packed && !walk.isLocal() && !peaked && !drops)
    return config(12, 80, /*turns=*/true, false).withStages(2, qStages);
  // Of wide heads, three bodies take twice as long to compile and are 1 to 2 % faster.
  bool three = walk.hasLowerTest() && problem.getModifiers().empty();
  return config(8, dim <= 128 ? 128 : dim <= 192 ? 96 : walk.isLocal() ? 64 : 80, false, false)
      .withStages(2, qStages)
      .withOneBody(costly || (dim > 128 && (drops || three)));
}
