// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Tile sizes of Hopper's forward kernels.
//
#include "ChooseConfig.h"
#include "attn/Conversion/KeyWalk.h"
#include "attn/Conversion/Schedule.h"
#include "llvm/Support/MathExtras.h"

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

/// How many keys a sequence is said to have.
static int64_t typicalKeys(ProblemOp problem) {
  int64_t typical = hasSizeClasses(problem) ? 4096 : problem.getExpectedSeqlenKv().value_or(4096);
  return std::min<int64_t>(typical, problem.getMaxSeqlenKv().value_or(typical));
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
  auto small = [&] { return config(4, 64, dim <= 64 ? 3 : dim <= 128 ? 2 : 1, 1); };
  if (auto maps = boundingLists(problem.getMask())) {
    auto areWhole = [&](int64_t rows, int64_t keys) {
      return llvm::all_of(*maps, [=](const MaskOperand &map) { return map.lists->q % rows == 0 && map.lists->kv % keys == 0; });
    };
    if (dim <= 64 && areWhole(192, 128))
      return config(12, 128, 1, 2).withTurns(turns);
    if (areWhole(128, 128))
      return dim <= 128 ? config(8, 128, 1, 2) : config(8, 64, 1, 1);
    return dim <= 128 || areWhole(64, 64) ? small() : config(8, 48, 1, 1);
  }
  int64_t keyArrays = llvm::count_if(distinctOperands(problem.getMask()),
                                     [](const MaskOperand &array) { return array.shape == OperandShape::PerKey; });
  if (!keyArrays)
    return {};
  bool many = keyArrays >= 4, scattered = hasPredicate(problem.getMask());
  if (dim <= 128 && (scattered || isLocal))
    return small();
  if (keyArrays == 1 && dim <= 64 && typicalKeys(problem) <= 1024)
    return small();
  if (dim <= 64) // smaller tiles are up to 17 % faster, and have three times the lists
    return many ? config(8, 96, 1, 2) : config(12, 96, 1, 2).withOneBody(true).withTurns(turns);
  if (dim <= 128)
    return many ? small() : tile::ConfigAttr();
  if (dim <= 192)
    return many || scattered ? config(8, 64, 1, 1) : tile::ConfigAttr();
  return config(8, scattered ? 48 : 64, 1, 1);
}

/// Of head dims to 64. Three warpgroups, 64 rows each, hide each other's exponents, which take as long as the products here. With
/// a block for each, they hide each other's beginnings and ends as well, and walk no tiles that only others need; with one for all,
/// tiles of K and V are brought once for all, and may be larger, which long walks are the faster for.
static tile::ConfigAttr chooseNarrowHeads(ProblemOp problem, KeyWalk &walk, bool turns) {
  bool costly = isCostly(problem), packed = problem.getKLayout().isPacked(), drops = problem.dropoutInForce().has_value();
  bool crowded = packed && !walk.hidesKeys(); // three warpgroups with one body, then, and one slot for Q
  int64_t typical = typicalKeys(problem), qStages = packed ? 1 : 2;
  auto three = [&](int64_t kvTile, int64_t qStages) {
    return tile::ConfigAttr::get(problem.getContext(), 64, kvTile, /*warps=*/4, /*blocks=*/3)
        .withStages(2, qStages)
        .withOneBody(costly);
  };
  auto one = [&](int64_t warps, int64_t kvTile) {
    return tile::ConfigAttr::get(problem.getContext(), 16 * warps, kvTile, warps, /*blocks=*/1)
        .withStages(2, /*qStages=*/crowded ? 1 : 2)
        .withOneBody(costly || (crowded && warps == 12));
  };
  if (drops) // two warpgroups have registers to draw random numbers while products run
    return walk.isLocal() || (walk.hidesKeys() && typical <= 1024) ? three(64, 1) : one(8, 128);
  if (walk.isLocal()) // what is not short may have more than one run: sinks
    return walk.isShort(INT64_MAX) && !walk.isShort() ? one(12, 96).withTurns(turns) : three(64, qStages);
  if (readsBy(problem, ScoreOperand::Key)) // beside what is read for each pair, there are registers for 64 keys
    return three(64, qStages);
  if (!problem.getModifiers().empty() && (!costly || typical <= 4096))
    return costly || packed || typical <= 2048 ? three(64, qStages) : three(80, 1);
  int64_t most = !walk.hidesKeys() ? 512 : packed ? 1024 : 2048;
  return typical <= most ? three(64, walk.hidesKeys() ? qStages : 1) : one(12, 128).withTurns(turns);
}

// Measured on an H200 (docs/Schedules/streaming.md): a sequence's rows are one tile, or two that look at the same keys, and its keys one or two tiles, or as many
// as are looked at in one go. Under a causal mask much of such a tile is hidden: from 161 keys on smaller ones are faster, at head dims beyond 96, where
// 192 x 80 finds no registers for its tests, from 145 on, and of head dims to 64 all are.
tile::ConfigAttr attn::chooseBounded(ProblemOp problem) {
  int64_t dim = std::max(problem.getDimQk(), problem.getDimV()), rows = problem.getMaxSeqlenQ().value_or(INT64_MAX),
          keys = problem.getMaxSeqlenKv().value_or(INT64_MAX);
  bool full = llvm::isa<FullMaskAttr>(problem.getMask()), causal = llvm::isa<CausalMaskAttr>(problem.getMask());
  int64_t most = std::max(rows, keys);
  if (!mayLook(problem) || problem.getTiles() || dim > 128 || most > 256 || !(full || (causal && dim > 64 && most <= (dim <= 96 ? 160 : 144))))
    return {};
  auto config = [&](int64_t warps, int64_t kvTile, int64_t stages, int64_t qStages, int64_t look) {
    return tile::ConfigAttr::get(problem.getContext(), 16 * warps, kvTile, warps, /*blocks=*/1).withStages(stages, qStages).withLook(look);
  };
  if (rows > 128 && rows <= 192 && keys <= 192) {
    if (keys <= 80 || (keys > 144 && keys <= 160))
      return config(12, 80, 2, 1, 1);
    return keys <= 144 ? config(12, 48, 2, 1, 3) : dim <= 64 ? config(12, 48, 1, 1, 4) : config(12, 64, 1, 1, 3);
  }
  if (keys <= 128)
    return config(8, keys <= 96 ? 96 : keys <= 112 ? 112 : 128, 2, 2, 1);
  if (causal)
    return {};
  if (keys <= 224)
    return keys <= 192 ? config(8, 64, 1, 2, 3) : config(8, 112, 1, 2, 2);
  return keys <= 240 ? config(8, 48, 1, 2, 5) : dim <= 64 ? config(8, 32, 1, 2, 8) : config(8, 64, 1, 2, 4);
}

// Measured on an H200 (docs/Schedules/hopper-forward.md). At head dims from 65 to 128 three warpgroups have registers for 80
// keys only, which pays from about 8192 keys on. A second slot for Q has the next tile's queries there in
// time: it pays where tiles of a grid are alike, or long. Where all sequences are short, two small blocks hide each other's
// beginning and end.
tile::ConfigAttr attn::chooseHopper(ProblemOp problem) {
  KeyWalk walk(problem.getMask(), MaskScope());
  int64_t typical = typicalKeys(problem);
  bool costly = isCostly(problem);
  auto config = [&](int64_t warps, int64_t kvTile) {
    return tile::ConfigAttr::get(problem.getContext(), 16 * warps, kvTile, warps, /*blocks=*/1).withOneBody(costly);
  };
  int64_t dim = std::max(problem.getDimQk(), problem.getDimV());
  if (hasFewQueries(problem)) {
    int64_t rows = int64_t(*problem.getExpectedSeqlenQ()) * (problem.getHeads() / problem.getKvHeads());
    int64_t warps = rows <= 64 ? 4 : 8, kvTile = dim <= 128 ? 128 : dim <= 192 ? 96 : 80;
    return config(warps, kvTile).withSplits(0).withPackHeads(headsToPack(problem, 16 * warps));
  }
  bool packed = problem.getKLayout().isPacked();
  bool peaked = llvm::any_of(problem.getModifiers(), [](ScoreModifierInterface m) { return m.peak().has_value(); });
  bool turns = !peaked && !costly;
  bool drops = problem.dropoutInForce().has_value();
  if (!drops && !readsBy(problem, ScoreOperand::Key))
    if (tile::ConfigAttr listed = chooseListed(problem, walk.isLocal(), turns))
      return listed;
  if (tile::ConfigAttr bounded = chooseBounded(problem))
    return bounded;
  if (dim <= 64)
    return chooseNarrowHeads(problem, walk, turns);
  auto twoBlocks = [&](int64_t kvTile, int64_t qStages) {
    return tile::ConfigAttr::get(problem.getContext(), 64, kvTile, /*warps=*/4, /*blocks=*/2).withStages(2, qStages);
  };
  // Where rows of a tile see few keys, and not the same, most of a larger one is hidden.
  if (dim <= 128 && !drops && !dependsOnHead(problem.getMask()) && walk.slides() && walk.isShort(dim > 96 ? 768 : 256))
    return twoBlocks(64, /*qStages=*/1);
  // Bounds say how many rows and keys there are at most: tiles that these fill (docs/Schedules/streaming.md).
  int64_t most = std::max(problem.getMaxSeqlenQ().value_or(4096), problem.getMaxSeqlenKv().value_or(4096));
  if (dim <= 128 && most <= 224 && walk.hidesKeys())
    return twoBlocks(64, 2);
  if (dim <= 128 && most <= 192 && !walk.hidesKeys() && !drops) {
    if (most <= 128)
      return config(8, most <= 112 ? 112 : 128).withStages(2, /*qStages=*/2);
    return most <= 160 ? config(12, 80) : twoBlocks(96, 1);
  }
  bool modified = !problem.getModifiers().empty();
  // Small tiles waste less, but for bounds that fill as many large ones, where all is seen. (Timed at 193 and 256, which are
  // `chooseBounded`'s since; 321 to 384 fill three likewise.)
  bool fillsLarge = dim > 96 && most <= 384 && llvm::alignTo(most, 128) == llvm::alignTo(most, 64) && !walk.hidesKeys() && !modified && !drops;
  if (dim <= 128 && typical <= 384 && packed && !fillsLarge)
    return twoBlocks(64, 2);
  if (dim <= 128 && typical >= 8192 && !packed && !walk.isLocal() && !modified && !drops)
    return config(12, 80).withTurns(true).withStages(2, walk.hidesKeys() ? 1 : 2).withOneBody(costly || walk.hidesKeys());
  // Of wide heads, two bodies take 1.4 times as long to compile and are no faster, three twice and 1 to 2 % faster.
  bool one = !modified && (dim > 192 || walk.hasLowerTest());
  bool oneQ = walk.hidesKeys() && (packed || peaked || typical < 1024);
  return config(8, dim <= 128 ? 128 : dim <= 192 ? 96 : walk.isLocal() ? 64 : 80)
      .withStages(2, /*qStages=*/dim > 128 || oneQ ? 1 : 2)
      .withOneBody(costly || (dim > 128 && (drops || one)));
}
