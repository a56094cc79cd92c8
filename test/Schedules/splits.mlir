// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Keys of a query tile shared out among blocks (`split_kv`), and the kernel that merges.
//
// RUN: rm -rf %t && split-file %s %t
// RUN: attn-opt %t/one.mlir -attn-choose-schedule="target=cpu" -convert-attn-to-tile -canonicalize -cse | FileCheck %t/one.mlir
// RUN: attn-opt %t/runs.mlir -attn-choose-schedule="target=cpu" -convert-attn-to-tile -canonicalize -cse | FileCheck %t/runs.mlir
// RUN: attn-opt %t/packed.mlir -attn-choose-schedule="target=sm_90a" -convert-attn-to-tile -canonicalize -cse | FileCheck %t/packed.mlir
// RUN: attn-opt %t/packed.mlir --attn-pipeline="target=sm_90a" | FileCheck %t/packed.mlir --check-prefix=ROLES
// RUN: attn-translate %t/packed.mlir --target=sm_90a | FileCheck %t/packed.mlir --check-prefix=TEXT
// RUN: attn-opt %t/names.mlir -attn-choose-schedule -convert-attn-to-tile | FileCheck %t/names.mlir
// RUN: attn-opt %t/chosen.mlir -attn-choose-schedule="target=sm_90a" -convert-attn-to-tile | FileCheck %t/chosen.mlir --check-prefix=HOPPER
// RUN: attn-opt %t/chosen.mlir -attn-choose-schedule="target=cpu" -convert-attn-to-tile | FileCheck %t/chosen.mlir --check-prefix=CPU
// RUN: attn-opt %t/errors.mlir -attn-choose-schedule -convert-attn-to-tile -split-input-file -verify-diagnostics

// What the kernels compute: more parts than tiles too, whose rows nobody wrote.
// RUN: attn-run %t/one.mlir --target=cpu --check --batch=2 --seqlen-q=70 --seqlen-kv=90 | FileCheck %s --check-prefix=SAME
// RUN: attn-run %t/runs.mlir --target=cpu --check --batch=1 --seqlen-q=33 --seqlen-kv=700 | FileCheck %s --check-prefix=SAME
// RUN: attn-run %t/on_cpu.mlir --target=cpu --check --lengths-q=1,0,70 --lengths-kv=200,30,0 | FileCheck %s --check-prefix=SAME
// RUN: env ATTN_NUM_THREADS=16 attn-run %t/chosen.mlir --target=cpu --check --batch=1 --seqlen-q=1 --seqlen-kv=3000 | FileCheck %s --check-prefix=SAME
// RUN: attn-run %t/chosen.mlir --target=cpu --check --batch=3 --seqlen-q=2 --seqlen-kv=200 | FileCheck %s --check-prefix=SAME
// RUN: attn-run %t/one_on_cpu.mlir --target=cpu --check --lengths-q=1,0,70 --lengths-kv=200,30,0 | FileCheck %s --check-prefix=SAME
// SAME-COUNT-2: {{^}}ok
// SAME-NOT: FAILED

//--- one.mlir
// Results go to float32 tensors of the launch's workspace.
// CHECK: tile.kernel @p(%q: {{.*}}, %k: {{.*}}, %v: {{[^,]*}}, %partial_o: !tile.ptr<f32>, %partial_max: !tile.ptr<f32>, %partial_sum: !tile.ptr<f32>, %batch: i32, %seqlen_q: i32, %seqlen_kv: i32, %splits: i32, %q_batch: i64
// CHECK-NOT: %o_row
// CHECK-SAME: schedule(#tile.split_kv<splits = 7, of = #tile.tiled<{{.*}}ctas_per_sm = 1>>)
// The same split of all heads belongs to CTAs that follow each other.
// CHECK: %[[GROUP:.*]] = arith.divui %block, %c4_i32
// CHECK: %split = arith.remui %[[GROUP]], %splits
// CHECK: arith.divui %[[GROUP]], %splits
// CHECK: %query_tile = arith.addi
// What the mask leaves is what is shared out: equal parts, the first ones a tile longer.
// CHECK: %end = arith.divui
// CHECK: %[[FULL:.*]] = arith.minsi %{{.*}}, %end
// CHECK: %[[SHARE:.*]] = arith.divui %end, %splits
// CHECK: %[[LONGER:.*]] = arith.remui %end, %splits
// CHECK: %[[AFTER:.*]] = arith.addi %split, %c1_i32
// CHECK: arith.muli %[[AFTER]], %[[SHARE]]
// CHECK: arith.minsi %[[AFTER]], %[[LONGER]]
// CHECK: %[[END:end.*]] = arith.addi
// CHECK: arith.muli %split, %[[SHARE]]
// CHECK: arith.minsi %split, %[[LONGER]]
// CHECK: %[[BEGIN:begin.*]] = arith.addi
// CHECK: %[[FROM:.*]] = arith.maxsi %[[FULL]], %[[BEGIN]]
// CHECK: %[[FULL_END:.*]] = arith.minsi %[[FROM]], %[[END]]
// CHECK: tile.kv_loop [%[[BEGIN]], %[[FULL_END]], %[[END]]] tests {{\[\[}}], [0]]
// CHECK: tile.normalize
// CHECK: tile.store %partial_o_rows stride(%c16_i64), %acc rows(%rows, %rows) dim 16 : !tile.ptr<f32>
// CHECK: tile.store_lse %partial_max_rows sum(%partial_sum_rows)
// The kernel that merges knows rows, heads and sequences, nothing of masks.
// CHECK: tile.kernel @p_combine(%o: !tile.ptr<bf16>, %lse: !tile.ptr<f32>, %partial_o: !tile.ptr<f32>, %partial_max: !tile.ptr<f32>, %partial_sum: !tile.ptr<f32>, %batch: i32, %seqlen_q: i32, %splits: i32,
// CHECK-SAME: target("cpu") grid(dense heads 4) schedule(#tile.auxiliary<q_tile = 4, kv_tile = 16, warps = 4, ctas_per_sm = 4>)
// CHECK: tile.combine %o_rows stride(%o_row) lse(%{{.*}}) from(%partial_o_rows, %partial_max_rows, %partial_sum_rows) splits(%splits, %{{.*}}) rows(%rows) dim 16 scale 2.500000e-01 : !tile.ptr<bf16>
attn.problem @p mask(#attn.causal) layout(bshd) heads(4, 2) dims(16) dtype(bf16)
  schedule(#tile.split_kv<splits = 7, of = #tile.tiled<q_tile = 64, kv_tile = 16, warps = 1, ctas_per_sm = 1>>)

//--- runs.mlir
// A mask with holes: tiles are counted through all runs.
// CHECK: %[[SECOND:.*]] = arith.subi %[[END:end[_0-9]+]], %begin
// CHECK: %[[COUNT:.*]] = arith.addi %end, %[[SECOND]]
// CHECK: arith.divui %[[COUNT]], %splits
// CHECK: tile.kv_loop [%begin{{_[0-9]+}}, {{[^]]*}}, %end{{_[0-9]+}}] tests {{.*}}[%begin{{_[0-9]+}}, {{[^]]*}}, %end{{_[0-9]+}}] tests
attn.problem @p mask(#attn.or<#attn.prefix<40>, #attn.band<left = 200, right = 0, bottom_right>>) layout(bshd) heads(2)
  dims(16) dtype(f16)
  schedule(#tile.split_kv<splits = 5, of = #tile.tiled<q_tile = 16, kv_tile = 16, warps = 1, ctas_per_sm = 1>>)

//--- packed.mlir
// A single split writes the problem's results. Padding has an lse of -inf in every split of several; its o is not written.
// CHECK: scf.if
// CHECK-NEXT: %[[WHOLE:.*]] = arith.cmpi eq, %splits, %c1_i32
// CHECK-NEXT: scf.if %[[WHOLE]]
// CHECK: tile.store_padding %o_rows stride(%o_row) rows(%write_rows) dim 64 : !tile.ptr<bf16>
// CHECK-NEXT: tile.store_padding %{{.*}} stride(%c1_i64) rows(%write_rows) dim 1 : !tile.ptr<f32>
// CHECK: %[[PARTIAL:.*]] = arith.cmpi ne, %splits, %c1_i32
// CHECK-NEXT: scf.if %[[PARTIAL]]
// CHECK-NOT: dim 64
// CHECK: tile.store_padding %partial_max_rows stride(%c1_i64) rows(%write_rows) dim 1 : !tile.ptr<f32>
// CHECK-NOT: tile.store_padding
// CHECK: tile.store %o_rows stride(%o_row), %acc rows(%rows, %write_rows) dim 64 : !tile.ptr<bf16>
// CHECK: tile.store %partial_o_rows stride(%c64_i64), %acc rows(%rows, %rows) dim 64 : !tile.ptr<f32>
// A part repairs its own rows, from its own keys.
// CHECK: tile.kernel @p_combine({{.*}} target("sm_80") grid(packed heads 4)
// CHECK: tile.grid_dependency_sync
// CHECK: %[[SLOTS:.*]] = arith.divui %total_q, %c4_i32
// CHECK: tile.combine
// With one split it is not launched.
// CHECK: program.launch @p grid({{.*}} * splits) ({{.*}}write %o rows(0 of 2) or zero, write %lse rows(0 of 2) or zero, {{.*}}write %partial_o or zero
// CHECK: program.launch @p_combine grid({{.*}} * min(splits - 1, 1)) (write %o rows(1 of 2), write %lse rows(1 of 2), read %partial_o,
attn.problem @p mask(#attn.causal) layout(thd padded) heads(4, 2) dims(64) dtype(bf16)
  schedule(#tile.split_kv<of = #tile.warp_specialized<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>>)
// ROLES: tile.kernel @p(
// ROLES: tile.persistent_loop %blocks, %queue
// ROLES: tile.recompute_rows %acc at(%q0) rows(%rows) keys(%{{.*}} from %{{.*}}) from({{.*}}) into(%o_rows, %o_row) lse(
// ROLES: tile.recompute_rows %acc at(%q0) rows(%rows) keys(%{{.*}} from %{{.*}}) from({{.*}}) into(%partial_o_rows, %c64_i64) lse(%partial_max_rows) sum(%partial_sum_rows) dims(64, 64)
// ROLES-SAME: !tile.ptr<bf16>, !tile.ptr<f32>
// The other kernel is an ordinary one.
// ROLES: tile.kernel @p_combine
// ROLES-NOT: tile.persistent_loop
// ROLES: tile.combine
// TEXT: if (splits == 1) {
// TEXT: attn::store<64>(o_rows, o_row, acc, rows, write_rows);
// TEXT: if (splits != 1) {
// TEXT: attn::store<64>(partial_o_rows, 64, acc, rows, rows);
// TEXT: attn::recompute_rows<64, 64>(acc, q0, rows, {{.*}}, partial_o_rows, 64, attn::PartialState{partial_max_rows, partial_sum_rows},
// TEXT: ATTN_KERNEL(p_combine, /*threads=*/128
// TEXT: attn::grid_dependency_sync();
// TEXT: attn::combine<64, 4, 128>(o_rows, o_row, lse + {{.*}}, partial_o_rows, partial_max_rows, partial_sum_rows, {{.*}}, splits, (long long)total_q * 4, rows);

//--- on_cpu.mlir
attn.problem @p mask(#attn.causal<bottom_right>) layout(thd padded) heads(4, 2) dims(64) dtype(bf16)
  schedule(#tile.split_kv<splits = 4, of = #tile.tiled<q_tile = 64, kv_tile = 64, warps = 1, ctas_per_sm = 1>>)

//--- one_on_cpu.mlir
// The launch finds too few keys for two splits.
attn.problem @p mask(#attn.causal<bottom_right>) layout(thd padded) heads(4, 2) dims(64) dtype(bf16)
  schedule(#tile.split_kv<of = #tile.tiled<q_tile = 64, kv_tile = 64, warps = 1, ctas_per_sm = 1, pack_heads = 2>>)

//--- names.mlir
// CHECK: tile.kernel @p(
// CHECK: tile.kernel @p_combine_(
// CHECK: tile.kernel @p_combine(
attn.problem @p mask(#attn.full) layout(bshd) heads(1) dims(16) dtype(bf16)
  schedule(#tile.split_kv<splits = 2, of = #tile.tiled<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>>)
attn.problem @p_combine mask(#attn.full) layout(bshd) heads(1) dims(16) dtype(bf16)

//--- chosen.mlir
// Few queries of many keys: into how many parts, the launch says.
// HOPPER: tile.kernel @few({{.*}} schedule(#tile.split_kv<of = #tile.warp_specialized<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1, stages = 3, pack_heads = 2>>)
// CPU: tile.kernel @few({{.*}} schedule(#tile.split_kv<of = #tile.tiled<q_tile = 64, kv_tile = 64, warps = 1, ctas_per_sm = 1, pack_heads = 2>>)
attn.problem @few mask(#attn.full) layout(bshd) heads(4, 2) dims(128) dtype(bf16) expected_seqlen(1, 32768)

//--- errors.mlir
// expected-error @+2 {{expected a q_tile in multiples of 16 * warps up to 256, got: q_tile = 4, warps = 4}}
attn.problem @p mask(#attn.full) layout(bshd) heads(1) dims(16) dtype(bf16)
  schedule(#tile.tiled<q_tile = 4, kv_tile = 16, warps = 4, ctas_per_sm = 8>)

// -----

// expected-error @+2 {{expected splits from 0 (chosen at launch) to 256, got: 257}}
attn.problem @p mask(#attn.full) layout(bshd) heads(1) dims(16) dtype(bf16)
  schedule(#tile.split_kv<splits = 257, of = #tile.tiled<q_tile = 64, kv_tile = 16, warps = 4, ctas_per_sm = 2>>)

// -----

// expected-error @+2 {{expected #tile.tiled or #tile.warp_specialized as the schedule whose keys are split, got: #tile.simt_rows<}}
attn.problem @p mask(#attn.full) layout(bshd) heads(1) dims(16) dtype(bf16)
  schedule(#tile.split_kv<of = #tile.simt_rows<rows = 1, keys = 4, lanes = 2, warps = 4, ctas_per_sm = 4>>)

// -----

// What is split is as another target has it.
// expected-error @below {{expected #tile.tiled for target `sm_80`, which has no warp specialization, got: #tile.warp_specialized<}}
attn.problem @p mask(#attn.full) layout(bshd) heads(1) dims(16) dtype(bf16)
  schedule(#tile.split_kv<of = #tile.warp_specialized<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>>)
