// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Sinks, and what gradients of arrays are made with.
//
// RUN: attn-opt %s -split-input-file -verify-diagnostics | FileCheck %s
// RUN: attn-opt %s -split-input-file -verify-diagnostics | attn-opt -split-input-file -verify-diagnostics | FileCheck %s

tile.kernel @k(%to: !tile.ptr<f32>, %from: !tile.ptr<f32>, %pitch: i64, %n: i32, %x: f32) target("sm_80") grid(dense heads 1)
    schedule(#tile.tiled<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
  %acc = tile.alloc "acc" : !tile.frag<64x64, 4>
  %dp = tile.alloc "dp" : !tile.frag<64x64, 4>
  %row = tile.alloc "row" : !tile.softmax_state<64, 4>
  %place = tile.alloc "place" : !tile.shared<64x128xbf16, 136>
  // CHECK: tile.add_sink %acc, %row at(%n) : !tile.frag<64x64, 4>, !tile.softmax_state<64, 4> {
  // CHECK-NEXT: tile.yield %x : f32
  tile.add_sink %acc, %row at(%n) : !tile.frag<64x64, 4>, !tile.softmax_state<64, 4> {
    tile.yield %x : f32
  }
  // CHECK: tile.accumulate %acc, %dp : !tile.frag<64x64, 4>
  tile.accumulate %acc, %dp : !tile.frag<64x64, 4>
  // CHECK: tile.store_sums %to, %acc : !tile.ptr<f32>, !tile.frag<64x64, 4>
  tile.store_sums %to, %acc : !tile.ptr<f32>, !tile.frag<64x64, 4>
  // CHECK: tile.store_corner %to stride(%pitch) rows(%n) cols(%n), %acc : !tile.frag<64x64, 4>
  tile.store_corner %to stride(%pitch) rows(%n) cols(%n), %acc : !tile.frag<64x64, 4>
  // CHECK: tile.store_sums %to, %acc pitch(%pitch) through(%place : !tile.shared<64x128xbf16, 136>) : !tile.ptr<f32>, !tile.frag<64x64, 4>
  tile.store_sums %to, %acc pitch(%pitch) through(%place : !tile.shared<64x128xbf16, 136>) : !tile.ptr<f32>, !tile.frag<64x64, 4>
  // CHECK: tile.clear %to : !tile.ptr<f32>
  tile.clear %to : !tile.ptr<f32>
  // CHECK: tile.copy_number %to, %from
  tile.copy_number %to, %from
  // CHECK: tile.add_total %to, %from count(%n)
  tile.add_total %to, %from count(%n)
  // CHECK: tile.add_sink_grad %to, %from pitch(%pitch) count(%n) sink(%x)
  tile.add_sink_grad %to, %from pitch(%pitch) count(%n) sink(%x)
}

// -----

// C1 of add_sink.
tile.kernel @k(%n: i32, %x: f32) target("sm_80") grid(dense heads 1 tiles 1) schedule(#tile.simt_rows<rows = 2, keys = 2, lanes = 8, warps = 4, ctas_per_sm = 1>) {
  %acc = tile.alloc "acc" : !tile.simt_tile<2x64xf32, 8>
  %row = tile.alloc "row" : !tile.simt_softmax_state<2, 4>
  // expected-error @below {{expected}}
  tile.add_sink %acc, %row at(%n) : !tile.simt_tile<2x64xf32, 8>, !tile.simt_softmax_state<2, 4> {
    tile.yield %x : f32
  }
}

// -----

// C2
tile.kernel @k(%n: i32, %x: f32) target("sm_80") grid(dense heads 1) schedule(#tile.tiled<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
  %acc = tile.alloc "acc" : !tile.frag<64x64, 4>
  %row = tile.alloc "row" : !tile.softmax_state<64, 4>
  // expected-error @below {{expected a region without arguments, got: 'i32'}}
  tile.add_sink %acc, %row at(%n) : !tile.frag<64x64, 4>, !tile.softmax_state<64, 4> {
  ^bb0(%h: i32):
    tile.yield %x : f32
  }
}

// -----

// C2
tile.kernel @k(%n: i32, %x: f32) target("sm_80") grid(dense heads 1) schedule(#tile.tiled<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
  %acc = tile.alloc "acc" : !tile.frag<64x64, 4>
  %row = tile.alloc "row" : !tile.softmax_state<64, 4>
  // expected-error @below {{expected to yield the score of a sink, of type f32}}
  tile.add_sink %acc, %row at(%n) : !tile.frag<64x64, 4>, !tile.softmax_state<64, 4> {
    tile.yield %n : i32
  }
}

// -----

// C1 of tile.store_sums.
tile.kernel @k(%to: !tile.ptr<f32>, %pitch: i64) target("sm_80") grid(dense heads 1) schedule(#tile.tiled<q_tile = 64, kv_tile = 32, warps = 4, ctas_per_sm = 1>) {
  %acc = tile.alloc "acc" : !tile.frag<64x32, 4>
  %place = tile.alloc "place" : !tile.shared<64x128xbf16, 136>
  // expected-error @below {{expected `pitch` and `through` together, with as many rows as columns, got: '!tile.frag<64x32, 4>'}}
  tile.store_sums %to, %acc pitch(%pitch) through(%place : !tile.shared<64x128xbf16, 136>) : !tile.ptr<f32>, !tile.frag<64x32, 4>
}
