// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef ATTN_DIALECT_PLAN_TRANSFORMS_PASSES_H
#define ATTN_DIALECT_PLAN_TRANSFORMS_PASSES_H

#include "attn/Dialect/Plan/IR/Plan.h"
#include "mlir/Pass/Pass.h"

namespace attn::plan {
#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "attn/Dialect/Plan/Transforms/Passes.h.inc"

/// Runs `plan-make-steps` with these options on one plan.
llvm::LogicalResult makeSteps(DefOp plan, llvm::StringRef options);
/// Options of `plan-make-steps` that differ for so many ranks.
std::vector<std::string> stepsFor(int64_t ranks, int64_t heads);
} // namespace attn::plan

#endif // ATTN_DIALECT_PLAN_TRANSFORMS_PASSES_H
