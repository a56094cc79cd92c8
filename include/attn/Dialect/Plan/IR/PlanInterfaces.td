// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef PLAN_INTERFACES
#define PLAN_INTERFACES

include "mlir/IR/OpBase.td"

def Plan_ShardingInterface : AttrInterface<"ShardingInterface"> {
  let cppNamespace = "::attn::plan";
  let description = [{
    A rule by which the tokens of sequences are distributed among ranks. All ranks compute the shards of all ranks, from
    lengths that all of them know, so both ends of a message have the same rows.

    Laws, which `--test-sharding-laws` holds against all small shapes: each token is on one rank; padding is in no run;
    runs are the longest possible, and ascend by rows.
  }];
  let methods = [InterfaceMethod<
      [{Computes the shard of each rank. Returns why the rule is not for these sequences, if it is not.}],
      "std::optional<std::string>", "distribute",
      (ins "const ::attn::plan::Sequences &":$sequences, "std::vector<::attn::plan::Shard> &":$shards)>];
}

#endif // PLAN_INTERFACES
