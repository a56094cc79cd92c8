// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Dropout: behind the sums and ahead of the product with V, once for both products of a gradient pass; of heads that share
// a tile each row has its own numbers.
//
// RUN: attn-opt %s -attn-choose-schedule -convert-attn-to-tile -canonicalize | FileCheck %s
// RUN: attn-translate %s --target=sm_80 | FileCheck %s --check-prefix=PAIRS

// CHECK-LABEL: tile.kernel @forward
// CHECK: %[[DRAWS:.*]] = tile.dropout_state %seed of(%b, %h)
// CHECK: tile.kv_loop
// CHECK: tile.online_softmax %s, %row, %acc
// CHECK-NEXT: tile.dropout %s at(%q0, %k0) dropout(%[[DRAWS]]) below 3277 : !tile.frag
// CHECK: tile.normalize %acc, %row
// CHECK-NEXT: tile.scale %acc by 1.111{{.*}}
attn.problem @forward mask(#attn.causal) layout(bshd) heads(8) dims(128) dtype(bf16) dropout(0.1, "seed")

// PAIRS-LABEL: ATTN_KERNEL(shared_tile,
// PAIRS: const auto dropout_state = attn::dropout_state(seed, b);
// PAIRS: attn::dropout(s, at, k0_2, dropout_state, 16384);
attn.problem @shared_tile mask(#attn.full) layout(bshd) heads(8, 2) dims(64) dtype(bf16) dropout(0.5, "seed") expected_seqlen(1, 32768)

// Nothing is dropped: nothing of it is left.
// CHECK-LABEL: tile.kernel @nothing
// CHECK-NOT: seed
// CHECK-NOT: tile.dropout
// CHECK: tile.normalize
// CHECK-NOT: tile.scale
attn.problem @nothing mask(#attn.full) layout(bshd) heads(8) dims(64) dtype(bf16) dropout(1.0e-6, "seed")

// CHECK-LABEL: tile.kernel @streamed
// CHECK: tile.dropout_state %seed of(%b)
// CHECK: tile.dropout %s at(%at heads 4, %c0_i32) dropout(%{{.*}}) below 16384 : !tile.frag<16x48, 1>
// CHECK: } else {
// CHECK: tile.dropout %s_{{.*}} at(%at heads 4, %k0) dropout(%{{.*}}) below 16384 : !tile.frag<16x16, 1>
attn.problem @streamed mask(#attn.full) layout(thd) heads(8, 2) dims(64) dtype(bf16) dropout(0.5, "seed") max_seqlen(1, 40)

// CHECK-LABEL: tile.kernel @strips
// CHECK: tile.dropout %s at(%{{.*}}) dropout(%{{.*}}) below 16384 : !tile.simt_scores
// CHECK: tile.scale %acc by 2.0{{.*}} : !tile.simt_tile
attn.problem @strips mask(#attn.full) layout(thd) heads(8) dims(64) dtype(bf16) dropout(0.5, "seed") max_seqlen(1, 4)
