// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Schedules given by hand that a target cannot do anything with.
//
// RUN: rm -rf %t && split-file %s %t
// RUN: attn-opt %t/hopper.mlir -attn-choose-schedule="target=sm_90a" -convert-attn-to-tile -split-input-file -verify-diagnostics
// RUN: attn-opt %t/others.mlir -attn-choose-schedule -convert-attn-to-tile -split-input-file -verify-diagnostics
// RUN: not attn-opt %t/others.mlir -attn-choose-schedule="target=cpu" -convert-attn-to-tile -split-input-file 2>&1 | FileCheck %s --check-prefix=CPU
// CPU-COUNT-4: error: 'attn.problem' op expected {{.*}} for target `cpu`

// Rings of as many stages as a schedule wants may need more than a multiprocessor has.
// RUN: not attn-opt %t/large.mlir --attn-pipeline="target=sm_90a" 2>&1 | FileCheck %s --check-prefix=LARGE
// LARGE: large.mlir:1:1: error: expected at most 232448 bytes of shared memory, got: {{[0-9]+}} with #tile.warp_specialized<q_tile = 128, kv_tile = 128, warps = 8, ctas_per_sm = 1, stages = 8>

//--- hopper.mlir
// Not whole warpgroups.
// expected-error @+2 {{expected 4, 8 or 12 warps, got: 2}}
attn.problem @p mask(#attn.full) layout(bshd) heads(8) dims(64) dtype(bf16)
  schedule(#tile.warp_specialized<q_tile = 32, kv_tile = 64, warps = 2, ctas_per_sm = 1>)

// -----

// Two products of 64 rows for each warpgroup.
// expected-error @+2 {{expected a q_tile of 16 rows for each warp, got: q_tile = 128, warps = 4}}
attn.problem @p mask(#attn.full) layout(bshd) heads(8) dims(64) dtype(bf16)
  schedule(#tile.warp_specialized<q_tile = 128, kv_tile = 64, warps = 4, ctas_per_sm = 1>)

// -----

// More threads than have registers.
// expected-error @+2 {{expected at most 3 CTAs and 12 consumer warps a multiprocessor, got: 2 CTAs of 8 warps}}
attn.problem @p mask(#attn.full) layout(bshd) heads(8) dims(64) dtype(bf16)
  schedule(#tile.warp_specialized<q_tile = 128, kv_tile = 64, warps = 8, ctas_per_sm = 2>)

// -----

// expected-error @+2 {{expected at most 3 CTAs and 12 consumer warps a multiprocessor, got: 4 CTAs of 4 warps}}
attn.problem @p mask(#attn.full) layout(bshd) heads(8) dims(64) dtype(bf16)
  schedule(#tile.warp_specialized<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 4>)

// -----

// expected-error @+2 {{expected a kv_tile in multiples of 16 from 16 to 256, got: 72}}
attn.problem @p mask(#attn.full) layout(bshd) heads(8) dims(64) dtype(bf16)
  schedule(#tile.warp_specialized<q_tile = 64, kv_tile = 72, warps = 4, ctas_per_sm = 1>)

// -----

// What ptxas would not compile.
// expected-error @below {{expected at most 100 keys a tile and columns of v, since a thread is launched with 80 registers, got: 128 with #tile.warp_specialized<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 3>}}
attn.problem @p mask(#attn.full) layout(bshd) heads(8) dims(64, 128) dtype(bf16)
  schedule(#tile.warp_specialized<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 3>)

// -----

// expected-error @below {{expected at most 100 keys a tile and columns of v, since a thread is launched with 80 registers, got: 112 with #tile.warp_specialized<q_tile = 64, kv_tile = 112, warps = 4, ctas_per_sm = 3>}}
attn.problem @p mask(#attn.full) layout(bshd) heads(8) dims(64) dtype(bf16)
  schedule(#tile.warp_specialized<q_tile = 64, kv_tile = 112, warps = 4, ctas_per_sm = 3>)

// -----

// One warpgroup has no other to pingpong with.
// expected-error @+2 {{expected pingpong with two or three consumer warpgroups, got: 4 warps}}
attn.problem @p mask(#attn.full) layout(bshd) heads(8) dims(64) dtype(bf16)
  schedule(#tile.warp_specialized<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 3, pingpong = true>)

// -----

// wgmma reads Q from shared memory.
// expected-error @below {{'attn.problem' op expected #tile.warp_specialized for target `sm_90a`, got: #tile.tiled<q_tile = 128, kv_tile = 64, warps = 8, ctas_per_sm = 1, q_in_registers = true>}}
attn.problem @p mask(#attn.full) layout(bshd) heads(8) dims(64) dtype(bf16)
  schedule(#tile.tiled<q_tile = 128, kv_tile = 64, warps = 8, ctas_per_sm = 1, q_in_registers = true>)

// -----

// expected-error @+2 {{expected stages from 2 to 8 and q_stages 1 or 2, got: stages = 1, q_stages = 1}}
attn.problem @p mask(#attn.full) layout(bshd) heads(8) dims(64) dtype(bf16)
  schedule(#tile.warp_specialized<q_tile = 128, kv_tile = 64, warps = 8, ctas_per_sm = 1, stages = 1>)

// -----

// expected-error @below {{'attn.problem' op expected a schedule of a forward pass, such as #tile.tiled<...>, got: #tile.warp_specialized_backward<q_tile = 64, kv_tile = 128, warps = 8, ctas_per_sm = 1, single_loop = true, dq_columns = 64>}}
attn.problem @p mask(#attn.full) layout(bshd) heads(8) dims(128) dtype(bf16)
  schedule(#tile.warp_specialized_backward<q_tile = 64, kv_tile = 128, warps = 8, ctas_per_sm = 1, single_loop = true,
                                           dq_columns = 64>)

// -----

// expected-error @below {{expected #tile.simt_rows for head dims beyond 256, got: dim 264 with #tile.warp_specialized<q_tile = 64}}
attn.problem @p mask(#attn.full) layout(bshd) heads(8) dims(264) dtype(bf16)
  schedule(#tile.warp_specialized<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>)

// -----

// Three warpgroups are of sm_90a alone.
// expected-error @+2 {{expected 1, 2, 4 or 8 warps, got: 12}}
attn.problem @p mask(#attn.full) layout(bshd) heads(8) dims(64) dtype(bf16)
  schedule(#tile.tiled<q_tile = 192, kv_tile = 64, warps = 12, ctas_per_sm = 1>)

//--- others.mlir
// What only sm_90a can do.
// expected-error @below {{'attn.problem' op expected #tile.tiled for target `sm_80`, which has no warp specialization, got: #tile.warp_specialized<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1, stages = 3>}}
attn.problem @p mask(#attn.full) layout(bshd) heads(8) dims(64) dtype(bf16)
  schedule(#tile.warp_specialized<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1, stages = 3>)

// -----

// expected-error @below {{for target `sm_80`, which has no warp specialization, got: #tile.warp_specialized<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1, q_stages = 2>}}
attn.problem @p mask(#attn.full) layout(bshd) heads(8) dims(64) dtype(bf16)
  schedule(#tile.warp_specialized<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1, q_stages = 2>)

// -----

// expected-error @below {{for target `sm_80`, which has no warp specialization, got: #tile.warp_specialized<q_tile = 128, kv_tile = 64, warps = 8, ctas_per_sm = 1, pingpong = true>}}
attn.problem @p mask(#attn.full) layout(bshd) heads(8) dims(64) dtype(bf16)
  schedule(#tile.warp_specialized<q_tile = 128, kv_tile = 64, warps = 8, ctas_per_sm = 1, pingpong = true>)

// -----

// expected-error @below {{for target `sm_80`, which has no warp specialization, got: #tile.warp_specialized<q_tile = 192, kv_tile = 64, warps = 12, ctas_per_sm = 1>}}
attn.problem @p mask(#attn.full) layout(bshd) heads(8) dims(64) dtype(bf16)
  schedule(#tile.warp_specialized<q_tile = 192, kv_tile = 64, warps = 12, ctas_per_sm = 1>)

// -----

// expected-error @below {{expected #tile.single_pass only for target `sm_90a`}}
attn.problem @p mask(#attn.full) layout(thd) heads(8) dims(64) dtype(bf16) max_seqlen(192)
  schedule(#tile.single_pass<q_tile = 192, kv_tile = 64, kv_tiles = 3, warps = 12, ctas_per_sm = 1>)

//--- large.mlir
attn.problem @p mask(#attn.full) layout(bshd) heads(8) dims(128) dtype(bf16)
  schedule(#tile.warp_specialized<q_tile = 128, kv_tile = 128, warps = 8, ctas_per_sm = 1, stages = 8>)
