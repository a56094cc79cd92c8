// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Each warpgroup walks along the query tiles that its own rows see (`own` bounds); who brings, reduces or adds, along all of the tile's.
//
// RUN: sed -e 's/tile.kv_loop .%begin, %end. tests ..0../%w = tile.index warpgroup \n %mine = arith.addi %begin, %w : i32 \n %last = arith.subi %end, %w : i32 \n tile.kv_loop [%begin, %end] tests [[0]] own [%mine, %last]/' \
// RUN:   -e 's/"K" :/"K" slots 2 :/' %S/Inputs/dq-mma.mlir > %t.mlir
// RUN: attn-opt %t.mlir -tile-assign-roles | FileCheck %s
// RUN: attn-opt %t.mlir -tile-assign-roles -tile-reload-work -tile-overlap-gradients | FileCheck %s --check-prefix=TURNED
// RUN: attn-opt %t.mlir -tile-assign-roles -tile-reload-work -tile-overlap-gradients -tile-split-kv-loop -tile-verify-async

// A tile may have more slots than the schedule says.
// CHECK: %K = tile.alloc "K" ring loaded_for_dq_mma_too : !tile.ring<2, <128x128xbf16, swizzled>>
// CHECK: %V = tile.alloc "V" : !tile.ring<1, <128x128xbf16, swizzled>>
// What is a warpgroup's own is not sent.
// CHECK: tile.publish_work %mailbox(%block, %{{[^,]*}}, %{{[^,]*}}, %{{[^,]*}}, %{{[^,]*}}) : !tile.mailbox<5>
// CHECK: tile.kv_loop [%begin, %end] tests [{{\[}}]] carry() {
// CHECK: } consumer {
// CHECK: %warpgroup = tile.index warpgroup
// CHECK-NEXT: %[[FIRST:.*]] = arith.addi %begin, %warpgroup
// CHECK-NEXT: %[[BEHIND:.*]] = arith.subi %end, %warpgroup
// Steps of which its rows see nothing: what was brought for them is given back, and their dS is 0.
// CHECK-NEXT: %[[ONE:.*]] = arith.constant 1 : i32
// CHECK-NEXT: scf.for %{{.*}} = %begin to %[[FIRST]] step %[[ONE]]  : i32 {
// CHECK-NEXT: tile.consumer_wait %Q
// CHECK-NEXT: tile.consumer_release %Q
// CHECK-NEXT: tile.consumer_wait %stats
// CHECK-NEXT: tile.consumer_release %stats
// CHECK-NEXT: tile.consumer_wait %dO
// CHECK-NEXT: tile.consumer_release %dO
// CHECK-NEXT: tile.producer_store %dS
// CHECK-NEXT: tile.producer_commit %dS
// CHECK-NEXT: }
// CHECK-NEXT: tile.kv_loop [%[[FIRST]], %[[BEHIND]]] tests [{{\[}}0]] carry() {
// CHECK: scf.for %{{.*}} = %[[BEHIND]] to %end
// CHECK: tile.producer_store %dS
// CHECK: } dq_mma {
// CHECK: tile.kv_loop [%begin, %end] tests [{{\[}}]] carry() {
// CHECK: } dq_store {
// CHECK: tile.kv_loop [%begin, %end] tests [{{\[}}]] carry() {

// Values are looked at when the first scores are under way, and their only slot is given back ahead of the last step's end.
// TURNED: } consumer {
// TURNED: tile.consumer_wait %K
// TURNED-NEXT: tile.warpgroup_rows
// TURNED: scf.for
// TURNED: tile.producer_store
// TURNED: %[[S:.*]] = tile.mma_abt %s, %K_rows
// TURNED-NEXT: %V_tile = tile.consumer_wait %V
// TURNED-NEXT: %V_rows = tile.warpgroup_rows %V_tile
// TURNED-NEXT: tile.wait %[[S]]
// TURNED: tile.kv_loop [%[[FIRST:.*]], %[[BEHIND:.*]]] tests
// TURNED-NEXT: ^bb0(%j: i32, %next: i32, %[[MORE:.*]]: i1,
// TURNED: %[[DP:.*]] = tile.mma_abt %s, %V_rows
// TURNED: tile.wait %[[DP]]
// TURNED-NEXT: tile.consumer_release %V unless(%[[MORE]])
// TURNED: tile.consumer_release %Q passed
// Behind the loop its bounds are worked out anew, of words that are recalled.
// TURNED: %[[W:.*]] = tile.index warpgroup
// TURNED: %[[AGAIN:.*]] = arith.subi %{{.*}}, %[[W]]
// TURNED: scf.for %{{.*}} = %[[AGAIN]]
