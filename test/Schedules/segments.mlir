// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What becomes of segments: a kernel of rows, in which a mask is arithmetic on what is
// counted of a segment.
//
// RUN: attn-opt %s -attn-choose-schedule=target=cpu -convert-attn-to-tile -canonicalize -cse | FileCheck %s --check-prefixes=CHECK,ONE
// RUN: attn-opt %s -attn-choose-schedule=target=sm_80 -convert-attn-to-tile -canonicalize -cse | FileCheck %s --check-prefixes=CHECK,ONE
// RUN: attn-opt %s -attn-choose-schedule=target=sm_90a -convert-attn-to-tile -canonicalize -cse | FileCheck %s --check-prefixes=CHECK,CLUSTER

// Full: no positions, all tokens see or are seen, nothing to check.
// CHECK-LABEL: tile.kernel @full(%ids_q: !tile.ptr<i32>, %ids_kv: !tile.ptr<i32>, %seqlens_q: !tile.ptr<i32>, %seqlens_kv: !tile.ptr<i32>,
// CHECK-SAME: %offsets_q: !tile.ptr<i32>, %offsets_kv: !tile.ptr<i32>, %status: !tile.ptr<i32>,
// CHECK-SAME: %cu_seqlens_q: !tile.ptr<i32>, %padded_offsets_q: !tile.ptr<i32>, %cu_seqlens_kv: !tile.ptr<i32>, %padded_offsets_kv: !tile.ptr<i32>,
// CHECK-SAME: %id_rows: i32, %tokens_q: i32, %tokens_kv: i32, %queue: !tile.queue)
// ONE-SAME: grid(rows cluster 1) schedule(#tile.auxiliary<q_tile = 128, kv_tile = 128, warps = 16, ctas_per_sm = 1>) {
// CLUSTER-SAME: target("sm_90a") grid(rows cluster 16) schedule(#tile.auxiliary<q_tile = 128, kv_tile = 128, warps = 16, ctas_per_sm = 1>) {
// ONE: %table = tile.alloc "table" : !metadata.segment_table<64, 1>
// CLUSTER: %table = tile.alloc "table" : !metadata.segment_table<64, 16>
// CHECK-NEXT: %row = metadata.batch_row_index
// CHECK-NEXT: %q = metadata.tokens %ids_q row(%row) count(%tokens_q){{$}}
// CHECK-NEXT: %kv = metadata.tokens %ids_kv row(%row) count(%tokens_kv){{$}}
// CHECK-NEXT: metadata.count_segments %table, %q, %kv
// CHECK-NEXT: metadata.bound_segments %table, %q :
// CHECK: tile.yield %c-2147483648_i32, %c2147483647_i32, %c0_i32
// CHECK: metadata.select_segments %table, %q, %kv :
// CHECK-NEXT: metadata.write_segments %table lengths(%seqlens_q, %seqlens_kv) offsets(%offsets_q, %offsets_kv) status(%status)
// CHECK-NEXT: metadata.write_sequences %table, %q, %kv queue(%queue) rows(%id_rows) q(%cu_seqlens_q, %padded_offsets_q) kv(%cu_seqlens_kv, %padded_offsets_kv)
// CHECK-NEXT: }
attn.segments @full mask(#attn.full) segments(64)

// Causal: who sees something is said by the extremes of positions.
// CHECK-LABEL: tile.kernel @causal(%ids_q: !tile.ptr<i32>, %positions_q: !tile.ptr<i32>, %ids_kv: !tile.ptr<i32>, %positions_kv: !tile.ptr<i32>,
// CHECK-SAME: %status: !tile.ptr<i32>, %segments_q: !tile.ptr<i32>, %segments_kv: !tile.ptr<i32>, %cu_seqlens_q
// CHECK-SAME: %tiles_q: !tile.ptr<i32>, %tile_count: !tile.ptr<i32>, %id_rows: i32, %tokens_q: i32, %tokens_kv: i32, %position_rows_q: i32, %position_rows_kv: i32, %queue: !tile.queue)
// CHECK-SAME: schedule(#tile.auxiliary<q_tile = 32,
// CHECK: metadata.tokens %ids_q row(%row) count(%tokens_q) positions(%positions_q, %position_rows_q)
// CHECK: metadata.tokens %ids_kv row(%row) count(%tokens_kv) positions(%positions_kv, %position_rows_kv)
// CHECK: metadata.bound_segments %table, %q :
// CHECK: tile.yield %low_kv, %high_q, %c0_i32
// CHECK: metadata.select_segments %table, %q, %kv ids(%segments_q, %segments_kv)
// CHECK: metadata.check_segments %table, %q, %kv
// CHECK: tile.yield %c0_i32, %shift : i32, i32{{$}}
// A tile's cost: up to the diagonal of its last query.
// CHECK: metadata.list_query_tiles %table, %q, %kv rows(%id_rows) of(%cu_seqlens_q, %padded_offsets_q, %cu_seqlens_kv) tile 32 to(%tiles_q, %tile_count)
// CHECK: arith.minsi %len_q, %len_kv
// CHECK: tile.yield %{{.*}} : i32
attn.segments @causal mask(#attn.causal) segments(64) maps tiles(32)

// Ends are aligned: of whole segments, by the difference of counts. With a window there
// is a second claim, of the last key before it.
// CHECK-LABEL: tile.kernel @aligned
// CHECK: metadata.bound_segments whole %table, %q :
// CHECK: %[[SHIFT:.*]] = arith.subi %count_kv, %count_q
// CHECK: %[[LEAST:.*]] = arith.subi %low_kv, %[[SHIFT]]
// CHECK: %[[MOST:.*]] = arith.addi %high_q, %[[SHIFT]]
// CHECK: tile.yield %[[LEAST]], %[[MOST]], %[[SHIFT]]
// CHECK: metadata.check_segments
// CHECK: %[[CORNER:.*]] = arith.subi %len_kv, %len_q
// CHECK: %[[DIAGONAL:.*]] = arith.subi %[[CORNER]], %c1024_i32
// CHECK: %[[BEFORE:.*]] = arith.subi %shift, %c1024_i32
// CHECK: tile.yield %[[CORNER]], %shift, %[[DIAGONAL]], %[[BEFORE]] : i32, i32, i32, i32
attn.segments @aligned mask(#attn.band<left = 1023, right = 0, bottom_right>) segments(256)

// A full mask with a window: all tokens of segments on both sides, two claims.
// CHECK-LABEL: tile.kernel @window
// CHECK: metadata.bound_segments %table, %q :
// CHECK: tile.yield %c-2147483648_i32, %c2147483647_i32, %c0_i32
// CHECK: metadata.check_segments
// CHECK: tile.yield %c5_i32, %{{.*}}, %c-4_i32, %{{.*}} : i32, i32, i32, i32
attn.segments @window mask(#attn.band<left = 3, right = 5>) segments(8)

// One bound, one claim.
// CHECK-LABEL: tile.kernel @behind
// CHECK: metadata.check_segments
// CHECK: tile.yield %c-4_i32, %{{.*}} : i32, i32{{$}}
attn.segments @behind mask(#attn.band<left = 3>) segments(8)
