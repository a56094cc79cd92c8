// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef ATTN_LIB_CONVERSION_FORWARDKERNEL_H
#define ATTN_LIB_CONVERSION_FORWARDKERNEL_H

#include "attn/Conversion/AttnToTile.h"

namespace attn {

/// Writes the body of `kernel`, whose arguments are `KernelArguments`: the program of
/// one block for one query tile of `problem`.
void writeForward(ProblemOp problem, tile::KernelOp kernel, tile::ScheduleInterface schedule);

/// Where the schedule shares keys out: writes the body of the kernel that follows, and
/// merges the parts of each row.
void writeCombine(ProblemOp problem, tile::KernelOp kernel, double scale);

/// The sizes of that kernel.
tile::ScheduleInterface mergeSchedule(mlir::MLIRContext *context);

} // namespace attn

#endif // ATTN_LIB_CONVERSION_FORWARDKERNEL_H
