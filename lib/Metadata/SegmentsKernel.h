// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef ATTN_LIB_SCHEDULES_SEGMENTSKERNEL_H
#define ATTN_LIB_SCHEDULES_SEGMENTSKERNEL_H

#include "Schedules/Common/ProgramBuilder.h"
#include "attn/Schedules/AttnToTile.h"

namespace attn {

/// Writes the op's kernel. A cluster has as many blocks as there can be, since one block reads memory at a small part
/// of its bandwidth.
void writeSegments(SegmentsOp op, ProgramBuilder &program, const TargetInfo &target, ProblemOp problem = {});

/// The kernel behind attention over an op's sequences that gives its due to tokens that see the sink alone. `problem`
/// is over the arrays of `segments`, and has a sink and lse.
void writeSinks(ProblemOp problem, ProgramBuilder &program, SegmentsOp segments, llvm::StringRef target);

} // namespace attn

#endif // ATTN_LIB_SCHEDULES_SEGMENTSKERNEL_H
