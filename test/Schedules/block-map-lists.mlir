// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Block maps of whole tiles, forward: no kernel makes bits of them. The kernel that lists tiles reads the maps' own lists, and no pair is tested, unless
// KV-tile lists are full, so that tiles are visited which may not be listed.
//
// RUN: rm -rf %t && split-file %s %t
// RUN: attn-opt %t/whole.mlir -attn-choose-schedule="target=sm_90a" -convert-attn-to-tile -canonicalize -cse | FileCheck %t/whole.mlir
// RUN: attn-translate %t/whole.mlir --target=sm_90a | FileCheck %t/whole.mlir --check-prefix=TEXT
// RUN: attn-opt %t/several.mlir -attn-choose-schedule="target=cpu" -convert-attn-to-tile -canonicalize -cse | FileCheck %t/several.mlir
// RUN: attn-opt %t/bits.mlir -attn-choose-schedule="target=cpu" -convert-attn-to-tile -canonicalize -cse | FileCheck %t/bits.mlir
// RUN: attn-opt %t/back.mlir -attn-choose-schedule="target=cpu" -convert-attn-to-tile | FileCheck %t/back.mlir

// What they compute: blocks of one tile and of three, of each sequence and kv head, packed; several; hardly any room in the lists; nothing at all.
// RUN: attn-run %t/whole.mlir --target=cpu --check --batch=2 --seqlen-q=300 --seqlen-kv=410 | FileCheck %s --check-prefix=SAME
// RUN: attn-run %t/whole.mlir --target=cpu --check --batch=1 --seqlen-q=130 --seqlen-kv=0 | FileCheck %s --check-prefix=SAME
// RUN: attn-run %t/several.mlir --target=cpu --check --lengths-q=1,0,300,700 --lengths-kv=200,30,500,700 | FileCheck %s --check-prefix=SAME
// RUN: attn-run %t/room.mlir --target=cpu --check --batch=2 --seqlen-q=700 --seqlen-kv=900 | FileCheck %s --check-prefix=SAME
// SAME-COUNT-2: {{^}}ok
// SAME-NOT: FAILED

//--- whole.mlir
// CHECK-NOT: _bits
// CHECK-LABEL: tile.kernel @p_kv_tile_lists(%offsets: !tile.ptr<i32>, %offsets_entries: i32, %columns: !tile.ptr<i32>, %columns_entries: i32,
// CHECK: %[[ROWS:.*]] = arith.subi %offsets_entries, %c1_i32
// CHECK: metadata.gather_tiles 0 %offsets(%[[ROWS]], %columns_entries) columns(%columns) at(%{{.*}}) tiles(%from to %to) of 128 in 384
// CHECK-LABEL: tile.kernel @p(
// CHECK: %[[HULL:.*]] = arith.andi
// CHECK: %[[IS:.*]] = metadata.is_listed %{{.*}}(%{{.*}}, %columns_entries) columns(%columns) at(%{{.*}}, %{{.*}}) if(%[[HULL]])
// CHECK: tile.apply_mask
// CHECK: tile.yield %{{.*}}, %[[IS]] : i1, i1
// Rows with a NaN are computed once more, along the same list.
// CHECK: tile.recompute_rows {{.*}} ranges(%end)
// CHECK: metadata.is_listed %{{.*}} columns(%
// CHECK: } along {
// CHECK-NEXT: ^bb0(%j: i32):
// CHECK-NOT: _bits

// TEXT: attn::gather_list_tiles<0, 128, 384>(offsets, offsets_entries - 1, columns, columns_entries,
// What lanes exchange is no arm's of a conditional (Printer::isInlined).
// TEXT-NOT: {{[?:] }}attn::uniform
// TEXT: attn::recompute_rows<128, 128>(acc, q0, rows, attn::key_ranges(end, [=](int j) {
// TEXT: attn::is_in_list(
attn.problem @p mask(#attn.and<#attn.causal, #attn.block_map<"offsets", "columns", q = 128, kv = 384>>) layout(bshd) heads(4, 2) dims(128) dtype(bf16)

//--- several.mlir
// Of two maps, the one that is no whole tiles has bits.
// CHECK: metadata.fill_block_bits %ours_bits
// CHECK-NOT: metadata.fill_block_bits
// CHECK-LABEL: tile.kernel @p_kv_tile_lists
// CHECK-SAME: %mine: !tile.ptr<i32>, %mine_entries: i32
// CHECK-SAME: %ours_bits: !tile.ptr<i32>
// CHECK: metadata.gather_tiles 0 %{{.*}} columns(%{{.*}} of 64 in 64
// CHECK: metadata.gather_tiles 1 %{{.*}}) at(%{{.*}} to %{{.*}}) tiles(%{{.*}}) of 64 in 7
// CHECK-LABEL: tile.kernel @p(
attn.problem @p mask(#attn.and<#attn.block_map<"mine", "some", q = 128, kv = 64, per_sequence, per_kv_head>, #attn.block_map<"ours", "all", q = 200, kv = 7>>)
  layout(thd padded) heads(4, 2) dims(64) dtype(bf16)

//--- bits.mlir
// Not where a pair may be visible without being listed,
// CHECK-LABEL: tile.kernel @or_blocks(
// CHECK-LABEL: tile.kernel @not_blocks(
// or a map is asked about elsewhere too,
// CHECK-LABEL: tile.kernel @twice_blocks(
// and where there are no lists of tiles.
// CHECK-LABEL: tile.kernel @few_blocks(
// CHECK-LABEL: tile.kernel @shared_blocks(
attn.problem @or mask(#attn.or<#attn.block_map<"a", "b", q = 64, kv = 64>, #attn.causal>) layout(bshd) heads(2) dims(64) dtype(bf16)
attn.problem @not mask(#attn.not<#attn.block_map<"a", "b", q = 64, kv = 64>>) layout(bshd) heads(2) dims(64) dtype(bf16)
attn.problem @twice mask(#attn.and<#attn.block_map<"a", "b", q = 64, kv = 64>, #attn.heads<#attn.block_map<"a", "b", q = 64, kv = 64>, #attn.causal>>)
  layout(bshd) heads(2) dims(64) dtype(bf16)
attn.problem @few mask(#attn.block_map<"a", "b", q = 64, kv = 64>) layout(bshd) heads(2) dims(64) dtype(bf16) expected_seqlen(512)
attn.problem @shared mask(#attn.block_map<"a", "b", q = 64, kv = 64>) layout(bshd) heads(2) dims(64) dtype(bf16)
  schedule(#tile.split_kv<splits = 7, of = #tile.tiled<q_tile = 64, kv_tile = 64, warps = 1, ctas_per_sm = 1>>)

//--- back.mlir
// Gradients look at a map from both sides.
// CHECK-LABEL: tile.kernel @p_kv_tile_lists(
// CHECK: metadata.gather_tiles {{.*}} columns(%
// CHECK-LABEL: tile.kernel @g_blocks(
// CHECK-NOT: metadata.gather_tiles {{.*}} columns(%
// CHECK: metadata.gather_tiles 0 {{.*}} transposed
// CHECK-NOT: metadata.gather_tiles {{.*}} columns(%
attn.problem @p mask(#attn.block_map<"a", "b", q = 128, kv = 128>) layout(bshd) heads(4, 2) dims(64) dtype(bf16)
attn.backward @g of(@p)

//--- room.mlir
attn.problem @p mask(#attn.and<#attn.block_map<"a", "b", q = 64, kv = 128>, #attn.band<left = 500>>) layout(bshd) heads(2) dims(80) dtype(bf16) kv_list_capacity(1)
