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
    around the loop; the first K is copied before it, together with Q. With `by_sequence`, where
    one tile has all keys as a rule, Q, K and V are copied together, and the tokens of both are
    carried. Kernels for other targets than sm_80 are left alone. (`test/Dialect/Tile/Transforms/pipeline-kv.mlir`)
  }];
}

def Persist : Pass<"tile-persist", "::attn::tile::KernelOp"> {
  let summary = "a launch as wide as the chip, and not as the grid";
  let description = [{
    Wraps the program (all but its places) into `tile.persistent_loop`, whose block
    number takes the place of `tile.index block`. What a block does at the
    beginning and at the end of a query tile can then run beside what it does for
    the one before or after. (`test/Dialect/Tile/Transforms/persist.mlir`)
  }];
}

def AssignRoles : Pass<"tile-assign-roles", "::attn::tile::KernelOp"> {
  let summary = "one warp brings tiles, the others compute";
  let description = [{
    Splits `tile.persistent_loop` into `tile.roles`. The producer keeps scalars, loops and
    copies; a place that was copied into becomes a ring that it fills as far ahead
    as there are stages. The consumer takes a tile where it used to wait for a
    copy, and releases it behind the last product that reads it. Scalars that
    follow from a block's number are worked out by the producer, which is ahead,
    and sent: consumers wait for no memory and divide no integers. Of masks of many parts, that
    are the bounds of the walk, and none of the lists that these are made of: beyond 100 numbers they
    are made ahead of a packed batch's branch, and the producer has 32 registers more if the consumers'
    fragments leave them 96 for all else. What a backward pass adds up in memory gets a role of its own, the adder; with
    `dq_columns` in the schedule, so does the product that is added up, a block of 64 rows at a time.
    Of a walk with `own` bounds, consumers have those: in steps outside of them they give back what was brought, and put
    zeros where others read; all other roles walk along all of it. (`test/Dialect/Tile/Transforms/assign-roles.mlir`,
    `test/Dialect/Tile/Transforms/own-steps.mlir`, `test/Conversion/odd-masks.mlir`)
  }];
}

def ReloadWork : Pass<"tile-reload-work", "::attn::tile::KernelOp"> {
  let summary = "what consumers want behind their loop is read from the message again";
  let description = [{
    Where key tiles are at rest, the loop has no register to spare: accumulators of dK and dV take half of
    them. Nor has it where fragments leave less than 40, as those of dQ with 256 columns. Words of the message that are
    used behind the loop become `tile.reload_work` there, and what follows from them is worked out anew.
    (`test/Dialect/Tile/Transforms/reload-work.mlir`)
  }];
}

def OverlapProducts : Pass<"tile-overlap-products", "::attn::tile::KernelOp"> {
  let summary = "starts the product with V of one key tile together with the scores of the next";
  let description = [{
    Turns the consumer's `tile.kv_loop` by half an iteration: the product with
    K(j) and that of P(j-1) with V(j-1) are started together; then the scores of tile j
    are weighed (`tile.softmax_convert`), while other warpgroups multiply. Where scores are rising,
    `tile.online_softmax` is applied to them while the second product runs. The first tile's
    scores come before the loop, the last tile's product with V behind it.
    (`test/Dialect/Tile/Transforms/overlap-products.mlir`)
  }];
  let dependentDialects = ["::mlir::scf::SCFDialect", "::mlir::arith::ArithDialect"];
}

def OverlapGradients : Pass<"tile-overlap-gradients", "::attn::tile::KernelOp"> {
  let summary = "starts the product of dK of one query tile together with the scores of the next";
  let description = [{
    The same turn for the walk of a key tile over query tiles, where a reducer makes dQ: a step ends with the scores of
    the next tile and dK's product of this one, and exponentials run under the latter. Its query tile is passed
    (`tile.consumer_advance`), and given back when the next step needs the registers that it multiplies. What warpgroups
    read of K and V is found once (`tile.warpgroup_rows`). What others do with dS is told behind both products
    (`tile.producer_commit`). Where the ring of keys has a slot for the next tile's, values are taken when the first
    scores are under way, and a ring of one slot gets it back in the last step (`tile.consumer_release`). Other
    backward passes are left alone. (`test/Dialect/Tile/Transforms/overlap-gradients.mlir`,
    `test/Dialect/Tile/Transforms/own-steps.mlir`)
  }];
  let dependentDialects = ["::mlir::scf::SCFDialect", "::mlir::arith::ArithDialect"];
}

def FuseModify : Pass<"tile-fuse-modify", "::attn::tile::KernelOp"> {
  let summary = "scores are modified where they are exponentiated";
  let description = [{
    A `tile.modify` that is the last to touch the scores before `tile.softmax_convert` becomes a
    region of that: a factor or a sum then joins the instruction that the exponent
    takes anyway, and the first multiplications need not be over before the first
    exponentials. Not where the mask's test lies between: these tiles are few, as is
    the first, and keep only the formula for all scores, which is less code.
    (`test/Dialect/Tile/Transforms/fuse-modify.mlir`)
  }];
}
def SplitKvLoop : Pass<"tile-split-kv-loop", "::attn::tile::KernelOp"> {
  let summary = "one loop for each segment of a walk over keys";
  let description = [{
    Turns each segment of a `tile.kv_loop` into an `scf.for` with a copy of the
    body in which `tile.apply_mask` tests only what the segment needs. In segments of
    full tiles it is gone, and `tile.mma_ab` needs no guard. A walk of several
    runs (a mask with holes) becomes one loop over runs around one over tiles
    instead, whose body asks whether its tile is full; and so does a walk of one
    run where the schedule says `single_loop`. (`test/Dialect/Tile/Transforms/split-kv-loop.mlir`)
  }];
  let dependentDialects = ["::mlir::scf::SCFDialect", "::mlir::arith::ArithDialect"];
}

def ReloadInSteps : Pass<"tile-reload-in-steps", "::attn::tile::KernelOp"> {
  let summary = "what a step of a full loop wants of the message is read again in each step";
  let description = [{
    Beside a reducer, those that compute have 208 registers, and accumulators, scores and what ptxas keeps for itself
    take 200. Words of the message that a step needs, and the loop's bounds do not, become `tile.reload_work` where they
    are wanted. (`test/Dialect/Tile/Transforms/reload-in-steps.mlir`)
  }];
}

def AllocateShared : Pass<"tile-allocate-shared", "::attn::tile::KernelOp"> {
  let summary = "give places in shared memory their offsets";
  let description = [{
    Places follow each other at multiples of 128 bytes, rings, whose tiles are
    swizzled by address bits, of 1024; barriers of rings come last. Tiles that are never
    needed at the same time lie in the same bytes: all that is done to one in its block
    comes before what is done to the other. The kernel's
    `shared_bytes` is their sum. An error names the kernel when it exceeds
    what the chip has. (`test/Dialect/Tile/Transforms/allocate-shared.mlir`)
  }];
  let options = [Option<"limit", "limit", "int64_t", "232448", "bytes of shared memory that a block may use">];
}

def VerifyAsync : Pass<"tile-verify-async", "::attn::tile::KernelOp"> {
  let summary = "check that nothing in flight is touched";
  let description = [{
    Follows every place through the program, around loops too, by what ops say of themselves (`TileOpInterface`), and
    reports
    - a place that is read or written while a copy or product into it is in flight,
    - a copy into a place that some warp may still be reading (no wait for a
      copy, which is the block's barrier, since it was last read),
    - a token that is waited for twice, or never,
    - a tile of a ring that is read after its release, released while a product
      reads it, taken while the one before is not released or passed, never released, or
      taken or released in one of two branches only;
    - a tile that is passed before the one passed last is released;
    - what is put into a ring and not published, or put twice before it is;
    - a ring that is filled and not taken, or taken and not filled;
    - an op that another role runs than the one it stands in;
    - an op that does not say what it reads and writes: one of this dialect without the interface, or one of another
      dialect with effects.
    (`test/Dialect/Tile/Transforms/verify-async-errors.mlir`)
  }];
}

#endif // TILE_PASSES
