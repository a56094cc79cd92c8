// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef ATTN_SCORES
#define ATTN_SCORES

include "attn/Dialect/Attn/IR/AttnMasks.td"

class Attn_ScoreModifier<string name, string mnem, list<string> methods>
    : AttrDef<Attn_Dialect, name,
              [DeclareAttrInterfaceMethods<Attn_ScoreModifierInterface,
                                           !listconcat(["modify", "emitScore", "derivative", "emitDerivative"],
                                                       methods)>]> {
  let mnemonic = mnem;
}

def Attn_Softcap
    : Attn_ScoreModifier<"Softcap", "softcap", ["smallBelow", "smallBecomes", "smallScore", "smallDerivative"]> {
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

def Attn_ScoreFunction
    : Attn_ScoreModifier<"ScoreFunction",
                         "score", ["operands", "mayRepeat", "entryDerivative", "emitEntryDerivative"]> {
  let summary = "what an expression makes of a score";
  let description = [{
    A score becomes the expression's value, over

    - `s`, the score as it is; real numbers up to 2^100, written with a point or an exponent (`0.5`, `1e-3`);
    - integers: those of `#attn.predicate`, but for its arrays; where they meet a real number they become one;
    - entries of float32 run-time arrays of any names, contiguous, at the score's own place: `name[b, h, q, k]`, some of
      these axes in this order, as `#attn.bias` has them;
    - `+`, `-`, `*`, `/`, `min`, `max`, `abs`, `exp`, `log`, `sqrt`, `tanh`; of integers `%`, `&`, `|`, `^`, `~`, `<<`
      and `>>`;
    - `<`, `<=`, `>`, `>=`, of integers `==` and `!=`, `&&`, `||`, `!`, and `condition ? this : that`.

    Its derivatives, by the score and by entries of arrays, follow from the expression (forward differentiation). Where
    `min`, `max`, `abs` and conditions turn, they are those of one side. Kernels compute it in float32: what overflows
    or has no value there gives NaN or infinity, as it would in double later.

    Constraints:
    - C1: it parses, and is a number.
    - C2: no integer leaves 64 bits, whatever positions, lengths and heads are: those of `#attn.predicate`, C2.
    - C3: not longer than 512 instructions and numbers, nested at most 64 deep.

    ```mlir
    #attn.score<"s - 0.1 * abs(q - k)">
    #attn.score<"gate[h] * tanh(s / gate[h]) + pairs[q, k]">
    #attn.score<"q - k < 64 ? s : s - log(1.0 + (q - k) / 64.0)">
    ```
  }];
  let parameters = (ins ArrayRefParameter<"int64_t", "its instructions">:$code,
      ArrayRefParameter<"::mlir::StringAttr", "names of arrays">:$names);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
}

def Attn_Alibi : Attn_ScoreModifier<"Alibi", "alibi", ["operands", "peak", "entryDerivative", "emitEntryDerivative"]> {
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

def Attn_HeadScale
    : Attn_ScoreModifier<"HeadScale", "head_scale", ["operands", "entryDerivative", "emitEntryDerivative"]> {
  let summary = "scores are multiplied by a number of their head";
  let description = [{
    A score s of head h becomes s * scale[h], with the run-time float32 array [heads]
    of the given name; beside the problem's own scale.

    Constraints:
    - C1: the name is an identifier.

    ```mlir
    #attn.head_scale<"temperatures">
    ```
  }];
  let parameters = (ins StringRefParameter<"array of factors">:$scales);
  let assemblyFormat = "`<` $scales `>`";
  let genVerifyDecl = 1;
}

def Attn_Bias
    : Attn_ScoreModifier<"Bias", "bias", ["operands", "mayRepeat", "entryDerivative", "emitEntryDerivative"]> {
  let summary = "a number for each score is added";
  let description = [{
    A score s becomes s + bias, read from the run-time float32 array of the given name,
    contiguous. Its axes are named: `b` sequences, `h` query heads, `q` rows, `k` keys, in this
    order; along an axis that is not there, all scores have the same entry. A bias of -inf
    hides a key, though no tile is spared for it. With `q` or `k`, the layout of that side is dense.

    Constraints:
    - C1: the name is an identifier.
    - C2: axes are some of `bhqk`, in this order, at least one.

    ```mlir
    #attn.bias<"bias", bhqk>
    #attn.bias<"of_keys", bk>
    #attn.bias<"pairs", hqk>
    ```
  }];
  let parameters = (ins StringRefParameter<"array of biases">:$array, StringRefParameter<"its axes">:$axes);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
}

def Attn_RelativeBias
    : Attn_ScoreModifier<"RelativeBias", "relative_bias", ["operands", "entryDerivative", "emitEntryDerivative"]> {
  let summary = "a number of the distance from the diagonal is added";
  let description = [{
    A score s of head h becomes s + table[h, min(max(k - D, -R), R) + R], where D = q
    (`top_left`, the default) or D = q + lenK - lenQ (`bottom_right`), with the
    run-time float32 array [heads, 2 R + 1] of the given name. Distances beyond R have the
    entries at the ends. (Buckets of growing width, as T5 has them, are a table whose entries
    repeat.)

    Constraints:
    - C1: the name is an identifier.
    - C2: R is from 1 to 2^20.

    ```mlir
    #attn.relative_bias<"table", 128>
    #attn.relative_bias<"table", 128, bottom_right>
    ```
  }];
  let parameters = (ins StringRefParameter<"table of biases">:$table, "int64_t":$reach, "::attn::Diagonal":$diagonal);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
}

#endif // ATTN_SCORES
