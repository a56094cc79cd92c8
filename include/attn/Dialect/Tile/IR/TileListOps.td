// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which key tiles a query tile has to visit where run-time arrays decide: what their entries
// are, tile by tile, and the tiles that follow from it.
#ifndef TILE_LIST_OPS
#define TILE_LIST_OPS

include "attn/Dialect/Tile/IR/TileInterfaces.td"
include "mlir/IR/OpAsmInterface.td"

def Tile_EntryRangeOp
    : Tile_ScalarOp<"entry_range", [DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmResultNames"]>]> {
  let summary = "the least and the largest of some entries of a run-time array";
  let description = [{
    Of `count` entries, at most so many, each `by` entries behind the one before. Those that are `hidden` are left out,
    and `whole` is 1 if there were none, else 0. Without any other entry, least is 2^31 - 1 and largest -2^31.

    ```mlir
    %least, %largest, %whole = tile.entry_range %ids count(%rows of 128) hidden 0
    %a, %b, %c = tile.entry_range %ranges count(%tiles of 32) by 4
    ```
  }];
  let arguments = (ins Tile_IntPtr:$array, I32:$count, I64Attr:$most, DefaultValuedAttr<I64Attr, "1">:$by,
      OptionalAttr<I32Attr>:$hidden);
  let results = (outs I32:$least, I32:$largest, I32:$whole);
  let assemblyFormat = "$array `count` `(` $count `of` $most `)` (`by` $by^)? (`hidden` $hidden^)? attr-dict";
}

def Tile_LoadRangesOp
    : Tile_ScalarOp<"load_ranges", [DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmResultNames"]>]> {
  let summary = "what was left of a tile's entries";
  let description = [{
    Entries `at` * n to `at` * n + n - 1 of an array, an even number n of results, which a lane reads at once: the array
    is aligned to as many of them, up to four.

    ```mlir
    %least, %largest = tile.load_ranges %ranges[%tile] : i32, i32
    ```
  }];
  let arguments = (ins Tile_IntPtr:$array, I32:$at);
  let results = (outs Variadic<I32>:$values);
  let assemblyFormat = "$array `[` $at `]` `:` type($values) attr-dict";
}

def Tile_StoreEntryOp : Tile_ComputeOp<"store_entry"> {
  let summary = "writes one element of an array in global memory";
  let description = [{
    By one thread of the warp, or by one of each; what the kernel reads of it, it reads behind a barrier.

    ```mlir
    tile.store_entry %counts[%at], %full
    ```
  }];
  let arguments = (ins Out<Tile_IntPtr>:$array, I64:$index, I32:$value);
  let assemblyFormat = "$array `[` $index `]` `,` $value attr-dict";
}

def Tile_InitListsOp : Tile_ComputeOp<"init_lists"> {
  let summary = "makes lists ready for `tile.select_tiles`";
  let description = [{
    All blocks of the kernel together: `taken`, four numbers, becomes 0, and the first `across` entries of the list
    their own numbers. `piece`: of the entries only these 512.

    ```mlir
    tile.init_lists %list across(%tiles) taken(%taken)
    tile.init_lists %list across(%tiles) taken(%taken) piece(%i)
    ```
  }];
  let arguments = (ins Out<Tile_IntPtr>:$list, Out<Tile_IntPtr>:$taken, I32:$across, Optional<I32>:$piece);
  let assemblyFormat = "$list `across` `(` $across `)` `taken` `(` $taken `)` (`piece` `(` $piece^ `)`)? attr-dict";
}

def Tile_SelectTilesOp
    : Tile_ComputeOp<"select_tiles", [SingleBlock,
                                      DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmBlockArgumentNames"]>]> {
  let summary = "lists the tiles of a run in which something may be visible";
  let description = [{
    `body` says of a tile whether some of its pairs may be visible, and whether all are. From the first tile to
    the last one that may have some, the block lists these for row `row` of `visits`, which has eight numbers:

    | | |
    |---|---|
    | 0, 1 | where in `list` those of which all pairs are visible stand, in ascending order, and how many they are |
    | 2, 3 | where those that are to be tested stand, less entry 1, and how many there are of both kinds |
    | 4, 5 | the first tile of any kind, and how many there are from it to the last, those between counted too |
    | 6 | 1 if the row has entries of its own |

    Tiles that follow each other are some of the first `across` entries, which are their own numbers
    (`tile.init_lists`). Other rows take entries behind them, counted in `taken`: two numbers, the lower half first,
    and a third that becomes 1 when the list, of `entries`, is full. Of rows with entries of their own numbers 0 to 3
    then say nothing, but 4 and 5 do.

    Tiles are looked at in groups of 32: tile j is in group (first + j) / 32,
    and `groups` says of a group whether something may be visible in those of its tiles that are in the run, whether it
    is settled: then what `body` would say of its tiles are the bits of two numbers, so that nobody needs to ask; and
    whether it lies inside: then `inner`, which looks at arrays alone, says of its tiles what `body` would. All may be
    asked of tiles beside the run too, of four groups together, and it does not matter what they say. Before it asks of
    tiles `from` to `to`, all threads do what `chunk` has.

    Constraints:
    - C1: body, inner and groups have one argument, an i32; the first two yield two i1, the third three i1 and two i32.
      `chunk` has two, i32, and yields nothing.

    ```mlir
    tile.select_tiles %visits[%row] in %list(%entries) across(%tiles) taken(%taken) from %begin to %end {
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
  let arguments = (ins Out<Tile_IntPtr>:$visits, Out<Tile_IntPtr>:$list, InOut<Tile_IntPtr>:$taken, I64:$row,
      I32:$entries, I32:$across, I32:$begin, I32:$end, I32:$first);
  let regions = (region SizedRegion<1>:$body, SizedRegion<1>:$inner, SizedRegion<1>:$groups, SizedRegion<1>:$chunk);
  let hasVerifier = 1;
  let assemblyFormat = [{
    $visits `[` $row `]` `in` $list `(` $entries `)` `across` `(` $across `)` `taken` `(` $taken `)` `from` $begin `to`
        $end
    $body `inner` $inner `groups` `(` $first `)` $groups `chunk` $chunk attr-dict
  }];
}

def Tile_FillBlockBitsOp : Tile_ComputeOp<"fill_block_bits"> {
  let summary = "makes bits of lists of blocks";
  let description = [{
    Row i of `bits`, of `rows` rows of `words` words for each of `lines` lines, gets a bit for each block that entries
    offsets[i] to offsets[i + 1] of `columns` name, of which there are `entries`; each line has an offset more than
    rows. What lies beyond the entries or the words is not read and not written. The block writes rows `first`, `first +
    step`, ...

    ```mlir
    tile.fill_block_bits %bits(%rows x %words) from %offsets, %columns(%entries) lines(%lines) block(%block of %blocks)
    ```
  }];
  let arguments = (ins Out<Tile_IntPtr>:$bits, I32:$rows, I32:$words, Tile_IntPtr:$offsets, Tile_IntPtr:$columns,
      I32:$entries, I32:$lines, I32:$first, I32:$step);
  let assemblyFormat = [{
    $bits `(` $rows `x` $words `)` `from` $offsets `,` $columns `(` $entries `)` `lines` `(` $lines `)`
    `block` `(` $first `of` $step `)` attr-dict
  }];
}

def Tile_CooperativeLoopOp
    : Tile_ControlOp<"cooperative_loop", [SingleBlock, NoTerminator,
                                          DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmBlockArgumentNames"]>]> {
  let summary = "what all blocks of a launch do for each long sequence";
  let description = [{
    The body runs for each sequence of `batch` that is longer than `than`, one after the other, and all blocks run it
    for the same one at the same time: those of the launch that have begun when the first of them begins to work. Others
    are not waited for and do nothing, so it does not matter how many blocks fit the machine. `lengths` is that of each
    sequence, or cu_seqlens. It is the last thing that the kernel does, whose grid has at most 127 blocks; without a
    `counter` one block is the team.

    Constraints:
    - C1: the body has two arguments, a team and an i32.

    ```mlir
    tile.cooperative_loop %queue of %cu_seqlens_kv(%batch) longer(%than) : !tile.ptr<i32> {
    ^bb0(%team: !tile.cooperative_ctas, %b: i32):
    }
    ```
  }];
  let arguments = (ins Tile_Queue:$counter, AnyTypeOf<[I32, Tile_IntPtr]>:$lengths, I32:$batch, I32:$than);
  let regions = (region SizedRegion<1>:$body);
  let hasVerifier = 1;
  let assemblyFormat = [{
    $counter `of` $lengths `(` $batch `)` `longer` `(` $than `)` `:` type($lengths) $body attr-dict
  }];
}

def Tile_NumberTreeOp : Tile_ComputeOp<"number_tree", [AttrSizedOperandSegments]> {
  let summary = "numbers a tree that is given by parents";
  let description = [{
    parents[keys + k] is the key that key k of a sequence follows, of `len_kv`; one outside [0, k) says that it follows
    none. Keys are numbered so that those that descend from key k, and k itself, have the numbers from first[keys + k]
    up to end[keys + k]: each before those that follow it, these in the order of their positions. node[queries + q] is
    the number of the own key of row q of `len_q`, where the last row's is the last; -1 without one. work[5 * keys] and
    so on has room for five numbers a key; what fits is in a place of the block. The whole block does it, or all blocks
    of a `team`; equal parents give equal numbers.

    ```mlir
    tile.number_tree %node, %first, %end, %work of %parents queries(%queries, %len_q) keys(%keys, %len_kv)
    tile.number_tree %node, %first, %end, %work of %parents queries(%queries, %len_q) keys(%keys,
        %len_kv) in(%forest) by %team
      : !tile.tree_runs<3584>
    ```
  }];
  let arguments = (ins Out<Tile_IntPtr>:$node, Out<Tile_IntPtr>:$first, Out<Tile_IntPtr>:$end, Out<Tile_IntPtr>:$work,
      Tile_IntPtr:$parents, I64:$queries, I32:$len_q, I64:$keys, I32:$len_kv, Optional<Tile_TreeRuns>:$forest,
      Optional<Tile_CooperativeCtas>:$team);
  let assemblyFormat = [{
    $node `,` $first `,` $end `,` $work `of` $parents `queries` `(` $queries `,` $len_q `)` `keys` `(` $keys `,` $len_kv
        `)` (`in` `(` $forest^ `)`)? (`by` $team^)?
    attr-dict (`:` qualified(type($forest))^)?
  }];
}

def Tile_BlockBitOp : Tile_ScalarOp<"block_bit"> {
  let summary = "the bit of a row and a column of blocks";
  let description = [{
    0 beyond the rows and words that there are. `from`: the column is at most 31 behind that one, which is
    the same for many, and a row's bits from there on are read once.

    ```mlir
    %is = tile.block_bit %bits(%rows x %words) at(%row, %column)
    %near = tile.block_bit %bits(%rows x %words) at(%row, %column from %first)
    ```
  }];
  let arguments = (ins Tile_IntPtr:$bits, I32:$rows, I32:$words, I32:$row, I32:$column, Optional<I32>:$first);
  let results = (outs I1:$result);
  let assemblyFormat = "$bits `(` $rows `x` $words `)` `at` `(` $row `,` $column (`from` $first^)? `)` attr-dict";
}

def Tile_IsInListOp : Tile_ScalarOp<"is_in_list"> {
  let summary = "is a block on its row's list?";
  let description = [{
    The same, if `asked`, of the lists themselves, which have `rows` rows: the warp looks through them. Yes, where
    nobody asks.

    ```mlir
    %is = tile.is_in_list %offsets(%rows) of %columns(%entries) at(%row, %column) if(%asked)
    ```
  }];
  let arguments = (ins Tile_IntPtr:$offsets, I32:$rows, Tile_IntPtr:$columns, I32:$entries, I32:$row, I32:$column,
      I1:$asked);
  let results = (outs I1:$result);
  let assemblyFormat = [{
    $offsets `(` $rows `)` `of` $columns `(` $entries `)` `at` `(` $row `,` $column `)` `if` `(` $asked `)` attr-dict
  }];
}

def Tile_GatherListTilesOp : Tile_ComputeOp<"gather_list_tiles"> {
  let summary = "which tiles do blocks of a row's list have?";
  let description = [{
    As `tile.gather_block_tiles`, from the list of row `row` itself, of `rows`, where blocks are whole tiles: in `kv`
    keys there are some.

    ```mlir
    tile.gather_list_tiles 0 %offsets(%rows) of %columns(%entries) at(%row) tiles(%from to %to) of 64 in 128
    ```
  }];
  let arguments = (ins I64Attr:$number, Tile_IntPtr:$offsets, I32:$rows, Tile_IntPtr:$columns, I32:$entries, I32:$row,
      I32:$from, I32:$to, I64Attr:$tile, I64Attr:$size);
  let assemblyFormat = [{
    $number $offsets `(` $rows `)` `of` $columns `(` $entries `)` `at` `(` $row `)` `tiles` `(` $from `to` $to `)` `of`
        $tile `in` $size attr-dict
  }];
}

def Tile_GatherBlockTilesOp : Tile_ComputeOp<"gather_block_tiles"> {
  let summary = "which tiles do blocks of some rows or columns meet?";
  let description = [{
    The block remembers, for `tile.gathered`, of each of tiles `from` to `to`, of `tile` positions each, whether some
    listed block is in it, and whether all are: blocks of rows `begin` to `end` of blocks, where tiles are cut out of
    columns of `kv` keys; `transposed`: of columns `begin` to `end`, where they are cut out of rows of `kv` queries.
    `number` is whose bits these are, of several.

    ```mlir
    tile.gather_block_tiles 0 %bits(%rows x %words) at(%begin to %end) tiles(%from to %to) of 64 in 128
    ```
  }];
  let arguments = (ins I64Attr:$number, Tile_IntPtr:$bits, I32:$rows, I32:$words, I32:$begin, I32:$end, I32:$from,
      I32:$to, I64Attr:$tile, I64Attr:$size, UnitAttr:$transposed);
  let assemblyFormat = [{
    $number $bits `(` $rows `x` $words `)` `at` `(` $begin `to` $end `)` `tiles` `(` $from `to` $to `)` `of` $tile `in`
        $size
    (`transposed` $transposed^)? attr-dict
  }];
}

def Tile_GatheredOp : Tile_ScalarOp<"gathered", [DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmResultNames"]>]> {
  let summary = "is some listed block in a tile, are all?";
  let description = [{
    As `tile.gather_block_tiles` found it.

    ```mlir
    %some, %all = tile.gathered 0 at(%tile)
    ```
  }];
  let arguments = (ins I64Attr:$number, I32:$at);
  let results = (outs I1:$some, I1:$all);
  let assemblyFormat = "$number `at` `(` $at `)` attr-dict";
}

def Tile_GatheredBitsOp
    : Tile_ScalarOp<"gathered_bits", [DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmResultNames"]>]> {
  let summary = "the same of 32 tiles, a bit each";
  let description = [{
    Of tile `at`, which may be negative, and those behind it. Of tiles that were not gathered they say nothing.

    ```mlir
    %words, %more = tile.gathered_bits 0 at(%first)
    ```
  }];
  let arguments = (ins I64Attr:$number, I32:$at);
  let results = (outs I32:$some, I32:$all);
  let assemblyFormat = "$number `at` `(` $at `)` attr-dict";
}

#endif // TILE_LIST_OPS
