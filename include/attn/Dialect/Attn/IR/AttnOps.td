// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef ATTN_OPS
#define ATTN_OPS

include "attn/Dialect/Attn/IR/AttnLayouts.td"
include "attn/Dialect/Attn/IR/AttnMasks.td"
include "attn/Dialect/Attn/IR/AttnProgramOps.td"
include "attn/Dialect/Attn/IR/AttnScores.td"
include "attn/Dialect/Attn/IR/AttnSparseOps.td"
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

    A row that sees no key has O = 0 and LSE = -inf. So has a row all of whose visible keys have the score -inf, by a
    bias for example: such keys count as not visible. With `sink(x)` each row sees one key more, whose score is x and
    whose value is 0:

        LSE[q, h] = ln(exp(x) + sum over k of exp(s[q, k]))

    so that O is smaller by the sink's share; a row that sees no other key has O = 0 and LSE = x. `x` is a number (0.0
    gives the off-by-one softmax) or a string, the name of a run-time float32 array [heads] with a number for each query
    head, which may be -inf.

    `dropout(p, "seed")` drops pairs at random: with a run-time int32 array of 4 words of that name,

        O[q, h] = sum over kept k of exp(s[q, k] - LSE[q, h]) * V[k, g] / (1 - p)

    LSE is that of all visible keys, dropped or not. A NaN or infinity in a dropped pair's V may reach O or not. p is
    rounded to t/2^15 with an integer t, and 1 - t/2^15 is the divisor; with t = 0 nothing is dropped, and the array is
    not an operand. Whether a pair is dropped depends only on the words, the sequence, the query head, and the positions
    of q and k in their sequence, and not on target, tiles or padding. So a backward pass with the same words drops the
    same pairs, and a replayed graph drops other pairs when the words in memory have changed. With Philox as Salmon
    et al. define it (Parallel Random Numbers: As Easy as 1, 2, 3, 2011), numbers of 32 bits, `b` and `h` the indices of
    the sequence (packed: in cu_seqlens) and of the query head, and `seed` the words:

        key, x, y, _ = philox4x32_10(counter = (seed[2], seed[3], b, h), key = (seed[0], seed[1]))
        words = philox2x32_7(counter = (x ^ (q / 16 * 8 + q % 8), y ^ (k / 16 * 8 + k % 8)), key = key)
        dropped = (words[k / 8 % 2] >> (16 * (q / 8 % 2)) & 0x7fff) < t

    By convention the first two words are a seed and the others an offset, which a caller increments for each call. Any
    four words are allowed.

    With `partial(out)` the problem has a part of the keys. In place of o and lse it has partial results: `o`, float32
    and without the factor of dropout, and the softmax state `row_max` and `row_sum`, float32, of the shape of lse.
    Only a problem with `partial(in)` reads them. It has three more operands, `before_o`, `before_row_max` and
    `before_row_sum`, and continues where they end, as one kernel over both parts of the keys would.
    `partial(in, out)` does both, and its results may be the memory of these operands. Rows in no piece, and rows that
    see none of these keys, have `row_max` = -inf; their `row_sum` is not written.

    With `single_pieces` a sequence has at most one piece of queries and at most one of keys. Kernels then need no loop
    over pieces, which takes registers; a deterministic backward pass can accumulate dQ in order. With `keep_padding`
    rows in no piece are not written: those of o and lse, and of dq, dk and dv in a backward pass. So several calls may
    write disjoint rows of one tensor.

    With `of_heads(F, H, G)` the tensors have a part of the heads of a problem with `heads(H, G)`: query heads from F
    on, and the kv heads that these use. Masks, score modifiers, dropout and arrays are those of all heads.

    LSE is float32, natural
    logarithm, scale included; [batch, heads, seqlen_q], or [heads, tokens] when
    packed. Softmax and accumulation are float32. Padding rows of O are 0.

    No sequence and no kv head reads tensors of another one. So the batch may be sharded, and the heads by whole groups,
    into independent calls; a sequence may not (docs/Sharding.md).

    `convert-attn-to-tile` replaces each problem
    by a `program.def` and its `tile.kernel`s.

    `layout` is one keyword for all four tensors, or one each for q, k, v and o.
    `heads(H, G)` gives query and kv heads (`heads(H)`: G = H), `dims(D, E)` the
    head dim of q and k, and that of v and o (`dims(D)`: E = D). The scale
    defaults to 1/sqrt(D); `outputs` to o and lse. `score([...])` lists the modifiers of
    the scaled scores, in order (none by default); a sink's score is not modified. Three clauses are hints, which choose
    kernels and sizes and change no result:

    - `expected_seqlen(M, N)`: a sequence has about M queries and N keys (`expected_seqlen(N)`: N of both).
    - `max_seqlen(M, N)`: a sequence has at most M queries and N keys. Longer sequences are computed correctly, and
      slower.
    - `kv_list_capacity(N)`: the workspace has room for KV-tile lists of N keys for each query row, on average, where
      the mask reads arrays (docs/Masks.md). If any list finds no room, every query tile
      with entries of its own visits all KV tiles from its first to its last. Where every visible pair is in a block of
      block maps, there is room for all blocks that these list, whatever N is.

    If the maximum is short, all sequences get kernels for short sequences. If only the expected length of packed
    sequences is short, each sequence gets the kernels for its own length (docs/Schedules/by_length.md). Without
    either clause `attnSpecialize` takes lengths from the shapes of a call.

    Clauses may have any order, each at most once. They are printed in this order: `mask`, `layout`, `heads`,
    `dims` and `dtype`, which every problem has, and those of the others that differ from the default: `scale`, `score`,
    `sink`, `dropout`, `outputs`, `partial`, `single_pieces`, `keep_padding`, `of_heads`, `expected_seqlen`,
    `max_seqlen`, `kv_list_capacity`, `segments`, `tiles`, `schedule`, `schedule_reason`.

    With `segments(S)`, sequences are found on the device. Instead of cu_seqlens and offsets the
    call takes ids and positions of tokens; `attn.segments` finds their sequences (at most S
    segments in a row of ids). q, k, v and o have the tokens of all rows, one row after the other.
    `status` is a further result. Score modifiers count tokens of these sequences, not positions. A token with an id
    may be in no sequence, because it sees no key or its segment gave its row a status. It has O = 0 and LSE = -inf,
    with a sink LSE = x. Padding has O = 0 and LSE = -inf in any case. With two calls, one of `attn.segments` and one of
    a problem over its arrays, a token in no sequence is padding.

    `schedule(A)` is a schedule attribute of the `tile` dialect (docs/generated/Tile.md), which says how kernels are
    built, and `schedule_reason` is the measured rule that chose it. `attn-choose-schedule` writes both. A schedule may
    be given by hand.

    `tiles(M)`: query tiles are computed in the order of the first `tile_count` entries of `tiles_q`, as `attn.segments`
    with `tiles(M)` lists them. Each tile that has something to write has to be listed once.

    Constraints:
    - C1: 1 <= kv_heads, and heads is a multiple of kv_heads and at most 65536.
    - C2: head dims are multiples of 8 from 8 to 512 (wider heads than 256 have no tiles: `simt_rows` computes them,
      which is slow for long sequences).
    - C3: dtype is bf16, f16 or f32 (f32: only the target `cpu` has kernels).
    - C4: q and o have the same kind of layout (both dense, or both the same
      packed form), and so have k and v.
    - C5: the number of masks of an `#attn.heads` divides heads.
    - C6: outputs contain o; lse is optional.
    - C7: scale is 0, or its size is from 2^-100 to 2^100 (kernels compute in float32).
    - C8: the problem's name is an identifier; no array of the mask or of a score modifier has the name of
      another tensor or array of the problem, of one of its sizes (`batch`, `seqlen_q`, ...) or strides
      (`q_row`, ...), or of a tensor of its backward pass.
    - C9: `score` lists at most 8 score modifiers; a modifier that may not repeat occurs once.
    - C10: expected lengths are positive, and both or none are given. The same holds for maximum lengths.
    - C11: `segments` is from 1 to 2048, with `layout(thd padded)`, a mask that `attn.segments` takes,
      and no `tiles`.
    - C12: `tiles` is a multiple of 16 from 16 to 256, with packed q and head dims up to 256; it is the number
      of queries in a tile of the schedule.
    - C13: layouts are dense where an array of a score modifier has an axis of their rows.
    - C14: a sink is a number from -2^60 to 2^60 or an identifier.
    - C15: the probability of dropout is at least 0 and below 1 - 2^-16; the name of its array is an identifier.
    - C16: kv_list_capacity is positive.
    - C17: either q and k have pieces (`layout(thd pieces)`), or neither. With pieces, head dims are up to 256, and
      there are no trees, `segments` and `tiles`.
    - C18: `partial` goes with `layout(thd pieces)`; a sink does not go with `partial(out)`: it is added where results
      are complete. There is no `outputs(o)` with `partial(out)`.
    - C19: `of_heads` goes with `layout(thd pieces)`, and G divides H. The heads are among the H, and are those of whole
      kv heads or of a part of one.
    - C20: `single_pieces` and `keep_padding` go with `layout(thd pieces)`.

    ```mlir
    attn.problem @packed_causal mask(#attn.causal) layout(thd) heads(16, 4) dims(128) dtype(bf16)
    attn.problem @mixed mask(#attn.full) layout(bshd, bhsd, bhsd, bshd) heads(8) dims(192, 128)
      dtype(f16) scale(0.125) outputs(o)
    attn.problem @capped mask(#attn.causal) layout(bshd) heads(16) dims(128) dtype(bf16)
      score([#attn.softcap<30.0>, #attn.alibi]) expected_seqlen(4096)
    attn.problem @off_by_one mask(#attn.causal) layout(bshd) heads(16) dims(128) dtype(bf16) sink(0.0)
    attn.problem @sinks mask(#attn.causal) layout(thd) heads(64, 8) dims(64) dtype(bf16) sink("sinks")
    attn.problem @dropped mask(#attn.causal) layout(thd) heads(16, 4) dims(128) dtype(bf16) dropout(0.1, "seed")
    attn.problem @short mask(#attn.full) layout(thd) heads(16) dims(512) dtype(bf16) max_seqlen(1, 16)
    attn.problem @decode mask(#attn.full) layout(bshd) heads(32, 8) dims(128) dtype(bf16) expected_seqlen(1, 32768)
    attn.problem @by_ids mask(#attn.causal) layout(thd padded) heads(16) dims(128) dtype(bf16) segments(64)
    attn.problem @drafts mask(#attn.tree<"node", "first",
        "end">) layout(bshd) heads(16) dims(128) dtype(bf16) kv_list_capacity(8192)
    attn.problem @part mask(#attn.causal) layout(thd pieces) heads(16) dims(128) dtype(bf16) partial(out)
    attn.problem @piece mask(#attn.causal) layout(thd pieces) heads(16) dims(128) dtype(bf16) single_pieces keep_padding
    attn.problem @listed mask(#attn.causal) layout(thd) heads(16) dims(128) dtype(bf16) tiles(128)
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, Attn_MaskInterface:$mask, Attn_LayoutAttr:$q_layout,
      Attn_LayoutAttr:$k_layout, Attn_LayoutAttr:$v_layout, Attn_LayoutAttr:$o_layout, I64Attr:$heads,
      I64Attr:$kv_heads, I64Attr:$dim_qk, I64Attr:$dim_v, TypeAttr:$dtype, OptionalAttr<F64Attr>:$scale,
      OptionalAttr<ArrayAttr>:$score, OptionalAttr<AnyAttr>:$sink, OptionalAttr<F64Attr>:$dropout,
      OptionalAttr<StrAttr>:$seed, UnitAttr:$no_lse, UnitAttr:$partial_in, UnitAttr:$partial_out,
      UnitAttr:$single_pieces, UnitAttr:$keep_padding, OptionalAttr<DenseI64ArrayAttr>:$of_heads,
      OptionalAttr<I64Attr>:$expected_seqlen_q, OptionalAttr<I64Attr>:$expected_seqlen_kv,
      OptionalAttr<I64Attr>:$max_seqlen_q, OptionalAttr<I64Attr>:$max_seqlen_kv,
      OptionalAttr<I64Attr>:$kv_list_capacity, OptionalAttr<I64Attr>:$segments, OptionalAttr<I64Attr>:$tiles,
      OptionalAttr<AnyAttr>:$schedule, OptionalAttr<StrAttr>:$schedule_reason);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// The scale in force: as given, or 1/sqrt(dim_qk).
    double scaleOrDefault();
    /// The modifiers of the scaled scores, in order.
    ::llvm::SmallVector<::attn::ScoreModifierInterface> getModifiers();
    /// The array of sinks, if there is one.
    std::optional<::attn::ScoreOperand> getSinkArray();
    bool isSinkArray(const ::attn::ScoreOperand &array) { return getSinkArray() == array; }
    /// The sink if it is a number.
    std::optional<double> getSinkNumber();
    /// The dropout, if pairs are dropped.
    std::optional<::attn::Dropout> dropoutInForce();
    /// Heads of the whole problem, and the first of them that the tensors have.
    int64_t allHeads() { return getOfHeads() ? (*getOfHeads())[1] : int64_t(getHeads()); }
    int64_t allKvHeads() { return getOfHeads() ? (*getOfHeads())[2] : int64_t(getKvHeads()); }
    int64_t firstHead() { return getOfHeads() ? (*getOfHeads())[0] : 0; }
    int64_t firstKvHead() { return firstHead() / (allHeads() / allKvHeads()); }
    bool hasLse() { return !getNoLse() && !getPartialOut(); }
    /// How many queries, and keys, a sequence is expected to have: max_seqlen, or else expected_seqlen.
    std::optional<int64_t> expectedQueries();
    std::optional<int64_t> expectedKeys();
  }];
}

def Attn_BackwardOp : Attn_Op<"backward", [Symbol, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "the gradients of a problem's operands";
  let description = [{
    The gradients of the problem that it names; mask, modifiers, layouts and scale are the problem's. It reads q, k, v,
    the problem's results o and lse, and the gradients `do` of o and, with the clause `dlse`, `dlse` of lse. It writes
    `dq`, `dk` and `dv`. With the problem's names, s' the derivative of its modifiers, and over the visible pairs (q, k)
    of each sequence:

        P[q, k] = exp(s[q, k] - LSE[q, h])
        delta[q, h] = dot(dO[q, h], O[q, h]) - dLSE[q, h]
        dS[q, k] = P[q, k] * (dot(dO[q, h], V[k, g]) - delta[q, h]) * s'[q, k]
        dQ[q, h] = scale * sum over k of dS[q, k] * K[k, g]
        dK[k, g] = scale * sum over q and the heads h of g of dS[q, k] * Q[q, h]
        dV[k, g] = sum over q and the heads h of g of P[q, k] * dO[q, h]

    Without `delta`, o and lse have to be exactly the problem's results: kernels for short sequences compute dot(dO, O)
    as the sum over k of P * dot(dO, V) and do not read o. With `partial_kv` the problem has a part of the keys, and o
    and lse are merged from all parts (a step of ring attention): then delta is always dot(dO, O) - dLSE, by tiled
    kernels.

    With dropout, dot(dO[q, h], V[k, g]), and P[q, k] * dO[q, h] in dV, are 0 for a dropped pair and divided by 1 - p
    for others. The words are those of the forward pass.

    With `delta` an operand `delta`, float32, of the shape of lse, replaces o: it is the delta of the formulas above,
    dot(dO, O) - dLSE. Then lse need not be the problem's own result. P is exp(S - lse), so LSE - log(g) in its place
    gives the gradients of g * o from the `do` of their sum (`attn.combine_backward`); g is from 0 to 1.

    With `float32_dq` dq, and with `float32_dkv` dk and dv are float32, not rounded to the dtype. With `add_dq`, dq is
    the sum of the gradient and of a further operand, `before_dq`, float32, of q's shape: the gradient over other keys,
    or by another attention that reads the same q. A float32 dq may be the memory of `before_dq`. With
    `add_array_grads`, gradients of arrays (`requires_grad`) are likewise added to those over other queries and keys:
    for each there is an operand, `before_d` and the array's name, float32, of the array's shape. The gradient may have
    its memory.

    `do` has the shape and layout of o, `dq`, `dk` and `dv` those of q, k and v, each with strides of its own; `dlse`
    has the shape of lse. Sums are float32, and results are rounded once to the problem's dtype, unless they are
    float32. Every row of dq, dk and dv is written; rows that see no key (lse = -inf) get zeros, or what `before_dq`
    has; keys that no row sees, and padding get zeros. (With the problem's `keep_padding` padding keeps what it has.)
    Padding rows of the operands may have any values. A NaN or infinity in a row of a sequence may reach any gradient of
    that sequence and kv head, and no other.

    dk and dv of packed layouts with padding are written as well, so `padded_offsets_kv` has to ascend like
    `padded_offsets_q`, with room for each sequence.

    `requires_grad(["a", ...])` names arrays that score modifiers read, or the array of sinks. Their gradients are
    further results, named `d` and the array's name, float32, of its shape. The gradient of an entry is a sum over all
    visible pairs, of all sequences and heads, that read the entry: of dS without the factor s', times the derivative of
    the modified score by the entry. The gradient of the sink of head h is

        dx[h] = -sum over rows of exp(x[h] - LSE[q, h]) * delta[q, h]

    over all rows, also those that see no key. With `partial_kv` each problem gives this whole sum, whichever keys it
    has, so only one problem of a ring may have the sinks, as in the forward pass. These sums have a fixed order.

    `deterministic`: equal inputs give equal bits, whatever else runs and whatever other sequences are in the batch.
    Only dense lengths may select another program, never the number of sequences. Without it, `sm_90a` may add dQ in the
    order in which CTAs finish.

    `convert-attn-to-tile` replaces it by kernels, which are launched in their order: row statistics
    (`tile.preprocess`), then dK and dV, which may also accumulate dQ, then dQ, or the postprocess kernel of the dQ
    accumulator. The C API takes the module's only backward pass if no name is given; the problem's name selects the
    forward pass.

    Clauses may have any order; they are printed in this order: `of`, `deterministic`, `partial_kv`, `dlse`,
    `delta`, `float32_dq`, `float32_dkv`, `add_dq`, `add_array_grads`, `requires_grad`, `schedule`, `schedule_reason`.

    Constraints:
    - C1: it names an `attn.problem` of the same module.
    - C2: lse is among the problem's outputs.
    - C3: its name is an identifier.
    - C4: the problem has no segments and no tiles (its packed layouts get lengths and
      offsets, as `attn.segments` gives them).
    - C5: with head dims beyond 256, the mask is the same for all heads.
    - C6: `requires_grad` names arrays of the problem's score modifiers or its sinks, each once, and no other tensor has
      the name of such a gradient.
    - C7: head dims beyond 256 have neither `partial_kv` nor `requires_grad` nor `delta` nor `add_dq` nor float32
      gradients.
    - C8: only a problem with pieces (`layout(thd pieces)`) has `add_array_grads`. `requires_grad` does not name its
      sinks: their gradient needs no keys, so each launch of some queries would add it once more (the formula above,
      over a rank's rows, gives it).
    - C9: `delta` and `dlse` exclude each other, since delta has dLSE.

    ```mlir
    attn.problem @p mask(#attn.causal) layout(thd) heads(16, 4) dims(128) dtype(bf16)
    attn.backward @grads of(@p)
    attn.backward @part_grads of(@p) deterministic dlse
    attn.backward @ring_grads of(@p) partial_kv
    attn.backward @gated_grads of(@p) delta float32_dkv add_dq
    attn.problem @biased mask(#attn.full) layout(bshd) heads(8) dims(64) dtype(bf16) score([#attn.bias<"bias",
        hqk>]) sink("sinks")
    attn.backward @biased_grads of(@biased) requires_grad(["bias", "sinks"])
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, FlatSymbolRefAttr:$problem, UnitAttr:$deterministic,
      UnitAttr:$partial_kv, UnitAttr:$dlse, UnitAttr:$delta, UnitAttr:$float32_dq, UnitAttr:$float32_dkv,
      UnitAttr:$add_dq, UnitAttr:$add_array_grads, OptionalAttr<StrArrayAttr>:$requires_grad,
      OptionalAttr<AnyAttr>:$schedule, OptionalAttr<StrAttr>:$schedule_reason);
  let hasCustomAssemblyFormat = 1;
  let extraClassDeclaration = [{
    ::attn::ProblemOp getProblemOp();
    /// The arrays of `requires_grad`, in the order in which problems have them.
    ::llvm::SmallVector<::attn::ScoreOperand> getDifferentiatedArrays();
  }];
}

def Attn_SegmentsOp : Attn_Op<"segments", [Symbol]> {
  let summary = "lengths and offsets of packed segments, from ids and positions";
  let description = [{
    `ids` gives the segment of each token in a row, from 1 on, and 0 for padding;
    `positions` gives the token's position in its segment. Query t sees key u if both ids
    are equal and not 0, and if the mask allows it:

        #attn.full:                   always
        #attn.causal:                 positions_q[t] >= positions_kv[u]
        #attn.causal<bottom_right>:   run_q - positions_q[t] <= run_kv - positions_kv[u]

    with run the length of the run of equal ids around a token. A window is the band of a
    mask: `#attn.band<left = L, right = 0>` is a causal mask and
    `#attn.band<left = L, right = R>` a full one, with a window. It changes no length and
    no offset. (TransformerEngine has this as `SequenceDescriptor`; docs/Thd.md.)

    For each row, all i32, with S the number of `segments`:

    - `seqlens_q`, `seqlens_kv` [S]: entry s - 1 is the number of tokens of id s that see a
      key, or are seen.
    - `offsets_q`, `offsets_kv` [S + 1]: where runs of such tokens start, in order; -1
      after the last.
    - `status`: 0, or the sum of 1 (an id below 0 or beyond S), 2 (tokens of a segment that
      see something, or are seen, are not one run), 4 (lengths and offsets cannot express
      the mask of positions, as in dual-chunk orders; each bound of a window is tested
      separately), 8 (a position beyond +-2^29). A token with such an id or position counts
      as padding. With `bottom_right`, tokens of a segment that is not one run on both sides
      (2) see nothing, because the segment has no single end to align. Segments that are not
      one run are not tested for 4.
    - with `maps`: `segments_q`, `segments_kv` [tokens]: the id, or 0 for tokens that see
      nothing and are not seen.

    For all rows together, N = rows * S sequences in the order of their queries, as packed
    padded layouts take them: `cu_seqlens_q`, `padded_offsets_q`, `cu_seqlens_kv`,
    `padded_offsets_kv` [N + 1]; sequences after the last segment are empty. A segment that
    gave its row a status of 2 or 4 is not a sequence: its rows get zeros, not wrong
    results. Without rows each array is a single 0. With `tiles(M)` also `tiles_q`
    [rows * tokens / M + N + 2], the query tiles of M rows that have something to write, those
    of the sequences that visit most keys first, and `tile_count` [1].

    Rows are the leading dimensions of ids, up to seven of them, equal on both sides.
    `positions` have the same, or only the last of them: then all rows share them. Positions
    of padding may have any value. A full mask without a window has no positions.

    Clauses may have any order; they are printed in this order: `mask`, `segments`, `maps`, `tiles`.

    Constraints:
    - C1: the mask is one of those above; windows are not negative and below 2^29.
    - C2: segments is from 1 to 2048.
    - C3: tiles is a multiple of 16 from 16 to 256.
    - C4: the name is an identifier.

    ```mlir
    attn.segments @rows mask(#attn.causal) segments(64)
    attn.segments @window mask(#attn.band<left = 1023, right = 0, bottom_right>) segments(256) maps tiles(128)
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, Attn_MaskInterface:$mask, I64Attr:$segments, UnitAttr:$maps,
      OptionalAttr<I64Attr>:$tiles);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// The mask's rule; the verifier ensures that it has one.
    ::attn::SegmentRule getRule() { return *::attn::SegmentRule::of(getMask()); }
  }];
}

def Attn_GatherRowsOp : Attn_Op<"gather_rows", [Symbol]> {
  let summary = "rows of tensors in another order, or sums of rows";
  let description = [{
    With tensors `part_0`, `part_1`, ..., of [rows, heads, dim], each with rows of its own, and an int32 array `index`
    [parts, rows of the result]:

        result[i] = sum over parts p with index[p, i] >= 0 of part_p[index[p, i]]

    in the order of the parts, in float32, rounded once. A row without any part is 0. With one part, rows are copied bit
    by bit. This packs rows that are sent to other ranks, unpacks what arrives, sums up gradients, and reorders tokens.
    Indices are below the rows of their part. Nothing checks them: beyond, other memory is read.

    `dtype` is that of the result, `from(f32)` that of the parts if it is another one. Strides of rows and heads are
    multiples of 8, and memory is aligned to 16 bytes, unless dim is 1 (as of LSE).

    Constraints:
    - C1: there are 1 to 64 parts.
    - C2: heads is from 1 to 65536, dim is 1 or a multiple of 8 up to 512.
    - C3: dtype is bf16, f16 or f32; parts have the same dtype or f32.
    - C4: the name is an identifier.

    ```mlir
    attn.gather_rows @pack parts(1) heads(8) dim(128) dtype(bf16)
    attn.gather_rows @sum parts(4) heads(8) dim(128) dtype(bf16) from(f32)
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, I64Attr:$parts, I64Attr:$heads, I64Attr:$dim, TypeAttr:$dtype,
      OptionalAttr<TypeAttr>:$from);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    ::mlir::Type getPartType() { return getFrom().value_or(getDtype()); }
  }];
}

#endif // ATTN_OPS
