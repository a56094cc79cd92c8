// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Block maps: which blocks of queries and keys a mask lists. A map is given as lists, one for each row of blocks, and
// kernels may make bits of them. Ops that read a map take either form.
#ifndef METADATA_BLOCK_MAP_OPS
#define METADATA_BLOCK_MAP_OPS

include "attn/Dialect/Metadata/IR/MetadataTypes.td"
include "mlir/IR/OpAsmInterface.td"

def Metadata_FillBlockBitsOp : Metadata_ComputeOp<"fill_block_bits"> {
  let summary = "makes bits of the lists of a block map";
  let description = [{
    `bits` has `rows` rows of `words` 32-bit words for each of `lines` maps. Row i of a map gets one bit for each
    column that entries offsets[i] to offsets[i + 1] of `columns` name; each map has rows + 1 offsets. Entries at or
    behind `entries`, and columns without a word, are ignored. The CTA writes rows `first`, `first + step`, ... of all
    maps.

    ```mlir
    metadata.fill_block_bits %bits(%rows, %words) from %offsets, %columns(%entries) lines(%lines) cta(%cta of %ctas)
    ```
  }];
  let arguments = (ins Out<Tile_IntPtr>:$bits, I32:$rows, I32:$words, Tile_IntPtr:$offsets, Tile_IntPtr:$columns,
      I32:$entries, I32:$lines, I32:$first, I32:$step);
  let assemblyFormat = [{
    $bits `(` $rows `,` $words `)` `from` $offsets `,` $columns `(` $entries `)` `lines` `(` $lines `)`
    `cta` `(` $first `of` $step `)` attr-dict
  }];
}

def Metadata_IsListedOp : Metadata_ScalarOp<"is_listed", [AttrSizedOperandSegments]> {
  let summary = "does a block map list the block of a row and a column?";
  let description = [{
    Without `columns`, `map` has bits: `rows` rows of `extent` words (`metadata.fill_block_bits`). Blocks outside these
    are not listed. With `first`, the column is at most 31 behind column `first`, which is the same for many blocks: 32
    bits of the row from `first` on are loaded once for all of them.

    With `columns`, `map` has the `rows` + 1 offsets of lists in `columns`, which has `extent` entries. A warp searches
    the row's list together, if `condition` holds, which is the same in all lanes. Otherwise the result is true.

    Constraints:
    - C1: there is a condition if and only if there are columns, and then there is no `first`.

    ```mlir
    %is = metadata.is_listed %bits(%rows, %words) at(%row, %column)
    %near = metadata.is_listed %bits(%rows, %words) at(%row, %column from %first)
    %found = metadata.is_listed %offsets(%rows, %entries) columns(%columns) at(%row, %column) if(%condition)
    ```
  }];
  let arguments = (ins Tile_IntPtr:$map, I32:$rows, Optional<Tile_IntPtr>:$columns, I32:$extent, I32:$row, I32:$column,
      Optional<I32>:$first, Optional<I1>:$condition);
  let results = (outs I1:$result);
  let hasVerifier = 1;
  let assemblyFormat = [{
    $map `(` $rows `,` $extent `)` (`columns` `(` $columns^ `)`)? `at` `(` $row `,` $column (`from` $first^)? `)`
    (`if` `(` $condition^ `)`)? attr-dict
  }];
}

def Metadata_GatherTilesOp : Metadata_ComputeOp<"gather_tiles", [AttrSizedOperandSegments]> {
  let summary = "compares tiles with the listed blocks of a block map";
  let description = [{
    For each of the tiles `from` to `to`, of `tile` positions each, the CTA stores in shared memory whether some block
    in the tile is listed, and whether all are. `metadata.gathered` reads both. A mask may have several maps; `number`
    tells them apart.

    Without `columns`, `map` has bits: `rows` rows of `extent` words (`metadata.fill_block_bits`). The blocks are those
    of rows `begin` to `end`, and tiles of keys are compared with columns of `block` keys. `transposed`: the blocks are
    those of columns `begin` to `end`, and tiles of queries are compared with rows of `block` queries.

    With `columns`, `map` has the `rows` + 1 offsets of lists in `columns`, which has `extent` entries. The blocks are
    those on the list of row `begin`, and each block is a number of whole tiles.

    Constraints:
    - C1: there is an `end` if and only if there are no columns; with columns the op is not `transposed`.

    ```mlir
    metadata.gather_tiles 0 %bits(%rows, %words) at(%begin to %end) tiles(%from to %to) of 64 in 128
    metadata.gather_tiles 0 %bits(%rows, %words) at(%begin to %end) tiles(%from to %to) of 64 in 128 transposed
    metadata.gather_tiles 1 %offsets(%rows, %entries) columns(%columns) at(%row) tiles(%from to %to) of 64 in 128
    ```
  }];
  let arguments = (ins I64Attr:$number, Tile_IntPtr:$map, I32:$rows, Optional<Tile_IntPtr>:$columns, I32:$extent,
      I32:$begin, Optional<I32>:$end, I32:$from, I32:$to, I64Attr:$tile, I64Attr:$block, UnitAttr:$transposed);
  let hasVerifier = 1;
  let assemblyFormat = [{
    $number $map `(` $rows `,` $extent `)` (`columns` `(` $columns^ `)`)? `at` `(` $begin (`to` $end^)? `)`
    `tiles` `(` $from `to` $to `)` `of` $tile `in` $block (`transposed` $transposed^)? attr-dict
  }];
}

def Metadata_GatheredOp
    : Metadata_ScalarOp<"gathered", [AllTypesMatch<["some", "all"]>,
                                     DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmResultNames"]>]> {
  let summary = "is some block in a tile listed, and are all?";
  let description = [{
    `metadata.gather_tiles` with the same number found both. As i1 they are those of tile `at`. As i32 they are one bit
    each for 32 tiles from `at` on, which may be negative; bits of tiles that were not gathered are undefined.

    Constraints:
    - C1: both results are i1, or both are i32.

    ```mlir
    %some, %all = metadata.gathered 0 at(%tile) : i1
    %some_bits, %all_bits = metadata.gathered 0 at(%first) : i32
    ```
  }];
  let arguments = (ins I64Attr:$number, I32:$at);
  let results = (outs AnyTypeOf<[I1, I32]>:$some, AnyTypeOf<[I1, I32]>:$all);
  let assemblyFormat = "$number `at` `(` $at `)` attr-dict `:` type($some)";
}

#endif // METADATA_BLOCK_MAP_OPS
