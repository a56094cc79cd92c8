// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Short sequences with rows enough for matrix units: a block owns a sequence's tile.
//
// RUN: rm -rf %t && split-file %s %t
// RUN: attn-opt %t/forward.mlir -attn-choose-schedule="target=sm_90a" -convert-attn-to-tile -canonicalize -cse | FileCheck %t/forward.mlir
// RUN: attn-opt %t/forward.mlir --attn-pipeline="target=sm_90a" | FileCheck %t/forward.mlir --check-prefix=TOGETHER
// RUN: attn-opt %t/padded.mlir -attn-choose-schedule="target=sm_80" -convert-attn-to-tile -canonicalize -cse | FileCheck %t/padded.mlir
// RUN: attn-opt %t/grads.mlir -attn-choose-schedule="target=sm_90a" -convert-attn-to-tile -canonicalize -cse | FileCheck %t/grads.mlir
// RUN: attn-opt %t/chosen.mlir -attn-choose-schedule="target=sm_90a" -convert-attn-to-tile | FileCheck %t/chosen.mlir
// RUN: attn-opt %t/chosen.mlir -attn-choose-schedule="target=cpu" -convert-attn-to-tile | FileCheck %t/chosen.mlir --check-prefix=CPU
// RUN: attn-opt %t/errors.mlir -split-input-file -attn-choose-schedule -convert-attn-to-tile -verify-diagnostics

// Bounds are hints: longer sequences are as right, and so are empty ones.
// RUN: attn-run %t/forward.mlir --target=cpu --check --lengths-q=17,0,7,40,5 --lengths-kv=17,30,0,100,1 | FileCheck %s --check-prefix=SAME
// RUN: attn-run %t/padded.mlir --target=cpu --check --lengths-q=3,0,7,30 --lengths-kv=5,30,0,100 | FileCheck %s --check-prefix=SAME
// RUN: attn-run %t/in_turn.mlir --target=cpu --check --lengths-q=3,0,7,50,5,1 --lengths-kv=5,30,0,100,3,1 --problem=p | FileCheck %s --check-prefix=SAME
// SAME-COUNT-2: {{^}}ok
// SAME-NOT: FAILED
// In one tile, and 16 keys at a time where sequences are longer than it.
// RUN: attn-run %t/grads.mlir --target=cpu --check --lengths-q=3,0,2,1,3 --lengths-kv=16,3,1,0,9 | FileCheck %s --check-prefix=GRADS
// RUN: attn-run %t/grads.mlir --target=cpu --check --lengths-q=3,9,1 --lengths-kv=40,9,2 | FileCheck %s --check-prefix=GRADS
// RUN: attn-run %t/negative.mlir --target=cpu --check --batch=5 --seqlen-q=9 --seqlen-kv=13 | FileCheck %s --check-prefix=GRADS
// RUN: attn-run %t/in_turn.mlir --target=cpu --check --lengths-q=3,0,7,50,5,1 --lengths-kv=5,30,0,100,3,1 | FileCheck %s --check-prefix=GRADS
// RUN: attn-opt %t/in_turn.mlir -attn-choose-schedule="target=sm_90a" -convert-attn-to-tile -canonicalize -cse | FileCheck %t/in_turn.mlir
// RUN: attn-run %t/wide_grads.mlir --target=cpu --check --lengths-q=70,3,0,96 --lengths-kv=81,24,5,60 | FileCheck %s --check-prefix=GRADS
// RUN: attn-opt %t/wide_grads.mlir -attn-choose-schedule="target=sm_80" -convert-attn-to-tile -canonicalize -cse | FileCheck %t/wide_grads.mlir
// RUN: attn-opt %t/chosen_grads.mlir -attn-choose-schedule="target=sm_80" -convert-attn-to-tile | FileCheck %t/chosen_grads.mlir
// RUN: attn-opt %t/chosen_grads.mlir -attn-choose-schedule="target=sm_80 fallback=2" -convert-attn-to-tile | FileCheck %t/chosen_grads.mlir --check-prefix=BOTH
// RUN: attn-opt %t/chosen_grads.mlir -attn-choose-schedule="target=sm_90a" -convert-attn-to-tile | FileCheck %t/chosen_grads.mlir --check-prefix=HOPPER
// RUN: attn-opt %t/fallback.mlir -attn-choose-schedule="target=sm_90a fallback=1" -convert-attn-to-tile | FileCheck %t/fallback.mlir --check-prefix=ONE
// RUN: attn-opt %t/fallback.mlir -attn-choose-schedule="target=sm_90a fallback=3" -convert-attn-to-tile | FileCheck %t/fallback.mlir --check-prefix=THREE
// RUN: attn-opt %t/fallback.mlir -attn-choose-schedule="target=sm_90a fallback=4" -convert-attn-to-tile | FileCheck %t/fallback.mlir --check-prefix=FOUR
// RUN: attn-opt %t/head_loop.mlir -attn-choose-schedule="target=sm_90a" -convert-attn-to-tile | FileCheck %t/head_loop.mlir --check-prefix=FIRST
// RUN: attn-opt %t/head_loop.mlir -attn-choose-schedule="target=sm_90a fallback=1" -convert-attn-to-tile | FileCheck %t/head_loop.mlir
// RUN: attn-opt %t/fallback.mlir -attn-choose-schedule="target=sm_80 arch=86" -convert-attn-to-tile | FileCheck %t/fallback.mlir --check-prefix=SMALL
// RUN: attn-run %t/chosen_grads.mlir --problem=g1 --target=cpu --check --lengths-q=1,0,1,3,1 --lengths-kv=128,30,0,5,97 | FileCheck %s --check-prefix=GRADS
// RUN: attn-run %t/chosen_grads.mlir --problem=g128 --target=cpu --check --lengths-q=128,1,0,100,130 --lengths-kv=128,7,5,0,128 | FileCheck %s --check-prefix=GRADS
// GRADS: ok       dq: max error
// GRADS: ok       dk: max error
// GRADS: ok       dv: max error

//--- forward.mlir
// The number of a block says whose it is.
// CHECK: target("sm_80") grid(packed heads 3 tiles 1) schedule(#tile.cta_per_sequence<q_tile = 17, kv_tile = 24, warps = 2, ctas_per_sm = 12, column_parts = 2>)
// CHECK: %Q = tile.alloc "Q" : !tile.shared<17x128xbf16, 136>
// CHECK: %block = tile.index block
// CHECK-NOT: tile.find_sequence
// CHECK: scf.for %{{.*}} = %c0_i32 to %len_q step %c17_i32
// Q, K and V are under way together.
// CHECK: %[[Q:.*]] = tile.copy_async once %Q
// CHECK: %[[K:.*]] = tile.copy_async once %K
// CHECK: %[[V:.*]] = tile.copy_async once %V
// CHECK: tile.wait_finite %V after %[[Q]], %[[K]], %[[V]]
// CHECK: tile.scale %Q by -1.000000e+00
// If all keys are there and finite: a single pass, and results a half of their columns at a time.
// CHECK: scf.if
// CHECK: tile.mma_abt %s, %Q, %K
// CHECK: tile.apply_mask %s
// CHECK: tile.online_softmax %s, %row
// CHECK: tile.reduce_row_sums %row
// CHECK: tile.convert %P, %s
// CHECK: %[[LEFT:.*]] = tile.subtile %V from(%c0_i32)
// CHECK: tile.mma_ab %acc, %P, %[[LEFT]] :
// CHECK: tile.normalize %acc, %row reduced
// CHECK: tile.store %{{.*}} dim 64
// CHECK: tile.subtile %V from(%c64_i32)
// CHECK: tile.store %{{.*}} dim 64
// Else in steps of sixteen keys.
// CHECK: } else {
// CHECK: %[[FEW:.*]] = tile.subtile %K : {{.*}} to !tile.shared<16x128xbf16, 136>
// CHECK: scf.for %column = %c0_i32 to %c128_i32 step %c64_i32
// CHECK: tile.kv_loop
// CHECK: tile.copy_async %[[FEW]]
// CHECK: tile.normalize %acc, %row
// CHECK: tile.store_lse
// CHECK: tile.barrier
// CHECK: tile.store_padding
// TOGETHER: } else {
// TOGETHER: tile.copy_async %{{.*}} when
// TOGETHER: tile.copy_async %{{.*}} when
// TOGETHER: scf.for
// TOGETHER: tile.wait
// TOGETHER: tile.mma_abt
// TOGETHER: tile.mma_ab %
// TOGETHER: tile.barrier
// TOGETHER: tile.copy_async %{{.*}} when
attn.problem @p mask(#attn.full) layout(thd) heads(3) dims(128) dtype(bf16) scale(-0.5) max_seqlen(17, 17)

//--- in_turn.mlir
// Five warps; a block has every second of five heads, and the same lengths for all of them.
// CHECK: tile.kernel @p({{.*}}) grid(packed heads 3 tiles 1)
// CHECK: %len_q =
// CHECK: %end_all =
// CHECK: scf.for %head = %h to %c5_i32 step %c3_i32
// CHECK: tile.copy_async %Q
// CHECK: tile.store_padding
// Gradients: where a tile has rows to spare, two by themselves.
// CHECK: tile.kernel @g({{.*}}) grid(packed heads 3 tiles 1)
// CHECK: scf.for %kv_head_{{.*}} to %c5_i32 step %c3_i32
// CHECK: tile.barrier
attn.problem @p mask(#attn.causal) layout(thd padded) heads(5) dims(64) dtype(bf16) max_seqlen(80)
  schedule(#tile.cta_per_sequence<q_tile = 80, kv_tile = 80, warps = 5, ctas_per_sm = 2, head_loop = 2>)
attn.backward @g of(@p) schedule(#tile.cta_per_sequence<q_tile = 16, kv_tile = 16, warps = 1, ctas_per_sm = 12, head_loop = 2>)

//--- padded.mlir
// Heads of a group share a tile; rows of padding see nothing.
// CHECK: grid(packed heads 2 tiles 1) schedule(#tile.cta_per_sequence<q_tile = 12, kv_tile = 16, warps = 1, ctas_per_sm = 16, pack_heads = 3, column_parts = 1>)
// CHECK: scf.for %{{.*}} = %c0_i32 to %extent step %c4_i32
// CHECK: tile.copy_async once %Q, %q_rows stride(%{{.*}} heads 3)
// CHECK: %[[SOME:.*]] = arith.cmpi sgt, %rows, %c0_i32
// CHECK: } else {
// CHECK: scf.if %[[SOME]]
// CHECK: tile.kv_loop
attn.problem @p mask(#attn.causal<bottom_right>) layout(thd padded) heads(6, 2) dims(64, 48) dtype(f16)
  score([#attn.softcap<10.0>]) max_seqlen(4, 16)

//--- grads.mlir
// CHECK: grid(packed heads 3 tiles 1) schedule(#tile.cta_per_sequence<q_tile = 8, kv_tile = 16, warps = 1, ctas_per_sm = 12, pack_heads = 2>)
// CHECK: scf.if
// CHECK: tile.copy_async once %Q, %{{.*}} stride(%{{.*}} heads 2)
// CHECK: tile.copy_async once %K
// CHECK: tile.copy_async once %dO
// CHECK: tile.copy_async once %V
// CHECK: tile.load_row_statistics %stats, %{{.*}} stride(%{{.*}} heads 2) dlse(%{{.*}}, %{{.*}} heads 2)
// CHECK: tile.apply_mask %s at(%{{.*}} heads 2, %c0_i32)
// CHECK: tile.probabilities %s, %stats at(%{{.*}} heads 2, %c0_i32) weighted(%weighted
// CHECK: tile.mma_abt %dp, %dO, %V
// CHECK: tile.single_pass_grads %dp, %s, %stats weighted(%weighted
// CHECK: tile.barrier
// CHECK: tile.convert %P, %s
// CHECK: tile.mma_atb %dV, %P, %dO
// CHECK: tile.barrier
// CHECK: tile.convert %dS, %dp
// CHECK: tile.mma_ab %dQ, %dp, %K
// CHECK: tile.barrier
// CHECK: tile.mma_atb %dK, %dS, %Q
// CHECK: } else {
// CHECK: tile.load_rows
attn.problem @p mask(#attn.causal<bottom_right>) layout(thd padded) heads(6, 3) dims(64, 48) dtype(f16)
  score([#attn.softcap<10.0>, #attn.alibi]) max_seqlen(3, 16)
attn.backward @grads of(@p) dlse

//--- negative.mlir
attn.problem @p mask(#attn.band<left = 3, right = 1>) layout(bshd) heads(3) dims(80, 24) dtype(bf16) scale(-0.1) max_seqlen(16, 16)
attn.backward @grads of(@p)

//--- chosen.mlir
// A warp for sixteen rows; tiles that hold all keys, up to 64 or 96, and no more. As many blocks as have room.
// CHECK: tile.kernel @s17({{.*}}) grid(dense heads 4 tiles 1) schedule(#tile.cta_per_sequence<q_tile = 17, kv_tile = 24, warps = 2, ctas_per_sm = 12, column_parts = 2>)
// CPU: tile.kernel @s17({{.*}}) schedule(#tile.cta_per_sequence<q_tile = 17, kv_tile = 24, warps = 1, ctas_per_sm = 12, column_parts = 2>)
attn.problem @s17 mask(#attn.full) layout(bshd) heads(4) dims(128) dtype(bf16) max_seqlen(17)
// CHECK: tile.kernel @s64({{.*}}) schedule(#tile.cta_per_sequence<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 4, column_parts = 1>)
attn.problem @s64 mask(#attn.full) layout(bshd) heads(4) dims(128) dtype(bf16) max_seqlen(64)
// CHECK: tile.kernel @s65({{.*}}) schedule(#tile.cta_per_sequence<q_tile = 65, kv_tile = 72, warps = 5, ctas_per_sm = 4, column_parts = 2>)
attn.problem @s65 mask(#attn.full) layout(bshd) heads(4) dims(128) dtype(bf16) max_seqlen(65)
// CHECK: tile.kernel @s96({{.*}}) schedule(#tile.cta_per_sequence<q_tile = 96, kv_tile = 96, warps = 6, ctas_per_sm = 2, pack_heads = 4, column_parts = 4>)
attn.problem @s96 mask(#attn.full) layout(bshd) heads(4, 1) dims(128) dtype(bf16) max_seqlen(24, 90)
// Beyond, Hopper's tiles are as large as max_seqlen fills.
// CHECK: tile.kernel @s97({{.*}}) schedule(#tile.warp_specialized<q_tile = 128, kv_tile = 112, warps = 8
attn.problem @s97 mask(#attn.full) layout(bshd) heads(4) dims(128) dtype(bf16) max_seqlen(97)
// CHECK: tile.kernel @s113({{.*}}) schedule(#tile.warp_specialized<q_tile = 128, kv_tile = 128, warps = 8
attn.problem @s113 mask(#attn.full) layout(bshd) heads(4) dims(128) dtype(bf16) max_seqlen(113)
// CHECK: tile.kernel @s129({{.*}}) schedule(#tile.warp_specialized<q_tile = 192, kv_tile = 80, warps = 12
attn.problem @s129 mask(#attn.full) layout(bshd) heads(4) dims(128) dtype(bf16) max_seqlen(129)
// CHECK: tile.kernel @s161({{.*}}) schedule(#tile.warp_specialized<q_tile = 64, kv_tile = 96, warps = 4, ctas_per_sm = 2>)
attn.problem @s161 mask(#attn.full) layout(bshd) heads(4) dims(128) dtype(bf16) max_seqlen(161)
// CHECK: tile.kernel @s193({{.*}}) schedule(#tile.warp_specialized<q_tile = 128, kv_tile = 128, warps = 8
attn.problem @s193 mask(#attn.full) layout(bshd) heads(4) dims(128) dtype(bf16) max_seqlen(193)
// Packed ones have small tiles up to 384 (single-pass.mlir shows which have others).
// CHECK: tile.kernel @packed257({{.*}}) schedule(#tile.warp_specialized<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 2, q_stages = 2>)
attn.problem @packed257 mask(#attn.full) layout(thd) heads(4) dims(128) dtype(bf16) max_seqlen(257)
// CHECK: tile.kernel @packed193_capped({{.*}}) schedule(#tile.warp_specialized<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 2, q_stages = 2>)
attn.problem @packed193_capped mask(#attn.full) layout(thd) heads(4) dims(128) dtype(bf16) max_seqlen(193) score([#attn.softcap<30.0>])
// CHECK: tile.kernel @s224({{.*}}) schedule(#tile.warp_specialized<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 2
attn.problem @s224 mask(#attn.causal) layout(bshd) heads(4) dims(128) dtype(bf16) max_seqlen(224)
// CHECK: tile.kernel @s225({{.*}}) schedule(#tile.warp_specialized<q_tile = 128, kv_tile = 128, warps = 8
attn.problem @s225 mask(#attn.causal) layout(bshd) heads(4) dims(128) dtype(bf16) max_seqlen(225)
// Not of head dims beyond 256, and tests of a tile are of one head.
// CHECK: tile.kernel @d264({{.*}}) schedule(#tile.simt_rows<rows = 2, keys = 4, lanes = 32, warps = 4, ctas_per_sm = 4>)
attn.problem @d264 mask(#attn.full) layout(bshd) heads(4) dims(264) dtype(bf16) max_seqlen(16)
// CHECK: tile.kernel @of_heads({{.*}}) schedule(#tile.cta_per_sequence<q_tile = 16, kv_tile = 16, warps = 1, ctas_per_sm = 16, column_parts = 1>)
attn.problem @of_heads mask(#attn.heads<#attn.full, #attn.causal>) layout(bshd) heads(4, 2) dims(64) dtype(bf16) max_seqlen(16)

//--- wide_grads.mlir
// Beyond 64 keys, sums are made half of their columns at a time.
// CHECK: schedule(#tile.cta_per_sequence<q_tile = 72, kv_tile = 88, warps = 5, ctas_per_sm = 2, column_parts = 2>)
// CHECK: tile.mma_atb %dV, %P
// CHECK: tile.store %{{.*}}, %dV {{.*}} dim 64
// CHECK: tile.subtile %dO from(%c64_i32) : !tile.shared<72x128xbf16, 136> to !tile.shared<72x64xbf16, 136>
// CHECK: tile.store %{{.*}}, %dQ {{.*}} dim 32
attn.problem @p mask(#attn.causal) layout(thd padded) heads(4) dims(64, 128) dtype(bf16) max_seqlen(70, 81)
attn.backward @g of(@p)

//--- chosen_grads.mlir
// Up to 128 rows and keys: as many blocks as registers allow, whole sums where scores have had more of them than sums need.
// SIMT rows for one row and up to 40 keys.
attn.problem @p40 mask(#attn.full) layout(thd) heads(4) dims(128) dtype(bf16) max_seqlen(1, 40) {sym_visibility = "private"}
// CHECK: tile.kernel @g40({{.*}}schedule(#tile.simt_rows<{{.*}}lanes = 16
attn.backward @g40 of(@p40)
attn.problem @p1 mask(#attn.full) layout(thd) heads(4) dims(128) dtype(bf16) max_seqlen(1, 128) {sym_visibility = "private"}
// CHECK: tile.kernel @g1({{.*}} schedule(#tile.cta_per_sequence<q_tile = 8, kv_tile = 128, warps = 4, ctas_per_sm = 2, column_parts = 2>)
attn.backward @g1 of(@p1)
attn.problem @p96 mask(#attn.full) layout(thd) heads(4) dims(128) dtype(bf16) max_seqlen(96) {sym_visibility = "private"}
// CHECK: tile.kernel @g96({{.*}} schedule(#tile.cta_per_sequence<q_tile = 96, kv_tile = 96, warps = 6, ctas_per_sm = 2>)
attn.backward @g96 of(@p96)
attn.problem @p112 mask(#attn.causal) layout(thd) heads(4) dims(128) dtype(bf16) max_seqlen(112) {sym_visibility = "private"}
// CHECK: tile.kernel @g112({{.*}} schedule(#tile.cta_per_sequence<q_tile = 112, kv_tile = 112, warps = 7, ctas_per_sm = 1>)
attn.backward @g112 of(@p112) deterministic
// On Hopper, where a sequence has no single pass (single-pass-backward.mlir), kernels on tiles are faster with a max_seqlen
// of more than 96 rows (in a fixed order, 112), if dQ of a tile of keys needs no accumulation: not if that many are typical
// only, nor of dense rows.
attn.problem @typical128 mask(#attn.causal) layout(thd) heads(4) dims(128) dtype(bf16) expected_seqlen(128) {sym_visibility = "private"}
// CHECK: tile.kernel @gtypical128_short({{.*}} schedule(#tile.cta_per_sequence<q_tile = 128, kv_tile = 128, warps = 8, ctas_per_sm = 1>)
attn.backward @gtypical128 of(@typical128)
attn.problem @dense128 mask(#attn.causal) layout(bshd) heads(4) dims(128) dtype(bf16) max_seqlen(128) {sym_visibility = "private"}
// CHECK: tile.kernel @gdense128({{.*}} schedule(#tile.cta_per_sequence<q_tile = 128, kv_tile = 128, warps = 8, ctas_per_sm = 1>)
attn.backward @gdense128 of(@dense128)
attn.problem @p128 mask(#attn.predicate<"q >= k">) layout(thd) heads(4) dims(128) dtype(bf16) max_seqlen(128) {sym_visibility = "private"}
// CHECK: tile.kernel @g128({{.*}} schedule(#tile.cta_per_sequence<{{.*}}>)
// HOPPER: tile.kernel @g128({{.*}} schedule(#tile.warp_specialized_backward<q_tile = 64, kv_tile = 128, warps = 8, ctas_per_sm = 1, single_loop = true, dq_columns = 64>)
attn.backward @g128 of(@p128)
// Head dims without whole parts, or beyond 128: up to 64. What is typical leaves longer ones to tiles.
attn.problem @p72 mask(#attn.full) layout(thd) heads(4) dims(72) dtype(bf16) max_seqlen(65) {sym_visibility = "private"}
// CHECK: tile.kernel @g72({{.*}} schedule(#tile.tiled_backward<q_tile = {{[0-9]+}}, kv_tile = 64, warps = 4, ctas_per_sm = 1>)
attn.backward @g72 of(@p72)
attn.problem @p100 mask(#attn.full) layout(thd) heads(4) dims(64) dtype(bf16) expected_seqlen(100) {sym_visibility = "private"}
// BOTH: tile.kernel @g100_short({{.*}} schedule(#tile.cta_per_sequence<q_tile = 104, kv_tile = 104, warps = 7, ctas_per_sm = 1>)
// CHECK: tile.kernel @g100_short({{.*}} schedule(#tile.cta_per_sequence<q_tile = 104, kv_tile = 104, warps = 7, ctas_per_sm = 1>)
// CHECK: tile.kernel @g100({{.*}} schedule(#tile.tiled_backward<q_tile = {{[0-9]+}}, kv_tile = 64, warps = 4
attn.backward @g100 of(@p100)

//--- fallback.mlir
// Where registers do not do: sums of fewer columns at a time, fewer blocks, then tiles. And those where shared memory does not do.
// ONE: tile.kernel @g({{.*}} schedule(#tile.cta_per_sequence<q_tile = 96, kv_tile = 96, warps = 6, ctas_per_sm = 2, column_parts = 2>)
// THREE: tile.kernel @g({{.*}} schedule(#tile.cta_per_sequence<q_tile = 96, kv_tile = 96, warps = 8, ctas_per_sm = 1, column_parts = 4>)
// FOUR-NOT: cta_per_sequence
// FOUR: tile.kernel @g({{.*}} schedule(#tile.warp_specialized_backward<q_tile = 64, kv_tile = 128
// SMALL-NOT: cta_per_sequence
// SMALL: tile.kernel @g(
attn.problem @p mask(#attn.predicate<"q >= k">) layout(bshd) heads(4) dims(128) dtype(bf16) max_seqlen(96) {sym_visibility = "private"}
attn.backward @g of(@p)

//--- head_loop.mlir
// No head loop, ahead of fewer blocks.
// FIRST: schedule(#tile.cta_per_sequence<q_tile = 24, kv_tile = 48, warps = 2, ctas_per_sm = 6, head_loop = 2>)
// CHECK: schedule(#tile.cta_per_sequence<q_tile = 24, kv_tile = 48, warps = 2, ctas_per_sm = 6>)
attn.problem @p mask(#attn.predicate<"q >= k">) layout(bshd) heads(4) dims(128) dtype(bf16) max_seqlen(24, 48) {sym_visibility = "private"}
attn.backward @g of(@p)

//--- errors.mlir
// expected-error @below {{expected pack_heads to be 2, the query heads of a kv head, or, without score modifiers, a multiple of it}}
attn.problem @p mask(#attn.full) layout(thd) heads(8, 4) dims(64) dtype(f16)
  schedule(#tile.cta_per_sequence<q_tile = 16, kv_tile = 16, warps = 1, ctas_per_sm = 1, pack_heads = 3>)

// -----

// expected-error @below {{'attn.problem' op expected a schedule with tiles of a grid for tiles(M), got: #tile.cta_per_sequence<q_tile = 16, kv_tile = 16, warps = 1, ctas_per_sm = 1>}}
attn.problem @p mask(#attn.full) layout(thd) heads(2) dims(64) dtype(bf16) tiles(16)
  schedule(#tile.cta_per_sequence<q_tile = 16, kv_tile = 16, warps = 1, ctas_per_sm = 1>)

// -----

// expected-error @below {{expected #tile.simt_rows for head dims beyond 256, got: dim 264 with #tile.cta_per_sequence<}}
attn.problem @p mask(#attn.full) layout(thd) heads(2) dims(264) dtype(bf16)
  schedule(#tile.cta_per_sequence<q_tile = 16, kv_tile = 16, warps = 1, ctas_per_sm = 1>)

// -----

// expected-error @below {{expected parts of v's columns in multiples of 16, got: dim 72 with #tile.cta_per_sequence<q_tile = 16, kv_tile = 16, warps = 1, ctas_per_sm = 1, column_parts = 2>}}
attn.problem @p mask(#attn.full) layout(thd) heads(2) dims(72) dtype(bf16)
  schedule(#tile.cta_per_sequence<q_tile = 16, kv_tile = 16, warps = 1, ctas_per_sm = 1, column_parts = 2>)

// -----

// expected-error @below {{expected a q_tile and a kv_tile in multiples of 16 with dropout, got: #tile.cta_per_sequence<q_tile = 17, kv_tile = 24, warps = 2, ctas_per_sm = 1, column_parts = 1>}}
attn.problem @p mask(#attn.full) layout(thd) heads(2) dims(64) dtype(bf16) dropout(0.5, "seed")
  schedule(#tile.cta_per_sequence<q_tile = 17, kv_tile = 24, warps = 2, ctas_per_sm = 1, column_parts = 1>)

// -----

attn.problem @p mask(#attn.full) layout(thd) heads(2) dims(64, 80) dtype(bf16) max_seqlen(16)
// expected-error @below {{expected parts of columns in multiples of 16, got: dims 64, 80 with #tile.cta_per_sequence<q_tile = 16, kv_tile = 16, warps = 1, ctas_per_sm = 1, column_parts = 2>}}
attn.backward @g of(@p) schedule(#tile.cta_per_sequence<q_tile = 16, kv_tile = 16, warps = 1, ctas_per_sm = 1, column_parts = 2>)
