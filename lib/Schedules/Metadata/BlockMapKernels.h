// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Block maps are given as lists, while masks test bits. A kernel at the start of the program converts lists to bits.
//
#ifndef ATTN_LIB_SCHEDULES_METADATA_BLOCKMAPKERNELS_H
#define ATTN_LIB_SCHEDULES_METADATA_BLOCKMAPKERNELS_H

#include "Schedules/Common/ProgramBuilder.h"
#include "attn/Schedules/Passes.h"

namespace attn {

/// Writes a kernel for each block map of the mask, except `mapsAsLists`, before the pass; for lists of one width also
/// their offsets, and in a backward pass `mapsAsLists` transposed.
void writeBlockMaps(Computation computation, ProgramBuilder &program, llvm::StringRef target,
                    llvm::ArrayRef<MaskOperand> mapsAsLists);

/// Block maps whose blocks are whole tiles of a forward pass with KV-tile lists, and that contain every visible score.
/// Each visited tile is listed as a whole, so no element tests are needed, and the list kernel reads the map's own
/// lists.
llvm::SmallVector<MaskOperand> mapsReadAsLists(ProblemOp problem, tile::ScheduleInterface schedule);
/// Likewise those of a backward pass: lists of one width, which kernels transpose.
llvm::SmallVector<MaskOperand> mapsReadAsLists(BackwardOp backward, tile::BackwardKernelsAttr kernels);

} // namespace attn

#endif // ATTN_LIB_SCHEDULES_METADATA_BLOCKMAPKERNELS_H
