// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// `tile-pipeline-kv`: copies go ahead of the products that read them. As
// converted, a body copies K, waits, multiplies, copies V, waits, multiplies.
//
// RUN: attn-opt %s -tile-pipeline-kv -split-input-file -verify-diagnostics | FileCheck %s
// RUN: attn-opt %s -tile-pipeline-kv -split-input-file -verify-diagnostics -mlir-print-op-generic | attn-opt -split-input-file | FileCheck %s

// CHECK-LABEL: tile.kernel @one_run
tile.kernel @one_run(%q: !tile.ptr<bf16>, %stride: i64, %n: i32, %lo: i32, %mid: i32, %hi: i32) target("sm_80")
    grid(dense heads 1) schedule(#tile.tiled<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
  %Q = tile.alloc "Q" : !tile.shared<64x64xbf16, 72>
  %K = tile.alloc "K" : !tile.shared<64x64xbf16, 72>
  %V = tile.alloc "V" : !tile.shared<64x64xbf16, 72>
  %s = tile.alloc "s" : !tile.frag<64x64, 4>
  %acc = tile.alloc "acc" : !tile.frag<64x64, 4>
  %row = tile.alloc "row" : !tile.softmax_state<64, 4>

  // The first K is copied before the loop, if there is any tile.
  // CHECK: %[[ANY:.*]] = arith.cmpi slt, %lo, %hi : i32
  // CHECK: %[[K0:.*]] = arith.muli %lo, %n : i32
  // CHECK: %[[WIDE:.*]] = arith.extsi %[[K0]]
  // CHECK: %[[SRC:.*]] = tile.advance %q, %[[WIDE]]
  // CHECK: %[[FIRST:.*]] = tile.copy_async %K, %[[SRC]] stride(%stride) rows(%n) dim 64 when(%[[ANY]])
  // CHECK: %[[LAST:.*]] = tile.kv_loop [%lo, %mid, %hi] tests {{\[\[}}0, 1], []] carry(%[[FIRST]] : !tile.token<copy>) {
  // CHECK-NEXT: ^bb0(%j: i32, %next: i32, %more: i1, %[[CARRIED:.*]]: !tile.token<copy>):

  // K(j) has landed; V(j) starts before the product with K(j).
  // CHECK-NEXT: tile.wait %[[CARRIED]] : !tile.token<copy>
  // CHECK-NOT: tile.wait
  // CHECK: %[[V:.*]] = tile.copy_async %V
  // CHECK-NOT: when
  // CHECK: %[[QK:.*]] = tile.mma_abt %s, %Q, %K
  // CHECK-NEXT: tile.wait %[[QK]] : !tile.token<product>

  // The wait for V(j) is the barrier that frees K; K(next) follows it.
  // CHECK-NEXT: tile.wait %[[V]] : !tile.token<copy>
  // CHECK: arith.muli %next, %n : i32
  // CHECK: %[[NEXT:.*]] = tile.copy_async %K, %{{.*}} when(%more)
  // CHECK-NOT: tile.copy_async
  // CHECK: tile.apply_mask %s
  // CHECK: tile.online_softmax
  // CHECK-NEXT: %[[PV:.*]] = tile.mma_ab %acc, %s, %V {guarded}
  // CHECK-NEXT: tile.wait %[[PV]] : !tile.token<product>
  // CHECK-NEXT: tile.yield %[[NEXT]] : !tile.token<copy>
  // CHECK: }
  // CHECK-NEXT: tile.wait %[[LAST]] : !tile.token<copy>
  tile.kv_loop [%lo, %mid, %hi] tests [[0, 1], []] carry() {
  ^bb0(%j: i32, %next: i32, %more: i1):
    %k0 = arith.muli %j, %n : i32
    %wide = arith.extsi %k0 : i32 to i64
    %src = tile.advance %q, %wide : !tile.ptr<bf16>
    %tk = tile.copy_async %K, %src stride(%stride) rows(%n) dim 64 : !tile.shared<64x64xbf16, 72>, !tile.ptr<bf16>
    tile.wait %tk : !tile.token<copy>
    %ts = tile.mma_abt %s, %Q, %K : !tile.frag<64x64, 4>, !tile.shared<64x64xbf16, 72>, !tile.shared<64x64xbf16, 72>
    tile.wait %ts : !tile.token<product>
    tile.apply_mask %s at(%n, %j) : !tile.frag<64x64, 4> {
    ^bb0(%query: i32, %key: i32):
      %after = arith.cmpi sle, %lo, %key : i32
      %before = arith.cmpi sle, %key, %query : i32
      tile.yield %after, %before : i1, i1
    }
    tile.online_softmax %s, %row, %acc scale 0.125 : !tile.frag<64x64, 4>, !tile.softmax_state<64, 4>, !tile.frag<64x64, 4>
    %v0 = arith.addi %j, %lo : i32
    %wide2 = arith.extsi %v0 : i32 to i64
    %src2 = tile.advance %q, %wide2 : !tile.ptr<bf16>
    %tv = tile.copy_async %V, %src2 stride(%stride) rows(%n) dim 64 : !tile.shared<64x64xbf16, 72>, !tile.ptr<bf16>
    tile.wait %tv : !tile.token<copy>
    %ta = tile.mma_ab %acc, %s, %V {guarded} : !tile.frag<64x64, 4>, !tile.frag<64x64, 4>, !tile.shared<64x64xbf16, 72>
    tile.wait %ta : !tile.token<product>
    tile.yield
  }
}

// The first tile of a walk with several runs is that of the first run that has one.
// CHECK-LABEL: tile.kernel @two_runs
// CHECK: %[[IN2:.*]] = arith.cmpi slt, %mid, %hi : i32
// CHECK: %[[IN1:.*]] = arith.cmpi slt, %lo, %n : i32
// CHECK: %[[TILE:.*]] = arith.select %[[IN1]], %lo, %mid : i32
// CHECK: %[[SOME:.*]] = arith.ori %[[IN1]], %[[IN2]] : i1
// CHECK: arith.muli %[[TILE]], %n
// CHECK: tile.copy_async %K, %{{.*}} when(%[[SOME]])
// A walk that is to stay one body says so still.
// CHECK: tile.kv_loop [%lo, %n] tests {{\[\[}}0]], [%mid, %hi] tests {{\[\[}}1]] carry(%{{.*}}) one_body {
tile.kernel @two_runs(%q: !tile.ptr<bf16>, %stride: i64, %n: i32, %lo: i32, %mid: i32, %hi: i32) target("sm_80")
    grid(dense heads 1) schedule(#tile.tiled<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
  %Q = tile.alloc "Q" : !tile.shared<64x64xbf16, 72>
  %K = tile.alloc "K" : !tile.shared<64x64xbf16, 72>
  %V = tile.alloc "V" : !tile.shared<64x64xbf16, 72>
  %s = tile.alloc "s" : !tile.frag<64x64, 4>
  %acc = tile.alloc "acc" : !tile.frag<64x64, 4>
  %row = tile.alloc "row" : !tile.softmax_state<64, 4>
  tile.kv_loop [%lo, %n] tests [[0]], [%mid, %hi] tests [[1]] carry() one_body {
  ^bb0(%j: i32, %next: i32, %more: i1):
    %k0 = arith.muli %j, %n : i32
    %wide = arith.extsi %k0 : i32 to i64
    %src = tile.advance %q, %wide : !tile.ptr<bf16>
    %tk = tile.copy_async %K, %src stride(%stride) rows(%n) dim 64 : !tile.shared<64x64xbf16, 72>, !tile.ptr<bf16>
    tile.wait %tk : !tile.token<copy>
    %ts = tile.mma_abt %s, %Q, %K : !tile.frag<64x64, 4>, !tile.shared<64x64xbf16, 72>, !tile.shared<64x64xbf16, 72>
    tile.wait %ts : !tile.token<product>
    tile.apply_mask %s at(%n, %j) : !tile.frag<64x64, 4> {
    ^bb0(%query: i32, %key: i32):
      %after = arith.cmpi sle, %lo, %key : i32
      %before = arith.cmpi sle, %key, %query : i32
      tile.yield %after, %before : i1, i1
    }
    tile.online_softmax %s, %row, %acc scale 0.125 : !tile.frag<64x64, 4>, !tile.softmax_state<64, 4>, !tile.frag<64x64, 4>
    %v0 = arith.addi %j, %lo : i32
    %wide2 = arith.extsi %v0 : i32 to i64
    %src2 = tile.advance %q, %wide2 : !tile.ptr<bf16>
    %tv = tile.copy_async %V, %src2 stride(%stride) rows(%n) dim 64 : !tile.shared<64x64xbf16, 72>, !tile.ptr<bf16>
    tile.wait %tv : !tile.token<copy>
    %ta = tile.mma_ab %acc, %s, %V {guarded} : !tile.frag<64x64, 4>, !tile.frag<64x64, 4>, !tile.shared<64x64xbf16, 72>
    tile.wait %ta : !tile.token<product>
    tile.yield
  }
}

// -----

tile.kernel @no_values(%q: !tile.ptr<bf16>, %stride: i64, %n: i32, %lo: i32, %mid: i32, %hi: i32) target("sm_80")
    grid(dense heads 1) schedule(#tile.tiled<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
  %Q = tile.alloc "Q" : !tile.shared<64x64xbf16, 72>
  %K = tile.alloc "K" : !tile.shared<64x64xbf16, 72>
  %V = tile.alloc "V" : !tile.shared<64x64xbf16, 72>
  %s = tile.alloc "s" : !tile.frag<64x64, 4>
  %acc = tile.alloc "acc" : !tile.frag<64x64, 4>
  %row = tile.alloc "row" : !tile.softmax_state<64, 4>
  // expected-error @below {{expected one product with K and one with V, each behind its copy and waits}}
  tile.kv_loop [%lo, %hi] tests [[]] carry() {
  ^bb0(%j: i32, %next: i32, %more: i1):
    %tk = tile.copy_async %K, %q stride(%stride) rows(%n) dim 64 : !tile.shared<64x64xbf16, 72>, !tile.ptr<bf16>
    tile.wait %tk : !tile.token<copy>
    %ts = tile.mma_abt %s, %Q, %K : !tile.frag<64x64, 4>, !tile.shared<64x64xbf16, 72>, !tile.shared<64x64xbf16, 72>
    tile.wait %ts : !tile.token<product>
    tile.yield
  }
}

// -----

tile.kernel @resident_keys(%q: !tile.ptr<bf16>, %stride: i64, %n: i32, %lo: i32, %mid: i32, %hi: i32) target("sm_80")
    grid(dense heads 1) schedule(#tile.tiled<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
  %Q = tile.alloc "Q" : !tile.shared<64x64xbf16, 72>
  %K = tile.alloc "K" : !tile.shared<64x64xbf16, 72>
  %V = tile.alloc "V" : !tile.shared<64x64xbf16, 72>
  %s = tile.alloc "s" : !tile.frag<64x64, 4>
  %acc = tile.alloc "acc" : !tile.frag<64x64, 4>
  %row = tile.alloc "row" : !tile.softmax_state<64, 4>
  %tk = tile.copy_async %K, %q stride(%stride) rows(%n) dim 64 : !tile.shared<64x64xbf16, 72>, !tile.ptr<bf16>
  tile.wait %tk : !tile.token<copy>
  // K is copied once, outside.
  // expected-error @below {{expected one product with K and one with V, each behind its copy and waits}}
  tile.kv_loop [%lo, %hi] tests [[]] carry() {
  ^bb0(%j: i32, %next: i32, %more: i1):
    %ts = tile.mma_abt %s, %Q, %K : !tile.frag<64x64, 4>, !tile.shared<64x64xbf16, 72>, !tile.shared<64x64xbf16, 72>
    tile.wait %ts : !tile.token<product>
    tile.online_softmax %s, %row, %acc scale 0.125 : !tile.frag<64x64, 4>, !tile.softmax_state<64, 4>, !tile.frag<64x64, 4>
    %tv = tile.copy_async %V, %q stride(%stride) rows(%n) dim 64 : !tile.shared<64x64xbf16, 72>, !tile.ptr<bf16>
    tile.wait %tv : !tile.token<copy>
    %ta = tile.mma_ab %acc, %s, %V : !tile.frag<64x64, 4>, !tile.frag<64x64, 4>, !tile.shared<64x64xbf16, 72>
    tile.wait %ta : !tile.token<product>
    tile.yield
  }
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
  %t0 = tile.copy_async %K, %q stride(%stride) rows(%n) dim 64 : !tile.shared<64x64xbf16, 72>, !tile.ptr<bf16>
  // Pipelined already.
  // expected-error @below {{expected one product with K and one with V, each behind its copy and waits}}
  %r = tile.kv_loop [%lo, %hi] tests [[]] carry(%t0 : !tile.token<copy>) {
  ^bb0(%j: i32, %next: i32, %more: i1, %c: !tile.token<copy>):
    tile.wait %c : !tile.token<copy>
    %ts = tile.mma_abt %s, %Q, %K : !tile.frag<64x64, 4>, !tile.shared<64x64xbf16, 72>, !tile.shared<64x64xbf16, 72>
    tile.wait %ts : !tile.token<product>
    %tk = tile.copy_async %K, %q stride(%stride) rows(%n) dim 64 : !tile.shared<64x64xbf16, 72>, !tile.ptr<bf16>
    %tv = tile.copy_async %V, %q stride(%stride) rows(%n) dim 64 : !tile.shared<64x64xbf16, 72>, !tile.ptr<bf16>
    tile.wait %tv : !tile.token<copy>
    tile.online_softmax %s, %row, %acc scale 0.125 : !tile.frag<64x64, 4>, !tile.softmax_state<64, 4>, !tile.frag<64x64, 4>
    %ta = tile.mma_ab %acc, %s, %V : !tile.frag<64x64, 4>, !tile.frag<64x64, 4>, !tile.shared<64x64xbf16, 72>
    tile.wait %ta : !tile.token<product>
    tile.yield %tk : !tile.token<copy>
  }
  tile.wait %r : !tile.token<copy>
}
