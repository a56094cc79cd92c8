// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Where all tiles cost the same, those of a head follow each other. But heads whose rows lie side by side and are no whole pieces of 256 bytes take turns:
// eight, two if a row is a line of 128 bytes, as many of them as divide the heads.
// RUN: attn-opt %s --split-input-file -attn-choose-schedule=target=sm_90a -convert-attn-to-tile | FileCheck %s

// CHECK: tile.kernel @p96(
// CHECK: %group_tile = arith.divui %block, %c8_i32
// CHECK-NEXT: %[[GROUP:.*]] = arith.divui %group_tile, %work_tiles
// CHECK: %[[IN:.*]] = arith.remui %block, %c8_i32
// CHECK: %[[FIRST:.*]] = arith.muli %[[GROUP]], %c8_i32
// CHECK-NEXT: %h = arith.addi %[[FIRST]], %[[IN]]
// CHECK-NEXT: %[[SLOT:.*]] = arith.remui %group_tile, %work_tiles
// CHECK-NEXT: tile.find_sequence %[[SLOT]] in
attn.problem @p96 mask(#attn.full) layout(thd) heads(16) dims(96) dtype(bf16)

// -----

// CHECK: tile.kernel @p64(
// CHECK: %group_tile = arith.divui %block, %c2_i32
attn.problem @p64 mask(#attn.band<left = 99, right = 99>) layout(thd) heads(16) dims(64) dtype(bf16)

// -----

// CHECK: tile.kernel @p12(
// CHECK: %group_tile = arith.divui %block, %c4_i32
attn.problem @p12 mask(#attn.full) layout(bshd) heads(12) dims(80) dtype(bf16)

// -----

// CHECK: tile.kernel @p128(
// CHECK-NOT: %group_tile
// CHECK: %h = arith.divui %block, %work_tiles
attn.problem @p128 mask(#attn.full) layout(thd) heads(16) dims(128) dtype(bf16)

// -----

// Rows of a head that follow each other fill lines by themselves.
// CHECK: tile.kernel @apart(
// CHECK-NOT: %group_tile
// CHECK: %sequence_head = arith.divui %block, %tiles
attn.problem @apart mask(#attn.full) layout(bhsd) heads(16) dims(96) dtype(bf16)

// -----

// CHECK: tile.kernel @odd(
// CHECK-NOT: %group_tile
// CHECK: %h = arith.divui %block, %work_tiles
attn.problem @odd mask(#attn.full) layout(thd) heads(21) dims(96) dtype(bf16)
