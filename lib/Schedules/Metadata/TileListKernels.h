// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// KV-tile lists for masks that read per-position arrays: kernels preceding attention evaluate the mask on array ranges
// and list, for each query tile, the KV tiles to visit (or for each KV tile, the query tiles).
//
#ifndef ATTN_LIB_SCHEDULES_METADATA_TILELISTKERNELS_H
#define ATTN_LIB_SCHEDULES_METADATA_TILELISTKERNELS_H

#include "Schedules/Common/ProgramBuilder.h"
#include "Schedules/Common/Workspace.h"
#include "attn/Schedules/KeyWalk.h"

namespace attn {

/// Writes the list kernels, before the pass, for the schedule's tiles. `ofKeys`: KV tiles have lists of query tiles.
/// `mapsAsLists`: block maps that are read as lists instead of bits (`mapsReadAsLists`).
void writeTileLists(Computation computation, ProgramBuilder &program, llvm::StringRef target,
                    tile::ScheduleInterface schedule, bool ofKeys = false,
                    llvm::ArrayRef<MaskOperand> mapsAsLists = {});

} // namespace attn

#endif // ATTN_LIB_SCHEDULES_METADATA_TILELISTKERNELS_H
