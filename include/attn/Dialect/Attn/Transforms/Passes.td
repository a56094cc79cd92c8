// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef ATTN_PASSES
#define ATTN_PASSES

include "mlir/Pass/PassBase.td"

def CanonicalizeMasks : Pass<"attn-canonicalize-masks", "::mlir::ModuleOp"> {
  let summary = "give equal masks one form";
  let description = [{
    Replaces the mask of each `attn.problem` by its canonical form, so that masks that
    are the same set become the same kernel, with one entry in the cache, where the following
    rules see it. `not` goes down to leaves; parts that others imply are left out; parts that one mask
    can say are merged (a window and `causal` are one band); the rest has a fixed order.
    Within the affine fragment (no run-time arrays) what implies what is decided by comparing sets,
    unless that takes too long, as with long chunks or strides that differ.
    (`test/Dialect/Attn/Transforms/canonicalize-masks.mlir`)
  }];
}

#endif // ATTN_PASSES
