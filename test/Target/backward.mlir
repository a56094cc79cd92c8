// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What backward passes print: padding as long as the tile at rest, tests with queries outside, sums of dQ beside the product with Q.
// RUN: attn-translate %s --target=sm_90a | FileCheck %s
// RUN: sed 's/of(@p)/of(@p) deterministic/; s/attn.causal/attn.document/' %s | attn-translate --target=sm_90a | FileCheck %s --check-prefix=ORDERED

attn.problem @p mask(#attn.causal) layout(thd padded) heads(4, 2) dims(128) dtype(bf16) {sym_visibility = "private"}
attn.backward @grads of(@p)

// CHECK: // grads for sm_90a, #tile.config<q_tile = 64, kv_tile = 128
// CHECK: attn::begin_roles<1>(
// CHECK: attn::store_zero<128, 128, 256>(dk_rows, dk_row, write_rows, attn::thread_here());
// CHECK: attn::store_zero<128, 128, 256>(dv_rows, dv_row, write_rows, attn::thread_here());
// CHECK: attn::keep_turned(s, {{.*}}, [=](int key, int query) {
// CHECK: const auto dS_tile = attn::share(dS, ds);
// CHECK-NEXT: attn::mma_tn(dQ, dS_tile, K_tile);
// CHECK-NEXT: attn::mma_pv(dK, ds, Q_tile);
// CHECK-NEXT: attn::wait_products<2>(dV);
// CHECK-NEXT: attn::release(dO);
// CHECK-NEXT: attn::wait_products<1>(dQ);
// CHECK: attn::stage(staging, dQ);
// CHECK-NEXT: attn::wait_products<0>(dK);
// CHECK-NEXT: attn::release(Q);
// Another role adds: who comes before is asked where the region was.
// CHECK: if (attn::is_adder()) {
// CHECK: const int batch_2 = attn::here(batch);
// CHECK: attn::add_staged(tile_sum, staging, turn, key_tile, [=](int other) {
// CHECK: return begin_2 <= [[TILE:x_[0-9]+]] & [[TILE]] < end_2;
// CHECK: if (attn::is_idle()) return;
// CHECK: grads_dq for sm_80
// CHECK: attn::load_sum<64>(dQ, sum, turns);

// ORDERED: // grads for sm_90a, #tile.config<q_tile = 32, kv_tile = 128
// ORDERED: attn::store_zero<128, 128, 256>(dk_rows, dk_row, write_rows, attn::thread_here());
// ORDERED: // grads_dq for sm_90a, #tile.config<q_tile = 128, kv_tile = 64
// ORDERED: attn::store_zero<128, 128, 256>(dq_rows, dq_row, write_rows);

// Behind the loop, words of the message are read again; weights of modified scores are held as products hold them, and small scores
// have a formula of their own.
// RUN: sed 's/dtype(bf16)/dtype(bf16) score([#attn.softcap<30.0>])/' %s | attn-translate --target=sm_90a | FileCheck %s --check-prefix=CAP
// CAP: attn::Held<attn::bf16, 128, 64, 8> weighted;
// CAP: attn::receive<true>(feed, message)
// CAP: attn::probabilities<true>(s, weighted, stats_tile, {{.*}}e+{{.*}}f, [=](float score, int, int, int, float) {
// CAP: return attn::Changed{
// CAP: }, [=](float score, int, int, int, float) {
// CAP: attn::tanh(
// CAP: const int {{.*}} = attn::recall(feed, {{.*}});
// CAP: attn::forget(feed);
