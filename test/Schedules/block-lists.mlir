// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Lists of blocks of one width: where blocks are whole tiles, no kernel makes bits of them. A kernel writes their
// offsets; a backward pass transposes them, and kernels that list query tiles read what that gives.
//
// RUN: rm -rf %t && split-file %s %t
// RUN: attn-opt %t/whole.mlir -attn-choose-schedule="target=sm_90a" -convert-attn-to-tile -canonicalize -cse | FileCheck %t/whole.mlir
// RUN: attn-translate %t/whole.mlir --target=sm_90a | FileCheck %t/whole.mlir --check-prefix=TEXT
// RUN: attn-opt %t/bits.mlir -attn-choose-schedule="target=cpu" -convert-attn-to-tile -canonicalize -cse | FileCheck %t/bits.mlir

// What they compute. Lists have repeated blocks, -1 and blocks beyond the sequence (reference::addMissingArrays).
// RUN: attn-run %t/whole.mlir --problem=p --target=cpu --check --batch=2 --seqlen-q=300 --seqlen-kv=410 | FileCheck %s --check-prefix=TWO
// RUN: attn-run %t/whole.mlir --problem=g --target=cpu --check --batch=2 --seqlen-q=300 --seqlen-kv=410 | FileCheck %s --check-prefix=THREE
// RUN: attn-run %t/whole.mlir --problem=g --target=cpu --check --batch=1 --seqlen-q=130 --seqlen-kv=0 | FileCheck %s --check-prefix=THREE
// RUN: attn-run %t/packed.mlir --problem=p --target=cpu --check --lengths-q=1,0,300,700,64 --lengths-kv=200,30,0,700,65 | FileCheck %s --check-prefix=TWO
// RUN: attn-run %t/packed.mlir --problem=g --target=cpu --check --lengths-q=1,0,300,700,64 --lengths-kv=200,30,0,700,65 | FileCheck %s --check-prefix=THREE
// RUN: attn-run %t/packed.mlir --problem=shared --target=cpu --check --lengths-q=1,0,300,700,64 --lengths-kv=1,0,300,700,64 | FileCheck %s --check-prefix=TWO
// RUN: attn-run %t/packed.mlir --problem=shared_g --target=cpu --check --lengths-q=1,0,300,700,64 --lengths-kv=1,0,300,700,64 | FileCheck %s --check-prefix=THREE
// RUN: attn-run %t/packed.mlir --problem=mixed --target=cpu --check --lengths-q=1,0,300 --seqlen-kv=300 | FileCheck %s --check-prefix=TWO
// RUN: attn-run %t/packed.mlir --problem=mixed_g --target=cpu --check --lengths-q=1,0,300 --seqlen-kv=300 | FileCheck %s --check-prefix=THREE
// RUN: attn-run %t/packed.mlir --problem=other --target=cpu --check --seqlen-q=300 --lengths-kv=200,30,500 | FileCheck %s --check-prefix=TWO
// RUN: attn-run %t/packed.mlir --problem=other_g --target=cpu --check --seqlen-q=300 --lengths-kv=200,30,500 | FileCheck %s --check-prefix=THREE
// RUN: attn-run %t/bits.mlir --problem=small --target=cpu --check --batch=2 --seqlen-q=300 --seqlen-kv=410 | FileCheck %s --check-prefix=TWO
// RUN: attn-run %t/bits.mlir --problem=small_g --target=cpu --check --batch=2 --seqlen-q=300 --seqlen-kv=410 | FileCheck %s --check-prefix=THREE
// RUN: attn-run %t/bits.mlir --problem=odd --target=cpu --check --lengths-q=1,0,300,70 --lengths-kv=200,30,500,70 | FileCheck %s --check-prefix=TWO
// RUN: attn-run %t/bits.mlir --problem=odd_g --target=cpu --check --lengths-q=1,0,300,70 --lengths-kv=200,30,500,70 | FileCheck %s --check-prefix=THREE
// RUN: attn-run %t/bits.mlir --problem=short --target=cpu --check --batch=5 --seqlen-q=7 --seqlen-kv=9 | FileCheck %s --check-prefix=TWO
// RUN: attn-run %t/bits.mlir --problem=few --target=cpu --check --batch=3 --seqlen-q=1 --seqlen-kv=90 | FileCheck %s --check-prefix=TWO
// RUN: attn-run %t/bits.mlir --problem=or --target=cpu --check --batch=2 --seqlen-q=300 --seqlen-kv=410 | FileCheck %s --check-prefix=TWO
// RUN: attn-run %t/pack.mlir --problem=p --target=cpu --check --batch=2 --seqlen-q=300 --seqlen-kv=410 | FileCheck %s --check-prefix=TWO
// RUN: attn-run %t/pack.mlir --problem=packed --target=cpu --check --lengths-q=1,0,300,700,64 --lengths-kv=1,0,300,700,64 | FileCheck %s --check-prefix=TWO
// RUN: attn-run %t/pack.mlir --problem=bits --target=cpu --check --batch=2 --seqlen-q=300 --seqlen-kv=410 | FileCheck %s --check-prefix=TWO
// RUN: attn-opt %t/rows.mlir -attn-choose-schedule="target=sm_90a" -convert-attn-to-tile -canonicalize -cse | FileCheck %t/rows.mlir
// RUN: attn-opt %t/program.mlir -attn-choose-schedule="target=cpu" -convert-attn-to-tile | FileCheck %t/program.mlir
// RUN: attn-run %t/rows.mlir --problem=p --target=cpu --check --lengths-q=1,0,300,700,64 --lengths-kv=1,0,300,700,64 | FileCheck %s --check-prefix=TWO
// TWO-COUNT-2: {{^}}ok
// TWO-NOT: FAILED
// THREE-COUNT-3: {{^}}ok
// THREE-NOT: FAILED

//--- whole.mlir
// CHECK-NOT: _bits
// CHECK-LABEL: tile.kernel @p_offsets(
// CHECK: tile.call "list_offsets<256>" of "attn/fixed_lists.h"(%lists_offsets)
// CHECK-LABEL: tile.kernel @p_kv_tile_lists(
// CHECK: metadata.gather_tiles 0 {{.*}} columns(%lists) at(%{{.*}}) tiles(%from to %to) of 64 in 64
// CHECK-LABEL: tile.kernel @p(
// CHECK-LABEL: tile.kernel @g_count(
// CHECK: tile.call "count_lists<64, 64, 2, false, false, 512>"
// CHECK-LABEL: tile.kernel @g_sum(
// CHECK-LABEL: tile.kernel @g_transpose(
// CHECK: tile.call "transpose_lists<64, 64, 2, false, false>"
// Tiles of 32 queries are halves of a list's rows.
// CHECK-LABEL: tile.kernel @g_q_tile_lists(
// CHECK: metadata.gather_tiles 0 {{.*}} columns(%{{.*}}) at(%{{.*}}) tiles(%from to %to) of 32 in 64
// CHECK-LABEL: tile.kernel @g(
// CHECK-NOT: _bits
// A slot has 128 rows, so there may be twice as many further CTAs of 64 keys as slots.
// CHECK: program.launch @g grid(kv_tiles, 2 * (batch * ceil_div(seqlen_kv, 64)) + 8 * multiprocessors * 2)

// TEXT: attn::gather_list_tiles<0, 64, 64>(
// TEXT: attn::is_in_list(
attn.problem @p mask(#attn.and<#attn.block_list<"lists", rows = 64, keys = 64>, #attn.causal>) layout(bshd) heads(4, 2) dims(128) dtype(bf16)
attn.backward @g of(@p)

//--- packed.mlir
attn.problem @p mask(#attn.and<#attn.block_list<"lists", rows = 64, keys = 64, per_head>, #attn.causal<bottom_right>>)
  layout(thd padded) heads(4, 2) dims(64) dtype(bf16)
attn.backward @g of(@p)
attn.problem @shared mask(#attn.and<#attn.block_list<"lists", rows = 128, keys = 64, shared>, #attn.causal>) layout(thd) heads(4, 2) dims(64) dtype(bf16)
attn.backward @shared_g of(@shared) deterministic
attn.problem @mixed mask(#attn.block_list<"lists", rows = 64, keys = 128>) layout(thd, bshd, bshd, thd) heads(4, 2) dims(64) dtype(bf16)
attn.backward @mixed_g of(@mixed)
attn.problem @other mask(#attn.block_list<"lists", rows = 64, keys = 64>) layout(bshd, thd, thd, bshd) heads(4, 2) dims(64) dtype(bf16)
attn.backward @other_g of(@other)

//--- bits.mlir
// Blocks that are no whole tiles have bits, and so have maps of which pairs are visible without being listed, few
// queries and short sequences.
// CHECK-LABEL: tile.kernel @small_blocks(
// CHECK-LABEL: tile.kernel @odd_blocks(
// CHECK-LABEL: tile.kernel @short_blocks(
// CHECK-LABEL: tile.kernel @few_blocks(
// CHECK-LABEL: tile.kernel @or_blocks(
attn.problem @small mask(#attn.and<#attn.block_list<"lists", rows = 16, keys = 8>, #attn.causal>) layout(bshd) heads(4, 2) dims(64) dtype(bf16)
attn.backward @small_g of(@small)
attn.problem @odd mask(#attn.block_list<"lists", rows = 100, keys = 70, per_head>) layout(thd) heads(4, 2) dims(64) dtype(bf16)
attn.backward @odd_g of(@odd)
attn.problem @short mask(#attn.block_list<"lists", rows = 2, keys = 3>) layout(bshd) heads(4, 2) dims(64) dtype(bf16) max_seqlen(16)
attn.problem @few mask(#attn.block_list<"lists", rows = 1, keys = 16>) layout(bshd) heads(4, 2) dims(64) dtype(bf16) expected_seqlen(1, 512)
attn.problem @or mask(#attn.or<#attn.block_list<"lists", rows = 64, keys = 64>, #attn.band<left = 9, right = 0>>) layout(bshd) heads(4, 2) dims(64) dtype(bf16)

//--- pack.mlir
// The query heads of a kv head share lists, so a tile may have rows of all of them.
attn.problem @p mask(#attn.and<#attn.block_list<"lists", rows = 64, keys = 64>, #attn.causal>) layout(bshd) heads(8, 2) dims(64) dtype(bf16)
  schedule(#tile.tiled<q_tile = 64, kv_tile = 64, warps = 1, ctas_per_sm = 1, pack_heads = 4>)
attn.problem @packed mask(#attn.and<#attn.block_list<"lists", rows = 32, keys = 64>, #attn.causal>) layout(thd) heads(8, 2) dims(64) dtype(bf16)
  schedule(#tile.tiled<q_tile = 64, kv_tile = 64, warps = 1, ctas_per_sm = 1, pack_heads = 4>)
attn.problem @bits mask(#attn.and<#attn.block_list<"lists", rows = 24, keys = 40>, #attn.causal>) layout(bshd) heads(8, 2) dims(64) dtype(bf16)
  schedule(#tile.tiled<q_tile = 64, kv_tile = 64, warps = 1, ctas_per_sm = 1, pack_heads = 2>)

//--- rows.mlir
// The rows that four query heads have of one list fill a tile.
// CHECK-NOT: _bits
// CHECK-LABEL: tile.kernel @p_kv_tile_lists(
// CHECK-SAME: schedule(#tile.auxiliary<q_tile = 16, kv_tile = 64
// CHECK-LABEL: tile.kernel @p(
// CHECK-SAME: schedule(#tile.warp_specialized<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 2{{.*}}pack_heads = 4
// CHECK-NOT: _bits
// Not if the query heads of a kv head have lists of their own, or scores are modified.
// CHECK-LABEL: tile.kernel @own_blocks(
// CHECK-LABEL: tile.kernel @own(
// CHECK-NOT: pack_heads
// CHECK-LABEL: tile.kernel @capped(
// CHECK-NOT: pack_heads
attn.problem @p mask(#attn.and<#attn.block_list<"lists", rows = 16, keys = 64>, #attn.causal>) layout(thd) heads(8, 2) dims(128) dtype(bf16)
attn.problem @own mask(#attn.and<#attn.block_list<"lists", rows = 16, keys = 64, per_head>, #attn.causal>) layout(thd) heads(8, 2) dims(128) dtype(bf16)
attn.problem @capped mask(#attn.and<#attn.block_list<"lists", rows = 16, keys = 64>, #attn.causal>) layout(thd) heads(8, 2) dims(128) dtype(bf16) score(#attn.softcap<30.0>)

//--- program.mlir
// In a program, each call has buffers of its own for what it makes of shared lists, in the program's sizes. What such
// programs compute is tested in test/Runtime/sparse_programs.py.
// CHECK: program.def @both_program {
// CHECK: program.launch @p_offsets
// CHECK-NOT: _bits
// CHECK: program.launch @g_count
// CHECK: program.launch @g_sum
// CHECK: program.launch @g_transpose
// CHECK-NOT: _bits
attn.problem @p mask(#attn.and<#attn.block_list<"lists", rows = 16, keys = 64>, #attn.causal>) layout(thd) heads(8, 2) dims(64) dtype(bf16)
attn.problem @q mask(#attn.and<#attn.block_list<"lists", rows = 64, keys = 64>, #attn.causal>) layout(thd) heads(8, 2) dims(64) dtype(bf16)
attn.backward @g of(@q) float32_dq float32_dkv
attn.program @both {
  %q = attn.operand "q"
  %k = attn.operand "k"
  %v = attn.operand "v"
  %do = attn.operand "do"
  %short = attn.operand "lists_of_16"
  %long = attn.operand "lists_of_64"
  %cu = attn.operand "cu_seqlens"
  %o = attn.call @p(q = %q, k = %k, v = %v, lists = %short, cu_seqlens_q = %cu, cu_seqlens_kv = %cu) -> (o)
  %o_64, %lse = attn.call @q(q = %q, k = %k, v = %v, lists = %long, cu_seqlens_q = %cu, cu_seqlens_kv = %cu) -> (o, lse)
  %dq, %dk, %dv = attn.call @g(q = %q, k = %k, v = %v, o = %o_64, lse = %lse, do = %do, lists = %long, cu_seqlens_q = %cu, cu_seqlens_kv = %cu) -> (dq, dk, dv)
  attn.result "o" = %o
  attn.result "dq" = %dq
  attn.result "dk" = %dk
}
