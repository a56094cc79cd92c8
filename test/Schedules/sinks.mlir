// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Sinks: behind the walk, before the division; of heads that share a tile each row's own, and of keys that are
// shared out in the first part only.
//
// RUN: attn-opt %s -attn-choose-schedule -convert-attn-to-tile -canonicalize | FileCheck %s
// RUN: sed 's/#tile.tiled/#tile.warp_specialized/' %s | attn-opt -attn-choose-schedule="target=sm_90a" -convert-attn-to-tile -canonicalize | FileCheck %s --check-prefix=SM90
// RUN: sed 's/#tile.tiled/#tile.warp_specialized/' %s | attn-translate --target=sm_90a | FileCheck %s --check-prefix=TEXT
// RUN: attn-translate %s --target=sm_80 | FileCheck %s --check-prefix=PAIRS

// CHECK-LABEL: tile.kernel @off_by_one
// CHECK: %[[ZERO:.*]] = arith.constant 0.000000e+00 : f32
// CHECK: tile.online_softmax
// CHECK: tile.add_sink %acc, %row at(%q0) : {{.*}} {
// CHECK-NEXT: tile.yield %[[ZERO]] : f32
// CHECK-NEXT: }
// CHECK-NEXT: tile.normalize
attn.problem @off_by_one mask(#attn.causal) layout(bshd) heads(8) dims(64) dtype(bf16) sink(0.0)

// CHECK-LABEL: tile.kernel @learned
// CHECK: %[[SINK:.*]] = tile.load %sinks[%h] : i32 from !tile.ptr<f32>
// CHECK-NEXT: tile.add_sink %acc, %row at(%q0) : {{.*}} {
// CHECK-NEXT: tile.yield %[[SINK]] : f32
// Rows that are computed once more have it too.
// SM90-LABEL: tile.kernel @learned
// SM90: %[[SINK:.*]] = tile.load %sinks[%h] : i32 from !tile.ptr<f32>
// SM90: tile.recompute_rows
// SM90: } sink {
// SM90-NEXT: tile.yield %[[SINK]] : f32
// TEXT: const float [[SINK:.*]] = sinks[h];
// TEXT-NEXT: attn::add_sink(acc, row, {{.*}}f, q0, [=]() {
// TEXT-NEXT: return [[SINK]];
// TEXT-NEXT: });
// TEXT: attn::recompute_rows<
// TEXT: }, attn::Unmodified(), [=]() {
// TEXT-NEXT: return [[SINK]];
attn.problem @learned mask(#attn.causal) layout(bshd) heads(8) dims(64) dtype(bf16) sink("sinks")

// CHECK-LABEL: tile.kernel @packed
// CHECK: %[[FIRST:.*]] = arith.cmpi eq, %split,
// CHECK: tile.add_sink %acc, %row at(%at heads 4) : {{.*}} {
// CHECK-NEXT: ^bb0(%[[H:.*]]: i32):
// CHECK-NEXT: %[[OWN:.*]] = tile.load %sinks[%[[H]]] : i32 from !tile.ptr<f32>
// CHECK-NEXT: %[[SCORE:.*]] = arith.select %[[FIRST]], %[[OWN]], %{{.*}} : f32
// CHECK-NEXT: tile.yield %[[SCORE]] : f32
// PAIRS: attn::add_sink(acc, row, {{.*}}f, at, [=](int head) {
attn.problem @packed mask(#attn.full) layout(bshd) heads(8, 2) dims(64) dtype(bf16) sink("sinks")
  schedule(#tile.split_kv<splits = 2, of = #tile.tiled<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1, pack_heads = 4>>)
