// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef ATTN_SCORES
#define ATTN_SCORES

include "attn/Dialect/Attn/IR/AttnMasks.td"

class Attn_ScoreModifier<string name, string mnem, list<string> methods> : AttrDef<Attn_Dialect, name,
    [DeclareAttrInterfaceMethods<Attn_ScoreModifierInterface, !listconcat(["modify", "emitScore", "derivative", "emitDerivative"], methods)>]> {
  let mnemonic = mnem;
}

def Attn_Softcap : Attn_ScoreModifier<"Softcap", "softcap", ["smallBelow", "emitSmallScore"]> {
  let summary = "scores level off at a cap";
  let description = [{
    A score s becomes cap * tanh(s / cap): small ones stay what they are, none
    passes the cap in size.

    Constraints:
    - C1: the cap is from 2^-60 to 2^60.

    ```mlir
    #attn.softcap<30.0>
    ```
  }];
  let parameters = (ins APFloatParameter<"the largest score">:$cap);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
}

def Attn_Alibi : Attn_ScoreModifier<"Alibi", "alibi", ["operands", "peak"]> {
  let summary = "scores fall with the distance from the diagonal (ALiBi)";
  let description = [{
    A score s of head h becomes s - slope(h) * |D - k|, where D = q (`top_left`,
    the default) or D = q + lenK - lenQ (`bottom_right`).

    The slopes are the usual ones: with p the largest power of 2 that is at most
    the number of query heads, slope(h) = 2^(-8 (h + 1) / p) for h < p, and
    slope(h) = 2^(-4 (2 (h - p) + 1) / p) for the heads beyond, which are every
    other one of the slopes of 2p heads. Or they are read from the run-time float32
    array [heads] of the given name.

    Constraints:
    - C1: the name is an identifier.

    ```mlir
    #attn.alibi
    #attn.alibi<bottom_right>
    #attn.alibi<"slopes">
    #attn.alibi<"slopes", bottom_right>
    ```
  }];
  let parameters = (ins StringRefParameter<"array of slopes">:$slopes, "::attn::Diagonal":$diagonal);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
}

#endif // ATTN_SCORES
