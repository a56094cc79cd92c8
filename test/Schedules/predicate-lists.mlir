// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Predicates without arrays: where whole tiles of their runs are empty, tiles have lists, as with arrays of positions.
//
// RUN: rm -rf %t && split-file %s %t
// RUN: attn-opt %t/grid.mlir -attn-choose-schedule="target=sm_90a" -convert-attn-to-tile | FileCheck %t/grid.mlir
// RUN: attn-opt %t/none.mlir -attn-choose-schedule="target=sm_90a" -convert-attn-to-tile | FileCheck %t/none.mlir
// RUN: attn-opt --explain %t/grid.mlir --problem=grid --seqlen-q=8192 --seqlen-kv=8192 --batch=1 | FileCheck %s --check-prefix=GRID

// Without lists each query tile would visit all key tiles.
// GRID: tiles {{ *}}884 of 16384 visited: 0 full

// Tiles are within the squares, so that half of them is visited, and lists have room for these.
// RUN: attn-opt %t/checker.mlir -attn-choose-schedule="target=sm_90a" | FileCheck %t/checker.mlir
// RUN: attn-opt --explain %t/checker.mlir --problem=large --seqlen-q=16384 --seqlen-kv=16384 --batch=1 | FileCheck %s --check-prefix=LARGE
// LARGE: lists room for all tiles, up to 16777216 in all, or 10 a list on average (kv_list_capacity sets it); beyond that, tiles visit all from their first to their last
// LARGE: tiles {{ *}}8192 of 16384 visited: 8192 full, 0 partial; 0 of these are empty
// RUN: attn-opt --explain %t/checker.mlir --problem=given --seqlen-q=16384 --seqlen-kv=16384 --batch=1 | FileCheck %s --check-prefix=GIVEN
// GIVEN: lists room for 512 keys a row on average, as kv_list_capacity says;
// RUN: attn-opt --explain %t/checker.mlir --problem=blocks --seqlen-q=2048 --seqlen-kv=2048 --batch=1 | FileCheck %s --check-prefix=LISTED
// LISTED: lists room for all blocks that the block maps list

// What they compute, in both passes; the second mask has full, partial and empty tiles.
// RUN: attn-run %t/grid.mlir --problem=grid --target=cpu --check --batch=1 --seqlen-q=1200 --seqlen-kv=1300 | FileCheck %s --check-prefix=FORWARD
// FORWARD-COUNT-2: {{^}}ok
// RUN: attn-run %t/grid.mlir --problem=periods_grads --target=cpu --check --batch=1 --seqlen-q=1500 --seqlen-kv=1400 | FileCheck %s --check-prefix=BACKWARD
// BACKWARD-COUNT-3: {{^}}ok

//--- grid.mlir
attn.problem @grid mask(#attn.predicate<"abs(q / 64 - k / 64) <= 3 && abs(q % 64 - k % 64) <= 20">) layout(bshd) heads(1, 1) dims(64) dtype(bf16)
// CHECK: tile.kernel @grid_ranges
// CHECK: tile.kernel @grid_kv_tile_lists
// CHECK: tile.kernel @grid(

attn.problem @periods mask(#attn.or<#attn.prefix<640>, #attn.global_rows<640>, #attn.predicate<"abs((q - 640) % 1280 - (k - 640) % 1280) <= 639">>)
  layout(bshd) heads(1, 1) dims(64) dtype(bf16)
attn.backward @periods_grads of(@periods)
// dQ is not added up in the order of key tiles, which lists do not keep.
// CHECK-NOT: dq_semaphore
// CHECK: tile.kernel @periods_grads_q_tile_lists
// CHECK-NOT: dq_semaphore
// CHECK: tile.kernel @periods_grads(

//--- checker.mlir
// CHECK: attn.problem @large {{.*}}#tile.warp_specialized<q_tile = 128, kv_tile = 128, warps = 8
// CHECK: attn.problem @small {{.*}}#tile.warp_specialized<q_tile = 64, kv_tile = 64, warps = 4
// CHECK: attn.problem @narrow {{.*}}#tile.warp_specialized<q_tile = 128, kv_tile = 128, warps = 8
// CHECK: attn.problem @any {{.*}}#tile.warp_specialized<q_tile = 192, kv_tile = 80, warps = 12
// CHECK: attn.problem @few {{.*}}#tile.warp_specialized<q_tile = 128, kv_tile = 128, warps = 8
attn.problem @large mask(#attn.predicate<"(q / 256 + k / 256) % 2 == 0">) layout(bshd) heads(1, 1) dims(128) dtype(bf16) expected_seqlen(16384)
attn.problem @small mask(#attn.predicate<"q / 64 % 8 == k / 64 % 8">) layout(bshd) heads(1, 1) dims(128) dtype(bf16) expected_seqlen(16384)
attn.problem @narrow mask(#attn.predicate<"(q / 256 + k / 256) % 2 == 0">) layout(bshd) heads(1, 1) dims(64) dtype(bf16) expected_seqlen(16384)
// The squares are multiples of no tile, and large.
attn.problem @any mask(#attn.predicate<"(q / 2000 + k / 2000) % 2 == 0">) layout(bshd) heads(1, 1) dims(128) dtype(bf16) expected_seqlen(16384)
// Few keys have no lists, so that all tiles of rows are visited.
attn.problem @few mask(#attn.predicate<"q / 64 % 8 == k / 64 % 8">) layout(bshd) heads(1, 1) dims(128) dtype(bf16) max_seqlen(1024)
attn.problem @given mask(#attn.predicate<"(q / 256 + k / 256) % 2 == 0">) layout(bshd) heads(1, 1) dims(128) dtype(bf16) expected_seqlen(16384) kv_list_capacity(512)
attn.problem @blocks mask(#attn.block_map<"offsets", "columns", q = 64, kv = 64>) layout(bshd) heads(1, 1) dims(128) dtype(bf16)

//--- none.mlir
attn.problem @every_fourth mask(#attn.predicate<"(q + k) % 4 == 0">) layout(bshd) heads(1, 1) dims(64) dtype(bf16)
// CHECK-NOT: _kv_tile_lists
// CHECK: tile.kernel @every_fourth(
