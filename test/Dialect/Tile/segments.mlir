// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Kernels of rows: their grid, tables, tokens and the steps on them, in both forms.
//
// RUN: attn-opt %s | FileCheck %s
// RUN: attn-opt %s | attn-opt | FileCheck %s
// RUN: attn-opt %s -mlir-print-op-generic | FileCheck %s --check-prefix=GENERIC
// RUN: attn-opt %s -mlir-print-op-generic | attn-opt | FileCheck %s

// CHECK: tile.kernel @rows({{.*}}, %queue: !tile.queue) target("sm_90a") grid(rows cluster 16) schedule(#tile.auxiliary<q_tile = 16, kv_tile = 128, warps = 16, blocks = 1>) shared 35584 {
// GENERIC: "tile.kernel"()
// GENERIC-SAME: cluster = 16 : i64
// GENERIC-SAME: heads = 1 : i64
tile.kernel @rows(%ids: !tile.ptr<i32>, %positions: !tile.ptr<i32>, %out: !tile.ptr<i32>, %n: i32, %queue: !tile.queue)
    target("sm_90a") grid(rows cluster 16) schedule(#tile.auxiliary<q_tile = 16, kv_tile = 128, warps = 16, blocks = 1>) shared 35584 {
  // CHECK: %table = tile.alloc "table" at 0 : !tile.segment_table<64, 16>
  %table = tile.alloc "table" at 0 : !tile.segment_table<64, 16>
  // CHECK: %row = tile.batch_row_index
  // GENERIC: "tile.batch_row_index"() : () -> i32
  %0 = tile.batch_row_index
  // CHECK: tile.tokens %ids row(%row) count(%n) positions(%positions, %n)
  // GENERIC: "tile.tokens"({{.*}}) <{operandSegmentSizes = array<i32: 1, 1, 1, 1, 1>}> : (!tile.ptr<i32>, i32, i32, !tile.ptr<i32>, i32) -> !tile.tokens
  %q = tile.tokens %ids row(%0) count(%n) positions(%positions, %n)
  // CHECK: tile.tokens %ids row(%row) count(%n){{$}}
  %kv = tile.tokens %ids row(%0) count(%n)
  // CHECK: tile.count_segments %table, %{{.*}}, %{{.*}} : !tile.segment_table<64, 16>
  tile.count_segments %table, %q, %kv : !tile.segment_table<64, 16>
  // CHECK: tile.bound_segments %table, %{{.*}} : !tile.segment_table<64, 16> {
  // CHECK-NEXT: ^bb0(%count_q: i32, %low_q: i32, %high_q: i32, %count_kv: i32, %low_kv: i32, %high_kv: i32):
  // CHECK-NEXT: tile.yield %low_kv, %high_q, %count_q : i32, i32, i32
  tile.bound_segments %table, %q : !tile.segment_table<64, 16> {
  ^bb0(%a: i32, %b: i32, %c: i32, %d: i32, %e: i32, %f: i32):
    tile.yield %e, %c, %a : i32, i32, i32
  }
  // CHECK: tile.bound_segments whole %table, %{{.*}} : !tile.segment_table<64, 16> {
  // GENERIC: whole
  tile.bound_segments whole %table, %q : !tile.segment_table<64, 16> {
  ^bb0(%a: i32, %b: i32, %c: i32, %d: i32, %e: i32, %f: i32):
    tile.yield %e, %c, %a : i32, i32, i32
  }
  // CHECK: tile.select_segments %table, %{{.*}}, %{{.*}} : !tile.segment_table<64, 16>
  tile.select_segments %table, %q, %kv : !tile.segment_table<64, 16>
  // CHECK: tile.select_segments %table, %{{.*}}, %{{.*}} ids(%out, %out) : !tile.segment_table<64, 16>
  tile.select_segments %table, %q, %kv ids(%out, %out) : !tile.segment_table<64, 16>
  // CHECK: tile.check_segments %table, {{.*}} {
  // CHECK-NEXT: ^bb0(%len_q: i32, %len_kv: i32, %shift: i32):
  // CHECK-NEXT: tile.yield %len_q, %shift : i32, i32
  tile.check_segments %table, %q, %kv : !tile.segment_table<64, 16> {
  ^bb0(%a: i32, %b: i32, %c: i32):
    tile.yield %a, %c : i32, i32
  }
  // Two claims.
  // CHECK: tile.yield %len_q, %shift, %len_kv, %shift : i32, i32, i32, i32
  tile.check_segments %table, %q, %kv : !tile.segment_table<64, 16> {
  ^bb0(%a: i32, %b: i32, %c: i32):
    tile.yield %a, %c, %b, %c : i32, i32, i32, i32
  }
  // CHECK: tile.write_segments %table lengths(%out, %out) offsets(%out, %out) status(%out) : !tile.segment_table<64, 16>
  tile.write_segments %table lengths(%out, %out) offsets(%out, %out) status(%out) : !tile.segment_table<64, 16>
  // CHECK: tile.write_sequences %table, %{{.*}}, %{{.*}} queue(%queue) rows(%n) q(%out, %out) kv(%out, %out) : !tile.segment_table<64, 16>
  tile.write_sequences %table, %q, %kv queue(%queue) rows(%n) q(%out, %out) kv(%out, %out)
    : !tile.segment_table<64, 16>
  // CHECK: tile.list_query_tiles %table, %{{.*}}, %{{.*}} rows(%n) of(%out, %out, %out) tile 16 to(%out, %out) : !tile.segment_table<64, 16> {
  // CHECK-NEXT: ^bb0(%len_q: i32, %len_kv: i32):
  // CHECK-NEXT: tile.yield %len_q : i32
  tile.list_query_tiles %table, %q, %kv rows(%n) of(%out, %out, %out) tile 16 to(%out, %out) : !tile.segment_table<64, 16> {
  ^bb0(%a: i32, %b: i32):
    tile.yield %a : i32
  }
}

// Tokens that see a sink alone.
// CHECK: tile.kernel @sinks
tile.kernel @sinks(%lse: !tile.ptr<f32>, %ids: !tile.ptr<i32>, %n: i32, %x: f32) target("sm_80")
    grid(packed heads 1) schedule(#tile.tiled<q_tile = 256, kv_tile = 16, warps = 8, blocks = 4>) {
  // CHECK: tile.store_sink_lse %lse rows(%n, %n) ids(%ids, %n, %n) of(%ids, %ids, %n) sink(%x){{$}}
  tile.store_sink_lse %lse rows(%n, %n) ids(%ids, %n, %n) of(%ids, %ids, %n) sink(%x)
  // CHECK: tile.store_sink_lse %lse rows(%n, %n) ids(%ids, %n, %n) of(%ids, %ids, %n) sink(%x) positions(%ids, %n)
  // GENERIC: "tile.store_sink_lse"({{.*}}) <{operandSegmentSizes = array<i32: 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1>}>
  tile.store_sink_lse %lse rows(%n, %n) ids(%ids, %n, %n) of(%ids, %ids, %n) sink(%x) positions(%ids, %n)
}

// A block alone, on targets that have no clusters.
// CHECK: target("cpu") grid(rows cluster 1) schedule({{.*}}) {
tile.kernel @one() target("cpu") grid(rows cluster 1) schedule(#tile.auxiliary<q_tile = 256, kv_tile = 128, warps = 16, blocks = 1>) {
}
// CHECK: target("sm_80") grid(rows cluster 1) schedule({{.*}}) {
tile.kernel @ampere() target("sm_80") grid(rows cluster 1) schedule(#tile.tiled<q_tile = 16, kv_tile = 16, warps = 1, blocks = 1>) {
}
