// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What looks at arrays ahead of attention, in both forms, and what it refuses.
//
// RUN: rm -rf %t && split-file %s %t
// RUN: attn-opt %t/ops.mlir | FileCheck %t/ops.mlir
// RUN: attn-opt %t/ops.mlir -mlir-print-op-generic | attn-opt | FileCheck %t/ops.mlir
// RUN: attn-opt %t/errors.mlir -split-input-file -verify-diagnostics

//--- ops.mlir
// CHECK-LABEL: tile.kernel @k
tile.kernel @k(%ids: !tile.ptr<i32>, %tiles: !tile.ptr<i32>, %counts: !tile.ptr<i32>, %rows: i32, %n: i32)
    target("sm_80") grid(dense heads 1) config(<q_tile = 64, kv_tile = 64, warps = 1, blocks = 16>) {
  // CHECK: %least, %largest, %whole = tile.entry_range %ids count(%rows) hidden 0
  %least, %largest, %whole = tile.entry_range %ids count(%rows) hidden 0
  // CHECK: %{{.*}}, %{{.*}}, %{{.*}} = tile.entry_range %ids count(%rows){{$}}
  %a, %b, %c = tile.entry_range %ids count(%rows)
  %at = arith.extsi %n : i32 to i64
  // CHECK: %full, %partial = tile.select_tiles %tiles[%{{.*}}] capacity(%n) has(%n, %n) from %least to %largest {
  // CHECK-NEXT: ^bb0(%j: i32):
  %full, %partial = tile.select_tiles %tiles[%at] capacity(%n) has(%n, %n) from %least to %largest {
  ^bb0(%j: i32):
    %some = arith.cmpi slt, %j, %a : i32
    %all = arith.cmpi slt, %j, %b : i32
    // CHECK: tile.yield %{{.*}}, %{{.*}} : i1, i1
    tile.yield %some, %all : i1, i1
    // CHECK-NEXT: } groups(%least) {
    // CHECK-NEXT: ^bb0(%g: i32):
  } groups(%least) {
  ^bb0(%g: i32):
    %any = arith.cmpi slt, %g, %a : i32
    tile.yield %any : i1
  }
  // CHECK: tile.set %counts[%{{.*}}], %full
  tile.set %counts[%at], %full
}

// CHECK-LABEL: tile.kernel @map
tile.kernel @map(%offsets: !tile.ptr<i32>, %columns: !tile.ptr<i32>, %bits: !tile.ptr<i32>, %tiles: !tile.ptr<i32>, %rows: i32, %words: i32, %n: i32, %blocks: i32)
    target("sm_80") grid(dense heads 1) config(<q_tile = 64, kv_tile = 64, warps = 1, blocks = 16>) {
  %block = tile.block_index
  // CHECK: tile.mark_blocks %bits(%rows x %words) from %offsets, %columns(%n) lines(%n) block(%block of %blocks)
  tile.mark_blocks %bits(%rows x %words) from %offsets, %columns(%n) lines(%n) block(%block of %blocks)
  %at = arith.extsi %n : i32 to i64
  %full, %partial = tile.select_tiles %tiles[%at] capacity(%n) has(%n, %n) from %n to %n {
  ^bb0(%j: i32):
    // CHECK: tile.listed_in %bits(%rows x %words) at(%j to %n, %j to %n)
    %some = tile.listed_in %bits(%rows x %words) at(%j to %n, %j to %n)
    // CHECK: tile.listed_in all %bits(%rows x %words) at(%j to %n, %j to %n)
    %all = tile.listed_in all %bits(%rows x %words) at(%j to %n, %j to %n)
    // CHECK: tile.listed %bits(%rows x %words) at(%j, %n)
    %one = tile.listed %bits(%rows x %words) at(%j, %n)
    %every = arith.andi %all, %one : i1
    tile.yield %some, %every : i1, i1
  } groups(%n) {
  ^bb0(%g: i32):
    %yes = arith.constant true
    tile.yield %yes : i1
  }
}

//--- errors.mlir
// tile.select_tiles C1: one argument, an i32,
tile.kernel @k(%tiles: !tile.ptr<i32>, %n: i32, %at: i64, %x: i1)
    target("sm_80") grid(dense heads 1) config(<q_tile = 64, kv_tile = 64, warps = 1, blocks = 16>) {
  // expected-error @below {{'tile.select_tiles' op expected a region over a tile's number of type i32, got: 'i32', 'i32'}}
  %full, %partial = tile.select_tiles %tiles[%at] capacity(%n) has(%n, %n) from %n to %n {
  ^bb0(%j: i32, %k: i32):
    tile.yield %x, %x : i1, i1
  } groups(%n) {
  ^bb0(%g: i32):
    tile.yield %x : i1
  }
}

// -----

// and two conditions.
tile.kernel @k(%tiles: !tile.ptr<i32>, %n: i32, %at: i64, %x: i1)
    target("sm_80") grid(dense heads 1) config(<q_tile = 64, kv_tile = 64, warps = 1, blocks = 16>) {
  // expected-error @below {{'tile.select_tiles' op expected to yield two conditions: is some pair visible, and are all}}
  %full, %partial = tile.select_tiles %tiles[%at] capacity(%n) has(%n, %n) from %n to %n {
  ^bb0(%j: i32):
    tile.yield %x : i1
  } groups(%n) {
  ^bb0(%g: i32):
    tile.yield %x : i1
  }
}

// -----

// Of a group: one argument,
tile.kernel @k(%tiles: !tile.ptr<i32>, %n: i32, %at: i64, %x: i1)
    target("sm_80") grid(dense heads 1) config(<q_tile = 64, kv_tile = 64, warps = 1, blocks = 16>) {
  // expected-error @below {{'tile.select_tiles' op expected a region over a group's number of type i32, got: 'i32', 'i32'}}
  %full, %partial = tile.select_tiles %tiles[%at] capacity(%n) has(%n, %n) from %n to %n {
  ^bb0(%j: i32):
    tile.yield %x, %x : i1, i1
  } groups(%n) {
  ^bb0(%g: i32, %k: i32):
    tile.yield %x : i1
  }
}

// -----

// and one condition.
tile.kernel @k(%tiles: !tile.ptr<i32>, %n: i32, %at: i64, %x: i1)
    target("sm_80") grid(dense heads 1) config(<q_tile = 64, kv_tile = 64, warps = 1, blocks = 16>) {
  // expected-error @below {{'tile.select_tiles' op expected to yield a condition of a group: is some pair visible}}
  %full, %partial = tile.select_tiles %tiles[%at] capacity(%n) has(%n, %n) from %n to %n {
  ^bb0(%j: i32):
    tile.yield %x, %x : i1, i1
  } groups(%n) {
  ^bb0(%g: i32):
    tile.yield %x, %x : i1, i1
  }
}
