// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// `convert-attn-to-tile` for sm_90a: the same plain program, whose tiles are boxes of
// tensors and whose products have no guards.
//
// RUN: attn-opt %s -attn-choose-schedule="target=sm_90a" -convert-attn-to-tile | FileCheck %s
// RUN: attn-opt %s -attn-choose-schedule="target=sm_90a" -convert-attn-to-tile -mlir-print-op-generic -mlir-print-debuginfo | attn-opt - | FileCheck %s

// Behind the arguments of any kernel: maps with boxes of the schedule's tiles, how many
// blocks there are, and the counter that deals them out.
// CHECK: tile.kernel @causal(%q: !tile.ptr<bf16>,
// CHECK-SAME: %lse_batch: i64, %lse_head: i64, %q_map: !tile.tensor_map<64xbf16>, %k_map: !tile.tensor_map<32xbf16>, %v_map: !tile.tensor_map<32xbf16>, %blocks: i32, %queue: !tile.queue)
// CHECK-SAME: target("sm_90a") grid(dense heads 8) schedule(#tile.warp_specialized<q_tile = 64, kv_tile = 32, warps = 4, ctas_per_sm = 1, stages = 4, q_stages = 2>) {
attn.problem @causal mask(#attn.causal) layout(bshd) heads(8, 2) dims(72, 40) dtype(bf16)
  schedule(#tile.warp_specialized<q_tile = 64, kv_tile = 32, warps = 4, ctas_per_sm = 1, stages = 4, q_stages = 2>)

// Places: swizzled, columns in multiples of 16.
// CHECK-NEXT: %Q = tile.alloc "Q" : !tile.shared<64x80xbf16, swizzled>
// CHECK-NEXT: %K = tile.alloc "K" : !tile.shared<32x80xbf16, swizzled>
// CHECK-NEXT: %V = tile.alloc "V" : !tile.shared<32x48xbf16, swizzled>
// CHECK-NEXT: %s = tile.alloc "s" : !tile.frag<64x32, 4>
// CHECK-NEXT: %acc = tile.alloc "acc" : !tile.frag<64x48, 4>
// CHECK-NEXT: %row = tile.alloc "row" : !tile.softmax_state<64, 4>

// A box is at (row, head, sequence) of its tensor, keys' heads being those of a group.
// CHECK: tile.index block
// CHECK: %kv_head = arith.divui %h, %c4_i32
// CHECK-NOT: tile.copy_async
// CHECK: %[[TQ:.*]] = tile.copy_tma %Q, %q_map at(%q0, %h, %b) :
// CHECK-NEXT: tile.clear %acc
// CHECK-NEXT: tile.clear %row
// CHECK-NEXT: tile.wait %[[TQ]]
// CHECK: tile.kv_loop [%c0_i32{{.*}}, %{{.*}}, %{{.*}}] tests {{\[\[}}], [0]] carry() {
// CHECK-NEXT: ^bb0(%j: i32, %next: i32, %more: i1):
// CHECK: %[[K0:.*]] = arith.muli %j, %c32_i32
// CHECK: %[[TK:.*]] = tile.copy_tma %K, %k_map at(%[[K0]], %kv_head, %b) :
// CHECK-NEXT: tile.wait %[[TK]]
// CHECK-NEXT: %[[TS:.*]] = tile.mma_abt %s, %Q, %K :
// CHECK-NEXT: tile.wait %[[TS]]
// CHECK-NEXT: tile.apply_mask %s at(%q0, %[[K0]])
// CHECK: tile.online_softmax %s, %row, %acc scale 0.11785{{[0-9]+}}
// What lies behind a dense tensor's rows reads as 0.
// CHECK: %[[TV:.*]] = tile.copy_tma %V, %v_map at(%[[K0]], %kv_head, %b) :
// CHECK-NEXT: tile.wait %[[TV]]
// CHECK-NEXT: %[[TA:.*]] = tile.mma_ab %acc, %s, %V :
// CHECK-NEXT: tile.wait %[[TA]]
// CHECK-NEXT: tile.yield
// CHECK: tile.normalize %acc, %row
// CHECK: %[[OROWS:.*]] = tile.advance %o,
// CHECK: %[[LSE:.*]] = tile.advance %lse,
// CHECK: tile.store %[[OROWS]] stride(%o_row), %acc rows(%[[ROWS:.*]], %[[ROWS]]) dim 40
// CHECK-NEXT: tile.store_lse %[[LSE]], %row
// Rows that a NaN behind their mask may have reached are computed anew, by the same test.
// CHECK: tile.recompute_rows %acc at(%q0) rows(%[[ROWS]]) keys(%seqlen_kv) from(%q_rows, %q_row, %k_rows, %k_row, %v_rows, %v_row) into(%[[OROWS]], %o_row) lse(%[[LSE]]) dims(72, 40) scale 0.11785{{[0-9]+}}
// CHECK-NEXT: ^bb0(%[[ROW:.*]]: i32, %[[KEY:.*]]: i32):
// CHECK: %[[BEHIND:.*]] = arith.addi %[[ROW]], %c1_i32
// CHECK: %[[END:.*]] = arith.minsi %[[BEHIND]], %seqlen_kv
// CHECK: %[[KEPT:.*]] = arith.cmpi slt, %[[KEY]], %[[END]]
// CHECK: tile.yield %[[KEPT]] : i1

// Rows of packed tensors are counted from the first token of all. Behind a sequence is the
// next one, or padding: a box is told how many rows are left, and the others read as 0, too.
// CHECK: tile.kernel @packed(
// CHECK-SAME: %q_map: !tile.tensor_map<[[QT:[0-9]+]]xbf16, packed>, %k_map: !tile.tensor_map<[[KT:[0-9]+]]xbf16, packed>, %v_map: !tile.tensor_map<[[KT]]xbf16, packed>,
// CHECK-SAME: grid(packed heads 8)
// CHECK: %b, %q0, %first, %rows, %write_rows = tile.find_sequence
// CHECK: %row0 = arith.addi %first, %q0
// CHECK: %first_key = tile.load uniform %padded_offsets_kv[%b]
// CHECK: scf.if
// CHECK: tile.store_padding
// CHECK: scf.if
// CHECK: tile.copy_tma %Q, %q_map at(%row0, %h) rows(%rows) : {{.*}}, !tile.tensor_map<[[QT]]xbf16, packed>
// CHECK: tile.kv_loop
// CHECK: %[[K0:.*]] = arith.muli %j, %
// CHECK: %[[LEFT:.*]] = arith.subi %len_kv, %[[K0]]
// CHECK: %[[KEY0:.*]] = arith.addi %first_key, %[[K0]]
// CHECK: tile.copy_tma %K, %k_map at(%[[KEY0]], %h) rows(%[[LEFT]])
// CHECK: %[[LEFT:.*]] = arith.subi %len_kv, %[[K0]]
// CHECK: %[[VALUE0:.*]] = arith.addi %first_key, %[[K0]]
// CHECK: %[[TV:.*]] = tile.copy_tma %V, %v_map at(%[[VALUE0]], %h) rows(%[[LEFT]])
// CHECK-NEXT: tile.wait %[[TV]]
// CHECK-NEXT: tile.mma_ab %
// CHECK: tile.recompute_rows
attn.problem @packed mask(#attn.causal) layout(thd padded) heads(8) dims(64) dtype(bf16)

// Packed queries against dense keys, and the other way round: each tensor as it is.
// CHECK: tile.kernel @packed_queries(
// CHECK: tile.copy_tma %Q, %q_map at(%row0, %h) rows(%rows) : {{.*}}xbf16, packed>
// CHECK: tile.copy_tma %K, %k_map at(%{{[^,]*}}, %h, %b) : {{.*}}xbf16>
// CHECK: tile.copy_tma %V, %v_map at(%{{[^,]*}}, %h, %b) : {{.*}}xbf16>
// CHECK: tile.kernel @packed_keys(
// CHECK: tile.copy_tma %Q, %q_map at(%q0, %h, %b) : {{.*}}xbf16>
// CHECK: %[[LEFT:.*]] = arith.subi %len_kv, %
// CHECK: tile.copy_tma %K, %k_map at(%{{[^,]*}}, %h) rows(%[[LEFT]]) : {{.*}}xbf16, packed>
// CHECK: %[[LEFT:.*]] = arith.subi %len_kv, %
// CHECK: tile.copy_tma %V, %v_map at(%{{[^,]*}}, %h) rows(%[[LEFT]]) : {{.*}}xbf16, packed>
attn.problem @packed_queries mask(#attn.full) layout(thd, bshd, bshd, thd) heads(8) dims(64) dtype(bf16)
attn.problem @packed_keys mask(#attn.full) layout(bshd, thd, thd, bshd) heads(8) dims(64) dtype(bf16)

// Q cannot be rewritten where TMA wrote it: a negative scale negates the product, and
// comes back whole where rows are recomputed.
// CHECK: tile.kernel @negative
// CHECK-NOT: tile.scale
// CHECK: tile.mma_abt %s, %Q, %K {negated}
// CHECK: tile.online_softmax {{.*}} scale 2.500000e-01
// CHECK: tile.recompute_rows {{.*}} scale -2.500000e-01
attn.problem @negative mask(#attn.causal) layout(bshd) heads(8) dims(64) dtype(bf16) scale(-0.25)

// A mask that hides no key needs no repair. Without lse nothing of it is left.
// CHECK: tile.kernel @full
// CHECK-NOT: lse
// CHECK: tile.store
// CHECK-NOT: tile.recompute_rows
// CHECK: tile.kernel @no_lse
// CHECK-NOT: lse
// CHECK: tile.recompute_rows
// CHECK-SAME: into(%{{.*}}, %o_row) dims(64, 64)
attn.problem @full mask(#attn.full) layout(bshd) heads(8) dims(64) dtype(f16) outputs(o)
attn.problem @no_lse mask(#attn.causal) layout(bshd) heads(8) dims(64) dtype(f16) outputs(o)

// One whose run-time array says how many it hides may hide some.
// CHECK: tile.kernel @prefix
// CHECK: tile.recompute_rows
attn.problem @prefix mask(#attn.prefix<"lengths">) layout(bshd) heads(8) dims(64) dtype(bf16)
