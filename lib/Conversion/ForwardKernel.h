// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef ATTN_LIB_CONVERSION_FORWARDKERNEL_H
#define ATTN_LIB_CONVERSION_FORWARDKERNEL_H

#include "attn/Conversion/AttnToTile.h"

namespace attn {

/// Writes the body of `kernel`, whose arguments are `KernelArguments`: the program of
/// one block for one query tile of `problem`.
void writeForward(ProblemOp problem, tile::KernelOp kernel, tile::ConfigAttr config);

} // namespace attn

#endif // ATTN_LIB_CONVERSION_FORWARDKERNEL_H
