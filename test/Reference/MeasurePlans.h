// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Time and memory of plans, which attn-plan-test prints as JSON.
//
#ifndef ATTN_TEST_REFERENCE_MEASUREPLANS_H
#define ATTN_TEST_REFERENCE_MEASUREPLANS_H

#include "attn-rt/Result.h"
#include "attn/Dialect/Plan/Analysis/Tables.h"
#include "llvm/Support/Error.h"

namespace attn::test {

/// Ends the process if there is an error.
void failIf(llvm::Error error, const llvm::Twine &what);
void failIf(const rt::Error &error, const llvm::Twine &what);

struct MeasuredPlan {
  plan::DefOp plan;
  ProblemOp problem;
  BackwardOp backward; ///< null: none
  const plan::CallSequences &sequences;
  std::string target; ///< of kernels
};

/// How long the tables take, and with a target binding on the rank where it takes longest, without messages.
void printTimes(const MeasuredPlan &of);
/// The memory of values that ranks need, and what the tables say of it, for the rank that needs most.
void printMemory(const MeasuredPlan &of);
/// Milliseconds of each rank's kernels on a GPU, one rank after the other, without messages: the median of 11 runs.
void printRuns(const MeasuredPlan &of);

} // namespace attn::test

#endif // ATTN_TEST_REFERENCE_MEASUREPLANS_H
