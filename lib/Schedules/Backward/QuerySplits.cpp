// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "QuerySplits.h"
#include "Schedules/Common/AttentionBody.h"
#include "attn/Dialect/Metadata/IR/Metadata.h"

using namespace mlir;
using namespace attn;
using namespace attn::tile;

const char *attn::whyNotSplitQ(ProblemOp problem) {
  if (problem.getQLayout().isPacked() || problem.getKLayout().isPacked())
    return "packed layouts";
  if (!mayListTiles(problem) && !distinctOperands(problem.getMask()).empty())
    return "a mask that reads arrays, without lists of tiles";
  return dependsOnQueryHead(problem.getMask()) ? "a mask that differs among query heads" : nullptr;
}

// Loops of more than a thousand queries are worth splitting. Lists of blocks may be of any lengths; a block that all
// rows list has by far the longest loop. With four KV heads or fewer, eight thousand keys have at
// most two KV tiles for each multiprocessor of a large GPU, and under a causal mask the first ones have loops twice as
// long as the average. Wide heads lose more by the order of CTAs (whose rows of dQ should fit in the L2 cache) than two
// KV heads gain, and so do tiles that cost the same. The partial results of a CTA take as long as some four query
// tiles.
int64_t attn::chooseSplitQ(ProblemOp problem) {
  if (whyNotSplitQ(problem) || problem.expectedQueries().value_or(INT32_MAX) <= 1024)
    return 0;
  if (mayListTiles(problem))
    return boundingLists(problem.getMask()) ? 16 : 0;
  int64_t group = problem.getHeads() / problem.getKvHeads();
  KeyWalk walk(problem.getMask(), MaskScope());
  int64_t few = widthOf(problem) > 128 || !walk.growsWithRows() ? 1 : 4;
  return walk.beginsWithLongest() || (group >= 4 && int64_t(problem.getKvHeads()) <= few) ? 16 : 0;
}

// Long lists are anywhere among short ones, and their tiles take longer where other CTAs read the same rows. So a share
// is half of what a CTA would have if all CTAs had equal ones.
static constexpr int64_t listedShares = 2;

namespace {
class SplitsKernel : AttentionBody {
public:
  SplitsKernel(ProblemOp problem, KernelOp kernel) : AttentionBody(problem, kernel) {}

  void build(ScheduleInterface schedule, int64_t least, bool ofDv, StringRef partial) {
    const LoopSplits &names = querySplits(ofDv);
    int64_t kvTile = schedule.getKvTile();
    bool isListed = hasTileLists(problem, schedule);
    Index tiles = math.ceilDiv(extentOf(/*keys=*/true), kvTile),
          heads = math.mul(arg("batch"), int64_t(problem.getKvHeads()));
    if (isListed)
      tiles = math.named(mulRuntime(tiles, std::exchange(heads, 1)), "tiles");
    Index ctas = math.mul(arg("multiprocessors"), schedule.getCtasPerSm() * (isListed ? listedShares : 1)),
          slots = math.mul(arg((partial + "_slots").str()), splitRows / kvTile);
    splitLoops(names, tiles, heads, problem.getHeads() / problem.getKvHeads(), ctas, least, slots, [&](Index tile) {
      if (isListed)
        tile = findHeadOfTile(tile, math.ceilDiv(extentOf(/*keys=*/true), kvTile));
      Index first = math.mul(tile, kvTile);
      findSequence();
      Interval keys = {first, math.min(math.add(first, kvTile), scope.lenK)};
      KeyWalk walk(problem.getMask(), scope);
      return countTiles(math, isListed ? listedWalk(walk, /*ofKeys=*/true, tile, kvTile, /*isUniform=*/false).runs
                                       : walk.queryRuns(math, keys, schedule.getQTile()));
    });
  }

private:
  /// Sets the sequence and head of a tile among those of all heads, and returns its index in the sequence.
  Index findHeadOfTile(Index tile, Index tiles) {
    int64_t kvHeads = problem.getKvHeads();
    Index head = math.named(div(tile, tiles), "sequence_head");
    batch = math.named(div(head, kvHeads), "b");
    h = math.mul(rem(head, kvHeads), int64_t(problem.getHeads()) / kvHeads);
    return math.sub(tile, mulRuntime(head, tiles));
  }
};

class CombineSumsKernel : AttentionBody {
public:
  CombineSumsKernel(ProblemOp problem, KernelOp kernel) : AttentionBody(problem, kernel) {}

  /// `isListed`: tiles are numbered through all heads.
  void build(bool ofV, bool ofDv, int64_t kvTile, bool isListed) {
    OpBuilder::InsertionGuard guard(b);
    const LoopSplits &names = querySplits(ofDv);
    Index cta = Value(IndexOp::block(b, loc));
    int64_t kvHeads = problem.getKvHeads(), slices = llvm::divideCeil(kvTile, combinedRows);
    SplitTiles splitTiles = loadSplitTiles(names, isListed);
    Index heads = isListed ? Index(1) : math.mul(arg("batch"), kvHeads);
    Index item = enterLoop("item", cta, mulRuntime(math.mul(heads, slices), splitTiles.count), arg("blocks"));
    Index slice = math.rem(item, slices);
    SplitTile split = loadSplitTile(splitTiles, math.floorDiv(item, slices));
    if (isListed) {
      Index tiles = tilesOf(/*keys=*/true, kvTile);
      split.head = math.named(div(split.tile, tiles), "sequence_head");
      split.tile = math.sub(split.tile, mulRuntime(split.head, tiles));
    }
    Index row = math.named(math.add(math.mul(split.tile, kvTile), math.mul(slice, combinedRows)), "row");
    int64_t dim = ofV ? problem.getDimV() : problem.getDimQk();
    std::string result = ofV ? "dv" : "dk", partial = "partial_" + result;
    Value from = mul(add(mul(wide(split.slot), wide(kvTile)), wide(math.mul(slice, combinedRows))), wide(dim));
    CombineSumsOp::create(
        b, loc, rowPointer(result, row, math.named(div(split.head, kvHeads), "b"), rem(split.head, kvHeads)),
        args[result + "_row"], AdvanceOp::create(b, loc, args[partial], from), math.value(split.parts),
        math.value(Index(kvTile)), math.value(math.min(math.sub(extentOf(/*keys=*/true), row), combinedRows)), dim);
  }
};
} // namespace

void attn::writeQuerySplits(BackwardOp backward, ProgramBuilder &program, StringRef target,
                            BackwardKernelsAttr kernels) {
  using program::Effect;
  OpBuilder b(backward);
  SmallVector<TensorUse> results, partial;
  auto add = [&](bool ofDv, StringRef buffer) {
    const LoopSplits &names = querySplits(ofDv);
    for (const char *name : {names.list, names.counts, names.split})
      results.push_back({name, Effect::write});
    partial.push_back({buffer});
  };
  add(/*ofDv=*/false, "partial_dk");
  if (hasSplitsOfDv(kernels))
    add(/*ofDv=*/true, "partial_dv");
  ProblemOp problem = backward.getProblemOp();
  std::string name = freeSymbol(backward->getParentOp(), (backward.getSymName() + "_q_splits").str());
  KernelOp kernel = KernelArguments::ofLoopSplits(problem, results, partial, hasTileLists(problem, kernels.getDkdv()))
                        .makeKernelOfOneCta(program, b, backward.getLoc(), name, target);
  SplitsKernel body(problem, kernel);
  body.build(kernels.getDkdv(), kernels.getSplitQ(), /*ofDv=*/false, "partial_dk");
  if (hasSplitsOfDv(kernels))
    body.build(kernels.getDv(), kernels.getSplitQ(), /*ofDv=*/true, "partial_dv");
}

void attn::writeCombineSums(ProblemOp problem, KernelOp kernel, BackwardKernelsAttr kernels) {
  CombineSumsKernel body(problem, kernel);
  bool isListed = hasTileLists(problem, kernels.getDkdv());
  body.build(/*ofV=*/false, /*ofDv=*/false, kernels.getDkdv().getKvTile(), isListed);
  body.build(/*ofV=*/true, hasSplitsOfDv(kernels), (kernels.getDv() ? kernels.getDv() : kernels.getDkdv()).getKvTile(),
             isListed);
}
