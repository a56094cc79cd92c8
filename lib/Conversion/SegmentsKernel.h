// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef ATTN_LIB_CONVERSION_SEGMENTSKERNEL_H
#define ATTN_LIB_CONVERSION_SEGMENTSKERNEL_H

#include "ProgramBuilder.h"
#include "attn/Conversion/AttnToTile.h"

namespace attn {

/// Replaces the op by its kernel, for clusters of `cluster` blocks.
void writeSegments(SegmentsOp op, ProgramBuilder &program, llvm::StringRef target, int64_t cluster,
                   ProblemOp problem = {});

/// The kernel behind attention over an op's sequences that gives its due to tokens that see the sink alone. `problem`
/// is over the arrays of `segments`, and has a sink and lse.
void writeSinks(ProblemOp problem, ProgramBuilder &program, SegmentsOp segments, llvm::StringRef target);

} // namespace attn

#endif // ATTN_LIB_CONVERSION_SEGMENTSKERNEL_H
