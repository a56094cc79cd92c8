// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Segments as CUDA C++ with clusters and without, and as C++ for the CPU: the same steps.
//
// RUN: attn-translate %s --target=sm_90a | FileCheck %s --check-prefixes=CHECK,GPU,CLUSTER
// RUN: attn-translate %s --target=sm_80 | FileCheck %s --check-prefixes=CHECK,GPU,ONE
// RUN: attn-translate %s --target=cpu | FileCheck %s --check-prefixes=CHECK,ONE,HOST

// CHECK: // full for {{cpu|sm_80|sm_90a}}
// CHECK-NEXT: #include "attn/metadata.h"
// CLUSTER: ATTN_CLUSTER_KERNEL(full, /*threads=*/512, /*CTAs per multiprocessor=*/1, /*CTAs per cluster=*/16)
// ONE: ATTN_KERNEL(full, /*threads=*/512, /*CTAs per multiprocessor=*/1)
// What is only read is const, what is written is not, and lengths of sequences are read as well.
// CHECK-NEXT: (const int *ids_q, const int *ids_kv, int *seqlens_q, int *seqlens_kv, int *offsets_q, int *offsets_kv,
// CHECK-NEXT: int *status, int *cu_seqlens_q, int *padded_offsets_q, int *cu_seqlens_kv, int *padded_offsets_kv,
// CHECK-NEXT: int id_rows, int tokens_q, int tokens_kv, unsigned *queue) {
// CLUSTER-NEXT: attn::SegmentTable<64, 16, {{[0-9]+}}> table(0);
// CLUSTER-NEXT: const int row = attn::batch_row_index<16>();
// ONE-NEXT: attn::SegmentTable<64, 1, {{[0-9]+}}> table(0);
// ONE-NEXT: const int row = attn::batch_row_index<1>();
// CHECK-NEXT: const auto q = attn::tokens(ids_q, row, tokens_q);
// CHECK-NEXT: const auto kv = attn::tokens(ids_kv, row, tokens_kv);
// CHECK-NEXT: attn::count_segments(table, q, kv);
// CHECK-NEXT: attn::bound_segments<false>(table, q, [=](int, int, int, int, int, int) {
// CHECK-NEXT: return attn::Bounds{-2147483647 - 1, 2147483647, 0};
// CHECK-NEXT: });
// CHECK-NEXT: attn::select_segments(table, q, kv);
// CHECK-NEXT: attn::write_segments(table, seqlens_q, seqlens_kv, offsets_q, offsets_kv, status);
// CHECK-NEXT: attn::write_sequences(table, q, kv, queue, id_rows, cu_seqlens_q, padded_offsets_q, cu_seqlens_kv, padded_offsets_kv);
// CHECK-NEXT: }
attn.segments @full mask(#attn.full) segments(64)

// Only what is used of a region's arguments has a name.
// CHECK: (const int *ids_q, const int *positions_q, const int *ids_kv, const int *positions_kv, int *seqlens_q,
// CHECK: const auto q = attn::tokens(ids_q, row, tokens_q, positions_q, position_rows_q);
// CHECK-NEXT: const auto kv = attn::tokens(ids_kv, row, tokens_kv, positions_kv, position_rows_kv);
// CHECK: attn::bound_segments<false>(table, q, [=](int, int, int high_q, int, int low_kv, int) {
// CHECK-NEXT: return attn::Bounds{low_kv, high_q, 0};
// CHECK-NEXT: });
// CHECK-NEXT: attn::select_segments(table, q, kv, segments_q, segments_kv);
// CHECK-NEXT: attn::check_segments(table, q, kv, [=](int, int, int shift) {
// CHECK-NEXT: return attn::DiagonalChecks<1>{{[{][{]}}0, shift}};
// CHECK: attn::list_query_tiles<32>(table, q, kv, id_rows, cu_seqlens_q, padded_offsets_q, cu_seqlens_kv, tiles_q, tile_count, [=](int len_q, int len_kv) {
// CHECK-NEXT: return attn::max(attn::min(len_q, len_kv), 0);
// CHECK-NEXT: });
// CHECK-NEXT: }
attn.segments @causal mask(#attn.causal) segments(64) maps tiles(32)

// CHECK: attn::bound_segments<true>(table, q, [=](int count_q, int, int high_q, int count_kv, int low_kv, int) {
// CHECK-NEXT: const int x = count_kv - count_q;
// CHECK-NEXT: return attn::Bounds{low_kv - x, high_q + x, x};
// CHECK: attn::check_segments(table, q, kv, [=](int len_q, int len_kv, int shift) {
// CHECK-NEXT: const int x = len_kv - len_q;
// CHECK-NEXT: return attn::DiagonalChecks<2>{{[{][{]}}x, shift, x - 1024, shift - 1024}};
attn.segments @aligned mask(#attn.band<left = 1023, right = 0, bottom_right>) segments(256)

// A C++ word for a name; the entry on the CPU takes its arguments as a launch gives them.
// CHECK: ATTN_{{(CLUSTER_)?}}KERNEL([[NAME:.*]], /*threads=*/512
// HOST: extern "C" void [[NAME]]_block(void *const *args, int block) {
// GPU-NOT: _block(
attn.segments @register mask(#attn.full) segments(1)
