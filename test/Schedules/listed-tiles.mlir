// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Hopper's tiles of masks that read arrays of keys, of block maps and of local ones: what has registers for their tests
// and looks at few pairs in vain.
//
// RUN: attn-opt %s -split-input-file -attn-choose-schedule=target=sm_90a -convert-attn-to-tile | FileCheck %s

// Blocks are whole tiles.
// CHECK: tile.kernel @blocks_64({{.*}} schedule(#tile.warp_specialized<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 2>)
attn.problem @blocks_64 mask(#attn.block_map<"offsets", "columns", q = 64, kv = 64>) layout(bshd) heads(4) dims(128) dtype(bf16)
// -----
// CHECK: tile.kernel @blocks_128({{.*}} schedule(#tile.warp_specialized<q_tile = 128, kv_tile = 128, warps = 8, ctas_per_sm = 1, q_stages = 2>)
attn.problem @blocks_128 mask(#attn.and<#attn.causal, #attn.block_map<"offsets", "columns", q = 128, kv = 256>>) layout(bshd) heads(4) dims(64) dtype(bf16)
// -----
// CHECK: tile.kernel @blocks_384({{.*}} schedule(#tile.warp_specialized<q_tile = 192, kv_tile = 128, warps = 12, ctas_per_sm = 1, q_stages = 2, pingpong = true>)
attn.problem @blocks_384 mask(#attn.block_map<"offsets", "columns", q = 384, kv = 384>) layout(bshd) heads(4) dims(64) dtype(bf16)
// -----
// However long.
// CHECK: tile.kernel @long_blocks({{.*}} schedule(#tile.warp_specialized<q_tile = 128, kv_tile = 128, warps = 8, ctas_per_sm = 1, q_stages = 2>)
attn.problem @long_blocks mask(#attn.block_map<"offsets", "columns", q = 128, kv = 128>) layout(bshd) heads(4) dims(128) dtype(bf16) expected_seqlen(16384)
// -----
// CHECK: tile.kernel @short_blocks({{.*}} schedule(#tile.warp_specialized<q_tile = 192, kv_tile = 128, warps = 12, ctas_per_sm = 1, q_stages = 2, pingpong = true>)
attn.problem @short_blocks mask(#attn.block_map<"offsets", "columns", q = 384, kv = 128>) layout(bshd) heads(4) dims(64) dtype(bf16) expected_seqlen(1024)
// -----
// CHECK: tile.kernel @wide_blocks({{.*}} schedule(#tile.warp_specialized<q_tile = 128, kv_tile = 64, warps = 8, ctas_per_sm = 1, single_loop = true>)
attn.problem @wide_blocks mask(#attn.block_map<"offsets", "columns", q = 128, kv = 128>) layout(bshd) heads(4) dims(256) dtype(bf16)
// -----
// CHECK: tile.kernel @odd_blocks({{.*}} schedule(#tile.warp_specialized<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 3>)
attn.problem @odd_blocks mask(#attn.block_map<"offsets", "columns", q = 100, kv = 70>) layout(bshd) heads(4) dims(64) dtype(bf16)
// -----
// CHECK: tile.kernel @wide_odd_blocks({{.*}} schedule(#tile.warp_specialized<q_tile = 128, kv_tile = 48, warps = 8, ctas_per_sm = 1, single_loop = true>)
attn.problem @wide_odd_blocks mask(#attn.block_map<"offsets", "columns", q = 100, kv = 70>) layout(bshd) heads(4) dims(256) dtype(bf16)
// -----
// Documents by ids at once have a single loop, and no tile that spills is tried before.
// CHECK: tile.kernel @documents({{.*}} schedule(#tile.warp_specialized<q_tile = 192, kv_tile = 96, warps = 12, ctas_per_sm = 1, q_stages = 2, pingpong = true, single_loop = true>)
attn.problem @documents mask(#attn.and<#attn.document, #attn.causal>) layout(bshd) heads(4) dims(64) dtype(bf16)
// -----
// CHECK: tile.kernel @short_documents({{.*}} schedule(#tile.warp_specialized<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 3>)
attn.problem @short_documents mask(#attn.and<#attn.document, #attn.causal>) layout(bshd) heads(4) dims(64) dtype(bf16) expected_seqlen(1024)
// -----
// CHECK: tile.kernel @wide_documents({{.*}} schedule(#tile.warp_specialized<q_tile = 128, kv_tile = 64, warps = 8, ctas_per_sm = 1, single_loop = true>)
attn.problem @wide_documents mask(#attn.and<#attn.document, #attn.causal>) layout(bshd) heads(4) dims(256) dtype(bf16)
// -----
// With a window, and where a predicate or four bounds see now this key, now that one.
// CHECK: tile.kernel @local_documents({{.*}} schedule(#tile.warp_specialized<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 2>)
attn.problem @local_documents mask(#attn.and<#attn.document, #attn.band<left = 999, right = 0>>) layout(bshd) heads(4) dims(128) dtype(bf16)
// -----
// CHECK: tile.kernel @predicate({{.*}} schedule(#tile.warp_specialized<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 2>)
attn.problem @predicate mask(#attn.predicate<"q >= k || kind[k] == 1">) layout(bshd) heads(4) dims(96) dtype(bf16)
// -----
// CHECK: tile.kernel @four_bounds({{.*}} schedule(#tile.warp_specialized<q_tile = 128, kv_tile = 96, warps = 8, ctas_per_sm = 1, q_stages = 2>)
attn.problem @four_bounds mask(#attn.not<#attn.or<#attn.column_interval<begin = "a", end = "b">, #attn.column_interval<begin = "c", end = "d">>>)
  layout(bshd) heads(4) dims(64) dtype(bf16)
// -----
// A predicate without arrays has no lists, and arrays of rows are read once a row.
// CHECK: tile.kernel @stripes({{.*}} schedule(#tile.warp_specialized<q_tile = 128, kv_tile = 128, warps = 8
attn.problem @stripes mask(#attn.predicate<"q >= k && (q - k) % 16 < 4">) layout(bshd) heads(4) dims(128) dtype(bf16)
// -----
// CHECK: tile.kernel @rows({{.*}} schedule(#tile.warp_specialized<q_tile = 192, kv_tile = 128, warps = 12
attn.problem @rows mask(#attn.row_interval<end = "a">) layout(bshd) heads(4) dims(64) dtype(bf16)
// -----
// Local ones at head dims to 64: three blocks, unless rows see more than 2048 keys in one run.
// CHECK: tile.kernel @window({{.*}} schedule(#tile.warp_specialized<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 3, q_stages = 2>)
attn.problem @window mask(#attn.band<left = 1023, right = 0>) layout(bshd) heads(4) dims(64) dtype(bf16)
// -----
// CHECK: tile.kernel @sinks({{.*}} schedule(#tile.warp_specialized<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 3, q_stages = 2>)
attn.problem @sinks mask(#attn.and<#attn.causal, #attn.or<#attn.prefix<64>, #attn.band<left = 1023>>>) layout(bshd) heads(4) dims(64) dtype(bf16)
// -----
// CHECK: tile.kernel @chunks({{.*}} schedule(#tile.warp_specialized<q_tile = 192, kv_tile = 96, warps = 12, ctas_per_sm = 1, q_stages = 2, pingpong = true>)
attn.problem @chunks mask(#attn.and<#attn.chunk<8192>, #attn.causal>) layout(bshd) heads(4) dims(64) dtype(bf16)
// -----
// CHECK: tile.kernel @wide_window({{.*}} schedule(#tile.warp_specialized<q_tile = 128, kv_tile = 64, warps = 8, ctas_per_sm = 1, single_loop = true>)
attn.problem @wide_window mask(#attn.band<left = 1023, right = 0>) layout(bshd) heads(4) dims(256) dtype(bf16)
// -----
// Short windows, whose rows see few keys and each other ones; a chunk's rows see the same.
// CHECK: tile.kernel @window({{.*}} schedule(#tile.warp_specialized<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 2>)
attn.problem @window mask(#attn.band<left = 511, right = 0>) layout(bshd) heads(4) dims(128) dtype(bf16)
// -----
// CHECK: tile.kernel @narrow_window({{.*}} schedule(#tile.warp_specialized<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 3, q_stages = 2>)
attn.problem @narrow_window mask(#attn.band<left = 127, right = 127>) layout(bshd) heads(4) dims(64) dtype(bf16)
// -----
// CHECK: tile.kernel @chunk({{.*}} schedule(#tile.warp_specialized<q_tile = 128, kv_tile = 128, warps = 8, ctas_per_sm = 1, q_stages = 2>)
attn.problem @chunk mask(#attn.chunk<512>) layout(bshd) heads(4) dims(128) dtype(bf16)
// -----
// CHECK: tile.kernel @half_of_96({{.*}} schedule(#tile.warp_specialized<q_tile = 128, kv_tile = 128, warps = 8, ctas_per_sm = 1, q_stages = 2>)
attn.problem @half_of_96 mask(#attn.band<left = 511, right = 0>) layout(bshd) heads(4) dims(96) dtype(bf16)
// -----
// CHECK: tile.kernel @of_heads({{.*}} schedule(#tile.warp_specialized<q_tile = 128, kv_tile = 128, warps = 8, ctas_per_sm = 1, q_stages = 2>)
attn.problem @of_heads mask(#attn.heads<#attn.band<left = 127, right = 0>, #attn.causal>) layout(bshd) heads(4) dims(128) dtype(bf16)
