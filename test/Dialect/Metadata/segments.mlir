// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Tables of segments, tokens, and the steps of a kernel of batch rows, in both forms.
//
// RUN: attn-opt %s | FileCheck %s
// RUN: attn-opt %s | attn-opt | FileCheck %s
// RUN: attn-opt %s -mlir-print-op-generic | FileCheck %s --check-prefix=GENERIC
// RUN: attn-opt %s -mlir-print-op-generic | attn-opt | FileCheck %s

// CHECK: tile.kernel @rows({{.*}}, %queue: !tile.queue) target("sm_90a") grid(rows cluster 16) schedule(#tile.auxiliary<q_tile = 16, kv_tile = 128, warps = 16, ctas_per_sm = 1>) shared 35584 {
// GENERIC: "tile.kernel"()
// GENERIC-SAME: cluster = 16 : i64
// GENERIC-SAME: heads = 1 : i64
tile.kernel @rows(%ids: !tile.ptr<i32>, %positions: !tile.ptr<i32>, %out: !tile.ptr<i32>, %n: i32, %queue: !tile.queue)
    target("sm_90a") grid(rows cluster 16) schedule(#tile.auxiliary<q_tile = 16, kv_tile = 128, warps = 16, ctas_per_sm = 1>) shared 35584 {
  // CHECK: %table = tile.alloc "table" at 0 : !metadata.segment_table<64, 16>
  %table = tile.alloc "table" at 0 : !metadata.segment_table<64, 16>
  // CHECK: %row = metadata.batch_row_index
  // GENERIC: "metadata.batch_row_index"() : () -> i32
  %0 = metadata.batch_row_index
  // CHECK: metadata.tokens %ids row(%row) count(%n) positions(%positions, %n)
  // GENERIC: "metadata.tokens"({{.*}}) <{operandSegmentSizes = array<i32: 1, 1, 1, 1, 1>}> : (!tile.ptr<i32>, i32, i32, !tile.ptr<i32>, i32) -> !metadata.tokens
  %q = metadata.tokens %ids row(%0) count(%n) positions(%positions, %n)
  // CHECK: metadata.tokens %ids row(%row) count(%n){{$}}
  %kv = metadata.tokens %ids row(%0) count(%n)
  // CHECK: metadata.count_segments %table, %{{.*}}, %{{.*}} : !metadata.segment_table<64, 16>
  metadata.count_segments %table, %q, %kv : !metadata.segment_table<64, 16>
  // CHECK: metadata.bound_segments %table, %{{.*}} : !metadata.segment_table<64, 16> {
  // CHECK-NEXT: ^bb0(%count_q: i32, %low_q: i32, %high_q: i32, %count_kv: i32, %low_kv: i32, %high_kv: i32):
  // CHECK-NEXT: tile.yield %low_kv, %high_q, %count_q : i32, i32, i32
  metadata.bound_segments %table, %q : !metadata.segment_table<64, 16> {
  ^bb0(%a: i32, %b: i32, %c: i32, %d: i32, %e: i32, %f: i32):
    tile.yield %e, %c, %a : i32, i32, i32
  }
  // CHECK: metadata.bound_segments whole %table, %{{.*}} : !metadata.segment_table<64, 16> {
  // GENERIC: whole
  metadata.bound_segments whole %table, %q : !metadata.segment_table<64, 16> {
  ^bb0(%a: i32, %b: i32, %c: i32, %d: i32, %e: i32, %f: i32):
    tile.yield %e, %c, %a : i32, i32, i32
  }
  // CHECK: metadata.select_segments %table, %{{.*}}, %{{.*}} : !metadata.segment_table<64, 16>
  metadata.select_segments %table, %q, %kv : !metadata.segment_table<64, 16>
  // CHECK: metadata.select_segments %table, %{{.*}}, %{{.*}} ids(%out, %out) : !metadata.segment_table<64, 16>
  metadata.select_segments %table, %q, %kv ids(%out, %out) : !metadata.segment_table<64, 16>
  // CHECK: metadata.check_segments %table, {{.*}} {
  // CHECK-NEXT: ^bb0(%len_q: i32, %len_kv: i32, %shift: i32):
  // CHECK-NEXT: tile.yield %len_q, %shift : i32, i32
  metadata.check_segments %table, %q, %kv : !metadata.segment_table<64, 16> {
  ^bb0(%a: i32, %b: i32, %c: i32):
    tile.yield %a, %c : i32, i32
  }
  // Two claims.
  // CHECK: tile.yield %len_q, %shift, %len_kv, %shift : i32, i32, i32, i32
  metadata.check_segments %table, %q, %kv : !metadata.segment_table<64, 16> {
  ^bb0(%a: i32, %b: i32, %c: i32):
    tile.yield %a, %c, %b, %c : i32, i32, i32, i32
  }
  // CHECK: metadata.write_segments %table lengths(%out, %out) offsets(%out, %out) status(%out) : !metadata.segment_table<64, 16>
  metadata.write_segments %table lengths(%out, %out) offsets(%out, %out) status(%out) : !metadata.segment_table<64, 16>
  // CHECK: metadata.write_sequences %table, %{{.*}}, %{{.*}} queue(%queue) rows(%n) q(%out, %out) kv(%out, %out) : !metadata.segment_table<64, 16>
  metadata.write_sequences %table, %q, %kv queue(%queue) rows(%n) q(%out, %out) kv(%out, %out)
    : !metadata.segment_table<64, 16>
  // CHECK: metadata.list_query_tiles %table, %{{.*}}, %{{.*}} rows(%n) of(%out, %out, %out) tile 16 to(%out, %out) : !metadata.segment_table<64, 16> {
  // CHECK-NEXT: ^bb0(%len_q: i32, %len_kv: i32):
  // CHECK-NEXT: tile.yield %len_q : i32
  metadata.list_query_tiles %table, %q, %kv rows(%n) of(%out, %out, %out) tile 16 to(%out, %out) : !metadata.segment_table<64, 16> {
  ^bb0(%a: i32, %b: i32):
    tile.yield %a : i32
  }
}
