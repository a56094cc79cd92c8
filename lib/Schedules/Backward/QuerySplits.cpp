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
  if (!distinctOperands(problem.getMask()).empty())
    return "a mask that reads arrays";
  if (mayListTiles(problem))
    return "lists of tiles";
  return dependsOnHead(problem.getMask()) ? "a mask that differs among heads" : nullptr;
}

// Loops of more than a thousand queries are worth splitting. With four KV heads or fewer, eight thousand keys have at
// most two KV tiles for each multiprocessor of a large GPU, and under a causal mask the first ones have loops twice as
// long as the average. Wide heads lose more by the order of CTAs (whose rows of dQ should fit in the L2 cache) than two
// KV heads gain, and so do tiles that cost the same. The partial results of a CTA take as long as some four query
// tiles.
int64_t attn::chooseSplitQ(ProblemOp problem) {
  if (whyNotSplitQ(problem) || problem.getMaxSeqlenQ().value_or(INT64_MAX) <= 1024)
    return 0;
  int64_t group = problem.getHeads() / problem.getKvHeads();
  KeyWalk walk(problem.getMask(), MaskScope());
  int64_t few = widthOf(problem) > 128 || !walk.growsWithRows() ? 1 : 4;
  return walk.beginsWithLongest() || (group >= 4 && int64_t(problem.getKvHeads()) <= few) ? 16 : 0;
}

namespace {
class SplitsKernel : AttentionBody {
public:
  SplitsKernel(ProblemOp problem, KernelOp kernel) : AttentionBody(problem, kernel) {}

  void build(ScheduleInterface schedule, int64_t least, bool ofDv, StringRef partial) {
    const QuerySplits &names = querySplits(ofDv);
    int64_t kvTile = schedule.getKvTile();
    Index tiles = math.ceilDiv(extentOf(/*keys=*/true), kvTile),
          heads = math.mul(arg("batch"), int64_t(problem.getKvHeads()));
    auto op = metadata::SplitWalksOp::create(
        b, loc, args[names.list], args[names.counts], args[names.split], math.value(tiles), math.value(heads),
        b.getI64IntegerAttr(problem.getHeads() / problem.getKvHeads()), args["multiprocessors"],
        b.getI64IntegerAttr(least), args[(partial + "_slots").str()]);
    OpBuilder::InsertionGuard guard(b);
    Block &body = op.getBody().emplaceBlock();
    Index tile = Value(body.addArgument(b.getI32Type(), loc));
    b.setInsertionPointToStart(&body);
    Index first = math.mul(tile, kvTile);
    findSequence();
    Interval keys = {first, math.min(math.add(first, kvTile), scope.lenK)};
    KeyWalk walk(problem.getMask(), scope);
    YieldOp::create(b, loc, math.value(countTiles(math, walk.queryRuns(math, keys, schedule.getQTile()))));
  }
};

class CombineSumsKernel : ProblemBody {
public:
  CombineSumsKernel(ProblemOp problem, KernelOp kernel) : ProblemBody(problem, kernel) {}

  void build(bool ofV, bool ofDv, int64_t kvTile) {
    OpBuilder::InsertionGuard guard(b);
    const QuerySplits &names = querySplits(ofDv);
    Index cta = Value(IndexOp::block(b, loc));
    int64_t kvHeads = problem.getKvHeads(), slices = llvm::divideCeil(kvTile, combinedRows);
    Index splitTiles = math.named(number(names.counts, 1), "split_tiles"), slots = number(names.counts, 2);
    Index heads = math.mul(arg("batch"), kvHeads);
    Index item = enterLoop("item", cta, mulRuntime(math.mul(heads, slices), splitTiles), arg("blocks"));
    Index slice = math.rem(item, slices), tile = math.floorDiv(item, slices);
    Index head = math.named(div(tile, splitTiles), "sequence_head"), place = math.mul(rem(tile, splitTiles), 3);
    Index row =
        math.named(math.add(math.mul(number(names.split, place), kvTile), math.mul(slice, combinedRows)), "row");
    Index slot = math.add(mulRuntime(head, slots), number(names.split, math.add(place, 1)));
    int64_t dim = ofV ? problem.getDimV() : problem.getDimQk();
    std::string result = ofV ? "dv" : "dk", partial = "partial_" + result;
    Value from = mul(add(mul(wide(slot), wide(kvTile)), wide(math.mul(slice, combinedRows))), wide(dim));
    CombineSumsOp::create(b, loc, rowPointer(result, row, math.named(div(head, kvHeads), "b"), rem(head, kvHeads)),
                          args[result + "_row"], AdvanceOp::create(b, loc, args[partial], from),
                          math.value(number(names.split, math.add(place, 2))), math.value(Index(kvTile)),
                          math.value(math.min(math.sub(extentOf(/*keys=*/true), row), combinedRows)), dim);
  }

private:
  Index number(StringRef array, Index at) {
    return Value(LoadOp::create(b, loc, args[array], math.value(at), /*uniform=*/true));
  }
};
} // namespace

void attn::writeQuerySplits(BackwardOp backward, ProgramBuilder &program, StringRef target,
                            BackwardKernelsAttr kernels) {
  using program::Effect;
  OpBuilder b(backward);
  SmallVector<TensorUse> results, partial;
  auto add = [&](bool ofDv, StringRef buffer) {
    const QuerySplits &names = querySplits(ofDv);
    for (const char *name : {names.list, names.counts, names.split})
      results.push_back({name, Effect::write});
    partial.push_back({buffer});
  };
  add(/*ofDv=*/false, "partial_dk");
  if (hasSplitsOfDv(kernels))
    add(/*ofDv=*/true, "partial_dv");
  ProblemOp problem = backward.getProblemOp();
  KernelGrid grid;
  grid.cluster = b.getI64IntegerAttr(1);
  auto schedule = AuxiliaryAttr::get(b.getContext(), /*q_tile=*/128, /*kv_tile=*/128, /*warps=*/16, /*ctas_per_sm=*/1);
  std::string name = freeSymbol(backward->getParentOp(), (backward.getSymName() + "_q_splits").str());
  KernelOp kernel = KernelArguments::ofQuerySplits(problem, results, partial)
                        .makeKernel(program, b, backward.getLoc(), name, target, grid, schedule);
  SplitsKernel body(problem, kernel);
  body.build(kernels.getDkdv(), kernels.getSplitQ(), /*ofDv=*/false, "partial_dk");
  if (hasSplitsOfDv(kernels))
    body.build(kernels.getDv(), kernels.getSplitQ(), /*ofDv=*/true, "partial_dv");
}

void attn::writeCombineSums(ProblemOp problem, KernelOp kernel, BackwardKernelsAttr kernels) {
  CombineSumsKernel body(problem, kernel);
  body.build(/*ofV=*/false, /*ofDv=*/false, kernels.getDkdv().getKvTile());
  body.build(/*ofV=*/true, hasSplitsOfDv(kernels), (kernels.getDv() ? kernels.getDv() : kernels.getDkdv()).getKvTile());
}
