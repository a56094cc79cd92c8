// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Places, ops and kernels of strips, in both forms.
//
// RUN: attn-opt %s | FileCheck %s
// RUN: attn-opt %s | attn-opt | FileCheck %s
// RUN: attn-opt %s -mlir-print-op-generic | FileCheck %s --check-prefix=GENERIC
// RUN: attn-opt %s -mlir-print-op-generic | attn-opt | FileCheck %s
// RUN: attn-opt %s -tile-verify-async

// CHECK: tile.kernel @stream(%q: !tile.ptr<bf16>, %lse: !tile.ptr<f32>, %q_row: i64, %n: i32) target("sm_80") grid(packed heads 8 tiles 2) schedule(#tile.simt_rows<rows = 2, keys = 4, lanes = 16, warps = 4, ctas_per_sm = 6, pack_heads = 2>) {
// GENERIC: "tile.kernel"()
// GENERIC-SAME: heads = 8 : i64, packed
// GENERIC-SAME: schedule = #tile.simt_rows<rows = 2, keys = 4, lanes = 16, warps = 4, ctas_per_sm = 6, pack_heads = 2>
// GENERIC-SAME: tiles = 2 : i64
tile.kernel @stream(%q: !tile.ptr<bf16>, %lse: !tile.ptr<f32>, %q_row: i64, %n: i32) target("sm_80")
    grid(packed heads 8 tiles 2) schedule(#tile.simt_rows<rows = 2, keys = 4, lanes = 16, warps = 4, ctas_per_sm = 6, pack_heads = 2>) {
  // CHECK: %global_warp = tile.index global_warp
  %global_warp = tile.index global_warp
  // CHECK: %lane_group = tile.index lane_group lanes 16
  %lane_group = tile.index lane_group lanes 16
  // CHECK: %Q = tile.alloc "Q" : !tile.simt_tile<2x128xf32, 16>
  %Q = tile.alloc "Q" : !tile.simt_tile<2x128xf32, 16>
  // CHECK: %K = tile.alloc "K" : !tile.simt_tile<4x128xbf16, 16>
  %K = tile.alloc "K" : !tile.simt_tile<4x128xbf16, 16>
  // CHECK: %s = tile.alloc "s" : !tile.simt_scores<2x4, 16>
  %s = tile.alloc "s" : !tile.simt_scores<2x4, 16>
  %acc = tile.alloc "acc" : !tile.simt_tile<2x128xf32, 16>
  // CHECK: %row = tile.alloc "row" : !tile.simt_softmax_state<2, 16>
  %row = tile.alloc "row" : !tile.simt_softmax_state<2, 16>
  // CHECK: tile.clear %acc : !tile.simt_tile<2x128xf32, 16>
  tile.clear %acc : !tile.simt_tile<2x128xf32, 16>
  // CHECK: tile.clear %row : !tile.simt_softmax_state<2, 16>
  tile.clear %row : !tile.simt_softmax_state<2, 16>
  %stride = tile.pairs %q_row, %q_row : !tile.pairs<2, i64>
  // CHECK: tile.load_rows %Q, %q stride(%stride heads 2) rows(%n) : !tile.simt_tile<2x128xf32, 16>, !tile.ptr<bf16>
  tile.load_rows %Q, %q stride(%stride heads 2) rows(%n) : !tile.simt_tile<2x128xf32, 16>, !tile.ptr<bf16>
  // CHECK: tile.load_rows %K, %q stride(%q_row) rows(%n) : !tile.simt_tile<4x128xbf16, 16>, !tile.ptr<bf16>
  tile.load_rows %K, %q stride(%q_row) rows(%n) : !tile.simt_tile<4x128xbf16, 16>, !tile.ptr<bf16>
  // CHECK: tile.mma_abt %s, %Q, %K : !tile.simt_scores<2x4, 16>, !tile.simt_tile<2x128xf32, 16>, !tile.simt_tile<4x128xbf16, 16>
  %qk = tile.mma_abt %s, %Q, %K : !tile.simt_scores<2x4, 16>, !tile.simt_tile<2x128xf32, 16>, !tile.simt_tile<4x128xbf16, 16>
  tile.wait %qk : !tile.token<product>
  // CHECK: tile.apply_mask %s at(%n, %n) : !tile.simt_scores<2x4, 16> {
  tile.apply_mask %s at(%n, %n) : !tile.simt_scores<2x4, 16> {
  ^bb0(%query: i32, %key: i32):
    %below = arith.cmpi sle, %key, %query : i32
    tile.yield %below : i1
  }
  // CHECK: tile.online_softmax %s, %row, %acc scale 1.250000e-01 : !tile.simt_scores<2x4, 16>, !tile.simt_softmax_state<2, 16>, !tile.simt_tile<2x128xf32, 16>
  tile.online_softmax %s, %row, %acc scale 0.125 : !tile.simt_scores<2x4, 16>, !tile.simt_softmax_state<2, 16>, !tile.simt_tile<2x128xf32, 16>
  // CHECK: tile.mma_ab %acc, %s, %K {guarded} : !tile.simt_tile<2x128xf32, 16>, !tile.simt_scores<2x4, 16>, !tile.simt_tile<4x128xbf16, 16>
  %pv = tile.mma_ab %acc, %s, %K {guarded} : !tile.simt_tile<2x128xf32, 16>, !tile.simt_scores<2x4, 16>, !tile.simt_tile<4x128xbf16, 16>
  tile.wait %pv : !tile.token<product>
  tile.normalize %acc, %row : !tile.simt_tile<2x128xf32, 16>, !tile.simt_softmax_state<2, 16>
  tile.store %q stride(%stride heads 2), %acc rows(%n, %n) dim 128 : !tile.ptr<bf16>, !tile.simt_tile<2x128xf32, 16>
  tile.store_lse %lse stride(%stride heads 2), %row rows(%n, %n) : !tile.ptr<f32>, !tile.simt_softmax_state<2, 16>
  // CHECK: tile.store_padding %q stride(%stride heads 2) from(%n) to(%n) step(%n) lanes 16 dim 128 : !tile.ptr<bf16>
  tile.store_padding %q stride(%stride heads 2) from(%n) to(%n) step(%n) lanes 16 dim 128 : !tile.ptr<bf16>
  // CHECK: tile.store_padding %lse stride(%q_row) from(%n) to(%n) step(%n) lanes 16 dim 1 : !tile.ptr<f32>
  tile.store_padding %lse stride(%q_row) from(%n) to(%n) step(%n) lanes 16 dim 1 : !tile.ptr<f32>
}

tile.kernel @grads(%lse: !tile.ptr<f32>, %n: i32) target("sm_80") grid(dense heads 1 tiles 1)
    schedule(#tile.simt_rows<rows = 1, keys = 4, lanes = 16, warps = 4, ctas_per_sm = 4>) {
  %Q = tile.alloc "Q" : !tile.simt_tile<1x128xf32, 16>
  %pK = tile.alloc "pK" : !tile.simt_tile<1x128xf32, 16>
  %dK = tile.alloc "dK" : !tile.simt_tile<4x128xf32, 16>
  %s = tile.alloc "s" : !tile.simt_scores<1x4, 16>
  %dp = tile.alloc "dp" : !tile.simt_scores<1x4, 16>
  %row = tile.alloc "row" : !tile.simt_softmax_state<1, 16>
  // CHECK: %probabilities = tile.alloc "probabilities" : !tile.simt_probabilities<1x16, 16>
  %probabilities = tile.alloc "probabilities" : !tile.simt_probabilities<1x16, 16>
  // CHECK: tile.load_row_statistics %row, %lse rows(%n) : !tile.simt_softmax_state<1, 16>
  tile.load_row_statistics %row, %lse rows(%n) : !tile.simt_softmax_state<1, 16>
  // CHECK: tile.load_row_statistics %row, %lse dlse(%lse) rows(%n) : !tile.simt_softmax_state<1, 16>
  tile.load_row_statistics %row, %lse dlse(%lse) rows(%n) : !tile.simt_softmax_state<1, 16>
  // CHECK: tile.load_row_statistics %row, %lse delta(%lse) rows(%n) : !tile.simt_softmax_state<1, 16>
  tile.load_row_statistics %row, %lse delta(%lse) rows(%n) : !tile.simt_softmax_state<1, 16>
  // CHECK: tile.probabilities %s, %row at(%n, %n) scale 1.250000e-01 : !tile.simt_scores<1x4, 16>, !tile.simt_softmax_state<1, 16>
  tile.probabilities %s, %row at(%n, %n) scale 0.125 : !tile.simt_scores<1x4, 16>, !tile.simt_softmax_state<1, 16>
  // CHECK: tile.accumulate_delta %dp, %s, %row : !tile.simt_scores<1x4, 16>, !tile.simt_softmax_state<1, 16>
  tile.accumulate_delta %dp, %s, %row : !tile.simt_scores<1x4, 16>, !tile.simt_softmax_state<1, 16>
  // CHECK: tile.cache_probabilities %probabilities, %s, %dp at(%n) : !tile.simt_probabilities<1x16, 16>, !tile.simt_scores<1x4, 16>
  tile.cache_probabilities %probabilities, %s, %dp at(%n) : !tile.simt_probabilities<1x16, 16>, !tile.simt_scores<1x4, 16>
  // CHECK: tile.subtract_delta %Q, %pK, %row by 1.250000e-01 : !tile.simt_tile<1x128xf32, 16>, !tile.simt_softmax_state<1, 16>
  tile.subtract_delta %Q, %pK, %row by 0.125 : !tile.simt_tile<1x128xf32, 16>, !tile.simt_softmax_state<1, 16>
  // CHECK: tile.cached_grad_scores %dp, %probabilities, %row at(%n) : !tile.simt_scores<1x4, 16>, !tile.simt_probabilities<1x16, 16>, !tile.simt_softmax_state<1, 16>
  tile.cached_grad_scores %dp, %probabilities, %row at(%n) : !tile.simt_scores<1x4, 16>, !tile.simt_probabilities<1x16, 16>, !tile.simt_softmax_state<1, 16>
  // CHECK: %[[DK:.*]] = tile.mma_atb %dK, %dp, %Q : !tile.simt_tile<4x128xf32, 16>, !tile.simt_scores<1x4, 16>, !tile.simt_tile<1x128xf32, 16>
  %dk = tile.mma_atb %dK, %dp, %Q : !tile.simt_tile<4x128xf32, 16>, !tile.simt_scores<1x4, 16>, !tile.simt_tile<1x128xf32, 16>
  tile.wait %dk : !tile.token<product>
  // CHECK: tile.scale %dK by 1.250000e-01 : !tile.simt_tile<4x128xf32, 16>
  tile.scale %dK by 0.125 : !tile.simt_tile<4x128xf32, 16>
  // CHECK: tile.grad_scores %dp, %s, %row : !tile.simt_scores<1x4, 16>, !tile.simt_scores<1x4, 16>, !tile.simt_softmax_state<1, 16>
  tile.grad_scores %dp, %s, %row : !tile.simt_scores<1x4, 16>, !tile.simt_scores<1x4, 16>, !tile.simt_softmax_state<1, 16>
  // CHECK: tile.store_delta %lse, %row rows(%n) : !tile.simt_softmax_state<1, 16>
  tile.store_delta %lse, %row rows(%n) : !tile.simt_softmax_state<1, 16>
  // CHECK: tile.barrier warp
  tile.barrier warp
}
