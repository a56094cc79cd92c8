// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "LongLoops.h"
#include "CombineKernel.h"
#include "Schedules/Common/AttentionBody.h"
#include "Schedules/Common/KernelArguments.h"
#include "Schedules/Forward/ForwardKernel.h"

using namespace mlir;
using namespace attn;
using namespace attn::tile;

bool attn::hasLongLoops(ProblemOp problem) {
  return problem.expectedKeys().value_or(INT32_MAX) > 1024 &&
         KeyWalk(problem.getMask(), MaskScope()).beginsWithLongestRows();
}

const char *attn::whyNotSplitLoops(ProblemOp problem, SplitKvAttr schedule) {
  if (problem.getQLayout().isPacked() || problem.getKLayout().isPacked())
    return "packed layouts";
  if (schedule.getPackHeads() != 1)
    return "packed heads";
  if (mayListTiles(problem))
    return "lists of tiles";
  if (!distinctOperands(problem.getMask()).empty())
    return "a mask that reads arrays";
  return dependsOnHead(problem.getMask()) ? "a mask that differs among heads" : nullptr;
}

namespace {
class KvSplitsKernel : AttentionBody {
public:
  KvSplitsKernel(ProblemOp problem, KernelOp kernel) : AttentionBody(problem, kernel) {}

  void build(SplitKvAttr schedule) {
    int64_t qTile = schedule.getQTile();
    Index tiles = math.ceilDiv(extentOf(/*keys=*/false), qTile),
          heads = math.mul(arg("batch"), int64_t(problem.getHeads())),
          ctas = math.mul(arg("multiprocessors"), schedule.getCtasPerSm()),
          slots = math.floorDiv(math.mul(arg("slots_o_slots"), splitRows), qTile);
    splitLoops(kvSplits(), tiles, heads, /*group=*/1, ctas, schedule.getLeast(), slots, [&](Index tile) {
      Index first = math.mul(tile, qTile);
      findSequence();
      KeyWalk walk(problem.getMask(), scope);
      return countTiles(math,
                        walk.runs(math, {first, math.min(math.add(first, qTile), scope.lenQ)}, schedule.getKvTile()));
    });
  }
};

class CombineLoopsKernel : AttentionBody {
public:
  CombineLoopsKernel(ProblemOp problem, KernelOp kernel)
      : AttentionBody(problem, kernel), rowsAtOnce(kernel.getSchedule().getQTile()) {}

  void build(int64_t qTile, double scale) {
    Index cta = Value(IndexOp::block(b, loc));
    int64_t heads = problem.getHeads(), slices = qTile / rowsAtOnce, dim = problem.getDimV();
    SplitTiles splitTiles = loadSplitTiles(kvSplits(), /*isListed=*/false);
    Index all = math.mul(arg("batch"), heads);
    Index item = enterLoop("item", cta, mulRuntime(math.mul(all, slices), splitTiles.count), arg("blocks"));
    Index slice = math.rem(item, slices), inTile = math.mul(slice, rowsAtOnce);
    SplitTile split = loadSplitTile(splitTiles, math.floorDiv(item, slices));
    Index row = math.named(math.add(math.mul(split.tile, qTile), inTile), "row");
    batch = math.named(div(split.head, heads), "b"), h = math.named(rem(split.head, heads), "h");
    Value from = add(mul(wide(split.slot), wide(qTile)), wide(inTile));
    auto partial = [&](const char *name, int64_t width) -> Value {
      return AdvanceOp::create(b, loc, args[name], mul(from, wide(width)));
    };
    tile::CombineOp::create(
        b, loc, rowPointer("o", row, batch, h), args["o_row"], problem.hasLse() ? lsePointer(row, batch, h) : Value(),
        partial("slots_o", dim), partial("slots_max", 1), partial("slots_sum", 1), math.value(split.parts), wide(qTile),
        math.value(math.min(math.sub(extentOf(/*keys=*/false), row), rowsAtOnce)), dim, APFloat(scale));
  }

private:
  int64_t rowsAtOnce;
};
} // namespace

void attn::lowerLongLoops(ProblemOp problem, SplitKvAttr schedule, Lowering &lowering) {
  OpBuilder b(problem);
  using program::Effect;
  auto nameOf = [&](StringRef suffix) { return freeSymbol(lowering.module, problem.getSymName() + suffix); };
  StringRef target = lowering.target.generic();
  const LoopSplits &names = kvSplits();
  KernelOp splits =
      KernelArguments::ofLoopSplits(
          problem, {{names.list, Effect::write}, {names.counts, Effect::write}, {names.split, Effect::write}},
          {{"slots_o"}}, /*hasTileLists=*/false)
          .makeKernelOfOneCta(lowering.program, b, problem.getLoc(), nameOf("_kv_splits"), target);
  KvSplitsKernel(problem, splits).build(schedule);
  KernelOp kernel = lowerTiles(problem, schedule, lowering);
  KernelGrid all = {/*packed=*/false, int64_t(problem.getHeads())};
  all.part = 1, all.parts = 2;
  all.most = ctasOfListedWorkTiles;
  KernelOp combine = KernelArguments::ofCombineLoops(problem).makeKernel(
      lowering.program, b, problem.getLoc(), nameOf("_combine"), target, all, combineSchedule(problem.getContext()));
  CombineLoopsKernel(problem, combine).build(schedule.getQTile(), kernel.getSoftmaxScale());
}
