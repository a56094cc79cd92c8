// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// KV-tile lists for masks that read per-position arrays: kernels preceding attention evaluate the mask on array ranges
// and list, for each tile of one side, the tiles of the other side to visit.
//
#ifndef ATTN_LIB_METADATA_TILELISTKERNELS_H
#define ATTN_LIB_METADATA_TILELISTKERNELS_H

#include "Schedules/Common/ProgramBuilder.h"
#include "Schedules/Common/Workspace.h"
#include "attn/Schedules/KeyWalk.h"

namespace attn {

/// Writes the list kernels, before the pass, for the schedule's tiles. `ofKeys`: KV tiles have lists of query tiles.
/// `whole`: block maps that are read as lists instead of bits (`wholeMaps`).
void writeTileLists(Computation computation, ProgramBuilder &program, llvm::StringRef target,
                    tile::ScheduleInterface schedule, bool ofKeys = false, llvm::ArrayRef<MaskOperand> whole = {});

} // namespace attn

#endif // ATTN_LIB_METADATA_TILELISTKERNELS_H
