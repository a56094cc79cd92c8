// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Kernels of batch rows: their grid, and what it refuses (tile.kernel C3). The kernel of tokens that see a sink alone.
//
// RUN: rm -rf %t && split-file %s %t
// RUN: attn-opt %t/ops.mlir | FileCheck %t/ops.mlir
// RUN: attn-opt %t/ops.mlir -mlir-print-op-generic | FileCheck %t/ops.mlir --check-prefix=GENERIC
// RUN: attn-opt %t/ops.mlir -mlir-print-op-generic | attn-opt | FileCheck %t/ops.mlir
// RUN: attn-opt %t/errors.mlir -split-input-file -verify-diagnostics

//--- ops.mlir
// Tokens that see a sink alone.
// CHECK: tile.kernel @sinks
tile.kernel @sinks(%lse: !tile.ptr<f32>, %ids: !tile.ptr<i32>, %n: i32, %x: f32) target("sm_80")
    grid(packed heads 1) schedule(#tile.tiled<q_tile = 256, kv_tile = 16, warps = 8, ctas_per_sm = 4>) {
  // CHECK: tile.store_sink_lse %lse rows(%n, %n) ids(%ids, %n, %n) of(%ids, %ids, %n) sink(%x){{$}}
  tile.store_sink_lse %lse rows(%n, %n) ids(%ids, %n, %n) of(%ids, %ids, %n) sink(%x)
  // CHECK: tile.store_sink_lse %lse rows(%n, %n) ids(%ids, %n, %n) of(%ids, %ids, %n) sink(%x) positions(%ids, %n)
  // GENERIC: "tile.store_sink_lse"({{.*}}) <{operandSegmentSizes = array<i32: 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1>}>
  tile.store_sink_lse %lse rows(%n, %n) ids(%ids, %n, %n) of(%ids, %ids, %n) sink(%x) positions(%ids, %n)
}

// A block alone, on targets that have no clusters.
// CHECK: target("cpu") grid(rows cluster 1) schedule({{.*}}) {
tile.kernel @one() target("cpu") grid(rows cluster 1) schedule(#tile.auxiliary<q_tile = 256, kv_tile = 128, warps = 16, ctas_per_sm = 1>) {
}
// CHECK: target("sm_80") grid(rows cluster 1) schedule({{.*}}) {
tile.kernel @ampere() target("sm_80") grid(rows cluster 1) schedule(#tile.tiled<q_tile = 16, kv_tile = 16, warps = 1, ctas_per_sm = 1>) {
}

//--- errors.mlir
// tile.kernel C3: clusters of 1 to 16 CTAs,
// expected-error @below {{'tile.kernel' op expected clusters of 1 to 16 CTAs for target "sm_90a", got: 17}}
tile.kernel @k() target("sm_90a") grid(rows cluster 17) schedule(#tile.auxiliary<q_tile = 64, kv_tile = 64, warps = 16, ctas_per_sm = 1>) {
}

// -----

// expected-error @below {{got: 0}}
tile.kernel @k() target("sm_90a") grid(rows cluster 0) schedule(#tile.auxiliary<q_tile = 64, kv_tile = 64, warps = 16, ctas_per_sm = 1>) {
}

// -----

// C3: of 1, but for sm_90a.
// expected-error @below {{'tile.kernel' op expected clusters of 1 to 1 CTAs for target "sm_80", got: 2}}
tile.kernel @k() target("sm_80") grid(rows cluster 2) schedule(#tile.auxiliary<q_tile = 64, kv_tile = 64, warps = 16, ctas_per_sm = 1>) {
}

// -----

// expected-error @below {{for target "cpu", got: 16}}
tile.kernel @k() target("cpu") grid(rows cluster 16) schedule(#tile.auxiliary<q_tile = 64, kv_tile = 64, warps = 16, ctas_per_sm = 1>) {
}

// -----

// expected-error @below {{expected grid `dense`, `packed` or `rows`, got: columns}}
tile.kernel @k() target("cpu") grid(columns cluster 1) schedule(#tile.auxiliary<q_tile = 64, kv_tile = 64, warps = 16, ctas_per_sm = 1>) {
}
