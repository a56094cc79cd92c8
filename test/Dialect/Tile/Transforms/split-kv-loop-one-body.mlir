// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// With `single_loop` in the schedule a walk of one run stays one loop, which asks which
// tiles need a test.
//
// RUN: attn-opt %s --pass-pipeline="builtin.module(attn-choose-schedule,convert-attn-to-tile,tile.kernel(tile-split-kv-loop,canonicalize,cse))" | FileCheck %s

// CHECK-LABEL: tile.kernel @window
// CHECK-COUNT-1: scf.for
// CHECK: %[[PARTIAL:.*]] = arith.ori
// CHECK: scf.if %[[PARTIAL]]
// CHECK-NEXT: tile.apply_mask
// CHECK: tile.mma_ab %{{.*}} when(%[[PARTIAL]]) {guarded}
// CHECK-NOT: scf.for
// CHECK: tile.normalize
attn.problem @window mask(#attn.band<left = 255, right = 0>) layout(bshd) heads(2) dims(64) dtype(bf16)
  schedule(#tile.tiled<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1, single_loop = true>)
