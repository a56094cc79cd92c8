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
// CHECK-DAG: %Q = tile.place "Q" at 0 barriers {{[0-9]+}} : !tile.ring<2, <{{.*}}, swizzled>>
// CHECK-DAG: %K = tile.place "K" at {{[0-9]+}} barriers {{[0-9]+}} : !tile.ring<2, <{{.*}}, swizzled>>
// CHECK-DAG: %V = tile.place "V" at {{[0-9]+}} barriers {{[0-9]+}} : !tile.ring<2, <{{.*}}, swizzled>>
// CHECK-DAG: %feed = tile.place "feed" at {{[0-9]+}} : !tile.feed<{{[0-9]+}}>
// CHECK: tile.roles {{.*}} producer {
// CHECK-NEXT: tile.persist %blocks, %queue feed(%feed
// CHECK: tile.fill %Q, %q_map at(%{{[^,]*}}, %{{[^,]*}}, %[[B:[^,]*]]) :
// CHECK: scf.for
// CHECK: tile.fill %K, %k_map at(%[[K0:[^,]*]], %{{[^,]*}}, %[[B]]) :
// CHECK-NEXT: tile.fill %V, %v_map at(%[[K0]], %{{[^,]*}}, %[[B]]) :
// CHECK-NOT: scf.for
// CHECK: } consumer {
// CHECK: tile.persist %blocks feed(%feed
// The first tile, tiles inside, and the one at the sequence's end; V's last product.
// CHECK: tile.take %Q
// CHECK-COUNT-3: scf.for
// CHECK-NOT: scf.for
// CHECK: tile.release %Q
// CHECK-NEXT: scf.if
// CHECK-NOT: tile.repair
// One body, and smaller tiles, where the first attempt took too many registers.
// FALLBACK-LABEL: tile.kernel @full
// FALLBACK-SAME: single_loop = true
// FALLBACK: } consumer {
// FALLBACK-COUNT-2: scf.for
// FALLBACK-NOT: scf.for
// FALLBACK: tile.release %Q
attn.problem @full mask(#attn.full) layout(bshd) heads(8, 2) dims(64) dtype(bf16)

// A window has tests at both ends, so there are four loops.
// CHECK-LABEL: tile.kernel @window
// CHECK: } consumer {
// CHECK: scf.for
// CHECK: scf.if %[[PARTIAL:.*]] {
// CHECK-NEXT: tile.keep
// CHECK: scf.for
// CHECK: %[[QK:.*]] = tile.mma_qk
// CHECK: %[[PV:.*]] = tile.mma_pv
// CHECK-NEXT: tile.wait %[[QK]]
// CHECK: tile.wait %[[PV]]
// CHECK: tile.keep
// CHECK: tile.yield %{{.*}}, %{{.*}} : i1, i1
// CHECK: tile.weigh
// CHECK: scf.for
// CHECK-NOT: tile.keep
// CHECK: scf.for
// CHECK: tile.keep
// CHECK: tile.yield %{{[^,]*}} : i1
// CHECK-NOT: scf.for
// CHECK: tile.release %Q
// CHECK: tile.repair
// FALLBACK-LABEL: tile.kernel @window
attn.problem @window mask(#attn.band<left = 511, right = 0>) layout(bshd) heads(8) dims(128) dtype(bf16)

// Packed: padding slots, and boxes that end where the sequence does, so that nothing is done to a tile ahead of its product.
// CHECK-LABEL: tile.kernel @packed
// CHECK: tile.find_sequence
// CHECK: tile.send
// CHECK: scf.if
// CHECK: tile.fill %Q, %q_map at(%{{[^,]*}}, %[[H:[^,]*]]) rows(%rows)
// CHECK: scf.for
// CHECK: %[[K0:.*]] = arith.muli
// CHECK-NEXT: %[[LEFT:.*]] = arith.subi %{{.*}}, %[[K0]]
// CHECK-NEXT: %[[KEY:.*]] = arith.addi %{{.*}}, %[[K0]]
// CHECK-NEXT: tile.fill %K, %k_map at(%[[KEY]], %[[H]]) rows(%[[LEFT]])
// CHECK-NEXT: tile.fill %V, %v_map at(%[[KEY]], %[[H]]) rows(%[[LEFT]])
// CHECK: } consumer {
// CHECK-NOT: tile.find_sequence
// CHECK-NOT: tile.load
// CHECK: scf.if
// CHECK: tile.store_padding
// CHECK: tile.store_padding
// CHECK: scf.if
// CHECK-COUNT-3: scf.for
// CHECK: %[[V:.*]] = tile.take %V
// CHECK-NEXT: tile.mma_pv %acc, %p, %[[V]]
// CHECK: tile.release %Q
// CHECK-NEXT: scf.if
// CHECK-NEXT: %[[V:.*]] = tile.take %V
// CHECK-NEXT: tile.mma_pv %acc, %p, %[[V]]
// CHECK: tile.repair
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
// CHECK: tile.release %Q
attn.problem @sinks mask(#attn.and<#attn.or<#attn.prefix<4>, #attn.band<left = 127, right = 0>>, #attn.causal>)
  layout(bshd) heads(8) dims(64) dtype(bf16)

// Documents are read for each element, by those that compute.
// CHECK-LABEL: tile.kernel @document(
// CHECK: } consumer {
// CHECK: tile.keep
// CHECK: tile.load %
attn.problem @document mask(#attn.and<#attn.document, #attn.causal>) layout(bshd) heads(8) dims(64) dtype(bf16)

// A walk that visits no tile where a prefix is empty still takes Q and gives it back.
// CHECK-LABEL: tile.kernel @prefix
// CHECK: } consumer {
// CHECK: tile.take %Q
// CHECK: tile.release %Q
attn.problem @prefix mask(#attn.prefix<"lengths">) layout(bshd) heads(8) dims(64) dtype(bf16) outputs(o)

// Widest heads, and narrow ones of different widths.
// CHECK-LABEL: tile.kernel @wide
// CHECK: tile.mma_qk %s, %Q_tile, %K_tile {negated}
attn.problem @wide mask(#attn.causal) layout(bshd) heads(8) dims(256) dtype(bf16) scale(-1.0)
// CHECK-LABEL: tile.kernel @uneven
// CHECK: tile.repair {{.*}} dims(72, 40)
attn.problem @uneven mask(#attn.causal<bottom_right>) layout(sbhd) heads(8) dims(72, 40) dtype(f16)
