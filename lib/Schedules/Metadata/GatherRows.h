// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef ATTN_LIB_SCHEDULES_METADATA_GATHERROWS_H
#define ATTN_LIB_SCHEDULES_METADATA_GATHERROWS_H

#include "Schedules/Common/ProgramBuilder.h"
#include "attn/Schedules/Passes.h"

namespace attn {

/// Writes the kernel of `attn.gather_rows` and its launch.
void writeGatherRows(GatherRowsOp op, ProgramBuilder &program, const TargetInfo &target);

} // namespace attn

#endif // ATTN_LIB_SCHEDULES_METADATA_GATHERROWS_H
