// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// `tile-reload-in-steps`: beside a reducer, what a step wants of the message is read where it is wanted.
//
// RUN: attn-opt %S/Inputs/dq-mma.mlir -tile-assign-roles -tile-reload-work -tile-overlap-gradients -tile-split-kv-loop \
// RUN:   -canonicalize -cse -tile-reload-in-steps | FileCheck %s
// RUN: attn-opt %S/Inputs/dq-mma.mlir -tile-assign-roles -tile-reload-work -tile-overlap-gradients -tile-split-kv-loop \
// RUN:   -tile-reload-in-steps -tile-verify-async
// Without a reducer there are registers for them.
// RUN: sed 's/, dq_columns = 64//' %S/Inputs/dq-mma.mlir | attn-opt -tile-assign-roles -tile-reload-work -tile-split-kv-loop | attn-opt > %t.mlir
// RUN: attn-opt %t.mlir -tile-reload-in-steps | diff %t.mlir -

// CHECK: } consumer {
// CHECK: ^bb0(%{{.*}}: i32, %[[K0:.*]]: i32, %[[BOUND:.*]]: i32, %[[BEGIN:.*]]: i32, %[[END:.*]]: i32
// The loop's bounds have registers anyway.
// CHECK: scf.for %[[J:.*]] = %[[BEGIN]] to %[[END]]
// CHECK-NOT: tile.reload_work %mailbox[3]
// CHECK-NOT: tile.reload_work %mailbox[4]
// A region's words are read before it,
// CHECK: %[[HERE:.*]] = tile.reload_work %mailbox[1]
// CHECK: %[[SEEN:.*]] = tile.reload_work %mailbox[2]
// CHECK: tile.apply_mask %s at(%[[HERE]], %[[J]]) transposed
// CHECK: arith.cmpi slt, %{{.*}}, %[[SEEN]]
// and where nothing follows from a position, it is read for nobody.
// CHECK-NOT: tile.reload_work
// CHECK: tile.probabilities %s, %{{.*}} at(%[[K0]], %[[J]])
// CHECK-NOT: tile.reload_work
// CHECK: scf.yield
