// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// `warp_specialized` and `single_pass`: forward passes of Hopper (docs/Schedules/warp_specialized.md, single_pass.md).
//
#include "ForwardKernel.h"
#include "Schedules/Choices.h"
#include "Schedules/Common/Registry.h"
#include "attn/Schedules/KeyWalk.h"

using namespace attn;
using namespace attn::tile;

static WarpSpecializedAttr sizes(ProblemOp problem, int64_t warps, int64_t kvTile, int64_t ctasPerSm = 1) {
  return WarpSpecializedAttr::get(problem.getContext(), 16 * warps, kvTile, warps, ctasPerSm);
}

/// For masks that read an entry for each key: the first tile sizes that leave registers for it; null if the usual ones
/// do. A mostly hidden tile costs as much as a full one, so with block maps, blocks are whole numbers of tiles
/// (otherwise the smallest tiles), and so for masks whose visible keys are scattered
/// (docs/Schedules/trials/forward.md).
static WarpSpecializedAttr chooseListed(ProblemOp problem, bool isLocal, bool pingpong) {
  int64_t dim = widthOf(problem);
  auto config = [&](int64_t warps, int64_t kvTile, int64_t ctasPerSm, int64_t qStages) {
    return sizes(problem, warps, kvTile, ctasPerSm).withQStages(qStages).withSingleLoop(isCostly(problem) || dim > 192);
  };
  auto small = [&] { return config(4, 64, dim <= 64 ? 3 : dim <= 128 ? 2 : 1, 1); };
  if (auto maps = boundingLists(problem.getMask())) {
    auto areWhole = [&](int64_t rows, int64_t keys) {
      return llvm::all_of(
          *maps, [=](const MaskOperand &map) { return map.lists->q % rows == 0 && map.lists->kv % keys == 0; });
    };
    if (dim <= 64 && areWhole(192, 128))
      return config(12, 128, 1, 2).withPingpong(pingpong);
    if (areWhole(128, 128))
      return dim <= 128 ? config(8, 128, 1, 2) : config(8, 64, 1, 1);
    return dim <= 128 || areWhole(64, 64) ? small().withPackHeads(headsOfListedTile(problem, 64, 64))
                                          : config(8, 48, 1, 1);
  }
  int64_t keyArrays = llvm::count_if(distinctOperands(problem.getMask()),
                                     [](const MaskOperand &array) { return array.shape == OperandShape::PerKey; });
  if (!keyArrays && dim <= 128 && !readsPositions(problem.getMask()) && mayListTiles(problem)) {
    // A predicate alone: tiles in which its terms are constant. Smaller ones take longer for as many pairs.
    auto part = [&](int64_t rows, int64_t keys) { return partInVisibleTiles(problem.getMask(), rows, keys); };
    double usual = part(192, dim <= 64 ? 128 : 80), medium = part(128, 128);
    if (part(64, 64) < 0.75 * std::min(usual, medium))
      return small();
    return medium < 0.9 * usual ? config(8, 128, 1, 2) : WarpSpecializedAttr();
  }
  if (!keyArrays)
    return {};
  bool many = keyArrays >= 4, scattered = hasPredicate(problem.getMask());
  if (dim <= 128 && (scattered || isLocal))
    return small();
  if (keyArrays == 1 && dim <= 64 && expectedKeysOf(problem) <= 1024)
    return small();
  if (dim <= 64) // smaller tiles are up to 17 % faster, and have three times the lists
    return many ? config(8, 96, 1, 2) : config(12, 96, 1, 2).withSingleLoop(true).withPingpong(pingpong);
  if (dim <= 128)
    return many ? small() : WarpSpecializedAttr();
  if (dim <= 192)
    return many || scattered ? config(8, 64, 1, 1) : WarpSpecializedAttr();
  return config(8, scattered ? 48 : 64, 1, 1);
}

/// For head dims to 64. Three warpgroups of 64 rows hide each other's exponentials, which take as long as the products
/// here. With one CTA for each warpgroup, CTAs also hide each other's prologue and epilogue, and visit no tiles for
/// other rows' sake; with one CTA for all three, K and V tiles are loaded once for all and may be larger, which is
/// faster for long loops.
static WarpSpecializedAttr chooseNarrowHeads(ProblemOp problem, KeyWalk &walk, bool pingpong) {
  bool costly = isCostly(problem), packed = problem.getKLayout().isPacked(),
       drops = problem.dropoutInForce().has_value();
  bool crowded = packed && !walk.hidesKeys(); // then three warpgroups with a single loop and one stage of Q
  int64_t keys = expectedKeysOf(problem), qStages = packed ? 1 : 2;
  auto three = [&](int64_t kvTile, int64_t qStages) {
    return sizes(problem, /*warps=*/4, kvTile, /*ctas_per_sm=*/3).withQStages(qStages).withSingleLoop(costly);
  };
  auto one = [&](int64_t warps, int64_t kvTile) {
    return sizes(problem, warps, kvTile)
        .withQStages(crowded ? 1 : 2)
        .withSingleLoop(costly || (crowded && warps == 12));
  };
  if (drops) // two warpgroups have registers for random bits while products run
    return walk.isLocal() || (walk.hidesKeys() && keys <= 1024) ? three(64, 1) : one(8, 128);
  if (walk.isLocal() && walk.beginsWithLongestRows() && !packed && !costly)
    return sizes(problem, /*warps=*/4, /*kv_tile=*/128, /*ctas_per_sm=*/2).withQStages(qStages); // for their long loops
  if (walk.isLocal())
    return walk.hasFewKeys() ? three(64, qStages) : one(12, 96).withPingpong(pingpong);
  if (readsBy(problem, ScoreOperand::Key)) // beside an array entry for each score, registers suffice for 64 keys
    return three(64, qStages);
  if (!problem.getModifiers().empty() && (!costly || keys <= 4096))
    return costly || packed || keys <= 2048 ? three(64, qStages) : three(80, 1);
  int64_t most = !walk.hidesKeys() ? 512 : packed ? 1024 : 2048;
  return keys <= most ? three(64, walk.hidesKeys() ? qStages : 1) : one(12, 128).withPingpong(pingpong);
}

// Measured on an H200 (docs/Schedules/single_pass.md): packed sequences of up to 256 rows and keys, by max_seqlen. Rows
// are one tile, or two tiles of one CTA; keys are one or two tiles, or a single pass over more. With a causal mask much
// of such a tile is hidden: smaller tiles are faster from 161 keys on, from 145 on at head dims beyond 96 (where 192 x
// 80 lacks registers for its mask), and always at head dims to 64. Null where other schedules are faster.
static ScheduleInterface chooseBounded(ProblemOp problem) {
  int64_t dim = widthOf(problem), rows = problem.getMaxSeqlenQ().value_or(INT64_MAX),
          keys = problem.getMaxSeqlenKv().value_or(INT64_MAX), most = std::max(rows, keys);
  bool full = llvm::isa<FullMaskAttr>(problem.getMask()), causal = llvm::isa<CausalMaskAttr>(problem.getMask());
  if (!mayHaveSinglePass(problem) || problem.getTiles() || dim > 128 || most > 256 ||
      !(full || (causal && dim > 64 && most <= (dim <= 96 ? 160 : 144))))
    return {};
  auto walked = [&](int64_t warps, int64_t kvTile, int64_t qStages) {
    return sizes(problem, warps, kvTile).withQStages(qStages);
  };
  auto single = [&](int64_t warps, int64_t kvTile, int64_t kvTiles, int64_t stages, int64_t qStages) {
    return SinglePassAttr::get(problem.getContext(), 16 * warps, kvTile, kvTiles, warps, /*ctas_per_sm=*/1, stages,
                               qStages,
                               /*single_loop=*/false);
  };
  if (rows > 128 && rows <= 192 && keys <= 192) {
    if (keys <= 80 || (keys > 144 && keys <= 160))
      return walked(12, 80, 1);
    return keys <= 144 ? single(12, 48, 3, 2, 1) : dim <= 64 ? single(12, 48, 4, 1, 1) : single(12, 64, 3, 1, 1);
  }
  if (keys <= 128)
    return walked(8, keys <= 96 ? 96 : keys <= 112 ? 112 : 128, 2);
  if (causal)
    return {};
  if (keys <= 224)
    return keys <= 192 ? single(8, 64, 3, 1, 2) : single(8, 112, 2, 1, 2);
  return keys <= 240 ? single(8, 48, 5, 1, 2) : dim <= 64 ? single(8, 32, 8, 1, 2) : single(8, 64, 4, 1, 2);
}

// Measured on an H200 (docs/Schedules/single_pass.md): with more than 80 rows and keys by max_seqlen, tiles that these
// fill are faster than a CTA of six warps. (Declared in Choices.h; defined here because the sizes decide.)
bool attn::fillTilesOfGrid(ProblemOp problem, const TargetInfo &target, std::string &why) {
  int64_t least = std::min(problem.getMaxSeqlenQ().value_or(0), problem.getMaxSeqlenKv().value_or(0));
  bool wide = widthOf(problem) > (llvm::isa<CausalMaskAttr>(problem.getMask()) ? 96 : 64);
  if (!target.specializesWarps || !wide || least <= 80 || problem.getHeads() != problem.getKvHeads() ||
      !chooseBounded(problem))
    return false;
  why = lengthsOf(problem) + ": a sequence fills a tile";
  return true;
}

/// For few query rows of a kv head, whose keys are split among CTAs. A single warpgroup waits for memory, which is read
/// fastest with three stages of K and V tiles of 16 KB on a multiprocessor (docs/Schedules/trials/split_kv.md). Tests
/// and modifiers that read several entries of a key lack registers for 128 keys, and the two stores of results for 80
/// at head dims beyond 192.
static WarpSpecializedAttr chooseForFewQueries(ProblemOp problem) {
  int64_t dim = widthOf(problem), rows = int64_t(*problem.getExpectedSeqlenQ()) * groupOf(problem);
  MaskInterface mask = problem.getMask();
  bool costly = isCostly(problem);
  if (rows > 64)
    return sizes(problem, /*warps=*/8, dim <= 128 ? 128 : dim <= 192 ? 96 : 64).withSingleLoop(costly);
  bool manyKeys = !costly && !hasPredicate(mask) && !boundingLists(mask) && distinctOperands(mask).size() <= 2;
  if (dim <= 64 && !manyKeys)
    return sizes(problem, /*warps=*/4, /*kv_tile=*/64, /*ctas_per_sm=*/2).withStages(3).withSingleLoop(costly);
  return sizes(problem, /*warps=*/4,
               dim <= 64    ? 128
               : dim <= 128 ? 64
               : dim <= 192 ? 48
                            : 32)
      .withStages(3)
      .withSingleLoop(costly);
}

// Measured on an H200 (docs/Schedules/trials/forward.md). At head dims from 65 to 128 three warpgroups have registers
// for 80 keys only, which pays from about 8192 keys on. A second stage of Q prefetches the next tile's queries: it pays
// where tiles cost the same, or are long. If all sequences are short, two small CTAs hide each other's prologue and
// epilogue.
static ScheduleInterface chooseForHopper(ProblemOp problem) {
  if (hasFewQueries(problem))
    return chooseForFewQueries(problem);
  KeyWalk walk(problem.getMask(), MaskScope());
  int64_t keys = expectedKeysOf(problem), dim = widthOf(problem);
  bool costly = isCostly(problem), packed = problem.getKLayout().isPacked() && !problem.getKLayout().hasPieces();
  bool peaked = llvm::any_of(problem.getModifiers(), [](ScoreModifierInterface m) { return m.peak().has_value(); });
  bool pingpong = !peaked && !costly, drops = problem.dropoutInForce().has_value();
  auto config = [&](int64_t warps, int64_t kvTile) { return sizes(problem, warps, kvTile).withSingleLoop(costly); };
  if (!drops && !readsBy(problem, ScoreOperand::Key))
    if (WarpSpecializedAttr listed = chooseListed(problem, walk.isLocal(), pingpong))
      return listed;
  if (ScheduleInterface bounded = chooseBounded(problem))
    return bounded;
  if (dim <= 64)
    return chooseNarrowHeads(problem, walk, pingpong);
  auto twoCtas = [&](int64_t kvTile, int64_t qStages) {
    return sizes(problem, /*warps=*/4, kvTile, /*ctas_per_sm=*/2).withQStages(qStages);
  };
  // Where rows of a tile see few and different keys, most of a larger tile is hidden.
  if (dim <= 128 && !drops && !dependsOnHead(problem.getMask()) && walk.slides() &&
      walk.hasShortRows(dim > 96 ? 768 : 256))
    return twoCtas(64, /*qStages=*/1);
  // max_seqlen determines tile sizes that sequences fill (docs/Schedules/single_pass.md).
  int64_t most = std::max(problem.getMaxSeqlenQ().value_or(4096), problem.getMaxSeqlenKv().value_or(4096));
  if (dim <= 128 && most <= 224 && walk.hidesKeys())
    return twoCtas(64, 2);
  if (dim <= 128 && most <= 192 && !walk.hidesKeys() && !drops) {
    if (most <= 128)
      return config(8, most <= 112 ? 112 : 128).withQStages(2);
    return most <= 160 ? config(12, 80) : twoCtas(96, 1);
  }
  bool modified = !problem.getModifiers().empty();
  // Small tiles waste less, except for lengths that fill equally many large tiles under a full mask. (Timed at 193 and
  // 256, which `chooseBounded` handles now; 321 to 384 fill three large tiles likewise.)
  bool fillsLarge = dim > 96 && most <= 384 && llvm::alignTo(most, 128) == llvm::alignTo(most, 64) &&
                    !walk.hidesKeys() && !modified && !drops;
  if (dim <= 128 && keys <= 384 && packed && !fillsLarge)
    return twoCtas(64, 2);
  if (dim <= 128 && keys >= 8192 && !packed && !walk.isLocal() && !modified && !drops)
    return config(12, 80)
        .withPingpong(true)
        .withQStages(walk.hidesKeys() ? 1 : 2)
        .withSingleLoop(costly || walk.hidesKeys());
  // For wide heads, two loops take 1.4 times as long to compile and are no faster; three take twice as long and are 1
  // to 2 % faster.
  bool single = !modified && (dim > 192 || walk.hasLowerTest());
  bool oneQ = walk.hidesKeys() && (packed || peaked || keys < 1024);
  // A narrow V leaves registers and shared memory for more keys.
  bool narrowV = problem.getDimV() <= 128 && !modified && !drops;
  return config(8, dim <= 128       ? 128
                   : dim <= 192     ? (narrowV ? 128 : 96)
                   : walk.isLocal() ? 64
                                    : 80)
      .withQStages(dim > 128 || oneQ ? 1 : 2)
      .withSingleLoop(costly || (dim > 128 && (drops || single)));
}

/// Minimum registers of a thread: O, S in float32 and converted, and a few scalars.
static int64_t registersFor(ProblemOp problem, int64_t kvTile) {
  return 16 * (2 * problem.getDimV() + 3 * kvTile) / 64 + 8; // a warp has 16 rows, in 32 threads
}

namespace {
/// Forward schedules with a producer warp.
class HopperForward : public Schedule {
public:
  std::optional<std::string> refusal(Computation of, const TargetInfo &target,
                                     mlir::Attribute schedule) const override {
    if (!target.specializesWarps)
      return withSchedule(
          "expected #tile.tiled for target `" + target.name + "`, which has no warp specialization, got: ", schedule);
    return refusalOfTiles(of.problem, llvm::cast<ScheduleInterface>(schedule));
  }

  void lower(Computation of, mlir::Attribute schedule, Lowering &lowering) const override {
    lowerTiles(of.problem, llvm::cast<ScheduleInterface>(schedule), lowering);
  }
};

class WarpSpecializedSchedule : public HopperForward {
public:
  bool owns(mlir::Attribute schedule) const override { return llvm::isa<WarpSpecializedAttr>(schedule); }
  bool takesPieces() const override { return true; }

  mlir::Attribute choose(Computation of, const TargetInfo &target, std::string &) const override {
    return target.specializesWarps ? ifKind<WarpSpecializedAttr>(chooseForHopper(of.problem)) : mlir::Attribute();
  }

  std::optional<std::string> refusal(Computation of, const TargetInfo &target,
                                     mlir::Attribute schedule) const override {
    if (std::optional<std::string> refusal = HopperForward::refusal(of, target, schedule))
      return refusal;
    auto tiles = llvm::cast<WarpSpecializedAttr>(schedule);
    return refusalOfRegisters(of.problem, tiles, tiles.getKvTile());
  }

  mlir::Attribute fallback(Computation, mlir::Attribute schedule) const override {
    return narrower(llvm::cast<WarpSpecializedAttr>(schedule));
  }

  void addCandidates(Computation of, const TargetInfo &target, std::vector<mlir::Attribute> &all) const override {
    if (!target.specializesWarps)
      return;
    for (auto [warps, ctasPerSm] : {std::pair(4, 1), {4, 2}, {4, 3}, {8, 1}, {12, 1}}) {
      for (int64_t kvTile = 32; kvTile <= 256; kvTile += 16) {
        // AssignRoles distributes the multiprocessor's registers less the producer's.
        int64_t most = std::min<int64_t>(240, (512 / ctasPerSm - 32) / (warps / 4));
        if (registersFor(of.problem, kvTile) > most)
          break;
        for (int64_t stages : {2, 3, 4})
          for (int64_t qStages : {1, 2})
            for (bool pingpong : {false, true})
              if (warps > 4 || !pingpong)
                all.push_back(sizes(of.problem, warps, kvTile, ctasPerSm)
                                  .withStages(stages)
                                  .withQStages(qStages)
                                  .withPingpong(pingpong));
      }
    }
  }

  std::string describe(Computation of, mlir::Attribute schedule) const override {
    return describeTiles(of.problem, llvm::cast<WarpSpecializedAttr>(schedule));
  }
};

class SinglePassSchedule : public HopperForward {
public:
  bool owns(mlir::Attribute schedule) const override { return llvm::isa<SinglePassAttr>(schedule); }

  mlir::Attribute choose(Computation of, const TargetInfo &target, std::string &) const override {
    return target.specializesWarps ? ifKind<SinglePassAttr>(chooseForHopper(of.problem)) : mlir::Attribute();
  }

  std::optional<std::string> refusal(Computation of, const TargetInfo &target,
                                     mlir::Attribute schedule) const override {
    auto single = llvm::cast<SinglePassAttr>(schedule);
    if (!target.specializesWarps || !mayHaveSinglePass(of.problem) || !tilesOfEachSequence(of.problem, single))
      return withSchedule(
          "expected #tile.single_pass only for target `sm_90a`, packed keys and a max_seqlen of two query tiles "
          "at most, without score modifiers, dropout and lists of tiles, got: ",
          schedule);
    if (std::optional<std::string> refusal = HopperForward::refusal(of, target, schedule))
      return refusal;
    return refusalOfRegisters(of.problem, single, single.getKvTile() * single.getKvTiles());
  }

  mlir::Attribute fallback(Computation, mlir::Attribute schedule) const override {
    auto single = llvm::cast<SinglePassAttr>(schedule);
    int64_t keys = single.getKvTile() * single.getKvTiles(); // smaller tiles leave a single pass more registers
    for (int64_t tile : {32, 16})
      if (tile < single.getKvTile() && keys % tile == 0)
        return single.withKvTile(tile).withKvTiles(keys / tile);
    return WarpSpecializedAttr::get(single.getContext(), single.getQTile(), /*kv_tile=*/64, single.getWarps(),
                                    single.getCtasPerSm())
        .withSingleLoop(single.getSingleLoop());
  }

  void addCandidates(Computation of, const TargetInfo &target, std::vector<mlir::Attribute> &all) const override {
    ProblemOp problem = of.problem;
    if (!target.specializesWarps || !mayHaveSinglePass(problem) || !problem.getMaxSeqlenKv())
      return;
    for (int64_t warps : {8, 12})
      for (int64_t kvTile = 16; kvTile <= 128; kvTile += 16) {
        int64_t kvTiles = llvm::divideCeil(*problem.getMaxSeqlenKv(), kvTile),
                most = warps == 12 ? 192 : 256; // keys whose scores fit registers
        if (kvTiles < 2 || kvTile * kvTiles > most || !tilesOfEachSequence(problem, sizes(problem, warps, kvTile)))
          continue;
        for (int64_t stages : {1, 2})
          for (int64_t qStages : {1, 2})
            all.push_back(SinglePassAttr::get(problem.getContext(), 16 * warps, kvTile, kvTiles, warps,
                                              /*ctas_per_sm=*/1, stages, qStages,
                                              /*single_loop=*/false));
      }
  }

  std::string describe(Computation of, mlir::Attribute schedule) const override {
    return describeTiles(of.problem, llvm::cast<SinglePassAttr>(schedule));
  }
};
} // namespace

const Schedule &attn::warpSpecialized() {
  static const WarpSpecializedSchedule schedule;
  return schedule;
}

const Schedule &attn::singlePass() {
  static const SinglePassSchedule schedule;
  return schedule;
}
