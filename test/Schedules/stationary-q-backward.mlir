// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Gradients of sequences of 129 to 256 rows or keys: all rows stay in a block, and keys are streamed
// past them, a tile at a time.
//
// RUN: rm -rf %t && split-file %s %t
// RUN: attn-opt %t/padded.mlir -attn-choose-schedule="target=sm_90a" -convert-attn-to-tile -canonicalize -cse | FileCheck %t/padded.mlir
// RUN: attn-opt %t/padded.mlir -attn-choose-schedule="target=sm_90a" -convert-attn-to-tile -canonicalize -cse -tile-persist -tile-assign-roles | FileCheck %t/padded.mlir --check-prefix=ROLES
// RUN: attn-translate %t/two.mlir --target=sm_90a | FileCheck %t/two.mlir
// RUN: attn-opt %t/chosen.mlir -split-input-file -attn-choose-schedule="target=sm_90a" -convert-attn-to-tile | FileCheck %t/chosen.mlir
// RUN: attn-opt %t/errors.mlir -split-input-file -attn-choose-schedule="target=sm_90a" -convert-attn-to-tile -verify-diagnostics
// RUN: attn-opt %t/schedules.mlir --explain --target=sm_90a | FileCheck %t/schedules.mlir

//--- padded.mlir
// CHECK: tile.kernel @g_short({{.*}} grid(packed heads 4 tiles 1) schedule(#tile.stationary_q_backward<q_tile = 144, kv_tile = 48, kv_tiles = 3, warps = 12, ctas_per_sm = 1, stages = 3>)
// Rows that are there, of K and V all tiles; P and dS are read as 64 keys.
// CHECK: %Q = tile.alloc "Q" : !tile.shared<144x96xbf16, swizzled>
// CHECK: %K = tile.alloc "K" slots 3 : !tile.shared<48x96xbf16, swizzled>
// CHECK: %O = tile.alloc "O" slots 1 : !tile.shared<144x80xbf16, swizzled>
// CHECK: %P = tile.alloc "P" : !tile.ring<1, <144x64xbf16, swizzled>>
// Padding of keys begins behind the last tile of them.
// CHECK: %[[TILES:.*]] = arith.divui %{{.*}}, %c48_i32
// CHECK: %[[BEHIND:.*]] = arith.muli %[[TILES]], %c48_i32
// CHECK: %[[WRITTEN:.*]] = arith.minsi %extent_kv, %[[BEHIND]]
// CHECK: scf.if
// CHECK: tile.load_row_statistics %stats, %{{.*}} rows(%len_q) : !tile.softmax_state<192, 12>
// CHECK: tile.add_delta %stats, %O, %dO : !tile.softmax_state<192, 12>, !tile.shared<144x80xbf16, swizzled>, !tile.shared<144x80xbf16, swizzled>
// CHECK: tile.clear %dQ
// CHECK: scf.for %tile = %c0_i32 to %[[TILES]] step
// Rows that see none of the keys are not multiplied by them, nor summed up.
// CHECK: %end = arith.divui %{{.*}}, %c64_i32
// CHECK: %[[SEES:.*]] = arith.cmpi slt, %warpgroup, %end
// CHECK-NEXT: scf.if %[[SEES]] {
// CHECK: tile.mma_abt %s, %Q, %K
// CHECK: tile.mma_abt %dp, %dO, %V
// CHECK: tile.probabilities %s, %stats at(%c0_i32, %k0)
// CHECK-NEXT: tile.producer_store %P, %s :
// CHECK: tile.single_pass_grads %dp, %s, %stats known
// CHECK-NEXT: tile.convert %probabilities, %dp {at_once}
// CHECK-NEXT: tile.producer_store %dS, %probabilities :
// CHECK-NEXT: %[[DQ:.*]] = tile.mma_ab %dQ, %probabilities, %K
// CHECK-NEXT: tile.wait %[[DQ]]
// CHECK-NEXT: }
// CHECK-NEXT: tile.producer_commit %P
// CHECK-NEXT: tile.producer_commit %dS
// Pieces of dV and dK are dealt out among three warpgroups.
// CHECK: %[[PIECE:.*]] = arith.select
// CHECK: scf.for %slice = %[[PIECE]] to %c2_i32 step %c3_i32
// CHECK: %[[SUM:.*]] = tile.mma_atb_slice %sum, (%P_tile, %dS_tile), (%dO, %Q) at(%slice) blocks(%c0_i32, %end) : !tile.frag<64x128, 4>
// CHECK-NEXT: tile.wait %[[SUM]]
// CHECK: tile.consumer_release %P unless(%[[MORE:.*]]) :
// CHECK: tile.consumer_release %dS unless(%[[MORE]]) :
// CHECK: tile.store_slice(%dv_rows, %dk_rows) strides(%dv_row, %dk_row), %sum at(%slice) rows({{.*}} factors [1.000000e+00, 1.020621e-01] dims [80, 96]
// CHECK: tile.consumer_release %P
// CHECK: tile.store %dq_rows stride(%dq_row), %dQ
// Longer ones.
// CHECK: tile.kernel @g({{.*}} longer 144, 144)
// What waits for nothing of the tiles is brought; P and dS are not the producer's.
// ROLES: tile.kernel @g_short
// O, whose slot is the first to be free, comes ahead of what waits for others.
// ROLES: tile.producer_load %O, %o_map
// ROLES-NEXT: tile.producer_load %Q, %q_map
// ROLES-NEXT: tile.producer_load %dO, %do_map
// ROLES-NEXT: scf.for %tile
// ROLES-NOT: tile.producer_store
// ROLES: tile.producer_load %K, %k_map
// ROLES-NEXT: tile.producer_load %V, %v_map
// ROLES-NEXT: }
// ROLES-NOT: scf.for %slice
// ROLES: consumer {
// ROLES: tile.add_delta %stats, %O_tile, %dO_tile
// ROLES-NEXT: tile.consumer_release %O
// Stationary rows are given back behind the last piece of the last tile.
// ROLES: tile.mma_atb_slice
// ROLES-NEXT: tile.wait
// ROLES: %[[TILES:.*]] = arith.cmpi slt, %next, %
// ROLES: %[[PIECES:.*]] = arith.cmpi slt, %next_{{.*}}, %c2_i32
// ROLES: %[[MORE:.*]] = arith.ori %[[TILES]], %[[PIECES]]
// ROLES: tile.consumer_release %dO unless(%[[MORE]])
// ROLES: tile.consumer_release %Q unless
attn.problem @p mask(#attn.full) layout(thd padded) heads(4) dims(96, 80) dtype(bf16) max_seqlen(130)
attn.backward @g of(@p)

//--- two.mlir
// Two warpgroups have two blocks of rows each, one after the other.
// CHECK: ATTN_KERNEL(g_short, /*threads=*/384, /*CTAs per multiprocessor=*/1)
// CHECK: attn::ExchangeRing<attn::fp16, 208, 64, 1> P(
// CHECK: attn::load_row_statistics(stats, lse + {{.*}}, 1ll, dlse + {{.*}}, 1ll, -1.f, len_q);
// CHECK: attn::load_row_statistics(stats_2, {{.*}}128{{.*}} -1.f, x_
// CHECK: attn::add_delta<0>(stats, O_tile, dO_tile);
// CHECK: attn::add_delta<128>(stats_2, O_tile, dO_tile);
// Each multiplies keys that its rows see, and tests those that not all of them do, or that are not there.
// CHECK: const int begin = [[FIRST:.*]] / 64;
// CHECK: const int end = [[FIRST]] < len_q ? (len_q + 63) / 64 : begin;
// CHECK: const int full_begin =
// CHECK: const bool [[BEFORE:.*]] = warpgroup < end;
// CHECK: if (begin <= warpgroup & [[BEFORE]]) {
// CHECK: attn::mma_abt<true>(s, attn::rows_from<0>(Q_tile), K_tile);
// CHECK: if (!(full_begin <= warpgroup & [[BEFORE]]) | {{.*}} < 64) {
// CHECK: attn::apply_mask(s, 0, k0
// CHECK: attn::producer_store<0>(P, s);
// CHECK: attn::single_pass_grads<false, true>(dp, s, stats);
// CHECK: attn::producer_store<0>(dS, probabilities);
// CHECK: const int [[SECOND:.*]] = warpgroup + 2;
// CHECK: if (begin <= [[SECOND]] & {{.*}}) {
// CHECK: attn::mma_abt<true>(s, attn::rows_from<128>(Q_tile), K_tile);
// CHECK: attn::apply_mask(s, 128, k0
// CHECK: attn::producer_store<128>(dS, probabilities);
// CHECK: attn::mma_ab(dQ_2, probabilities, K_tile);
// CHECK-NEXT: attn::warpgroup_wait<0>(dQ_2);
// CHECK: attn::consumer_release(V);
// CHECK-NEXT: attn::consumer_release(K);
// CHECK-NEXT: attn::producer_commit(P);
// CHECK: attn::Frag<64, 64, 4> sum;
// CHECK: attn::mma_atb_slice(sum, slice, begin, end, P_tile, dO_tile, dS_tile, Q_tile);
// CHECK: attn::store_slice(sum, slice, {{.*}} attn::result<64>(dv_rows, dv_row, 1.000000000e+00f), attn::result<64>(dk_rows, dk_row, -5.000000000e-01f));
attn.problem @p mask(#attn.causal) layout(thd) heads(4) dims(64) dtype(f16) max_seqlen(200) scale(-0.5)
attn.backward @g of(@p) dlse

//--- chosen.mlir
// More keys than rows; of wide heads the largest tile of rows with keys in tiles of 64.
// CHECK: tile.kernel @g_short({{.*}} schedule(#tile.stationary_q_backward<q_tile = 192, kv_tile = 64, kv_tiles = 4, warps = 12, ctas_per_sm = 1, stages = 1>)
attn.problem @p mask(#attn.causal) layout(thd) heads(4) dims(128) dtype(bf16) max_seqlen(100, 250) {sym_visibility = "private"}
attn.backward @g of(@p) deterministic

// -----

// Room for the next sequence's rows.
// CHECK: tile.kernel @g_short({{.*}} schedule(#tile.stationary_q_backward<q_tile = 160, kv_tile = 48, kv_tiles = 2, warps = 12, ctas_per_sm = 1, q_stages = 2>)
attn.problem @p mask(#attn.band<left = 30, right = 5>) layout(thd) heads(4) dims(64) dtype(bf16) max_seqlen(150, 90) {sym_visibility = "private"}
attn.backward @g of(@p)

// -----

// Lengths that are typical, of dense rows.
// CHECK: tile.kernel @g_short({{.*}} grid(dense heads 4 tiles 1) schedule(#tile.stationary_q_backward<q_tile = 192, kv_tile = 64, kv_tiles = 3, warps = 12, ctas_per_sm = 1, stages = 1>)
// CHECK: longer 192, 192)
attn.problem @p mask(#attn.causal) layout(bshd) heads(4) dims(128) dtype(bf16) expected_seqlen(150) {sym_visibility = "private"}
attn.backward @g of(@p)

// -----

// Shared memory for one tile of keys, and not for O: its rows are under way while dO is waited for.
// CHECK: tile.kernel @g_short({{.*}} schedule(#tile.stationary_q_backward<q_tile = 256, kv_tile = 64, kv_tiles = 4, warps = 8, ctas_per_sm = 1, stages = 1>)
// CHECK: tile.load_rows %O, %o_rows stride(%o_row) rows(%len_q) dim 96 : !tile.register_operand<128x96xbf16, 8>
// CHECK: tile.load_rows %O{{.*}}, %o_rows{{.*}} stride(%o_row)
// CHECK-NEXT: tile.wait
// CHECK-NEXT: tile.add_delta %stats, %O, %dO first 0 :
attn.problem @p mask(#attn.full) layout(thd) heads(4) dims(96) dtype(bf16) max_seqlen(250) {sym_visibility = "private"}
attn.backward @g of(@p)

// -----

// Probabilities have signs until gradients are there.
// CHECK: tile.kernel @g_short({{.*}} schedule(#tile.stationary_q_backward<q_tile = 144, kv_tile = 48, kv_tiles = 3, warps = 12, ctas_per_sm = 1, stages = 3>)
// CHECK: tile.dropout %s
// CHECK-SAME: marks
// CHECK-NOT: tile.producer_store
// CHECK: tile.mma_abt %dp, %dO, %V
// CHECK: tile.single_pass_grads %dp, %s, %stats known dropped by 1.111
// CHECK: tile.producer_store %P, %s
// CHECK: tile.store_slice{{.*}} factors [1.111{{.*}}] dims [128, 128]
attn.problem @p mask(#attn.full) layout(thd) heads(4) dims(128) dtype(bf16) max_seqlen(140) dropout(0.1, "seed") {sym_visibility = "private"}
attn.backward @g of(@p)

// -----

// Two blocks of rows, also of wide heads, and with a window; or with random numbers.
// CHECK: tile.kernel @g_short({{.*}} schedule(#tile.stationary_q_backward<q_tile = 208, kv_tile = 64, kv_tiles = 2, warps = 8, ctas_per_sm = 1>)
// CHECK: tile.mma_atb_slice {{.*}} : !tile.frag<64x64, 4>
attn.problem @p mask(#attn.full) layout(thd) heads(4) dims(128) dtype(bf16) max_seqlen(193, 100) {sym_visibility = "private"}
attn.backward @g of(@p)

// -----

// Few tiles are full: all are tested.
// CHECK: tile.kernel @g_short({{.*}} schedule(#tile.stationary_q_backward<q_tile = 256, kv_tile = 64, kv_tiles = 4, warps = 8, ctas_per_sm = 1, stages = 1>)
// CHECK: tile.mma_abt %s, %Q first 0, %K
// CHECK-NOT: scf.if
// CHECK: tile.probabilities
attn.problem @p mask(#attn.band<left = 30, right = 5>) layout(thd) heads(4) dims(128) dtype(bf16) max_seqlen(256) {sym_visibility = "private"}
attn.backward @g of(@p)

// -----

// CHECK: tile.kernel @g_short({{.*}} schedule(#tile.stationary_q_backward<q_tile = 208, kv_tile = 64, kv_tiles = 4, warps = 8, ctas_per_sm = 1>)
attn.problem @p mask(#attn.causal) layout(thd) heads(4) dims(112) dtype(bf16) max_seqlen(200) dropout(0.1, "seed") {sym_visibility = "private"}
attn.backward @g of(@p)

// -----

// A test that divides: no register for a ring of O.
// CHECK: tile.kernel @g_short({{.*}} schedule(#tile.stationary_q_backward<q_tile = 160, kv_tile = 64, kv_tiles = 3, warps = 12, ctas_per_sm = 1>)
// CHECK: tile.load_rows
attn.problem @p mask(#attn.and<#attn.causal, #attn.chunk<48>>) layout(thd) heads(4) dims(64) dtype(bf16) max_seqlen(160) dropout(0.1, "seed") {sym_visibility = "private"}
attn.backward @g of(@p)

// -----

// Of many parts, it has one.
// CHECK: tile.kernel @g_short({{.*}} schedule(#tile.stationary_q_backward<q_tile = 160, kv_tile = 64, kv_tiles = 3, warps = 12, ctas_per_sm = 1, stages = 3, q_stages = 2>)
// CHECK-NOT: tile.load_rows
attn.problem @p mask(#attn.and<#attn.causal, #attn.chunk<64>>) layout(thd) heads(4) dims(64) dtype(bf16) max_seqlen(160) dropout(0.1, "seed") {sym_visibility = "private"}
attn.backward @g of(@p)

// -----

// No registers: random numbers, or tests of many parts, of wide heads; with two blocks of rows one that divides counts as many.
// CHECK-NOT: {{single_pass_backward|stationary_q_backward}}
attn.problem @p mask(#attn.chunk<100>) layout(thd) heads(4) dims(120) dtype(bf16) max_seqlen(200) {sym_visibility = "private"}
attn.backward @g of(@p)

// -----

// CHECK-NOT: {{single_pass_backward|stationary_q_backward}}
attn.problem @p mask(#attn.chunk<100>) layout(thd) heads(4) dims(112) dtype(bf16) max_seqlen(200) dropout(0.1, "seed") {sym_visibility = "private"}
attn.backward @g of(@p)

// -----

// CHECK-NOT: {{single_pass_backward|stationary_q_backward}}
attn.problem @p mask(#attn.full) layout(thd) heads(4) dims(120) dtype(bf16) max_seqlen(145) dropout(0.1, "seed") {sym_visibility = "private"}
attn.backward @g of(@p)

// -----

// CHECK-NOT: {{single_pass_backward|stationary_q_backward}}
attn.problem @p mask(#attn.and<#attn.causal, #attn.chunk<48>>) layout(thd) heads(4) dims(128) dtype(bf16) max_seqlen(192) {sym_visibility = "private"}
attn.backward @g of(@p)

// -----

// Longer.
// CHECK-NOT: {{single_pass_backward|stationary_q_backward}}
attn.problem @p mask(#attn.full) layout(thd) heads(4) dims(64) dtype(bf16) max_seqlen(257, 100) {sym_visibility = "private"}
attn.backward @g of(@p)

//--- errors.mlir
attn.problem @p mask(#attn.full) layout(thd) heads(4) dims(64) dtype(bf16)
// expected-error @+2 {{expected 12 warps with a q_tile from 144 to 192, or 8 with one from 208 to 256, in multiples of 16, got: q_tile = 144, warps = 8}}
attn.backward @g of(@p)
  schedule(#tile.stationary_q_backward<q_tile = 144, kv_tile = 48, kv_tiles = 3, warps = 8, ctas_per_sm = 1>)

// -----

attn.problem @p mask(#attn.full) layout(thd) heads(4) dims(64) dtype(bf16)
// expected-error @+2 {{or 8 with one from 208 to 256, in multiples of 16, got: q_tile = 208, warps = 12}}
attn.backward @g of(@p)
  schedule(#tile.stationary_q_backward<q_tile = 208, kv_tile = 64, kv_tiles = 3, warps = 12, ctas_per_sm = 1>)

// -----

attn.problem @p mask(#attn.full) layout(thd) heads(4) dims(64) dtype(bf16)
// expected-error @+2 {{expected kv_tiles of 48 or 64 keys and at most 256 keys in all, got: kv_tile = 32, kv_tiles = 5}}
attn.backward @g of(@p)
  schedule(#tile.stationary_q_backward<q_tile = 144, kv_tile = 32, kv_tiles = 5, warps = 12, ctas_per_sm = 1>)

// -----

attn.problem @p mask(#attn.full) layout(thd) heads(4) dims(64) dtype(bf16)
// expected-error @+2 {{expected kv_tiles of 48 or 64 keys and at most 256 keys in all, got: kv_tile = 64, kv_tiles = 5}}
attn.backward @g of(@p)
  schedule(#tile.stationary_q_backward<q_tile = 144, kv_tile = 64, kv_tiles = 5, warps = 12, ctas_per_sm = 1>)

// -----

attn.problem @p mask(#attn.full) layout(thd) heads(4) dims(64) dtype(bf16)
// expected-error @+2 {{expected at most 3 CTAs and 12 consumer warps a multiprocessor, got: 2 CTAs of 12 warps}}
attn.backward @g of(@p)
  schedule(#tile.stationary_q_backward<q_tile = 144, kv_tile = 48, kv_tiles = 3, warps = 12, ctas_per_sm = 2>)

// -----

attn.problem @p mask(#attn.full) layout(thd) heads(4) dims(64) dtype(bf16)
// expected-error @+2 {{expected stages from 1 to 8 and q_stages 1 or 2, got: stages = 9, q_stages = 1}}
attn.backward @g of(@p)
  schedule(#tile.stationary_q_backward<q_tile = 144, kv_tile = 48, kv_tiles = 3, warps = 12, ctas_per_sm = 1, stages = 9>)

// -----

// Heads that share keys.
attn.problem @p mask(#attn.full) layout(thd) heads(4, 2) dims(64) dtype(bf16)
// expected-error @below {{as many kv heads as heads, dims to 128, no score modifiers and no block maps for a single pass over short sequences, got: #tile.stationary_q_backward<}}
attn.backward @g of(@p)
  schedule(#tile.stationary_q_backward<q_tile = 144, kv_tile = 48, kv_tiles = 3, warps = 12, ctas_per_sm = 1>)

//--- schedules.mlir
// CHECK: backward @g: one CTA per sequence, Q stationary for short sequences, warp-specialized tiles of packed rows, unordered dQ accumulation for long ones; max_seqlen(150, 150)
// CHECK-SAME: all query rows of a sequence stay in one CTA, and K/V tiles are streamed past them
attn.problem @p mask(#attn.full) layout(thd) heads(4) dims(128) dtype(bf16) max_seqlen(150)
attn.backward @g of(@p)
