// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What each mask makes of the walk over keys: runs, segments, tests.
//
// RUN: attn-opt %s -attn-choose-schedule -convert-attn-to-tile | FileCheck %s

// Full: full tiles, then the sequence's ragged end.
// CHECK-LABEL: tile.kernel @full
// CHECK: tile.kv_loop [%c0_i32{{.*}}] tests {{\[\[}}], [0]] carry()
// CHECK: tile.yield %{{.*}} : i1{{$}}
attn.problem @full mask(#attn.full) layout(bshd) heads(8) dims(64) dtype(bf16)

// Causal at the bottom right asks for both lengths.
// CHECK-LABEL: tile.kernel @bottom_right
// CHECK: arith.subi %seqlen_kv, %seqlen_q
// CHECK: tile.kv_loop [%{{[^,]*}}, %{{[^,]*}}, %{{[^,]*}}] tests {{\[\[}}], [0]] carry()
// CHECK: tile.yield %{{.*}} : i1{{$}}
attn.problem @bottom_right mask(#attn.causal<bottom_right>) layout(bshd) heads(8) dims(64) dtype(bf16)

// A window: begin, full tiles, end. Behind a full tile the lower bound holds.
// CHECK-LABEL: tile.kernel @window
// CHECK: tile.kv_loop [%{{[^,]*}}, %{{[^,]*}}, %{{[^,]*}}, %{{[^,]*}}] tests {{\[\[}}0, 1], [], [1]] carry()
// CHECK: tile.apply_mask
// CHECK-NEXT: ^bb0(%[[Q:.*]]: i32, %[[K:.*]]: i32):
// CHECK: arith.cmpi sle, %{{.*}}, %[[K]]
// CHECK: arith.cmpi slt, %[[K]], %{{.*}}
// CHECK: tile.yield %{{.*}}, %{{.*}} : i1, i1{{$}}
attn.problem @window mask(#attn.and<#attn.band<left = 127>, #attn.causal>) layout(bshd) heads(8) dims(64) dtype(bf16)

// The same mask as one band: the same walk.
// CHECK-LABEL: tile.kernel @band
// CHECK: tile.kv_loop [%{{[^,]*}}, %{{[^,]*}}, %{{[^,]*}}, %{{[^,]*}}] tests {{\[\[}}0, 1], [], [1]] carry()
attn.problem @band mask(#attn.band<left = 127, right = 0>) layout(bshd) heads(8) dims(64) dtype(bf16)

// A prefix or causal: one interval from 0, so one compare with the larger end.
// CHECK-LABEL: tile.kernel @prefix_lm
// CHECK: tile.kv_loop [%{{[^,]*}}, %{{[^,]*}}, %{{[^,]*}}] tests {{\[\[}}], [0]] carry()
// CHECK: tile.apply_mask
// CHECK: tile.load uniform %prefix_lengths[
// CHECK: arith.maxsi
// CHECK-COUNT-1: arith.cmpi
// CHECK-NEXT: tile.yield %{{.*}} : i1{{$}}
attn.problem @prefix_lm mask(#attn.or<#attn.prefix<"prefix_lengths">, #attn.causal>) layout(bshd) heads(8) dims(64)
  dtype(bf16)

// Sinks and a window: two runs. Each has tests before (the first begins with the first key: none), full tiles, tests next_first;
// a run that another one follows says nothing of the tests behind.
// CHECK-LABEL: tile.kernel @sinks
// CHECK: tile.kv_loop [%c0{{[^]]*}}] tests {{\[\[}}], [0, 1]], [%{{[^]]*}}] tests {{\[\[}}0, 1], [], [0, 1]] carry()
// CHECK: arith.ori
// CHECK: tile.yield %{{.*}}, %{{.*}} : i1, i1{{$}}
attn.problem @sinks mask(#attn.and<#attn.or<#attn.prefix<4>, #attn.band<left = 127, right = 0>>, #attn.causal>)
  layout(bshd) heads(8) dims(64) dtype(bf16)

// Documents: ids are read for each row and key of a tile that is tested (which these are: kv-tile-lists.mlir).
// CHECK-LABEL: tile.kernel @document(
// CHECK-SAME: %segment_ids_q: !tile.ptr<i32>, %segment_ids_kv: !tile.ptr<i32>
// CHECK: tile.kv_loop [%{{[^,]*}}, %{{[^,]*}}, %{{[^,]*}}] tests {{\[\[}}], [0, 1]] carry()
// CHECK: tile.apply_mask
// CHECK: tile.load
// CHECK-NOT: uniform
// CHECK: tile.load
// CHECK: tile.yield %{{.*}}, %{{.*}} : i1, i1{{$}}
attn.problem @document mask(#attn.and<#attn.document, #attn.causal>) layout(bshd) heads(8) dims(64) dtype(bf16)

// An array that stands in the expression twice is one argument.
// CHECK-LABEL: tile.kernel @shared_array
// CHECK-SAME: %lengths: !tile.ptr<i32>, %batch: i32
attn.problem @shared_array mask(#attn.and<#attn.or<#attn.prefix<"lengths">, #attn.causal>, #attn.prefix<"lengths">>)
  layout(bshd) heads(8) dims(64) dtype(bf16)

// A chunk's rows are intervals too: with causal still two compares.
// CHECK-LABEL: tile.kernel @chunk
// CHECK: tile.kv_loop [%{{[^,]*}}, %{{[^,]*}}, %{{[^,]*}}, %{{[^,]*}}] tests {{\[\[}}0, 1], [], [1]] carry()
// CHECK: tile.yield %{{.*}}, %{{.*}} : i1, i1{{$}}
attn.problem @chunk mask(#attn.and<#attn.chunk<8192>, #attn.causal>) layout(bshd) heads(8) dims(64) dtype(bf16)

// Every 11th key, and tiles of every 11th row do not exist: each tile is tested. A row's remainder does not depend on
// the key.
// CHECK-LABEL: tile.kernel @strided
// CHECK: tile.kv_loop [%{{[^,]*}}, %{{[^,]*}}] tests {{\[\[}}0, 1]] carry()
// CHECK: tile.apply_mask
// CHECK-NEXT: ^bb0(%[[Q:.*]]: i32, %[[K:.*]]: i32):
// CHECK-DAG: arith.remui %[[Q]],
// CHECK-DAG: arith.remui %[[K]],
// CHECK: arith.cmpi eq
attn.problem @strided mask(#attn.and<#attn.strided<stride = 11>, #attn.causal>) layout(bshd) heads(8) dims(64) dtype(bf16)

// What no row sees is not walked at all.
// CHECK-LABEL: tile.kernel @nothing
// CHECK-NOT: tile.kv_loop
// CHECK: tile.normalize
attn.problem @nothing mask(#attn.not<#attn.full>) layout(bshd) heads(8) dims(64) dtype(bf16)

// A hole: the keys before it, from full tiles on, and those behind it.
// CHECK-LABEL: tile.kernel @hole
// CHECK: tile.kv_loop [%{{[^]]*}}] tests {{\[\[}}], [0, 1]], [%{{[^]]*}}] tests {{\[\[}}0, 1], [], [0, 1]] carry()
attn.problem @hole mask(#attn.not<#attn.band<left = 127, right = 127>>) layout(bshd) heads(8) dims(64) dtype(bf16)

// Without a prefix and without the keys from the diagonal on: both are ends of rows
// that are intervals, so two compares and one run. As `and` of `not`s: the same.
// CHECK-LABEL: tile.kernel @without
// CHECK: tile.kv_loop [%{{[^,]*}}, %{{[^,]*}}, %{{[^,]*}}, %{{[^,]*}}] tests {{\[\[}}0, 1], [], [1]] carry()
// CHECK: tile.yield %{{.*}}, %{{.*}} : i1, i1{{$}}
// CHECK-LABEL: tile.kernel @without_each
// CHECK: tile.kv_loop [%{{[^,]*}}, %{{[^,]*}}, %{{[^,]*}}, %{{[^,]*}}] tests {{\[\[}}0, 1], [], [1]] carry()
// CHECK: tile.yield %{{.*}}, %{{.*}} : i1, i1{{$}}
attn.problem @without mask(#attn.diff<#attn.band<right = 40>, #attn.or<#attn.prefix<4>, #attn.causal>>)
  layout(bshd) heads(8) dims(64) dtype(bf16)
attn.problem @without_each mask(#attn.and<#attn.band<right = 40>, #attn.not<#attn.prefix<4>>, #attn.not<#attn.causal>>)
  layout(bshd) heads(8) dims(64) dtype(bf16)

// Masks of heads: bounds are chosen by the head, the walk is one.
// CHECK-LABEL: tile.kernel @heads
// CHECK: %[[FIRST:.*]] = arith.cmpi slt, %h,
// CHECK: arith.select %[[FIRST]],
// CHECK: tile.kv_loop [%{{[^,]*}}, %{{[^,]*}}, %{{[^,]*}}, %{{[^,]*}}] tests {{\[\[}}0, 1], [], [1]] carry()
// CHECK: tile.apply_mask
// CHECK: arith.select %{{.*}},
// CHECK: tile.yield %{{.*}}, %{{.*}} : i1, i1{{$}}
attn.problem @heads mask(#attn.heads<#attn.causal, #attn.band<left = 127, right = 0>>) layout(bshd) heads(8) dims(64) dtype(bf16)

// Arrays of heads: a line for each, which of packed sides has all tokens.
// CHECK-LABEL: tile.kernel @of_heads(
// CHECK: scf.if
// CHECK: %[[TOTAL:.*]] = arith.extsi %total_q : i32 to i64
// CHECK-NEXT: arith.muli %{{.*}}, %[[TOTAL]]
// CHECK: %[[END:.*]] = tile.advance %end,
// CHECK: tile.apply_mask
// CHECK: tile.load %[[END]][
attn.problem @of_heads mask(#attn.row_interval<end = "end", per_head>) layout(thd, bshd, bshd, thd) heads(8, 2) dims(64) dtype(bf16)
// CHECK-LABEL: tile.kernel @of_kv_heads(
// CHECK-SAME: %begin: !tile.ptr<i32>, {{.*}}%batch: i32, %seqlen_q: i32, %total_kv: i32
// CHECK: arith.extsi %kv_head : i32 to i64
// CHECK: %[[TOTAL:.*]] = arith.extsi %total_kv : i32 to i64
// CHECK-NEXT: arith.muli %{{.*}}, %[[TOTAL]]
// CHECK: tile.advance %begin,
attn.problem @of_kv_heads mask(#attn.column_interval<begin = "begin", per_kv_head>) layout(bshd, thd, thd, bshd) heads(8, 2) dims(64) dtype(bf16)

// A predicate is a test of its own, beside the compare of a causal row. Remainders of negative numbers are mirrored.
// CHECK-LABEL: tile.kernel @predicate
// CHECK: tile.apply_mask
// CHECK-NEXT: ^bb0(%[[Q:.*]]: i32, %[[K:.*]]: i32):
// CHECK: %[[AWAY:.*]] = arith.subi %[[Q]], %[[K]]
// CHECK: arith.maxsi %[[AWAY]],
// CHECK: arith.remui
// CHECK: arith.cmpi slt, %[[AWAY]],
// CHECK: tile.yield %{{.*}}, %{{.*}} : i1, i1{{$}}
attn.problem @predicate mask(#attn.and<#attn.causal, #attn.predicate<"(q - k) % 3 == 0">>) layout(bshd) heads(8, 2) dims(64) dtype(bf16)
