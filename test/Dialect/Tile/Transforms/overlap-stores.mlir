// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A result is stored while the next product is computed.
//
// RUN: attn-opt %s -tile-overlap-stores | FileCheck %s
// RUN: attn-opt %s -tile-overlap-stores -tile-overlap-stores | FileCheck %s

// CHECK-LABEL: tile.kernel @moves
tile.kernel @moves(%dv: !tile.ptr<bf16>, %dq: !tile.ptr<bf16>, %row: i64, %n: i32) target("sm_90a") grid(packed heads 1)
    schedule(#tile.single_pass_backward<q_tile = 128, kv_tile = 128, warps = 8, ctas_per_sm = 1>) {
  %P = tile.alloc "P" : !tile.shared<128x128xbf16, swizzled>
  %dO = tile.alloc "dO" : !tile.shared<128x64xbf16, swizzled>
  %dV = tile.alloc "dV" : !tile.frag<128x64, 8>
  %dQ = tile.alloc "dQ" : !tile.frag<128x64, 8>
  %dS = tile.alloc "dS" : !tile.register_operand<128x128xbf16, 8>
  %t = tile.mma_atb %dV, %P, %dO : !tile.frag<128x64, 8>, !tile.shared<128x128xbf16, swizzled>, !tile.shared<128x64xbf16, swizzled>
  // CHECK: tile.wait
  // CHECK-NEXT: tile.clear %dQ
  // CHECK-NEXT: %[[U:.*]] = tile.mma_ab %dQ
  // CHECK-NEXT: tile.scale %dV by 2.0
  // CHECK-NEXT: %[[AT:.*]] = tile.advance %dv, %row
  // CHECK-NEXT: tile.store %[[AT]] stride(%row), %dV
  // CHECK-NEXT: tile.wait %[[U]]
  // The last result has no product after it.
  // CHECK-NEXT: tile.store %dq stride(%row), %dQ
  tile.wait %t : !tile.token<product>
  tile.scale %dV by 2.0 : !tile.frag<128x64, 8>
  %at = tile.advance %dv, %row : !tile.ptr<bf16>
  tile.store %at stride(%row), %dV rows(%n, %n) dim 64 : !tile.ptr<bf16>, !tile.frag<128x64, 8>
  tile.clear %dQ : !tile.frag<128x64, 8>
  %u = tile.mma_ab %dQ, %dS, %dO : !tile.frag<128x64, 8>, !tile.register_operand<128x128xbf16, 8>, !tile.shared<128x64xbf16, swizzled>
  tile.wait %u : !tile.token<product>
  tile.store %dq stride(%row), %dQ rows(%n, %n) dim 64 : !tile.ptr<bf16>, !tile.frag<128x64, 8>
}

// The next product overwrites the result.
// CHECK-LABEL: tile.kernel @overwritten
tile.kernel @overwritten(%dv: !tile.ptr<bf16>, %row: i64, %n: i32) target("sm_90a") grid(packed heads 1)
    schedule(#tile.single_pass_backward<q_tile = 128, kv_tile = 128, warps = 8, ctas_per_sm = 1>) {
  %P = tile.alloc "P" : !tile.shared<128x128xbf16, swizzled>
  %dO = tile.alloc "dO" : !tile.shared<128x64xbf16, swizzled>
  %dV = tile.alloc "dV" : !tile.frag<128x64, 8>
  %t = tile.mma_atb %dV, %P, %dO : !tile.frag<128x64, 8>, !tile.shared<128x128xbf16, swizzled>, !tile.shared<128x64xbf16, swizzled>
  // CHECK: tile.wait
  // CHECK-NEXT: tile.store %dv
  tile.wait %t : !tile.token<product>
  tile.store %dv stride(%row), %dV rows(%n, %n) dim 64 : !tile.ptr<bf16>, !tile.frag<128x64, 8>
  %u = tile.mma_atb %dV, %P, %dO : !tile.frag<128x64, 8>, !tile.shared<128x128xbf16, swizzled>, !tile.shared<128x64xbf16, swizzled>
  tile.wait %u : !tile.token<product>
}

// Another op before the next product writes global memory, or uses a value of the epilogue.
// CHECK-LABEL: tile.kernel @ordered
tile.kernel @ordered(%dv: !tile.ptr<bf16>, %row: i64, %n: i32) target("sm_90a") grid(packed heads 1)
    schedule(#tile.single_pass_backward<q_tile = 128, kv_tile = 128, warps = 8, ctas_per_sm = 1>) {
  %P = tile.alloc "P" : !tile.shared<128x128xbf16, swizzled>
  %dO = tile.alloc "dO" : !tile.shared<128x64xbf16, swizzled>
  %dV = tile.alloc "dV" : !tile.frag<128x64, 8>
  %dK = tile.alloc "dK" : !tile.frag<128x64, 8>
  %dQ = tile.alloc "dQ" : !tile.frag<128x64, 8>
  %t = tile.mma_atb %dV, %P, %dO : !tile.frag<128x64, 8>, !tile.shared<128x128xbf16, swizzled>, !tile.shared<128x64xbf16, swizzled>
  // CHECK: tile.wait
  // CHECK-NEXT: tile.store %dv stride(%row), %dV
  // CHECK-NEXT: tile.store_padding
  tile.wait %t : !tile.token<product>
  tile.store %dv stride(%row), %dV rows(%n, %n) dim 64 : !tile.ptr<bf16>, !tile.frag<128x64, 8>
  tile.store_padding %dv stride(%row) rows(%n) dim 64 : !tile.ptr<bf16>
  %u = tile.mma_atb %dK, %P, %dO : !tile.frag<128x64, 8>, !tile.shared<128x128xbf16, swizzled>, !tile.shared<128x64xbf16, swizzled>
  // CHECK: tile.wait
  // CHECK: tile.store %{{.*}} stride(%{{.*}}), %dK
  // CHECK-NEXT: arith.muli
  // CHECK-NEXT: tile.mma_atb %dQ
  tile.wait %u : !tile.token<product>
  %wide = arith.extsi %n : i32 to i64
  %at = tile.advance %dv, %wide : !tile.ptr<bf16>
  tile.store %at stride(%row), %dK rows(%n, %n) dim 64 : !tile.ptr<bf16>, !tile.frag<128x64, 8>
  %twice = arith.muli %wide, %wide : i64
  %w = tile.mma_atb %dQ, %P, %dO : !tile.frag<128x64, 8>, !tile.shared<128x128xbf16, swizzled>, !tile.shared<128x64xbf16, swizzled>
  tile.wait %w : !tile.token<product>
  %to = tile.advance %dv, %twice : !tile.ptr<bf16>
  tile.store %to stride(%row), %dQ rows(%n, %n) dim 64 : !tile.ptr<bf16>, !tile.frag<128x64, 8>
}

// Products of kernels without roles are complete when they are issued.
// CHECK-LABEL: tile.kernel @synchronous
tile.kernel @synchronous(%dv: !tile.ptr<bf16>, %row: i64, %n: i32) target("sm_80") grid(packed heads 1 tiles 1)
    schedule(#tile.cta_per_sequence<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
  %P = tile.alloc "P" : !tile.shared<64x64xbf16, 72>
  %dO = tile.alloc "dO" : !tile.shared<64x64xbf16, 72>
  %dV = tile.alloc "dV" : !tile.frag<64x64, 4>
  %dK = tile.alloc "dK" : !tile.frag<64x64, 4>
  %t = tile.mma_atb %dV, %P, %dO : !tile.frag<64x64, 4>, !tile.shared<64x64xbf16, 72>, !tile.shared<64x64xbf16, 72>
  // CHECK: tile.wait
  // CHECK-NEXT: tile.store %dv
  // CHECK-NEXT: tile.mma_atb %dK
  tile.wait %t : !tile.token<product>
  tile.store %dv stride(%row), %dV rows(%n, %n) dim 64 : !tile.ptr<bf16>, !tile.frag<64x64, 4>
  %u = tile.mma_atb %dK, %P, %dO : !tile.frag<64x64, 4>, !tile.shared<64x64xbf16, 72>, !tile.shared<64x64xbf16, 72>
  tile.wait %u : !tile.token<product>
}
