// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What `attn-choose-schedule` refuses, and schedules of the pipeline's targets.
//
// RUN: attn-opt %s -attn-choose-schedule -convert-attn-to-tile -split-input-file -verify-diagnostics
// RUN: not attn-opt %s -attn-choose-schedule="target=sm_90" -convert-attn-to-tile 2>&1 | FileCheck %s --check-prefix=TARGET
// TARGET: error: expected target `cpu`, `sm_80` or `sm_90a`, got: sm_90

// Too much shared memory for one chip, not for another.
// RUN: not attn-opt %S/Inputs/large.mlir --attn-pipeline="target=sm_90a arch=86" 2>&1 | FileCheck %s --check-prefix=CHIP -DHAS=90 -DTARGET=sm_90a -DGOT=86
// RUN: not attn-opt %S/Inputs/large.mlir --attn-pipeline="target=cpu arch=80" 2>&1 | FileCheck %s --check-prefix=CHIP -DHAS=0 -DTARGET=cpu -DGOT=80
// CHIP: error: expected arch [[HAS]] for target `[[TARGET]]` (or 0, its own), got: [[GOT]]
// RUN: not attn-opt %S/Inputs/large.mlir --attn-pipeline="arch=86" 2>&1 | FileCheck %s --check-prefix=LIMIT
// RUN: attn-opt %S/Inputs/large.mlir --attn-pipeline="arch=80" | FileCheck %s --check-prefix=FITS
// RUN: attn-opt %S/Inputs/large.mlir --attn-pipeline="target=cpu" | FileCheck %s --check-prefix=FITS
// LIMIT: large.mlir:3:1: error: expected at most 101376 bytes of shared memory, got: 135168 with #tile.tiled<q_tile = 128, kv_tile = 64, warps = 4, ctas_per_sm = 1>
// FITS: shared 135168

// expected-error @below {{'attn.problem' op expected a schedule of a forward pass, such as #tile.tiled<...>, got: "fast"}}
attn.problem @p mask(#attn.full) layout(bshd) heads(8) dims(64) dtype(bf16) schedule("fast")

// -----

// expected-error @below {{'attn.problem' op expected tiles(128), the queries of a tile of the schedule in force (or another schedule), got: tiles(64) with #tile.tiled<q_tile = 128}}
attn.problem @listed mask(#attn.full) layout(thd) heads(8) dims(64) dtype(bf16) tiles(64)

// -----

attn.problem @given mask(#attn.causal) layout(bshd) heads(16, 4) dims(128) dtype(bf16)
// expected-error @below {{expected #tile.tiled_backward for target `sm_80`, got: #tile.warp_specialized_backward<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1, stages = 3>}}
attn.backward @grads of(@given)
  schedule(#tile.warp_specialized_backward<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1, stages = 3>)
