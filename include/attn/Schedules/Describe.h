// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a caller gives, as plain data: it follows from the problem alone, for any target.
//
#ifndef ATTN_SCHEDULES_DESCRIBE_H
#define ATTN_SCHEDULES_DESCRIBE_H

#include "attn-rt/Program.h"
#include "attn/Dialect/Attn/IR/ProblemTensors.h"

namespace attn {

/// A program without steps: the caller's tensors in the order of `tensorsOf`, what arrays have to hold, and, of a
/// problem with ids, the sizes that follow from theirs (batch, total_q and total_kv).
rt::Program signatureOf(Computation computation);
rt::Program signatureOf(SegmentsOp segments);

} // namespace attn

#endif // ATTN_SCHEDULES_DESCRIBE_H
