// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Read by backward-errors.mlir: what tile-verify-async says of statistics.

tile.kernel @unwaited(%f: !tile.ptr<f32>, %p: i64, %n: i32) target("sm_80") grid(dense heads 1)
    schedule(#tile.tiled<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
  %s = tile.alloc "s" : !tile.frag<64x64, 4>
  %stats = tile.alloc "stats" : !tile.row_statistics<64>
  // expected-note @below {{while this is in flight into it}}
  %t = tile.copy_row_statistics %stats, %f pitch(%p) : !tile.row_statistics<64>
  // expected-error @below {{'tile.probabilities' op reads `stats`}}
  tile.probabilities %s, %stats at(%n, %n) scale 0.5 : !tile.frag<64x64, 4>, !tile.row_statistics<64>
  tile.wait %t : !tile.token<copy>
}

// -----

tile.kernel @overwritten(%f: !tile.ptr<f32>, %p: i64, %n: i32) target("sm_80") grid(dense heads 1)
    schedule(#tile.tiled<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
  %s = tile.alloc "s" : !tile.frag<64x64, 4>
  %stats = tile.alloc "stats" : !tile.row_statistics<64>
  %t = tile.copy_row_statistics %stats, %f pitch(%p) : !tile.row_statistics<64>
  tile.wait %t : !tile.token<copy>
  // expected-note @below {{which other warps may still be reading here: no wait for a copy lies between}}
  tile.grad_scores %s, %s, %stats : !tile.frag<64x64, 4>, !tile.frag<64x64, 4>, !tile.row_statistics<64>
  // expected-error @below {{'tile.copy_row_statistics' op overwrites `stats`}}
  %u = tile.copy_row_statistics %stats, %f pitch(%p) : !tile.row_statistics<64>
  tile.wait %u : !tile.token<copy>
}

// -----

// A barrier is enough.
tile.kernel @barred(%f: !tile.ptr<f32>, %p: i64, %n: i32) target("sm_80") grid(dense heads 1)
    schedule(#tile.tiled<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
  %s = tile.alloc "s" : !tile.frag<64x64, 4>
  %stats = tile.alloc "stats" : !tile.row_statistics<64>
  %t = tile.copy_row_statistics %stats, %f pitch(%p) : !tile.row_statistics<64>
  tile.wait %t : !tile.token<copy>
  tile.grad_scores %s, %s, %stats : !tile.frag<64x64, 4>, !tile.frag<64x64, 4>, !tile.row_statistics<64>
  tile.barrier
  %u = tile.copy_row_statistics %stats, %f pitch(%p) : !tile.row_statistics<64>
  tile.wait %u : !tile.token<copy>
}

// -----

// A product that reads p may be under way while gradients of scores are made of it.
tile.kernel @beside(%n: i32) target("sm_90a") grid(dense heads 1)
    schedule(#tile.warp_specialized<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
  %s = tile.alloc "s" : !tile.frag<64x64, 4>
  %dp = tile.alloc "dp" : !tile.frag<64x64, 4>
  %V = tile.alloc "V" : !tile.shared<64x64xbf16, 72>
  %acc = tile.alloc "acc" : !tile.frag<64x64, 4>
  %stats = tile.alloc "stats" : !tile.row_statistics<64>
  %t = tile.mma_ab %acc, %s, %V : !tile.frag<64x64, 4>, !tile.frag<64x64, 4>, !tile.shared<64x64xbf16, 72>
  tile.grad_scores %dp, %s, %stats : !tile.frag<64x64, 4>, !tile.frag<64x64, 4>, !tile.row_statistics<64>
  tile.wait %t : !tile.token<product>
}
