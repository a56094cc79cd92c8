// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The dQ accumulator in global memory, to which the CTAs of several KV tiles add.
#ifndef TILE_ACCUMULATOR_OPS
#define TILE_ACCUMULATOR_OPS

include "attn/Dialect/Tile/IR/TileInterfaces.td"

def Tile_AddGlobalOp : Tile_ComputeOp<"add_global", [AttrSizedOperandSegments]> {
  let summary = "adds a fragment to the dQ accumulator in global memory";
  let description = [{
    Element by element: through a staging place, by a bulk reduction, or from registers, without a staging place or if
    its slots have 0 bytes. `sum` points at the first row of a query tile. The first `left` rows belong to the
    sequence; others are not added. A row has as many floats as there are columns to add, in the order in which
    `tile.postprocess` reads them. The additions are complete when the kernel is.

    | | order |
    |---|---|
    | no `semaphore` | CTAs add in any order, to a sum that was 0 |
    | `semaphore` | a CTA waits until its predecessor has added; the first CTA stores |
    | and `after_first` | CTAs wait only until the first one has stored, and then add in any order |

    `of` is the index of the KV tile in its sequence; below, a KV tile stands for the CTA that computes it. The region
    gets another index and returns whether that KV tile adds to the same sum; the predecessor is the last such tile of
    lower index. `semaphore` points at an integer for each sum. It is 0 before the launch, and then 1 + the index of the
    KV tile that added last, or, with `after_first`, 1 + the index of the first. KV tiles that share sums start in
    ascending order of their indices, so that none waits for one that has not started.

    KV tiles below `first` see none of the query tile's rows, though their loops may visit it: they do not add, and the
    search for the predecessor ends there. Without it that search would take time that grows with the sequence.

    Where `sole_writer` is true, one CTA contributes all of the sum; the condition is the same in all CTAs that reach
    this tile. None adds, and the semaphore becomes -1. The fragment's rows below `rows`, which is 0 in the other CTAs,
    are multiplied `by` a number, converted and written to `dst`, `dim` columns each.

    Constraints:
    - C1: each slot of the staging place has room for the fragment and no more, or, with a semaphore and without
      after_first, none at all.
    - C2: a semaphore goes with a staging place and with a region over (i32) -> (i1), and first and after_first with a
      semaphore.
    - C3: sole_writer goes with a semaphore, with a destination of rows whose `dim` is at most the fragment's columns
      in all warpgroups together, and with a kernel that has a dQ MMA warpgroup.

    ```mlir
    tile.add_global %sum, %dQ left(%left) through(%staging : !tile.staging<2, 32768>) : !tile.frag<128x64, 8>
    tile.add_global %sum, %wide_dQ left(%left) : !tile.frag<128x128, 8>
    tile.add_global %sum, %dQ left(%left) through(%staging : !tile.staging<2, 32768>) semaphore(%semaphore of %tile)
        : !tile.frag<128x64, 8> {
    ^bb0(%other: i32):
      %adds = arith.cmpi slt, %other, %tile : i32
      tile.yield %adds : i1
    }
    ```
  }];
  let arguments = (ins InOut<Tile_FloatPtr>:$sum, In<Tile_Frag>:$acc, I32:$left, Optional<Tile_Staging>:$staging,
      InOut<Optional<Tile_IntPtr>>:$semaphore, Optional<I32>:$tile, Optional<I32>:$first_tile, UnitAttr:$after_first,
      Optional<I1>:$sole_writer, Out<Optional<Tile_Ptr>>:$dst, Optional<I64>:$stride, Optional<I32>:$rows,
      OptionalAttr<F64Attr>:$factor, OptionalAttr<I64Attr>:$dim);
  let regions = (region AnyRegion:$adds);
  // Without `sole_writer`.
  let builders = [OpBuilder<(ins "mlir::Value":$sum, "mlir::Value":$acc, "mlir::Value":$left, "mlir::Value":$staging,
                                "mlir::Value":$semaphore, "mlir::Value":$tile, "bool":$afterFirst),
                            [{
    build($_builder, $_state, sum, acc, left, staging, semaphore, tile, /*first_tile=*/{}, afterFirst,
          /*sole_writer=*/{}, /*dst=*/{}, /*stride=*/{}, /*rows=*/{}, mlir::FloatAttr(), mlir::IntegerAttr());
  }]>];
  let assemblyFormat = [{
    $sum `,` $acc `left` `(` $left `)` (`through` `(` $staging^ `:` qualified(type($staging)) `)`)?
    (`semaphore` `(` $semaphore^ `of` $tile `)`)? (`first` `(` $first_tile^ `)`)? (`after_first` $after_first^)?
    (`sole_writer` `(` $sole_writer^ `)` `to` `(` $dst `:` qualified(type($dst)) `stride` $stride `rows` $rows `by`
        $factor `dim` $dim `)`)?
    attr-dict `:` qualified(type($acc)) ($adds^)?
  }];
  let hasVerifier = 1;
}

def Tile_AddGlobalOrderedOp : Tile_ComputeOp<"add_global_ordered"> {
  let summary = "adds a fragment to the dQ accumulator when `tile.add_staged` permits it";
  let description = [{
    The part of `tile.add_global` that the consumers or the dQ MMA warpgroup run, from registers, where nothing is
    staged. The dQ MMA warpgroup computes a tile in blocks, of which this is number `block`; `last` marks the last of
    them, and signals that the tile has been added.

    Constraints:
    - C1: slots have 0 bytes, and `block` is not negative.

    ```mlir
    tile.add_global_ordered %sum, %wide_dQ left(%left), %staging last : !tile.frag<128x128, 8>, !tile.staging<2, 0>
    ```
  }];
  let arguments = (ins InOut<Tile_FloatPtr>:$sum, In<Tile_Frag>:$acc, I32:$left, Tile_Staging:$staging,
      DefaultValuedAttr<I64Attr, "0">:$block, UnitAttr:$last);
  let assemblyFormat = "$sum `,` $acc `left` `(` $left `)` `,` $staging (`block` $block^)? (`last` $last^)? attr-dict "
                       "`:` qualified(type($acc)) `,` qualified(type($staging))";
  let hasVerifier = 1;
}

def Tile_SkipAddOp : Tile_DqStoreOp<"skip_add"> {
  let summary = "sets a sum's semaphore to -1: no CTA adds to the sum";
  let description = [{
    The part of `tile.add_global` that the dQ store warps run where a CTA is the sole writer.

    ```mlir
    tile.skip_add %semaphore : !tile.ptr<i32>
    ```
  }];
  let arguments = (ins Out<Tile_IntPtr>:$semaphore);
  let assemblyFormat = "$semaphore attr-dict `:` qualified(type($semaphore))";
}

def Tile_StageOp : Tile_ComputeOp<"stage"> {
  let summary = "writes a fragment to the next slot of a staging place";
  let description = [{
    The part of `tile.add_global` that the consumers or the dQ MMA warpgroup run: waits for the slot to be empty, and
    signals `tile.add_staged` when it is full.

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
  let summary = "adds the next slot of a staging place to the dQ accumulator";
  let description = [{
    The part of `tile.add_global` that the dQ store warps run; order, rows and region are explained there. If slots
    have 0 bytes, `tile.add_global_ordered` adds, and this op signals when. `columns` are those of the fragments that
    were staged. A tile of the dQ MMA warpgroup comes in `blocks`, a slot each.

    Constraints:
    - C1: a semaphore goes with a region over (i32) -> (i1), first and after_first with a semaphore, and slots of 0
      bytes with a semaphore and without after_first.
    - C2: blocks is positive, columns is a multiple of 16, and slots have the bytes of a multiple of 64 rows of so
      many columns.

    ```mlir
    tile.add_staged %sum, %staging left(%left) columns 64 : !tile.staging<2, 32768>
    tile.add_staged %sum, %halves left(%left) columns 64 blocks 2 : !tile.staging<2, 16384>
    ```
  }];
  let arguments = (ins InOut<Tile_FloatPtr>:$sum, In<Tile_Staging>:$staging, I32:$left,
      InOut<Optional<Tile_IntPtr>>:$semaphore, Optional<I32>:$tile, Optional<I32>:$first_tile, I64Attr:$columns,
      DefaultValuedAttr<I64Attr, "1">:$blocks, UnitAttr:$after_first);
  let regions = (region AnyRegion:$adds);
  let assemblyFormat = [{
    $sum `,` $staging `left` `(` $left `)` (`semaphore` `(` $semaphore^ `of` $tile `)`)?
    (`first` `(` $first_tile^ `)`)? (`after_first` $after_first^)? `columns` $columns (`blocks` $blocks^)?
    attr-dict `:` qualified(type($staging)) ($adds^)?
  }];
  let hasVerifier = 1;
}

def Tile_PostprocessOp : Tile_ComputeOp<"postprocess", [AttrSizedOperandSegments]> {
  let summary = "writes rows of dQ from the dQ accumulator";
  let description = [{
    The first `rows` rows of a query tile's sum are multiplied `by` a number and converted; rows from there up to
    `written` become zeros. If `semaphore` is 0, no CTA has added, and all rows become zeros; if it is -1, a sole
    writer has stored dQ, and nothing is written. `columns` are those of the fragments that were added,
    `from_registers` if they were added from registers. A row of dQ has `dim` columns. With `before` these rows are
    added: row r is at `before` + r * `before_stride`; they may be the memory of dQ.

    Constraints:
    - C1: `columns` is a multiple of 16, `dim` of 8.

    ```mlir
    tile.postprocess %dq stride(%dq_row), %sum rows(%rows of %written) by 0.125 dim 128 columns 64 : !tile.ptr<bf16>
    tile.postprocess %dq stride(%dq_row), %sum rows(%rows of %rows) by 0.125 dim 64 columns 32 from_registers
        semaphore(%semaphore) : !tile.ptr<bf16>
    tile.postprocess %dq stride(%dq_row), %sum rows(%rows of %rows) by 0.125 dim 64 columns 32
        before(%before stride(%before_row)) : !tile.ptr<bf16>
    ```
  }];
  let arguments = (ins Out<Tile_Ptr>:$dst, I64:$stride, Tile_FloatPtr:$sum, I32:$rows, I32:$written, F64Attr:$factor,
      I64Attr:$dim, I64Attr:$columns, UnitAttr:$from_registers, Optional<Tile_IntPtr>:$semaphore,
      Optional<Tile_FloatPtr>:$before, Optional<I64>:$before_stride);
  let assemblyFormat =
      [{ $dst `stride` `(` $stride `)` `,` $sum `rows` `(` $rows `of` $written `)` `by` $factor `dim` $dim `columns`
          $columns (`from_registers` $from_registers^)?
    (`semaphore` `(` $semaphore^ `)`)? (`before` `(` $before^ `stride` `(` $before_stride `)` `)`)? attr-dict `:`
    qualified(type($dst)) }];
  let hasVerifier = 1;
}

#endif // TILE_ACCUMULATOR_OPS
