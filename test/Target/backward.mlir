// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What backward passes print: padding as long as the tile at rest, tests with queries outside, sums of dQ beside the product with Q.
// RUN: attn-translate %s --target=sm_90a | FileCheck %s
// RUN: sed 's/of(@p)/of(@p) deterministic/; s/attn.causal/attn.document/' %s | attn-translate --target=sm_90a | FileCheck %s --check-prefix=ORDERED

attn.problem @p mask(#attn.causal) layout(thd padded) heads(4, 2) dims(128) dtype(bf16) {sym_visibility = "private"}
attn.backward @grads of(@p)

// CHECK: // grads for sm_90a
// CHECK: ATTN_DQ_MMA_KERNEL(grads, /*threads=*/512,
// CHECK: attn::Ring<attn::bf16, 128, 128, 1, /*read by dQ MMA, too=*/true> K(
// CHECK: attn::Ring<attn::bf16, 64, 128, 2> Q(
// CHECK: attn::begin_roles<6>(
// CHECK: attn::alloc_registers<208>();
// CHECK: attn::store_padding<128, 128, 256>(dk_rows, dk_row, write_rows, attn::reread_thread_index());
// CHECK: attn::store_padding<128, 128, 256>(dv_rows, dv_row, write_rows, attn::reread_thread_index());
// CHECK: const auto K_rows = attn::warpgroup_rows(K_tile);
// CHECK: const auto Q_tile = attn::consumer_wait(Q, [[ANY:x_[0-9]+]], K_tile);
// CHECK: attn::mma_abt(s, K_rows, Q_tile);
// CHECK: const int [[KEY:[a-z_0-9]+]] = attn::reload_work(mailbox, 3);
// CHECK-NEXT: const int [[END:[a-z_0-9]+]] = attn::reload_work(mailbox, 9);
// CHECK-NEXT: attn::apply_mask_transposed(s, [[KEY]], {{.*}}, [=](int key, int query) {
// CHECK-NEXT: return key < attn::min(query + 1, [[END]]);
// CHECK: attn::warpgroup_wait<0>(dK);
// CHECK-NEXT: attn::consumer_release_previous(Q, j_2 != {{.*}});
// CHECK-NEXT: attn::convert_at_once(p, s);
// CHECK: attn::producer_store(dS, p);
// CHECK-NEXT: const auto Q_previous = attn::consumer_advance(Q);
// CHECK-NEXT: const auto [[NEXT:Q_tile_[0-9]]] = attn::consumer_wait(Q, {{.*}}, Q_previous);
// CHECK: attn::mma_abt(s, K_rows, [[NEXT]]);
// CHECK-NEXT: attn::mma_ab(dK, p, Q_previous);
// CHECK-NEXT: attn::producer_commit(dS);
// CHECK-NEXT: attn::consumer_release_fenced(stats);
// CHECK-NEXT: attn::warpgroup_wait<1>(s);
// CHECK-NEXT: }
// CHECK-NEXT: attn::warpgroup_wait<0>(dK);
// CHECK-NEXT: attn::consumer_release_previous(Q, [[ANY]]);
// The reducer takes what was put, and makes dQ of it.
// CHECK: } else if (attn::is_dq_mma()) {
// CHECK-NEXT: attn::dealloc_registers<64>();
// CHECK-NEXT: attn::Frag<64, 64, 4> dQ;
// CHECK: const auto dS_tile = attn::consumer_wait(dS);
// CHECK-NEXT: attn::mma_atb<0>(dQ, dS_tile, K_tile);
// CHECK-NEXT: attn::warpgroup_wait<0>(dQ);
// CHECK-NEXT: if ([[FEW:x_[0-9]+]]) {
// Where they are written is worked out there: a reducer has few registers.
// CHECK-NEXT: auto *const dq_rows = dq +
// CHECK-NEXT: attn::store_warpgroup<64>(dq_rows, dq_row, dQ, {{.*}}f, [[ROWS:x_[0-9]+]]);
// CHECK-NEXT: } else {
// CHECK-NEXT: attn::stage(staging, dQ);
// CHECK-NEXT: }
// CHECK-NEXT: attn::mma_atb<1>(dQ, dS_tile, K_tile);
// CHECK-NEXT: attn::warpgroup_wait<0>(dQ);
// CHECK-NEXT: attn::consumer_release(dS);
// CHECK-NEXT: if ([[FEW]]) {
// CHECK-NEXT: auto *const dq_rows = dq +
// CHECK-NEXT: attn::store_warpgroup<64>(dq_rows + 64, dq_row, dQ, {{.*}}f, [[ROWS]]);
// CHECK-NEXT: } else {
// CHECK-NEXT: attn::stage(staging, dQ);
// Another role adds, behind the first: who that is is asked where the region was.
// CHECK: attn::dealloc_registers<32>();
// CHECK: if (attn::is_dq_store()) {
// CHECK: const int batch_2 = attn::optimization_barrier(batch);
// CHECK: attn::skip_add(semaphore);
// CHECK: attn::add_staged<attn::DqLayout<64, 64>, 2, true>(accumulator, {{x_[0-9]+}}, staging, semaphore, key_tile, [=](int other) {
// CHECK: return begin_2 <= [[TILE:x_[0-9]+]] & [[TILE]] < end_3;
// CHECK: if (attn::is_after_producer()) return;
// Who waits for tiles before its own draws its first one, too.
// CHECK: for (int block = attn::first_work_tile_in_order(queue, blocks); block < blocks; block = attn::next_work_tile_in_order(queue, block, blocks)) {
// Boxes end where sequences of keys and of queries do.
// CHECK: attn::producer_load_packed(K, k_map, [[KEYS:x_[0-9]+]], kv_head, rows);
// CHECK-NEXT: attn::producer_load_packed(V, v_map, [[KEYS]], kv_head, rows);
// CHECK: const int [[LEFT:x_[0-9]+]] = len_q - q0_2;
// CHECK-NEXT: const int [[QUERIES:x_[0-9]+]] = first_query + q0_2;
// CHECK-NEXT: attn::producer_load_packed(Q, q_map, [[QUERIES]], h, [[LEFT]]);
// CHECK: attn::producer_load_packed(dO, do_map, [[QUERIES]], h, [[LEFT]]);
// Sums are rounded from the last to the first: caches still have what was added last.
// CHECK: grads_postprocess for sm_80
// CHECK: const int h = block % 4;
// CHECK-NEXT: attn::find_sequence<64>(total_q / 64 + batch + 1 - block / 4,
// A sum's counter is found from its row among all heads' and its sequence's number.
// CHECK: const int [[SUM:x_[0-9]+]] = h * total_q + row0;
// CHECK-NEXT: auto *const semaphore = dq_semaphore + (long long)([[SUM]] / 64 + (h * batch + b));
// CHECK: if (attn::uniform(semaphore[0]) < 0) {
// CHECK: attn::store_padding<128, 64, 128>({{.*}}, dq_row, write_rows - rows);
// CHECK-NEXT: } else {
// CHECK-NEXT: auto *const accumulator = dq_accumulator +
// CHECK-NEXT: attn::postprocess<128, attn::DqLayout<64, 64>>(dq_rows, dq_row, accumulator, rows, write_rows, {{.*}}f, semaphore);

// In a fixed order, where that is asked for.
// RUN: sed 's/of(@p)/of(@p) deterministic/' %s | attn-translate --target=sm_90a | FileCheck %s --check-prefix=TURNS
// TURNS: attn::add_staged<attn::DqLayout<64, 64>, 2>(accumulator, {{x_[0-9]+}}, staging, semaphore, key_tile, [=](int other) {

// Where nothing is staged, from registers.
// RUN: sed 's/of(@p)/of(@p) deterministic/; s/dims(128, 128)/dims(64)/; s/dims(128)/dims(64)/' %s | attn-translate --target=sm_90a | FileCheck %s --check-prefix=REGISTERS
// REGISTERS: attn::Staging<2, 0, /*written by warps=*/4> order(
// REGISTERS: attn::add_global_ordered<attn::DqLayout<128, 32, true>, 0, false>(accumulator, [[LEFT:x_[0-9]+]], dQ, order);
// REGISTERS: attn::add_global_ordered<attn::DqLayout<128, 32, true>, 3, true>(accumulator, [[LEFT]], dQ, order);
// REGISTERS: attn::add_staged<attn::DqLayout<128, 32, true>, 4>(accumulator, {{x_[0-9]+}}, order, semaphore, key_tile, [=](int other) {

// Without a reducer, those that compute make dQ, too.
// RUN: sed 's/of(@p)/of(@p) schedule(#tile.warp_specialized_backward<q_tile = 64, kv_tile = 128, warps = 8, ctas_per_sm = 1, single_loop = true>)/' %s \
// RUN:   | attn-translate --target=sm_90a | FileCheck %s --check-prefix=ALONE
// ALONE: attn::begin_roles<2>(
// ALONE: const auto dS_tile = attn::store_and_sync(dS, ds);
// ALONE-NEXT: attn::mma_atb(dQ, dS_tile, K_tile);
// ALONE-NEXT: attn::mma_ab(dK, ds, Q_tile);
// ALONE-NEXT: attn::warpgroup_wait<2>(dV);
// ALONE-NEXT: attn::consumer_release(dO);
// ALONE-NEXT: attn::warpgroup_wait<1>(dQ);
// ALONE: attn::stage(staging, dQ);
// ALONE-NEXT: attn::warpgroup_wait<0>(dK);
// ALONE-NEXT: attn::consumer_release(Q);

// Where nothing is seen, no warpgroup makes dQ.
// RUN: sed 's/attn.causal/attn.and<#attn.band<right = -60>, #attn.band<left = -60>>/' %s | attn-translate --target=sm_90a | FileCheck %s --check-prefix=HIDDEN
// HIDDEN: // grads for sm_90a
// HIDDEN: ATTN_KERNEL(grads, /*threads=*/384,
// HIDDEN-NOT: is_reducer
// HIDDEN-NOT: mma
// HIDDEN: attn::store<128>(dv_rows, dv_row, dV,

// ORDERED: // grads for sm_90a
// ORDERED: ATTN_KERNEL(grads, /*threads=*/384,
// ORDERED: attn::Ring<attn::bf16, 128, 128, 1> K(
// ORDERED: attn::Ring<attn::bf16, 32, 128, 2> Q(
// ORDERED: attn::store_padding<128, 128, 256>(dk_rows, dk_row, write_rows, attn::reread_thread_index());
// ORDERED: // grads_dq for sm_90a
// ORDERED: attn::Ring<attn::bf16, 128, 128, 1> Q(
// ORDERED: attn::Ring<attn::bf16, 64, 128, 2> K(
// ORDERED: attn::store_padding<128, 128, 256>(dq_rows, dq_row, write_rows);

// Behind the loop, words of the message are read again; slopes of modified scores lie where dS will, and small scores
// have formulas of their own, as short as bfloat16 lets them be, the one of slopes for two at a time. float16 wants longer ones, and squares of numbers below 1.
// RUN: sed 's/dtype(bf16)/dtype(bf16) score([#attn.softcap<30.0>])/' %s | attn-translate --target=sm_90a | FileCheck %s --check-prefix=CAP
// CAP: attn::receive_work<true>(mailbox, work_tile)
// CAP: auto stash = attn::stash<8>(dS);
// CAP-NEXT: attn::probabilities_and_slopes<true>(s, stash, stats_tile, 1.000000000e+00f, {{.*}}, attn::Polynomial<2>{1.000000000e+00f, -8.42{{.*}}e-06f}, [=](float score, int, int, int, float) {
// CAP-NEXT: const float square = score * score;
// CAP-NEXT: return attn::ModifiedScore{score * attn::fma({{[^,]*}}, square, {{[^,]*}}), square};
// CAP: }, [=](float score, int, int, int, float) {
// CAP: attn::tanh(
// CAP: attn::grad_scores<true>(s, p, stash, stats_tile);
// CAP: attn::producer_store(dS, p, stash);
// CAP: const int {{.*}} = attn::reload_work(mailbox, {{.*}});
// CAP: attn::release_work(mailbox);
// RUN: sed 's/dtype(bf16)/dtype(f16) score([#attn.softcap<30.0>])/' %s | attn-translate --target=sm_90a | FileCheck %s --check-prefix=CAP16
// CAP16: attn::probabilities_and_slopes<true>({{.*}}, attn::Polynomial<3>{1.000000000e+00f, -1.59{{.*}}e-01f, 1.52{{.*}}e-02f}, [=](float score, int, int, int, float) {
// CAP16-NEXT: const float [[X:.*]] = score * {{.*}};
// CAP16-NEXT: const float square = [[X]] * [[X]];
// The slope of another modifier is multiplied by: one number for both. With dropout, weights are kept, and without roles, numbers in registers.
// RUN: sed 's/dtype(bf16)/dtype(bf16) score([#attn.softcap<30.0>, #attn.head_scale<"t">])/' %s | attn-translate --target=sm_90a | FileCheck %s --check-prefix=SLOPES
// SLOPES: attn::probabilities_and_slopes<true>({{.*}}, attn::PlainSlope(), [=](float score, int, int, int, float) {
// SLOPES: const float square = score * score;
// SLOPES-NEXT: return attn::ModifiedScore{{[{].*}} * [[T:x_[0-9]+]], [[T]] * attn::fma(attn::fma({{.*}}, square, {{.*}}), square, 1.000000000e+00f)};
// RUN: sed 's/dtype(bf16)/dtype(bf16) dropout(0.1, "seed") score([#attn.softcap<30.0>])/' %s | attn-translate --target=sm_90a | FileCheck %s --check-prefix=DROPS
// DROPS: attn::probabilities<true>(s, {{[a-z]+}}, stats_tile, {{.*}}, [=](float score, int, int, int, float) {
// DROPS: attn::dropout_grad_scores<
