// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// `tile-recall-in-steps`: beside a reducer, what a step wants of the message is read where it is wanted.
//
// RUN: attn-opt %S/Inputs/reducer.mlir -tile-assign-roles -tile-recall-words -tile-overlap-gradients -tile-split-kv-loop \
// RUN:   -canonicalize -cse -tile-recall-in-steps | FileCheck %s
// RUN: attn-opt %S/Inputs/reducer.mlir -tile-assign-roles -tile-recall-words -tile-overlap-gradients -tile-split-kv-loop \
// RUN:   -tile-recall-in-steps -tile-verify-async
// Without a reducer there are registers for them.
// RUN: sed 's/, dq_columns = 64//' %S/Inputs/reducer.mlir | attn-opt -tile-assign-roles -tile-recall-words -tile-split-kv-loop | attn-opt > %t.mlir
// RUN: attn-opt %t.mlir -tile-recall-in-steps | diff %t.mlir -

// CHECK: } consumer {
// CHECK: ^bb0(%{{.*}}: i32, %[[K0:.*]]: i32, %[[BOUND:.*]]: i32, %[[BEGIN:.*]]: i32, %[[END:.*]]: i32
// The loop's bounds have registers anyway.
// CHECK: scf.for %[[J:.*]] = %[[BEGIN]] to %[[END]]
// CHECK-NOT: tile.recall %feed[3]
// CHECK-NOT: tile.recall %feed[4]
// A region's words are read before it,
// CHECK: %[[HERE:.*]] = tile.recall %feed[1]
// CHECK: %[[SEEN:.*]] = tile.recall %feed[2]
// CHECK: tile.keep %s at(%[[HERE]], %[[J]]) turned
// CHECK: arith.cmpi slt, %{{.*}}, %[[SEEN]]
// and where nothing follows from a position, it is read for nobody.
// CHECK-NOT: tile.recall
// CHECK: tile.probabilities %s, %{{.*}} at(%[[K0]], %[[J]])
// CHECK-NOT: tile.recall
// CHECK: scf.yield
