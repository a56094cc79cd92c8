// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What lowerings of forward schedules share.
//
#include "../BlockMapKernels.h"
#include "../ForwardKernel.h"
#include "../SequenceKernel.h"
#include "../TileListKernels.h"
#include "Rules.h"
#include "attn/Conversion/KeyWalk.h"

using namespace attn;
using namespace attn::tile;

KernelOp attn::lowerTiles(ProblemOp problem, ScheduleInterface schedule, Lowering &lowering) {
  const TargetInfo &target = lowering.target;
  mlir::OpBuilder b(problem);
  bool lists = hasTileLists(problem, schedule);
  llvm::SmallVector<MaskOperand> whole;
  if (!lowering.limit) { // otherwise the short sequences' kernel reads what is made, too
    if (lists)
      whole = wholeMaps(problem, schedule);
    lowering.writeMade(problem, whole);
  }
  if (lists)
    writeTileLists(problem, lowering.program, target.generic(), schedule, /*ofKeys=*/false, whole);
  KernelGrid grid = {problem.getQLayout().isPacked(), int64_t(problem.getHeads()) / schedule.getPackHeads()};
  if (std::optional<ShortLimit> limit = lowering.limit) {
    writeWorkTileLists(problem, lowering.program, target.generic(), *limit, LongWorkTiles{0, schedule.getQueries()});
    grid.longer = b.getDenseI64ArrayAttr({limit->queries, limit->keys});
    grid.part = 1, grid.parts = 2;
  }
  if (std::optional<int64_t> tiles = tilesOfEachSequence(problem, schedule))
    grid.tiles = b.getI64IntegerAttr(*tiles);
  bool boxes = bool(warpSpecializationOf(schedule));
  KernelOp kernel =
      KernelArguments::ofForward(problem, schedule, boxes, lists, /*slots=*/lowering.limit.has_value(), whole)
          .makeKernel(lowering.program, b, problem.getLoc(), problem.getSymName(), target.name, grid, schedule);
  writeForward(problem, kernel, schedule);
  return kernel;
}

/// The kernel's name; where no other kernel comes before it, what the mask's arrays are made into is written first.
static std::string beginPerSequence(Computation computation, Lowering &lowering) {
  std::string name = computation.getName().str();
  if (lowering.limit)
    return freeSymbol(lowering.module, name + "_short");
  lowering.writeMade(computation);
  return name;
}

void attn::lowerPerSequence(ProblemOp problem, ScheduleInterface schedule, Lowering &lowering) {
  std::string name = beginPerSequence(problem, lowering);
  mlir::OpBuilder b(problem);
  KernelGrid grid = sequenceGrid(problem, schedule);
  grid.parts = lowering.limit ? 2 : 1;
  KernelOp kernel =
      KernelArguments::ofForward(problem, schedule, /*boxes=*/false)
          .makeKernel(lowering.program, b, problem.getLoc(), name, lowering.target.generic(), grid, schedule);
  writeSequenceKernel(problem, kernel, schedule, lowering.limit);
}

void attn::lowerSequences(BackwardOp backward, ScheduleInterface schedule, Lowering &lowering) {
  std::string name = beginPerSequence(backward, lowering);
  if (warpSpecializationOf(schedule))
    writeSinglePassBackward(backward, lowering.program, name, schedule, *lowering.limit, lowering.classesOfDq);
  else
    writeSequenceBackward(backward, lowering.program, name, lowering.target.generic(), schedule, lowering.limit,
                          lowering.classesOfDq);
}
