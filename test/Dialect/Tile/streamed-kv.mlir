// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What gradients of rows at rest need while keys pass by. Error cases follow below.
//
// RUN: rm -rf %t && split-file %s %t
// RUN: attn-opt %t/ops.mlir | attn-opt | FileCheck %t/ops.mlir
// RUN: attn-opt %t/errors.mlir -split-input-file -verify-diagnostics
// RUN: attn-opt %t/async.mlir -split-input-file -tile-verify-async -verify-diagnostics

//--- ops.mlir
tile.kernel @k(%o: !tile.ptr<bf16>, %dv: !tile.ptr<bf16>, %row: i64, %n: i32) target("sm_90a") grid(packed heads 1 tiles 1)
    schedule(#tile.stationary_q_backward<q_tile = 208, kv_tile = 64, kv_tiles = 4, warps = 8, ctas_per_sm = 1, stages = 2>) {
  %Q = tile.alloc "Q" : !tile.shared<208x128xbf16, swizzled>
  %dO = tile.alloc "dO" : !tile.shared<208x128xbf16, swizzled>
  %K = tile.alloc "K" : !tile.shared<64x128xbf16, swizzled>
  %P = tile.alloc "P" : !tile.ring<1, !tile.shared<208x64xbf16, swizzled>>
  %dS = tile.alloc "dS" : !tile.ring<1, !tile.shared<208x64xbf16, swizzled>>
  %s = tile.alloc "s" : !tile.frag<128x64, 8>
  %dp = tile.alloc "dp" : !tile.frag<128x64, 8>
  %probabilities = tile.alloc "probabilities" : !tile.register_operand<128x64xbf16, 8>
  %stats = tile.alloc "stats" : !tile.softmax_state<128, 8>
  %O = tile.alloc "O" : !tile.register_operand<128x128xbf16, 8>
  %sum = tile.alloc "sum" : !tile.frag<64x64, 4>
  // CHECK: tile.load_rows %O, %o stride(%row) rows(%n) dim 104 : !tile.register_operand<128x128xbf16, 8>, !tile.ptr<bf16>
  tile.load_rows %O, %o stride(%row) rows(%n) dim 104 : !tile.register_operand<128x128xbf16, 8>, !tile.ptr<bf16>
  // CHECK: tile.add_delta %stats, %O, %dO first 128 : !tile.softmax_state<128, 8>, !tile.register_operand<128x128xbf16, 8>, !tile.shared<208x128xbf16, swizzled>
  tile.add_delta %stats, %O, %dO first 128 : !tile.softmax_state<128, 8>, !tile.register_operand<128x128xbf16, 8>, !tile.shared<208x128xbf16, swizzled>
  // CHECK: tile.add_delta %stats, %Q, %dO first 0 : !tile.softmax_state<128, 8>, !tile.shared<208x128xbf16, swizzled>, !tile.shared<208x128xbf16, swizzled>
  tile.add_delta %stats, %Q, %dO first 0 : !tile.softmax_state<128, 8>, !tile.shared<208x128xbf16, swizzled>, !tile.shared<208x128xbf16, swizzled>
  // CHECK: tile.mma_abt %s, %Q first 128, %K : !tile.frag<128x64, 8>, !tile.shared<208x128xbf16, swizzled>, !tile.shared<64x128xbf16, swizzled>
  %t = tile.mma_abt %s, %Q first 128, %K : !tile.frag<128x64, 8>, !tile.shared<208x128xbf16, swizzled>, !tile.shared<64x128xbf16, swizzled>
  tile.wait %t : !tile.token<product>
  // CHECK: tile.single_pass_grads %dp, %s, %stats known : !tile.frag<128x64, 8>, !tile.softmax_state<128, 8>
  tile.single_pass_grads %dp, %s, %stats known : !tile.frag<128x64, 8>, !tile.softmax_state<128, 8>
  // CHECK: tile.single_pass_grads %dp, %s, %stats known dropped by 1.250000e+00 : !tile.frag<128x64, 8>, !tile.softmax_state<128, 8>
  tile.single_pass_grads %dp, %s, %stats known dropped by 1.25 : !tile.frag<128x64, 8>, !tile.softmax_state<128, 8>
  // CHECK: tile.producer_store %P, %s first 0 : !tile.ring<1, <208x64xbf16, swizzled>>, !tile.frag<128x64, 8>
  tile.producer_store %P, %s first 0 : !tile.ring<1, <208x64xbf16, swizzled>>, !tile.frag<128x64, 8>
  // CHECK: tile.producer_store %P, %probabilities first 128 : !tile.ring<1, <208x64xbf16, swizzled>>, !tile.register_operand<128x64xbf16, 8>
  tile.producer_store %P, %probabilities first 128 : !tile.ring<1, <208x64xbf16, swizzled>>, !tile.register_operand<128x64xbf16, 8>
  %p = tile.consumer_wait %P : !tile.ring<1, <208x64xbf16, swizzled>>
  %ds = tile.consumer_wait %dS : !tile.ring<1, <208x64xbf16, swizzled>>
  // CHECK: tile.mma_atb_slice %sum, (%P_tile, %dS_tile), (%dO, %Q) at(%n) blocks(%n, %n) : !tile.frag<64x64, 4>, (
  %u = tile.mma_atb_slice %sum, (%p, %ds), (%dO, %Q) at(%n) blocks(%n, %n) : !tile.frag<64x64, 4>, (!tile.shared<208x64xbf16, swizzled>, !tile.shared<208x64xbf16, swizzled>),
      (!tile.shared<208x128xbf16, swizzled>, !tile.shared<208x128xbf16, swizzled>)
  tile.wait %u : !tile.token<product>
  // CHECK: tile.store_slice(%dv, %dv) strides(%row, %row), %sum at(%n) rows(%n, %n) factors [1.000000e+00, 1.250000e-01] dims [128, 104] :
  tile.store_slice (%dv, %dv) strides(%row, %row), %sum at(%n) rows(%n, %n) factors [1.0, 0.125] dims [128, 104]
      : (!tile.ptr<bf16>, !tile.ptr<bf16>), !tile.frag<64x64, 4>
}

//--- errors.mlir
tile.kernel @k(%o: !tile.ptr<bf16>, %row: i64, %n: i32) target("sm_90a") grid(packed heads 1 tiles 1)
    schedule(#tile.stationary_q_backward<q_tile = 144, kv_tile = 48, kv_tiles = 3, warps = 12, ctas_per_sm = 1, stages = 2>) {
  %O = tile.alloc "O" : !tile.register_operand<192x112xbf16, 12>
  // tile.load_rows C1
  // expected-error @below {{expected 16 rows a warp of `dim` columns, rounded up to 32, of the pointer's element type, and one stride, got: '!tile.register_operand<192x112xbf16, 12>', dim 112, 'bf16'}}
  tile.load_rows %O, %o stride(%row) rows(%n) dim 112 : !tile.register_operand<192x112xbf16, 12>, !tile.ptr<bf16>
}

// -----

tile.kernel @k(%n: i32) target("sm_90a") grid(packed heads 1 tiles 1) schedule(#tile.stationary_q_backward<q_tile = 144, kv_tile = 48, kv_tiles = 3, warps = 12, ctas_per_sm = 1, stages = 2>) {
  %O = tile.alloc "O" : !tile.register_operand<192x128xbf16, 12>
  %stats = tile.alloc "stats" : !tile.softmax_state<192, 12>
  %dO = tile.alloc "dO" : !tile.shared<208x128xbf16, swizzled>
  // tile.add_delta C1
  // expected-error @below {{expected rows of statistics, 16 a warp, a swizzled tile of as many or fewer, and O as one, or a register operand, of as many columns, got: '!tile.softmax_state<192, 12>', '!tile.shared<208x128xbf16, swizzled>' and '!tile.register_operand<192x128xbf16, 12>'}}
  tile.add_delta %stats, %O, %dO : !tile.softmax_state<192, 12>, !tile.register_operand<192x128xbf16, 12>, !tile.shared<208x128xbf16, swizzled>
}

// -----

tile.kernel @k(%n: i32) target("sm_90a") grid(packed heads 1 tiles 1) schedule(#tile.stationary_q_backward<q_tile = 144, kv_tile = 48, kv_tiles = 3, warps = 12, ctas_per_sm = 1, stages = 2>) {
  %O = tile.alloc "O" : !tile.shared<192x128xbf16, swizzled>
  %stats = tile.alloc "stats" : !tile.softmax_state<192, 12>
  %dO = tile.alloc "dO" : !tile.shared<144x128xbf16, swizzled>
  // A tile of O has the rows of dO's.
  // expected-error @below {{expected rows of statistics, 16 a warp, a swizzled tile of as many or fewer, and O as one, or a register operand, of as many columns, got: '!tile.softmax_state<192, 12>', '!tile.shared<144x128xbf16, swizzled>' and '!tile.shared<192x128xbf16, swizzled>'}}
  tile.add_delta %stats, %O, %dO : !tile.softmax_state<192, 12>, !tile.shared<192x128xbf16, swizzled>, !tile.shared<144x128xbf16, swizzled>
}

// -----

tile.kernel @k(%n: i32) target("sm_90a") grid(packed heads 1 tiles 1) schedule(#tile.stationary_q_backward<q_tile = 208, kv_tile = 64, kv_tiles = 4, warps = 8, ctas_per_sm = 1, stages = 2>) {
  %Q = tile.alloc "Q" : !tile.shared<208x128xbf16, swizzled>
  %K = tile.alloc "K" : !tile.shared<64x128xbf16, swizzled>
  %s = tile.alloc "s" : !tile.frag<128x64, 8>
  // expected-error @below {{expected s to be Q's rows by K's rows over equal columns}}
  %t = tile.mma_abt %s, %Q first 256, %K : !tile.frag<128x64, 8>, !tile.shared<208x128xbf16, swizzled>, !tile.shared<64x128xbf16, swizzled>
}

// -----

tile.kernel @k(%n: i32) target("sm_90a") grid(packed heads 1 tiles 1) schedule(#tile.stationary_q_backward<q_tile = 208, kv_tile = 64, kv_tiles = 4, warps = 8, ctas_per_sm = 1, stages = 2>) {
  %P = tile.alloc "P" : !tile.ring<1, !tile.shared<208x64xbf16, swizzled>>
  %s = tile.alloc "s" : !tile.frag<128x64, 8>
  // Without `first` all rows are put.
  // expected-error @below {{expected a ring of tiles with room for '!tile.frag<128x64, 8>'}}
  tile.producer_store %P, %s : !tile.ring<1, <208x64xbf16, swizzled>>, !tile.frag<128x64, 8>
}

// -----

tile.kernel @k(%n: i32) target("sm_90a") grid(packed heads 1 tiles 1) schedule(#tile.stationary_q_backward<q_tile = 144, kv_tile = 48, kv_tiles = 3, warps = 12, ctas_per_sm = 1, stages = 2>) {
  %P = tile.alloc "P" : !tile.shared<144x128xbf16, swizzled>
  %dO = tile.alloc "dO" : !tile.shared<144x128xbf16, swizzled>
  %sum = tile.alloc "sum" : !tile.frag<64x64, 4>
  // tile.mma_atb_slice C1
  // expected-error @below {{expected pairs of swizzled tiles of as many rows, the left one with 64 columns, the right one with as many as the fragment, rounded up, or several times that, and a fragment of 64 x 64 or 64 x 128 in 4 warps, got: '!tile.frag<64x64, 4>'}}
  %t = tile.mma_atb_slice %sum, (%P), (%dO) at(%n) blocks(%n, %n) : !tile.frag<64x64, 4>, (!tile.shared<144x128xbf16, swizzled>), (!tile.shared<144x128xbf16, swizzled>)
}

// -----

tile.kernel @k(%n: i32) target("sm_90a") grid(packed heads 1 tiles 1) schedule(#tile.stationary_q_backward<q_tile = 144, kv_tile = 48, kv_tiles = 3, warps = 12, ctas_per_sm = 1, stages = 2>) {
  %P = tile.alloc "P" : !tile.shared<144x64xbf16, swizzled>
  %dO = tile.alloc "dO" : !tile.shared<144x64xbf16, swizzled>
  %sum = tile.alloc "sum" : !tile.frag<64x128, 4>
  // A piece is of one product.
  // expected-error @below {{expected pairs of swizzled tiles of as many rows, the left one with 64 columns, the right one with as many as the fragment, rounded up, or several times that, and a fragment of 64 x 64 or 64 x 128 in 4 warps, got: '!tile.frag<64x128, 4>'}}
  %t = tile.mma_atb_slice %sum, (%P), (%dO) at(%n) blocks(%n, %n) : !tile.frag<64x128, 4>, (!tile.shared<144x64xbf16, swizzled>), (!tile.shared<144x64xbf16, swizzled>)
}

// -----

tile.kernel @k(%dv: !tile.ptr<bf16>, %row: i64, %n: i32) target("sm_90a") grid(packed heads 1 tiles 1)
    schedule(#tile.stationary_q_backward<q_tile = 144, kv_tile = 48, kv_tiles = 3, warps = 12, ctas_per_sm = 1, stages = 2>) {
  %sum = tile.alloc "sum" : !tile.frag<64x64, 4>
  // tile.store_slice C1
  // expected-error @below {{expected as many factors and dims as products, got: 2 and 1 for 1}}
  tile.store_slice (%dv) strides(%row), %sum at(%n) rows(%n, %n) factors [1.0, 0.125] dims [128] : (!tile.ptr<bf16>), !tile.frag<64x64, 4>
}

// -----

tile.kernel @k(%n: i32) target("sm_90a") grid(packed heads 1 tiles 1) schedule(#tile.stationary_q_backward<q_tile = 208, kv_tile = 64, kv_tiles = 4, warps = 8, ctas_per_sm = 1, stages = 2>) {
  %P = tile.alloc "P" : !tile.ring<1, !tile.shared<208x64xbf16, swizzled>>
  %s = tile.alloc "s" : !tile.frag<128x64, 8>
  // Rows of a warp begin at multiples of 16.
  // expected-error @below {{expected a ring of tiles with room for '!tile.frag<128x64, 8>'}}
  tile.producer_store %P, %s first 3 : !tile.ring<1, <208x64xbf16, swizzled>>, !tile.frag<128x64, 8>
}

// -----

tile.kernel @k(%n: i32) target("sm_90a") grid(packed heads 1 tiles 1) schedule(#tile.stationary_q_backward<q_tile = 208, kv_tile = 64, kv_tiles = 4, warps = 8, ctas_per_sm = 1, stages = 2>) {
  %Q = tile.alloc "Q" : !tile.shared<208x128xbf16, swizzled>
  %K = tile.alloc "K" : !tile.shared<64x128xbf16, swizzled>
  %s = tile.alloc "s" : !tile.frag<128x64, 8>
  // expected-error @below {{expected s to be Q's rows by K's rows over equal columns}}
  %t = tile.mma_abt %s, %Q first 100, %K : !tile.frag<128x64, 8>, !tile.shared<208x128xbf16, swizzled>, !tile.shared<64x128xbf16, swizzled>
}

//--- async.mlir
tile.kernel @k(%n: i32) target("sm_90a") grid(packed heads 1 tiles 1) schedule(#tile.stationary_q_backward<q_tile = 208, kv_tile = 64, kv_tiles = 4, warps = 8, ctas_per_sm = 1, stages = 2>) {
  %P = tile.alloc "P" : !tile.ring<1, !tile.shared<208x64xbf16, swizzled>>
  %s = tile.alloc "s" : !tile.frag<128x64, 8>
  // expected-note @below {{of which this one is not committed}}
  tile.producer_store %P, %s first 0 : !tile.ring<1, <208x64xbf16, swizzled>>, !tile.frag<128x64, 8>
  tile.producer_store %P, %s first 128 : !tile.ring<1, <208x64xbf16, swizzled>>, !tile.frag<128x64, 8>
  // expected-error @below {{stores a tile into `P`}}
  tile.producer_store %P, %s first 64 : !tile.ring<1, <208x64xbf16, swizzled>>, !tile.frag<128x64, 8>
  tile.producer_commit %P : !tile.ring<1, <208x64xbf16, swizzled>>
}

// -----

tile.kernel @k(%n: i32) target("sm_90a") grid(packed heads 1 tiles 1) schedule(#tile.stationary_q_backward<q_tile = 208, kv_tile = 64, kv_tiles = 4, warps = 8, ctas_per_sm = 1, stages = 2>) {
  %P = tile.alloc "P" : !tile.ring<1, !tile.shared<208x64xbf16, swizzled>>
  %s = tile.alloc "s" : !tile.frag<128x64, 8>
  // expected-note @below {{of which this one is not committed}}
  tile.producer_store %P : !tile.ring<1, <208x64xbf16, swizzled>>
  // expected-error @below {{stores a tile into `P`}}
  tile.producer_store %P, %s first 128 : !tile.ring<1, <208x64xbf16, swizzled>>, !tile.frag<128x64, 8>
}

// -----

tile.kernel @k(%n: i32) target("sm_90a") grid(packed heads 1 tiles 1) schedule(#tile.stationary_q_backward<q_tile = 208, kv_tile = 64, kv_tiles = 4, warps = 8, ctas_per_sm = 1, stages = 2>) {
  %P = tile.alloc "P" : !tile.ring<1, !tile.shared<208x64xbf16, swizzled>>
  %s = tile.alloc "s" : !tile.frag<128x64, 8>
  tile.producer_store %P, %s first 128 : !tile.ring<1, <208x64xbf16, swizzled>>, !tile.frag<128x64, 8>
  // expected-error @below {{commits a tile of which 80 of 208 rows were stored}}
  tile.producer_commit %P : !tile.ring<1, <208x64xbf16, swizzled>>
  %p = tile.consumer_wait %P : !tile.ring<1, <208x64xbf16, swizzled>>
  tile.consumer_release %P : !tile.ring<1, <208x64xbf16, swizzled>>
}
