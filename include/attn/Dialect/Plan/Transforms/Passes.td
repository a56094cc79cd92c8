// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
include "mlir/Pass/PassBase.td"

def PlanMakeSteps : Pass<"plan-make-steps", "::attn::plan::DefOp"> {
  let summary = "write the steps of a plan by a strategy";
  let description = [{
    Fills a `plan.def` without steps.

    - `gather`: each rank sends all of its keys to all others, round by round, and attends to those of one rank after
      the other. Gradients of keys go back the same way.
    - `cast`: the same with the keys that the receiver's queries see.
    - `ring`: keys go from each rank to the next one, as far as some rank on the way sees them. Their gradients go
      along, and home from the last rank that had the keys.

    With a `head-group` of g ranks, g neighbours exchange heads for rows first, as DeepSpeed-Ulysses does, and results
    back in the end; the strategy moves keys from group to group. With all ranks in one group (`head-group=0`) this is
    Ulysses alone.

    (`test/Dialect/Plan/make-steps.mlir`)
  }];
  let options = [Option<"strategy", "strategy", "std::string", "\"cast\"", "gather, cast or ring">,
                 Option<"headGroup", "head-group", "int64_t", "1",
                        "how many neighbours exchange heads for rows; 0: all ranks">];
}
