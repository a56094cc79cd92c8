// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Schedules of backward passes that the attribute, the pass or target `sm_90a` refuses.
//
// RUN: attn-opt %s -attn-choose-schedule="target=sm_90a" -convert-attn-to-tile -split-input-file -verify-diagnostics

attn.problem @p mask(#attn.causal) layout(thd) heads(16, 4) dims(128) dtype(bf16)
// expected-error @below {{'attn.backward' op expected a schedule of a backward pass, such as #tile.tiled_backward<...>, got: 3 : i64}}
attn.backward @grads of(@p) schedule(3)

// -----

// Not whole warpgroups.
attn.problem @p mask(#attn.causal) layout(thd) heads(16, 4) dims(128) dtype(bf16)
// expected-error @+2 {{expected 4, 8 or 12 warps, got: 2}}
attn.backward @grads of(@p)
  schedule(#tile.warp_specialized_backward<q_tile = 96, kv_tile = 128, warps = 2, ctas_per_sm = 1>)

// -----

attn.problem @p mask(#attn.causal) layout(thd) heads(16, 4) dims(128) dtype(bf16)
// expected-error @below {{expected a q_tile that divides 128 and a kv_tile of 16 rows for each warp, got: #tile.warp_specialized_backward<q_tile = 96}}
attn.backward @grads of(@p)
  schedule(#tile.warp_specialized_backward<q_tile = 96, kv_tile = 128, warps = 8, ctas_per_sm = 1>)

// -----

// A stationary tile of queries, which is dQ's, for dK.
attn.problem @p mask(#attn.causal) layout(thd) heads(16, 4) dims(128) dtype(bf16)
// expected-error @below {{and a kv_tile of 16 rows for each warp, got: #tile.warp_specialized_backward<q_tile = 128, kv_tile = 64, warps = 8}}
attn.backward @grads of(@p)
  schedule(#tile.warp_specialized_backward<q_tile = 128, kv_tile = 64, warps = 8, ctas_per_sm = 1>)

// -----

attn.problem @p mask(#attn.causal) layout(thd) heads(16, 4) dims(256) dtype(bf16)
// expected-error @below {{expected no dq_columns where dV has a kernel of its own, got: #tile.warp_specialized_backward<q_tile = 64}}
attn.backward @grads of(@p)
  schedule(#tile.warp_specialized_backward<q_tile = 64, kv_tile = 128, warps = 8, ctas_per_sm = 1, single_loop = true,
                                           dq_columns = 64>)

// -----

attn.problem @p mask(#attn.prefix<"lengths">) layout(bshd) heads(16, 4) dims(128) dtype(bf16)
// expected-error @below {{expected no dq_columns where dQ has a kernel of its own, got: #tile.warp_specialized_backward<q_tile = 64}}
attn.backward @grads of(@p) deterministic
  schedule(#tile.warp_specialized_backward<q_tile = 64, kv_tile = 128, warps = 8, ctas_per_sm = 1, single_loop = true,
                                           dq_columns = 64>)

// -----

// Beside a dQ MMA warpgroup two loops have no registers.
attn.problem @p mask(#attn.causal) layout(bshd) heads(16, 4) dims(128) dtype(bf16)
// expected-error @+2 {{ctas_per_sm = 1, stages = 2, no single_loop}}
attn.backward @grads of(@p)
  schedule(#tile.warp_specialized_backward<q_tile = 64, kv_tile = 128, warps = 8, ctas_per_sm = 1, dq_columns = 64>)

// -----

attn.problem @p mask(#attn.causal) layout(bshd) heads(4, 2) dims(64) dtype(bf16)
// expected-error @+2 {{expected at most 3 CTAs and 12 consumer warps a multiprocessor, got: 9 CTAs of 8 warps}}
attn.backward @grads of(@p)
  schedule(#tile.warp_specialized_backward<q_tile = 64, kv_tile = 128, warps = 8, ctas_per_sm = 9>)

// -----

attn.problem @p mask(#attn.causal) layout(bshd) heads(4, 2) dims(64) dtype(bf16)
// expected-error @below {{expected a q_tile in multiples of 64, 4 or 8 warps, and a warpgroup for each 64 rows, where dQ is accumulated, got: #tile.warp_specialized_backward<q_tile = 64, kv_tile = 192, warps = 12}}
attn.backward @grads of(@p)
  schedule(#tile.warp_specialized_backward<q_tile = 64, kv_tile = 192, warps = 12, ctas_per_sm = 1>)

// -----

attn.problem @p mask(#attn.causal) layout(bshd) heads(4, 2) dims(64) dtype(bf16)
// expected-error @below {{where dQ is accumulated, got: #tile.warp_specialized_backward<q_tile = 32, kv_tile = 64, warps = 4, ctas_per_sm = 2>}}
attn.backward @grads of(@p)
  schedule(#tile.warp_specialized_backward<q_tile = 32, kv_tile = 64, warps = 4, ctas_per_sm = 2>)

// -----

attn.problem @p mask(#attn.causal) layout(bshd) heads(4, 2) dims(64) dtype(bf16)
// expected-error @below {{where dQ is accumulated, got: #tile.warp_specialized_backward<q_tile = 128, kv_tile = 64, warps = 4, ctas_per_sm = 1>}}
attn.backward @grads of(@p)
  schedule(#tile.warp_specialized_backward<q_tile = 128, kv_tile = 64, warps = 4, ctas_per_sm = 1>)

// -----

// Heads that share keys.
attn.problem @p mask(#attn.causal) layout(bshd) heads(16, 4) dims(128) dtype(bf16)
// expected-error @below {{expected target `sm_90a`, rows and keys both packed or both dense, as many kv heads as heads, dims to 128, no score modifiers and no block maps for a single pass over short sequences, got: #tile.single_pass_backward<q_tile = 96}}
attn.backward @grads of(@p)
  schedule(#tile.single_pass_backward<q_tile = 96, kv_tile = 96, warps = 8, ctas_per_sm = 1>)

// -----

// Schedules of forward passes, and of kernels beside attention.
attn.problem @p mask(#attn.causal) layout(bshd) heads(16, 4) dims(128) dtype(bf16)
// expected-error @below {{expected a schedule of a backward pass, such as #tile.tiled_backward<...>, got: #tile.warp_specialized<q_tile = 128}}
attn.backward @grads of(@p)
  schedule(#tile.warp_specialized<q_tile = 128, kv_tile = 128, warps = 8, ctas_per_sm = 1, pingpong = true>)

// -----

attn.problem @p mask(#attn.causal) layout(bshd) heads(16, 4) dims(128) dtype(bf16)
// expected-error @below {{expected a schedule of a backward pass, such as #tile.tiled_backward<...>, got: #tile.split_kv<splits = 2, of = #tile.tiled<}}
attn.backward @grads of(@p)
  schedule(#tile.split_kv<splits = 2, of = #tile.tiled<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>>)

// -----

attn.problem @p mask(#attn.causal) layout(bshd) heads(16, 4) dims(128) dtype(bf16)
// expected-error @below {{expected a schedule of a backward pass, such as #tile.tiled_backward<...>, got: #tile.auxiliary<}}
attn.backward @grads of(@p) schedule(#tile.auxiliary<q_tile = 128, kv_tile = 128, warps = 8, ctas_per_sm = 1>)
