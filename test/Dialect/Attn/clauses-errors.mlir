// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Clauses that there are not, that are there twice, that are missing.
//
// RUN: attn-opt %s -split-input-file -verify-diagnostics

// expected-error @below {{custom op 'attn.problem' expected a clause, got: `lyout`, which is near `layout`; clauses are mask(...) layout(...) heads(...) dims(...) dtype(...) [scale(...)]}}
attn.problem @p mask(#attn.full) lyout(bshd) heads(8) dims(64) dtype(bf16)

// -----

// expected-error @below {{custom op 'attn.problem' expected a clause, got: `window`; clauses are mask(...)}}
attn.problem @p mask(#attn.full) layout(bshd) heads(8) dims(64) dtype(bf16) window(127)

// -----

// Of another op.
// expected-error @below {{custom op 'attn.problem' expected a clause, got: `deterministic`; clauses are mask(...)}}
attn.problem @p mask(#attn.full) layout(bshd) heads(8) dims(64) dtype(bf16) deterministic

// -----

// expected-error @below {{expected each clause once, got: `mask` again}}
attn.problem @p mask(#attn.full) layout(bshd) heads(8) dims(64) dtype(bf16) mask(#attn.full)

// -----

// expected-error @below {{expected each clause once, got: `expected_seqlen` again}}
attn.problem @p mask(#attn.full) layout(bshd) expected_seqlen(5) heads(8) dims(64) dtype(bf16) expected_seqlen(5)

// -----

// expected-error @below {{expected a clause `dtype(...)`, got: none; clauses are mask(...)}}
attn.problem @p mask(#attn.full) layout(bshd) heads(8) dims(64)

// -----

// Ahead of another op.
// expected-error @below {{expected a clause `layout(...)`, got: none; clauses are mask(...)}}
attn.problem @p mask(#attn.full) heads(8) dims(64) dtype(bf16)
attn.problem @q mask(#attn.full) layout(bshd) heads(8) dims(64) dtype(bf16)

// -----

// expected-error @below {{expected '('}}
attn.problem @p mask layout(bshd) heads(8) dims(64) dtype(bf16)

// -----

attn.problem @p mask(#attn.full) layout(bshd) heads(8) dims(64) dtype(bf16)
// expected-error @below {{custom op 'attn.backward' expected a clause, got: `determinstic`, which is near `deterministic`; clauses are of(...) [deterministic] [partial_kv] [dlse] [delta] [float32_dq] [float32_dkv] [add_dq] [add_array_grads] [requires_grad(...)] [schedule(...)] [schedule_reason(...)]}}
attn.backward @g of(@p) determinstic

// -----

attn.problem @p mask(#attn.full) layout(bshd) heads(8) dims(64) dtype(bf16)
// expected-error @below {{expected each clause once, got: `dlse` again}}
attn.backward @g of(@p) dlse dlse

// -----

// expected-error @below {{expected a clause `of(...)`, got: none; clauses are of(...)}}
attn.backward @g dlse

// -----

// expected-error @below {{custom op 'attn.segments' expected a clause, got: `map`, which is near `maps`; clauses are mask(...) segments(...) [maps] [tiles(...)]}}
attn.segments @s mask(#attn.full) segments(4) map

// -----

// A clause, and once more what it says.
// expected-error @below {{expected a clause in place of an attribute in braces, got: `mask`}}
attn.problem @p mask(#attn.full) layout(bshd) heads(8) dims(64) dtype(bf16) {attn.note = "why", mask = #attn.causal}

// -----

// Of another op, and not near any of this one.
// expected-error @below {{custom op 'attn.problem' expected a clause, got: `maps`; clauses are mask(...)}}
attn.problem @p mask(#attn.full) layout(bshd) heads(8) dims(64) dtype(bf16) maps

// -----

// expected-error @below {{expected sym_visibility, or names with a dialect's prefix, in braces, got: `scael`}}
attn.problem @p mask(#attn.full) layout(bshd) heads(8) dims(64) dtype(bf16) {scael = 0.5}

// -----

// expected-error @below {{expected dtype `bf16`, `f16` or `f32`, got: `fp16`}}
attn.problem @p mask(#attn.full) layout(bshd) heads(8) dims(64) dtype(fp16)

// -----

// expected-error @below {{expected one number for both or two, got: more}}
attn.problem @p mask(#attn.full) layout(bshd) heads(8) dims(64) dtype(bf16) max_seqlen(1, 2, 3)

// -----

// expected-error @below {{expected `dropout(P, "SEED")`, SEED being the array of the seed, got: no array}}
attn.problem @p mask(#attn.full) layout(bshd) heads(8) dims(64) dtype(bf16) dropout(0.1)
