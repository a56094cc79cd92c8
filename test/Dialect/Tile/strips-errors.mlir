// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What strips refuse: constraints, by number.
//
// RUN: attn-opt %s -split-input-file -verify-diagnostics

// !tile.strip C1: rows, columns in multiples of 8, elements.
// expected-error @below {{expected rows, columns in multiples of 8 and elements of bf16, f16 or f32, got: 1x12x'bf16'}}
module attributes {tile.type = !tile.strip<1x12xbf16, 16>} {}

// -----

// expected-error @below {{got: 1x16x'i32'}}
module attributes {tile.type = !tile.strip<1x16xi32, 16>} {}

// -----

// !tile.strip C2: lanes.
// expected-error @below {{expected 1, 2, 4, 8, 16 or 32 lanes, got: 12}}
module attributes {tile.type = !tile.strip<1x16xbf16, 12>} {}

// -----

// !tile.scores C1.
// expected-error @below {{expected positive rows and columns, got: 0x4}}
module attributes {tile.type = !tile.scores<0x4, 16>} {}

// -----

// expected-error @below {{expected 1, 2, 4, 8, 16 or 32 lanes, got: 64}}
module attributes {tile.type = !tile.scores<1x4, 64>} {}

// -----

// !tile.strip_rows C1.
// expected-error @below {{expected a positive number of rows, got: 0}}
module attributes {tile.type = !tile.strip_rows<0, 16>} {}

// -----

// expected-error @below {{expected 1, 2, 4, 8, 16 or 32 lanes, got: 3}}
module attributes {tile.type = !tile.strip_rows<1, 3>} {}

// -----

// tile.kernel C5: `tiles` goes with a CTA or a warp for each sequence, or with a packed grid.
// expected-error @below {{'tile.kernel' op expected positive `tiles` with a schedule of a CTA or a warp for each sequence, and without one only with a single-pass schedule or in a packed grid of query tiles, got: #tile.tiled<q_tile = 64, kv_tile = 64, warps = 4, blocks = 1> with tiles}}
tile.kernel @k() target("cpu") grid(dense heads 1 tiles 1) schedule(#tile.tiled<q_tile = 64, kv_tile = 64, warps = 4, blocks = 1>) {
}

// -----

// expected-error @below {{only with a single-pass schedule or in a packed grid of query tiles, got: #tile.tiled_backward<q_tile = 64, kv_tile = 64, warps = 4, blocks = 1> with tiles}}
tile.kernel @k() target("cpu") grid(packed heads 1 keys tiles 1) schedule(#tile.tiled_backward<q_tile = 64, kv_tile = 64, warps = 4, blocks = 1>) {
}

// -----

// expected-error @below {{got: #tile.simt_rows<rows = 1, keys = 4, lanes = 32, warps = 1, blocks = 1> without}}
tile.kernel @k() target("cpu") grid(dense heads 1) schedule(#tile.simt_rows<rows = 1, keys = 4, lanes = 32, warps = 1, blocks = 1>) {
}

// -----

// expected-error @below {{got: #tile.simt_rows<rows = 1, keys = 4, lanes = 32, warps = 1, blocks = 1> with tiles}}
tile.kernel @k() target("cpu") grid(dense heads 1 tiles 0) schedule(#tile.simt_rows<rows = 1, keys = 4, lanes = 32, warps = 1, blocks = 1>) {
}

// -----

tile.kernel @k() target("cpu") grid(dense heads 1 tiles 1) schedule(#tile.simt_rows<rows = 1, keys = 4, lanes = 32, warps = 1, blocks = 1>) {
  // tile.slot_index C1.
  // expected-error @below {{'tile.slot_index' op expected 1, 2, 4, 8, 16 or 32 lanes, got: 6}}
  %slot = tile.slot_index lanes 6
}

// -----

tile.kernel @k(%q: !tile.ptr<bf16>, %by: i64, %n: i32) target("cpu") grid(dense heads 1 tiles 1) schedule(#tile.simt_rows<rows = 1, keys = 4, lanes = 32, warps = 1, blocks = 1>) {
  %K = tile.place "K" : !tile.strip<4x128xf16, 32>
  // tile.fetch C1.
  // expected-error @below {{'tile.fetch' op expected rows of bf16, f16 or f32 into a strip of the same or of f32, got: 'bf16' into 'f16'}}
  tile.fetch %K, %q stride(%by) rows(%n) : !tile.strip<4x128xf16, 32>, !tile.ptr<bf16>
}

// -----

tile.kernel @k(%q: !tile.ptr<f32>, %by: i64, %n: i32) target("sm_80") grid(dense heads 1 tiles 1) schedule(#tile.simt_rows<rows = 1, keys = 4, lanes = 32, warps = 1, blocks = 1>) {
  %K = tile.place "K" : !tile.strip<4x128xf32, 32>
  // expected-error @below {{'tile.fetch' op expected rows of bf16 or f16 into a strip of the same or of f32, got: 'f32' into 'f32'}}
  tile.fetch %K, %q stride(%by) rows(%n) : !tile.strip<4x128xf32, 32>, !tile.ptr<f32>
}

// -----

tile.kernel @k(%o: !tile.ptr<bf16>, %by: i64, %n: i32) target("cpu") grid(dense heads 1 tiles 1) schedule(#tile.simt_rows<rows = 1, keys = 4, lanes = 32, warps = 1, blocks = 1>) {
  // tile.pad_rows C1.
  // expected-error @below {{'tile.pad_rows' op expected dim in multiples of 8 of bf16, f16 or f32, or 1 of f32, got: dim 1, 'bf16'}}
  tile.pad_rows %o stride(%by) from(%n) to(%n) step(%n) dim 1 lanes 32 : !tile.ptr<bf16>
}

// -----

tile.kernel @k(%o: !tile.ptr<bf16>, %by: i64, %n: i32) target("cpu") grid(dense heads 1 tiles 1) schedule(#tile.simt_rows<rows = 1, keys = 4, lanes = 32, warps = 1, blocks = 1>) {
  // tile.pad_rows C2.
  // expected-error @below {{'tile.pad_rows' op expected 1, 2, 4, 8, 16 or 32 lanes, got: 24}}
  tile.pad_rows %o stride(%by) from(%n) to(%n) step(%n) dim 8 lanes 24 : !tile.ptr<bf16>
}

// -----

tile.kernel @k() target("cpu") grid(dense heads 1 tiles 1) schedule(#tile.simt_rows<rows = 1, keys = 4, lanes = 32, warps = 1, blocks = 1>) {
  %Q = tile.place "Q" : !tile.strip<1x128xf32, 32>
  %K = tile.place "K" : !tile.strip<4x128xbf16, 32>
  %s = tile.place "s" : !tile.scores<1x3, 32>
  // tile.mma_qk C1.
  // expected-error @below {{'tile.mma_qk' op expected s to be Q's rows by K's rows over equal columns, got: '!tile.scores<1x3, 32>' = '!tile.strip<1x128xf32, 32>' x '!tile.strip<4x128xbf16, 32>'}}
  %t = tile.mma_qk %s, %Q, %K : !tile.scores<1x3, 32>, !tile.strip<1x128xf32, 32>, !tile.strip<4x128xbf16, 32>
}

// -----

tile.kernel @k() target("cpu") grid(dense heads 1 tiles 1) schedule(#tile.simt_rows<rows = 1, keys = 4, lanes = 32, warps = 1, blocks = 1>) {
  %Q = tile.place "Q" : !tile.strip<1x128xbf16, 32>
  %K = tile.place "K" : !tile.strip<4x128xbf16, 32>
  %s = tile.place "s" : !tile.scores<1x4, 32>
  // tile.mma_qk C2: q has elements of f32.
  // expected-error @below {{= '!tile.strip<1x128xbf16, 32>' x}}
  %t = tile.mma_qk %s, %Q, %K : !tile.scores<1x4, 32>, !tile.strip<1x128xbf16, 32>, !tile.strip<4x128xbf16, 32>
}

// -----

tile.kernel @k() target("cpu") grid(dense heads 1 tiles 1) schedule(#tile.simt_rows<rows = 1, keys = 4, lanes = 32, warps = 1, blocks = 1>) {
  %Q = tile.place "Q" : !tile.strip<1x128xf32, 32>
  %K = tile.place "K" : !tile.strip<4x128xbf16, 16>
  %s = tile.place "s" : !tile.scores<1x4, 32>
  // tile.mma_qk C2: as many lanes.
  // expected-error @below {{'tile.mma_qk' op expected places of fragments, or of strips of as many lanes, got: '!tile.scores<1x4, 32>', '!tile.strip<1x128xf32, 32>', '!tile.strip<4x128xbf16, 16>'}}
  %t = tile.mma_qk %s, %Q, %K : !tile.scores<1x4, 32>, !tile.strip<1x128xf32, 32>, !tile.strip<4x128xbf16, 16>
}

// -----

tile.kernel @k() target("cpu") grid(dense heads 1 tiles 1) schedule(#tile.simt_rows<rows = 1, keys = 4, lanes = 32, warps = 1, blocks = 1>) {
  %V = tile.place "V" : !tile.strip<4x128xbf16, 16>
  %acc = tile.place "acc" : !tile.strip<1x128xf32, 32>
  %s = tile.place "s" : !tile.scores<1x4, 32>
  // tile.mma_pv C2.
  // expected-error @below {{'tile.mma_pv' op expected places of fragments, or of strips of as many lanes}}
  %t = tile.mma_pv %acc, %s, %V : !tile.strip<1x128xf32, 32>, !tile.scores<1x4, 32>, !tile.strip<4x128xbf16, 16>
}

// -----

tile.kernel @k() target("cpu") grid(dense heads 1 tiles 1) schedule(#tile.simt_rows<rows = 1, keys = 4, lanes = 32, warps = 1, blocks = 1>) {
  %V = tile.place "V" : !tile.strip<4x128xbf16, 32>
  %acc = tile.place "acc" : !tile.strip<1x128xbf16, 32>
  %s = tile.place "s" : !tile.scores<1x4, 32>
  // tile.mma_pv C2: acc has elements of f32.
  // expected-error @below {{'tile.mma_pv' op expected acc to be p's rows by V's columns over V's rows, got: '!tile.strip<1x128xbf16, 32>' += }}
  %t = tile.mma_pv %acc, %s, %V : !tile.strip<1x128xbf16, 32>, !tile.scores<1x4, 32>, !tile.strip<4x128xbf16, 32>
}

// -----

tile.kernel @k() target("cpu") grid(dense heads 1 tiles 1) schedule(#tile.simt_rows<rows = 1, keys = 4, lanes = 32, warps = 1, blocks = 1>) {
  %acc = tile.place "acc" : !tile.strip<1x128xf32, 32>
  %s = tile.place "s" : !tile.scores<1x4, 32>
  %row = tile.place "row" : !tile.rows<64, 4>
  // tile.softmax_step C2.
  // expected-error @below {{'tile.softmax_step' op expected places of fragments, or of strips of as many lanes}}
  tile.softmax_step %s, %row, %acc scale 1.0 : !tile.scores<1x4, 32>, !tile.rows<64, 4>, !tile.strip<1x128xf32, 32>
}

// -----

tile.kernel @k() target("cpu") grid(dense heads 1 tiles 1) schedule(#tile.simt_rows<rows = 1, keys = 4, lanes = 32, warps = 1, blocks = 1>) {
  %acc = tile.place "acc" : !tile.strip<1x128xf32, 32>
  %row = tile.place "row" : !tile.strip_rows<1, 16>
  // tile.normalize C1.
  // expected-error @below {{'tile.normalize' op expected places of fragments, or of strips of as many lanes}}
  tile.normalize %acc, %row : !tile.strip<1x128xf32, 32>, !tile.strip_rows<1, 16>
}

// -----

tile.kernel @k(%o: !tile.ptr<bf16>, %by: i64, %n: i32) target("cpu") grid(dense heads 1 tiles 1) schedule(#tile.simt_rows<rows = 1, keys = 4, lanes = 32, warps = 1, blocks = 1>) {
  %acc = tile.place "acc" : !tile.strip<1x128xf32, 32>
  // tile.store C1.
  // expected-error @below {{'tile.store' op expected a strip of f32 and `dim` columns into bf16, f16 or f32, got: '!tile.strip<1x128xf32, 32>' into '!tile.ptr<bf16>', dim 64}}
  tile.store %o stride(%by), %acc rows(%n, %n) dim 64 : !tile.ptr<bf16>, !tile.strip<1x128xf32, 32>
}

// -----

// expected-error @below {{expected rows and columns, got: 1 extents}}
module attributes {tile.type = !tile.strip<4xbf16, 32>} {}

// -----

tile.kernel @k(%lse: !tile.ptr<f32>, %n: i32) target("cpu") grid(dense heads 1 tiles 1) schedule(#tile.simt_rows<rows = 1, keys = 4, lanes = 32, warps = 1, blocks = 1>) {
  %row = tile.place "row" : !tile.strip_rows<1, 32>
  // tile.load_statistics C1.
  // expected-error @below {{'tile.load_statistics' op expected one of dlse and delta, got: both}}
  tile.load_statistics %row, %lse dlse(%lse) delta(%lse) rows(%n) : !tile.strip_rows<1, 32>
}

// -----

tile.kernel @k(%lse: !tile.ptr<f32>, %n: i32) target("cpu") grid(dense heads 1 tiles 1) schedule(#tile.simt_rows<rows = 1, keys = 4, lanes = 32, warps = 1, blocks = 1>) {
  %row = tile.place "row" : !tile.strip_rows<1, 16>
  %s = tile.place "s" : !tile.scores<1x4, 32>
  // tile.sum_grads C1.
  // expected-error @below {{'tile.sum_grads' op expected places of fragments, or of strips of as many lanes}}
  tile.sum_grads %s, %s, %row : !tile.scores<1x4, 32>, !tile.strip_rows<1, 16>
}

// -----

tile.kernel @k(%lse: !tile.ptr<f32>, %n: i32) target("cpu") grid(dense heads 1 tiles 1) schedule(#tile.simt_rows<rows = 1, keys = 4, lanes = 32, warps = 1, blocks = 1>) {
  %row = tile.place "row" : !tile.strip_rows<1, 16>
  %Q = tile.place "Q" : !tile.strip<1x128xf32, 32>
  // tile.take_delta C1.
  // expected-error @below {{'tile.take_delta' op expected places of fragments, or of strips of as many lanes}}
  tile.take_delta %Q, %Q, %row by 1.0 : !tile.strip<1x128xf32, 32>, !tile.strip_rows<1, 16>
}

// -----

tile.kernel @k(%lse: !tile.ptr<f32>, %n: i32) target("cpu") grid(dense heads 1 tiles 1) schedule(#tile.simt_rows<rows = 1, keys = 4, lanes = 32, warps = 1, blocks = 1>) {
  %Q = tile.place "Q" : !tile.strip<1x128xf32, 32>
  %dK = tile.place "dK" : !tile.strip<3x128xf32, 32>
  %s = tile.place "s" : !tile.scores<1x4, 32>
  // tile.mma_turned C1.
  // expected-error @below {{'tile.mma_turned' op expected acc to be p's columns by V's columns over V's rows, of f32, got: '!tile.strip<3x128xf32, 32>' += '!tile.scores<1x4, 32>' x '!tile.strip<1x128xf32, 32>'}}
  tile.mma_turned %dK, %s, %Q : !tile.strip<3x128xf32, 32>, !tile.scores<1x4, 32>, !tile.strip<1x128xf32, 32>
}

// -----

tile.kernel @k(%lse: !tile.ptr<f32>, %n: i32) target("cpu") grid(dense heads 1 tiles 1) schedule(#tile.simt_rows<rows = 1, keys = 4, lanes = 32, warps = 1, blocks = 1>) {
  %Q = tile.place "Q" : !tile.strip<1x128xf32, 32>
  %dK = tile.place "dK" : !tile.strip<4x128xf32, 16>
  %s = tile.place "s" : !tile.scores<1x4, 32>
  // tile.mma_turned C2.
  // expected-error @below {{'tile.mma_turned' op expected places of fragments, or of strips of as many lanes}}
  tile.mma_turned %dK, %s, %Q : !tile.strip<4x128xf32, 16>, !tile.scores<1x4, 32>, !tile.strip<1x128xf32, 32>
}

// -----

tile.kernel @k(%lse: !tile.ptr<f32>, %n: i32) target("cpu") grid(dense heads 1 tiles 1) schedule(#tile.simt_rows<rows = 1, keys = 4, lanes = 32, warps = 1, blocks = 1>) {
  %held = tile.place "held" : !tile.weights<1x16, 16>
  %s = tile.place "s" : !tile.scores<1x4, 32>
  // tile.hold_weights C1.
  // expected-error @below {{'tile.hold_weights' op expected places of fragments, or of strips of as many lanes}}
  tile.hold_weights %held, %s, %s at(%n) : !tile.weights<1x16, 16>, !tile.scores<1x4, 32>
}

// -----

tile.kernel @k(%lse: !tile.ptr<f32>, %n: i32) target("cpu") grid(dense heads 1 tiles 1) schedule(#tile.simt_rows<rows = 1, keys = 4, lanes = 32, warps = 1, blocks = 1>) {
  %held = tile.place "held" : !tile.weights<1x16, 16>
  %s = tile.place "s" : !tile.scores<1x4, 32>
  %row = tile.place "row" : !tile.strip_rows<1, 32>
  // tile.held_grads C1.
  // expected-error @below {{'tile.held_grads' op expected places of fragments, or of strips of as many lanes}}
  tile.held_grads %s, %held, %row at(%n) : !tile.scores<1x4, 32>, !tile.weights<1x16, 16>, !tile.strip_rows<1, 32>
}

// -----

tile.kernel @k(%lse: !tile.ptr<f32>, %n: i32) target("cpu") grid(dense heads 1 tiles 1) schedule(#tile.simt_rows<rows = 1, keys = 4, lanes = 32, warps = 1, blocks = 1>) {
  %s = tile.place "s" : !tile.scores<1x4, 32>
  %row = tile.place "row" : !tile.strip_rows<2, 32>
  // tile.probabilities C2.
  // expected-error @below {{'tile.probabilities' op expected statistics of all rows of '!tile.scores<1x4, 32>', got: '!tile.strip_rows<2, 32>'}}
  tile.probabilities %s, %row at(%n, %n) scale 1.0 : !tile.scores<1x4, 32>, !tile.strip_rows<2, 32>
}

// -----

// !tile.weights C1.
// expected-error @below {{expected positive rows and columns, got: 1x0}}
module attributes {tile.type = !tile.weights<1x0, 16>} {}

// -----

// expected-error @below {{expected 1, 2, 4, 8, 16 or 32 lanes, got: 7}}
module attributes {tile.type = !tile.weights<1x16, 7>} {}
