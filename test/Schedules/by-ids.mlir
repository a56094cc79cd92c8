// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A problem with segments is two kernels, the second over what the first finds. A list of tiles says
// which slots there are, and where the grid ends.
// RUN: attn-opt %s -attn-choose-schedule="target=sm_90a" -convert-attn-to-tile -split-input-file | FileCheck %s
// RUN: attn-opt %s --attn-pipeline="target=sm_90a" -split-input-file | FileCheck %s --check-prefix=ROLES
// RUN: attn-translate %s --target=sm_90a | FileCheck %s --check-prefix=GPU

// CHECK-LABEL: tile.kernel @causal_segments_(%ids_q: !tile.ptr<i32>, %positions_q: !tile.ptr<i32>, %ids_kv: !tile.ptr<i32>, %positions_kv: !tile.ptr<i32>,
// CHECK-SAME: %status: !tile.ptr<i32>, %cu_seqlens_q: !tile.ptr<i32>, %padded_offsets_q: !tile.ptr<i32>,
// CHECK-SAME: grid(rows cluster 16)
// CHECK: !metadata.segment_table<12, 16>
// CHECK-NOT: list_tiles
// CHECK-LABEL: tile.kernel @causal(%q: !tile.ptr<bf16>,
// CHECK-SAME: %cu_seqlens_q: !tile.ptr<i32>, %padded_offsets_q: !tile.ptr<i32>,
// CHECK-SAME: grid(packed heads 16)
// CHECK: tile.index block{{$}}
// GPU: ATTN_CLUSTER_KERNEL(causal_segments,
// GPU: ATTN_KERNEL(causal,
attn.problem @causal mask(#attn.causal) layout(thd padded) heads(16) dims(128) dtype(bf16) segments(12)
attn.segments @causal_segments mask(#attn.full) segments(4)

// -----

// CHECK-LABEL: tile.kernel @listed(
// CHECK-SAME: %cu_seqlens_kv: !tile.ptr<i32>, %tiles_q: !tile.ptr<i32>, %tile_count: !tile.ptr<i32>, %batch: i32,
// CHECK: tile.load uniform %tile_count[%c0{{.*}}]
// CHECK: %work_tiles = arith.minsi
// CHECK: %[[N:.+]] = arith.muli %work_tiles, %c16_i32
// CHECK: %block = tile.index block below(%[[N]])
// CHECK: %[[AT:.+]] = arith.divui %block, %c16_i32
// CHECK: %work_tile = tile.load uniform %tiles_q[%[[AT]]]
// CHECK: tile.find_sequence %work_tile in %cu_seqlens_q, %cu_seqlens_q,
// ROLES-LABEL: tile.kernel @listed(
// ROLES: %work_items = arith.minsi %blocks, %{{.+}} : i32
// ROLES: producer {
// ROLES-NEXT: tile.persistent_loop %work_items, %queue mailbox
// GPU: ATTN_KERNEL(listed,
// GPU: const int work_items = attn::min(blocks, work_tiles * 16);
// GPU: for (int block = attn::block_index(); block < work_items; block = attn::next_work_tile(queue, block, work_items)) {
attn.problem @listed mask(#attn.causal) layout(thd) heads(16) dims(128) dtype(bf16) tiles(128)

// -----

// Where no row sees more than others, tiles of a head follow each other.
// CHECK-LABEL: tile.kernel @full(
// CHECK: %[[N:.+]] = arith.muli %work_tiles, %c16_i32
// CHECK: %block = tile.index block below(%[[N]])
// CHECK: %h = arith.divui %block, %work_tiles
// CHECK: %[[AT:.+]] = arith.remui %block, %work_tiles
// CHECK: %work_tile = tile.load uniform %tiles_q[%[[AT]]]
attn.problem @full mask(#attn.full) layout(thd) heads(16) dims(128) dtype(bf16) tiles(128)

// -----

// Behind attention with a sink, tokens with an id and without keys get the sink as their lse.
// CHECK-LABEL: tile.kernel @sunk_segments(
// CHECK-LABEL: tile.kernel @sunk(
// CHECK-LABEL: tile.kernel @sunk_sinks(%lse: !tile.ptr<f32>, %ids_q: !tile.ptr<i32>, %positions_q: !tile.ptr<i32>, %cu_seqlens_q: !tile.ptr<i32>,
// CHECK-SAME: %padded_offsets_q: !tile.ptr<i32>, %x: !tile.ptr<f32>, %batch: i32, %total_q: i32, %tokens_q: i32, %position_rows_q: i32, %lse_head: i64)
// CHECK-SAME: target("sm_80") grid(packed heads 16)
// CHECK: %[[X:.+]] = tile.load %x[%h]
// CHECK: tile.store_sink_lse %{{.*}} rows(%row0, %rows) ids(%ids_q, %tokens_q, %c12_i32) of(%cu_seqlens_q, %padded_offsets_q, %batch) sink(%[[X]]) positions(%positions_q, %position_rows_q)
// GPU: #include "attn/sink_lse.h"
// GPU: ATTN_KERNEL(sunk_sinks, /*threads=*/256, /*CTAs per multiprocessor=*/4)
// GPU: (float *lse, const int *ids_q, const int *positions_q,
attn.problem @sunk mask(#attn.causal) layout(thd padded) heads(16) dims(128) dtype(bf16) segments(12) sink("x")

// -----

// Without lse there is nothing to give.
// CHECK-LABEL: tile.kernel @unasked(
// CHECK-NOT: tile.kernel @unasked_sinks
attn.problem @unasked mask(#attn.full) layout(thd padded) heads(16) dims(128) dtype(bf16) segments(12) sink(1.0) outputs(o)
