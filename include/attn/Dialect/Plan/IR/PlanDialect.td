// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef PLAN_DIALECT
#define PLAN_DIALECT

include "mlir/IR/OpBase.td"

def Plan_Dialect : Dialect {
  let name = "plan";
  let cppNamespace = "::attn::plan";
  let summary = "how several ranks share an attention problem (context parallelism)";
  let description = [{
    The `plan` dialect says which rank has which tokens, and which steps all ranks take. A *sharding* is a rule for all
    ranks. A *shard* is what one rank has by it: rows, some of which hold tokens, in *runs* of consecutive positions of
    one sequence. A plan (`plan.def`) is text without lengths. From the lengths of a call follows which rows each rank
    sends, receives and attends to (attn/Dialect/Plan/Analysis/Tables.h).
  }];
  let useDefaultAttributePrinterParser = 1;
  let useDefaultTypePrinterParser = 1;
}

#endif // PLAN_DIALECT
