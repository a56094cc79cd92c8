// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a problem refuses: its constraints, by number, and bad text.
//
// RUN: attn-opt %s -split-input-file -verify-diagnostics

// C1: 1 <= kv_heads, and heads is a multiple of kv_heads.
// expected-error @below {{'attn.problem' op expected heads to be a positive multiple of kv_heads (at most 65536), got: heads = 8, kv_heads = 3}}
attn.problem @p mask(#attn.full) layout(bshd) heads(8, 3) dims(64) dtype(bf16)

// -----

// C1
// expected-error @below {{got: heads = 8, kv_heads = 0}}
attn.problem @p mask(#attn.full) layout(bshd) heads(8, 0) dims(64) dtype(bf16)

// -----

// C1
// expected-error @below {{got: heads = 0, kv_heads = 0}}
attn.problem @p mask(#attn.full) layout(bshd) heads(0) dims(64) dtype(bf16)

// -----

// C1
// expected-error @below {{got: heads = -8, kv_heads = -8}}
attn.problem @p mask(#attn.full) layout(bshd) heads(-8) dims(64) dtype(bf16)

// -----

// C1: keys have no more heads than queries.
// expected-error @below {{got: heads = 4, kv_heads = 8}}
attn.problem @p mask(#attn.full) layout(bshd) heads(4, 8) dims(64) dtype(bf16)

// -----

// C1
// expected-error @below {{(at most 65536), got: heads = 65537, kv_heads = 1}}
attn.problem @p mask(#attn.full) layout(bshd) heads(65537, 1) dims(64) dtype(bf16)

// -----

// C2: head dims are multiples of 8 from 8 to 512.
// expected-error @below {{'attn.problem' op expected dim_qk to be a multiple of 8 from 8 to 512, got: 100; near it are 96 and 104}}
attn.problem @p mask(#attn.full) layout(bshd) heads(8) dims(100) dtype(bf16)

// -----

// C2
// expected-error @below {{expected dim_qk to be a multiple of 8 from 8 to 512, got: 0; near it is 8}}
attn.problem @p mask(#attn.full) layout(bshd) heads(8) dims(0) dtype(bf16)

// -----

// C2
// expected-error @below {{expected dim_v to be a multiple of 8 from 8 to 512, got: 516; near it is 512}}
attn.problem @p mask(#attn.full) layout(bshd) heads(8) dims(256, 516) dtype(bf16)

// -----

// C2
// expected-error @below {{expected dim_v to be a multiple of 8 from 8 to 512, got: -64}}
attn.problem @p mask(#attn.full) layout(bshd) heads(8) dims(64, -64) dtype(bf16)

// -----

// C2: with bounds, too.
// expected-error @below {{expected dim_v to be a multiple of 8 from 8 to 512, got: 520}}
attn.problem @p mask(#attn.full) layout(bshd) heads(8) dims(64, 520) dtype(bf16) max_seqlen(1, 16)

// -----

// C3: dtype is bf16, f16 or f32.
// expected-error @below {{'attn.problem' op expected dtype bf16, f16 or f32, got: 'f64'}}
attn.problem @p mask(#attn.full) layout(bshd) heads(8) dims(64) dtype(f64)

// -----

// C4: q and o have the same kind of layout.
// expected-error @below {{'attn.problem' op expected q and o both dense or both packed alike, got: #attn.layout<bshd> and #attn.layout<thd>}}
attn.problem @p mask(#attn.full) layout(bshd, bshd, bshd, thd) heads(8) dims(64) dtype(bf16)

// -----

// C4: both packed, not the same packed form.
// expected-error @below {{got: #attn.layout<thd padded> and #attn.layout<thd>}}
attn.problem @p mask(#attn.full) layout(thd padded, thd, thd, thd) heads(8) dims(64) dtype(bf16)

// -----

// C4: and so have k and v.
// expected-error @below {{'attn.problem' op expected k and v both dense or both packed alike, got: #attn.layout<bhsd> and #attn.layout<thd>}}
attn.problem @p mask(#attn.full) layout(bshd, bhsd, thd, bshd) heads(8) dims(64) dtype(bf16)

// -----

// C5: of `#attn.heads`, the number of masks divides heads.
// expected-error @below {{'attn.problem' op expected a number of masks that divides the 8 query heads, got: 3 in #attn.heads<#attn.causal, #attn.full, #attn.causal>}}
attn.problem @p mask(#attn.or<#attn.prefix<4>, #attn.heads<#attn.causal, #attn.full, #attn.causal>>) layout(thd) heads(8) dims(64) dtype(bf16)

// -----

// C6: outputs contain o; lse is optional.
// expected-error @below {{expected outputs `o` or `o, lse`, got: lse}}
attn.problem @p mask(#attn.full) layout(bshd) heads(8) dims(64) dtype(bf16) outputs(lse)

// -----

// C6
// expected-error @below {{expected outputs `o` or `o, lse`, got: lse, o}}
attn.problem @p mask(#attn.full) layout(bshd) heads(8) dims(64) dtype(bf16) outputs(lse, o)

// -----

// C6
// expected-error @below {{expected outputs `o` or `o, lse`, got: o, max}}
attn.problem @p mask(#attn.full) layout(bshd) heads(8) dims(64) dtype(bf16) outputs(o, max)

// -----

// C7: a size that float32 can compute with.
// expected-error @below {{'attn.problem' op expected a scale that is 0 or has a size from 2^-100 to 2^100, got: INF}}
attn.problem @p mask(#attn.full) layout(bshd) heads(8) dims(64) dtype(bf16) scale(0x7FF0000000000000)

// -----

// C7
// expected-error @below {{expected a scale that is 0 or has a size from 2^-100 to 2^100, got: nan}}
attn.problem @p mask(#attn.full) layout(bshd) heads(8) dims(64) dtype(bf16) scale(0x7FF8000000000000)

// -----

// expected-error @below {{expected layout `bshd`, `sbhd`, `bhsd` or `thd`, got: packed}}
attn.problem @p mask(#attn.full) layout(packed) heads(8) dims(64) dtype(bf16)

// -----

// expected-error @below {{expected one layout, or four for q, k, v and o, got: 2}}
attn.problem @p mask(#attn.full) layout(bshd, bshd) heads(8) dims(64) dtype(bf16)

// -----

// expected-error @below {{expected integer value}}
attn.problem @p mask(#attn.full) layout(bshd) heads(many) dims(64) dtype(bf16)

// -----

// expected-error @below {{integer value too large}}
attn.problem @p mask(#attn.full) layout(bshd) heads(8) dims(99999999999999999999) dtype(bf16)

// -----

// Something that is no mask.
// expected-error @below {{expected a mask such as #attn.causal, got: 42 : i64}}
attn.problem @p mask(42) layout(bshd) heads(8) dims(64) dtype(bf16)

// -----

// A modifier of scores, and a word without its dialect.
// expected-error @below {{expected a mask such as #attn.causal, got: #attn.softcap<3.000000e+01>}}
attn.problem @p mask(#attn.softcap<30.0>) layout(bshd) heads(8) dims(64) dtype(bf16)

// -----

// expected-error @below {{expected a mask such as #attn.causal, got: `causal`}}
attn.problem @p mask(#attn.or<#attn.full, causal>) layout(bshd) heads(8) dims(64) dtype(bf16)

// -----

// expected-error @below {{expected a clause `mask(...)`, got: none; clauses are mask(...) layout(...) heads(...) dims(...) dtype(...) [scale(...)] [score(...)] [sink(...)] [dropout(...)] [outputs(...)] [partial(...)] [single_pieces] [keep_padding] [of_heads(...)] [expected_seqlen(...)] [max_seqlen(...)] [kv_list_capacity(...)] [segments(...)] [tiles(...)] [schedule(...)] [schedule_reason(...)]}}
attn.problem @p layout(bshd) heads(8) dims(64) dtype(bf16)

// -----
// C8
// expected-error @below {{expected an identifier as its name, got: "a b"}}
attn.problem @"a b" mask(#attn.full) layout(bshd) heads(1) dims(64) dtype(bf16)

// -----
// C8: a prefix and a document's ids under one name
// expected-error @below {{expected a name for the mask's array that nothing else of the problem has, got: "segment_ids_q"}}
attn.problem @p mask(#attn.and<#attn.prefix<"segment_ids_q">, #attn.document>) layout(bshd) heads(1) dims(64) dtype(bf16)

// -----
// C7
// expected-error @below {{expected a scale that is 0 or has a size from 2^-100 to 2^100, got: 1.000000e+300}}
attn.problem @p mask(#attn.full) layout(bshd) heads(8) dims(64) dtype(bf16) scale(1.0e300)

// -----
// C10: expected lengths are positive, and both are given or none.
// expected-error @below {{'attn.problem' op expected a positive `expected_seqlen`, got: 0}}
attn.problem @p mask(#attn.full) layout(bshd) heads(8) dims(64) dtype(bf16) expected_seqlen(0)

// -----
// C10
// expected-error @below {{expected a positive `expected_seqlen`, got: -4096}}
attn.problem @p mask(#attn.full) layout(bshd) heads(8) dims(64) dtype(bf16) expected_seqlen(-4096)

// -----
// C10
// expected-error @below {{expected a positive `expected_seqlen`, got: 0}}
attn.problem @p mask(#attn.full) layout(bshd) heads(8) dims(64) dtype(bf16) expected_seqlen(1, 0)

// -----
// C10
// expected-error @below {{'attn.problem' op expected `expected_seqlen` of both queries and keys, got: one}}
"attn.problem"() <{dim_qk = 64 : i64, dim_v = 64 : i64, dtype = bf16, heads = 8 : i64, kv_heads = 8 : i64, mask = #attn.full,
  q_layout = #attn.layout<bshd>, k_layout = #attn.layout<bshd>, v_layout = #attn.layout<bshd>, o_layout = #attn.layout<bshd>,
  sym_name = "p", expected_seqlen_q = 1 : i64}> : () -> ()

// -----
// C10: bounds likewise.
// expected-error @below {{'attn.problem' op expected a positive `max_seqlen`, got: 0}}
attn.problem @p mask(#attn.full) layout(bshd) heads(8) dims(64) dtype(bf16) max_seqlen(1, 0)

// -----
// C10
// expected-error @below {{'attn.problem' op expected `max_seqlen` of both queries and keys, got: one}}
"attn.problem"() <{dim_qk = 64 : i64, dim_v = 64 : i64, dtype = bf16, heads = 8 : i64, kv_heads = 8 : i64, mask = #attn.full,
  q_layout = #attn.layout<bshd>, k_layout = #attn.layout<bshd>, v_layout = #attn.layout<bshd>, o_layout = #attn.layout<bshd>,
  sym_name = "p", max_seqlen_kv = 1 : i64}> : () -> ()

// -----
// C11
// expected-error @below {{'attn.problem' op expected layout(thd padded) with segments, got: #attn.layout<thd>}}
attn.problem @p mask(#attn.causal) layout(thd) heads(8) dims(64) dtype(bf16) segments(4)

// -----
// C11
// expected-error @below {{expected layout(thd padded) with segments, got: #attn.layout<bshd>}}
attn.problem @p mask(#attn.causal) layout(thd padded, bshd, bshd, thd padded) heads(8) dims(64) dtype(bf16) segments(4)

// -----
// C11
// expected-error @below {{'attn.problem' op expected mask #attn.full, #attn.causal, #attn.causal<bottom_right> or a band of one of them with bounds from 0 to 2^29 - 1 (bottom_right: with right = 0), got: #attn.prefix<4>}}
attn.problem @p mask(#attn.prefix<4>) layout(thd padded) heads(8) dims(64) dtype(bf16) segments(4)

// -----
// C11
// expected-error @below {{expected segments from 1 to 2048, got: 2049}}
attn.problem @p mask(#attn.causal) layout(thd padded) heads(8) dims(64) dtype(bf16) segments(2049)

// -----
// C11
// expected-error @below {{expected segments without tiles (of which nobody has a list yet), got: both}}
attn.problem @p mask(#attn.causal) layout(thd padded) heads(8) dims(64) dtype(bf16) segments(4) tiles(64)

// -----
// C12
// expected-error @below {{'attn.problem' op expected packed q with tiles, got: #attn.layout<bshd>}}
attn.problem @p mask(#attn.causal) layout(bshd) heads(8) dims(64) dtype(bf16) tiles(64)

// -----
// C12
// expected-error @below {{'attn.problem' op expected tiles in multiples of 16 from 16 to 256, got: 24}}
attn.problem @p mask(#attn.causal) layout(thd) heads(8) dims(64) dtype(bf16) tiles(24)

// -----
// C12
// expected-error @below {{expected head dims up to 256 with tiles (beyond, a tile is a sequence's own), got: 512}}
attn.problem @p mask(#attn.causal) layout(thd) heads(8) dims(64, 512) dtype(bf16) max_seqlen(16) tiles(64)

// -----

// C16: visits is positive.
// expected-error @below {{'attn.problem' op expected a positive `kv_list_capacity`, got: 0}}
attn.problem @p mask(#attn.document) layout(bshd) heads(8) dims(64) dtype(bf16) kv_list_capacity(0)
