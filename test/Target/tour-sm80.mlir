// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The tour's problem as CUDA C++: a line for each op, names as in the IR.
//
// RUN: attn-opt %attn_source/docs/tour/packed_causal.mlir -attn-choose-schedule=target=sm_80 > %t
// RUN: attn-translate %attn_source/docs/tour/packed_causal.mlir --target=sm_80 > %t.cc
// RUN: cat %t %t.cc | FileCheck %s
// RUN: attn-opt %attn_source/docs/tour/packed_causal.mlir --attn-pipeline -mlir-print-debuginfo | attn-translate > %t.cc
// RUN: cat %t %t.cc | FileCheck %s

// CHECK: schedule(#tile.tiled<q_tile = [[#QT:]], kv_tile = [[#KT:]], warps = [[#WARPS:]], ctas_per_sm = [[#CTAS:]]{{.*}}>)
// CHECK: // packed_causal for sm_80
// CHECK-NEXT: #include "attn/tile.h"
// CHECK: ATTN_KERNEL(packed_causal, /*threads=*/[[#mul(WARPS,32)]], /*CTAs per multiprocessor=*/[[#CTAS]])
// What a kernel only reads is const; the names are the launcher's.
// CHECK-NEXT: (const attn::bf16 *q, const attn::bf16 *k, const attn::bf16 *v, attn::bf16 *o, float *lse,
// CHECK-NEXT: const int *cu_seqlens_q, const int *padded_offsets_q, const int *cu_seqlens_kv, const int *padded_offsets_kv,
// CHECK-NEXT: int batch, int total_q, long long q_row,
// CHECK: long long lse_head) {

// Places.
// CHECK-NEXT: attn::Smem<attn::bf16, [[#QT]], 64, 72> Q(0);
// CHECK-NEXT: attn::Smem<attn::bf16, [[#KT]], 64, 72> K([[#mul(QT,144)]]);
// CHECK-NEXT: attn::Smem<attn::bf16, [[#KT]], 64, 72> V([[#mul(add(QT,KT),144)]]);
// CHECK-NEXT: attn::Frag<[[#QT]], [[#KT]], [[#WARPS]]> s;
// CHECK-NEXT: attn::Frag<[[#QT]], 64, [[#WARPS]]> acc;
// CHECK: attn::SoftmaxState<[[#QT]], [[#WARPS]]> row;

// CHECK-NEXT: const int block = attn::block_index();
// CHECK: const auto [b, q0, first, rows, write_rows] = attn::find_sequence<[[#QT]]>({{.*}}, cu_seqlens_q, padded_offsets_q, batch, total_q);
// CHECK: const int kv_head = h / 4;
// CHECK-NEXT: const int first_key = attn::uniform(padded_offsets_kv[b]);
// CHECK-NEXT: const int len_kv = attn::uniform(cu_seqlens_kv[attn::min(b + 1, batch)]) - attn::uniform(cu_seqlens_kv[b]);
// CHECK-NEXT: if (rows <= 0) {
// CHECK: attn::store_padding<64, [[#QT]], [[#mul(WARPS,32)]]>(o_rows, o_row, write_rows);
// CHECK-NEXT: attn::store_padding_lse<[[#QT]], [[#mul(WARPS,32)]]>(lse + ({{.*}}), write_rows);
// CHECK-NEXT: }
// CHECK-NEXT: if (rows > 0) {
// CHECK: attn::copy_async<64>(Q, q_rows, q_row, rows);

// Two loops over key tiles: full ones, and those on the diagonal.
// CHECK: const int end = (attn::min(q0 + rows, len_kv) + [[#sub(KT,1)]]) / [[#KT]];
// CHECK-NEXT: const int full_end = attn::min(attn::min(q0 + 1, len_kv) / [[#KT]], end);
// Q and the first K are under way together.
// CHECK: if (end > 0) attn::copy_async<64>(K,
// CHECK-NEXT: attn::wait_copies_and_sync();
// CHECK: for (int j = 0; j < full_end; ++j) {
// CHECK: attn::wait_copies_and_sync();
// CHECK: attn::copy_async<64>(V, v_rows + (long long)k0 * v_row, v_row, len_kv - k0);
// CHECK-NEXT: attn::mma_abt(s, {{Q|q_operand}}, K);
// CHECK-NEXT: attn::wait_copies_and_sync();
// CHECK: if (next < end) attn::copy_async<64>(K,
// CHECK-NOT: attn::apply_mask
// CHECK: attn::online_softmax(s, row, acc, 1.803368801e-01f);
// CHECK-NEXT: attn::mma_ab(acc, s, V);
// CHECK-NEXT: }
// CHECK-NEXT: for (int j = full_end; j < end; ++j) {
// CHECK: attn::mma_abt(s, {{Q|q_operand}}, K);
// CHECK: attn::apply_mask(s, q0, k0, [=](int query, int key) {
// CHECK-NEXT: return key < attn::min(query + 1, len_kv);
// CHECK-NEXT: });
// CHECK-NEXT: attn::online_softmax(s, row, acc, 1.803368801e-01f);
// CHECK-NEXT: attn::mma_ab_guarded(acc, s, V);
// CHECK-NEXT: }

// CHECK: attn::normalize(acc, row);
// CHECK: attn::store<64>(o_rows, o_row, acc, rows, write_rows);
// CHECK-NEXT: attn::store_lse(lse + ({{.*}}), row, 1.803368801e-01f, rows, write_rows);
// CHECK-NEXT: }
// CHECK-NEXT: }
// CHECK-NOT: extern
// CHECK-NOT: <<UNSUPPORTED
