// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Masks that read arrays of positions: what tiles see follows from what these hold, so kernels
// ahead of attention look at them and list, for each tile of one side, the tiles of the other to visit.
//
#ifndef ATTN_LIB_SCHEDULES_TILELISTKERNELS_H
#define ATTN_LIB_SCHEDULES_TILELISTKERNELS_H

#include "Schedules/Common/ProgramBuilder.h"
#include "Schedules/Common/Workspace.h"
#include "attn/Schedules/KeyWalk.h"

namespace attn {

/// Writes the kernels, before the program, for tiles as the schedule has them. `ofKeys`: key tiles have lists of query
/// tiles. `whole`: block maps whose lists are there, and not their bits (`wholeMaps`).
void writeTileLists(Computation computation, ProgramBuilder &program, llvm::StringRef target,
                    tile::ScheduleInterface schedule, bool ofKeys = false, llvm::ArrayRef<MaskOperand> whole = {});

} // namespace attn

#endif // ATTN_LIB_SCHEDULES_TILELISTKERNELS_H
