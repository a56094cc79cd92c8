// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// `tile-verify-async`: what ops say that they read and write, and ops that do not say it.
//
// RUN: attn-opt %s -allow-unregistered-dialect -tile-verify-async -split-input-file -verify-diagnostics

tile.kernel @load_statistics(%q: !tile.ptr<bf16>, %f: !tile.ptr<f32>, %stride: i64, %n: i32) target("sm_80")
    grid(dense heads 1) schedule(#tile.tiled<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
  %stats = tile.alloc "stats" : !tile.row_statistics<64>
  // Statistics are written while a copy brings others,
  // expected-note @below {{while this is in flight into it}}
  %t = tile.copy_row_statistics %stats, %f pitch(%stride) : !tile.row_statistics<64>
  // expected-error @below {{'tile.load_row_statistics' op writes `stats`}}
  tile.load_row_statistics %stats, %f rows(%n) : !tile.row_statistics<64>
  tile.wait %t : !tile.token<copy>
}

// -----

tile.kernel @load_statistics_that_are_read(%q: !tile.ptr<bf16>, %f: !tile.ptr<f32>, %stride: i64, %n: i32) target("sm_80")
    grid(dense heads 1) schedule(#tile.tiled<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
  %stats = tile.alloc "stats" : !tile.row_statistics<64>
  %s = tile.alloc "s" : !tile.frag<64x64, 4>
  %dp = tile.alloc "dp" : !tile.frag<64x64, 4>
  // or while other warps may be reading them.
  // expected-note @below {{which other warps may still be reading here}}
  tile.single_pass_grads %dp, %s, %stats : !tile.frag<64x64, 4>, !tile.row_statistics<64>
  // expected-error @below {{'tile.load_row_statistics' op overwrites `stats`}}
  tile.load_row_statistics %stats, %f rows(%n) : !tile.row_statistics<64>
}

// -----

tile.kernel @row_grads(%q: !tile.ptr<bf16>, %f: !tile.ptr<f32>, %stride: i64, %n: i32) target("sm_80")
    grid(dense heads 1) schedule(#tile.tiled<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
  %stats = tile.alloc "stats" : !tile.row_statistics<64>
  %s = tile.alloc "s" : !tile.frag<64x64, 4>
  %dp = tile.alloc "dp" : !tile.frag<64x64, 4>
  // Statistics are read while a copy brings them,
  // expected-note @below {{while this is in flight into it}}
  %t = tile.copy_row_statistics %stats, %f pitch(%stride) : !tile.row_statistics<64>
  // expected-error @below {{'tile.single_pass_grads' op reads `stats`}}
  tile.single_pass_grads %dp, %s, %stats : !tile.frag<64x64, 4>, !tile.row_statistics<64>
  tile.wait %t : !tile.token<copy>
}

// -----

tile.kernel @row_grads_that_are_read(%q: !tile.ptr<bf16>, %f: !tile.ptr<f32>, %stride: i64, %n: i32) target("sm_80")
    grid(dense heads 1) schedule(#tile.tiled<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
  %stats = tile.alloc "stats" : !tile.row_statistics<64>
  %s = tile.alloc "s" : !tile.frag<64x64, 4>
  %dp = tile.alloc "dp" : !tile.frag<64x64, 4>
  // or brought while other warps may be reading them.
  // expected-note @below {{which other warps may still be reading here}}
  tile.single_pass_grads %dp, %s, %stats : !tile.frag<64x64, 4>, !tile.row_statistics<64>
  // expected-error @below {{'tile.copy_row_statistics' op overwrites `stats`}}
  %t = tile.copy_row_statistics %stats, %f pitch(%stride) : !tile.row_statistics<64>
  tile.wait %t : !tile.token<copy>
}

// -----

tile.kernel @add_deltas(%map: !tile.tensor_map<64xbf16>, %n: i32) target("sm_90a")
    grid(dense heads 1) schedule(#tile.warp_specialized<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
  %o = tile.alloc "O" : !tile.shared<64x64xbf16, swizzled>
  %do = tile.alloc "dO" : !tile.shared<64x64xbf16, swizzled>
  %row = tile.alloc "row" : !tile.softmax_state<64, 4>
  // A box is brought while other warps may be reading the place.
  // expected-note @below {{which other warps may still be reading here}}
  tile.add_delta %row, %o, %do : !tile.softmax_state<64, 4>, !tile.shared<64x64xbf16, swizzled>, !tile.shared<64x64xbf16, swizzled>
  // expected-error @below {{'tile.copy_tma' op overwrites `dO`}}
  %t = tile.copy_tma %do, %map at(%n, %n, %n) : !tile.shared<64x64xbf16, swizzled>, !tile.tensor_map<64xbf16>
  tile.wait %t : !tile.token<copy>
}

// -----

tile.kernel @store_diagonals(%q: !tile.ptr<bf16>, %f: !tile.ptr<f32>, %stride: i64, %n: i32) target("sm_80")
    grid(dense heads 1) schedule(#tile.tiled<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
  %place = tile.alloc "place" : !tile.shared<64x128xbf16, 136>
  %acc = tile.alloc "acc" : !tile.frag<64x64, 4>
  // What goes through a tile writes it.
  // expected-note @below {{while this is in flight into it}}
  %t = tile.copy_async %place, %q stride(%stride) rows(%n) dim 64 : !tile.shared<64x128xbf16, 136>, !tile.ptr<bf16>
  // expected-error @below {{'tile.store_sums' op writes `place`}}
  tile.store_sums %f, %acc pitch(%stride) through(%place : !tile.shared<64x128xbf16, 136>) : !tile.ptr<f32>, !tile.frag<64x64, 4>
  tile.wait %t : !tile.token<copy>
}

// -----

tile.kernel @store_diagonals_that_are_read(%q: !tile.ptr<bf16>, %f: !tile.ptr<f32>, %stride: i64, %n: i32) target("sm_80")
    grid(dense heads 1) schedule(#tile.tiled<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
  %place = tile.alloc "place" : !tile.shared<64x64xbf16, 136>
  %q_operand = tile.alloc "q_operand" : !tile.register_operand<64x64xbf16, 4>
  %acc = tile.alloc "acc" : !tile.frag<64x64, 4>
  // expected-note @below {{which other warps may still be reading here}}
  tile.load_operand %q_operand, %place : !tile.register_operand<64x64xbf16, 4>, !tile.shared<64x64xbf16, 136>
  // expected-error @below {{'tile.store_sums' op overwrites `place`}}
  tile.store_sums %f, %acc pitch(%stride) through(%place : !tile.shared<64x64xbf16, 136>) : !tile.ptr<f32>, !tile.frag<64x64, 4>
}

// -----

tile.kernel @negate_in_the_same_bytes(%q: !tile.ptr<bf16>, %f: !tile.ptr<f32>, %stride: i64, %n: i32) target("sm_80")
    grid(dense heads 1) schedule(#tile.tiled<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
  %Q = tile.alloc "Q" at 0 : !tile.shared<64x64xbf16, 72>
  %K = tile.alloc "K" at 128 : !tile.shared<64x64xbf16, 72>
  // A tile is written that lies in the bytes of another.
  // expected-note @below {{while this is in flight into it}}
  %t = tile.copy_async %K, %q stride(%stride) rows(%n) dim 64 : !tile.shared<64x64xbf16, 72>, !tile.ptr<bf16>
  // expected-error @below {{'tile.scale' op overwrites `K`}}
  tile.scale %Q by -1.000000e+00 : !tile.shared<64x64xbf16, 72>
  tile.wait %t : !tile.token<copy>
}

// -----

tile.kernel @probabilities_of_strips(%q: !tile.ptr<bf16>, %f: !tile.ptr<f32>, %stride: i64, %n: i32) target("sm_80")
    grid(dense heads 1) schedule(#tile.tiled<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
  %s = tile.alloc "s" : !tile.simt_scores<1x4, 16>
  %dp = tile.alloc "dp" : !tile.simt_scores<1x4, 16>
  %Q = tile.alloc "Q" : !tile.simt_tile<1x128xf32, 16>
  %K = tile.alloc "K" : !tile.simt_tile<4x128xbf16, 16>
  %row = tile.alloc "row" : !tile.simt_softmax_state<1, 16>
  // Scores of a strip are places, too.
  // expected-note @below {{while this is in flight into it}}
  %t = tile.mma_abt %s, %Q, %K : !tile.simt_scores<1x4, 16>, !tile.simt_tile<1x128xf32, 16>, !tile.simt_tile<4x128xbf16, 16>
  // expected-error @below {{'tile.probabilities' op writes `s`}}
  tile.probabilities %s, %row at(%n, %n) scale 0.125 : !tile.simt_scores<1x4, 16>, !tile.simt_softmax_state<1, 16>
  tile.wait %t : !tile.token<product>
}

// -----

tile.kernel @grad_scores_of_strips(%q: !tile.ptr<bf16>, %f: !tile.ptr<f32>, %stride: i64, %n: i32) target("sm_80")
    grid(dense heads 1) schedule(#tile.tiled<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
  %s = tile.alloc "s" : !tile.simt_scores<1x4, 16>
  %dp = tile.alloc "dp" : !tile.simt_scores<1x4, 16>
  %Q = tile.alloc "Q" : !tile.simt_tile<1x128xf32, 16>
  %K = tile.alloc "K" : !tile.simt_tile<4x128xbf16, 16>
  %row = tile.alloc "row" : !tile.simt_softmax_state<1, 16>
  // Scores of a strip are places, too.
  // expected-note @below {{while this is in flight into it}}
  %t = tile.mma_abt %s, %Q, %K : !tile.simt_scores<1x4, 16>, !tile.simt_tile<1x128xf32, 16>, !tile.simt_tile<4x128xbf16, 16>
  // expected-error @below {{'tile.grad_scores' op writes `s`}}
  tile.grad_scores %s, %dp, %row : !tile.simt_scores<1x4, 16>, !tile.simt_scores<1x4, 16>, !tile.simt_softmax_state<1, 16>
  tile.wait %t : !tile.token<product>
}

// -----

tile.kernel @together(%q: !tile.ptr<bf16>, %queue: !tile.queue, %stride: i64, %n: i32) target("sm_80")
    grid(dense heads 1) schedule(#tile.tiled<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
  %Q = tile.alloc "Q" : !tile.shared<64x64xbf16, 72>
  %q_operand = tile.alloc "q_operand" : !tile.register_operand<64x64xbf16, 4>
  // What all blocks do together is looked at, too.
  // expected-note @below {{while this is in flight into it}}
  %t = tile.copy_async %Q, %q stride(%stride) rows(%n) dim 64 : !tile.shared<64x64xbf16, 72>, !tile.ptr<bf16>
  metadata.cooperative_loop %queue of %n(%n) longer(%n) : i32 {
  ^bb0(%ctas: !metadata.cooperative_ctas, %b: i32):
    // expected-error @below {{'tile.load_operand' op reads `Q`}}
    tile.load_operand %q_operand, %Q : !tile.register_operand<64x64xbf16, 4>, !tile.shared<64x64xbf16, 72>
  }
  tile.wait %t : !tile.token<copy>
}

// -----

tile.kernel @global_memory(%q: !tile.ptr<bf16>, %f: !tile.ptr<f32>, %stride: i64, %n: i32) target("sm_80")
    grid(dense heads 1) schedule(#tile.tiled<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
  %Q = tile.alloc "Q" : !tile.shared<64x64xbf16, 72>
  %acc = tile.alloc "acc" : !tile.frag<64x64, 4>
  // Results are written where a copy reads.
  // expected-note @below {{while this is in flight and reads it}}
  %t = tile.copy_async %Q, %q stride(%stride) rows(%n) dim 64 : !tile.shared<64x64xbf16, 72>, !tile.ptr<bf16>
  // expected-error @below {{'tile.store' op writes a place}}
  tile.store %q stride(%stride), %acc rows(%n, %n) dim 64 : !tile.ptr<bf16>, !tile.frag<64x64, 4>
  tile.wait %t : !tile.token<copy>
}

// -----

tile.kernel @role(%q: !tile.ptr<bf16>, %f: !tile.ptr<f32>, %stride: i64, %n: i32) target("sm_90a")
    grid(dense heads 1) schedule(#tile.warp_specialized<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
  tile.roles registers(40, 232) producer {
    // The producer has no warps that store rows.
    // expected-error @below {{expected an op that is run by the producer, got: tile.store_padding}}
    tile.store_padding %q stride(%stride) rows(%n) dim 64 : !tile.ptr<bf16>
  } consumer {
  }
}

// -----

tile.kernel @role_of_consumers(%q: !tile.ptr<bf16>, %f: !tile.ptr<f32>, %stride: i64, %n: i32) target("sm_90a")
    grid(dense heads 1) schedule(#tile.warp_specialized<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
  %mailbox = tile.alloc "mailbox" : !tile.mailbox<1>
  tile.roles registers(40, 232) producer {
  } consumer {
    // expected-error @below {{expected an op that is run by the consumers, got: tile.publish_work}}
    tile.publish_work %mailbox(%n) : !tile.mailbox<1>
  }
}

// -----

tile.kernel @silent(%q: !tile.ptr<bf16>, %f: !tile.ptr<f32>, %stride: i64, %n: i32) target("sm_80")
    grid(dense heads 1) schedule(#tile.tiled<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
  %s = tile.alloc "s" : !tile.frag<64x64, 4>
  // An op of this dialect says what it does,
  // expected-error @below {{expected an op that says what it reads and writes (TileOpInterface), got: tile.silent}}
  "tile.silent"(%s) : (!tile.frag<64x64, 4>) -> ()
}

// -----

tile.kernel @silent_of_metadata(%q: !tile.ptr<bf16>, %f: !tile.ptr<f32>, %stride: i64, %n: i32) target("sm_80")
    grid(dense heads 1) schedule(#tile.tiled<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
  %s = tile.alloc "s" : !tile.frag<64x64, 4>
  // one of the metadata dialect too,
  // expected-error @below {{expected an op that says what it reads and writes (TileOpInterface), got: metadata.silent}}
  "metadata.silent"(%s) : (!tile.frag<64x64, 4>) -> ()
}

// -----

tile.kernel @other_dialects(%q: !tile.ptr<bf16>, %f: !tile.ptr<f32>, %stride: i64, %n: i32) target("sm_80")
    grid(dense heads 1) schedule(#tile.tiled<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
  %s = tile.alloc "s" : !tile.frag<64x64, 4>
  // and what others do is not known.
  // expected-error @below {{expected an op without effects, or a loop or a branch of scf, got: other.op}}
  "other.op"(%s) : (!tile.frag<64x64, 4>) -> ()
}

// -----

tile.kernel @silent_in_a_region(%q: !tile.ptr<bf16>, %f: !tile.ptr<f32>, %stride: i64, %n: i32) target("sm_80")
    grid(dense heads 1) schedule(#tile.tiled<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
  %s = tile.alloc "s" : !tile.frag<64x64, 4>
  tile.modify %s at(%n, %n) : !tile.frag<64x64, 4> {
  ^bb0(%score: f32, %row: i32, %key: i32, %base: i32, %column_offset: f32):
    // expected-error @below {{expected an op that says what it reads and writes (TileOpInterface), got: tile.silent}}
    "tile.silent"() : () -> ()
    tile.yield %score : f32
  }
}
