// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Partial results that a kernel continues, sums with rows of memory, and rows in another order.
//
// RUN: attn-opt %s | attn-opt | FileCheck %s

// CHECK-LABEL: tile.kernel @k
tile.kernel @k(%o: !tile.ptr<f32>, %max: !tile.ptr<f32>, %st: i64, %n: i32, %x: !tile.ptr<bf16>, %index: !tile.ptr<i32>)
    target("cpu") grid(dense heads 1) schedule(#tile.tiled<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
  %acc = tile.alloc "acc" : !tile.frag<64x64, 4>
  %row = tile.alloc "row" : !tile.softmax_state<64, 4>
  // CHECK: tile.resume %acc, %row from(%o, %st) state(%max, %max) rows(%n) dim 64 : !tile.frag<64x64, 4>, !tile.softmax_state<64, 4>
  tile.resume %acc, %row from(%o, %st) state(%max, %max) rows(%n) dim 64 : !tile.frag<64x64, 4>, !tile.softmax_state<64, 4>
  // CHECK: tile.add_rows %acc, %o stride(%st) rows(%n) dim 40 : !tile.frag<64x64, 4>
  tile.add_rows %acc, %o stride(%st) rows(%n) dim 40 : !tile.frag<64x64, 4>
  // CHECK: tile.gather_rows %x stride(%st, %st) parts(%o, %max) strides(%st, %st, %st, %st) index(%index of %n) rows(%n from %n) heads 2 dim 1 : !tile.ptr<bf16>, !tile.ptr<f32>, !tile.ptr<f32>
  tile.gather_rows %x stride(%st, %st) parts(%o, %max) strides(%st, %st, %st, %st) index(%index of %n) rows(%n from %n) heads 2 dim 1
      : !tile.ptr<bf16>, !tile.ptr<f32>, !tile.ptr<f32>
}
