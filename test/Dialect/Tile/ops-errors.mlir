// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What ops refuse: their constraints, by number, and bad text.
//
// RUN: attn-opt %s -split-input-file -verify-diagnostics

// tile.kernel C1: as many argument names as arguments.
// expected-error @below {{'tile.kernel' op expected as many argument names as arguments, got: 1 and 0}}
"tile.kernel"() <{arg_names = ["q"], heads = 1 : i64, schedule = #tile.tiled<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>, sym_name = "k", target = "cpu"}> ({
^bb0:
}) : () -> ()

// -----

// expected-error @below {{expected grid `dense`, `packed` or `rows`, got: sparse}}
tile.kernel @k() target("cpu") grid(sparse heads 1) schedule(#tile.tiled<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
}

// -----

tile.kernel @k(%q: !tile.ptr<bf16>, %stride: i64, %n: i32) target("sm_80") grid(dense heads 1)
    schedule(#tile.tiled<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
  %K = tile.alloc "K" : !tile.shared<64x64xbf16, 72>
  // tile.copy_async C1: dim is a multiple of 8
  // expected-error @below {{'tile.copy_async' op expected dim in multiples of 8 up to the place's columns and one element type, got: dim 60, '!tile.ptr<bf16>' into '!tile.shared<64x64xbf16, 72>'}}
  %t = tile.copy_async %K, %q stride(%stride) rows(%n) dim 60 : !tile.shared<64x64xbf16, 72>, !tile.ptr<bf16>
}

// -----

tile.kernel @k(%q: !tile.ptr<bf16>, %stride: i64, %n: i32) target("sm_80") grid(dense heads 1)
    schedule(#tile.tiled<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
  %K = tile.alloc "K" : !tile.shared<64x64xbf16, 72>
  // tile.copy_async C1: at most the place's columns (its pitch does not count)
  // expected-error @below {{got: dim 72,}}
  %t = tile.copy_async %K, %q stride(%stride) rows(%n) dim 72 : !tile.shared<64x64xbf16, 72>, !tile.ptr<bf16>
}

// -----

tile.kernel @k(%q: !tile.ptr<bf16>, %stride: i64, %n: i32) target("sm_80") grid(dense heads 1)
    schedule(#tile.tiled<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
  %K = tile.alloc "K" : !tile.shared<64x64xbf16, 72>
  // expected-error @below {{got: dim 0,}}
  %t = tile.copy_async %K, %q stride(%stride) rows(%n) dim 0 : !tile.shared<64x64xbf16, 72>, !tile.ptr<bf16>
}

// -----

tile.kernel @k(%q: !tile.ptr<f16>, %stride: i64, %n: i32) target("sm_80") grid(dense heads 1)
    schedule(#tile.tiled<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
  %K = tile.alloc "K" : !tile.shared<64x64xbf16, 72>
  // tile.copy_async C1: element types agree
  // expected-error @below {{got: dim 64, '!tile.ptr<f16>' into '!tile.shared<64x64xbf16, 72>'}}
  %t = tile.copy_async %K, %q stride(%stride) rows(%n) dim 64 : !tile.shared<64x64xbf16, 72>, !tile.ptr<f16>
}

// -----

tile.kernel @k(%q: !tile.ptr<bf16>, %stride: i64, %n: i32) target("sm_80") grid(dense heads 1)
    schedule(#tile.tiled<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
  %K = tile.alloc "K" : !tile.shared<64x64xbf16, 72>
  // tile.copy_async C2: `once` copies all rows
  // expected-error @below {{expected neither `once` nor pairs of rows with `from`, got: 'i64'}}
  %t = tile.copy_async once %K, %q stride(%stride) rows(%n from %n) dim 64 : !tile.shared<64x64xbf16, 72>, !tile.ptr<bf16>
}

// -----

tile.kernel @k() target("sm_80") grid(dense heads 1) schedule(#tile.tiled<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
  // tile.wait C1: there is at least one token
  // expected-error @below {{'tile.wait' op expected tokens of one kind, got: }}
  "tile.wait"() : () -> ()
}

// -----

tile.kernel @k(%q: !tile.ptr<bf16>, %stride: i64, %n: i32) target("sm_80") grid(dense heads 1)
    schedule(#tile.tiled<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
  %Q = tile.alloc "Q" : !tile.shared<64x64xbf16, 72>
  %s = tile.alloc "s" : !tile.frag<64x64, 4>
  %t = tile.copy_async %Q, %q stride(%stride) rows(%n) dim 64 : !tile.shared<64x64xbf16, 72>, !tile.ptr<bf16>
  %u = tile.mma_abt %s, %Q, %Q : !tile.frag<64x64, 4>, !tile.shared<64x64xbf16, 72>, !tile.shared<64x64xbf16, 72>
  // tile.wait C1: all tokens are of one kind
  // expected-error @below {{'tile.wait' op expected tokens of one kind, got: '!tile.token<copy>', '!tile.token<product>'}}
  tile.wait %t, %u : !tile.token<copy>, !tile.token<product>
}

// -----

tile.kernel @k() target("sm_80") grid(dense heads 1) schedule(#tile.tiled<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
  %Q = tile.alloc "Q" : !tile.shared<64x64xbf16, 72>
  %K = tile.alloc "K" : !tile.shared<32x64xbf16, 72>
  %s = tile.alloc "s" : !tile.frag<64x64, 4>
  // tile.mma_abt C1: s has as many columns as K has rows
  // expected-error @below {{'tile.mma_abt' op expected s to be Q's rows by K's rows over equal columns, got: '!tile.frag<64x64, 4>' = '!tile.shared<64x64xbf16, 72>' x '!tile.shared<32x64xbf16, 72>'}}
  %t = tile.mma_abt %s, %Q, %K : !tile.frag<64x64, 4>, !tile.shared<64x64xbf16, 72>, !tile.shared<32x64xbf16, 72>
}

// -----

tile.kernel @k() target("sm_80") grid(dense heads 1) schedule(#tile.tiled<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
  %Q = tile.alloc "Q" : !tile.shared<128x64xbf16, 72>
  %K = tile.alloc "K" : !tile.shared<64x64xbf16, 72>
  %s = tile.alloc "s" : !tile.frag<64x64, 4>
  // tile.mma_abt C1: s has Q's rows
  // expected-error @below {{expected s to be Q's rows by K's rows over equal columns}}
  %t = tile.mma_abt %s, %Q, %K : !tile.frag<64x64, 4>, !tile.shared<128x64xbf16, 72>, !tile.shared<64x64xbf16, 72>
}

// -----

tile.kernel @k() target("sm_80") grid(dense heads 1) schedule(#tile.tiled<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
  %Q = tile.alloc "Q" : !tile.shared<64x128xbf16, 136>
  %K = tile.alloc "K" : !tile.shared<64x64xbf16, 72>
  %s = tile.alloc "s" : !tile.frag<64x64, 4>
  // tile.mma_abt C1: Q and K have equal columns
  // expected-error @below {{expected s to be Q's rows by K's rows over equal columns}}
  %t = tile.mma_abt %s, %Q, %K : !tile.frag<64x64, 4>, !tile.shared<64x128xbf16, 136>, !tile.shared<64x64xbf16, 72>
}

// -----

tile.kernel @k() target("sm_80") grid(dense heads 1) schedule(#tile.tiled<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
  %Q = tile.alloc "Q" : !tile.shared<64x64xbf16, 72>
  %K = tile.alloc "K" : !tile.shared<64x64xf16, 72>
  %s = tile.alloc "s" : !tile.frag<64x64, 4>
  // tile.mma_abt C1: and equal element types
  // expected-error @below {{expected s to be Q's rows by K's rows over equal columns}}
  %t = tile.mma_abt %s, %Q, %K : !tile.frag<64x64, 4>, !tile.shared<64x64xbf16, 72>, !tile.shared<64x64xf16, 72>
}

// -----

tile.kernel @k() target("sm_80") grid(dense heads 1) schedule(#tile.tiled<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
  %V = tile.alloc "V" : !tile.shared<32x64xbf16, 72>
  %p = tile.alloc "p" : !tile.frag<64x64, 4>
  %acc = tile.alloc "acc" : !tile.frag<64x64, 4>
  // tile.mma_ab C1: p has as many columns as V has rows
  // expected-error @below {{'tile.mma_ab' op expected acc to be p's rows by V's columns over V's rows, got: '!tile.frag<64x64, 4>' += '!tile.frag<64x64, 4>' x '!tile.shared<32x64xbf16, 72>'}}
  %t = tile.mma_ab %acc, %p, %V : !tile.frag<64x64, 4>, !tile.frag<64x64, 4>, !tile.shared<32x64xbf16, 72>
}

// -----

tile.kernel @k() target("sm_80") grid(dense heads 1) schedule(#tile.tiled<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
  %V = tile.alloc "V" : !tile.shared<64x128xbf16, 136>
  %p = tile.alloc "p" : !tile.frag<64x64, 4>
  %acc = tile.alloc "acc" : !tile.frag<64x64, 4>
  // tile.mma_ab C1: acc has V's columns
  // expected-error @below {{expected acc to be p's rows by V's columns over V's rows}}
  %t = tile.mma_ab %acc, %p, %V : !tile.frag<64x64, 4>, !tile.frag<64x64, 4>, !tile.shared<64x128xbf16, 136>
}

// -----

tile.kernel @k() target("sm_80") grid(dense heads 1) schedule(#tile.tiled<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
  %V = tile.alloc "V" : !tile.shared<64x64xbf16, 72>
  %p = tile.alloc "p" : !tile.frag<64x64, 4>
  %acc = tile.alloc "acc" : !tile.frag<64x64, 2>
  // tile.mma_ab C1: acc has p's rows, split as they are
  // expected-error @below {{expected acc to be p's rows by V's columns over V's rows, got: '!tile.frag<64x64, 2>' += '!tile.frag<64x64, 4>'}}
  %t = tile.mma_ab %acc, %p, %V : !tile.frag<64x64, 2>, !tile.frag<64x64, 4>, !tile.shared<64x64xbf16, 72>
}

// -----

tile.kernel @k(%n: i32) target("sm_80") grid(dense heads 1) schedule(#tile.tiled<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
  %s = tile.alloc "s" : !tile.frag<64x64, 4>
  // expected-error @below {{'tile.apply_mask' op expected a region over (query row i32, key i32), got: 'i32'}}
  tile.apply_mask %s at(%n, %n) : !tile.frag<64x64, 4> {
  ^bb0(%q: i32):
    tile.yield
  }
}

// -----

tile.kernel @k(%n: i32) target("sm_80") grid(dense heads 1) schedule(#tile.tiled<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
  %s = tile.alloc "s" : !tile.frag<64x64, 4>
  // expected-error @below {{'tile.apply_mask' op expected to yield conditions of type i1, got: 'i32'}}
  tile.apply_mask %s at(%n, %n) : !tile.frag<64x64, 4> {
  ^bb0(%q: i32, %k: i32):
    tile.yield %q : i32
  }
}

// -----

tile.kernel @k() target("sm_80") grid(dense heads 1) schedule(#tile.tiled<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
  // A place is a tile, a fragment or row states.
  // expected-error @below {{op result #0 must be a place, but got 'i32'}}
  %s = tile.alloc "s" : i32
}

// -----

tile.kernel @k() target("sm_80") grid(dense heads 1) schedule(#tile.tiled<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
  %Q = tile.alloc "Q" : !tile.shared<64x64xbf16, 72>
  %q_operand = tile.alloc "q_operand" : !tile.register_operand<64x32xbf16, 4>
  // tile.load_operand C1: both have the same rows, columns and element type
  // expected-error @below {{'tile.load_operand' op expected tiles of the same shape and element type, got: '!tile.register_operand<64x32xbf16, 4>' and '!tile.shared<64x64xbf16, 72>'}}
  tile.load_operand %q_operand, %Q : !tile.register_operand<64x32xbf16, 4>, !tile.shared<64x64xbf16, 72>
}

// -----

tile.kernel @k() target("sm_80") grid(dense heads 1) schedule(#tile.tiled<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
  %s = tile.alloc "s" : !tile.frag<64x64, 4>
  %row = tile.alloc "row" : !tile.softmax_state<64, 4>
  // tile.online_softmax C1: scale is positive
  // expected-error @below {{'tile.online_softmax' op expected a positive scale, got: 0}}
  tile.online_softmax %s, %row, %s scale 0.0 : !tile.frag<64x64, 4>, !tile.softmax_state<64, 4>, !tile.frag<64x64, 4>
}

// -----
// kernel C2
// expected-error @below {{'tile.kernel' op expected target "cpu", "sm_80" or "sm_90a", got: "banana"}}
tile.kernel @k() target("banana") grid(dense heads 1) schedule(#tile.tiled<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
}

// -----
// kernel C3
// expected-error @below {{'tile.kernel' op expected at least one head in its grid, got: 0}}
tile.kernel @k() target("cpu") grid(dense heads 0) schedule(#tile.tiled<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
}

// -----

tile.kernel @k(%map: !tile.tensor_map<64xbf16, stride 4>, %n: i32) target("sm_90a") grid(dense heads 4 residues 4)
    schedule(#tile.warp_specialized<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
  %K = tile.alloc "K" : !tile.shared<96x64xbf16, swizzled>
  // tile.copy_tma C1: whole boxes
  // expected-error @below {{'tile.copy_tma' op expected a swizzled tile of the map's rows and element type, got: '!tile.shared<96x64xbf16, swizzled>' and '!tile.tensor_map<64xbf16, stride 4>'}}
  %t = tile.copy_tma %K, %map at(%n, %n, %n) : !tile.shared<96x64xbf16, swizzled>, !tile.tensor_map<64xbf16, stride 4>
}

// -----

// tile.kernel C7
// expected-error @below {{'tile.kernel' op expected 2 to 8 residues, which divide the heads, without `tiles`, `longer` and clusters, got: 9 of 9 heads}}
tile.kernel @k(%n: i32) target("cpu") grid(dense heads 9 residues 9)
    schedule(#tile.tiled<q_tile = 64, kv_tile = 64, warps = 1, ctas_per_sm = 1>) {
}

// -----

// expected-error @below {{'tile.kernel' op expected 2 to 8 residues, which divide the heads, without `tiles`, `longer` and clusters, got: 2 of 2 heads}}
tile.kernel @k(%n: i32) target("cpu") grid(packed heads 2 longer 16, 16 residues 2)
    schedule(#tile.tiled<q_tile = 64, kv_tile = 64, warps = 1, ctas_per_sm = 1>) {
}

// -----

// expected-error @below {{'tile.kernel' op expected 2 to 8 residues, which divide the heads, without `tiles`, `longer` and clusters, got: 3 of 4 heads}}
tile.kernel @k(%n: i32) target("cpu") grid(dense heads 4 residues 3)
    schedule(#tile.tiled<q_tile = 64, kv_tile = 64, warps = 1, ctas_per_sm = 1>) {
}

// -----

tile.kernel @k(%map: !tile.tensor_map<64xbf16>, %n: i32) target("sm_90a") grid(dense heads 1)
    schedule(#tile.warp_specialized<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
  %K = tile.alloc "K" : !tile.shared<64x64xbf16, 72>
  // tile.copy_tma C1: the place is swizzled
  // expected-error @below {{'tile.copy_tma' op expected a swizzled tile of the map's rows and element type, got: '!tile.shared<64x64xbf16, 72>' and '!tile.tensor_map<64xbf16>'}}
  %t = tile.copy_tma %K, %map at(%n, %n, %n) : !tile.shared<64x64xbf16, 72>, !tile.tensor_map<64xbf16>
}

// -----

tile.kernel @k(%map: !tile.tensor_map<128xbf16>, %n: i32) target("sm_90a") grid(dense heads 1)
    schedule(#tile.warp_specialized<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
  %K = tile.alloc "K" : !tile.shared<64x64xbf16, swizzled>
  // tile.copy_tma C1: and has the map's rows
  // expected-error @below {{expected a swizzled tile of the map's rows and element type, got: }}
  %t = tile.copy_tma %K, %map at(%n, %n, %n) : !tile.shared<64x64xbf16, swizzled>, !tile.tensor_map<128xbf16>
}

// -----

tile.kernel @k(%map: !tile.tensor_map<64xf16>, %n: i32) target("sm_90a") grid(dense heads 1)
    schedule(#tile.warp_specialized<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
  %K = tile.alloc "K" : !tile.shared<64x64xbf16, swizzled>
  // tile.copy_tma C1: and element type
  // expected-error @below {{expected a swizzled tile of the map's rows and element type, got: }}
  %t = tile.copy_tma %K, %map at(%n, %n, %n) : !tile.shared<64x64xbf16, swizzled>, !tile.tensor_map<64xf16>
}

// -----

tile.kernel @k(%map: !tile.tensor_map<64xbf16, packed>, %n: i32) target("sm_90a") grid(packed heads 1)
    schedule(#tile.warp_specialized<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
  %K = tile.alloc "K" : !tile.shared<192x64xbf16, swizzled>
  // tile.copy_tma C3: as many boxes as there is room for
  // expected-error @below {{'tile.copy_tma' op expected from 1 to 3 boxes, of a packed map without heads and stride, got: 4 of '!tile.tensor_map<64xbf16, packed>'}}
  %t = tile.copy_tma %K, %map at(%n, %n) rows(%n) boxes 4 : !tile.shared<192x64xbf16, swizzled>, !tile.tensor_map<64xbf16, packed>
}

// -----

tile.kernel @k(%map: !tile.tensor_map<64xbf16>, %n: i32) target("sm_90a") grid(dense heads 1)
    schedule(#tile.warp_specialized<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
  %K = tile.alloc "K" : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>
  // tile.producer_load C3: of a packed map
  // expected-error @below {{'tile.producer_load' op expected from 1 to 1 boxes, of a packed map without heads and stride, got: 1 of '!tile.tensor_map<64xbf16>'}}
  tile.producer_load %K, %map at(%n, %n, %n) boxes 1 : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>, !tile.tensor_map<64xbf16>
}

// -----

tile.kernel @k(%map: !tile.tensor_map<64xbf16, packed>, %n: i32) target("sm_90a") grid(dense heads 1)
    schedule(#tile.warp_specialized<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
  %K = tile.alloc "K" : !tile.shared<64x64xbf16, swizzled>
  // tile.copy_tma C2: a packed map has rows
  // expected-error @below {{'tile.copy_tma' op expected rows and no batch for '!tile.tensor_map<64xbf16, packed>'}}
  %t = tile.copy_tma %K, %map at(%n, %n, %n) : !tile.shared<64x64xbf16, swizzled>, !tile.tensor_map<64xbf16, packed>
}

// -----

tile.kernel @k(%map: !tile.tensor_map<64xbf16, packed>, %n: i32) target("sm_90a") grid(dense heads 1)
    schedule(#tile.warp_specialized<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
  %K = tile.alloc "K" : !tile.shared<64x64xbf16, swizzled>
  // tile.copy_tma C2: and no batch
  // expected-error @below {{'tile.copy_tma' op expected rows and no batch for '!tile.tensor_map<64xbf16, packed>'}}
  %t = tile.copy_tma %K, %map at(%n, %n, %n) rows(%n) : !tile.shared<64x64xbf16, swizzled>, !tile.tensor_map<64xbf16, packed>
}

// -----

tile.kernel @k(%map: !tile.tensor_map<64xbf16, packed>, %n: i32) target("sm_90a") grid(dense heads 1)
    schedule(#tile.warp_specialized<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
  %K = tile.alloc "K" : !tile.shared<64x64xbf16, swizzled>
  // tile.copy_tma C2: so one of both
  // expected-error @below {{'tile.copy_tma' op expected rows and no batch for '!tile.tensor_map<64xbf16, packed>'}}
  %t = tile.copy_tma %K, %map at(%n, %n) : !tile.shared<64x64xbf16, swizzled>, !tile.tensor_map<64xbf16, packed>
}

// -----

tile.kernel @k(%map: !tile.tensor_map<64xbf16>, %n: i32) target("sm_90a") grid(dense heads 1)
    schedule(#tile.warp_specialized<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
  %K = tile.alloc "K" : !tile.shared<64x64xbf16, swizzled>
  // tile.copy_tma C2: another one has a batch
  // expected-error @below {{'tile.copy_tma' op expected a batch and no rows for '!tile.tensor_map<64xbf16>'}}
  %t = tile.copy_tma %K, %map at(%n, %n) : !tile.shared<64x64xbf16, swizzled>, !tile.tensor_map<64xbf16>
}

// -----

tile.kernel @k(%map: !tile.tensor_map<64xbf16>, %n: i32) target("sm_90a") grid(dense heads 1)
    schedule(#tile.warp_specialized<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
  %K = tile.alloc "K" : !tile.shared<64x64xbf16, swizzled>
  // tile.copy_tma C2: and no rows
  // expected-error @below {{'tile.copy_tma' op expected a batch and no rows for '!tile.tensor_map<64xbf16>'}}
  %t = tile.copy_tma %K, %map at(%n, %n, %n) rows(%n) : !tile.shared<64x64xbf16, swizzled>, !tile.tensor_map<64xbf16>
}

// -----

tile.kernel @k(%map: !tile.tensor_map<64xbf16>, %n: i32) target("sm_90a") grid(dense heads 1)
    schedule(#tile.warp_specialized<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
  %K = tile.alloc "K" : !tile.shared<64x64xbf16, swizzled>
  // tile.copy_tma C2: which do not stand for it
  // expected-error @below {{'tile.copy_tma' op expected a batch and no rows for '!tile.tensor_map<64xbf16>'}}
  %t = tile.copy_tma %K, %map at(%n, %n) rows(%n) : !tile.shared<64x64xbf16, swizzled>, !tile.tensor_map<64xbf16>
}

// -----

tile.kernel @k(%map: !tile.tensor_map<128xbf16>, %n: i32) target("sm_90a") grid(dense heads 1)
    schedule(#tile.warp_specialized<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
  %K = tile.alloc "K" : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>
  // tile.producer_load C1: the ring's tile has the map's rows
  // expected-error @below {{'tile.producer_load' op expected a swizzled tile of the map's rows and element type, got: '!tile.shared<64x64xbf16, swizzled>' and '!tile.tensor_map<128xbf16>'}}
  tile.producer_load %K, %map at(%n, %n, %n) : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>, !tile.tensor_map<128xbf16>
}

// -----

tile.kernel @k(%map: !tile.tensor_map<64xf16>, %n: i32) target("sm_90a") grid(dense heads 1)
    schedule(#tile.warp_specialized<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
  %K = tile.alloc "K" : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>
  // tile.producer_load C1: and element type
  // expected-error @below {{'tile.producer_load' op expected a swizzled tile of the map's rows and element type, got: }}
  tile.producer_load %K, %map at(%n, %n, %n) : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>, !tile.tensor_map<64xf16>
}

// -----

tile.kernel @k(%map: !tile.tensor_map<64xbf16, packed>, %n: i32) target("sm_90a") grid(dense heads 1)
    schedule(#tile.warp_specialized<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
  %K = tile.alloc "K" : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>
  // tile.producer_load C2: a packed map has rows
  // expected-error @below {{'tile.producer_load' op expected rows and no batch for '!tile.tensor_map<64xbf16, packed>'}}
  tile.producer_load %K, %map at(%n, %n, %n) : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>, !tile.tensor_map<64xbf16, packed>
}

// -----

tile.kernel @k(%map: !tile.tensor_map<64xbf16, packed>, %n: i32) target("sm_90a") grid(dense heads 1)
    schedule(#tile.warp_specialized<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
  %K = tile.alloc "K" : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>
  // tile.producer_load C2: and no batch
  // expected-error @below {{'tile.producer_load' op expected rows and no batch for '!tile.tensor_map<64xbf16, packed>'}}
  tile.producer_load %K, %map at(%n, %n, %n) rows(%n) : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>, !tile.tensor_map<64xbf16, packed>
}

// -----

tile.kernel @k(%map: !tile.tensor_map<64xbf16>, %n: i32) target("sm_90a") grid(dense heads 1)
    schedule(#tile.warp_specialized<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
  %K = tile.alloc "K" : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>
  // tile.producer_load C2: another one has a batch
  // expected-error @below {{'tile.producer_load' op expected a batch and no rows for '!tile.tensor_map<64xbf16>'}}
  tile.producer_load %K, %map at(%n, %n) rows(%n) : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>, !tile.tensor_map<64xbf16>
}

// -----

tile.kernel @k(%map: !tile.tensor_map<64xbf16>, %n: i32) target("sm_90a") grid(dense heads 1)
    schedule(#tile.warp_specialized<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
  %K = tile.alloc "K" : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>
  // tile.producer_load C2: and no rows
  // expected-error @below {{'tile.producer_load' op expected a batch and no rows for '!tile.tensor_map<64xbf16>'}}
  tile.producer_load %K, %map at(%n, %n, %n) rows(%n) : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>, !tile.tensor_map<64xbf16>
}

// -----

tile.kernel @k() target("sm_90a") grid(dense heads 1)
    schedule(#tile.warp_specialized<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
  %K = tile.alloc "K" : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>
  // expected-error @below {{'tile.consumer_wait' op failed to verify that the ring's tile}}
  %t = "tile.consumer_wait"(%K) <{operandSegmentSizes = array<i32: 1, 0, 0>}> : (!tile.ring<2, !tile.shared<64x64xbf16, swizzled>>) -> !tile.shared<64x32xbf16, swizzled>
}

// -----

tile.kernel @k(%n: i32) target("sm_90a") grid(dense heads 1)
    schedule(#tile.warp_specialized<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
  %mailbox = tile.alloc "mailbox" : !tile.mailbox<2>
  // tile.publish_work C1: as many words as the feed has
  // expected-error @below {{'tile.publish_work' op expected 2 words, got: 1}}
  tile.publish_work %mailbox(%n) : !tile.mailbox<2>
}

// -----

tile.kernel @k(%n: i32) target("sm_90a") grid(dense heads 1)
    schedule(#tile.warp_specialized<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
  // expected-error @below {{'tile.persistent_loop' op expected a region over (block i32, further words i32), got: }}
  tile.persistent_loop %n {
  }
}

// -----

tile.kernel @k(%n: i32) target("sm_90a") grid(dense heads 1)
    schedule(#tile.warp_specialized<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
  // expected-error @below {{'tile.persistent_loop' op expected a region over (block i32, further words i32), got: 'i32', 'i64'}}
  tile.persistent_loop %n {
  ^bb0(%block: i32, %word: i64):
  }
}

// -----

tile.kernel @k() target("sm_90a") grid(dense heads 1)
    schedule(#tile.warp_specialized<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
  %p = tile.alloc "p" : !tile.register_operand<64x64xbf16, 4>
  %s = tile.alloc "s" : !tile.frag<64x64, 2>
  // tile.convert C1: both have the same warps
  // expected-error @below {{'tile.convert' op expected the same rows, columns and warps, got: '!tile.register_operand<64x64xbf16, 4>' and '!tile.frag<64x64, 2>'}}
  tile.convert %p, %s : !tile.register_operand<64x64xbf16, 4>, !tile.frag<64x64, 2>
}

// -----

tile.kernel @k() target("sm_90a") grid(dense heads 1)
    schedule(#tile.warp_specialized<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
  %p = tile.alloc "p" : !tile.register_operand<64x32xbf16, 4>
  %s = tile.alloc "s" : !tile.frag<64x64, 4>
  // tile.convert C1: both have the same columns
  // expected-error @below {{expected the same rows, columns and warps, got: '!tile.register_operand<64x32xbf16, 4>'}}
  tile.convert %p, %s : !tile.register_operand<64x32xbf16, 4>, !tile.frag<64x64, 4>
}

// -----

tile.kernel @k() target("sm_90a") grid(dense heads 1)
    schedule(#tile.warp_specialized<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
  %p = tile.alloc "p" : !tile.register_operand<128x64xbf16, 4>
  %s = tile.alloc "s" : !tile.frag<64x64, 4>
  // tile.convert C1: both have the same rows
  // expected-error @below {{expected the same rows, columns and warps, got: '!tile.register_operand<128x64xbf16, 4>'}}
  tile.convert %p, %s : !tile.register_operand<128x64xbf16, 4>, !tile.frag<64x64, 4>
}

// -----

tile.kernel @k() target("sm_90a") grid(dense heads 1)
    schedule(#tile.warp_specialized<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
  %s = tile.alloc "s" : !tile.frag<64x64, 4>
  %row = tile.alloc "row" : !tile.softmax_state<64, 4>
  // tile.online_softmax C1: scale is positive
  // expected-error @below {{'tile.online_softmax' op expected a positive scale, got: -5.000000e-01}}
  tile.online_softmax %s, %row scale -0.5 : !tile.frag<64x64, 4>, !tile.softmax_state<64, 4>
}

// -----

tile.kernel @k() target("sm_90a") grid(dense heads 1)
    schedule(#tile.warp_specialized<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
  %p = tile.alloc "p" : !tile.register_operand<64x64xbf16, 4>
  %s = tile.alloc "s" : !tile.frag<64x64, 4>
  %row = tile.alloc "row" : !tile.softmax_state<64, 4>
  // tile.softmax_convert C1: scale is positive
  // expected-error @below {{'tile.softmax_convert' op expected a positive scale, got: 0}}
  tile.softmax_convert %p, %s, %row scale 0.0 : !tile.register_operand<64x64xbf16, 4>, !tile.frag<64x64, 4>, !tile.softmax_state<64, 4>
}

// -----

tile.kernel @k() target("sm_90a") grid(dense heads 1)
    schedule(#tile.warp_specialized<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
  %p = tile.alloc "p" : !tile.register_operand<64x32xbf16, 4>
  %s = tile.alloc "s" : !tile.frag<64x64, 4>
  %row = tile.alloc "row" : !tile.softmax_state<64, 4>
  // tile.softmax_convert C2: p and s have the same columns
  // expected-error @below {{'tile.softmax_convert' op expected the same rows, columns and warps, got: '!tile.register_operand<64x32xbf16, 4>'}}
  tile.softmax_convert %p, %s, %row scale 0.5 : !tile.register_operand<64x32xbf16, 4>, !tile.frag<64x64, 4>, !tile.softmax_state<64, 4>
}

// -----

tile.kernel @k() target("sm_90a") grid(dense heads 1)
    schedule(#tile.warp_specialized<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
  %V = tile.alloc "V" : !tile.shared<64x64xbf16, swizzled>
  %p = tile.alloc "p" : !tile.register_operand<64x96xbf16, 4>
  %acc = tile.alloc "acc" : !tile.frag<64x64, 4>
  // tile.mma_ab C1, of a P that is held, and has more columns than V has rows
  // expected-error @below {{expected acc to be p's rows by V's columns over V's rows, got: '!tile.frag<64x64, 4>' += '!tile.register_operand<64x96xbf16, 4>' x '!tile.shared<64x64xbf16, swizzled>'}}
  %t = tile.mma_ab %acc, %p, %V : !tile.frag<64x64, 4>, !tile.register_operand<64x96xbf16, 4>, !tile.shared<64x64xbf16, swizzled>
}

// -----

tile.kernel @k(%q: !tile.ptr<bf16>, %st: i64, %n: i32) target("sm_90a") grid(dense heads 1)
    schedule(#tile.warp_specialized<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
  %acc = tile.alloc "acc" : !tile.frag<64x64, 4>
  // expected-error @below {{'tile.recompute_rows' op expected a region over (query row i32, key i32), got: 'i32'}}
  tile.recompute_rows %acc at(%n) rows(%n) keys(%n) from(%q, %st, %q, %st, %q, %st) into(%q, %st) dims(64, 64) scale 0.5
      : !tile.frag<64x64, 4>, !tile.ptr<bf16>, !tile.ptr<bf16> {
  ^bb0(%a: i32):
    tile.yield
  }
}

// -----

tile.kernel @k(%q: !tile.ptr<bf16>, %st: i64, %n: i32) target("sm_90a") grid(dense heads 1)
    schedule(#tile.warp_specialized<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
  %acc = tile.alloc "acc" : !tile.frag<64x64, 4>
  // expected-error @below {{'tile.recompute_rows' op expected to yield conditions of type i1, got: 'i32'}}
  tile.recompute_rows %acc at(%n) rows(%n) keys(%n) from(%q, %st, %q, %st, %q, %st) into(%q, %st) dims(64, 64) scale 0.5
      : !tile.frag<64x64, 4>, !tile.ptr<bf16>, !tile.ptr<bf16> {
  ^bb0(%a: i32, %b: i32):
    tile.yield %a : i32
  }
}

// -----

// expected-note @below {{prior use here}}
tile.kernel @k(%q: !tile.ptr<bf16>, %st: i64, %n: i32) target("sm_90a") grid(dense heads 1)
    schedule(#tile.warp_specialized<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
  %acc = tile.alloc "acc" : !tile.frag<64x64, 4>
  // LSE is float32.
  // expected-error @below {{use of value '%q' expects different type than prior uses: '!tile.ptr<f32>' vs '!tile.ptr<bf16>'}}
  tile.recompute_rows %acc at(%n) rows(%n) keys(%n) from(%q, %st, %q, %st, %q, %st) into(%q, %st) lse(%q) dims(64, 64) scale 0.5
      : !tile.frag<64x64, 4>, !tile.ptr<bf16>, !tile.ptr<bf16> {
  ^bb0(%a: i32, %b: i32):
  }
}

// -----

tile.kernel @k(%q: !tile.ptr<bf16>, %o: !tile.ptr<f16>, %st: i64, %n: i32) target("sm_90a") grid(dense heads 1)
    schedule(#tile.warp_specialized<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
  %acc = tile.alloc "acc" : !tile.frag<64x64, 4>
  // tile.recompute_rows C1
  // expected-error @below {{'tile.recompute_rows' op expected results of q's elements or f32, got: 'f16'}}
  tile.recompute_rows %acc at(%n) rows(%n) keys(%n) from(%q, %st, %q, %st, %q, %st) into(%o, %st) dims(64, 64) scale 0.5
      : !tile.frag<64x64, 4>, !tile.ptr<bf16>, !tile.ptr<f16> {
  ^bb0(%a: i32, %b: i32):
  }
}

// -----

tile.kernel @k(%o: !tile.ptr<bf16>, %part: !tile.ptr<f32>, %st: i64, %n: i32) target("cpu") grid(dense heads 1)
    schedule(#tile.auxiliary<q_tile = 4, kv_tile = 16, warps = 4, ctas_per_sm = 1>) {
  // tile.combine C1
  // expected-error @below {{'tile.combine' op expected dim in multiples of 8 from 8 to 256 and results of bf16, f16 or f32, got: dim 12, 'bf16'}}
  tile.combine %o stride(%st) from(%part, %part, %part) splits(%n, %st) rows(%n) dim 12 scale 1.0 : !tile.ptr<bf16>
}

// -----

tile.kernel @k(%o: !tile.ptr<bf16>, %part: !tile.ptr<f32>, %st: i64, %n: i32) target("cpu") grid(dense heads 1)
    schedule(#tile.auxiliary<q_tile = 4, kv_tile = 16, warps = 4, ctas_per_sm = 1>) {
  // tile.combine C2
  // expected-error @below {{'tile.combine' op expected a positive scale, got: -1}}
  tile.combine %o stride(%st) from(%part, %part, %part) splits(%n, %st) rows(%n) dim 64 scale -1.0 : !tile.ptr<bf16>
}

// -----

tile.kernel @k(%o: !tile.ptr<bf16>, %part: !tile.ptr<f32>, %st: i64, %n: i32) target("cpu") grid(dense heads 1)
    schedule(#tile.auxiliary<q_tile = 8, kv_tile = 8, warps = 8, ctas_per_sm = 1>) {
  // tile.combine_sums C1
  // expected-error @below {{'tile.combine_sums' op expected dim in multiples of 8 from 8 to 256 and results of bf16, f16 or f32, got: dim 12, 'bf16'}}
  tile.combine_sums %o stride(%st) from(%part) splits(%n, %n) rows(%n) dim 12 : !tile.ptr<bf16>
}

// -----

tile.kernel @k(%part: !tile.ptr<f32>, %st: i64, %n: i32) target("sm_80") grid(dense heads 1)
    schedule(#tile.auxiliary<q_tile = 4, kv_tile = 16, warps = 4, ctas_per_sm = 1>) {
  // tile.combine C1
  // expected-error @below {{results of bf16 or f16, got: dim 64, 'f32'}}
  tile.combine %part stride(%st) from(%part, %part, %part) splits(%n, %st) rows(%n) dim 64 scale 1.0 : !tile.ptr<f32>
}

// -----

tile.kernel @k(%st: i64, %n: i32) target("cpu") grid(dense heads 1)
    schedule(#tile.tiled<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
  // tile.pairs C1
  // expected-error @below {{'tile.pairs' op expected a query and a head of type 'i32', got: 'i32' and 'i64'}}
  %at = "tile.pairs"(%n, %st) : (i32, i64) -> !tile.pairs<4, i32>
}

// -----

tile.kernel @k(%o: !tile.ptr<bf16>, %st: i64, %n: i32) target("cpu") grid(dense heads 1)
    schedule(#tile.tiled<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
  // Pairs begin with at least two heads.
  // expected-error @below {{expected pairs with one of 2 to 256 heads, counted in i32 or i64, got: 1 in 'i64'}}
  tile.store_padding %o stride(%st heads 1) rows(%n) dim 64 : !tile.ptr<bf16>
}

// -----

tile.kernel @k(%n: i32) target("cpu") grid(dense heads 1) schedule(#tile.tiled<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
  %s = tile.alloc "s" : !tile.frag<64x64, 4>
  %at = tile.pairs %n, %n : !tile.pairs<4, i32>
  // Of pairs, the head is part of what a score is modified by.
  // expected-error @below {{expected a region over (score f32, query row i32, key i32, base i32, ahead f32, head i32), got: 'f32', 'i32', 'i32', 'i32', 'f32'}}
  tile.modify %s at(%at heads 4, %n) : !tile.frag<64x64, 4> {
  ^bb0(%score: f32, %query: i32, %key: i32, %base: i32, %column_offset: f32):
    tile.yield %score : f32
  }
}

// -----

tile.kernel @k(%q: !tile.ptr<bf16>, %st: i64, %n: i32) target("sm_90a") grid(dense heads 1)
    schedule(#tile.warp_specialized<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
  %acc = tile.alloc "acc" : !tile.frag<64x64, 4>
  // tile.recompute_rows C4: how many ranges, but not which;
  // expected-error @below {{'tile.recompute_rows' op expected ranges and along together, and no from with them}}
  tile.recompute_rows %acc at(%n) rows(%n) keys(%n) from(%q, %st, %q, %st, %q, %st) into(%q, %st) dims(64, 64) scale 0.5
      ranges(%n) : !tile.frag<64x64, 4>, !tile.ptr<bf16>, !tile.ptr<bf16> {
  ^bb0(%a: i32, %b: i32):
  }
}

// -----

tile.kernel @k(%q: !tile.ptr<bf16>, %st: i64, %n: i32) target("sm_90a") grid(dense heads 1)
    schedule(#tile.warp_specialized<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
  %acc = tile.alloc "acc" : !tile.frag<64x64, 4>
  // and which, but of no keys.
  // expected-error @below {{'tile.recompute_rows' op expected an along from i32 to the first key, the end and the row of a range, of type i32}}
  tile.recompute_rows %acc at(%n) rows(%n) keys(%n) from(%q, %st, %q, %st, %q, %st) into(%q, %st) dims(64, 64) scale 0.5
      ranges(%n) : !tile.frag<64x64, 4>, !tile.ptr<bf16>, !tile.ptr<bf16> {
  ^bb0(%a: i32, %b: i32):
  } along {
  ^bb0(%j: i32):
  }
}

// -----

tile.kernel @k(%q: !tile.ptr<bf16>, %st: i64, %n: i32) target("sm_90a") grid(dense heads 1)
    schedule(#tile.warp_specialized<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
  %acc = tile.alloc "acc" : !tile.frag<64x64, 4>
  %at = tile.pairs %n, %n : !tile.pairs<4, i32>
  // tile.recompute_rows C2
  // expected-error @below {{'tile.recompute_rows' op expected strides of q, o and lse in pairs as rows are, got: rows for 4 heads}}
  tile.recompute_rows %acc at(%at heads 4) rows(%n) keys(%n) from(%q, %st, %q, %st, %q, %st) into(%q, %st) dims(64, 64) scale 0.5
      : !tile.frag<64x64, 4>, !tile.ptr<bf16>, !tile.ptr<bf16> {
  ^bb0(%a: i32, %b: i32):
  }
}

// -----

tile.kernel @k(%map: !tile.tensor_map<12x4xbf16>, %n: i32) target("sm_90a") grid(dense heads 1)
    schedule(#tile.warp_specialized<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
  %Q = tile.alloc "Q" : !tile.shared<64x64xbf16, swizzled>
  // tile.copy_tma C1: four more queries would fit.
  // expected-error @below {{expected a swizzled tile of the map's rows and element type, got: '!tile.shared<64x64xbf16, swizzled>' and '!tile.tensor_map<12x4xbf16>'}}
  %t = tile.copy_tma %Q, %map at(%n, %n, %n) : !tile.shared<64x64xbf16, swizzled>, !tile.tensor_map<12x4xbf16>
}

// -----

tile.kernel @k(%n: i32, %c: i1) target("sm_80") grid(dense heads 1)
    schedule(#tile.tiled<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
  scf.if %c {
    // tile.index block C1
    // expected-error @below {{'tile.index' op expected `below` with `block`, in the body of the kernel itself, got: block within scf.if}}
    %block = tile.index block below(%n)
  }
}

// -----

tile.kernel @k() target("sm_90a") grid(dense heads 1)
    schedule(#tile.warp_specialized<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
  %acc = tile.alloc "acc" : !tile.frag<64x64, 4>
  %row = tile.alloc "row" : !tile.softmax_state<64, 4>
  // tile.normalize C2
  // expected-error @below {{expected `rows_recomputed` with a fragment, in a kernel with a `tile.recompute_rows`}}
  tile.normalize %acc, %row rows_recomputed : !tile.frag<64x64, 4>, !tile.softmax_state<64, 4>
}
