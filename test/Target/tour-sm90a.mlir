// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The tour's problem as CUDA C++ for Hopper: a line for each op, names as in the IR. What
// the two roles do is looked at one by one; which of them is printed first does not matter.
//
// RUN: attn-translate %attn_source/docs/tour/packed_causal.mlir --target=sm_90a > %t.cu
// RUN: attn-opt %attn_source/docs/tour/packed_causal.mlir -attn-choose-schedule=target=sm_90a > %t
// RUN: cat %t %t.cu | FileCheck %s
// RUN: FileCheck %s --check-prefix=PRODUCER --input-file=%t.cu
// RUN: FileCheck %s --check-prefix=CONSUMER --input-file=%t.cu
// RUN: attn-opt %attn_source/docs/tour/packed_causal.mlir --attn-pipeline="target=sm_90a" -mlir-print-debuginfo | attn-translate --target=sm_90a | diff %t.cu -
// RUN: attn-translate %s --target=sm_90a | FileCheck %s --check-prefix=WINDOW

// CHECK: schedule(#tile.warp_specialized<q_tile = [[#QT:]], kv_tile = [[#KT:]], warps = [[#WARPS:]], ctas_per_sm = [[#CTAS:]]{{.*}}>)
// CHECK: // packed_causal for sm_90a
// CHECK-NEXT: #include "attn/hopper.h"
// A warpgroup more than those that compute.
// CHECK: ATTN_KERNEL(packed_causal, /*threads=*/[[#mul(WARPS,32)+128]], /*CTAs per multiprocessor=*/[[#CTAS]])
// CHECK-NEXT: (const attn::bf16 *q, const attn::bf16 *k, const attn::bf16 *v, attn::bf16 *o, float *lse,
// CHECK: long long lse_head,
// Tensor maps are passed by value, where the TMA unit finds them.
// CHECK-NEXT: const __grid_constant__ attn::TensorMap q_map, const __grid_constant__ attn::TensorMap k_map,
// CHECK-NEXT: const __grid_constant__ attn::TensorMap v_map, int blocks, unsigned *queue) {

// What roles share: rings (tiles, then barriers) and the feed.
// CHECK-NEXT: attn::Ring<attn::bf16, [[#QT]], 64, [[#QS:]]> Q(0, [[#BARRIERS:]]);
// CHECK-NEXT: attn::Ring<attn::bf16, [[#KT]], 64, 2> K([[#mul(mul(QT,QS),128)]], [[#BARRIERS+mul(QS,16)]]);
// CHECK-NEXT: attn::Ring<attn::bf16, [[#KT]], 64, 2> V([[#mul(mul(QT,QS),128)+mul(KT,256)]], [[#BARRIERS+mul(QS,16)+32]]);
// CHECK-NEXT: attn::Mailbox<[[#WORDS:]]> mailbox([[#BARRIERS+mul(QS,16)+64]]);
// CHECK-NEXT: attn::begin_roles(Q, K, V, mailbox);
// CHECK-NEXT: if (attn::is_{{producer|consumer}}()) {
// CHECK-NOT: <<UNSUPPORTED

// The producer takes block numbers, finds out what they stand for, tells the others and
// brings tiles: Q once, then K and V of all tiles, whatever their tests.
// PRODUCER: attn::dealloc_registers<{{[0-9]+}}>();
// PRODUCER: for (int block = attn::block_index(); block < blocks; block = attn::next_work_tile(queue, block, blocks)) {
// PRODUCER: const auto [b, q0, first, rows, write_rows] = attn::find_sequence<[[#QT:]]>({{.*}}, cu_seqlens_q, padded_offsets_q, batch, total_q);
// PRODUCER: const int first_key = attn::uniform(padded_offsets_kv[b]);
// PRODUCER: const int len_kv = attn::uniform(cu_seqlens_kv[attn::min(b + 1, batch)]) - attn::uniform(cu_seqlens_kv[b]);
// PRODUCER-NEXT: attn::publish_work(mailbox, block, {{.*}}q0, rows, {{.*}}len_kv);
// PRODUCER-NEXT: if (rows > 0) {
// PRODUCER-NEXT: attn::producer_load_packed(Q, q_map, row0, h, rows);
// PRODUCER: const int end = (attn::min(q0 + rows, len_kv) + [[#LESS:]]) / {{[0-9]+}};
// PRODUCER-NEXT: #pragma unroll 1
// PRODUCER-NEXT: for (int j = 0; j < end; ++j) {
// PRODUCER-NEXT: const int k0 = j * [[#LESS+1]];
// PRODUCER-NEXT: const int [[LEFT:x[_0-9]*]] = len_kv - k0;
// PRODUCER-NEXT: const int [[X:x[_0-9]*]] = first_key + k0;
// PRODUCER-NEXT: attn::producer_load_packed(K, k_map, [[X]], kv_head, [[LEFT]]);
// PRODUCER-NEXT: attn::producer_load_packed(V, v_map, [[X]], kv_head, [[LEFT]]);
// PRODUCER-NEXT: }
// PRODUCER-NEXT: }
// PRODUCER-NEXT: }
// PRODUCER-NEXT: attn::publish_end(mailbox);
// PRODUCER-NEXT: }

// Consumers have their own registers, and scalars from messages: no search, no load.
// CONSUMER: attn::alloc_registers<{{[0-9]+}}>();
// CONSUMER-NEXT: attn::ping_pong_init();
// CONSUMER-NEXT: attn::RegisterOperand<attn::bf16, [[#QT:]], [[#KT:]], [[#WARPS:]]> p;
// CONSUMER-NEXT: attn::Frag<[[#QT]], [[#KT]], [[#WARPS]]> s;
// CONSUMER-NEXT: attn::Frag<[[#QT]], 64, [[#WARPS]]> acc;
// CONSUMER-NEXT: attn::SoftmaxState<[[#QT]], [[#WARPS]]> row;
// CONSUMER-NEXT: for (attn::WorkTile<[[#WORDS:]]> work_tile; attn::receive_work(mailbox, work_tile);) {
// CONSUMER-DAG: const int q0 = work_tile.words[{{[0-9]+}}];
// CONSUMER-DAG: const int rows = work_tile.words[{{[0-9]+}}];
// CONSUMER-DAG: const int len_kv = work_tile.words[{{[0-9]+}}];
// CONSUMER-NOT: find_sequence
// CONSUMER-NOT: uniform
// Padding is written by those who compute; ahead, so that loops stay uniform.
// CONSUMER: if (rows <= 0) {
// CONSUMER: attn::store_padding<64, [[#QT]], [[#mul(WARPS,32)]]>(o_rows, o_row, write_rows);
// CONSUMER-NEXT: attn::store_padding_lse<[[#QT]], [[#mul(WARPS,32)]]>(
// CONSUMER: if (rows > 0) {
// CONSUMER: attn::clear(acc);
// CONSUMER-NEXT: attn::clear(row);
// CONSUMER-NEXT: const auto Q_tile = attn::consumer_wait(Q);

// The first tile's scores.
// CONSUMER: for (int j = 0; j < attn::min([[END:.*]], 1); ++j) {
// CONSUMER-NEXT: const bool partial =
// CONSUMER-NEXT: const auto K_tile = attn::consumer_wait(K);
// CONSUMER-NEXT: attn::mma_abt(s, Q_tile, K_tile);
// CONSUMER-NEXT: attn::warpgroup_wait<0>(s);
// CONSUMER-NEXT: attn::consumer_release(K);
// CONSUMER: if (partial) {
// CONSUMER-NEXT: attn::apply_mask(s, q0, k0, [=](int query, int key) {
// CONSUMER-NEXT: return key < attn::min(query + 1, len_kv);
// CONSUMER-NEXT: });
// CONSUMER-NEXT: }
// CONSUMER-NEXT: attn::softmax<true>(s, row, 1.803368801e-01f);
// CONSUMER-NEXT: attn::convert(p, s);
// CONSUMER-NEXT: }

// Two products under way, begun while the other warpgroups are at their exponents; one may still be
// when the scores are there, none at the end.
// CONSUMER-NEXT: #pragma unroll 1
// CONSUMER-NEXT: for (int j = 1; j < [[SEEN:.*]]; ++j) {
// CONSUMER-NEXT: attn::ping_pong_wait();
// CONSUMER-NEXT: const auto K_tile = attn::consumer_wait(K);
// CONSUMER-NEXT: attn::mma_abt(s, Q_tile, K_tile);
// CONSUMER-NEXT: const auto V_tile = attn::consumer_wait(V);
// CONSUMER-NEXT: attn::mma_ab(acc, p, V_tile);
// CONSUMER-NEXT: attn::ping_pong_arrive();
// CONSUMER-NEXT: attn::warpgroup_wait<1>(s);
// CONSUMER-NEXT: attn::consumer_release(K);
// CONSUMER-NEXT: attn::warpgroup_wait<0>(acc);
// CONSUMER-NEXT: attn::consumer_release(V);
// CONSUMER-NEXT: attn::softmax_convert<true>(p, s, row, 1.803368801e-01f);
// CONSUMER-NEXT: attn::rescale(acc, row);
// CONSUMER-NEXT: }
// On the diagonal.
// CONSUMER-NEXT: #pragma unroll 1
// CONSUMER-NEXT: for (int j = [[SEEN]]; j < attn::max([[END]], 1); ++j) {
// CONSUMER: attn::mma_ab(acc, p, V_tile);
// CONSUMER-NEXT: attn::ping_pong_arrive();
// CONSUMER-NEXT: attn::warpgroup_wait<1>(s);
// CONSUMER-NEXT: attn::consumer_release(K);
// CONSUMER-NEXT: attn::warpgroup_wait<0>(acc);
// CONSUMER-NEXT: attn::consumer_release(V);
// CONSUMER-NEXT: const int k0 = j * [[#KT]];
// CONSUMER-NEXT: attn::apply_mask(s, q0, k0, [=](int query, int key) {
// CONSUMER: attn::softmax_convert<true>(p, s, row, 1.803368801e-01f);
// CONSUMER: }
// CONSUMER-NEXT: attn::consumer_release(Q);
// The last tile's product.
// CONSUMER-NEXT: if ([[END]] > 0) {
// CONSUMER-NEXT: const auto V_tile = attn::consumer_wait(V);
// CONSUMER-NEXT: attn::mma_ab(acc, p, V_tile);
// CONSUMER-NEXT: attn::warpgroup_wait<0>(acc);
// CONSUMER-NEXT: attn::consumer_release(V);
// CONSUMER-NEXT: }
// CONSUMER-NEXT: attn::normalize<true>(acc, row);
// CONSUMER: attn::store<64>(o_rows, o_row, acc, rows, write_rows);
// CONSUMER-NEXT: attn::store_lse([[LSE:.*]], row, 1.803368801e-01f, rows, write_rows);
// CONSUMER: attn::recompute_rows<64, 64>(acc, q0, rows, len_kv, q_rows, q_row, k_rows, k_row, v_rows, v_row, o_rows, o_row, [[LSE]], 1.803368801e-01f, [=](int query, int key) {
// CONSUMER-NEXT: return key < attn::min(query + 1, len_kv);
// CONSUMER-NEXT: });
// CONSUMER-NOT: store_zero

// A window: a loop for each segment, of which the first and last are tested; a negative
// scale, which is in the product and in the repair; no LSE.
// WINDOW: attn::mma_abt<true>(s, Q_tile, K_tile);
// WINDOW: if (partial) {
// WINDOW-NEXT: attn::apply_mask(
// WINDOW-NEXT: return query - 511 <= key & key < attn::min(query + 1, seqlen_kv);
// WINDOW: attn::softmax<true>(s, row, 1.803368801e-01f);
// WINDOW: for (int j = attn::max([[FIRST:.*]], [[SECOND:.*]]); j < [[BEGIN:.*]]; ++j) {
// WINDOW: attn::mma_abt<true>(s, Q_tile, K_tile);
// WINDOW: attn::mma_ab(acc, p, V_tile);
// WINDOW: attn::apply_mask(
// WINDOW-NEXT: return query - 511 <= key & key < attn::min(query + 1, seqlen_kv);
// WINDOW: for (int j = [[BEGIN]]; j < [[END:.*]]; ++j) {
// WINDOW-NOT: attn::apply_mask(
// WINDOW: for (int j = [[END]]; j < [[BEHIND:.*]]; ++j) {
// Q's only slot goes with the last scores.
// WINDOW: attn::consumer_release_early(Q, next < [[BEHIND]]);
// WINDOW: attn::apply_mask(
// WINDOW-NEXT: return key < attn::min(query + 1, seqlen_kv);
// WINDOW: attn::consumer_release(Q);
// WINDOW-NEXT: if ([[FIRST]] < {{.*}}) {
// WINDOW-NEXT: const auto V_tile = attn::consumer_wait(V);
// WINDOW-NEXT: attn::mma_ab(acc, p, V_tile);
// WINDOW: attn::recompute_rows<128, 128>({{.*}}, (float *)nullptr, -1.803368801e-01f, [=](int query, int key) {
// WINDOW-NEXT: return query - 511 <= key & key < attn::min(query + 1, seqlen_kv);
attn.problem @window mask(#attn.band<left = 511, right = 0>) layout(bshd) heads(8) dims(128) dtype(bf16) scale(-0.125)
  outputs(o)
