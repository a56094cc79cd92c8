// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Elements of f32 are floats, and -inf is written to the padding of lse alone.
//
// RUN: attn-translate %s --target=cpu | FileCheck %s

// CHECK: (const float *q, const float *k, const float *v, float *o, float *lse,
// CHECK: attn::Smem<float, 64, 64, 72> Q(
// CHECK: attn::store_padding<64, 64, 32>(o_rows, o_row,
// CHECK: attn::store_padding_lse<64, 32>(
// CHECK: attn::store<64>(o_rows, o_row,
attn.problem @plain mask(#attn.causal) layout(thd) heads(8, 2) dims(64) dtype(f32)
