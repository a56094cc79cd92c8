// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Constraints of the ops around sparse attention.
//
// RUN: attn-opt %s -split-input-file -verify-diagnostics

// expected-error @below {{expected `mean`, the way to compress, got: none}}
attn.compress @p length(32) stride(16) layout(thd) heads(4) dims(128) dtype(bf16)

// -----

// expected-error @below {{expected a length up to 65536 that the stride divides, got: length(32) stride(12)}}
attn.compress @p mean length(32) stride(12) layout(thd) heads(4) dims(128) dtype(bf16)

// -----

// expected-error @below {{expected a length up to 65536 that the stride divides, got: length(16) stride(32)}}
attn.compress @p mean length(16) stride(32) layout(thd) heads(4) dims(128) dtype(bf16)

// -----

// expected-error @below {{expected 1 to 65536 heads, got: 0}}
attn.compress @p mean length(32) stride(16) layout(thd) heads(0) dims(128) dtype(bf16)

// -----

// expected-error @below {{expected a head dim that is a multiple of 8 up to 512, got: 12}}
attn.compress @p mean length(32) stride(16) layout(thd) heads(4) dims(128, 12) dtype(bf16)

// -----

// expected-error @below {{expected dtype bf16, f16 or f32, got: 'i32'}}
attn.compress @p mean length(32) stride(16) layout(thd) heads(4) dims(128) dtype(i32)

// -----

// expected-error @below {{expected layout bshd, sbhd, bhsd or thd, got: thd padded}}
attn.compress @p mean length(32) stride(16) layout(thd padded) heads(4) dims(128) dtype(bf16)

// -----

// expected-error @below {{expected an identifier as its name, got: "a b"}}
attn.compress @"a b" mean length(32) stride(16) layout(thd) heads(4) dims(128) dtype(bf16)

// -----

// expected-error @below {{expected the name of an `attn.compress` in its module, got: @nobody}}
attn.compress_backward @p of(@nobody)

// -----

attn.compress @c mean length(32) stride(16) layout(thd) heads(4) dims(128) dtype(bf16)
// expected-error @below {{expected 0 to 8 gradients to add, got: 9}}
attn.compress_backward @p of(@c) add(9)

// -----

// expected-error @below {{expected `prob`, the importance of blocks, got: none}}
attn.select @p length(32) stride(16) block(64) count(16) first(1) local(2) rows(64) layout(thd) heads(64, 4) dim(128) dtype(bf16)

// -----

// expected-error @below {{expected blocks of up to 65536 keys that the stride divides, got: block(40) stride(16)}}
attn.select @p prob length(32) stride(16) block(40) count(16) first(1) local(2) rows(64) layout(thd) heads(64, 4) dim(128) dtype(bf16)

// -----

// expected-error @below {{expected first(0) or more, local(1) or more, and count up to 1024 with room for both, got: count(2) first(1) local(2)}}
attn.select @p prob length(32) stride(16) block(64) count(2) first(1) local(2) rows(64) layout(thd) heads(64, 4) dim(128) dtype(bf16)

// -----

// expected-error @below {{got: count(16) first(1) local(0)}}
attn.select @p prob length(32) stride(16) block(64) count(16) first(1) local(0) rows(64) layout(thd) heads(64, 4) dim(128) dtype(bf16)

// -----

// expected-error @below {{expected 1 to 65536 rows that divide a block or that it divides, got: rows(48) block(64)}}
attn.select @p prob length(32) stride(16) block(64) count(16) first(1) local(2) rows(48) layout(thd) heads(64, 4) dim(128) dtype(bf16)

// -----

// expected-error @below {{expected heads (up to 65536) that are a multiple of kv heads, got: 10 and 4}}
attn.select @p prob length(32) stride(16) block(64) count(16) first(1) local(2) rows(64) layout(thd) heads(10, 4) dim(128) dtype(bf16)

// -----

// expected-error @below {{expected a scale of a size from 2^-100 to 2^100, got: 0}}
attn.select @p prob length(32) stride(16) block(64) count(16) first(1) local(2) rows(64) layout(thd) heads(4) dim(128) dtype(bf16) scale(0.0)

// -----

// expected-error @below {{expected one of `sigmoid` and `uniform`, got: none}}
attn.combine @p branches(3) layout(thd) heads(4) dim(128) dtype(bf16)

// -----

// expected-error @below {{expected one of `sigmoid` and `uniform`, got: both}}
attn.combine @p sigmoid uniform branches(3) layout(thd) heads(4) dim(128) dtype(bf16)

// -----

// expected-error @below {{expected `gates` beside `sigmoid` only, got: `uniform`}}
attn.combine @p uniform branches(3) layout(thd) heads(4) dim(128) dtype(bf16) gates(f32)

// -----

// expected-error @below {{expected 1 to 8 branches, got: 9}}
attn.combine @p sigmoid branches(9) layout(thd) heads(4) dim(128) dtype(bf16)

// -----

// expected-error @below {{expected gates of 'bf16' or f32, got: 'f16'}}
attn.combine @p sigmoid branches(3) layout(thd) heads(4) dim(128) dtype(bf16) gates(f16)

// -----

// expected-error @below {{expected the name of an `attn.combine` in its module, got: @nobody}}
attn.combine_backward @p of(@nobody)

// -----

// expected-error @below {{expected 1 to 8 parts, got: 0}}
attn.add @p parts(0) layout(thd) heads(4) dim(128) dtype(bf16)

// -----

// expected-error @below {{expected parts of 'bf16' or f32, got: 'f16'}}
attn.add @p parts(2) layout(thd) heads(4) dim(128) dtype(bf16) from(f16)
