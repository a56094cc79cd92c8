// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// RUN: attn-opt %s -split-input-file -verify-diagnostics

tile.kernel @k(%o: !tile.ptr<f32>, %st: i64, %n: i32)
    target("cpu") grid(dense heads 1) schedule(#tile.tiled<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
  %acc = tile.alloc "acc" : !tile.frag<64x64, 4>
  %row = tile.alloc "row" : !tile.softmax_state<64, 4>
  // tile.resume, C1
  // expected-error @below {{expected a dim in multiples of 8 up to the 64 columns of the fragment, got: 72}}
  tile.resume %acc, %row from(%o, %st) state(%o, %o) rows(%n) dim 72 : !tile.frag<64x64, 4>, !tile.softmax_state<64, 4>
}

// -----

tile.kernel @k(%o: !tile.ptr<f32>, %st: i64, %n: i32)
    target("cpu") grid(dense heads 1) schedule(#tile.tiled<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
  %acc = tile.alloc "acc" : !tile.frag<64x64, 4>
  // tile.add_rows, C1
  // expected-error @below {{expected a dim in multiples of 8 up to the 64 columns of the fragment, got: 12}}
  tile.add_rows %acc, %o stride(%st) rows(%n) dim 12 : !tile.frag<64x64, 4>
}

// -----

tile.kernel @k(%o: !tile.ptr<f32>, %st: i64, %n: i32, %i: !tile.ptr<i32>)
    target("cpu") grid(dense heads 1) schedule(#tile.auxiliary<q_tile = 16, kv_tile = 16, warps = 1, ctas_per_sm = 1>) {
  // tile.gather_rows, C1
  // expected-error @below {{expected a stride of rows and one of heads for each of 2 parts, got: 2}}
  tile.gather_rows %o stride(%st, %st) parts(%o, %o) strides(%st, %st) index(%i of %n) rows(%n from %n) heads 2 dim 8
      : !tile.ptr<f32>, !tile.ptr<f32>, !tile.ptr<f32>
}

// -----

tile.kernel @k(%o: !tile.ptr<f32>, %st: i64, %n: i32, %i: !tile.ptr<i32>)
    target("cpu") grid(dense heads 1) schedule(#tile.auxiliary<q_tile = 16, kv_tile = 16, warps = 1, ctas_per_sm = 1>) {
  // C2
  // expected-error @below {{expected heads, and a dim of 1 or a multiple of 8, got: 2 and 7}}
  tile.gather_rows %o stride(%st, %st) parts(%o) strides(%st, %st) index(%i of %n) rows(%n from %n) heads 2 dim 7
      : !tile.ptr<f32>, !tile.ptr<f32>
}

// -----

tile.kernel @k(%q: !tile.ptr<bf16>, %o: !tile.ptr<f32>, %st: i64, %n: i32) target("sm_90a") grid(dense heads 1)
    schedule(#tile.warp_specialized<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
  %acc = tile.alloc "acc" : !tile.frag<64x64, 4>
  // tile.recompute_rows, C5, in the generic form: the custom one has no way to say it.
  // expected-error @below {{expected the rows, their stride, maximum and sum together in before}}
  "tile.recompute_rows"(%acc, %n, %n, %n, %q, %st, %q, %st, %q, %st, %q, %st, %o) <{dim_qk = 64 : i64, dim_v = 64 : i64, scale = 0.5 : f64, operandSegmentSizes = array<i32: 1, 1, 1, 0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 0, 0, 0>}> ({
  ^bb0(%a: i32, %b: i32):
    "tile.yield"() : () -> ()
  }, {
  }, {
  }, {
  }) : (!tile.frag<64x64, 4>, i32, i32, i32, !tile.ptr<bf16>, i64, !tile.ptr<bf16>, i64, !tile.ptr<bf16>, i64, !tile.ptr<bf16>, i64, !tile.ptr<f32>) -> ()
}
