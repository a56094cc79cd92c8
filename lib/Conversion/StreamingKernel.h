// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef ATTN_LIB_CONVERSION_STREAMINGKERNEL_H
#define ATTN_LIB_CONVERSION_STREAMINGKERNEL_H

#include "KernelArguments.h"

namespace attn {

/// The grid of a kernel of `problem` with a config of lanes.
KernelGrid streamingGrid(ProblemOp problem, tile::ConfigAttr config);

/// Writes the body of `kernel`, which has that grid: the program of one warp, for the
/// query rows of a few heads of one sequence.
void writeStreaming(ProblemOp problem, tile::KernelOp kernel, tile::ConfigAttr config);

} // namespace attn

#endif // ATTN_LIB_CONVERSION_STREAMINGKERNEL_H
