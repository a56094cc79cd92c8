// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef TILE_PASSES
#define TILE_PASSES

include "mlir/Pass/PassBase.td"

def PipelineKv : Pass<"tile-pipeline-kv", "::attn::tile::KernelOp"> {
  let summary = "copy K and V before the products that read them";
  let description = [{
    As converted, each iteration of a `tile.kv_loop` copies K, waits, multiplies, copies V, waits, multiplies. This
    pass starts the copy of V(j) before the product with K(j), and the copy of K(next) as soon as all warps have read
    K(j), so that copies run under products and softmax. K's token is carried around the loop; the first K is copied
    before it, together with Q. With `cta_per_sequence`, where one tile usually has all keys, Q, K and V are copied
    together, and the tokens of K and V are carried. The pass changes only kernels for sm_80.
    (`test/Dialect/Tile/Transforms/pipeline-kv.mlir`)
  }];
}

def Persist : Pass<"tile-persist", "::attn::tile::KernelOp"> {
  let summary = "make a kernel persistent: a launch as wide as the chip, not as the grid";
  let description = [{
    Wraps the program (all but its places) into `tile.persistent_loop`, whose block number replaces `tile.index
    block`. The prologue and epilogue of a query tile can then run beside the work on the next or the previous tile.
    (`test/Dialect/Tile/Transforms/persist.mlir`)
  }];
}

def AssignRoles : Pass<"tile-assign-roles", "::attn::tile::KernelOp"> {
  let summary = "split a kernel into roles: one warp loads tiles, the others compute";
  let description = [{
    Splits `tile.persistent_loop` into `tile.roles`:

    - The producer keeps scalars, loops and copies. A place that was copied into becomes a ring, which the producer
      fills as far ahead as there are stages.
    - Consumers wait for a tile of the ring where they waited for a copy, and release it after the last product that
      reads it.
    - The producer computes the scalars that follow from a block number, in advance, and publishes them: consumers
      wait for no memory and divide no integers. Of masks of many parts these are the bounds of the KV loop, and none
      of the lists from which they are computed. If they take more than 100 arithmetic ops, they are computed ahead
      of the branch for padding. The producer then gets 32 more registers, if consumers keep 96 beside their fragments.
    - The dQ store warps add dQ to the accumulator in global memory.
    - With `dq_columns` in the schedule, the dQ MMA warpgroup has the product that is accumulated, a block of 64 rows
      at a time.

    A loop with `own` bounds has these bounds in consumers. In steps outside them, consumers release the tiles that
    were loaded, and store zeros where other warps read theirs. All other roles run all steps.
    (`test/Dialect/Tile/Transforms/assign-roles.mlir`, `test/Dialect/Tile/Transforms/own-steps.mlir`,
    `test/Schedules/odd-masks.mlir`)
  }];
}

def ReloadWork : Pass<"tile-reload-work", "::attn::tile::KernelOp"> {
  let summary = "after their loop, consumers read words from the work-tile mailbox again";
  let description = [{
    With stationary KV tiles, the loop has no register to spare: the accumulators of dK and dV take half of them. The
    same holds where fragments leave fewer than 40, as those of dQ with 256 columns. Words of the mailbox that are
    used after the loop become `tile.reload_work` there, and values derived from them are recomputed.
    (`test/Dialect/Tile/Transforms/reload-work.mlir`)
  }];
}

def OverlapProducts : Pass<"tile-overlap-products", "::attn::tile::KernelOp"> {
  let summary = "start the product with V of one KV tile together with the scores of the next";
  let description = [{
    Shifts the consumer's `tile.kv_loop` by half an iteration: the product with K(j) and that of P(j-1) with V(j-1)
    are started together. Then the scores of tile j are exponentiated and converted (`tile.softmax_convert`), while
    other warpgroups multiply. Where scores are rising, `tile.online_softmax` is applied to them while the second
    product runs. The first tile's scores come before the loop, the last tile's product with V after it.
    (`test/Dialect/Tile/Transforms/overlap-products.mlir`)
  }];
  let dependentDialects = ["::mlir::scf::SCFDialect", "::mlir::arith::ArithDialect"];
}

def OverlapGradients : Pass<"tile-overlap-gradients", "::attn::tile::KernelOp"> {
  let summary = "start the product of dK of one query tile together with the scores of the next";
  let description = [{
    Shifts the loop of a KV tile over query tiles likewise, where a dQ MMA warpgroup computes dQ: a step ends with the
    scores of the next tile and the dK product of this one, and exponentials run under the latter.

    - The query tile of the dK product is passed (`tile.consumer_advance`), and released when the next step needs the
      registers of that product.
    - The addresses of the warpgroup's rows of K and V are computed once (`tile.warpgroup_rows`).
    - dS is committed after both products (`tile.producer_commit`).
    - If the ring of K has a slot for the next work tile, the wait for V comes after the start of the first scores,
      and a ring of one V slot is released in the last step (`tile.consumer_release`).

    The pass changes no other kernels. (`test/Dialect/Tile/Transforms/overlap-gradients.mlir`,
    `test/Dialect/Tile/Transforms/own-steps.mlir`)
  }];
  let dependentDialects = ["::mlir::scf::SCFDialect", "::mlir::arith::ArithDialect"];
}

def OverlapStores : Pass<"tile-overlap-stores", "::attn::tile::KernelOp"> {
  let summary = "store a result while the next product is computed";
  let description = [{
    As converted, a product is followed by its wait, the scaling of its result and its store. In kernels with roles,
    whose products are asynchronous, the scaling and the store move behind the start of the next product of the same
    block, if no op in between accesses the result or global memory.
    (`test/Dialect/Tile/Transforms/overlap-stores.mlir`)
  }];
}

def FuseModify : Pass<"tile-fuse-modify", "::attn::tile::KernelOp"> {
  let summary = "modify scores where they are exponentiated";
  let description = [{
    A `tile.modify` that is the last op on the scores before `tile.softmax_convert` becomes a region of that op. A
    factor or a sum then becomes part of the instruction that computes the exponent, and the first multiplications
    need not be over before the first exponentials. A `tile.modify` before a mask test, or of the first tile, is not
    fused: these tiles are few, and keep only the formula for all scores, which is less code.
    (`test/Dialect/Tile/Transforms/fuse-modify.mlir`)
  }];
}

def SplitKvLoop : Pass<"tile-split-kv-loop", "::attn::tile::KernelOp"> {
  let summary = "make one loop for each segment of a KV loop";
  let description = [{
    Turns each segment of a `tile.kv_loop` into an `scf.for` with a copy of the body in which `tile.apply_mask` tests
    only what the segment needs. In segments of full tiles, `tile.apply_mask` is removed, and `tile.mma_ab` is not
    guarded. A KV loop of several runs (a mask with holes) becomes a loop over runs around a loop over tiles, whose
    body tests whether its tile is full. A KV loop of one run becomes one such loop over tiles if the schedule says
    `single_loop`. (`test/Dialect/Tile/Transforms/split-kv-loop.mlir`)
  }];
  let dependentDialects = ["::mlir::scf::SCFDialect", "::mlir::arith::ArithDialect"];
}

def ReloadInSteps : Pass<"tile-reload-in-steps", "::attn::tile::KernelOp"> {
  let summary = "reload words of the message in each step of a loop without spare registers";
  let description = [{
    With a dQ MMA warpgroup, consumers have 208 registers; accumulators, scores and ptxas's own needs take 200. Words
    of the message that a step uses, and the loop's bounds do not, become `tile.reload_work` before their first use.
    (`test/Dialect/Tile/Transforms/reload-in-steps.mlir`)
  }];
}

def AllocateShared : Pass<"tile-allocate-shared", "::attn::tile::KernelOp"> {
  let summary = "assign offsets to places in shared memory";
  let description = [{
    Rings come first, then their barriers, then all other places. Rings and swizzled tiles, which are swizzled by
    address bits, begin at multiples of 1024 bytes, other tiles at multiples of 128. Tiles that are never used at the
    same time share bytes: all ops on one, in its block, come before the ops on the other. The kernel's `shared_bytes`
    is the total. An error names the kernel if it exceeds what the chip has.
    (`test/Dialect/Tile/Transforms/allocate-shared.mlir`)
  }];
  let options = [Option<"limit", "limit", "int64_t", "232448", "bytes of shared memory that a CTA may use">];
}

def VerifyAsync : Pass<"tile-verify-async", "::attn::tile::KernelOp"> {
  let summary = "check that no place is used while a copy or product is in flight";
  let description = [{
    Follows every place through the program, also around loops, by the accesses that ops declare (`TileOpInterface`),
    and reports
    - a place that is read or written while a copy or product into it is in flight;
    - a copy into a place that some warp may still be reading (no wait for a copy, which is the CTA's barrier, since
      the last read);
    - a token that is waited for twice, or never;
    - a tile of a ring that is read after its release, released while a product reads it, taken while the one before
      is not released or passed, never released, or taken or released in one of two branches only;
    - a tile that is passed before the one passed last is released;
    - a tile that is stored to a ring and not committed, or a second store before the commit;
    - a ring that is filled and not read, or read and not filled;
    - an op in a role that may not run it;
    - an op without declared accesses: one of this dialect without the interface, or one of another dialect with
      effects.

    (`test/Dialect/Tile/Transforms/verify-async-errors.mlir`)
  }];
}

#endif // TILE_PASSES
