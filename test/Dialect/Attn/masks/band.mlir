// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// `#attn.band`: a row sees the keys near its diagonal.
//
// RUN: attn-opt %s -split-input-file -verify-diagnostics | FileCheck %s
// RUN: attn-opt %s -split-input-file -verify-diagnostics -mlir-print-op-generic | FileCheck %s --check-prefix=GENERIC
// RUN: attn-opt %s -split-input-file -verify-diagnostics --test-mask-laws="size=7" | FileCheck %s --check-prefix=LAWS

// LAWS: mask laws hold for 11 masks
// CHECK: mask(#attn.band<left = 1023, right = 0>)
// GENERIC: mask = #attn.band<left = 1023, right = 0>,
attn.problem @window mask(#attn.band<left = 1023, right = 0>) layout(bshd) heads(8) dims(64) dtype(bf16)
// CHECK: mask(#attn.band<left = 2>)
attn.problem @left mask(#attn.band<left = 2>) layout(bshd) heads(8) dims(64) dtype(bf16)
// CHECK: mask(#attn.band<right = 2>)
attn.problem @right mask(#attn.band<right = 2>) layout(bshd) heads(8) dims(64) dtype(bf16)
// Items stand in any order.
// CHECK: mask(#attn.band<left = 1, right = 2, bottom_right>)
// GENERIC: mask = #attn.band<left = 1, right = 2, bottom_right>,
attn.problem @order mask(#attn.band<bottom_right, right = 2, left = 1>) layout(bshd) heads(8) dims(64) dtype(bf16)
// CHECK: mask(#attn.band<left = 3, bottom_right>)
attn.problem @left_br mask(#attn.band<left = 3, bottom_right>) layout(bshd) heads(8) dims(64) dtype(bf16)
// CHECK: mask(#attn.band<right = -1, bottom_right>)
attn.problem @right_br mask(#attn.band<right = -1, bottom_right>) layout(bshd) heads(8) dims(64) dtype(bf16)
// Off the diagonal on either side.
// CHECK: mask(#attn.band<left = -1, right = 3>)
attn.problem @above mask(#attn.band<left = -1, right = 3>) layout(bshd) heads(8) dims(64) dtype(bf16)
// CHECK: mask(#attn.band<left = 4, right = -2>)
attn.problem @below mask(#attn.band<left = 4, right = -2>) layout(bshd) heads(8) dims(64) dtype(bf16)
// One key for each row: left + right = 0.
// CHECK: mask(#attn.band<left = 0, right = 0>)
attn.problem @diagonal mask(#attn.band<left = 0, right = 0>) layout(bshd) heads(8) dims(64) dtype(bf16)
// CHECK: mask(#attn.band<left = -2, right = 2>)
attn.problem @shifted mask(#attn.band<left = -2, right = 2>) layout(bshd) heads(8) dims(64) dtype(bf16)
// The ends of C3.
// CHECK: mask(#attn.band<left = 1073741824, right = -1073741824>)
attn.problem @limits mask(#attn.band<left = 1073741824, right = -1073741824>) layout(bshd) heads(8) dims(64) dtype(bf16)

// -----

// C1: at least one of `left` and `right` is given.
// expected-error @below {{expected a band with `left`, `right` or both (`#attn.full` has no bound)}}
attn.problem @p mask(#attn.band<bottom_right>) layout(bshd) heads(8) dims(64) dtype(bf16)

// -----

// C2: `left + right >= 0`.
// expected-error @below {{expected left + right >= 0 in a band (else no pair is visible), got: left = 2, right = -3}}
attn.problem @p mask(#attn.band<left = 2, right = -3>) layout(bshd) heads(8) dims(64) dtype(bf16)

// -----

// C3: each bound is within [-2^30, 2^30].
// expected-error @below {{expected `left` of a band within [-2^30, 2^30], got: 1073741825}}
attn.problem @p mask(#attn.band<left = 1073741825>) layout(bshd) heads(8) dims(64) dtype(bf16)

// -----

// C3
// expected-error @below {{expected `right` of a band within [-2^30, 2^30], got: -1073741825}}
attn.problem @p mask(#attn.band<left = 8, right = -1073741825>) layout(bshd) heads(8) dims(64) dtype(bf16)

// -----

// expected-error @below {{bound of a band given twice}}
attn.problem @p mask(#attn.band<left = 8, left = 9>) layout(bshd) heads(8) dims(64) dtype(bf16)

// -----

// expected-error @below {{expected `left = N`, `right = N`, `top_left` or `bottom_right`, got: width}}
attn.problem @p mask(#attn.band<width = 8>) layout(bshd) heads(8) dims(64) dtype(bf16)

// -----

// expected-error @below {{expected integer value}}
attn.problem @p mask(#attn.band<left = wide>) layout(bshd) heads(8) dims(64) dtype(bf16)

// -----

// C1, without brackets too.
// expected-error @below {{expected '<'}}
// expected-error @below {{expected a band with `left`, `right` or both}}
attn.problem @p mask(#attn.band) layout(bshd) heads(8) dims(64) dtype(bf16)
