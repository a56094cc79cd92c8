// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef ATTN_OPS
#define ATTN_OPS

include "attn/Dialect/Attn/IR/AttnLayouts.td"
include "attn/Dialect/Attn/IR/AttnMasks.td"
include "attn/Dialect/Attn/IR/AttnScores.td"
include "mlir/IR/SymbolInterfaces.td"

class Attn_Op<string mnemonic, list<Trait> traits = []> : Op<Attn_Dialect, mnemonic, traits>;

def Attn_ProblemOp : Attn_Op<"problem", [Symbol]> {
  let summary = "one attention computation, described";
  let description = [{
    For each sequence b and query head h, with kv head g = h / (heads / kv_heads)
    and over the visible keys k of row q (those the mask keeps):

        s[q, k] = modifiers(scale * dot(Q[q, h], K[k, g]))
        LSE[q, h] = ln(sum over k of exp(s[q, k]))
        O[q, h] = sum over k of exp(s[q, k] - LSE[q, h]) * V[k, g]

    A row that sees no key has O = 0 and LSE = -inf. LSE is float32, natural
    logarithm, scale included; [batch, heads, seqlen_q], or [heads, tokens] when
    packed. Softmax and accumulation are float32. Padding rows of O are 0.

    The op is where a program starts. `convert-attn-to-tile` turns each problem
    into a `tile.kernel`; after it there are none.

    `layout` is one keyword for all four tensors, or one each for q, k, v and o.
    `heads(H, G)` gives query and kv heads (`heads(H)`: G = H), `dims(D, E)` the
    head dim of q and k, and that of v and o (`dims(D)`: E = D). The scale
    defaults to 1/sqrt(D); `outputs` to o and lse. `score([...])` lists what is done
    to the scaled scores, in this order (none by default). `typical(N)` says how
    many keys a sequence usually has: a hint for the choice of tile sizes, which
    changes no result.

    Constraints:
    - C1: 1 <= kv_heads, and heads is a multiple of kv_heads and at most 65536.
    - C2: head dims are multiples of 8 from 8 to 256.
    - C3: dtype is bf16 or f16.
    - C4: q and o have the same kind of layout (both dense, or both the same
      packed form), and so have k and v.
    - C5: a mask that reads segment ids needs dense layouts.
    - C6: outputs contain o; lse is optional.
    - C7: scale is 0, or its size is from 2^-100 to 2^100 (kernels compute in float32).
    - C8: the problem's name is an identifier; arrays of the mask and of score
      modifiers are called neither like another tensor or array of the problem, nor like one of its
      sizes (`batch`, `seqlen_q`, ...) or strides (`q_row`, ...).
    - C9: `score` lists score modifiers, at most 8, and none twice that may not repeat.
    - C10: typical is positive.

    ```mlir
    attn.problem @packed_causal mask(#attn.causal) layout(thd) heads(16, 4) dims(128) dtype(bf16)
    attn.problem @mixed mask(#attn.full) layout(bshd, bhsd, bhsd, bshd) heads(8) dims(192, 128)
      dtype(f16) scale(0.125) outputs(o)
    attn.problem @capped mask(#attn.causal) layout(bshd) heads(16) dims(128) dtype(bf16)
      score([#attn.softcap<30.0>, #attn.alibi]) typical(4096)
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, Attn_MaskInterface:$mask,
    Attn_LayoutAttr:$q_layout, Attn_LayoutAttr:$k_layout, Attn_LayoutAttr:$v_layout, Attn_LayoutAttr:$o_layout,
    I64Attr:$heads, I64Attr:$kv_heads, I64Attr:$dim_qk, I64Attr:$dim_v, TypeAttr:$dtype,
    OptionalAttr<F64Attr>:$scale, OptionalAttr<ArrayAttr>:$score, UnitAttr:$no_lse, OptionalAttr<I64Attr>:$typical,
    OptionalAttr<AnyAttr>:$config);
  let assemblyFormat = [{
    $sym_name `mask` `(` $mask `)`
    `layout` `(` custom<Layouts>($q_layout, $k_layout, $v_layout, $o_layout) `)`
    `heads` `(` custom<Pair>($heads, $kv_heads) `)`
    `dims` `(` custom<Pair>($dim_qk, $dim_v) `)`
    `dtype` `(` $dtype `)`
    (`scale` `(` $scale^ `)`)?
    (`score` `(` $score^ `)`)?
    custom<Outputs>($no_lse)
    (`typical` `(` $typical^ `)`)?
    (`config` `(` $config^ `)`)?
    attr-dict
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// The scale in force: as given, or 1/sqrt(dim_qk).
    double scaleOrDefault();
    /// What is done to the scaled scores, in order.
    ::llvm::SmallVector<::attn::ScoreModifierInterface> getModifiers();
    bool hasLse() { return !getNoLse(); }
  }];
}

#endif // ATTN_OPS
