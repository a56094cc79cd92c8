// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: attn-opt %s -split-input-file -verify-diagnostics

tile.kernel @k(%sum: !tile.ptr<f32>, %left: i32, %some: i1) target("sm_90a") grid(dense heads 1 keys)
    schedule(#tile.warp_specialized_backward<q_tile = 64, kv_tile = 128, warps = 8, ctas_per_sm = 1, single_loop = true, dq_columns = 64>) {
  // tile.roles C1
  // expected-error @below {{'tile.roles' op expected registers of a dQ MMA warpgroup if there is one, and only then}}
  tile.roles registers(32, 208) producer {
  } consumer {
  } dq_mma {
  }
}

// -----

tile.kernel @k(%sum: !tile.ptr<f32>, %left: i32, %some: i1) target("sm_90a") grid(dense heads 1 keys)
    schedule(#tile.warp_specialized_backward<q_tile = 64, kv_tile = 128, warps = 8, ctas_per_sm = 1, single_loop = true, dq_columns = 64>) {
  // C1
  // expected-error @below {{'tile.roles' op expected registers of a dQ MMA warpgroup if there is one, and only then}}
  tile.roles registers(32, 208, 64) producer {
  } consumer {
  }
}

// -----

tile.kernel @k(%sum: !tile.ptr<f32>, %left: i32, %some: i1) target("sm_90a") grid(dense heads 1 keys)
    schedule(#tile.warp_specialized_backward<q_tile = 64, kv_tile = 128, warps = 8, ctas_per_sm = 1, single_loop = true, dq_columns = 64>) {
  %Q = tile.alloc "Q" : !tile.ring<2, !tile.shared<64x128xbf16, swizzled>>
  // tile.consumer_wait C1
  // expected-error @below {{'tile.consumer_wait' op expected `if` with `else`, or neither}}
  %q = tile.consumer_wait %Q if(%some) : !tile.ring<2, !tile.shared<64x128xbf16, swizzled>>
}

// -----

tile.kernel @k(%sum: !tile.ptr<f32>, %left: i32, %some: i1) target("sm_90a") grid(dense heads 1 keys)
    schedule(#tile.warp_specialized_backward<q_tile = 64, kv_tile = 128, warps = 8, ctas_per_sm = 1, single_loop = true, dq_columns = 64>) {
  %K = tile.alloc "K" : !tile.shared<128x64xbf16, swizzled>
  %Q = tile.alloc "Q" : !tile.ring<2, !tile.shared<64x128xbf16, swizzled>>
  // C1: fewer columns
  // expected-error @below {{'tile.consumer_wait' op expected another tile like those of '!tile.ring<2, <64x128xbf16, swizzled>>', got: '!tile.shared<128x64xbf16, swizzled>'}}
  %q = tile.consumer_wait %Q if(%some) else(%K : !tile.shared<128x64xbf16, swizzled>) : !tile.ring<2, !tile.shared<64x128xbf16, swizzled>>
}

// -----

tile.kernel @k(%sum: !tile.ptr<f32>, %left: i32, %some: i1) target("sm_90a") grid(dense heads 1 keys)
    schedule(#tile.warp_specialized_backward<q_tile = 64, kv_tile = 128, warps = 8, ctas_per_sm = 1, single_loop = true, dq_columns = 64>) {
  %K = tile.alloc "K" : !tile.shared<32x128xbf16, swizzled>
  %Q = tile.alloc "Q" : !tile.ring<2, !tile.shared<64x128xbf16, swizzled>>
  // C1: fewer rows
  // expected-error @below {{'tile.consumer_wait' op expected another tile like those of}}
  %q = tile.consumer_wait %Q if(%some) else(%K : !tile.shared<32x128xbf16, swizzled>) : !tile.ring<2, !tile.shared<64x128xbf16, swizzled>>
}

// -----

tile.kernel @k(%sum: !tile.ptr<f32>, %left: i32, %some: i1) target("sm_90a") grid(dense heads 1 keys)
    schedule(#tile.warp_specialized_backward<q_tile = 64, kv_tile = 128, warps = 8, ctas_per_sm = 1, single_loop = true, dq_columns = 64>) {
  %Q = tile.alloc "Q" : !tile.ring<1, !tile.shared<64x128xbf16, swizzled>>
  // tile.consumer_advance C1
  // expected-error @below {{'tile.consumer_advance' op expected a ring of two stages or more, got: '!tile.ring<1, <64x128xbf16, swizzled>>'}}
  %q = tile.consumer_advance %Q : !tile.ring<1, !tile.shared<64x128xbf16, swizzled>>
}

// -----

tile.kernel @k(%sum: !tile.ptr<f32>, %left: i32, %some: i1) target("sm_90a") grid(dense heads 1 keys)
    schedule(#tile.warp_specialized_backward<q_tile = 64, kv_tile = 128, warps = 8, ctas_per_sm = 1, single_loop = true, dq_columns = 64>) {
  %Q = tile.alloc "Q" : !tile.ring<2, !tile.shared<64x128xbf16, swizzled>>
  // tile.consumer_release C1
  // expected-error @below {{'tile.consumer_release' op expected `when` with `passed`, and `unless` with neither `passed` nor `fenced`}}
  tile.consumer_release %Q when(%some) : !tile.ring<2, !tile.shared<64x128xbf16, swizzled>>
}

// -----

tile.kernel @k(%sum: !tile.ptr<f32>, %left: i32, %some: i1) target("sm_90a") grid(dense heads 1 keys)
    schedule(#tile.warp_specialized_backward<q_tile = 64, kv_tile = 128, warps = 8, ctas_per_sm = 1, single_loop = true, dq_columns = 64>) {
  %Q = tile.alloc "Q" : !tile.ring<2, !tile.shared<64x128xbf16, swizzled>>
  tile.producer_commit %Q : !tile.ring<2, !tile.shared<64x128xbf16, swizzled>>
  // tile.consumer_release C2
  // expected-error @below {{'tile.consumer_release' op expected a ring of row statistics where `fenced`, got: '!tile.ring<2, <64x128xbf16, swizzled>>'}}
  tile.consumer_release %Q fenced : !tile.ring<2, !tile.shared<64x128xbf16, swizzled>>
}

// -----

tile.kernel @k(%sum: !tile.ptr<f32>, %left: i32, %some: i1) target("sm_90a") grid(dense heads 1 keys)
    schedule(#tile.warp_specialized_backward<q_tile = 64, kv_tile = 128, warps = 8, ctas_per_sm = 1, single_loop = true, dq_columns = 64>) {
  %stats = tile.alloc "stats" : !tile.ring<2, !tile.row_statistics<64>>
  // tile.consumer_release C2
  // expected-error @below {{'tile.consumer_release' op expected no `passed` and no `unless` of row statistics}}
  tile.consumer_release %stats unless(%some) : !tile.ring<2, !tile.row_statistics<64>>
}

// -----

tile.kernel @k(%sum: !tile.ptr<f32>, %left: i32, %some: i1) target("sm_90a") grid(dense heads 1 keys)
    schedule(#tile.warp_specialized_backward<q_tile = 64, kv_tile = 128, warps = 8, ctas_per_sm = 1, single_loop = true, dq_columns = 64>) {
  %stats = tile.alloc "stats" : !tile.ring<2, !tile.row_statistics<64>>
  // tile.consumer_release C3
  // expected-error @below {{'tile.consumer_release' op expected no `passed` and no `unless` of row statistics}}
  tile.consumer_release %stats passed : !tile.ring<2, !tile.row_statistics<64>>
}

// -----

tile.kernel @k(%sum: !tile.ptr<f32>, %left: i32, %some: i1) target("sm_90a") grid(dense heads 1 keys)
    schedule(#tile.warp_specialized_backward<q_tile = 64, kv_tile = 128, warps = 8, ctas_per_sm = 1, single_loop = true, dq_columns = 64>) {
  %stats = tile.alloc "stats" : !tile.ring<2, !tile.row_statistics<64>>
  // tile.consumer_release C2
  // expected-error @below {{'tile.consumer_release' op expected `tile.producer_commit` right ahead where `fenced`}}
  tile.consumer_release %stats fenced : !tile.ring<2, !tile.row_statistics<64>>
}

// -----

tile.kernel @k(%sum: !tile.ptr<f32>, %left: i32, %some: i1) target("sm_90a") grid(dense heads 1 keys)
    schedule(#tile.warp_specialized_backward<q_tile = 64, kv_tile = 128, warps = 8, ctas_per_sm = 1, single_loop = true, dq_columns = 64>) {
  %dS = tile.alloc "dS" : !tile.ring<2, !tile.shared<128x32xbf16, swizzled>>
  %p = tile.alloc "p" : !tile.register_operand<128x64xbf16, 8>
  // tile.producer_store C1
  // expected-error @below {{'tile.producer_store' op expected a ring of tiles with room for '!tile.register_operand<128x64xbf16, 8>' or its first rows, 16 of each warp, got: '!tile.ring<2, <128x32xbf16, swizzled>>'}}
  tile.producer_store %dS, %p : !tile.ring<2, !tile.shared<128x32xbf16, swizzled>>, !tile.register_operand<128x64xbf16, 8>
}

// -----

tile.kernel @k(%sum: !tile.ptr<f32>, %left: i32, %some: i1) target("sm_90a") grid(dense heads 1 keys)
    schedule(#tile.warp_specialized_backward<q_tile = 64, kv_tile = 128, warps = 8, ctas_per_sm = 1, single_loop = true, dq_columns = 64>) {
  %stats = tile.alloc "stats" : !tile.ring<2, !tile.row_statistics<64>>
  // tile.producer_store C1
  // expected-error @below {{'tile.producer_store' op expected a ring of swizzled tiles, and no `first`, for zeros, got: '!tile.ring<2, !tile.row_statistics<64>>'}}
  tile.producer_store %stats : !tile.ring<2, !tile.row_statistics<64>>
}

// -----

tile.kernel @k(%sum: !tile.ptr<f32>, %left: i32, %some: i1) target("sm_90a") grid(dense heads 1 keys)
    schedule(#tile.warp_specialized_backward<q_tile = 64, kv_tile = 128, warps = 8, ctas_per_sm = 1, single_loop = true, dq_columns = 64>) {
  %stats = tile.alloc "stats" : !tile.ring<2, !tile.row_statistics<64>>
  // tile.stash C1
  // expected-error @below {{'tile.stash' op expected a ring of tiles like '!tile.register_operand<128x64xbf16, 8>', got: '!tile.ring<2, !tile.row_statistics<64>>'}}
  %p = tile.stash %stats : !tile.ring<2, !tile.row_statistics<64>>, !tile.register_operand<128x64xbf16, 8>
}

// -----

tile.kernel @k(%sum: !tile.ptr<f32>, %left: i32, %some: i1) target("sm_90a") grid(dense heads 1 keys)
    schedule(#tile.warp_specialized_backward<q_tile = 64, kv_tile = 128, warps = 8, ctas_per_sm = 1, single_loop = true, dq_columns = 64>) {
  %dQ = tile.alloc "dQ" : !tile.frag<128x64, 8>
  %dS = tile.alloc "dS" : !tile.shared<128x64xbf16, swizzled>
  %K = tile.alloc "K" : !tile.shared<128x128xbf16, swizzled>
  // tile.mma_atb C2: one warpgroup makes a block
  // expected-error @below {{'tile.mma_atb' op expected a fragment of one warpgroup and a block below 2, got: '!tile.frag<128x64, 8>', block 0}}
  %t = tile.mma_atb %dQ, %dS, %K block 0 of 2 : !tile.frag<128x64, 8>, !tile.shared<128x64xbf16, swizzled>, !tile.shared<128x128xbf16, swizzled>
}

// -----

tile.kernel @k(%sum: !tile.ptr<f32>, %left: i32, %some: i1) target("sm_90a") grid(dense heads 1 keys)
    schedule(#tile.warp_specialized_backward<q_tile = 64, kv_tile = 128, warps = 8, ctas_per_sm = 1, single_loop = true, dq_columns = 64>) {
  %dQ = tile.alloc "dQ" : !tile.frag<64x64, 4>
  %dS = tile.alloc "dS" : !tile.shared<128x64xbf16, swizzled>
  %K = tile.alloc "K" : !tile.shared<128x128xbf16, swizzled>
  // C2: there is no such block
  // expected-error @below {{'tile.mma_atb' op expected a fragment of one warpgroup and a block below 2, got: '!tile.frag<64x64, 4>', block 2}}
  %t = tile.mma_atb %dQ, %dS, %K block 2 of 2 : !tile.frag<64x64, 4>, !tile.shared<128x64xbf16, swizzled>, !tile.shared<128x128xbf16, swizzled>
}

// -----

tile.kernel @k(%sum: !tile.ptr<f32>, %left: i32, %some: i1) target("sm_90a") grid(dense heads 1 keys)
    schedule(#tile.warp_specialized_backward<q_tile = 64, kv_tile = 128, warps = 8, ctas_per_sm = 1, single_loop = true, dq_columns = 64>) {
  %staging = tile.alloc "staging" : !tile.staging<4, 16384>
  // tile.add_staged C2
  // expected-error @below {{'tile.add_staged' op expected at least one block, and slots of some times 64 rows of 64 columns, got: 0, '!tile.staging<4, 16384>'}}
  tile.add_staged %sum, %staging left(%left) columns 64 blocks 0 : !tile.staging<4, 16384>
}
