// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Configs given by hand that a target cannot do anything with.
//
// RUN: rm -rf %t && split-file %s %t
// RUN: attn-opt %t/hopper.mlir -convert-attn-to-tile="target=sm_90a" -split-input-file -verify-diagnostics
// RUN: attn-opt %t/others.mlir -convert-attn-to-tile -split-input-file -verify-diagnostics
// RUN: not attn-opt %t/others.mlir -convert-attn-to-tile="target=cpu" -split-input-file 2>&1 | FileCheck %s --check-prefix=CPU
// CPU-COUNT-4: error: 'attn.problem' op expected {{.*}} for target `cpu`

// Rings of as many stages as a config wants may need more than a multiprocessor has.
// RUN: not attn-opt %t/large.mlir --attn-pipeline="target=sm_90a" 2>&1 | FileCheck %s --check-prefix=LARGE
// LARGE: large.mlir:1:1: error: expected at most 232448 bytes of shared memory, got: {{[0-9]+}} with #tile.config<q_tile = 128, kv_tile = 128, warps = 8, blocks = 1, stages = 8>

//--- hopper.mlir
// Not whole warpgroups.
// expected-error @below {{'attn.problem' op expected 4, 8 or 12 warps of 16 rows each for target `sm_90a`, got: #tile.config<q_tile = 32, kv_tile = 64, warps = 2, blocks = 1>}}
attn.problem @p mask(#attn.full) layout(bshd) heads(8) dims(64) dtype(bf16)
  config(#tile.config<q_tile = 32, kv_tile = 64, warps = 2, blocks = 1>)

// -----

// Two products of 64 rows for each warpgroup.
// expected-error @below {{expected 4, 8 or 12 warps of 16 rows each for target `sm_90a`, got: #tile.config<q_tile = 128, kv_tile = 64, warps = 4, blocks = 1>}}
attn.problem @p mask(#attn.full) layout(bshd) heads(8) dims(64) dtype(bf16)
  config(#tile.config<q_tile = 128, kv_tile = 64, warps = 4, blocks = 1>)

// -----

// More threads than have registers.
// expected-error @below {{for target `sm_90a`, got: #tile.config<q_tile = 128, kv_tile = 64, warps = 8, blocks = 2>}}
attn.problem @p mask(#attn.full) layout(bshd) heads(8) dims(64) dtype(bf16)
  config(#tile.config<q_tile = 128, kv_tile = 64, warps = 8, blocks = 2>)

// -----

// expected-error @below {{expected at most 3 blocks and 12 warps a multiprocessor and no hold_q for target `sm_90a`, got: #tile.config<q_tile = 64, kv_tile = 64, warps = 4, blocks = 4>}}
attn.problem @p mask(#attn.full) layout(bshd) heads(8) dims(64) dtype(bf16)
  config(#tile.config<q_tile = 64, kv_tile = 64, warps = 4, blocks = 4>)

// -----

// What ptxas would not compile.
// expected-error @below {{expected at most 100 keys a tile and columns of v, since a thread is launched with 80 registers, got: 128 with #tile.config<q_tile = 64, kv_tile = 64, warps = 4, blocks = 3>}}
attn.problem @p mask(#attn.full) layout(bshd) heads(8) dims(64, 128) dtype(bf16)
  config(#tile.config<q_tile = 64, kv_tile = 64, warps = 4, blocks = 3>)

// -----

// expected-error @below {{expected at most 100 keys a tile and columns of v, since a thread is launched with 80 registers, got: 112 with #tile.config<q_tile = 64, kv_tile = 112, warps = 4, blocks = 3>}}
attn.problem @p mask(#attn.full) layout(bshd) heads(8) dims(64) dtype(bf16)
  config(#tile.config<q_tile = 64, kv_tile = 112, warps = 4, blocks = 3>)

// -----

// One warpgroup has nobody to take turns with.
// expected-error @below {{expected turns of two or three warpgroups, got: #tile.config<q_tile = 64, kv_tile = 64, warps = 4, blocks = 3, turns = true>}}
attn.problem @p mask(#attn.full) layout(bshd) heads(8) dims(64) dtype(bf16)
  config(#tile.config<q_tile = 64, kv_tile = 64, warps = 4, blocks = 3, turns = true>)

// -----

// wgmma reads Q from shared memory.
// expected-error @below {{and no hold_q for target `sm_90a`, got: #tile.config<q_tile = 128, kv_tile = 64, warps = 8, blocks = 1, hold_q = true>}}
attn.problem @p mask(#attn.full) layout(bshd) heads(8) dims(64) dtype(bf16)
  config(#tile.config<q_tile = 128, kv_tile = 64, warps = 8, blocks = 1, hold_q = true>)

// -----

// expected-error @below {{'attn.problem' op expected 2 stages at least, got: #tile.config<q_tile = 128, kv_tile = 64, warps = 8, blocks = 1, stages = 1>}}
attn.problem @p mask(#attn.full) layout(bshd) heads(8) dims(64) dtype(bf16)
  config(#tile.config<q_tile = 128, kv_tile = 64, warps = 8, blocks = 1, stages = 1>)

// -----

// expected-error @below {{expected no reducer, which a backward pass alone has, got: #tile.config<q_tile = 128, kv_tile = 64, warps = 8, blocks = 1, one_body = true, reducer = 64>}}
attn.problem @p mask(#attn.full) layout(bshd) heads(8) dims(128) dtype(bf16)
  config(#tile.config<q_tile = 128, kv_tile = 64, warps = 8, blocks = 1, one_body = true, reducer = 64>)

//--- others.mlir
// What only sm_90a can do.
// expected-error @below {{'attn.problem' op expected 1, 2, 4 or 8 warps for target `sm_80`, got: 12}}
attn.problem @p mask(#attn.full) layout(bshd) heads(8) dims(64) dtype(bf16)
  config(#tile.config<q_tile = 192, kv_tile = 64, warps = 12, blocks = 1>)

// -----

// expected-error @below {{'attn.problem' op expected the default stages, q_stages and turns for target `sm_80`, which has no roles, got: #tile.config<q_tile = 64, kv_tile = 64, warps = 4, blocks = 1, stages = 3>}}
attn.problem @p mask(#attn.full) layout(bshd) heads(8) dims(64) dtype(bf16)
  config(#tile.config<q_tile = 64, kv_tile = 64, warps = 4, blocks = 1, stages = 3>)

// -----

// expected-error @below {{for target `sm_80`, which has no roles, got: #tile.config<q_tile = 64, kv_tile = 64, warps = 4, blocks = 1, q_stages = 2>}}
attn.problem @p mask(#attn.full) layout(bshd) heads(8) dims(64) dtype(bf16)
  config(#tile.config<q_tile = 64, kv_tile = 64, warps = 4, blocks = 1, q_stages = 2>)

// -----

// expected-error @below {{for target `sm_80`, which has no roles, got: #tile.config<q_tile = 64, kv_tile = 64, warps = 4, blocks = 1, turns = true>}}
attn.problem @p mask(#attn.full) layout(bshd) heads(8) dims(64) dtype(bf16)
  config(#tile.config<q_tile = 64, kv_tile = 64, warps = 4, blocks = 1, turns = true>)

//--- large.mlir
attn.problem @p mask(#attn.full) layout(bshd) heads(8) dims(128) dtype(bf16)
  config(#tile.config<q_tile = 128, kv_tile = 128, warps = 8, blocks = 1, stages = 8>)
