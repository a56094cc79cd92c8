// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Kernels that derive arrays from a mask's arrays: bits of block maps, numbers of trees' nodes.
//
#ifndef ATTN_LIB_SCHEDULES_METADATA_DERIVEDARRAYS_H
#define ATTN_LIB_SCHEDULES_METADATA_DERIVEDARRAYS_H

#include "Schedules/Common/Rules.h"

namespace attn {

/// Writes the kernels of all arrays that kernels with the mask read instead of the caller's. `mapsAsLists`: block maps
/// that are read as lists.
void writeDerivedArrays(Computation computation, Lowering &lowering, llvm::ArrayRef<MaskOperand> mapsAsLists = {});

} // namespace attn

#endif // ATTN_LIB_SCHEDULES_METADATA_DERIVEDARRAYS_H
