// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Block maps: a kernel ahead of all others makes bits of lists, and who asks for a block has these.
//
// RUN: rm -rf %t && split-file %s %t
// RUN: attn-opt %t/blocks.mlir -attn-choose-schedule="target=cpu" -convert-attn-to-tile -canonicalize -cse | FileCheck %t/blocks.mlir
// RUN: attn-opt %t/heads.mlir -attn-choose-schedule="target=sm_90a" -convert-attn-to-tile -canonicalize -cse | FileCheck %t/heads.mlir
// RUN: attn-opt %t/few.mlir -attn-choose-schedule="target=cpu" -convert-attn-to-tile | FileCheck %t/few.mlir
// RUN: attn-opt %t/back.mlir -attn-choose-schedule="target=cpu" -convert-attn-to-tile | FileCheck %t/back.mlir
// RUN: attn-translate %t/blocks.mlir --target=cpu | FileCheck %t/blocks.mlir --check-prefix=TEXT

// Blocks smaller and larger than tiles, that do not divide each other, of each sequence and head; packed; short; shared out; gradients.
// RUN: attn-run %t/blocks.mlir --target=cpu --check --batch=2 --seqlen-q=300 --seqlen-kv=410 | FileCheck %s --check-prefix=SAME
// RUN: attn-run %t/heads.mlir --target=cpu --check --lengths-q=1,0,300 --lengths-kv=200,30,500 | FileCheck %s --check-prefix=SAME
// RUN: attn-run %t/heads.mlir --target=cpu --check --lengths-q=0 --lengths-kv=0 | FileCheck %s --check-prefix=SAME
// RUN: attn-run %t/few.mlir --problem=few --target=cpu --check --batch=3 --seqlen-q=1 --seqlen-kv=90 | FileCheck %s --check-prefix=SAME
// RUN: attn-run %t/few.mlir --problem=shared --target=cpu --check --batch=2 --seqlen-q=100 --seqlen-kv=500 | FileCheck %s --check-prefix=SAME
// RUN: attn-run %t/few.mlir --problem=short --target=cpu --check --batch=5 --seqlen-q=7 --seqlen-kv=9 | FileCheck %s --check-prefix=SAME
// Blocks of 24 keys, which tiles of 16 keys straddle.
// RUN: attn-run %t/few.mlir --problem=straddled --target=cpu --check --batch=3 --seqlen-q=16 --seqlen-kv=40 | FileCheck %s --check-prefix=SAME
// SAME-COUNT-2: {{^}}ok
// SAME-NOT: FAILED

//--- blocks.mlir
// CHECK-LABEL: tile.kernel @p_blocks(%offsets: !tile.ptr<i32>, %columns: !tile.ptr<i32>, %columns_entries: i32,
// CHECK-SAME: %offsets_bits: !tile.ptr<i32>, %offsets_bits_rows: i32, %offsets_bits_words: i32, %batch: i32, %blocks: i32)
// CHECK: metadata.fill_block_bits %offsets_bits(%offsets_bits_rows, %offsets_bits_words) from %offsets, %columns(%columns_entries) lines(%c1_i32)

// Nothing is to be known of entries of rows or keys. The blocks of a query tile are asked for all at once, and 32 tiles
// inside the sequence are as the bits say.
// CHECK-LABEL: tile.kernel @p_ranges(
// CHECK-NOT: metadata.entry_range
// CHECK-LABEL: tile.kernel @p_kv_tile_lists(%offsets_bits: !tile.ptr<i32>, %offsets_bits_rows: i32, %offsets_bits_words: i32,
// CHECK: metadata.select_tiles
// CHECK: metadata.gathered 0 at(%j) : i1
// CHECK: metadata.gathered 0 at(%{{.*}}) : i32
// CHECK: metadata.gather_tiles 0 %offsets_bits(%offsets_bits_rows, %offsets_bits_words) at(%{{.*}} to %{{.*}}) tiles(%from to %to) of 64 in 100

// CHECK-LABEL: tile.kernel @p(
// CHECK-NOT: %offsets:
// CHECK-SAME: %offsets_bits: !tile.ptr<i32>, %offsets_bits_rows: i32, %offsets_bits_words: i32, %kv_tile_list
// CHECK: %[[FIRST:.*]] = arith.divui %k0, %c100_i32
// CHECK: tile.apply_mask
// CHECK: metadata.is_listed %offsets_bits(%offsets_bits_rows, %offsets_bits_words) at(%{{.*}}, %{{.*}} from %[[FIRST]])

// TEXT: attn::fill_block_bits(offsets_bits, offsets_bits_rows, offsets_bits_words, offsets, columns, columns_entries, 1, block, blocks);
// TEXT: const auto [some, all] = attn::gathered<0>(tile
// TEXT: attn::gather_block_tiles<0, 64, 100, false>(offsets_bits, offsets_bits_rows, offsets_bits_words,
// TEXT: attn::block_bit_near(offsets_bits, offsets_bits_rows, offsets_bits_words,
attn.problem @p mask(#attn.block_map<"offsets", "columns", q = 32, kv = 100>) layout(bshd) heads(4, 2) dims(64) dtype(bf16)

//--- heads.mlir
// Two maps, one of each sequence and kv head.
// CHECK-LABEL: tile.kernel @p_blocks(
// CHECK: %[[LINES:.*]] = arith.muli %batch, %c2_i32
// CHECK: metadata.fill_block_bits {{.*}} lines(%[[LINES]])
// CHECK-LABEL: tile.kernel @p_blocks_(
// CHECK: metadata.fill_block_bits {{.*}} lines(%c1_i32)
// CHECK-LABEL: tile.kernel @p_kv_tile_lists
// CHECK-SAME: grid(packed heads 2)
attn.problem @p mask(#attn.or<#attn.block_map<"mine", "some", q = 16, kv = 48, per_sequence, per_kv_head>,
                              #attn.and<#attn.causal, #attn.block_map<"ours", "all", q = 200, kv = 7>>>)
  layout(thd padded) heads(4, 2) dims(64) dtype(bf16)

//--- few.mlir
attn.problem @straddled mask(#attn.block_map<"odd_offsets", "odd_columns", q = 16, kv = 24>) layout(bshd) heads(4) dims(64) dtype(bf16) expected_seqlen(16, 24)
// Without lists of tiles it takes the bits too.
// CHECK-LABEL: tile.kernel @few_blocks
// CHECK-NOT: visits
// CHECK-LABEL: tile.kernel @few(
// CHECK: metadata.is_listed %{{.*}}_bits
// CHECK-LABEL: tile.kernel @shared_blocks
// CHECK-LABEL: tile.kernel @shared(
// CHECK: metadata.is_listed %{{.*}}_bits
// CHECK-LABEL: tile.kernel @short_blocks
// CHECK-LABEL: tile.kernel @short(
// CHECK: metadata.is_listed %{{.*}}_bits
attn.problem @few mask(#attn.block_map<"a", "b", q = 4, kv = 8>) layout(bshd) heads(2) dims(64) dtype(bf16) expected_seqlen(512)
attn.problem @shared mask(#attn.block_map<"a", "b", q = 4, kv = 8>) layout(bshd) heads(2) dims(64) dtype(bf16)
  schedule(#tile.split_kv<splits = 7, of = #tile.tiled<q_tile = 64, kv_tile = 64, warps = 1, ctas_per_sm = 1>>)
attn.problem @short mask(#attn.block_map<"a", "b", q = 2, kv = 2, per_sequence>) layout(bshd) heads(2) dims(64) dtype(bf16) max_seqlen(8, 16)

//--- back.mlir
// CHECK-LABEL: tile.kernel @g_blocks(
// CHECK: metadata.fill_block_bits
// CHECK-LABEL: tile.kernel @g(
// CHECK: metadata.is_listed %{{.*}}_bits
attn.problem @p mask(#attn.and<#attn.causal, #attn.block_map<"a", "b", q = 20, kv = 30, per_sequence>>) layout(bshd) heads(4, 2) dims(64) dtype(bf16)
attn.backward @g of(@p)
