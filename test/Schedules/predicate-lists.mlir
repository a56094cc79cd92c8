// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Predicates without arrays: where whole tiles of their runs are empty, tiles have lists, as with arrays of positions.
//
// RUN: rm -rf %t && split-file %s %t
// RUN: attn-opt %t/grid.mlir -attn-choose-schedule="target=sm_90a" -convert-attn-to-tile | FileCheck %t/grid.mlir
// RUN: attn-opt %t/none.mlir -attn-choose-schedule="target=sm_90a" -convert-attn-to-tile | FileCheck %t/none.mlir
// RUN: attn-opt --explain %t/grid.mlir --problem=grid --seqlen-q=8192 --seqlen-kv=8192 --batch=1 | FileCheck %s --check-prefix=GRID

// Without lists each query tile would visit all 64 key tiles.
// GRID: tiles {{ *}}{{[23][0-9][0-9]}} of 2752 visited: 0 full

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

//--- none.mlir
attn.problem @every_fourth mask(#attn.predicate<"(q + k) % 4 == 0">) layout(bshd) heads(1, 1) dims(64) dtype(bf16)
// CHECK-NOT: _kv_tile_lists
// CHECK: tile.kernel @every_fourth(
