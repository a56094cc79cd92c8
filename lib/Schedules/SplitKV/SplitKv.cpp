// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// `split_kv`: splits the keys of a query tile among CTAs (docs/Schedules/split_kv.md).
//
#include "CombineKernel.h"
#include "LongLoops.h"
#include "Schedules/Common/Registry.h"
#include "Schedules/Common/Rules.h"
#include "Schedules/Forward/ForwardKernel.h"

using namespace attn;
using namespace attn::tile;

static ScheduleInterface withPackHeads(ScheduleInterface schedule, int64_t heads) {
  if (auto tiled = llvm::dyn_cast<TiledAttr>(schedule))
    return tiled.withPackHeads(heads);
  return llvm::cast<WarpSpecializedAttr>(schedule).withPackHeads(heads);
}

namespace {
class SplitKvSchedule : public Schedule {
public:
  bool owns(mlir::Attribute schedule) const override { return llvm::isa<SplitKvAttr>(schedule); }

  // Combining costs a second kernel and float32 intermediate results, so this schedule is for problems with few queries
  // and many keys, and for masks that show most rows few keys and the first ones all.
  mlir::Attribute choose(Computation of, const TargetInfo &target, std::string &why) const override {
    if (!hasFewQueries(of.problem))
      return chooseForLongLoops(of, target, why);
    why = lengthsOf(of.problem) + ": with few queries and many keys, query tiles alone leave most multiprocessors idle";
    std::string ignored;
    auto tiles = llvm::cast<ScheduleInterface>(inner(target).choose(of, target, ignored));
    return SplitKvAttr::get(of.problem.getContext(), /*splits=*/0, /*least=*/0,
                            withPackHeads(tiles, headsToPack(of.problem, tiles.getQTile())));
  }

  mlir::Attribute complete(Computation of, const TargetInfo &target, mlir::Attribute schedule) const override {
    auto split = llvm::cast<SplitKvAttr>(schedule);
    if (!inner(target).owns(split.getOf()))
      return schedule; // refused
    auto tiles = llvm::cast<ScheduleInterface>(inner(target).complete(of, target, split.getOf()));
    return SplitKvAttr::get(split.getContext(), split.getSplits(), split.getLeast(), tiles);
  }

  std::optional<std::string> refusal(Computation of, const TargetInfo &target,
                                     mlir::Attribute schedule) const override {
    auto split = llvm::cast<SplitKvAttr>(schedule);
    if (const char *why = split.getLeast() ? whyNotSplitLoops(of.problem, split) : nullptr)
      return withSchedule(llvm::Twine("expected no `least` with ") + why + ", got: ", schedule);
    return scheduleOf(of, split.getOf())->refusal(of, target, split.getOf());
  }

  mlir::Attribute fallback(Computation of, mlir::Attribute schedule) const override {
    auto split = llvm::cast<SplitKvAttr>(schedule);
    mlir::Attribute less = scheduleOf(of, split.getOf())->fallback(of, split.getOf());
    return less ? SplitKvAttr::get(split.getContext(), split.getSplits(), split.getLeast(),
                                   llvm::cast<ScheduleInterface>(less))
                : SplitKvAttr();
  }

  void addCandidates(Computation of, const TargetInfo &target, std::vector<mlir::Attribute> &all) const override {
    std::string why;
    auto chosen = llvm::dyn_cast_or_null<SplitKvAttr>(choose(of, target, why));
    if (!chosen)
      return;
    std::vector<mlir::Attribute> tiles;
    inner(target).addCandidates(of, target, tiles);
    for (mlir::Attribute one : tiles) {
      auto schedule = llvm::cast<ScheduleInterface>(one);
      int64_t pack = std::min(schedule.getQTile(), chosen.getPackHeads());
      all.push_back(
          SplitKvAttr::get(chosen.getContext(), chosen.getSplits(), chosen.getLeast(), withPackHeads(schedule, pack)));
    }
  }

  std::string describe(Computation of, mlir::Attribute schedule) const override {
    return describeTiles(of.problem, llvm::cast<SplitKvAttr>(schedule));
  }

  void lower(Computation of, mlir::Attribute schedule, Lowering &lowering) const override {
    ProblemOp problem = of.problem;
    if (auto split = llvm::cast<SplitKvAttr>(schedule); split.getLeast())
      return lowerLongLoops(problem, split, lowering);
    KernelOp kernel = lowerTiles(problem, llvm::cast<SplitKvAttr>(schedule), lowering);
    mlir::OpBuilder b(problem);
    std::string name = freeSymbol(lowering.module, problem.getSymName() + "_combine");
    KernelGrid grid = {problem.getQLayout().isPacked(), int64_t(problem.getHeads())};
    if (mayBeUnsplit(kernel.getSchedule()))
      grid.ifSplit = true, grid.part = 1, grid.parts = 2;
    KernelOp combine = KernelArguments::ofCombine(problem).makeKernel(lowering.program, b, problem.getLoc(), name,
                                                                      lowering.target.generic(), grid,
                                                                      combineSchedule(problem.getContext()));
    writeCombine(problem, combine, kernel.getSoftmaxScale(), lowering.target);
  }

private:
  mlir::Attribute chooseForLongLoops(Computation of, const TargetInfo &target, std::string &why) const {
    if (target.isHost() || !hasLongLoops(of.problem))
      return {};
    std::string ignored;
    auto tiles = llvm::cast<ScheduleInterface>(inner(target).choose(of, target, ignored));
    auto split = SplitKvAttr::get(of.problem.getContext(), /*splits=*/0, /*least=*/8, tiles);
    if (whyNotSplitLoops(of.problem, split))
      return {};
    why = "the first rows see many times the keys of other rows, so several CTAs share their loops";
    return split;
  }

  /// The schedule whose keys are split.
  static const Schedule &inner(const TargetInfo &target) {
    return target.specializesWarps ? warpSpecialized() : tiled();
  }
};
} // namespace

const Schedule &attn::splitKv() {
  static const SplitKvSchedule schedule;
  return schedule;
}
