// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// RUN: attn-opt %s -split-input-file -verify-diagnostics

// expected-error @below {{`pieces` goes with layout `thd`, got: bshd}}
attn.problem @p mask(#attn.full) layout(bshd pieces) heads(8) dims(64) dtype(bf16)

// -----

// attn.problem, C17
// expected-error @below {{expected pieces of both q and k, or of neither, got: #attn.layout<thd pieces> and #attn.layout<thd>}}
attn.problem @p mask(#attn.full) layout(thd pieces, thd, thd, thd pieces) heads(8) dims(64) dtype(bf16)

// -----

// C17
// expected-error @below {{expected a mask without trees with layout(thd pieces), got: one that reads `parent`}}
attn.problem @p mask(#attn.ancestors<"parent">) layout(thd pieces) heads(8) dims(64) dtype(bf16)

// -----

// C17
// expected-error @below {{expected neither segments nor tiles with layout(thd pieces), got: tiles}}
attn.problem @p mask(#attn.full) layout(thd pieces) heads(8) dims(64) dtype(bf16) tiles(128)

// -----

// C17
// expected-error @below {{expected head dims up to 256 with layout(thd pieces), got: 512}}
attn.problem @p mask(#attn.full) layout(thd pieces) heads(8) dims(512) dtype(bf16)

// -----

// C18
// expected-error @below {{expected layout(thd pieces) with partial results, got: #attn.layout<thd>}}
attn.problem @p mask(#attn.full) layout(thd) heads(8) dims(64) dtype(bf16) partial(out)

// -----

// C18
// expected-error @below {{expected no sink with partial(out), got: 1.000000e+00}}
attn.problem @p mask(#attn.full) layout(thd pieces) heads(8) dims(64) dtype(bf16) sink(1.0) partial(out)

// -----

// C18
// expected-error @below {{expected outputs(o, lse) with partial results, got: outputs(o)}}
attn.problem @p mask(#attn.full) layout(thd pieces) heads(8) dims(64) dtype(bf16) outputs(o) partial(in)

// -----

// expected-error @below {{expected `in`, `out` or both once in `partial`, got: both}}
attn.problem @p mask(#attn.full) layout(thd pieces) heads(8) dims(64) dtype(bf16) partial(both)

// -----

// C19
// expected-error @below {{expected layout(thd pieces) with of_heads, got: #attn.layout<thd>}}
attn.problem @p mask(#attn.full) layout(thd) heads(4, 1) dims(64) dtype(bf16) of_heads(0, 8, 2)

// -----

// C19
// expected-error @below {{expected heads among those of of_heads, whose kv heads divide them, got: 4 heads from 6 of 8 on 2}}
attn.problem @p mask(#attn.full) layout(thd pieces) heads(4, 1) dims(64) dtype(bf16) of_heads(6, 8, 2)

// -----

// C19: two heads of one kv head, and two of the next.
// expected-error @below {{expected heads of whole kv heads or of a part of one, of which 4 query heads each read one, got: 4 from 2 on 1 kv heads}}
attn.problem @p mask(#attn.full) layout(thd pieces) heads(4, 1) dims(64) dtype(bf16) of_heads(2, 8, 2)

// -----

// expected-error @below {{expected the first head, and all heads and kv heads, got: 2 numbers}}
attn.problem @p mask(#attn.full) layout(thd pieces) heads(4, 1) dims(64) dtype(bf16) of_heads(2, 8)

// -----

// expected-note @below {{problem declared here}}
attn.problem @p mask(#attn.full) layout(thd pieces) heads(4, 1) dims(64) dtype(bf16) score([#attn.relative_bias<"bias", 64>]) sink("sinks")
// attn.backward, C8
// expected-error @below {{expected arrays of score modifiers in `requires_grad` with layout(thd pieces), got: sinks}}
attn.backward @g of(@p) requires_grad(["bias", "sinks"])

// -----

// expected-note @below {{problem declared here}}
attn.problem @p mask(#attn.full) layout(thd) heads(4, 1) dims(64) dtype(bf16) score([#attn.relative_bias<"bias", 64>])
// C8
// expected-error @below {{expected layout(thd pieces) with add_array_grads, got: #attn.layout<thd>}}
attn.backward @g of(@p) add_array_grads requires_grad(["bias"])

// -----

// expected-note @below {{problem declared here}}
attn.problem @p mask(#attn.full) layout(thd pieces) heads(4, 1) dims(64) dtype(bf16) score([#attn.relative_bias<"before_dbias", 4>, #attn.alibi<"bias">])
// C6
// expected-error @below {{expected another name for an array: a gradient has the name of another tensor, got: before_dbias}}
attn.backward @g of(@p) add_array_grads requires_grad(["bias"])

// -----

// expected-note @below {{problem declared here}}
attn.problem @p mask(#attn.full) layout(thd) heads(4, 1) dims(264) dtype(bf16)
// C7
// expected-error @below {{expected head dims up to 256 with add_dq, got: 264}}
attn.backward @g of(@p) add_dq

// -----

// expected-note @below {{problem declared here}}
attn.problem @p mask(#attn.full) layout(thd) heads(4, 1) dims(264) dtype(bf16)
// C7
// expected-error @below {{expected head dims up to 256 with delta, got: 264}}
attn.backward @g of(@p) delta

// -----

attn.problem @p mask(#attn.full) layout(thd) heads(4, 1) dims(64) dtype(bf16)
// C9
// expected-error @below {{expected delta without dlse, which is a part of it, got: both}}
attn.backward @g of(@p) delta dlse

// -----

// expected-note @below {{problem declared here}}
attn.problem @p mask(#attn.full) layout(thd) heads(4, 1) dims(64, 264) dtype(bf16)
// C7
// expected-error @below {{expected head dims up to 256 with float32 gradients, got: 264}}
attn.backward @g of(@p) float32_dkv

// -----

// attn.gather_rows, C1
// expected-error @below {{expected 1 to 64 parts, got: 65}}
attn.gather_rows @r parts(65) heads(8) dim(128) dtype(bf16)

// -----

// C2
// expected-error @below {{expected 1 to 65536 heads, got: 0}}
attn.gather_rows @r parts(1) heads(0) dim(128) dtype(bf16)

// -----

// C2
// expected-error @below {{expected a dim of 1 or a multiple of 8 up to 512, got: 12}}
attn.gather_rows @r parts(1) heads(1) dim(12) dtype(bf16)

// -----

// C3
// expected-error @below {{expected dtype bf16, f16 or f32, got: 'f64'}}
attn.gather_rows @r parts(1) heads(1) dim(8) dtype(f64)

// -----

// C3
// expected-error @below {{expected parts of 'bf16' or f32, got: 'f16'}}
attn.gather_rows @r parts(1) heads(1) dim(8) dtype(bf16) from(f16)

// -----

// C4
// expected-error @below {{expected an identifier as its name, got: "1st"}}
attn.gather_rows @"1st" parts(1) heads(1) dim(8) dtype(bf16)

// -----

// attn.problem, C20
// expected-error @below {{expected layout(thd pieces) with single_pieces, got: #attn.layout<thd>}}
attn.problem @p mask(#attn.full) layout(thd) heads(8) dims(64) dtype(bf16) single_pieces

// -----

// C20
// expected-error @below {{expected layout(thd pieces) with keep_padding, got: #attn.layout<bshd>}}
attn.problem @p mask(#attn.full) layout(bshd) heads(8) dims(64) dtype(bf16) keep_padding
