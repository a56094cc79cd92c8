// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Packed batches of short sequences, as is typical, with some long ones: two kernels share them out by lengths
// on the device.
//
// RUN: rm -rf %t && split-file %s %t
// RUN: attn-opt %t/forward.mlir -attn-choose-schedule="target=sm_90a" -convert-attn-to-tile -canonicalize -cse | FileCheck %t/forward.mlir
// RUN: attn-opt %t/grads.mlir -attn-choose-schedule="target=sm_90a" -convert-attn-to-tile -canonicalize -cse | FileCheck %t/grads.mlir
// RUN: attn-opt %t/long_grads.mlir -attn-choose-schedule="target=sm_90a" -convert-attn-to-tile -canonicalize -cse | FileCheck %t/long_grads.mlir
// RUN: attn-translate %t/forward.mlir --target=sm_80 | FileCheck %t/forward.mlir --check-prefix=AMPERE
// RUN: attn-opt %t/wide_grads.mlir -attn-choose-schedule="target=sm_90a" -convert-attn-to-tile | FileCheck %t/wide_grads.mlir
// RUN: attn-translate %t/wide_grads.mlir --target=sm_80 | FileCheck %t/wide_grads.mlir --check-prefix=AMPERE
// RUN: attn-opt %t/none.mlir -attn-choose-schedule="target=sm_90a" -convert-attn-to-tile | FileCheck %t/none.mlir
// RUN: attn-opt %t/errors.mlir -split-input-file -verify-diagnostics
// RUN: attn-translate %t/forward.mlir --target=sm_90a | FileCheck %t/forward.mlir --check-prefix=TEXT

// Of queries, of keys, or of both there may be too many; empty sequences are short, and so are batches of 0.
// RUN: attn-run %t/forward.mlir --target=cpu --check --lengths-q=4,0,300,16,17,1,65 --lengths-kv=4,9,3,32,2,200,0 | FileCheck %s --check-prefix=SAME
// RUN: attn-run %t/forward.mlir --target=cpu --check --lengths-q=300,17 --lengths-kv=40,33 | FileCheck %s --check-prefix=SAME
// RUN: attn-run %t/forward.mlir --target=cpu --check --lengths-q=3,1,0 --lengths-kv=4,9,1 | FileCheck %s --check-prefix=SAME
// RUN: attn-run %t/forward.mlir --target=cpu --check --batch=0 | FileCheck %s --check-prefix=SAME
// RUN: attn-run %t/strips.mlir --target=cpu --check --lengths-q=1,0,8,9,1,130 --lengths-kv=4,9,128,3,129,70 | FileCheck %s --check-prefix=SAME
// RUN: attn-run %t/many_rows.mlir --target=cpu --check --lengths-q=80,81,3,200 --lengths-kv=80,70,128,129 | FileCheck %s --check-prefix=SAME
// RUN: attn-run %t/by_ids.mlir --target=cpu --check | FileCheck %s --check-prefix=SAME
// SAME-COUNT-2: {{^}}ok
// SAME-NOT: FAILED
// RUN: attn-run %t/grads.mlir --target=cpu --check --lengths-q=4,0,300,16,17,1,65 --lengths-kv=4,9,3,16,2,200,0 | FileCheck %s --check-prefix=GRADS
// RUN: attn-run %t/grads.mlir --target=cpu --check --lengths-q=4,3 --lengths-kv=2,1 | FileCheck %s --check-prefix=GRADS
// RUN: attn-run %t/wide_grads.mlir --target=cpu --check --lengths-q=1,2,8,9,140 --lengths-kv=64,200,3,2,65 | FileCheck %s --check-prefix=GRADS
// GRADS: ok       dq: max error
// GRADS: ok       dk: max error
// GRADS: ok       dv: max error

//--- forward.mlir
// One block lists what slots long sequences have; blocks of the others follow from how many there can be.
// CHECK: tile.kernel @p_work_tiles({{.*}}) target("sm_80") grid(rows cluster 1)
// CHECK: metadata.list_work_tiles %tiles_q, %tile_count of(%padded_offsets_q, %batch) rows 192 {
// CHECK: ^bb0(%b: i32):
// CHECK-DAG: arith.cmpi sle, %{{.*}}, %c16_i32
// CHECK-DAG: arith.cmpi sle, %{{.*}}, %c32_i32
// CHECK: tile.kernel @p({{.*}}) target("sm_90a") grid(packed heads 4 longer 16, 32)
// CHECK: %work_tiles = arith.minsi
// CHECK: tile.index block below
// Lists have a sequence's first rows first, and last ones see most.
// CHECK: %[[LAST:.*]] = arith.subi %work_tiles, %c1_i32
// CHECK: %[[AT:.*]] = arith.subi %[[LAST]], %{{.*}}
// CHECK: %work_tile = tile.load uniform %tiles_q[%[[AT]]]
// CHECK: tile.find_sequence %work_tile
// The kernel that streams asks each sequence, and has the padding that belongs to none.
// CHECK: tile.kernel @p_short({{.*}}) target("sm_80") grid(packed heads 1 tiles 1)
// CHECK: %end = arith.select %{{.*}}, %extent, %c0_i32
// CHECK: scf.for %{{.*}} to %end
// CHECK: tile.store_padding
// AMPERE: // p for sm_80
// AMPERE: += 2048) {
// AMPERE-NEXT: attn::barrier();
// AMPERE: tiles_q[work_tiles - 1 -
// TEXT: attn::list_work_tiles<192>(tiles_q, tile_count, padded_offsets_q, batch, [=](int b) {
attn.problem @p mask(#attn.causal) layout(thd padded) heads(4, 2) dims(64) dtype(bf16) expected_seqlen(4)
//--- strips.mlir
attn.problem @p mask(#attn.causal) layout(thd) heads(4) dims(64) dtype(f16) expected_seqlen(1, 16)
//--- many_rows.mlir
attn.problem @p mask(#attn.causal) layout(thd) heads(2) dims(64) dtype(bf16) expected_seqlen(80)
//--- by_ids.mlir
attn.problem @p mask(#attn.causal) layout(thd padded) heads(2) dims(64) dtype(bf16) expected_seqlen(8) segments(5)
//--- grads.mlir
// What is streamed comes first: it has its own way of keeping statistics.
// CHECK: tile.kernel @g_short({{.*}}) target("sm_80") grid(packed heads 1 tiles 1)
// CHECK: tile.kernel @g_work_tiles({{.*}}) target("sm_80") grid(rows cluster 1)
// CHECK: metadata.list_work_tiles %tiles_q, %tile_count of(%cu_seqlens_q, %batch) rows 128
// CHECK: metadata.list_work_tiles %tiles_kv, %tile_count_kv of(%cu_seqlens_kv, %batch) rows 128
// CHECK: metadata.list_work_tiles %tiles_dq, %tile_count_dq of(%cu_seqlens_q, %batch) rows 128
// Blocks take turns: a launch does not know how few tiles there are.
// CHECK: tile.kernel @g_preprocess({{.*}}) target("sm_80") grid(packed heads 4 longer 16, 16)
// CHECK: %block = tile.index block
// CHECK: scf.for %{{.*}} = %block to %{{.*}} step %c2048_i32
// CHECK-NEXT: tile.barrier
// CHECK: tile.kernel @g({{.*}}) target("sm_90a") grid(packed heads 2 keys longer 16, 16)
// CHECK: tile.index block below
// Sums of dQ have the rows that it has, of which those of long sequences are used.
// CHECK: tile.add_global {{.*}} after_first
// CHECK: tile.kernel @g_postprocess({{.*}}) target("sm_80") grid(packed heads 4 longer 16, 16)
// CHECK: tile.postprocess
attn.problem @p mask(#attn.full) layout(thd) heads(4, 2) dims(64) dtype(bf16) expected_seqlen(4)
attn.backward @g of(@p)
//--- long_grads.mlir
// What is the first to add to one is ahead of those that wait for it: it has the lowest number of its sequence.
// CHECK: tile.kernel @g_short({{.*}}) target("sm_90a") {{.*}}schedule(#tile.single_pass_backward<q_tile = 128, kv_tile = 128,
// CHECK: tile.kernel @g({{.*}}) target("sm_90a") grid(packed heads 4 keys longer 128, 128)
// CHECK: %[[AT:.*]] = arith.remui %group_tile, %work_tiles
// CHECK: %work_tile = tile.load uniform %tiles_kv[%[[AT]]]
// CHECK: tile.add_global {{.*}} after_first
// CHECK: tile.kernel @g_postprocess({{.*}}) target("sm_80") grid(packed heads 4 longer 128, 128)
// CHECK: scf.for %{{.*}} = %block to
attn.problem @p mask(#attn.full) layout(thd) heads(4) dims(64) dtype(bf16) expected_seqlen(96)
attn.backward @g of(@p)
//--- wide_grads.mlir
// dK and dV have kernels of their own, and one list of key tiles.
// CHECK: metadata.list_work_tiles %tiles_kv, %tile_count_kv of(%padded_offsets_kv, %batch) rows 64
// CHECK: tile.kernel @g_dv({{.*}}) schedule(#tile.warp_specialized_backward<q_tile = 64, kv_tile = 64,
// CHECK: tile.kernel @g({{.*}}) schedule(#tile.warp_specialized_backward<q_tile = 64, kv_tile = 64,
// AMPERE: // g for sm_80
// AMPERE: += 2048) {
attn.problem @p mask(#attn.or<#attn.band<left = 99, right = 0, bottom_right>, #attn.prefix<64>>) layout(thd padded) heads(2) dims(184, 128) dtype(bf16) expected_seqlen(1, 16)
attn.backward @g of(@p) deterministic dlse
//--- none.mlir
// Not where all have a length, where max_seqlen says that none is longer, or where there are no other kernels.
// CHECK-NOT: metadata.list_work_tiles
attn.problem @dense mask(#attn.full) layout(thd, bshd, bshd, thd) heads(4) dims(64) dtype(bf16) expected_seqlen(4)
attn.problem @bounded mask(#attn.full) layout(thd) heads(4) dims(64) dtype(bf16) expected_seqlen(4) max_seqlen(16)
attn.problem @long mask(#attn.full) layout(thd) heads(4) dims(64) dtype(bf16) expected_seqlen(512)
attn.problem @given mask(#attn.full) layout(thd) heads(4) dims(64) dtype(bf16) expected_seqlen(4)
  schedule(#tile.warp_specialized<q_tile = 128, kv_tile = 128, warps = 8, ctas_per_sm = 1>)
//--- errors.mlir
tile.kernel @region(%x: !tile.ptr<i32>, %batch: i32) target("cpu") grid(rows cluster 1)
    schedule(#tile.auxiliary<q_tile = 128, kv_tile = 128, warps = 16, ctas_per_sm = 1>) {
  // expected-error @+1 {{expected a region over a sequence's number of type i32 that yields one condition}}
  metadata.list_work_tiles %x, %x of(%x, %batch) rows 64 {
  ^bb0(%b: i32):
    tile.yield %b : i32
  }
}

// -----

// expected-error @+1 {{expected `longer` of two numbers that are not negative, in a grid of sequences without tiles, got: 16, 16}}
tile.kernel @longer(%batch: i32) target("cpu") grid(packed heads 4 tiles 1 longer 16, 16)
    schedule(#tile.tiled<q_tile = 64, kv_tile = 64, warps = 1, ctas_per_sm = 1>) {
}
