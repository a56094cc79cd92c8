// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Several CTAs share the loop of a query tile over KV tiles, where it is much longer than others.
//
// RUN: rm -rf %t && split-file %s %t
// RUN: attn-opt %t/rows.mlir -attn-choose-schedule="target=sm_90a" | FileCheck %t/rows.mlir --check-prefix=CHOSEN
// RUN: attn-opt %t/rows.mlir -attn-choose-schedule="target=sm_90a" -convert-attn-to-tile -canonicalize -cse | FileCheck %t/rows.mlir
// RUN: attn-translate %t/rows.mlir --target=sm_90a | FileCheck %t/rows.mlir --check-prefix=CUDA
// RUN: attn-opt %t/none.mlir -attn-choose-schedule="target=sm_90a" | FileCheck %t/none.mlir
// RUN: attn-opt %t/none.mlir -attn-choose-schedule="target=cpu" | FileCheck %t/none.mlir
// RUN: attn-opt %t/errors.mlir -attn-choose-schedule="target=sm_90a" -split-input-file -verify-diagnostics
// RUN: attn-run %t/run.mlir --problem=rows --target=cpu --seqlen-q=900 --seqlen-kv=1400 --batch=2 --check | FileCheck %t/run.mlir
// RUN: attn-run %t/run.mlir --problem=sink --target=cpu --seqlen-q=700 --seqlen-kv=650 --check | FileCheck %t/run.mlir
// RUN: attn-run %t/run.mlir --problem=causal --target=cpu --seqlen-q=513 --seqlen-kv=511 --check | FileCheck %t/run.mlir
// RUN: attn-run %t/run.mlir --problem=rows --target=cpu --seqlen-q=90 --seqlen-kv=0 --check | FileCheck %t/run.mlir
// RUN: attn-run %t/run.mlir --problem=rows --target=cpu --seqlen-q=0 --seqlen-kv=90 --check | FileCheck %t/run.mlir

//--- rows.mlir
// CHOSEN: schedule(#tile.split_kv<least = 8, of = #tile.warp_specialized<{{.*}}schedule_reason("the first rows see many times the keys of other rows
// CHECK: tile.kernel @p_kv_splits(%kv_splits: !tile.ptr<i32>, %kv_split_counts: !tile.ptr<i32>, %split_tiles: !tile.ptr<i32>, %slots_o_slots: i32,
// CHECK: metadata.split_walks %kv_splits, %kv_split_counts, %split_tiles of(%{{.*}}, %{{.*}}) group 1 share(%multiprocessors) least 8
// CHECK: tile.kernel @p(
// CHECK: %slot = tile.load uniform %kv_splits[
// CHECK: tile.normalize
// CHECK: scf.if
// CHECK: tile.store %o_rows
// CHECK: tile.store_lse
// CHECK: scf.if
// CHECK: tile.store {{.*}} : !tile.ptr<f32>
// CHECK: tile.store_lse
// CHECK: tile.kernel @p_combine(
// CHECK: scf.for
// CHECK: tile.combine %o_rows
// CUDA: attn::split_walks<1, 8>(kv_splits,
attn.problem @p mask(#attn.or<#attn.global_rows<64>, #attn.band<left = 512, right = 512>>) layout(bshd) heads(4) dims(128) dtype(bf16)

//--- none.mlir
// CHECK-NOT: least =
attn.problem @window mask(#attn.band<left = 512, right = 512>) layout(bshd) heads(4) dims(128) dtype(bf16)
attn.problem @causal mask(#attn.causal) layout(bshd) heads(4) dims(128) dtype(bf16)
attn.problem @packed mask(#attn.or<#attn.global_rows<64>, #attn.band<left = 512, right = 512>>) layout(thd) heads(4) dims(128) dtype(bf16)
attn.problem @short mask(#attn.or<#attn.global_rows<64>, #attn.band<left = 512, right = 512>>) layout(bshd) heads(4) dims(128) dtype(bf16) max_seqlen(1024)
attn.problem @array mask(#attn.or<#attn.global_rows<"globals">, #attn.band<left = 512, right = 512>>) layout(bshd) heads(4) dims(128) dtype(bf16)

//--- errors.mlir
#tiles = #tile.warp_specialized<q_tile = 128, kv_tile = 128, warps = 8, ctas_per_sm = 1>
// expected-error @below {{expected no `least` with packed layouts, got: #tile.split_kv<least = 8}}
attn.problem @p mask(#attn.causal) layout(thd) heads(4) dims(128) dtype(bf16) schedule(#tile.split_kv<least = 8, of = #tiles>)

// -----

#tiles = #tile.warp_specialized<q_tile = 128, kv_tile = 128, warps = 8, ctas_per_sm = 1, pack_heads = 2>
// expected-error @below {{expected no `least` with packed heads, got: #tile.split_kv<least = 8}}
attn.problem @p mask(#attn.causal) layout(bshd) heads(4, 2) dims(128) dtype(bf16) schedule(#tile.split_kv<least = 8, of = #tiles>)

// -----

#tiles = #tile.warp_specialized<q_tile = 128, kv_tile = 128, warps = 8, ctas_per_sm = 1>
// expected-error @below {{expected no `least` with lists of tiles, got: #tile.split_kv<least = 8}}
attn.problem @p mask(#attn.document) layout(bshd) heads(4) dims(128) dtype(bf16) schedule(#tile.split_kv<least = 8, of = #tiles>)

// -----

#tiles = #tile.warp_specialized<q_tile = 128, kv_tile = 128, warps = 8, ctas_per_sm = 1>
// expected-error @below {{expected no `least` with a mask that reads arrays, got: #tile.split_kv<least = 8}}
attn.problem @p mask(#attn.prefix<"sinks">) layout(bshd) heads(4) dims(128) dtype(bf16) schedule(#tile.split_kv<least = 8, of = #tiles>)

// -----

#tiles = #tile.warp_specialized<q_tile = 128, kv_tile = 128, warps = 8, ctas_per_sm = 1>
// expected-error @below {{expected no `least` with a mask that differs among heads, got: #tile.split_kv<least = 8}}
attn.problem @p mask(#attn.heads<#attn.causal, #attn.full>) layout(bshd) heads(4) dims(128) dtype(bf16) schedule(#tile.split_kv<least = 8, of = #tiles>)

//--- run.mlir
// CHECK-COUNT-2: {{^}}ok
#s = #tile.split_kv<least = 1, of = #tile.tiled<q_tile = 64, kv_tile = 64, warps = 1, ctas_per_sm = 1>>
attn.problem @rows mask(#attn.or<#attn.global_rows<3>, #attn.band<left = 20, right = 20>>) layout(bshd) heads(2) dims(64) dtype(bf16) schedule(#s)
attn.problem @sink mask(#attn.or<#attn.global_rows<70>, #attn.band<left = 20, right = 20>>) layout(bhsd) heads(4, 2) dims(72, 40) dtype(f16) score([#attn.alibi<"slopes">]) sink("s") schedule(#s)
attn.problem @causal mask(#attn.causal) layout(sbhd) heads(2) dims(64) dtype(bf16) dropout(0.1, "seed") schedule(#s)
