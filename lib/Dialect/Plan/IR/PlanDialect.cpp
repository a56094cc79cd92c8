// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "attn/Dialect/Plan/IR/Plan.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace attn::plan;

#include "attn/Dialect/Plan/IR/PlanDialect.cpp.inc"
#include "attn/Dialect/Plan/IR/PlanInterfaces.cpp.inc"
#define GET_ATTRDEF_CLASSES
#include "attn/Dialect/Plan/IR/PlanAttrs.cpp.inc"

void PlanDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "attn/Dialect/Plan/IR/PlanAttrs.cpp.inc"
      >();
}

std::optional<std::string> attn::plan::distribute(ShardingInterface sharding, const Sequences &sequences,
                                                  std::vector<Shard> &shards) {
  if (std::optional<std::string> wrong = checkSequences(sequences))
    return wrong;
  if (std::optional<std::string> refused = sharding.distribute(sequences, shards))
    return refused;
  return checkShards(sequences, shards);
}
