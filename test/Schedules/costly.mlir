// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Where much is done for each pair, the walk is a single loop from the start; and a few key tiles
// need no accumulation of dQ.
//
// RUN: attn-opt %s -split-input-file -attn-choose-schedule=target=sm_90a -convert-attn-to-tile | FileCheck %s

// An entry for each pair is read.
// CHECK: tile.kernel @bias({{.*}} schedule(#tile.warp_specialized<{{[^>]*}}single_loop = true
attn.problem @bias mask(#attn.causal) layout(bshd) heads(4) dims(128) dtype(bf16) score([#attn.bias<"bias", hqk>])
// -----
// CHECK: tile.kernel @table({{.*}} schedule(#tile.warp_specialized<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 3, q_stages = 2, single_loop = true>)
attn.problem @table mask(#attn.causal) layout(bshd) heads(4) dims(64) dtype(bf16) score([#attn.relative_bias<"table", 64>])
// -----
// CHECK: tile.kernel @narrow({{.*}} schedule(#tile.warp_specialized<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 3, q_stages = 2, single_loop = true>)
attn.problem @narrow mask(#attn.causal) layout(bshd) heads(4) dims(64) dtype(bf16) score([#attn.bias<"bias", hqk>])
// -----
// CHECK: tile.kernel @long_table({{.*}} schedule(#tile.warp_specialized<q_tile = 192, kv_tile = 128, warps = 12, ctas_per_sm = 1, q_stages = 2, single_loop = true>)
attn.problem @long_table mask(#attn.causal) layout(bshd) heads(4) dims(64) dtype(bf16) expected_seqlen(16384) score([#attn.relative_bias<"table", 64>])
// -----
// One for each head is not.
// CHECK: tile.kernel @scales({{.*}} schedule(#tile.warp_specialized<
// CHECK-NOT: single_loop
// CHECK-SAME: {
attn.problem @scales mask(#attn.causal) layout(bshd) heads(4) dims(128) dtype(bf16) score([#attn.head_scale<"t">])
// -----
// Several modifiers.
// CHECK: tile.kernel @two({{.*}} schedule(#tile.warp_specialized<{{[^>]*}}single_loop = true
attn.problem @two mask(#attn.causal) layout(bshd) heads(4) dims(128) dtype(bf16) score([#attn.softcap<50.0>, #attn.alibi])
// -----
// Three bodies of wide heads.
// CHECK: tile.kernel @window({{.*}} schedule(#tile.warp_specialized<{{[^>]*}}single_loop = true
attn.problem @window mask(#attn.band<left = 1023, right = 0>) layout(bshd) heads(4) dims(256) dtype(bf16)
// -----
// CHECK: tile.kernel @capped_window({{.*}} schedule(#tile.warp_specialized<
// CHECK-NOT: single_loop
// CHECK-SAME: {
attn.problem @capped_window mask(#attn.band<left = 1023, right = 0>) layout(bshd) heads(4) dims(256) dtype(bf16) score([#attn.softcap<50.0>])
// -----
// Gradients of narrow heads in a fixed order: a max_seqlen of which two key tiles have all keys.
// CHECK: tile.kernel @short_grads({{.*}}schedule(#tile.warp_specialized_backward<q_tile = 64, kv_tile = 128, warps = 8, ctas_per_sm = 1>)
// CHECK-NOT: dq_accumulator
// CHECK: tile.kernel @short_grads_dq(
attn.problem @short mask(#attn.causal) layout(thd) heads(4, 2) dims(64) dtype(bf16) max_seqlen(192) {sym_visibility = "private"}
attn.backward @short_grads of(@short) deterministic
// -----
// CHECK: tile.kernel @longer_grads({{.*}}dq_accumulator
attn.problem @longer mask(#attn.causal) layout(thd) heads(4, 2) dims(64) dtype(bf16) max_seqlen(193) {sym_visibility = "private"}
attn.backward @longer_grads of(@longer) deterministic
// -----
// CHECK: tile.kernel @wide_grads({{.*}}dq_accumulator
attn.problem @wide mask(#attn.causal) layout(thd) heads(4, 2) dims(128) dtype(bf16) max_seqlen(129) {sym_visibility = "private"}
attn.backward @wide_grads of(@wide) deterministic
// -----
// In any order: of 64 rows (which are on tiles where masks differ between heads).
// CHECK: tile.kernel @few_grads({{.*}}schedule(#tile.warp_specialized_backward<q_tile = 64, kv_tile = 128, warps = 8, ctas_per_sm = 1>)
// CHECK-NOT: dq_accumulator
// CHECK: tile.kernel @few_grads_dq(
attn.problem @few mask(#attn.heads<#attn.full, #attn.causal>) layout(thd) heads(4) dims(64) dtype(bf16) max_seqlen(64) {sym_visibility = "private"}
attn.backward @few_grads of(@few)
// -----
// CHECK: tile.kernel @more_grads({{.*}}dq_accumulator
attn.problem @more mask(#attn.heads<#attn.full, #attn.causal>) layout(thd) heads(4) dims(64) dtype(bf16) max_seqlen(65) {sym_visibility = "private"}
attn.backward @more_grads of(@more)
// -----
// Many compares in a test, of which a chunk and a band with two ends have two: four at d 65 to 128, else six.
// CHECK: tile.kernel @four({{.*}} schedule(#tile.split_kv<least = 8, of = #tile.warp_specialized<{{[^>]*}}single_loop = true
attn.problem @four mask(#attn.or<#attn.global_rows<64>, #attn.prefix<64>, #attn.band<left = 511, right = 511>>) layout(bshd) heads(4) dims(128) dtype(bf16)
// -----
// CHECK: tile.kernel @three({{.*}} schedule(#tile.warp_specialized<
// CHECK-NOT: single_loop
// CHECK-SAME: {
attn.problem @three mask(#attn.or<#attn.prefix<64>, #attn.band<left = 511, right = 511>>) layout(bshd) heads(4) dims(128) dtype(bf16)
// -----
// CHECK: tile.kernel @narrow_four({{.*}} schedule(#tile.split_kv<least = 8, of = #tile.warp_specialized<
// CHECK-NOT: single_loop
// CHECK-SAME: {
attn.problem @narrow_four mask(#attn.or<#attn.global_rows<64>, #attn.prefix<64>, #attn.band<left = 511, right = 511>>) layout(bshd) heads(4) dims(64) dtype(bf16)
// -----
// CHECK: tile.kernel @six({{.*}} schedule(#tile.warp_specialized<{{[^>]*}}single_loop = true
attn.problem @six mask(#attn.or<#attn.and<#attn.prefix<"n">, #attn.causal>, #attn.and<#attn.chunk<700>, #attn.prefix<"m">>, #attn.global_rows<500>>)
  layout(bshd) heads(4) dims(64) dtype(bf16)
