// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// SIMT rows for short sequences, forward: when they are chosen, and their kernels.
//
// RUN: rm -rf %t && split-file %s %t
// RUN: attn-opt %t/dense.mlir -attn-choose-schedule="target=sm_90a" -convert-attn-to-tile -canonicalize -cse | FileCheck %t/dense.mlir
// RUN: attn-opt %t/packed.mlir -attn-choose-schedule="target=sm_80" -convert-attn-to-tile -canonicalize -cse | FileCheck %t/packed.mlir
// RUN: attn-opt %t/chosen.mlir -attn-choose-schedule="target=sm_90a" -convert-attn-to-tile | FileCheck %t/chosen.mlir
// RUN: attn-opt %t/chosen.mlir -attn-choose-schedule="target=cpu" -convert-attn-to-tile | FileCheck %t/chosen.mlir --check-prefix=CPU
// RUN: attn-opt %t/errors.mlir -attn-choose-schedule -convert-attn-to-tile -split-input-file -verify-diagnostics

// max_seqlen is a hint: longer sequences are computed correctly. So are empty ones, odd numbers of sequences and heads.
// RUN: attn-run %t/packed.mlir --target=cpu --check --lengths-q=1,0,7,30 --lengths-kv=5,30,0,100 | FileCheck %s --check-prefix=SAME
// RUN: attn-run %t/dense.mlir --target=cpu --check --batch=9 --seqlen-q=3 --seqlen-kv=17 | FileCheck %s --check-prefix=SAME
// RUN: attn-run %t/wide.mlir --target=cpu --check --lengths-q=1,1,1 --lengths-kv=3,0,16 | FileCheck %s --check-prefix=SAME
// SAME-COUNT-2: {{^}}ok
// SAME-NOT: FAILED

//--- dense.mlir
// Three heads, two a warp: the last slot reads a head and writes nothing. Hopper has nothing of its own for this.
// CHECK: target("sm_80") grid(dense heads 2 tiles 1) schedule(#tile.simt_rows<rows = 1, keys = 4, lanes = 16, warps = 4, ctas_per_sm = 10>)
// CHECK: %Q = tile.alloc "Q" : !tile.simt_tile<1x128xf32, 16>
// CHECK: %K = tile.alloc "K" : !tile.simt_tile<4x128xbf16, 16>
// CHECK: %global_warp = tile.index global_warp
// CHECK: %[[GROUP:.*]] = arith.andi %global_warp, %c1_i32
// CHECK: %b = arith.divui %global_warp, %c2_i32
// CHECK: %lane_group = tile.index lane_group lanes 16
// CHECK: %[[HEAD:.*]] = arith.addi %{{.*}}, %lane_group
// CHECK: %[[LIVE:.*]] = arith.cmpi slt, %[[HEAD]], %c3_i32
// CHECK: %h = arith.minsi %[[HEAD]], %c2_i32
// CHECK: %[[EXISTS:.*]] = arith.cmpi slt, %b, %batch
// CHECK: scf.if %[[EXISTS]] {
// CHECK: scf.for %[[Q0:.*]] = %c0_i32 to %seqlen_q step %c1_i32
// CHECK: %[[ROWS:.*]] = arith.select %[[LIVE]], %rows, %c0_i32
// CHECK: tile.load_rows %Q, %q_rows stride(%q_row) rows(%[[ROWS]])
// CHECK: tile.kv_loop [%c0_i32, %full_end, %end] tests {{\[\[}}], [0]]
// Both are under way before anything is computed.
// CHECK: tile.load_rows %K
// CHECK-NOT: tile.mma_abt
// CHECK: tile.load_rows %V
// CHECK: tile.mma_abt %s, %Q, %K {negated}
// CHECK: tile.apply_mask %s at(%[[Q0]], %k0) : !tile.simt_scores<1x4, 16> {
// CHECK: tile.store %o_rows stride(%o_row), %acc rows(%[[ROWS]], %[[ROWS]]) dim 128
// CHECK-NOT: tile.store_padding
attn.problem @dense mask(#attn.full) layout(bshd) heads(3) dims(128) dtype(bf16) scale(-0.5) max_seqlen(1, 16)

//--- packed.mlir
// Two heads of a group are two rows of a group of lanes, with two queries each; two warps share a sequence's rows.
// CHECK: grid(packed heads 2 tiles 2) schedule(#tile.simt_rows<rows = 4, keys = 4, lanes = 8, warps = 4, ctas_per_sm = 4, pack_heads = 2>)
// CHECK: %tile = arith.andi %global_warp, %c1_i32
// CHECK: %extent = arith.subi
// CHECK: scf.for %{{.*}} = %{{.*}} to %extent step %c4_i32
// CHECK: %[[SEES:.*]] = arith.cmpi sgt, %rows, %c0_i32
// CHECK: scf.if %[[SEES]] {
// CHECK: tile.kv_loop
// CHECK: tile.store
// Padding before the first and behind the last sequence is shared out among all warps.
// CHECK: %begin_all = tile.load uniform %padded_offsets_q[%c0_i32]
// CHECK: tile.store_padding %o_rows stride(%{{.*}} heads 2) from(%{{.*}}) to(%begin_all) step(%{{.*}}) lanes 8 dim 64
// CHECK: tile.store_padding %{{.*}} stride(%{{.*}} heads 2) from(%{{.*}}) to(%begin_all) step(%{{.*}}) lanes 8 dim 1
// CHECK: tile.store_padding %o_rows stride(%{{.*}} heads 2) from(%{{.*}}) to(%total_q)
attn.problem @packed mask(#attn.causal<bottom_right>) layout(thd padded) heads(12, 6) dims(64) dtype(f16)
  score([#attn.softcap<10.0>]) max_seqlen(4, 16)
  schedule(#tile.simt_rows<rows = 4, keys = 4, lanes = 8, warps = 4, ctas_per_sm = 4, pack_heads = 2>)

//--- wide.mlir
attn.problem @wide mask(#attn.full) layout(thd) heads(2) dims(512, 264) dtype(bf16) outputs(o, lse) max_seqlen(1, 16)

//--- chosen.mlir
// CHECK: tile.kernel @tiles({{.*}}) target("sm_90a") grid(dense heads 4) schedule(#tile.warp_specialized<
attn.problem @tiles mask(#attn.full) layout(bshd) heads(4) dims(128) dtype(bf16)
// The expected length will do.
// CHECK: tile.kernel @expected({{.*}}) grid(dense heads 2 tiles 1) schedule(#tile.simt_rows<rows = 1, keys = 4, lanes = 16, warps = 4, ctas_per_sm = 10>)
attn.problem @expected mask(#attn.full) layout(bshd) heads(4) dims(128) dtype(bf16) expected_seqlen(1, 16)
// The maximum length counts before the expected one.
// CHECK: tile.kernel @long({{.*}}) target("sm_90a") grid(dense heads 4) schedule(#tile.warp_specialized<
attn.problem @long mask(#attn.full) layout(bshd) heads(4) dims(128) dtype(bf16) expected_seqlen(1, 16) max_seqlen(4096)
// Head dims beyond a lane's chunk, or between powers of two, and beyond those of tiles.
// CHECK: tile.kernel @d80({{.*}}) schedule(#tile.simt_rows<rows = 1, keys = 4, lanes = 16, warps = 4, ctas_per_sm = 10>)
// CPU: tile.kernel @d80({{.*}}) target("cpu") grid(dense heads 4 tiles 1) schedule(#tile.simt_rows<rows = 1, keys = 4, lanes = 32, warps = 1, ctas_per_sm = 1>)
attn.problem @d80 mask(#attn.full) layout(bshd) heads(4) dims(80) dtype(bf16) max_seqlen(1, 16)
// CHECK: tile.kernel @d512({{.*}}) schedule(#tile.simt_rows<rows = 1, keys = 2, lanes = 32, warps = 4, ctas_per_sm = 6>)
attn.problem @d512 mask(#attn.full) layout(bshd) heads(4) dims(512) dtype(bf16) max_seqlen(1, 2)
// CHECK: tile.kernel @long512({{.*}}) schedule(#tile.simt_rows<rows = 2, keys = 4, lanes = 32, warps = 4, ctas_per_sm = 4>)
attn.problem @long512 mask(#attn.full) layout(bshd) heads(4) dims(512) dtype(bf16) max_seqlen(4096)

//--- errors.mlir
// expected-error @below {{'attn.problem' op expected #tile.simt_rows for head dims beyond 256, got: dim 512 with #tile.tiled<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>}}
attn.problem @p mask(#attn.full) layout(bshd) heads(4) dims(512) dtype(bf16) max_seqlen(1, 16)
  schedule(#tile.tiled<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>)

// -----

// expected-error @below {{expected a schedule with tiles of a grid for tiles(M), got: #tile.simt_rows<rows = 1}}
attn.problem @p mask(#attn.full) layout(thd) heads(2) dims(64) dtype(bf16) tiles(16)
  schedule(#tile.simt_rows<rows = 1, keys = 4, lanes = 8, warps = 4, ctas_per_sm = 4>)

// -----

// expected-error @below {{'attn.problem' op expected pack_heads to divide the 2 query heads of a kv head, got: #tile.simt_rows<rows = 3, keys = 4, lanes = 8, warps = 4, ctas_per_sm = 1, pack_heads = 3>}}
attn.problem @p mask(#attn.full) layout(bshd) heads(4, 2) dims(64) dtype(bf16)
  schedule(#tile.simt_rows<rows = 3, keys = 4, lanes = 8, warps = 4, ctas_per_sm = 1, pack_heads = 3>)
