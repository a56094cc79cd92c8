// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Lowering of schedules with a CTA or a warp for each sequence.
//
#include "PerSequenceKernels.h"
#include "Schedules/Common/Rules.h"
#include "Schedules/Metadata/DerivedArrays.h"
#include "ShortHopperBackward.h"

using namespace attn;
using namespace attn::tile;

/// The kernel's name. Without a limit, also writes the kernels of derived arrays.
static std::string beginPerSequence(Computation computation, Lowering &lowering) {
  std::string name = computation.getName().str();
  if (lowering.limit)
    return freeSymbol(lowering.module, name + "_short");
  writeDerivedArrays(computation, lowering);
  return name;
}

void attn::lowerPerSequence(ProblemOp problem, ScheduleInterface schedule, Lowering &lowering) {
  std::string name = beginPerSequence(problem, lowering);
  mlir::OpBuilder b(problem);
  KernelGrid grid = sequenceGrid(problem, schedule);
  grid.parts = lowering.limit ? 2 : 1;
  KernelOp kernel =
      KernelArguments::ofForward(problem, schedule, /*usesTma=*/false)
          .makeKernel(lowering.program, b, problem.getLoc(), name, lowering.target.generic(), grid, schedule);
  writePerSequenceForward(problem, kernel, schedule, lowering.limit);
}

void attn::lowerPerSequence(BackwardOp backward, ScheduleInterface schedule, Lowering &lowering) {
  std::string name = beginPerSequence(backward, lowering);
  if (warpSpecializationOf(schedule))
    writeShortHopperBackward(backward, lowering.program, name, schedule, *lowering.limit, lowering.classesOfDq);
  else
    writePerSequenceBackward(backward, lowering.program, name, lowering.target.generic(), schedule, lowering.limit,
                             lowering.classesOfDq);
}
