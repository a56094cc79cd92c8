// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// From fragments and softmax states to global memory, and from the splits of a result to the whole.
#ifndef TILE_RESULT_OPS
#define TILE_RESULT_OPS

include "attn/Dialect/Tile/IR/TileInterfaces.td"
include "mlir/IR/OpBase.td"

def Tile_StoreOp : Tile_ComputeOp<"store"> {
  let summary = "writes a fragment's rows, and zeros to padding rows";
  let description = [{
    Rows below `rows` are rounded to the element type and written (as they are, if
    that is f32), rows from there to `write_rows` are written as 0; `dim` columns each. `by`: rows are multiplied by a
    number first, as the dQ MMA warpgroup does where its CTA is the sole writer.

    Constraints:
    - C1: a SIMT tile has elements of f32 and `dim` columns, and results of bf16 or f16 (of the target `cpu` also f32).
    - C2: with a factor, the fragment has 64 rows, of the four warps of one warpgroup, and `dim` columns or more; no row
      is padding.

    ```mlir
    tile.store %dst stride(%o_row), %acc rows(%rows, %write_rows) dim 128 : !tile.ptr<bf16>, !tile.frag<128x128, 4>
    tile.store %dq stride(%dq_row), %dQ by 0.125 rows(%rows, %rows) dim 64 : !tile.ptr<bf16>, !tile.frag<64x64, 4>
    ```
  }];
  let arguments = (ins Out<Tile_Ptr>:$dst, Tile_Stride:$stride, In<Tile_AnyAccumulator>:$acc, I32:$rows,
      I32:$write_rows, I64Attr:$dim, OptionalAttr<F64Attr>:$factor);
  let builders = [OpBuilder<(ins "::mlir::Value":$dst, "::mlir::Value":$stride, "::mlir::Value":$acc,
                                "::mlir::Value":$rows, "::mlir::Value":$writeRows, "int64_t":$dim),
                            [{
    build($_builder, $_state, dst, stride, acc, rows, writeRows, $_builder.getI64IntegerAttr(dim),
          /*factor=*/::mlir::FloatAttr());
  }]>];
  let hasVerifier = 1;
  let assemblyFormat = [{ $dst `stride` `(` $stride `` custom<Stride>(type($stride)) `)` `,` $acc (`by` $factor^)?
    `rows` `(` $rows `,` $write_rows `)` `dim` $dim attr-dict
    `:` qualified(type($dst)) `,` qualified(type($acc)) }];
}

def Tile_StoreLseOp : Tile_ComputeOp<"store_lse", [AttrSizedOperandSegments]> {
  let summary = "writes the log-sum-exp of rows (natural logarithm), -inf to padding rows";
  let description = [{
    Rows are consecutive, or, where rows are pairs of a query and a head, `stride` apart. With `sum`, the softmax
    state is written for `tile.combine` in place of LSE: the raw maximum to `dst`, and the sum to the other place.

    ```mlir
    tile.store_lse %dst, %row rows(%rows, %write_rows) : !tile.ptr<f32>, !tile.softmax_state<128, 4>
    tile.store_lse %partial_max sum(%partial_sum), %row rows(%rows, %write_rows) : !tile.ptr<f32>,
        !tile.softmax_state<128, 4>
    ```
  }];
  let arguments = (ins Out<Tile_Ptr>:$dst, Out<Optional<Tile_FloatPtr>>:$sum, Optional<Tile_Stride>:$stride,
      In<Tile_AnySoftmaxState>:$row, I32:$rows, I32:$write_rows);
  let assemblyFormat =
      [{ $dst (`sum` `(` $sum^ `)`)? (`stride` `(` $stride^ `` custom<Stride>(type($stride)) `)`)? `,` $row `rows` `(`
          $rows `,` $write_rows `)` attr-dict `:` qualified(type($dst)) `,` qualified(type($row)) }];
}

def Tile_StorePaddingOp : Tile_ComputeOp<"store_padding", [AttrSizedOperandSegments]> {
  let summary = "writes rows that belong to no sequence: 0 (LSE: -inf)";
  let description = [{
    `rows`: that many rows of the CTA's tile, for work tiles that are padding only. `from`, `to`, `step`: the queries
    from, from + step, ... below `to`, with all heads of each if rows are pairs, written by groups of `lanes` lanes;
    `dst` points at query 0. This form spreads padding before the first and after the last sequence, which may be long,
    over all warps. `dim` columns are written as 0, or, where it is one column of f32 (LSE), as -inf.

    Constraints:
    - C1: with `lanes`, dim is a multiple of 8 and elements are bf16 or f16 (of the target `cpu` also f32), or dim is 1
      and elements are f32 (LSE).
    - C2: lanes is 1, 2, 4, 8, 16 or 32.
    - C3: there are `rows`, or `from`, `to`, `step` and `lanes`.

    ```mlir
    tile.store_padding %dst stride(%o_row) rows(%write_rows) dim 128 : !tile.ptr<bf16>
    tile.store_padding %dst stride(%o_row) from(%begin) to(%end) step(%step) lanes 16 dim 128 : !tile.ptr<bf16>
    ```
  }];
  let arguments = (ins Out<Tile_Ptr>:$dst, Tile_Stride:$stride, Optional<I32>:$write_rows, Optional<I32>:$begin,
      Optional<I32>:$end, Optional<I32>:$step, OptionalAttr<I64Attr>:$lanes, I64Attr:$dim);
  let builders = [OpBuilder<(ins "::mlir::Value":$dst, "::mlir::Value":$stride, "::mlir::Value":$rows, "int64_t":$dim),
                            [{
    build($_builder, $_state, dst, stride, rows, /*begin=*/{}, /*end=*/{}, /*step=*/{}, /*lanes=*/{},
          $_builder.getI64IntegerAttr(dim));
  }]>,
                  OpBuilder<(ins "::mlir::Value":$dst, "::mlir::Value":$stride, "::mlir::Value":$begin,
                                "::mlir::Value":$end, "::mlir::Value":$step, "int64_t":$dim, "int64_t":$lanes),
                            [{
    build($_builder, $_state, dst, stride, /*rows=*/{}, begin, end, step, $_builder.getI64IntegerAttr(lanes),
          $_builder.getI64IntegerAttr(dim));
  }]>];
  let assemblyFormat = [{
    $dst `stride` `(` $stride `` custom<Stride>(type($stride)) `)` (`rows` `(` $write_rows^ `)`)?
    (`from` `(` $begin^ `)` `to` `(` $end `)` `step` `(` $step `)` `lanes` $lanes)? `dim` $dim attr-dict
    `:` qualified(type($dst))
  }];
  let hasVerifier = 1;
}

def Tile_ResumeOp : Tile_ComputeOp<"resume"> {
  let summary = "continues an online softmax from a partial result";
  let description = [{
    For `rows` rows that have visible keys in the partial result, the accumulator becomes O times the sum, and the
    softmax state becomes that of the partial result, as `tile.store` and `tile.store_lse` with `sum` wrote them. Other
    rows stay as they are.

    Constraints:
    - C1: dim is a multiple of 8, and at most the columns of the accumulator.

    ```mlir
    tile.resume %acc, %row from(%before_o, %before_o_row) state(%before_max, %before_sum) rows(%rows) dim 128
        : !tile.frag<128x128, 8>, !tile.softmax_state<128, 8>
    ```
  }];
  let arguments = (ins InOut<Tile_Frag>:$acc, InOut<Tile_AnySoftmaxState>:$row, Tile_FloatPtr:$o, I64:$stride,
      Tile_FloatPtr:$max, Tile_FloatPtr:$sum, I32:$rows, I64Attr:$dim);
  let assemblyFormat = [{
    $acc `,` $row `from` `(` $o `,` $stride `)` `state` `(` $max `,` $sum `)` `rows` `(` $rows `)` `dim` $dim attr-dict
    `:` qualified(type($acc)) `,` qualified(type($row))
  }];
  let hasVerifier = 1;
}

def Tile_AddRowsOp : Tile_ComputeOp<"add_rows"> {
  let summary = "adds rows of memory to a fragment";
  let description = [{
    The first `rows` rows, `dim` columns of each, float32.

    Constraints:
    - C1: dim is a multiple of 8, and at most the columns of the fragment.

    ```mlir
    tile.add_rows %dQ, %before_dq stride(%before_dq_row) rows(%rows) dim 128 : !tile.frag<128x128, 8>
    ```
  }];
  let arguments = (ins InOut<Tile_Frag>:$acc, Tile_FloatPtr:$src, I64:$stride, I32:$rows, I64Attr:$dim);
  let assemblyFormat = [{
    $acc `,` $src `stride` `(` $stride `)` `rows` `(` $rows `)` `dim` $dim attr-dict `:` qualified(type($acc))
  }];
  let hasVerifier = 1;
}

def Tile_GatherRowsOp : Tile_ComputeOp<"gather_rows", [AttrSizedOperandSegments]> {
  let summary = "rows of tensors in another order, or sums of rows";
  let description = [{
    Row i of `rows` rows of the result, from `first` on, is the sum of the rows index[p * total + i] of the parts p that
    have such a row (not below 0), in the order of the parts, in float32. With one part of the same elements rows are
    copied. `strides` are those of rows and heads of each part. It is the only op of its
    kernel.

    Constraints:
    - C1: there are two strides for each part.
    - C2: dim is 1 or a multiple of 8; heads are positive.

    ```mlir
    tile.gather_rows %result stride(%row, %head) parts(%a, %b) strides(%ar, %ah, %br, %bh) index(%index of %total)
        rows(%rows from %first) heads 8 dim 128 : !tile.ptr<bf16>, !tile.ptr<f32>, !tile.ptr<f32>
    ```
  }];
  let arguments = (ins Out<Tile_Ptr>:$result, I64:$row, I64:$head, Variadic<Tile_Ptr>:$parts, Variadic<I64>:$strides,
      Tile_IntPtr:$index, I32:$total, I32:$first, I32:$rows, I64Attr:$heads, I64Attr:$dim);
  let assemblyFormat = [{
    $result `stride` `(` $row `,` $head `)` `parts` `(` $parts `)` `strides` `(` $strides `)`
    `index` `(` $index `of` $total `)` `rows` `(` $rows `from` $first `)` `heads` $heads `dim` $dim attr-dict
    `:` qualified(type($result)) `,` qualified(type($parts))
  }];
  let hasVerifier = 1;
}

def Tile_CombineOp : Tile_ComputeOp<"combine"> {
  let summary = "combines the results of splits of the keys";
  let description = [{
    With `split_kv`, each CTA of a query tile wrote o and the softmax state of each row for its split, all float32: a
    maximum of raw scores, and the sum of probabilities relative to it. (The LSE of a split would not do: beside a
    large score, float32 has no bits left for the sum.) `pitch` is the distance in rows from one split to the next.
    For each of `rows` rows, with max the largest of max_s,

        total = sum over splits of exp((max_s - max) * scale) * sum_s
        lse = max * scale + ln(total)
        o = sum over splits of exp((max_s - max) * scale) * sum_s / total * o_s

    are written. The sums go over the splits in order, so that equal inputs give equal bits. A split without keys has
    max = -inf; its o and sum are not read and need not have been written. A row whose splits are all without keys
    (one that sees no key, or padding) has o = 0 and lse = -inf.

    The whole program of a kernel that runs after the one that computes the splits.

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

def Tile_CombineSumsOp : Tile_ComputeOp<"combine_sums"> {
  let summary = "adds up the partial sums of a result";
  let description = [{
    With `split_q`, several CTAs wrote partial sums of a tile's dK or dV, all float32 and with `dim` columns. `pitch` is
    the distance in rows from one to the next. For each of `rows` rows, their sum in order, so that equal inputs give
    equal bits, is rounded and written.

    Constraints:
    - C1: dim is a multiple of 8 from 8 to 256, results are of bf16, f16 or f32.

    ```mlir
    tile.combine_sums %dk stride(%dk_row) from(%partial_dk) splits(%splits, %pitch) rows(%rows) dim 128
      : !tile.ptr<bf16>
    ```
  }];
  let arguments = (ins Out<Tile_Ptr>:$dst, I64:$stride, Tile_FloatPtr:$partial, I32:$splits, I32:$pitch, I32:$rows,
      I64Attr:$dim);
  let assemblyFormat = [{
    $dst `stride` `(` $stride `)` `from` `(` $partial `)` `splits` `(` $splits `,` $pitch `)` `rows` `(` $rows `)` `dim`
    $dim attr-dict `:` qualified(type($dst))
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

def Tile_CallOp : Tile_ComputeOp<"call", [AttrSizedOperandSegments]> {
  let summary = "a call of a function of the device library";
  let description = [{
    All threads of the CTA call `attn::function(written..., others...)`, which `header` has, for the target `cpu` the
    host's header of that name. What `written` point to is written, pointers among the others are read. The function
    has barriers of its own where it needs them. It is for kernels around attention that are one function: what they
    compute is said by the op that they come from (`attn.compress`, for example).

    ```mlir
    tile.call "compressed_offsets<32, 16, 256>" of "attn/compress.h" (%cu_c) from (%cu, %batch)
        : (!tile.ptr<i32>), (!tile.ptr<i32>, i32)
    ```
  }];
  let arguments = (ins StrAttr:$function, StrAttr:$header, Out<Variadic<Tile_Ptr>>:$written, Variadic<AnyType>:$others);
  let assemblyFormat = [{
    $function `of` $header `(` $written `)` `from` `(` $others `)` attr-dict `:` `(` type($written) `)` `,`
    `(` type($others) `)`
  }];
}

#endif // TILE_RESULT_OPS
