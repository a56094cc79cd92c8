// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The ops of backward passes, in both forms.
// RUN: attn-opt %s | attn-opt | FileCheck %s
// RUN: attn-opt %s -mlir-print-op-generic | attn-opt | FileCheck %s

// CHECK: tile.kernel @gradients({{.*}}) target("cpu") grid(packed heads 2 keys) schedule(#tile.tiled_backward<q_tile = 16, kv_tile = 64, warps = 4, ctas_per_sm = 1>)
tile.kernel @gradients(%q: !tile.ptr<bf16>, %row_statistics: !tile.ptr<f32>, %pitch: i64, %n: i32)
    target("cpu") grid(packed heads 2 keys) schedule(#tile.tiled_backward<q_tile = 16, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
  // CHECK: %stats = tile.alloc "stats" : !tile.row_statistics<16>
  %stats = tile.alloc "stats" : !tile.row_statistics<16>
  %ring = tile.alloc "ring" : !tile.ring<2, !tile.row_statistics<16>>
  %s = tile.alloc "s" : !tile.frag<64x16, 4>
  %dp = tile.alloc "dp" : !tile.frag<64x16, 4>
  %w = tile.alloc "w" : !tile.frag<64x16, 4>
  // CHECK: tile.preprocess %row_statistics pitch(%pitch) from(%q, %pitch, %q, %pitch : !tile.ptr<bf16>, !tile.ptr<bf16>) dim 64 lse(%row_statistics) rows(%n)
  tile.preprocess %row_statistics pitch(%pitch) from(%q, %pitch, %q, %pitch : !tile.ptr<bf16>, !tile.ptr<bf16>) dim 64 lse(%row_statistics) rows(%n)
  // CHECK: tile.preprocess {{.*}} lse(%row_statistics) stride 4 rows(%n cleared %n)
  tile.preprocess %row_statistics pitch(%pitch) from(%q, %pitch, %q, %pitch : !tile.ptr<bf16>, !tile.ptr<bf16>) dim 64 lse(%row_statistics) stride 4 rows(%n cleared %n)
  // CHECK: tile.preprocess {{.*}} lse(%row_statistics) rows(%n) exponent 12
  tile.preprocess %row_statistics pitch(%pitch) from(%q, %pitch, %q, %pitch : !tile.ptr<bf16>, !tile.ptr<bf16>) dim 64 lse(%row_statistics) rows(%n) exponent 12
  // CHECK: tile.preprocess {{.*}} lse(%row_statistics) dlse(%row_statistics) rows(%n)
  tile.preprocess %row_statistics pitch(%pitch) from(%q, %pitch, %q, %pitch : !tile.ptr<bf16>, !tile.ptr<bf16>) dim 64 lse(%row_statistics) dlse(%row_statistics) rows(%n)
  // CHECK: tile.preprocess %row_statistics pitch(%pitch) delta(%row_statistics) lse(%row_statistics) rows(%n)
  tile.preprocess %row_statistics pitch(%pitch) delta(%row_statistics) lse(%row_statistics) rows(%n)
  // CHECK: %[[T:.*]] = tile.copy_row_statistics %stats, %row_statistics pitch(%pitch) : !tile.row_statistics<16>
  %t = tile.copy_row_statistics %stats, %row_statistics pitch(%pitch) : !tile.row_statistics<16>
  tile.wait %t : !tile.token<copy>
  // CHECK: tile.producer_load_row_statistics %ring, %row_statistics pitch(%pitch) : !tile.ring<2, !tile.row_statistics<16>>
  tile.producer_load_row_statistics %ring, %row_statistics pitch(%pitch) : !tile.ring<2, !tile.row_statistics<16>>
  // CHECK: tile.apply_mask %s at(%n, %n) transposed : !tile.frag<64x16, 4> {
  // CHECK-NEXT: ^bb0(%k: i32, %q_0: i32):
  tile.apply_mask %s at(%n, %n) transposed : !tile.frag<64x16, 4> {
  ^bb0(%key: i32, %query: i32):
    %below = arith.cmpi sle, %key, %query : i32
    tile.yield %below : i1
  }
  // CHECK: tile.probabilities %s, %stats at(%n, %n) scale 5.000000e-01 transposed : !tile.frag<64x16, 4>, !tile.row_statistics<16>
  tile.probabilities %s, %stats at(%n, %n) scale 0.5 transposed : !tile.frag<64x16, 4>, !tile.row_statistics<16>
  // CHECK: tile.probabilities %s, %stats at(%n, %n) weighted(%w : !tile.frag<64x16, 4>) scale 5.000000e-01 transposed : !tile.frag<64x16, 4>, !tile.row_statistics<16> modify {
  // CHECK-NEXT: ^bb0(%score: f32, %k: i32, %q_0: i32, %base: i32, %column_offset: f32):
  tile.probabilities %s, %stats at(%n, %n) weighted(%w : !tile.frag<64x16, 4>) scale 0.5 transposed
      : !tile.frag<64x16, 4>, !tile.row_statistics<16> modify {
  ^bb0(%score: f32, %key: i32, %query: i32, %base: i32, %column_offset: f32):
    tile.yield %score, %column_offset : f32, f32
  }
  // CHECK: tile.probabilities %s, %stats at(%n, %n) weighted(%wh : !tile.register_operand<64x16xbf16, 4>) scale 5.000000e-01 transposed : !tile.frag<64x16, 4>, !tile.row_statistics<16> small(2.500000e+00) {
  // CHECK: } modify {
  %wh = tile.alloc "wh" : !tile.register_operand<64x16xbf16, 4>
  tile.probabilities %s, %stats at(%n, %n) weighted(%wh : !tile.register_operand<64x16xbf16, 4>) scale 0.5 transposed
      : !tile.frag<64x16, 4>, !tile.row_statistics<16> small(2.5) {
  ^bb0(%score: f32, %key: i32, %query: i32, %base: i32, %column_offset: f32):
    tile.yield %column_offset, %score : f32, f32
  } modify {
  ^bb0(%score: f32, %key: i32, %query: i32, %base: i32, %column_offset: f32):
    tile.yield %score, %column_offset : f32, f32
  }
  // CHECK: tile.probabilities %s, %stats at(%n, %n) weighted(%wh : !tile.register_operand<64x16xbf16, 4>) slopes [1.000000e+00, -5.000000e-01] scale 5.000000e-01 transposed : !tile.frag<64x16, 4>, !tile.row_statistics<16> small(2.500000e+00) {
  tile.probabilities %s, %stats at(%n, %n) weighted(%wh : !tile.register_operand<64x16xbf16, 4>) slopes [1.0, -0.5] scale 0.5 transposed
      : !tile.frag<64x16, 4>, !tile.row_statistics<16> small(2.5) {
  ^bb0(%score: f32, %key: i32, %query: i32, %base: i32, %column_offset: f32):
    tile.yield %column_offset, %score : f32, f32
  } modify {
  ^bb0(%score: f32, %key: i32, %query: i32, %base: i32, %column_offset: f32):
    tile.yield %score, %column_offset : f32, f32
  }
  // CHECK: tile.grad_scores %dp, %p slopes(%wh : !tile.register_operand<64x16xbf16, 4>), %stats transposed : !tile.frag<64x16, 4>, !tile.register_operand<64x16xbf16, 4>, !tile.row_statistics<16>
  %p = tile.alloc "p" : !tile.register_operand<64x16xbf16, 4>
  tile.grad_scores %dp, %p slopes(%wh : !tile.register_operand<64x16xbf16, 4>), %stats transposed : !tile.frag<64x16, 4>, !tile.register_operand<64x16xbf16, 4>, !tile.row_statistics<16>
  // CHECK: tile.grad_scores %dp, %w, %stats by 5.000000e-01 transposed : !tile.frag<64x16, 4>, !tile.frag<64x16, 4>, !tile.row_statistics<16>
  tile.grad_scores %dp, %w, %stats by 0.5 transposed : !tile.frag<64x16, 4>, !tile.frag<64x16, 4>, !tile.row_statistics<16>
  // CHECK: tile.grad_scores %dp, %w, %stats transposed : !tile.frag<64x16, 4>, !tile.frag<64x16, 4>, !tile.row_statistics<16>
  tile.grad_scores %dp, %w, %stats transposed : !tile.frag<64x16, 4>, !tile.frag<64x16, 4>, !tile.row_statistics<16>
  // CHECK: tile.scale %dp by 5.000000e-01 : !tile.frag<64x16, 4>
  tile.scale %dp by 0.5 : !tile.frag<64x16, 4>
  // CHECK: tile.barrier
  tile.barrier
  // CHECK: tile.grid_dependency_sync
  tile.grid_dependency_sync
}

// dQ added up in global memory, by key tiles.
tile.kernel @sums(%sum: !tile.ptr<f32>, %row_statistics: !tile.ptr<f32>, %q: !tile.ptr<bf16>, %pitch: i64, %n: i32)
    target("sm_90a") grid(dense heads 2 keys) schedule(#tile.warp_specialized_backward<q_tile = 64, kv_tile = 128, warps = 8, ctas_per_sm = 1>) {
  %K = tile.alloc "K" : !tile.shared<128x128xbf16, swizzled>
  // CHECK: %dS = tile.alloc "dS" : !tile.ring<2, <128x64xbf16, swizzled>>
  %dS = tile.alloc "dS" : !tile.ring<2, <128x64xbf16, swizzled>>
  %ds = tile.alloc "ds" : !tile.register_operand<128x64xbf16, 8>
  %dp = tile.alloc "dp" : !tile.frag<128x64, 8>
  %stats = tile.alloc "stats" : !tile.row_statistics<64>
  %dQ = tile.alloc "dQ" : !tile.frag<128x64, 8>
  // CHECK: %staging = tile.alloc "staging" : !tile.staging<2, 32768>
  %staging = tile.alloc "staging" : !tile.staging<2, 32768>
  // CHECK: tile.preprocess {{.*}} dim 64 {{.*}}rows(%n) clears(%sum) columns 128
  tile.preprocess %row_statistics pitch(%pitch) from(%q, %pitch, %q, %pitch : !tile.ptr<bf16>, !tile.ptr<bf16>) dim 64 lse(%row_statistics) rows(%n)
      clears(%sum) columns 128
  // CHECK: tile.grad_scores %dp, %ds, %stats transposed : !tile.frag<128x64, 8>, !tile.register_operand<128x64xbf16, 8>, !tile.row_statistics<64>
  tile.grad_scores %dp, %ds, %stats transposed : !tile.frag<128x64, 8>, !tile.register_operand<128x64xbf16, 8>, !tile.row_statistics<64>
  // CHECK: %dS_tile = tile.store_and_sync %dS, %ds : !tile.ring<2, <128x64xbf16, swizzled>>, !tile.register_operand<128x64xbf16, 8>
  %0 = tile.store_and_sync %dS, %ds : !tile.ring<2, <128x64xbf16, swizzled>>, !tile.register_operand<128x64xbf16, 8>
  // CHECK: tile.mma_atb %dQ, %dS_tile, %K : !tile.frag<128x64, 8>, !tile.shared<128x64xbf16, swizzled>, !tile.shared<128x128xbf16, swizzled>
  %t = tile.mma_atb %dQ, %0, %K : !tile.frag<128x64, 8>, !tile.shared<128x64xbf16, swizzled>, !tile.shared<128x128xbf16, swizzled>
  tile.wait %t : !tile.token<product>
  // CHECK: tile.add_global %sum, %dQ left(%n) through(%staging : !tile.staging<2, 32768>) : !tile.frag<128x64, 8>
  // CHECK-NOT: {
  tile.add_global %sum, %dQ left(%n) through(%staging : !tile.staging<2, 32768>) : !tile.frag<128x64, 8>
  // CHECK: tile.add_global %sum, %dQ left(%n) : !tile.frag<128x64, 8>
  tile.add_global %sum, %dQ left(%n) : !tile.frag<128x64, 8>
  %order = tile.alloc "order" : !tile.staging<2, 0>
  // CHECK: tile.add_global_ordered %sum, %dQ left(%n), %order last : !tile.frag<128x64, 8>, !tile.staging<2, 0>
  tile.add_global_ordered %sum, %dQ left(%n), %order last : !tile.frag<128x64, 8>, !tile.staging<2, 0>
  // CHECK: tile.stage %staging, %dQ : !tile.staging<2, 32768>, !tile.frag<128x64, 8>
  tile.stage %staging, %dQ : !tile.staging<2, 32768>, !tile.frag<128x64, 8>
  // CHECK: tile.add_staged %sum, %staging left(%n) columns 64 : !tile.staging<2, 32768>
  tile.add_staged %sum, %staging left(%n) columns 64 : !tile.staging<2, 32768>
  // CHECK: tile.clear %sum count(%pitch) block(%n of %n) : !tile.ptr<f32>
  tile.clear %sum count(%pitch) block(%n of %n) : !tile.ptr<f32>
  // CHECK: tile.postprocess %q stride(%pitch), %sum rows(%n of %n) by 1.250000e-01 dim 64 columns 32 : !tile.ptr<bf16>
  tile.postprocess %q stride(%pitch), %sum rows(%n of %n) by 0.125 dim 64 columns 32 : !tile.ptr<bf16>
}

// The same in turns: the region says which other key tiles add to a query tile's sum.
tile.kernel @turns(%sum: !tile.ptr<f32>, %semaphore: !tile.ptr<i32>, %row_statistics: !tile.ptr<f32>, %q: !tile.ptr<bf16>, %pitch: i64, %tile: i32)
    target("sm_90a") grid(dense heads 2 keys) schedule(#tile.warp_specialized_backward<q_tile = 64, kv_tile = 128, warps = 8, ctas_per_sm = 1, single_loop = true, dq_columns = 64>) {
  %dQ = tile.alloc "dQ" : !tile.frag<128x64, 8>
  %staging = tile.alloc "staging" : !tile.staging<2, 32768>
  // CHECK: tile.preprocess {{.*}} dim 64 {{.*}} semaphore(%semaphore)
  tile.preprocess %row_statistics pitch(%pitch) from(%q, %pitch, %q, %pitch : !tile.ptr<bf16>, !tile.ptr<bf16>) dim 64 lse(%row_statistics) rows(%tile)
      semaphore(%semaphore)
  // CHECK: tile.add_global %sum, %dQ left(%tile) through(%staging : !tile.staging<2, 32768>) semaphore(%semaphore of %tile) : !tile.frag<128x64, 8> {
  // CHECK-NEXT: ^bb0(%{{.*}}: i32):
  tile.add_global %sum, %dQ left(%tile) through(%staging : !tile.staging<2, 32768>) semaphore(%semaphore of %tile) : !tile.frag<128x64, 8> {
  ^bb0(%other: i32):
    %adds = arith.cmpi slt, %other, %tile : i32
    tile.yield %adds : i1
  }
  // CHECK: tile.add_staged %sum, %staging left(%tile) semaphore(%semaphore of %tile) columns 64 : !tile.staging<2, 32768> {
  tile.add_staged %sum, %staging left(%tile) semaphore(%semaphore of %tile) columns 64 : !tile.staging<2, 32768> {
  ^bb0(%other: i32):
    %adds = arith.cmpi slt, %other, %tile : i32
    tile.yield %adds : i1
  }
  // CHECK: tile.add_global %sum, %dQ left(%tile) through(%staging : !tile.staging<2, 32768>) semaphore(%semaphore of %tile) first(%tile) after_first : !tile.frag<128x64, 8> {
  tile.add_global %sum, %dQ left(%tile) through(%staging : !tile.staging<2, 32768>) semaphore(%semaphore of %tile) first(%tile) after_first : !tile.frag<128x64, 8> {
  ^bb0(%other: i32):
    %adds = arith.cmpi slt, %other, %tile : i32
    tile.yield %adds : i1
  }
  // CHECK: tile.add_staged %sum, %staging left(%tile) semaphore(%semaphore of %tile) first(%tile) after_first columns 64 blocks 2 : !tile.staging<2, 32768> {
  tile.add_staged %sum, %staging left(%tile) semaphore(%semaphore of %tile) first(%tile) after_first columns 64 blocks 2 : !tile.staging<2, 32768> {
  ^bb0(%other: i32):
    %adds = arith.cmpi slt, %other, %tile : i32
    tile.yield %adds : i1
  }
  // CHECK: tile.add_global %sum, %dQ left(%tile) through(%staging : !tile.staging<2, 32768>) semaphore(%semaphore of %tile) after_first sole_writer(%{{.*}}) to(%q : !tile.ptr<bf16> stride %pitch rows %tile by 1.250000e-01 dim 64) : !tile.frag<128x64, 8> {
  %alone = arith.cmpi slt, %tile, %tile : i32
  tile.add_global %sum, %dQ left(%tile) through(%staging : !tile.staging<2, 32768>) semaphore(%semaphore of %tile) after_first
      sole_writer(%alone) to(%q : !tile.ptr<bf16> stride %pitch rows %tile by 0.125 dim 64) : !tile.frag<128x64, 8> {
  ^bb0(%other: i32):
    %adds = arith.cmpi slt, %other, %tile : i32
    tile.yield %adds : i1
  }
  // CHECK: tile.skip_add %semaphore : !tile.ptr<i32>
  tile.skip_add %semaphore : !tile.ptr<i32>
  %block = tile.alloc "block" : !tile.frag<64x64, 4>
  // CHECK: tile.store %q stride(%pitch), %block by 1.250000e-01 rows(%tile, %tile) dim 56 : !tile.ptr<bf16>, !tile.frag<64x64, 4>
  tile.store %q stride(%pitch), %block by 0.125 rows(%tile, %tile) dim 56 : !tile.ptr<bf16>, !tile.frag<64x64, 4>
  // CHECK: tile.postprocess %q stride(%pitch), %sum rows(%tile of %tile) by 1.250000e-01 dim 56 columns 64 from_registers semaphore(%semaphore) : !tile.ptr<bf16>
  tile.postprocess %q stride(%pitch), %sum rows(%tile of %tile) by 0.125 dim 56 columns 64 from_registers semaphore(%semaphore) : !tile.ptr<bf16>
  // CHECK: tile.postprocess %q stride(%pitch), %sum rows(%tile of %tile) by 1.250000e-01 dim 56 columns 64 semaphore(%semaphore) before(%sum stride(%pitch)) : !tile.ptr<bf16>
  tile.postprocess %q stride(%pitch), %sum rows(%tile of %tile) by 0.125 dim 56 columns 64 semaphore(%semaphore) before(%sum stride(%pitch)) : !tile.ptr<bf16>
}
