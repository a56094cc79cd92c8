// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Lengths and offsets of segments, from the ids and positions of tokens. A cluster of CTAs has one row of the batch,
// and the row's segments are in a table. All CTAs of the cluster count; the first CTA does the rest, except that all
// CTAs write maps of ids.
#ifndef METADATA_SEGMENT_OPS
#define METADATA_SEGMENT_OPS

include "attn/Dialect/Metadata/IR/MetadataTypes.td"
include "mlir/IR/OpAsmInterface.td"

def Metadata_BatchRowIndexOp
    : Metadata_ScalarOp<"batch_row_index", [DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmResultNames"]>]> {
  let summary = "the number of this cluster's row in the batch";
  let description = [{
    The kernel has the grid `rows`: one cluster of CTAs for each row of the batch.

    ```mlir
    %row = metadata.batch_row_index
    ```
  }];
  let results = (outs I32:$result);
  let assemblyFormat = "attr-dict";
}

def Metadata_TokensOp : Metadata_ScalarOp<"tokens", [AttrSizedOperandSegments]> {
  let summary = "the tokens of a batch row: their ids, and their positions if masks read these";
  let description = [{
    A row has `count` tokens. `ids` has one row for each row of the batch. `positions` has `position_rows` rows, and row
    r of the batch has row r % position_rows of them: ids may have leading dimensions that positions do not have.

    ```mlir
    %q = metadata.tokens %ids_q row(%row) count(%seqlen_q) positions(%positions_q, %position_rows_q)
    ```
  }];
  let arguments = (ins Tile_IntPtr:$ids, I32:$row, I32:$count, Optional<Tile_IntPtr>:$positions,
      Optional<I32>:$position_rows);
  let results = (outs Metadata_Tokens:$result);
  let assemblyFormat = [{
    $ids `row` `(` $row `)` `count` `(` $count `)` (`positions` `(` $positions^ `,` $position_rows `)`)? attr-dict
  }];
}

def Metadata_CountSegmentsOp : Metadata_ComputeOp<"count_segments"> {
  let summary = "counts the tokens of each id, and finds the ranges of their indices, positions and position steps";
  let description = [{
    For both sides the table gets, for each id, the number of tokens, the first and the last token, the lowest and the
    highest position, and the least and the largest step of positions from one token of a run to the next. Each CTA of
    the cluster reads a part of the tokens, and the table of the first CTA gets the totals. An id below 0 or beyond the
    table's segments gives the row the status 1, a position of a segment beyond +-2^29 the status 8; such tokens are
    not counted.

    ```mlir
    metadata.count_segments %table, %q, %kv : !metadata.segment_table<64, 16>
    ```
  }];
  let arguments = (ins Metadata_SegmentTable:$table, Metadata_Tokens:$q, Metadata_Tokens:$kv);
  let assemblyFormat = "$table `,` $q `,` $kv attr-dict `:` qualified(type($table))";
}

def Metadata_BoundSegmentsOp
    : Metadata_ComputeOp<
          "bound_segments", [SingleBlock, DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmBlockArgumentNames"]>]> {
  let summary = "bounds the positions of a segment's tokens that see, or are seen by, a token of the other side";
  let description = [{
    For an id that both sides have, the region gets the number of tokens, the lowest and the highest position of q, and
    then those of kv. It yields the lowest position of a query that sees some key, the highest position of a key that
    some query sees, and the shift of positions of q against those of kv (0, or what aligns their ends). `whole`: the
    bounds hold only for ids whose tokens are one run; other ids get the status 2 (visible tokens are not one run) and
    no tokens.

    A row is even if the tokens of each such id are one run on both sides and, if `q` has positions, positions rise by
    the same step on both sides. The table of an even row then describes the tokens that see or are seen, by arithmetic
    on counts. The table of another row keeps only the bounds, and `metadata.select_segments` counts again.

    Constraints:
    - C1: the region has six arguments and yields three numbers, all i32.

    ```mlir
    metadata.bound_segments %table, %q : !metadata.segment_table<64, 16> {
    ^bb0(%count_q: i32, %low_q: i32, %high_q: i32, %count_kv: i32, %low_kv: i32, %high_kv: i32):
      %c0 = arith.constant 0 : i32
      tile.yield %low_kv, %high_q, %c0 : i32, i32, i32
    }
    ```
  }];
  let arguments = (ins Metadata_SegmentTable:$table, Metadata_Tokens:$q, UnitAttr:$whole);
  let hasVerifier = 1;
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "(`whole` $whole^)? $table `,` $q attr-dict `:` qualified(type($table)) $body";
}

def Metadata_SelectSegmentsOp : Metadata_ComputeOp<"select_segments", [AttrSizedOperandSegments]> {
  let summary = "counts the tokens within bounds, and finds their runs";
  let description = [{
    After this op the table describes the tokens that see or are seen. The table of an even row already does; for other
    rows the tokens are read again, and the table gets the starts of runs in order. A segment whose selected tokens are
    not one run on both sides gets the status 2. `ids_q` and `ids_kv` get the id of each selected token, and 0 for
    other tokens; all CTAs of the cluster write them.

    ```mlir
    metadata.select_segments %table, %q, %kv ids(%segments_q, %segments_kv) : !metadata.segment_table<64, 16>
    ```
  }];
  let arguments = (ins Metadata_SegmentTable:$table, Metadata_Tokens:$q, Metadata_Tokens:$kv,
      Out<Optional<Tile_IntPtr>>:$ids_q, Out<Optional<Tile_IntPtr>>:$ids_kv);
  let assemblyFormat = [{
    $table `,` $q `,` $kv (`ids` `(` $ids_q^ `,` $ids_kv `)`)?
    attr-dict `:` qualified(type($table))
  }];
}

def Metadata_CheckSegmentsOp
    : Metadata_ComputeOp<
          "check_segments", [SingleBlock, DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmBlockArgumentNames"]>]> {
  let summary = "is the mask of positions that of lengths and offsets?";
  let description = [{
    The region gets the numbers of selected queries and keys of a segment, and its shift. It yields pairs (diagonal,
    shift), each of which is a claim: with q and k counted from the segment's first query and key, k <= q + diagonal if
    and only if k's position is at most q's position plus shift. A segment with a wrong claim gets the status 4 and no
    place among the sequences. A segment with the status 2 is not checked. The check is exact. On an even row the
    diagonal of positions is computed and compared. Otherwise the neighbours of the diagonal, two for each token, are
    tested: if the claim holds for these, it holds for all pairs.

    Constraints:
    - C1: the region has three arguments and yields one or two pairs, all i32.

    ```mlir
    metadata.check_segments %table, %q, %kv : !metadata.segment_table<64, 16> {
    ^bb0(%len_q: i32, %len_kv: i32, %shift: i32):
      %c0 = arith.constant 0 : i32
      tile.yield %c0, %shift : i32, i32
    }
    ```
  }];
  let arguments = (ins Metadata_SegmentTable:$table, Metadata_Tokens:$q, Metadata_Tokens:$kv);
  let hasVerifier = 1;
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$table `,` $q `,` $kv attr-dict `:` qualified(type($table)) $body";
}

def Metadata_WriteSegmentsOp : Metadata_ComputeOp<"write_segments"> {
  let summary = "writes a row's lengths, offsets and status";
  let description = [{
    Lengths are in the order of ids. Offsets are in the order of tokens, with -1 behind the last run. On an even row the
    offsets are the first tokens of segments, which this op sorts.

    ```mlir
    metadata.write_segments %table lengths(%seqlens_q, %seqlens_kv) offsets(%offsets_q, %offsets_kv) status(%status)
      : !metadata.segment_table<64, 16>
    ```
  }];
  let arguments = (ins In<Metadata_SegmentTable>:$table, Out<Tile_IntPtr>:$seqlens_q, Out<Tile_IntPtr>:$seqlens_kv,
      Out<Tile_IntPtr>:$offsets_q, Out<Tile_IntPtr>:$offsets_kv, Out<Tile_IntPtr>:$status);
  let assemblyFormat = [{
    $table `lengths` `(` $seqlens_q `,` $seqlens_kv `)` `offsets` `(` $offsets_q `,` $offsets_kv `)`
    `status` `(` $status `)` attr-dict `:` qualified(type($table))
  }];
}

def Metadata_WriteSequencesOp : Metadata_ComputeOp<"write_sequences"> {
  let summary = "writes the sequences of all rows, in order, as attention kernels take them";
  let description = [{
    Each row writes its segments in the order of their queries, with room for as many as a row may have. The row that is
    ready last closes the gaps and sums up lengths, which gives `cu_seqlens` and `padded_offsets` of batch * segments
    sequences; sequences behind the last segment are empty. Segments with a status of 2 or 4 are left out. `queue`
    counts the rows that are ready, and is 0 again behind the last one; a batch of one row needs no queue.

    ```mlir
    metadata.write_sequences %table, %q, %kv queue(%queue) rows(%id_rows) q(%cu_seqlens_q, %padded_offsets_q)
      kv(%cu_seqlens_kv, %padded_offsets_kv) : !metadata.segment_table<64, 16>
    ```
  }];
  let arguments = (ins Metadata_SegmentTable:$table, Metadata_Tokens:$q, Metadata_Tokens:$kv, Tile_Queue:$queue,
      I32:$rows, Out<Tile_IntPtr>:$cu_seqlens_q, Out<Tile_IntPtr>:$padded_offsets_q, Out<Tile_IntPtr>:$cu_seqlens_kv,
      Out<Tile_IntPtr>:$padded_offsets_kv);
  let assemblyFormat = [{
    $table `,` $q `,` $kv `queue` `(` $queue `)` `rows` `(` $rows `)` `q` `(` $cu_seqlens_q `,` $padded_offsets_q `)`
    `kv` `(` $cu_seqlens_kv `,` $padded_offsets_kv `)` attr-dict `:` qualified(type($table))
  }];
}

#endif // METADATA_SEGMENT_OPS
