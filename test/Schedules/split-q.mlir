// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Several CTAs share the loop of a KV tile over query tiles and heads, where it is much longer than others.
//
// RUN: rm -rf %t && split-file %s %t
// RUN: cat %t/sinks.mlir %t/mqa.mlir | attn-opt -attn-choose-schedule="target=sm_90a" | FileCheck %s --check-prefix=CHOSEN
// RUN: attn-opt %t/sinks.mlir -attn-choose-schedule="target=sm_90a" -convert-attn-to-tile -canonicalize -cse | FileCheck %t/sinks.mlir
// RUN: attn-opt %t/mqa.mlir -attn-choose-schedule="target=sm_90a" -convert-attn-to-tile -canonicalize -cse | FileCheck %t/mqa.mlir
// RUN: attn-translate %t/sinks.mlir --target=sm_90a | FileCheck %t/sinks.mlir --check-prefix=CUDA
// RUN: attn-opt %t/none.mlir -attn-choose-schedule="target=sm_90a" | FileCheck %t/none.mlir
// RUN: attn-translate %t/run.mlir --target=cpu | FileCheck %t/run.mlir --check-prefix=CPU
// RUN: attn-run %t/run.mlir --problem=mqa_grads --target=cpu --seqlen-q=700 --seqlen-kv=450 --batch=2 --check | FileCheck %t/run.mlir
// RUN: attn-run %t/run.mlir --problem=sinks_grads --target=cpu --seqlen-q=900 --seqlen-kv=700 --check | FileCheck %t/run.mlir
// RUN: attn-run %t/run.mlir --problem=wide_grads --target=cpu --seqlen-q=200 --seqlen-kv=150 --check | FileCheck %t/run.mlir
// RUN: attn-run %t/run.mlir --problem=mqa_grads --target=cpu --seqlen-q=0 --seqlen-kv=450 --check | FileCheck %t/run.mlir
// RUN: attn-run %t/run.mlir --problem=mqa_grads --target=cpu --seqlen-q=70 --seqlen-kv=0 --check | FileCheck %t/run.mlir
// RUN: attn-opt %t/blocks.mlir -attn-choose-schedule="target=sm_90a" -convert-attn-to-tile -canonicalize -cse | FileCheck %t/blocks.mlir
// RUN: cat %t/blocks.mlir %t/larger.mlir | attn-opt -attn-choose-schedule="target=sm_90a" | FileCheck %s --check-prefix=BLOCKS
// RUN: attn-translate %t/blocks.mlir --target=sm_90a | FileCheck %t/blocks.mlir --check-prefix=CUDA
// RUN: attn-run %t/run.mlir --problem=blocks_grads --target=cpu --seqlen-q=700 --seqlen-kv=650 --batch=2 --check | FileCheck %t/run.mlir
// RUN: attn-run %t/run.mlir --problem=documents_grads --target=cpu --seqlen-q=600 --seqlen-kv=600 --batch=2 --check | FileCheck %t/run.mlir
// RUN: attn-run %t/run.mlir --problem=blocks_grads --target=cpu --seqlen-q=70 --seqlen-kv=0 --check | FileCheck %t/run.mlir
// CHOSEN: attn.backward @g {{.*}}accumulation = unordered, {{.*}} split_q = 16>) {{.*}}
// CHOSEN: attn.backward @h {{.*}}accumulation = unordered, {{.*}} split_q = 16>)

// Tiles fit blocks. dQ has a kernel of its own, whose lists are those of query tiles.
// BLOCKS: attn.backward @b {{.*}}accumulation = separate, dkdv = #tile.warp_specialized_backward<q_tile = 32, kv_tile = 64, warps = 4, ctas_per_sm = 2, stages = 3>, dq = #tile.warp_specialized_backward<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 2>, split_q = 16>) {{.*}}the query tiles that list a key tile are far apart
// BLOCKS: attn.backward @large {{.*}}dkdv = #tile.warp_specialized_backward<q_tile = 64, kv_tile = 128, warps = 8, ctas_per_sm = 1, stages = 4>, dq = #tile.warp_specialized_backward<q_tile = 128, kv_tile = 64, warps = 8, ctas_per_sm = 1>, split_q = 16>)
// BLOCKS: attn.backward @wide_grads {{.*}}accumulation = unordered, {{.*}} split_q = 16>)
// BLOCKS: attn.backward @wide_ordered {{.*}}dkdv = [[TILES:#tile.warp_specialized_backward<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1, single_loop = true>]], dv = [[TILES]], dq =

// RUN: not attn-opt %t/verify.mlir 2>&1 | FileCheck %t/verify.mlir

//--- sinks.mlir
// The first KV tile is seen by all rows.
// CHECK: tile.kernel @g_q_splits(%q_splits: !tile.ptr<i32>, %q_split_counts: !tile.ptr<i32>, %split_tiles: !tile.ptr<i32>, %partial_dk_slots: i32, {{.*}}%multiprocessors: i32)
// CHECK: metadata.split_walks %q_splits, %q_split_counts, %split_tiles of(%{{.*}}, %{{.*}}) group 1 share(%multiprocessors) least 16 capacity(%partial_dk_slots) {
// CHECK: ^bb0(%tile: i32):
// CHECK: tile.yield %{{.*}} : i32
// CHECK: tile.kernel @g(
// CHECK: %slot = tile.load uniform %q_splits[
// CHECK: scf.if
// CHECK: tile.store %dk_rows
// CHECK: tile.store %dv_rows
// CHECK: scf.if
// CHECK: tile.store %{{.*}}, %dK rows(%rows, %rows) dim 128 : !tile.ptr<f32>
// CHECK: tile.store %{{.*}}, %dV rows(%rows, %rows) dim 128 : !tile.ptr<f32>
// CHECK: tile.kernel @g_combine(
// CHECK: tile.combine_sums %dk_rows stride(%dk_row) from(%{{.*}}) splits(%{{.*}}, %{{.*}}) rows(%{{.*}}) dim 128
// CHECK: tile.combine_sums %dv_rows
// CUDA: attn::split_walks<1, 16>(q_splits, q_split_counts, split_tiles,
// CUDA: attn::combine_sums<128, 8, 256>(dk_rows, dk_row,
attn.problem @p mask(#attn.or<#attn.band<left = 4095, right = 0>, #attn.prefix<64>>) layout(bshd) heads(4) dims(128) dtype(bf16)
attn.backward @g of(@p)

//--- mqa.mlir
// Few KV tiles, each with many query heads. dV has query tiles of another size than dK, and a list of its own.
// CHECK: metadata.split_walks %q_splits, %q_split_counts, %split_tiles of({{.*}}) group 16
// CHECK: metadata.split_walks %q_splits_dv, %q_split_counts_dv, %split_tiles_dv of({{.*}}) group 16
// CHECK: tile.kernel @h_dv(
// CHECK: %first_step = tile.load uniform %q_splits_dv
// CHECK: %end_step = tile.load uniform %q_splits_dv
// CHECK: scf.for
attn.problem @q mask(#attn.causal) layout(bshd) heads(16, 1) dims(256) dtype(bf16)
attn.backward @h of(@q)

//--- blocks.mlir
// The steps of a KV tile are on its list, which all query heads of its KV head share. Tiles are numbered through all heads.
// CHECK: tile.kernel @b_q_tile_lists({{.*}} grid(dense heads 8 keys)
// CHECK: tile.kernel @b_q_splits({{.*}}%q_tile_list_headers: !tile.ptr<i32>
// CHECK: %tiles = arith.muli
// CHECK: metadata.split_walks %q_splits, %q_split_counts, %split_tiles of(%tiles, %c1_i32) group 4
// CHECK: ^bb0(%tile: i32):
// CHECK: %b = arith.divui
// CHECK-NOT: uniform
// CHECK: tile.yield %end : i32
// CHECK: tile.kernel @b(
// CHECK: %slot = tile.load uniform %q_splits[
// CHECK: %sequence_head = arith.divui %tile,
// CHECK: %full = arith.select
// CHECK: arith.maxsi %full, %first_step
// CHECK: scf.for
// A tile is within a block, so that one bit decides for all its scores.
// CHECK: metadata.is_listed
// CHECK-NEXT: tile.apply_mask
// CHECK: tile.kernel @b_combine(
// CHECK: %sequence_head = arith.divui
// CUDA: attn::split_walks<4, 16>(q_splits, q_split_counts, split_tiles, tiles, 1, multiprocessors * 4, partial_dk_slots * 2,
// Threads have different tiles.
// CUDA-NOT: uniform(
// CUDA: return end;
attn.problem @p mask(#attn.and<#attn.causal, #attn.block_map<"offsets", "columns", q = 64, kv = 64, per_kv_head>>) layout(bshd) heads(32, 8) dims(128) dtype(bf16)
attn.backward @b of(@p)

//--- larger.mlir
attn.problem @l mask(#attn.block_map<"offsets", "columns", q = 128, kv = 128>) layout(bshd) heads(8) dims(64) dtype(bf16)
attn.backward @large of(@l)
attn.problem @w mask(#attn.block_map<"offsets", "columns", q = 128, kv = 128>) layout(bshd) heads(8) dims(256) dtype(bf16)
attn.backward @wide_grads of(@w)
attn.backward @wide_ordered of(@w) deterministic

//--- none.mlir
// CHECK-NOT: split_q
attn.problem @heads mask(#attn.causal) layout(bshd) heads(32, 8) dims(128) dtype(bf16)
attn.backward @heads_grads of(@heads)
attn.problem @packed mask(#attn.causal) layout(thd) heads(16, 1) dims(128) dtype(bf16)
attn.backward @packed_grads of(@packed)
attn.problem @short mask(#attn.causal) layout(bshd) heads(16, 1) dims(128) dtype(bf16) max_seqlen(1024)
attn.backward @short_grads of(@short)
attn.problem @ids mask(#attn.document) layout(bshd) heads(16, 1) dims(128) dtype(bf16)
attn.backward @ids_grads of(@ids)
attn.problem @blocks mask(#attn.block_map<"offsets", "columns", q = 64, kv = 64, per_head>) layout(bshd) heads(16, 1) dims(128) dtype(bf16)
attn.backward @blocks_grads of(@blocks)

//--- run.mlir
// CPU: attn::split_walks<4, 1>(
// CPU: attn::combine_sums<64, 8, 256>(
// CHECK-COUNT-3: {{^}}ok
#tiles = #tile.tiled_backward<q_tile = 64, kv_tile = 64, warps = 1, ctas_per_sm = 1>
#kernels = #tile.backward_kernels<accumulation = separate, dkdv = #tiles, dq = #tiles, split_q = 1>
attn.problem @mqa mask(#attn.causal) layout(bshd) heads(4, 1) dims(64) dtype(bf16)
attn.backward @mqa_grads of(@mqa) schedule(#kernels)
attn.problem @sinks mask(#attn.or<#attn.band<left = 63, right = 0>, #attn.prefix<3>>) layout(sbhd) heads(2) dims(64) dtype(bf16)
attn.backward @sinks_grads of(@sinks) schedule(#kernels)
attn.problem @wide mask(#attn.full) layout(bhsd) heads(6, 2) dims(72, 40) dtype(f16)
attn.backward @wide_grads of(@wide) deterministic schedule(#kernels)
attn.problem @blocks mask(#attn.and<#attn.causal, #attn.block_map<"a", "b", q = 64, kv = 64, per_sequence, per_kv_head>>) layout(bshd) heads(4, 2) dims(64) dtype(bf16)
attn.backward @blocks_grads of(@blocks) schedule(#kernels)
attn.problem @documents mask(#attn.and<#attn.causal, #attn.document>) layout(bhsd) heads(2) dims(64) dtype(f16)
attn.backward @documents_grads of(@documents) schedule(#kernels)

//--- verify.mlir
// CHECK: 'metadata.split_walks' op expected to yield one number of type i32
tile.kernel @k(%x: !tile.ptr<i32>, %n: i32) target("cpu") grid(dense heads 1)
    schedule(#tile.auxiliary<q_tile = 128, kv_tile = 128, warps = 16, ctas_per_sm = 1>) {
  metadata.split_walks %x, %x, %x of(%n, %n) group 1 share(%n) least 16 capacity(%n) {
  ^bb0(%tile: i32):
    tile.yield
  }
}
