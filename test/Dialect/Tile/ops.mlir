// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Every op, type and attribute of the dialect, in both forms.
//
// RUN: attn-opt %s | FileCheck %s
// RUN: attn-opt %s | attn-opt | FileCheck %s
// RUN: attn-opt %s -mlir-print-op-generic | FileCheck %s --check-prefix=GENERIC
// RUN: attn-opt %s -mlir-print-op-generic | attn-opt | FileCheck %s

// CHECK: module attributes {tile.config = #tile.config<q_tile = 128, kv_tile = 64, warps = 4, blocks = 2>}
module attributes {tile.config = #tile.config<q_tile = 128, kv_tile = 64, warps = 4, blocks = 2>} {

// The names of arguments are kept.
// CHECK: tile.kernel @forward(%q: !tile.ptr<bf16>, %o: !tile.ptr<bf16>, %lse: !tile.ptr<f32>, %cu_seqlens_q: !tile.ptr<i32>, %padded_offsets_q: !tile.ptr<i32>, %batch: i32, %total_q: i32, %q_row: i64) target("sm_80") grid(packed heads 8) config(<q_tile = 128, kv_tile = 64, warps = 4, blocks = 2>) shared 49152 {
// GENERIC: "tile.kernel"()
// GENERIC-SAME: arg_names = ["q", "o", "lse", "cu_seqlens_q", "padded_offsets_q", "batch", "total_q", "q_row"]
// GENERIC-SAME: packed
// GENERIC-SAME: shared_bytes = 49152 : i64
// GENERIC-SAME: target = "sm_80"
tile.kernel @forward(%q: !tile.ptr<bf16>, %o: !tile.ptr<bf16>, %lse: !tile.ptr<f32>, %cu_seqlens_q: !tile.ptr<i32>,
                     %padded_offsets_q: !tile.ptr<i32>, %batch: i32, %total_q: i32, %q_row: i64)
    target("sm_80") grid(packed heads 8) config(<q_tile = 128, kv_tile = 64, warps = 4, blocks = 2>) shared 49152 {
  %zero = arith.constant 0 : i32
  %some = arith.constant true

  // Places take their names from what they are called.
  // CHECK: %Q = tile.place "Q" at 0 : !tile.shared<128x64xbf16, 72>
  // GENERIC: "tile.place"() <{name = "Q", offset = 0 : i64}> : () -> !tile.shared<128x64xbf16, 72>
  %0 = tile.place "Q" at 0 : !tile.shared<128x64xbf16, 72>
  // CHECK: %K = tile.place "K" : !tile.shared<64x64xbf16, 72>
  %1 = tile.place "K" : !tile.shared<64x64xbf16, 72>
  // CHECK: %V = tile.place "V" : !tile.shared<64x128xbf16, 136>
  %2 = tile.place "V" : !tile.shared<64x128xbf16, 136>
  // CHECK: %s = tile.place "s" : !tile.frag<128x64, 4>
  %3 = tile.place "s" : !tile.frag<128x64, 4>
  // CHECK: %acc = tile.place "acc" : !tile.frag<128x128, 4>
  %4 = tile.place "acc" : !tile.frag<128x128, 4>
  // CHECK: %held = tile.place "held" : !tile.held<128x64xbf16, 4>
  %6 = tile.place "held" : !tile.held<128x64xbf16, 4>
  // CHECK: %row = tile.place "row" : !tile.rows<128, 4>
  // GENERIC: "tile.place"() <{name = "row"}> : () -> !tile.rows<128, 4>
  %5 = tile.place "row" : !tile.rows<128, 4>

  // CHECK: %block = tile.block_index
  // GENERIC: "tile.block_index"() : () -> i32
  %b = tile.block_index
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
  // CHECK: tile.clear %row : !tile.rows<128, 4>
  // GENERIC: "tile.clear"({{.*}}) : (!tile.rows<128, 4>) -> ()
  tile.clear %5 : !tile.rows<128, 4>

  // CHECK: %[[T:.*]] = tile.copy_async %Q, %[[SRC]] stride(%q_row) rows(%[[LEN]]) dim 64 : !tile.shared<128x64xbf16, 72>, !tile.ptr<bf16>
  // GENERIC: "tile.copy_async"({{.*}}) <{dim = 64 : i64}> : (!tile.shared<128x64xbf16, 72>, !tile.ptr<bf16>, i64, i32) -> !tile.token<copy>
  %t = tile.copy_async %0, %src stride(%q_row) rows(%len) dim 64 : !tile.shared<128x64xbf16, 72>, !tile.ptr<bf16>
  // CHECK: tile.copy_async %K, %[[SRC]] stride(%q_row) rows(%[[LEN]]) dim 56 when(%true) : !tile.shared<64x64xbf16, 72>, !tile.ptr<bf16>
  %u = tile.copy_async %1, %src stride(%q_row) rows(%len) dim 56 when(%some) : !tile.shared<64x64xbf16, 72>, !tile.ptr<bf16>
  // CHECK: tile.wait %[[T]], %{{.*}} : !tile.token<copy>, !tile.token<copy>
  // GENERIC: "tile.wait"({{.*}}) : (!tile.token<copy>, !tile.token<copy>) -> ()
  tile.wait %t, %u : !tile.token<copy>, !tile.token<copy>

  // CHECK: tile.negate %Q : !tile.shared<128x64xbf16, 72>
  // GENERIC: "tile.negate"
  tile.negate %0 : !tile.shared<128x64xbf16, 72>
  // CHECK: tile.hold %held, %Q : !tile.held<128x64xbf16, 4>, !tile.shared<128x64xbf16, 72>
  // GENERIC: "tile.hold"
  tile.hold %6, %0 : !tile.held<128x64xbf16, 4>, !tile.shared<128x64xbf16, 72>
  // CHECK: tile.mma_qk %s, %held, %K : !tile.frag<128x64, 4>, !tile.held<128x64xbf16, 4>, !tile.shared<64x64xbf16, 72>
  %held_product = tile.mma_qk %3, %6, %1 : !tile.frag<128x64, 4>, !tile.held<128x64xbf16, 4>, !tile.shared<64x64xbf16, 72>

  // CHECK: tile.kv_loop [%c0_i32, %[[LEN]], %batch] tests [{{\[}}0, 1], []], [%batch, %total_q] tests [{{\[}}1]] carry() {
  // CHECK-NEXT: ^bb0(%j: i32, %next: i32, %more: i1):
  // GENERIC: "tile.kv_loop"({{.*}}) <{operandSegmentSizes = array<i32: 5, 0>, runs = {{\[\[}}array<i64: 0, 1>, array<i64>], [array<i64: 1>]]}>
  tile.kv_loop [%zero, %len, %batch] tests [[0, 1], []], [%batch, %total_q] tests [[1]] carry() {
  ^bb0(%j: i32, %next: i32, %more: i1):
    // CHECK: %[[QK:.*]] = tile.mma_qk %s, %Q, %K : !tile.frag<128x64, 4>, !tile.shared<128x64xbf16, 72>, !tile.shared<64x64xbf16, 72>
    %qk = tile.mma_qk %3, %0, %1 : !tile.frag<128x64, 4>, !tile.shared<128x64xbf16, 72>, !tile.shared<64x64xbf16, 72>
    // CHECK: tile.wait %[[QK]] : !tile.token<product>
    tile.wait %qk : !tile.token<product>
    // CHECK: tile.keep %s at(%q0, %j) : !tile.frag<128x64, 4> {
    // CHECK-NEXT: ^bb0(%[[ROW:.*]]: i32, %[[KEY:.*]]: i32):
    // GENERIC: "tile.keep"
    tile.keep %3 at(%f#1, %j) : !tile.frag<128x64, 4> {
    ^bb0(%row: i32, %key: i32):
      %below = arith.cmpi sle, %key, %row : i32
      %inside = arith.cmpi slt, %key, %len : i32
      // CHECK: tile.yield %{{.*}}, %{{.*}} : i1, i1
      tile.yield %below, %inside : i1, i1
    }
    // CHECK: tile.softmax_step %s, %row, %acc scale 1.250000e-01 : !tile.frag<128x64, 4>, !tile.rows<128, 4>, !tile.frag<128x128, 4>
    // GENERIC: "tile.softmax_step"({{.*}}) <{scale = 1.250000e-01 : f64}>
    tile.softmax_step %3, %5, %4 scale 0.125 : !tile.frag<128x64, 4>, !tile.rows<128, 4>, !tile.frag<128x128, 4>
    // CHECK: tile.mma_pv %acc, %s, %V {guarded} : !tile.frag<128x128, 4>, !tile.frag<128x64, 4>, !tile.shared<64x128xbf16, 136>
    // GENERIC: "tile.mma_pv"({{.*}}) <{guarded}>
    %pv = tile.mma_pv %4, %3, %2 {guarded} : !tile.frag<128x128, 4>, !tile.frag<128x64, 4>, !tile.shared<64x128xbf16, 136>
    tile.wait %pv : !tile.token<product>
    // CHECK: tile.yield{{ *$}}
    tile.yield
  }

  // Tokens of both kinds go around a loop.
  %v = tile.copy_async %1, %src stride(%q_row) rows(%len) dim 64 : !tile.shared<64x64xbf16, 72>, !tile.ptr<bf16>
  %w = tile.mma_qk %3, %0, %1 : !tile.frag<128x64, 4>, !tile.shared<128x64xbf16, 72>, !tile.shared<64x64xbf16, 72>
  // CHECK: %[[R:.*]]:2 = tile.kv_loop [%c0_i32, %[[LEN]]] tests [{{\[}}]] carry(%{{.*}} : !tile.token<copy>, %{{.*}} : !tile.token<product>) {
  // CHECK-NEXT: ^bb0(%j: i32, %next: i32, %more: i1, %[[C:.*]]: !tile.token<copy>, %[[P:.*]]: !tile.token<product>):
  // CHECK-NEXT: tile.yield %[[C]], %[[P]] : !tile.token<copy>, !tile.token<product>
  %carried:2 = tile.kv_loop [%zero, %len] tests [[]] carry(%v : !tile.token<copy>, %w : !tile.token<product>) {
  ^bb0(%j: i32, %next: i32, %more: i1, %copy: !tile.token<copy>, %product: !tile.token<product>):
    tile.yield %copy, %product : !tile.token<copy>, !tile.token<product>
  }

  // CHECK: tile.normalize %acc, %row : !tile.frag<128x128, 4>, !tile.rows<128, 4>
  tile.normalize %4, %5 : !tile.frag<128x128, 4>, !tile.rows<128, 4>
  // CHECK: tile.store %o stride(%q_row), %acc rows(%rows, %write_rows) dim 128 : !tile.ptr<bf16>, !tile.frag<128x128, 4>
  // GENERIC: "tile.store"({{.*}}) <{dim = 128 : i64}>
  tile.store %o stride(%q_row), %4 rows(%f#3, %f#4) dim 128 : !tile.ptr<bf16>, !tile.frag<128x128, 4>
  // CHECK: tile.store_lse %lse, %row rows(%rows, %write_rows) : !tile.ptr<f32>, !tile.rows<128, 4>
  // GENERIC: "tile.store_lse"
  tile.store_lse %lse, %5 rows(%f#3, %f#4) : !tile.ptr<f32>, !tile.rows<128, 4>
  // CHECK: tile.store_padding %o stride(%q_row) rows(%write_rows) dim 128 : !tile.ptr<bf16>
  // GENERIC: "tile.store_padding"({{.*}}) <{dim = 128 : i64}>
  tile.store_padding %o stride(%q_row) rows(%f#4) dim 128 : !tile.ptr<bf16>
}

// A dense grid, no shared memory yet, an empty body.
// CHECK: tile.kernel @empty() target("cpu") grid(dense heads 1) config(<q_tile = 16, kv_tile = 16, warps = 1, blocks = 16, hold_q = true>) {
tile.kernel @empty() target("cpu") grid(dense heads 1)
    config(<q_tile = 16, kv_tile = 16, warps = 1, blocks = 16, hold_q = true>) {
}
}
