// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A kernel ahead numbers the tree of each array of parents; from there on the mask is one that reads three arrays.
//
// RUN: split-file %s %t
// RUN: attn-opt %t/packed.mlir -attn-choose-schedule="target=sm_90a" -convert-attn-to-tile --canonicalize --cse | FileCheck %t/packed.mlir
// RUN: attn-opt %t/dense.mlir -attn-choose-schedule="target=sm_80" -convert-attn-to-tile --canonicalize --cse | FileCheck %t/dense.mlir
// RUN: attn-translate %t/dense.mlir --target=sm_80 | FileCheck %t/dense.mlir --check-prefix=TEXT
// RUN: attn-translate %t/dense.mlir --target=cpu | FileCheck %t/dense.mlir --check-prefix=HOST
// RUN: attn-opt %t/grads.mlir -attn-choose-schedule="target=sm_90a" -convert-attn-to-tile | FileCheck %t/grads.mlir

//--- packed.mlir
// CHECK-LABEL: tile.kernel @p_tree(
// CHECK-SAME: %parent: !tile.ptr<i32>, %parent_node: !tile.ptr<i32>, %parent_first: !tile.ptr<i32>, %parent_end: !tile.ptr<i32>, %parent_numbering: !tile.ptr<i32>
// CHECK-SAME: %queue: !tile.queue
// CHECK-SAME: target("sm_80") grid(packed heads 1 keys)
// Each block has its sequences, but for those of more keys than a third of all, or of very many.
// CHECK: %[[THIRD:.*]] = arith.divui %total_kv, %c3_i32
// CHECK: %[[LONGEST:.*]] = arith.maxsi %{{.*}}, %c4096_i32
// CHECK: scf.for %b = %block to %batch step %c120_i32
// CHECK: %[[QUERY:.*]] = tile.load uniform %padded_offsets_q[%b]
// CHECK: %[[SHORT:.*]] = arith.cmpi sle, %len_kv, %[[LONGEST]]
// CHECK: scf.if %[[SHORT]]
// CHECK: %[[QUERIES:.*]] = arith.extsi %[[QUERY]]
// CHECK: metadata.number_tree %parent_node, %parent_first, %parent_end, %parent_numbering of %parent queries(%[[QUERIES]], %len_q) keys(%{{.*}}, %len_kv) in(%tree_runs) : !metadata.tree_runs<3584>
// CHECK: metadata.cooperative_loop %queue of %cu_seqlens_kv(%batch) longer(%[[LONGEST]]) : !tile.ptr<i32> {
// CHECK: ^bb0(%ctas: !metadata.cooperative_ctas, %b: i32):
// CHECK: metadata.number_tree %parent_node, {{.*}} keys(%{{.*}}, %{{.*}}) in(%tree_runs) by %ctas : !metadata.tree_runs<3584>
// CHECK-LABEL: tile.kernel @p_ranges
// CHECK: tile.advance %parent_first
// CHECK: metadata.entry_range
// CHECK-LABEL: tile.kernel @p_kv_tile_lists
// CHECK: tile.advance %parent_node
// CHECK-LABEL: tile.kernel @p(
attn.problem @p mask(#attn.ancestors<"parent">) layout(thd padded) heads(4, 2) dims(64) dtype(bf16)

//--- dense.mlir
// Two arrays, two kernels; of one that stands twice, one.
// CHECK-COUNT-2: metadata.cooperative_loop
// CHECK-NOT: metadata.cooperative_loop
// TEXT: // p_tree for sm_80
// TEXT: attn::TreeRuns<3584> tree_runs(0);
// TEXT-NEXT: const int longest = batch < 3 ? 4096 : batch < 16 ? 32768 : 2147483647;
// TEXT: for (int b = block; b < batch; b += 120) {
// TEXT-NEXT: if (seqlen_kv <= longest) {
// TEXT-NEXT: attn::number_tree(drafts_node, drafts_first, drafts_end, drafts_numbering, drafts, (long long)b * (long long)seqlen_q, seqlen_q, (long long)b * (long long)seqlen_kv, seqlen_kv, tree_runs);
// TEXT: attn::cooperative_loop(queue, seqlen_kv, batch, longest, [&](const attn::CooperativeCtas &ctas, int b) {
// TEXT-NEXT: attn::number_tree(drafts_node, {{.*}}, seqlen_kv, tree_runs, ctas);
// TEXT-NEXT: });
// TEXT-NEXT: }
// HOST: // p_tree for cpu
// HOST-NOT: together
// HOST: attn::number_tree(drafts_node{{.*}}, seqlen_kv);
// TEXT: // p_tree_ for sm_80
attn.problem @p mask(#attn.or<#attn.and<#attn.ancestors<"drafts">, #attn.prefix<9>>, #attn.diff<#attn.ancestors<"others">, #attn.ancestors<"drafts">>>) layout(bshd) heads(2) dims(64) dtype(bf16)

//--- grads.mlir
// CHECK-LABEL: tile.kernel @g_tree
// CHECK: metadata.number_tree
// CHECK-LABEL: tile.kernel @g_ranges_q
attn.problem @p mask(#attn.ancestors<"parent">) layout(bshd) heads(2) dims(64) dtype(bf16)
attn.backward @g of(@p)
