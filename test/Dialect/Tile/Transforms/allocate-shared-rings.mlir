// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// `tile-allocate-shared` with rings: they come first, at multiples of 1024, which their
// swizzle wants; then the barriers of all of them, 16 bytes a stage, and what else there is.
//
// RUN: attn-opt %s -tile-allocate-shared | FileCheck %s
// RUN: not attn-opt %s -pass-pipeline="builtin.module(tile.kernel(tile-allocate-shared{limit=76287}))" 2>&1 | FileCheck %s --check-prefix=LIMIT
// LIMIT: error: expected at most 76287 bytes of shared memory, got: 76288 with #tile.warp_specialized<q_tile = 64, kv_tile = 32, warps = 4, ctas_per_sm = 1>

// CHECK: tile.kernel @rings() {{.*}} shared 76288 {
tile.kernel @rings() target("sm_90a") grid(dense heads 1)
    schedule(#tile.warp_specialized<q_tile = 64, kv_tile = 32, warps = 4, ctas_per_sm = 1>) {
  // 65536 + 80 bytes of barriers; two slots of two barriers and of the words, rounded up to 16 bytes
  // CHECK-NEXT: %mailbox = tile.alloc "mailbox" at 65616 : !tile.mailbox<5>
  %mailbox = tile.alloc "mailbox" : !tile.mailbox<5>
  // 80 columns are two chunks of 128 bytes a row: 64 x 2 x 128 = 16384
  // CHECK-NEXT: tile.alloc "Q" at 0 barriers 65536 : !tile.ring<1, <64x80xbf16, swizzled>>
  %Q = tile.alloc "Q" : !tile.ring<1, !tile.shared<64x80xbf16, swizzled>>
  // A tile that is swizzled is at a multiple of 1024 too: behind 65712
  // CHECK-NEXT: tile.alloc "box" at 66560 : !tile.shared<64x64xbf16, swizzled>
  %box = tile.alloc "box" : !tile.shared<64x64xbf16, swizzled>
  // Others are not: 74752
  // CHECK-NEXT: tile.alloc "plain" at 74752 : !tile.shared<16x16xbf16, 24>
  %plain = tile.alloc "plain" : !tile.shared<16x16xbf16, 24>
  // Four of 12288 bytes, behind Q
  // CHECK-NEXT: tile.alloc "K" at 16384 barriers 65552 : !tile.ring<4, <96x64xbf16, swizzled>>
  %K = tile.alloc "K" at 64 barriers 64 : !tile.ring<4, !tile.shared<96x64xbf16, swizzled>>
  // CHECK-NEXT: tile.roles
  tile.roles registers(40, 232) producer {
  } consumer {
    // CHECK: tile.alloc "last" at 75520 : !tile.shared<16x16xbf16, 24>
    %last = tile.alloc "last" : !tile.shared<16x16xbf16, 24>
  }
}
