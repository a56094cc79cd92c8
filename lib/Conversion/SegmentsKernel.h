// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef ATTN_LIB_CONVERSION_SEGMENTSKERNEL_H
#define ATTN_LIB_CONVERSION_SEGMENTSKERNEL_H

#include "attn/Conversion/AttnToTile.h"

namespace attn {

/// Replaces the op by its kernel, for clusters of `cluster` blocks.
void writeSegments(SegmentsOp op, llvm::StringRef target, int64_t cluster);

/// The kernel behind attention over an op's sequences that gives its due to tokens that see the sink alone. `problem`
/// is over the arrays of `segments`, and has a sink and lse.
void writeSinks(ProblemOp problem, SegmentsOp segments, llvm::StringRef target);

} // namespace attn

#endif // ATTN_LIB_CONVERSION_SEGMENTSKERNEL_H
