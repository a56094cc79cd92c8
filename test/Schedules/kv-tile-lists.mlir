// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Masks that read arrays of positions: kernels before attention list the KV tiles that each query tile visits.
//
// RUN: rm -rf %t && split-file %s %t
// RUN: attn-opt %t/document.mlir -attn-choose-schedule="target=cpu" -convert-attn-to-tile -canonicalize -cse | FileCheck %t/document.mlir
// RUN: attn-opt %t/packed.mlir -attn-choose-schedule="target=sm_90a" -convert-attn-to-tile -canonicalize -cse | FileCheck %t/packed.mlir
// RUN: attn-opt %t/heads.mlir -attn-choose-schedule="target=cpu" -convert-attn-to-tile -canonicalize -cse | FileCheck %t/heads.mlir
// RUN: attn-opt %t/rows.mlir -attn-choose-schedule="target=cpu" -convert-attn-to-tile -canonicalize -cse | FileCheck %t/rows.mlir
// RUN: attn-opt %t/without.mlir -attn-choose-schedule="target=cpu" -convert-attn-to-tile | FileCheck %t/without.mlir
// RUN: attn-translate %t/document.mlir --target=cpu | FileCheck %t/document.mlir --check-prefix=TEXT
// RUN: attn-translate %t/document.mlir --target=sm_90a | FileCheck %t/document.mlir --check-prefix=ROLES

// What they compute.
// RUN: attn-run %t/document.mlir --target=cpu --check --batch=2 --seqlen-q=700 --seqlen-kv=900 | FileCheck %s --check-prefix=SAME
// RUN: attn-run %t/packed.mlir --target=cpu --check --lengths-q=1,0,700 --lengths-kv=200,30,500 | FileCheck %s --check-prefix=SAME
// RUN: attn-run %t/long.mlir --target=cpu --check --lengths-q=100,0,3000,7 --lengths-kv=900,30,5000,2500 | FileCheck %s --check-prefix=SAME
// RUN: attn-run %t/heads.mlir --target=cpu --check --batch=1 --seqlen-q=300 --seqlen-kv=300 | FileCheck %s --check-prefix=SAME
// RUN: attn-run %t/rows.mlir --target=cpu --check --batch=2 --seqlen-q=130 --seqlen-kv=0 | FileCheck %s --check-prefix=SAME
// RUN: attn-run %t/rows.mlir --target=cpu --check --batch=1 --seqlen-q=500 --seqlen-kv=700 | FileCheck %s --check-prefix=SAME
// Room for a tile each: most rows have all tiles from their first to their last.
// RUN: attn-run %t/room.mlir --problem=p --target=cpu --check --batch=2 --seqlen-q=700 --seqlen-kv=900 | FileCheck %s --check-prefix=SAME
// RUN: attn-run %t/room.mlir --target=cpu --problem=packed --check --lengths-q=100,0,3000,7 --lengths-kv=900,30,5000,2500 | FileCheck %s --check-prefix=SAME
// SAME-COUNT-2: {{^}}ok
// SAME-NOT: FAILED

//--- document.mlir
// Ids of a key tile: the least and the largest that is not 0, and whether none is.
// CHECK-LABEL: tile.kernel @p_ranges(%segment_ids_q: {{.*}}, %key_ranges: !tile.ptr<i32>, %kv_tile_list: !tile.ptr<i32>,
// CHECK-SAME: %kv_tile_list_counter: !tile.ptr<i32>, %kv_tile_list_entries: i32, %batch: i32, %seqlen_q: i32, %seqlen_kv: i32)
// CHECK-SAME: grid(dense heads 1 keys) schedule(#tile.auxiliary<q_tile = 64, kv_tile = 64, warps = 1, ctas_per_sm = 4>)
// CHECK: metadata.init_lists %kv_tile_list across(%across) used(%kv_tile_list_counter)
// CHECK: scf.for
// CHECK: tile.index warp
// CHECK: scf.for
// CHECK: metadata.entry_range %{{.*}} count(%{{.*}} of 64) hidden 0
// CHECK: tile.store_entry %key_ranges[%{{.*}}], %least
// CHECK: tile.store_entry %key_ranges[%{{.*}}], %largest
// CHECK: tile.store_entry %key_ranges[%{{.*}}], %none_hidden

// Of 32 tiles together, the least and the largest of these. Four values a tile lie side by side: the three, and one for two to be read at once.
// CHECK: tile.barrier
// CHECK: scf.for %value
// CHECK: %[[LEAST:.*]], %[[LARGEST:.*]], %{{.*}} = metadata.entry_range %{{.*}} count(%{{.*}} of 32) by 4
// CHECK: %[[OWN:.*]] = arith.select %{{.*}}, %[[LEAST]], %[[LARGEST]]
// CHECK: tile.store_entry %key_ranges[%{{.*}}], %[[OWN]]
// CHECK-NOT: tile.store_entry %key_ranges

// Those of a query tile are looked at where they are needed. The walk goes up to the diagonal only, and of each
// tile on it the region says whether documents meet.
// CHECK-LABEL: tile.kernel @p_kv_tile_lists
// CHECK-SAME: %key_ranges: !tile.ptr<i32>, %kv_tile_list: !tile.ptr<i32>, %kv_tile_list_headers: !tile.ptr<i32>, %kv_tile_list_counter: !tile.ptr<i32>
// CHECK: metadata.entry_range
// CHECK: metadata.select_tiles %kv_tile_list_headers[%{{.*}}] in %kv_tile_list(%kv_tile_list_entries) across(%across) used(%kv_tile_list_counter) from %c0_i32 to %end {
// CHECK: %least_{{.*}}, %largest_{{.*}}, %least_{{.*}}, %largest_{{.*}} = metadata.load_ranges %key_ranges[%{{.*}}] : i32, i32, i32, i32
// CHECK: tile.yield %{{.*}}, %{{.*}} : i1, i1
// Where the diagonal is no question, ids are all there is to ask for.
// CHECK: } inner {
// CHECK-NOT: %q0
// CHECK: } groups(%first_tile) {
// CHECK: metadata.load_ranges %{{.*}}[%g] : i32, i32{{$}}
// CHECK: tile.yield %{{.*}}, %{{.*}}, %{{.*}}, %c-1_i32, %c-1_i32 : i1, i1, i1, i32, i32

// Full tiles need no test. If the lists are full, a tile whose entries are in none goes along all from its first to its last.
// CHECK-LABEL: tile.kernel @p(
// CHECK-SAME: %kv_tile_list: !tile.ptr<i32>, %kv_tile_list_headers: !tile.ptr<i32>, %kv_tile_list_counter: !tile.ptr<i32>
// CHECK: tile.load uniform %kv_tile_list_counter
// CHECK: %full = arith.select
// CHECK: %end = arith.select
// CHECK: tile.kv_loop [%c0_i32, %full, %end] tests {{\[\[}}], [0, 1]] carry()
// CHECK: %[[AT:.*]] = arith.select
// CHECK: arith.addi %[[AT]], %
// CHECK: tile.load uniform %kv_tile_list

// TEXT: attn::entry_range<64>(
// TEXT: attn::store_entry(key_ranges,
// TEXT: attn::entry_range<32, 4>(key_ranges
// TEXT: attn::select_tiles(kv_tile_list_headers, kv_tile_list, kv_tile_list_counter,
// TEXT: const auto [least_2, largest_2, least_3, largest_3] = attn::load_ranges<4>(key_ranges, first_tile + tile_2).values;
// TEXT: return attn::TileVisibility{
// TEXT: return attn::GroupVisibility{
// TEXT: for (int j = 0; j < full; ++j) {
// TEXT-NOT: attn::apply_mask(
// TEXT: for (int j = full; j < end; ++j) {
// TEXT: attn::apply_mask(

// The role that brings tiles goes along the same list.
// ROLES: // p_kv_tile_lists for sm_80
// ROLES: // p for sm_90a
// ROLES: attn::publish_work(mailbox,
// ROLES: for (int j = 0; j < end; ++j) {
// ROLES-NEXT: const int k0 = attn::uniform(
// ROLES-NEXT: attn::producer_load(K, k_map, k0,
attn.problem @p mask(#attn.and<#attn.document, #attn.causal>) layout(bshd) heads(2) dims(64) dtype(bf16)

//--- packed.mlir
// Slots stand for tiles of packed sides; those of keys are numbered by prefix sums, which ascend whatever the order
// of padded offsets.
// CHECK-LABEL: tile.kernel @p_ranges
// CHECK-SAME: target("sm_80") grid(packed heads 1 keys)
// CHECK: tile.find_sequence %{{.*}} in %cu_seqlens_kv, %cu_seqlens_kv, %batch, %total_kv tile 96
// CHECK: scf.if
// CHECK: metadata.entry_range
// A slot that has no keys says so, lest its group be taken for what memory held.
// CHECK: scf.if
// CHECK-COUNT-2: tile.store_entry %key_ranges[%{{.*}}], %c2147483647_i32
// CHECK-LABEL: tile.kernel @p_kv_tile_lists
// CHECK: tile.find_sequence %{{.*}} in %cu_seqlens_q, %padded_offsets_q, %batch, %total_q tile 192
// CHECK-LABEL: tile.kernel @p(
// CHECK-SAME: target("sm_90a")
attn.problem @p mask(#attn.tree<"node", "first", "end">) layout(thd padded) heads(2) dims(64) dtype(bf16)

//--- long.mlir
// Sequences of more than one group of tiles, and groups of more than one sequence.
attn.problem @p mask(#attn.and<#attn.document, #attn.or<#attn.causal, #attn.not<#attn.column_interval<end = "end">>>>) layout(thd padded) heads(1) dims(16) dtype(bf16)

//--- room.mlir
attn.problem @p mask(#attn.column_interval<begin = "begin", end = "end">) layout(bshd) heads(2) dims(64) dtype(bf16) kv_list_capacity(1)
attn.problem @packed mask(#attn.and<#attn.document, #attn.not<#attn.column_interval<end = "end">>>) layout(thd padded) heads(1) dims(16) dtype(bf16) kv_list_capacity(1)

//--- heads.mlir
// Where KV heads differ, each has lists of its own, which its query heads share.
// CHECK-LABEL: tile.kernel @p_ranges
// CHECK-SAME: grid(dense heads 2 keys)
// CHECK: %kv_head = arith.divui
// CHECK-LABEL: tile.kernel @p_kv_tile_lists
// CHECK-SAME: grid(dense heads 2)
attn.problem @p mask(#attn.and<#attn.causal, #attn.column_interval<end = "end", per_kv_head>>) layout(bshd) heads(4, 2) dims(64) dtype(bf16)

//--- rows.mlir
// Without arrays of keys there is nothing to be known of key tiles. An `or` with an affine part: one list, of what is between too.
// CHECK-LABEL: tile.kernel @p_ranges
// CHECK-NOT: metadata.entry_range
// CHECK: scf.for %slice
// CHECK: metadata.init_lists %kv_tile_list across(%across) used(%kv_tile_list_counter) slice(%slice)
// CHECK-LABEL: tile.kernel @p_kv_tile_lists
// CHECK-NOT: metadata.load_ranges
// CHECK: metadata.select_tiles
// CHECK: tile.kernel @p(
attn.problem @p mask(#attn.and<#attn.or<#attn.prefix<64>, #attn.band<left = 99>>, #attn.row_interval<begin = "a", end = "b">>)
  layout(bshd) heads(2) dims(64) dtype(bf16)

//--- without.mlir
// No lists: few keys, keys that are shared out, numbers of sequences only.
// CHECK-NOT: visits
attn.problem @few mask(#attn.document) layout(bshd) heads(2) dims(64) dtype(bf16) expected_seqlen(512)
attn.problem @shared mask(#attn.document) layout(bshd) heads(2) dims(64) dtype(bf16)
  schedule(#tile.split_kv<splits = 7, of = #tile.tiled<q_tile = 64, kv_tile = 64, warps = 1, ctas_per_sm = 1>>)
attn.problem @numbers mask(#attn.prefix<"lengths">) layout(bshd) heads(2) dims(64) dtype(bf16)
