// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef ATTN_LIB_SCHEDULES_ARRAYGRADKERNELS_H
#define ATTN_LIB_SCHEDULES_ARRAYGRADKERNELS_H

#include "Schedules/Common/ProgramBuilder.h"
#include "attn/Schedules/AttnToTile.h"

namespace attn {

/// The kernels behind those of a backward pass that compute gradients of arrays (`requires_grad`), one or two for each.
void writeArrayGrads(BackwardOp backward, ProgramBuilder &program, const TargetInfo &target);

} // namespace attn

#endif // ATTN_LIB_SCHEDULES_ARRAYGRADKERNELS_H
