// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Dropout: pairs that contribute nothing to products with probabilities. `attn.problem` defines the random bits of a
// pair; tiles of any size, and of either orientation, have the same bits.
#ifndef TILE_DROPOUT_OPS
#define TILE_DROPOUT_OPS

include "attn/Dialect/Tile/IR/TileBackwardOps.td"

def Tile_DropoutStateOp : Tile_ScalarOp<"dropout_state"> {
  let summary = "the random number generator's state for a sequence, from a seed";
  let description = [{
    For one head, or without `head` for all heads (where rows are pairs of a query and a head).

    ```mlir
    %dropout = tile.dropout_state %seed of(%b, %h)
    %of_pairs = tile.dropout_state %seed of(%b)
    ```
  }];
  let arguments = (ins Tile_IntPtr:$seed, I32:$b, Optional<I32>:$head);
  let results = (outs Tile_DropoutState:$result);
  let assemblyFormat = "$seed `of` `(` $b (`,` $head^)? `)` attr-dict";
}

def Tile_DropoutOp : Tile_ComputeOp<"dropout"> {
  let summary = "sets elements of dropped pairs to 0";
  let description = [{
    For probabilities, after their sums and before the product with V; or for gradients of probabilities, where the
    elements that are kept are multiplied (`by`). (`row0`, `col0`) are the numbers of the tile's first row and column:
    query and key, or, with `transposed`, key and query. A pair is dropped if its 15 random bits are below `below`.
    With `marks`, probabilities keep their magnitude, and those of dropped pairs become negative, for
    `tile.dropout_grad_scores`. On a GPU, `row0` and `col0` are multiples of 16, unless the op is `unaligned`, which
    takes four times the random numbers.

    Constraints:
    - C1: `below` is from 1 to 2^15 - 1.
    - C2: a register operand, or what is marked, is not multiplied.
    - C3: rows are pairs only where nothing is transposed or marked; columns only if rows are, and not of a register
      operand.

    ```mlir
    tile.dropout %s at(%q0, %k0) dropout(%dropout) below 3277 : !tile.frag<128x64, 4>
    tile.dropout %dp at(%k0, %q0) dropout(%dropout) below 3277 by 1.111 transposed : !tile.frag<128x64, 8>
    tile.dropout %p at(%k0, %q0) dropout(%dropout) below 3277 transposed marks
        : !tile.register_operand<128x64xbf16, 8>
    ```
  }];
  let arguments = (ins AnyTypeOf<[Tile_AnyScores, Tile_RegisterOperand]>:$place, Tile_Origin:$row0, Tile_Origin:$col0,
      Tile_DropoutState:$dropout, I64Attr:$below, OptionalAttr<F64Attr>:$factor, UnitAttr:$transposed, UnitAttr:$marks,
      UnitAttr:$unaligned);
  let assemblyFormat = [{
    $place `at` `(` $row0 `` custom<Origin>(type($row0)) `,` $col0 `` custom<Origin>(type($col0)) `)`
    `dropout` `(` $dropout `)` `below` $below
    (`by` $factor^)? (`transposed` $transposed^)? (`marks` $marks^)? (`unaligned` $unaligned^)?
    attr-dict `:` qualified(type($place))
  }];
  let hasVerifier = 1;
}

def Tile_DropoutBitsOp : Tile_ComputeOp<"dropout_bits"> {
  let summary = "the first half of `tile.dropout`: which pairs are kept";
  let description = [{
    As masks of the later register operand. The bits depend on the numbers of pairs alone, so that they are computed
    while the products run from which probabilities come. `unaligned` as in `tile.dropout`.

    Constraints:
    - C1: `below` is from 1 to 2^15 - 1.

    ```mlir
    tile.dropout_bits %bits at(%q0, %k0) dropout(%dropout) below 3277 : !tile.register_operand<128x128xbf16, 8>
    ```
  }];
  let arguments = (ins Out<Tile_RegisterOperand>:$bits, Tile_Origin:$row0, I32:$col0, Tile_DropoutState:$dropout,
      I64Attr:$below, UnitAttr:$unaligned);
  let assemblyFormat = [{
    $bits `at` `(` $row0 `` custom<Origin>(type($row0)) `,` $col0 `)` `dropout` `(` $dropout `)` `below` $below
    (`unaligned` $unaligned^)? attr-dict `:` qualified(type($bits))
  }];
  let hasVerifier = 1;
}

def Tile_ApplyDropoutBitsOp : Tile_ComputeOp<"apply_dropout_bits", [AllTypesMatch<["p", "bits"]>]> {
  let summary = "the second half of `tile.dropout`, on a register operand";
  let description = [{
    ```mlir
    tile.apply_dropout_bits %p, %bits : !tile.register_operand<128x128xbf16, 8>
    ```
  }];
  let arguments = (ins Tile_RegisterOperand:$p, In<Tile_RegisterOperand>:$bits);
  let assemblyFormat = "$p `,` $bits attr-dict `:` qualified(type($p))";
}

def Tile_DropoutGradScoresOp : Tile_ComputeOp<"dropout_grad_scores"> {
  let summary = "`tile.grad_scores` with dropout, from marked probabilities";
  let description = [{
    Each x of `grad`, which is dO V^T, becomes abs(p) * (x * `by` - delta), without x * `by` where p is marked
    (`tile.dropout`), and p becomes 0 there. With `weighted`, that place's number replaces abs(p). So the random bits
    are computed once for both products that follow, and p may be a register operand while the product of x runs.

    Constraints:
    - C1: p and weighted have the rows, columns and warps of grad.
    - C2: as many statistics as there are rows, or columns if transposed.

    ```mlir
    tile.dropout_grad_scores %dp, %p, %stats by 1.111 transposed
        : !tile.frag<128x64, 8>, !tile.register_operand<128x64xbf16, 8>, !tile.row_statistics<64>
    ```
  }];
  let arguments = (ins Tile_Frag:$grad, AnyTypeOf<[Tile_Frag, Tile_RegisterOperand]>:$p,
      In<Tile_RowStatistics>:$statistics, In<Optional<AnyTypeOf<[Tile_Frag, Tile_RegisterOperand]>>>:$weighted,
      F64Attr:$factor, UnitAttr:$transposed);
  let assemblyFormat = [{
    $grad `,` $p `,` $statistics (`weighted` `(` $weighted^ `:` qualified(type($weighted)) `)`)? `by` $factor
        (`transposed` $transposed^)? attr-dict
    `:` qualified(type($grad)) `,` qualified(type($p)) `,` qualified(type($statistics))
  }];
  let hasVerifier = 1;
}

#endif // TILE_DROPOUT_OPS
