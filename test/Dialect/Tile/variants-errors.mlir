// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What ops with several forms refuse: operands and attributes of one form with those of another.
//
// RUN: attn-opt %s -split-input-file -verify-diagnostics

#tiled = #tile.tiled<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>
tile.kernel @k(%n: i32) target("sm_80") grid(dense heads 1) schedule(#tiled) {
  // tile.index C1
  // expected-error @below {{'tile.index' op expected `below` with `block`, in the body of the kernel itself, got: warp within tile.kernel}}
  %warp = tile.index warp below(%n)
}

// -----

#tiled = #tile.tiled<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>
tile.kernel @k() target("sm_80") grid(dense heads 1) schedule(#tiled) {
  // tile.index C2
  // expected-error @below {{'tile.index' op expected `lanes` with `lane_group`, and only with it, got: warp}}
  %warp = tile.index warp lanes 16
}

// -----

#tiled = #tile.tiled<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>
tile.kernel @k() target("sm_80") grid(dense heads 1) schedule(#tiled) {
  // expected-error @below {{'tile.index' op expected `lanes` with `lane_group`, and only with it, got: lane_group}}
  %group = tile.index lane_group
}

// -----

#tiled = #tile.tiled<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>
tile.kernel @k(%n: i64, %b: i32) target("sm_80") grid(dense heads 1) schedule(#tiled) {
  %acc = tile.alloc "acc" : !tile.frag<64x64, 4>
  // tile.clear C1
  // expected-error @below {{'tile.clear' op expected `count` and `block` together, with a pointer, got: '!tile.frag<64x64, 4>'}}
  tile.clear %acc count(%n) block(%b of %b) : !tile.frag<64x64, 4>
}

// -----

#tiled = #tile.tiled<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>
tile.kernel @k(%to: !tile.ptr<f32>, %n: i64) target("sm_80") grid(dense heads 1) schedule(#tiled) {
  // expected-error @below {{'tile.clear' op expected `count` and `block` together, with a pointer, got: '!tile.ptr<f32>'}}
  tile.clear %to count(%n) : !tile.ptr<f32>
}

// -----

#tiled = #tile.tiled<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>
tile.kernel @k() target("sm_80") grid(dense heads 1) schedule(#tiled) {
  %Q = tile.alloc "Q" : !tile.shared<64x64xbf16, 72>
  // tile.scale C1
  // expected-error @below {{'tile.scale' op expected a tile in shared memory to be scaled by -1, got: 2.000000e+00}}
  tile.scale %Q by 2.0 : !tile.shared<64x64xbf16, 72>
}

// -----

#tiled = #tile.tiled<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>
tile.kernel @k() target("sm_80") grid(dense heads 1) schedule(#tiled) {
  %acc = tile.alloc "acc" : !tile.frag<64x64, 4>
  %a = tile.alloc "a" : !tile.simt_scores<1x4, 16>
  %b = tile.alloc "b" : !tile.simt_tile<1x64xf32, 16>
  // tile.mma_atb C3
  // expected-error @below {{'tile.mma_atb' op expected tiles of warps, or SIMT tiles: acc of A's columns by B's columns over A's rows, of f32, got: '!tile.frag<64x64, 4>' += '!tile.simt_scores<1x4, 16>' x '!tile.simt_tile<1x64xf32, 16>'}}
  %t = tile.mma_atb %acc, %a, %b : !tile.frag<64x64, 4>, !tile.simt_scores<1x4, 16>, !tile.simt_tile<1x64xf32, 16>
}

// -----

#tiled = #tile.tiled<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>
tile.kernel @k() target("sm_80") grid(dense heads 1) schedule(#tiled) {
  %acc = tile.alloc "acc" : !tile.simt_tile<1x64xf32, 16>
  %row = tile.alloc "row" : !tile.simt_softmax_state<1, 16>
  // tile.normalize C3
  // expected-error @below {{'tile.normalize' op expected `reduced` with a fragment, and without `rows_recomputed`}}
  tile.normalize %acc, %row reduced : !tile.simt_tile<1x64xf32, 16>, !tile.simt_softmax_state<1, 16>
}

// -----

#tiled = #tile.tiled<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>
tile.kernel @k() target("sm_80") grid(dense heads 1) schedule(#tiled) {
  %s = tile.alloc "s" : !tile.simt_scores<1x4, 16>
  %row = tile.alloc "row" : !tile.simt_softmax_state<1, 16>
  // tile.online_softmax C2
  // expected-error @below {{'tile.online_softmax' op expected an accumulator with SIMT tiles, got: '!tile.simt_scores<1x4, 16>'}}
  tile.online_softmax %s, %row scale 1.0 : !tile.simt_scores<1x4, 16>, !tile.simt_softmax_state<1, 16>
}

// -----

#tiled = #tile.tiled<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>
tile.kernel @k(%o: !tile.ptr<bf16>, %row: i64, %n: i32, %m: i32) target("sm_80") grid(dense heads 1) schedule(#tiled) {
  %acc = tile.alloc "acc" : !tile.frag<64x64, 4>
  // tile.store C2
  // expected-error @below {{'tile.store' op expected a factor with a fragment of 64 rows, four warps and 64 columns or more, and no padding, got: '!tile.frag<64x64, 4>'}}
  tile.store %o stride(%row), %acc by 2.0 rows(%n, %m) dim 64 : !tile.ptr<bf16>, !tile.frag<64x64, 4>
}

// -----

#tiled = #tile.tiled<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>
tile.kernel @k(%o: !tile.ptr<bf16>, %row: i64, %n: i32) target("sm_80") grid(dense heads 1) schedule(#tiled) {
  // tile.store_padding C3
  // expected-error @below {{'tile.store_padding' op expected `rows`, or `from`, `to`, `step` and `lanes`}}
  tile.store_padding %o stride(%row) rows(%n) from(%n) to(%n) step(%n) lanes 16 dim 64 : !tile.ptr<bf16>
}

// -----

#tiled = #tile.tiled<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>
tile.kernel @k(%o: !tile.ptr<bf16>, %row: i64) target("sm_80") grid(dense heads 1) schedule(#tiled) {
  // expected-error @below {{'tile.store_padding' op expected `rows`, or `from`, `to`, `step` and `lanes`}}
  tile.store_padding %o stride(%row) dim 64 : !tile.ptr<bf16>
}

// -----

#tiled = #tile.tiled<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>
tile.kernel @k(%q: !tile.ptr<bf16>, %row: i64, %n: i32) target("sm_80") grid(dense heads 1) schedule(#tiled) {
  %rows = tile.alloc "rows" : !tile.simt_tile<1x64xbf16, 16>
  // tile.load_rows C1
  // expected-error @below {{'tile.load_rows' op expected `dim` with a register operand, got: '!tile.simt_tile<1x64xbf16, 16>'}}
  tile.load_rows %rows, %q stride(%row) rows(%n) dim 64 : !tile.simt_tile<1x64xbf16, 16>, !tile.ptr<bf16>
}

// -----

#tiled = #tile.tiled<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>
tile.kernel @k(%to: !tile.ptr<f32>, %pitch: i64) target("sm_80") grid(dense heads 1) schedule(#tiled) {
  %acc = tile.alloc "acc" : !tile.frag<64x64, 4>
  // tile.store_sums C1
  // expected-error @below {{'tile.store_sums' op expected `pitch` and `through` together, with as many rows as columns, got: '!tile.frag<64x64, 4>'}}
  tile.store_sums %to, %acc pitch(%pitch) : !tile.ptr<f32>, !tile.frag<64x64, 4>
}

// -----

#hopper = #tile.warp_specialized<q_tile = 128, kv_tile = 128, warps = 8, ctas_per_sm = 1>
tile.kernel @k() target("sm_90a") grid(dense heads 1) schedule(#hopper) {
  %stats = tile.alloc "stats" : !tile.ring<2, !tile.row_statistics<64>>
  // tile.producer_store C2
  // expected-error @below {{'tile.producer_store' op expected a ring of swizzled tiles, and no `first`, for zeros, got: '!tile.ring<2, !tile.row_statistics<64>>'}}
  tile.producer_store %stats : !tile.ring<2, !tile.row_statistics<64>>
}

// -----

#hopper = #tile.warp_specialized<q_tile = 128, kv_tile = 128, warps = 8, ctas_per_sm = 1>
tile.kernel @k(%more: i1) target("sm_90a") grid(dense heads 1) schedule(#hopper) {
  %Q = tile.alloc "Q" : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>
  // tile.consumer_release C1
  // expected-error @below {{'tile.consumer_release' op expected `when` with `passed`, and `unless` with neither `passed` nor `fenced`}}
  tile.consumer_release %Q passed unless(%more) : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>
}
