// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Walks beside a reducer that `tile-overlap-gradients` cannot turn.
//
// RUN: attn-opt %s -tile-overlap-gradients -split-input-file -verify-diagnostics

tile.kernel @no_products(%lo: i32, %hi: i32) target("sm_90a") grid(dense heads 1 keys)
    schedule(#tile.warp_specialized_backward<q_tile = 64, kv_tile = 128, warps = 8, ctas_per_sm = 1, single_loop = true, dq_columns = 64>) {
  tile.roles registers(32, 208, 64) producer {
  } consumer {
    // expected-error @below {{expected scores of a query tile first, and what follows from them stored into a ring and multiplied with it last}}
    tile.kv_loop [%lo, %hi] tests [[]] carry() {
    ^bb0(%j: i32, %next: i32, %more: i1):
      tile.yield
    }
  } dq_mma {
  }
}

// -----

tile.kernel @other_tile(%lo: i32, %hi: i32) target("sm_90a") grid(dense heads 1 keys)
    schedule(#tile.warp_specialized_backward<q_tile = 64, kv_tile = 128, warps = 8, ctas_per_sm = 1, single_loop = true, dq_columns = 64>) {
  %K = tile.alloc "K" : !tile.ring<1, !tile.shared<128x128xbf16, swizzled>>
  %Q = tile.alloc "Q" : !tile.ring<2, !tile.shared<64x128xbf16, swizzled>>
  %dO = tile.alloc "dO" : !tile.ring<2, !tile.shared<64x128xbf16, swizzled>>
  %dS = tile.alloc "dS" : !tile.ring<2, !tile.shared<128x64xbf16, swizzled>>
  tile.roles registers(32, 208, 64) producer {
  } consumer {
    %s = tile.alloc "s" : !tile.frag<128x64, 8>
    %dK = tile.alloc "dK" : !tile.frag<128x128, 8>
    %p = tile.alloc "p" : !tile.register_operand<128x64xbf16, 8>
    %k = tile.consumer_wait %K : !tile.ring<1, !tile.shared<128x128xbf16, swizzled>>
    // The last product is not with the tile that scores are of.
    // expected-error @below {{expected scores of a query tile first, and what follows from them stored into a ring and multiplied with it last}}
    tile.kv_loop [%lo, %hi] tests [[]] carry() {
    ^bb0(%j: i32, %next: i32, %more: i1):
      %q = tile.consumer_wait %Q : !tile.ring<2, !tile.shared<64x128xbf16, swizzled>>
      %ts = tile.mma_abt %s, %k, %q {recomputed} : !tile.frag<128x64, 8>, !tile.shared<128x128xbf16, swizzled>, !tile.shared<64x128xbf16, swizzled>
      tile.wait %ts : !tile.token<product>
      tile.convert %p, %s {at_once} : !tile.register_operand<128x64xbf16, 8>, !tile.frag<128x64, 8>
      tile.producer_store %dS, %p : !tile.ring<2, !tile.shared<128x64xbf16, swizzled>>, !tile.register_operand<128x64xbf16, 8>
      tile.producer_commit %dS : !tile.ring<2, !tile.shared<128x64xbf16, swizzled>>
      %o = tile.consumer_wait %dO : !tile.ring<2, !tile.shared<64x128xbf16, swizzled>>
      %tk = tile.mma_ab %dK, %p, %o : !tile.frag<128x128, 8>, !tile.register_operand<128x64xbf16, 8>, !tile.shared<64x128xbf16, swizzled>
      tile.wait %tk : !tile.token<product>
      tile.consumer_release %dO : !tile.ring<2, !tile.shared<64x128xbf16, swizzled>>
      tile.consumer_release %Q : !tile.ring<2, !tile.shared<64x128xbf16, swizzled>>
      tile.yield
    }
    tile.consumer_release %K : !tile.ring<1, !tile.shared<128x128xbf16, swizzled>>
  } dq_mma {
  }
}
