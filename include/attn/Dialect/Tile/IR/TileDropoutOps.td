// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Dropout: pairs that count for nothing in products with probabilities. What is drawn for a pair is in
// `attn.problem`; tiles of any size, and of either orientation, draw the same.
#ifndef TILE_DROPOUT_OPS
#define TILE_DROPOUT_OPS

include "attn/Dialect/Tile/IR/TileBackwardOps.td"

def Tile_DropoutStateOp : Tile_ScalarOp<"dropout_state"> {
  let summary = "the random numbers of a sequence, by the words of a seed";
  let description = [{
    Of one head, or without it of all (where rows are pairs of a query and a head).

    ```mlir
    %draws = tile.dropout_state %seed of(%b, %h)
    %of_pairs = tile.dropout_state %seed of(%b)
    ```
  }];
  let arguments = (ins Tile_IntPtr:$seed, I32:$b, Optional<I32>:$head);
  let results = (outs Tile_DropoutState:$result);
  let assemblyFormat = "$seed `of` `(` $b (`,` $head^)? `)` attr-dict";
}

def Tile_DropoutOp : Tile_ComputeOp<"dropout"> {
  let summary = "what belongs to a dropped pair becomes 0";
  let description = [{
    Of probabilities, behind their sums and ahead of the product with V; of gradients of probabilities, in which what
    is kept is multiplied (`by`). (`row0`, `col0`) are the numbers of the tile's first row and column, queries and keys,
    or, `transposed`, keys and queries. A pair is dropped if its 15 bits are below `below`. With `marks`, probabilities
    stay, and those of dropped pairs become negative, for `tile.dropout_grad_scores`.

    Constraints:
    - C1: `below` is from 1 to 2^15 - 1.
    - C2: what is held for a product, or marked, is not multiplied.
    - C3: rows are pairs only where nothing is transposed or marked; columns only if rows are, and not of what is held.

    ```mlir
    tile.dropout %s at(%q0, %k0) draws(%draws) below 3277 : !tile.frag<128x64, 4>
    tile.dropout %dp at(%k0, %q0) draws(%draws) below 3277 by 1.111 transposed : !tile.frag<128x64, 8>
    tile.dropout %p at(%k0, %q0) draws(%draws) below 3277 transposed marks : !tile.register_operand<128x64xbf16, 8>
    ```
  }];
  let arguments = (ins AnyTypeOf<[Tile_AnyScores, Tile_RegisterOperand]>:$place, Tile_Origin:$row0, Tile_Origin:$col0,
      Tile_DropoutState:$draws, I64Attr:$below, OptionalAttr<F64Attr>:$factor, UnitAttr:$transposed, UnitAttr:$marks);
  let assemblyFormat = [{
    $place `at` `(` $row0 `` custom<Origin>(type($row0)) `,` $col0 `` custom<Origin>(type($col0)) `)` `draws` `(` $draws
        `)` `below` $below
    (`by` $factor^)? (`transposed` $transposed^)? (`marks` $marks^)? attr-dict `:` qualified(type($place))
  }];
  let hasVerifier = 1;
}

def Tile_DropoutBitsOp : Tile_ComputeOp<"dropout_bits"> {
  let summary = "the first half of `tile.dropout`: which pairs are kept";
  let description = [{
    As masks of what will be held: numbers follow from places of pairs alone, so they are drawn while the products run
    that probabilities come from.

    Constraints:
    - C1: `below` is from 1 to 2^15 - 1.

    ```mlir
    tile.dropout_bits %kept at(%q0, %k0) draws(%draws) below 3277 : !tile.register_operand<128x128xbf16, 8>
    ```
  }];
  let arguments = (ins Out<Tile_RegisterOperand>:$kept, Tile_Origin:$row0, I32:$col0, Tile_DropoutState:$draws,
      I64Attr:$below);
  let assemblyFormat = [{
    $kept `at` `(` $row0 `` custom<Origin>(type($row0)) `,` $col0 `)` `draws` `(` $draws `)` `below` $below attr-dict
        `:` qualified(type($kept))
  }];
  let hasVerifier = 1;
}

def Tile_ApplyDropoutBitsOp : Tile_ComputeOp<"apply_dropout_bits", [AllTypesMatch<["p", "kept"]>]> {
  let summary = "the second half of `tile.dropout`, of what is held";
  let description = [{
    ```mlir
    tile.apply_dropout_bits %p, %kept : !tile.register_operand<128x128xbf16, 8>
    ```
  }];
  let arguments = (ins Tile_RegisterOperand:$p, In<Tile_RegisterOperand>:$kept);
  let assemblyFormat = "$p `,` $kept attr-dict `:` qualified(type($p))";
}

def Tile_DropoutGradScoresOp : Tile_ComputeOp<"dropout_grad_scores"> {
  let summary = "`tile.grad_scores` with dropout, of probabilities that are marked";
  let description = [{
    Each x of `grad`, a product of dO and V, becomes |p| * (x * `by` - delta), without the first term of the parenthesis
    where p is marked (`tile.dropout`), and p becomes 0 there. With `weighted`, that place's number is in front of the
    parenthesis. So numbers are drawn once for both products that follow, and p may be held, rounded, while x is under
    way.

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
