// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What is done to scores, probabilities and accumulators between the products.
#ifndef TILE_FRAGMENT_OPS
#define TILE_FRAGMENT_OPS

include "attn/Dialect/Tile/IR/TileInterfaces.td"
include "mlir/IR/OpAsmInterface.td"

def Tile_ModifyOp
    : Tile_ComputeOp<"modify", [SingleBlock,
                                DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmBlockArgumentNames"]>]> {
  let summary = "a function of each score, its row and its key";
  let description = [{
    What an `attn.problem` asks to be done to scores before the softmax, one op for
    each score modifier, in their order, behind the product and before `tile.apply_mask`
    (masked scores have to stay -inf). Full tiles need it like all others.

    The region gets a score, its query row and its key, (`q0`, `k0`) being those of
    the tile's first, and the key once more as `base + ahead`, where `ahead` is a
    constant after unrolling: turning an integer into a float is dear. It yields
    the new score, or three numbers a, b, c of which it is a * b + c, so that whoever
    goes on with it may save an instruction (`tile.softmax_convert`). Where rows are pairs of a
    query and a head, it gets the head as well. Scores are products as `tile.mma_abt`
    leaves them, or what the op before left; constants in the region know by what they
    are multiplied later.

    `within`: where all scores of a warp are smaller than that in size, the first
    region is taken, which need not be right for others. `becomes`: what it makes of a
    score of that size, in natural units; of greater ones it makes more, of negative ones
    the negative.

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
    The region gets the query row and the key of an element, (`q0`, `k0`) being
    those of the tile's first, and yields one condition per conjunct of the mask;
    the element stays if all hold. Inside a `tile.kv_loop` each segment says
    which conjuncts it needs; `tile-split-kv-loop` leaves only those.

    `transposed`: the fragment's rows are keys and its columns queries; the place of its first is
    (`k0`, `q0`) then, and the region gets (k, q).

    Where columns are pairs of a key and a kv head as well, a row's keys are those of its head: all others are
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

    `repaired`: a row whose largest score is 2^24 or more in size, in base 2, may come out wrong. `tile.normalize` finds
    such rows and `tile.recompute_rows` computes them again. Without it every finite score is right, which takes a few
    instructions a tile.

    Constraints:
    - C1: scale is positive (`tile.scale` takes a sign, the least float stands for 0).
    - C2: all places are fragments, or all are SIMT tiles of as many lanes, with `acc`.

    ```mlir
    tile.online_softmax %s, %row, %acc scale 8.838835e-02
        : !tile.frag<128x64, 4>, !tile.softmax_state<128, 4>, !tile.frag<128x128, 4>
    tile.online_softmax %s, %row scale 8.838835e-02 repaired : !tile.frag<128x128, 8>, !tile.softmax_state<128, 8>
    ```
  }];
  let hasVerifier = 1;
  let arguments = (ins Tile_AnyScores:$s, Tile_AnyRows:$row, Optional<Tile_AnySum>:$acc, F64Attr:$scale,
      UnitAttr:$rising, UnitAttr:$repaired);
  let builders = [OpBuilder<
      (ins "::mlir::Value":$s, "::mlir::Value":$row, "::mlir::FloatAttr":$scale, "::mlir::UnitAttr":$repaired), [{
    build($_builder, $_state, s, row, /*acc=*/::mlir::Value(), scale, /*rising=*/::mlir::UnitAttr(), repaired);
  }]>];
  let assemblyFormat =
      [{ $s `,` $row (`,` $acc^)? `scale` $scale (`repaired` $repaired^)? attr-dict `:` qualified(type($s)) `,`
          qualified(type($row)) (`,` qualified(type($acc))^)? }];
}

def Tile_RescaleOp : Tile_ComputeOp<"rescale"> {
  let summary = "the accumulator follows the maxima that `tile.online_softmax` raised";
  let description = [{
    ```mlir
    tile.rescale %acc, %row : !tile.frag<128x128, 8>, !tile.softmax_state<128, 8>
    ```
  }];
  let arguments = (ins Tile_Frag:$acc, In<Tile_SoftmaxState>:$row);
  let assemblyFormat = "$acc `,` $row attr-dict `:` qualified(type($acc)) `,` qualified(type($row))";
}

def Tile_ConvertOp : Tile_ComputeOp<"convert"> {
  let summary = "rounds probabilities and holds them as the left operand of a product";
  let description = [{
    In registers, or, for a product with their transpose (`tile.mma_atb`), in shared memory; that
    ends with a barrier. `at_once`: before products that follow are begun. Left to itself the compiler begins those
    first where it can, and needs registers for what is rounded and for their results.

    Constraints:
    - C1: both have the same rows, columns and warps; what is shared is not swizzled, and has the rows that are there
      and at least as many columns.

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
  let summary = "`tile.online_softmax` and `tile.convert` in one, maxima last";
  let description = [{
    Scores become rounded probabilities and join the sums. They are first taken
    relative to the maxima as they are; only if a sum then shows that a row grew
    far beyond its maximum, that is raised and all is done once more. So
    exponentials wait for no maximum, and most tiles compute none. What that means
    for the accumulator stays with the row states, for `tile.rescale`. The maxima
    have to come from scores already, as `tile.online_softmax` leaves them. `repaired` is as in `tile.online_softmax`.

    No product may read `p` any more when this op begins; of the two ops, only `tile.convert` needs that.

    The regions are those of a `tile.modify` that `tile-fuse-modify` found right
    before; (`q0`, `k0`) come with them. Scores are small if all of a warp's are
    below `within` in size; else all is done once more, with the other region. With
    `becomes`, which is what the first region makes of a score of that size in natural
    units, maxima say it: those of all rows have to be at least 8 below that, in base 2,
    as no score may be so far above its maximum, and not far below 0, where a score of
    -`within` would count. That saves a test of each score.

    Constraints:
    - C1: scale is positive.
    - C2: `p` and `s` have the same rows, columns and warps.
    - C3: there are `at` and a region `modify`, or neither; `within` is positive and goes with a second region,
      `becomes` with `within`.

    ```mlir
    tile.softmax_convert %p, %s, %row scale 8.838835e-02 : !tile.register_operand<128x128xbf16, 8>, !tile.frag<128x128,
        8>, !tile.softmax_state<128, 8>
    ```
  }];
  let arguments = (ins Out<Tile_RegisterOperand>:$p, Tile_Frag:$s, Tile_SoftmaxState:$row, F64Attr:$scale,
      UnitAttr:$repaired, Variadic<I32>:$at, OptionalAttr<F64Attr>:$within, OptionalAttr<F64Attr>:$becomes);
  let regions = (region AnyRegion:$small, AnyRegion:$modify);
  let assemblyFormat = [{
    $p `,` $s `,` $row `scale` $scale (`repaired` $repaired^)? (`at` `(` $at^ `)`)? attr-dict
    `:` qualified(type($p)) `,` qualified(type($s)) `,` qualified(type($row))
    (`within` $within^ (`becomes` $becomes^)? $small `else`)? (`modify` $modify^)?
  }];
  let hasVerifier = 1;
}

def Tile_RecomputeRowsOp
    : Tile_ComputeOp<"recompute_rows", [SingleBlockImplicitTerminator<"YieldOp">, AllTypesMatch<["q", "k", "v"]>,
                                        AttrSizedOperandSegments,
                                        DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmBlockArgumentNames"]>]> {
  let summary = "computes rows anew whose result is NaN";
  let description = [{
    A product with P cannot tell "may not see" from a weight of 0, and 0 * NaN is
    NaN: a NaN or Inf in a key's V reaches rows that the mask keeps from it. It
    cannot do so without making their results NaN, so rows with a NaN, and only
    those, are computed once more, one by one, from visible keys alone, and
    written again; a row that may see the NaN gets it again. After `tile.store`.

    `q`, `o`, `lse` and `sum` (as in `tile.store_lse`) point at the tile's first row, `k` and `v` at the
    sequence's first key; rows are `..._row` elements apart; `keys` is the
    sequence's length, or, with `from`, what lies behind the block's share of its
    keys, which begins there. The region gets (query row, key) and yields the mask's
    conditions, all of which have to hold; `modify`, if any, is that of
    `tile.modify` for all of the problem's score modifiers together, and `sink` that of `tile.add_sink`. Pairs that
    `tile.dropout` would drop are left out of results, which are multiplied (`by`). With `along`, keys are those of so
    many tiles, of which that region says which one number j is.

    Constraints:
    - C1: o has q's elements, or f32, as the results of a share have.
    - C2: where rows are pairs of a query and a head, `at` and the strides of q, o and lse say so.
    - C3: `draws`, `below` and `by` are given together; `below` is from 1 to 2^15 - 1.
    - C4: `tiles` and `along` are given together, and not `from` with them; the region gets an i32 and yields one.

    ```mlir
    tile.recompute_rows %acc at(%q0) rows(%rows) keys(%keys) from(%q, %q_row, %k, %k_row, %v, %v_row) into(%o,
        %o_row) lse(%lse)
        dims(128, 128) scale 8.838835e-02 : !tile.frag<128x128, 8>, !tile.ptr<bf16>, !tile.ptr<bf16> {
    ^bb0(%query: i32, %key: i32):
      %below = arith.cmpi sle, %key, %query : i32
      tile.yield %below : i1
    }
    ```
  }];
  let arguments = (ins In<Tile_Frag>:$acc, Tile_Origin:$q0, I32:$rows, Optional<I32>:$first_key, I32:$keys, Tile_Ptr:$q,
      Tile_Stride:$q_row, Tile_Ptr:$k, I64:$k_row, Tile_Ptr:$v, I64:$v_row, Out<Tile_Ptr>:$o, Tile_Stride:$o_row,
      Out<Optional<Tile_FloatPtr>>:$lse, Optional<Tile_Stride>:$lse_row, Out<Optional<Tile_FloatPtr>>:$sum,
      Optional<Tile_DropoutState>:$draws, Optional<I32>:$tiles, I64Attr:$dim_qk, I64Attr:$dim_v, F64Attr:$scale,
      OptionalAttr<I64Attr>:$below, OptionalAttr<F64Attr>:$factor, OptionalAttr<I64Attr>:$tile);
  let regions = (region SizedRegion<1>:$body, AnyRegion:$modify, AnyRegion:$sink, AnyRegion:$along);
  let assemblyFormat = [{
    $acc `at` `(` $q0 `` custom<Origin>(type($q0)) `)` `rows` `(` $rows `)` `keys` `(` $keys (`from` $first_key^)? `)`
        `from` `(` $q `,` $q_row `` custom<Stride>(type($q_row)) `,` $k `,` $k_row `,` $v `,` $v_row `)`
    `into` `(` $o `,` $o_row `` custom<Stride>(type($o_row)) `)`
    (`lse` `(` $lse^ (`,` $lse_row^ `` custom<Stride>(type($lse_row)))? `)`)? (`sum` `(` $sum^ `)`)? `dims` `(` $dim_qk
        `,` $dim_v `)` `scale` $scale
    (`draws` `(` $draws^ `)` `below` $below `by` $factor)? (`tiles` `(` $tiles^ `of` $tile `)`)?
    `:` qualified(type($acc)) `,` qualified(type($q)) `,` qualified(type($o)) $body (`modify` $modify^)? (`sink`
        $sink^)? (`along` $along^)? attr-dict
  }];
  let hasVerifier = 1;
}

def Tile_AddSinkOp
    : Tile_ComputeOp<"add_sink", [SingleBlockImplicitTerminator<"YieldOp">,
                                  DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmBlockArgumentNames"]>]> {
  let summary = "one key more for each row, without a value";
  let description = [{
    Its score, natural and not scaled, joins the row's maximum and its sum, and the accumulator follows; last
    of all keys, before `tile.normalize`. The region yields the score: of the row's head, which it gets where
    rows are pairs of a query and a head. One of -inf changes nothing.

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
  let arguments = (ins Tile_AnySum:$acc, Tile_AnyRows:$row, Tile_Origin:$q0);
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
    one part after the other. `repaired`: a row whose largest score is 2^24 or more in size, in base 2, becomes NaN, so
    that `tile.recompute_rows` computes it again.

    Constraints:
    - C1: both are of fragments, or both of SIMT tiles of as many lanes.
    - C2: `repaired` is for fragments, in a kernel with a `tile.recompute_rows`.
    - C3: `reduced` is for fragments, and not with `repaired`.

    ```mlir
    tile.normalize %acc, %row : !tile.frag<128x128, 4>, !tile.softmax_state<128, 4>
    tile.reduce_row_sums %few : !tile.softmax_state<32, 2>
    tile.normalize %part, %few reduced : !tile.frag<32x64, 2>, !tile.softmax_state<32, 2>
    ```
  }];
  let hasVerifier = 1;
  let arguments = (ins Tile_AnySum:$acc, Tile_AnyRows:$row, UnitAttr:$repaired, UnitAttr:$reduced);
  let assemblyFormat = "$acc `,` $row (`repaired` $repaired^)? (`reduced` $reduced^)? attr-dict `:` "
                       "qualified(type($acc)) `,` qualified(type($row))";
}

def Tile_ReduceRowSumsOp : Tile_ComputeOp<"reduce_row_sums"> {
  let summary = "reduces the rows' sums across the lanes that hold a row: the first half of `tile.normalize`";
  let description = [{
    Once, where `tile.normalize ... reduced` divides several accumulators of the same rows.

    ```mlir
    tile.reduce_row_sums %row : !tile.softmax_state<32, 2>
    ```
  }];
  let arguments = (ins Tile_SoftmaxState:$row);
  let assemblyFormat = "$row attr-dict `:` qualified(type($row))";
}

#endif // TILE_FRAGMENT_OPS
