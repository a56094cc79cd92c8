// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The whole pipeline for sm_90a, mask by mask: what roles do, and in which loops. That
// what comes out is safe, `tile-verify-async` at its end says, and again behind `attn-opt`.
//
// RUN: attn-opt %s --attn-pipeline="target=sm_90a" | FileCheck %s
// RUN: attn-opt %s --attn-pipeline="target=sm_90a" | attn-opt - -tile-verify-async | FileCheck %s
// RUN: attn-opt %s --attn-pipeline="target=sm_90a fallback=1" | FileCheck %s --check-prefix=FALLBACK
// RUN: attn-opt %s --attn-pipeline="target=sm_90a" -mlir-print-debuginfo | attn-translate --target=sm_90a > /dev/null

// The roles of every kernel meet in the same places.
// CHECK-LABEL: tile.kernel @full
// CHECK-SAME: shared {{[0-9]+}} {
// CHECK-DAG: %Q = tile.alloc "Q" at 0 barriers {{[0-9]+}} : !tile.ring<2, <{{.*}}, swizzled>>
// CHECK-DAG: %K = tile.alloc "K" at {{[0-9]+}} barriers {{[0-9]+}} : !tile.ring<2, <{{.*}}, swizzled>>
// CHECK-DAG: %V = tile.alloc "V" at {{[0-9]+}} barriers {{[0-9]+}} : !tile.ring<2, <{{.*}}, swizzled>>
// CHECK-DAG: %mailbox = tile.alloc "mailbox" at {{[0-9]+}} : !tile.mailbox<{{[0-9]+}}>
// CHECK: tile.roles {{.*}} producer {
// CHECK-NEXT: tile.persistent_loop %blocks, %queue mailbox(%mailbox
// CHECK: tile.producer_load %Q, %q_map at(%{{[^,]*}}, %{{[^,]*}}, %[[B:[^,]*]]) :
// CHECK: scf.for
// CHECK: tile.producer_load %K, %k_map at(%[[K0:[^,]*]], %{{[^,]*}}, %[[B]]) :
// CHECK-NEXT: tile.producer_load %V, %v_map at(%[[K0]], %{{[^,]*}}, %[[B]]) :
// CHECK-NOT: scf.for
// CHECK: } consumer {
// CHECK: tile.persistent_loop %blocks mailbox(%mailbox
// The first tile, tiles inside, and the one at the sequence's end; V's last product.
// CHECK: tile.consumer_wait %Q
// CHECK-COUNT-3: scf.for
// CHECK-NOT: scf.for
// CHECK: tile.consumer_release %Q
// CHECK-NEXT: scf.if
// CHECK-NOT: tile.recompute_rows
// One body, and smaller tiles, where the first attempt took too many registers.
// FALLBACK-LABEL: tile.kernel @full
// FALLBACK-SAME: single_loop = true
// FALLBACK: } consumer {
// FALLBACK-COUNT-2: scf.for
// FALLBACK-NOT: scf.for
// FALLBACK: tile.consumer_release %Q
attn.problem @full mask(#attn.full) layout(bshd) heads(8, 2) dims(64) dtype(bf16)

// A window has tests at both ends, so there are four loops.
// CHECK-LABEL: tile.kernel @window
// CHECK: } consumer {
// CHECK: scf.for
// CHECK: scf.if %[[PARTIAL:.*]] {
// CHECK-NEXT: tile.apply_mask
// CHECK: scf.for
// CHECK: %[[QK:.*]] = tile.mma_abt
// CHECK: %[[PV:.*]] = tile.mma_ab %
// CHECK-NEXT: tile.wait %[[QK]]
// CHECK: tile.wait %[[PV]]
// CHECK: tile.apply_mask
// CHECK: tile.yield %{{.*}}, %{{.*}} : i1, i1
// CHECK: tile.softmax_convert
// CHECK: scf.for
// CHECK-NOT: tile.apply_mask
// CHECK: scf.for
// CHECK: tile.apply_mask
// CHECK: tile.yield %{{[^,]*}} : i1
// CHECK-NOT: scf.for
// CHECK: tile.consumer_release %Q
// CHECK: tile.recompute_rows
// FALLBACK-LABEL: tile.kernel @window
attn.problem @window mask(#attn.band<left = 511, right = 0>) layout(bshd) heads(8) dims(128) dtype(bf16)

// Packed: padding slots, and boxes that end where the sequence does, so that nothing is done to a tile ahead of its product.
// CHECK-LABEL: tile.kernel @packed
// CHECK: tile.find_sequence
// CHECK: tile.publish_work
// CHECK: scf.if
// CHECK: tile.producer_load %Q, %q_map at(%{{[^,]*}}, %[[H:[^,]*]]) rows(%rows)
// CHECK: scf.for
// CHECK: %[[K0:.*]] = arith.muli
// CHECK-NEXT: %[[LEFT:.*]] = arith.subi %{{.*}}, %[[K0]]
// CHECK-NEXT: %[[KEY:.*]] = arith.addi %{{.*}}, %[[K0]]
// CHECK-NEXT: tile.producer_load %K, %k_map at(%[[KEY]], %[[H]]) rows(%[[LEFT]])
// CHECK-NEXT: tile.producer_load %V, %v_map at(%[[KEY]], %[[H]]) rows(%[[LEFT]])
// CHECK: } consumer {
// CHECK-NOT: tile.find_sequence
// CHECK-NOT: tile.load
// CHECK: scf.if
// CHECK: tile.store_padding
// CHECK: tile.store_padding
// CHECK: scf.if
// CHECK-COUNT-3: scf.for
// CHECK: %[[V:.*]] = tile.consumer_wait %V
// CHECK-NEXT: tile.mma_ab %acc, %p, %[[V]]
// CHECK: tile.consumer_release %Q
// CHECK-NEXT: scf.if
// CHECK-NEXT: %[[V:.*]] = tile.consumer_wait %V
// CHECK-NEXT: tile.mma_ab %acc, %p, %[[V]]
// CHECK: tile.recompute_rows
attn.problem @packed mask(#attn.causal) layout(thd padded) heads(8) dims(64) dtype(bf16)

// Sinks and a window are two runs: a loop over runs around one over tiles, for the
// producer, for the first tile and for the rest.
// CHECK-LABEL: tile.kernel @sinks
// CHECK: producer {
// CHECK-COUNT-2: scf.for
// CHECK-NEXT: %{{.*}} = arith.muli
// CHECK-NOT: scf.for
// CHECK: } consumer {
// CHECK-COUNT-4: scf.for
// CHECK-NOT: scf.for
// CHECK: tile.consumer_release %Q
attn.problem @sinks mask(#attn.and<#attn.or<#attn.prefix<4>, #attn.band<left = 127, right = 0>>, #attn.causal>)
  layout(bshd) heads(8) dims(64) dtype(bf16)

// Documents are read for each element, by those that compute.
// CHECK-LABEL: tile.kernel @document(
// CHECK: } consumer {
// CHECK: tile.apply_mask
// CHECK: tile.load %
attn.problem @document mask(#attn.and<#attn.document, #attn.causal>) layout(bshd) heads(8) dims(64) dtype(bf16)

// A walk that visits no tile where a prefix is empty still takes Q and gives it back.
// CHECK-LABEL: tile.kernel @prefix
// CHECK: } consumer {
// CHECK: tile.consumer_wait %Q
// CHECK: tile.consumer_release %Q
attn.problem @prefix mask(#attn.prefix<"lengths">) layout(bshd) heads(8) dims(64) dtype(bf16) outputs(o)

// Widest heads, and narrow ones of different widths.
// CHECK-LABEL: tile.kernel @wide
// CHECK: tile.mma_abt %s, %Q_tile, %K_tile {negated}
attn.problem @wide mask(#attn.causal) layout(bshd) heads(8) dims(256) dtype(bf16) scale(-1.0)
// CHECK-LABEL: tile.kernel @uneven
// CHECK: tile.recompute_rows {{.*}} dims(72, 40)
attn.problem @uneven mask(#attn.causal<bottom_right>) layout(sbhd) heads(8) dims(72, 40) dtype(f16)
