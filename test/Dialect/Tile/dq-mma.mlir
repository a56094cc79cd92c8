// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What a reducer adds to roles, in both forms.
// RUN: attn-opt %s | attn-opt | FileCheck %s
// RUN: attn-opt %s -mlir-print-op-generic | attn-opt | FileCheck %s

// CHECK: schedule(#tile.warp_specialized_backward<q_tile = 64, kv_tile = 128, warps = 8, ctas_per_sm = 1, single_loop = true, dq_columns = 64>)
tile.kernel @keys(%sum: !tile.ptr<f32>, %left: i32, %some: i1) target("sm_90a") grid(dense heads 1 keys)
    schedule(#tile.warp_specialized_backward<q_tile = 64, kv_tile = 128, warps = 8, ctas_per_sm = 1, single_loop = true, dq_columns = 64>) {
  %K = tile.alloc "K" : !tile.ring<1, !tile.shared<128x128xbf16, swizzled>>
  %Q = tile.alloc "Q" : !tile.ring<2, !tile.shared<64x128xbf16, swizzled>>
  %dS = tile.alloc "dS" : !tile.ring<2, !tile.shared<128x64xbf16, swizzled>>
  %staging = tile.alloc "staging" : !tile.staging<4, 16384>
  %stats = tile.alloc "stats" : !tile.ring<2, !tile.row_statistics<64>>
  // CHECK: tile.roles registers(32, 208, 64) producer {
  tile.roles registers(32, 208, 64) producer {
  // CHECK: } consumer {
  } consumer {
    %s = tile.alloc "s" : !tile.frag<128x64, 8>
    %p = tile.alloc "p" : !tile.register_operand<128x64xbf16, 8>
    %k = tile.consumer_wait %K : !tile.ring<1, !tile.shared<128x128xbf16, swizzled>>
    // CHECK: %K_rows = tile.warpgroup_rows %K_tile : !tile.shared<128x128xbf16, swizzled>
    %rows = tile.warpgroup_rows %k : !tile.shared<128x128xbf16, swizzled>
    // CHECK: %Q_tile = tile.consumer_wait %Q if(%some) else(%K_tile : !tile.shared<128x128xbf16, swizzled>) : !tile.ring<2, <64x128xbf16, swizzled>>
    %q = tile.consumer_wait %Q if(%some) else(%k : !tile.shared<128x128xbf16, swizzled>) : !tile.ring<2, !tile.shared<64x128xbf16, swizzled>>
    %t = tile.mma_abt %s, %rows, %q : !tile.frag<128x64, 8>, !tile.shared<128x128xbf16, swizzled>, !tile.shared<64x128xbf16, swizzled>
    tile.wait %t : !tile.token<product>
    // CHECK: %[[NONE:.*]] = tile.null_product
    %none = tile.null_product
    // CHECK: tile.wait %[[NONE]] : !tile.token<product>
    tile.wait %none : !tile.token<product>
    // CHECK: tile.convert %p, %s {at_once} : !tile.register_operand<128x64xbf16, 8>, !tile.frag<128x64, 8>
    tile.convert %p, %s {at_once} : !tile.register_operand<128x64xbf16, 8>, !tile.frag<128x64, 8>
    // CHECK: %{{.*}} = tile.stash %dS : !tile.ring<2, <128x64xbf16, swizzled>>, !tile.register_operand<128x64xbf16, 8>
    %stash = tile.stash %dS : !tile.ring<2, !tile.shared<128x64xbf16, swizzled>>, !tile.register_operand<128x64xbf16, 8>
    // CHECK: tile.producer_store %dS : !tile.ring<2, <128x64xbf16, swizzled>>
    tile.producer_store %dS : !tile.ring<2, !tile.shared<128x64xbf16, swizzled>>
    // CHECK: tile.producer_store %dS, %p : !tile.ring<2, <128x64xbf16, swizzled>>, !tile.register_operand<128x64xbf16, 8>
    tile.producer_store %dS, %p : !tile.ring<2, !tile.shared<128x64xbf16, swizzled>>, !tile.register_operand<128x64xbf16, 8>
    // CHECK: tile.producer_commit %dS : !tile.ring<2, <128x64xbf16, swizzled>>
    tile.producer_commit %dS : !tile.ring<2, !tile.shared<128x64xbf16, swizzled>>
    // CHECK: tile.consumer_release %stats fenced : !tile.ring<2, !tile.row_statistics<64>>
    tile.consumer_release %stats fenced : !tile.ring<2, !tile.row_statistics<64>>
    // CHECK: %Q_previous = tile.consumer_advance %Q : !tile.ring<2, <64x128xbf16, swizzled>>
    %passed = tile.consumer_advance %Q : !tile.ring<2, !tile.shared<64x128xbf16, swizzled>>
    // CHECK: tile.consumer_release %Q passed when(%some) : !tile.ring<2, <64x128xbf16, swizzled>>
    tile.consumer_release %Q passed when(%some) : !tile.ring<2, !tile.shared<64x128xbf16, swizzled>>
    // CHECK: tile.consumer_release %Q passed : !tile.ring<2, <64x128xbf16, swizzled>>
    tile.consumer_release %Q passed : !tile.ring<2, !tile.shared<64x128xbf16, swizzled>>
  // CHECK: } dq_mma {
  } dq_mma {
    %dQ = tile.alloc "dQ" : !tile.frag<64x64, 4>
    %k = tile.consumer_wait %K : !tile.ring<1, !tile.shared<128x128xbf16, swizzled>>
    %ds = tile.consumer_wait %dS : !tile.ring<2, !tile.shared<128x64xbf16, swizzled>>
    // CHECK: tile.mma_atb %dQ, %dS_tile, %K_tile block 1 of 2 : !tile.frag<64x64, 4>, !tile.shared<128x64xbf16, swizzled>, !tile.shared<128x128xbf16, swizzled>
    %t = tile.mma_atb %dQ, %ds, %k block 1 of 2 : !tile.frag<64x64, 4>, !tile.shared<128x64xbf16, swizzled>, !tile.shared<128x128xbf16, swizzled>
    tile.wait %t : !tile.token<product>
    tile.stage %staging, %dQ : !tile.staging<4, 16384>, !tile.frag<64x64, 4>
  // CHECK: } dq_store {
  } dq_store {
    // CHECK: tile.add_staged %sum, %staging left(%left) columns 64 blocks 2 : !tile.staging<4, 16384>
    tile.add_staged %sum, %staging left(%left) columns 64 blocks 2 : !tile.staging<4, 16384>
  }
}
