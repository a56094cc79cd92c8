// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef ATTN_MASKS
#define ATTN_MASKS

include "attn/Dialect/Attn/IR/AttnDialect.td"
include "attn/Dialect/Attn/IR/AttnInterfaces.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"

def Attn_Diagonal : I32EnumAttr<"Diagonal", "where the diagonal of a rectangular score matrix starts",
                                [I32EnumAttrCase<"top_left", 0>, I32EnumAttrCase<"bottom_right", 1>]> {
  let cppNamespace = "::attn";
  let description = [{
    `top_left`: row q and key q are on the diagonal. `bottom_right`: the last
    row and the last key are, so row q meets key q + lenK - lenQ. Both are the
    same when lenQ == lenK.
  }];
}

class Attn_Mask<string name, string mnem, list<string> methods>
    : AttrDef<Attn_Dialect, name, [DeclareAttrInterfaceMethods<Attn_MaskInterface, !listconcat(["keeps"], methods)>]> {
  let mnemonic = mnem;
}

def Attn_FullMask : Attn_Mask<"FullMask", "full", ["rowIntervals", "columnIntervals", "affine", "zones"]> {
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

def Attn_CausalMask : Attn_Mask<"CausalMask", "causal",
                                ["rowIntervals", "columnIntervals", "reach", "affine", "zones", "intersected", "united",
                                 "complemented"]> {
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

def Attn_BandMask : Attn_Mask<"BandMask", "band",
                              ["rowIntervals", "columnIntervals", "reach", "affine", "zones", "simplified",
                               "intersected", "united", "complemented"]> {
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
  let parameters = (ins "std::optional<int64_t>":$left, "std::optional<int64_t>":$right, "::attn::Diagonal":$diagonal);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
}

def Attn_ChunkMask
    : Attn_Mask<
          "ChunkMask",
          "chunk", ["rowIntervals", "columnIntervals", "affine", "zones", "simplified", "intersected", "united"]> {
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

def Attn_PooledMask
    : Attn_Mask<"PooledMask",
                "pooled", ["rowIntervals", "columnIntervals", "operands", "simplified", "intersected", "united"]> {
  let summary = "a row sees the pooled keys whose windows end at its position or before";
  let description = [{
    Key i stands for a window of `length` positions, those from i * stride on: a mean of their keys, for instance (the
    compressed branch of native sparse attention, arXiv:2502.11089, 3.3.1). With D = q, the pair (q, i) is visible iff
    i * stride + length - 1 <= D: the whole window is in the past, the row's own position included. Rows before the end
    of the first window see nothing.

    With the name of an array, D = q + n - lenQ, where n is the number of positions that the windows are taken from: one
    int32 for each sequence (length = number of sequences). The last row is then the last of these positions, as with
    `bottom_right` in other masks, where n is lenK; here lenK is the number of windows, from which n cannot be had.

    Constraints:
    - C1: length and stride are within [1, 2^20].
    - C2: the name is an identifier.

    ```mlir
    #attn.pooled<length = 32, stride = 16>
    #attn.pooled<length = 32, stride = 16, keys = "positions">
    ```
  }];
  let parameters = (ins "int64_t":$length, "int64_t":$stride, StringRefParameter<"array of positions">:$array);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
}

def Attn_StridedMask : Attn_Mask<"StridedMask", "strided",
                                 ["rowIntervals", "keyRanges", "queryRanges", "emitKeep", "tileTruth", "affine",
                                  "simplified", "intersected", "united", "complemented"]> {
  let summary = "a row sees every n-th key, counted from its diagonal (dilated)";
  let description = [{
    With D = q (`top_left`, the default) or D = q + lenK - lenQ
    (`bottom_right`), the pair (q, k) is visible iff (D - k) mod stride ==
    offset, where mod has results within [0, stride): keys on either side of the
    diagonal. The offset is 0 if it is not given. As a conjunct of a problem's
    mask, with a stride that has a divisor from 2 to 8, it lets tiles have rows and
    keys of one residue (`#tile.by_residue`): their time is proportional to the
    visible pairs. Elsewhere tiles with any visible key are computed with the element test,
    which saves no time.

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

def Attn_PrefixMask
    : Attn_Mask<"PrefixMask", "prefix",
                ["rowIntervals", "queryRanges", "operands", "affine", "zones", "simplified", "intersected", "united"]> {
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

def Attn_GlobalRowsMask : Attn_Mask<"GlobalRowsMask", "global_rows",
                                    ["keyRanges", "columnIntervals", "emitKeep", "operands", "affine", "zones",
                                     "simplified", "intersected", "united"]> {
  let summary = "the first rows see every key";
  let description = [{
    The pair (q, k) is visible iff q < R. R is a constant, or one int32 per
    sequence, read from the run-time array of the given name (length = number
    of sequences; a value below 0 counts as 0, one above lenQ as lenQ).
    `#attn.prefix` is the same for keys. Both and a window make global tokens:
    `#attn.or<#attn.global_rows<4>, #attn.prefix<4>, #attn.band<left = 64, right = 64>>`.

    Constraints:
    - C1: either a constant number or the name of an array is given.
    - C2: a constant number is within [0, 2^30].
    - C3: the name is an identifier.

    ```mlir
    #attn.global_rows<4>
    #attn.global_rows<"global_counts">
    ```
  }];
  let parameters = (ins "std::optional<int64_t>":$length, StringRefParameter<"array of numbers">:$array);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
}

def Attn_DocumentMask : Attn_Mask<"DocumentMask", "document", ["emitKeep", "operands", "tileTruth"]> {
  let summary = "a row sees the keys of its own document";
  let description = [{
    The pair (q, k) is visible iff ids_q[q] == ids_kv[k] and that id is not 0 (0 marks
    padding: such rows see no key, and no row sees such keys). Ids are int32, in any
    order, in run-time arrays of the given names, `segment_ids_q` and `segment_ids_kv` if
    none are given. Dense: [batch, seqlen_q] and [batch, seqlen_kv]; packed: [tokens], and
    sequences remain isolated from each other. Several answers to one question, each
    of which sees the question and itself, are packed with `#attn.or<#attn.prefix<"question_lengths">,
    #attn.document<"answers_q", "answers_kv">>` and causal.

    Constraints:
    - C1: names are identifiers, two different ones.

    ```mlir
    #attn.document
    #attn.document<"answers_q", "answers_kv">
    #attn.and<#attn.document, #attn.causal>
    ```
  }];
  let parameters = (ins StringRefParameter<"array of ids of queries">:$ids_q,
      StringRefParameter<"array of ids of keys">:$ids_kv);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
}

def Attn_OperandHeads
    : I32EnumAttr<"OperandHeads", "for which heads a run-time array has entries",
                  [I32EnumAttrCase<"shared", 0>, I32EnumAttrCase<"per_kv_head", 1>, I32EnumAttrCase<"per_head", 2>]> {
  let cppNamespace = "::attn";
}

class Attn_IntervalMask<string name, string mnem> : Attn_Mask<name, mnem, ["emitKeep", "operands", "tileTruth"]> {
  let parameters = (ins StringRefParameter<"array of first ones">:$begin, StringRefParameter<"array of ends">:$end,
      "::attn::OperandHeads":$heads);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
}

def Attn_RowIntervalMask : Attn_IntervalMask<"RowIntervalMask", "row_interval"> {
  let summary = "each row sees the keys of an interval of its own";
  let description = [{
    The pair (q, k) is visible iff begin[q] <= k < end[q]. Both are int32 run-time arrays
    of the given names with an entry for each row: dense [batch, seqlen_q], packed [tokens].
    With `per_kv_head` or `per_head` there is an entry for each head as well: [batch, heads,
    seqlen_q] or [heads, tokens]. Entries may have any value; an interval that ends before it
    begins is empty. An absent array does not limit. A union of several intervals is an
    `#attn.or` of several masks.

    Constraints:
    - C1: at least one of `begin` and `end` is given.
    - C2: names are identifiers.

    ```mlir
    #attn.row_interval<begin = "first_key", end = "behind_last_key">
    #attn.or<#attn.row_interval<end = "a">, #attn.row_interval<begin = "b", end = "c", per_head>>
    ```
  }];
}

def Attn_ColumnIntervalMask : Attn_IntervalMask<"ColumnIntervalMask", "column_interval"> {
  let summary = "each key is seen by the rows of an interval of its own";
  let description = [{
    The pair (q, k) is visible iff begin[k] <= q < end[k]: `#attn.row_interval` with rows
    and keys swapped. Arrays have an entry for each key: dense [batch, seqlen_kv], packed
    [tokens]; `per_kv_head` and `per_head` add an axis of heads before it.

    With `not`, the intervals are those of the rows that do not see a key. FlashMask's forms,
    of one, two or four bounds for each key:

    - causal, rows >= r1 hidden: `and<causal, column_interval<end = "r1">>`
    - causal, rows of [r1, r2) hidden: `diff<causal, column_interval<begin = "r1", end = "r2">>`
    - rows >= r1 and rows < r2 hidden: `column_interval<begin = "r2", end = "r1">`
    - rows of [r1, r2) and [r3, r4) hidden: `not<or<column_interval<begin = "r1", end = "r2">,
      column_interval<begin = "r3", end = "r4">>>`

    Constraints: those of `#attn.row_interval`.

    ```mlir
    #attn.and<#attn.causal, #attn.column_interval<end = "document_end">>
    #attn.diff<#attn.causal, #attn.column_interval<begin = "r1", end = "r2", per_kv_head>>
    ```
  }];
}

def Attn_BlockMapMask : Attn_Mask<"BlockMapMask", "block_map", ["emitKeep", "operands", "tileTruth"]> {
  let summary = "blocks of rows see the blocks of keys that they list";
  let description = [{
    Query rows are cut into blocks of `q`, keys into blocks of `kv`, counted from the sequence's start.
    The pair (q, k) is visible iff the list of row block q / `q` contains key block k / `kv`. The lists are
    in two int32 run-time arrays. The list of row block i is entries offsets[i] to offsets[i + 1] of the
    second array: indices of key blocks, in any order, also repeated ones. Offsets are [rows + 1] for `rows`
    row blocks, with a leading batch axis under `per_sequence` and a heads axis under `per_head` or
    `per_kv_head`. The second array is [entries] and holds all lists; all offsets count from its start. Both
    lengths come from the arrays' shapes: row blocks beyond the last list see nothing. Blocks may have any
    size, independent of a kernel's tiles. A further mask that hides pairs within blocks is combined with
    this one by `#attn.and`.

    Offsets that decrease or lie beyond the entries, and block indices beyond every sequence, are an error on
    the host, and on a device with ATTN_CHECK_ARRAYS=1; without it, they make nothing visible. A kernel before
    attention makes a bit for each pair of blocks.

    Constraints:
    - C1: names are identifiers, two different ones.
    - C2: `q` and `kv` are given, within [1, 2^20].

    ```mlir
    #attn.block_map<"offsets", "columns", q = 128, kv = 128>
    #attn.and<#attn.causal, #attn.block_map<"offsets", "columns", q = 64, kv = 64, per_sequence, per_head>>
    ```
  }];
  let parameters = (ins StringRefParameter<"array of offsets">:$offsets, StringRefParameter<"array of blocks">:$columns,
      "int64_t":$q, "int64_t":$kv, "bool":$perSequence, "::attn::OperandHeads":$heads);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
}

def Attn_BlockListMask : Attn_Mask<"BlockListMask", "block_list", ["emitKeep", "operands", "tileTruth"]> {
  let summary = "tiles of rows see the blocks of keys on their lists, which have one width";
  let description = [{
    Query rows are cut into tiles of `rows`, keys into blocks of `keys`, counted from the sequence's start. The pair
    (q, k) is visible iff the list of tile q / `rows` contains k / `keys`. Entries of a list may have any order; one
    that is repeated counts once, and -1 and blocks beyond the sequence see nothing. `attn.select` makes such lists,
    for `#attn.and<#attn.block_list<"lists", rows = 64, keys = 64>, #attn.causal>`.

    The lists are an int32 run-time array whose last axis is a list; its length n comes from the array's shape. Dense
    layouts: [batch, kv_heads, ceil(seqlen_q / rows), n]. Packed ones: [kv_heads, floor(total_q / rows) + batch, n],
    where the list of tile i of sequence b is line floor(cu_seqlens_q[b] / rows) + b + i; lines without a tile are not
    read. By default each kv head has lists, which its group of query heads shares; with `per_head` the array has an
    axis of query heads instead, with `shared` none.

    Unlike `#attn.block_map`, lists need no offsets, and those of packed sequences take memory by tokens.

    Constraints:
    - C1: the name is an identifier.
    - C2: `rows` and `keys` are given, within [1, 2^20].

    ```mlir
    #attn.block_list<"lists", rows = 64, keys = 64>
    #attn.and<#attn.causal, #attn.block_list<"lists", rows = 128, keys = 64, per_head>>
    ```
  }];
  let parameters = (ins StringRefParameter<"array of lists">:$blocks, "int64_t":$rows, "int64_t":$keys,
      "::attn::OperandHeads":$heads);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
}

def Attn_TreeMask : Attn_Mask<"TreeMask", "tree", ["emitKeep", "operands", "tileTruth"]> {
  let summary = "a row sees its ancestors in a tree, and itself";
  let description = [{
    Nodes are numbered in depth-first order, each node before its children, so a node and its
    descendants have consecutive numbers. The pair (q, k) is visible iff
    first[k] <= node[q] < end[k], where node[q] is the number of the row's node, first[k] that of
    the key's node, and end[k] - 1 that of its last descendant. The three are int32 run-time arrays
    of the given names, `node` with an entry for each row, the others for each key: dense
    [batch, length], packed [tokens]. Drafts of a speculative decoder are such rows; keys before
    them, which all drafts see, have first = 0 and end = 2^31 - 1. No row sees a key whose end is not
    above its first number (0, for example). Numbers of no valid tree are compared as well: the
    inequality is the definition.

    Constraints:
    - C1: the three names are identifiers, all different.

    ```mlir
    #attn.tree<"node", "first", "end">
    ```
  }];
  let parameters = (ins StringRefParameter<"array of nodes">:$node, StringRefParameter<"array of first numbers">:$first,
      StringRefParameter<"array of ends">:$end);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
}

def Attn_AncestorsMask
    : Attn_Mask<"AncestorsMask",
                "ancestors", ["keyRanges", "queryRanges", "emitKeep", "reach", "operands", "tileTruth"]> {
  let summary = "a row sees its own key and that key's ancestors";
  let description = [{
    `parent[k]` is the position, in its sequence, of the parent of key k. An entry outside [0, k) means that key k has
    no parent, so there are no cycles (other such entries than -1 are an error on the CPU, and on a GPU with
    `ATTN_CHECK_ARRAYS=1`). Row q's own key is q + lenK - lenQ, the last key for the last row; a row without an own key
    sees nothing. The pair (q, k) is visible iff k is the row's own key, its parent, the parent of that, and so on.
    Examples are drafts of a speculative decoder and several continuations of one text, with parent[k] = k - 1 wherever
    a key continues the one before it. The array is int32, has the given name and an entry for each key: dense
    [batch, length], packed [tokens]. A preceding kernel (`metadata.number_tree`) computes from it the arrays of
    `#attn.tree`, in the workspace.

    Constraints:
    - C1: the name is an identifier.

    ```mlir
    #attn.ancestors<"parent">
    ```
  }];
  let parameters = (ins StringRefParameter<"array of parents">:$parent);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
}

def Attn_PredicateMask
    : Attn_Mask<
          "PredicateMask",
          "predicate", ["keyRanges", "queryRanges", "emitKeep", "operands", "tileTruth", "asksForHead", "simplified"]> {
  let summary = "a row sees the keys for which a condition holds";
  let description = [{
    The pair (q, k) is visible iff the condition holds, an expression over

    - `q`, `k`, `b` (the sequence), `h` (the query head), `len_q`, `len_k`;
    - entries of int32 run-time arrays of any names: `name[q]`, `name[k]`, `name[b]` of the pair's
      own row, key and sequence, `name[h]` of its query head and `name[g]` of its kv head, and of rows or
      keys for each query head `name[h, q]`, `name[h, k]`, or kv head `name[g, q]`, `name[g, k]`;
    - numbers, `+`, `-`, `*` by a number, `/` and `%` by a positive number (rounded down: the
      remainder is never negative), `min`, `max`, `abs`;
    - `&`, `|`, `^` and `~` of integers, bit by bit in two's complement (negative numbers have all higher bits set),
      and shifts by a number from 0 to 62: `x << c` is `x * 2^c`, `x >> c` is `x / 2^c`, and both are printed so;
    - `<`, `<=`, `>`, `>=`, `==`, `!=`, `&&`, `||`, `!`, and `condition ? this : that`.

    Operators bind as in C, where `&`, `|` and `^` bind weaker than compares: `q & 1 == 0` is refused, since C reads
    it as `q & (1 == 0)`; write `(q & 1) == 0`. Interval arithmetic on the expression finds full and empty tiles. Where
    another mask family expresses the same condition, its tile analysis is more exact. Use a predicate for the rest of
    a condition, and combine it with other masks by `#attn.and`, `#attn.or` and `#attn.not`.

    Constraints:
    - C1: it parses, and is a condition.
    - C2: no integer overflows 64 bits, for any `q` and `k` (up to 2^29 + 512, since a tile may end beyond
      its sequence), lengths and `b` (up to 2^29: a launch with more is refused), `h` (up to 65535) and
      entries (any 32-bit number). Numbers in the text are below 2^63. A value that may overflow 32 bits
      is computed in 64, which costs a GPU a few instructions a pair; bounds, as in
      `min(max(a[q], 0), 1000) * 2`, keep it in 32.
    - C3: not longer than 512 instructions and numbers, nested at most 64 deep.

    ```mlir
    #attn.predicate<"(q - k) % 3 == 0 && q >= k">
    #attn.predicate<"kind[q] == 1 || kind[q] == kind_kv[k] && abs(q - k) < 64">
    #attn.and<#attn.causal, #attn.predicate<"h < 4 || q / 16 == k / 16">>
    #attn.predicate<"(kinds[q] & seen_by[k]) != 0 && q - k < window[h]">
    ```
  }];
  let parameters = (ins ArrayRefParameter<"int64_t", "its instructions">:$code,
      ArrayRefParameter<"::mlir::StringAttr", "names of arrays">:$names);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
}

class Attn_Composite<string name, string mnem>
    : Attn_Mask<name, mnem,
                ["rowIntervals", "columnIntervals", "keyRanges", "queryRanges", "emitKeep", "operands", "conjuncts",
                 "children", "tileTruth", "affine", "zones", "asksForHead"]> {
  // Mask i reads arrays number [first_array[i], first_array[i + 1]). The list follows from
  // the masks; it is stored because `keeps` needs it for every pair.
  let parameters = (ins ArrayRefParameter<"MaskInterface">:$masks,
      ArrayRefParameter<"unsigned", "follows from the masks">:$first_array);
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
    - C3: made of at most 64 masks.

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
    - C3: made of at most 64 masks.

    ```mlir
    #attn.or<#attn.prefix<4>, #attn.band<left = 127, right = 0>>
    ```
  }];
}

def Attn_NotMask : Attn_Composite<"NotMask", "not"> {
  let summary = "visible where the mask is not";
  let description = [{
    The complement is taken within the sequence. A double negation is parsed as the mask
    itself. Under `#attn.not<#attn.full>` no pair is visible.

    Constraints:
    - C1: exactly one mask.
    - C2: nested at most 32 deep.
    - C3: made of at most 64 masks.

    ```mlir
    #attn.not<#attn.band<left = 15, right = 15>>
    ```
  }];
}

def Attn_HeadsMask : Attn_Composite<"HeadsMask", "heads"> {
  let summary = "a mask for each head, or group of heads";
  let description = [{
    With n masks and H query heads, head h has mask number floor(h * n / H): the heads are
    cut into n equal groups. One launch of one kernel computes all heads.

    Constraints:
    - C1: at least two masks.
    - C2: nested at most 32 deep.
    - C3: the number of masks divides the number of query heads of the problem.
    - C4: each consists of at most 64 masks.

    ```mlir
    #attn.heads<#attn.causal, #attn.band<left = 127, right = 0>>
    #attn.and<#attn.causal, #attn.heads<#attn.full, #attn.chunk<512>>>
    ```
  }];
}

def Attn_DiffMask : AttrDef<Attn_Dialect, "DiffMask"> {
  let mnemonic = "diff";
  let summary = "visible where the first mask is and the second is not";
  let description = [{
    It is parsed as `#attn.and<a, #attn.not<b>>`, so equal sets have one mask and one kernel.
    The IR has no attribute for it.

    Constraints:
    - C1: exactly two masks.
    - C2: nested at most 32 deep, as `and` of `not`.
    - C3: made of at most 64 masks.

    ```mlir
    #attn.diff<#attn.causal, #attn.band<left = 127>>
    ```
  }];
  let hasCustomAssemblyFormat = 1;
}

#endif // ATTN_MASKS
