// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef ATTN_LIB_SCHEDULES_FORWARD_FORWARDKERNEL_H
#define ATTN_LIB_SCHEDULES_FORWARD_FORWARDKERNEL_H

#include "Schedules/Common/Rules.h"

namespace attn {

/// Writes the body of `kernel`, whose arguments are `KernelArguments`: the program of a CTA for a query tile of
/// `problem`. `residues`: in a kernel with residues, which keys each residue of rows sees.
void writeForward(ProblemOp problem, tile::KernelOp kernel, tile::ScheduleInterface schedule,
                  StridedMaskAttr residues = {});

/// Writes the forward kernel, preceded by kernels for derived arrays and tile lists.
tile::KernelOp lowerTiles(ProblemOp problem, tile::ScheduleInterface schedule, Lowering &lowering);

} // namespace attn

#endif // ATTN_LIB_SCHEDULES_FORWARD_FORWARDKERNEL_H
