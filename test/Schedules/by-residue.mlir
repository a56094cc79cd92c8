// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Tiles of every n-th row, for masks under which a row sees every n-th key.
//
// RUN: rm -rf %t && split-file %s %t
// RUN: attn-opt %t/causal.mlir -attn-choose-schedule="target=sm_90a" | FileCheck %t/causal.mlir --check-prefix=CHOSEN
// RUN: attn-opt %t/causal.mlir -attn-choose-schedule="target=sm_90a" -convert-attn-to-tile -canonicalize -cse | FileCheck %t/causal.mlir
// RUN: attn-translate %t/causal.mlir --target=sm_90a | FileCheck %t/causal.mlir --check-prefix=CUDA
// RUN: attn-opt %t/packed.mlir -attn-choose-schedule="target=sm_90a" -convert-attn-to-tile -canonicalize -cse | FileCheck %t/packed.mlir
// RUN: attn-opt %t/backward.mlir -attn-choose-schedule="target=sm_90a" | FileCheck %t/backward.mlir --check-prefix=CHOSEN
// RUN: attn-opt %t/backward.mlir -attn-choose-schedule="target=sm_90a" -convert-attn-to-tile -canonicalize -cse | FileCheck %t/backward.mlir
// RUN: attn-translate %t/backward.mlir --target=sm_90a | FileCheck %t/backward.mlir --check-prefix=CUDA
// RUN: attn-opt %t/strides.mlir -attn-canonicalize-masks -attn-choose-schedule="target=sm_90a" | FileCheck %t/strides.mlir
// RUN: attn-opt %t/none.mlir -attn-choose-schedule="target=sm_90a" | FileCheck %t/none.mlir
// RUN: attn-opt %t/none.mlir -attn-choose-schedule="target=cpu" | FileCheck %t/none.mlir
// RUN: attn-opt --explain %t/causal.mlir --batch=1 --seqlen-q=2048 --target=cpu | FileCheck %t/causal.mlir --check-prefix=EXPLAIN
// RUN: attn-opt --explain %t/refused.mlir --batch=1 --seqlen-q=512 --target=cpu | FileCheck %t/refused.mlir
// RUN: attn-opt --explain %t/bounded.mlir --lengths-q=200,100 --target=sm_90a | FileCheck %t/bounded.mlir
// RUN: attn-opt %t/errors.mlir -attn-choose-schedule="target=sm_90a" -split-input-file -verify-diagnostics
// RUN: attn-run %t/run.mlir --problem=tall --target=cpu --seqlen-q=513 --seqlen-kv=700 --batch=2 --check | FileCheck %t/run.mlir
// RUN: attn-run %t/run.mlir --problem=wide --target=cpu --seqlen-q=700 --seqlen-kv=5 --check | FileCheck %t/run.mlir
// RUN: attn-run %t/run.mlir --problem=wide --target=cpu --seqlen-q=3 --seqlen-kv=400 --check | FileCheck %t/run.mlir
// RUN: attn-run %t/run.mlir --problem=wide --target=cpu --seqlen-q=90 --seqlen-kv=0 --check | FileCheck %t/run.mlir
// RUN: attn-run %t/run.mlir --problem=packed --target=cpu --lengths-q=0,1,300,7,129 --lengths-kv=5,0,299,8,400 --check | FileCheck %t/run.mlir
// RUN: attn-run %t/run.mlir --problem=documents --target=cpu --seqlen-q=600 --seqlen-kv=600 --batch=2 --check | FileCheck %t/run.mlir
// RUN: attn-run %t/run.mlir --problem=tall_grads --target=cpu --seqlen-q=513 --seqlen-kv=700 --batch=2 --check | FileCheck %t/run.mlir
// RUN: attn-run %t/run.mlir --problem=tall_grads --target=cpu --seqlen-q=2 --seqlen-kv=3 --check | FileCheck %t/run.mlir
// RUN: attn-run %t/run.mlir --problem=wide_grads --target=cpu --seqlen-q=700 --seqlen-kv=5 --check | FileCheck %t/run.mlir
// RUN: attn-run %t/run.mlir --problem=packed_grads --target=cpu --lengths-q=0,1,300,7,129 --lengths-kv=5,0,299,8,400 --check | FileCheck %t/run.mlir
// RUN: attn-run %t/run.mlir --problem=documents_grads --target=cpu --seqlen-q=600 --seqlen-kv=600 --batch=2 --check | FileCheck %t/run.mlir

//--- causal.mlir
// CHOSEN: schedule(#tile.by_residue<stride = 4, of = #tile.warp_specialized<q_tile = 128, kv_tile = 128,{{.*}}schedule_reason("a row sees keys of one residue modulo 4 only")
// CHECK: tile.kernel @p({{.*}}%q_map: !tile.tensor_map<64xbf16, stride 4>, %k_map: !tile.tensor_map<64xbf16, stride 4>, {{.*}}grid(dense heads 16 residues 4)
// The residue comes before the head, and a tile of 128 rows is one of 512 positions.
// CHECK: %query_residue = arith.divui %{{.*}}, %c4_i32
// CHECK: %h = arith.remui %{{.*}}, %c4_i32
// CHECK: %q0 = arith.muli %{{.*}}, %c128_i32
// CHECK: %row0 = arith.addi %{{.*}}, %query_residue
// CHECK: tile.copy_tma %Q, %q_map at(%row0, %h, %b)
// CHECK: %k0 = arith.muli %{{.*}}, %c128_i32
// CHECK: tile.apply_mask %s at(%q0, %k0)
// CHECK-NEXT: ^bb0(%q_{{.*}}: i32, %k_{{.*}}: i32):
// CHECK: arith.muli %{{.*}}, %c4_i32
// CHECK: arith.addi %{{.*}}, %query_residue
// CHECK: tile.store %o_rows
// CUDA: attn::producer_load_strided<64, 2, 4>(Q, q_map, row0, h, b)
// CUDA: attn::producer_load_strided<64, 2, 4>(K, k_map,
// EXPLAIN: forward   tiles, of every 4th row; a row sees keys of one residue modulo 4 only
// EXPLAIN: kernel    tiles of 64 rows x 64 keys, 4 positions apart
// EXPLAIN: tiles     576 of 1024 visited: 448 full, 128 partial; 0 of these are empty
// EXPLAIN: pairs     2101248 of 16777216 visible (12.5 %), 89.1 % of those in visited tiles
attn.problem @p mask(#attn.and<#attn.causal, #attn.strided<stride = 4>>) layout(bshd) heads(4) dims(128) dtype(bf16)

//--- packed.mlir
// CHECK: tile.kernel @p({{.*}}%q_map: !tile.tensor_map<64xbf16, packed, stride 3>{{.*}}grid(packed heads 6 residues 3)
// CHECK: tile.find_sequence {{.*}} tile 384
attn.problem @p mask(#attn.strided<stride = 3, offset = 2, bottom_right>) layout(thd) heads(2) dims(128) dtype(bf16)

//--- backward.mlir
// CHOSEN: attn.backward @grads{{.*}}schedule(#tile.by_residue<stride = 4, of = #tile.backward_kernels<accumulation = first_stores
// CHECK: tile.kernel @grads_preprocess({{.*}}grid(dense heads 16 residues 4)
// CHECK: tile.preprocess {{.*}} stride 4 rows
// CHECK: tile.kernel @grads({{.*}}grid(dense heads 8 keys residues 4)
// CHECK: tile.kernel @grads_postprocess({{.*}}grid(dense heads 16 residues 4)
// CHECK: program.buffer "row_statistics" : f32 [2, 16, batch * ceil_div(seqlen_q, 512) * 128]
// CHECK: program.buffer "dq_accumulator" : f32 [16, batch, ceil_div(seqlen_q, 4), 128]
// CUDA: attn::preprocess<128, 128, 256, 4>(
// CUDA: attn::producer_load_strided<64, 1, 4>(Q, q_map,
attn.problem @p mask(#attn.and<#attn.causal, #attn.strided<stride = 4>>) layout(bshd) heads(4, 2) dims(128) dtype(bf16)
attn.backward @grads of(@p)

//--- strides.mlir
// A predicate on the distance is a strided mask. The rest of a stride that tiles do not have stays in the mask.
// CHECK: @predicate mask(#attn.strided<stride = 4>){{.*}}by_residue<stride = 4
// CHECK: @remainders mask(#attn.strided<stride = 4>){{.*}}by_residue<stride = 4
// CHECK: @offset mask(#attn.strided<stride = 4, offset = 1>){{.*}}by_residue<stride = 4
// CHECK: @negative mask(#attn.strided<stride = 4, offset = 3>){{.*}}by_residue<stride = 4
// CHECK: @end mask(#attn.strided<stride = 4, offset = 2, bottom_right>){{.*}}by_residue<stride = 4
// CHECK: @sixteen {{.*}}by_residue<stride = 8
// CHECK: @twenty {{.*}}by_residue<stride = 5
// All residues together are no few queries.
// CHECK: @many {{.*}}by_residue<stride = 8
attn.problem @predicate mask(#attn.predicate<"(q - k) % 4 == 0">) layout(bshd) heads(4) dims(128) dtype(bf16)
attn.problem @remainders mask(#attn.predicate<"k % 4 == q % 4">) layout(bshd) heads(4) dims(128) dtype(bf16)
attn.problem @offset mask(#attn.predicate<"(q + 3 - k) % 4 == 0">) layout(bshd) heads(4) dims(128) dtype(bf16)
attn.problem @negative mask(#attn.predicate<"1 == (k - q) % 4">) layout(bshd) heads(4) dims(128) dtype(bf16)
attn.problem @end mask(#attn.predicate<"(q + len_k - len_q - k) % 4 == 2">) layout(bshd) heads(4) dims(128) dtype(bf16)
attn.problem @sixteen mask(#attn.strided<stride = 16>) layout(bshd) heads(4) dims(128) dtype(bf16)
attn.problem @twenty mask(#attn.strided<stride = 20>) layout(bshd) heads(4) dims(128) dtype(bf16)
attn.problem @many mask(#attn.strided<stride = 8>) layout(bshd) heads(4) dims(128) dtype(bf16) expected_seqlen(1024, 8192)

//--- none.mlir
// CHECK-NOT: by_residue
attn.problem @prime mask(#attn.strided<stride = 11>) layout(bshd) heads(4) dims(128) dtype(bf16)
attn.problem @union mask(#attn.or<#attn.causal, #attn.strided<stride = 4>>) layout(bshd) heads(4) dims(128) dtype(bf16)
attn.problem @alibi mask(#attn.strided<stride = 4>) score(#attn.alibi) layout(bshd) heads(4) dims(128) dtype(bf16)
attn.problem @drops mask(#attn.strided<stride = 4>) layout(bshd) heads(4) dims(128) dtype(bf16) dropout(0.1, "seed")
attn.problem @short mask(#attn.strided<stride = 4>) layout(bshd) heads(4) dims(128) dtype(bf16) max_seqlen(256)
attn.problem @decode mask(#attn.strided<stride = 4>) layout(bshd) heads(4) dims(128) dtype(bf16) expected_seqlen(1, 16384)
attn.problem @predicate mask(#attn.and<#attn.strided<stride = 4>, #attn.predicate<"q != 7">>) layout(bshd) heads(4) dims(128) dtype(bf16)
attn.problem @twice mask(#attn.predicate<"(2 * q - 2 * k) % 4 == 0">) layout(bshd) heads(4) dims(128) dtype(bf16)
attn.problem @sum mask(#attn.predicate<"(q + k) % 4 == 0">) layout(bshd) heads(4) dims(128) dtype(bf16)
attn.problem @length mask(#attn.predicate<"(q - k + len_k) % 4 == 0">) layout(bshd) heads(4) dims(128) dtype(bf16)

//--- refused.mlir
// CHECK: refused   by cpu: expected a mask with a conjunct #attn.strided of a stride that 4 divides
// CHECK: forward   tiles, of every 4th row; the schedule is given
// CHECK: kernel    tiles of 64 rows x 64 keys: #tile.tiled
attn.problem @p mask(#attn.causal) layout(bshd) heads(4) dims(128) dtype(bf16) schedule(#tile.by_residue<stride = 4, of = #tile.tiled<q_tile = 64, kv_tile = 64, warps = 1, ctas_per_sm = 1>>)

//--- bounded.mlir
// No sequence has tiles of its own, however short it is.
// CHECK: forward   warp-specialized tiles of packed rows, of every 8th row;
#tiles = #tile.warp_specialized<q_tile = 128, kv_tile = 128, warps = 8, ctas_per_sm = 1>
attn.problem @p mask(#attn.strided<stride = 8>) layout(thd) heads(16) dims(128) dtype(bf16) max_seqlen(200) schedule(#tile.by_residue<stride = 8, of = #tiles>)

//--- errors.mlir
#tiles = #tile.warp_specialized<q_tile = 128, kv_tile = 128, warps = 8, ctas_per_sm = 1>
// expected-error @below {{expected a mask with a conjunct #attn.strided of a stride that 4 divides, for tiles of every 4th row, got: #attn.and<#attn.causal, #attn.strided<stride = 6>>}}
attn.problem @p mask(#attn.and<#attn.causal, #attn.strided<stride = 6>>) layout(bshd) heads(4) dims(128) dtype(bf16) schedule(#tile.by_residue<stride = 4, of = #tiles>)

// -----

#tiles = #tile.warp_specialized<q_tile = 128, kv_tile = 128, warps = 8, ctas_per_sm = 1>
// expected-error @below {{expected no #tile.by_residue with score modifiers, got: #tile.by_residue<stride = 4}}
attn.problem @p mask(#attn.strided<stride = 4>) score(#attn.alibi) layout(bshd) heads(4) dims(128) dtype(bf16) schedule(#tile.by_residue<stride = 4, of = #tiles>)

// -----

#tiles = #tile.warp_specialized<q_tile = 128, kv_tile = 128, warps = 8, ctas_per_sm = 1>
// expected-error @below {{expected no #tile.by_residue with a predicate in the rest of the mask, got: #tile.by_residue<stride = 4}}
attn.problem @p mask(#attn.and<#attn.strided<stride = 4>, #attn.predicate<"q != 7">>) layout(bshd) heads(4) dims(128) dtype(bf16) schedule(#tile.by_residue<stride = 4, of = #tiles>)

// -----

#tiles = #tile.warp_specialized<q_tile = 128, kv_tile = 128, warps = 8, ctas_per_sm = 1>
// expected-error @below {{expected no #tile.by_residue with dropout, got: #tile.by_residue<stride = 4}}
attn.problem @p mask(#attn.strided<stride = 4>) layout(bshd) heads(4) dims(128) dtype(bf16) dropout(0.1, "seed") schedule(#tile.by_residue<stride = 4, of = #tiles>)

// -----

#tiles = #tile.warp_specialized<q_tile = 128, kv_tile = 128, warps = 8, ctas_per_sm = 1, pack_heads = 2>
// expected-error @below {{expected pack_heads = 1 in tiles by residue, got: #tile.by_residue<stride = 4}}
attn.problem @p mask(#attn.strided<stride = 4>) layout(bshd) heads(4, 2) dims(128) dtype(bf16) schedule(#tile.by_residue<stride = 4, of = #tiles>)

// -----

#tiles = #tile.tiled<q_tile = 128, kv_tile = 64, warps = 4, ctas_per_sm = 2>
// expected-error @below {{expected #tile.warp_specialized for target `sm_90a`, got: #tile.tiled<}}
attn.problem @p mask(#attn.strided<stride = 4>) layout(bshd) heads(4) dims(128) dtype(bf16) schedule(#tile.by_residue<stride = 4, of = #tiles>)

//--- run.mlir
// CHECK: {{^}}ok
#tall = #tile.tiled<q_tile = 128, kv_tile = 32, warps = 1, ctas_per_sm = 1>
#flat = #tile.tiled<q_tile = 32, kv_tile = 128, warps = 1, ctas_per_sm = 1>
#a = #tile.tiled_backward<q_tile = 32, kv_tile = 64, warps = 1, ctas_per_sm = 1>
#b = #tile.tiled_backward<q_tile = 128, kv_tile = 32, warps = 1, ctas_per_sm = 1>
#grads = #tile.backward_kernels<accumulation = separate, dkdv = #a, dq = #b>
attn.problem @tall mask(#attn.and<#attn.causal<bottom_right>, #attn.strided<stride = 4, offset = 1, bottom_right>>) layout(bshd) heads(4, 2) dims(64) dtype(bf16) schedule(#tile.by_residue<stride = 4, of = #tall>)
attn.problem @wide mask(#attn.and<#attn.strided<stride = 15, offset = 7>, #attn.band<left = 100, right = 30>>) layout(bhsd) heads(2) dims(40, 24) dtype(f16) schedule(#tile.by_residue<stride = 5, of = #flat>)
attn.problem @packed mask(#attn.and<#attn.causal, #attn.strided<stride = 3, offset = 2, bottom_right>>) layout(thd padded) heads(2) dims(64) dtype(bf16) schedule(#tile.by_residue<stride = 3, of = #tall>)
attn.problem @documents mask(#attn.and<#attn.causal, #attn.document, #attn.strided<stride = 2>>) layout(sbhd) heads(2) dims(64) dtype(bf16) schedule(#tile.by_residue<stride = 2, of = #flat>)
attn.backward @tall_grads of(@tall) schedule(#tile.by_residue<stride = 4, of = #grads>)
attn.backward @wide_grads of(@wide) schedule(#tile.by_residue<stride = 5, of = #grads>)
attn.backward @packed_grads of(@packed) dlse schedule(#tile.by_residue<stride = 3, of = #grads>)
attn.backward @documents_grads of(@documents) schedule(#tile.by_residue<stride = 2, of = #grads>)
