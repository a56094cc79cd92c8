// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Gradients of packed sequences whose rows and keys are one tile: a block has all pairs in a single pass. Longer
// ones have the kernels on tiles.
//
// RUN: rm -rf %t && split-file %s %t
// RUN: attn-opt %t/padded.mlir -attn-choose-schedule="target=sm_90a" -convert-attn-to-tile -canonicalize -cse | FileCheck %t/padded.mlir
// RUN: attn-opt %t/padded.mlir -attn-choose-schedule="target=sm_90a" -convert-attn-to-tile -canonicalize -cse -tile-persist -tile-assign-roles | FileCheck %t/padded.mlir --check-prefix=ROLES
// RUN: attn-translate %t/causal.mlir --target=sm_90a | FileCheck %t/causal.mlir
// RUN: attn-opt %t/chosen.mlir -split-input-file -attn-choose-schedule="target=sm_90a" -convert-attn-to-tile | FileCheck %t/chosen.mlir
// RUN: attn-opt %t/fallback.mlir -attn-choose-schedule="target=sm_90a fallback=1" -convert-attn-to-tile | FileCheck %t/fallback.mlir --check-prefix=ONE
// RUN: attn-opt %t/errors.mlir -split-input-file -attn-choose-schedule="target=sm_90a" -convert-attn-to-tile -verify-diagnostics
// RUN: attn-opt %t/other.mlir -attn-choose-schedule="target=sm_80" -convert-attn-to-tile -verify-diagnostics
// RUN: attn-opt %t/schedules.mlir --explain --target=sm_90a | FileCheck %t/schedules.mlir

//--- padded.mlir
// CHECK: tile.kernel @g_short({{.*}} target("sm_90a") grid(packed heads 4 tiles 1) schedule(#tile.single_pass_backward<q_tile = 112, kv_tile = 96, warps = 8, ctas_per_sm = 1, stages = 1, q_stages = 2>)
// Rows and keys that are there; of fragments the last warp's rows are nobody's.
// CHECK: %Q = tile.alloc "Q" : !tile.shared<112x96xbf16, swizzled>
// CHECK: %K = tile.alloc "K" slots 1 : !tile.shared<96x96xbf16, swizzled>
// CHECK: %transposed = tile.alloc "transposed" : !tile.ring<2, <112x128xbf16, swizzled>>
// CHECK: %block = tile.index block
// CHECK-NOT: scf.if
// Padding behind the last sequence, before the first and behind this one beyond its tile, on both sides.
// CHECK: scf.for %{{.*}} = %c0_i32 to %padding_end step
// CHECK: tile.store_padding %dq_rows
// CHECK: scf.for %{{.*}} = %c0_i32 to %before step
// CHECK: tile.store_padding %dq_rows
// CHECK: %extent_q = arith.select %[[SHORT:.*]], %{{.*}}, %c0_i32
// CHECK: %[[FROM:.*]] = arith.select %[[COMPUTES:.*]], %c112_i32, %c0_i32
// CHECK: scf.for %{{.*}} = %[[FROM]] to %extent_q step %c112_i32
// CHECK: tile.store_padding %dq_rows
// CHECK: scf.for %{{.*}} = %c0_i32 to %padding_end
// CHECK: tile.store_padding %dk_rows
// CHECK: tile.store_padding %dv_rows
// CHECK: scf.for %{{.*}} = %{{.*}} to %extent_kv step %c112_i32
// CHECK: %[[WRITTEN:.*]] = arith.minsi %extent_kv, %c96_i32
// CHECK: scf.if %[[COMPUTES]] {
// CHECK: tile.load_row_statistics %stats, %{{.*}} rows(%len_q) : !tile.softmax_state<128, 8>
// CHECK: tile.mma_abt %s, %Q, %K
// CHECK: tile.mma_abt %dp, %dO, %V
// What is behind the last key is tested where there is something.
// CHECK: scf.if
// CHECK-NEXT: tile.apply_mask %s
// CHECK: tile.probabilities %s, %stats
// CHECK: tile.single_pass_grads %dp, %s, %stats
// CHECK: tile.convert %probabilities, %s {at_once}
// CHECK-NEXT: %[[P:.*]] = tile.store_and_sync %transposed, %probabilities
// CHECK-NEXT: tile.convert %probabilities, %dp {at_once}
// CHECK: %[[DV:.*]] = tile.mma_atb %dV, %[[P]], %dO
// CHECK-NEXT: tile.wait %[[DV]]
// CHECK: tile.store %dv_rows stride(%dv_row), %dV rows(%len_kv, %[[WRITTEN]]) dim 80
// CHECK-NEXT: %[[S:.*]] = tile.store_and_sync %transposed, %probabilities
// CHECK: tile.mma_ab %dQ, %probabilities, %K
// CHECK: tile.store %dq_rows
// CHECK: tile.mma_atb %dK, %[[S]], %Q
// CHECK: tile.store %dk_rows
// Longer ones.
// CHECK: tile.kernel @g_work_tiles(
// CHECK: tile.kernel @g_preprocess({{.*}} longer 112, 96)
// CHECK: tile.kernel @g({{.*}} longer 112, 96)
// CHECK: tile.kernel @g_postprocess({{.*}} longer 112, 96)
// The producer knows lengths and brings what slots get free for; places of a branch are not its.
// ROLES: tile.kernel @g_short
// ROLES: tile.publish_work %mailbox
// ROLES: scf.if
// ROLES-NOT: tile.alloc
// ROLES: tile.producer_load %Q, %q_map
// ROLES-NEXT: tile.producer_load %V, %v_map
// ROLES-NEXT: tile.producer_load %dO, %do_map
// ROLES-NEXT: tile.producer_load %K, %k_map
// ROLES: consumer {
// ROLES: tile.consumer_wait %Q
// ROLES: tile.consumer_release %V
// ROLES: tile.consumer_release %dO
// ROLES: tile.consumer_release %K
// ROLES: tile.consumer_release %Q
// ROLES: tile.kernel @g_work_tiles
attn.problem @p mask(#attn.full) layout(thd padded) heads(4) dims(96, 80) dtype(bf16) max_seqlen(100, 90)
attn.backward @g of(@p)

//--- causal.mlir
// CHECK: ATTN_KERNEL(g_short, /*threads=*/384, /*CTAs per multiprocessor=*/1)
// CHECK-NEXT: (const float *lse, const float *dlse, attn::fp16 *dq, attn::fp16 *dk, attn::fp16 *dv,
// CHECK: attn::SoftmaxState<128, 8> stats;
// CHECK-NEXT: attn::load_row_statistics(stats, lse + {{.*}}, 1ll, dlse + {{.*}}, 1ll, -1.f, len_q);
// A scale's sign is the product's, and of both results that it scales.
// CHECK: attn::mma_abt<true>(s, Q_tile, K_tile);
// CHECK: attn::apply_mask(s, 0, 0
// CHECK: attn::scale(dQ, -5.000000000e-01f);
// CHECK: attn::scale(dK, -5.000000000e-01f);
attn.problem @p mask(#attn.causal) layout(thd) heads(4) dims(128) dtype(f16) max_seqlen(128) scale(-0.5)
attn.backward @g of(@p) dlse

//--- chosen.mlir
// In both directions more than 64.
// CHECK: tile.kernel @g({{.*}} schedule(#tile.cta_per_sequence<
attn.problem @p mask(#attn.full) layout(thd) heads(4) dims(128) dtype(bf16) max_seqlen(64, 100) {sym_visibility = "private"}
attn.backward @g of(@p)

// -----

// CHECK: tile.kernel @g_short({{.*}} schedule(#tile.single_pass_backward<q_tile = 80, kv_tile = 112, warps = 8, ctas_per_sm = 1, q_stages = 2>)
attn.problem @p mask(#attn.band<left = 30, right = 5>) layout(thd) heads(4) dims(64) dtype(bf16) max_seqlen(65, 100) {sym_visibility = "private"}
attn.backward @g of(@p) deterministic

// -----

// Lengths that are typical: the largest tile. Longer ones than that are others'.
// CHECK: tile.kernel @g_short({{.*}} schedule(#tile.single_pass_backward<q_tile = 128, kv_tile = 128, warps = 8, ctas_per_sm = 1, stages = 1, q_stages = 2>)
// CHECK: longer 128, 128)
attn.problem @p mask(#attn.causal) layout(thd) heads(4) dims(128) dtype(bf16) expected_seqlen(70) {sym_visibility = "private"}
attn.backward @g of(@p)

// -----

// Shared keys.
// CHECK-NOT: {{single_pass_backward|stationary_q_backward}}
attn.problem @p mask(#attn.full) layout(thd) heads(4, 2) dims(128) dtype(bf16) max_seqlen(100) {sym_visibility = "private"}
attn.backward @g of(@p)

// -----

// A modifier; a condition, for which there are no registers.
// CHECK-NOT: {{single_pass_backward|stationary_q_backward}}
attn.problem @p mask(#attn.full) layout(thd) heads(4) dims(128) dtype(bf16) max_seqlen(100) score([#attn.softcap<10.0>]) {sym_visibility = "private"}
attn.backward @g of(@p)

// -----

// CHECK-NOT: {{single_pass_backward|stationary_q_backward}}
attn.problem @p mask(#attn.predicate<"q % 3 == k % 3">) layout(thd) heads(4) dims(128) dtype(bf16) max_seqlen(100) {sym_visibility = "private"}
attn.backward @g of(@p)

// -----

// What is dropped is marked where probabilities are, ahead of the other product, and of dV the rest is scaled.
// CHECK: tile.kernel @g_short
// CHECK: tile.mma_abt %s, %Q, %K
// CHECK: tile.dropout %s
// CHECK-SAME: marks
// CHECK: tile.mma_abt %dp, %dO, %V
// CHECK: tile.single_pass_grads %dp, %s, %stats dropped by 1.111
// CHECK: tile.scale %dV by 1.111
attn.problem @p mask(#attn.full) layout(thd) heads(4) dims(128) dtype(bf16) max_seqlen(100) dropout(0.1, "seed") {sym_visibility = "private"}
attn.backward @g of(@p)

// -----

// No registers.
// CHECK-NOT: {{single_pass_backward|stationary_q_backward}}
attn.problem @p mask(#attn.causal<bottom_right>) layout(thd) heads(4) dims(64) dtype(bf16) max_seqlen(100) dropout(0.1, "seed") {sym_visibility = "private"}
attn.backward @g of(@p)

// -----

// CHECK-NOT: {{single_pass_backward|stationary_q_backward}}
attn.problem @p mask(#attn.full) layout(thd) heads(4) dims(128) dtype(bf16) max_seqlen(113) dropout(0.1, "seed") {sym_visibility = "private"}
attn.backward @g of(@p)

// -----

// Dense rows: all sequences are as long, and what is launched for longer ones nothing.
// CHECK: tile.kernel @g_short({{.*}} grid(dense heads 4 tiles 1) schedule(#tile.single_pass_backward<q_tile = 128, kv_tile = 128, warps = 8, ctas_per_sm = 1, q_stages = 2>)
// CHECK-NOT: scf.for %i = %{{.*}} to %padding_end
// CHECK: tile.copy_tma %Q, %q_map at(%{{.*}}, %kv_head, %b) :
// CHECK: tile.kernel @g_preprocess({{.*}} grid(dense heads 4 longer 128, 128)
// CHECK: tile.kernel @g({{.*}} grid(dense heads 4 keys longer 128, 128)
// CHECK: tile.kernel @g_postprocess({{.*}} grid(dense heads 4 longer 128, 128)
attn.problem @p mask(#attn.causal) layout(bshd) heads(4) dims(64) dtype(bf16) expected_seqlen(100) {sym_visibility = "private"}
attn.backward @g of(@p)

// -----

// CHECK-NOT: {{single_pass_backward|stationary_q_backward}}
attn.problem @p mask(#attn.full) layout(bshd, thd, thd, bshd) heads(4) dims(128) dtype(bf16) max_seqlen(100) {sym_visibility = "private"}
attn.backward @g of(@p)

//--- fallback.mlir
// What is chosen is known to fit; fallbacks are the other kernels'.
// ONE: tile.kernel @g_short({{.*}} schedule(#tile.single_pass_backward<q_tile = 96, kv_tile = 96, {{.*}}>)
// ONE: tile.kernel @g({{.*}} schedule(#tile.warp_specialized_backward<q_tile = 64, kv_tile = 128, warps = 8, ctas_per_sm = 1, single_loop = true, dq_columns = 32>)
attn.problem @p mask(#attn.full) layout(thd) heads(4) dims(128) dtype(bf16) max_seqlen(96) {sym_visibility = "private"}
attn.backward @g of(@p)

//--- errors.mlir
attn.problem @p mask(#attn.block_map<"offsets", "columns", q = 16, kv = 2>) layout(thd) heads(4) dims(64) dtype(bf16)
// expected-error @below {{expected target `sm_90a`, rows and keys both packed or both dense, as many kv heads as heads, dims to 128, no score modifiers and no block maps for a single pass over short sequences, got: #tile.single_pass_backward<q_tile = 112, kv_tile = 112, warps = 8, ctas_per_sm = 1, stages = 1>}}
attn.backward @g of(@p)
  schedule(#tile.single_pass_backward<q_tile = 112, kv_tile = 112, warps = 8, ctas_per_sm = 1, stages = 1>)

// -----

attn.problem @p mask(#attn.full) layout(thd) heads(4) dims(128) dtype(bf16) score([#attn.softcap<10.0>])
// expected-error @below {{no score modifiers and no block maps for a single pass over short sequences, got: #tile.single_pass_backward<}}
attn.backward @g of(@p) schedule(#tile.single_pass_backward<q_tile = 128, kv_tile = 128, warps = 8, ctas_per_sm = 1>)

// -----

attn.problem @p mask(#attn.full) layout(thd) heads(4) dims(192) dtype(bf16)
// expected-error @below {{dims to 128, no score modifiers and no block maps for a single pass over short sequences, got: #tile.single_pass_backward<}}
attn.backward @g of(@p)
  schedule(#tile.single_pass_backward<q_tile = 128, kv_tile = 128, warps = 8, ctas_per_sm = 1, stages = 1>)

// -----

attn.problem @p mask(#attn.full) layout(bshd, thd, thd, bshd) heads(4) dims(128) dtype(bf16)
// expected-error @below {{rows and keys both packed or both dense, as many kv heads as heads}}
attn.backward @g of(@p) schedule(#tile.single_pass_backward<q_tile = 128, kv_tile = 128, warps = 8, ctas_per_sm = 1>)

// -----

attn.problem @p mask(#attn.full) layout(thd) heads(4) dims(128) dtype(bf16)
// expected-error @+1 {{expected 8 warps and a q_tile and a kv_tile in multiples of 16 from 80 to 128, got: q_tile = 64, kv_tile = 64, warps = 8}}
attn.backward @g of(@p) schedule(#tile.single_pass_backward<q_tile = 64, kv_tile = 64, warps = 8, ctas_per_sm = 1>)

// -----

attn.problem @p mask(#attn.full) layout(thd) heads(4) dims(128) dtype(bf16)
// expected-error @+1 {{expected 8 warps and a q_tile and a kv_tile in multiples of 16 from 80 to 128, got: q_tile = 80, kv_tile = 80, warps = 4}}
attn.backward @g of(@p) schedule(#tile.single_pass_backward<q_tile = 80, kv_tile = 80, warps = 4, ctas_per_sm = 1>)

// -----

attn.problem @p mask(#attn.full) layout(thd) heads(4) dims(128) dtype(bf16)
// expected-error @+2 {{expected at most 3 CTAs and 12 consumer warps a multiprocessor, got: 2 CTAs of 8 warps}}
attn.backward @g of(@p)
  schedule(#tile.single_pass_backward<q_tile = 128, kv_tile = 128, warps = 8, ctas_per_sm = 2>)

// -----

attn.problem @p mask(#attn.full) layout(thd) heads(4) dims(128) dtype(bf16)
// expected-error @+2 {{expected stages from 1 to 8 and q_stages 1 or 2, got: stages = 1, q_stages = 3}}
attn.backward @g of(@p)
  schedule(#tile.single_pass_backward<q_tile = 128, kv_tile = 128, warps = 8, ctas_per_sm = 1, stages = 1, q_stages = 3>)

//--- other.mlir
attn.problem @p mask(#attn.full) layout(thd) heads(4) dims(128) dtype(bf16)
// expected-error @below {{expected target `sm_90a`, rows and keys both packed or both dense}}
attn.backward @g of(@p) schedule(#tile.single_pass_backward<q_tile = 128, kv_tile = 128, warps = 8, ctas_per_sm = 1, stages = 1>)

//--- schedules.mlir
// CHECK: backward @g: one CTA per sequence, single pass for short sequences, warp-specialized tiles of packed rows, unordered dQ accumulation for long ones; max_seqlen(100, 100)
// CHECK-SAME: one tile has all pairs of a sequence
attn.problem @p mask(#attn.full) layout(thd) heads(4) dims(128) dtype(bf16) max_seqlen(100)
attn.backward @g of(@p)
