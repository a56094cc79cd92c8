// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "attn/Dialect/Attn/Transforms/Passes.h"
#include "mlir/IR/BuiltinOps.h"

namespace attn {
#define GEN_PASS_DEF_CANONICALIZEMASKS
#include "attn/Dialect/Attn/Transforms/Passes.h.inc"
} // namespace attn

namespace {
struct CanonicalizeMasksPass : attn::impl::CanonicalizeMasksBase<CanonicalizeMasksPass> {
  using Base::Base;

  void runOnOperation() final {
    for (attn::ProblemOp problem : getOperation().getOps<attn::ProblemOp>())
      problem.setMaskAttr(attn::canonicalMask(problem.getMask()));
  }
};
} // namespace
