// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Kernels that number the trees of masks given by parents (`#attn.ancestors`).
//
#ifndef ATTN_LIB_SCHEDULES_METADATA_TREEKERNELS_H
#define ATTN_LIB_SCHEDULES_METADATA_TREEKERNELS_H

#include "Schedules/Common/ProgramBuilder.h"
#include "attn/Schedules/Passes.h"

namespace attn {

/// Writes a kernel for each array of parents in the mask, before the pass.
void writeTrees(Computation computation, ProgramBuilder &program, llvm::StringRef target);

} // namespace attn

#endif // ATTN_LIB_SCHEDULES_METADATA_TREEKERNELS_H
