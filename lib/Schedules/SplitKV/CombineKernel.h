// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The kernel that combines the results of splits.
//
#ifndef ATTN_LIB_SCHEDULES_SPLITKV_COMBINEKERNEL_H
#define ATTN_LIB_SCHEDULES_SPLITKV_COMBINEKERNEL_H

#include "attn/Schedules/Passes.h"

namespace attn {

/// Writes the body of the kernel that combines the splits of each row.
void writeCombine(ProblemOp problem, tile::KernelOp kernel, double scale, const TargetInfo &target);

/// The sizes of that kernel.
tile::ScheduleInterface combineSchedule(mlir::MLIRContext *context);

} // namespace attn

#endif // ATTN_LIB_SCHEDULES_SPLITKV_COMBINEKERNEL_H
