// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef PROGRAM_PASSES
#define PROGRAM_PASSES

include "mlir/Pass/PassBase.td"

def PlaceBuffers : Pass<"program-place-buffers", "::attn::program::DefOp"> {
  let summary = "lay buffers over each other where their lives do not meet";
  let description = [{
    Gives each `program.buffer` a `place`. A buffer lives from the first step that accesses it to the last; two whose
    lives do not meet may have one place, whose size is that of the longest. A buffer that a repeat touches lives as
    long as the repeat, unless it is defined in its body; a carried value is each of the buffers that it may be; what is
    exchanged lives to its wait. Buffers with long lives choose first. What
    reusable launches leave for others lives from the first step that is not reusable to the end, so that a later call
    can skip them (`attnLaunchReuseMetadata`). (`test/Dialect/Program/Transforms/place-buffers.mlir`)
  }];
}

#endif // PROGRAM_PASSES
