// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Lists of the tiles that a tile of the other side has to visit, where run-time arrays decide: ranges of the arrays'
// entries, and the tiles that follow from them. Lists of work tiles for a tile scheduler.
#ifndef METADATA_LIST_OPS
#define METADATA_LIST_OPS

include "attn/Dialect/Metadata/IR/MetadataTypes.td"
include "mlir/IR/OpAsmInterface.td"

//===----------------------------------------------------------------------===//
// Ranges of entries
//===----------------------------------------------------------------------===//

def Metadata_EntryRangeOp
    : Metadata_ScalarOp<"entry_range", [DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmResultNames"]>]> {
  let summary = "the least and the largest of some entries of a run-time array";
  let description = [{
    The entries are array[0], array[by], ..., `count` of them, and `count` is at most `most`. Entries equal to `hidden`
    are ignored; `whole` is 1 if there is no such entry, else 0. Without entries, `least` is 2^31 - 1 and `largest` is
    -2^31.

    ```mlir
    %least, %largest, %whole = metadata.entry_range %ids count(%rows of 128) hidden 0
    %a, %b, %c = metadata.entry_range %ranges count(%tiles of 32) by 4
    ```
  }];
  let arguments = (ins Tile_IntPtr:$array, I32:$count, I64Attr:$most, DefaultValuedAttr<I64Attr, "1">:$by,
      OptionalAttr<I32Attr>:$hidden);
  let results = (outs I32:$least, I32:$largest, I32:$whole);
  let assemblyFormat = "$array `count` `(` $count `of` $most `)` (`by` $by^)? (`hidden` $hidden^)? attr-dict";
}

def Metadata_LoadRangesOp
    : Metadata_ScalarOp<"load_ranges", [DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmResultNames"]>]> {
  let summary = "loads the ranges of a tile's entries";
  let description = [{
    With n results, an even number, these are array[at * n] to array[at * n + n - 1]. A lane loads up to four of them
    at once, and the array is aligned accordingly.

    ```mlir
    %least, %largest = metadata.load_ranges %ranges[%tile] : i32, i32
    ```
  }];
  let arguments = (ins Tile_IntPtr:$array, I32:$at);
  let results = (outs Variadic<I32>:$values);
  let assemblyFormat = "$array `[` $at `]` `:` type($values) attr-dict";
}

//===----------------------------------------------------------------------===//
// Tiles to visit
//===----------------------------------------------------------------------===//

def Metadata_InitListsOp : Metadata_ComputeOp<"init_lists"> {
  let summary = "initialises lists for `metadata.select_tiles`";
  let description = [{
    All CTAs of the kernel together set the four numbers of `used` to 0, and each of the first `across` entries of
    `list` to its own index. With `slice`, the CTA writes only the 512 entries from 512 * slice on.

    ```mlir
    metadata.init_lists %list across(%tiles) used(%used)
    metadata.init_lists %list across(%tiles) used(%used) slice(%i)
    ```
  }];
  let arguments = (ins Out<Tile_IntPtr>:$list, Out<Tile_IntPtr>:$used, I32:$across, Optional<I32>:$slice);
  let assemblyFormat = "$list `across` `(` $across `)` `used` `(` $used `)` (`slice` `(` $slice^ `)`)? attr-dict";
}

def Metadata_SelectTilesOp
    : Metadata_ComputeOp<"select_tiles", [SingleBlock,
                                          DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmBlockArgumentNames"]>]> {
  let summary = "lists the tiles of a run in which some pair may be visible";
  let description = [{
    The tiles are those from `begin` to `end`. The region `body` yields, for a tile, whether some of its pairs may be
    visible, and whether all are. The CTA lists the tiles with visible pairs, and writes where these are to row `row`
    of `positions`, which has eight numbers:

    | | |
    |---|---|
    | 0, 1 | index in `list` of the first full tile (all pairs visible), in ascending order, and number of full tiles |
    | 2, 3 | index of the first partial tile less the number of full tiles, and number of tiles of both kinds |
    | 4, 5 | the first tile of either kind, and the number of tiles from it to the last, tiles in between included |
    | 6 | 1 if the row has entries of its own, else 0 |

    Tiles that follow each other need no entries of their own: they are among the first `across` entries of `list`,
    which are equal to their indices (`metadata.init_lists`). Other rows get entries behind these. `used` counts the
    entries of all rows in two numbers, the lower half first; its third number becomes 1 when a row does not fit the
    `entries` of `list`. In that case numbers 0 to 3 of rows with entries of their own are undefined.

    Tiles are tested in groups of 32: tile j is in group (first + j) / 32. The region `groups` yields for a group

    - whether some pair of its tiles may be visible; else the group is skipped,
    - whether it is settled: the answers of `body` for its tiles are then the bits of the last two values,
    - whether it is inside: `inner`, which reads arrays only, then gives the answers of `body`,
    - these two values.

    Regions may run for tiles outside the run as well, four groups at a time, and their answers for these are ignored.
    All threads run `chunk` for tiles `from` to `to` before these are tested.

    Constraints:
    - C1: `body` and `inner` have one argument of type i32 and yield two i1; `groups` has one argument of type i32 and
      yields three i1 and two i32; `chunk` has two arguments of type i32 and yields nothing.

    ```mlir
    metadata.select_tiles %positions[%row] in %list(%entries) across(%tiles) used(%used) from %begin to %end {
    ^bb0(%j: i32):
      %some = arith.cmpi sle, %j, %last : i32
      %all = arith.cmpi slt, %j, %last : i32
      tile.yield %some, %all : i1, i1
    } inner {
    ^bb0(%j: i32):
      %yes = arith.constant true
      tile.yield %yes, %yes : i1, i1
    } groups(%first) {
    ^bb0(%g: i32):
      %any = arith.cmpi sle, %g, %last : i32
      tile.yield %any, %any, %any, %ones, %ones : i1, i1, i1, i32, i32
    } chunk {
    ^bb0(%from: i32, %to: i32):
      tile.yield
    }
    ```
  }];
  let arguments = (ins Out<Tile_IntPtr>:$positions, Out<Tile_IntPtr>:$list, InOut<Tile_IntPtr>:$used, I64:$row,
      I32:$entries, I32:$across, I32:$begin, I32:$end, I32:$first);
  let regions = (region SizedRegion<1>:$body, SizedRegion<1>:$inner, SizedRegion<1>:$groups, SizedRegion<1>:$chunk);
  let hasVerifier = 1;
  let assemblyFormat = [{
    $positions `[` $row `]` `in` $list `(` $entries `)` `across` `(` $across `)` `used` `(` $used `)` `from` $begin `to`
        $end
    $body `inner` $inner `groups` `(` $first `)` $groups `chunk` $chunk attr-dict
  }];
}

//===----------------------------------------------------------------------===//
// Work tiles
//===----------------------------------------------------------------------===//

def Metadata_ListQueryTilesOp
    : Metadata_ComputeOp<"list_query_tiles", [SingleBlock, DeclareOpInterfaceMethods<
                                                               OpAsmOpInterface, ["getAsmBlockArgumentNames"]>]> {
  let summary = "lists the query tiles of all sequences, most expensive sequences first";
  let description = [{
    The op follows `metadata.write_sequences`; the cluster whose row is ready last runs it. `list` gets the slots (as
    `tile.find_sequence` numbers them) of tiles of `q_tile` rows that have something to write, in descending order of
    their sequence's cost. Slots of equal cost are in descending order: tiles of one sequence, which read the same keys,
    are neighbours, and its last tiles, which see most keys under a causal mask, come first. Tiles of padding alone are
    last. `count` gets the number of tiles. The region yields the cost of a sequence: the keys that it positions. Costs
    are compared in steps of 1/255 of the largest.

    Constraints:
    - C1: the region has two arguments and yields one number, all i32.

    ```mlir
    metadata.list_query_tiles %table, %q, %kv rows(%id_rows) of(%cu_seqlens_q, %padded_offsets_q, %cu_seqlens_kv)
      tile 128 to(%tiles, %tile_count) : !metadata.segment_table<64, 16> {
    ^bb0(%len_q: i32, %len_kv: i32):
      %cost = arith.minsi %len_q, %len_kv : i32
      tile.yield %cost : i32
    }
    ```
  }];
  let arguments = (ins Metadata_SegmentTable:$table, Metadata_Tokens:$q, Metadata_Tokens:$kv, I32:$rows,
      Tile_IntPtr:$cu_seqlens_q, Tile_IntPtr:$padded_offsets_q, Tile_IntPtr:$cu_seqlens_kv, I64Attr:$q_tile,
      Out<Tile_IntPtr>:$list, Out<Tile_IntPtr>:$count);
  let hasVerifier = 1;
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    $table `,` $q `,` $kv `rows` `(` $rows `)` `of` `(` $cu_seqlens_q `,` $padded_offsets_q `,` $cu_seqlens_kv `)`
    `tile` $q_tile `to` `(` $list `,` $count `)` attr-dict `:` qualified(type($table)) $body
  }];
}

def Metadata_ListWorkTilesOp
    : Metadata_ComputeOp<
          "list_work_tiles", [SingleBlock, DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmBlockArgumentNames"]>]> {
  let summary = "lists the work tiles of some sequences of a packed layout";
  let description = [{
    Kernels may differ in the sequences that they compute. `list` gets the slots (as `tile.find_sequence` numbers them)
    of tiles of `rows` rows, of those of the `batch` sequences for which the region yields true. Tiles that write only
    the padding behind a sequence are included. Tiles of one sequence follow each other, in ascending order; the order
    of sequences depends on `offsets` alone. `count` gets the number of tiles. The first CTA runs the op.

    Constraints:
    - C1: the region has one argument, an i32, and yields an i1.

    ```mlir
    metadata.list_work_tiles %tiles, %tile_count of(%padded_offsets_q, %batch) rows 128 {
    ^bb0(%b: i32):
      %keys = tile.load %lengths[%b] : i32 from !tile.ptr<i32>
      %long = arith.cmpi slt, %most, %keys : i32
      tile.yield %long : i1
    }
    ```
  }];
  let arguments = (ins Out<Tile_IntPtr>:$list, Out<Tile_IntPtr>:$count, Tile_IntPtr:$offsets, I32:$batch,
      I64Attr:$rows);
  let hasVerifier = 1;
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    $list `,` $count `of` `(` $offsets `,` $batch `)` `rows` $rows $body attr-dict
  }];
}

def Metadata_SplitWalksOp
    : Metadata_ComputeOp<"split_walks", [SingleBlock,
                                         DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmBlockArgumentNames"]>]> {
  let summary = "shares the long loops of tiles among CTAs";
  let description = [{
    In each of `heads` heads (of all sequences), each of `tiles` stationary tiles has a loop over n streamed tiles, as
    the region yields, for each of `group` query heads (1 for query tiles). A CTA's share is the number of steps of this
    tile and those after it in all heads, divided by `share`; it is at least `least` steps, and a twelfth of the first
    tile's share. Shares thus get smaller, and CTAs end together. Where group * n is more than 1.5 shares, several CTAs
    share the tile: each has a range of the n steps, in all heads of the group. (With a group of query heads for each
    CTA, more heads would be in use at a time than the L2 cache holds.)

    `list` gets four numbers for each CTA of a head, in ascending order of tiles: the tile; the first of its n steps,
    and the one behind the last; the slot of its partial results, or -1 if it computes the whole tile. `split` gets
    three numbers for each tile that is shared: the tile, the first of its slots, the number of its slots. `counts` gets
    the number of CTAs of a head, of tiles that are shared, and of slots of a head. All heads together have `capacity`
    slots; tiles that find none are not shared. The first CTA runs the op. Its threads evaluate the region for different
    tiles.

    Constraints:
    - C1: the region has one argument, an i32, and yields an i32.

    ```mlir
    metadata.split_walks %q_splits, %q_split_counts, %split_tiles of(%tiles, %heads) group 4 share(%ctas)
        least 16 capacity(%slots) {
    ^bb0(%tile: i32):
      %n = arith.subi %query_tiles, %tile : i32
      tile.yield %n : i32
    }
    ```
  }];
  let arguments = (ins Out<Tile_IntPtr>:$list, Out<Tile_IntPtr>:$counts, Out<Tile_IntPtr>:$split, I32:$tiles,
      I32:$heads, I64Attr:$group, I32:$ctas, I64Attr:$least, I32:$capacity);
  let hasVerifier = 1;
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    $list `,` $counts `,` $split `of` `(` $tiles `,` $heads `)` `group` $group `share` `(` $ctas `)`
    `least` $least `capacity` `(` $capacity `)` $body attr-dict
  }];
}

#endif // METADATA_LIST_OPS
