// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A mask of eleven parts: bounds of its walk are hundreds of numbers, all made by the role that brings tiles.
//
// RUN: attn-opt %s -split-input-file -attn-pipeline=target=sm_90a | FileCheck %s

// Fragments of 128 keys a tile need the consumers' registers.
// CHECK-LABEL: tile.kernel @long_tiles
// CHECK: tile.roles registers(40, 232) producer {
// CHECK: tile.publish_work %mailbox({{.*}}, %begin, %end, %full_begin, %full_end, %begin_{{.*}})
// CHECK: } consumer {
// CHECK-NOT: arith.{{xori|andi|divui}}
// CHECK: scf.if %partial
#mask = #attn.or<#attn.and<#attn.not<#attn.band<left = 1200, right = -80, bottom_right>>, #attn.or<#attn.band<left = 1200, right = -80, bottom_right>, #attn.prefix<400>>>, #attn.or<#attn.chunk<900, bottom_right>, #attn.and<#attn.global_rows<500>, #attn.prefix<400>>, #attn.not<#attn.band<left = 300, right = 200>>>, #attn.and<#attn.or<#attn.band<left = 300, right = 200>, #attn.global_rows<500>>, #attn.not<#attn.band<left = 300, right = 200>>>>
attn.problem @long_tiles mask(#mask) layout(bshd) heads(16) dims(128) dtype(bf16)
// -----
// Those of 64 leave some, and who has much to work out gets 32 of them.
// CHECK-LABEL: tile.kernel @short_tiles
// CHECK: tile.roles registers(72, 216) producer {
#mask = #attn.or<#attn.and<#attn.not<#attn.band<left = 1200, right = -80, bottom_right>>, #attn.or<#attn.band<left = 1200, right = -80, bottom_right>, #attn.prefix<400>>>, #attn.or<#attn.chunk<900, bottom_right>, #attn.and<#attn.global_rows<500>, #attn.prefix<400>>, #attn.not<#attn.band<left = 300, right = 200>>>, #attn.and<#attn.or<#attn.band<left = 300, right = 200>, #attn.global_rows<500>>, #attn.not<#attn.band<left = 300, right = 200>>>>
attn.problem @short_tiles mask(#mask) layout(bshd) heads(16) dims(128) dtype(bf16)
  schedule(#tile.warp_specialized<q_tile = 128, kv_tile = 64, warps = 8, ctas_per_sm = 1>)
// -----
// In a packed batch, where some tiles have no rows, the numbers are made ahead of the branch, so that they can be sent.
// CHECK-LABEL: tile.kernel @packed
// CHECK: tile.roles registers(72, 216) producer {
// CHECK: tile.publish_work %mailbox({{.*}}, %begin, %end, %full_begin, %full_end, %begin_{{.*}})
// CHECK-NOT: arith.{{xori|andi|divui}}
// CHECK: } consumer {
// CHECK-NOT: arith.{{xori|andi|divui}}
// CHECK: scf.if %partial
#mask = #attn.or<#attn.and<#attn.not<#attn.band<left = 1200, right = -80, bottom_right>>, #attn.or<#attn.band<left = 1200, right = -80, bottom_right>, #attn.prefix<400>>>, #attn.or<#attn.chunk<900, bottom_right>, #attn.and<#attn.global_rows<500>, #attn.prefix<400>>, #attn.not<#attn.band<left = 300, right = 200>>>, #attn.and<#attn.or<#attn.band<left = 300, right = 200>, #attn.global_rows<500>>, #attn.not<#attn.band<left = 300, right = 200>>>>
attn.problem @packed mask(#mask) layout(thd padded) heads(16) dims(128) dtype(bf16)
  schedule(#tile.warp_specialized<q_tile = 128, kv_tile = 64, warps = 8, ctas_per_sm = 1>)
// -----
// Few numbers are as soon made again.
// CHECK-LABEL: tile.kernel @plain
// CHECK: tile.roles registers(40, 232) producer {
attn.problem @plain mask(#attn.causal) layout(thd padded) heads(16) dims(128) dtype(bf16)
  schedule(#tile.warp_specialized<q_tile = 128, kv_tile = 64, warps = 8, ctas_per_sm = 1>)
