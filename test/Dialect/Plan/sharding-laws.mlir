// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// RUN: attn-opt %s --test-sharding-laws | FileCheck %s

// CHECK: #plan.contiguous: [[ALL:[0-9]+]] shapes, 0 refused
// CHECK-NEXT: #plan.dual_chunk: [[ALL]] shapes, 0 refused
// Slots that are no multiple of twice the ranks are refused, and no others.
// CHECK-NEXT: #plan.dual_chunk<padded>: [[ALL]] shapes, 17214 refused
// CHECK-NEXT: #plan.striped: [[ALL]] shapes, 0 refused
// CHECK-NEXT: #plan.striped<3>: [[ALL]] shapes, 0 refused
// CHECK-NEXT: #plan.documents: [[ALL]] shapes, 0 refused
// CHECK-NEXT: #plan.documents<0.000000e+00>: [[ALL]] shapes, 0 refused
// CHECK-NEXT: #plan.documents<2.500000e+00>: [[ALL]] shapes, 0 refused
module attributes {test.shardings = [#plan.contiguous, #plan.dual_chunk, #plan.dual_chunk<padded>, #plan.striped,
  #plan.striped<3>, #plan.documents, #plan.documents<0.0>, #plan.documents<2.5>]} {}
