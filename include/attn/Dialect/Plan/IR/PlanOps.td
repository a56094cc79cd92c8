// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef PLAN_OPS
#define PLAN_OPS

include "attn/Dialect/Plan/IR/PlanShardings.td"

#endif // PLAN_OPS
