// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// `tile-persist`: the program becomes a loop over block numbers; places stay outside.
//
// RUN: attn-opt %s -tile-persist -split-input-file -verify-diagnostics | FileCheck %s
// RUN: attn-opt %s -tile-persist -split-input-file -verify-diagnostics -mlir-print-op-generic | attn-opt -split-input-file | FileCheck %s

// CHECK-LABEL: tile.kernel @program
// CHECK-NEXT: %acc = tile.alloc "acc"
// CHECK-NEXT: %row = tile.alloc "row"
// CHECK-NEXT: tile.persistent_loop %blocks, %queue {
// CHECK-NEXT: ^bb0(%[[BLOCK:.*]]: i32):
// What is not a place moves in, in order; the loop's number is the block's, in branches too.
// CHECK-NEXT: %[[LAST:.*]] = arith.addi %[[BLOCK]], %n
// CHECK-NEXT: tile.clear %acc
// CHECK-NEXT: %[[SOME:.*]] = arith.cmpi slt, %[[LAST]], %n
// CHECK-NEXT: scf.if %[[SOME]] {
// CHECK-NEXT: tile.store_padding %o stride(%o_row) rows(%[[BLOCK]])
// CHECK-NEXT: }
// CHECK-NEXT: tile.clear %row
// CHECK-NEXT: }
// CHECK-NEXT: }
tile.kernel @program(%o: !tile.ptr<bf16>, %o_row: i64, %n: i32, %blocks: i32, %queue: !tile.queue) target("sm_90a")
    grid(dense heads 1) schedule(#tile.warp_specialized<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
  %acc = tile.alloc "acc" : !tile.frag<64x64, 4>
  %block = tile.index block
  %last = arith.addi %block, %n : i32
  tile.clear %acc : !tile.frag<64x64, 4>
  %row = tile.alloc "row" : !tile.softmax_state<64, 4>
  %some = arith.cmpi slt, %last, %n : i32
  scf.if %some {
    %same = tile.index block
    tile.store_padding %o stride(%o_row) rows(%same) dim 64 : !tile.ptr<bf16>
  }
  tile.clear %row : !tile.softmax_state<64, 4>
}

// Nothing to do is done for each block.
// CHECK-LABEL: tile.kernel @nothing
// CHECK-NEXT: tile.persistent_loop %blocks, %queue {
// CHECK-NEXT: ^bb0(%{{.*}}: i32):
// CHECK-NEXT: }
// CHECK-NEXT: }
tile.kernel @nothing(%blocks: i32, %queue: !tile.queue) target("sm_90a") grid(dense heads 1)
    schedule(#tile.warp_specialized<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
}

// -----

// How many blocks there are is not known,
// expected-error @below {{expected arguments `blocks` and `queue` of a kernel that is to be persistent}}
tile.kernel @no_blocks(%queue: !tile.queue) target("sm_90a") grid(dense heads 1)
    schedule(#tile.warp_specialized<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
}

// -----

// or there is no counter that deals them out.
// expected-error @below {{expected arguments `blocks` and `queue` of a kernel that is to be persistent}}
tile.kernel @no_queue(%blocks: i32) target("sm_90a") grid(dense heads 1)
    schedule(#tile.warp_specialized<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
}
