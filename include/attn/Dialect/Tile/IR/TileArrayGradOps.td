// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Gradients of arrays that scores are made with: tiles of gradients of scores are added up, reduced and, in a kernel
// behind, summed in a fixed order.
#ifndef TILE_ARRAY_GRAD_OPS
#define TILE_ARRAY_GRAD_OPS

include "attn/Dialect/Tile/IR/TileInterfaces.td"

def Tile_AccumulateOp : Tile_ComputeOp<"accumulate", [AllTypesMatch<["acc", "grad"]>]> {
  let summary = "adds one fragment to another";
  let description = [{
    ```mlir
    tile.accumulate %acc, %dp : !tile.frag<64x64, 4>
    ```
  }];
  let arguments = (ins Tile_Frag:$acc, In<Tile_Frag>:$grad);
  let assemblyFormat = "$acc `,` $grad attr-dict `:` qualified(type($acc))";
}

def Tile_StoreRowSumsOp : Tile_ComputeOp<"store_row_sums"> {
  let summary = "writes the sum of each row of a fragment";
  let description = [{
    One behind the other, all rows of the tile.

    ```mlir
    tile.store_row_sums %dst, %acc : !tile.frag<64x64, 4>
    ```
  }];
  let arguments = (ins Out<Tile_FloatPtr>:$dst, In<Tile_Frag>:$acc);
  let assemblyFormat = "$dst `,` $acc attr-dict `:` qualified(type($acc))";
}

def Tile_StoreCornerOp : Tile_ComputeOp<"store_corner"> {
  let summary = "writes a corner of a fragment, as it is";
  let description = [{
    `rows` by `cols` numbers, rows `stride` apart.

    ```mlir
    tile.store_corner %dst stride(%stride) rows(%rows) cols(%cols), %acc : !tile.frag<64x64, 4>
    ```
  }];
  let arguments = (ins Out<Tile_FloatPtr>:$dst, I64:$stride, I32:$rows, I32:$cols, In<Tile_Frag>:$acc);
  let assemblyFormat = "$dst `stride` `(` $stride `)` `rows` `(` $rows `)` `cols` `(` $cols `)` `,` $acc attr-dict `:` "
                       "qualified(type($acc))";
}

def Tile_StoreDiagonalSumsOp : Tile_ComputeOp<"store_diagonal_sums"> {
  let summary = "writes the sums along the diagonals of a fragment";
  let description = [{
    Of n rows and columns, diagonals below the main one (column - row from -n, which has nothing, to -1) are written
    at `dst`, and those from the main one on (0 to n - 1) n behind `dst` and `pitch` further: sums of a row of tiles
    along which column - row goes on then lie in two runs, of which each number is written once. The fragment is
    used up.

    Constraints:
    - C1: as many rows as columns.

    ```mlir
    tile.store_diagonal_sums %dst pitch(%pitch), %acc through(%place) : !tile.frag<64x64, 4>, !tile.shared<64x80xbf16,
        88>
    ```
  }];
  let arguments = (ins Out<Tile_FloatPtr>:$dst, I64:$pitch, Tile_Frag:$acc, Tile_Shared:$place);
  let assemblyFormat = "$dst `pitch` `(` $pitch `)` `,` $acc `through` `(` $place `)` attr-dict `:` "
                       "qualified(type($acc)) `,` qualified(type($place))";
  let hasVerifier = 1;
}

def Tile_ClearEntryOp : Tile_ComputeOp<"clear_entry"> {
  let summary = "sets a number in global memory to 0";
  let description = [{
    Of kernels whose blocks are one warp.

    ```mlir
    tile.clear_entry %to
    ```
  }];
  let arguments = (ins Out<Tile_FloatPtr>:$to);
  let assemblyFormat = "$to attr-dict";
}

def Tile_AddTotalOp : Tile_ComputeOp<"add_total"> {
  let summary = "adds the sum of some numbers to one";
  let description = [{
    Of `count` numbers one behind the other, in an order that depends on `count` alone; none if it is not positive. Of
    kernels whose blocks are one warp.

    ```mlir
    tile.add_total %to, %from count(%count)
    ```
  }];
  let arguments = (ins InOut<Tile_FloatPtr>:$to, Tile_FloatPtr:$from, I32:$count);
  let assemblyFormat = "$to `,` $from `count` `(` $count `)` attr-dict";
}

def Tile_AddSinkGradOp : Tile_ComputeOp<"add_sink_grad"> {
  let summary = "adds a sink's gradient by some rows";
  let description = [{
    Minus the sum of exp(sink - lse) * delta over `count` rows, with what `tile.preprocess` left of them; in a fixed
    order, as `tile.add_total`.

    ```mlir
    tile.add_sink_grad %to, %statistics pitch(%pitch) count(%count) sink(%sink)
    ```
  }];
  let arguments = (ins InOut<Tile_FloatPtr>:$to, Tile_FloatPtr:$statistics, I64:$pitch, I32:$count, F32:$sink);
  let assemblyFormat =
      "$to `,` $statistics `pitch` `(` $pitch `)` `count` `(` $count `)` `sink` `(` $sink `)` attr-dict";
}

#endif // TILE_ARRAY_GRAD_OPS
