// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Lengths and offsets of segments, from the ids and positions of tokens. A cluster of
// blocks has one row of the batch; all that it knows of the row's segments is a table.
// All of its blocks count; from then on the first is on its own, but for maps of ids.
#ifndef TILE_SEGMENT_OPS
#define TILE_SEGMENT_OPS

include "attn/Dialect/Tile/IR/TileInterfaces.td"
include "mlir/IR/OpAsmInterface.td"

def Tile_BatchRowIndexOp
    : Tile_ScalarOp<"batch_row_index", [DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmResultNames"]>]> {
  let summary = "the number of this cluster's row in the batch";
  let description = [{
    ```mlir
    %row = tile.batch_row_index
    ```
  }];
  let results = (outs I32:$result);
  let assemblyFormat = "attr-dict";
}

def Tile_TokensOp : Tile_ScalarOp<"tokens", [AttrSizedOperandSegments]> {
  let summary = "the tokens of a row: their ids, and their positions if they count";
  let description = [{
    `count` tokens a row. `ids` has a row for each row of the batch, `positions` only
    `position_rows`, which are taken again from the first when they are used up: leading
    dimensions that only ids have.

    ```mlir
    %q = tile.tokens %ids_q row(%row) count(%seqlen_q) positions(%positions_q, %position_rows_q)
    ```
  }];
  let arguments = (ins Tile_IntPtr:$ids, I32:$row, I32:$count, Optional<Tile_IntPtr>:$positions,
      Optional<I32>:$position_rows);
  let results = (outs Tile_Tokens:$result);
  let assemblyFormat = [{
    $ids `row` `(` $row `)` `count` `(` $count `)` (`positions` `(` $positions^ `,` $position_rows `)`)? attr-dict
  }];
}

def Tile_CountSegmentsOp : Tile_ComputeOp<"count_segments"> {
  let summary = "what the table says of each id: how many tokens, first and last, positions and their steps";
  let description = [{
    Of both sides: how many tokens, the first and the last of them, the lowest and the
    highest position, and the least and the most that positions rise by from a token to
    the next of its run. Each block of the cluster looks at a part of the tokens; the
    first block's table is then that of all. An id below 0 or beyond the table's segments
    gives the row the status 1, a position of a segment beyond +-2^29 the status 8; neither
    is counted.

    ```mlir
    tile.count_segments %table, %q, %kv : !tile.segment_table<64, 16>
    ```
  }];
  let arguments = (ins Tile_SegmentTable:$table, Tile_Tokens:$q, Tile_Tokens:$kv);
  let assemblyFormat = "$table `,` $q `,` $kv attr-dict `:` qualified(type($table))";
}

def Tile_BoundSegmentsOp
    : Tile_ComputeOp<"bound_segments", [SingleBlock,
                                        DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmBlockArgumentNames"]>]> {
  let summary = "which tokens of a segment see, or are seen by, a token of the other side";
  let description = [{
    The region gets, of an id that both sides have, how many tokens, the lowest and the
    highest position, of q and then of kv. It yields the least position of a query that
    sees some key, the highest position of a key that some query sees, and by how much
    positions of q and kv are shifted against each other (0, or what aligns their ends).
    `whole`: this holds for ids that are one run of tokens only; others get the status 2
    (tokens that see something are not one run) and no tokens.

    A row is even if each of these ids is one run of tokens on both sides and positions, if
    `%q` has any, rise by the same step on both. Of an even row the table is then about
    the tokens that see or are seen, by arithmetic on what was counted. Of another row it
    releasesWork all but the bounds, for `tile.select_segments` to count again.

    Constraints:
    - C1: the region has six arguments and yields three numbers, all i32.

    ```mlir
    tile.bound_segments %table, %q : !tile.segment_table<64, 16> {
    ^bb0(%count_q: i32, %low_q: i32, %high_q: i32, %count_kv: i32, %low_kv: i32, %high_kv: i32):
      %c0 = arith.constant 0 : i32
      tile.yield %low_kv, %high_q, %c0 : i32, i32, i32
    }
    ```
  }];
  let arguments = (ins Tile_SegmentTable:$table, Tile_Tokens:$q, UnitAttr:$whole);
  let hasVerifier = 1;
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "(`whole` $whole^)? $table `,` $q attr-dict `:` qualified(type($table)) $body";
}

def Tile_SelectSegmentsOp : Tile_ComputeOp<"select_segments", [AttrSizedOperandSegments]> {
  let summary = "counts the tokens within bounds, and finds their runs";
  let description = [{
    From here on the table is about tokens that see or are seen. It already is for even
    rows; the tokens of others are looked at again, and the table gets where their runs
    start, in order. A segment that is not one run of such tokens on both sides gets the
    status 2. A pointer, where there is one, gets the id of each such token and 0 for
    the others; these are written by all blocks of the cluster.

    ```mlir
    tile.select_segments %table, %q, %kv ids(%segments_q, %segments_kv) : !tile.segment_table<64, 16>
    ```
  }];
  let arguments = (ins Tile_SegmentTable:$table, Tile_Tokens:$q, Tile_Tokens:$kv, Out<Optional<Tile_IntPtr>>:$ids_q,
      Out<Optional<Tile_IntPtr>>:$ids_kv);
  let assemblyFormat = [{
    $table `,` $q `,` $kv (`ids` `(` $ids_q^ `,` $ids_kv `)`)?
    attr-dict `:` qualified(type($table))
  }];
}

def Tile_CheckSegmentsOp
    : Tile_ComputeOp<"check_segments", [SingleBlock,
                                        DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmBlockArgumentNames"]>]> {
  let summary = "is the mask of positions that of lengths and offsets?";
  let description = [{
    The region gets a segment's numbers of selected queries and keys, and its shift. It
    yields pairs (diagonal, shift), each a claim: counted from their first, the key k is
    at or before q + diagonal if and only if its position is at or before that of q plus
    shift. A segment of which some claim is wrong gets the status 4, and no place among
    the sequences; one that has the status 2 is not looked at. Of an even row positions
    have a diagonal of their own, to compare with. Else, exact as well: a claim holds for
    all pairs if it does for the neighbours of the diagonal, which are two a token.

    Constraints:
    - C1: the region has three arguments and yields one or two pairs, all i32.

    ```mlir
    tile.check_segments %table, %q, %kv : !tile.segment_table<64, 16> {
    ^bb0(%len_q: i32, %len_kv: i32, %shift: i32):
      %c0 = arith.constant 0 : i32
      tile.yield %c0, %shift : i32, i32
    }
    ```
  }];
  let arguments = (ins Tile_SegmentTable:$table, Tile_Tokens:$q, Tile_Tokens:$kv);
  let hasVerifier = 1;
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$table `,` $q `,` $kv attr-dict `:` qualified(type($table)) $body";
}

def Tile_WriteSegmentsOp : Tile_ComputeOp<"write_segments"> {
  let summary = "writes a row's lengths, offsets and status";
  let description = [{
    Lengths by id, offsets in the order of tokens, -1 where there are no more runs. Of an
    even row these are the first tokens of segments, which get their order here.

    ```mlir
    tile.write_segments %table lengths(%seqlens_q, %seqlens_kv) offsets(%offsets_q, %offsets_kv) status(%status)
      : !tile.segment_table<64, 16>
    ```
  }];
  let arguments = (ins In<Tile_SegmentTable>:$table, Out<Tile_IntPtr>:$seqlens_q, Out<Tile_IntPtr>:$seqlens_kv,
      Out<Tile_IntPtr>:$offsets_q, Out<Tile_IntPtr>:$offsets_kv, Out<Tile_IntPtr>:$status);
  let assemblyFormat = [{
    $table `lengths` `(` $seqlens_q `,` $seqlens_kv `)` `offsets` `(` $offsets_q `,` $offsets_kv `)`
    `status` `(` $status `)` attr-dict `:` qualified(type($table))
  }];
}

def Tile_WriteSequencesOp : Tile_ComputeOp<"write_sequences"> {
  let summary = "writes the sequences of all rows, in order, as attention kernels take them";
  let description = [{
    Each row writes its segments in the order of their queries, with room for as many as
    it may have; the row that is ready last closes the gaps and sums up lengths:
    `cu_seqlens` and `padded_offsets` of batch * segments sequences, of which those behind
    the last segment are empty. Segments with a status of 2 or 4 have no place. `queue`
    counts the rows that are ready, and is 0 again behind the last; one row alone needs
    none.

    ```mlir
    tile.write_sequences %table, %q, %kv queue(%queue) rows(%id_rows) q(%cu_seqlens_q, %padded_offsets_q)
      kv(%cu_seqlens_kv, %padded_offsets_kv) : !tile.segment_table<64, 16>
    ```
  }];
  let arguments = (ins Tile_SegmentTable:$table, Tile_Tokens:$q, Tile_Tokens:$kv, Tile_Queue:$queue, I32:$rows,
      Out<Tile_IntPtr>:$cu_seqlens_q, Out<Tile_IntPtr>:$padded_offsets_q, Out<Tile_IntPtr>:$cu_seqlens_kv,
      Out<Tile_IntPtr>:$padded_offsets_kv);
  let assemblyFormat = [{
    $table `,` $q `,` $kv `queue` `(` $queue `)` `rows` `(` $rows `)` `q` `(` $cu_seqlens_q `,` $padded_offsets_q `)`
    `kv` `(` $cu_seqlens_kv `,` $padded_offsets_kv `)` attr-dict `:` qualified(type($table))
  }];
}

def Tile_ListQueryTilesOp
    : Tile_ComputeOp<"list_query_tiles", [SingleBlock,
                                          DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmBlockArgumentNames"]>]> {
  let summary = "lists the query tiles of all sequences, those of the longest first";
  let description = [{
    Behind `tile.write_sequences`, by the row that was ready last. The list has the slots
    (as `tile.find_sequence` numbers them) of tiles of `q_tile` rows which have something
    to write, in falling order of what their sequence costs, slots in falling order where
    that is the same: tiles of one sequence, which read the same keys, stay together, and its
    last ones, which see most under a causal mask, come first. Tiles of padding alone are the
    last. `count` is how many there are. The region says how many keys a sequence visits;
    they count in steps of a 255th of the longest.

    Constraints:
    - C1: the region has two arguments and yields one number, all i32.

    ```mlir
    tile.list_query_tiles %table, %q, %kv rows(%id_rows) of(%cu_seqlens_q, %padded_offsets_q, %cu_seqlens_kv) tile 128
      to(%tiles, %tile_count) : !tile.segment_table<64, 16> {
    ^bb0(%len_q: i32, %len_kv: i32):
      %cost = arith.minsi %len_q, %len_kv : i32
      tile.yield %cost : i32
    }
    ```
  }];
  let arguments = (ins Tile_SegmentTable:$table, Tile_Tokens:$q, Tile_Tokens:$kv, I32:$rows, Tile_IntPtr:$cu_seqlens_q,
      Tile_IntPtr:$padded_offsets_q, Tile_IntPtr:$cu_seqlens_kv, I64Attr:$q_tile, Out<Tile_IntPtr>:$list,
      Out<Tile_IntPtr>:$count);
  let hasVerifier = 1;
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    $table `,` $q `,` $kv `rows` `(` $rows `)` `of` `(` $cu_seqlens_q `,` $padded_offsets_q `,` $cu_seqlens_kv `)`
    `tile` $q_tile `to` `(` $list `,` $count `)` attr-dict `:` qualified(type($table)) $body
  }];
}

def Tile_ListWorkTilesOp
    : Tile_ComputeOp<"list_work_tiles", [SingleBlock,
                                         DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmBlockArgumentNames"]>]> {
  let summary = "lists the slots of some sequences of a packed layout";
  let description = [{
    Where kernels differ in the sequences that they are for: `list` gets the slots (as
    `tile.find_sequence` numbers them) of tiles of `rows` rows that have something to write, padding
    behind their sequence among it, of those of the `batch` sequences for which the region holds. These
    come in an order that depends on lengths alone, those of a sequence one after the other, its first rows' first.
    `count` is how many there are. The first block does it.

    Constraints:
    - C1: the region has one argument, an i32, and yields an i1.

    ```mlir
    tile.list_work_tiles %tiles, %tile_count of(%padded_offsets_q, %batch) rows 128 {
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

def Tile_StoreSinkLseOp : Tile_ComputeOp<"store_sink_lse", [AttrSizedOperandSegments]> {
  let summary = "lse of tokens that see the sink alone";
  let description = [{
    Tokens with an id (and a position that counts) that are in no sequence get `sink` as their lse. `lse` is that of the
    first of `rows` tokens, which is number `row0` of all rows; a row has `tokens` of them, and ids go up to `segments`.
    Sequences are as `tile.write_sequences` writes them. Attention, which is computed before, takes such tokens for
    padding.

    ```mlir
    tile.store_sink_lse %lse rows(%row0, %rows) ids(%ids_q, %tokens_q, %segments) of(%cu_seqlens_q, %padded_offsets_q,
        %batch) sink(%x)
      positions(%positions_q, %position_rows_q)
    ```
  }];
  let arguments = (ins Out<Tile_FloatPtr>:$lse, I32:$row0, I32:$rows, Tile_IntPtr:$ids, I32:$tokens, I32:$segments,
      Tile_IntPtr:$cu_seqlens, Tile_IntPtr:$padded_offsets, I32:$batch, F32:$sink, Optional<Tile_IntPtr>:$positions,
      Optional<I32>:$position_rows);
  let assemblyFormat = [{
    $lse `rows` `(` $row0 `,` $rows `)` `ids` `(` $ids `,` $tokens `,` $segments `)` `of` `(` $cu_seqlens `,`
        $padded_offsets `,` $batch `)`
    `sink` `(` $sink `)` (`positions` `(` $positions^ `,` $position_rows `)`)? attr-dict
  }];
}

#endif // TILE_SEGMENT_OPS
