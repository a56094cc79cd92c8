// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Gradients of masks that read arrays of positions: key tiles have lists of query tiles, and the other way round, from the same expression.
//
// RUN: rm -rf %t && split-file %s %t
// RUN: attn-opt %t/document.mlir -attn-choose-schedule="target=cpu" -convert-attn-to-tile -canonicalize -cse | FileCheck %t/document.mlir
// RUN: attn-opt %t/document.mlir -attn-choose-schedule="target=sm_90a" -convert-attn-to-tile -canonicalize -cse | FileCheck %t/document.mlir --check-prefix=SUMS
// RUN: attn-opt %t/blocks.mlir -attn-choose-schedule="target=cpu" -convert-attn-to-tile -canonicalize -cse | FileCheck %t/blocks.mlir
// RUN: attn-opt %t/few.mlir -attn-choose-schedule="target=cpu" -convert-attn-to-tile | FileCheck %t/few.mlir

// Without sums of dQ: what is tried one after the other, until no kernel spills.
// RUN: attn-opt %t/wide.mlir -attn-choose-schedule="target=sm_90a" -convert-attn-to-tile | FileCheck %s --check-prefixes=WIDE,ONE
// RUN: attn-opt %t/wide.mlir -attn-choose-schedule="target=sm_90a fallback=1" -convert-attn-to-tile | FileCheck %s --check-prefixes=WIDE,TWO
// RUN: attn-opt %t/wide.mlir -attn-choose-schedule="target=sm_90a fallback=2" -convert-attn-to-tile | FileCheck %s --check-prefixes=WIDE,NARROW
// RUN: attn-opt %t/wide.mlir -attn-choose-schedule="target=sm_90a fallback=9" -convert-attn-to-tile | FileCheck %s --check-prefixes=WIDE,NARROW
// RUN: sed 's/256/128/' %t/wide.mlir | attn-opt -attn-choose-schedule="target=sm_90a" -convert-attn-to-tile | FileCheck %s --check-prefixes=WIDE,BOTH
// RUN: sed 's/256/128/' %t/wide.mlir | attn-opt -attn-choose-schedule="target=sm_90a fallback=1" -convert-attn-to-tile | FileCheck %s --check-prefixes=WIDE,KEYS
// RUN: sed 's/256/128/' %t/wide.mlir | attn-opt -attn-choose-schedule="target=sm_90a fallback=2" -convert-attn-to-tile | FileCheck %s --check-prefixes=WIDE,NEITHER
// WIDE: tile.kernel @g(
// ONE-SAME: schedule(#tile.warp_specialized_backward<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1, single_loop = true>)
// TWO-SAME: schedule(#tile.warp_specialized_backward<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>)
// NARROW-SAME: schedule(#tile.warp_specialized_backward<q_tile = 32, kv_tile = 64, warps = 4, ctas_per_sm = 1, single_loop = true>)
// BOTH-SAME: schedule(#tile.warp_specialized_backward<q_tile = 32, kv_tile = 128, warps = 8, ctas_per_sm = 1>)
// KEYS-SAME: schedule(#tile.warp_specialized_backward<q_tile = 32, kv_tile = 128, warps = 8, ctas_per_sm = 1, single_loop = true>)
// NEITHER-SAME: schedule(#tile.warp_specialized_backward<q_tile = 32, kv_tile = 128, warps = 8, ctas_per_sm = 1, single_loop = true>)
// WIDE: tile.kernel @g_dq(
// ONE-SAME: schedule(#tile.warp_specialized_backward<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1, single_loop = true>)
// TWO-SAME: schedule(#tile.warp_specialized_backward<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1, single_loop = true>)
// NARROW-SAME: schedule(#tile.warp_specialized_backward<q_tile = 64, kv_tile = 32, warps = 4, ctas_per_sm = 1, single_loop = true>)
// BOTH-SAME: schedule(#tile.warp_specialized_backward<q_tile = 128, kv_tile = 64, warps = 8, ctas_per_sm = 1>)
// KEYS-SAME: schedule(#tile.warp_specialized_backward<q_tile = 128, kv_tile = 64, warps = 8, ctas_per_sm = 1>)
// NEITHER-SAME: schedule(#tile.warp_specialized_backward<q_tile = 128, kv_tile = 64, warps = 8, ctas_per_sm = 1, single_loop = true>)

// What they compute: documents in a window, block maps of each head that divide no tile, padded; with hardly any room in the lists.
// RUN: attn-run %t/document.mlir --target=cpu --check --batch=2 --seqlen-q=500 --seqlen-kv=700 | FileCheck %s --check-prefix=SAME
// RUN: attn-run %t/blocks.mlir --target=cpu --check --lengths-q=1,0,300,70 --lengths-kv=200,30,500,70 | FileCheck %s --check-prefix=SAME
// RUN: attn-run %t/room.mlir --target=cpu --check --batch=1 --seqlen-q=700 --seqlen-kv=600 | FileCheck %s --check-prefix=SAME
// SAME-COUNT-3: {{^}}ok
// SAME-NOT: FAILED

//--- document.mlir
// Of query tiles it is known which ids they have, in groups too; a key tile asks its own.
// CHECK-LABEL: tile.kernel @g_ranges_q(
// CHECK-SAME: %query_ranges: !tile.ptr<i32>, %q_tile_list: !tile.ptr<i32>, %q_tile_list_counter: !tile.ptr<i32>
// CHECK-SAME: grid(dense heads 1)
// CHECK: metadata.init_lists %q_tile_list
// CHECK: metadata.entry_range
// CHECK: tile.store_entry %query_ranges
// CHECK-LABEL: tile.kernel @g_q_tile_lists(
// CHECK-SAME: grid(dense heads 1 keys)
// CHECK: metadata.select_tiles %q_tile_list_headers[%{{.*}}] in %q_tile_list(
// CHECK: metadata.load_ranges %query_ranges
// CHECK-LABEL: tile.kernel @g_ranges(
// CHECK-LABEL: tile.kernel @g_kv_tile_lists(
// CHECK: metadata.select_tiles %kv_tile_list_headers[%{{.*}}] in %kv_tile_list(

// CHECK-LABEL: tile.kernel @g(
// CHECK-SAME: %q_tile_list: !tile.ptr<i32>, %q_tile_list_headers: !tile.ptr<i32>, %q_tile_list_counter: !tile.ptr<i32>
// CHECK: tile.kv_loop [%c0_i32, %full, %end] tests {{\[\[}}], [0, 1, 2]]
// CHECK: tile.load uniform %q_tile_list
// CHECK-LABEL: tile.kernel @g_dq(
// CHECK-SAME: %kv_tile_list: !tile.ptr<i32>
// CHECK: tile.load uniform %kv_tile_list[

// Where dQ is added up, a tile with keys behind the last one is tested whatever its list says, and nobody walks from query tiles.
// SUMS-LABEL: tile.kernel @g_q_tile_lists(
// SUMS-NOT: @g_kv_tile_lists(
// SUMS-LABEL: tile.kernel @g(
// SUMS: %[[SHORT:.*]] = arith.cmpi slt, %rows, %c128_i32
// SUMS: %[[FULL:.*]] = arith.select %[[SHORT]], %c0_i32, %full
// SUMS: tile.kv_loop [%c0_i32, %[[FULL]], %end]
attn.problem @p mask(#attn.and<#attn.document, #attn.band<left = 99, right = 0>>) layout(bshd) heads(4, 2) dims(64) dtype(bf16)
attn.backward @g of(@p)

//--- blocks.mlir
// Heads that differ have lists of their own, and of a key tile the columns of blocks are asked for.
// CHECK-LABEL: tile.kernel @g_q_tile_lists(
// CHECK-SAME: grid(packed heads 4 keys)
// CHECK: metadata.gather_tiles 0 %{{.*}} at(%{{.*}} to %{{.*}}) tiles(%{{.*}}) of 64 in 20 transposed
// CHECK-LABEL: tile.kernel @g_kv_tile_lists(
// CHECK: metadata.gather_tiles 0 %{{.*}} at(%{{.*}} to %{{.*}}) tiles(%{{.*}}) of {{[0-9]+}} in 30{{$}}
attn.problem @p mask(#attn.and<#attn.causal, #attn.block_map<"a", "b", q = 20, kv = 30, per_sequence, per_head>>)
  layout(thd padded) heads(4, 2) dims(64) dtype(bf16)
attn.backward @g of(@p)

//--- room.mlir
attn.problem @p mask(#attn.or<#attn.band<left = 9, right = 9>, #attn.block_map<"a", "b", q = 64, kv = 128>>)
  layout(bshd) heads(2) dims(80) dtype(bf16) kv_list_capacity(1)
attn.backward @g of(@p)

//--- few.mlir
// Of few keys there are no lists.
// CHECK-NOT: visits
attn.problem @p mask(#attn.document) layout(bshd) heads(2) dims(64) dtype(bf16) expected_seqlen(512)
attn.backward @g of(@p)

//--- wide.mlir
attn.problem @p mask(#attn.document) layout(thd) heads(8, 2) dims(256) dtype(bf16)
attn.backward @g of(@p) deterministic
