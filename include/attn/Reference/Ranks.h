// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What all ranks of a plan compute together, in double, each from rows that it has or received. Every rank's rows are
// copies, and padding holds 1e9, so that a row that is not where the tables say is seen in the results.
//
#ifndef ATTN_REFERENCE_RANKS_H
#define ATTN_REFERENCE_RANKS_H

#include "attn/Dialect/Plan/Analysis/Tables.h"
#include "attn/Reference/Interpreter.h"

namespace attn::reference {

/// O and LSE by a plan's steps, of tensors as `interpret` of the problem takes them: without a plan they would be the
/// same, up to the order of additions. `sequences` have the lengths that the tensors have. Errors: those of
/// `checkTensors` and of `Tables::compute`; lengths that differ; a plan of gradients.
llvm::Expected<Outputs> interpret(plan::DefOp plan, ProblemOp problem, const plan::CallSequences &sequences,
                                  const Tensors &inputs);

/// dQ, dK and dV, likewise, and gradients of arrays, the sum of all ranks'. Errors also: gradients of sinks, which
/// plans do not have.
llvm::Expected<Tensors> interpret(plan::DefOp plan, BackwardOp backward, const plan::CallSequences &sequences,
                                  const Tensors &inputs);

} // namespace attn::reference

#endif // ATTN_REFERENCE_RANKS_H
