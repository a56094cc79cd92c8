// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef ATTN_MASKS
#define ATTN_MASKS

include "attn/Dialect/Attn/IR/AttnDialect.td"
include "attn/Dialect/Attn/IR/AttnInterfaces.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"

def Attn_Diagonal : I32EnumAttr<"Diagonal", "where the diagonal of a rectangular score matrix starts", [
    I32EnumAttrCase<"top_left", 0>, I32EnumAttrCase<"bottom_right", 1>]> {
  let cppNamespace = "::attn";
  let description = [{
    `top_left`: row q and key q are on the diagonal. `bottom_right`: the last
    row and the last key are, so row q meets key q + lenK - lenQ. Both are the
    same when lenQ == lenK.
  }];
}

class Attn_Mask<string name, string mnem, list<string> methods> : AttrDef<Attn_Dialect, name,
    [DeclareAttrInterfaceMethods<Attn_MaskInterface, !listconcat(["keeps"], methods)>]> {
  let mnemonic = mnem;
}

def Attn_FullMask : Attn_Mask<"FullMask", "full", ["rowIntervals", "columnIntervals"]> {
  let summary = "every row sees every key";
  let description = [{
    The pair (q, k) is visible for every q and k of the sequence.

    Constraints: none.

    ```mlir
    #attn.full
    ```
  }];
  let hasCustomAssemblyFormat = 1;
}

def Attn_CausalMask : Attn_Mask<"CausalMask", "causal", ["rowIntervals", "columnIntervals", "reach"]> {
  let summary = "a row sees the keys up to its diagonal";
  let description = [{
    The pair (q, k) is visible iff k <= q (`top_left`, the default) or
    k <= q + lenK - lenQ (`bottom_right`). With `bottom_right` and more rows
    than keys, the first rows see nothing.

    Constraints: none.

    ```mlir
    #attn.causal
    #attn.causal<bottom_right>
    ```
  }];
  let parameters = (ins "::attn::Diagonal":$diagonal);
  let hasCustomAssemblyFormat = 1;
}

def Attn_BandMask : Attn_Mask<"BandMask", "band", ["rowIntervals", "columnIntervals", "reach"]> {
  let summary = "a row sees the keys near its diagonal (sliding window)";
  let description = [{
    With D = q (`top_left`, the default) or D = q + lenK - lenQ
    (`bottom_right`), the pair (q, k) is visible iff D - left <= k <= D + right.
    Both bounds are inclusive; an absent bound does not limit. Negative bounds
    shift the band off the diagonal. A causal sliding window over the last W
    keys is `left = W - 1, right = 0`.

    Constraints:
    - C1: at least one of `left` and `right` is given (otherwise: `#attn.full`).
    - C2: `left + right >= 0`, so that the band is not empty.
    - C3: each bound is within [-2^30, 2^30].

    ```mlir
    #attn.band<left = 1023, right = 0>
    #attn.band<left = 128>
    #attn.band<left = 7, right = 7, bottom_right>
    ```
  }];
  let parameters = (ins "std::optional<int64_t>":$left, "std::optional<int64_t>":$right,
                        "::attn::Diagonal":$diagonal);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
}

def Attn_ChunkMask : Attn_Mask<"ChunkMask", "chunk", ["rowIntervals", "columnIntervals"]> {
  let summary = "a row sees the keys of its own chunk";
  let description = [{
    Positions are cut into chunks of N, counted from the sequence's start. With
    D = q (`top_left`, the default) or D = q + lenK - lenQ (`bottom_right`), the
    pair (q, k) is visible iff floor(k / N) == floor(D / N). A row of negative D
    sees nothing. Chunked causal attention (as in Llama 4) is
    `#attn.and<#attn.chunk<8192>, #attn.causal>`.

    Constraints:
    - C1: N is within [1, 2^29].

    ```mlir
    #attn.chunk<8192>
    #attn.and<#attn.chunk<8192, bottom_right>, #attn.causal<bottom_right>>
    ```
  }];
  let parameters = (ins "int64_t":$length, "::attn::Diagonal":$diagonal);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
}

def Attn_StridedMask : Attn_Mask<"StridedMask", "strided", ["rowIntervals", "keyRanges", "queryRanges", "emitKeep", "classify"]> {
  let summary = "a row sees every n-th key, counted from its diagonal (dilated)";
  let description = [{
    With D = q (`top_left`, the default) or D = q + lenK - lenQ
    (`bottom_right`), the pair (q, k) is visible iff (D - k) mod stride ==
    offset, where mod has results within [0, stride): keys on either side of the
    diagonal. The offset is 0 if it is not given. A tile that sees anything is
    walked and every pair of it tested, so what is saved is not time.

    Constraints:
    - C1: the stride is given, within [1, 2^29].
    - C2: the offset is within [0, stride).

    ```mlir
    #attn.strided<stride = 4>
    #attn.and<#attn.strided<stride = 4, offset = 1, bottom_right>, #attn.causal<bottom_right>>
    ```
  }];
  let parameters = (ins "int64_t":$stride, "int64_t":$offset, "::attn::Diagonal":$diagonal);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
}

def Attn_PrefixMask : Attn_Mask<"PrefixMask", "prefix", ["rowIntervals", "queryRanges", "operands"]> {
  let summary = "every row sees the first keys";
  let description = [{
    The pair (q, k) is visible iff k < P. P is a constant, or one int32 per
    sequence, read from the run-time array of the given name (length = number
    of sequences; a value below 0 counts as 0, one above lenK as lenK).
    Prefix-LM is `#attn.or<#attn.prefix<...>, #attn.causal>`.

    Constraints:
    - C1: either a constant length or the name of an array is given.
    - C2: a constant length is within [0, 2^30].
    - C3: the name is an identifier.

    ```mlir
    #attn.prefix<128>
    #attn.prefix<"prefix_lengths">
    ```
  }];
  let parameters = (ins "std::optional<int64_t>":$length, StringRefParameter<"array of lengths">:$array);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
}

def Attn_DocumentMask : Attn_Mask<"DocumentMask", "document",
    ["keyRanges", "queryRanges", "emitKeep", "operands", "worksPacked"]> {
  let summary = "a row sees the keys of its own document";
  let description = [{
    Dense layouts only (packed layouts isolate sequences by construction). The
    pair (q, k) is visible iff segment_ids_q[b, q] == segment_ids_kv[b, k] and
    that id is not 0 (0 marks padding: such rows see nothing, such keys are
    seen by nobody). Ids are int32, in any order; shapes [batch, seqlen_q] and
    [batch, seqlen_kv].

    Constraints: none on the attribute; a problem that uses it has dense layouts.

    ```mlir
    #attn.document
    #attn.and<#attn.document, #attn.causal>
    ```
  }];
  let hasCustomAssemblyFormat = 1;
}

class Attn_Composite<string name, string mnem> : Attn_Mask<name, mnem,
    ["rowIntervals", "columnIntervals", "keyRanges", "queryRanges", "emitKeep", "operands",
     "conjuncts", "children", "worksPacked", "classify"]> {
  // Mask i reads arrays number [first_array[i], first_array[i + 1]): follows from
  // the masks, and is kept since definitions ask for it at every pair.
  let parameters = (ins ArrayRefParameter<"MaskInterface">:$masks, ArrayRefParameter<"unsigned", "follows from the masks">:$first_array);
  let builders = [AttrBuilder<(ins "::llvm::ArrayRef<::attn::MaskInterface>":$masks), [{
    return $_get($_ctxt, masks, ::attn::firstArrays(masks));
  }]>];
  let skipDefaultBuilders = 1;
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
}

def Attn_AndMask : Attn_Composite<"AndMask", "and"> {
  let summary = "visible where all of the masks are visible";
  let description = [{
    Constraints:
    - C1: at least two masks.
    - C2: nested at most 32 deep.

    ```mlir
    #attn.and<#attn.band<left = 127>, #attn.causal>
    ```
  }];
}

def Attn_OrMask : Attn_Composite<"OrMask", "or"> {
  let summary = "visible where at least one of the masks is visible";
  let description = [{
    Constraints:
    - C1: at least two masks.
    - C2: nested at most 32 deep.

    ```mlir
    #attn.or<#attn.prefix<4>, #attn.band<left = 127, right = 0>>
    ```
  }];
}

def Attn_NotMask : Attn_Composite<"NotMask", "not"> {
  let summary = "visible where the mask is not";
  let description = [{
    Within the sequence: no mask makes pairs visible that do not exist. What is
    negated twice is parsed as itself. `#attn.not<#attn.full>` shows nothing.

    Constraints:
    - C1: exactly one mask.
    - C2: nested at most 32 deep.

    ```mlir
    #attn.not<#attn.band<left = 15, right = 15>>
    ```
  }];
}

def Attn_DiffMask : AttrDef<Attn_Dialect, "DiffMask"> {
  let mnemonic = "diff";
  let summary = "visible where the first mask is and the second is not";
  let description = [{
    A way to write `#attn.and<a, #attn.not<b>>`, which is what it is parsed as: one
    set, one mask, one kernel. There is no attribute of its own in the IR.

    Constraints:
    - C1: exactly two masks.
    - C2: nested at most 32 deep, as `and` of `not`.

    ```mlir
    #attn.diff<#attn.causal, #attn.band<left = 127>>
    ```
  }];
  let hasCustomAssemblyFormat = 1;
}

#endif // ATTN_MASKS
