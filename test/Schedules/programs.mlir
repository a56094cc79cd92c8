// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: attn-opt %s --pass-pipeline='builtin.module(attn-choose-schedule{target=sm_90a},convert-attn-to-tile,program.def(program-place-buffers))' | FileCheck %s

// One kernel: tensor maps of q, k and v, and a counter, since it is persistent.
// CHECK: program.def @dense_program {
// CHECK-NEXT: %q = program.tensor "q" operand : bf16 [batch, seqlen_q, 16, 128] strided(0, 1, 2)
// CHECK-NEXT: %k = program.tensor "k" operand : bf16 [batch, seqlen_kv, 4, 128] strided(0, 1, 2)
// CHECK-NEXT: %v = program.tensor "v"
// CHECK-NEXT: %o = program.tensor "o" result : bf16 [batch, seqlen_q, 16, 128] strided(0, 1, 2)
// CHECK-NEXT: %lse = program.tensor "lse" result : f32 [batch, 16, seqlen_q] strided(0, 1)
// CHECK-NEXT: program.launch @dense grid(query_tiles, 16 * (batch * ceil_div(seqlen_q, 128))) (read %q, read %k, read %v, write %o or zero, write %lse or zero, size batch, size seqlen_q, size seqlen_kv, stride %q axis 0, stride %q axis 1, stride %q axis 2,
// CHECK-SAME: read map %q axes(1, 2, 0), read map %k axes(1, 2, 0), read map %v axes(1, 2, 0), blocks, counter)
// CHECK-NEXT: }
attn.problem @dense mask(#attn.causal) layout(bshd) heads(16, 4) dims(128) dtype(bf16)

// Split-KV: how many splits follows from the sizes and the chip.
// CHECK: program.def @decode_program {
// CHECK: program.size "splits" = splits(2 * (batch * ceil_div(seqlen_q, 8)), seqlen_kv, multiprocessors)
// CHECK-NEXT: %partial_o = program.buffer "partial_o" : f32 [splits, 16, batch, seqlen_q, 128] place 0
// CHECK-NEXT: %partial_max = program.buffer "partial_max" : f32 [splits, 16, batch, seqlen_q] place 1
// CHECK-NEXT: %partial_sum = program.buffer "partial_sum" : f32 [splits, 16, batch, seqlen_q] place 2
// CHECK-NEXT: program.launch @decode grid(query_tiles, 2 * (batch * ceil_div(seqlen_q, 8)) * splits) (read %q, read %k, read %v, write %o rows(0 of 2) or zero, write %lse rows(0 of 2) or zero, write %partial_o or zero,
// CHECK-NEXT: program.launch @decode_combine grid(query_tiles, 16 * (batch * ceil_div(seqlen_q, 4)) * min(splits - 1, 1)) (write %o rows(1 of 2), write %lse rows(1 of 2), read %partial_o, read %partial_max, read %partial_sum, size batch, size seqlen_q, size splits,
attn.problem @decode mask(#attn.full) layout(bshd) heads(16, 2) dims(128) dtype(bf16) expected_seqlen(1, 32768)

// Lists of tiles: room for them follows from the length of the caller's lists.
// CHECK: program.def @lists_program {
// CHECK: %offsets = program.tensor "offsets" array : i32 [max(offsets_entries, 1)]
// CHECK-NEXT: %columns = program.tensor "columns" array : i32 [columns_entries]
// CHECK: %kv_tile_list = program.buffer "kv_tile_list" : i32 [min(ceil_div(seqlen_kv, 128) + 1 + min(batch * ceil_div(seqlen_q, 128) * (ceil_div(seqlen_kv, 128) + 1), max(columns_entries * batch, max(10 * (batch * ceil_div(seqlen_q, 128)), 16777216))) + 1, 2147483647)]
// CHECK: program.launch @lists_ranges grid(kv_tiles, min(batch * ceil_div(seqlen_kv, 128), 64)) (read %offsets, size max(offsets_entries, 1), read %columns, size columns_entries, write %key_ranges, write %kv_tile_list, write %kv_tile_list_counter,
// CHECK: program.launch @lists_kv_tile_lists grid(query_tiles, batch * ceil_div(seqlen_q, 128)) ({{.*}}update %kv_tile_list, write %kv_tile_list_headers or zero, update %kv_tile_list_counter,
// CHECK: program.launch @lists grid(query_tiles, 2 * (batch * ceil_div(seqlen_q, 128))) ({{.*}}read %kv_tile_list, read %kv_tile_list_headers, read %kv_tile_list_counter,
attn.problem @lists mask(#attn.block_map<"offsets", "columns", q = 128, kv = 128>) layout(bshd) heads(2) dims(64) dtype(bf16)

// What a tree is numbered in is over before lists begin, so both have one place.
// CHECK: program.def @tree_program {
// CHECK: %parent_numbering = program.buffer "parent_numbering" : i32 [5 * total_kv] place [[NUMBERING:[0-9]+]]
// CHECK-NEXT: program.launch @tree_tree grid(kv_tiles, min(floor_div(total_kv, 64) + batch + 2, 120)) ({{.*}}write %parent_node, write %parent_first, write %parent_end, scratch %parent_numbering,
// CHECK: %kv_tile_list = program.buffer "kv_tile_list" : {{.*}} place [[NUMBERING]]
attn.problem @tree mask(#attn.ancestors<"parent">) layout(thd) heads(2) dims(64) dtype(bf16)

// The kernel of ids comes first; what it finds for nobody is scratch. Without rows of ids, what others read is zero.
// CHECK: program.def @by_ids_program {
// CHECK-NEXT: program.size "batch" = id_rows * 12
// CHECK-NEXT: program.size "total_q" = id_rows * tokens_q
// CHECK: %ids_q = program.tensor "ids_q" array : i32 leading_dims all [tokens_q]
// CHECK-NEXT: %positions_q = program.tensor "positions_q" array : i32 leading_dims last [tokens_q]
// CHECK: %status = program.tensor "status" result : i32 leading_dims all []
// CHECK: %seqlens_q = program.buffer "seqlens_q" : i32 [id_rows, 12]
// CHECK: program.launch @by_ids_segments grid(clusters, id_rows) (read %ids_q, read %positions_q, read %ids_kv, read %positions_kv, scratch %seqlens_q, {{.*}}write %status or zero, write %cu_seqlens_q or zero,
// CHECK-SAME: size positions_q_rows, size positions_kv_rows, counter)
// CHECK-NEXT: program.launch @by_ids grid(query_tiles, 16 * (floor_div(total_q, 128) + batch + 2)) ({{.*}}read %cu_seqlens_q, read %padded_offsets_q,
attn.problem @by_ids mask(#attn.causal) layout(thd padded) heads(16) dims(128) dtype(bf16) segments(12)

// Short sequences have a kernel, and the others another; together they write all rows.
// CHECK: program.def @classes_program {
// CHECK: program.launch @classes_work_tiles grid(clusters, 1) ({{.*}}write %tiles_q or zero, write %tile_count or zero,
// CHECK-NEXT: program.launch @classes grid(query_tiles, 16 * (floor_div(total_q, 128) + min(batch, floor_div(total_q, 33) + floor_div(total_kv, 33)) + 2)) ({{.*}}write %o rows(1 of 2), write %lse rows(1 of 2),
// CHECK-NEXT: program.launch @classes_short grid(sequence_tiles, 8 * max(batch, 1)) ({{.*}}write %o rows(0 of 2), write %lse rows(0 of 2),
attn.problem @classes mask(#attn.causal) layout(thd) heads(16) dims(128) dtype(bf16) expected_seqlen(8)

// Ids alone: results of the caller, whose sizes follow from those of the ids.
// CHECK: program.def @ids_program {
// CHECK-NEXT: program.size "batch" = id_rows * 8
// CHECK-NEXT: program.size "total_q" = id_rows * tokens_q
// CHECK: %tiles_q = program.tensor "tiles_q" result : i32 [floor_div(total_q, 128) + batch + 2]
// CHECK: program.launch @ids grid(clusters, id_rows) ({{.*}}write %tiles_q or zero, write %tile_count or zero,
attn.segments @ids mask(#attn.causal) segments(8) tiles(128)
