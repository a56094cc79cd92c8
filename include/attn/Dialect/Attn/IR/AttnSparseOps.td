// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What sparse attention has around its attention problems: compressed keys, lists of selected blocks, combined
// branches, sums of gradients.
#ifndef ATTN_SPARSE_OPS
#define ATTN_SPARSE_OPS

include "attn/Dialect/Attn/IR/AttnLayouts.td"
include "attn/Dialect/Attn/IR/AttnOpInterfaces.td"
include "mlir/IR/SymbolInterfaces.td"

class Attn_ComputationOp<string mnemonic, list<Trait> traits = []>
    : Op<Attn_Dialect, mnemonic, [Symbol, DeclareOpInterfaceMethods<Attn_ComputationInterface>]#traits> {
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
}

def Attn_CompressOp : Attn_ComputationOp<"compress"> {
  let summary = "keys and values of windows of tokens";
  let description = [{
    Window i of a sequence has the tokens from i * stride to i * stride + length - 1, and only windows that end within
    the sequence exist: a sequence of N tokens has floor((N - length) / stride) + 1 of them, or none if N < length. With
    `mean`, for each kv head

        compressed_k[i] = sum of k over the tokens of window i / length

    in float32, rounded once, and likewise `compressed_v` of v. (Native Sparse Attention, Yuan et al. 2025, section
    3.3.1.) `#attn.pooled` is the mask under which queries see compressed keys. With `k_only` there are no `v` and
    `compressed_v`: `attn.select` with `mean_key` reads keys alone.

    Tensors: `k` and `v` in the `layout`, results `compressed_k` and `compressed_v` in the same. Dense results have as
    many rows as a sequence has windows. Packed tensors have an int32 array `cu_seqlens` [batch + 1], and results have
    floor(total_kv / stride) rows, of which the first `cu_seqlens_compressed`[batch] are used; the others are 0.
    `cu_seqlens_compressed`, int32 [batch + 1], is a further result: it has the offsets of compressed sequences.

    Clauses may have any order; they are printed in this order: `mean`, `k_only`, `length`, `stride`, `layout`, `heads`,
    `dims`, `dtype`.

    Constraints:
    - C1: `mean` is given: there is no other way to compress yet. (A program may take compressed keys from its caller.)
    - C2: 1 <= stride <= length <= 65536, and stride divides length.
    - C3: heads (kv heads) is from 1 to 65536; dims are multiples of 8 from 8 to 512, and one with `k_only`.
    - C4: dtype is bf16, f16 or f32 (f32: only the target `cpu` has kernels).
    - C5: layout is `bshd`, `sbhd`, `bhsd` or `thd`.
    - C6: the name is an identifier.

    ```mlir
    attn.compress @pool mean length(32) stride(16) layout(thd) heads(4) dims(128) dtype(bf16)
    attn.compress @means mean k_only length(512) stride(512) layout(thd) heads(4) dims(128) dtype(bf16)
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, UnitAttr:$mean, UnitAttr:$k_only, I64Attr:$length, I64Attr:$stride,
      Attn_LayoutAttr:$layout, I64Attr:$kv_heads, I64Attr:$dim_qk, I64Attr:$dim_v, TypeAttr:$dtype);
}

def Attn_CompressBackwardOp
    : Attn_ComputationOp<"compress_backward", [DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "the gradients of compressed keys' tokens, and sums of gradients";
  let description = [{
    For the `attn.compress` that it names, and each token s of a sequence,

        dk[s] = sum over windows i with s in window i of dcompressed_k[i] / length + sum over j of before_dk_j[s]

    in float32, rounded once, and likewise dv. With `add(N)` there are N further operands `before_dk_j` and
    `before_dv_j`, float32, of the shape of k and v: the gradients by other branches that read the same k and v. Tokens
    in no window, of packed tensors also those in no sequence, have the second sum alone.

    Tensors: operands `dcompressed_k`, `dcompressed_v`, `before_dk_0`, `before_dv_0`, ...; results `dk`, `dv`; packed
    ones have the arrays `cu_seqlens` and `cu_seqlens_compressed`. Without `add`, `k` is an operand, too: its shape says
    how many tokens there are, and its values are not read.

    Clauses are printed in this order: `of`, `add`.

    Constraints:
    - C1: it names an `attn.compress` of the same module, without `k_only`.
    - C2: N is from 0 to 8.
    - C3: the name is an identifier.

    ```mlir
    attn.compress @pool mean length(32) stride(16) layout(thd) heads(4) dims(128) dtype(bf16)
    attn.compress_backward @pool_grads of(@pool) add(2)
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, FlatSymbolRefAttr:$compress, OptionalAttr<I64Attr>:$add);
  let extraClassDeclaration = "::attn::CompressOp getCompressOp();";
}

def Attn_BlockScorer
    : I32EnumAttr<"BlockScorer", "what attn.select ranks blocks by",
                  [I32EnumAttrCase<"prob", 0>, I32EnumAttrCase<"mean_key", 1>, I32EnumAttrCase<"max", 2>]> {
  let cppNamespace = "::attn";
}

def Attn_SelectOp : Attn_ComputationOp<"select"> {
  let summary = "which blocks of keys a tile of queries attends to";
  let description = [{
    Ranks the blocks of `block` keys of each sequence for each kv head g and each tile of `rows` queries, by what the
    tile's first query t sees. With `per_head` each query head has a list of its own: in what follows a group is that
    head alone. The scorer says what the importance of a block is, in float32:

    - `prob`, the probabilities of compressed keys (Native Sparse Attention, Yuan et al. 2025, section 3.3.2):

          p[h, i] = exp(scale * dot(q[t, h], compressed_k[i, g]) - lse[t, h]), or 0 for windows i that end behind t
          importance[j] = sum over the heads h of the group, and over windows i, of p[h, i] * cover(i, j)

      where cover(i, j) is how many of block j's parts of `stride` tokens window i has: the number of pairs (m, n),
      0 <= m < block / stride, 0 <= n < length / stride, with i = j * block / stride + m - n.
    - `mean_key`, the product with a block's mean key (MoBA, Lu et al. 2025, section 2.2). Compressed keys are those of
      `attn.compress mean length(block) stride(block)`, one for each whole block:

          importance[j] = sum over the heads h of the group of dot(q[t, h], compressed_k[j, g])

    - `max`, the largest product with a key of the block (the index branch of MiniMax-M3's sparse attention):

          importance[j] = the largest dot(q[t, h], k[s, g]) of heads h of the group and keys s of block j, s <= t

    MoBA has lists of each query head, and MSA of each index head: both are `per_head`. What a group shares without
    `per_head` under `mean_key` and `max` has no source but this text.

    Candidates are the blocks up to that of t, block(t) = floor(t / block). The first `first` of them and the `local`
    last ones, up to block(t), are always taken. The most important ones of the others, all of which end before t, are
    taken until there are `count` in all, or no more candidates; equal ones by the lowest index. -0 is 0, and NaN, also
    that of one key of a block, is -infinity.
    Then blocks that begin within the tile behind t are added, so that each query finds its own block: the list has
    count + max(rows / block - 1, 0) entries. Selection depends on no query but t, so a mask
    `#attn.and<#attn.block_list<"lists", rows = rows, keys = block>, #attn.causal>` (`per_head` as here) is causal. With
    rows = 1 each query has its own list, as in the papers.

    Tensors: operands `q` in the `layout`, and in the same either `compressed_k`, a result of `attn.compress`, or with
    `max` `k`, which has as many rows as q; with `prob` `lse`, float32 [batch, heads, seqlen_q] or packed
    [heads, tokens], that of the compressed branch; the result `blocks`, int32, as `#attn.block_list` takes them:
    [batch, kv_heads, ceil(seqlen_q / rows), entries], or packed [kv_heads, floor(total_q / rows) + batch, entries],
    where tile i of sequence b has the line floor(cu_seqlens[b] / rows) + b + i. With `per_head` it has heads instead of
    kv_heads. Blocks of a list ascend, and -1 follows the last one. Lines that no tile has are -1. Packed tensors have
    the array `cu_seqlens`, and `cu_seqlens_compressed` beside `compressed_k`.

    Clauses may have any order; they are printed in this order: `prob`, `mean_key`, `max`, `length`, `stride`, `block`,
    `count`, `first`, `local`, `rows`, `per_head`, `layout`, `heads`, `dim`, `dtype`, `scale`.

    Constraints:
    - C1: one scorer is given. `length` and `stride` go with `prob`, which needs them, and `scale` goes with `prob`: it
      would change no other ranking.
    - C2: with `prob` 1 <= stride <= length <= 65536, and stride divides length and block; block is from 1 to 65536.
    - C3: first >= 0, local >= 1, first + local <= count <= 1024: else forced blocks would not find room, and a query
      might not see itself.
    - C4: rows is from 1 to 65536, and one of rows and block divides the other.
    - C5: 1 <= kv_heads, and heads is a multiple of kv_heads and at most 65536; dim is a multiple of 8 from 8 to 256.
    - C6: dtype is bf16, f16 or f32 (f32: only the target `cpu` has kernels).
    - C7: layout is `bshd`, `sbhd`, `bhsd` or `thd`.
    - C8: scale, 1/sqrt(dim) if it is not given, is a number of a size from 2^-100 to 2^100.
    - C9: the name is an identifier.

    ```mlir
    attn.select @top prob length(32) stride(16) block(64) count(16) first(1) local(2) rows(64) layout(thd)
      heads(64, 4) dim(128) dtype(bf16)
    attn.select @moba mean_key block(512) count(3) first(0) local(1) rows(64) per_head layout(thd) heads(64, 4) dim(128)
      dtype(bf16)
    attn.select @msa max block(128) count(16) first(0) local(1) rows(1) per_head layout(thd) heads(4, 1) dim(128)
      dtype(bf16)
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, OptionalAttr<Attn_BlockScorer>:$scorer, OptionalAttr<I64Attr>:$length,
      OptionalAttr<I64Attr>:$stride, I64Attr:$block, I64Attr:$count, I64Attr:$first, I64Attr:$local, I64Attr:$rows,
      UnitAttr:$per_head, Attn_LayoutAttr:$layout, I64Attr:$heads, I64Attr:$kv_heads, I64Attr:$dim, TypeAttr:$dtype,
      OptionalAttr<F64Attr>:$scale);
  let extraClassDeclaration = [{
    /// The scale in force: as given, or 1/sqrt(dim).
    double scaleOrDefault();
    /// Entries of a list.
    int64_t getWidth();
    /// Heads that have a list of their own: query heads or kv heads.
    int64_t getListHeads();
    /// Tokens of a compressed key and between two of them. `max`, which has none, ranks windows of one token.
    int64_t getWindowLength();
    int64_t getWindowStride();
  }];
}

def Attn_CombineOp : Attn_ComputationOp<"combine"> {
  let summary = "the sum of branches, each times a gate";
  let description = [{
    With branches o_0, o_1, ... of one shape,

        o[t, h] = sum over branches i of g[t, h, i] * o_i[t, h]

    in the order of the branches, in float32, rounded once. With `sigmoid`, g = 1 / (1 + exp(-gates)), and `gates` is an
    operand, [batch, seqlen_q, heads, branches] or packed [total_q, heads, branches], contiguous, of `gates(dtype)`,
    which is float32 by default. With `uniform`, g is 1 / branches, and there are no gates.

    Clauses may have any order; they are printed in this order: `sigmoid`, `uniform`, `branches`, `layout`, `heads`,
    `dim`, `dtype`, `gates`.

    Constraints:
    - C1: one of `sigmoid` and `uniform` is given; `gates` goes with `sigmoid`.
    - C2: there are 1 to 8 branches.
    - C3: heads is from 1 to 65536, dim is a multiple of 8 from 8 to 512.
    - C4: dtype is bf16, f16 or f32 (f32: only the target `cpu` has kernels); gates have the dtype or f32.
    - C5: layout is `bshd`, `sbhd`, `bhsd` or `thd`.
    - C6: the name is an identifier.

    ```mlir
    attn.combine @gated sigmoid branches(3) layout(thd) heads(64) dim(128) dtype(bf16)
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, UnitAttr:$sigmoid, UnitAttr:$uniform, I64Attr:$branches,
      Attn_LayoutAttr:$layout, I64Attr:$heads, I64Attr:$dim, TypeAttr:$dtype, OptionalAttr<TypeAttr>:$gates);
  let extraClassDeclaration = [{
    ::mlir::Type getGatesType();
  }];
}

def Attn_CombineBackwardOp
    : Attn_ComputationOp<"combine_backward", [DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "the gradients of gates, and what backward passes of branches read";
  let description = [{
    For the `attn.combine` that it names, whose branches are results of attention with these LSEs, with g as there,

        delta_i[t, h] = dot(do[t, h], o_i[t, h])
        gated_lse_i[t, h] = lse_i[t, h] - log(g[t, h, i])
        dgates[t, h, i] = g[t, h, i] * (1 - g[t, h, i]) * delta_i[t, h]

    in float32. The backward pass of branch i, an `attn.backward` with `delta`, reads `do`, `delta_i`, and `gated_lse_i`
    as its lse: its probabilities are then those of the branch times g, so its gradients are those of g * o_i, and no
    tensor of do * g exists. An lse of -inf (no key is visible) stays; where g is 0, gated_lse_i is +inf.

    Tensors: operands o_0, o_1, ...; lse_0, lse_1, ..., float32 [batch, heads, seqlen_q] or packed [heads, total_q];
    `gates`, `do`. Results: delta_0, delta_1, ... and gated_lse_0, gated_lse_1, ..., as lse_0 is, and `dgates` of the
    type of gates. With `uniform` there are no `gates` and no `dgates`.

    Constraints:
    - C1: it names an `attn.combine` of the same module.
    - C2: the name is an identifier.

    ```mlir
    attn.combine @gated sigmoid branches(3) layout(thd) heads(64) dim(128) dtype(bf16)
    attn.combine_backward @gated_grads of(@gated)
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, FlatSymbolRefAttr:$combine);
  let extraClassDeclaration = "::attn::CombineOp getCombineOp();";
}

def Attn_AddOp : Attn_ComputationOp<"add"> {
  let summary = "sums of tensors of one shape";
  let description = [{
    result = part_0 + part_1 + ..., in this order, in float32, rounded once. `dtype` is that of the result, `from(f32)`
    that of the parts if it is another one.

    Constraints:
    - C1: there are 1 to 8 parts.
    - C2: heads is from 1 to 65536, dim is a multiple of 8 from 8 to 512.
    - C3: dtype is bf16, f16 or f32; parts have the same dtype or f32.
    - C4: layout is `bshd`, `sbhd`, `bhsd` or `thd`.
    - C5: the name is an identifier.

    ```mlir
    attn.add @sum parts(3) layout(thd) heads(64) dim(128) dtype(bf16) from(f32)
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, I64Attr:$parts, Attn_LayoutAttr:$layout, I64Attr:$heads, I64Attr:$dim,
      TypeAttr:$dtype, OptionalAttr<TypeAttr>:$from);
  let extraClassDeclaration = [{
    ::mlir::Type getPartType() { return getFrom().value_or(getDtype()); }
  }];
}

#endif // ATTN_SPARSE_OPS
