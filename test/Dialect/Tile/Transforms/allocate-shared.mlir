// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// `tile-allocate-shared`: places in shared memory follow each other.
//
// RUN: attn-opt %s -tile-allocate-shared | FileCheck %s
// RUN: attn-opt %s -pass-pipeline="builtin.module(tile.kernel(tile-allocate-shared{limit=34688}))" | FileCheck %s
// RUN: not attn-opt %s -pass-pipeline="builtin.module(tile.kernel(tile-allocate-shared{limit=34687}))" 2>&1 | FileCheck %s --check-prefix=LIMIT
// LIMIT: error: expected at most 34687 bytes of shared memory, got: 34688 with #tile.tiled<q_tile = 128, kv_tile = 64, warps = 4, ctas_per_sm = 2>
// LIMIT-NOT: error:

// Offsets are multiples of 128 bytes; fragments and rows get none.
// CHECK: tile.kernel @forward() {{.*}} ctas_per_sm = 2>) shared 34688 {
tile.kernel @forward() target("sm_80") grid(dense heads 1)
    schedule(#tile.tiled<q_tile = 128, kv_tile = 64, warps = 4, ctas_per_sm = 2>) {
  // 16 rows x 40 elements x 2 bytes = 1280 = 10 * 128
  // CHECK-NEXT: %a = tile.alloc "a" at 0 : !tile.shared<16x32xbf16, 40>
  %a = tile.alloc "a" : !tile.shared<16x32xbf16, 40>
  // CHECK-NEXT: tile.alloc "s" : !tile.frag<128x64, 4>
  %s = tile.alloc "s" : !tile.frag<128x64, 4>
  // 16 x 24 x 2 = 768; an offset given before is given anew.
  // CHECK-NEXT: %b = tile.alloc "b" at 1280 : !tile.shared<16x16xbf16, 24>
  %b = tile.alloc "b" at 4096 : !tile.shared<16x16xbf16, 24>
  // 16 x 19 x 2 = 608, rounded up to 640
  // CHECK-NEXT: %c = tile.alloc "c" at 2048 : !tile.shared<16x16xf16, 19>
  %c = tile.alloc "c" : !tile.shared<16x16xf16, 19>
  // CHECK-NEXT: tile.alloc "row" : !tile.softmax_state<128, 4>
  %row = tile.alloc "row" : !tile.softmax_state<128, 4>
  // 64 x 250 x 2 = 32000
  // CHECK-NEXT: %d = tile.alloc "d" at 2688 : !tile.shared<64x240xbf16, 250>
  %d = tile.alloc "d" : !tile.shared<64x240xbf16, 250>
}

// No shared memory is 0 bytes.
// CHECK: tile.kernel @none() {{.*}} shared 0 {
tile.kernel @none() target("sm_80") grid(dense heads 1) schedule(#tile.tiled<q_tile = 128, kv_tile = 64, warps = 4, ctas_per_sm = 2>) {
}

// What is written once the last reader of another tile is done lies in its bytes; what is read in a loop stays.
// CHECK: tile.kernel @reused({{.*}} shared 7040 {
tile.kernel @reused(%n: i32) target("sm_80") grid(dense heads 1 tiles 1)
    schedule(#tile.cta_per_sequence<q_tile = 16, kv_tile = 16, warps = 1, ctas_per_sm = 2>) {
  // CHECK: %V = tile.alloc "V" at 0 : !tile.shared<16x64xbf16, 72>
  %V = tile.alloc "V" : !tile.shared<16x64xbf16, 72>
  // CHECK: %K = tile.alloc "K" at 2304 : !tile.shared<16x64xbf16, 72>
  %K = tile.alloc "K" : !tile.shared<16x64xbf16, 72>
  // CHECK: %P = tile.alloc "P" at 0 : !tile.shared<16x16xbf16, 24>
  %P = tile.alloc "P" : !tile.shared<16x16xbf16, 24>
  // Not in K's bytes, which are read in the loop, and not in V's, where P is.
  // CHECK: %dS = tile.alloc "dS" at 4608 : !tile.shared<16x64xbf16, 76>
  %dS = tile.alloc "dS" : !tile.shared<16x64xbf16, 76>
  %s = tile.alloc "s" : !tile.frag<16x16, 1>
  %wide = tile.alloc "wide" : !tile.frag<16x64, 1>
  tile.scale %V by -1.000000e+00 : !tile.shared<16x64xbf16, 72>
  scf.for %i = %n to %n step %n : i32 {
    tile.scale %K by -1.000000e+00 : !tile.shared<16x64xbf16, 72>
  }
  tile.convert %P, %s : !tile.shared<16x16xbf16, 24>, !tile.frag<16x16, 1>
  tile.convert %dS, %wide : !tile.shared<16x64xbf16, 76>, !tile.frag<16x64, 1>
  tile.scale %P by -1.000000e+00 : !tile.shared<16x16xbf16, 24>
}

// What nobody reads is still being written until its copy is waited for.
// CHECK: tile.kernel @flight({{.*}} shared 4608 {
tile.kernel @flight(%from: !tile.ptr<bf16>, %stride: i64, %n: i32) target("sm_80") grid(dense heads 1)
    schedule(#tile.tiled<q_tile = 16, kv_tile = 16, warps = 1, ctas_per_sm = 2>) {
  // CHECK: %K = tile.alloc "K" at 0 : !tile.shared<16x64xbf16, 72>
  %K = tile.alloc "K" : !tile.shared<16x64xbf16, 72>
  // CHECK: %V = tile.alloc "V" at 2304 : !tile.shared<16x64xbf16, 72>
  %V = tile.alloc "V" : !tile.shared<16x64xbf16, 72>
  %k = tile.copy_async %K, %from stride(%stride) rows(%n) dim 64 : !tile.shared<16x64xbf16, 72>, !tile.ptr<bf16>
  %v = tile.copy_async %V, %from stride(%stride) rows(%n) dim 64 : !tile.shared<16x64xbf16, 72>, !tile.ptr<bf16>
  tile.wait %k : !tile.token<copy>
  tile.wait %v : !tile.token<copy>
}

// Functions that are called have the first bytes, which the kernel says.
// CHECK: tile.kernel @calls({{.*}} shared 1536 {
tile.kernel @calls(%p: !tile.ptr<i32>, %n: i32) target("sm_80") grid(dense heads 1)
    schedule(#tile.tiled<q_tile = 128, kv_tile = 64, warps = 4, ctas_per_sm = 2>) shared 1000 {
  // CHECK-NEXT: tile.alloc "c" at 1024
  %c = tile.alloc "c" : !tile.shared<16x16xf16, 16>
  tile.call "f" of "attn/f.h" (%p) from (%n) : (!tile.ptr<i32>), (i32)
}
