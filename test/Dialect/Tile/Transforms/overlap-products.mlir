// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// `tile-overlap-products`: the consumer's loop is turned by half an iteration. The
// product with K(j) and that of P(j - 1) with V(j - 1) are under way together.
//
// RUN: attn-opt %s -tile-overlap-products | FileCheck %s
// RUN: attn-opt %s -tile-overlap-products -mlir-print-op-generic | attn-opt | FileCheck %s
// RUN: attn-opt %s -tile-verify-async -tile-overlap-products -tile-verify-async -tile-split-kv-loop -tile-verify-async -canonicalize -cse -tile-verify-async

// CHECK-LABEL: tile.kernel @one_run
// CHECK: consumer {
// CHECK-NEXT: %p = tile.alloc "p" : !tile.register_operand<64x64xbf16, 4>
// CHECK: %[[Q:.*]] = tile.consumer_wait %Q

// The last tile, and whether there is one; no bound lies before the first tile, so
// bounds cut off at the one behind it are the walk's first tile, and the rest.
// CHECK: arith.subi %hi, %{{.*}} : i32
// CHECK-NEXT: %[[ANY:.*]] = arith.cmpi slt, %lo, %hi : i32
// CHECK: %[[SECOND:.*]] = arith.addi %lo, %{{.*}} : i32
// CHECK-NEXT: %[[F0:.*]] = arith.minsi %lo, %[[SECOND]]
// CHECK-NEXT: %[[F1:.*]] = arith.minsi %mid, %[[SECOND]]
// CHECK-NEXT: %[[F2:.*]] = arith.minsi %hi, %[[SECOND]]
// CHECK-NEXT: %[[R0:.*]] = arith.maxsi %lo, %[[SECOND]]
// CHECK-NEXT: %[[R1:.*]] = arith.maxsi %mid, %[[SECOND]]
// CHECK-NEXT: %[[R2:.*]] = arith.maxsi %hi, %[[SECOND]]

// The first tile's scores alone. It runs once at most, so it is one body.
// CHECK-NEXT: tile.kv_loop [%[[F0]], %[[F1]], %[[F2]]] tests {{\[\[}}0], []] carry() one_body {
// CHECK-NEXT: ^bb0(%[[J:.*]]: i32, %{{.*}}: i32, %{{.*}}: i1):
// CHECK-NEXT: %[[K:.*]] = tile.consumer_wait %K
// CHECK-NEXT: %[[QK:.*]] = tile.mma_abt %s, %[[Q]], %[[K]] {negated}
// CHECK-NEXT: tile.wait %[[QK]]
// CHECK-NEXT: tile.consumer_release %K
// CHECK-NEXT: %[[K0:.*]] = arith.muli %[[J]], %n
// CHECK-NEXT: tile.apply_mask %s at(%n, %[[K0]])
// CHECK: tile.online_softmax %s, %row scale 1.250000e-01
// CHECK-NEXT: tile.convert %p, %s
// CHECK-NEXT: tile.yield

// The rest: both products are started and waited for. P is made anew when nothing
// reads it, relative to maxima that are looked at afterwards, and the accumulator
// follows them.
// CHECK: tile.kv_loop [%[[R0]], %[[R1]], %[[R2]]] tests {{\[\[}}0], []] carry() {
// CHECK-NEXT: ^bb0(%[[J:.*]]: i32, %{{.*}}: i32, %[[MORE:.*]]: i1):
// CHECK-NEXT: %[[K:.*]] = tile.consumer_wait %K
// CHECK-NEXT: %[[QK:.*]] = tile.mma_abt %s, %[[Q]], %[[K]] {negated}
// CHECK-NEXT: %[[V:.*]] = tile.consumer_wait %V
// CHECK-NEXT: %[[PV:.*]] = tile.mma_ab %acc, %p, %[[V]]
// CHECK-NEXT: tile.wait %[[QK]]
// CHECK-NEXT: tile.consumer_release %Q unless(%[[MORE]])
// CHECK-NEXT: tile.consumer_release %K
// CHECK-NEXT: tile.wait %[[PV]]
// CHECK-NEXT: tile.consumer_release %V
// CHECK-NEXT: %[[K0:.*]] = arith.muli %[[J]], %n
// CHECK-NEXT: tile.apply_mask %s at(%n, %[[K0]])
// CHECK: tile.softmax_convert %p, %s, %row scale 1.250000e-01
// CHECK-NEXT: tile.rescale %acc, %row
// CHECK-NEXT: tile.yield

// Q is given back before the last product with V, of which nothing is left to overlap, if
// the second loop has not done so: its only slot goes when the walk's last scores are there.
// CHECK: }
// CHECK-NEXT: tile.consumer_release %Q
// CHECK-NEXT: scf.if %[[ANY]] {
// CHECK-NEXT: %[[V:.*]] = tile.consumer_wait %V
// CHECK-NEXT: %[[PV:.*]] = tile.mma_ab %acc, %p, %[[V]]
// CHECK-NEXT: tile.wait %[[PV]]
// CHECK-NEXT: tile.consumer_release %V
// CHECK-NEXT: }
// CHECK-NEXT: tile.normalize %acc, %row
tile.kernel @one_run(%n: i32, %lo: i32, %mid: i32, %hi: i32, %map: !tile.tensor_map<64xbf16>) target("sm_90a")
    grid(dense heads 1) schedule(#tile.warp_specialized<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
  %Q = tile.alloc "Q" : !tile.ring<1, !tile.shared<64x64xbf16, swizzled>>
  %K = tile.alloc "K" : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>
  %V = tile.alloc "V" : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>
  tile.roles registers(40, 240) producer {
    tile.producer_load %Q, %map at(%n, %n, %n) : !tile.ring<1, !tile.shared<64x64xbf16, swizzled>>, !tile.tensor_map<64xbf16>
    tile.producer_load %K, %map at(%n, %n, %n) : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>, !tile.tensor_map<64xbf16>
    tile.producer_load %V, %map at(%n, %n, %n) : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>, !tile.tensor_map<64xbf16>
  } consumer {
    %s = tile.alloc "s" : !tile.frag<64x64, 4>
    %acc = tile.alloc "acc" : !tile.frag<64x64, 4>
    %row = tile.alloc "row" : !tile.softmax_state<64, 4>
    %q = tile.consumer_wait %Q : !tile.ring<1, !tile.shared<64x64xbf16, swizzled>>
    tile.kv_loop [%lo, %mid, %hi] tests [[0], []] carry() {
    ^bb0(%j: i32, %next: i32, %more: i1):
      %k0 = arith.muli %j, %n : i32
      %k = tile.consumer_wait %K : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>
      %ts = tile.mma_abt %s, %q, %k {negated} : !tile.frag<64x64, 4>, !tile.shared<64x64xbf16, swizzled>, !tile.shared<64x64xbf16, swizzled>
      tile.wait %ts : !tile.token<product>
      tile.consumer_release %K : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>
      tile.apply_mask %s at(%n, %k0) : !tile.frag<64x64, 4> {
      ^bb0(%query: i32, %key: i32):
        %below = arith.cmpi sle, %key, %query : i32
        tile.yield %below : i1
      }
      tile.online_softmax %s, %row, %acc scale 0.125 : !tile.frag<64x64, 4>, !tile.softmax_state<64, 4>, !tile.frag<64x64, 4>
      %v = tile.consumer_wait %V : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>
      %ta = tile.mma_ab %acc, %s, %v : !tile.frag<64x64, 4>, !tile.frag<64x64, 4>, !tile.shared<64x64xbf16, swizzled>
      tile.wait %ta : !tile.token<product>
      tile.consumer_release %V : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>
      tile.yield
    }
    tile.consumer_release %Q : !tile.ring<1, !tile.shared<64x64xbf16, swizzled>>
    tile.normalize %acc, %row : !tile.frag<64x64, 4>, !tile.softmax_state<64, 4>
  }
}

// Of several runs the first tile is that of the first that has one, the last that of the last that has one.
// CHECK-LABEL: tile.kernel @two_runs
// CHECK: %[[IN2:.*]] = arith.cmpi slt, %mid, %hi : i32
// CHECK-NEXT: %[[IN1:.*]] = arith.cmpi slt, %lo, %n : i32
// CHECK-NEXT: %[[FIRST:.*]] = arith.select %[[IN1]], %lo, %mid : i32
// CHECK: %[[LAST1:.*]] = arith.subi %n, %{{.*}} : i32
// CHECK-NEXT: %[[ANY1:.*]] = arith.cmpi slt, %lo, %n : i32
// CHECK-NEXT: %[[LAST2:.*]] = arith.subi %hi, %{{.*}} : i32
// CHECK-NEXT: %[[ANY2:.*]] = arith.cmpi slt, %mid, %hi : i32
// CHECK-NEXT: %[[LAST:.*]] = arith.select %[[ANY2]], %[[LAST2]], %[[LAST1]] : i32
// CHECK-NEXT: %[[ANY:.*]] = arith.ori %[[ANY2]], %[[ANY1]] : i1
// CHECK: %[[SECOND:.*]] = arith.addi %[[FIRST]], %
// CHECK-NEXT: %[[F0:.*]] = arith.minsi %lo, %[[SECOND]]
// CHECK-NEXT: %[[F1:.*]] = arith.minsi %n, %[[SECOND]]
// CHECK-NEXT: %[[F2:.*]] = arith.minsi %mid, %[[SECOND]]
// CHECK-NEXT: %[[F3:.*]] = arith.minsi %hi, %[[SECOND]]
// CHECK-NEXT: %[[R0:.*]] = arith.maxsi %lo, %[[SECOND]]
// CHECK-NEXT: %[[R1:.*]] = arith.maxsi %n, %[[SECOND]]
// CHECK-NEXT: %[[R2:.*]] = arith.maxsi %mid, %[[SECOND]]
// CHECK-NEXT: %[[R3:.*]] = arith.maxsi %hi, %[[SECOND]]
// A walk that was one body stays one.
// CHECK-NEXT: tile.kv_loop [%[[F0]], %[[F1]]] tests {{\[\[}}]], [%[[F2]], %[[F3]]] tests {{\[\[}}]] carry() one_body {
// CHECK: tile.kv_loop [%[[R0]], %[[R1]]] tests {{\[\[}}]], [%[[R2]], %[[R3]]] tests {{\[\[}}]] carry() one_body {
// Nothing stands behind the loop.
// CHECK: tile.yield
// CHECK-NEXT: }
// CHECK-NEXT: scf.if %[[ANY]] {
// What the last product asks of its tile it asks of the walk's last.
// CHECK: %[[WHEN:.*]] = arith.cmpi slt, %[[LAST]], %n : i32
// CHECK-NEXT: tile.mma_ab %acc, %p, %{{.*}} when(%[[WHEN]])
tile.kernel @two_runs(%n: i32, %lo: i32, %mid: i32, %hi: i32, %map: !tile.tensor_map<64xbf16>) target("sm_90a")
    grid(dense heads 1) schedule(#tile.warp_specialized<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
  %K = tile.alloc "K" : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>
  %V = tile.alloc "V" : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>
  %q_operand = tile.alloc "q_operand" : !tile.register_operand<64x64xbf16, 4>
  tile.roles registers(40, 240) producer {
    tile.producer_load %K, %map at(%n, %n, %n) : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>, !tile.tensor_map<64xbf16>
    tile.producer_load %V, %map at(%n, %n, %n) : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>, !tile.tensor_map<64xbf16>
  } consumer {
    %s = tile.alloc "s" : !tile.frag<64x64, 4>
    %acc = tile.alloc "acc" : !tile.frag<64x64, 4>
    %row = tile.alloc "row" : !tile.softmax_state<64, 4>
    tile.kv_loop [%lo, %n] tests [[]], [%mid, %hi] tests [[]] carry() one_body {
    ^bb0(%j: i32, %next: i32, %more: i1):
      %k = tile.consumer_wait %K : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>
      %ts = tile.mma_abt %s, %q_operand, %k : !tile.frag<64x64, 4>, !tile.register_operand<64x64xbf16, 4>, !tile.shared<64x64xbf16, swizzled>
      tile.wait %ts : !tile.token<product>
      tile.consumer_release %K : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>
      tile.online_softmax %s, %row, %acc scale 0.125 : !tile.frag<64x64, 4>, !tile.softmax_state<64, 4>, !tile.frag<64x64, 4>
      %v = tile.consumer_wait %V : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>
      %when = arith.cmpi slt, %j, %n : i32
      %ta = tile.mma_ab %acc, %s, %v when(%when) : !tile.frag<64x64, 4>, !tile.frag<64x64, 4>, !tile.shared<64x64xbf16, swizzled>
      tile.wait %ta : !tile.token<product>
      tile.consumer_release %V : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>
      tile.yield
    }
  }
}

// With `turns`, both products are begun in this warpgroup's turn and neither is waited for
// within it. The first tile's scores and the last product take none: each warpgroup has as
// many turns as the walk has further tiles, which is the same for all.
// Where scores rise from tile to tile, maxima are looked at first, under the product.
// CHECK-LABEL: tile.kernel @rising
// CHECK: %[[PV:.*]] = tile.mma_ab %
// CHECK: tile.online_softmax %s, %row scale 1.250000e-01
// CHECK-NEXT: tile.wait %[[PV]]
// CHECK-NEXT: tile.consumer_release %V
// CHECK-NEXT: tile.rescale %acc, %row
// CHECK-NEXT: tile.convert %p, %s
// CHECK-NEXT: tile.yield
tile.kernel @rising(%n: i32, %lo: i32, %hi: i32, %map: !tile.tensor_map<64xbf16>) target("sm_90a")
    grid(dense heads 1) schedule(#tile.warp_specialized<q_tile = 128, kv_tile = 64, warps = 8, ctas_per_sm = 1>) {
  %K = tile.alloc "K" : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>
  %V = tile.alloc "V" : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>
  %q_operand = tile.alloc "q_operand" : !tile.register_operand<128x64xbf16, 8>
  tile.roles registers(40, 232) producer {
    tile.producer_load %K, %map at(%n, %n, %n) : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>, !tile.tensor_map<64xbf16>
    tile.producer_load %V, %map at(%n, %n, %n) : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>, !tile.tensor_map<64xbf16>
  } consumer {
    %s = tile.alloc "s" : !tile.frag<128x64, 8>
    %acc = tile.alloc "acc" : !tile.frag<128x64, 8>
    %row = tile.alloc "row" : !tile.softmax_state<128, 8>
    tile.kv_loop [%lo, %hi] tests [[]] carry() {
    ^bb0(%j: i32, %next: i32, %more: i1):
      %k = tile.consumer_wait %K : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>
      %ts = tile.mma_abt %s, %q_operand, %k : !tile.frag<128x64, 8>, !tile.register_operand<128x64xbf16, 8>, !tile.shared<64x64xbf16, swizzled>
      tile.wait %ts : !tile.token<product>
      tile.consumer_release %K : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>
      tile.online_softmax %s, %row, %acc scale 0.125 {rising} : !tile.frag<128x64, 8>, !tile.softmax_state<128, 8>, !tile.frag<128x64, 8>
      %v = tile.consumer_wait %V : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>
      %ta = tile.mma_ab %acc, %s, %v : !tile.frag<128x64, 8>, !tile.frag<128x64, 8>, !tile.shared<64x64xbf16, swizzled>
      tile.wait %ta : !tile.token<product>
      tile.consumer_release %V : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>
      tile.yield
    }
  }
}

// CHECK-LABEL: tile.kernel @turns
// CHECK-NOT: tile.ping_pong_wait
// CHECK: tile.convert %p, %s
// CHECK: tile.kv_loop
// CHECK-NEXT: ^bb0(
// CHECK-NEXT: tile.ping_pong_wait
// CHECK-NEXT: tile.consumer_wait %K
// CHECK-NEXT: %[[QK:.*]] = tile.mma_abt
// CHECK-NEXT: tile.consumer_wait %V
// CHECK-NEXT: %[[PV:.*]] = tile.mma_ab %
// CHECK-NEXT: tile.ping_pong_arrive
// CHECK-NEXT: tile.wait %[[QK]]
// CHECK: tile.wait %[[PV]]
// CHECK-NOT: tile.ping_pong_wait
// CHECK-NOT: tile.ping_pong_arrive
tile.kernel @turns(%n: i32, %lo: i32, %hi: i32, %map: !tile.tensor_map<64xbf16>) target("sm_90a")
    grid(dense heads 1) schedule(#tile.warp_specialized<q_tile = 128, kv_tile = 64, warps = 8, ctas_per_sm = 1, pingpong = true>) {
  %K = tile.alloc "K" : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>
  %V = tile.alloc "V" : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>
  %q_operand = tile.alloc "q_operand" : !tile.register_operand<128x64xbf16, 8>
  tile.roles registers(40, 232) producer {
    tile.producer_load %K, %map at(%n, %n, %n) : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>, !tile.tensor_map<64xbf16>
    tile.producer_load %V, %map at(%n, %n, %n) : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>, !tile.tensor_map<64xbf16>
  } consumer {
    %s = tile.alloc "s" : !tile.frag<128x64, 8>
    %acc = tile.alloc "acc" : !tile.frag<128x64, 8>
    %row = tile.alloc "row" : !tile.softmax_state<128, 8>
    tile.kv_loop [%lo, %hi] tests [[]] carry() {
    ^bb0(%j: i32, %next: i32, %more: i1):
      %k = tile.consumer_wait %K : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>
      %ts = tile.mma_abt %s, %q_operand, %k : !tile.frag<128x64, 8>, !tile.register_operand<128x64xbf16, 8>, !tile.shared<64x64xbf16, swizzled>
      tile.wait %ts : !tile.token<product>
      tile.consumer_release %K : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>
      tile.online_softmax %s, %row, %acc scale 0.125 : !tile.frag<128x64, 8>, !tile.softmax_state<128, 8>, !tile.frag<128x64, 8>
      %v = tile.consumer_wait %V : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>
      %ta = tile.mma_ab %acc, %s, %v : !tile.frag<128x64, 8>, !tile.frag<128x64, 8>, !tile.shared<64x64xbf16, swizzled>
      tile.wait %ta : !tile.token<product>
      tile.consumer_release %V : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>
      tile.yield
    }
  }
}

// A block without a walk, and loops of no consumer, are left alone.
// CHECK-LABEL: tile.kernel @no_walk
// CHECK-NOT: tile.alloc "p"
// CHECK: producer {
// CHECK-NEXT: tile.kv_loop [%lo, %hi] tests {{\[\[}}]] carry() {
// CHECK-NOT: tile.kv_loop
tile.kernel @no_walk(%lo: i32, %hi: i32) target("sm_90a") grid(dense heads 1)
    schedule(#tile.warp_specialized<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
  tile.roles registers(40, 240) producer {
    tile.kv_loop [%lo, %hi] tests [[]] carry() {
    ^bb0(%j: i32, %next: i32, %more: i1):
      tile.yield
    }
  } consumer {
    %acc = tile.alloc "acc" : !tile.frag<64x64, 4>
    tile.clear %acc : !tile.frag<64x64, 4>
  }
}
