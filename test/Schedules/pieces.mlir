// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Kernels of problems with pieces: a loop over the pieces of the other side around that over tiles, with masks evaluated
// at positions of whole sequences.
//
// RUN: split-file %s %t
// RUN: attn-opt %t/forward.mlir --attn-choose-schedule=target=cpu --convert-attn-to-tile | FileCheck %t/forward.mlir
// RUN: attn-opt %t/backward.mlir --attn-choose-schedule=target=cpu --convert-attn-to-tile | FileCheck %t/backward.mlir
// RUN: attn-translate %t/hopper.mlir --target=sm_90a | FileCheck %t/hopper.mlir
// RUN: attn-translate %t/single.mlir --target=sm_90a | FileCheck %t/single.mlir
// RUN: attn-opt %t/kept.mlir --attn-choose-schedule=target=cpu --convert-attn-to-tile | FileCheck %t/kept.mlir
// RUN: attn-translate %t/partial.mlir --target=sm_90a | FileCheck %t/partial.mlir
// RUN: attn-translate %t/dropout.mlir --target=sm_90a | FileCheck %t/dropout.mlir
// RUN: attn-translate %t/rows.mlir --target=sm_90a | FileCheck %t/rows.mlir --check-prefix=GPU
// RUN: attn-translate %t/rows.mlir --target=cpu | FileCheck %t/rows.mlir --check-prefix=CPU
// RUN: attn-opt %t/heads.mlir --attn-choose-schedule=target=cpu --convert-attn-to-tile | FileCheck %t/heads.mlir

//--- forward.mlir
// The work tile belongs to a piece of queries, which says the sequence and the first position.
// CHECK: tile.kernel @p({{.*}}%pieces_q: !tile.ptr<i32>, %first_pieces_q: !tile.ptr<i32>, {{.*}}%batch: i32, %piece_count_q: i32, %piece_count_kv: i32, %total_q: i32
// CHECK: %b, %q0, %first, %rows, %write_rows = tile.find_sequence {{.*}} %piece_count_q, %total_q tile 64
// CHECK: %[[SEQUENCE:.*]] = tile.load uniform %{{.*}}[%b] : i32
// CHECK: %q_position = tile.load uniform %{{.*}}[%b] : i32
// CHECK: tile.load uniform %cu_seqlens_q[%[[SEQUENCE]]]
// CHECK: %[[AT:.*]] = arith.addi %q_position, %q0
// The keys of each piece of the sequence.
// CHECK: %[[FIRST:.*]] = tile.load uniform %first_pieces_kv[%[[SEQUENCE]]]
// CHECK: scf.for %i = %{{.*}} to %pieces
// CHECK: %piece = tile.load uniform
// CHECK: %k_position = tile.load uniform %{{.*}}[%piece]
// CHECK: %first_key = tile.load uniform %pieces_kv[%piece]
// CHECK: tile.kv_loop
// CHECK: %[[KEY:.*]] = arith.addi %k_position, %k0
// CHECK: tile.apply_mask %s at(%[[AT]], %[[KEY]])
attn.problem @p mask(#attn.causal) layout(thd pieces) heads(4, 2) dims(64) dtype(bf16)

//--- backward.mlir
// dQ has a kernel of its own. Both loop over pieces of the other side.
// CHECK-LABEL: tile.kernel @g_preprocess
// CHECK: tile.find_sequence {{.*}} %piece_count_q, %total_q tile 128
// CHECK-LABEL: tile.kernel @g(
// CHECK: tile.find_sequence {{.*}} %piece_count_kv, %total_kv tile 64
// CHECK: scf.for %{{.*}} {
// CHECK: scf.for %i = %{{.*}} to %pieces
// CHECK: %q_position = tile.load
// CHECK: %first_query = tile.load
// CHECK: tile.kv_loop
// CHECK-LABEL: tile.kernel @g_dq
// CHECK: tile.find_sequence {{.*}} %piece_count_q, %total_q tile 64
// CHECK: scf.for %i = %{{.*}} to %pieces
// CHECK: tile.kv_loop
// CHECK: tile.scale %dQ
// CHECK: tile.add_rows %dQ, %before_dq_rows stride(%before_dq_row)
// CHECK: tile.store %{{.*}}, %dQ {{.*}} : !tile.ptr<f32>
attn.problem @p mask(#attn.causal) layout(thd pieces) heads(4, 2) dims(64) dtype(bf16)
attn.backward @g of(@p) partial_kv add_dq float32_dq float32_dkv

//--- hopper.mlir
// The first tile of a piece rescales what earlier pieces left. Q is released behind the last piece.
// CHECK: attn::Ring<attn::bf16, {{[0-9]+}}, 128, 1> Q
// CHECK: for (int i = 0; i < pieces; ++i) {
// CHECK: attn::softmax<true>(s, row,
// CHECK-NEXT: attn::rescale(acc, row);
// CHECK-NEXT: attn::convert(p, s);
// CHECK-NOT: consumer_release(Q
// CHECK: attn::softmax_convert<true>
// CHECK: attn::mma_ab(acc, p, V_tile);
// CHECK-NOT: for (
// CHECK: attn::consumer_release(Q);
// A NaN is looked for in the keys of each piece, which lie at rows of their own.
// CHECK: attn::recompute_rows<128, 128>(acc, {{.*}}attn::key_ranges(pieces, [=](int j) {
// CHECK: return attn::KeyRange{k_position, k_position + piece_rows, first_key};
attn.problem @p mask(#attn.causal) layout(thd pieces) heads(8, 2) dims(128) dtype(bf16)

//--- single.mlir
// A piece on each side: no loop over pieces, and dQ is accumulated in the order of the key tiles of the piece. Without
// a piece of queries there are no rows.
// CHECK: attn::clear_semaphores
// CHECK-LABEL: ATTN_DQ_MMA_KERNEL(g,
// CHECK: const int piece_rows = work_tile.words
// CHECK-NOT: i < pieces
// CHECK: attn::mma_abt(s, K_rows, Q_tile);
// CHECK: attn::producer_store(dS, p);
// CHECK: attn::add_
// CHECK: pieces > 0 ?
// CHECK-LABEL: ATTN_KERNEL(g_postprocess,
// CHECK-NOT: store_padding
// CHECK: attn::postprocess<128, {{.*}}, attn::RowsBefore{before_dq_rows, before_dq_row}, semaphore);
attn.problem @p mask(#attn.causal) layout(thd pieces) heads(4, 2) dims(128) dtype(bf16) single_pieces keep_padding
attn.backward @g of(@p) deterministic partial_kv add_dq float32_dq float32_dkv

//--- kept.mlir
// Nothing is written beside the rows of pieces.
// CHECK: %b, %q0, %first, %rows, %write_rows = tile.find_sequence
// CHECK-NOT: tile.store_padding
// CHECK: tile.store %{{.*}} rows(%rows, %rows)
attn.problem @p mask(#attn.causal) layout(thd pieces) heads(4, 2) dims(64) dtype(bf16) keep_padding

//--- partial.mlir
// CHECK: float *o, float *row_max, float *row_sum,
// CHECK-NEXT: const float *before_o, const float *before_row_max, const float *before_row_sum
// CHECK: attn::clear(row);
// CHECK: attn::resume<128>(acc, row,
// CHECK: attn::consumer_wait(Q)
// CHECK: attn::store_lse(attn::PartialState{
// CHECK: attn::Unmodified(), attn::NoSink(), attn::NoDropout(), attn::Before{
attn.problem @p mask(#attn.causal) layout(thd pieces) heads(8, 2) dims(128) dtype(bf16) partial(in, out)

//--- dropout.mlir
// Positions of pieces are no multiples of 16. The factor of what is kept comes with complete results.
// CHECK: attn::dropout_bits({{.*}}attn::Unaligned{{{.*}}}, attn::Unaligned{{{.*}}},
// CHECK-NOT: attn::scale(acc
// CHECK: attn::Dropout{{{.*}}, 1.000000000e+00f}
attn.problem @p mask(#attn.causal) layout(thd pieces) heads(8, 2) dims(64) dtype(bf16) dropout(0.1, "seed") partial(out)

//--- rows.mlir
// GPU: #include "attn/gather_rows.h"
// GPU: attn::gather_rows<8, 128, 256>(result, result_row, result_head, index, total_q, row0, rows, attn::part_of(part_0, part_0_row, part_0_head), attn::part_of(part_1, part_1_row, part_1_head));
// CPU: attn::gather_rows<8, 128, 32>(
attn.gather_rows @rows parts(2) heads(8) dim(128) dtype(bf16) from(f32)

//--- heads.mlir
// Slopes, dropout and arrays are those of the head's number among all heads.
// CHECK: %h = arith.remui
// CHECK: %[[H:.*]] = arith.addi %h, %c6
// CHECK: tile.dropout_state %seed of(%{{.*}}, %{{.*}})
// CHECK: tile.load %slopes
attn.problem @p mask(#attn.causal) layout(thd pieces) heads(2, 1) dims(64) dtype(bf16) score([#attn.alibi<"slopes">]) dropout(0.1, "seed") of_heads(6, 16, 4)
