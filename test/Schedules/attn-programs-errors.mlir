// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Calls of a program that disagree.
//
// RUN: attn-opt %s -split-input-file -verify-diagnostics -attn-choose-schedule=target=cpu -convert-attn-to-tile

attn.add @sum parts(2) layout(thd) heads(4) dim(8) dtype(f32)
attn.program @p {
  %k = attn.operand "k"
  // expected-error @below {{expected the operand `part_1` of @sum, got: none}}
  %s = attn.call @sum(part_0 = %k) -> (result)
  attn.result "a" = %s
}

// -----

attn.add @sum parts(1) layout(thd) heads(4) dim(8) dtype(f32)
attn.program @p {
  %k = attn.operand "k"
  // expected-error @below {{expected operands `part_0` of @sum, got: `part_1`}}
  %s = attn.call @sum(part_0 = %k, part_1 = %k) -> (result)
  attn.result "a" = %s
}

// -----

attn.add @sum parts(1) layout(thd) heads(4) dim(8) dtype(f32)
attn.program @p {
  %k = attn.operand "k"
  // expected-error @below {{expected results `result` of @sum, got: `sum`}}
  %s = attn.call @sum(part_0 = %k) -> (sum)
  attn.result "a" = %s
}

// -----

attn.add @sum parts(1) layout(thd) heads(4) dim(8) dtype(f32)
attn.program @p {
  // expected-error @below {{expected a call that reads `unused`, got: none}}
  %u = attn.operand "unused"
  %k = attn.operand "k"
  %s = attn.call @sum(part_0 = %k) -> (result)
  attn.result "a" = %s
}

// -----

attn.add @wide parts(1) layout(thd) heads(4) dim(8) dtype(f32)
attn.add @narrow parts(1) layout(thd) heads(4) dim(8) dtype(f16)
attn.program @p {
  %k = attn.operand "k"
  %s = attn.call @wide(part_0 = %k) -> (result)
  // expected-error @below {{expected f16 for `part_0` of @narrow, got: f32, as `wide_result` is}}
  %t = attn.call @narrow(part_0 = %s) -> (result)
  attn.result "a" = %t
}

// -----

attn.add @dense parts(1) layout(bshd) heads(4) dim(8) dtype(f32)
attn.add @packed parts(1) layout(thd) heads(4) dim(8) dtype(f32)
attn.program @p {
  %k = attn.operand "k"
  %s = attn.call @dense(part_0 = %k) -> (result)
  // expected-error @below {{expected 3 axes for `part_0` of @packed, got: 4, as `dense_result` has}}
  %t = attn.call @packed(part_0 = %s) -> (result)
  attn.result "a" = %t
}

// -----

attn.add @four parts(1) layout(thd) heads(4) dim(8) dtype(f32)
attn.add @two parts(1) layout(thd) heads(2) dim(8) dtype(f32)
attn.program @p {
  %k = attn.operand "k"
  %s = attn.call @four(part_0 = %k) -> (result)
  // expected-error @below {{expected the extent 2 for `part_0` of @two, got: 4, as `four_result` has}}
  %t = attn.call @two(part_0 = %s) -> (result)
  attn.result "a" = %t
}

// -----

attn.problem @ids mask(#attn.causal) layout(thd padded) heads(4) dims(64) dtype(f32) segments(4)
attn.program @p {
  %q = attn.operand "q"
  %ids = attn.operand "ids"
  // expected-error @below {{expected a callee without ids, got: @ids}}
  %o = attn.call @ids(q = %q, k = %q, v = %q, ids_q = %ids, ids_kv = %ids, positions_q = %ids, positions_kv = %ids) -> (o)
  attn.result "o" = %o
}

// -----

// Arrays are operands.
attn.compress @pool mean length(32) stride(16) layout(thd) heads(2) dims(64) dtype(bf16)
attn.program @p {
  %k = attn.operand "k"
  // expected-error @below {{expected the operand `cu_seqlens` of @pool, got: none}}
  %y = attn.call @pool(k = %k, v = %k) -> (compressed_k)
  attn.result "y" = %y
}

// -----

// Operands are no results.
attn.add @sum parts(1) layout(thd) heads(2) dim(64) dtype(bf16)
attn.program @p {
  %x = attn.operand "x"
  // expected-error @below {{expected results `result` of @sum, got: `part_0`}}
  %y = attn.call @sum(part_0 = %x) -> (part_0)
  attn.result "y" = %y
}

// -----

// An operand of two calls has one dtype.
attn.add @a parts(1) layout(thd) heads(2) dim(64) dtype(bf16)
attn.add @b parts(2) layout(thd) heads(2) dim(64) dtype(f16)
attn.program @p {
  %x = attn.operand "x"
  %y = attn.call @a(part_0 = %x) -> (result)
  // expected-error @below {{expected f16 for `part_0` of @b, got: bf16, as `x` is}}
  %z = attn.call @b(part_0 = %x, part_1 = %y) -> (result)
  attn.result "z" = %z
}

// -----

attn.add @a parts(1) layout(thd) heads(2) dim(64) dtype(bf16)
attn.add @b parts(1) layout(thd) heads(2) dim(128) dtype(bf16)
attn.program @p {
  %x = attn.operand "x"
  %y = attn.call @a(part_0 = %x) -> (result)
  // expected-error @below {{expected the extent 128 for `part_0` of @b, got: 64, as `x` has}}
  %z = attn.call @b(part_0 = %x) -> (result)
  attn.result "z" = %z
}

// -----

// Windows are no tokens.
attn.compress @pool mean length(32) stride(16) layout(thd) heads(2) dims(64) dtype(bf16)
attn.add @sum parts(2) layout(thd) heads(2) dim(64) dtype(bf16)
attn.program @p {
  %k = attn.operand "k"
  %cu = attn.operand "cu"
  %c = attn.call @pool(k = %k, v = %k, cu_seqlens = %cu) -> (compressed_k)
  // expected-error @below {{expected the extent floor_div(total_kv, 16) for `part_1` of @sum, got: total_kv, as `k` has}}
  %y = attn.call @sum(part_0 = %c, part_1 = %k) -> (result)
  attn.result "y" = %y
}
