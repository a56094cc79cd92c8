// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// `tile-verify-async`: what ops say that they read and write, and ops that do not say it.
//
// RUN: attn-opt %s -allow-unregistered-dialect -tile-verify-async -split-input-file -verify-diagnostics

tile.kernel @load_statistics(%q: !tile.ptr<bf16>, %f: !tile.ptr<f32>, %stride: i64, %n: i32) target("sm_80")
    grid(dense heads 1) schedule(#tile.tiled<q_tile = 64, kv_tile = 64, warps = 4, blocks = 1>) {
  %stats = tile.place "stats" : !tile.statistics<64>
  // Statistics are written while a copy brings others,
  // expected-note @below {{while this is in flight into it}}
  %t = tile.copy_statistics %stats, %f pitch(%stride) : !tile.statistics<64>
  // expected-error @below {{'tile.load_statistics' op writes `stats`}}
  tile.load_statistics %stats, %f rows(%n) : !tile.statistics<64>
  tile.wait %t : !tile.token<copy>
}

// -----

tile.kernel @load_statistics_that_are_read(%q: !tile.ptr<bf16>, %f: !tile.ptr<f32>, %stride: i64, %n: i32) target("sm_80")
    grid(dense heads 1) schedule(#tile.tiled<q_tile = 64, kv_tile = 64, warps = 4, blocks = 1>) {
  %stats = tile.place "stats" : !tile.statistics<64>
  %s = tile.place "s" : !tile.frag<64x64, 4>
  %dp = tile.place "dp" : !tile.frag<64x64, 4>
  // or while other warps may be reading them.
  // expected-note @below {{which other warps may still be reading here}}
  tile.row_grads %dp, %s, %stats : !tile.frag<64x64, 4>, !tile.statistics<64>
  // expected-error @below {{'tile.load_statistics' op overwrites `stats`}}
  tile.load_statistics %stats, %f rows(%n) : !tile.statistics<64>
}

// -----

tile.kernel @row_grads(%q: !tile.ptr<bf16>, %f: !tile.ptr<f32>, %stride: i64, %n: i32) target("sm_80")
    grid(dense heads 1) schedule(#tile.tiled<q_tile = 64, kv_tile = 64, warps = 4, blocks = 1>) {
  %stats = tile.place "stats" : !tile.statistics<64>
  %s = tile.place "s" : !tile.frag<64x64, 4>
  %dp = tile.place "dp" : !tile.frag<64x64, 4>
  // Statistics are read while a copy brings them,
  // expected-note @below {{while this is in flight into it}}
  %t = tile.copy_statistics %stats, %f pitch(%stride) : !tile.statistics<64>
  // expected-error @below {{'tile.row_grads' op reads `stats`}}
  tile.row_grads %dp, %s, %stats : !tile.frag<64x64, 4>, !tile.statistics<64>
  tile.wait %t : !tile.token<copy>
}

// -----

tile.kernel @row_grads_that_are_read(%q: !tile.ptr<bf16>, %f: !tile.ptr<f32>, %stride: i64, %n: i32) target("sm_80")
    grid(dense heads 1) schedule(#tile.tiled<q_tile = 64, kv_tile = 64, warps = 4, blocks = 1>) {
  %stats = tile.place "stats" : !tile.statistics<64>
  %s = tile.place "s" : !tile.frag<64x64, 4>
  %dp = tile.place "dp" : !tile.frag<64x64, 4>
  // or brought while other warps may be reading them.
  // expected-note @below {{which other warps may still be reading here}}
  tile.row_grads %dp, %s, %stats : !tile.frag<64x64, 4>, !tile.statistics<64>
  // expected-error @below {{'tile.copy_statistics' op overwrites `stats`}}
  %t = tile.copy_statistics %stats, %f pitch(%stride) : !tile.statistics<64>
  tile.wait %t : !tile.token<copy>
}

// -----

tile.kernel @add_deltas(%map: !tile.map<64xbf16>, %n: i32) target("sm_90a")
    grid(dense heads 1) schedule(#tile.warp_specialized<q_tile = 64, kv_tile = 64, warps = 4, blocks = 1>) {
  %o = tile.place "O" : !tile.shared<64x64xbf16, swizzled>
  %do = tile.place "dO" : !tile.shared<64x64xbf16, swizzled>
  %row = tile.place "row" : !tile.rows<64, 4>
  // A box is brought while other warps may be reading the place.
  // expected-note @below {{which other warps may still be reading here}}
  tile.add_deltas %row, %o, %do : !tile.rows<64, 4>, !tile.shared<64x64xbf16, swizzled>, !tile.shared<64x64xbf16, swizzled>
  // expected-error @below {{'tile.copy_box' op overwrites `dO`}}
  %t = tile.copy_box %do, %map at(%n, %n, %n) : !tile.shared<64x64xbf16, swizzled>, !tile.map<64xbf16>
  tile.wait %t : !tile.token<copy>
}

// -----

tile.kernel @store_diagonals(%q: !tile.ptr<bf16>, %f: !tile.ptr<f32>, %stride: i64, %n: i32) target("sm_80")
    grid(dense heads 1) schedule(#tile.tiled<q_tile = 64, kv_tile = 64, warps = 4, blocks = 1>) {
  %place = tile.place "place" : !tile.shared<64x128xbf16, 136>
  %acc = tile.place "acc" : !tile.frag<64x64, 4>
  // What goes through a tile writes it.
  // expected-note @below {{while this is in flight into it}}
  %t = tile.copy_async %place, %q stride(%stride) rows(%n) dim 64 : !tile.shared<64x128xbf16, 136>, !tile.ptr<bf16>
  // expected-error @below {{'tile.store_diagonals' op writes `place`}}
  tile.store_diagonals %f pitch(%stride), %acc through(%place) : !tile.frag<64x64, 4>, !tile.shared<64x128xbf16, 136>
  tile.wait %t : !tile.token<copy>
}

// -----

tile.kernel @store_diagonals_that_are_read(%q: !tile.ptr<bf16>, %f: !tile.ptr<f32>, %stride: i64, %n: i32) target("sm_80")
    grid(dense heads 1) schedule(#tile.tiled<q_tile = 64, kv_tile = 64, warps = 4, blocks = 1>) {
  %place = tile.place "place" : !tile.shared<64x64xbf16, 136>
  %held = tile.place "held" : !tile.held<64x64xbf16, 4>
  %acc = tile.place "acc" : !tile.frag<64x64, 4>
  // expected-note @below {{which other warps may still be reading here}}
  tile.hold %held, %place : !tile.held<64x64xbf16, 4>, !tile.shared<64x64xbf16, 136>
  // expected-error @below {{'tile.store_diagonals' op overwrites `place`}}
  tile.store_diagonals %f pitch(%stride), %acc through(%place) : !tile.frag<64x64, 4>, !tile.shared<64x64xbf16, 136>
}

// -----

tile.kernel @negate_in_the_same_bytes(%q: !tile.ptr<bf16>, %f: !tile.ptr<f32>, %stride: i64, %n: i32) target("sm_80")
    grid(dense heads 1) schedule(#tile.tiled<q_tile = 64, kv_tile = 64, warps = 4, blocks = 1>) {
  %Q = tile.place "Q" at 0 : !tile.shared<64x64xbf16, 72>
  %K = tile.place "K" at 128 : !tile.shared<64x64xbf16, 72>
  // A tile is written that lies in the bytes of another.
  // expected-note @below {{while this is in flight into it}}
  %t = tile.copy_async %K, %q stride(%stride) rows(%n) dim 64 : !tile.shared<64x64xbf16, 72>, !tile.ptr<bf16>
  // expected-error @below {{'tile.negate' op overwrites `K`}}
  tile.negate %Q : !tile.shared<64x64xbf16, 72>
  tile.wait %t : !tile.token<copy>
}

// -----

tile.kernel @probabilities_of_strips(%q: !tile.ptr<bf16>, %f: !tile.ptr<f32>, %stride: i64, %n: i32) target("sm_80")
    grid(dense heads 1) schedule(#tile.tiled<q_tile = 64, kv_tile = 64, warps = 4, blocks = 1>) {
  %s = tile.place "s" : !tile.scores<1x4, 16>
  %dp = tile.place "dp" : !tile.scores<1x4, 16>
  %Q = tile.place "Q" : !tile.strip<1x128xf32, 16>
  %K = tile.place "K" : !tile.strip<4x128xbf16, 16>
  %row = tile.place "row" : !tile.strip_rows<1, 16>
  // Scores of a strip are places, too.
  // expected-note @below {{while this is in flight into it}}
  %t = tile.mma_qk %s, %Q, %K : !tile.scores<1x4, 16>, !tile.strip<1x128xf32, 16>, !tile.strip<4x128xbf16, 16>
  // expected-error @below {{'tile.probabilities' op writes `s`}}
  tile.probabilities %s, %row at(%n, %n) scale 0.125 : !tile.scores<1x4, 16>, !tile.strip_rows<1, 16>
  tile.wait %t : !tile.token<product>
}

// -----

tile.kernel @grad_scores_of_strips(%q: !tile.ptr<bf16>, %f: !tile.ptr<f32>, %stride: i64, %n: i32) target("sm_80")
    grid(dense heads 1) schedule(#tile.tiled<q_tile = 64, kv_tile = 64, warps = 4, blocks = 1>) {
  %s = tile.place "s" : !tile.scores<1x4, 16>
  %dp = tile.place "dp" : !tile.scores<1x4, 16>
  %Q = tile.place "Q" : !tile.strip<1x128xf32, 16>
  %K = tile.place "K" : !tile.strip<4x128xbf16, 16>
  %row = tile.place "row" : !tile.strip_rows<1, 16>
  // Scores of a strip are places, too.
  // expected-note @below {{while this is in flight into it}}
  %t = tile.mma_qk %s, %Q, %K : !tile.scores<1x4, 16>, !tile.strip<1x128xf32, 16>, !tile.strip<4x128xbf16, 16>
  // expected-error @below {{'tile.grad_scores' op writes `s`}}
  tile.grad_scores %s, %dp, %row : !tile.scores<1x4, 16>, !tile.scores<1x4, 16>, !tile.strip_rows<1, 16>
  tile.wait %t : !tile.token<product>
}

// -----

tile.kernel @together(%q: !tile.ptr<bf16>, %queue: !tile.queue, %stride: i64, %n: i32) target("sm_80")
    grid(dense heads 1) schedule(#tile.tiled<q_tile = 64, kv_tile = 64, warps = 4, blocks = 1>) {
  %Q = tile.place "Q" : !tile.shared<64x64xbf16, 72>
  %held = tile.place "held" : !tile.held<64x64xbf16, 4>
  // What all blocks do together is looked at, too.
  // expected-note @below {{while this is in flight into it}}
  %t = tile.copy_async %Q, %q stride(%stride) rows(%n) dim 64 : !tile.shared<64x64xbf16, 72>, !tile.ptr<bf16>
  tile.together %queue of %n(%n) longer(%n) : i32 {
  ^bb0(%team: !tile.team, %b: i32):
    // expected-error @below {{'tile.hold' op reads `Q`}}
    tile.hold %held, %Q : !tile.held<64x64xbf16, 4>, !tile.shared<64x64xbf16, 72>
  }
  tile.wait %t : !tile.token<copy>
}

// -----

tile.kernel @global_memory(%q: !tile.ptr<bf16>, %f: !tile.ptr<f32>, %stride: i64, %n: i32) target("sm_80")
    grid(dense heads 1) schedule(#tile.tiled<q_tile = 64, kv_tile = 64, warps = 4, blocks = 1>) {
  %Q = tile.place "Q" : !tile.shared<64x64xbf16, 72>
  %acc = tile.place "acc" : !tile.frag<64x64, 4>
  // Results are written where a copy reads.
  // expected-note @below {{while this is in flight and reads it}}
  %t = tile.copy_async %Q, %q stride(%stride) rows(%n) dim 64 : !tile.shared<64x64xbf16, 72>, !tile.ptr<bf16>
  // expected-error @below {{'tile.store' op writes a place}}
  tile.store %q stride(%stride), %acc rows(%n, %n) dim 64 : !tile.ptr<bf16>, !tile.frag<64x64, 4>
  tile.wait %t : !tile.token<copy>
}

// -----

tile.kernel @role(%q: !tile.ptr<bf16>, %f: !tile.ptr<f32>, %stride: i64, %n: i32) target("sm_90a")
    grid(dense heads 1) schedule(#tile.warp_specialized<q_tile = 64, kv_tile = 64, warps = 4, blocks = 1>) {
  tile.roles registers(40, 232) producer {
    // The producer has no warps that store rows.
    // expected-error @below {{expected an op that is run by the producer, got: tile.store_padding}}
    tile.store_padding %q stride(%stride) rows(%n) dim 64 : !tile.ptr<bf16>
  } consumer {
  }
}

// -----

tile.kernel @role_of_consumers(%q: !tile.ptr<bf16>, %f: !tile.ptr<f32>, %stride: i64, %n: i32) target("sm_90a")
    grid(dense heads 1) schedule(#tile.warp_specialized<q_tile = 64, kv_tile = 64, warps = 4, blocks = 1>) {
  %feed = tile.place "feed" : !tile.feed<1>
  tile.roles registers(40, 232) producer {
  } consumer {
    // expected-error @below {{expected an op that is run by the consumers, got: tile.send}}
    tile.send %feed(%n) : !tile.feed<1>
  }
}

// -----

tile.kernel @silent(%q: !tile.ptr<bf16>, %f: !tile.ptr<f32>, %stride: i64, %n: i32) target("sm_80")
    grid(dense heads 1) schedule(#tile.tiled<q_tile = 64, kv_tile = 64, warps = 4, blocks = 1>) {
  %s = tile.place "s" : !tile.frag<64x64, 4>
  // An op of this dialect says what it does,
  // expected-error @below {{expected an op that says what it reads and writes (TileOpInterface), got: tile.silent}}
  "tile.silent"(%s) : (!tile.frag<64x64, 4>) -> ()
}

// -----

tile.kernel @other_dialects(%q: !tile.ptr<bf16>, %f: !tile.ptr<f32>, %stride: i64, %n: i32) target("sm_80")
    grid(dense heads 1) schedule(#tile.tiled<q_tile = 64, kv_tile = 64, warps = 4, blocks = 1>) {
  %s = tile.place "s" : !tile.frag<64x64, 4>
  // and what others do is not known.
  // expected-error @below {{expected an op without effects, or a loop or a branch of scf, got: other.op}}
  "other.op"(%s) : (!tile.frag<64x64, 4>) -> ()
}

// -----

tile.kernel @silent_in_a_region(%q: !tile.ptr<bf16>, %f: !tile.ptr<f32>, %stride: i64, %n: i32) target("sm_80")
    grid(dense heads 1) schedule(#tile.tiled<q_tile = 64, kv_tile = 64, warps = 4, blocks = 1>) {
  %s = tile.place "s" : !tile.frag<64x64, 4>
  tile.modify %s at(%n, %n) : !tile.frag<64x64, 4> {
  ^bb0(%score: f32, %row: i32, %key: i32, %base: i32, %ahead: f32):
    // expected-error @below {{expected an op that says what it reads and writes (TileOpInterface), got: tile.silent}}
    "tile.silent"() : () -> ()
    tile.yield %score : f32
  }
}
