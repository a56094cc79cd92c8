// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// `tile-assign-roles`: a persistent program becomes two, for the warp that brings tiles and
// for those that compute.
//
// RUN: attn-opt %s -tile-assign-roles | FileCheck %s
// RUN: attn-opt %s -tile-assign-roles -mlir-print-op-generic -mlir-print-debuginfo | attn-opt - | FileCheck %s
// RUN: attn-opt %s -tile-assign-roles -tile-verify-async

// A ring for each place that is copied into, of `stages` tiles in the loop and of
// `q_stages` outside; they and the feed are what roles share.
// CHECK-LABEL: tile.kernel @one_run
// CHECK-NEXT: %Q = tile.alloc "Q" : !tile.ring<2, <64x64xbf16, swizzled>>
// CHECK-NEXT: %K = tile.alloc "K" : !tile.ring<3, <64x64xbf16, swizzled>>
// CHECK-NEXT: %V = tile.alloc "V" : !tile.ring<3, <64x64xbf16, swizzled>>
// CHECK-NEXT: %mailbox = tile.alloc "mailbox" : !tile.mailbox<4>
// CHECK-NEXT: tile.roles registers({{[0-9]+}}, {{[0-9]+}}) producer {

// The producer asks for numbers and sends what follows from them and is used: loads and
// divisions, not what only leads to them, nor what is the same for all blocks.
// CHECK-NEXT: tile.persistent_loop %blocks, %queue mailbox(%mailbox : !tile.mailbox<4>) {
// CHECK-NEXT: ^bb0(%[[BLOCK:.*]]: i32):
// CHECK-NEXT: %[[EIGHT:.*]] = arith.constant 8
// CHECK-NEXT: %h = arith.remui %[[BLOCK]], %[[EIGHT]]
// CHECK-NEXT: %[[B:.*]] = arith.divui %[[BLOCK]], %[[EIGHT]]
// CHECK-NEXT: %len = tile.load uniform %lens[%[[B]]]
// CHECK-NEXT: %end = arith.divui %len, %[[EIGHT]]
// CHECK-NEXT: tile.publish_work %mailbox(%[[BLOCK]], %h, %len, %end) : !tile.mailbox<4>

// It fills as often as there was a copy, with what is left of a packed sequence, and does
// not care about tests: the walk is one segment.
// CHECK-NEXT: tile.producer_load %Q, %map at(%n, %h, %n)
// CHECK-NEXT: %[[ZERO:.*]] = arith.constant 0
// CHECK-NEXT: tile.kv_loop [%[[ZERO]], %end] tests {{\[\[}}]] carry() {
// CHECK-NEXT: ^bb0(%[[J:.*]]: i32, %{{.*}}: i32, %{{.*}}: i1):
// CHECK-NEXT: tile.producer_load %K, %map at(%[[J]], %h, %n)
// CHECK-NEXT: tile.producer_load %V, %packed_map at(%[[J]], %h) rows(%len) : {{.*}}, !tile.tensor_map<64xbf16, packed>
// CHECK-NEXT: tile.yield
// CHECK-NEXT: }
// CHECK-NEXT: }

// The consumer has the registers. It takes where it waited for a copy, and releases
// behind the product's wait, or the loop, that is the last to read.
// CHECK-NEXT: } consumer {
// CHECK-NEXT: %s = tile.alloc "s"
// CHECK-NEXT: %acc = tile.alloc "acc"
// CHECK-NEXT: %row = tile.alloc "row"
// CHECK-NEXT: tile.persistent_loop %blocks mailbox(%mailbox : !tile.mailbox<4>) {
// CHECK-NEXT: ^bb0(%{{.*}}: i32, %h: i32, %len: i32, %end: i32):
// CHECK-NEXT: %[[SAME:.*]] = arith.addi %n, %n
// CHECK-NEXT: tile.clear %acc
// CHECK-NEXT: tile.clear %row
// CHECK-NEXT: %Q_tile = tile.consumer_wait %Q
// CHECK-NEXT: %[[ZERO:.*]] = arith.constant 0
// CHECK-NEXT: tile.kv_loop [%[[ZERO]], %len, %end] tests {{\[\[}}], [0]] carry() {
// CHECK-NEXT: ^bb0(%[[J:.*]]: i32, %{{.*}}: i32, %{{.*}}: i1):
// CHECK-NEXT: %K_tile = tile.consumer_wait %K
// CHECK-NEXT: %[[QK:.*]] = tile.mma_abt %s, %Q_tile, %K_tile
// CHECK-NEXT: tile.wait %[[QK]]
// CHECK-NEXT: tile.consumer_release %K
// CHECK-NEXT: tile.apply_mask %s at(%[[SAME]], %[[J]])
// CHECK: tile.online_softmax
// CHECK-NEXT: %V_tile = tile.consumer_wait %V
// CHECK-NEXT: %[[PV:.*]] = tile.mma_ab %acc, %s, %V_tile
// CHECK-NEXT: tile.wait %[[PV]]
// CHECK-NEXT: tile.consumer_release %V
// CHECK-NEXT: tile.yield
// CHECK-NEXT: }
// CHECK-NEXT: tile.consumer_release %Q
// CHECK-NEXT: tile.normalize %acc, %row
// CHECK-NEXT: tile.store %o stride(%o_row), %acc rows(%len, %n)
// CHECK-NEXT: }
// CHECK-NEXT: }
// CHECK-NEXT: }
tile.kernel @one_run(%map: !tile.tensor_map<64xbf16>, %packed_map: !tile.tensor_map<64xbf16, packed>, %lens: !tile.ptr<i32>,
                     %o: !tile.ptr<bf16>, %o_row: i64, %n: i32, %blocks: i32, %queue: !tile.queue) target("sm_90a")
    grid(dense heads 1) schedule(#tile.warp_specialized<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1, stages = 3, q_stages = 2>) {
  %Q = tile.alloc "Q" : !tile.shared<64x64xbf16, swizzled>
  %K = tile.alloc "K" : !tile.shared<64x64xbf16, swizzled>
  %V = tile.alloc "V" : !tile.shared<64x64xbf16, swizzled>
  %s = tile.alloc "s" : !tile.frag<64x64, 4>
  %acc = tile.alloc "acc" : !tile.frag<64x64, 4>
  %row = tile.alloc "row" : !tile.softmax_state<64, 4>
  tile.persistent_loop %blocks, %queue {
  ^bb0(%block: i32):
    %eight = arith.constant 8 : i32
    %same = arith.addi %n, %n : i32
    %h = arith.remui %block, %eight : i32 loc("h")
    %b = arith.divui %block, %eight : i32
    %len = tile.load uniform %lens[%b] : i32 from !tile.ptr<i32> loc("len")
    %end = arith.divui %len, %eight : i32 loc("end")
    %tq = tile.copy_tma %Q, %map at(%n, %h, %n) : !tile.shared<64x64xbf16, swizzled>, !tile.tensor_map<64xbf16>
    tile.clear %acc : !tile.frag<64x64, 4>
    tile.clear %row : !tile.softmax_state<64, 4>
    tile.wait %tq : !tile.token<copy>
    %zero = arith.constant 0 : i32
    tile.kv_loop [%zero, %len, %end] tests [[], [0]] carry() {
    ^bb0(%j: i32, %next: i32, %more: i1):
      %tk = tile.copy_tma %K, %map at(%j, %h, %n) : !tile.shared<64x64xbf16, swizzled>, !tile.tensor_map<64xbf16>
      tile.wait %tk : !tile.token<copy>
      %ts = tile.mma_abt %s, %Q, %K : !tile.frag<64x64, 4>, !tile.shared<64x64xbf16, swizzled>, !tile.shared<64x64xbf16, swizzled>
      tile.wait %ts : !tile.token<product>
      tile.apply_mask %s at(%same, %j) : !tile.frag<64x64, 4> {
      ^bb0(%query: i32, %key: i32):
        %below = arith.cmpi sle, %key, %query : i32
        tile.yield %below : i1
      }
      tile.online_softmax %s, %row, %acc scale 0.125 : !tile.frag<64x64, 4>, !tile.softmax_state<64, 4>, !tile.frag<64x64, 4>
      %tv = tile.copy_tma %V, %packed_map at(%j, %h) rows(%len) : !tile.shared<64x64xbf16, swizzled>, !tile.tensor_map<64xbf16, packed>
      tile.wait %tv : !tile.token<copy>
      %ta = tile.mma_ab %acc, %s, %V : !tile.frag<64x64, 4>, !tile.frag<64x64, 4>, !tile.shared<64x64xbf16, swizzled>
      tile.wait %ta : !tile.token<product>
      tile.yield
    }
    tile.normalize %acc, %row : !tile.frag<64x64, 4>, !tile.softmax_state<64, 4>
    tile.store %o stride(%o_row), %acc rows(%len, %n) dim 64 : !tile.ptr<bf16>, !tile.frag<64x64, 4>
  }
}

// Several runs stay several; what is in a branch is filled and taken in that branch; a
// search's results keep their names.
// CHECK-LABEL: tile.kernel @branches
// CHECK: %mailbox = tile.alloc "mailbox" : !tile.mailbox<3>
// CHECK: tile.find_sequence %[[BLOCK:.*]] in
// CHECK-NEXT: %[[LIVE:.*]] = arith.cmpi slt, %n, %rows
// Sent before the branch that brings tiles: behind a fill that waits for a slot, it would
// come too late for those who are to empty it.
// CHECK-NEXT: tile.publish_work %mailbox(%[[BLOCK]], %q0, %rows)
// CHECK-NEXT: scf.if %[[LIVE]] {
// CHECK-NEXT: tile.kv_loop [%n, %q0] tests {{\[\[}}]], [%q0, %rows] tests {{\[\[}}]] carry() {
// CHECK: tile.producer_load %K
// CHECK-NEXT: tile.yield
// CHECK-NOT: tile.store_padding
// CHECK: } consumer {
// CHECK: scf.if
// CHECK-NEXT: tile.kv_loop [%n, %n, %q0] tests {{\[\[}}0], []], [%q0, %n, %n, %rows] tests {{\[\[}}0], [], [0]] carry() {
// CHECK: tile.consumer_wait %K
// Two products read K, and the first to be started is the last to be waited for.
// CHECK-NEXT: %[[A:.*]] = tile.mma_abt %s
// CHECK-NEXT: %[[B:.*]] = tile.mma_abt %t
// CHECK-NEXT: tile.wait %[[B]]
// CHECK-NEXT: tile.wait %[[A]]
// CHECK-NEXT: tile.consumer_release %K
// CHECK: } else {
// CHECK-NEXT: tile.store_padding %o stride(%o_row) rows(%q0)
tile.kernel @branches(%map: !tile.tensor_map<64xbf16>, %cu: !tile.ptr<i32>, %o: !tile.ptr<bf16>, %o_row: i64, %n: i32,
                      %blocks: i32, %queue: !tile.queue) target("sm_90a")
    grid(packed heads 1) schedule(#tile.warp_specialized<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
  %q_operand = tile.alloc "q_operand" : !tile.register_operand<64x64xbf16, 4>
  %K = tile.alloc "K" : !tile.shared<64x64xbf16, swizzled>
  %s = tile.alloc "s" : !tile.frag<64x64, 4>
  %t = tile.alloc "t" : !tile.frag<64x64, 4>
  tile.persistent_loop %blocks, %queue {
  ^bb0(%block: i32):
    %b, %q0, %first, %rows, %write_rows = tile.find_sequence %block in %cu, %cu, %n, %n tile 64 : !tile.ptr<i32>, !tile.ptr<i32>
    %live = arith.cmpi slt, %n, %rows : i32
    scf.if %live {
      tile.kv_loop [%n, %n, %q0] tests [[0], []], [%q0, %n, %n, %rows] tests [[0], [], [0]] carry() {
      ^bb0(%j: i32, %next: i32, %more: i1):
        %tk = tile.copy_tma %K, %map at(%j, %n, %n) : !tile.shared<64x64xbf16, swizzled>, !tile.tensor_map<64xbf16>
        tile.wait %tk : !tile.token<copy>
        %ts = tile.mma_abt %s, %q_operand, %K : !tile.frag<64x64, 4>, !tile.register_operand<64x64xbf16, 4>, !tile.shared<64x64xbf16, swizzled>
        %tt = tile.mma_abt %t, %q_operand, %K : !tile.frag<64x64, 4>, !tile.register_operand<64x64xbf16, 4>, !tile.shared<64x64xbf16, swizzled>
        tile.wait %tt : !tile.token<product>
        tile.wait %ts : !tile.token<product>
        tile.apply_mask %s at(%q0, %j) : !tile.frag<64x64, 4> {
        ^bb0(%query: i32, %key: i32):
          %below = arith.cmpi sle, %key, %query : i32
          tile.yield %below : i1
        }
        tile.yield
      }
    } else {
      tile.store_padding %o stride(%o_row) rows(%q0) dim 64 : !tile.ptr<bf16>
    }
  }
}

// Nothing but the block's number to be sent, and a tile that nobody reads. Registers
// are shared out by how many warps compute.
// CHECK-LABEL: tile.kernel @unread
// CHECK: %mailbox = tile.alloc "mailbox" : !tile.mailbox<1>
// CHECK-NEXT: tile.roles registers(32, 160) producer {
// CHECK: tile.publish_work %mailbox(%{{.*}}) : !tile.mailbox<1>
// CHECK: tile.producer_load %Q
// CHECK: consumer {
// CHECK: %Q_tile = tile.consumer_wait %Q
// CHECK-NEXT: tile.consumer_release %Q
// CHECK-NEXT: }
tile.kernel @unread(%map: !tile.tensor_map<192xbf16>, %n: i32, %blocks: i32, %queue: !tile.queue) target("sm_90a")
    grid(dense heads 1) schedule(#tile.warp_specialized<q_tile = 192, kv_tile = 64, warps = 12, ctas_per_sm = 1>) {
  %Q = tile.alloc "Q" : !tile.shared<192x64xbf16, swizzled>
  tile.persistent_loop %blocks, %queue {
  ^bb0(%block: i32):
    %tq = tile.copy_tma %Q, %map at(%n, %n, %n) : !tile.shared<192x64xbf16, swizzled>, !tile.tensor_map<192xbf16>
    tile.wait %tq : !tile.token<copy>
  }
}

// A feed has 32 words. What does not fit the consumer finds out for itself.
// CHECK-LABEL: tile.kernel @many
// CHECK: %mailbox = tile.alloc "mailbox" : !tile.mailbox<32>
// CHECK: tile.publish_work
// CHECK: consumer {
// CHECK: ^bb0(%[[BLOCK:[a-z0-9_]+]]: i32, {{.*}}, %[[LAST:[a-z0-9_]+]]: i32):
// CHECK-NEXT: %[[A:.*]] = arith.addi %[[BLOCK]], %n
// CHECK-NEXT: %[[B:.*]] = arith.addi %[[BLOCK]], %n
// CHECK-NEXT: %[[C:.*]] = arith.addi %[[BLOCK]], %n
// CHECK-COUNT-15: tile.store_lse
// CHECK-NEXT: tile.store_lse %lse, %row rows(%[[LAST]], %[[A]])
// CHECK-NEXT: tile.store_lse %lse, %row rows(%[[B]], %[[C]])
tile.kernel @many(%lse: !tile.ptr<f32>, %n: i32, %blocks: i32, %queue: !tile.queue) target("sm_90a")
    grid(dense heads 1) schedule(#tile.warp_specialized<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
  %row = tile.alloc "row" : !tile.softmax_state<64, 4>
  tile.persistent_loop %blocks, %queue {
  ^bb0(%block: i32):
    %0 = arith.addi %block, %n : i32
    %1 = arith.addi %block, %n : i32
    %2 = arith.addi %block, %n : i32
    %3 = arith.addi %block, %n : i32
    %4 = arith.addi %block, %n : i32
    %5 = arith.addi %block, %n : i32
    %6 = arith.addi %block, %n : i32
    %7 = arith.addi %block, %n : i32
    %8 = arith.addi %block, %n : i32
    %9 = arith.addi %block, %n : i32
    %10 = arith.addi %block, %n : i32
    %11 = arith.addi %block, %n : i32
    %12 = arith.addi %block, %n : i32
    %13 = arith.addi %block, %n : i32
    %14 = arith.addi %block, %n : i32
    %15 = arith.addi %block, %n : i32
    %16 = arith.addi %block, %n : i32
    %17 = arith.addi %block, %n : i32
    %18 = arith.addi %block, %n : i32
    %19 = arith.addi %block, %n : i32
    %20 = arith.addi %block, %n : i32
    %21 = arith.addi %block, %n : i32
    %22 = arith.addi %block, %n : i32
    %23 = arith.addi %block, %n : i32
    %24 = arith.addi %block, %n : i32
    %25 = arith.addi %block, %n : i32
    %26 = arith.addi %block, %n : i32
    %27 = arith.addi %block, %n : i32
    %28 = arith.addi %block, %n : i32
    %29 = arith.addi %block, %n : i32
    %30 = arith.addi %block, %n : i32
    %31 = arith.addi %block, %n : i32
    %32 = arith.addi %block, %n : i32
    %33 = arith.addi %block, %n : i32
    tile.store_lse %lse, %row rows(%0, %1) : !tile.ptr<f32>, !tile.softmax_state<64, 4>
    tile.store_lse %lse, %row rows(%2, %3) : !tile.ptr<f32>, !tile.softmax_state<64, 4>
    tile.store_lse %lse, %row rows(%4, %5) : !tile.ptr<f32>, !tile.softmax_state<64, 4>
    tile.store_lse %lse, %row rows(%6, %7) : !tile.ptr<f32>, !tile.softmax_state<64, 4>
    tile.store_lse %lse, %row rows(%8, %9) : !tile.ptr<f32>, !tile.softmax_state<64, 4>
    tile.store_lse %lse, %row rows(%10, %11) : !tile.ptr<f32>, !tile.softmax_state<64, 4>
    tile.store_lse %lse, %row rows(%12, %13) : !tile.ptr<f32>, !tile.softmax_state<64, 4>
    tile.store_lse %lse, %row rows(%14, %15) : !tile.ptr<f32>, !tile.softmax_state<64, 4>
    tile.store_lse %lse, %row rows(%16, %17) : !tile.ptr<f32>, !tile.softmax_state<64, 4>
    tile.store_lse %lse, %row rows(%18, %19) : !tile.ptr<f32>, !tile.softmax_state<64, 4>
    tile.store_lse %lse, %row rows(%20, %21) : !tile.ptr<f32>, !tile.softmax_state<64, 4>
    tile.store_lse %lse, %row rows(%22, %23) : !tile.ptr<f32>, !tile.softmax_state<64, 4>
    tile.store_lse %lse, %row rows(%24, %25) : !tile.ptr<f32>, !tile.softmax_state<64, 4>
    tile.store_lse %lse, %row rows(%26, %27) : !tile.ptr<f32>, !tile.softmax_state<64, 4>
    tile.store_lse %lse, %row rows(%28, %29) : !tile.ptr<f32>, !tile.softmax_state<64, 4>
    tile.store_lse %lse, %row rows(%30, %31) : !tile.ptr<f32>, !tile.softmax_state<64, 4>
    tile.store_lse %lse, %row rows(%32, %33) : !tile.ptr<f32>, !tile.softmax_state<64, 4>
  }
}

// What is added up through a staging place: the consumer writes it there, another role adds, with the scalars and the loop it needs and
// nothing else. Who brings and who adds work out anew what follows from arguments, and have more registers.
// CHECK-LABEL: tile.kernel @adds
// CHECK: tile.roles registers(48, 224) producer {
// CHECK: tile.optimization_barrier %n
// CHECK: tile.publish_work
// CHECK: tile.producer_load %K
// CHECK-NOT: tile.add_staged
// CHECK: } consumer {
// CHECK: tile.consumer_wait %K
// CHECK: tile.stage %staging, %dQ
// CHECK-NOT: tile.optimization_barrier
// CHECK: } dq_store {
// CHECK: tile.persistent_loop {{.*}}mailbox(%mailbox
// CHECK: %[[N:.*]] = tile.optimization_barrier %n
// CHECK: tile.kv_loop
// CHECK-NOT: tile.consumer_wait
// CHECK: tile.add_staged %sum, %staging left(%{{.*}}) semaphore(%semaphore of %{{.*}}) columns 64 : !tile.staging<2, 32768> {
// CHECK: arith.cmpi slt, %{{.*}}, %[[N]]
tile.kernel @adds(%map: !tile.tensor_map<64xbf16>, %sum: !tile.ptr<f32>, %semaphore: !tile.ptr<i32>, %n: i32, %blocks: i32, %queue: !tile.queue)
    target("sm_90a") grid(dense heads 1 keys) schedule(#tile.warp_specialized_backward<q_tile = 64, kv_tile = 128, warps = 8, ctas_per_sm = 1>) {
  %K = tile.alloc "K" : !tile.shared<64x128xbf16, swizzled>
  %S = tile.alloc "S" : !tile.shared<64x64xbf16, swizzled>
  %dQ = tile.alloc "dQ" : !tile.frag<128x64, 8>
  %staging = tile.alloc "staging" : !tile.staging<2, 32768>
  tile.persistent_loop %blocks, %queue {
  ^bb0(%block: i32):
    %tile = arith.divui %block, %n : i32
    tile.kv_loop [%n, %tile] tests [[]] carry() {
    ^bb0(%j: i32, %next: i32, %more: i1):
      %tk = tile.copy_tma %K, %map at(%j, %n, %n) : !tile.shared<64x128xbf16, swizzled>, !tile.tensor_map<64xbf16>
      tile.wait %tk : !tile.token<copy>
      %t = tile.mma_atb %dQ, %S, %K : !tile.frag<128x64, 8>, !tile.shared<64x64xbf16, swizzled>, !tile.shared<64x128xbf16, swizzled>
      tile.wait %t : !tile.token<product>
      tile.add_global %sum, %dQ left(%j) through(%staging : !tile.staging<2, 32768>) semaphore(%semaphore of %tile) : !tile.frag<128x64, 8> {
      ^bb0(%other: i32):
        %adds = arith.cmpi slt, %other, %n : i32
        tile.yield %adds : i1
      }
      tile.yield
    }
  }
}

// Truths are no words. What is chosen by one is sent, and not what it was chosen from; one that a branch
// asks for is found again, from what it follows from.
// CHECK-LABEL: tile.kernel @truths
// CHECK: %mailbox = tile.alloc "mailbox" : !tile.mailbox<3>
// CHECK: %[[X:.*]] = arith.remui %[[BLOCK:.*]], %
// CHECK-NEXT: %[[Y:.*]] = arith.divui %[[BLOCK]], %
// CHECK-NEXT: %[[LESS:.*]] = arith.cmpi slt, %[[X]], %[[Y]]
// CHECK-NEXT: %least = arith.select %[[LESS]], %[[X]], %[[Y]]
// CHECK: tile.publish_work %mailbox(%[[BLOCK]], %[[Y]], %least) : !tile.mailbox<3>
// CHECK: consumer {
// CHECK: ^bb0(%{{.*}}: i32, %[[Y:.*]]: i32, %least: i32):
// CHECK-NEXT: %[[EIGHT:.*]] = arith.constant 8
// CHECK-NEXT: %[[FEW:.*]] = arith.cmpi slt, %[[Y]], %[[EIGHT]]
// CHECK-NEXT: scf.if %[[FEW]] {
// CHECK-NEXT: tile.store_padding %o stride(%o_row) rows(%least)
tile.kernel @truths(%o: !tile.ptr<bf16>, %o_row: i64, %blocks: i32, %queue: !tile.queue) target("sm_90a")
    grid(dense heads 1) schedule(#tile.warp_specialized<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
  tile.persistent_loop %blocks, %queue {
  ^bb0(%block: i32):
    %eight = arith.constant 8 : i32
    %x = arith.remui %block, %eight : i32
    %y = arith.divui %block, %eight : i32
    %less = arith.cmpi slt, %x, %y : i32
    %least = arith.select %less, %x, %y : i32 loc("least")
    %few = arith.cmpi slt, %y, %eight : i32
    scf.if %few {
      tile.store_padding %o stride(%o_row) rows(%least) dim 64 : !tile.ptr<bf16>
    }
  }
}
