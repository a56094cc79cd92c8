// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the walk over key tiles refuses.
//
// RUN: attn-opt %s -split-input-file -verify-diagnostics

tile.kernel @k(%n: i32) target("sm_80") grid(dense heads 1) schedule(#tile.tiled<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
  // C1: a run has one more bound than it has segments
  // expected-error @below {{expected one bound more than segments in a run, got: 2 bounds and 2 segments}}
  tile.kv_loop [%n, %n] tests [[], []] carry() {
  ^bb0(%j: i32, %next: i32, %more: i1):
    tile.yield
  }
}

// -----

tile.kernel @k(%n: i32) target("sm_80") grid(dense heads 1) schedule(#tile.tiled<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
  // C1: and at least one segment
  // expected-error @below {{expected one bound more than segments in a run, got: 1 bounds and 0 segments}}
  tile.kv_loop [%n] tests [] carry() {
  ^bb0(%j: i32, %next: i32, %more: i1):
    tile.yield
  }
}

// -----

tile.kernel @k(%n: i32) target("sm_80") grid(dense heads 1) schedule(#tile.tiled<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
  // C1, in the second run
  // expected-error @below {{got: 3 bounds and 1 segments}}
  tile.kv_loop [%n, %n] tests [[]], [%n, %n, %n] tests [[]] carry() {
  ^bb0(%j: i32, %next: i32, %more: i1):
    tile.yield
  }
}

// -----

tile.kernel @k(%n: i32) target("sm_80") grid(dense heads 1) schedule(#tile.tiled<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
  // C1, in the generic form
  // expected-error @below {{'tile.kv_loop' op expected each run as an array of i64 arrays, got: 1 : i64}}
  "tile.kv_loop"(%n, %n) <{operandSegmentSizes = array<i32: 2, 0, 0>, tests = [1]}> ({
  ^bb0(%j: i32, %next: i32, %more: i1):
    "tile.yield"() : () -> ()
  }) : (i32, i32) -> ()
}

// -----

tile.kernel @k(%n: i32) target("sm_80") grid(dense heads 1) schedule(#tile.tiled<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
  // C1, in the generic form
  // expected-error @below {{'tile.kv_loop' op expected 2 bounds for its runs, got: 3}}
  "tile.kv_loop"(%n, %n, %n) <{operandSegmentSizes = array<i32: 3, 0, 0>, tests = [[array<i64>]]}> ({
  ^bb0(%j: i32, %next: i32, %more: i1):
    "tile.yield"() : () -> ()
  }) : (i32, i32, i32) -> ()
}

// -----

tile.kernel @k(%n: i32) target("sm_80") grid(dense heads 1) schedule(#tile.tiled<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
  // expected-error @below {{'tile.kv_loop' op expected body arguments (tile i32, next i32, more i1, carried tokens), got: 'i32', 'i32'}}
  tile.kv_loop [%n, %n] tests [[]] carry() {
  ^bb0(%j: i32, %next: i32):
    tile.yield
  }
}

// -----

tile.kernel @k(%q: !tile.ptr<bf16>, %stride: i64, %n: i32) target("sm_80") grid(dense heads 1)
    schedule(#tile.tiled<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
  %K = tile.alloc "K" : !tile.shared<64x64xbf16, 72>
  %t = tile.copy_async %K, %q stride(%stride) rows(%n) dim 64 : !tile.shared<64x64xbf16, 72>, !tile.ptr<bf16>
  // C2: what is carried, yielded and returned has the same types
  // expected-error @below {{'tile.kv_loop' op expected carried, yielded and returned tokens of the same types, got: '!tile.token<copy>',  and '!tile.token<copy>'}}
  %u = tile.kv_loop [%n, %n] tests [[]] carry(%t : !tile.token<copy>) {
  ^bb0(%j: i32, %next: i32, %more: i1, %c: !tile.token<copy>):
    tile.yield
  }
}

// -----

tile.kernel @k(%n: i32) target("sm_80") grid(dense heads 1) schedule(#tile.tiled<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
  // C2
  // expected-error @below {{op expected carried, yielded and returned tokens of the same types, got: , 'i32' and }}
  tile.kv_loop [%n, %n] tests [[]] carry() {
  ^bb0(%j: i32, %next: i32, %more: i1):
    tile.yield %j : i32
  }
}

// -----

tile.kernel @k(%n: i32) target("sm_80") grid(dense heads 1) schedule(#tile.tiled<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
  %s = tile.alloc "s" : !tile.frag<64x64, 4>
  // C3: tests name conjuncts that the body's `tile.apply_mask` yields
  // expected-error @below {{'tile.kv_loop' op expected tests among the 1 conjuncts of the body's `tile.apply_mask`, got: 1}}
  tile.kv_loop [%n, %n, %n] tests [[0], [1]] carry() {
  ^bb0(%j: i32, %next: i32, %more: i1):
    tile.apply_mask %s at(%n, %j) : !tile.frag<64x64, 4> {
    ^bb0(%q: i32, %k: i32):
      %below = arith.cmpi sle, %k, %q : i32
      tile.yield %below : i1
    }
    tile.yield
  }
}

// -----

tile.kernel @k(%n: i32) target("sm_80") grid(dense heads 1) schedule(#tile.tiled<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
  // C3: no keep, no conjuncts
  // expected-error @below {{expected tests among the 0 conjuncts of the body's `tile.apply_mask`, got: 0}}
  tile.kv_loop [%n, %n] tests [[0]] carry() {
  ^bb0(%j: i32, %next: i32, %more: i1):
    tile.yield
  }
}

// -----

tile.kernel @k(%n: i32) target("sm_80") grid(dense heads 1) schedule(#tile.tiled<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
  // C3
  // expected-error @below {{expected tests among the 0 conjuncts of the body's `tile.apply_mask`, got: -1}}
  tile.kv_loop [%n, %n] tests [[-1]] carry() {
  ^bb0(%j: i32, %next: i32, %more: i1):
    tile.yield
  }
}

// -----

tile.kernel @k(%n: i32) target("sm_80") grid(dense heads 1) schedule(#tile.tiled<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
  // C4: own bounds are as many as those of a run
  // expected-error @below {{'tile.kv_loop' op expected own bounds like those of a single run, got: 2 for 1 runs and 3 bounds}}
  tile.kv_loop [%n, %n, %n] tests [[], []] own [%n, %n] carry() {
  ^bb0(%j: i32, %next: i32, %more: i1):
    tile.yield
  }
}

// -----

tile.kernel @k(%n: i32) target("sm_80") grid(dense heads 1) schedule(#tile.tiled<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
  // C4: which is the only one
  // expected-error @below {{'tile.kv_loop' op expected own bounds like those of a single run, got: 4 for 2 runs and 4 bounds}}
  tile.kv_loop [%n, %n] tests [[]], [%n, %n] tests [[]] own [%n, %n, %n, %n] carry() {
  ^bb0(%j: i32, %next: i32, %more: i1):
    tile.yield
  }
}
