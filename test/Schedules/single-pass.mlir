// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Packed sequences of one or two tiles by their max_seqlen: the grid index of a CTA gives its sequence, and softmax may be
// a single pass over all keys.
//
// RUN: rm -rf %t && split-file %s %t
// RUN: attn-opt %t/dealt.mlir -attn-choose-schedule="target=sm_90a" -convert-attn-to-tile -canonicalize -cse | FileCheck %t/dealt.mlir
// RUN: attn-opt %t/padded.mlir -attn-choose-schedule="target=sm_80" -convert-attn-to-tile -canonicalize -cse | FileCheck %t/padded.mlir
// RUN: attn-opt %t/single_pass.mlir -attn-choose-schedule="target=sm_90a" -convert-attn-to-tile -canonicalize -cse | FileCheck %t/single_pass.mlir
// RUN: attn-opt %t/single_pass.mlir -attn-choose-schedule="target=sm_90a" -convert-attn-to-tile -canonicalize -cse -tile-persist -tile-assign-roles | FileCheck %t/single_pass.mlir --check-prefix=ROLES
// RUN: attn-translate %t/single_pass.mlir --target=sm_90a | FileCheck %t/single_pass.mlir --check-prefix=CUDA
// RUN: attn-opt %t/shared.mlir --attn-pipeline="target=sm_90a" | FileCheck %t/shared.mlir
// RUN: attn-opt %t/shared_padded.mlir --attn-pipeline="target=sm_90a" | FileCheck %t/shared_padded.mlir
// RUN: attn-opt %t/chosen.mlir -attn-choose-schedule="target=sm_90a" -convert-attn-to-tile | FileCheck %t/chosen.mlir
// RUN: attn-opt %t/fallback.mlir -attn-choose-schedule="target=sm_90a fallback=1" -convert-attn-to-tile | FileCheck %t/fallback.mlir
// RUN: attn-opt %t/fallback.mlir -attn-choose-schedule="target=sm_90a fallback=3" -convert-attn-to-tile | FileCheck %t/fallback.mlir --check-prefix=LAST
// RUN: attn-opt %t/errors.mlir -split-input-file -attn-choose-schedule="target=sm_90a" -convert-attn-to-tile -verify-diagnostics
//
// Longer than their max_seqlen, empty, and with rows that are nobody's.
// RUN: attn-run %t/dealt.mlir --target=cpu --check --lengths-q=70,0,1,300,64,65,128 --lengths-kv=70,5,0,200,129,1,64 | FileCheck %s --check-prefix=RIGHT
// RUN: attn-run %t/dealt.mlir --target=cpu --check --lengths-q=0 --lengths-kv=0 | FileCheck %s --check-prefix=RIGHT
// RUN: attn-run %t/padded.mlir --target=cpu --check --lengths-q=70,0,1,300,64,65,128 --lengths-kv=70,5,0,200,129,1,64 | FileCheck %s --check-prefix=RIGHT
// RIGHT: schedule tiles of each sequence
// RIGHT: ok       o:
// RIGHT-NEXT: ok       lse:

//--- dealt.mlir
// CHECK: tile.kernel @p({{.*}}) target("sm_90a") grid(packed heads 4 tiles 1) schedule(#tile.warp_specialized<q_tile = 128, kv_tile = 112, warps = 8, ctas_per_sm = 1, q_stages = 2>)
// CHECK: %block = tile.index block
// CHECK-NEXT: %h = arith.remui %block, %c4_i32
// CHECK-NEXT: %b = arith.divui %block, %c4_i32
// CHECK-NEXT: %first = tile.load uniform %cu_seqlens_q[%b]
// What is behind the last sequence is shared out.
// CHECK: %padding_end = arith.select
// CHECK: scf.for %{{.*}} = %c0_i32 to %padding_end step
// CHECK: tile.store_padding
// A tile in one turn, if there are no more rows than max_seqlen says.
// CHECK: scf.for %q0 = %c0_i32 to %len_q step %c128_i32
// CHECK-NOT: scf.if
// CHECK: tile.copy_tma %Q
// CHECK: tile.kv_loop
attn.problem @p mask(#attn.full) layout(thd) heads(4) dims(128) dtype(bf16) max_seqlen(100)

//--- padded.mlir
// Two tiles on other targets, whose blocks' places are used again.
// CHECK: grid(packed heads 4 tiles 2) schedule(#tile.tiled<q_tile = 64
// CHECK: %next_first = tile.load uniform %padded_offsets_q
// CHECK: scf.for %{{.*}} = %c0_i32 to %before step
// CHECK: scf.for %{{.*}} = %c0_i32 to %padding_end step
// CHECK: scf.for %q0 = %{{.*}} to %{{.*}} step %c128_i32
// CHECK-NEXT: tile.barrier
// CHECK: scf.if
// CHECK: tile.store_padding
attn.problem @p mask(#attn.band<left = 30, right = 5>) layout(thd padded) heads(4, 2) dims(64, 48) dtype(f16) max_seqlen(100, 128)
  score([#attn.softcap<10.0>])

//--- single_pass.mlir
// CHECK: tile.kernel @p({{.*}}) grid(packed heads 4 tiles 1) schedule(#tile.single_pass<q_tile = 192, kv_tile = 64, kv_tiles = 3, warps = 12, ctas_per_sm = 1, stages = 1>)
// CHECK: %K = tile.alloc "K" : !tile.shared<192x128xbf16, swizzled>
// CHECK: %all_scores = tile.alloc "all_scores" : !tile.frag<192x192, 12>
// CHECK: %P = tile.alloc "P" : !tile.register_operand<192x192xbf16, 12>
// More than a tile of keys, and no more than a single pass has.
// CHECK-DAG: %[[MORE:.*]] = arith.cmpi sgt, %len_kv, %c64_i32
// CHECK-DAG: %[[FEW:.*]] = arith.cmpi sle, %len_kv, %c192_i32
// CHECK: %[[SINGLE:.*]] = arith.andi %[[MORE]], %[[FEW]]
// CHECK: scf.if %[[SINGLE]] {
// CHECK-NEXT: %[[T:.*]] = tile.copy_tma %K, %k_map at(%first_key, %h) rows(%len_kv) boxes 3
// CHECK-NEXT: tile.wait %[[T]]
// CHECK: %[[S:.*]] = tile.mma_abt %all_scores, %Q, %K
// CHECK-NEXT: tile.wait %[[S]]
// CHECK: scf.if
// CHECK-NEXT: tile.apply_mask %all_scores
// CHECK: tile.online_softmax %all_scores, %row
// CHECK-NEXT: tile.convert %P, %all_scores
// CHECK-NEXT: tile.clear %acc
// CHECK-NEXT: tile.copy_tma %V, %v_map at(%first_key, %h) rows(%len_kv) boxes 3
// CHECK: tile.mma_ab %acc, %P, %V
// CHECK: } else {
// Else they are walked as ever, a box in a slot.
// CHECK: tile.kv_loop
// CHECK: tile.copy_tma %K, %k_map at({{.*}}) rows(%{{[^)]*}}) boxes 1 :
// CHECK: tile.mma_abt %s, %Q, %K
//
// Both ways fill and take from the same rings, and queries are given back where they are done with.
// ROLES: tile.roles
// ROLES: scf.if
// ROLES-NEXT: tile.producer_load %K, %k_map {{.*}} boxes 3
// ROLES-NEXT: tile.producer_load %V, %v_map {{.*}} boxes 3
// ROLES-NEXT: } else {
// ROLES: tile.kv_loop
// ROLES: tile.producer_load %K, %k_map {{.*}} boxes 1
// ROLES: consumer
// ROLES: %[[Q:.*]] = tile.consumer_wait %Q
// ROLES: scf.if
// ROLES-NEXT: %[[K:.*]] = tile.consumer_wait %K
// ROLES: %[[S:.*]] = tile.mma_abt %all_scores, %[[Q]], %[[K]]
// ROLES-NEXT: tile.wait %[[S]]
// ROLES-DAG: tile.consumer_release %Q unless(%false)
// ROLES-DAG: tile.consumer_release %K
// ROLES: } else {
// ROLES: tile.kv_loop
// ROLES: tile.consumer_release %Q
//
// CUDA: attn::Ring<attn::bf16, 192, 128, 1> K(
// CUDA: if (len_kv > 64 & len_kv <= 192) {
// CUDA: attn::mma_abt(all_scores, Q_tile, K_tile);
// CUDA: attn::consumer_release_early(Q, false);
// CUDA: } else {
// CUDA: attn::producer_load_packed<64, 3>(K, k_map, first_key, h, len_kv);
// CUDA: attn::producer_load_packed<64, 1>(K, k_map,
attn.problem @p mask(#attn.full) layout(thd) heads(4) dims(128) dtype(bf16) max_seqlen(161, 192)

//--- shared.mlir
// Two tiles of rows have the same keys, which are given back as soon as the last one's scores are there; values come for
// each.
// CHECK: grid(packed heads 4 tiles 1) schedule(#tile.single_pass<q_tile = 128, kv_tile = 112, kv_tiles = 2, warps = 8, ctas_per_sm = 1, stages = 1, q_stages = 2>)
// CHECK: } consumer {
// CHECK: scf.if
// CHECK-NEXT: %[[K:.*]] = tile.consumer_wait %K
// CHECK: scf.for %q0
// CHECK: %[[Q:.*]] = tile.consumer_wait %Q
// CHECK: tile.mma_abt %all_scores, %[[Q]], %[[K]]
// CHECK: %next = arith.addi %q0, %c128_i32
// CHECK: %[[MORE:.*]] = arith.cmpi slt, %next, %{{.*}}
// CHECK: tile.consumer_release %K unless(%[[MORE]])
// CHECK: tile.consumer_wait %V
// CHECK: tile.consumer_release %V
// CHECK: tile.store
// CHECK: tile.consumer_release %K
// CHECK: } else {
attn.problem @p mask(#attn.full) layout(thd) heads(4) dims(128) dtype(bf16) max_seqlen(224)

//--- shared_padded.mlir
// Where a tile may have no rows, in the branch of those that do.
// CHECK: } consumer {
// CHECK: %[[K:.*]] = tile.consumer_wait %K
// CHECK: scf.for %q0
// CHECK: scf.if
// CHECK: tile.store_padding
// CHECK: scf.if
// CHECK: tile.mma_abt %all_scores, %{{.*}}, %[[K]]
// CHECK: tile.consumer_release %K unless
// CHECK: tile.consumer_release %K
attn.problem @p mask(#attn.full) layout(thd padded) heads(4) dims(128) dtype(bf16) max_seqlen(224)

//--- chosen.mlir
// CHECK: tile.kernel @s80({{.*}}schedule(#tile.cta_per_sequence<
attn.problem @s80 mask(#attn.full) layout(thd) heads(4) dims(128) dtype(bf16) max_seqlen(80)
// CHECK: tile.kernel @s81({{.*}} tiles 1) schedule(#tile.warp_specialized<q_tile = 128, kv_tile = 96, warps = 8, ctas_per_sm = 1, q_stages = 2>)
attn.problem @s81 mask(#attn.full) layout(thd) heads(4) dims(128) dtype(bf16) max_seqlen(81)
// CHECK: tile.kernel @s113({{.*}} tiles 1) schedule(#tile.warp_specialized<q_tile = 128, kv_tile = 128, warps = 8, ctas_per_sm = 1, q_stages = 2>)
attn.problem @s113 mask(#attn.causal) layout(thd) heads(4) dims(128) dtype(bf16) max_seqlen(113)
// CHECK: tile.kernel @s129({{.*}} tiles 1) schedule(#tile.single_pass<q_tile = 192, kv_tile = 48, kv_tiles = 3, warps = 12, ctas_per_sm = 1>)
attn.problem @s129 mask(#attn.causal) layout(thd) heads(4) dims(128) dtype(bf16) max_seqlen(129)
// CHECK: tile.kernel @s145({{.*}} tiles 1) schedule(#tile.warp_specialized<q_tile = 192, kv_tile = 80, warps = 12, ctas_per_sm = 1>)
attn.problem @s145 mask(#attn.full) layout(thd) heads(4) dims(128) dtype(bf16) max_seqlen(145)
// CHECK: tile.kernel @narrow161({{.*}} tiles 1) schedule(#tile.single_pass<q_tile = 192, kv_tile = 48, kv_tiles = 4, warps = 12, ctas_per_sm = 1, stages = 1>)
attn.problem @narrow161 mask(#attn.full) layout(thd) heads(4) dims(64) dtype(bf16) max_seqlen(161)
// CHECK: tile.kernel @s225({{.*}} tiles 1) schedule(#tile.single_pass<q_tile = 128, kv_tile = 48, kv_tiles = 5, warps = 8, ctas_per_sm = 1, stages = 1, q_stages = 2>)
attn.problem @s225 mask(#attn.full) layout(thd) heads(4) dims(128) dtype(bf16) max_seqlen(225)
// CHECK: tile.kernel @s241({{.*}} tiles 1) schedule(#tile.single_pass<q_tile = 128, kv_tile = 64, kv_tiles = 4, warps = 8, ctas_per_sm = 1, stages = 1, q_stages = 2>)
attn.problem @s241 mask(#attn.full) layout(thd) heads(4) dims(128) dtype(bf16) max_seqlen(241)
// CHECK: tile.kernel @narrow241({{.*}} tiles 1) schedule(#tile.single_pass<q_tile = 128, kv_tile = 32, kv_tiles = 8, warps = 8, ctas_per_sm = 1, stages = 1, q_stages = 2>)
attn.problem @narrow241 mask(#attn.full) layout(thd) heads(4) dims(64) dtype(bf16) max_seqlen(241)
// Rows and keys may have a max_seqlen of their own; where either are few, reading all is quicker without tiles of as many as
// that.
// CHECK: tile.kernel @one_row({{.*}}schedule(#tile.simt_rows<{{.*}}lanes = 16
attn.problem @one_row mask(#attn.full) layout(thd) heads(4) dims(128) dtype(bf16) max_seqlen(1, 100)
// CHECK: tile.kernel @four_rows({{.*}}schedule(#tile.cta_per_sequence<
attn.problem @four_rows mask(#attn.full) layout(thd) heads(4) dims(128) dtype(bf16) max_seqlen(4, 128)
// CHECK: tile.kernel @half_rows({{.*}}schedule(#tile.cta_per_sequence<
attn.problem @half_rows mask(#attn.full) layout(thd) heads(4) dims(128) dtype(bf16) max_seqlen(64, 96)
// CHECK: tile.kernel @two_keys({{.*}}schedule(#tile.cta_per_sequence<
attn.problem @two_keys mask(#attn.full) layout(thd) heads(4) dims(128) dtype(bf16) max_seqlen(96, 2)
// CHECK: tile.kernel @few_keys({{.*}} tiles 1) schedule(#tile.warp_specialized<q_tile = 192, kv_tile = 80, warps = 12, ctas_per_sm = 1>)
attn.problem @few_keys mask(#attn.full) layout(thd) heads(4) dims(128) dtype(bf16) max_seqlen(150, 80)
// CHECK: tile.kernel @few_rows({{.*}} tiles 1) schedule(#tile.single_pass<q_tile = 128, kv_tile = 64, kv_tiles = 3, warps = 8, ctas_per_sm = 1, stages = 1, q_stages = 2>)
attn.problem @few_rows mask(#attn.full) layout(thd) heads(4) dims(128) dtype(bf16) max_seqlen(100, 180)
// CHECK: tile.kernel @two({{.*}} tiles 2) schedule(#tile.warp_specialized<q_tile = 128, kv_tile = 96, warps = 8, ctas_per_sm = 1, q_stages = 2>)
attn.problem @two mask(#attn.full) layout(thd) heads(4) dims(128) dtype(bf16) max_seqlen(200, 90)
// Smaller tiles where most of one would be hidden; modified scores are walked.
// CHECK: tile.kernel @causal145({{.*}}) schedule(#tile.warp_specialized<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 2, q_stages = 2>)
attn.problem @causal145 mask(#attn.causal) layout(thd) heads(4) dims(128) dtype(bf16) max_seqlen(145)
// CHECK: tile.kernel @causal160({{.*}} tiles 1) schedule(#tile.warp_specialized<q_tile = 192, kv_tile = 80, warps = 12, ctas_per_sm = 1>)
attn.problem @causal160 mask(#attn.causal) layout(thd) heads(4) dims(96) dtype(bf16) max_seqlen(160)
// CHECK: tile.kernel @capped({{.*}} tiles 1) schedule(#tile.warp_specialized<q_tile = 192, kv_tile = 80, warps = 12, ctas_per_sm = 1>)
attn.problem @capped mask(#attn.full) layout(thd) heads(4) dims(128) dtype(bf16) max_seqlen(130) score([#attn.softcap<10.0>])
// More tiles have slots, in which nobody's are few.
// CHECK: tile.kernel @s257({{.*}} grid(packed heads 4) schedule(#tile.warp_specialized<
attn.problem @s257 mask(#attn.full) layout(thd) heads(4) dims(128) dtype(bf16) max_seqlen(257)

//--- fallback.mlir
// CHECK: schedule(#tile.single_pass<q_tile = 192, kv_tile = 32, kv_tiles = 6, warps = 12, ctas_per_sm = 1, stages = 1>)
// LAST: schedule(#tile.warp_specialized<q_tile = 192, kv_tile = 64, warps = 12, ctas_per_sm = 1>)
attn.problem @p mask(#attn.full) layout(thd) heads(4) dims(128) dtype(bf16) max_seqlen(161, 192)

//--- errors.mlir
// expected-error @below {{'attn.problem' op expected #tile.single_pass only for target `sm_90a`, packed keys and a max_seqlen of two query tiles at most, without score modifiers, dropout and lists of tiles, got: #tile.single_pass<q_tile = 128, kv_tile = 64, kv_tiles = 2, warps = 8, ctas_per_sm = 1>}}
attn.problem @modified mask(#attn.full) layout(thd) heads(4) dims(128) dtype(bf16) max_seqlen(100) score([#attn.softcap<10.0>])
  schedule(#tile.single_pass<q_tile = 128, kv_tile = 64, kv_tiles = 2, warps = 8, ctas_per_sm = 1>)

// -----

// expected-error @below {{expected #tile.single_pass only for target `sm_90a`, packed keys and a max_seqlen of two query tiles at most}}
attn.problem @dense mask(#attn.full) layout(bshd) heads(4) dims(128) dtype(bf16) max_seqlen(100)
  schedule(#tile.single_pass<q_tile = 128, kv_tile = 64, kv_tiles = 2, warps = 8, ctas_per_sm = 1>)

// -----

// expected-error @below {{expected #tile.single_pass only for target `sm_90a`, packed keys and a max_seqlen of two query tiles at most}}
attn.problem @unbounded mask(#attn.full) layout(thd) heads(4) dims(128) dtype(bf16)
  schedule(#tile.single_pass<q_tile = 128, kv_tile = 64, kv_tiles = 2, warps = 8, ctas_per_sm = 1>)

// -----

// expected-error @below {{expected #tile.single_pass only for target `sm_90a`, packed keys and a max_seqlen of two query tiles at most}}
attn.problem @dropped mask(#attn.full) layout(thd) heads(4) dims(128) dtype(bf16) max_seqlen(100) dropout(0.1, "seed")
  schedule(#tile.single_pass<q_tile = 128, kv_tile = 64, kv_tiles = 2, warps = 8, ctas_per_sm = 1>)

// -----

// All keys at once are a product's operand.
// expected-error @below {{expected at most 100 keys a tile and columns of v, since a thread is launched with 80 registers, got: 128 with #tile.single_pass<q_tile = 64}}
attn.problem @crowded mask(#attn.full) layout(thd) heads(4) dims(64) dtype(bf16) max_seqlen(64, 128)
  schedule(#tile.single_pass<q_tile = 64, kv_tile = 64, kv_tiles = 2, warps = 4, ctas_per_sm = 3>)

// -----

// A single pass has one stage, what is walked two.
// expected-error @+2 {{expected stages from 2 to 8 and q_stages 1 or 2, got: stages = 1, q_stages = 1}}
attn.problem @p mask(#attn.full) layout(thd) heads(4) dims(128) dtype(bf16) max_seqlen(100)
  schedule(#tile.warp_specialized<q_tile = 128, kv_tile = 64, warps = 8, ctas_per_sm = 1, stages = 1>)
