// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Kernels that number the trees of masks that are given by parents (`#attn.ancestors`).
//
#ifndef ATTN_LIB_CONVERSION_TREEKERNELS_H
#define ATTN_LIB_CONVERSION_TREEKERNELS_H

#include "attn/Conversion/AttnToTile.h"

namespace attn {

/// Ahead of `program`, one kernel for each array of parents in the mask.
void writeTrees(ProblemOp problem, mlir::Operation *program, llvm::StringRef target);

} // namespace attn

#endif // ATTN_LIB_CONVERSION_TREEKERNELS_H
