// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// From fragments and row states to global memory, and from the parts of a result to the whole.
#ifndef TILE_RESULT_OPS
#define TILE_RESULT_OPS

include "attn/Dialect/Tile/IR/TileInterfaces.td"
include "mlir/IR/OpBase.td"

def Tile_StoreOp : Tile_ComputeOp<"store"> {
  let summary = "writes a fragment's rows, and zeros to padding rows";
  let description = [{
    Rows below `rows` are rounded to the element type and written (as they are, if
    that is f32), rows from there to `write_rows` are written as 0; `dim` columns each.

    Constraints:
    - C1: a SIMT tile has elements of f32 and `dim` columns, and results of bf16 or f16 (of the target `cpu` also f32).

    ```mlir
    tile.store %dst stride(%o_row), %acc rows(%rows, %write_rows) dim 128 : !tile.ptr<bf16>, !tile.frag<128x128, 4>
    ```
  }];
  let arguments = (ins Out<Tile_Ptr>:$dst, Tile_Stride:$stride, In<Tile_AnySum>:$acc, I32:$rows, I32:$write_rows,
      I64Attr:$dim);
  let hasVerifier = 1;
  let assemblyFormat =
      [{ $dst `stride` `(` $stride `` custom<Stride>(type($stride)) `)` `,` $acc `rows` `(` $rows `,` $write_rows `)`
          `dim` $dim attr-dict
    `:` qualified(type($dst)) `,` qualified(type($acc)) }];
}

def Tile_StoreLseOp : Tile_ComputeOp<"store_lse", [AttrSizedOperandSegments]> {
  let summary = "writes the log-sum-exp of rows (natural logarithm), -inf to padding rows";
  let description = [{
    One after the other, or, where rows are pairs of a query and a head, `stride` apart. With `sum`, the state of rows
    is written and not their LSE, for `tile.combine`: the raw maximum, and the sum to the other place.

    ```mlir
    tile.store_lse %dst, %row rows(%rows, %write_rows) : !tile.ptr<f32>, !tile.softmax_state<128, 4>
    tile.store_lse %partial_max sum(%partial_sum), %row rows(%rows, %write_rows) : !tile.ptr<f32>,
        !tile.softmax_state<128, 4>
    ```
  }];
  let arguments = (ins Out<Tile_Ptr>:$dst, Out<Optional<Tile_FloatPtr>>:$sum, Optional<Tile_Stride>:$stride,
      In<Tile_AnyRows>:$row, I32:$rows, I32:$write_rows);
  let assemblyFormat =
      [{ $dst (`sum` `(` $sum^ `)`)? (`stride` `(` $stride^ `` custom<Stride>(type($stride)) `)`)? `,` $row `rows` `(`
          $rows `,` $write_rows `)` attr-dict `:` qualified(type($dst)) `,` qualified(type($row)) }];
}

def Tile_StorePaddingOp : Tile_ComputeOp<"store_padding"> {
  let summary = "writes a tile made of padding: 0 (LSE: -inf)";
  let description = [{
    For slots that stand for padding only. Writes `write_rows` rows of `dim`
    columns: 0, or -inf where it is one column of f32 (LSE).

    ```mlir
    tile.store_padding %dst stride(%o_row) rows(%write_rows) dim 128 : !tile.ptr<bf16>
    ```
  }];
  let arguments = (ins Out<Tile_Ptr>:$dst, Tile_Stride:$stride, I32:$write_rows, I64Attr:$dim);
  let assemblyFormat = "$dst `stride` `(` $stride `` custom<Stride>(type($stride)) `)` `rows` `(` $write_rows `)` "
                       "`dim` $dim attr-dict `:` qualified(type($dst))";
}

def Tile_ClearSliceOp : Tile_ComputeOp<"clear_slice"> {
  let summary = "makes a block's share of an array in global memory 0";
  let description = [{
    Of `count` numbers, a multiple of 4, `block` of so many `blocks` clears what is left to it if they take turns: all
    of them together clear all. Where a kernel multiplies, memory has time for that.

    ```mlir
    tile.clear_slice %sum count(%count) block(%block of %blocks)
    ```
  }];
  let arguments = (ins Out<Tile_FloatPtr>:$to, I64:$count, I32:$block, I32:$blocks);
  let assemblyFormat = "$to `count` `(` $count `)` `block` `(` $block `of` $blocks `)` attr-dict";
}

def Tile_CombineOp : Tile_ComputeOp<"combine"> {
  let summary = "makes results out of those of parts of the keys";
  let description = [{
    Where a query tile's keys were shared out (`split_kv`), each block
    left o and the state of each row of its share, all float32: a maximum of raw scores, and the
    sum of probabilities relative to it. (The LSE of a part would not do: beside a large score
    float32 holds nothing of the sum.) A row's are `pitch` rows apart from one part to the next.
    Of `rows` rows, with max the largest of max_s,

        total = sum over parts of exp((max_s - max) * scale) * sum_s
        lse = max * scale + ln(total)
        o = sum over parts of exp((max_s - max) * scale) * sum_s / total * o_s

    are written. The sums go over the parts in order, whichever block was first,
    so the same inputs give the same bits. A part without keys has max = -inf, and
    its o and sum are not read: nobody need have written them. A row of which all parts are so
    (one that sees no key, or padding) has o = 0 and lse = -inf.

    The whole program of a kernel of its own, which follows the one that computes.

    Constraints:
    - C1: dim is a multiple of 8 from 8 to 256, o has elements of bf16 or f16 (of the target `cpu` also f32).
    - C2: scale is positive.

    ```mlir
    tile.combine %o stride(%o_row) lse(%lse) from(%partial_o, %partial_max, %partial_sum) splits(%splits,
        %pitch) rows(%rows) dim 128 scale 8.838835e-02
      : !tile.ptr<bf16>
    ```
  }];
  let arguments = (ins Out<Tile_Ptr>:$o, I64:$stride, Out<Optional<Tile_FloatPtr>>:$lse, Tile_FloatPtr:$partial_o,
      Tile_FloatPtr:$partial_max, Tile_FloatPtr:$partial_sum, I32:$splits, I64:$pitch, I32:$rows, I64Attr:$dim,
      F64Attr:$scale);
  let assemblyFormat = [{
    $o `stride` `(` $stride `)` (`lse` `(` $lse^ `)`)? `from` `(` $partial_o `,` $partial_max `,` $partial_sum `)`
    `splits` `(` $splits `,` $pitch `)` `rows` `(` $rows `)` `dim` $dim `scale` $scale attr-dict `:` qualified(type($o))
  }];
  let hasVerifier = 1;
}

def Tile_StoreSinkLseOp : Tile_ComputeOp<"store_sink_lse", [AttrSizedOperandSegments]> {
  let summary = "writes the LSE of tokens that see the sink alone";
  let description = [{
    Tokens with an id from 1 to `segments` (and, if there are positions, a position within +-2^29) that are in no
    sequence get `sink` as their LSE. `lse` points to the LSE of the first of `rows` tokens, which has the number `row0`
    among the tokens of all batch rows; a batch row has `tokens` of them. `metadata.write_sequences` writes the
    sequences. The attention kernel, which runs before, takes such tokens for padding.

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

#endif // TILE_RESULT_OPS
