// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Ops on scores, probabilities and accumulators between the products.
#ifndef TILE_FRAGMENT_OPS
#define TILE_FRAGMENT_OPS

include "attn/Dialect/Tile/IR/TileInterfaces.td"
include "mlir/IR/OpAsmInterface.td"

def Tile_ModifyOp
    : Tile_ComputeOp<"modify", [SingleBlock,
                                DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmBlockArgumentNames"]>]> {
  let summary = "applies a score modifier to each score";
  let description = [{
    One op for each score modifier of an `attn.problem`, in their order, after the product and before
    `tile.apply_mask` (masked scores have to stay -inf). Full tiles need it like all others.

    The region's arguments are a score, its query row, its key, and the key once more as `base` + `ahead`, where
    `ahead`, a float, is a constant after unrolling, since converting an integer to a float is expensive. The tile's
    first score is at (`q0`, `k0`). If rows are pairs of a query and a head, the head is the last argument. The region
    yields the new score, or three numbers a, b, c with score = a * b + c, which may save the op that reads the score
    an instruction (`tile.softmax_convert`). Scores are products as `tile.mma_abt` leaves them, or the results of the
    op before; they are scaled later, and constants in the region take that into account.

    `within`: where all scores of a warp are below this bound in magnitude, the first region is used, which need not
    be right for other scores. `becomes`: the result of that region for a score equal to the bound, in natural units;
    its result is greater for greater scores, and negated for negative ones.

    Constraints:
    - C1: `within` is positive and goes with a second region.
    - C2: `becomes` is positive and goes with `within`.

    ```mlir
    tile.modify %s at(%q0, %k0) : !tile.frag<128x64, 4> {
    ^bb0(%score: f32, %q: i32, %k: i32, %base: i32, %ahead: f32):
      %capped = math.tanh %score : f32
      tile.yield %capped : f32
    }
    ```
  }];
  let arguments = (ins Tile_AnyScores:$s, Tile_Origin:$q0, I32:$k0, OptionalAttr<F64Attr>:$within,
      OptionalAttr<F64Attr>:$becomes);
  let regions = (region AnyRegion:$small, SizedRegion<1>:$body);
  let assemblyFormat = [{
    $s `at` `(` $q0 `` custom<Origin>(type($q0)) `,` $k0 `)` `:` qualified(type($s))
    (`within` $within^ (`becomes` $becomes^)? $small `else`)? $body attr-dict
  }];
  let hasVerifier = 1;
}

def Tile_ApplyMaskOp
    : Tile_ComputeOp<"apply_mask", [SingleBlockImplicitTerminator<"YieldOp">,
                                    DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmBlockArgumentNames"]>]> {
  let summary = "element test: scores of invisible pairs become -inf";
  let description = [{
    The region's arguments are the query row and the key of an element; the tile's first element is at (`q0`, `k0`).
    It yields one condition per conjunct of the mask; an element is kept if all hold. Inside a `tile.kv_loop` each
    segment says which conjuncts it needs; `tile-split-kv-loop` keeps only those.

    `transposed`: rows of the fragment are keys and columns are queries. The first element is then at (`k0`, `q0`),
    and the region gets (k, q).

    If columns are pairs of a key and a kv head, a row sees the keys of its own kv head only; all others are
    invisible.

    Constraints:
    - C1: columns are pairs only where rows are, of a multiple of their heads, and not with `transposed`.

    ```mlir
    tile.apply_mask %s at(%q0, %k0) : !tile.frag<128x64, 4> {
    ^bb0(%q: i32, %k: i32):
      %below = arith.cmpi sle, %k, %q : i32
      tile.yield %below : i1
    }
    ```
  }];
  let arguments = (ins Tile_AnyScores:$s, Tile_Origin:$q0, Tile_Origin:$k0, UnitAttr:$transposed);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    $s `at` `(` $q0 `` custom<Origin>(type($q0)) `,` $k0 `` custom<Origin>(type($k0)) `)` (`transposed` $transposed^)?
    `:` qualified(type($s)) $body attr-dict
  }];
  let hasVerifier = 1;
}

def Tile_OnlineSoftmaxOp : Tile_ComputeOp<"online_softmax"> {
  let summary = "one step of the online softmax";
  let description = [{
    Raises the running maximum of each row, rescales its sum and `acc`, turns the scores `s` into unnormalised
    probabilities and adds them to the sum. In base 2: scores are multiplied by `scale` * log2(e).

    Without `acc`, a product into the accumulator may be in flight meanwhile: the softmax state keeps the factor for
    `tile.rescale`. A single-pass softmax, where one tile has all keys, needs no rescaling.

    `rising`: scores are expected to grow from tile to tile, so that most tiles raise a maximum.

    `rows_recomputed`: a row whose largest score is 2^24 or more in size, in base 2, may come out wrong.
    `tile.normalize` finds such rows and `tile.recompute_rows` computes them again. Without it every finite score is
    right, which takes a few instructions a tile.

    Constraints:
    - C1: scale is positive (`tile.scale` takes a sign, the least float stands for 0).
    - C2: all places are fragments, or all are SIMT tiles of as many lanes, with `acc`.

    ```mlir
    tile.online_softmax %s, %row, %acc scale 8.838835e-02
        : !tile.frag<128x64, 4>, !tile.softmax_state<128, 4>, !tile.frag<128x128, 4>
    tile.online_softmax %all, %all_rows scale 8.838835e-02 rows_recomputed
        : !tile.frag<128x128, 8>, !tile.softmax_state<128, 8>
    ```
  }];
  let hasVerifier = 1;
  let arguments = (ins Tile_AnyScores:$s, Tile_AnySoftmaxState:$row, Optional<Tile_AnyAccumulator>:$acc, F64Attr:$scale,
      UnitAttr:$rising, UnitAttr:$rows_recomputed);
  let builders = [OpBuilder<(ins "::mlir::Value":$s, "::mlir::Value":$row, "::mlir::FloatAttr":$scale,
                                "::mlir::UnitAttr":$rows_recomputed),
                            [{
    build($_builder, $_state, s, row, /*acc=*/::mlir::Value(), scale, /*rising=*/::mlir::UnitAttr(), rows_recomputed);
  }]>];
  let assemblyFormat = [{ $s `,` $row (`,` $acc^)? `scale` $scale (`rows_recomputed` $rows_recomputed^)? attr-dict `:`
          qualified(type($s)) `,` qualified(type($row)) (`,` qualified(type($acc))^)? }];
}

def Tile_RescaleOp : Tile_ComputeOp<"rescale"> {
  let summary = "rescales the accumulator to the maxima that `tile.online_softmax` raised";
  let description = [{
    ```mlir
    tile.rescale %acc, %row : !tile.frag<128x128, 8>, !tile.softmax_state<128, 8>
    ```
  }];
  let arguments = (ins Tile_Frag:$acc, In<Tile_SoftmaxState>:$row);
  let assemblyFormat = "$acc `,` $row attr-dict `:` qualified(type($acc)) `,` qualified(type($row))";
}

def Tile_ConvertOp : Tile_ComputeOp<"convert"> {
  let summary = "converts probabilities to the left operand of a product";
  let description = [{
    To a register operand, or, for a product with the transpose (`tile.mma_atb`), to shared memory, with a barrier at
    the end. `at_once`: the conversion is complete before products that follow are started. Otherwise the compiler
    starts these products first where it can, and needs registers for the operand and for their results.

    Constraints:
    - C1: both have the same rows, columns and warps; a tile in shared memory is not swizzled, has the fragment's
      valid rows and at least as many columns.

    ```mlir
    tile.convert %p, %s : !tile.register_operand<128x128xbf16, 8>, !tile.frag<128x128, 8>
    tile.convert %p, %s {at_once} : !tile.register_operand<128x128xbf16, 8>, !tile.frag<128x128, 8>
    ```
  }];
  let arguments = (ins Out<AnyTypeOf<[Tile_RegisterOperand, Tile_Shared]>>:$p, In<Tile_Frag>:$s, UnitAttr:$at_once);
  let assemblyFormat = "$p `,` $s attr-dict `:` qualified(type($p)) `,` qualified(type($s))";
  let hasVerifier = 1;
}

def Tile_SoftmaxConvertOp
    : Tile_ComputeOp<"softmax_convert", [DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmBlockArgumentNames"]>]> {
  let summary = "`tile.online_softmax` and `tile.convert` in one, with the maxima last";
  let description = [{
    Scores become converted probabilities and are added to the sums. Exponents are first taken relative to the current
    maxima. Only if a sum then shows that a row exceeded its maximum by far, the maximum is raised and the tile is
    computed again. So exponentials wait for no maximum, and most tiles compute none. The softmax state keeps the
    factor of the accumulator for `tile.rescale`. The maxima have to come from scores already, as
    `tile.online_softmax` leaves them. `rows_recomputed` is as in `tile.online_softmax`.

    No product may still read `p` when this op begins; of the two separate ops, only `tile.convert` needs that.

    The regions are those of a `tile.modify` that `tile-fuse-modify` found right before; `at` has its (`q0`, `k0`).
    The first region is used, and if not all scores of the warp are below `within` in magnitude, the tile is computed
    again with the other region. `becomes` is the first region's result for a score equal to `within`, in natural
    units. With it, maxima replace the test of each score: all rows' maxima have to be at least 8 below `becomes`, in
    base 2, since a score that exceeds its maximum by 8 shows in the sum. They also may not be far below 0, where a
    score of -`within` would count.

    Constraints:
    - C1: scale is positive.
    - C2: `p` and `s` have the same rows, columns and warps.
    - C3: there are `at` and a region `modify`, or neither; `within` is positive and goes with a second region,
      `becomes` with `within`.

    ```mlir
    tile.softmax_convert %p, %s, %row scale 8.838835e-02
        : !tile.register_operand<128x128xbf16, 8>, !tile.frag<128x128, 8>, !tile.softmax_state<128, 8>
    ```
  }];
  let arguments = (ins Out<Tile_RegisterOperand>:$p, Tile_Frag:$s, Tile_SoftmaxState:$row, F64Attr:$scale,
      UnitAttr:$rows_recomputed, Variadic<I32>:$at, OptionalAttr<F64Attr>:$within, OptionalAttr<F64Attr>:$becomes);
  let regions = (region AnyRegion:$small, AnyRegion:$modify);
  let assemblyFormat = [{
    $p `,` $s `,` $row `scale` $scale (`rows_recomputed` $rows_recomputed^)? (`at` `(` $at^ `)`)? attr-dict
    `:` qualified(type($p)) `,` qualified(type($s)) `,` qualified(type($row))
    (`within` $within^ (`becomes` $becomes^)? $small `else`)? (`modify` $modify^)?
  }];
  let hasVerifier = 1;
}

def Tile_RecomputeRowsOp
    : Tile_ComputeOp<"recompute_rows", [SingleBlockImplicitTerminator<"YieldOp">, AllTypesMatch<["q", "k", "v"]>,
                                        AttrSizedOperandSegments,
                                        DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmBlockArgumentNames"]>]> {
  let summary = "recomputes rows whose result is NaN";
  let description = [{
    A product with P cannot tell a hidden key from a weight of 0, and 0 * NaN is NaN: a NaN or Inf in a key's V
    reaches rows from which the mask hides that key. The results of such rows are then NaN. This op, after
    `tile.store`, recomputes the rows with a NaN, one by one, from visible keys only, and writes them again. A row
    that may see the NaN gets it again.

    | operand or region | meaning |
    |---|---|
    | `q`, `o`, `lse`, `sum` | point at the tile's first row (`sum` as in `tile.store_lse`) |
    | `k`, `v` | point at the sequence's first key |
    | `..._row` | strides of rows, in elements |
    | `keys`, `from` | the sequence's length; with `from`, the end and the first key of the CTA's split |
    | first region | gets (query row, key) and yields the mask's conditions, all of which have to hold |
    | `modify` | as in `tile.modify`, for all score modifiers of the problem together |
    | `sink` | as in `tile.add_sink` |
    | `before` | points at the partial result from which rows continue, as in `tile.resume` |
    | `dropout`, `below`, `by` | pairs that `tile.dropout` drops are left out; results are multiplied `by` |
    | `ranges`, `along` | keys are those of so many ranges; the region says where the j-th lies |

    The region of `along` yields the first key of a range, the one behind its last, and the row of the first, counted
    from `k` and `v`.

    Constraints:
    - C1: o has q's elements, or f32, as the results of a split have.
    - C2: where rows are pairs of a query and a head, `at` and the strides of q, o and lse are pairs.
    - C3: `dropout`, `below` and `by` are given together; `below` is from 1 to 2^15 - 1.
    - C4: `ranges` and `along` are given together, and not `from` with them; the region gets an i32 and yields three.
    - C5: the parts of `before` are given together.

    ```mlir
    tile.recompute_rows %acc at(%q0) rows(%rows) keys(%keys) from(%q, %q_row, %k, %k_row, %v, %v_row)
        into(%o, %o_row) lse(%lse) dims(128, 128) scale 8.838835e-02
        : !tile.frag<128x128, 8>, !tile.ptr<bf16>, !tile.ptr<bf16> {
    ^bb0(%query: i32, %key: i32):
      %below = arith.cmpi sle, %key, %query : i32
      tile.yield %below : i1
    }
    ```
  }];
  let arguments = (ins In<Tile_Frag>:$acc, Tile_Origin:$q0, I32:$rows, Optional<I32>:$first_key, I32:$keys, Tile_Ptr:$q,
      Tile_Stride:$q_row, Tile_Ptr:$k, I64:$k_row, Tile_Ptr:$v, I64:$v_row, Out<Tile_Ptr>:$o, Tile_Stride:$o_row,
      Out<Optional<Tile_FloatPtr>>:$lse, Optional<Tile_Stride>:$lse_row, Out<Optional<Tile_FloatPtr>>:$sum,
      Optional<Tile_FloatPtr>:$before_o, Optional<I64>:$before_row, Optional<Tile_FloatPtr>:$before_max,
      Optional<Tile_FloatPtr>:$before_sum, Optional<Tile_DropoutState>:$dropout, Optional<I32>:$ranges, I64Attr:$dim_qk,
      I64Attr:$dim_v, F64Attr:$scale, OptionalAttr<I64Attr>:$below, OptionalAttr<F64Attr>:$factor);
  let regions = (region SizedRegion<1>:$body, AnyRegion:$modify, AnyRegion:$sink, AnyRegion:$along);
  let assemblyFormat = [{
    $acc `at` `(` $q0 `` custom<Origin>(type($q0)) `)` `rows` `(` $rows `)` `keys` `(` $keys (`from` $first_key^)? `)`
        `from` `(` $q `,` $q_row `` custom<Stride>(type($q_row)) `,` $k `,` $k_row `,` $v `,` $v_row `)`
    `into` `(` $o `,` $o_row `` custom<Stride>(type($o_row)) `)`
    (`lse` `(` $lse^ (`,` $lse_row^ `` custom<Stride>(type($lse_row)))? `)`)? (`sum` `(` $sum^ `)`)? `dims` `(` $dim_qk
        `,` $dim_v `)` `scale` $scale
    (`before` `(` $before_o^ `,` $before_row `,` $before_max `,` $before_sum `)`)?
    (`dropout` `(` $dropout^ `)` `below` $below `by` $factor)? (`ranges` `(` $ranges^ `)`)?
    `:` qualified(type($acc)) `,` qualified(type($q)) `,` qualified(type($o)) $body (`modify` $modify^)? (`sink`
        $sink^)? (`along` $along^)? attr-dict
  }];
  let hasVerifier = 1;
}

def Tile_AddSinkOp
    : Tile_ComputeOp<"add_sink", [SingleBlockImplicitTerminator<"YieldOp">,
                                  DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmBlockArgumentNames"]>]> {
  let summary = "adds a sink to each row: one more key without a value";
  let description = [{
    The sink's score, natural and not scaled, is added to the row's maximum and sum, and the accumulator is rescaled;
    after all keys, before `tile.normalize`. The region yields the score: that of the row's head, which is its
    argument where rows are pairs of a query and a head. A score of -inf changes nothing.

    Constraints:
    - C1: both places are of fragments, or both of SIMT tiles of as many lanes.
    - C2: the region yields a number of type f32; it gets a head (i32) where rows are pairs, else nothing.

    ```mlir
    tile.add_sink %acc, %row at(%q0) : !tile.frag<128x128, 4>, !tile.softmax_state<128, 4> {
      tile.yield %sink : f32
    }
    ```
  }];
  let hasVerifier = 1;
  let arguments = (ins Tile_AnyAccumulator:$acc, Tile_AnySoftmaxState:$row, Tile_Origin:$q0);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    $acc `,` $row `at` `(` $q0 `` custom<Origin>(type($q0)) `)` attr-dict `:` qualified(type($acc)) `,`
        qualified(type($row)) $body
  }];
}

def Tile_NormalizeOp : Tile_ComputeOp<"normalize"> {
  let summary = "divides the accumulator by the rows' sums (0 where no key was seen)";
  let description = [{
    `reduced`: `tile.reduce_row_sums` has reduced the sums across lanes, as for accumulators whose columns are divided
    one part after the other. `rows_recomputed`: a row whose largest score is 2^24 or more in size, in base 2, becomes
    NaN, so that `tile.recompute_rows` computes it again.

    Constraints:
    - C1: both are of fragments, or both of SIMT tiles of as many lanes.
    - C2: `rows_recomputed` is for fragments, in a kernel with a `tile.recompute_rows`.
    - C3: `reduced` is for fragments, and not with `rows_recomputed`.

    ```mlir
    tile.normalize %acc, %row : !tile.frag<128x128, 4>, !tile.softmax_state<128, 4>
    tile.reduce_row_sums %few : !tile.softmax_state<32, 2>
    tile.normalize %part, %few reduced : !tile.frag<32x64, 2>, !tile.softmax_state<32, 2>
    ```
  }];
  let hasVerifier = 1;
  let arguments = (ins Tile_AnyAccumulator:$acc, Tile_AnySoftmaxState:$row, UnitAttr:$rows_recomputed,
      UnitAttr:$reduced);
  let assemblyFormat = "$acc `,` $row (`rows_recomputed` $rows_recomputed^)? (`reduced` $reduced^)? attr-dict `:` "
                       "qualified(type($acc)) `,` qualified(type($row))";
}

def Tile_ReduceRowSumsOp : Tile_ComputeOp<"reduce_row_sums"> {
  let summary = "reduces the rows' sums across the lanes of a row: the first half of `tile.normalize`";
  let description = [{
    Used once, where `tile.normalize ... reduced` divides several accumulators of the same rows.

    ```mlir
    tile.reduce_row_sums %row : !tile.softmax_state<32, 2>
    ```
  }];
  let arguments = (ins Tile_SoftmaxState:$row);
  let assemblyFormat = "$row attr-dict `:` qualified(type($row))";
}

#endif // TILE_FRAGMENT_OPS
