// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What `tile.modify` and the second region of `tile.recompute_rows` refuse.
//
// RUN: attn-opt %s -split-input-file -verify-diagnostics

tile.kernel @k(%q: !tile.ptr<bf16>, %q_row: i64, %q0: i32, %k0: i32) target("cpu") grid(dense heads 1)
    schedule(#tile.tiled<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
  %s = tile.alloc "s" : !tile.frag<64x64, 4>
  // C1: `within` is positive.
  // expected-error @below {{'tile.modify' op expected a positive bound `within` and a region for smaller scores, or neither}}
  tile.modify %s at(%q0, %k0) : !tile.frag<64x64, 4> within 0.0 {
  ^bb0(%score: f32, %row: i32, %key: i32, %base: i32, %column_offset: f32):
    tile.yield %score : f32
  } else {
  ^bb0(%score: f32, %row: i32, %key: i32, %base: i32, %column_offset: f32):
    tile.yield %score : f32
  }
}

// -----

tile.kernel @k(%q: !tile.ptr<bf16>, %q_row: i64, %q0: i32, %k0: i32) target("cpu") grid(dense heads 1)
    schedule(#tile.tiled<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
  %s = tile.alloc "s" : !tile.frag<64x64, 4>
  // The region's arguments.
  // expected-error @below {{'tile.modify' op expected a region over (score f32, query row i32, key i32, base i32, ahead f32), got: 'i32', 'i32'}}
  tile.modify %s at(%q0, %k0) : !tile.frag<64x64, 4> {
  ^bb0(%row: i32, %key: i32):
    tile.yield %row : i32
  }
}

// -----

tile.kernel @k(%q: !tile.ptr<bf16>, %q_row: i64, %q0: i32, %k0: i32) target("cpu") grid(dense heads 1)
    schedule(#tile.tiled<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
  %s = tile.alloc "s" : !tile.frag<64x64, 4>
  // Those of the region for small scores.
  // expected-error @below {{expected a region over (score f32, query row i32, key i32, base i32, ahead f32), got: 'f32'}}
  tile.modify %s at(%q0, %k0) : !tile.frag<64x64, 4> within 1.0 {
  ^bb0(%score: f32):
    tile.yield %score : f32
  } else {
  ^bb0(%score: f32, %row: i32, %key: i32, %base: i32, %column_offset: f32):
    tile.yield %score : f32
  }
}

// -----

tile.kernel @k(%q: !tile.ptr<bf16>, %q_row: i64, %q0: i32, %k0: i32) target("cpu") grid(dense heads 1)
    schedule(#tile.tiled<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
  %s = tile.alloc "s" : !tile.frag<64x64, 4>
  // What it yields.
  // expected-error @below {{'tile.modify' op expected to yield a score of type f32, or three f32 of which it is a * b + c}}
  tile.modify %s at(%q0, %k0) : !tile.frag<64x64, 4> {
  ^bb0(%score: f32, %row: i32, %key: i32, %base: i32, %column_offset: f32):
    tile.yield %row : i32
  }
}

// -----

tile.kernel @k(%q: !tile.ptr<bf16>, %q_row: i64, %q0: i32, %k0: i32) target("cpu") grid(dense heads 1)
    schedule(#tile.tiled<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
  %s = tile.alloc "s" : !tile.frag<64x64, 4>
  // expected-error @below {{'tile.modify' op expected to yield a score of type f32, or three f32 of which it is a * b + c}}
  tile.modify %s at(%q0, %k0) : !tile.frag<64x64, 4> {
  ^bb0(%score: f32, %row: i32, %key: i32, %base: i32, %column_offset: f32):
    tile.yield %score, %score : f32, f32
  }
}

// -----

tile.kernel @k(%q: !tile.ptr<bf16>, %q_row: i64, %q0: i32, %k0: i32) target("cpu") grid(dense heads 1)
    schedule(#tile.tiled<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
  %s = tile.alloc "s" : !tile.frag<64x64, 4>
  // The same in a `tile.recompute_rows`.
  // expected-error @below {{'tile.recompute_rows' op expected to yield a score of type f32, or three f32 of which it is a * b + c}}
  tile.recompute_rows %s at(%q0) rows(%q0) keys(%q0) from(%q, %q_row, %q, %q_row, %q, %q_row) into(%q, %q_row) dims(64, 64)
      scale 1.0 : !tile.frag<64x64, 4>, !tile.ptr<bf16>, !tile.ptr<bf16> {
  ^bb0(%row: i32, %key: i32):
  } modify {
  ^bb0(%score: f32, %row: i32, %key: i32, %base: i32, %column_offset: f32):
    tile.yield %key : i32
  }
}

// -----

tile.kernel @k(%Q: !tile.ptr<bf16>, %q0: i32) target("cpu") grid(dense heads 1)
    schedule(#tile.tiled<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
  %s = tile.alloc "s" : !tile.frag<64x64, 4>
  // C1: a bound goes with a second region.
  // expected-error @below {{'tile.modify' op expected a positive bound `within` and a region for smaller scores, or neither}}
  "tile.modify"(%s, %q0, %q0) <{within = 1.0 : f64}> ({
  }, {
  ^bb0(%score: f32, %row: i32, %key: i32, %base: i32, %column_offset: f32):
    tile.yield %score : f32
  }) : (!tile.frag<64x64, 4>, i32, i32) -> ()
}

// -----

tile.kernel @k(%Q: !tile.ptr<bf16>, %q0: i32) target("cpu") grid(dense heads 1)
    schedule(#tile.tiled<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
  %s = tile.alloc "s" : !tile.frag<64x64, 4>
  // C2: what becomes of a bound is positive.
  // expected-error @below {{'tile.modify' op expected a positive `becomes`, behind `within`}}
  tile.modify %s at(%q0, %q0) : !tile.frag<64x64, 4> within 1.0 becomes -1.0 {
  ^bb0(%score: f32, %row: i32, %key: i32, %base: i32, %column_offset: f32):
    tile.yield %score : f32
  } else {
  ^bb0(%score: f32, %row: i32, %key: i32, %base: i32, %column_offset: f32):
    tile.yield %score : f32
  }
}

// -----

tile.kernel @k(%slopes: !tile.ptr<f32>, %h: i32) target("cpu") grid(dense heads 1)
    schedule(#tile.tiled<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
  // C1 of `tile.load`: f32 elements are not loaded for all threads at once.
  // expected-error @below {{'tile.load' op expected i32 elements in a uniform load, got: 'f32'}}
  %slope = tile.load uniform %slopes[%h] : i32 from !tile.ptr<f32>
}

// -----

tile.kernel @k(%q0: i32) target("sm_90a") grid(dense heads 1)
    schedule(#tile.warp_specialized<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
  %p = tile.alloc "p" : !tile.register_operand<64x64xbf16, 4>
  %s = tile.alloc "s" : !tile.frag<64x64, 4>
  %row = tile.alloc "row" : !tile.softmax_state<64, 4>
  // tile.softmax_convert C3: `at` goes with `modify`,
  // expected-error @below {{'tile.softmax_convert' op expected `at` two numbers and a region `modify`, or neither}}
  tile.softmax_convert %p, %s, %row scale 0.5 at(%q0, %q0) : !tile.register_operand<64x64xbf16, 4>, !tile.frag<64x64, 4>, !tile.softmax_state<64, 4>
}

// -----

tile.kernel @k(%q0: i32) target("sm_90a") grid(dense heads 1)
    schedule(#tile.warp_specialized<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
  %p = tile.alloc "p" : !tile.register_operand<64x64xbf16, 4>
  %s = tile.alloc "s" : !tile.frag<64x64, 4>
  %row = tile.alloc "row" : !tile.softmax_state<64, 4>
  // and a bound for small scores is positive.
  // expected-error @below {{'tile.softmax_convert' op expected a positive bound `within` and a region for smaller scores, or neither}}
  tile.softmax_convert %p, %s, %row scale 0.5 at(%q0, %q0) : !tile.register_operand<64x64xbf16, 4>, !tile.frag<64x64, 4>, !tile.softmax_state<64, 4> within 0.0 {
  ^bb0(%score: f32, %q: i32, %k: i32, %base: i32, %column_offset: f32):
    tile.yield %score : f32
  } else modify {
  ^bb0(%score: f32, %q: i32, %k: i32, %base: i32, %column_offset: f32):
    tile.yield %score : f32
  }
}

// -----

tile.kernel @k(%q0: i32) target("sm_90a") grid(dense heads 1)
    schedule(#tile.warp_specialized<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
  %p = tile.alloc "p" : !tile.register_operand<64x64xbf16, 4>
  %s = tile.alloc "s" : !tile.frag<64x64, 4>
  %row = tile.alloc "row" : !tile.softmax_state<64, 4>
  // as what becomes of it is.
  // expected-error @below {{'tile.softmax_convert' op expected a positive `becomes`, behind `within`}}
  tile.softmax_convert %p, %s, %row scale 0.5 at(%q0, %q0) : !tile.register_operand<64x64xbf16, 4>, !tile.frag<64x64, 4>, !tile.softmax_state<64, 4> within 1.0 becomes 0.0 {
  ^bb0(%score: f32, %q: i32, %k: i32, %base: i32, %column_offset: f32):
    tile.yield %score : f32
  } else modify {
  ^bb0(%score: f32, %q: i32, %k: i32, %base: i32, %column_offset: f32):
    tile.yield %score : f32
  }
}
