// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: attn-opt %s -split-input-file -verify-diagnostics
// RUN: attn-opt %S/Inputs/backward-async.mlir --pass-pipeline='builtin.module(tile.kernel(tile-verify-async))' -split-input-file -verify-diagnostics

tile.kernel @k(%q: !tile.ptr<bf16>, %f: !tile.ptr<f32>, %p: i64, %n: i32) target("cpu") grid(dense heads 1)
    schedule(#tile.tiled<q_tile = 64, kv_tile = 64, warps = 1, ctas_per_sm = 1>) {
  // tile.preprocess C1
  // expected-error @below {{expected dim in multiples of 8 from 8 to 256 and o of bf16, f16 or f32, got: dim 12, 'bf16'}}
  tile.preprocess %f pitch(%p) from(%q, %p, %q, %p : !tile.ptr<bf16>, !tile.ptr<bf16>) dim 12 lse(%f) rows(%n)
}

// -----

tile.kernel @k(%q: !tile.ptr<bf16>, %f: !tile.ptr<f32>, %p: i64, %n: i32) target("cpu") grid(dense heads 1)
    schedule(#tile.tiled<q_tile = 64, kv_tile = 64, warps = 1, ctas_per_sm = 1>) {
  // tile.preprocess C1
  // expected-error @below {{expected dim with rows of O and dO, which are of one type}}
  tile.preprocess %f pitch(%p) from(%q, %p, %q, %p : !tile.ptr<bf16>, !tile.ptr<bf16>) lse(%f) rows(%n)
}

// -----

tile.kernel @k(%f: !tile.ptr<f32>, %p: i64, %n: i32) target("cpu") grid(dense heads 1)
    schedule(#tile.tiled<q_tile = 64, kv_tile = 64, warps = 1, ctas_per_sm = 1>) {
  // tile.preprocess C2
  // expected-error @below {{expected rows of O and dO, with or without dlse, or delta alone}}
  tile.preprocess %f pitch(%p) delta(%f) lse(%f) dlse(%f) rows(%n)
}

// -----

tile.kernel @k(%f: !tile.ptr<f32>, %p: i64) target("sm_90a") grid(dense heads 1)
    schedule(#tile.warp_specialized<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
  %K = tile.alloc "K" : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>
  // tile.producer_load_row_statistics C1
  // expected-error @below {{expected a ring of row statistics, got: '!tile.ring<2, <64x64xbf16, swizzled>>'}}
  tile.producer_load_row_statistics %K, %f pitch(%p) : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>
}

// -----

tile.kernel @k(%map: !tile.tensor_map<64xbf16>, %n: i32) target("sm_90a") grid(dense heads 1)
    schedule(#tile.warp_specialized<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
  %K = tile.alloc "K" : !tile.ring<2, !tile.row_statistics<64>>
  // tile.producer_load C1
  // expected-error @below {{expected a tile, got: '!tile.row_statistics<64>'}}
  tile.producer_load %K, %map at(%n, %n, %n) : !tile.ring<2, !tile.row_statistics<64>>, !tile.tensor_map<64xbf16>
}

// -----

tile.kernel @k(%n: i32) target("cpu") grid(dense heads 1) schedule(#tile.tiled<q_tile = 64, kv_tile = 64, warps = 1, ctas_per_sm = 1>) {
  %s = tile.alloc "s" : !tile.frag<64x32, 1>
  %stats = tile.alloc "stats" : !tile.row_statistics<64>
  // tile.probabilities C2
  // expected-error @below {{expected row statistics of all columns of '!tile.frag<64x32, 1>', got: '!tile.row_statistics<64>'}}
  tile.probabilities %s, %stats at(%n, %n) scale 0.5 transposed : !tile.frag<64x32, 1>, !tile.row_statistics<64>
}

// -----

tile.kernel @k(%n: i32) target("cpu") grid(dense heads 1) schedule(#tile.tiled<q_tile = 64, kv_tile = 64, warps = 1, ctas_per_sm = 1>) {
  %s = tile.alloc "s" : !tile.frag<64x32, 1>
  %stats = tile.alloc "stats" : !tile.row_statistics<64>
  // tile.probabilities C1
  // expected-error @below {{expected a positive scale, got: -5.0}}
  tile.probabilities %s, %stats at(%n, %n) scale -0.5 : !tile.frag<64x32, 1>, !tile.row_statistics<64>
}

// -----

tile.kernel @k(%n: i32) target("cpu") grid(dense heads 1) schedule(#tile.tiled<q_tile = 64, kv_tile = 64, warps = 1, ctas_per_sm = 1>) {
  %s = tile.alloc "s" : !tile.frag<64x32, 1>
  %stats = tile.alloc "stats" : !tile.row_statistics<64>
  // tile.probabilities C3
  // expected-error @below {{expected `weighted` with a region, of type '!tile.frag<64x32, 1>', got: '!tile.frag<64x32, 1>'}}
  tile.probabilities %s, %stats at(%n, %n) weighted(%s : !tile.frag<64x32, 1>) scale 0.5
      : !tile.frag<64x32, 1>, !tile.row_statistics<64>
}

// -----

tile.kernel @k(%n: i32) target("cpu") grid(dense heads 1) schedule(#tile.tiled<q_tile = 64, kv_tile = 64, warps = 1, ctas_per_sm = 1>) {
  %s = tile.alloc "s" : !tile.frag<64x32, 1>
  %stats = tile.alloc "stats" : !tile.row_statistics<64>
  // tile.probabilities C4
  // expected-error @below {{expected a region over (score f32, row i32, column i32, base i32, ahead f32) that yields a score and its derivative of type f32}}
  tile.probabilities %s, %stats at(%n, %n) scale 0.5 : !tile.frag<64x32, 1>, !tile.row_statistics<64> modify {
  ^bb0(%score: f32, %query: i32, %key: i32, %base: i32, %column_offset: f32):
    tile.yield %score : f32
  }
}

// -----

tile.kernel @k(%n: i32) target("cpu") grid(dense heads 1) schedule(#tile.tiled<q_tile = 64, kv_tile = 64, warps = 1, ctas_per_sm = 1>) {
  %s = tile.alloc "s" : !tile.frag<64x32, 1>
  %stats = tile.alloc "stats" : !tile.row_statistics<64>
  // tile.probabilities C4
  // expected-error @below {{expected a positive bound with a region for smaller scores, and `weighted`, or none of them}}
  tile.probabilities %s, %stats at(%n, %n) scale 0.5 : !tile.frag<64x32, 1>, !tile.row_statistics<64> small(1.0) {
  ^bb0(%score: f32, %query: i32, %key: i32, %base: i32, %column_offset: f32):
    tile.yield %score, %score : f32, f32
  } modify {
  ^bb0(%score: f32, %query: i32, %key: i32, %base: i32, %column_offset: f32):
    tile.yield %score, %score : f32, f32
  }
}

// -----

tile.kernel @k(%n: i32) target("cpu") grid(dense heads 1) schedule(#tile.tiled<q_tile = 64, kv_tile = 64, warps = 1, ctas_per_sm = 1>) {
  %s = tile.alloc "s" : !tile.frag<64x32, 1>
  %q_operand = tile.alloc "q_operand" : !tile.register_operand<64x16xbf16, 1>
  %stats = tile.alloc "stats" : !tile.row_statistics<64>
  // tile.probabilities C3
  // expected-error @below {{expected the same rows, columns and warps, got: '!tile.register_operand<64x16xbf16, 1>' and '!tile.frag<64x32, 1>'}}
  tile.probabilities %s, %stats at(%n, %n) weighted(%q_operand : !tile.register_operand<64x16xbf16, 1>) scale 0.5
      : !tile.frag<64x32, 1>, !tile.row_statistics<64> modify {
  ^bb0(%score: f32, %query: i32, %key: i32, %base: i32, %column_offset: f32):
    tile.yield %score, %score : f32, f32
  }
}

// -----

tile.kernel @k(%n: i32) target("cpu") grid(dense heads 1) schedule(#tile.tiled<q_tile = 64, kv_tile = 64, warps = 1, ctas_per_sm = 1>) {
  %s = tile.alloc "s" : !tile.frag<64x32, 1>
  %stats = tile.alloc "stats" : !tile.row_statistics<32>
  // tile.grad_scores C1
  // expected-error @below {{expected row statistics of all rows of '!tile.frag<64x32, 1>', got: '!tile.row_statistics<32>'}}
  tile.grad_scores %s, %s, %stats : !tile.frag<64x32, 1>, !tile.frag<64x32, 1>, !tile.row_statistics<32>
}

// -----

// tile.kernel C4
// expected-error @below {{expected a kv_tile in multiples of 16 * warps in a grid of key tiles, got: #tile.tiled_backward<q_tile = 64, kv_tile = 32, warps = 4, ctas_per_sm = 1>}}
tile.kernel @k(%n: i32) target("cpu") grid(dense heads 1 keys) schedule(#tile.tiled_backward<q_tile = 64, kv_tile = 32, warps = 4, ctas_per_sm = 1>) {
}

// -----

tile.kernel @k(%n: i32) target("cpu") grid(dense heads 1) schedule(#tile.tiled<q_tile = 64, kv_tile = 64, warps = 1, ctas_per_sm = 1>) {
  // expected-error @below {{expected row statistics of 16 to 256 rows in multiples of 16, got: 24}}
  %stats = tile.alloc "stats" : !tile.row_statistics<24>
}

// -----

tile.kernel @k(%sum: !tile.ptr<f32>) target("sm_90a") grid(dense heads 1 keys)
    schedule(#tile.warp_specialized_backward<q_tile = 64, kv_tile = 128, warps = 8, ctas_per_sm = 1>) {
  %dS = tile.alloc "dS" : !tile.ring<3, <128x64xbf16, swizzled>>
  %ds = tile.alloc "ds" : !tile.register_operand<128x64xbf16, 8>
  // tile.store_and_sync C1
  // expected-error @below {{expected a ring of two tiles with room for '!tile.register_operand<128x64xbf16, 8>' or its first rows, 16 of each warp, got: '!tile.ring<3, <128x64xbf16, swizzled>>'}}
  %0 = tile.store_and_sync %dS, %ds : !tile.ring<3, <128x64xbf16, swizzled>>, !tile.register_operand<128x64xbf16, 8>
}

// -----

tile.kernel @k(%sum: !tile.ptr<f32>) target("sm_90a") grid(dense heads 1 keys)
    schedule(#tile.warp_specialized_backward<q_tile = 64, kv_tile = 128, warps = 8, ctas_per_sm = 1>) {
  %dS = tile.alloc "dS" : !tile.ring<2, <96x32xbf16, swizzled>>
  %ds = tile.alloc "ds" : !tile.register_operand<128x64xbf16, 8>
  // tile.store_and_sync C1
  // expected-error @below {{expected a ring of two tiles with room for '!tile.register_operand<128x64xbf16, 8>' or its first rows, 16 of each warp, got: '!tile.ring<2, <96x32xbf16, swizzled>>'}}
  %0 = tile.store_and_sync %dS, %ds : !tile.ring<2, <96x32xbf16, swizzled>>, !tile.register_operand<128x64xbf16, 8>
}

// -----

tile.kernel @k(%lse: !tile.ptr<f32>, %n: i32, %stride: i64) target("sm_90a") grid(packed heads 1 tiles 1)
    schedule(#tile.single_pass_backward<q_tile = 96, kv_tile = 96, warps = 8, ctas_per_sm = 1>) {
  %stats = tile.alloc "stats" : !tile.softmax_state<128, 8>
  // tile.load_row_statistics C3
  // expected-error @below {{'tile.load_row_statistics' op expected no stride and no delta with '!tile.softmax_state<128, 8>'}}
  tile.load_row_statistics %stats, %lse stride(%stride) rows(%n) : !tile.softmax_state<128, 8>
}

// -----

tile.kernel @k(%lse: !tile.ptr<f32>, %n: i32) target("sm_90a") grid(packed heads 1 tiles 1)
    schedule(#tile.single_pass_backward<q_tile = 96, kv_tile = 96, warps = 8, ctas_per_sm = 1>) {
  %stats = tile.alloc "stats" : !tile.softmax_state<128, 8>
  // tile.load_row_statistics C3
  // expected-error @below {{'tile.load_row_statistics' op expected no stride and no delta with '!tile.softmax_state<128, 8>'}}
  tile.load_row_statistics %stats, %lse delta(%lse) rows(%n) : !tile.softmax_state<128, 8>
}

// -----

tile.kernel @k(%n: i32) target("sm_90a") grid(packed heads 1 tiles 1) schedule(#tile.single_pass_backward<q_tile = 96, kv_tile = 96, warps = 8, ctas_per_sm = 1>) {
  %stats = tile.alloc "stats" : !tile.softmax_state<128, 4>
  %s = tile.alloc "s" : !tile.frag<128x96, 8>
  // tile.probabilities C2: of the same warps.
  // expected-error @below {{expected row statistics of all rows of '!tile.frag<128x96, 8>', got: '!tile.softmax_state<128, 4>'}}
  tile.probabilities %s, %stats at(%n, %n) scale 0.5 : !tile.frag<128x96, 8>, !tile.softmax_state<128, 4>
}

// -----

tile.kernel @k(%n: i32) target("sm_90a") grid(packed heads 1 tiles 1) schedule(#tile.single_pass_backward<q_tile = 96, kv_tile = 96, warps = 8, ctas_per_sm = 1>) {
  %stats = tile.alloc "stats" : !tile.softmax_state<128, 8>
  %s = tile.alloc "s" : !tile.frag<128x128, 8>
  // tile.probabilities C2: rows are not columns.
  // expected-error @below {{expected row statistics of all columns of '!tile.frag<128x128, 8>', got: '!tile.softmax_state<128, 8>'}}
  tile.probabilities %s, %stats at(%n, %n) scale 0.5 transposed : !tile.frag<128x128, 8>, !tile.softmax_state<128, 8>
}

// -----

tile.kernel @k(%n: i32) target("sm_90a") grid(packed heads 1 tiles 1) schedule(#tile.single_pass_backward<q_tile = 96, kv_tile = 96, warps = 8, ctas_per_sm = 1>) {
  %stats = tile.alloc "stats" : !tile.softmax_state<128, 8>
  %s = tile.alloc "s" : !tile.frag<128x96, 8>
  // tile.probabilities C6
  // expected-error @below {{expected no region with row statistics in registers, got: '!tile.softmax_state<128, 8>'}}
  tile.probabilities %s, %stats at(%n, %n) scale 0.5 : !tile.frag<128x96, 8>, !tile.softmax_state<128, 8> modify {
  ^bb0(%score: f32, %row: i32, %column: i32, %base: i32, %column_offset: f32):
    tile.yield %score, %score : f32, f32
  }
}

// -----

tile.kernel @k(%n: i32) target("sm_90a") grid(packed heads 1 tiles 1) schedule(#tile.single_pass_backward<q_tile = 96, kv_tile = 96, warps = 8, ctas_per_sm = 1>) {
  %stats = tile.alloc "stats" : !tile.softmax_state<128, 8>
  %s = tile.alloc "s" : !tile.frag<128x96, 8>
  %dp = tile.alloc "dp" : !tile.frag<128x96, 8>
  // tile.single_pass_grads C2
  // expected-error @below {{expected no weighted with row statistics in registers, got: '!tile.softmax_state<128, 8>'}}
  tile.single_pass_grads %dp, %s, %stats weighted(%s : !tile.frag<128x96, 8>) : !tile.frag<128x96, 8>, !tile.softmax_state<128, 8>
}

// -----

tile.kernel @k(%n: i32) target("sm_80") grid(packed heads 1) schedule(#tile.tiled<q_tile = 16, kv_tile = 16, warps = 1, ctas_per_sm = 1>) {
  %stats = tile.alloc "stats" : !tile.row_statistics<16>
  %s = tile.alloc "s" : !tile.frag<16x16, 1>
  %dp = tile.alloc "dp" : !tile.frag<16x16, 1>
  // tile.single_pass_grads C2
  // expected-error @below {{expected row statistics in registers where pairs are dropped, or delta is known, got: '!tile.row_statistics<16>'}}
  tile.single_pass_grads %dp, %s, %stats dropped by 1.25 : !tile.frag<16x16, 1>, !tile.row_statistics<16>
}

// -----

tile.kernel @k(%sum: !tile.ptr<f32>) target("sm_90a") grid(dense heads 1 keys)
    schedule(#tile.warp_specialized_backward<q_tile = 64, kv_tile = 128, warps = 8, ctas_per_sm = 1>) {
  %dS = tile.alloc "dS" : !tile.shared<128x64xbf16, swizzled>
  %K = tile.alloc "K" : !tile.shared<128x128xbf16, swizzled>
  %dQ = tile.alloc "dQ" : !tile.frag<128x32, 8>
  // tile.mma_atb C1
  // expected-error @below {{expected A^T B, or, of swizzled tiles, blocks of 64 rows of it for each warpgroup, got: '!tile.frag<128x32, 8>' = '!tile.shared<128x64xbf16, swizzled>'^T x '!tile.shared<128x128xbf16, swizzled>'}}
  %t = tile.mma_atb %dQ, %dS, %K : !tile.frag<128x32, 8>, !tile.shared<128x64xbf16, swizzled>, !tile.shared<128x128xbf16, swizzled>
}

// -----

tile.kernel @k(%sum: !tile.ptr<f32>, %left: i32) target("sm_90a") grid(dense heads 1 keys)
    schedule(#tile.warp_specialized_backward<q_tile = 64, kv_tile = 128, warps = 8, ctas_per_sm = 1>) {
  %dQ = tile.alloc "dQ" : !tile.frag<128x64, 8>
  %staging = tile.alloc "staging" : !tile.staging<2, 16384>
  // tile.add_global C1
  // expected-error @below {{expected slots of the size of '!tile.frag<128x64, 8>', got: '!tile.staging<2, 16384>'}}
  tile.add_global %sum, %dQ left(%left) through(%staging : !tile.staging<2, 16384>) : !tile.frag<128x64, 8>
}

// -----

tile.kernel @k(%sum: !tile.ptr<f32>, %left: i32) target("sm_90a") grid(dense heads 1 keys)
    schedule(#tile.warp_specialized_backward<q_tile = 64, kv_tile = 128, warps = 8, ctas_per_sm = 1>) {
  %dQ = tile.alloc "dQ" : !tile.frag<128x64, 8>
  %order = tile.alloc "order" : !tile.staging<2, 0>
  // tile.add_global C1
  // expected-error @below {{expected a semaphore for slots of 0 bytes, and not after_first}}
  tile.add_global %sum, %dQ left(%left) through(%order : !tile.staging<2, 0>) : !tile.frag<128x64, 8>
}

// -----

tile.kernel @k(%sum: !tile.ptr<f32>, %left: i32) target("sm_90a") grid(dense heads 1 keys)
    schedule(#tile.warp_specialized_backward<q_tile = 64, kv_tile = 128, warps = 8, ctas_per_sm = 1>) {
  %order = tile.alloc "order" : !tile.staging<2, 0>
  // tile.add_staged C1
  // expected-error @below {{expected a semaphore for slots of 0 bytes, and not after_first}}
  tile.add_staged %sum, %order left(%left) columns 64 : !tile.staging<2, 0>
}

// -----

tile.kernel @k(%sum: !tile.ptr<f32>, %semaphore: !tile.ptr<i32>, %tile: i32) target("sm_90a") grid(dense heads 1 keys)
    schedule(#tile.warp_specialized_backward<q_tile = 64, kv_tile = 128, warps = 8, ctas_per_sm = 1>) {
  %order = tile.alloc "order" : !tile.staging<2, 0>
  // tile.add_staged C1
  // expected-error @below {{expected a semaphore for slots of 0 bytes, and not after_first}}
  tile.add_staged %sum, %order left(%tile) semaphore(%semaphore of %tile) after_first columns 64 : !tile.staging<2, 0> {
  ^bb0(%other: i32):
    %adds = arith.cmpi slt, %other, %tile : i32
    tile.yield %adds : i1
  }
}

// -----

tile.kernel @k(%sum: !tile.ptr<f32>) target("sm_90a") grid(dense heads 1 keys)
    schedule(#tile.warp_specialized_backward<q_tile = 64, kv_tile = 128, warps = 8, ctas_per_sm = 1>) {
  // expected-error @below {{expected two slots of 0 bytes, one for each warp that adds, got: 1}}
  %order = tile.alloc "order" : !tile.staging<1, 0>
}

// -----

tile.kernel @k(%sum: !tile.ptr<f32>, %left: i32) target("sm_90a") grid(dense heads 1 keys)
    schedule(#tile.warp_specialized_backward<q_tile = 64, kv_tile = 128, warps = 8, ctas_per_sm = 1>) {
  %dQ = tile.alloc "dQ" : !tile.frag<128x64, 8>
  %staging = tile.alloc "staging" : !tile.staging<2, 32768>
  // tile.add_global_ordered C1
  // expected-error @below {{expected slots of 0 bytes and a block from 0 on, got: '!tile.staging<2, 32768>', 0}}
  tile.add_global_ordered %sum, %dQ left(%left), %staging last : !tile.frag<128x64, 8>, !tile.staging<2, 32768>
}

// -----

tile.kernel @k(%sum: !tile.ptr<f32>, %dq: !tile.ptr<bf16>, %row: i64, %rows: i32, %alone: i1) target("sm_90a") grid(dense heads 1 keys)
    schedule(#tile.warp_specialized_backward<q_tile = 64, kv_tile = 128, warps = 8, ctas_per_sm = 1, single_loop = true, dq_columns = 64>) {
  %dQ = tile.alloc "dQ" : !tile.frag<128x64, 8>
  %staging = tile.alloc "staging" : !tile.staging<2, 32768>
  // tile.add_global C3
  // expected-error @below {{expected `sole_writer` with a semaphore and with where rows are written, or none of it}}
  tile.add_global %sum, %dQ left(%rows) through(%staging : !tile.staging<2, 32768>)
      sole_writer(%alone) to(%dq : !tile.ptr<bf16> stride %row rows %rows by 0.125 dim 64) : !tile.frag<128x64, 8>
}

// -----

tile.kernel @k(%sum: !tile.ptr<f32>, %dq: !tile.ptr<bf16>, %row: i64, %rows: i32, %semaphore: !tile.ptr<i32>, %alone: i1) target("sm_90a") grid(dense heads 1 keys)
    schedule(#tile.warp_specialized_backward<q_tile = 64, kv_tile = 128, warps = 8, ctas_per_sm = 1>) {
  %dQ = tile.alloc "dQ" : !tile.frag<128x64, 8>
  %staging = tile.alloc "staging" : !tile.staging<2, 32768>
  // tile.add_global C3
  // expected-error @below {{expected `sole_writer` in a kernel with a dQ MMA warpgroup, and no more columns than it makes}}
  tile.add_global %sum, %dQ left(%rows) through(%staging : !tile.staging<2, 32768>) semaphore(%semaphore of %rows)
      sole_writer(%alone) to(%dq : !tile.ptr<bf16> stride %row rows %rows by 0.125 dim 64) : !tile.frag<128x64, 8> {
  ^bb0(%other: i32):
    tile.yield %alone : i1
  }
}

// -----

tile.kernel @k(%dq: !tile.ptr<bf16>, %row: i64, %rows: i32) target("sm_90a") grid(dense heads 1 keys)
    schedule(#tile.warp_specialized_backward<q_tile = 64, kv_tile = 128, warps = 8, ctas_per_sm = 1>) {
  %dQ = tile.alloc "dQ" : !tile.frag<64x64, 4>
  // tile.store C1
  // expected-error @below {{expected a factor with a fragment of 64 rows, four warps and 128 columns or more, and no padding, got: '!tile.frag<64x64, 4>'}}
  tile.store %dq stride(%row), %dQ by 0.125 rows(%rows, %rows) dim 128 : !tile.ptr<bf16>, !tile.frag<64x64, 4>
}

// -----

tile.kernel @k(%semaphore: !tile.ptr<i32>) target("sm_90a") grid(dense heads 1 keys)
    schedule(#tile.warp_specialized_backward<q_tile = 64, kv_tile = 128, warps = 8, ctas_per_sm = 1>) {
  %dQ = tile.alloc "dQ" : !tile.frag<128x64, 8>
  %staging = tile.alloc "staging" : !tile.staging<2, 65536>
  // tile.stage C1
  // expected-error @below {{expected slots of the size of '!tile.frag<128x64, 8>', got: '!tile.staging<2, 65536>'}}
  tile.stage %staging, %dQ : !tile.staging<2, 65536>, !tile.frag<128x64, 8>
}

// -----

tile.kernel @k(%sum: !tile.ptr<f32>, %semaphore: !tile.ptr<i32>, %tile: i32) target("sm_90a") grid(dense heads 1 keys)
    schedule(#tile.warp_specialized_backward<q_tile = 64, kv_tile = 128, warps = 8, ctas_per_sm = 1>) {
  %dQ = tile.alloc "dQ" : !tile.frag<128x64, 8>
  // tile.add_global C2
  // expected-error @below {{expected a staging place, got a semaphore without one}}
  tile.add_global %sum, %dQ left(%tile) semaphore(%semaphore of %tile) : !tile.frag<128x64, 8> {
  ^bb0(%other: i32):
    %adds = arith.cmpi slt, %other, %tile : i32
    tile.yield %adds : i1
  }
}

// -----

tile.kernel @k(%sum: !tile.ptr<f32>, %semaphore: !tile.ptr<i32>, %tile: i32) target("sm_90a") grid(dense heads 1 keys)
    schedule(#tile.warp_specialized_backward<q_tile = 64, kv_tile = 128, warps = 8, ctas_per_sm = 1>) {
  %dQ = tile.alloc "dQ" : !tile.frag<128x64, 8>
  %staging = tile.alloc "staging" : !tile.staging<2, 32768>
  // tile.add_global C2
  // expected-error @below {{expected a semaphore and a region over (i32) that yields an i1, or neither}}
  tile.add_global %sum, %dQ left(%tile) through(%staging : !tile.staging<2, 32768>) semaphore(%semaphore of %tile) : !tile.frag<128x64, 8>
}

// -----

tile.kernel @k(%sum: !tile.ptr<f32>, %left: i32, %semaphore: !tile.ptr<i32>) target("sm_90a") grid(dense heads 1 keys)
    schedule(#tile.warp_specialized_backward<q_tile = 64, kv_tile = 128, warps = 8, ctas_per_sm = 1>) {
  %staging = tile.alloc "staging" : !tile.staging<2, 32768>
  // Turns of nobody.
  // expected-error @below {{expected a semaphore and a region over (i32) that yields an i1, or neither}}
  "tile.add_staged"(%sum, %staging, %left, %semaphore) <{columns = 64 : i64, operandSegmentSizes = array<i32: 1, 1, 1, 1, 0, 0>}> ({
  ^bb0(%other: i32):
    %adds = arith.constant true
    tile.yield %adds : i1
  }) : (!tile.ptr<f32>, !tile.staging<2, 32768>, i32, !tile.ptr<i32>) -> ()
}

// -----

tile.kernel @k(%sum: !tile.ptr<f32>, %semaphore: !tile.ptr<i32>, %tile: i32) target("sm_90a") grid(dense heads 1 keys)
    schedule(#tile.warp_specialized_backward<q_tile = 64, kv_tile = 128, warps = 8, ctas_per_sm = 1>) {
  %staging = tile.alloc "staging" : !tile.staging<2, 32768>
  // tile.add_staged C1
  // expected-error @below {{expected a semaphore and a region over (i32) that yields an i1, or neither}}
  tile.add_staged %sum, %staging left(%tile) semaphore(%semaphore of %tile) columns 64 : !tile.staging<2, 32768> {
  ^bb0(%other: i32):
    tile.yield %other : i32
  }
}

// -----

tile.kernel @k(%sum: !tile.ptr<f32>, %left: i32) target("sm_90a") grid(dense heads 1 keys)
    schedule(#tile.warp_specialized_backward<q_tile = 64, kv_tile = 128, warps = 8, ctas_per_sm = 1>) {
  %dQ = tile.alloc "dQ" : !tile.frag<128x64, 8>
  %staging = tile.alloc "staging" : !tile.staging<2, 32768>
  // tile.add_global C2: the first of whom?
  // expected-error @below {{'tile.add_global' op expected after_first with a semaphore}}
  tile.add_global %sum, %dQ left(%left) through(%staging : !tile.staging<2, 32768>) after_first : !tile.frag<128x64, 8>
}

// -----

tile.kernel @k(%sum: !tile.ptr<f32>, %left: i32) target("sm_90a") grid(dense heads 1 keys)
    schedule(#tile.warp_specialized_backward<q_tile = 64, kv_tile = 128, warps = 8, ctas_per_sm = 1>) {
  %dQ = tile.alloc "dQ" : !tile.frag<128x64, 8>
  %staging = tile.alloc "staging" : !tile.staging<2, 32768>
  // tile.add_global C2: without an order there is no first tile.
  // expected-error @below {{'tile.add_global' op expected a first tile with a semaphore}}
  tile.add_global %sum, %dQ left(%left) through(%staging : !tile.staging<2, 32768>) first(%left) : !tile.frag<128x64, 8>
}

// -----

tile.kernel @k(%sum: !tile.ptr<f32>, %left: i32) target("sm_90a") grid(dense heads 1 keys)
    schedule(#tile.warp_specialized_backward<q_tile = 64, kv_tile = 128, warps = 8, ctas_per_sm = 1>) {
  %staging = tile.alloc "staging" : !tile.staging<2, 32768>
  // tile.add_staged C1
  // expected-error @below {{'tile.add_staged' op expected a first tile with a semaphore}}
  tile.add_staged %sum, %staging left(%left) first(%left) columns 64 : !tile.staging<2, 32768>
}

// -----

tile.kernel @k(%sum: !tile.ptr<f32>, %left: i32) target("sm_90a") grid(dense heads 1 keys)
    schedule(#tile.warp_specialized_backward<q_tile = 64, kv_tile = 128, warps = 8, ctas_per_sm = 1>) {
  %staging = tile.alloc "staging" : !tile.staging<2, 32768>
  // tile.add_staged C1
  // expected-error @below {{'tile.add_staged' op expected after_first with a semaphore}}
  tile.add_staged %sum, %staging left(%left) after_first columns 64 : !tile.staging<2, 32768>
}

// -----

tile.kernel @k(%sum: !tile.ptr<f32>, %left: i32, %dq: !tile.ptr<bf16>, %row: i64) target("sm_90a") grid(dense heads 1 keys)
    schedule(#tile.warp_specialized_backward<q_tile = 64, kv_tile = 128, warps = 8, ctas_per_sm = 1>) {
  // tile.postprocess C1
  // expected-error @below {{expected columns in multiples of 16, and a dim in eights, got: 24, 64}}
  tile.postprocess %dq stride(%row), %sum rows(%left of %left) by 0.125 dim 64 columns 24 : !tile.ptr<bf16>
}

// -----

tile.kernel @k(%sum: !tile.ptr<f32>, %left: i32, %dq: !tile.ptr<bf16>, %row: i64) target("sm_90a") grid(dense heads 1 keys)
    schedule(#tile.warp_specialized_backward<q_tile = 64, kv_tile = 128, warps = 8, ctas_per_sm = 1>) {
  // expected-error @below {{expected columns in multiples of 16, and a dim in eights, got: 32, 60}}
  tile.postprocess %dq stride(%row), %sum rows(%left of %left) by 0.125 dim 60 columns 32 : !tile.ptr<bf16>
}

// -----

tile.kernel @k(%sum: !tile.ptr<f32>, %left: i32) target("sm_90a") grid(dense heads 1 keys)
    schedule(#tile.warp_specialized_backward<q_tile = 64, kv_tile = 128, warps = 8, ctas_per_sm = 1>) {
  %dQ = tile.alloc "dQ" : !tile.frag<128x64, 8>
  %order = tile.alloc "order" : !tile.staging<2, 0>
  // tile.add_global_ordered C1
  // expected-error @below {{expected slots of 0 bytes and a block from 0 on, got: '!tile.staging<2, 0>', -1}}
  tile.add_global_ordered %sum, %dQ left(%left), %order block -1 last : !tile.frag<128x64, 8>, !tile.staging<2, 0>
}

// -----

tile.kernel @k(%sum: !tile.ptr<f32>, %left: i32) target("sm_90a") grid(dense heads 1 keys)
    schedule(#tile.warp_specialized_backward<q_tile = 64, kv_tile = 128, warps = 8, ctas_per_sm = 1>) {
  %staging = tile.alloc "staging" : !tile.staging<2, 32768>
  // tile.add_staged C2
  // expected-error @below {{expected at least one block, and slots of some times 64 rows of 48 columns, got: 1, '!tile.staging<2, 32768>'}}
  tile.add_staged %sum, %staging left(%left) columns 48 : !tile.staging<2, 32768>
}

// -----

tile.kernel @k(%sum: !tile.ptr<f32>) target("sm_90a") grid(dense heads 1 keys)
    schedule(#tile.warp_specialized_backward<q_tile = 64, kv_tile = 128, warps = 8, ctas_per_sm = 1>) {
  %dp = tile.alloc "dp" : !tile.frag<128x64, 8>
  %s = tile.alloc "s" : !tile.frag<128x32, 8>
  %stats = tile.alloc "stats" : !tile.row_statistics<64>
  // tile.grad_scores C2
  // expected-error @below {{expected p of type '!tile.frag<128x64, 8>', got: '!tile.frag<128x32, 8>'}}
  tile.grad_scores %dp, %s, %stats transposed : !tile.frag<128x64, 8>, !tile.frag<128x32, 8>, !tile.row_statistics<64>
}

// -----

tile.kernel @k(%n: i32) target("sm_90a") grid(dense heads 1 keys)
    schedule(#tile.warp_specialized_backward<q_tile = 64, kv_tile = 128, warps = 8, ctas_per_sm = 1>) {
  %dp = tile.alloc "dp" : !tile.frag<128x64, 8>
  %q_operand = tile.alloc "q_operand" : !tile.register_operand<128x64xbf16, 8>
  %stats = tile.alloc "stats" : !tile.row_statistics<64>
  // tile.grad_scores C2
  // expected-error @below {{expected slopes in registers, as p is, got: '!tile.register_operand<128x64xbf16, 8>' and '!tile.frag<128x64, 8>'}}
  tile.grad_scores %dp, %dp slopes(%q_operand : !tile.register_operand<128x64xbf16, 8>), %stats transposed : !tile.frag<128x64, 8>, !tile.frag<128x64, 8>, !tile.row_statistics<64>
}

// -----

tile.kernel @k(%n: i32) target("sm_90a") grid(dense heads 1 keys)
    schedule(#tile.warp_specialized_backward<q_tile = 64, kv_tile = 128, warps = 8, ctas_per_sm = 1>) {
  %s = tile.alloc "s" : !tile.frag<128x64, 8>
  %stats = tile.alloc "stats" : !tile.row_statistics<64>
  // tile.probabilities C3
  // expected-error @below {{expected `slopes` with `weighted` in registers, and numbers with `small` only}}
  tile.probabilities %s, %stats at(%n, %n) weighted(%s : !tile.frag<128x64, 8>) slopes [] scale 0.5 transposed
      : !tile.frag<128x64, 8>, !tile.row_statistics<64> modify {
  ^bb0(%score: f32, %key: i32, %query: i32, %base: i32, %column_offset: f32):
    tile.yield %score, %column_offset : f32, f32
  }
}

// -----

tile.kernel @k(%n: i32) target("sm_90a") grid(dense heads 1 keys)
    schedule(#tile.warp_specialized_backward<q_tile = 64, kv_tile = 128, warps = 8, ctas_per_sm = 1>) {
  %s = tile.alloc "s" : !tile.frag<128x64, 8>
  %q_operand = tile.alloc "q_operand" : !tile.register_operand<128x64xbf16, 8>
  %stats = tile.alloc "stats" : !tile.row_statistics<64>
  // tile.probabilities C3
  // expected-error @below {{expected `slopes` with `weighted` in registers, and numbers with `small` only}}
  tile.probabilities %s, %stats at(%n, %n) weighted(%q_operand : !tile.register_operand<128x64xbf16, 8>) slopes [1.0] scale 0.5 transposed
      : !tile.frag<128x64, 8>, !tile.row_statistics<64> modify {
  ^bb0(%score: f32, %key: i32, %query: i32, %base: i32, %column_offset: f32):
    tile.yield %score, %column_offset : f32, f32
  }
}

// -----

tile.kernel @k(%sum: !tile.ptr<f32>) target("sm_90a") grid(dense heads 1 keys)
    schedule(#tile.warp_specialized_backward<q_tile = 64, kv_tile = 128, warps = 8, ctas_per_sm = 1>) {
  // expected-error @below {{expected 1 to 8 slots of a multiple of 128 bytes, got: 2 of 100}}
  %staging = tile.alloc "staging" : !tile.staging<2, 100>
}
