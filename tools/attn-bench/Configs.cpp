// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Configs.h"
#include "attn/Schedules/Schedule.h"

using namespace attn;
using namespace attn::bench;

std::vector<mlir::Attribute> bench::candidatesOf(ProblemOp problem, const Target &target) {
  TargetInfo info = target.info();
  std::vector<mlir::Attribute> candidates;
  mlir::Attribute chosen = chooseSchedule(problem, info).schedule;
  if (auto both = llvm::dyn_cast<tile::ByLengthAttr>(chosen))
    chosen = both.getLongSequences();
  // Only these have candidates of their own; others compete with all that has tiles.
  if (llvm::isa<tile::SimtRowsAttr, tile::SplitKvAttr>(chosen)) {
    scheduleOf(problem, chosen)->addCandidates(problem, info, candidates);
    return candidates;
  }
  for (const Schedule *schedule : schedulesOf(problem)) {
    std::vector<mlir::Attribute> some;
    schedule->addCandidates(problem, info, some);
    llvm::copy_if(some, std::back_inserter(candidates),
                  [](mlir::Attribute one) { return !llvm::isa<tile::SimtRowsAttr, tile::SplitKvAttr>(one); });
  }
  return candidates;
}

std::string bench::textOf(mlir::Attribute schedule) {
  std::string text;
  llvm::raw_string_ostream(text) << schedule;
  return text;
}
