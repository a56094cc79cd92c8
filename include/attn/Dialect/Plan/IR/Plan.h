// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The `plan` dialect: how several ranks share an attention problem. See PlanDialect.td.
//
#ifndef ATTN_DIALECT_PLAN_IR_PLAN_H
#define ATTN_DIALECT_PLAN_IR_PLAN_H

#include "attn/Dialect/Plan/IR/Shards.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Dialect.h"

#include "attn/Dialect/Plan/IR/PlanInterfaces.h.inc"

#include "attn/Dialect/Plan/IR/PlanDialect.h.inc"

#define GET_ATTRDEF_CLASSES
#include "attn/Dialect/Plan/IR/PlanAttrs.h.inc"

namespace attn::plan {
/// The shards of all ranks, checked; otherwise what is wrong.
std::optional<std::string> distribute(ShardingInterface sharding, const Sequences &sequences,
                                      std::vector<Shard> &shards);
} // namespace attn::plan

#endif // ATTN_DIALECT_PLAN_IR_PLAN_H
