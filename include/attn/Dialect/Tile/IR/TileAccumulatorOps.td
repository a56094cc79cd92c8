// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Sums of dQ in memory, to which blocks of several key tiles add: who adds, by way of what, and who reads them.
#ifndef TILE_ACCUMULATOR_OPS
#define TILE_ACCUMULATOR_OPS

include "attn/Dialect/Tile/IR/TileInterfaces.td"

def Tile_AddGlobalOp : Tile_ComputeOp<"add_global", [AttrSizedOperandSegments]> {
  let summary = "adds a fragment to a sum in global memory";
  let description = [{
    Element by element: through shared memory, by a bulk copy that adds, or
    from registers, where there is no staging place or its slots have 0 bytes. `sum` points at the first row of a query
    tile, of which `left` rows and those behind them are the sequence's; others are not added. A row has as many floats
    as there are columns to add, in an order that `tile.postprocess` knows. All is over when the kernel is.

    Without `turns` blocks add in no order, to what was 0. With them, in the order of the numbers that blocks have
    (`of`): the region is given another number and says whether that block adds to the same sum. Before a block adds, it
    waits until the last one of them below its own has; the first writes what others add to. `turns` points at the sum's
    counter, 0 before the launch, which is left at 1 + the number of who added last. So that no block waits for one that
    has not begun, numbers that share sums are begun in ascending order. With `after_first`, blocks wait only until the
    first has written, and then add in no order; the counter is left at 1 + its number.

    Where `sole_writer` is true, one block has all of the sum, as all that come by know. Nobody adds, and the counter is
    left at -1: the fragment's rows below `rows`, 0 of any other block, are multiplied `by` a number, rounded and
    written to `dst`, `dim` columns each.

    Constraints:
    - C1: each slot of the staging place has room for the fragment and no more, or, with turns that are not after_first,
      none at all.
    - C2: turns go with a staging place and with a region over (i32) -> (i1), and after_first with turns.
    - C3: alone goes with turns, with where rows are written, of no more columns than blocks of the fragment have, and
      with a kernel that has a reducer.

    ```mlir
    tile.add_global %sum, %dQ left(%left) through(%staging : !tile.staging<2, 32768>) : !tile.frag<128x64, 8>
    tile.add_global %sum, %wide_dQ left(%left) : !tile.frag<128x128, 8>
    tile.add_global %sum, %dQ left(%left) through(%staging : !tile.staging<2, 32768>) turns(%turn of %tile)
        : !tile.frag<128x64, 8> {
    ^bb0(%other: i32):
      %adds = arith.cmpi slt, %other, %tile : i32
      tile.yield %adds : i1
    }
    ```
  }];
  let arguments = (ins InOut<Tile_FloatPtr>:$sum, In<Tile_Frag>:$acc, I32:$left, Optional<Tile_Staging>:$staging,
      InOut<Optional<Tile_IntPtr>>:$turn, Optional<I32>:$tile, UnitAttr:$after_first, Optional<I1>:$sole_writer,
      Out<Optional<Tile_Ptr>>:$dst, Optional<I64>:$stride, Optional<I32>:$rows, OptionalAttr<F64Attr>:$factor,
      OptionalAttr<I64Attr>:$dim);
  let regions = (region AnyRegion:$adds);
  // Of no block that is alone.
  let builders = [OpBuilder<(ins "mlir::Value":$sum, "mlir::Value":$acc, "mlir::Value":$left, "mlir::Value":$staging,
                                "mlir::Value":$turn, "mlir::Value":$tile, "bool":$afterFirst),
                            [{
    build($_builder, $_state, sum, acc, left, staging, turn, tile, afterFirst, /*alone=*/{}, /*dst=*/{},
        /*stride=*/{}, /*rows=*/{}, mlir::FloatAttr(),
          mlir::IntegerAttr());
  }]>];
  let assemblyFormat = [{
    $sum `,` $acc `left` `(` $left `)` (`through` `(` $staging^ `:` qualified(type($staging)) `)`)? (`turns` `(` $turn^
        `of` $tile `)`)? (`after_first` $after_first^)?
    (`sole_writer` `(` $sole_writer^ `)` `to` `(` $dst `:` qualified(type($dst)) `stride` $stride `rows` $rows `by`
        $factor `dim` $dim `)`)?
    attr-dict `:` qualified(type($acc)) ($adds^)?
  }];
  let hasVerifier = 1;
}

def Tile_AddGlobalOrderedOp : Tile_ComputeOp<"add_global_ordered"> {
  let summary = "adds a fragment to a sum in global memory when `tile.add_staged` says that it may";
  let description = [{
    `tile.add_global` of those that multiply or of a reducer, from registers, where nothing is staged. A reducer's tile
    comes in blocks, of which this is number `block`; the turn is `over` with the last of them, which says so.

    Constraints:
    - C1: slots have 0 bytes, and `block` is not negative.

    ```mlir
    tile.add_global_ordered %sum, %wide_dQ left(%left), %turns over : !tile.frag<128x128, 8>, !tile.staging<2, 0>
    ```
  }];
  let arguments = (ins InOut<Tile_FloatPtr>:$sum, In<Tile_Frag>:$acc, I32:$left, Tile_Staging:$staging,
      DefaultValuedAttr<I64Attr, "0">:$block, UnitAttr:$over);
  let assemblyFormat = "$sum `,` $acc `left` `(` $left `)` `,` $staging (`block` $block^)? (`over` $over^)? attr-dict "
                       "`:` qualified(type($acc)) `,` qualified(type($staging))";
  let hasVerifier = 1;
}

def Tile_SkipAddOp : Tile_DqStoreOp<"skip_add"> {
  let summary = "leaves a sum's counter at -1: nobody adds to it";
  let description = [{
    `tile.add_global` of the role that adds, of a block that is alone.

    ```mlir
    tile.skip_add %turn : !tile.ptr<i32>
    ```
  }];
  let arguments = (ins Out<Tile_IntPtr>:$turn);
  let assemblyFormat = "$turn attr-dict `:` qualified(type($turn))";
}

def Tile_StageOp : Tile_ComputeOp<"stage"> {
  let summary = "writes a fragment to the next slot of a staging place";
  let description = [{
    `tile.add_global` of those that multiply: waits for the slot to be empty and tells `tile.add_staged` when it is
    full.

    Constraints:
    - C1: each slot has room for the fragment and no more.

    ```mlir
    tile.stage %staging, %dQ : !tile.staging<2, 32768>, !tile.frag<128x64, 8>
    ```
  }];
  let arguments = (ins Out<Tile_Staging>:$staging, In<Tile_Frag>:$acc);
  let assemblyFormat = "$staging `,` $acc attr-dict `:` qualified(type($staging)) `,` qualified(type($acc))";
  let hasVerifier = 1;
}

def Tile_AddStagedOp : Tile_DqStoreOp<"add_staged", [AttrSizedOperandSegments]> {
  let summary = "adds the next slot of a staging place to a sum in global memory";
  let description = [{
    `tile.add_global` of the role that adds, where its order, its rows and its region are explained. If slots have 0
    bytes, `tile.add_global_ordered` adds. `columns` are those of the fragments that were staged. A tile that a reducer
    made comes in `blocks`, a slot each.

    Constraints:
    - C1: turns go with a region over (i32) -> (i1), after_first with turns, and slots of 0 bytes with turns that are
      not after_first.
    - C2: blocks is positive, and slots are as large as some times 64 rows of so many columns.

    ```mlir
    tile.add_staged %sum, %staging left(%left) columns 64 : !tile.staging<2, 32768>
    tile.add_staged %sum, %halves left(%left) columns 64 blocks 2 : !tile.staging<2, 16384>
    ```
  }];
  let arguments = (ins InOut<Tile_FloatPtr>:$sum, In<Tile_Staging>:$staging, I32:$left,
      InOut<Optional<Tile_IntPtr>>:$turn, Optional<I32>:$tile, I64Attr:$columns,
      DefaultValuedAttr<I64Attr, "1">:$blocks, UnitAttr:$after_first);
  let regions = (region AnyRegion:$adds);
  let assemblyFormat = [{
    $sum `,` $staging `left` `(` $left `)` (`turns` `(` $turn^ `of` $tile `)`)? (`after_first` $after_first^)? `columns`
        $columns (`blocks` $blocks^)? attr-dict `:` qualified(type($staging)) ($adds^)?
  }];
  let hasVerifier = 1;
}

def Tile_PostprocessOp : Tile_ComputeOp<"postprocess"> {
  let summary = "writes rows of dQ from a sum, as `tile.add_global` left it";
  let description = [{
    The first `rows` rows of the sum of a query tile, multiplied `by` a number and rounded, and zeros up to row
    `written`. All of them are zeros if `turn`, the counter of those who added in order, is 0. `columns` are those of
    the fragments that were added, `held` in registers when they were; a row of dQ has `dim`.

    Constraints:
    - C1: `columns` is a multiple of 16, `dim` of 8.

    ```mlir
    tile.postprocess %dq stride(%dq_row), %sum rows(%rows of %written) by 0.125 dim 128 columns 64 : !tile.ptr<bf16>
    tile.postprocess %dq stride(%dq_row), %sum rows(%rows of %rows) by 0.125 dim 64 columns 32 held turn(%turn)
        : !tile.ptr<bf16>
    ```
  }];
  let arguments = (ins Out<Tile_Ptr>:$dst, I64:$stride, Tile_FloatPtr:$sum, I32:$rows, I32:$written, F64Attr:$factor,
      I64Attr:$dim, I64Attr:$columns, UnitAttr:$held, Optional<Tile_IntPtr>:$turn);
  let assemblyFormat =
      [{ $dst `stride` `(` $stride `)` `,` $sum `rows` `(` $rows `of` $written `)` `by` $factor `dim` $dim `columns`
          $columns (`held` $held^)?
    (`turn` `(` $turn^ `)`)? attr-dict `:` qualified(type($dst)) }];
  let hasVerifier = 1;
}

#endif // TILE_ACCUMULATOR_OPS
