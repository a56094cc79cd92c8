// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Ops of backward passes: row statistics, recomputed probabilities, gradients of scores.
#ifndef TILE_BACKWARD_OPS
#define TILE_BACKWARD_OPS

include "attn/Dialect/Tile/IR/TileInterfaces.td"
include "mlir/IR/OpAsmInterface.td"

/// LSE and delta of query rows: in shared memory, or in the registers of a kernel on SIMT tiles.
def Tile_AnyStatistics : AnyTypeOf<[Tile_RowStatistics, Tile_SimtSoftmaxState]>;

def Tile_PreprocessOp : Tile_ComputeOp<"preprocess", [AttrSizedOperandSegments]> {
  let summary = "computes the row statistics of a backward pass: LSE in base 2, and delta";
  let description = [{
    The whole program of a kernel that runs before those that compute gradients. It writes two numbers for each of the
    q_tile rows of a tile, the second `pitch` elements after the first:

    | number | value | if lse is -inf, and from row `rows` on |
    |---|---|---|
    | LSE in base 2 | lse * log2(e) | +inf |
    | delta | dot(dO, O) - dLSE, or `delta` | 0 |

    Rows with +inf have probabilities of 0, so that whole tiles may be read without a test. A large LSE is rounded up
    by as much as rounding may have taken from it, so that probabilities are at most 1 + 2^-10.

    With `exponent` e, the first number is less by e and the second is multiplied by 2^-e. Probabilities are then 2^e
    times as large, since a float16 product would otherwise round small ones to few bits. `tile.grad_scores` and the
    store of dV divide by 2^e again.

    It has rows of O and dO (`from`), or `delta`, float32 numbers that lie as the LSE does.

    `clears`: the tile's rows of the dQ accumulator, of so many columns, become 0. `semaphore`: so do its semaphores,
    one for 64 rows. `stride`: the distance of the rows' LSE, and of their dLSE, in elements; 1 if it is not given. A
    tile of one residue may have fewer rows than those of others, or none, and is visited all the same. So with `stride`
    the row statistics of tiles without rows are written, too, and `cleared`, the most rows of any residue, are cleared.

    Constraints:
    - C1: `from` goes with `dim`, a multiple of 8 from 8 to 256; o and grad_o are of one type, with elements of bf16 or
      f16 (of the target `cpu` also f32).
    - C2: it has one of `from` and `delta`; `dlse` goes with `from`.

    ```mlir
    tile.preprocess %row_statistics pitch(%pitch) from(%o, %o_row, %do, %do_row : !tile.ptr<bf16>, !tile.ptr<bf16>)
      dim 128 lse(%lse) rows(%rows)
    tile.preprocess %row_statistics pitch(%pitch) delta(%delta) lse(%lse) rows(%rows)
    ```
  }];
  let arguments = (ins Out<Tile_FloatPtr>:$statistics, I64:$pitch, Optional<Tile_Ptr>:$o, Optional<I64>:$o_row,
      Optional<Tile_Ptr>:$grad_o, Optional<I64>:$grad_o_row, Optional<Tile_FloatPtr>:$delta, Tile_FloatPtr:$lse,
      Optional<Tile_FloatPtr>:$grad_lse, OptionalAttr<I64Attr>:$stride, I32:$rows, Optional<I32>:$cleared,
      OptionalAttr<I64Attr>:$dim, Out<Optional<Tile_FloatPtr>>:$sum, OptionalAttr<I64Attr>:$sum_cols,
      Out<Optional<Tile_IntPtr>>:$semaphore, OptionalAttr<I64Attr>:$exponent);
  let assemblyFormat = [{
    $statistics `pitch` `(` $pitch `)`
    (`from` `(` $o^ `,` $o_row `,` $grad_o `,` $grad_o_row `:` qualified(type($o)) `,` qualified(type($grad_o)) `)`)?
    (`dim` $dim^)? (`delta` `(` $delta^ `)`)? `lse` `(` $lse `)` (`dlse` `(` $grad_lse^ `)`)? (`stride` $stride^)?
    `rows` `(` $rows (`cleared` $cleared^)? `)` (`exponent` $exponent^)?
    (`clears` `(` $sum^ `)` `columns` $sum_cols)? (`semaphore` `(` $semaphore^ `)`)? attr-dict
  }];
  let hasVerifier = 1;
}

def Tile_CopyRowStatisticsOp : Tile_ComputeOp<"copy_row_statistics"> {
  let summary = "starts copying the row statistics of a tile, which `tile.preprocess` wrote";
  let description = [{
    ```mlir
    %t = tile.copy_row_statistics %stats, %from pitch(%pitch) : !tile.row_statistics<64>
    ```
  }];
  let arguments = (ins Out<Tile_RowStatistics>:$dst, Tile_FloatPtr:$src, I64:$pitch);
  let results = (outs Tile_CopyToken:$token);
  let assemblyFormat = "$dst `,` $src `pitch` `(` $pitch `)` attr-dict `:` qualified(type($dst))";
}

def Tile_ProducerLoadRowStatisticsOp : Tile_ProducerOp<"producer_load_row_statistics"> {
  let summary = "`tile.copy_row_statistics` to the next slot of a ring";
  let description = [{
    Constraints:
    - C1: the ring is one of row statistics.

    ```mlir
    tile.producer_load_row_statistics %stats, %from pitch(%pitch) : !tile.ring<2, !tile.row_statistics<64>>
    ```
  }];
  let arguments = (ins Out<Tile_Ring>:$ring, Tile_FloatPtr:$src, I64:$pitch);
  let assemblyFormat = "$ring `,` $src `pitch` `(` $pitch `)` attr-dict `:` qualified(type($ring))";
  let hasVerifier = 1;
}

def Tile_ProbabilitiesOp
    : Tile_ComputeOp<"probabilities", [DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmBlockArgumentNames"]>]> {
  let summary = "recomputes the probabilities of the forward pass from scores";
  let description = [{
    Each score s becomes exp(scale * s - lse), with the lse of its query row; a score of -inf, which `tile.apply_mask`
    left, becomes 0. Rows are queries and columns are keys; with `transposed`, rows are keys and columns are queries.

    The region `modify` is for problems with score modifiers. Its arguments are a score, the numbers of its row and
    its column, the column once more as `base` + `ahead` (as in `tile.modify`), and the head where rows are pairs of a
    query and a head. The tile's first score is at (`row0`, `col0`). The region yields the modified score and its
    derivative, in natural units. The place `weighted` gets probability times derivative, or, with `slopes`, the
    derivative alone, which `tile.grad_scores` multiplies by.

    `small`: a region that is used where all scores of a warp, hidden ones included, are below this bound in
    magnitude. If `slopes` has numbers, this region yields x in place of the derivative. The derivative is then the
    polynomial in x with these coefficients, the constant first, computed for two scores at a time in the element type
    of the register operand.

    Constraints:
    - C1: scale is positive.
    - C2: as many statistics as there are rows, or columns if transposed.
    - C3: `weighted` goes with a region and has the scores' type, or is a register operand of their shape; it is a
      register operand with `slopes`, which have numbers only where there is `small`.
    - C4: the region yields two numbers of type f32; so does `small`, which is for a positive number, with a region
      and `weighted`.
    - C5: only rows are pairs, not columns: not with `transposed`.
    - C6: statistics in `!tile.softmax_state`, those of a fragment's own warps, go with no region.

    ```mlir
    tile.probabilities %s, %stats at(%k0, %q0) scale 8.838835e-02 transposed : !tile.frag<128x64, 8>,
        !tile.row_statistics<64>
    tile.probabilities %s, %stats at(%k0, %q0) weighted(%stash : !tile.register_operand<128x64xbf16, 8>) slopes []
        scale 1.0 transposed : !tile.frag<128x64, 8>, !tile.row_statistics<64> modify {
    ^bb0(%score: f32, %key: i32, %query: i32, %base: i32, %ahead: f32):
      %twice = arith.addf %score, %score : f32
      %two = arith.constant 2.0 : f32
      tile.yield %twice, %two : f32, f32
    }
    ```
  }];
  let arguments = (ins Tile_AnyScores:$s, In<AnyTypeOf<[Tile_AnyStatistics, Tile_SoftmaxState]>>:$statistics,
      Tile_Origin:$row0, I32:$col0, Out<Optional<AnyTypeOf<[Tile_AnyScores, Tile_RegisterOperand]>>>:$weighted,
      F64Attr:$scale, UnitAttr:$transposed, OptionalAttr<F64Attr>:$within, OptionalAttr<DenseF64ArrayAttr>:$slopes);
  let regions = (region AnyRegion:$small, AnyRegion:$modify);
  let assemblyFormat = [{
    $s `,` $statistics `at` `(` $row0 `` custom<Origin>(type($row0)) `,` $col0 `)` (`weighted` `(` $weighted^ `:`
        qualified(type($weighted)) `)`)?
    (`slopes` $slopes^)? `scale` $scale (`transposed` $transposed^)? attr-dict `:` qualified(type($s)) `,`
        qualified(type($statistics))
    (`small` `(` $within^ `)` $small)? (`modify` $modify^)?
  }];
  let hasVerifier = 1;
}

def Tile_SinglePassGradsOp : Tile_ComputeOp<"single_pass_grads", [AllTypesMatch<["grad", "p"]>]> {
  let summary = "gradients of scores, for rows all of whose keys are in the tile";
  let description = [{
    Each x of `grad`, which is dO V^T, becomes p * (x - delta). Here delta is the row's sum of p * x plus the delta of
    the statistics (-dLSE, or 0). So neither O nor a preprocess kernel is needed.

    - `weighted`: this place's number replaces the first p.
    - `known`: the statistics have all of delta (`tile.add_delta`), and the tile may have only some of the keys.
    - `dropped`: pairs whose p is negative, as `tile.dropout` marks them, are dropped. Their x counts as 0, the x of
      other pairs is multiplied `by` a number, and abs(p) replaces the first p. Afterwards the p of dropped pairs is
      0.

    Constraints:
    - C1: as many statistics as there are rows.
    - C2: weighted has the type of p, and does not go with statistics in `!tile.softmax_state`; `dropped` and `known`
      go with these only.

    ```mlir
    tile.single_pass_grads %dp, %s, %stats : !tile.frag<16x16, 1>, !tile.row_statistics<16>
    tile.single_pass_grads %all_dp, %all_s, %row dropped by 1.25 : !tile.frag<128x96, 8>, !tile.softmax_state<128, 8>
    tile.single_pass_grads %all_dp, %all_s, %row known : !tile.frag<128x96, 8>, !tile.softmax_state<128, 8>
    ```
  }];
  let arguments = (ins Tile_Frag:$grad, Tile_Frag:$p,
      In<AnyTypeOf<[Tile_RowStatistics, Tile_SoftmaxState]>>:$statistics, In<Optional<Tile_Frag>>:$weighted,
      OptionalAttr<F64Attr>:$factor, UnitAttr:$known);
  let builders = [OpBuilder<
      (ins "::mlir::Value":$grad, "::mlir::Value":$p, "::mlir::Value":$statistics, "::mlir::Value":$weighted), [{
    build($_builder, $_state, grad, p, statistics, weighted, /*factor=*/::mlir::FloatAttr(), /*known=*/false);
  }]>];
  let assemblyFormat = [{
    $grad `,` $p `,` $statistics (`weighted` `(` $weighted^ `:` qualified(type($weighted)) `)`)? (`known` $known^)?
        (`dropped` `by` $factor^)? attr-dict
    `:` qualified(type($grad)) `,` qualified(type($statistics))
  }];
  let hasVerifier = 1;
}

def Tile_AddDeltaOp : Tile_ComputeOp<"add_delta"> {
  let summary = "adds rowsum(O dO) to the delta of row statistics";
  let description = [{
    For rows whose keys are in several tiles, where `tile.single_pass_grads` cannot sum over all of them. dO is a tile
    in shared memory. O is a tile of the same rows and columns, or a register operand that `tile.load_rows` loaded.
    `first`: the statistics are those of the tile's rows from this one on.

    Constraints:
    - C1: the statistics have 16 rows a warp; dO has as many or fewer, and then the first warps read them. O as a
      register operand has the statistics' rows, and dO's columns, rounded up to 32.

    ```mlir
    tile.add_delta %all, %all_o, %all_dO
        : !tile.softmax_state<192, 12>, !tile.register_operand<192x128xbf16, 12>, !tile.shared<144x128xbf16, swizzled>
    tile.add_delta %all, %o, %dO
        : !tile.softmax_state<192, 12>, !tile.shared<144x128xbf16, swizzled>, !tile.shared<144x128xbf16, swizzled>
    ```
  }];
  let arguments = (ins Tile_SoftmaxState:$row, In<AnyTypeOf<[Tile_RegisterOperand, Tile_Shared]>>:$o,
      In<Tile_Shared>:$grad, OptionalAttr<I64Attr>:$first);
  let assemblyFormat = "$row `,` $o `,` $grad (`first` $first^)? attr-dict `:` qualified(type($row)) `,` "
                       "qualified(type($o)) `,` qualified(type($grad))";
  let hasVerifier = 1;
}

def Tile_GradScoresOp : Tile_ComputeOp<"grad_scores"> {
  let summary = "gradients of scores, from gradients of probabilities";
  let description = [{
    Each x of `grad`, which is dO V^T, becomes p * (x - delta), with the probability of the same pair (or its
    `weighted` number of `tile.probabilities`) and the delta of its query row. If p is the register operand of a
    product, no second copy takes registers. With `slopes`, of `tile.probabilities`, p times slope, rounded, takes the
    place of p. `by`: p * (x * `by` - delta), with the 2^-e of a `tile.preprocess` whose exponent is e.

    Constraints:
    - C1: as many statistics as there are rows, or columns if transposed.
    - C2: p has the same rows, columns and warps as grad; with `slopes`, p is a register operand of their type.

    ```mlir
    tile.grad_scores %dp, %s, %stats transposed : !tile.frag<128x64, 8>, !tile.frag<128x64, 8>, !tile.row_statistics<64>
    tile.grad_scores %dp, %p, %stats by 2.44140625E-4 transposed
        : !tile.frag<128x64, 8>, !tile.register_operand<128x64xbf16, 8>, !tile.row_statistics<64>
    tile.grad_scores %dp, %p slopes(%stash : !tile.register_operand<128x64xbf16, 8>), %stats transposed
        : !tile.frag<128x64, 8>, !tile.register_operand<128x64xbf16, 8>, !tile.row_statistics<64>
    ```
  }];
  let arguments = (ins Tile_AnyScores:$grad, In<AnyTypeOf<[Tile_Frag, Tile_RegisterOperand, Tile_SimtScores]>>:$p,
      In<Tile_AnyStatistics>:$statistics, In<Optional<Tile_RegisterOperand>>:$slopes, OptionalAttr<F64Attr>:$factor,
      UnitAttr:$transposed);
  let assemblyFormat = [{
    $grad `,` $p (`slopes` `(` $slopes^ `:` qualified(type($slopes)) `)`)? `,` $statistics (`by` $factor^)?
        (`transposed` $transposed^)? attr-dict
    `:` qualified(type($grad)) `,` qualified(type($p)) `,` qualified(type($statistics))
  }];
  let hasVerifier = 1;
}

def Tile_ScaleOp : Tile_ComputeOp<"scale"> {
  let summary = "multiplies a fragment, a SIMT tile or a tile in shared memory by a number";
  let description = [{
    A tile in shared memory changes its sign, and the op ends with a barrier of the CTA: a negative softmax scale moves
    its sign into Q, so that `tile.online_softmax` may take the largest product for the largest score.

    Constraints:
    - C1: the factor of a tile in shared memory is -1.

    ```mlir
    tile.scale %acc by 8.838835e-02 : !tile.frag<128x128, 8>
    tile.scale %Q by -1.0 : !tile.shared<128x64xbf16, 72>
    ```
  }];
  let arguments = (ins AnyTypeOf<[Tile_AnyAccumulator, Tile_Shared]>:$place, F64Attr:$factor);
  let assemblyFormat = "$place `by` $factor attr-dict `:` qualified(type($place))";
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// dQ with stationary KV tiles: each CTA adds its part to the dQ accumulator in global memory
//===----------------------------------------------------------------------===//

def Tile_StoreAndSyncOp
    : Tile_ComputeOp<"store_and_sync", [DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmResultNames"]>,
                                        TypesMatchWith<"the ring's tile", "ring", "tile",
                                                       "::llvm::cast<::attn::tile::RingType>($_self).getTile()">]> {
  let summary = "stores a register operand to shared memory and waits for all consumer warps";
  let description = [{
    The operand goes to the next stage of a ring of two stages that has no producer. Each warp stores its rows, and a
    barrier of all consumer warps follows. The tile may be read until its stage is overwritten by the second
    `tile.store_and_sync` after this one. The barrier of the first shows that all warps have finished reading, so the
    second needs no barrier before its stores.

    Constraints:
    - C1: the ring has two stages; its tiles have the operand's element type; they have its rows, or fewer, and then
      the first warps write 16 rows each; they have its columns, or more, which are not written.

    ```mlir
    %dS_tile = tile.store_and_sync %dS, %ds : !tile.ring<2, <128x64xbf16, swizzled>>,
        !tile.register_operand<128x64xbf16, 8>
    ```
  }];
  let arguments = (ins Tile_Ring:$ring, In<Tile_RegisterOperand>:$operand);
  let results = (outs Tile_Shared:$tile);
  let assemblyFormat = "$ring `,` $operand attr-dict `:` qualified(type($ring)) `,` qualified(type($operand))";
  let hasVerifier = 1;
}

def Tile_ProducerStoreOp : Tile_ComputeOp<"producer_store"> {
  let summary = "writes a tile in registers, or zeros, to the next slot of a ring";
  let description = [{
    Waits until the slot is free. Each warp writes its rows, which may be read after `tile.producer_commit`. Where the
    warps that store a tile also read it (which is not so with a dQ MMA warpgroup), each waits for the others' rows in
    `tile.consumer_wait`, and here until all have released the slot; `tile.store_and_sync` has one barrier for both.

    `first`: the operand has the tile's rows from there on; other rows are stored by another op. A fragment is converted
    on the way, since a converted copy would take registers. Without an operand the tile becomes zeros: the step of a
    warpgroup whose rows have nothing to do.

    Constraints:
    - C1: the ring's tiles have the operand's element type, rows and columns; or fewer rows, and the first warps store
      16 rows each, and more columns, which are not written.
    - C2: without an operand the ring's tiles are swizzled, and there is no `first`.

    ```mlir
    tile.producer_store %dS, %ds : !tile.ring<2, <128x64xbf16, swizzled>>, !tile.register_operand<128x64xbf16, 8>
    tile.producer_store %dS, %s first 0 : !tile.ring<2, <128x64xbf16, swizzled>>, !tile.frag<128x64, 8>
    tile.producer_store %dS : !tile.ring<2, <128x64xbf16, swizzled>>
    ```
  }];
  let arguments = (ins Out<Tile_Ring>:$ring, In<Optional<AnyTypeOf<[Tile_RegisterOperand, Tile_Frag]>>>:$operand,
      OptionalAttr<I64Attr>:$first);
  let builders = [OpBuilder<(ins "::mlir::Value":$ring, "::mlir::Value":$operand),
                            "build($_builder, $_state, ring, operand, /*first=*/::mlir::IntegerAttr());">];
  let assemblyFormat = "$ring (`,` $operand^)? (`first` $first^)? attr-dict `:` qualified(type($ring)) (`,` "
                       "qualified(type($operand))^)?";
  let hasVerifier = 1;
}

def Tile_StashOp : Tile_ComputeOp<"stash"> {
  let summary = "a register operand in shared memory, in the slot that the ring's next tile will overwrite";
  let description = [{
    It takes no registers: each lane writes its own numbers to the slot and reads them again, until
    `tile.producer_store` writes there. Waits until the slot is free.

    Constraints:
    - C1: the ring's tiles have the operand's rows, columns and element type.

    ```mlir
    %stash = tile.stash %dS : !tile.ring<2, <128x64xbf16, swizzled>>, !tile.register_operand<128x64xbf16, 8>
    ```
  }];
  let arguments = (ins Tile_Ring:$ring);
  let results = (outs Tile_RegisterOperand:$stash);
  let assemblyFormat = "$ring attr-dict `:` qualified(type($ring)) `,` qualified(type($stash))";
  let hasVerifier = 1;
}

def Tile_ProducerCommitOp : Tile_ComputeOp<"producer_commit"> {
  let summary = "signals that the tile that `tile.producer_store` wrote may be read";
  let description = [{
    The tile may be read when all warps have committed. This op first makes the warp's stores visible to the async
    proxy, which takes a while; products may be started between the store and the commit. A warp may commit without a
    store if its rows have no part in a step. The program then sees to it that the product leaves these rows out
    (`blocks` of `tile.mma_atb_slice`).

    ```mlir
    tile.producer_commit %dS : !tile.ring<2, <128x64xbf16, swizzled>>
    ```
  }];
  let arguments = (ins Tile_Ring:$ring);
  let assemblyFormat = "$ring attr-dict `:` qualified(type($ring))";
}

def Tile_MmaAtbOp : Tile_ComputeOp<"mma_atb"> {
  let summary = "starts acc = A^T B";
  let description = [{
    A and B have the same rows, which are the depth of the product. The result, A's columns by B's, is cut into blocks
    of 64 rows, one for each warpgroup, which acc has one below the other. With fewer blocks of A's columns than
    warpgroups, B's columns are divided, too. With `block`, one warpgroup computes that block `of` so many.

    Constraints:
    - C1: A and B are swizzled and have equal rows and element types, A's columns are a multiple of 64; acc has 64
      rows a warpgroup, and columns that divide 64 or are a multiple of it, in all B's, rounded up to 64 at most; 192
      columns may be two times 96, of which the second begins with the last 64. Or neither is swizzled, and acc is A's
      columns by B's.
    - C2: acc of one `block` has 64 rows and 4 warps, and `block` is below `of`.
    - C3: with SIMT tiles, acc += A^T B: acc has A's columns as rows and B's columns, B has A's rows, elements of both
      are f32, all have as many lanes, and there is no `block`.

    ```mlir
    %t = tile.mma_atb %dQ, %dS_tile, %K_tile
        : !tile.frag<128x64, 8>, !tile.shared<128x64xbf16, swizzled>, !tile.shared<128x128xbf16, swizzled>
    %u = tile.mma_atb %half, %dS_tile, %K_tile block 1 of 2
        : !tile.frag<64x64, 4>, !tile.shared<128x64xbf16, swizzled>, !tile.shared<128x128xbf16, swizzled>
    %v = tile.mma_atb %dV, %p, %dO
        : !tile.simt_tile<4x128xf32, 16>, !tile.simt_scores<1x4, 16>, !tile.simt_tile<1x128xf32, 16>
    ```
  }];
  let arguments = (ins Tile_AnyAccumulator:$acc, In<AnyTypeOf<[Tile_Shared, Tile_SimtScores]>>:$a,
      In<AnyTypeOf<[Tile_Shared, Tile_SimtTile]>>:$b, OptionalAttr<I64Attr>:$block, OptionalAttr<I64Attr>:$of);
  let results = (outs Tile_ProductToken:$token);
  let assemblyFormat = [{
    $acc `,` $a `,` $b (`block` $block^ `of` $of)? attr-dict `:` qualified(type($acc)) `,` qualified(type($a)) `,`
        qualified(type($b))
  }];
  let builders = [OpBuilder<(ins "::mlir::Value":$acc, "::mlir::Value":$a, "::mlir::Value":$b), [{
    build($_builder, $_state, acc, a, b, /*block=*/::mlir::IntegerAttr(), /*of=*/::mlir::IntegerAttr());
  }]>];
  let hasVerifier = 1;
}

def Tile_MmaAtbSliceOp : Tile_ComputeOp<"mma_atb_slice", [SameVariadicOperandSize]> {
  let summary = "starts a slice of one of several products A^T B";
  let description = [{
    The product A^T B of each pair of `lefts` and `rights` has 64 rows and is cut into slices of as many columns as
    `acc` has. Slices are numbered through all pairs, and `at` gives the number of the one to compute; the program
    assigns slices to warpgroups. The sum is over blocks of 64 rows of A and B (the last may have fewer), from the
    first number of `blocks` to before the second; no other blocks are read. An empty range gives 0.

    Constraints:
    - C1: A and B are swizzled and have equal rows and element types, A has 64 columns; acc has 64 rows, 64 or 128
      columns, which B's are a multiple of if rounded up to 64, and 4 warps.

    ```mlir
    %t = tile.mma_atb_slice %slice, (%P_tile, %dS_tile), (%all_dO, %all_Q) at(%j) blocks(%c0, %c3)
        : !tile.frag<64x64, 4>, (!tile.shared<144x64xbf16, swizzled>, !tile.shared<144x64xbf16, swizzled>),
        (!tile.shared<144x128xbf16, swizzled>, !tile.shared<144x128xbf16, swizzled>)
    ```
  }];
  let arguments = (ins Out<Tile_Frag>:$acc, In<Variadic<Tile_Shared>>:$lefts, In<Variadic<Tile_Shared>>:$rights,
      I32:$slice, I32:$first_block, I32:$end_block);
  let results = (outs Tile_ProductToken:$token);
  let assemblyFormat = [{
    $acc `,` `(` $lefts `)` `,` `(` $rights `)` `at` `(` $slice `)` `blocks` `(` $first_block `,` $end_block `)`
    attr-dict `:` qualified(type($acc)) `,` `(` qualified(type($lefts)) `)` `,` `(` qualified(type($rights)) `)`
  }];
  let hasVerifier = 1;
}

def Tile_StoreSliceOp : Tile_ComputeOp<"store_slice", [SameVariadicOperandSize]> {
  let summary = "writes a slice that `tile.mma_atb_slice` computed, and zeros to padding rows";
  let description = [{
    As `tile.store`, to the columns of the product to which the slice of this number belongs, multiplied by that
    product's factor. `dims` are the columns of each product.

    Constraints:
    - C1: as many factors and dims as products.

    ```mlir
    tile.store_slice (%dst, %dst) strides(%o_row, %o_row), %slice at(%j) rows(%rows, %write_rows)
        factors [1.0, 0.125] dims [128, 128] : (!tile.ptr<bf16>, !tile.ptr<bf16>), !tile.frag<64x64, 4>
    ```
  }];
  let arguments = (ins Out<Variadic<Tile_Ptr>>:$dsts, Variadic<I64>:$strides, In<Tile_Frag>:$acc, I32:$slice, I32:$rows,
      I32:$write_rows, DenseF64ArrayAttr:$factors, DenseI64ArrayAttr:$dims);
  let assemblyFormat = [{
    `(` $dsts `)` `strides` `(` $strides `)` `,` $acc `at` `(` $slice `)` `rows` `(` $rows `,` $write_rows `)` `factors`
        $factors `dims` $dims attr-dict
    `:` `(` qualified(type($dsts)) `)` `,` qualified(type($acc))
  }];
  let hasVerifier = 1;
}

#endif // TILE_BACKWARD_OPS
