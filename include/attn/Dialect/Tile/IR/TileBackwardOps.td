// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What only a backward pass does: statistics of rows, probabilities anew, gradients of scores.
#ifndef TILE_BACKWARD_OPS
#define TILE_BACKWARD_OPS

include "attn/Dialect/Tile/IR/TileInterfaces.td"
include "mlir/IR/OpAsmInterface.td"

/// What is known of query rows: of a tile's, or in the registers of a kernel on SIMT tiles.
def Tile_AnyStatistics : AnyTypeOf<[Tile_RowStatistics, Tile_SimtSoftmaxState]>;

def Tile_PreprocessOp : Tile_ComputeOp<"preprocess", [AllTypesMatch<["o", "grad_o"]>, AttrSizedOperandSegments]> {
  let summary = "what a backward pass has to know of each query row";
  let description = [{
    The whole program of a kernel of its own, ahead of those that compute gradients: for each
    of the q_tile rows of a tile two numbers,

        lse * log2(e)               (+inf where lse is -inf)
        dot(dO, O) - dLSE           (0 there)

    The first is rounded up where it is large, by as much as rounding may have taken from it, so that probabilities made
    of it are at most 1 + 2^-10. With `exponent` e it is less by e and the second is multiplied by 2^-e: probabilities
    are 2^e times as large, for a float16 product that would else round small ones to few bits. `tile.grad_scores` and
    whoever writes dV make up for it.

    the second `pitch` elements behind the first. Rows from `rows` on get +inf and 0 as well, so
    their probabilities are 0 and whole tiles may be read without a test. With `clears`,
    q_tile rows of so many columns of a sum become 0, too; with `turns`, the counters of its tiles of 64 rows.

    Constraints:
    - C1: dim is a multiple of 8 from 8 to 256, o has elements of bf16 or f16 (of the target `cpu` also f32).

    ```mlir
    tile.preprocess %statistics pitch(%pitch) from(%o, %o_row, %do, %do_row) lse(%lse) rows(%rows) dim 128
      : !tile.ptr<bf16>
    ```
  }];
  let arguments = (ins Out<Tile_FloatPtr>:$statistics, I64:$pitch, Tile_Ptr:$o, I64:$o_row, Tile_Ptr:$grad_o,
      I64:$grad_o_row, Tile_FloatPtr:$lse, Optional<Tile_FloatPtr>:$grad_lse, I32:$rows, I64Attr:$dim,
      Out<Optional<Tile_FloatPtr>>:$sum, OptionalAttr<I64Attr>:$sum_cols, Out<Optional<Tile_IntPtr>>:$turns,
      OptionalAttr<I64Attr>:$exponent);
  let assemblyFormat = [{
    $statistics `pitch` `(` $pitch `)` `from` `(` $o `,` $o_row `,` $grad_o `,` $grad_o_row `)` `lse` `(` $lse `)`
    (`dlse` `(` $grad_lse^ `)`)? `rows` `(` $rows `)` `dim` $dim (`exponent` $exponent^)? (`clears` `(` $sum^ `)`
        `columns` $sum_cols)?
    (`turns` `(` $turns^ `)`)? attr-dict `:` qualified(type($o))
  }];
  let hasVerifier = 1;
}

def Tile_CopyRowStatisticsOp : Tile_ComputeOp<"copy_row_statistics"> {
  let summary = "starts copying what `tile.preprocess` left of a tile's rows";
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
  let summary = "`tile.copy_row_statistics` into the next slot of a ring";
  let description = [{
    Constraints:
    - C1: the ring is one of statistics.

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
  let summary = "scores become the probabilities that the forward pass had";
  let description = [{
    Each score s becomes exp(scale * s - lse), with the lse of its query row; one of -inf,
    which `tile.apply_mask` left, becomes 0. Rows are queries and columns keys, or, `transposed`, the
    reverse.

    The region, where a problem modifies its scores, gets a score, the numbers of its row and
    its column, (`row0`, `col0`) being those of the tile's first, the column once more as `base` +
    `ahead` (as in `tile.modify`), the head as well where rows are pairs of a query and a head, and yields the modified
    score and its derivative, in natural units. With `weighted`, that place gets probability times derivative, or, with
    `slopes`, derivatives alone, for `tile.grad_scores` to multiply by. `small`: a region that is taken where all scores
    of a warp, hidden ones too, are smaller than this in size. If `slopes` has numbers, it yields x in place of the
    derivative, which is the polynomial with these coefficients, the constant first, and is worked out of two scores at
    a time, in the held type's precision.

    Constraints:
    - C1: scale is positive.
    - C2: as many statistics as there are rows, or columns if transposed.
    - C3: `weighted` goes with a region and has the scores' type, or holds a tile of their shape; it holds one with
      `slopes`, which have numbers only where there is `small`.
    - C4: the region yields two numbers of type f32; so does `small`, which is for a positive number, with a
      region and `weighted`.
    - C5: only rows are pairs, not columns: not with `transposed`.
    - C6: statistics in `!tile.softmax_state`, those of a fragment's own warps, go with no region.

    ```mlir
    tile.probabilities %s, %stats at(%k0, %q0) scale 8.838835e-02 transposed : !tile.frag<128x64, 8>,
        !tile.row_statistics<64>
    tile.probabilities %s, %stats at(%k0, %q0) weighted(%aside : !tile.register_operand<128x64xbf16,
        8>) slopes [] scale 1.0 transposed
        : !tile.frag<128x64, 8>, !tile.row_statistics<64> modify {
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
  let summary = "gradients of scores, of rows all of whose keys are in the tile";
  let description = [{
    Each x of `grad`, a product of dO and V, becomes p * (x - delta), where delta is the sum of p * x over its
    row and of what the statistics have as that row's delta (minus its dlse, or 0). With `weighted`, that
    place's number is in front of the parenthesis. So O is not needed, and nothing is known ahead. `known`: the
    statistics have all of delta (`tile.add_delta`), so that the tile may have some of the keys only. `dropped`: pairs
    whose p is negative, as `tile.dropout` marks them, are dropped. Their x counts as 0, others' is multiplied `by` a
    number, and p becomes 0.

    Constraints:
    - C1: as many statistics as there are rows.
    - C2: weighted has the type of p, and does not go with statistics in `!tile.softmax_state`; `dropped` and `known` go
      with these only.

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
  let summary = "adds rowsum(O dO) to what statistics know of delta";
  let description = [{
    For rows whose keys come in several tiles: `tile.single_pass_grads ... known` has no sum over all of them. dO is a
    tile in shared memory, O is one of the same rows and columns, or its rows are held as `tile.load_rows`
    brings them. `first`: the statistics' are the tile's rows from there on.

    Constraints:
    - C1: the statistics have 16 rows a warp; dO has as many or fewer, of which the first warps' are read then. O that
      is held has the statistics' rows, and dO's columns, rounded up to 32.

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
  let summary = "gradients of scores, from those of probabilities";
  let description = [{
    Each x of `grad`, a product of dO and V, becomes p * (x - delta), with the probability (or
    what it was weighted to) of the same pair and the delta of its query row. Of probabilities
    that are held, rounded, for a product as well, no second copy takes up registers. With `slopes`, of
    `tile.probabilities`, p times slope, rounded, takes the place of p. `by`: p * (x * `by` - delta), with the 2^-e of a
    `tile.preprocess` whose exponent is e.

    Constraints:
    - C2: p has the same rows, columns and warps as grad; with `slopes`, it is held as they are.
    - C1: as many statistics as there are rows, or columns if transposed.

    ```mlir
    tile.grad_scores %dp, %s, %stats transposed : !tile.frag<128x64, 8>, !tile.frag<128x64, 8>, !tile.row_statistics<64>
    tile.grad_scores %dp, %p, %stats by 2.44140625E-4 transposed
        : !tile.frag<128x64, 8>, !tile.register_operand<128x64xbf16, 8>, !tile.row_statistics<64>
    tile.grad_scores %dp, %p slopes(%aside : !tile.register_operand<128x64xbf16, 8>), %stats transposed
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
    A tile in shared memory changes its sign, and the op ends with a barrier of the block: a negative softmax scale moves
    its sign into Q, so that `tile.online_softmax` may take the largest product for the largest score.

    Constraints:
    - C1: the factor of a tile in shared memory is -1.

    ```mlir
    tile.scale %acc by 8.838835e-02 : !tile.frag<128x128, 8>
    tile.scale %Q by -1.0 : !tile.shared<128x64xbf16, 72>
    ```
  }];
  let arguments = (ins AnyTypeOf<[Tile_AnySum, Tile_Shared]>:$place, F64Attr:$factor);
  let assemblyFormat = "$place `by` $factor attr-dict `:` qualified(type($place))";
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// dQ where key tiles are at rest: each adds its part to a sum in global memory
//===----------------------------------------------------------------------===//

def Tile_StoreAndSyncOp
    : Tile_ComputeOp<"store_and_sync", [DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmResultNames"]>,
                                        TypesMatchWith<"the ring's tile", "ring", "tile",
                                                       "::llvm::cast<::attn::tile::RingType>($_self).getTile()">]> {
  let summary = "writes a held tile to shared memory, for all warps that compute";
  let description = [{
    To the next slot of a ring that nobody fills: each warp writes its rows and waits for the
    others. Behind it all may read the tile, by the next `tile.store_and_sync` but one at the latest,
    so that this one, too, waits for nobody but those who are behind.

    Constraints:
    - C1: the ring has two stages, of tiles of the held one's element type, of its rows, or fewer, of which the first
      warps' are then written, 16 each, and of its columns, or more, which are not written.

    ```mlir
    %dS_tile = tile.store_and_sync %dS, %ds : !tile.ring<2, <128x64xbf16, swizzled>>,
        !tile.register_operand<128x64xbf16, 8>
    ```
  }];
  let arguments = (ins Tile_Ring:$ring, In<Tile_RegisterOperand>:$held);
  let results = (outs Tile_Shared:$tile);
  let assemblyFormat = "$ring `,` $held attr-dict `:` qualified(type($ring)) `,` qualified(type($held))";
  let hasVerifier = 1;
}

def Tile_ProducerStoreOp : Tile_ComputeOp<"producer_store"> {
  let summary = "writes a tile in registers, or zeros, to the next slot of a ring";
  let description = [{
    Waits until the slot is free. Each warp writes its rows, which may be read behind `tile.producer_commit`. Where the
    warps that store a tile also read it (which those of a dQ MMA warpgroup do not), each waits for the others' rows in
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
  let summary = "a held tile that waits in shared memory, where the ring's next tile will be put";
  let description = [{
    Not in registers, where there are none left: each lane writes its own numbers to the slot and reads them again,
    until `tile.producer_store` writes there. Waits until the slot is free.

    Constraints:
    - C1: the ring's tiles have the held one's rows, columns and element type.

    ```mlir
    %weights = tile.stash %dS : !tile.ring<2, <128x64xbf16, swizzled>>, !tile.register_operand<128x64xbf16, 8>
    ```
  }];
  let arguments = (ins Tile_Ring:$ring);
  let results = (outs Tile_RegisterOperand:$held);
  let assemblyFormat = "$ring attr-dict `:` qualified(type($ring)) `,` qualified(type($held))";
  let hasVerifier = 1;
}

def Tile_ProducerCommitOp : Tile_ComputeOp<"producer_commit"> {
  let summary = "tells the role that takes from a ring that what was put there may be read";
  let description = [{
    When all warps have said so. What a warp has put it first makes visible to matrix units, which takes a while:
    products may be begun in between. A warp may have put nothing, as its rows have no part in a step: then whoever
    takes the tile leaves out its rows (`blocks` of `tile.mma_atb_slice`), which is for the program to see to.

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
    The rows of both are the depth. The result, A's columns by B's, is cut into blocks of 64
    rows, one for each warpgroup: acc has them one below the other. Where there are fewer blocks
    of A's columns than warpgroups, B's columns are shared out too. With `block`, one warpgroup makes that block of so
    many `of` them.

    Constraints:
    - C1: A and B are swizzled and have equal rows and element types, A's columns are a multiple of 64; acc has 64 rows
      a warpgroup, and columns that divide 64 or are a multiple of it, in all B's, rounded up to 64 at most. Or neither
      is swizzled, and acc is A's columns by B's.
    - C2: acc of one `block` has 64 rows and 4 warps, and there are so many blocks.
    - C3: of SIMT tiles, acc += A^T B: acc has A's columns as rows and B's columns, B has A's rows, elements of both are
      f32, all have as many lanes, and there is no `block`.

    ```mlir
    %t = tile.mma_atb %dQ, %dS_tile, %K_tile
        : !tile.frag<128x64, 8>, !tile.shared<128x64xbf16, swizzled>, !tile.shared<128x128xbf16, swizzled>
    %u = tile.mma_atb %half, %dS_tile, %K_tile block 1 of 2
        : !tile.frag<64x64, 4>, !tile.shared<128x64xbf16, swizzled>, !tile.shared<128x128xbf16, swizzled>
    %v = tile.mma_atb %dV, %p, %dO
        : !tile.simt_tile<4x128xf32, 16>, !tile.simt_scores<1x4, 16>, !tile.simt_tile<1x128xf32, 16>
    ```
  }];
  let arguments = (ins Tile_AnySum:$acc, In<AnyTypeOf<[Tile_Shared, Tile_SimtScores]>>:$a,
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
  let summary = "starts a piece of one of several products A^T B";
  let description = [{
    Of each pair of `lefts` and `rights`, the product A^T B has 64 rows, and is cut into pieces of as many of B's
    columns as `acc` has. Pieces are numbered through all pairs. A warpgroup makes the one of a number: which ones are
    whose is for the program to say. The sum is over A's and B's blocks of 64 rows, of which the last may have fewer,
    from one number to ahead of another: nothing is read of others. Of none it is 0.

    Constraints:
    - C1: A and B are swizzled and have equal rows and element types, A has 64 columns; acc has 64 rows, 64 or 128
      columns, which B's are a multiple of if rounded up to 64, and 4 warps.

    ```mlir
    %t = tile.mma_atb_slice %piece, (%P_tile, %dS_tile), (%all_dO, %all_Q) at(%j) blocks(%c0, %c3) : !tile.frag<64x64,
        4>,
        (!tile.shared<144x64xbf16, swizzled>, !tile.shared<144x64xbf16, swizzled>), (!tile.shared<144x128xbf16,
            swizzled>, !tile.shared<144x128xbf16, swizzled>)
    ```
  }];
  let arguments = (ins Out<Tile_Frag>:$acc, In<Variadic<Tile_Shared>>:$lefts, In<Variadic<Tile_Shared>>:$rights,
      I32:$piece, I32:$from, I32:$to);
  let results = (outs Tile_ProductToken:$token);
  let assemblyFormat = [{
    $acc `,` `(` $lefts `)` `,` `(` $rights `)` `at` `(` $piece `)` `blocks` `(` $from `,` $to `)` attr-dict
    `:` qualified(type($acc)) `,` `(` qualified(type($lefts)) `)` `,` `(` qualified(type($rights)) `)`
  }];
  let hasVerifier = 1;
}

def Tile_StoreSliceOp : Tile_ComputeOp<"store_slice", [SameVariadicOperandSize]> {
  let summary = "writes what `tile.mma_atb_slice` made, and zeros to padding rows";
  let description = [{
    As `tile.store`, to the product's columns that the piece of this number has, times that product's factor. A product
    has so many columns as `dims` says.

    Constraints:
    - C1: as many factors and dims as products.

    ```mlir
    tile.store_slice (%dst, %dst) strides(%o_row, %o_row), %piece at(%j) rows(%rows, %write_rows) factors [1.0,
        0.125] dims [128, 128]
        : (!tile.ptr<bf16>, !tile.ptr<bf16>), !tile.frag<64x64, 4>
    ```
  }];
  let arguments = (ins Out<Variadic<Tile_Ptr>>:$dsts, Variadic<I64>:$strides, In<Tile_Frag>:$acc, I32:$piece, I32:$rows,
      I32:$write_rows, DenseF64ArrayAttr:$factors, DenseI64ArrayAttr:$dims);
  let assemblyFormat = [{
    `(` $dsts `)` `strides` `(` $strides `)` `,` $acc `at` `(` $piece `)` `rows` `(` $rows `,` $write_rows `)` `factors`
        $factors `dims` $dims attr-dict
    `:` `(` qualified(type($dsts)) `)` `,` qualified(type($acc))
  }];
  let hasVerifier = 1;
}

#endif // TILE_BACKWARD_OPS
