// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What kernels of rows and steps on tables refuse: constraints, by number.
//
// RUN: attn-opt %s -split-input-file -verify-diagnostics

// tile.kernel C3: clusters of 1 to 16 blocks,
// expected-error @below {{'tile.kernel' op expected clusters of 1 to 16 blocks for target "sm_90a", got: 17}}
tile.kernel @k() target("sm_90a") grid(rows cluster 17) schedule(#tile.auxiliary<q_tile = 64, kv_tile = 64, warps = 16, blocks = 1>) {
}

// -----

// expected-error @below {{got: 0}}
tile.kernel @k() target("sm_90a") grid(rows cluster 0) schedule(#tile.auxiliary<q_tile = 64, kv_tile = 64, warps = 16, blocks = 1>) {
}

// -----

// C3: of 1, but for sm_90a.
// expected-error @below {{'tile.kernel' op expected clusters of 1 to 1 blocks for target "sm_80", got: 2}}
tile.kernel @k() target("sm_80") grid(rows cluster 2) schedule(#tile.auxiliary<q_tile = 64, kv_tile = 64, warps = 16, blocks = 1>) {
}

// -----

// expected-error @below {{for target "cpu", got: 16}}
tile.kernel @k() target("cpu") grid(rows cluster 16) schedule(#tile.auxiliary<q_tile = 64, kv_tile = 64, warps = 16, blocks = 1>) {
}

// -----

// expected-error @below {{expected grid `dense`, `packed` or `rows`, got: columns}}
tile.kernel @k() target("cpu") grid(columns cluster 1) schedule(#tile.auxiliary<q_tile = 64, kv_tile = 64, warps = 16, blocks = 1>) {
}

// -----

// !tile.segment_table C1: segments is from 1 to 2048, cluster from 1 to 16.
// expected-error @below {{expected a table of 1 to 2048 segments for clusters of 1 to 16 blocks, got: 0, 16}}
module attributes {tile.type = !tile.segment_table<0, 16>} {}

// -----

// expected-error @below {{got: 2049, 1}}
module attributes {tile.type = !tile.segment_table<2049, 1>} {}

// -----

// expected-error @below {{got: 64, 0}}
module attributes {tile.type = !tile.segment_table<64, 0>} {}

// -----

// expected-error @below {{got: 64, 17}}
module attributes {tile.type = !tile.segment_table<64, 17>} {}

// -----

tile.kernel @k(%ids: !tile.ptr<i32>, %n: i32) target("cpu") grid(rows cluster 1)
    schedule(#tile.auxiliary<q_tile = 64, kv_tile = 64, warps = 16, blocks = 1>) {
  %table = tile.alloc "table" : !tile.segment_table<4, 1>
  %q = tile.tokens %ids row(%n) count(%n)
  // tile.bound_segments C1: six arguments,
  // expected-error @below {{'tile.bound_segments' op expected a region over 6 numbers of type i32, got: 'i32'}}
  tile.bound_segments %table, %q : !tile.segment_table<4, 1> {
  ^bb0(%a: i32):
    tile.yield %a, %a, %a : i32, i32, i32
  }
}

// -----

tile.kernel @k(%ids: !tile.ptr<i32>, %n: i32) target("cpu") grid(rows cluster 1)
    schedule(#tile.auxiliary<q_tile = 64, kv_tile = 64, warps = 16, blocks = 1>) {
  %table = tile.alloc "table" : !tile.segment_table<4, 1>
  %q = tile.tokens %ids row(%n) count(%n)
  // three numbers,
  // expected-error @below {{'tile.bound_segments' op expected to yield three numbers of type i32}}
  tile.bound_segments %table, %q : !tile.segment_table<4, 1> {
  ^bb0(%a: i32, %b: i32, %c: i32, %d: i32, %e: i32, %f: i32):
    tile.yield %a, %b : i32, i32
  }
}

// -----

tile.kernel @k(%ids: !tile.ptr<i32>, %n: i32, %wide: i64) target("cpu") grid(rows cluster 1)
    schedule(#tile.auxiliary<q_tile = 64, kv_tile = 64, warps = 16, blocks = 1>) {
  %table = tile.alloc "table" : !tile.segment_table<4, 1>
  %q = tile.tokens %ids row(%n) count(%n)
  // all i32.
  // expected-error @below {{'tile.bound_segments' op expected to yield three numbers of type i32}}
  tile.bound_segments %table, %q : !tile.segment_table<4, 1> {
  ^bb0(%a: i32, %b: i32, %c: i32, %d: i32, %e: i32, %f: i32):
    tile.yield %a, %b, %wide : i32, i32, i64
  }
}

// -----

tile.kernel @k(%ids: !tile.ptr<i32>, %n: i32) target("cpu") grid(rows cluster 1)
    schedule(#tile.auxiliary<q_tile = 64, kv_tile = 64, warps = 16, blocks = 1>) {
  %table = tile.alloc "table" : !tile.segment_table<4, 1>
  %q = tile.tokens %ids row(%n) count(%n)
  // tile.check_segments C1: one or two pairs.
  // expected-error @below {{'tile.check_segments' op expected to yield one or two pairs of type i32}}
  tile.check_segments %table, %q, %q : !tile.segment_table<4, 1> {
  ^bb0(%a: i32, %b: i32, %c: i32):
    tile.yield %a, %b, %c : i32, i32, i32
  }
}

// -----

tile.kernel @k(%ids: !tile.ptr<i32>, %n: i32) target("cpu") grid(rows cluster 1)
    schedule(#tile.auxiliary<q_tile = 64, kv_tile = 64, warps = 16, blocks = 1>) {
  %table = tile.alloc "table" : !tile.segment_table<4, 1>
  %q = tile.tokens %ids row(%n) count(%n)
  // expected-error @below {{'tile.check_segments' op expected a region over 3 numbers of type i32}}
  tile.check_segments %table, %q, %q : !tile.segment_table<4, 1> {
  ^bb0(%a: i32, %b: i32):
    tile.yield %a, %b : i32, i32
  }
}

// -----

tile.kernel @k(%ids: !tile.ptr<i32>, %n: i32) target("cpu") grid(rows cluster 1)
    schedule(#tile.auxiliary<q_tile = 64, kv_tile = 64, warps = 16, blocks = 1>) {
  %table = tile.alloc "table" : !tile.segment_table<4, 1>
  %q = tile.tokens %ids row(%n) count(%n)
  // tile.list_query_tiles C1: one number.
  // expected-error @below {{'tile.list_query_tiles' op expected to yield one number of type i32}}
  tile.list_query_tiles %table, %q, %q rows(%n) of(%ids, %ids, %ids) tile 16 to(%ids, %ids) : !tile.segment_table<4, 1> {
  ^bb0(%a: i32, %b: i32):
    tile.yield %a, %b : i32, i32
  }
}

// -----

tile.kernel @k(%ids: !tile.ptr<bf16>, %n: i32) target("cpu") grid(rows cluster 1)
    schedule(#tile.auxiliary<q_tile = 64, kv_tile = 64, warps = 16, blocks = 1>) {
  // Ids are i32.
  // expected-error @below {{operand #0 must be pointer to i32, but got '!tile.ptr<bf16>'}}
  %q = "tile.tokens"(%ids, %n, %n) <{operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>}> : (!tile.ptr<bf16>, i32, i32) -> !tile.tokens
}
