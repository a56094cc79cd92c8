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
      attn::canonicalizeMask(problem);
  }
};
} // namespace

void attn::canonicalizeMask(ProblemOp problem) {
  MaskInterface given = problem.getMask(), canonical = canonicalMask(given);
  auto module = problem->getParentOfType<mlir::ModuleOp>();
  bool mayBeCalled = module && !module.getOps<ProgramOp>().empty();
  if (canonical != given && mayBeCalled && !problem->hasAttr(givenMaskAttrName))
    problem->setAttr(givenMaskAttrName, given);
  problem.setMaskAttr(canonical);
}
