// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: attn-opt %s -split-input-file -verify-diagnostics | FileCheck %s
// RUN: attn-opt %s -split-input-file -verify-diagnostics -mlir-print-op-generic | FileCheck %s --check-prefix=GENERIC
// What drops pairs, and each of its constraints.

// GENERIC: "tile.dropout"
// CHECK-LABEL: tile.kernel @drops
tile.kernel @drops(%seed: !tile.ptr<i32>) target("sm_80") grid(dense heads 1) schedule(#tile.tiled<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
  %c0 = arith.constant 0 : i32
  %s = tile.alloc "s" : !tile.frag<64x64, 4>
  %dp = tile.alloc "dp" : !tile.frag<64x64, 4>
  %p = tile.alloc "p" : !tile.register_operand<64x64xbf16, 4>
  %stats = tile.alloc "stats" : !tile.row_statistics<64>
  %few = tile.alloc "few" : !tile.simt_scores<2x4, 16>
  // CHECK: %[[DRAWS:.*]] = tile.dropout_state %seed of(%c0_i32, %c0_i32)
  %dropout_state = tile.dropout_state %seed of(%c0, %c0)
  // CHECK: %[[ALL:.*]] = tile.dropout_state %seed of(%c0_i32)
  %all = tile.dropout_state %seed of(%c0)
  // CHECK: tile.dropout %s at(%c0_i32, %c0_i32) dropout(%[[DRAWS]]) below 3277 : !tile.frag<64x64, 4>
  tile.dropout %s at(%c0, %c0) dropout(%dropout_state) below 3277 : !tile.frag<64x64, 4>
  // CHECK: tile.dropout %p at(%c0_i32, %c0_i32) dropout(%[[DRAWS]]) below 1 transposed marks : !tile.register_operand<64x64xbf16, 4>
  tile.dropout %p at(%c0, %c0) dropout(%dropout_state) below 1 transposed marks : !tile.register_operand<64x64xbf16, 4>
  %dropout_bits = tile.alloc "dropout_bits" : !tile.register_operand<64x64xbf16, 4>
  // CHECK: tile.dropout_bits %dropout_bits at(%c0_i32, %c0_i32) dropout(%[[DRAWS]]) below 3277 : !tile.register_operand<64x64xbf16, 4>
  tile.dropout_bits %dropout_bits at(%c0, %c0) dropout(%dropout_state) below 3277 : !tile.register_operand<64x64xbf16, 4>
  // CHECK: tile.apply_dropout_bits %p, %dropout_bits : !tile.register_operand<64x64xbf16, 4>
  tile.apply_dropout_bits %p, %dropout_bits : !tile.register_operand<64x64xbf16, 4>
  // CHECK: tile.dropout_grad_scores %dp, %p, %stats by 1.5{{.*}} transposed
  tile.dropout_grad_scores %dp, %p, %stats by 1.5 transposed : !tile.frag<64x64, 4>, !tile.register_operand<64x64xbf16, 4>, !tile.row_statistics<64>
  // CHECK: tile.dropout_grad_scores %dp, %s, %stats weighted(%p : !tile.register_operand<64x64xbf16, 4>) by 1.5
  tile.dropout_grad_scores %dp, %s, %stats weighted(%p : !tile.register_operand<64x64xbf16, 4>) by 1.5 : !tile.frag<64x64, 4>, !tile.frag<64x64, 4>, !tile.row_statistics<64>
  // CHECK: tile.dropout %few at(%c0_i32, %c0_i32) dropout(%[[DRAWS]]) below 16384 by 2.0{{.*}} : !tile.simt_scores<2x4, 16>
  tile.dropout %few at(%c0, %c0) dropout(%dropout_state) below 16384 by 2.0 : !tile.simt_scores<2x4, 16>
  %pairs = tile.pairs %c0, %c0 : !tile.pairs<2, i32>
  // CHECK: tile.dropout %p at(%{{.*}} heads 2, %c0_i32) dropout(%[[ALL]]) below 3277 : !tile.register_operand<64x64xbf16, 4>
  tile.dropout %p at(%pairs heads 2, %c0) dropout(%all) below 3277 : !tile.register_operand<64x64xbf16, 4>
}

// -----

tile.kernel @nothing(%seed: !tile.ptr<i32>) target("sm_80") grid(dense heads 1) schedule(#tile.tiled<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
  %c0 = arith.constant 0 : i32
  %s = tile.alloc "s" : !tile.frag<64x64, 4>
  %dropout_state = tile.dropout_state %seed of(%c0, %c0)
  // expected-error @below {{expected to drop what is below 1 to 2^15 - 1, got: 32768}}
  tile.dropout %s at(%c0, %c0) dropout(%dropout_state) below 32768 : !tile.frag<64x64, 4>
}

// -----

tile.kernel @multiplied(%seed: !tile.ptr<i32>) target("sm_80") grid(dense heads 1) schedule(#tile.tiled<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
  %c0 = arith.constant 0 : i32
  %p = tile.alloc "p" : !tile.register_operand<64x64xbf16, 4>
  %dropout_state = tile.dropout_state %seed of(%c0, %c0)
  // expected-error @below {{expected a fragment or scores to multiply, and none to mark, got: '!tile.register_operand<64x64xbf16, 4>'}}
  tile.dropout %p at(%c0, %c0) dropout(%dropout_state) below 1 by 2.0 : !tile.register_operand<64x64xbf16, 4>
}

// -----

tile.kernel @pairs(%seed: !tile.ptr<i32>) target("sm_80") grid(dense heads 1) schedule(#tile.tiled<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
  %c0 = arith.constant 0 : i32
  %s = tile.alloc "s" : !tile.frag<64x64, 4>
  %dropout_state = tile.dropout_state %seed of(%c0)
  %pairs = tile.pairs %c0, %c0 : !tile.pairs<2, i32>
  // expected-error @below {{expected pairs only where nothing is transposed or marked}}
  tile.dropout %s at(%pairs heads 2, %c0) dropout(%dropout_state) below 1 transposed : !tile.frag<64x64, 4>
}

// -----

tile.kernel @other_shape() target("sm_80") grid(dense heads 1) schedule(#tile.tiled<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
  %dp = tile.alloc "dp" : !tile.frag<64x64, 4>
  %p = tile.alloc "p" : !tile.register_operand<64x32xbf16, 4>
  %stats = tile.alloc "stats" : !tile.row_statistics<64>
  // expected-error @below {{expected probabilities and weights with the rows, columns and warps of '!tile.frag<64x64, 4>', got: '!tile.register_operand<64x32xbf16, 4>'}}
  tile.dropout_grad_scores %dp, %p, %stats by 1.5 : !tile.frag<64x64, 4>, !tile.register_operand<64x32xbf16, 4>, !tile.row_statistics<64>
}

// -----

tile.kernel @few_statistics() target("sm_80") grid(dense heads 1) schedule(#tile.tiled<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
  %dp = tile.alloc "dp" : !tile.frag<64x32, 4>
  %p = tile.alloc "p" : !tile.frag<64x32, 4>
  %stats = tile.alloc "stats" : !tile.row_statistics<64>
  // expected-error @below {{expected row statistics of 32 rows, got: '!tile.row_statistics<64>'}}
  tile.dropout_grad_scores %dp, %p, %stats by 1.5 transposed : !tile.frag<64x32, 4>, !tile.frag<64x32, 4>, !tile.row_statistics<64>
}
