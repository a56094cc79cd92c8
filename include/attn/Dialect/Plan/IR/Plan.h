// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The `plan` dialect: how several ranks share an attention problem. See PlanDialect.td.
//
#ifndef ATTN_DIALECT_PLAN_IR_PLAN_H
#define ATTN_DIALECT_PLAN_IR_PLAN_H

#include "attn/Dialect/Plan/IR/Shards.h"
#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"

#include "attn/Dialect/Plan/IR/PlanInterfaces.h.inc"

#include "attn/Dialect/Plan/IR/PlanDialect.h.inc"
#include "attn/Dialect/Plan/IR/PlanEnums.h.inc"

#define GET_TYPEDEF_CLASSES
#include "attn/Dialect/Plan/IR/PlanTypes.h.inc"

#define GET_ATTRDEF_CLASSES
#include "attn/Dialect/Plan/IR/PlanAttrs.h.inc"

namespace attn::plan {
/// Are they rows of a kind?
bool isRows(mlir::Type type, Kind kind);

/// The shards of all ranks, checked; otherwise what is wrong.
std::optional<std::string> distribute(ShardingInterface sharding, const Sequences &sequences,
                                      std::vector<Shard> &shards);
} // namespace attn::plan

#define GET_OP_CLASSES
#include "attn/Dialect/Plan/IR/PlanOps.h.inc"

namespace attn::plan {
/// The queries that attend in a step, forward or backward, and the keys that they attend to; none for other steps.
mlir::ValueRange queriesOf(mlir::Operation *step);
mlir::ValueRange keysOf(mlir::Operation *step);
} // namespace attn::plan

#endif // ATTN_DIALECT_PLAN_IR_PLAN_H
