// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef ATTN_LIB_SCHEDULES_BACKWARD_ARRAYGRADKERNELS_H
#define ATTN_LIB_SCHEDULES_BACKWARD_ARRAYGRADKERNELS_H

#include "Schedules/Common/ProgramBuilder.h"
#include "attn/Schedules/Passes.h"

namespace attn {

/// Writes the kernels that compute gradients of arrays (`requires_grad`), one or two for each array. They run after the
/// other backward kernels.
void writeArrayGrads(BackwardOp backward, ProgramBuilder &program, const TargetInfo &target);

} // namespace attn

#endif // ATTN_LIB_SCHEDULES_BACKWARD_ARRAYGRADKERNELS_H
