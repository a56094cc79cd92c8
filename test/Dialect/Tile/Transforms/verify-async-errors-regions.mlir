// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// `tile-verify-async` around loops and through branches.
//
// RUN: attn-opt %s -tile-verify-async -split-input-file -verify-diagnostics

tile.kernel @around(%q: !tile.ptr<bf16>, %stride: i64, %n: i32, %lo: i32, %mid: i32, %hi: i32) target("sm_80")
    grid(dense heads 1) schedule(#tile.tiled<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
  %Q = tile.alloc "Q" : !tile.shared<64x64xbf16, 72>
  %K = tile.alloc "K" : !tile.shared<64x64xbf16, 72>
  %V = tile.alloc "V" : !tile.shared<64x64xbf16, 72>
  %s = tile.alloc "s" : !tile.frag<64x64, 4>
  %acc = tile.alloc "acc" : !tile.frag<64x64, 4>
  %row = tile.alloc "row" : !tile.softmax_state<64, 4>
  // The copy of the next trip overwrites what this one read.
  %one = arith.constant 1 : i32
  scf.for %j = %lo to %hi step %one : i32 {
    // expected-error @below {{'tile.copy_async' op overwrites `K`}}
    %t = tile.copy_async %K, %q stride(%stride) rows(%n) dim 64 : !tile.shared<64x64xbf16, 72>, !tile.ptr<bf16>
    tile.wait %t : !tile.token<copy>
    // expected-note @below {{which other warps may still be reading here}}
    %u = tile.mma_abt %s, %Q, %K : !tile.frag<64x64, 4>, !tile.shared<64x64xbf16, 72>, !tile.shared<64x64xbf16, 72>
    tile.wait %u : !tile.token<product>
  }
}

// -----

tile.kernel @left_behind(%q: !tile.ptr<bf16>, %stride: i64, %n: i32, %lo: i32, %mid: i32, %hi: i32) target("sm_80")
    grid(dense heads 1) schedule(#tile.tiled<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
  %Q = tile.alloc "Q" : !tile.shared<64x64xbf16, 72>
  %K = tile.alloc "K" : !tile.shared<64x64xbf16, 72>
  %V = tile.alloc "V" : !tile.shared<64x64xbf16, 72>
  %s = tile.alloc "s" : !tile.frag<64x64, 4>
  %acc = tile.alloc "acc" : !tile.frag<64x64, 4>
  %row = tile.alloc "row" : !tile.softmax_state<64, 4>
  // What is in flight at the end of a trip meets the next one.
  %one = arith.constant 1 : i32
  scf.for %j = %lo to %hi step %one : i32 {
    // expected-note @below {{while this is in flight into it}}
    // expected-error @below {{'tile.copy_async' op writes `K`}}
    %t = tile.copy_async %K, %q stride(%stride) rows(%n) dim 64 : !tile.shared<64x64xbf16, 72>, !tile.ptr<bf16>
  }
}

// -----

tile.kernel @outside(%q: !tile.ptr<bf16>, %stride: i64, %n: i32, %lo: i32, %mid: i32, %hi: i32) target("sm_80")
    grid(dense heads 1) schedule(#tile.tiled<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
  %Q = tile.alloc "Q" : !tile.shared<64x64xbf16, 72>
  %K = tile.alloc "K" : !tile.shared<64x64xbf16, 72>
  %V = tile.alloc "V" : !tile.shared<64x64xbf16, 72>
  %s = tile.alloc "s" : !tile.frag<64x64, 4>
  %acc = tile.alloc "acc" : !tile.frag<64x64, 4>
  %row = tile.alloc "row" : !tile.softmax_state<64, 4>
  // A loop waits on every trip for a copy from before it.
  %one = arith.constant 1 : i32
  %t = tile.copy_async %K, %q stride(%stride) rows(%n) dim 64 : !tile.shared<64x64xbf16, 72>, !tile.ptr<bf16>
  scf.for %j = %lo to %hi step %one : i32 {
    // expected-error @below {{'tile.wait' op waits for a token that is not in flight}}
    tile.wait %t : !tile.token<copy>
  }
}

// -----

tile.kernel @carried_unread(%q: !tile.ptr<bf16>, %stride: i64, %n: i32, %lo: i32, %mid: i32, %hi: i32) target("sm_80")
    grid(dense heads 1) schedule(#tile.tiled<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
  %Q = tile.alloc "Q" : !tile.shared<64x64xbf16, 72>
  %K = tile.alloc "K" : !tile.shared<64x64xbf16, 72>
  %V = tile.alloc "V" : !tile.shared<64x64xbf16, 72>
  %s = tile.alloc "s" : !tile.frag<64x64, 4>
  %acc = tile.alloc "acc" : !tile.frag<64x64, 4>
  %row = tile.alloc "row" : !tile.softmax_state<64, 4>
  // A carried token: K is read before the wait.
  // expected-note @below {{while this is in flight into it}}
  %t0 = tile.copy_async %K, %q stride(%stride) rows(%n) dim 64 : !tile.shared<64x64xbf16, 72>, !tile.ptr<bf16>
  %r = tile.kv_loop [%lo, %hi] tests [[]] carry(%t0 : !tile.token<copy>) {
  ^bb0(%j: i32, %next: i32, %more: i1, %c: !tile.token<copy>):
    // expected-error @below {{'tile.mma_abt' op reads `K`}}
    %u = tile.mma_abt %s, %Q, %K : !tile.frag<64x64, 4>, !tile.shared<64x64xbf16, 72>, !tile.shared<64x64xbf16, 72>
    tile.wait %c : !tile.token<copy>
    tile.wait %u : !tile.token<product>
    %t = tile.copy_async %V, %q stride(%stride) rows(%n) dim 64 : !tile.shared<64x64xbf16, 72>, !tile.ptr<bf16>
    tile.wait %t : !tile.token<copy>
    %tk = tile.copy_async %K, %q stride(%stride) rows(%n) dim 64 : !tile.shared<64x64xbf16, 72>, !tile.ptr<bf16>
    tile.yield %tk : !tile.token<copy>
  }
  tile.wait %r : !tile.token<copy>
}

// -----

tile.kernel @carried_never(%q: !tile.ptr<bf16>, %stride: i64, %n: i32, %lo: i32, %mid: i32, %hi: i32) target("sm_80")
    grid(dense heads 1) schedule(#tile.tiled<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
  %Q = tile.alloc "Q" : !tile.shared<64x64xbf16, 72>
  %K = tile.alloc "K" : !tile.shared<64x64xbf16, 72>
  %V = tile.alloc "V" : !tile.shared<64x64xbf16, 72>
  %s = tile.alloc "s" : !tile.frag<64x64, 4>
  %acc = tile.alloc "acc" : !tile.frag<64x64, 4>
  %row = tile.alloc "row" : !tile.softmax_state<64, 4>
  // Behind the loop nobody waits for the last one.
  %t0 = tile.copy_async %K, %q stride(%stride) rows(%n) dim 64 : !tile.shared<64x64xbf16, 72>, !tile.ptr<bf16>
  %r = tile.kv_loop [%lo, %hi] tests [[]] carry(%t0 : !tile.token<copy>) {
  ^bb0(%j: i32, %next: i32, %more: i1, %c: !tile.token<copy>):
    tile.wait %c : !tile.token<copy>
    // expected-error @below {{'tile.copy_async' op is never waited for}}
    %tk = tile.copy_async %K, %q stride(%stride) rows(%n) dim 64 : !tile.shared<64x64xbf16, 72>, !tile.ptr<bf16>
    tile.yield %tk : !tile.token<copy>
  }
}

// -----

tile.kernel @carried_twice(%q: !tile.ptr<bf16>, %stride: i64, %n: i32, %lo: i32, %mid: i32, %hi: i32) target("sm_80")
    grid(dense heads 1) schedule(#tile.tiled<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
  %Q = tile.alloc "Q" : !tile.shared<64x64xbf16, 72>
  %K = tile.alloc "K" : !tile.shared<64x64xbf16, 72>
  %V = tile.alloc "V" : !tile.shared<64x64xbf16, 72>
  %s = tile.alloc "s" : !tile.frag<64x64, 4>
  %acc = tile.alloc "acc" : !tile.frag<64x64, 4>
  %row = tile.alloc "row" : !tile.softmax_state<64, 4>
  // The token that went in is gone.
  %t0 = tile.copy_async %K, %q stride(%stride) rows(%n) dim 64 : !tile.shared<64x64xbf16, 72>, !tile.ptr<bf16>
  %r = tile.kv_loop [%lo, %hi] tests [[]] carry(%t0 : !tile.token<copy>) {
  ^bb0(%j: i32, %next: i32, %more: i1, %c: !tile.token<copy>):
    tile.wait %c : !tile.token<copy>
    %tk = tile.copy_async %K, %q stride(%stride) rows(%n) dim 64 : !tile.shared<64x64xbf16, 72>, !tile.ptr<bf16>
    tile.yield %tk : !tile.token<copy>
  }
  tile.wait %r : !tile.token<copy>
  // expected-error @below {{'tile.wait' op waits for a token that is not in flight}}
  tile.wait %t0 : !tile.token<copy>
}

// -----

tile.kernel @one_branch(%q: !tile.ptr<bf16>, %stride: i64, %n: i32, %lo: i32, %mid: i32, %hi: i32) target("sm_80")
    grid(dense heads 1) schedule(#tile.tiled<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
  %Q = tile.alloc "Q" : !tile.shared<64x64xbf16, 72>
  %K = tile.alloc "K" : !tile.shared<64x64xbf16, 72>
  %V = tile.alloc "V" : !tile.shared<64x64xbf16, 72>
  %s = tile.alloc "s" : !tile.frag<64x64, 4>
  %acc = tile.alloc "acc" : !tile.frag<64x64, 4>
  %row = tile.alloc "row" : !tile.softmax_state<64, 4>
  // One branch starts a copy; what follows must mind it.
  %some = arith.cmpi slt, %lo, %hi : i32
  scf.if %some {
    // expected-note @below {{while this is in flight into it}}
    %t = tile.copy_async %K, %q stride(%stride) rows(%n) dim 64 : !tile.shared<64x64xbf16, 72>, !tile.ptr<bf16>
  }
  // expected-error @below {{'tile.mma_abt' op reads `K`}}
  %u = tile.mma_abt %s, %Q, %K : !tile.frag<64x64, 4>, !tile.shared<64x64xbf16, 72>, !tile.shared<64x64xbf16, 72>
  tile.wait %u : !tile.token<product>
}

// -----

tile.kernel @other_branch(%q: !tile.ptr<bf16>, %stride: i64, %n: i32, %lo: i32, %mid: i32, %hi: i32) target("sm_80")
    grid(dense heads 1) schedule(#tile.tiled<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
  %Q = tile.alloc "Q" : !tile.shared<64x64xbf16, 72>
  %K = tile.alloc "K" : !tile.shared<64x64xbf16, 72>
  %V = tile.alloc "V" : !tile.shared<64x64xbf16, 72>
  %s = tile.alloc "s" : !tile.frag<64x64, 4>
  %acc = tile.alloc "acc" : !tile.frag<64x64, 4>
  %row = tile.alloc "row" : !tile.softmax_state<64, 4>
  // So with the other branch.
  %some = arith.cmpi slt, %lo, %hi : i32
  scf.if %some {
  } else {
    // expected-note @below {{while this is in flight into it}}
    %t = tile.copy_async %K, %q stride(%stride) rows(%n) dim 64 : !tile.shared<64x64xbf16, 72>, !tile.ptr<bf16>
  }
  // expected-error @below {{'tile.mma_abt' op reads `K`}}
  %u = tile.mma_abt %s, %Q, %K : !tile.frag<64x64, 4>, !tile.shared<64x64xbf16, 72>, !tile.shared<64x64xbf16, 72>
  tile.wait %u : !tile.token<product>
}

// -----

tile.kernel @readers_of_a_branch(%q: !tile.ptr<bf16>, %stride: i64, %n: i32, %lo: i32, %mid: i32, %hi: i32) target("sm_80")
    grid(dense heads 1) schedule(#tile.tiled<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
  %Q = tile.alloc "Q" : !tile.shared<64x64xbf16, 72>
  %K = tile.alloc "K" : !tile.shared<64x64xbf16, 72>
  %V = tile.alloc "V" : !tile.shared<64x64xbf16, 72>
  %s = tile.alloc "s" : !tile.frag<64x64, 4>
  %acc = tile.alloc "acc" : !tile.frag<64x64, 4>
  %row = tile.alloc "row" : !tile.softmax_state<64, 4>
  // Warps may still read what one branch read.
  %some = arith.cmpi slt, %lo, %hi : i32
  scf.if %some {
    // expected-note @below {{which other warps may still be reading here}}
    %u = tile.mma_abt %s, %Q, %K : !tile.frag<64x64, 4>, !tile.shared<64x64xbf16, 72>, !tile.shared<64x64xbf16, 72>
    tile.wait %u : !tile.token<product>
  }
  // expected-error @below {{'tile.copy_async' op overwrites `K`}}
  %t = tile.copy_async %K, %q stride(%stride) rows(%n) dim 64 : !tile.shared<64x64xbf16, 72>, !tile.ptr<bf16>
  tile.wait %t : !tile.token<copy>
}

// -----

tile.kernel @one_branch_waits(%q: !tile.ptr<bf16>, %stride: i64, %n: i32, %lo: i32, %mid: i32, %hi: i32) target("sm_80")
    grid(dense heads 1) schedule(#tile.tiled<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
  %Q = tile.alloc "Q" : !tile.shared<64x64xbf16, 72>
  %K = tile.alloc "K" : !tile.shared<64x64xbf16, 72>
  %V = tile.alloc "V" : !tile.shared<64x64xbf16, 72>
  %s = tile.alloc "s" : !tile.frag<64x64, 4>
  %acc = tile.alloc "acc" : !tile.frag<64x64, 4>
  %row = tile.alloc "row" : !tile.softmax_state<64, 4>
  // A wait in one branch only leaves the copy in flight in the other.
  // expected-note @below {{while this is in flight into it}}
  %t = tile.copy_async %K, %q stride(%stride) rows(%n) dim 64 : !tile.shared<64x64xbf16, 72>, !tile.ptr<bf16>
  %some = arith.cmpi slt, %lo, %hi : i32
  scf.if %some {
    tile.wait %t : !tile.token<copy>
  }
  // expected-error @below {{'tile.mma_abt' op reads `K`}}
  %u = tile.mma_abt %s, %Q, %K : !tile.frag<64x64, 4>, !tile.shared<64x64xbf16, 72>, !tile.shared<64x64xbf16, 72>
  tile.wait %u : !tile.token<product>
}
