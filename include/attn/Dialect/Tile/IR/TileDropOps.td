// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Dropout: pairs that count for nothing in products with probabilities. What is drawn for a pair is in
// `attn.problem`; tiles of any size, and of either orientation, draw the same.
#ifndef TILE_DROP_OPS
#define TILE_DROP_OPS

include "attn/Dialect/Tile/IR/TileBackwardOps.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def Tile_DrawsOp : Tile_Op<"draws", [Pure]> {
  let summary = "the random numbers of a sequence, by the words of a seed";
  let description = [{
    Of one head, or without it of all (where rows are pairs of a query and a head).

    ```mlir
    %draws = tile.draws %seed of(%b, %h)
    %of_pairs = tile.draws %seed of(%b)
    ```
  }];
  let arguments = (ins Tile_IntPtr:$seed, I32:$b, Optional<I32>:$head);
  let results = (outs Tile_Draws:$result);
  let assemblyFormat = "$seed `of` `(` $b (`,` $head^)? `)` attr-dict";
}

def Tile_DropOp : Tile_Op<"drop"> {
  let summary = "what belongs to a dropped pair becomes 0";
  let description = [{
    Of probabilities, behind their sums and ahead of the product with V; of gradients of probabilities, in which what
    is kept is multiplied (`by`). (`row0`, `col0`) are the numbers of the tile's first row and column, queries and keys, or,
    `turned`, keys and queries. A pair is dropped if its 15 bits are below `below`.

    Constraints:
    - C1: `below` is from 1 to 2^15 - 1.
    - C2: what is held for a product is not multiplied.
    - C3: rows are pairs only if columns are keys; of what is held, neither are pairs, and rows are not keys.

    ```mlir
    tile.drop %s at(%q0, %k0) draws(%draws) below 3277 : !tile.frag<128x64, 4>
    tile.drop %dp at(%k0, %q0) draws(%draws) below 3277 by 1.111 turned : !tile.frag<128x64, 8>
    ```
  }];
  let arguments = (ins AnyTypeOf<[Tile_AnyScores, Tile_Held]>:$place, Tile_Origin:$row0, Tile_Origin:$col0,
                       Tile_Draws:$draws, I64Attr:$below, OptionalAttr<F64Attr>:$factor, UnitAttr:$turned);
  let assemblyFormat = [{
    $place `at` `(` $row0 `` custom<Origin>(type($row0)) `,` $col0 `` custom<Origin>(type($col0)) `)` `draws` `(` $draws `)` `below` $below
    (`by` $factor^)? (`turned` $turned^)? attr-dict `:` qualified(type($place))
  }];
  let hasVerifier = 1;
}

def Tile_DropGradsOp : Tile_Op<"drop_grads", [AllTypesMatch<["grad", "p"]>]> {
  let summary = "`tile.grad_scores` and both `tile.drop`s around it, of one draw";
  let description = [{
    As if it were

        tile.drop of grad, multiplied
        tile.grad_scores of grad, with p or `weighted`
        tile.drop of p

    so that numbers are drawn once, and of two tiles in registers neither has to be kept.

    Constraints:
    - C1: `below` is from 1 to 2^15 - 1.
    - C2: as many statistics as there are rows, or columns if turned.
    - C3: weighted has the rows, columns and warps of p.

    ```mlir
    tile.drop_grads %dp, %s, %stats at(%k0, %q0) draws(%draws) below 3277 by 1.111 turned
      : !tile.frag<128x64, 8>, !tile.statistics<64>
    ```
  }];
  let arguments = (ins Tile_Frag:$grad, Tile_Frag:$p, Tile_Statistics:$statistics, Optional<AnyTypeOf<[Tile_Frag, Tile_Held]>>:$weighted,
                       I32:$row0, I32:$col0, Tile_Draws:$draws, I64Attr:$below, F64Attr:$factor, UnitAttr:$turned);
  let assemblyFormat = [{
    $grad `,` $p `,` $statistics (`weighted` `(` $weighted^ `:` qualified(type($weighted)) `)`)? `at` `(` $row0 `,` $col0 `)` `draws` `(` $draws `)` `below` $below `by` $factor
    (`turned` $turned^)? attr-dict `:` qualified(type($grad)) `,` qualified(type($statistics))
  }];
  let hasVerifier = 1;
}

#endif // TILE_DROP_OPS
