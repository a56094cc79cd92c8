// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What tables of segments and the steps on them refuse: constraints, by number.
//
// RUN: attn-opt %s -split-input-file -verify-diagnostics

// !metadata.segment_table C1: segments is from 1 to 2048, cluster from 1 to 16.
// expected-error @below {{expected a table of 1 to 2048 segments for clusters of 1 to 16 CTAs, got: 0, 16}}
module attributes {tile.type = !metadata.segment_table<0, 16>} {}

// -----

// expected-error @below {{got: 2049, 1}}
module attributes {tile.type = !metadata.segment_table<2049, 1>} {}

// -----

// expected-error @below {{got: 64, 0}}
module attributes {tile.type = !metadata.segment_table<64, 0>} {}

// -----

// expected-error @below {{got: 64, 17}}
module attributes {tile.type = !metadata.segment_table<64, 17>} {}

// -----

tile.kernel @k(%ids: !tile.ptr<i32>, %n: i32) target("cpu") grid(rows cluster 1)
    schedule(#tile.auxiliary<q_tile = 64, kv_tile = 64, warps = 16, ctas_per_sm = 1>) {
  %table = tile.alloc "table" : !metadata.segment_table<4, 1>
  %q = metadata.tokens %ids row(%n) count(%n)
  // metadata.bound_segments C1: six arguments,
  // expected-error @below {{'metadata.bound_segments' op expected a region over 6 numbers of type i32, got: 'i32'}}
  metadata.bound_segments %table, %q : !metadata.segment_table<4, 1> {
  ^bb0(%a: i32):
    tile.yield %a, %a, %a : i32, i32, i32
  }
}

// -----

tile.kernel @k(%ids: !tile.ptr<i32>, %n: i32) target("cpu") grid(rows cluster 1)
    schedule(#tile.auxiliary<q_tile = 64, kv_tile = 64, warps = 16, ctas_per_sm = 1>) {
  %table = tile.alloc "table" : !metadata.segment_table<4, 1>
  %q = metadata.tokens %ids row(%n) count(%n)
  // three numbers,
  // expected-error @below {{'metadata.bound_segments' op expected to yield three numbers of type i32}}
  metadata.bound_segments %table, %q : !metadata.segment_table<4, 1> {
  ^bb0(%a: i32, %b: i32, %c: i32, %d: i32, %e: i32, %f: i32):
    tile.yield %a, %b : i32, i32
  }
}

// -----

tile.kernel @k(%ids: !tile.ptr<i32>, %n: i32, %wide: i64) target("cpu") grid(rows cluster 1)
    schedule(#tile.auxiliary<q_tile = 64, kv_tile = 64, warps = 16, ctas_per_sm = 1>) {
  %table = tile.alloc "table" : !metadata.segment_table<4, 1>
  %q = metadata.tokens %ids row(%n) count(%n)
  // all i32.
  // expected-error @below {{'metadata.bound_segments' op expected to yield three numbers of type i32}}
  metadata.bound_segments %table, %q : !metadata.segment_table<4, 1> {
  ^bb0(%a: i32, %b: i32, %c: i32, %d: i32, %e: i32, %f: i32):
    tile.yield %a, %b, %wide : i32, i32, i64
  }
}

// -----

tile.kernel @k(%ids: !tile.ptr<i32>, %n: i32) target("cpu") grid(rows cluster 1)
    schedule(#tile.auxiliary<q_tile = 64, kv_tile = 64, warps = 16, ctas_per_sm = 1>) {
  %table = tile.alloc "table" : !metadata.segment_table<4, 1>
  %q = metadata.tokens %ids row(%n) count(%n)
  // metadata.check_segments C1: one or two pairs.
  // expected-error @below {{'metadata.check_segments' op expected to yield one or two pairs of type i32}}
  metadata.check_segments %table, %q, %q : !metadata.segment_table<4, 1> {
  ^bb0(%a: i32, %b: i32, %c: i32):
    tile.yield %a, %b, %c : i32, i32, i32
  }
}

// -----

tile.kernel @k(%ids: !tile.ptr<i32>, %n: i32) target("cpu") grid(rows cluster 1)
    schedule(#tile.auxiliary<q_tile = 64, kv_tile = 64, warps = 16, ctas_per_sm = 1>) {
  %table = tile.alloc "table" : !metadata.segment_table<4, 1>
  %q = metadata.tokens %ids row(%n) count(%n)
  // expected-error @below {{'metadata.check_segments' op expected a region over 3 numbers of type i32}}
  metadata.check_segments %table, %q, %q : !metadata.segment_table<4, 1> {
  ^bb0(%a: i32, %b: i32):
    tile.yield %a, %b : i32, i32
  }
}

// -----

tile.kernel @k(%ids: !tile.ptr<i32>, %n: i32) target("cpu") grid(rows cluster 1)
    schedule(#tile.auxiliary<q_tile = 64, kv_tile = 64, warps = 16, ctas_per_sm = 1>) {
  %table = tile.alloc "table" : !metadata.segment_table<4, 1>
  %q = metadata.tokens %ids row(%n) count(%n)
  // metadata.list_query_tiles C1: one number.
  // expected-error @below {{'metadata.list_query_tiles' op expected to yield one number of type i32}}
  metadata.list_query_tiles %table, %q, %q rows(%n) of(%ids, %ids, %ids) tile 16 to(%ids, %ids) : !metadata.segment_table<4, 1> {
  ^bb0(%a: i32, %b: i32):
    tile.yield %a, %b : i32, i32
  }
}

// -----

tile.kernel @k(%ids: !tile.ptr<bf16>, %n: i32) target("cpu") grid(rows cluster 1)
    schedule(#tile.auxiliary<q_tile = 64, kv_tile = 64, warps = 16, ctas_per_sm = 1>) {
  // Ids are i32.
  // expected-error @below {{operand #0 must be pointer to i32, but got '!tile.ptr<bf16>'}}
  %q = "metadata.tokens"(%ids, %n, %n) <{operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>}> : (!tile.ptr<bf16>, i32, i32) -> !metadata.tokens
}
