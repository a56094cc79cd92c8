// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Places, ops and kernels of strips, in both forms.
//
// RUN: attn-opt %s | FileCheck %s
// RUN: attn-opt %s | attn-opt | FileCheck %s
// RUN: attn-opt %s -mlir-print-op-generic | FileCheck %s --check-prefix=GENERIC
// RUN: attn-opt %s -mlir-print-op-generic | attn-opt | FileCheck %s
// RUN: attn-opt %s -tile-verify-async

// CHECK: tile.kernel @stream(%q: !tile.ptr<bf16>, %lse: !tile.ptr<f32>, %q_row: i64, %n: i32) target("sm_80") grid(packed heads 8 tiles 2) config(<q_tile = 2, kv_tile = 4, warps = 4, blocks = 6, pack_heads = 2, lanes = 16>) {
// GENERIC: "tile.kernel"()
// GENERIC-SAME: config = #tile.config<q_tile = 2, kv_tile = 4, warps = 4, blocks = 6, pack_heads = 2, lanes = 16>
// GENERIC-SAME: heads = 8 : i64, packed
// GENERIC-SAME: tiles = 2 : i64
tile.kernel @stream(%q: !tile.ptr<bf16>, %lse: !tile.ptr<f32>, %q_row: i64, %n: i32) target("sm_80")
    grid(packed heads 8 tiles 2) config(<q_tile = 2, kv_tile = 4, warps = 4, blocks = 6, pack_heads = 2, lanes = 16>) {
  // CHECK: %unit = tile.unit_index
  %unit = tile.unit_index
  // CHECK: %slot = tile.slot_index lanes 16
  %slot = tile.slot_index lanes 16
  // CHECK: %Q = tile.place "Q" : !tile.strip<2x128xf32, 16>
  %Q = tile.place "Q" : !tile.strip<2x128xf32, 16>
  // CHECK: %K = tile.place "K" : !tile.strip<4x128xbf16, 16>
  %K = tile.place "K" : !tile.strip<4x128xbf16, 16>
  // CHECK: %s = tile.place "s" : !tile.scores<2x4, 16>
  %s = tile.place "s" : !tile.scores<2x4, 16>
  %acc = tile.place "acc" : !tile.strip<2x128xf32, 16>
  // CHECK: %row = tile.place "row" : !tile.strip_rows<2, 16>
  %row = tile.place "row" : !tile.strip_rows<2, 16>
  // CHECK: tile.clear %acc : !tile.strip<2x128xf32, 16>
  tile.clear %acc : !tile.strip<2x128xf32, 16>
  // CHECK: tile.clear %row : !tile.strip_rows<2, 16>
  tile.clear %row : !tile.strip_rows<2, 16>
  %stride = tile.pairs %q_row, %q_row : !tile.pairs<2, i64>
  // CHECK: tile.fetch %Q, %q stride(%stride heads 2) rows(%n) : !tile.strip<2x128xf32, 16>, !tile.ptr<bf16>
  tile.fetch %Q, %q stride(%stride heads 2) rows(%n) : !tile.strip<2x128xf32, 16>, !tile.ptr<bf16>
  // CHECK: tile.fetch %K, %q stride(%q_row) rows(%n) : !tile.strip<4x128xbf16, 16>, !tile.ptr<bf16>
  tile.fetch %K, %q stride(%q_row) rows(%n) : !tile.strip<4x128xbf16, 16>, !tile.ptr<bf16>
  // CHECK: tile.mma_qk %s, %Q, %K : !tile.scores<2x4, 16>, !tile.strip<2x128xf32, 16>, !tile.strip<4x128xbf16, 16>
  %qk = tile.mma_qk %s, %Q, %K : !tile.scores<2x4, 16>, !tile.strip<2x128xf32, 16>, !tile.strip<4x128xbf16, 16>
  tile.wait %qk : !tile.token<product>
  // CHECK: tile.keep %s at(%n, %n) : !tile.scores<2x4, 16> {
  tile.keep %s at(%n, %n) : !tile.scores<2x4, 16> {
  ^bb0(%query: i32, %key: i32):
    %below = arith.cmpi sle, %key, %query : i32
    tile.yield %below : i1
  }
  // CHECK: tile.softmax_step %s, %row, %acc scale 1.250000e-01 : !tile.scores<2x4, 16>, !tile.strip_rows<2, 16>, !tile.strip<2x128xf32, 16>
  tile.softmax_step %s, %row, %acc scale 0.125 : !tile.scores<2x4, 16>, !tile.strip_rows<2, 16>, !tile.strip<2x128xf32, 16>
  // CHECK: tile.mma_pv %acc, %s, %K {guarded} : !tile.strip<2x128xf32, 16>, !tile.scores<2x4, 16>, !tile.strip<4x128xbf16, 16>
  %pv = tile.mma_pv %acc, %s, %K {guarded} : !tile.strip<2x128xf32, 16>, !tile.scores<2x4, 16>, !tile.strip<4x128xbf16, 16>
  tile.wait %pv : !tile.token<product>
  tile.normalize %acc, %row : !tile.strip<2x128xf32, 16>, !tile.strip_rows<2, 16>
  tile.store %q stride(%stride heads 2), %acc rows(%n, %n) dim 128 : !tile.ptr<bf16>, !tile.strip<2x128xf32, 16>
  tile.store_lse %lse stride(%stride heads 2), %row rows(%n, %n) : !tile.ptr<f32>, !tile.strip_rows<2, 16>
  // CHECK: tile.pad_rows %q stride(%stride heads 2) from(%n) to(%n) step(%n) dim 128 lanes 16 : !tile.ptr<bf16>
  tile.pad_rows %q stride(%stride heads 2) from(%n) to(%n) step(%n) dim 128 lanes 16 : !tile.ptr<bf16>
  // CHECK: tile.pad_rows %lse stride(%q_row) from(%n) to(%n) step(%n) dim 1 lanes 16 : !tile.ptr<f32>
  tile.pad_rows %lse stride(%q_row) from(%n) to(%n) step(%n) dim 1 lanes 16 : !tile.ptr<f32>
}
