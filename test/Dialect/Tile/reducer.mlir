// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What a reducer adds to roles, in both forms.
// RUN: attn-opt %s | attn-opt | FileCheck %s
// RUN: attn-opt %s -mlir-print-op-generic | attn-opt | FileCheck %s

// CHECK: schedule(#tile.warp_specialized_backward<q_tile = 64, kv_tile = 128, warps = 8, blocks = 1, single_loop = true, dq_columns = 64>)
tile.kernel @keys(%sum: !tile.ptr<f32>, %left: i32, %some: i1) target("sm_90a") grid(dense heads 1 keys)
    schedule(#tile.warp_specialized_backward<q_tile = 64, kv_tile = 128, warps = 8, blocks = 1, single_loop = true, dq_columns = 64>) {
  %K = tile.place "K" : !tile.ring<1, !tile.shared<128x128xbf16, swizzled>>
  %Q = tile.place "Q" : !tile.ring<2, !tile.shared<64x128xbf16, swizzled>>
  %dS = tile.place "dS" : !tile.ring<2, !tile.shared<128x64xbf16, swizzled>>
  %staging = tile.place "staging" : !tile.staging<4, 16384>
  %stats = tile.place "stats" : !tile.ring<2, !tile.statistics<64>>
  // CHECK: tile.roles registers(32, 208, 64) producer {
  tile.roles registers(32, 208, 64) producer {
  // CHECK: } consumer {
  } consumer {
    %s = tile.place "s" : !tile.frag<128x64, 8>
    %p = tile.place "p" : !tile.held<128x64xbf16, 8>
    %k = tile.take %K : !tile.ring<1, !tile.shared<128x128xbf16, swizzled>>
    // CHECK: %K_rows = tile.own_rows %K_tile : !tile.shared<128x128xbf16, swizzled>
    %rows = tile.own_rows %k : !tile.shared<128x128xbf16, swizzled>
    // CHECK: %Q_tile = tile.take %Q if(%some) else(%K_tile : !tile.shared<128x128xbf16, swizzled>) : !tile.ring<2, <64x128xbf16, swizzled>>
    %q = tile.take %Q if(%some) else(%k : !tile.shared<128x128xbf16, swizzled>) : !tile.ring<2, !tile.shared<64x128xbf16, swizzled>>
    %t = tile.mma_qk %s, %rows, %q : !tile.frag<128x64, 8>, !tile.shared<128x128xbf16, swizzled>, !tile.shared<64x128xbf16, swizzled>
    tile.wait %t : !tile.token<product>
    // CHECK: %[[NONE:.*]] = tile.no_product
    %none = tile.no_product
    // CHECK: tile.wait %[[NONE]] : !tile.token<product>
    tile.wait %none : !tile.token<product>
    // CHECK: tile.round %p, %s {at_once} : !tile.held<128x64xbf16, 8>, !tile.frag<128x64, 8>
    tile.round %p, %s {at_once} : !tile.held<128x64xbf16, 8>, !tile.frag<128x64, 8>
    // CHECK: %{{.*}} = tile.aside %dS : !tile.ring<2, <128x64xbf16, swizzled>>, !tile.held<128x64xbf16, 8>
    %aside = tile.aside %dS : !tile.ring<2, !tile.shared<128x64xbf16, swizzled>>, !tile.held<128x64xbf16, 8>
    // CHECK: tile.put_zeros %dS : !tile.ring<2, <128x64xbf16, swizzled>>
    tile.put_zeros %dS : !tile.ring<2, !tile.shared<128x64xbf16, swizzled>>
    // CHECK: tile.put %dS, %p : !tile.ring<2, <128x64xbf16, swizzled>>, !tile.held<128x64xbf16, 8>
    tile.put %dS, %p : !tile.ring<2, !tile.shared<128x64xbf16, swizzled>>, !tile.held<128x64xbf16, 8>
    // CHECK: tile.publish %dS : !tile.ring<2, <128x64xbf16, swizzled>>
    tile.publish %dS : !tile.ring<2, !tile.shared<128x64xbf16, swizzled>>
    // CHECK: tile.release %stats fenced : !tile.ring<2, !tile.statistics<64>>
    tile.release %stats fenced : !tile.ring<2, !tile.statistics<64>>
    // CHECK: %Q_passed = tile.pass %Q : !tile.ring<2, <64x128xbf16, swizzled>>
    %passed = tile.pass %Q : !tile.ring<2, !tile.shared<64x128xbf16, swizzled>>
    // CHECK: tile.release %Q passed when(%some) : !tile.ring<2, <64x128xbf16, swizzled>>
    tile.release %Q passed when(%some) : !tile.ring<2, !tile.shared<64x128xbf16, swizzled>>
    // CHECK: tile.release %Q passed : !tile.ring<2, <64x128xbf16, swizzled>>
    tile.release %Q passed : !tile.ring<2, !tile.shared<64x128xbf16, swizzled>>
  // CHECK: } reducer {
  } reducer {
    %dQ = tile.place "dQ" : !tile.frag<64x64, 4>
    %k = tile.take %K : !tile.ring<1, !tile.shared<128x128xbf16, swizzled>>
    %ds = tile.take %dS : !tile.ring<2, !tile.shared<128x64xbf16, swizzled>>
    // CHECK: tile.mma_tn %dQ, %dS_tile, %K_tile block 1 of 2 : !tile.frag<64x64, 4>, !tile.shared<128x64xbf16, swizzled>, !tile.shared<128x128xbf16, swizzled>
    %t = tile.mma_tn %dQ, %ds, %k block 1 of 2 : !tile.frag<64x64, 4>, !tile.shared<128x64xbf16, swizzled>, !tile.shared<128x128xbf16, swizzled>
    tile.wait %t : !tile.token<product>
    tile.stage %staging, %dQ : !tile.staging<4, 16384>, !tile.frag<64x64, 4>
  // CHECK: } adder {
  } adder {
    // CHECK: tile.add_staged %sum, %staging left(%left) columns 64 blocks 2 : !tile.staging<4, 16384>
    tile.add_staged %sum, %staging left(%left) columns 64 blocks 2 : !tile.staging<4, 16384>
  }
}
