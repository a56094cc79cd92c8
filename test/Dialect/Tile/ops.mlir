// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Every op, type and attribute of the dialect, in both forms.
//
// RUN: attn-opt %s | FileCheck %s
// RUN: attn-opt %s | attn-opt | FileCheck %s
// RUN: attn-opt %s -mlir-print-op-generic | FileCheck %s --check-prefix=GENERIC
// RUN: attn-opt %s -mlir-print-op-generic | attn-opt | FileCheck %s

// CHECK: module attributes {tile.schedule = #tile.tiled<q_tile = 128, kv_tile = 64, warps = 4, ctas_per_sm = 2>}
module attributes {tile.schedule = #tile.tiled<q_tile = 128, kv_tile = 64, warps = 4, ctas_per_sm = 2>} {

// The names of arguments are kept.
// CHECK: tile.kernel @forward(%q: !tile.ptr<bf16>, %o: !tile.ptr<bf16>, %lse: !tile.ptr<f32>, %cu_seqlens_q: !tile.ptr<i32>, %padded_offsets_q: !tile.ptr<i32>, %batch: i32, %total_q: i32, %q_row: i64) target("sm_80") grid(packed heads 8) schedule(#tile.tiled<q_tile = 128, kv_tile = 64, warps = 4, ctas_per_sm = 2>) shared 49152 {
// GENERIC: "tile.kernel"()
// GENERIC-SAME: arg_names = ["q", "o", "lse", "cu_seqlens_q", "padded_offsets_q", "batch", "total_q", "q_row"]
// GENERIC-SAME: packed
// GENERIC-SAME: shared_bytes = 49152 : i64
// GENERIC-SAME: target = "sm_80"
tile.kernel @forward(%q: !tile.ptr<bf16>, %o: !tile.ptr<bf16>, %lse: !tile.ptr<f32>, %cu_seqlens_q: !tile.ptr<i32>,
                     %padded_offsets_q: !tile.ptr<i32>, %batch: i32, %total_q: i32, %q_row: i64)
    target("sm_80") grid(packed heads 8) schedule(#tile.tiled<q_tile = 128, kv_tile = 64, warps = 4, ctas_per_sm = 2>) shared 49152 {
  %zero = arith.constant 0 : i32
  %some = arith.constant true

  // Places take their names from what they are called.
  // CHECK: %Q = tile.alloc "Q" at 0 : !tile.shared<128x64xbf16, 72>
  // GENERIC: "tile.alloc"() <{name = "Q", offset = 0 : i64}> : () -> !tile.shared<128x64xbf16, 72>
  %0 = tile.alloc "Q" at 0 : !tile.shared<128x64xbf16, 72>
  // CHECK: %K_twice = tile.alloc "K_twice" slots 2 : !tile.shared<64x64xbf16, swizzled>
  %twice = tile.alloc "K_twice" slots 2 : !tile.shared<64x64xbf16, swizzled>
  // CHECK: %K = tile.alloc "K" : !tile.shared<64x64xbf16, 72>
  %1 = tile.alloc "K" : !tile.shared<64x64xbf16, 72>
  // CHECK: %V = tile.alloc "V" : !tile.shared<64x128xbf16, 136>
  %2 = tile.alloc "V" : !tile.shared<64x128xbf16, 136>
  // CHECK: %s = tile.alloc "s" : !tile.frag<128x64, 4>
  %3 = tile.alloc "s" : !tile.frag<128x64, 4>
  // CHECK: %acc = tile.alloc "acc" : !tile.frag<128x128, 4>
  %4 = tile.alloc "acc" : !tile.frag<128x128, 4>
  // CHECK: %q_operand = tile.alloc "q_operand" : !tile.register_operand<128x64xbf16, 4>
  %6 = tile.alloc "q_operand" : !tile.register_operand<128x64xbf16, 4>
  // CHECK: %row = tile.alloc "row" : !tile.softmax_state<128, 4>
  // GENERIC: "tile.alloc"() <{name = "row"}> : () -> !tile.softmax_state<128, 4>
  %5 = tile.alloc "row" : !tile.softmax_state<128, 4>

  // CHECK: %block = tile.index block
  // GENERIC: "tile.index"() <{kind = 0 : i32}> : () -> i32
  %b = tile.index block
  // CHECK: %b, %q0, %first, %rows, %write_rows = tile.find_sequence %block in %cu_seqlens_q, %padded_offsets_q, %batch, %total_q tile 128 : !tile.ptr<i32>, !tile.ptr<i32>
  // GENERIC: "tile.find_sequence"({{.*}}) <{q_tile = 128 : i64}> : (i32, !tile.ptr<i32>, !tile.ptr<i32>, i32, i32) -> (i32, i32, i32, i32, i32)
  %f:5 = tile.find_sequence %b in %cu_seqlens_q, %padded_offsets_q, %batch, %total_q tile 128 : !tile.ptr<i32>, !tile.ptr<i32>
  // CHECK: %[[LEN:.*]] = tile.load %cu_seqlens_q[%b] : i32 from !tile.ptr<i32>
  // GENERIC: "tile.load"({{.*}}) : (!tile.ptr<i32>, i32) -> i32
  %len = tile.load %cu_seqlens_q[%f#0] : i32 from !tile.ptr<i32>
  // CHECK: tile.load %cu_seqlens_q[%{{.*}}] : i64 from !tile.ptr<i32>
  %wide = arith.extsi %f#0 : i32 to i64
  %far = tile.load %cu_seqlens_q[%wide] : i64 from !tile.ptr<i32>
  // CHECK: tile.load uniform %cu_seqlens_q[%b] : i32 from !tile.ptr<i32>
  // GENERIC: "tile.load"({{.*}}) <{uniform}>
  %same = tile.load uniform %cu_seqlens_q[%f#0] : i32 from !tile.ptr<i32>
  // CHECK: %[[SRC:.*]] = tile.advance %q, %{{.*}} : !tile.ptr<bf16>
  // GENERIC: "tile.advance"({{.*}}) : (!tile.ptr<bf16>, i64) -> !tile.ptr<bf16>
  %src = tile.advance %q, %wide : !tile.ptr<bf16>

  // CHECK: tile.clear %acc : !tile.frag<128x128, 4>
  tile.clear %4 : !tile.frag<128x128, 4>
  // CHECK: tile.clear %row : !tile.softmax_state<128, 4>
  // GENERIC: "tile.clear"({{.*}}) <{operandSegmentSizes = array<i32: 1, 0, 0, 0>}> : (!tile.softmax_state<128, 4>) -> ()
  tile.clear %5 : !tile.softmax_state<128, 4>

  // CHECK: %[[T:.*]] = tile.copy_async %Q, %[[SRC]] stride(%q_row) rows(%[[LEN]]) dim 64 : !tile.shared<128x64xbf16, 72>, !tile.ptr<bf16>
  // GENERIC: "tile.copy_async"({{.*}}) <{dim = 64 : i64, operandSegmentSizes = array<i32: 1, 1, 1, 1, 0, 0>}> : (!tile.shared<128x64xbf16, 72>, !tile.ptr<bf16>, i64, i32) -> !tile.token<copy>
  %t = tile.copy_async %0, %src stride(%q_row) rows(%len) dim 64 : !tile.shared<128x64xbf16, 72>, !tile.ptr<bf16>
  // CHECK: tile.copy_async %K, %[[SRC]] stride(%q_row) rows(%[[LEN]]) dim 56 when(%true) : !tile.shared<64x64xbf16, 72>, !tile.ptr<bf16>
  %u = tile.copy_async %1, %src stride(%q_row) rows(%len) dim 56 when(%some) : !tile.shared<64x64xbf16, 72>, !tile.ptr<bf16>
  // CHECK: tile.copy_async %K, %[[SRC]] stride(%q_row) rows(%[[LEN]] from %b) dim 64 : !tile.shared<64x64xbf16, 72>, !tile.ptr<bf16>
  // GENERIC: "tile.copy_async"({{.*}}) <{dim = 64 : i64, operandSegmentSizes = array<i32: 1, 1, 1, 1, 1, 0>}>
  %later = tile.copy_async %1, %src stride(%q_row) rows(%len from %f#0) dim 64 : !tile.shared<64x64xbf16, 72>, !tile.ptr<bf16>
  // CHECK: tile.wait %[[T]], %{{.*}} : !tile.token<copy>, !tile.token<copy>
  // GENERIC: "tile.wait"({{.*}}) : (!tile.token<copy>, !tile.token<copy>) -> ()
  tile.wait %t, %u : !tile.token<copy>, !tile.token<copy>

  // CHECK: tile.scale %Q by -1.000000e+00 : !tile.shared<128x64xbf16, 72>
  // GENERIC: "tile.scale"
  tile.scale %0 by -1.000000e+00 : !tile.shared<128x64xbf16, 72>
  // CHECK: tile.load_operand %q_operand, %Q : !tile.register_operand<128x64xbf16, 4>, !tile.shared<128x64xbf16, 72>
  // GENERIC: "tile.load_operand"
  tile.load_operand %6, %0 : !tile.register_operand<128x64xbf16, 4>, !tile.shared<128x64xbf16, 72>
  // CHECK: tile.mma_abt %s, %q_operand, %K : !tile.frag<128x64, 4>, !tile.register_operand<128x64xbf16, 4>, !tile.shared<64x64xbf16, 72>
  %held_product = tile.mma_abt %3, %6, %1 : !tile.frag<128x64, 4>, !tile.register_operand<128x64xbf16, 4>, !tile.shared<64x64xbf16, 72>

  // CHECK: %warpgroup = tile.index warpgroup
  // CHECK: tile.kv_loop [%c0_i32, %[[LEN]]] tests [{{\[}}]] own [%warpgroup, %[[LEN]]] carry() {
  // GENERIC: "tile.kv_loop"({{.*}}) <{operandSegmentSizes = array<i32: 2, 2, 0>, tests = {{\[\[}}array<i64>]]}>
  %warpgroup = tile.index warpgroup
  tile.kv_loop [%zero, %len] tests [[]] own [%warpgroup, %len] carry() {
  ^bb0(%j: i32, %next: i32, %more: i1):
    tile.yield
  }
  // CHECK: tile.kv_loop [%c0_i32, %[[LEN]], %batch] tests [{{\[}}0, 1], []], [%batch, %total_q] tests [{{\[}}1]] carry() {
  // CHECK-NEXT: ^bb0(%j: i32, %next: i32, %more: i1):
  // GENERIC: "tile.kv_loop"({{.*}}) <{operandSegmentSizes = array<i32: 5, 0, 0>, tests = {{\[\[}}array<i64: 0, 1>, array<i64>], [array<i64: 1>]]}>
  tile.kv_loop [%zero, %len, %batch] tests [[0, 1], []], [%batch, %total_q] tests [[1]] carry() {
  ^bb0(%j: i32, %next: i32, %more: i1):
    // CHECK: %[[QK:.*]] = tile.mma_abt %s, %Q, %K : !tile.frag<128x64, 4>, !tile.shared<128x64xbf16, 72>, !tile.shared<64x64xbf16, 72>
    %qk = tile.mma_abt %3, %0, %1 : !tile.frag<128x64, 4>, !tile.shared<128x64xbf16, 72>, !tile.shared<64x64xbf16, 72>
    // CHECK: tile.wait %[[QK]] : !tile.token<product>
    tile.wait %qk : !tile.token<product>
    // CHECK: tile.apply_mask %s at(%q0, %j) : !tile.frag<128x64, 4> {
    // CHECK-NEXT: ^bb0(%[[ROW:.*]]: i32, %[[KEY:.*]]: i32):
    // GENERIC: "tile.apply_mask"
    tile.apply_mask %3 at(%f#1, %j) : !tile.frag<128x64, 4> {
    ^bb0(%row: i32, %key: i32):
      %below = arith.cmpi sle, %key, %row : i32
      %inside = arith.cmpi slt, %key, %len : i32
      // CHECK: tile.yield %{{.*}}, %{{.*}} : i1, i1
      tile.yield %below, %inside : i1, i1
    }
    // CHECK: tile.online_softmax %s, %row, %acc scale 1.250000e-01 : !tile.frag<128x64, 4>, !tile.softmax_state<128, 4>, !tile.frag<128x128, 4>
    // GENERIC: "tile.online_softmax"({{.*}}) <{scale = 1.250000e-01 : f64}>
    tile.online_softmax %3, %5, %4 scale 0.125 : !tile.frag<128x64, 4>, !tile.softmax_state<128, 4>, !tile.frag<128x128, 4>
    // CHECK: tile.mma_ab %acc, %s, %V {guarded} : !tile.frag<128x128, 4>, !tile.frag<128x64, 4>, !tile.shared<64x128xbf16, 136>
    // GENERIC: "tile.mma_ab"({{.*}}) <{guarded}>
    %pv = tile.mma_ab %4, %3, %2 {guarded} : !tile.frag<128x128, 4>, !tile.frag<128x64, 4>, !tile.shared<64x128xbf16, 136>
    tile.wait %pv : !tile.token<product>
    // CHECK: tile.yield{{ *$}}
    tile.yield
  }

  // Tokens of both kinds go around a loop.
  %v = tile.copy_async %1, %src stride(%q_row) rows(%len) dim 64 : !tile.shared<64x64xbf16, 72>, !tile.ptr<bf16>
  %w = tile.mma_abt %3, %0, %1 : !tile.frag<128x64, 4>, !tile.shared<128x64xbf16, 72>, !tile.shared<64x64xbf16, 72>
  // CHECK: %[[R:.*]]:2 = tile.kv_loop [%c0_i32, %[[LEN]]] tests [{{\[}}]] carry(%{{.*}} : !tile.token<copy>, %{{.*}} : !tile.token<product>) {
  // CHECK-NEXT: ^bb0(%j: i32, %next: i32, %more: i1, %[[C:.*]]: !tile.token<copy>, %[[P:.*]]: !tile.token<product>):
  // CHECK-NEXT: tile.yield %[[C]], %[[P]] : !tile.token<copy>, !tile.token<product>
  %carried:2 = tile.kv_loop [%zero, %len] tests [[]] carry(%v : !tile.token<copy>, %w : !tile.token<product>) {
  ^bb0(%j: i32, %next: i32, %more: i1, %copy: !tile.token<copy>, %product: !tile.token<product>):
    tile.yield %copy, %product : !tile.token<copy>, !tile.token<product>
  }

  // CHECK: tile.normalize %acc, %row : !tile.frag<128x128, 4>, !tile.softmax_state<128, 4>
  tile.normalize %4, %5 : !tile.frag<128x128, 4>, !tile.softmax_state<128, 4>
  // CHECK: tile.store %o stride(%q_row), %acc rows(%rows, %write_rows) dim 128 : !tile.ptr<bf16>, !tile.frag<128x128, 4>
  // GENERIC: "tile.store"({{.*}}) <{dim = 128 : i64}>
  tile.store %o stride(%q_row), %4 rows(%f#3, %f#4) dim 128 : !tile.ptr<bf16>, !tile.frag<128x128, 4>
  // CHECK: tile.store_lse %lse, %row rows(%rows, %write_rows) : !tile.ptr<f32>, !tile.softmax_state<128, 4>
  // GENERIC: "tile.store_lse"
  tile.store_lse %lse, %5 rows(%f#3, %f#4) : !tile.ptr<f32>, !tile.softmax_state<128, 4>
  // CHECK: tile.store_padding %o stride(%q_row) rows(%write_rows) dim 128 : !tile.ptr<bf16>
  // GENERIC: "tile.store_padding"({{.*}}) <{dim = 128 : i64,
  tile.store_padding %o stride(%q_row) rows(%f#4) dim 128 : !tile.ptr<bf16>
}

// A dense grid, no shared memory yet, an empty body.
// CHECK: tile.kernel @empty() target("cpu") grid(dense heads 1) schedule(#tile.tiled<q_tile = 16, kv_tile = 16, warps = 1, ctas_per_sm = 16, q_in_registers = true>) {
tile.kernel @empty() target("cpu") grid(dense heads 1)
    schedule(#tile.tiled<q_tile = 16, kv_tile = 16, warps = 1, ctas_per_sm = 16, q_in_registers = true>) {
}
// What sm_90a adds: boxes by tensor maps, roles that meet in rings and a feed, halves of
// `tile.online_softmax`, and recomputation of rows.
// CHECK: tile.kernel @hopper(%q: !tile.ptr<bf16>, %q_row: i64, %lse: !tile.ptr<f32>, %k_map: !tile.tensor_map<64xbf16>, %v_map: !tile.tensor_map<64xbf16, packed>, %blocks: i32, %queue: !tile.queue) target("sm_90a") grid(dense heads 1) schedule(#tile.warp_specialized<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1, stages = 3, q_stages = 2>) {
tile.kernel @hopper(%q: !tile.ptr<bf16>, %q_row: i64, %lse: !tile.ptr<f32>, %k_map: !tile.tensor_map<64xbf16>,
                    %v_map: !tile.tensor_map<64xbf16, packed>, %blocks: i32, %queue: !tile.queue) target("sm_90a") grid(dense heads 1)
    schedule(#tile.warp_specialized<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1, stages = 3, q_stages = 2>) {
  %zero = arith.constant 0 : i32
  // CHECK: %Q = tile.alloc "Q" at 1024 : !tile.shared<64x80xbf16, swizzled>
  %0 = tile.alloc "Q" at 1024 : !tile.shared<64x80xbf16, swizzled>
  // CHECK: %K = tile.alloc "K" at 0 barriers 16384 : !tile.ring<2, <64x80xbf16, swizzled>>
  // GENERIC: "tile.alloc"() <{barriers = 16384 : i64, name = "K", offset = 0 : i64}> : () -> !tile.ring<2, <64x80xbf16, swizzled>>
  %1 = tile.alloc "K" at 0 barriers 16384 : !tile.ring<2, !tile.shared<64x80xbf16, swizzled>>
  // CHECK: %mailbox = tile.alloc "mailbox" : !tile.mailbox<2>
  // GENERIC: "tile.alloc"() <{name = "mailbox"}> : () -> !tile.mailbox<2>
  %2 = tile.alloc "mailbox" : !tile.mailbox<2>

  // CHECK: %[[T:.*]] = tile.copy_tma %Q, %k_map at(%c0_i32, %blocks, %c0_i32) : !tile.shared<64x80xbf16, swizzled>, !tile.tensor_map<64xbf16>
  // GENERIC: "tile.copy_tma"({{.*}}) <{operandSegmentSizes = array<i32: 1, 1, 1, 1, 1, 0>}> : (!tile.shared<64x80xbf16, swizzled>, !tile.tensor_map<64xbf16>, i32, i32, i32) -> !tile.token<copy>
  %t = tile.copy_tma %0, %k_map at(%zero, %blocks, %zero) : !tile.shared<64x80xbf16, swizzled>, !tile.tensor_map<64xbf16>
  // CHECK: tile.wait %[[T]] : !tile.token<copy>
  tile.wait %t : !tile.token<copy>
  // Of a packed tensor, what is left of the sequence in place of which one it is.
  // CHECK: %[[U:.*]] = tile.copy_tma %Q, %v_map at(%c0_i32, %blocks) rows(%blocks) : !tile.shared<64x80xbf16, swizzled>, !tile.tensor_map<64xbf16, packed>
  // GENERIC: "tile.copy_tma"({{.*}}) <{operandSegmentSizes = array<i32: 1, 1, 1, 1, 0, 1>}> : (!tile.shared<64x80xbf16, swizzled>, !tile.tensor_map<64xbf16, packed>, i32, i32, i32) -> !tile.token<copy>
  %u = tile.copy_tma %0, %v_map at(%zero, %blocks) rows(%blocks) : !tile.shared<64x80xbf16, swizzled>, !tile.tensor_map<64xbf16, packed>
  // CHECK: tile.wait %[[U]] : !tile.token<copy>
  tile.wait %u : !tile.token<copy>

  // A loop over block numbers, without and with a counter that deals them out.
  // CHECK: tile.persistent_loop %blocks {
  // CHECK-NEXT: ^bb0(%block: i32):
  // GENERIC: "tile.persistent_loop"({{.*}}) <{operandSegmentSizes = array<i32: 1, 0, 0>}>
  tile.persistent_loop %blocks {
  ^bb0(%b: i32):
  }

  // CHECK: tile.roles registers(40, 232) producer {
  // GENERIC: "tile.roles"() <{consumer_registers = 232 : i64, producer_registers = 40 : i64}> ({
  tile.roles registers(40, 232) producer {
    // CHECK-NEXT: tile.persistent_loop %blocks, %queue mailbox(%mailbox : !tile.mailbox<2>) {
    // CHECK-NEXT: ^bb0(%[[BLOCK:.*]]: i32):
    // GENERIC: "tile.persistent_loop"({{.*}}) <{operandSegmentSizes = array<i32: 1, 1, 1>}>
    tile.persistent_loop %blocks, %queue mailbox(%2 : !tile.mailbox<2>) {
    ^bb0(%b: i32):
      // CHECK-NEXT: tile.publish_work %mailbox(%[[BLOCK]], %c0_i32) : !tile.mailbox<2>
      // GENERIC: "tile.publish_work"({{.*}}) : (!tile.mailbox<2>, i32, i32) -> ()
      tile.publish_work %2(%b, %zero) : !tile.mailbox<2>
      // CHECK-NEXT: tile.producer_load %K, %k_map at(%[[BLOCK]], %c0_i32, %blocks) : !tile.ring<2, <64x80xbf16, swizzled>>, !tile.tensor_map<64xbf16>
      // GENERIC: "tile.producer_load"({{.*}}) <{operandSegmentSizes = array<i32: 1, 1, 1, 1, 1, 0>}> : (!tile.ring<2, <64x80xbf16, swizzled>>, !tile.tensor_map<64xbf16>, i32, i32, i32) -> ()
      tile.producer_load %1, %k_map at(%b, %zero, %blocks) : !tile.ring<2, !tile.shared<64x80xbf16, swizzled>>, !tile.tensor_map<64xbf16>
      // CHECK-NEXT: tile.producer_load %K, %v_map at(%[[BLOCK]], %c0_i32) rows(%blocks) : !tile.ring<2, <64x80xbf16, swizzled>>, !tile.tensor_map<64xbf16, packed>
      // GENERIC: "tile.producer_load"({{.*}}) <{operandSegmentSizes = array<i32: 1, 1, 1, 1, 0, 1>}> : (!tile.ring<2, <64x80xbf16, swizzled>>, !tile.tensor_map<64xbf16, packed>, i32, i32, i32) -> ()
      tile.producer_load %1, %v_map at(%b, %zero) rows(%blocks) : !tile.ring<2, !tile.shared<64x80xbf16, swizzled>>, !tile.tensor_map<64xbf16, packed>
    }
  // CHECK: } consumer {
  } consumer {
    %s = tile.alloc "s" : !tile.frag<64x64, 4>
    %acc = tile.alloc "acc" : !tile.frag<64x80, 4>
    %state = tile.alloc "state" : !tile.softmax_state<64, 4>
    %p = tile.alloc "p" : !tile.register_operand<64x64xbf16, 4>
    // An argument for each word.
    // CHECK: tile.persistent_loop %blocks mailbox(%mailbox : !tile.mailbox<2>) {
    // CHECK-NEXT: ^bb0(%block: i32, %word: i32):
    tile.persistent_loop %blocks mailbox(%2 : !tile.mailbox<2>) {
    ^bb0(%b: i32, %more: i32):
    }
    // A tile is called after its ring.
    // CHECK: %K_tile = tile.consumer_wait %K : !tile.ring<2, <64x80xbf16, swizzled>>
    // GENERIC: "tile.consumer_wait"({{.*}}) <{operandSegmentSizes = array<i32: 1, 0, 0>}> : (!tile.ring<2, <64x80xbf16, swizzled>>) -> !tile.shared<64x80xbf16, swizzled>
    %k = tile.consumer_wait %1 : !tile.ring<2, !tile.shared<64x80xbf16, swizzled>>
    // CHECK: tile.mma_abt %s, %Q, %K_tile {negated} : !tile.frag<64x64, 4>, !tile.shared<64x80xbf16, swizzled>, !tile.shared<64x80xbf16, swizzled>
    // GENERIC: "tile.mma_abt"({{.*}}) <{negated}>
    %qk = tile.mma_abt %s, %0, %k {negated} : !tile.frag<64x64, 4>, !tile.shared<64x80xbf16, swizzled>, !tile.shared<64x80xbf16, swizzled>
    tile.wait %qk : !tile.token<product>
    // CHECK: tile.online_softmax %s, %state scale 5.000000e-01 : !tile.frag<64x64, 4>, !tile.softmax_state<64, 4>
    // GENERIC: "tile.online_softmax"({{.*}}) <{scale = 5.000000e-01 : f64}>
    tile.online_softmax %s, %state scale 0.5 : !tile.frag<64x64, 4>, !tile.softmax_state<64, 4>
    // CHECK: tile.rescale %acc, %state : !tile.frag<64x80, 4>, !tile.softmax_state<64, 4>
    // GENERIC: "tile.rescale"
    tile.rescale %acc, %state : !tile.frag<64x80, 4>, !tile.softmax_state<64, 4>
    // CHECK: tile.convert %p, %s : !tile.register_operand<64x64xbf16, 4>, !tile.frag<64x64, 4>
    // GENERIC: "tile.convert"
    tile.convert %p, %s : !tile.register_operand<64x64xbf16, 4>, !tile.frag<64x64, 4>
    // CHECK: tile.softmax_convert %p, %s, %state scale 5.000000e-01 : !tile.register_operand<64x64xbf16, 4>, !tile.frag<64x64, 4>, !tile.softmax_state<64, 4>
    // GENERIC: "tile.softmax_convert"({{.*}}) <{scale = 5.000000e-01 : f64}>
    tile.softmax_convert %p, %s, %state scale 0.5 : !tile.register_operand<64x64xbf16, 4>, !tile.frag<64x64, 4>, !tile.softmax_state<64, 4>
    // CHECK: tile.softmax_convert %p, %s, %state scale 5.000000e-01 rows_recomputed : !tile.register_operand<64x64xbf16, 4>, !tile.frag<64x64, 4>, !tile.softmax_state<64, 4>
    tile.softmax_convert %p, %s, %state scale 0.5 rows_recomputed : !tile.register_operand<64x64xbf16, 4>, !tile.frag<64x64, 4>, !tile.softmax_state<64, 4>
    // P as it is held after `tile.convert`.
    // CHECK: tile.mma_ab %acc, %p, %K_tile : !tile.frag<64x80, 4>, !tile.register_operand<64x64xbf16, 4>, !tile.shared<64x80xbf16, swizzled>
    %pv = tile.mma_ab %acc, %p, %k : !tile.frag<64x80, 4>, !tile.register_operand<64x64xbf16, 4>, !tile.shared<64x80xbf16, swizzled>
    tile.wait %pv : !tile.token<product>
    // CHECK: tile.consumer_release %K : !tile.ring<2, <64x80xbf16, swizzled>>
    // GENERIC: "tile.consumer_release"({{.*}}) <{operandSegmentSizes = array<i32: 1, 0, 0>}> : (!tile.ring<2, <64x80xbf16, swizzled>>) -> ()
    tile.consumer_release %1 : !tile.ring<2, !tile.shared<64x80xbf16, swizzled>>
    // CHECK: tile.kv_loop [%c0_i32, %blocks] tests {{\[\[}}]] carry() one_body {
    // GENERIC: "tile.kv_loop"({{.*}}) <{one_body, operandSegmentSizes = array<i32: 2, 0, 0>, tests = {{\[\[}}array<i64>]]}>
    tile.kv_loop [%zero, %blocks] tests [[]] carry() one_body {
    ^bb0(%j: i32, %next: i32, %more: i1):
      tile.yield
    }
    // CHECK: tile.recompute_rows %acc at(%c0_i32) rows(%blocks) keys(%c0_i32) from(%q, %q_row, %q, %q_row, %q, %q_row) into(%q, %q_row) lse(%lse) dims(72, 80) scale -5.000000e-01 : !tile.frag<64x80, 4>, !tile.ptr<bf16>, !tile.ptr<bf16> {
    // CHECK-NEXT: ^bb0(%[[ROW:.*]]: i32, %[[KEY:.*]]: i32):
    // CHECK-NEXT: arith.cmpi sle, %[[KEY]], %[[ROW]]
    // GENERIC: "tile.recompute_rows"({{.*}}) <{dim_qk = 72 : i64, dim_v = 80 : i64, operandSegmentSizes = array<i32: 1, 1, 1, 0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0>, scale = -5.000000e-01 : f64}>
    tile.recompute_rows %acc at(%zero) rows(%blocks) keys(%zero) from(%q, %q_row, %q, %q_row, %q, %q_row) into(%q, %q_row)
        lse(%lse) dims(72, 80) scale -0.5 : !tile.frag<64x80, 4>, !tile.ptr<bf16>, !tile.ptr<bf16> {
    ^bb0(%query: i32, %key: i32):
      %below = arith.cmpi sle, %key, %query : i32
      tile.yield %below : i1
    }
    // Of a share of the keys, whose results are float32.
    // CHECK: tile.recompute_rows {{.*}} keys(%blocks from %c0_i32) from({{.*}}) into(%lse, %q_row) lse(%lse) dims(72, 80) scale 5.000000e-01 : !tile.frag<64x80, 4>, !tile.ptr<bf16>, !tile.ptr<f32> {
    tile.recompute_rows %acc at(%zero) rows(%blocks) keys(%blocks from %zero) from(%q, %q_row, %q, %q_row, %q, %q_row)
        into(%lse, %q_row) lse(%lse) dims(72, 80) scale 0.5 : !tile.frag<64x80, 4>, !tile.ptr<bf16>, !tile.ptr<f32> {
    ^bb0(%query: i32, %key: i32):
    }
    // Keys of some ranges.
    // CHECK: tile.recompute_rows {{.*}} scale 5.000000e-01 ranges(%blocks) : !tile.frag
    // CHECK: } along {
    // CHECK-NEXT: ^bb0(%j: i32):
    // CHECK-NEXT: tile.yield %j, %j, %j : i32, i32, i32
    tile.recompute_rows %acc at(%zero) rows(%blocks) keys(%zero) from(%q, %q_row, %q, %q_row, %q, %q_row) into(%q, %q_row)
        dims(72, 80) scale 0.5 ranges(%blocks) : !tile.frag<64x80, 4>, !tile.ptr<bf16>, !tile.ptr<bf16> {
    ^bb0(%query: i32, %key: i32):
    } along {
    ^bb0(%range: i32):
      tile.yield %range, %range, %range : i32, i32, i32
    }
    // Without `lse`, and with a region that yields nothing, whose terminator goes without saying.
    // CHECK: tile.recompute_rows {{.*}} into(%q, %q_row) dims(72, 80) scale 5.000000e-01
    tile.recompute_rows %acc at(%zero) rows(%blocks) keys(%zero) from(%q, %q_row, %q, %q_row, %q, %q_row) into(%q, %q_row)
        dims(72, 80) scale 0.5 : !tile.frag<64x80, 4>, !tile.ptr<bf16>, !tile.ptr<bf16> {
    ^bb0(%query: i32, %key: i32):
    }
  }
}

// Results of parts of the keys, with lse and without.
// CHECK-LABEL: tile.kernel @merge
tile.kernel @merge(%o: !tile.ptr<f16>, %lse: !tile.ptr<f32>, %po: !tile.ptr<f32>, %pl: !tile.ptr<f32>, %n: i32, %st: i64)
    target("sm_80") grid(dense heads 1) schedule(#tile.auxiliary<q_tile = 4, kv_tile = 16, warps = 4, ctas_per_sm = 1>) {
  // CHECK: tile.combine %o stride(%st) lse(%lse) from(%po, %pl, %pl) splits(%n, %st) rows(%n) dim 72 scale 1.250000e-01 : !tile.ptr<f16>
  // GENERIC: "tile.combine"({{.*}}) <{dim = 72 : i64, {{.*}}scale = 1.250000e-01 : f64}>
  tile.combine %o stride(%st) lse(%lse) from(%po, %pl, %pl) splits(%n, %st) rows(%n) dim 72 scale 1.250000e-01 : !tile.ptr<f16>
  // CHECK: tile.combine %o stride(%st) from(%po, %pl, %pl) splits(%n, %st) rows(%n) dim 8 scale 1.250000e-01 : !tile.ptr<f16>
  tile.combine %o stride(%st) from(%po, %pl, %pl) splits(%n, %st) rows(%n) dim 8 scale 1.250000e-01 : !tile.ptr<f16>
}

// Rows that are pairs of a query and one of 4 heads.
// CHECK-LABEL: tile.kernel @pairs
tile.kernel @pairs(%q: !tile.ptr<bf16>, %o: !tile.ptr<bf16>, %lse: !tile.ptr<f32>, %q_map: !tile.tensor_map<16x4xbf16>,
                   %packed_map: !tile.tensor_map<16x4xbf16, packed>, %st: i64, %n: i32)
    target("sm_80") grid(dense heads 2) schedule(#tile.tiled<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1, pack_heads = 4>) {
  %Q = tile.alloc "Q" : !tile.shared<64x64xbf16, 72>
  %B = tile.alloc "B" : !tile.shared<64x64xbf16, swizzled>
  %s = tile.alloc "s" : !tile.frag<64x64, 4>
  %row = tile.alloc "row" : !tile.softmax_state<64, 4>
  // CHECK: %[[AT:.*]] = tile.pairs %n, %n : !tile.pairs<4, i32>
  // CHECK-NEXT: %[[BY:.*]] = tile.pairs %st, %st : !tile.pairs<4, i64>
  // GENERIC: "tile.pairs"({{.*}}) : (i64, i64) -> !tile.pairs<4, i64>
  %at = tile.pairs %n, %n : !tile.pairs<4, i32>
  %by = tile.pairs %st, %st : !tile.pairs<4, i64>
  // CHECK: tile.copy_async %Q, %q stride(%[[BY]] heads 4) rows(%n) dim 64
  %t = tile.copy_async %Q, %q stride(%by heads 4) rows(%n) dim 64 : !tile.shared<64x64xbf16, 72>, !tile.ptr<bf16>
  // CHECK: tile.copy_tma %B, %q_map at(%n, %n, %n) : !tile.shared<64x64xbf16, swizzled>, !tile.tensor_map<16x4xbf16>
  %u = tile.copy_tma %B, %q_map at(%n, %n, %n) : !tile.shared<64x64xbf16, swizzled>, !tile.tensor_map<16x4xbf16>
  tile.wait %t, %u : !tile.token<copy>, !tile.token<copy>
  // CHECK: tile.copy_tma %B, %packed_map at(%n, %n) rows(%n) : !tile.shared<64x64xbf16, swizzled>, !tile.tensor_map<16x4xbf16, packed>
  %v = tile.copy_tma %B, %packed_map at(%n, %n) rows(%n) : !tile.shared<64x64xbf16, swizzled>, !tile.tensor_map<16x4xbf16, packed>
  tile.wait %v : !tile.token<copy>
  // A score's head is a row's, and comes last.
  // CHECK: tile.modify %s at(%[[AT]] heads 4, %n) : !tile.frag<64x64, 4> {
  // CHECK-NEXT: ^bb0(%score: f32, %q_0: i32, %k: i32, %base: i32, %column_offset: f32, %h: i32):
  tile.modify %s at(%at heads 4, %n) : !tile.frag<64x64, 4> {
  ^bb0(%score: f32, %query: i32, %key: i32, %base: i32, %column_offset: f32, %head: i32):
    tile.yield %score : f32
  }
  // CHECK: tile.apply_mask %s at(%[[AT]] heads 4, %n) : !tile.frag<64x64, 4> {
  tile.apply_mask %s at(%at heads 4, %n) : !tile.frag<64x64, 4> {
  ^bb0(%query: i32, %key: i32):
  }
  // CHECK: tile.store %o stride(%[[BY]] heads 4), %s rows(%n, %n) dim 64
  tile.store %o stride(%by heads 4), %s rows(%n, %n) dim 64 : !tile.ptr<bf16>, !tile.frag<64x64, 4>
  // CHECK: tile.store_lse %lse stride(%[[BY]] heads 4), %row rows(%n, %n)
  tile.store_lse %lse stride(%by heads 4), %row rows(%n, %n) : !tile.ptr<f32>, !tile.softmax_state<64, 4>
  // CHECK: tile.store_padding %o stride(%[[BY]] heads 4) rows(%n) dim 64
  tile.store_padding %o stride(%by heads 4) rows(%n) dim 64 : !tile.ptr<bf16>
  // CHECK: tile.recompute_rows %s at(%[[AT]] heads 4) {{.*}} from(%q, %[[BY]] heads 4, %q, %st, %q, %st) into(%o, %[[BY]] heads 4) lse(%lse, %[[BY]] heads 4)
  tile.recompute_rows %s at(%at heads 4) rows(%n) keys(%n) from(%q, %by heads 4, %q, %st, %q, %st) into(%o, %by heads 4)
      lse(%lse, %by heads 4) dims(64, 64) scale 0.5 : !tile.frag<64x64, 4>, !tile.ptr<bf16>, !tile.ptr<bf16> {
  ^bb0(%query: i32, %key: i32):
  }
}
}

// Rows that are 4 positions apart.
// CHECK-LABEL: tile.kernel @strided({{.*}}!tile.tensor_map<64xbf16, packed, stride 4>{{.*}} grid(packed heads 8 keys residues 4)
tile.kernel @strided(%map: !tile.tensor_map<64xbf16, packed, stride 4>, %n: i32)
    target("sm_90a") grid(packed heads 8 keys residues 4) schedule(#tile.warp_specialized<q_tile = 128, kv_tile = 128, warps = 8, ctas_per_sm = 1>) {
  %K = tile.alloc "K" : !tile.shared<128x64xbf16, swizzled>
  // CHECK: tile.copy_tma %K, %map at(%n, %n) rows(%n) : !tile.shared<128x64xbf16, swizzled>, !tile.tensor_map<64xbf16, packed, stride 4>
  %t = tile.copy_tma %K, %map at(%n, %n) rows(%n) : !tile.shared<128x64xbf16, swizzled>, !tile.tensor_map<64xbf16, packed, stride 4>
}
