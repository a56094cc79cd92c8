// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Gradients of arrays that score modifiers and sinks read: tiles of gradients of scores are added up and reduced, and
// another kernel sums the results in a fixed order.
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

def Tile_StoreSumsOp : Tile_ComputeOp<"store_sums", [AttrSizedOperandSegments]> {
  let summary = "writes the sums of a fragment's rows or diagonals";
  let description = [{
    Without `through`: the sum of each row, in order, at `dst`.

    With `through`: the sums along diagonals, by way of a tile in shared memory. For n rows and columns, diagonals below
    the main one (column - row from -n, which is empty, to -1) are written at `dst`, and those from the main one on
    (0 to n - 1) at `dst` + n + `pitch`: the sums of consecutive tiles, along which column - row goes on, lie in two
    runs, and each number is written once. The fragment is overwritten.

    Constraints:
    - C1: `pitch` and `through` go together, and the fragment has as many rows as columns then.

    ```mlir
    tile.store_sums %dst, %acc : !tile.ptr<f32>, !tile.frag<64x64, 4>
    tile.store_sums %dst, %acc pitch(%pitch) through(%place : !tile.shared<64x80xbf16, 88>)
        : !tile.ptr<f32>, !tile.frag<64x64, 4>
    ```
  }];
  let arguments = (ins Out<Tile_FloatPtr>:$dst, Tile_Frag:$acc, Optional<I64>:$pitch, Optional<Tile_Shared>:$place);
  let builders = [OpBuilder<(ins "::mlir::Value":$dst, "::mlir::Value":$acc),
                            "build($_builder, $_state, dst, acc, ::mlir::Value(), ::mlir::Value());">];
  let assemblyFormat = [{
    $dst `,` $acc (`pitch` `(` $pitch^ `)`)? (`through` `(` $place^ `:` qualified(type($place)) `)`)? attr-dict
    `:` qualified(type($dst)) `,` qualified(type($acc))
  }];
  let hasVerifier = 1;
}

def Tile_StoreCornerOp : Tile_ComputeOp<"store_corner"> {
  let summary = "writes the first rows and columns of a fragment, unconverted";
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

def Tile_CopyNumberOp : Tile_ComputeOp<"copy_number"> {
  let summary = "sets one number in global memory to another, which may be the same";
  let description = [{
    Only for kernels whose CTAs are one warp.

    ```mlir
    tile.copy_number %to, %from
    ```
  }];
  let arguments = (ins Out<Tile_FloatPtr>:$to, Tile_FloatPtr:$from);
  let assemblyFormat = "$to `,` $from attr-dict";
}

def Tile_AddTotalOp : Tile_ComputeOp<"add_total"> {
  let summary = "adds the sum of `count` consecutive numbers to one number";
  let description = [{
    The order of the sum depends on `count` alone; nothing is added if `count` is not positive. Only for kernels whose
    CTAs are one warp.

    ```mlir
    tile.add_total %to, %from count(%count)
    ```
  }];
  let arguments = (ins InOut<Tile_FloatPtr>:$to, Tile_FloatPtr:$from, I32:$count);
  let assemblyFormat = "$to `,` $from `count` `(` $count `)` attr-dict";
}

def Tile_AddSinkGradOp : Tile_ComputeOp<"add_sink_grad"> {
  let summary = "adds the contribution of some rows to a sink's gradient";
  let description = [{
    Minus the sum of exp(sink - lse) * delta over `count` rows, with the statistics of `tile.preprocess`; in a fixed
    order, as `tile.add_total`.

    ```mlir
    tile.add_sink_grad %to, %row_statistics pitch(%pitch) count(%count) sink(%sink)
    ```
  }];
  let arguments = (ins InOut<Tile_FloatPtr>:$to, Tile_FloatPtr:$statistics, I64:$pitch, I32:$count, F32:$sink);
  let assemblyFormat =
      "$to `,` $statistics `pitch` `(` $pitch `)` `count` `(` $count `)` `sink` `(` $sink `)` attr-dict";
}

#endif // TILE_ARRAY_GRAD_OPS
