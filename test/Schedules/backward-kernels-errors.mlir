// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// `backward_kernels` that a target or a problem cannot have: how dQ is made, and which kernels there are.
//
// RUN: rm -rf %t && split-file %s %t
// RUN: attn-opt %t/hopper.mlir -attn-choose-schedule="target=sm_90a" -split-input-file -verify-diagnostics
// RUN: attn-opt %t/others.mlir -attn-choose-schedule="target=sm_80" -split-input-file -verify-diagnostics

//--- hopper.mlir
#wide = #tile.warp_specialized_backward<q_tile = 32, kv_tile = 192, warps = 12, ctas_per_sm = 1, single_loop = true>
#queries = #tile.warp_specialized_backward<q_tile = 128, kv_tile = 64, warps = 8, ctas_per_sm = 1>
attn.problem @p mask(#attn.causal) layout(bshd) heads(4) dims(64) dtype(bf16)
// expected-error @below {{expected a kv_tile to 128 with split_q, got: #tile.backward_kernels<accumulation = separate}}
attn.backward @grads of(@p)
  schedule(#tile.backward_kernels<accumulation = separate, dkdv = #wide, dq = #queries, split_q = 16>)

// -----

#keys = #tile.warp_specialized_backward<q_tile = 64, kv_tile = 128, warps = 8, ctas_per_sm = 1, single_loop = true>
attn.problem @p mask(#attn.document) layout(thd) heads(4) dims(128) dtype(bf16)
// expected-error @below {{arrays of the mask decide which key tiles add to it), got: #tile.backward_kernels<accumulation = first_stores}}
attn.backward @grads of(@p) schedule(#tile.backward_kernels<accumulation = first_stores, dkdv = #keys>)

// -----

#keys = #tile.warp_specialized_backward<q_tile = 64, kv_tile = 128, warps = 8, ctas_per_sm = 1, single_loop = true>
attn.problem @p mask(#attn.causal) layout(thd) heads(4) dims(128) dtype(bf16)
// expected-error @below {{expected ordered or separate dQ accumulation in a deterministic pass, got: #tile.backward_kernels<accumulation = first_stores}}
attn.backward @grads of(@p) deterministic
  schedule(#tile.backward_kernels<accumulation = first_stores, dkdv = #keys>)

// -----

#keys = #tile.warp_specialized_backward<q_tile = 64, kv_tile = 128, warps = 8, ctas_per_sm = 1, single_loop = true>
attn.problem @p mask(#attn.causal) layout(thd) heads(4) dims(128) dtype(bf16)
// expected-error @below {{expected no split_q with packed layouts, got: #tile.backward_kernels<accumulation = first_stores}}
attn.backward @grads of(@p)
  schedule(#tile.backward_kernels<accumulation = first_stores, dkdv = #keys, split_q = 16>)

// -----

#keys = #tile.warp_specialized_backward<q_tile = 64, kv_tile = 128, warps = 8, ctas_per_sm = 1, single_loop = true>
attn.problem @p mask(#attn.document) layout(bshd) heads(4) dims(128) dtype(bf16) expected_seqlen(1024)
// expected-error @below {{expected no split_q with a mask that reads arrays, without lists of tiles, got: #tile.backward_kernels<accumulation = unordered}}
attn.backward @grads of(@p)
  schedule(#tile.backward_kernels<accumulation = unordered, dkdv = #keys, split_q = 16>)

// -----

#keys = #tile.warp_specialized_backward<q_tile = 64, kv_tile = 128, warps = 8, ctas_per_sm = 1, single_loop = true>
attn.problem @p mask(#attn.block_map<"a", "b", q = 64, kv = 64, per_head>) layout(bshd) heads(4) dims(128) dtype(bf16)
// expected-error @below {{expected no split_q with a mask that differs among query heads, got: #tile.backward_kernels<accumulation = unordered}}
attn.backward @grads of(@p)
  schedule(#tile.backward_kernels<accumulation = unordered, dkdv = #keys, split_q = 16>)

// -----

#keys = #tile.warp_specialized_backward<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1, single_loop = true>
#values = #tile.warp_specialized_backward<q_tile = 64, kv_tile = 128, warps = 8, ctas_per_sm = 1, single_loop = true>
attn.problem @p mask(#attn.document) layout(bshd) heads(4) dims(256) dtype(bf16)
// expected-error @below {{expected dv tiles of the same size as dkdv tiles with split_q and lists of tiles, got: #tile.backward_kernels<accumulation = separate}}
attn.backward @grads of(@p)
  schedule(#tile.backward_kernels<accumulation = separate, dkdv = #keys, dv = #values, dq = #keys, split_q = 16>)

// -----

#keys = #tile.warp_specialized_backward<q_tile = 64, kv_tile = 128, warps = 8, ctas_per_sm = 1, single_loop = true>
attn.problem @p mask(#attn.causal) layout(thd) heads(4) dims(256) dtype(bf16)
// expected-error @below {{expected a dv kernel of its own for head dims beyond 128, got: #tile.backward_kernels<accumulation = unordered}}
attn.backward @grads of(@p) schedule(#tile.backward_kernels<accumulation = unordered, dkdv = #keys>)

// -----

// Each kernel is of this target and has the tile that it needs.
#keys = #tile.tiled_backward<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>
attn.problem @p mask(#attn.causal) layout(thd) heads(4) dims(128) dtype(bf16)
// expected-error @below {{expected #tile.warp_specialized_backward for target `sm_90a`, got: #tile.tiled_backward<}}
attn.backward @grads of(@p) schedule(#tile.backward_kernels<accumulation = unordered, dkdv = #keys>)

// -----

#keys = #tile.warp_specialized_backward<q_tile = 64, kv_tile = 128, warps = 8, ctas_per_sm = 1, single_loop = true>
#values = #tile.warp_specialized_backward<q_tile = 96, kv_tile = 128, warps = 8, ctas_per_sm = 1>
attn.problem @p mask(#attn.causal) layout(thd) heads(4) dims(256) dtype(bf16)
// expected-error @below {{expected a q_tile that divides 128 and a kv_tile of 16 rows for each warp, got: #tile.warp_specialized_backward<q_tile = 96}}
attn.backward @grads of(@p)
  schedule(#tile.backward_kernels<accumulation = unordered, dkdv = #keys, dv = #values>)

// -----

#keys = #tile.warp_specialized_backward<q_tile = 64, kv_tile = 128, warps = 8, ctas_per_sm = 1>
attn.problem @p mask(#attn.causal) layout(thd) heads(4) dims(128) dtype(bf16)
// expected-error @below {{expected for dq #tile.warp_specialized_backward with a q_tile that divides 128, of 16 rows for each warp, got: #tile.warp_specialized_backward<q_tile = 64, kv_tile = 128}}
attn.backward @grads of(@p) schedule(#tile.backward_kernels<accumulation = separate, dkdv = #keys, dq = #keys>)

// -----

// The kernels of long sequences are checked, too.
#short = #tile.single_pass_backward<q_tile = 128, kv_tile = 128, warps = 8, ctas_per_sm = 1>
#keys = #tile.warp_specialized_backward<q_tile = 64, kv_tile = 128, warps = 8, ctas_per_sm = 1, single_loop = true>
attn.problem @p mask(#attn.causal) layout(thd) heads(4) dims(128) dtype(bf16)
// expected-error @below {{expected ordered or separate dQ accumulation in a deterministic pass, got: #tile.backward_kernels<}}
attn.backward @grads of(@p) deterministic
  schedule(#tile.by_length<short_sequences = #short,
                           long_sequences = #tile.backward_kernels<accumulation = unordered, dkdv = #keys>>)

// -----

#short = #tile.single_pass_backward<q_tile = 128, kv_tile = 128, warps = 8, ctas_per_sm = 1>
attn.problem @p mask(#attn.causal) layout(thd) heads(4) dims(128) dtype(bf16)
// expected-error @below {{expected schedules of this pass, got: #tile.warp_specialized<}}
attn.backward @grads of(@p)
  schedule(#tile.by_length<short_sequences = #short,
                           long_sequences = #tile.warp_specialized<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>>)

//--- others.mlir
#keys = #tile.tiled_backward<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>
attn.problem @p mask(#attn.causal) layout(thd) heads(4) dims(128) dtype(bf16)
// expected-error @below {{expected a separate dQ kernel for target `sm_80`, got: #tile.backward_kernels<accumulation = unordered}}
attn.backward @grads of(@p) schedule(#tile.backward_kernels<accumulation = unordered, dkdv = #keys>)

// -----

attn.problem @p mask(#attn.causal) layout(thd) heads(4) dims(128) dtype(bf16)
// expected-error @below {{expected #tile.tiled_backward for target `sm_80`, got: #tile.warp_specialized_backward<}}
attn.backward @grads of(@p)
  schedule(#tile.warp_specialized_backward<q_tile = 64, kv_tile = 128, warps = 8, ctas_per_sm = 1>)

// -----

attn.problem @p mask(#attn.causal) layout(thd) heads(4) dims(128) dtype(bf16)
// expected-error @below {{expected a q_tile that divides 128 and a kv_tile in multiples of 16 * warps, got: #tile.tiled_backward<q_tile = 64, kv_tile = 32}}
attn.backward @grads of(@p) schedule(#tile.tiled_backward<q_tile = 64, kv_tile = 32, warps = 4, ctas_per_sm = 1>)

// -----

#keys = #tile.tiled_backward<q_tile = 32, kv_tile = 64, warps = 4, ctas_per_sm = 1>
attn.problem @p mask(#attn.causal) layout(thd) heads(4) dims(128) dtype(bf16)
// expected-error @below {{expected for dq #tile.tiled_backward with a q_tile that divides 128, in multiples of 16 * warps, got: #tile.tiled_backward<q_tile = 32}}
attn.backward @grads of(@p) schedule(#tile.backward_kernels<accumulation = separate, dkdv = #keys, dq = #keys>)
