// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What strips refuse: constraints, by number.
//
// RUN: attn-opt %s -split-input-file -verify-diagnostics

// !tile.simt_tile C1: rows, columns in multiples of 8, elements.
// expected-error @below {{expected rows, columns in multiples of 8 and elements of bf16, f16 or f32, got: 1x12x'bf16'}}
module attributes {tile.type = !tile.simt_tile<1x12xbf16, 16>} {}

// -----

// expected-error @below {{got: 1x16x'i32'}}
module attributes {tile.type = !tile.simt_tile<1x16xi32, 16>} {}

// -----

// !tile.simt_tile C2: lanes.
// expected-error @below {{expected 1, 2, 4, 8, 16 or 32 lanes, got: 12}}
module attributes {tile.type = !tile.simt_tile<1x16xbf16, 12>} {}

// -----

// !tile.simt_scores C1.
// expected-error @below {{expected positive rows and columns, got: 0x4}}
module attributes {tile.type = !tile.simt_scores<0x4, 16>} {}

// -----

// expected-error @below {{expected 1, 2, 4, 8, 16 or 32 lanes, got: 64}}
module attributes {tile.type = !tile.simt_scores<1x4, 64>} {}

// -----

// !tile.simt_softmax_state C1.
// expected-error @below {{expected a positive number of rows, got: 0}}
module attributes {tile.type = !tile.simt_softmax_state<0, 16>} {}

// -----

// expected-error @below {{expected 1, 2, 4, 8, 16 or 32 lanes, got: 3}}
module attributes {tile.type = !tile.simt_softmax_state<1, 3>} {}

// -----

// tile.kernel C5: `tiles` goes with a CTA or a warp for each sequence, or with a packed grid.
// expected-error @below {{'tile.kernel' op expected positive `tiles` with a schedule of a CTA or a warp for each sequence, and without one only with a single-pass schedule or in a packed grid of query tiles, got: #tile.tiled<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1> with tiles}}
tile.kernel @k() target("cpu") grid(dense heads 1 tiles 1) schedule(#tile.tiled<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
}

// -----

// expected-error @below {{only with a single-pass schedule or in a packed grid of query tiles, got: #tile.tiled_backward<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1> with tiles}}
tile.kernel @k() target("cpu") grid(packed heads 1 keys tiles 1) schedule(#tile.tiled_backward<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
}

// -----

// expected-error @below {{got: #tile.simt_rows<rows = 1, keys = 4, lanes = 32, warps = 1, ctas_per_sm = 1> without}}
tile.kernel @k() target("cpu") grid(dense heads 1) schedule(#tile.simt_rows<rows = 1, keys = 4, lanes = 32, warps = 1, ctas_per_sm = 1>) {
}

// -----

// expected-error @below {{got: #tile.simt_rows<rows = 1, keys = 4, lanes = 32, warps = 1, ctas_per_sm = 1> with tiles}}
tile.kernel @k() target("cpu") grid(dense heads 1 tiles 0) schedule(#tile.simt_rows<rows = 1, keys = 4, lanes = 32, warps = 1, ctas_per_sm = 1>) {
}

// -----

tile.kernel @k() target("cpu") grid(dense heads 1 tiles 1) schedule(#tile.simt_rows<rows = 1, keys = 4, lanes = 32, warps = 1, ctas_per_sm = 1>) {
  // tile.index lane_group C1.
  // expected-error @below {{'tile.index' op expected 1, 2, 4, 8, 16 or 32 lanes, got: 6}}
  %lane_group = tile.index lane_group lanes 6
}

// -----

tile.kernel @k(%q: !tile.ptr<bf16>, %by: i64, %n: i32) target("cpu") grid(dense heads 1 tiles 1) schedule(#tile.simt_rows<rows = 1, keys = 4, lanes = 32, warps = 1, ctas_per_sm = 1>) {
  %K = tile.alloc "K" : !tile.simt_tile<4x128xf16, 32>
  // tile.load_rows C1.
  // expected-error @below {{'tile.load_rows' op expected rows of bf16, f16 or f32 into a SIMT tile of the same or of f32, got: 'bf16' into 'f16'}}
  tile.load_rows %K, %q stride(%by) rows(%n) : !tile.simt_tile<4x128xf16, 32>, !tile.ptr<bf16>
}

// -----

tile.kernel @k(%q: !tile.ptr<f32>, %by: i64, %n: i32) target("sm_80") grid(dense heads 1 tiles 1) schedule(#tile.simt_rows<rows = 1, keys = 4, lanes = 32, warps = 1, ctas_per_sm = 1>) {
  %K = tile.alloc "K" : !tile.simt_tile<4x128xf32, 32>
  // expected-error @below {{'tile.load_rows' op expected rows of bf16 or f16 into a SIMT tile of the same or of f32, got: 'f32' into 'f32'}}
  tile.load_rows %K, %q stride(%by) rows(%n) : !tile.simt_tile<4x128xf32, 32>, !tile.ptr<f32>
}

// -----

tile.kernel @k(%o: !tile.ptr<bf16>, %by: i64, %n: i32) target("cpu") grid(dense heads 1 tiles 1) schedule(#tile.simt_rows<rows = 1, keys = 4, lanes = 32, warps = 1, ctas_per_sm = 1>) {
  // tile.store_padding C1.
  // expected-error @below {{'tile.store_padding' op expected dim in multiples of 8 of bf16, f16 or f32, or 1 of f32, got: dim 1, 'bf16'}}
  tile.store_padding %o stride(%by) from(%n) to(%n) step(%n) lanes 32 dim 1 : !tile.ptr<bf16>
}

// -----

tile.kernel @k(%o: !tile.ptr<bf16>, %by: i64, %n: i32) target("cpu") grid(dense heads 1 tiles 1) schedule(#tile.simt_rows<rows = 1, keys = 4, lanes = 32, warps = 1, ctas_per_sm = 1>) {
  // tile.store_padding C2.
  // expected-error @below {{'tile.store_padding' op expected 1, 2, 4, 8, 16 or 32 lanes, got: 24}}
  tile.store_padding %o stride(%by) from(%n) to(%n) step(%n) lanes 24 dim 8 : !tile.ptr<bf16>
}

// -----

tile.kernel @k() target("cpu") grid(dense heads 1 tiles 1) schedule(#tile.simt_rows<rows = 1, keys = 4, lanes = 32, warps = 1, ctas_per_sm = 1>) {
  %Q = tile.alloc "Q" : !tile.simt_tile<1x128xf32, 32>
  %K = tile.alloc "K" : !tile.simt_tile<4x128xbf16, 32>
  %s = tile.alloc "s" : !tile.simt_scores<1x3, 32>
  // tile.mma_abt C1.
  // expected-error @below {{'tile.mma_abt' op expected s to be Q's rows by K's rows over equal columns, got: '!tile.simt_scores<1x3, 32>' = '!tile.simt_tile<1x128xf32, 32>' x '!tile.simt_tile<4x128xbf16, 32>'}}
  %t = tile.mma_abt %s, %Q, %K : !tile.simt_scores<1x3, 32>, !tile.simt_tile<1x128xf32, 32>, !tile.simt_tile<4x128xbf16, 32>
}

// -----

tile.kernel @k() target("cpu") grid(dense heads 1 tiles 1) schedule(#tile.simt_rows<rows = 1, keys = 4, lanes = 32, warps = 1, ctas_per_sm = 1>) {
  %Q = tile.alloc "Q" : !tile.simt_tile<1x128xbf16, 32>
  %K = tile.alloc "K" : !tile.simt_tile<4x128xbf16, 32>
  %s = tile.alloc "s" : !tile.simt_scores<1x4, 32>
  // tile.mma_abt C2: q has elements of f32.
  // expected-error @below {{= '!tile.simt_tile<1x128xbf16, 32>' x}}
  %t = tile.mma_abt %s, %Q, %K : !tile.simt_scores<1x4, 32>, !tile.simt_tile<1x128xbf16, 32>, !tile.simt_tile<4x128xbf16, 32>
}

// -----

tile.kernel @k() target("cpu") grid(dense heads 1 tiles 1) schedule(#tile.simt_rows<rows = 1, keys = 4, lanes = 32, warps = 1, ctas_per_sm = 1>) {
  %Q = tile.alloc "Q" : !tile.simt_tile<1x128xf32, 32>
  %K = tile.alloc "K" : !tile.simt_tile<4x128xbf16, 16>
  %s = tile.alloc "s" : !tile.simt_scores<1x4, 32>
  // tile.mma_abt C2: as many lanes.
  // expected-error @below {{'tile.mma_abt' op expected places of fragments, or of SIMT tiles of as many lanes, got: '!tile.simt_scores<1x4, 32>', '!tile.simt_tile<1x128xf32, 32>', '!tile.simt_tile<4x128xbf16, 16>'}}
  %t = tile.mma_abt %s, %Q, %K : !tile.simt_scores<1x4, 32>, !tile.simt_tile<1x128xf32, 32>, !tile.simt_tile<4x128xbf16, 16>
}

// -----

tile.kernel @k() target("cpu") grid(dense heads 1 tiles 1) schedule(#tile.simt_rows<rows = 1, keys = 4, lanes = 32, warps = 1, ctas_per_sm = 1>) {
  %V = tile.alloc "V" : !tile.simt_tile<4x128xbf16, 16>
  %acc = tile.alloc "acc" : !tile.simt_tile<1x128xf32, 32>
  %s = tile.alloc "s" : !tile.simt_scores<1x4, 32>
  // tile.mma_ab C2.
  // expected-error @below {{'tile.mma_ab' op expected places of fragments, or of SIMT tiles of as many lanes}}
  %t = tile.mma_ab %acc, %s, %V : !tile.simt_tile<1x128xf32, 32>, !tile.simt_scores<1x4, 32>, !tile.simt_tile<4x128xbf16, 16>
}

// -----

tile.kernel @k() target("cpu") grid(dense heads 1 tiles 1) schedule(#tile.simt_rows<rows = 1, keys = 4, lanes = 32, warps = 1, ctas_per_sm = 1>) {
  %V = tile.alloc "V" : !tile.simt_tile<4x128xbf16, 32>
  %acc = tile.alloc "acc" : !tile.simt_tile<1x128xbf16, 32>
  %s = tile.alloc "s" : !tile.simt_scores<1x4, 32>
  // tile.mma_ab C2: acc has elements of f32.
  // expected-error @below {{'tile.mma_ab' op expected acc to be p's rows by V's columns over V's rows, got: '!tile.simt_tile<1x128xbf16, 32>' += }}
  %t = tile.mma_ab %acc, %s, %V : !tile.simt_tile<1x128xbf16, 32>, !tile.simt_scores<1x4, 32>, !tile.simt_tile<4x128xbf16, 32>
}

// -----

tile.kernel @k() target("cpu") grid(dense heads 1 tiles 1) schedule(#tile.simt_rows<rows = 1, keys = 4, lanes = 32, warps = 1, ctas_per_sm = 1>) {
  %acc = tile.alloc "acc" : !tile.simt_tile<1x128xf32, 32>
  %s = tile.alloc "s" : !tile.simt_scores<1x4, 32>
  %row = tile.alloc "row" : !tile.softmax_state<64, 4>
  // tile.online_softmax C2.
  // expected-error @below {{'tile.online_softmax' op expected places of fragments, or of SIMT tiles of as many lanes}}
  tile.online_softmax %s, %row, %acc scale 1.0 : !tile.simt_scores<1x4, 32>, !tile.softmax_state<64, 4>, !tile.simt_tile<1x128xf32, 32>
}

// -----

tile.kernel @k() target("cpu") grid(dense heads 1 tiles 1) schedule(#tile.simt_rows<rows = 1, keys = 4, lanes = 32, warps = 1, ctas_per_sm = 1>) {
  %acc = tile.alloc "acc" : !tile.simt_tile<1x128xf32, 32>
  %row = tile.alloc "row" : !tile.simt_softmax_state<1, 16>
  // tile.normalize C1.
  // expected-error @below {{'tile.normalize' op expected places of fragments, or of SIMT tiles of as many lanes}}
  tile.normalize %acc, %row : !tile.simt_tile<1x128xf32, 32>, !tile.simt_softmax_state<1, 16>
}

// -----

tile.kernel @k(%o: !tile.ptr<bf16>, %by: i64, %n: i32) target("cpu") grid(dense heads 1 tiles 1) schedule(#tile.simt_rows<rows = 1, keys = 4, lanes = 32, warps = 1, ctas_per_sm = 1>) {
  %acc = tile.alloc "acc" : !tile.simt_tile<1x128xf32, 32>
  // tile.store C1.
  // expected-error @below {{'tile.store' op expected a SIMT tile of f32 and `dim` columns into bf16, f16 or f32, got: '!tile.simt_tile<1x128xf32, 32>' into '!tile.ptr<bf16>', dim 64}}
  tile.store %o stride(%by), %acc rows(%n, %n) dim 64 : !tile.ptr<bf16>, !tile.simt_tile<1x128xf32, 32>
}

// -----

// expected-error @below {{expected rows and columns, got: 1 extents}}
module attributes {tile.type = !tile.simt_tile<4xbf16, 32>} {}

// -----

tile.kernel @k(%lse: !tile.ptr<f32>, %n: i32) target("cpu") grid(dense heads 1 tiles 1) schedule(#tile.simt_rows<rows = 1, keys = 4, lanes = 32, warps = 1, ctas_per_sm = 1>) {
  %row = tile.alloc "row" : !tile.simt_softmax_state<1, 32>
  // tile.load_row_statistics C1.
  // expected-error @below {{'tile.load_row_statistics' op expected one of dlse and delta, got: both}}
  tile.load_row_statistics %row, %lse dlse(%lse) delta(%lse) rows(%n) : !tile.simt_softmax_state<1, 32>
}

// -----

tile.kernel @k(%lse: !tile.ptr<f32>, %n: i32) target("cpu") grid(dense heads 1 tiles 1) schedule(#tile.simt_rows<rows = 1, keys = 4, lanes = 32, warps = 1, ctas_per_sm = 1>) {
  %row = tile.alloc "row" : !tile.simt_softmax_state<1, 16>
  %s = tile.alloc "s" : !tile.simt_scores<1x4, 32>
  // tile.accumulate_delta C1.
  // expected-error @below {{'tile.accumulate_delta' op expected places of fragments, or of SIMT tiles of as many lanes}}
  tile.accumulate_delta %s, %s, %row : !tile.simt_scores<1x4, 32>, !tile.simt_softmax_state<1, 16>
}

// -----

tile.kernel @k(%lse: !tile.ptr<f32>, %n: i32) target("cpu") grid(dense heads 1 tiles 1) schedule(#tile.simt_rows<rows = 1, keys = 4, lanes = 32, warps = 1, ctas_per_sm = 1>) {
  %row = tile.alloc "row" : !tile.simt_softmax_state<1, 16>
  %Q = tile.alloc "Q" : !tile.simt_tile<1x128xf32, 32>
  // tile.subtract_delta C1.
  // expected-error @below {{'tile.subtract_delta' op expected places of fragments, or of SIMT tiles of as many lanes}}
  tile.subtract_delta %Q, %Q, %row by 1.0 : !tile.simt_tile<1x128xf32, 32>, !tile.simt_softmax_state<1, 16>
}

// -----

tile.kernel @k(%lse: !tile.ptr<f32>, %n: i32) target("cpu") grid(dense heads 1 tiles 1) schedule(#tile.simt_rows<rows = 1, keys = 4, lanes = 32, warps = 1, ctas_per_sm = 1>) {
  %Q = tile.alloc "Q" : !tile.simt_tile<1x128xf32, 32>
  %dK = tile.alloc "dK" : !tile.simt_tile<3x128xf32, 32>
  %s = tile.alloc "s" : !tile.simt_scores<1x4, 32>
  // tile.mma_atb C3.
  // expected-error @below {{'tile.mma_atb' op expected tiles of warps, or SIMT tiles: acc of A's columns by B's columns over A's rows, of f32, got: '!tile.simt_tile<3x128xf32, 32>' += '!tile.simt_scores<1x4, 32>' x '!tile.simt_tile<1x128xf32, 32>'}}
  tile.mma_atb %dK, %s, %Q : !tile.simt_tile<3x128xf32, 32>, !tile.simt_scores<1x4, 32>, !tile.simt_tile<1x128xf32, 32>
}

// -----

tile.kernel @k(%lse: !tile.ptr<f32>, %n: i32) target("cpu") grid(dense heads 1 tiles 1) schedule(#tile.simt_rows<rows = 1, keys = 4, lanes = 32, warps = 1, ctas_per_sm = 1>) {
  %Q = tile.alloc "Q" : !tile.simt_tile<1x128xf32, 32>
  %dK = tile.alloc "dK" : !tile.simt_tile<4x128xf32, 16>
  %s = tile.alloc "s" : !tile.simt_scores<1x4, 32>
  // tile.mma_atb C2.
  // expected-error @below {{'tile.mma_atb' op expected places of fragments, or of SIMT tiles of as many lanes}}
  tile.mma_atb %dK, %s, %Q : !tile.simt_tile<4x128xf32, 16>, !tile.simt_scores<1x4, 32>, !tile.simt_tile<1x128xf32, 32>
}

// -----

tile.kernel @k(%lse: !tile.ptr<f32>, %n: i32) target("cpu") grid(dense heads 1 tiles 1) schedule(#tile.simt_rows<rows = 1, keys = 4, lanes = 32, warps = 1, ctas_per_sm = 1>) {
  %q_operand = tile.alloc "q_operand" : !tile.simt_probabilities<1x16, 16>
  %s = tile.alloc "s" : !tile.simt_scores<1x4, 32>
  // tile.cache_probabilities C1.
  // expected-error @below {{'tile.cache_probabilities' op expected places of fragments, or of SIMT tiles of as many lanes}}
  tile.cache_probabilities %q_operand, %s, %s at(%n) : !tile.simt_probabilities<1x16, 16>, !tile.simt_scores<1x4, 32>
}

// -----

tile.kernel @k(%lse: !tile.ptr<f32>, %n: i32) target("cpu") grid(dense heads 1 tiles 1) schedule(#tile.simt_rows<rows = 1, keys = 4, lanes = 32, warps = 1, ctas_per_sm = 1>) {
  %q_operand = tile.alloc "q_operand" : !tile.simt_probabilities<1x16, 16>
  %s = tile.alloc "s" : !tile.simt_scores<1x4, 32>
  %row = tile.alloc "row" : !tile.simt_softmax_state<1, 32>
  // tile.cached_grad_scores C1.
  // expected-error @below {{'tile.cached_grad_scores' op expected places of fragments, or of SIMT tiles of as many lanes}}
  tile.cached_grad_scores %s, %q_operand, %row at(%n) : !tile.simt_scores<1x4, 32>, !tile.simt_probabilities<1x16, 16>, !tile.simt_softmax_state<1, 32>
}

// -----

tile.kernel @k(%lse: !tile.ptr<f32>, %n: i32) target("cpu") grid(dense heads 1 tiles 1) schedule(#tile.simt_rows<rows = 1, keys = 4, lanes = 32, warps = 1, ctas_per_sm = 1>) {
  %s = tile.alloc "s" : !tile.simt_scores<1x4, 32>
  %row = tile.alloc "row" : !tile.simt_softmax_state<2, 32>
  // tile.probabilities C2.
  // expected-error @below {{'tile.probabilities' op expected row statistics of all rows of '!tile.simt_scores<1x4, 32>', got: '!tile.simt_softmax_state<2, 32>'}}
  tile.probabilities %s, %row at(%n, %n) scale 1.0 : !tile.simt_scores<1x4, 32>, !tile.simt_softmax_state<2, 32>
}

// -----

// !tile.simt_probabilities C1.
// expected-error @below {{expected positive rows and columns, got: 1x0}}
module attributes {tile.type = !tile.simt_probabilities<1x0, 16>} {}

// -----

// expected-error @below {{expected 1, 2, 4, 8, 16 or 32 lanes, got: 7}}
module attributes {tile.type = !tile.simt_probabilities<1x16, 7>} {}
