// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Hopper's tiles of head dims to 64: three blocks of one warpgroup where walks are short, else one of two or three.
//
// RUN: attn-opt %s -split-input-file -attn-choose-schedule=target=sm_90a -convert-attn-to-tile | FileCheck %s

// CHECK: tile.kernel @causal({{.*}} schedule(#tile.warp_specialized<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 3, q_stages = 2>)
attn.problem @causal mask(#attn.causal) layout(bshd) heads(4) dims(64) dtype(bf16) expected_seqlen(2048)
// -----
// CHECK: tile.kernel @packed({{.*}} schedule(#tile.warp_specialized<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 3>)
attn.problem @packed mask(#attn.causal) layout(thd) heads(4) dims(32) dtype(bf16) expected_seqlen(1024)
// -----
// CHECK: tile.kernel @long_packed({{.*}} schedule(#tile.warp_specialized<q_tile = 192, kv_tile = 128, warps = 12, ctas_per_sm = 1, q_stages = 2, pingpong = true>)
attn.problem @long_packed mask(#attn.causal) layout(thd) heads(4) dims(32) dtype(bf16) expected_seqlen(1025)
// -----
// Bounds say no less than typical lengths.
// CHECK: tile.kernel @bound({{.*}} schedule(#tile.warp_specialized<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 3>)
attn.problem @bound mask(#attn.causal) layout(thd) heads(4) dims(64) dtype(bf16) max_seqlen(1000)
// -----
// CHECK: tile.kernel @long({{.*}} schedule(#tile.warp_specialized<q_tile = 192, kv_tile = 128, warps = 12, ctas_per_sm = 1, q_stages = 2, pingpong = true>)
attn.problem @long mask(#attn.causal) layout(bshd) heads(4) dims(64) dtype(bf16) expected_seqlen(2049)
// -----
// CHECK: tile.kernel @full_512({{.*}} schedule(#tile.warp_specialized<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 3>)
attn.problem @full_512 mask(#attn.full) layout(bshd) heads(4) dims(64) dtype(bf16) expected_seqlen(512)
// -----
// CHECK: tile.kernel @full_513({{.*}} schedule(#tile.warp_specialized<q_tile = 192, kv_tile = 128, warps = 12, ctas_per_sm = 1, q_stages = 2, pingpong = true>)
attn.problem @full_513 mask(#attn.full) layout(bshd) heads(4) dims(64) dtype(bf16) expected_seqlen(513)
// -----
// Where keys are packed and all seen, two bodies spill.
// CHECK: tile.kernel @packed_full({{.*}} schedule(#tile.warp_specialized<q_tile = 192, kv_tile = 128, warps = 12, ctas_per_sm = 1, pingpong = true, single_loop = true>)
attn.problem @packed_full mask(#attn.full) layout(thd) heads(4) dims(64) dtype(bf16)
// -----
// CHECK: tile.kernel @softcap({{.*}} schedule(#tile.warp_specialized<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 3>)
attn.problem @softcap mask(#attn.full) layout(thd) heads(4) dims(64) dtype(bf16) expected_seqlen(2048) score([#attn.softcap<30.0>])
// -----
// CHECK: tile.kernel @long_softcap({{.*}} schedule(#tile.warp_specialized<q_tile = 64, kv_tile = 80, warps = 4, ctas_per_sm = 3>)
attn.problem @long_softcap mask(#attn.full) layout(bshd) heads(4) dims(64) dtype(bf16) score([#attn.softcap<30.0>])
// -----
// CHECK: tile.kernel @long_packed_softcap({{.*}} schedule(#tile.warp_specialized<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 3>)
attn.problem @long_packed_softcap mask(#attn.causal) layout(thd) heads(4) dims(64) dtype(bf16) score([#attn.softcap<30.0>])
// -----
// CHECK: tile.kernel @drops({{.*}} schedule(#tile.warp_specialized<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 3>)
attn.problem @drops mask(#attn.causal) layout(bshd) heads(4) dims(64) dtype(bf16) expected_seqlen(1024) dropout(0.1, "seed")
// -----
// CHECK: tile.kernel @full_drops({{.*}} schedule(#tile.warp_specialized<q_tile = 128, kv_tile = 128, warps = 8, ctas_per_sm = 1, q_stages = 2>)
attn.problem @full_drops mask(#attn.full) layout(bshd) heads(4) dims(64) dtype(bf16) expected_seqlen(1024) dropout(0.1, "seed")
// -----
// A window of more than 2048 keys.
// CHECK: tile.kernel @wide_window({{.*}} schedule(#tile.warp_specialized<q_tile = 192, kv_tile = 96, warps = 12, ctas_per_sm = 1, q_stages = 2, pingpong = true>)
attn.problem @wide_window mask(#attn.band<left = 2048, right = 0>) layout(bshd) heads(4) dims(64) dtype(bf16)
// -----
// What a thread of three blocks has at launch: registers for 100 columns of a product.
// CHECK: tile.kernel @given({{.*}} schedule(#tile.warp_specialized<q_tile = 64, kv_tile = 96, warps = 4, ctas_per_sm = 3>)
attn.problem @given mask(#attn.causal) layout(bshd) heads(4) dims(96) dtype(bf16) schedule(#tile.warp_specialized<q_tile = 64, kv_tile = 96, warps = 4, ctas_per_sm = 3>)
