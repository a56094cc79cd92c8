// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef TILE_PASSES
#define TILE_PASSES

include "mlir/Pass/PassBase.td"

def PipelineKv : Pass<"tile-pipeline-kv", "::attn::tile::KernelOp"> {
  let summary = "copy keys and values ahead of the products that read them";
  let description = [{
    As converted, each iteration of a `tile.kv_loop` copies K, waits, multiplies,
    copies V, waits, multiplies. This pass starts the copy of V(j) before the
    product with K(j), and that of K(next) as soon as all warps are done with
    K(j), so that copies run under products and softmax. K's token is carried
    around the loop; the first K is copied before it, together with Q. (`test/Dialect/Tile/Transforms/pipeline-kv.mlir`)
  }];
}

def SplitKvLoop : Pass<"tile-split-kv-loop", "::attn::tile::KernelOp"> {
  let summary = "one loop for each segment of a walk over keys";
  let description = [{
    Turns each segment of a `tile.kv_loop` into an `scf.for` with a copy of the
    body in which `tile.keep` tests only what the segment needs. In segments of
    full tiles it is gone, and `tile.mma_pv` needs no guard. A walk of several
    runs (a mask with holes) becomes one loop over runs around one over tiles
    instead, whose body asks whether its tile is full; and so does a walk of one
    run where the config says `one_body`. (`test/Dialect/Tile/Transforms/split-kv-loop.mlir`)
  }];
  let dependentDialects = ["::mlir::scf::SCFDialect", "::mlir::arith::ArithDialect"];
}

def AllocateShared : Pass<"tile-allocate-shared", "::attn::tile::KernelOp"> {
  let summary = "give places in shared memory their offsets";
  let description = [{
    Places follow each other at multiples of 128 bytes; the kernel's
    `shared_bytes` is their sum. An error names the kernel when it exceeds
    what the chip has. (`test/Dialect/Tile/Transforms/allocate-shared.mlir`)
  }];
  let options = [Option<"limit", "limit", "int64_t", "232448", "bytes of shared memory that a block may use">];
}

def VerifyAsync : Pass<"tile-verify-async", "::attn::tile::KernelOp"> {
  let summary = "check that nothing in flight is touched";
  let description = [{
    Follows every place through the program, around loops too, and reports
    - a place that is read or written while a copy or product into it is in flight,
    - a copy into a place that some warp may still be reading (no wait for a
      copy, which is the block's barrier, since it was last read),
    - a token that is waited for twice, or never.
    (`test/Dialect/Tile/Transforms/verify-async-errors.mlir`)
  }];
}

#endif // TILE_PASSES
