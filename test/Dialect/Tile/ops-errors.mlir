// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What ops refuse: their constraints, by number, and bad text.
//
// RUN: attn-opt %s -split-input-file -verify-diagnostics

// tile.kernel C1: as many argument names as arguments.
// expected-error @below {{'tile.kernel' op expected as many argument names as arguments, got: 1 and 0}}
"tile.kernel"() <{arg_names = ["q"], config = #tile.config<q_tile = 64, kv_tile = 64, warps = 4, blocks = 1>, heads = 1 : i64, sym_name = "k", target = "cpu"}> ({
^bb0:
}) : () -> ()

// -----

// expected-error @below {{expected grid `dense` or `packed`, got: sparse}}
tile.kernel @k() target("cpu") grid(sparse heads 1) config(<q_tile = 64, kv_tile = 64, warps = 4, blocks = 1>) {
}

// -----

tile.kernel @k(%q: !tile.ptr<bf16>, %stride: i64, %n: i32) target("sm_80") grid(dense heads 1)
    config(<q_tile = 64, kv_tile = 64, warps = 4, blocks = 1>) {
  %K = tile.place "K" : !tile.shared<64x64xbf16, 72>
  // tile.copy_async C1: dim is a multiple of 8
  // expected-error @below {{'tile.copy_async' op expected dim in multiples of 8 up to the place's columns and one element type, got: dim 60, '!tile.ptr<bf16>' into '!tile.shared<64x64xbf16, 72>'}}
  %t = tile.copy_async %K, %q stride(%stride) rows(%n) dim 60 : !tile.shared<64x64xbf16, 72>, !tile.ptr<bf16>
}

// -----

tile.kernel @k(%q: !tile.ptr<bf16>, %stride: i64, %n: i32) target("sm_80") grid(dense heads 1)
    config(<q_tile = 64, kv_tile = 64, warps = 4, blocks = 1>) {
  %K = tile.place "K" : !tile.shared<64x64xbf16, 72>
  // tile.copy_async C1: at most the place's columns (its pitch does not count)
  // expected-error @below {{got: dim 72,}}
  %t = tile.copy_async %K, %q stride(%stride) rows(%n) dim 72 : !tile.shared<64x64xbf16, 72>, !tile.ptr<bf16>
}

// -----

tile.kernel @k(%q: !tile.ptr<bf16>, %stride: i64, %n: i32) target("sm_80") grid(dense heads 1)
    config(<q_tile = 64, kv_tile = 64, warps = 4, blocks = 1>) {
  %K = tile.place "K" : !tile.shared<64x64xbf16, 72>
  // expected-error @below {{got: dim 0,}}
  %t = tile.copy_async %K, %q stride(%stride) rows(%n) dim 0 : !tile.shared<64x64xbf16, 72>, !tile.ptr<bf16>
}

// -----

tile.kernel @k(%q: !tile.ptr<f16>, %stride: i64, %n: i32) target("sm_80") grid(dense heads 1)
    config(<q_tile = 64, kv_tile = 64, warps = 4, blocks = 1>) {
  %K = tile.place "K" : !tile.shared<64x64xbf16, 72>
  // tile.copy_async C1: element types agree
  // expected-error @below {{got: dim 64, '!tile.ptr<f16>' into '!tile.shared<64x64xbf16, 72>'}}
  %t = tile.copy_async %K, %q stride(%stride) rows(%n) dim 64 : !tile.shared<64x64xbf16, 72>, !tile.ptr<f16>
}

// -----

tile.kernel @k() target("sm_80") grid(dense heads 1) config(<q_tile = 64, kv_tile = 64, warps = 4, blocks = 1>) {
  // tile.wait C1: there is at least one token
  // expected-error @below {{'tile.wait' op expected tokens of one kind, got: }}
  "tile.wait"() : () -> ()
}

// -----

tile.kernel @k(%q: !tile.ptr<bf16>, %stride: i64, %n: i32) target("sm_80") grid(dense heads 1)
    config(<q_tile = 64, kv_tile = 64, warps = 4, blocks = 1>) {
  %Q = tile.place "Q" : !tile.shared<64x64xbf16, 72>
  %s = tile.place "s" : !tile.frag<64x64, 4>
  %t = tile.copy_async %Q, %q stride(%stride) rows(%n) dim 64 : !tile.shared<64x64xbf16, 72>, !tile.ptr<bf16>
  %u = tile.mma_qk %s, %Q, %Q : !tile.frag<64x64, 4>, !tile.shared<64x64xbf16, 72>, !tile.shared<64x64xbf16, 72>
  // tile.wait C1: all tokens are of one kind
  // expected-error @below {{'tile.wait' op expected tokens of one kind, got: '!tile.token<copy>', '!tile.token<product>'}}
  tile.wait %t, %u : !tile.token<copy>, !tile.token<product>
}

// -----

tile.kernel @k() target("sm_80") grid(dense heads 1) config(<q_tile = 64, kv_tile = 64, warps = 4, blocks = 1>) {
  %Q = tile.place "Q" : !tile.shared<64x64xbf16, 72>
  %K = tile.place "K" : !tile.shared<32x64xbf16, 72>
  %s = tile.place "s" : !tile.frag<64x64, 4>
  // tile.mma_qk C1: s has as many columns as K has rows
  // expected-error @below {{'tile.mma_qk' op expected s to be Q's rows by K's rows over equal columns, got: '!tile.frag<64x64, 4>' = '!tile.shared<64x64xbf16, 72>' x '!tile.shared<32x64xbf16, 72>'}}
  %t = tile.mma_qk %s, %Q, %K : !tile.frag<64x64, 4>, !tile.shared<64x64xbf16, 72>, !tile.shared<32x64xbf16, 72>
}

// -----

tile.kernel @k() target("sm_80") grid(dense heads 1) config(<q_tile = 64, kv_tile = 64, warps = 4, blocks = 1>) {
  %Q = tile.place "Q" : !tile.shared<128x64xbf16, 72>
  %K = tile.place "K" : !tile.shared<64x64xbf16, 72>
  %s = tile.place "s" : !tile.frag<64x64, 4>
  // tile.mma_qk C1: s has Q's rows
  // expected-error @below {{expected s to be Q's rows by K's rows over equal columns}}
  %t = tile.mma_qk %s, %Q, %K : !tile.frag<64x64, 4>, !tile.shared<128x64xbf16, 72>, !tile.shared<64x64xbf16, 72>
}

// -----

tile.kernel @k() target("sm_80") grid(dense heads 1) config(<q_tile = 64, kv_tile = 64, warps = 4, blocks = 1>) {
  %Q = tile.place "Q" : !tile.shared<64x128xbf16, 136>
  %K = tile.place "K" : !tile.shared<64x64xbf16, 72>
  %s = tile.place "s" : !tile.frag<64x64, 4>
  // tile.mma_qk C1: Q and K have equal columns
  // expected-error @below {{expected s to be Q's rows by K's rows over equal columns}}
  %t = tile.mma_qk %s, %Q, %K : !tile.frag<64x64, 4>, !tile.shared<64x128xbf16, 136>, !tile.shared<64x64xbf16, 72>
}

// -----

tile.kernel @k() target("sm_80") grid(dense heads 1) config(<q_tile = 64, kv_tile = 64, warps = 4, blocks = 1>) {
  %Q = tile.place "Q" : !tile.shared<64x64xbf16, 72>
  %K = tile.place "K" : !tile.shared<64x64xf16, 72>
  %s = tile.place "s" : !tile.frag<64x64, 4>
  // tile.mma_qk C1: and equal element types
  // expected-error @below {{expected s to be Q's rows by K's rows over equal columns}}
  %t = tile.mma_qk %s, %Q, %K : !tile.frag<64x64, 4>, !tile.shared<64x64xbf16, 72>, !tile.shared<64x64xf16, 72>
}

// -----

tile.kernel @k() target("sm_80") grid(dense heads 1) config(<q_tile = 64, kv_tile = 64, warps = 4, blocks = 1>) {
  %V = tile.place "V" : !tile.shared<32x64xbf16, 72>
  %p = tile.place "p" : !tile.frag<64x64, 4>
  %acc = tile.place "acc" : !tile.frag<64x64, 4>
  // tile.mma_pv C1: p has as many columns as V has rows
  // expected-error @below {{'tile.mma_pv' op expected acc to be p's rows by V's columns over V's rows, got: '!tile.frag<64x64, 4>' += '!tile.frag<64x64, 4>' x '!tile.shared<32x64xbf16, 72>'}}
  %t = tile.mma_pv %acc, %p, %V : !tile.frag<64x64, 4>, !tile.frag<64x64, 4>, !tile.shared<32x64xbf16, 72>
}

// -----

tile.kernel @k() target("sm_80") grid(dense heads 1) config(<q_tile = 64, kv_tile = 64, warps = 4, blocks = 1>) {
  %V = tile.place "V" : !tile.shared<64x128xbf16, 136>
  %p = tile.place "p" : !tile.frag<64x64, 4>
  %acc = tile.place "acc" : !tile.frag<64x64, 4>
  // tile.mma_pv C1: acc has V's columns
  // expected-error @below {{expected acc to be p's rows by V's columns over V's rows}}
  %t = tile.mma_pv %acc, %p, %V : !tile.frag<64x64, 4>, !tile.frag<64x64, 4>, !tile.shared<64x128xbf16, 136>
}

// -----

tile.kernel @k() target("sm_80") grid(dense heads 1) config(<q_tile = 64, kv_tile = 64, warps = 4, blocks = 1>) {
  %V = tile.place "V" : !tile.shared<64x64xbf16, 72>
  %p = tile.place "p" : !tile.frag<64x64, 4>
  %acc = tile.place "acc" : !tile.frag<64x64, 2>
  // tile.mma_pv C1: acc has p's rows, split as they are
  // expected-error @below {{expected acc to be p's rows by V's columns over V's rows, got: '!tile.frag<64x64, 2>' += '!tile.frag<64x64, 4>'}}
  %t = tile.mma_pv %acc, %p, %V : !tile.frag<64x64, 2>, !tile.frag<64x64, 4>, !tile.shared<64x64xbf16, 72>
}

// -----

tile.kernel @k(%n: i32) target("sm_80") grid(dense heads 1) config(<q_tile = 64, kv_tile = 64, warps = 4, blocks = 1>) {
  %s = tile.place "s" : !tile.frag<64x64, 4>
  // expected-error @below {{'tile.keep' op expected a region over (query row i32, key i32), got: 'i32'}}
  tile.keep %s at(%n, %n) : !tile.frag<64x64, 4> {
  ^bb0(%q: i32):
    tile.yield
  }
}

// -----

tile.kernel @k(%n: i32) target("sm_80") grid(dense heads 1) config(<q_tile = 64, kv_tile = 64, warps = 4, blocks = 1>) {
  %s = tile.place "s" : !tile.frag<64x64, 4>
  // expected-error @below {{'tile.keep' op expected to yield conditions of type i1, got: 'i32'}}
  tile.keep %s at(%n, %n) : !tile.frag<64x64, 4> {
  ^bb0(%q: i32, %k: i32):
    tile.yield %q : i32
  }
}

// -----

tile.kernel @k() target("sm_80") grid(dense heads 1) config(<q_tile = 64, kv_tile = 64, warps = 4, blocks = 1>) {
  // A place is a tile, a fragment or row states.
  // expected-error @below {{op result #0 must be a place: a tile in shared memory or a place: tiles in shared memory}}
  %s = tile.place "s" : i32
}

// -----

tile.kernel @k() target("sm_80") grid(dense heads 1) config(<q_tile = 64, kv_tile = 64, warps = 4, blocks = 1>) {
  %Q = tile.place "Q" : !tile.shared<64x64xbf16, 72>
  %held = tile.place "held" : !tile.held<64x32xbf16, 4>
  // tile.hold C1: both have the same rows, columns and element type
  // expected-error @below {{'tile.hold' op expected tiles of the same shape and element type, got: '!tile.held<64x32xbf16, 4>' and '!tile.shared<64x64xbf16, 72>'}}
  tile.hold %held, %Q : !tile.held<64x32xbf16, 4>, !tile.shared<64x64xbf16, 72>
}

// -----

tile.kernel @k() target("sm_80") grid(dense heads 1) config(<q_tile = 64, kv_tile = 64, warps = 4, blocks = 1>) {
  %s = tile.place "s" : !tile.frag<64x64, 4>
  %row = tile.place "row" : !tile.rows<64, 4>
  // tile.softmax_step C1: scale is positive
  // expected-error @below {{'tile.softmax_step' op expected a positive scale, got: 0}}
  tile.softmax_step %s, %row, %s scale 0.0 : !tile.frag<64x64, 4>, !tile.rows<64, 4>, !tile.frag<64x64, 4>
}

// -----
// kernel C2
// expected-error @below {{'tile.kernel' op expected target "cpu", "sm_80" or "sm_90a", got: "banana"}}
tile.kernel @k() target("banana") grid(dense heads 1) config(<q_tile = 64, kv_tile = 64, warps = 4, blocks = 1>) {
}

// -----
// kernel C3
// expected-error @below {{'tile.kernel' op expected at least one head in its grid, got: 0}}
tile.kernel @k() target("cpu") grid(dense heads 0) config(<q_tile = 64, kv_tile = 64, warps = 4, blocks = 1>) {
}
