// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Block maps come as lists; who asks for a block wants a bit. A kernel ahead of all others makes
// these of those.
//
#ifndef ATTN_LIB_CONVERSION_BLOCKMAPKERNELS_H
#define ATTN_LIB_CONVERSION_BLOCKMAPKERNELS_H

#include "attn/Conversion/AttnToTile.h"

namespace attn {

/// Writes a kernel for each block map of the problem's mask before `program`, which is the problem or its backward pass.
void writeBlockMaps(ProblemOp problem, mlir::Operation *program, llvm::StringRef target);

} // namespace attn

#endif // ATTN_LIB_CONVERSION_BLOCKMAPKERNELS_H
