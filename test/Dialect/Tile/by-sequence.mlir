// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Kernels whose blocks own sequences, and what their gradients are made of: what is written is what is read, and what is refused.
//
// RUN: rm -rf %t && split-file %s %t
// RUN: attn-opt %t/ops.mlir | attn-opt | FileCheck %t/ops.mlir
// RUN: attn-opt %t/ops.mlir -mlir-print-op-generic | attn-opt | FileCheck %t/ops.mlir
// RUN: attn-opt %t/errors.mlir -split-input-file -verify-diagnostics

//--- ops.mlir
// CHECK: grid(packed heads 8 tiles 2) schedule(#tile.cta_per_sequence<q_tile = 16, kv_tile = 16, warps = 1, ctas_per_sm = 12, pack_heads = 2>)
tile.kernel @grads(%lse: !tile.ptr<f32>, %n: i32, %stride: i64) target("sm_80")
    grid(packed heads 8 tiles 2) schedule(#tile.cta_per_sequence<q_tile = 16, kv_tile = 16, warps = 1, ctas_per_sm = 12, pack_heads = 2>) {
  %s = tile.alloc "s" : !tile.frag<16x16, 1>
  %dp = tile.alloc "dp" : !tile.frag<16x16, 1>
  %weighted = tile.alloc "weighted" : !tile.frag<16x16, 1>
  %stats = tile.alloc "stats" : !tile.row_statistics<16>
  %P = tile.alloc "P" : !tile.shared<16x16xbf16, 24>
  %dO = tile.alloc "dO" : !tile.shared<16x64xbf16, 72>
  %dV = tile.alloc "dV" : !tile.frag<16x64, 1>
  %rows = tile.pairs %stride, %stride : !tile.pairs<2, i64>
  %at = tile.pairs %n, %n : !tile.pairs<2, i32>
  // CHECK: tile.load_row_statistics %stats, %lse stride(%{{.*}} heads 2) dlse(%lse, %{{.*}} heads 2) rows(%n) : !tile.row_statistics<16>
  tile.load_row_statistics %stats, %lse stride(%rows heads 2) dlse(%lse, %rows heads 2) rows(%n) : !tile.row_statistics<16>
  // CHECK: tile.probabilities %s, %stats at(%{{.*}} heads 2, %n) weighted(%weighted : !tile.frag<16x16, 1>) scale 1.000000e+00
  tile.probabilities %s, %stats at(%at heads 2, %n) weighted(%weighted : !tile.frag<16x16, 1>) scale 1.0 : !tile.frag<16x16, 1>, !tile.row_statistics<16> modify {
  ^bb0(%score: f32, %q: i32, %k: i32, %base: i32, %column_offset: f32, %h: i32):
    tile.yield %score, %column_offset : f32, f32
  }
  // CHECK: tile.convert %P, %s : !tile.shared<16x16xbf16, 24>, !tile.frag<16x16, 1>
  tile.convert %P, %s : !tile.shared<16x16xbf16, 24>, !tile.frag<16x16, 1>
  // CHECK: tile.single_pass_grads %dp, %s, %stats weighted(%weighted : !tile.frag<16x16, 1>) : !tile.frag<16x16, 1>, !tile.row_statistics<16>
  tile.single_pass_grads %dp, %s, %stats weighted(%weighted : !tile.frag<16x16, 1>) : !tile.frag<16x16, 1>, !tile.row_statistics<16>
  // CHECK: tile.single_pass_grads %dp, %s, %stats : !tile.frag<16x16, 1>, !tile.row_statistics<16>
  tile.single_pass_grads %dp, %s, %stats : !tile.frag<16x16, 1>, !tile.row_statistics<16>
  // CHECK: tile.mma_atb %dV, %P, %dO : !tile.frag<16x64, 1>, !tile.shared<16x16xbf16, 24>, !tile.shared<16x64xbf16, 72>
  %t = tile.mma_atb %dV, %P, %dO : !tile.frag<16x64, 1>, !tile.shared<16x16xbf16, 24>, !tile.shared<16x64xbf16, 72>
  tile.wait %t : !tile.token<product>
}

//--- errors.mlir
// tile.kernel C5
// expected-error @below {{got: #tile.cta_per_sequence<q_tile = 16, kv_tile = 16, warps = 1, ctas_per_sm = 1> without}}
tile.kernel @k() target("cpu") grid(dense heads 1) schedule(#tile.cta_per_sequence<q_tile = 16, kv_tile = 16, warps = 1, ctas_per_sm = 1>) {
}

// -----

tile.kernel @k(%lse: !tile.ptr<f32>, %n: i32, %stride: i64) target("sm_80") grid(packed heads 8 tiles 2)
    schedule(#tile.cta_per_sequence<q_tile = 16, kv_tile = 16, warps = 1, ctas_per_sm = 12>) {
  %stats = tile.alloc "stats" : !tile.row_statistics<16>
  // expected-error @below {{expected strides of both lse and dlse, or of neither, got: that of lse}}
  tile.load_row_statistics %stats, %lse stride(%stride) dlse(%lse) rows(%n) : !tile.row_statistics<16>
}

// -----

tile.kernel @k(%n: i32) target("sm_80") grid(packed heads 8 tiles 2)
    schedule(#tile.cta_per_sequence<q_tile = 16, kv_tile = 16, warps = 1, ctas_per_sm = 12>) {
  %s = tile.alloc "s" : !tile.frag<16x16, 1>
  %stats = tile.alloc "stats" : !tile.row_statistics<16>
  %at = tile.pairs %n, %n : !tile.pairs<2, i32>
  // expected-error @below {{expected rows of queries where they are pairs, got: transposed with '!tile.pairs<2, i32>'}}
  tile.probabilities %s, %stats at(%at heads 2, %n) scale 1.0 transposed : !tile.frag<16x16, 1>, !tile.row_statistics<16>
}

// -----

tile.kernel @k(%n: i32) target("sm_80") grid(packed heads 8 tiles 2)
    schedule(#tile.cta_per_sequence<q_tile = 16, kv_tile = 16, warps = 1, ctas_per_sm = 12>) {
  %s = tile.alloc "s" : !tile.frag<16x16, 1>
  %stats = tile.alloc "stats" : !tile.row_statistics<16>
  %at = tile.pairs %n, %n : !tile.pairs<2, i32>
  // expected-error @below {{expected a region over (score f32, row i32, column i32, base i32, ahead f32, head i32) that yields a score and its derivative of type f32}}
  tile.probabilities %s, %stats at(%at heads 2, %n) scale 1.0 : !tile.frag<16x16, 1>, !tile.row_statistics<16> modify {
  ^bb0(%score: f32, %q: i32, %k: i32, %base: i32, %column_offset: f32):
    tile.yield %score, %column_offset : f32, f32
  }
}

// -----

tile.kernel @k() target("sm_80") grid(packed heads 8 tiles 2)
    schedule(#tile.cta_per_sequence<q_tile = 16, kv_tile = 16, warps = 1, ctas_per_sm = 12>) {
  %s = tile.alloc "s" : !tile.frag<16x16, 1>
  %P = tile.alloc "P" : !tile.shared<17x32xbf16, 40>
  // expected-error @below {{expected as many rows, and columns, in a tile that is not swizzled, got: '!tile.shared<17x32xbf16, 40>' and '!tile.frag<16x16, 1>'}}
  tile.convert %P, %s : !tile.shared<17x32xbf16, 40>, !tile.frag<16x16, 1>
}

// -----

tile.kernel @k() target("sm_80") grid(packed heads 8 tiles 2)
    schedule(#tile.cta_per_sequence<q_tile = 16, kv_tile = 16, warps = 1, ctas_per_sm = 12>) {
  %s = tile.alloc "s" : !tile.frag<16x16, 1>
  %w = tile.alloc "w" : !tile.frag<16x32, 1>
  %stats = tile.alloc "stats" : !tile.row_statistics<16>
  // expected-error @below {{expected weighted of type '!tile.frag<16x16, 1>', got: '!tile.frag<16x32, 1>'}}
  tile.single_pass_grads %s, %s, %stats weighted(%w : !tile.frag<16x32, 1>) : !tile.frag<16x16, 1>, !tile.row_statistics<16>
}

// -----

tile.kernel @k() target("sm_80") grid(packed heads 8 tiles 2)
    schedule(#tile.cta_per_sequence<q_tile = 16, kv_tile = 16, warps = 1, ctas_per_sm = 12>) {
  %s = tile.alloc "s" : !tile.frag<16x16, 1>
  %stats = tile.alloc "stats" : !tile.row_statistics<32>
  // expected-error @below {{expected row statistics of all rows of '!tile.frag<16x16, 1>', got: '!tile.row_statistics<32>'}}
  tile.single_pass_grads %s, %s, %stats : !tile.frag<16x16, 1>, !tile.row_statistics<32>
}

// -----

tile.kernel @k() target("sm_80") grid(dense heads 1 tiles 1) schedule(#tile.simt_rows<rows = 1, keys = 4, lanes = 16, warps = 4, ctas_per_sm = 4>) {
  %s = tile.alloc "s" : !tile.simt_scores<1x4, 16>
  %w = tile.alloc "w" : !tile.simt_scores<1x2, 16>
  %row = tile.alloc "row" : !tile.simt_softmax_state<1, 16>
  // expected-error @below {{expected weighted of type '!tile.simt_scores<1x4, 16>', got: '!tile.simt_scores<1x2, 16>'}}
  tile.accumulate_delta %s, %s, %row weighted(%w : !tile.simt_scores<1x2, 16>) : !tile.simt_scores<1x4, 16>, !tile.simt_softmax_state<1, 16>
}
