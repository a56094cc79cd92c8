// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// `#attn.softcap`: scores level off at a cap.
//
// RUN: attn-opt %s -split-input-file -verify-diagnostics | FileCheck %s
// RUN: attn-opt %s -split-input-file -verify-diagnostics -mlir-print-op-generic | FileCheck %s --check-prefix=GENERIC

// CHECK: dtype(bf16) score([#attn.softcap<3.000000e+01>]){{ *$}}
// GENERIC: score = [#attn.softcap<3.000000e+01>],
attn.problem @capped mask(#attn.full) layout(bshd) heads(8) dims(64) dtype(bf16) score([#attn.softcap<30.0>])
// Digits that MLIR's short form would lose.
// CHECK: score([#attn.softcap<0.12345678901234568>])
attn.problem @digits mask(#attn.full) layout(thd) heads(8) dims(64) dtype(bf16) score([#attn.softcap<0.12345678901234568>])
// The ends of C1.
// CHECK: score([#attn.softcap<8.6736173798840355E-19>])
attn.problem @least mask(#attn.full) layout(bshd) heads(8) dims(64) dtype(bf16) score([#attn.softcap<0x3C30000000000000>])
// CHECK: score([#attn.softcap<1.152921504606847E+18>])
attn.problem @most mask(#attn.full) layout(bshd) heads(8) dims(64) dtype(bf16) score([#attn.softcap<0x43B0000000000000>])

// -----

// C1: the cap is from 2^-60 to 2^60.
// expected-error @below {{expected the cap of scores from 2^-60 to 2^60, got: 0.000000e+00}}
attn.problem @p mask(#attn.full) layout(bshd) heads(8) dims(64) dtype(bf16) score([#attn.softcap<0.0>])

// -----

// C1
// expected-error @below {{expected the cap of scores from 2^-60 to 2^60, got: -3.000000e+01}}
attn.problem @p mask(#attn.full) layout(bshd) heads(8) dims(64) dtype(bf16) score([#attn.softcap<-30.0>])

// -----

// C1
// expected-error @below {{expected the cap of scores from 2^-60 to 2^60, got: INF}}
attn.problem @p mask(#attn.full) layout(bshd) heads(8) dims(64) dtype(bf16) score([#attn.softcap<0x7FF0000000000000>])

// -----

// C1
// expected-error @below {{expected the cap of scores from 2^-60 to 2^60, got: nan}}
attn.problem @p mask(#attn.full) layout(bshd) heads(8) dims(64) dtype(bf16) score([#attn.softcap<0x7FF8000000000000>])

// -----

// C1
// expected-error @below {{expected the cap of scores from 2^-60 to 2^60, got: 2.000000e+18}}
attn.problem @p mask(#attn.full) layout(bshd) heads(8) dims(64) dtype(bf16) score([#attn.softcap<2.0e18>])

// -----

// expected-error @below {{expected floating point literal}}
attn.problem @p mask(#attn.full) layout(bshd) heads(8) dims(64) dtype(bf16) score([#attn.softcap<"30">])

// -----

// expected-error @below {{expected '<'}}
attn.problem @p mask(#attn.full) layout(bshd) heads(8) dims(64) dtype(bf16) score([#attn.softcap])
