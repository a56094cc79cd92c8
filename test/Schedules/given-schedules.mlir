// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Schedules that are given: `attn-choose-schedule` keeps them, completes those that name a part, and refuses those of other
// passes. `convert-attn-to-tile` wants one on each problem.
//
// RUN: rm -rf %t && split-file %s %t
// RUN: attn-opt %t/given.mlir -attn-choose-schedule=target=sm_90a | FileCheck %t/given.mlir
// RUN: attn-opt %t/on_cpu.mlir -attn-choose-schedule=target=cpu | FileCheck %t/on_cpu.mlir
// RUN: attn-opt %t/errors.mlir -split-input-file -attn-choose-schedule -verify-diagnostics
// RUN: attn-opt %t/no_target.mlir -convert-attn-to-tile -verify-diagnostics
// RUN: attn-opt %t/no_schedule.mlir -split-input-file -convert-attn-to-tile -verify-diagnostics
//
// What is complete is kept.
// RUN: attn-opt %t/given.mlir -attn-choose-schedule=target=sm_90a -o %t/once
// RUN: attn-opt %t/once -attn-choose-schedule="target=sm_90a" -o %t/twice
// RUN: diff %t/once %t/twice
// RUN: attn-opt %t/on_cpu.mlir -attn-choose-schedule=target=cpu -o %t/once
// RUN: attn-opt %t/once -attn-choose-schedule="target=cpu" -o %t/twice
// RUN: diff %t/once %t/twice

//--- given.mlir
// CHECK: attn.problem @given {{.*}} schedule(#tile.warp_specialized<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 2>) schedule_reason("the schedule is given")
attn.problem @given mask(#attn.causal) layout(bshd) heads(4) dims(128) dtype(bf16)
  schedule(#tile.warp_specialized<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 2>)
// So is the reason for it.
// CHECK: attn.problem @tuned {{.*}} schedule(#tile.split_kv<splits = 3, of = #tile.warp_specialized<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 2>>) schedule_reason("found by tuning")
attn.problem @tuned mask(#attn.causal) layout(bshd) heads(4) dims(128) dtype(bf16)
  schedule(#tile.split_kv<splits = 3, of = #tile.warp_specialized<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 2>>)
  schedule_reason("found by tuning")
// The kernel of dK and dV is given the others, and that of short sequences what long ones have.
attn.problem @p mask(#attn.causal) layout(thd) heads(4) dims(128) dtype(bf16) {sym_visibility = "private"}
// CHECK: attn.backward @leaf {{.*}} schedule(#tile.backward_kernels<accumulation = first_stores, dkdv = #tile.warp_specialized_backward<q_tile = 64, kv_tile = 128, warps = 8, ctas_per_sm = 1>>) schedule_reason("the schedule is given")
attn.backward @leaf of(@p)
  schedule(#tile.warp_specialized_backward<q_tile = 64, kv_tile = 128, warps = 8, ctas_per_sm = 1>)
attn.problem @wide mask(#attn.causal) layout(thd) heads(4) dims(256) dtype(bf16) {sym_visibility = "private"}
// CHECK: attn.backward @wide_leaf {{.*}} schedule(#tile.backward_kernels<accumulation = unordered, dkdv = #tile.warp_specialized_backward<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>, dv = #tile.warp_specialized_backward<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>>)
attn.backward @wide_leaf of(@wide)
  schedule(#tile.warp_specialized_backward<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>)
// CHECK: attn.backward @single_pass {{.*}} schedule(#tile.by_length<short_sequences = #tile.single_pass_backward<q_tile = 112, kv_tile = 96, warps = 8, ctas_per_sm = 1>, long_sequences = #tile.backward_kernels<accumulation = first_stores, dkdv = #tile.warp_specialized_backward<
attn.backward @single_pass of(@p)
  schedule(#tile.single_pass_backward<q_tile = 112, kv_tile = 96, warps = 8, ctas_per_sm = 1>)
// CHECK: attn.backward @stationary {{.*}} schedule(#tile.by_length<short_sequences = #tile.stationary_q_backward<q_tile = 192, kv_tile = 64, kv_tiles = 3, warps = 12, ctas_per_sm = 1>, long_sequences = #tile.backward_kernels<accumulation = first_stores,
attn.backward @stationary of(@p)
  schedule(#tile.stationary_q_backward<q_tile = 192, kv_tile = 64, kv_tiles = 3, warps = 12, ctas_per_sm = 1>)
// CHECK: attn.backward @by_length {{.*}} schedule(#tile.by_length<short_sequences = #tile.simt_rows<rows = 1, keys = 1, lanes = 16, warps = 4, ctas_per_sm = 4>, long_sequences = #tile.backward_kernels<accumulation = first_stores, dkdv = #tile.warp_specialized_backward<q_tile = 64, kv_tile = 128, warps = 8, ctas_per_sm = 1>>>)
attn.backward @by_length of(@p)
  schedule(#tile.by_length<short_sequences = #tile.simt_rows<rows = 1, keys = 1, lanes = 16, warps = 4, ctas_per_sm = 4>,
                           long_sequences = #tile.warp_specialized_backward<q_tile = 64, kv_tile = 128, warps = 8,
                                                                            ctas_per_sm = 1>>)

//--- on_cpu.mlir
// A CPU's thread is a CTA, or a warp of one group of lanes, and has no registers for Q.
// CHECK: tile.target = #tile.target<"cpu", chip = 0>
// CHECK: attn.problem @tiles {{.*}} schedule(#tile.tiled<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 2>)
attn.problem @tiles mask(#attn.full) layout(bshd) heads(4) dims(64) dtype(bf16)
  schedule(#tile.tiled<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 2, q_in_registers = true>)
// CHECK: attn.problem @rows {{.*}} schedule(#tile.simt_rows<rows = 2, keys = 4, lanes = 32, warps = 1, ctas_per_sm = 1>)
attn.problem @rows mask(#attn.full) layout(bshd) heads(4) dims(64) dtype(bf16)
  schedule(#tile.simt_rows<rows = 2, keys = 4, lanes = 8, warps = 4, ctas_per_sm = 4>)
// CHECK: attn.problem @cta {{.*}} schedule(#tile.cta_per_sequence<q_tile = 32, kv_tile = 32, warps = 1, ctas_per_sm = 4>)
attn.problem @cta mask(#attn.full) layout(bshd) heads(4) dims(64) dtype(bf16)
  schedule(#tile.cta_per_sequence<q_tile = 32, kv_tile = 32, warps = 2, ctas_per_sm = 4>)
// CHECK: attn.problem @split {{.*}} schedule(#tile.split_kv<splits = 2, of = #tile.tiled<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 2>>)
attn.problem @split mask(#attn.full) layout(bshd) heads(4) dims(64) dtype(bf16)
  schedule(#tile.split_kv<splits = 2, of = #tile.tiled<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 2,
                                                       q_in_registers = true>>)

//--- errors.mlir
// Schedules of the other direction.
// expected-error @below {{'attn.problem' op expected a schedule of a forward pass, such as #tile.tiled<...>, got: #tile.backward_kernels<}}
attn.problem @p mask(#attn.full) layout(bshd) heads(4) dims(64) dtype(bf16)
  schedule(#tile.backward_kernels<accumulation = unordered,
                                  dkdv = #tile.tiled_backward<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>>)

// -----

attn.problem @p mask(#attn.full) layout(bshd) heads(4) dims(64) dtype(bf16)
// expected-error @below {{'attn.backward' op expected a schedule of a backward pass, such as #tile.tiled_backward<...>, got: #tile.tiled<q_tile = 64}}
attn.backward @g of(@p) schedule(#tile.tiled<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>)

// -----

// What is no schedule, or none of a pass.
// expected-error @below {{'attn.problem' op expected a schedule of a forward pass, such as #tile.tiled<...>, got: #attn.full}}
attn.problem @p mask(#attn.full) layout(bshd) heads(4) dims(64) dtype(bf16) schedule(#attn.full)

// -----

// expected-error @below {{'attn.problem' op expected a schedule of a forward pass, such as #tile.tiled<...>, got: #tile.auxiliary<q_tile = 64}}
attn.problem @p mask(#attn.full) layout(bshd) heads(4) dims(64) dtype(bf16)
  schedule(#tile.auxiliary<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>)

// -----

attn.problem @p mask(#attn.full) layout(bshd) heads(4) dims(64) dtype(bf16)
// expected-error @below {{'attn.backward' op expected a schedule of a backward pass, such as #tile.tiled_backward<...>, got: "fast"}}
attn.backward @g of(@p) schedule("fast")

// -----

// A part that is no schedule of this pass.
// expected-error @below {{'attn.problem' op expected schedules of this pass, got: #tile.tiled_backward<q_tile = 64}}
attn.problem @p mask(#attn.full) layout(thd) heads(4) dims(64) dtype(bf16)
  schedule(#tile.by_length<short_sequences = #tile.simt_rows<rows = 1, keys = 1, lanes = 8, warps = 4, ctas_per_sm = 4>,
                           long_sequences = #tile.tiled_backward<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>>)

// -----

// expected-error @+2 {{expected a CTA or a warp for each short sequence and tiles of a grid for long ones, got: #tile.simt_rows<}}
attn.problem @p mask(#attn.full) layout(thd) heads(4) dims(64) dtype(bf16)
  schedule(#tile.by_length<short_sequences = #tile.simt_rows<rows = 1, keys = 1, lanes = 8, warps = 4, ctas_per_sm = 4>,
                           long_sequences = #tile.cta_per_sequence<q_tile = 16, kv_tile = 16, warps = 1, ctas_per_sm = 1>>)

//--- no_target.mlir
// expected-error @-1 {{expected a target, which attn-choose-schedule writes on a module, got: none}}
attn.problem @p mask(#attn.full) layout(bshd) heads(4) dims(64) dtype(bf16)

//--- no_schedule.mlir
module attributes {tile.target = #tile.target<"sm_80", chip = 80>} {
  // expected-error @below {{'attn.problem' op expected a schedule, which attn-choose-schedule writes, got: none}}
  attn.problem @p mask(#attn.full) layout(bshd) heads(4) dims(64) dtype(bf16)
}

// -----

module attributes {tile.target = #tile.target<"sm_80", chip = 80>} {
  attn.problem @p mask(#attn.full) layout(bshd) heads(4) dims(64) dtype(bf16) {sym_visibility = "private"}
  // expected-error @below {{'attn.backward' op expected a schedule, which attn-choose-schedule writes, got: none}}
  attn.backward @g of(@p)
}
