// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// SIMT rows, for short sequences: a warp has a few query rows, and a lane group one head of them. Rows are loaded from
// global memory to registers. Products, masks, modifiers and softmax are the ops of tensor-core kernels, on places of
// other types (`!tile.simt_tile`).
#ifndef TILE_SIMT_ROW_OPS
#define TILE_SIMT_ROW_OPS

include "attn/Dialect/Tile/IR/TileInterfaces.td"
include "mlir/IR/OpAsmInterface.td"

def Tile_LoadRowsOp : Tile_ComputeOp<"load_rows"> {
  let summary = "reads rows from global memory into registers";
  let description = [{
    Rows below `rows`, which lie `stride` elements apart; all others become 0 and are not read. Loads are under way
    until a value is first used, so any number of tiles may be loaded at once.

    A SIMT tile of f32 gets rows converted. In a register operand, the four lanes of a row read interleaved pieces of 16
    bytes, which is not the order in which products read operands; columns from `dim` on become 0.

    Constraints:
    - C1: for a SIMT tile the pointer's elements are bf16 or f16 (of the target `cpu` also f32), and those of the tile
      the same or f32; there is no `dim`.
    - C2: a register operand has 16 rows a warp, `dim` columns, rounded up to 32, and the pointer's element type; the
      stride is one number.

    ```mlir
    tile.load_rows %K, %src stride(%k_row) rows(%n) : !tile.simt_tile<4x128xbf16, 16>, !tile.ptr<bf16>
    tile.load_rows %all_o, %o stride(%o_row) rows(%n) dim 128 : !tile.register_operand<192x128xbf16, 12>,
        !tile.ptr<bf16>
    ```
  }];
  let arguments = (ins Out<AnyTypeOf<[Tile_SimtTile, Tile_RegisterOperand]>>:$dst, Tile_Ptr:$src, Tile_Stride:$stride,
      I32:$rows, OptionalAttr<I64Attr>:$dim);
  let assemblyFormat = [{
    $dst `,` $src `stride` `(` $stride `` custom<Stride>(type($stride)) `)` `rows` `(` $rows `)` (`dim` $dim^)?
    attr-dict
    `:` qualified(type($dst)) `,` qualified(type($src))
  }];
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Backward
//===----------------------------------------------------------------------===//

def Tile_LoadRowStatisticsOp : Tile_ComputeOp<"load_row_statistics", [AttrSizedOperandSegments]> {
  let summary = "loads LSE and delta of query rows, for a backward pass without a preprocess kernel";
  let description = [{
    The maximum of each row becomes lse * log2(e) (+inf if lse is -inf, and from `rows` on); its sum becomes 0, or
    -dlse, or `delta`. The destination is a SIMT softmax state, row statistics in shared memory (the op then ends with
    a barrier), or the `!tile.softmax_state` of a fragment's warps. Rows of lse and dlse are consecutive, or `stride`
    apart.

    Constraints:
    - C1: not both dlse and delta.
    - C2: dlse has a stride if lse has one.
    - C3: `!tile.softmax_state` have no stride and no delta.

    ```mlir
    tile.load_row_statistics %row, %lse rows(%n) : !tile.simt_softmax_state<1, 16>
    tile.load_row_statistics %row, %lse delta(%delta) rows(%n) : !tile.simt_softmax_state<1, 16>
    ```
  }];
  let arguments = (ins Out<AnyTypeOf<[Tile_AnyStatistics, Tile_SoftmaxState]>>:$row, Tile_FloatPtr:$lse,
      Optional<Tile_Stride>:$stride, Optional<Tile_FloatPtr>:$grad_lse, Optional<Tile_Stride>:$grad_stride,
      Optional<Tile_FloatPtr>:$delta, I32:$rows);
  let assemblyFormat = [{
    $row `,` $lse (`stride` `(` $stride^ `` custom<Stride>(type($stride)) `)`)?
    (`dlse` `(` $grad_lse^ (`,` $grad_stride^ `` custom<Stride>(type($grad_stride)))? `)`)? (`delta` `(` $delta^ `)`)?
        `rows` `(` $rows `)` attr-dict
    `:` qualified(type($row))
  }];
  let hasVerifier = 1;
}

def Tile_AccumulateDeltaOp : Tile_ComputeOp<"accumulate_delta", [AllTypesMatch<["grad", "p"]>]> {
  let summary = "multiplies gradients of probabilities by p and adds them to the rows' sums";
  let description = [{
    Each x of `grad`, which is dO V^T, becomes p * x, and is added to its row's sum. The sum over all keys is delta,
    so O is not needed. With `weighted`, p * x is added all the same, and x becomes that place's number times x.

    Constraints:
    - C1: places of SIMT tiles of as many lanes; weighted has the type of p.

    ```mlir
    tile.accumulate_delta %dp, %p, %row : !tile.simt_scores<1x4, 16>, !tile.simt_softmax_state<1, 16>
    ```
  }];
  let arguments = (ins Tile_SimtScores:$grad, In<Tile_SimtScores>:$p, Tile_SimtSoftmaxState:$row,
      In<Optional<Tile_SimtScores>>:$weighted);
  let assemblyFormat = [{
    $grad `,` $p `,` $row (`weighted` `(` $weighted^ `:` qualified(type($weighted)) `)`)? attr-dict
    `:` qualified(type($grad)) `,` qualified(type($row))
  }];
  let hasVerifier = 1;
}

def Tile_SubtractDeltaOp : Tile_ComputeOp<"subtract_delta", [AllTypesMatch<["acc", "weights"]>]> {
  let summary = "acc = (acc - delta * weights) * factor, where delta are the rows' sums";
  let description = [{
    If acc is the sum of p * dp * K, and weights the sum of p * K, the result is dQ: one KV loop computes dQ and
    delta.

    Constraints:
    - C1: places of SIMT tiles of as many lanes.

    ```mlir
    tile.subtract_delta %dQ, %pK, %row by 0.125 : !tile.simt_tile<1x128xf32, 16>, !tile.simt_softmax_state<1, 16>
    ```
  }];
  let arguments = (ins Tile_SimtTile:$acc, In<Tile_SimtTile>:$weights, In<Tile_SimtSoftmaxState>:$row, F64Attr:$factor);
  let assemblyFormat = [{
    $acc `,` $weights `,` $row `by` $factor attr-dict `:` qualified(type($acc)) `,` qualified(type($row))
  }];
  let hasVerifier = 1;
}

def Tile_CacheProbabilitiesOp : Tile_ComputeOp<"cache_probabilities", [AllTypesMatch<["p", "grad"]>]> {
  let summary = "caches probabilities and the gradients of `tile.accumulate_delta`, for the keys from `k0` on";
  let description = [{
    Constraints:
    - C1: places of SIMT tiles of as many lanes.

    ```mlir
    tile.cache_probabilities %cache, %p, %dp at(%k0) : !tile.simt_probabilities<1x16, 16>, !tile.simt_scores<1x4, 16>
    ```
  }];
  let arguments = (ins Tile_SimtProbabilities:$cache, In<Tile_SimtScores>:$p, In<Tile_SimtScores>:$grad, I32:$k0);
  let assemblyFormat = [{
    $cache `,` $p `,` $grad `at` `(` $k0 `)` attr-dict `:` qualified(type($cache)) `,` qualified(type($p))
  }];
  let hasVerifier = 1;
}

def Tile_CachedGradScoresOp : Tile_ComputeOp<"cached_grad_scores"> {
  let summary = "gradients of scores for the keys from `k0` on, from cached probabilities and delta";
  let description = [{
    Constraints:
    - C1: places of SIMT tiles of as many lanes.

    ```mlir
    tile.cached_grad_scores %ds, %cache, %row at(%k0) : !tile.simt_scores<1x4, 16>, !tile.simt_probabilities<1x16, 16>,
        !tile.simt_softmax_state<1, 16>
    ```
  }];
  let arguments = (ins Out<Tile_SimtScores>:$grad, In<Tile_SimtProbabilities>:$cache, In<Tile_SimtSoftmaxState>:$row,
      I32:$k0);
  let assemblyFormat = [{
    $grad `,` $cache `,` $row `at` `(` $k0 `)` attr-dict
    `:` qualified(type($grad)) `,` qualified(type($cache)) `,` qualified(type($row))
  }];
  let hasVerifier = 1;
}

def Tile_StoreDeltaOp : Tile_ComputeOp<"store_delta"> {
  let summary = "stores the sums of rows, for the same warp to load";
  let description = [{
    The warp loads them after a `tile.barrier warp`.

    ```mlir
    tile.store_delta %delta, %row rows(%n) : !tile.simt_softmax_state<1, 16>
    ```
  }];
  let arguments = (ins Out<Tile_FloatPtr>:$dst, In<Tile_SimtSoftmaxState>:$row, I32:$rows);
  let assemblyFormat = "$dst `,` $row `rows` `(` $rows `)` attr-dict `:` qualified(type($row))";
}

#endif // TILE_SIMT_ROW_OPS
