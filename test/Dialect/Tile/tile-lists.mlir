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
tile.kernel @k(%ids: !tile.ptr<i32>, %visits: !tile.ptr<i32>, %list: !tile.ptr<i32>, %taken: !tile.ptr<i32>, %rows: i32, %n: i32)
    target("sm_80") grid(dense heads 1) schedule(#tile.tiled<q_tile = 64, kv_tile = 64, warps = 1, blocks = 16>) {
  // CHECK: tile.init_lists %list across(%n) taken(%taken)
  tile.init_lists %list across(%n) taken(%taken)
  // CHECK: tile.init_lists %list across(%n) taken(%taken) piece(%rows)
  tile.init_lists %list across(%n) taken(%taken) piece(%rows)
  // CHECK: %[[WARP:.*]] = tile.index warp
  %warp = tile.index warp
  // CHECK: %least, %largest, %whole = tile.entry_range %ids count(%[[WARP]] of 64) hidden 0
  %least, %largest, %whole = tile.entry_range %ids count(%warp of 64) hidden 0
  // CHECK: %{{.*}}, %{{.*}}, %{{.*}} = tile.entry_range %ids count(%rows of 32) by 4{{$}}
  %a, %b, %c = tile.entry_range %ids count(%rows of 32) by 4
  // CHECK: %least_{{.*}}, %largest_{{.*}} = tile.load_ranges %ids[%rows] : i32, i32
  %d:2 = tile.load_ranges %ids[%rows] : i32, i32
  %row = arith.extsi %n : i32 to i64
  // CHECK: tile.select_tiles %visits[%{{.*}}] in %list(%n) across(%n) taken(%taken) from %least to %largest {
  // CHECK-NEXT: ^bb0(%j: i32):
  tile.select_tiles %visits[%row] in %list(%n) across(%n) taken(%taken) from %least to %largest {
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
tile.kernel @map(%offsets: !tile.ptr<i32>, %columns: !tile.ptr<i32>, %bits: !tile.ptr<i32>, %visits: !tile.ptr<i32>,
                 %list: !tile.ptr<i32>, %taken: !tile.ptr<i32>, %rows: i32, %words: i32, %n: i32, %blocks: i32, %queue: !tile.queue)
    target("sm_80") grid(dense heads 1) schedule(#tile.tiled<q_tile = 64, kv_tile = 64, warps = 1, blocks = 16>) {
  %block = tile.index block
  // CHECK: tile.fill_block_bits %bits(%rows x %words) from %offsets, %columns(%n) lines(%n) block(%block of %blocks)
  tile.fill_block_bits %bits(%rows x %words) from %offsets, %columns(%n) lines(%n) block(%block of %blocks)
  %row = arith.extsi %n : i32 to i64
  // CHECK: tile.number_tree %bits, %visits, %list, %taken of %offsets queries(%{{.*}}, %n) keys(%{{.*}}, %rows)
  tile.number_tree %bits, %visits, %list, %taken of %offsets queries(%row, %n) keys(%row, %rows)
  // CHECK: %forest = tile.alloc "forest" : !tile.tree_runs<256>
  %forest = tile.alloc "forest" : !tile.tree_runs<256>
  // CHECK: tile.cooperative_loop %queue of %offsets(%n) longer(%rows) : !tile.ptr<i32> {
  // CHECK-NEXT: ^bb0(%team: !tile.cooperative_ctas, %b: i32):
  tile.cooperative_loop %queue of %offsets(%n) longer(%rows) : !tile.ptr<i32> {
  ^bb0(%team: !tile.cooperative_ctas, %b: i32):
    // CHECK: tile.number_tree %bits, %visits, %list, %taken of %offsets queries(%{{.*}}, %b) keys(%{{.*}}, %rows) in(%forest) by %team : !tile.tree_runs<256>
    tile.number_tree %bits, %visits, %list, %taken of %offsets queries(%row, %b) keys(%row, %rows) in(%forest) by %team : !tile.tree_runs<256>
  }
  // CHECK: tile.cooperative_loop %queue of %words(%n) longer(%rows) : i32 {
  tile.cooperative_loop %queue of %words(%n) longer(%rows) : i32 {
  ^bb0(%team: !tile.cooperative_ctas, %b: i32):
  }
  tile.select_tiles %visits[%row] in %list(%n) across(%n) taken(%taken) from %n to %n {
  ^bb0(%j: i32):
    // CHECK: %some, %all = tile.gathered 0 at(%j)
    %some, %all = tile.gathered 0 at(%j)
    // CHECK: tile.is_in_list %offsets(%rows) of %columns(%n) at(%j, %n) if(%some)
    %on = tile.is_in_list %offsets(%rows) of %columns(%n) at(%j, %n) if(%some)
    // CHECK: tile.block_bit %bits(%rows x %words) at(%j, %n)
    %one = tile.block_bit %bits(%rows x %words) at(%j, %n)
    // CHECK: tile.block_bit %bits(%rows x %words) at(%j, %n from %j)
    %near = tile.block_bit %bits(%rows x %words) at(%j, %n from %j)
    %two = arith.andi %on, %one : i1
    %both = arith.andi %two, %near : i1
    %every = arith.andi %all, %both : i1
    tile.yield %some, %every : i1, i1
  } inner {
  ^bb0(%j: i32):
    %some, %all = tile.gathered 0 at(%j)
    tile.yield %some, %all : i1, i1
  } groups(%n) {
  ^bb0(%g: i32):
    // CHECK: %some, %all = tile.gathered_bits 1 at(%g)
    %some, %all = tile.gathered_bits 1 at(%g)
    %yes = arith.constant true
    tile.yield %yes, %yes, %yes, %some, %all : i1, i1, i1, i32, i32
  } chunk {
  ^bb0(%from: i32, %to: i32):
    // CHECK: tile.gather_block_tiles 0 %bits(%rows x %words) at(%n to %n) tiles(%from to %to) of 64 in 128{{$}}
    tile.gather_block_tiles 0 %bits(%rows x %words) at(%n to %n) tiles(%from to %to) of 64 in 128
    // CHECK: tile.gather_block_tiles 1 %bits(%rows x %words) at(%n to %n) tiles(%from to %to) of 64 in 100 transposed
    tile.gather_block_tiles 1 %bits(%rows x %words) at(%n to %n) tiles(%from to %to) of 64 in 100 transposed
    // CHECK: tile.gather_list_tiles 2 %offsets(%rows) of %columns(%n) at(%n) tiles(%from to %to) of 64 in 128
    tile.gather_list_tiles 2 %offsets(%rows) of %columns(%n) at(%n) tiles(%from to %to) of 64 in 128
    tile.yield
  }
}

//--- errors.mlir
// !tile.tree_runs C1: a positive multiple of 128.
// expected-error @below {{expected a positive multiple of 128 runs, got: 100}}
module attributes {tile.type = !tile.tree_runs<100>} {}

// -----

// tile.cooperative_loop C1: a team and a sequence.
tile.kernel @k(%queue: !tile.queue, %n: i32) target("sm_80") grid(dense heads 1) schedule(#tile.tiled<q_tile = 64, kv_tile = 64, warps = 1, blocks = 16>) {
  // expected-error @below {{'tile.cooperative_loop' op expected a region over a team and a sequence of type i32, got: 'i32'}}
  tile.cooperative_loop %queue of %n(%n) longer(%n) : i32 {
  ^bb0(%b: i32):
  }
}

// -----

// tile.select_tiles C1: one argument, an i32,
tile.kernel @k(%visits: !tile.ptr<i32>, %list: !tile.ptr<i32>, %taken: !tile.ptr<i32>, %n: i32, %row: i64, %x: i1)
    target("sm_80") grid(dense heads 1) schedule(#tile.tiled<q_tile = 64, kv_tile = 64, warps = 1, blocks = 16>) {
  // expected-error @below {{'tile.select_tiles' op expected a region over a tile's number of type i32, got: 'i32', 'i32'}}
  tile.select_tiles %visits[%row] in %list(%n) across(%n) taken(%taken) from %n to %n {
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
tile.kernel @k(%visits: !tile.ptr<i32>, %list: !tile.ptr<i32>, %taken: !tile.ptr<i32>, %n: i32, %row: i64, %x: i1)
    target("sm_80") grid(dense heads 1) schedule(#tile.tiled<q_tile = 64, kv_tile = 64, warps = 1, blocks = 16>) {
  // expected-error @below {{'tile.select_tiles' op expected to yield two conditions: is some pair visible, and are all}}
  tile.select_tiles %visits[%row] in %list(%n) across(%n) taken(%taken) from %n to %n {
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
tile.kernel @k(%visits: !tile.ptr<i32>, %list: !tile.ptr<i32>, %taken: !tile.ptr<i32>, %n: i32, %row: i64, %x: i1)
    target("sm_80") grid(dense heads 1) schedule(#tile.tiled<q_tile = 64, kv_tile = 64, warps = 1, blocks = 16>) {
  // expected-error @below {{'tile.select_tiles' op expected a region over a tile's number of type i32, got: 'i32', 'i32'}}
  tile.select_tiles %visits[%row] in %list(%n) across(%n) taken(%taken) from %n to %n {
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
tile.kernel @k(%visits: !tile.ptr<i32>, %list: !tile.ptr<i32>, %taken: !tile.ptr<i32>, %n: i32, %row: i64, %x: i1)
    target("sm_80") grid(dense heads 1) schedule(#tile.tiled<q_tile = 64, kv_tile = 64, warps = 1, blocks = 16>) {
  // expected-error @below {{'tile.select_tiles' op expected to yield two conditions of a tile inside: is some pair visible, and are all}}
  tile.select_tiles %visits[%row] in %list(%n) across(%n) taken(%taken) from %n to %n {
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
tile.kernel @k(%visits: !tile.ptr<i32>, %list: !tile.ptr<i32>, %taken: !tile.ptr<i32>, %n: i32, %row: i64, %x: i1)
    target("sm_80") grid(dense heads 1) schedule(#tile.tiled<q_tile = 64, kv_tile = 64, warps = 1, blocks = 16>) {
  // expected-error @below {{'tile.select_tiles' op expected a region over a group's number of type i32, got: 'i32', 'i32'}}
  tile.select_tiles %visits[%row] in %list(%n) across(%n) taken(%taken) from %n to %n {
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
tile.kernel @k(%visits: !tile.ptr<i32>, %list: !tile.ptr<i32>, %taken: !tile.ptr<i32>, %n: i32, %row: i64, %x: i1)
    target("sm_80") grid(dense heads 1) schedule(#tile.tiled<q_tile = 64, kv_tile = 64, warps = 1, blocks = 16>) {
  // expected-error @below {{'tile.select_tiles' op expected to yield of a group whether some pair is visible, whether it is settled and inside, and bits of its tiles}}
  tile.select_tiles %visits[%row] in %list(%n) across(%n) taken(%taken) from %n to %n {
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
tile.kernel @k(%visits: !tile.ptr<i32>, %list: !tile.ptr<i32>, %taken: !tile.ptr<i32>, %n: i32, %row: i64, %x: i1)
    target("sm_80") grid(dense heads 1) schedule(#tile.tiled<q_tile = 64, kv_tile = 64, warps = 1, blocks = 16>) {
  // expected-error @below {{'tile.select_tiles' op expected a region over two numbers of tiles of type i32, got: 'i32'}}
  tile.select_tiles %visits[%row] in %list(%n) across(%n) taken(%taken) from %n to %n {
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
tile.kernel @k(%visits: !tile.ptr<i32>, %list: !tile.ptr<i32>, %taken: !tile.ptr<i32>, %n: i32, %row: i64, %x: i1)
    target("sm_80") grid(dense heads 1) schedule(#tile.tiled<q_tile = 64, kv_tile = 64, warps = 1, blocks = 16>) {
  // expected-error @below {{'tile.select_tiles' op expected to yield nothing of a chunk}}
  tile.select_tiles %visits[%row] in %list(%n) across(%n) taken(%taken) from %n to %n {
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
