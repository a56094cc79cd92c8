// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Places, ops and kernels of strips, in both forms.
//
// RUN: attn-opt %s | FileCheck %s
// RUN: attn-opt %s | attn-opt | FileCheck %s
// RUN: attn-opt %s -mlir-print-op-generic | FileCheck %s --check-prefix=GENERIC
// RUN: attn-opt %s -mlir-print-op-generic | attn-opt | FileCheck %s
// RUN: attn-opt %s -tile-verify-async

// CHECK: tile.kernel @stream(%q: !tile.ptr<bf16>, %lse: !tile.ptr<f32>, %q_row: i64, %n: i32) target("sm_80") grid(packed heads 8 tiles 2) schedule(#tile.simt_rows<rows = 2, keys = 4, lanes = 16, warps = 4, blocks = 6, pack_heads = 2>) {
// GENERIC: "tile.kernel"()
// GENERIC-SAME: heads = 8 : i64, packed
// GENERIC-SAME: schedule = #tile.simt_rows<rows = 2, keys = 4, lanes = 16, warps = 4, blocks = 6, pack_heads = 2>
// GENERIC-SAME: tiles = 2 : i64
tile.kernel @stream(%q: !tile.ptr<bf16>, %lse: !tile.ptr<f32>, %q_row: i64, %n: i32) target("sm_80")
    grid(packed heads 8 tiles 2) schedule(#tile.simt_rows<rows = 2, keys = 4, lanes = 16, warps = 4, blocks = 6, pack_heads = 2>) {
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

tile.kernel @grads(%lse: !tile.ptr<f32>, %n: i32) target("sm_80") grid(dense heads 1 tiles 1)
    schedule(#tile.simt_rows<rows = 1, keys = 4, lanes = 16, warps = 4, blocks = 4>) {
  %Q = tile.place "Q" : !tile.strip<1x128xf32, 16>
  %pK = tile.place "pK" : !tile.strip<1x128xf32, 16>
  %dK = tile.place "dK" : !tile.strip<4x128xf32, 16>
  %s = tile.place "s" : !tile.scores<1x4, 16>
  %dp = tile.place "dp" : !tile.scores<1x4, 16>
  %row = tile.place "row" : !tile.strip_rows<1, 16>
  // CHECK: %weights = tile.place "weights" : !tile.weights<1x16, 16>
  %weights = tile.place "weights" : !tile.weights<1x16, 16>
  // CHECK: tile.load_statistics %row, %lse rows(%n) : !tile.strip_rows<1, 16>
  tile.load_statistics %row, %lse rows(%n) : !tile.strip_rows<1, 16>
  // CHECK: tile.load_statistics %row, %lse dlse(%lse) rows(%n) : !tile.strip_rows<1, 16>
  tile.load_statistics %row, %lse dlse(%lse) rows(%n) : !tile.strip_rows<1, 16>
  // CHECK: tile.load_statistics %row, %lse delta(%lse) rows(%n) : !tile.strip_rows<1, 16>
  tile.load_statistics %row, %lse delta(%lse) rows(%n) : !tile.strip_rows<1, 16>
  // CHECK: tile.probabilities %s, %row at(%n, %n) scale 1.250000e-01 : !tile.scores<1x4, 16>, !tile.strip_rows<1, 16>
  tile.probabilities %s, %row at(%n, %n) scale 0.125 : !tile.scores<1x4, 16>, !tile.strip_rows<1, 16>
  // CHECK: tile.sum_grads %dp, %s, %row : !tile.scores<1x4, 16>, !tile.strip_rows<1, 16>
  tile.sum_grads %dp, %s, %row : !tile.scores<1x4, 16>, !tile.strip_rows<1, 16>
  // CHECK: tile.hold_weights %weights, %s, %dp at(%n) : !tile.weights<1x16, 16>, !tile.scores<1x4, 16>
  tile.hold_weights %weights, %s, %dp at(%n) : !tile.weights<1x16, 16>, !tile.scores<1x4, 16>
  // CHECK: tile.take_delta %Q, %pK, %row by 1.250000e-01 : !tile.strip<1x128xf32, 16>, !tile.strip_rows<1, 16>
  tile.take_delta %Q, %pK, %row by 0.125 : !tile.strip<1x128xf32, 16>, !tile.strip_rows<1, 16>
  // CHECK: tile.held_grads %dp, %weights, %row at(%n) : !tile.scores<1x4, 16>, !tile.weights<1x16, 16>, !tile.strip_rows<1, 16>
  tile.held_grads %dp, %weights, %row at(%n) : !tile.scores<1x4, 16>, !tile.weights<1x16, 16>, !tile.strip_rows<1, 16>
  // CHECK: tile.mma_turned %dK, %dp, %Q : !tile.strip<4x128xf32, 16>, !tile.scores<1x4, 16>, !tile.strip<1x128xf32, 16>
  tile.mma_turned %dK, %dp, %Q : !tile.strip<4x128xf32, 16>, !tile.scores<1x4, 16>, !tile.strip<1x128xf32, 16>
  // CHECK: tile.scale %dK by 1.250000e-01 : !tile.strip<4x128xf32, 16>
  tile.scale %dK by 0.125 : !tile.strip<4x128xf32, 16>
  // CHECK: tile.grad_scores %dp, %s, %row : !tile.scores<1x4, 16>, !tile.scores<1x4, 16>, !tile.strip_rows<1, 16>
  tile.grad_scores %dp, %s, %row : !tile.scores<1x4, 16>, !tile.scores<1x4, 16>, !tile.strip_rows<1, 16>
  // CHECK: tile.store_delta %lse, %row rows(%n) : !tile.strip_rows<1, 16>
  tile.store_delta %lse, %row rows(%n) : !tile.strip_rows<1, 16>
  // CHECK: tile.sync_warp
  tile.sync_warp
}
