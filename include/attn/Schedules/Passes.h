// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef ATTN_SCHEDULES_PASSES_H
#define ATTN_SCHEDULES_PASSES_H

#include "attn/Dialect/Attn/IR/Attn.h"
#include "attn/Dialect/Tile/IR/TargetInfo.h"
#include "attn/Dialect/Tile/IR/Tile.h"
#include "mlir/Pass/Pass.h"

namespace attn {
#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "attn/Schedules/Passes.h.inc"
} // namespace attn

#endif // ATTN_SCHEDULES_PASSES_H
