// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Block maps come as lists; who asks for a block wants a bit. A kernel ahead of all others makes
// these of those.
//
#ifndef ATTN_LIB_SCHEDULES_BLOCKMAPKERNELS_H
#define ATTN_LIB_SCHEDULES_BLOCKMAPKERNELS_H

#include "Schedules/Common/ProgramBuilder.h"
#include "attn/Schedules/AttnToTile.h"

namespace attn {

/// Writes a kernel for each block map of the mask, but for `whole` ones, ahead of the pass.
void writeBlockMaps(Computation computation, ProgramBuilder &program, llvm::StringRef target,
                    llvm::ArrayRef<MaskOperand> whole);

/// Block maps whose blocks are whole tiles of a forward pass with lists of tiles, and that every visible pair is in. A
/// tile that is visited is listed, all of it, so no pair needs to be asked about, and the kernel that lists tiles reads
/// the map's own lists.
llvm::SmallVector<MaskOperand> wholeMaps(ProblemOp problem, tile::ScheduleInterface schedule);

} // namespace attn

#endif // ATTN_LIB_SCHEDULES_BLOCKMAPKERNELS_H
