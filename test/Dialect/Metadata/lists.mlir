// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Ops on tile lists, block maps and trees, in both forms, and what they refuse.
//
// RUN: rm -rf %t && split-file %s %t
// RUN: attn-opt %t/ops.mlir | FileCheck %t/ops.mlir
// RUN: attn-opt %t/ops.mlir -mlir-print-op-generic | attn-opt | FileCheck %t/ops.mlir
// RUN: attn-opt %t/errors.mlir -split-input-file -verify-diagnostics

//--- ops.mlir
// CHECK-LABEL: tile.kernel @k
tile.kernel @k(%ids: !tile.ptr<i32>, %positions: !tile.ptr<i32>, %list: !tile.ptr<i32>, %used: !tile.ptr<i32>, %rows: i32, %n: i32)
    target("sm_80") grid(dense heads 1) schedule(#tile.tiled<q_tile = 64, kv_tile = 64, warps = 1, ctas_per_sm = 16>) {
  // CHECK: metadata.init_lists %list across(%n) used(%used)
  metadata.init_lists %list across(%n) used(%used)
  // CHECK: metadata.init_lists %list across(%n) used(%used) slice(%rows)
  metadata.init_lists %list across(%n) used(%used) slice(%rows)
  // CHECK: %[[WARP:.*]] = tile.index warp
  %warp = tile.index warp
  // CHECK: %least, %largest, %none_hidden = metadata.entry_range %ids count(%[[WARP]] of 64) hidden 0
  %least, %largest, %none_hidden = metadata.entry_range %ids count(%warp of 64) hidden 0
  // CHECK: %{{.*}}, %{{.*}}, %{{.*}} = metadata.entry_range %ids count(%rows of 32) by 4{{$}}
  %a, %b, %c = metadata.entry_range %ids count(%rows of 32) by 4
  // CHECK: %least_{{.*}}, %largest_{{.*}} = metadata.load_ranges %ids[%rows] : i32, i32
  %d:2 = metadata.load_ranges %ids[%rows] : i32, i32
  %row = arith.extsi %n : i32 to i64
  // CHECK: metadata.select_tiles %positions[%{{.*}}] in %list(%n) across(%n) used(%used) from %least to %largest {
  // CHECK-NEXT: ^bb0(%j: i32):
  metadata.select_tiles %positions[%row] in %list(%n) across(%n) used(%used) from %least to %largest {
  ^bb0(%j: i32):
    %some = arith.cmpi slt, %j, %a : i32
    %all = arith.cmpi slt, %j, %b : i32
    // CHECK: tile.yield %{{.*}}, %{{.*}} : i1, i1
    tile.yield %some, %all : i1, i1
    // CHECK-NEXT: } inner {
    // CHECK-NEXT: ^bb0(%j: i32):
  } inner {
  ^bb0(%j: i32):
    %some = arith.cmpi slt, %j, %a : i32
    tile.yield %some, %some : i1, i1
    // CHECK: } groups(%least) {
    // CHECK-NEXT: ^bb0(%g: i32):
  } groups(%least) {
  ^bb0(%g: i32):
    %any = arith.cmpi slt, %g, %a : i32
    tile.yield %any, %any, %any, %g, %g : i1, i1, i1, i32, i32
    // CHECK: } chunk {
    // CHECK-NEXT: ^bb0(%from: i32, %to: i32):
  } chunk {
  ^bb0(%from: i32, %to: i32):
    tile.yield
  }
  // CHECK: tile.store_entry %list[%{{.*}}], %least
  tile.store_entry %list[%row], %least
}

// CHECK-LABEL: tile.kernel @map
tile.kernel @map(%offsets: !tile.ptr<i32>, %columns: !tile.ptr<i32>, %bits: !tile.ptr<i32>, %positions: !tile.ptr<i32>,
                 %list: !tile.ptr<i32>, %used: !tile.ptr<i32>, %rows: i32, %words: i32, %n: i32, %blocks: i32, %queue: !tile.queue)
    target("sm_80") grid(dense heads 1) schedule(#tile.tiled<q_tile = 64, kv_tile = 64, warps = 1, ctas_per_sm = 16>) {
  %block = tile.index block
  // CHECK: metadata.fill_block_bits %bits(%rows, %words) from %offsets, %columns(%n) lines(%n) cta(%block of %blocks)
  metadata.fill_block_bits %bits(%rows, %words) from %offsets, %columns(%n) lines(%n) cta(%block of %blocks)
  %row = arith.extsi %n : i32 to i64
  // CHECK: metadata.number_tree %bits, %positions, %list, %used of %offsets queries(%{{.*}}, %n) keys(%{{.*}}, %rows)
  metadata.number_tree %bits, %positions, %list, %used of %offsets queries(%row, %n) keys(%row, %rows)
  // CHECK: %runs = tile.alloc "runs" : !metadata.tree_runs<256>
  %runs = tile.alloc "runs" : !metadata.tree_runs<256>
  // CHECK: metadata.cooperative_loop %queue of %offsets(%n) longer(%rows) : !tile.ptr<i32> {
  // CHECK-NEXT: ^bb0(%ctas: !metadata.cooperative_ctas, %b: i32):
  metadata.cooperative_loop %queue of %offsets(%n) longer(%rows) : !tile.ptr<i32> {
  ^bb0(%ctas: !metadata.cooperative_ctas, %b: i32):
    // CHECK: metadata.number_tree %bits, %positions, %list, %used of %offsets queries(%{{.*}}, %b) keys(%{{.*}}, %rows) in(%runs) by %ctas : !metadata.tree_runs<256>
    metadata.number_tree %bits, %positions, %list, %used of %offsets queries(%row, %b) keys(%row, %rows) in(%runs) by %ctas : !metadata.tree_runs<256>
  }
  // CHECK: metadata.cooperative_loop %queue of %words(%n) longer(%rows) : i32 {
  metadata.cooperative_loop %queue of %words(%n) longer(%rows) : i32 {
  ^bb0(%ctas: !metadata.cooperative_ctas, %b: i32):
  }
  metadata.select_tiles %positions[%row] in %list(%n) across(%n) used(%used) from %n to %n {
  ^bb0(%j: i32):
    // CHECK: %some, %all = metadata.gathered 0 at(%j) : i1
    %some, %all = metadata.gathered 0 at(%j) : i1
    // CHECK: metadata.is_listed %offsets(%rows, %n) columns(%columns) at(%j, %n) if(%some)
    %on = metadata.is_listed %offsets(%rows, %n) columns(%columns) at(%j, %n) if(%some)
    // CHECK: metadata.is_listed %bits(%rows, %words) at(%j, %n)
    %one = metadata.is_listed %bits(%rows, %words) at(%j, %n)
    // CHECK: metadata.is_listed %bits(%rows, %words) at(%j, %n from %j)
    %near = metadata.is_listed %bits(%rows, %words) at(%j, %n from %j)
    %two = arith.andi %on, %one : i1
    %both = arith.andi %two, %near : i1
    %every = arith.andi %all, %both : i1
    tile.yield %some, %every : i1, i1
  } inner {
  ^bb0(%j: i32):
    %some, %all = metadata.gathered 0 at(%j) : i1
    tile.yield %some, %all : i1, i1
  } groups(%n) {
  ^bb0(%g: i32):
    // CHECK: %some, %all = metadata.gathered 1 at(%g) : i32
    %some, %all = metadata.gathered 1 at(%g) : i32
    %yes = arith.constant true
    tile.yield %yes, %yes, %yes, %some, %all : i1, i1, i1, i32, i32
  } chunk {
  ^bb0(%from: i32, %to: i32):
    // CHECK: metadata.gather_tiles 0 %bits(%rows, %words) at(%n to %n) tiles(%from to %to) of 64 in 128{{$}}
    metadata.gather_tiles 0 %bits(%rows, %words) at(%n to %n) tiles(%from to %to) of 64 in 128
    // CHECK: metadata.gather_tiles 1 %bits(%rows, %words) at(%n to %n) tiles(%from to %to) of 64 in 100 transposed
    metadata.gather_tiles 1 %bits(%rows, %words) at(%n to %n) tiles(%from to %to) of 64 in 100 transposed
    // CHECK: metadata.gather_tiles 2 %offsets(%rows, %n) columns(%columns) at(%n) tiles(%from to %to) of 64 in 128
    metadata.gather_tiles 2 %offsets(%rows, %n) columns(%columns) at(%n) tiles(%from to %to) of 64 in 128
    tile.yield
  }
}

//--- errors.mlir
// metadata.is_listed C1: lists with a condition,
tile.kernel @k(%x: !tile.ptr<i32>, %n: i32) target("sm_80") grid(dense heads 1) schedule(#tile.tiled<q_tile = 64, kv_tile = 64, warps = 1, ctas_per_sm = 16>) {
  // expected-error @below {{'metadata.is_listed' op expected bits without a condition, or lists with a condition and without a first column}}
  %is = metadata.is_listed %x(%n, %n) columns(%x) at(%n, %n)
}

// -----

tile.kernel @k(%x: !tile.ptr<i32>, %n: i32, %c: i1) target("sm_80") grid(dense heads 1) schedule(#tile.tiled<q_tile = 64, kv_tile = 64, warps = 1, ctas_per_sm = 16>) {
  // no first column in lists,
  // expected-error @below {{'metadata.is_listed' op expected bits without a condition, or lists}}
  %is = metadata.is_listed %x(%n, %n) columns(%x) at(%n, %n from %n) if(%c)
}

// -----

tile.kernel @k(%x: !tile.ptr<i32>, %n: i32, %c: i1) target("sm_80") grid(dense heads 1) schedule(#tile.tiled<q_tile = 64, kv_tile = 64, warps = 1, ctas_per_sm = 16>) {
  // and bits without a condition.
  // expected-error @below {{'metadata.is_listed' op expected bits without a condition, or lists}}
  %is = metadata.is_listed %x(%n, %n) at(%n, %n) if(%c)
}

// -----

// metadata.gather_tiles C1: some rows of bits,
tile.kernel @k(%x: !tile.ptr<i32>, %n: i32) target("sm_80") grid(dense heads 1) schedule(#tile.tiled<q_tile = 64, kv_tile = 64, warps = 1, ctas_per_sm = 16>) {
  // expected-error @below {{'metadata.gather_tiles' op expected rows `begin` to `end` of bits, or a row of lists that is not transposed}}
  metadata.gather_tiles 0 %x(%n, %n) at(%n) tiles(%n to %n) of 64 in 128
}

// -----

tile.kernel @k(%x: !tile.ptr<i32>, %n: i32) target("sm_80") grid(dense heads 1) schedule(#tile.tiled<q_tile = 64, kv_tile = 64, warps = 1, ctas_per_sm = 16>) {
  // one row of lists,
  // expected-error @below {{'metadata.gather_tiles' op expected rows `begin` to `end` of bits, or a row of lists}}
  metadata.gather_tiles 0 %x(%n, %n) columns(%x) at(%n to %n) tiles(%n to %n) of 64 in 128
}

// -----

tile.kernel @k(%x: !tile.ptr<i32>, %n: i32) target("sm_80") grid(dense heads 1) schedule(#tile.tiled<q_tile = 64, kv_tile = 64, warps = 1, ctas_per_sm = 16>) {
  // not transposed.
  // expected-error @below {{'metadata.gather_tiles' op expected rows `begin` to `end` of bits, or a row of lists}}
  metadata.gather_tiles 0 %x(%n, %n) columns(%x) at(%n) tiles(%n to %n) of 64 in 128 transposed
}

// -----

// metadata.gathered C1: conditions or words.
tile.kernel @k(%n: i32) target("sm_80") grid(dense heads 1) schedule(#tile.tiled<q_tile = 64, kv_tile = 64, warps = 1, ctas_per_sm = 16>) {
  // expected-error @below {{'metadata.gathered' op failed to verify that all of {some, all} have same type}}
  %some, %all = "metadata.gathered"(%n) <{number = 0 : i64}> : (i32) -> (i1, i32)
}

// -----

tile.kernel @k(%n: i32) target("sm_80") grid(dense heads 1) schedule(#tile.tiled<q_tile = 64, kv_tile = 64, warps = 1, ctas_per_sm = 16>) {
  // expected-error @below {{'metadata.gathered' op result #0 must be 1-bit signless integer or 32-bit signless integer, but got 'i64'}}
  %some, %all = metadata.gathered 0 at(%n) : i64
}

// -----

// !metadata.tree_runs C1: a positive multiple of 128.
// expected-error @below {{expected a positive multiple of 128 runs, got: 100}}
module attributes {tile.type = !metadata.tree_runs<100>} {}

// -----

// metadata.cooperative_loop C1: cooperative CTAs and a sequence.
tile.kernel @k(%queue: !tile.queue, %n: i32) target("sm_80") grid(dense heads 1) schedule(#tile.tiled<q_tile = 64, kv_tile = 64, warps = 1, ctas_per_sm = 16>) {
  // expected-error @below {{'metadata.cooperative_loop' op expected a region over cooperative CTAs and a sequence of type i32, got: 'i32'}}
  metadata.cooperative_loop %queue of %n(%n) longer(%n) : i32 {
  ^bb0(%b: i32):
  }
}

// -----

// metadata.select_tiles C1: one argument, an i32,
tile.kernel @k(%positions: !tile.ptr<i32>, %list: !tile.ptr<i32>, %used: !tile.ptr<i32>, %n: i32, %row: i64, %x: i1)
    target("sm_80") grid(dense heads 1) schedule(#tile.tiled<q_tile = 64, kv_tile = 64, warps = 1, ctas_per_sm = 16>) {
  // expected-error @below {{'metadata.select_tiles' op expected a region over a tile's number of type i32, got: 'i32', 'i32'}}
  metadata.select_tiles %positions[%row] in %list(%n) across(%n) used(%used) from %n to %n {
  ^bb0(%j: i32, %k: i32):
    tile.yield %x, %x : i1, i1
  } inner {
  ^bb0(%j: i32):
    tile.yield %x, %x : i1, i1
  } groups(%n) {
  ^bb0(%g: i32):
    tile.yield %x, %x, %x, %n, %n : i1, i1, i1, i32, i32
  } chunk {
  ^bb0(%from: i32, %to: i32):
    tile.yield
  }
}

// -----

// and two conditions.
tile.kernel @k(%positions: !tile.ptr<i32>, %list: !tile.ptr<i32>, %used: !tile.ptr<i32>, %n: i32, %row: i64, %x: i1)
    target("sm_80") grid(dense heads 1) schedule(#tile.tiled<q_tile = 64, kv_tile = 64, warps = 1, ctas_per_sm = 16>) {
  // expected-error @below {{'metadata.select_tiles' op expected to yield two conditions: is some pair visible, and are all}}
  metadata.select_tiles %positions[%row] in %list(%n) across(%n) used(%used) from %n to %n {
  ^bb0(%j: i32):
    tile.yield %x : i1
  } inner {
  ^bb0(%j: i32):
    tile.yield %x, %x : i1, i1
  } groups(%n) {
  ^bb0(%g: i32):
    tile.yield %x, %x, %x, %n, %n : i1, i1, i1, i32, i32
  } chunk {
  ^bb0(%from: i32, %to: i32):
    tile.yield
  }
}

// -----

// Of a tile inside: one argument,
tile.kernel @k(%positions: !tile.ptr<i32>, %list: !tile.ptr<i32>, %used: !tile.ptr<i32>, %n: i32, %row: i64, %x: i1)
    target("sm_80") grid(dense heads 1) schedule(#tile.tiled<q_tile = 64, kv_tile = 64, warps = 1, ctas_per_sm = 16>) {
  // expected-error @below {{'metadata.select_tiles' op expected a region over a tile's number of type i32, got: 'i32', 'i32'}}
  metadata.select_tiles %positions[%row] in %list(%n) across(%n) used(%used) from %n to %n {
  ^bb0(%j: i32):
    tile.yield %x, %x : i1, i1
  } inner {
  ^bb0(%j: i32, %k: i32):
    tile.yield %x, %x : i1, i1
  } groups(%n) {
  ^bb0(%g: i32):
    tile.yield %x, %x, %x, %n, %n : i1, i1, i1, i32, i32
  } chunk {
  ^bb0(%from: i32, %to: i32):
    tile.yield
  }
}

// -----

// and two conditions.
tile.kernel @k(%positions: !tile.ptr<i32>, %list: !tile.ptr<i32>, %used: !tile.ptr<i32>, %n: i32, %row: i64, %x: i1)
    target("sm_80") grid(dense heads 1) schedule(#tile.tiled<q_tile = 64, kv_tile = 64, warps = 1, ctas_per_sm = 16>) {
  // expected-error @below {{'metadata.select_tiles' op expected to yield two conditions of a tile inside: is some pair visible, and are all}}
  metadata.select_tiles %positions[%row] in %list(%n) across(%n) used(%used) from %n to %n {
  ^bb0(%j: i32):
    tile.yield %x, %x : i1, i1
  } inner {
  ^bb0(%j: i32):
    tile.yield %x : i1
  } groups(%n) {
  ^bb0(%g: i32):
    tile.yield %x, %x, %x, %n, %n : i1, i1, i1, i32, i32
  } chunk {
  ^bb0(%from: i32, %to: i32):
    tile.yield
  }
}

// -----

// Of a group: one argument,
tile.kernel @k(%positions: !tile.ptr<i32>, %list: !tile.ptr<i32>, %used: !tile.ptr<i32>, %n: i32, %row: i64, %x: i1)
    target("sm_80") grid(dense heads 1) schedule(#tile.tiled<q_tile = 64, kv_tile = 64, warps = 1, ctas_per_sm = 16>) {
  // expected-error @below {{'metadata.select_tiles' op expected a region over a group's number of type i32, got: 'i32', 'i32'}}
  metadata.select_tiles %positions[%row] in %list(%n) across(%n) used(%used) from %n to %n {
  ^bb0(%j: i32):
    tile.yield %x, %x : i1, i1
  } inner {
  ^bb0(%j: i32):
    tile.yield %x, %x : i1, i1
  } groups(%n) {
  ^bb0(%g: i32, %k: i32):
    tile.yield %x, %x, %x, %n, %n : i1, i1, i1, i32, i32
  } chunk {
  ^bb0(%from: i32, %to: i32):
    tile.yield
  }
}

// -----

// two conditions, and bits.
tile.kernel @k(%positions: !tile.ptr<i32>, %list: !tile.ptr<i32>, %used: !tile.ptr<i32>, %n: i32, %row: i64, %x: i1)
    target("sm_80") grid(dense heads 1) schedule(#tile.tiled<q_tile = 64, kv_tile = 64, warps = 1, ctas_per_sm = 16>) {
  // expected-error @below {{'metadata.select_tiles' op expected to yield of a group whether some pair is visible, whether it is settled and inside, and bits of its tiles}}
  metadata.select_tiles %positions[%row] in %list(%n) across(%n) used(%used) from %n to %n {
  ^bb0(%j: i32):
    tile.yield %x, %x : i1, i1
  } inner {
  ^bb0(%j: i32):
    tile.yield %x, %x : i1, i1
  } groups(%n) {
  ^bb0(%g: i32):
    tile.yield %x : i1
  } chunk {
  ^bb0(%from: i32, %to: i32):
    tile.yield
  }
}

// -----

// Of a chunk: two arguments,
tile.kernel @k(%positions: !tile.ptr<i32>, %list: !tile.ptr<i32>, %used: !tile.ptr<i32>, %n: i32, %row: i64, %x: i1)
    target("sm_80") grid(dense heads 1) schedule(#tile.tiled<q_tile = 64, kv_tile = 64, warps = 1, ctas_per_sm = 16>) {
  // expected-error @below {{'metadata.select_tiles' op expected a region over two numbers of tiles of type i32, got: 'i32'}}
  metadata.select_tiles %positions[%row] in %list(%n) across(%n) used(%used) from %n to %n {
  ^bb0(%j: i32):
    tile.yield %x, %x : i1, i1
  } inner {
  ^bb0(%j: i32):
    tile.yield %x, %x : i1, i1
  } groups(%n) {
  ^bb0(%g: i32):
    tile.yield %x, %x, %x, %n, %n : i1, i1, i1, i32, i32
  } chunk {
  ^bb0(%from: i32):
    tile.yield
  }
}

// -----

// and no result.
tile.kernel @k(%positions: !tile.ptr<i32>, %list: !tile.ptr<i32>, %used: !tile.ptr<i32>, %n: i32, %row: i64, %x: i1)
    target("sm_80") grid(dense heads 1) schedule(#tile.tiled<q_tile = 64, kv_tile = 64, warps = 1, ctas_per_sm = 16>) {
  // expected-error @below {{'metadata.select_tiles' op expected to yield nothing of a chunk}}
  metadata.select_tiles %positions[%row] in %list(%n) across(%n) used(%used) from %n to %n {
  ^bb0(%j: i32):
    tile.yield %x, %x : i1, i1
  } inner {
  ^bb0(%j: i32):
    tile.yield %x, %x : i1, i1
  } groups(%n) {
  ^bb0(%g: i32):
    tile.yield %x, %x, %x, %n, %n : i1, i1, i1, i32, i32
  } chunk {
  ^bb0(%from: i32, %to: i32):
    tile.yield %x : i1
  }
}
