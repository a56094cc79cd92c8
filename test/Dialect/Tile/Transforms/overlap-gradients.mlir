// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// `tile-overlap-gradients`: a step ends with the scores of the next query tile and with dK of this one.
//
// RUN: attn-opt %S/Inputs/dq-mma.mlir -tile-assign-roles -tile-overlap-gradients | FileCheck %s
// RUN: attn-opt %S/Inputs/dq-mma.mlir -tile-assign-roles -tile-overlap-gradients -tile-split-kv-loop -tile-verify-async
// Kernels without a reducer are left alone.
// RUN: sed 's/, dq_columns = 64//' %S/Inputs/dq-mma.mlir | attn-opt -tile-assign-roles | attn-opt > %t.mlir
// RUN: attn-opt %t.mlir -tile-overlap-gradients | diff %t.mlir -

// Who brings query tiles is left alone: a box ends where the sequence does, so nothing has to be done to a tile ahead of its scores.
// CHECK: producer {
// CHECK: tile.kv_loop
// CHECK-NEXT: ^bb0(%[[J:.*]]: i32, %{{.*}}: i32, %{{.*}}: i1):
// CHECK-NEXT: %[[LEFT:.*]] = arith.subi %[[N:.*]], %[[J]]
// CHECK-NEXT: tile.producer_load %Q, %q_map at(%[[J]], %[[N]]) rows(%[[LEFT]]) : {{.*}}, !tile.tensor_map<64xbf16, packed>
// CHECK: tile.producer_load %dO, %q_map at(%[[J]], %[[N]]) rows(%[[LEFT]]) : {{.*}}, !tile.tensor_map<64xbf16, packed>
// CHECK: } consumer {
// What warpgroups read of K and V is found once,
// CHECK: %K_tile = tile.consumer_wait %K
// CHECK-NEXT: %K_rows = tile.warpgroup_rows %K_tile
// CHECK-NEXT: %V_tile = tile.consumer_wait %V
// CHECK-NEXT: %V_rows = tile.warpgroup_rows %V_tile
// and the first scores come before the loop. If there is no tile, K stands in for it.
// CHECK-NEXT: %[[ANY:.*]] = arith.cmpi slt, %[[BEGIN:.*]], %{{.*}}
// CHECK-NEXT: %[[FIRST:.*]] = tile.consumer_wait %Q if(%[[ANY]]) else(%K_tile
// CHECK-NEXT: %[[S:.*]] = tile.mma_abt %s, %K_rows, %[[FIRST]] :
// CHECK-NEXT: tile.wait %[[S]]
// CHECK-NEXT: %[[NONE:.*]] = tile.null_product

// CHECK-NEXT: %[[LAST:.*]] = tile.kv_loop {{.*}} carry(%[[NONE]] : !tile.token<product>) {
// CHECK-NEXT: ^bb0(%[[J:.*]]: i32, %[[NEXT:.*]]: i32, %[[MORE:.*]]: i1, %[[BEFORE:.*]]: !tile.token<product>):
// CHECK-NOT: tile.consumer_wait %Q
// CHECK: tile.probabilities
// dK of the step before has read what is rounded now: it is waited for, and its query tile given back.
// CHECK: %[[LATER:.*]] = arith.cmpi ne, %[[J]], %[[BEGIN]]
// CHECK-NEXT: tile.wait %[[BEFORE]]
// CHECK-NEXT: tile.consumer_release %Q passed when(%[[LATER]])
// CHECK-NEXT: tile.convert %p, %s {at_once}
// CHECK: tile.mma_abt %s, %V_rows
// Statistics are given back behind the fence that shows dS.
// CHECK-NOT: tile.consumer_release %stats
// CHECK: tile.producer_store %dS
// CHECK-NEXT: %Q_previous = tile.consumer_advance %Q
// CHECK-NEXT: %[[Q:.*]] = tile.consumer_wait %Q if(%[[MORE]]) else(%Q_previous
// CHECK-NEXT: %[[S:.*]] = tile.mma_abt %s, %K_rows, %[[Q]] :
// CHECK-NEXT: %[[DK:.*]] = tile.mma_ab %dK, %p, %Q_previous
// CHECK-NEXT: tile.producer_commit %dS
// CHECK-NEXT: tile.consumer_release %stats fenced
// CHECK-NEXT: tile.wait %[[S]]
// CHECK-NEXT: tile.yield %[[DK]]
// CHECK-NEXT: }
// CHECK-NEXT: tile.wait %[[LAST]]
// CHECK-NEXT: tile.consumer_release %Q passed when(%[[ANY]])
