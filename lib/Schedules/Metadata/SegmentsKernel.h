// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef ATTN_LIB_SCHEDULES_METADATA_SEGMENTSKERNEL_H
#define ATTN_LIB_SCHEDULES_METADATA_SEGMENTSKERNEL_H

#include "Schedules/Common/ProgramBuilder.h"
#include "attn/Schedules/Passes.h"

namespace attn {

/// Writes the op's kernel, on a cluster of the largest size, since one CTA reaches only a small part of the memory
/// bandwidth.
void writeSegments(SegmentsOp op, ProgramBuilder &program, const TargetInfo &target, ProblemOp problem = {});

/// Writes the kernel that stores the LSE of tokens that see only the sink, after attention over the op's sequences.
/// `problem` is over the arrays of `segments`, and has a sink and LSE.
void writeSinks(ProblemOp problem, ProgramBuilder &program, SegmentsOp segments, llvm::StringRef target);

} // namespace attn

#endif // ATTN_LIB_SCHEDULES_METADATA_SEGMENTSKERNEL_H
