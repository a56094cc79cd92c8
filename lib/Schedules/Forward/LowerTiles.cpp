// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Lowering of forward schedules on tiles: kernels for derived arrays and tile lists, and the forward kernel.
//
#include "ForwardKernel.h"
#include "Schedules/Common/Rules.h"
#include "Schedules/Metadata/BlockMapKernels.h"
#include "Schedules/Metadata/DerivedArrays.h"
#include "Schedules/Metadata/TileListKernels.h"
#include "attn/Schedules/KeyWalk.h"

using namespace attn;
using namespace attn::tile;

KernelOp attn::lowerTiles(ProblemOp problem, ScheduleInterface schedule, Lowering &lowering) {
  const TargetInfo &target = lowering.target;
  mlir::OpBuilder b(problem);
  bool listsTiles = hasTileLists(problem, schedule);
  llvm::SmallVector<MaskOperand> mapsAsLists;
  if (!lowering.limit) { // otherwise the kernel of short sequences reads the derived arrays, too
    if (listsTiles)
      mapsAsLists = mapsReadAsLists(problem, schedule);
    writeDerivedArrays(problem, lowering, mapsAsLists);
  }
  if (listsTiles)
    writeTileLists(problem, lowering.program, target.generic(), inPositions(schedule, lowering.rowStride()),
                   /*ofKeys=*/false, mapsAsLists);
  KernelGrid grid = {problem.getQLayout().isPacked(),
                     int64_t(problem.getHeads()) / schedule.getPackHeads() * lowering.rowStride()};
  grid.residues = lowering.rowStride();
  if (std::optional<ShortLimit> limit = lowering.limit) {
    writeWorkTileLists(problem, lowering.program, target.generic(), *limit, LongWorkTiles{0, schedule.getQueries()});
    grid.longer = b.getDenseI64ArrayAttr({limit->queries, limit->keys});
    grid.part = 1, grid.parts = 2;
  }
  if (std::optional<int64_t> tiles = tilesOfEachSequence(problem, schedule))
    grid.tiles = b.getI64IntegerAttr(*tiles);
  grid.splitsLoops = schedule.getLeastKvTiles() > 0;
  if (grid.splitsLoops || mayBeUnsplit(schedule)) // the combine kernel writes tiles that several CTAs share, or all
    grid.part = 0, grid.parts = 2;
  bool usesTma = bool(warpSpecializationOf(schedule));
  KernelOp kernel =
      KernelArguments::ofForward(problem, schedule, usesTma, listsTiles, /*hasWorkTileList=*/lowering.limit.has_value(),
                                 mapsAsLists, lowering.rowStride())
          .makeKernel(lowering.program, b, problem.getLoc(), problem.getSymName(), target.name, grid, schedule);
  writeForward(problem, kernel, schedule, lowering.residues);
  return kernel;
}
