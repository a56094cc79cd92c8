// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Query heads of a group in one tile (`pack_heads`).
//
// RUN: rm -rf %t && split-file %s %t
// RUN: attn-opt %t/plain.mlir -attn-choose-schedule="target=cpu" -convert-attn-to-tile -canonicalize -cse | FileCheck %t/plain.mlir
// RUN: attn-opt %t/hopper.mlir --attn-pipeline="target=sm_90a" | FileCheck %t/hopper.mlir
// RUN: attn-translate %t/hopper.mlir --target=sm_90a | FileCheck %t/hopper.mlir --check-prefix=TEXT
// RUN: attn-translate %t/no-lse.mlir --target=sm_90a | FileCheck %t/no-lse.mlir
// RUN: attn-opt %t/chosen.mlir -attn-choose-schedule="target=sm_90a" -convert-attn-to-tile | FileCheck %t/chosen.mlir
// RUN: attn-opt %t/errors.mlir -attn-choose-schedule -convert-attn-to-tile -split-input-file -verify-diagnostics

// What they compute: slopes of ALiBi differ from row to row, and so do heads of lse and o.
// RUN: attn-run %t/plain.mlir --target=cpu --check --batch=2 --seqlen-q=30 --seqlen-kv=90 | FileCheck %s --check-prefix=SAME
// RUN: attn-run %t/on_cpu.mlir --target=cpu --check --lengths-q=1,0,40 --lengths-kv=50,30,100 | FileCheck %s --check-prefix=SAME
// RUN: attn-run %t/chosen.mlir --target=cpu --check --batch=2 --seqlen-q=1 --seqlen-kv=2000 | FileCheck %s --check-prefix=SAME
// SAME-COUNT-2: {{^}}ok
// SAME-NOT: FAILED

//--- plain.mlir
// Six heads and ten queries make 60 of 64 rows; the grid has two groups.
// CHECK: target("cpu") grid(dense heads 2) schedule(#tile.tiled<q_tile = 64, kv_tile = 64, warps = 1, ctas_per_sm = 1, pack_heads = 6>)
// CHECK: %tiles = arith.divui %{{.*}}, %c10_i32
// CHECK: %[[GROUP:.*]] = arith.remui %sequence_head, %c2_i32
// CHECK: %h = arith.muli %[[GROUP]], %c6_i32
// CHECK: %rows = arith.minsi %{{.*}}, %c10_i32
// CHECK: %[[AT:.*]] = tile.pairs %q0, %h : !tile.pairs<6, i32>
// CHECK: %[[BY:.*]] = tile.pairs %q_row, %q_head : !tile.pairs<6, i64>
// CHECK: %[[ROWS:.*]] = arith.muli %rows, %c6_i32
// CHECK: tile.copy_async %Q, %q_rows stride(%[[BY]] heads 6) rows(%[[ROWS]]) dim 64
// Masks and modifiers know queries and heads.
// CHECK: tile.modify %s at(%[[AT]] heads 6, %k0)
// CHECK-NEXT: ^bb0(%score: f32, %[[Q:.*]]: i32, %[[K:.*]]: i32, %base: i32, %column_offset: f32, %[[H:.*]]: i32):
// CHECK: arith.cmpi slt, %[[H]], %c8_i32
// CHECK: tile.apply_mask %s at(%[[AT]] heads 6, %k0)
// CHECK-NEXT: ^bb0(%{{.*}}: i32, %{{.*}}: i32):
// CHECK: %[[O:.*]] = tile.pairs %o_row, %o_head : !tile.pairs<6, i64>
// CHECK: %[[LSE:.*]] = tile.pairs %c1_i64, %lse_head : !tile.pairs<6, i64>
// CHECK: tile.store %o_rows stride(%[[O]] heads 6), %acc rows(%[[ROWS]], %[[ROWS]]) dim 64
// CHECK: tile.store_lse %{{.*}} stride(%[[LSE]] heads 6), %row rows(%[[ROWS]], %[[ROWS]])
attn.problem @p mask(#attn.causal<bottom_right>) layout(bshd) heads(12, 2) dims(64) dtype(bf16) score([#attn.alibi])
  schedule(#tile.tiled<q_tile = 64, kv_tile = 64, warps = 1, ctas_per_sm = 1, pack_heads = 6>)

//--- on_cpu.mlir
attn.problem @p mask(#attn.causal<bottom_right>) layout(thd padded) heads(12, 2) dims(64) dtype(bf16)
  score([#attn.alibi<"slopes">])
  schedule(#tile.split_kv<splits = 3, of = #tile.tiled<q_tile = 64, kv_tile = 64, warps = 1, ctas_per_sm = 1, pack_heads = 3>>)

//--- hopper.mlir
// A box brings heads in turns; with packed sequences and parts of their keys, too.
// CHECK: %q_map: !tile.tensor_map<10x6xbf16, packed>, %k_map: !tile.tensor_map<128xbf16, packed>
// CHECK: tile.find_sequence {{.*}} tile 10
// CHECK: tile.producer_load %Q, %q_map at(%row0, %h) rows(%rows) : !tile.ring<1, <64x128xbf16, swizzled>>, !tile.tensor_map<10x6xbf16, packed>
// CHECK: tile.store_padding %{{.*}} stride(%{{.*}} heads 6)
// CHECK: tile.store %partial_o_rows stride(%{{.*}} heads 6), %acc
// CHECK: tile.store_lse %partial_max_rows sum(%partial_sum_rows) stride(%{{.*}} heads 6), %row
// CHECK: tile.recompute_rows %acc at(%{{.*}} heads 6) {{.*}} keys(%{{.*}} from %{{.*}}) from(%q_rows, %{{.*}} heads 6, %k_rows, %k_row, %v_rows, %v_row) into(%partial_o_rows, %{{.*}} heads 6) lse(%partial_max_rows, %{{.*}} heads 6) sum(%partial_sum_rows)
// The kernel that merges sees rows of all heads.
// CHECK: tile.kernel @p_combine({{.*}} grid(packed heads 12)
// TEXT: attn::store<128>(partial_o_rows, x_{{[0-9]+}}, acc,
// TEXT: attn::producer_load_packed_heads<60>(Q, q_map, h, row0, rows);
attn.problem @p mask(#attn.causal<bottom_right>) layout(thd padded) heads(12, 2) dims(128) dtype(bf16)
  schedule(#tile.split_kv<of = #tile.warp_specialized<q_tile = 64, kv_tile = 128, warps = 4, ctas_per_sm = 1, pack_heads = 6>>)

//--- no-lse.mlir
// Rows of large scores are pairs without an LSE, too.
// CHECK: attn::recompute_rows<128, 128>(acc, at, {{.*}}, 0, {{.*}}, (float *)nullptr, 1ll,
attn.problem @p mask(#attn.causal) layout(bshd) heads(8, 2) dims(128) dtype(bf16) outputs(o)
  schedule(#tile.warp_specialized<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1, pack_heads = 4>)

//--- chosen.mlir
// What needs the fewest tiles, each of which reads all keys.
// CHECK: tile.kernel @one({{.*}} schedule(#tile.split_kv<of = #tile.warp_specialized<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1, stages = 3, pack_heads = 4>>)
attn.problem @one mask(#attn.full) layout(bshd) heads(8, 2) dims(128) dtype(bf16) expected_seqlen(1, 32768)

//--- errors.mlir
// expected-error @below {{'attn.problem' op expected pack_heads to divide the 4 query heads of a kv head, got: #tile.tiled<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1, pack_heads = 3>}}
attn.problem @p mask(#attn.full) layout(bshd) heads(8, 2) dims(64) dtype(bf16)
  schedule(#tile.tiled<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1, pack_heads = 3>)
