// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which key tiles a query tile has to visit where run-time arrays decide: what their entries
// are, tile by tile, and the tiles that follow from it. A block is one warp.
#ifndef TILE_VISIT_OPS
#define TILE_VISIT_OPS

include "attn/Dialect/Tile/IR/TileTypes.td"
include "mlir/IR/OpAsmInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def Tile_EntryRangeOp : Tile_Op<"entry_range", [Pure, DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmResultNames"]>]> {
  let summary = "the least and the largest of some entries of a run-time array";
  let description = [{
    Of `count` entries. Those that are `hidden` are left out, and `whole` is 1 if there
    were none, else 0. Without any other entry, least is 2^31 - 1 and largest -2^31.

    ```mlir
    %least, %largest, %whole = tile.entry_range %ids count(%rows) hidden 0
    ```
  }];
  let arguments = (ins Tile_IntPtr:$array, I32:$count, OptionalAttr<I32Attr>:$hidden);
  let results = (outs I32:$least, I32:$largest, I32:$whole);
  let assemblyFormat = "$array `count` `(` $count `)` (`hidden` $hidden^)? attr-dict";
}

def Tile_SetOp : Tile_Op<"set"> {
  let summary = "writes one element of an array in global memory";
  let description = [{
    By one thread of the block; nothing of the kernel reads it.

    ```mlir
    tile.set %counts[%at], %full
    ```
  }];
  let arguments = (ins Tile_IntPtr:$array, I64:$index, I32:$value);
  let assemblyFormat = "$array `[` $index `]` `,` $value attr-dict";
}

def Tile_SelectTilesOp : Tile_Op<"select_tiles", [SingleBlock,
    DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmResultNames", "getAsmBlockArgumentNames"]>]> {
  let summary = "lists the tiles of a run in which something may be visible";
  let description = [{
    The region says of a tile whether some of its pairs may be visible, and whether all are.
    Tiles of which all are go to the list's front, in ascending order, behind the `full` ones that
    are there; those that are to be tested to its end, in ascending order from the last entry
    down, before the `partial` ones that are there. The list has `capacity` entries from `at` on.
    Returns how many of each it then has.

    Where there are many tiles, they are looked at in groups of 32 first: tile j is in group (first + j) / 32,
    and the second region says of a group whether something may be visible in those of its tiles that are in the run.

    Constraints:
    - C1: the regions have one argument, an i32; the first yields two i1, the second one.

    ```mlir
    %full, %partial = tile.select_tiles %tiles[%at] capacity(%across) has(%zero, %zero) from %begin to %end {
    ^bb0(%j: i32):
      %some = arith.cmpi sle, %j, %last : i32
      %all = arith.cmpi slt, %j, %last : i32
      tile.yield %some, %all : i1, i1
    } groups(%first) {
    ^bb0(%g: i32):
      %any = arith.cmpi sle, %g, %last : i32
      tile.yield %any : i1
    }
    ```
  }];
  let arguments = (ins Tile_IntPtr:$list, I64:$at, I32:$capacity, I32:$has_full, I32:$has_partial, I32:$begin, I32:$end,
                       I32:$first);
  let results = (outs I32:$full, I32:$partial);
  let regions = (region SizedRegion<1>:$body, SizedRegion<1>:$groups);
  let hasVerifier = 1;
  let assemblyFormat = [{
    $list `[` $at `]` `capacity` `(` $capacity `)` `has` `(` $has_full `,` $has_partial `)` `from` $begin `to` $end $body
    `groups` `(` $first `)` $groups attr-dict
  }];
}

def Tile_MarkBlocksOp : Tile_Op<"mark_blocks"> {
  let summary = "makes bits of lists of blocks";
  let description = [{
    Row i of `bits`, of `rows` rows of `words` words for each of `lines` lines, gets a bit for each block that entries
    offsets[i] to offsets[i + 1] of `columns` name, of which there are `entries`; each line has an offset more than rows.
    What lies beyond the entries or the words is not read and not written. The block writes rows `first`, `first + step`, ...

    ```mlir
    tile.mark_blocks %bits(%rows x %words) from %offsets, %columns(%entries) lines(%lines) block(%block of %blocks)
    ```
  }];
  let arguments = (ins Tile_IntPtr:$bits, I32:$rows, I32:$words, Tile_IntPtr:$offsets, Tile_IntPtr:$columns, I32:$entries,
                       I32:$lines, I32:$first, I32:$step);
  let assemblyFormat = [{
    $bits `(` $rows `x` $words `)` `from` $offsets `,` $columns `(` $entries `)` `lines` `(` $lines `)`
    `block` `(` $first `of` $step `)` attr-dict
  }];
}

def Tile_ListedOp : Tile_Op<"listed", [Pure]> {
  let summary = "the bit of a row and a column of blocks";
  let description = [{
    0 beyond the rows and words that there are.

    ```mlir
    %is = tile.listed %bits(%rows x %words) at(%row, %column)
    ```
  }];
  let arguments = (ins Tile_IntPtr:$bits, I32:$rows, I32:$words, I32:$row, I32:$column);
  let results = (outs I1:$result);
  let assemblyFormat = "$bits `(` $rows `x` $words `)` `at` `(` $row `,` $column `)` attr-dict";
}

def Tile_ListedInOp : Tile_Op<"listed_in", [Pure]> {
  let summary = "is one bit of some rows and columns of blocks set, or are `all`?";
  let description = [{
    Of rows `row` to `row_end` and columns `column` to `column_end`, the ends not among them, of which there are some.

    ```mlir
    %one = tile.listed_in %bits(%rows x %words) at(%row to %row_end, %column to %column_end)
    %every = tile.listed_in all %bits(%rows x %words) at(%row to %row_end, %column to %column_end)
    ```
  }];
  let arguments = (ins Tile_IntPtr:$bits, I32:$rows, I32:$words, I32:$row, I32:$row_end, I32:$column, I32:$column_end,
                       UnitAttr:$all);
  let results = (outs I1:$result);
  let assemblyFormat = [{
    (`all` $all^)? $bits `(` $rows `x` $words `)` `at` `(` $row `to` $row_end `,` $column `to` $column_end `)` attr-dict
  }];
}

#endif // TILE_VISIT_OPS
