// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The interface of a pass to its caller, as plain data; it depends on the problem only, not on the target.
//
#ifndef ATTN_SCHEDULES_SIGNATURE_H
#define ATTN_SCHEDULES_SIGNATURE_H

#include "attn-rt/Program.h"
#include "attn/Dialect/Attn/IR/ProblemTensors.h"

namespace attn {

/// A program without steps: the caller's tensors in the order of `tensorsOf`, checks of array contents, and, for a
/// problem with ids, the sizes derived from these (batch, total_q and total_kv).
rt::Program signatureOf(Computation computation);
rt::Program signatureOf(SegmentsOp segments);
rt::Program signatureOf(GatherRowsOp rows);
rt::Program signatureOf(ComputationInterface op);
/// Emits an error where the program's calls disagree.
mlir::FailureOr<rt::Program> signatureOf(ProgramOp program);

} // namespace attn

#endif // ATTN_SCHEDULES_SIGNATURE_H
