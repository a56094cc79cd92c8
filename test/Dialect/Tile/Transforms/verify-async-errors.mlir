// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// `tile-verify-async`: every misuse of what is in flight.
//
// RUN: attn-opt %s -tile-verify-async -split-input-file -verify-diagnostics

tile.kernel @read_copy(%q: !tile.ptr<bf16>, %stride: i64, %n: i32, %lo: i32, %mid: i32, %hi: i32) target("sm_80")
    grid(dense heads 1) schedule(#tile.tiled<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
  %Q = tile.alloc "Q" : !tile.shared<64x64xbf16, 72>
  %K = tile.alloc "K" : !tile.shared<64x64xbf16, 72>
  %V = tile.alloc "V" : !tile.shared<64x64xbf16, 72>
  %s = tile.alloc "s" : !tile.frag<64x64, 4>
  %acc = tile.alloc "acc" : !tile.frag<64x64, 4>
  %row = tile.alloc "row" : !tile.softmax_state<64, 4>
  // A product reads K while its copy is in flight.
  // expected-note @below {{while this is in flight into it}}
  %t = tile.copy_async %K, %q stride(%stride) rows(%n) dim 64 : !tile.shared<64x64xbf16, 72>, !tile.ptr<bf16>
  // expected-error @below {{'tile.mma_abt' op reads `K`}}
  %u = tile.mma_abt %s, %Q, %K : !tile.frag<64x64, 4>, !tile.shared<64x64xbf16, 72>, !tile.shared<64x64xbf16, 72>
  tile.wait %t : !tile.token<copy>
  tile.wait %u : !tile.token<product>
}

// -----

tile.kernel @read_product(%q: !tile.ptr<bf16>, %stride: i64, %n: i32, %lo: i32, %mid: i32, %hi: i32) target("sm_80")
    grid(dense heads 1) schedule(#tile.tiled<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
  %Q = tile.alloc "Q" : !tile.shared<64x64xbf16, 72>
  %K = tile.alloc "K" : !tile.shared<64x64xbf16, 72>
  %V = tile.alloc "V" : !tile.shared<64x64xbf16, 72>
  %s = tile.alloc "s" : !tile.frag<64x64, 4>
  %acc = tile.alloc "acc" : !tile.frag<64x64, 4>
  %row = tile.alloc "row" : !tile.softmax_state<64, 4>
  // The second product reads s while the first one computes it.
  // expected-note @below {{while this is in flight into it}}
  %t = tile.mma_abt %s, %Q, %K : !tile.frag<64x64, 4>, !tile.shared<64x64xbf16, 72>, !tile.shared<64x64xbf16, 72>
  // expected-error @below {{'tile.mma_ab' op reads `s`}}
  %u = tile.mma_ab %acc, %s, %V : !tile.frag<64x64, 4>, !tile.frag<64x64, 4>, !tile.shared<64x64xbf16, 72>
  tile.wait %t : !tile.token<product>
  tile.wait %u : !tile.token<product>
}

// -----

tile.kernel @store(%q: !tile.ptr<bf16>, %stride: i64, %n: i32, %lo: i32, %mid: i32, %hi: i32) target("sm_80")
    grid(dense heads 1) schedule(#tile.tiled<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
  %Q = tile.alloc "Q" : !tile.shared<64x64xbf16, 72>
  %K = tile.alloc "K" : !tile.shared<64x64xbf16, 72>
  %V = tile.alloc "V" : !tile.shared<64x64xbf16, 72>
  %s = tile.alloc "s" : !tile.frag<64x64, 4>
  %acc = tile.alloc "acc" : !tile.frag<64x64, 4>
  %row = tile.alloc "row" : !tile.softmax_state<64, 4>
  // A store reads the accumulator while a product adds to it.
  // expected-note @below {{while this is in flight into it}}
  %t = tile.mma_ab %acc, %s, %V : !tile.frag<64x64, 4>, !tile.frag<64x64, 4>, !tile.shared<64x64xbf16, 72>
  // expected-error @below {{'tile.store' op reads `acc`}}
  tile.store %q stride(%stride), %acc rows(%n, %n) dim 64 : !tile.ptr<bf16>, !tile.frag<64x64, 4>
  tile.wait %t : !tile.token<product>
}

// -----

tile.kernel @softmax(%q: !tile.ptr<bf16>, %stride: i64, %n: i32, %lo: i32, %mid: i32, %hi: i32) target("sm_80")
    grid(dense heads 1) schedule(#tile.tiled<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
  %Q = tile.alloc "Q" : !tile.shared<64x64xbf16, 72>
  %K = tile.alloc "K" : !tile.shared<64x64xbf16, 72>
  %V = tile.alloc "V" : !tile.shared<64x64xbf16, 72>
  %s = tile.alloc "s" : !tile.frag<64x64, 4>
  %acc = tile.alloc "acc" : !tile.frag<64x64, 4>
  %row = tile.alloc "row" : !tile.softmax_state<64, 4>
  // The softmax writes s while a product computes it.
  // expected-note @below {{while this is in flight into it}}
  %t = tile.mma_abt %s, %Q, %K : !tile.frag<64x64, 4>, !tile.shared<64x64xbf16, 72>, !tile.shared<64x64xbf16, 72>
  // expected-error @below {{'tile.online_softmax' op writes `s`}}
  tile.online_softmax %s, %row, %acc scale 0.125 : !tile.frag<64x64, 4>, !tile.softmax_state<64, 4>, !tile.frag<64x64, 4>
  tile.wait %t : !tile.token<product>
}

// -----

tile.kernel @keep(%q: !tile.ptr<bf16>, %stride: i64, %n: i32, %lo: i32, %mid: i32, %hi: i32) target("sm_80")
    grid(dense heads 1) schedule(#tile.tiled<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
  %Q = tile.alloc "Q" : !tile.shared<64x64xbf16, 72>
  %K = tile.alloc "K" : !tile.shared<64x64xbf16, 72>
  %V = tile.alloc "V" : !tile.shared<64x64xbf16, 72>
  %s = tile.alloc "s" : !tile.frag<64x64, 4>
  %acc = tile.alloc "acc" : !tile.frag<64x64, 4>
  %row = tile.alloc "row" : !tile.softmax_state<64, 4>
  // So does an element test.
  // expected-note @below {{while this is in flight into it}}
  %t = tile.mma_abt %s, %Q, %K : !tile.frag<64x64, 4>, !tile.shared<64x64xbf16, 72>, !tile.shared<64x64xbf16, 72>
  // expected-error @below {{'tile.apply_mask' op writes `s`}}
  tile.apply_mask %s at(%n, %n) : !tile.frag<64x64, 4> {
  ^bb0(%query: i32, %key: i32):
    tile.yield
  }
  tile.wait %t : !tile.token<product>
}

// -----

tile.kernel @two_products(%q: !tile.ptr<bf16>, %stride: i64, %n: i32, %lo: i32, %mid: i32, %hi: i32) target("sm_80")
    grid(dense heads 1) schedule(#tile.tiled<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
  %Q = tile.alloc "Q" : !tile.shared<64x64xbf16, 72>
  %K = tile.alloc "K" : !tile.shared<64x64xbf16, 72>
  %V = tile.alloc "V" : !tile.shared<64x64xbf16, 72>
  %s = tile.alloc "s" : !tile.frag<64x64, 4>
  %acc = tile.alloc "acc" : !tile.frag<64x64, 4>
  %row = tile.alloc "row" : !tile.softmax_state<64, 4>
  // Two products into one fragment.
  // expected-note @below {{while this is in flight into it}}
  %t = tile.mma_ab %acc, %s, %V : !tile.frag<64x64, 4>, !tile.frag<64x64, 4>, !tile.shared<64x64xbf16, 72>
  // expected-error @below {{'tile.mma_ab' op writes `acc`}}
  %u = tile.mma_ab %acc, %s, %V : !tile.frag<64x64, 4>, !tile.frag<64x64, 4>, !tile.shared<64x64xbf16, 72>
  tile.wait %t : !tile.token<product>
}

// -----

tile.kernel @clear(%q: !tile.ptr<bf16>, %stride: i64, %n: i32, %lo: i32, %mid: i32, %hi: i32) target("sm_80")
    grid(dense heads 1) schedule(#tile.tiled<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
  %Q = tile.alloc "Q" : !tile.shared<64x64xbf16, 72>
  %K = tile.alloc "K" : !tile.shared<64x64xbf16, 72>
  %V = tile.alloc "V" : !tile.shared<64x64xbf16, 72>
  %s = tile.alloc "s" : !tile.frag<64x64, 4>
  %acc = tile.alloc "acc" : !tile.frag<64x64, 4>
  %row = tile.alloc "row" : !tile.softmax_state<64, 4>
  // A fragment is cleared under a product.
  // expected-note @below {{while this is in flight into it}}
  %t = tile.mma_ab %acc, %s, %V : !tile.frag<64x64, 4>, !tile.frag<64x64, 4>, !tile.shared<64x64xbf16, 72>
  // expected-error @below {{'tile.clear' op writes `acc`}}
  tile.clear %acc : !tile.frag<64x64, 4>
  tile.wait %t : !tile.token<product>
}

// -----

tile.kernel @two_copies(%q: !tile.ptr<bf16>, %stride: i64, %n: i32, %lo: i32, %mid: i32, %hi: i32) target("sm_80")
    grid(dense heads 1) schedule(#tile.tiled<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
  %Q = tile.alloc "Q" : !tile.shared<64x64xbf16, 72>
  %K = tile.alloc "K" : !tile.shared<64x64xbf16, 72>
  %V = tile.alloc "V" : !tile.shared<64x64xbf16, 72>
  %s = tile.alloc "s" : !tile.frag<64x64, 4>
  %acc = tile.alloc "acc" : !tile.frag<64x64, 4>
  %row = tile.alloc "row" : !tile.softmax_state<64, 4>
  // Two copies into one place.
  // expected-note @below {{while this is in flight into it}}
  %t = tile.copy_async %K, %q stride(%stride) rows(%n) dim 64 : !tile.shared<64x64xbf16, 72>, !tile.ptr<bf16>
  // expected-error @below {{'tile.copy_async' op writes `K`}}
  %u = tile.copy_async %K, %q stride(%stride) rows(%n) dim 64 : !tile.shared<64x64xbf16, 72>, !tile.ptr<bf16>
  tile.wait %t : !tile.token<copy>
}

// -----

tile.kernel @write_read_by_product(%q: !tile.ptr<bf16>, %stride: i64, %n: i32, %lo: i32, %mid: i32, %hi: i32) target("sm_80")
    grid(dense heads 1) schedule(#tile.tiled<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
  %Q = tile.alloc "Q" : !tile.shared<64x64xbf16, 72>
  %K = tile.alloc "K" : !tile.shared<64x64xbf16, 72>
  %V = tile.alloc "V" : !tile.shared<64x64xbf16, 72>
  %s = tile.alloc "s" : !tile.frag<64x64, 4>
  %acc = tile.alloc "acc" : !tile.frag<64x64, 4>
  %row = tile.alloc "row" : !tile.softmax_state<64, 4>
  // p is written while a product reads it.
  // expected-note @below {{while this is in flight and reads it}}
  %t = tile.mma_ab %acc, %s, %V : !tile.frag<64x64, 4>, !tile.frag<64x64, 4>, !tile.shared<64x64xbf16, 72>
  // expected-error @below {{'tile.apply_mask' op writes `s`}}
  tile.apply_mask %s at(%n, %n) : !tile.frag<64x64, 4> {
  ^bb0(%query: i32, %key: i32):
    tile.yield
  }
  tile.wait %t : !tile.token<product>
}

// -----

tile.kernel @overwrite(%q: !tile.ptr<bf16>, %stride: i64, %n: i32, %lo: i32, %mid: i32, %hi: i32) target("sm_80")
    grid(dense heads 1) schedule(#tile.tiled<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
  %Q = tile.alloc "Q" : !tile.shared<64x64xbf16, 72>
  %K = tile.alloc "K" : !tile.shared<64x64xbf16, 72>
  %V = tile.alloc "V" : !tile.shared<64x64xbf16, 72>
  %s = tile.alloc "s" : !tile.frag<64x64, 4>
  %acc = tile.alloc "acc" : !tile.frag<64x64, 4>
  %row = tile.alloc "row" : !tile.softmax_state<64, 4>
  // Waiting for the product does not say that other warps are done with K: only a wait for a copy is a barrier.
  // expected-note @below {{which other warps may still be reading here: no wait for a copy lies between}}
  %t = tile.mma_abt %s, %Q, %K : !tile.frag<64x64, 4>, !tile.shared<64x64xbf16, 72>, !tile.shared<64x64xbf16, 72>
  tile.wait %t : !tile.token<product>
  // expected-error @below {{'tile.copy_async' op overwrites `K`}}
  %u = tile.copy_async %K, %q stride(%stride) rows(%n) dim 64 : !tile.shared<64x64xbf16, 72>, !tile.ptr<bf16>
  tile.wait %u : !tile.token<copy>
}

// -----

tile.kernel @never(%q: !tile.ptr<bf16>, %stride: i64, %n: i32, %lo: i32, %mid: i32, %hi: i32) target("sm_80")
    grid(dense heads 1) schedule(#tile.tiled<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
  %Q = tile.alloc "Q" : !tile.shared<64x64xbf16, 72>
  %K = tile.alloc "K" : !tile.shared<64x64xbf16, 72>
  %V = tile.alloc "V" : !tile.shared<64x64xbf16, 72>
  %s = tile.alloc "s" : !tile.frag<64x64, 4>
  %acc = tile.alloc "acc" : !tile.frag<64x64, 4>
  %row = tile.alloc "row" : !tile.softmax_state<64, 4>
  // Nobody waits.
  // expected-error @below {{'tile.copy_async' op is never waited for}}
  %t = tile.copy_async %K, %q stride(%stride) rows(%n) dim 64 : !tile.shared<64x64xbf16, 72>, !tile.ptr<bf16>
}

// -----

tile.kernel @never_product(%q: !tile.ptr<bf16>, %stride: i64, %n: i32, %lo: i32, %mid: i32, %hi: i32) target("sm_80")
    grid(dense heads 1) schedule(#tile.tiled<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
  %Q = tile.alloc "Q" : !tile.shared<64x64xbf16, 72>
  %K = tile.alloc "K" : !tile.shared<64x64xbf16, 72>
  %V = tile.alloc "V" : !tile.shared<64x64xbf16, 72>
  %s = tile.alloc "s" : !tile.frag<64x64, 4>
  %acc = tile.alloc "acc" : !tile.frag<64x64, 4>
  %row = tile.alloc "row" : !tile.softmax_state<64, 4>
  // Nobody waits for a product.
  // expected-error @below {{'tile.mma_abt' op is never waited for}}
  %t = tile.mma_abt %s, %Q, %K : !tile.frag<64x64, 4>, !tile.shared<64x64xbf16, 72>, !tile.shared<64x64xbf16, 72>
}

// -----

tile.kernel @twice(%q: !tile.ptr<bf16>, %stride: i64, %n: i32, %lo: i32, %mid: i32, %hi: i32) target("sm_80")
    grid(dense heads 1) schedule(#tile.tiled<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
  %Q = tile.alloc "Q" : !tile.shared<64x64xbf16, 72>
  %K = tile.alloc "K" : !tile.shared<64x64xbf16, 72>
  %V = tile.alloc "V" : !tile.shared<64x64xbf16, 72>
  %s = tile.alloc "s" : !tile.frag<64x64, 4>
  %acc = tile.alloc "acc" : !tile.frag<64x64, 4>
  %row = tile.alloc "row" : !tile.softmax_state<64, 4>
  // Two waits for one token.
  %t = tile.copy_async %K, %q stride(%stride) rows(%n) dim 64 : !tile.shared<64x64xbf16, 72>, !tile.ptr<bf16>
  tile.wait %t : !tile.token<copy>
  // expected-error @below {{'tile.wait' op waits for a token that is not in flight}}
  tile.wait %t : !tile.token<copy>
}

// -----

tile.kernel @twice_in_one(%q: !tile.ptr<bf16>, %stride: i64, %n: i32, %lo: i32, %mid: i32, %hi: i32) target("sm_80")
    grid(dense heads 1) schedule(#tile.tiled<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
  %Q = tile.alloc "Q" : !tile.shared<64x64xbf16, 72>
  %K = tile.alloc "K" : !tile.shared<64x64xbf16, 72>
  %V = tile.alloc "V" : !tile.shared<64x64xbf16, 72>
  %s = tile.alloc "s" : !tile.frag<64x64, 4>
  %acc = tile.alloc "acc" : !tile.frag<64x64, 4>
  %row = tile.alloc "row" : !tile.softmax_state<64, 4>
  // Twice in one wait.
  %t = tile.copy_async %K, %q stride(%stride) rows(%n) dim 64 : !tile.shared<64x64xbf16, 72>, !tile.ptr<bf16>
  // expected-error @below {{'tile.wait' op waits for a token that is not in flight}}
  tile.wait %t, %t : !tile.token<copy>, !tile.token<copy>
}

// -----

tile.kernel @hold(%q: !tile.ptr<bf16>, %stride: i64, %n: i32, %lo: i32, %mid: i32, %hi: i32) target("sm_80")
    grid(dense heads 1) schedule(#tile.tiled<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
  %Q = tile.alloc "Q" : !tile.shared<64x64xbf16, 72>
  %K = tile.alloc "K" : !tile.shared<64x64xbf16, 72>
  %V = tile.alloc "V" : !tile.shared<64x64xbf16, 72>
  %s = tile.alloc "s" : !tile.frag<64x64, 4>
  %acc = tile.alloc "acc" : !tile.frag<64x64, 4>
  %row = tile.alloc "row" : !tile.softmax_state<64, 4>
  // Q is read into registers while its copy is in flight.
  %q_operand = tile.alloc "q_operand" : !tile.register_operand<64x64xbf16, 4>
  // expected-note @below {{while this is in flight into it}}
  %t = tile.copy_async %Q, %q stride(%stride) rows(%n) dim 64 : !tile.shared<64x64xbf16, 72>, !tile.ptr<bf16>
  // expected-error @below {{'tile.load_operand' op reads `Q`}}
  tile.load_operand %q_operand, %Q : !tile.register_operand<64x64xbf16, 4>, !tile.shared<64x64xbf16, 72>
  tile.wait %t : !tile.token<copy>
}

// -----

tile.kernel @hold_product(%q: !tile.ptr<bf16>, %stride: i64, %n: i32, %lo: i32, %mid: i32, %hi: i32) target("sm_80")
    grid(dense heads 1) schedule(#tile.tiled<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
  %Q = tile.alloc "Q" : !tile.shared<64x64xbf16, 72>
  %K = tile.alloc "K" : !tile.shared<64x64xbf16, 72>
  %V = tile.alloc "V" : !tile.shared<64x64xbf16, 72>
  %s = tile.alloc "s" : !tile.frag<64x64, 4>
  %acc = tile.alloc "acc" : !tile.frag<64x64, 4>
  %row = tile.alloc "row" : !tile.softmax_state<64, 4>
  // A product reads the held tile while it is read anew.
  %q_operand = tile.alloc "q_operand" : !tile.register_operand<64x64xbf16, 4>
  // expected-note @below {{while this is in flight and reads it}}
  %t = tile.mma_abt %s, %q_operand, %K : !tile.frag<64x64, 4>, !tile.register_operand<64x64xbf16, 4>, !tile.shared<64x64xbf16, 72>
  // expected-error @below {{'tile.load_operand' op writes `q_operand`}}
  tile.load_operand %q_operand, %Q : !tile.register_operand<64x64xbf16, 4>, !tile.shared<64x64xbf16, 72>
  tile.wait %t : !tile.token<product>
}

// -----

tile.kernel @after_hold(%q: !tile.ptr<bf16>, %stride: i64, %n: i32, %lo: i32, %mid: i32, %hi: i32) target("sm_80")
    grid(dense heads 1) schedule(#tile.tiled<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
  %Q = tile.alloc "Q" : !tile.shared<64x64xbf16, 72>
  %K = tile.alloc "K" : !tile.shared<64x64xbf16, 72>
  %V = tile.alloc "V" : !tile.shared<64x64xbf16, 72>
  %s = tile.alloc "s" : !tile.frag<64x64, 4>
  %acc = tile.alloc "acc" : !tile.frag<64x64, 4>
  %row = tile.alloc "row" : !tile.softmax_state<64, 4>
  // Other warps may still hold Q.
  %q_operand = tile.alloc "q_operand" : !tile.register_operand<64x64xbf16, 4>
  // expected-note @below {{which other warps may still be reading here}}
  tile.load_operand %q_operand, %Q : !tile.register_operand<64x64xbf16, 4>, !tile.shared<64x64xbf16, 72>
  // expected-error @below {{'tile.copy_async' op overwrites `Q`}}
  %t = tile.copy_async %Q, %q stride(%stride) rows(%n) dim 64 : !tile.shared<64x64xbf16, 72>, !tile.ptr<bf16>
  tile.wait %t : !tile.token<copy>
}

// -----

tile.kernel @negate(%q: !tile.ptr<bf16>, %stride: i64, %n: i32, %lo: i32, %mid: i32, %hi: i32) target("sm_80")
    grid(dense heads 1) schedule(#tile.tiled<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
  %Q = tile.alloc "Q" : !tile.shared<64x64xbf16, 72>
  %K = tile.alloc "K" : !tile.shared<64x64xbf16, 72>
  %V = tile.alloc "V" : !tile.shared<64x64xbf16, 72>
  %s = tile.alloc "s" : !tile.frag<64x64, 4>
  %acc = tile.alloc "acc" : !tile.frag<64x64, 4>
  %row = tile.alloc "row" : !tile.softmax_state<64, 4>
  // A sign is changed while the copy is in flight.
  // expected-note @below {{while this is in flight into it}}
  %t = tile.copy_async %Q, %q stride(%stride) rows(%n) dim 64 : !tile.shared<64x64xbf16, 72>, !tile.ptr<bf16>
  // expected-error @below {{'tile.scale' op writes `Q`}}
  tile.scale %Q by -1.000000e+00 : !tile.shared<64x64xbf16, 72>
  tile.wait %t : !tile.token<copy>
}

// -----

tile.kernel @negate_readers(%q: !tile.ptr<bf16>, %stride: i64, %n: i32, %lo: i32, %mid: i32, %hi: i32) target("sm_80")
    grid(dense heads 1) schedule(#tile.tiled<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
  %Q = tile.alloc "Q" : !tile.shared<64x64xbf16, 72>
  %K = tile.alloc "K" : !tile.shared<64x64xbf16, 72>
  %V = tile.alloc "V" : !tile.shared<64x64xbf16, 72>
  %s = tile.alloc "s" : !tile.frag<64x64, 4>
  %acc = tile.alloc "acc" : !tile.frag<64x64, 4>
  %row = tile.alloc "row" : !tile.softmax_state<64, 4>
  // Or while other warps read.
  %q_operand = tile.alloc "q_operand" : !tile.register_operand<64x64xbf16, 4>
  // expected-note @below {{which other warps may still be reading here}}
  tile.load_operand %q_operand, %Q : !tile.register_operand<64x64xbf16, 4>, !tile.shared<64x64xbf16, 72>
  // expected-error @below {{'tile.scale' op overwrites `Q`}}
  tile.scale %Q by -1.000000e+00 : !tile.shared<64x64xbf16, 72>
}

// -----

tile.kernel @same_bytes() target("sm_80") grid(dense heads 1 tiles 1)
    schedule(#tile.cta_per_sequence<q_tile = 32, kv_tile = 32, warps = 2, ctas_per_sm = 2>) {
  %V = tile.alloc "V" at 0 : !tile.shared<32x64xbf16, 72>
  %dO = tile.alloc "dO" at 8192 : !tile.shared<32x64xbf16, 72>
  %P = tile.alloc "P" at 1024 : !tile.shared<32x32xbf16, 40>
  %s = tile.alloc "s" : !tile.frag<32x32, 2>
  // Another tile lies where this one was.
  // expected-note @below {{which other warps may still be reading here}}
  %t = tile.mma_abt %s, %dO, %V : !tile.frag<32x32, 2>, !tile.shared<32x64xbf16, 72>, !tile.shared<32x64xbf16, 72>
  tile.wait %t : !tile.token<product>
  // expected-error @below {{'tile.convert' op overwrites `V`}}
  tile.convert %P, %s : !tile.shared<32x32xbf16, 40>, !tile.frag<32x32, 2>
}
