// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef ATTN_DIALECT_PROGRAM_TRANSFORMS_PASSES_H
#define ATTN_DIALECT_PROGRAM_TRANSFORMS_PASSES_H

#include "attn/Dialect/Program/IR/Program.h"
#include "mlir/Pass/Pass.h"

namespace attn::program {
#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "attn/Dialect/Program/Transforms/Passes.h.inc"
} // namespace attn::program

#endif // ATTN_DIALECT_PROGRAM_TRANSFORMS_PASSES_H
