// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef ATTN_DIALECT_ATTN_TRANSFORMS_PASSES_H
#define ATTN_DIALECT_ATTN_TRANSFORMS_PASSES_H

#include "attn/Dialect/Attn/IR/Attn.h"
#include "mlir/Pass/Pass.h"

namespace attn {
#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "attn/Dialect/Attn/Transforms/Passes.h.inc"

/// Gives a problem the canonical form of its mask. Beside programs, the mask that was given stays in the attribute
/// `givenMaskAttrName`: calls give the arrays that it reads.
void canonicalizeMask(ProblemOp problem);
} // namespace attn

#endif // ATTN_DIALECT_ATTN_TRANSFORMS_PASSES_H
