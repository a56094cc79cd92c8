// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: attn-opt %s --convert-attn-to-tile="target=sm_90a" -split-input-file -verify-diagnostics

attn.problem @p mask(#attn.causal) layout(thd) heads(16, 4) dims(128) dtype(bf16)
// expected-error @below {{expected a #tile.config as its config, got: 3 : i64}}
attn.backward @grads of(@p) config(3)

// -----

attn.problem @p mask(#attn.causal) layout(thd) heads(16, 4) dims(128) dtype(bf16)
// expected-error @below {{expected a q_tile that divides 128 and a kv_tile of 16 rows for each of 4, 8 or 12 warps for target `sm_90a`, got: #tile.config<q_tile = 96, kv_tile = 128, warps = 2, blocks = 1>}}
attn.backward @grads of(@p) config(#tile.config<q_tile = 96, kv_tile = 128, warps = 2, blocks = 1>)

// -----

attn.problem @p mask(#attn.causal) layout(thd) heads(16, 4) dims(128) dtype(bf16)
// expected-error @below {{expected pack_heads = 1 with gradients on tiles, got: #tile.config<q_tile = 64, kv_tile = 128, warps = 8, blocks = 1, pack_heads = 4>}}
attn.backward @grads of(@p) config(#tile.config<q_tile = 64, kv_tile = 128, warps = 8, blocks = 1, pack_heads = 4>)

// -----

attn.problem @p mask(#attn.causal) layout(thd) heads(16, 4) dims(256) dtype(bf16)
// expected-error @below {{expected no reducer where dV has a kernel of its own, got: #tile.config<q_tile = 64, kv_tile = 128, warps = 8, blocks = 1, one_body = true, reducer = 64>}}
attn.backward @grads of(@p) config(#tile.config<q_tile = 64, kv_tile = 128, warps = 8, blocks = 1, one_body = true, reducer = 64>)

// -----

attn.problem @p mask(#attn.prefix<"lengths">) layout(bshd) heads(16, 4) dims(128) dtype(bf16)
// expected-error @below {{expected no reducer where dQ has a kernel of its own (deterministic, and arrays of the mask decide which key tiles add to it), got: #tile.config}}
attn.backward @grads of(@p) deterministic config(#tile.config<q_tile = 64, kv_tile = 128, warps = 8, blocks = 1, one_body = true, reducer = 64>)

// -----

attn.problem @p mask(#attn.causal) layout(bshd) heads(16, 4) dims(128) dtype(bf16)
// expected-error @below {{expected look = 1 but for target `sm_90a`, rows and keys both packed or both dense, as many kv heads, dims to 128, no score modifiers and block maps, and with it 8 warps, q_tile and kv_tile * look from 80 to 128, or 12 warps and q_tile from 144 to 192 or 8 and from 208 to 256, with kv_tile of 48 or 64 and kv_tile * look to 256, nothing else but blocks and stages, got: #tile.config<q_tile = 64, kv_tile = 128, warps = 8, blocks = 1, look = 2>}}
attn.backward @grads of(@p) config(#tile.config<q_tile = 64, kv_tile = 128, warps = 8, blocks = 1, look = 2>)

// -----

attn.problem @p mask(#attn.causal) layout(bshd) heads(16, 4) dims(128) dtype(bf16)
// expected-error @below {{expected the default hold_q, turns and splits with gradients on tiles, got: #tile.config<q_tile = 64, kv_tile = 128, warps = 8, blocks = 1, turns = true>}}
attn.backward @grads of(@p) config(#tile.config<q_tile = 64, kv_tile = 128, warps = 8, blocks = 1, turns = true>)

// -----

attn.problem @p mask(#attn.causal) layout(bshd) heads(16, 4) dims(128) dtype(bf16)
// expected-error @below {{expected the default hold_q, turns and splits with gradients on tiles, got: #tile.config<q_tile = 64, kv_tile = 128, warps = 8, blocks = 1, hold_q = true>}}
attn.backward @grads of(@p) config(#tile.config<q_tile = 64, kv_tile = 128, warps = 8, blocks = 1, hold_q = true>)

// -----

attn.problem @p mask(#attn.causal) layout(bshd) heads(16, 4) dims(128) dtype(bf16)
// expected-error @below {{expected the default hold_q, turns and splits with gradients on tiles, got: #tile.config<q_tile = 64, kv_tile = 128, warps = 8, blocks = 1, splits = 2>}}
attn.backward @grads of(@p) config(#tile.config<q_tile = 64, kv_tile = 128, warps = 8, blocks = 1, splits = 2>)

// -----

attn.problem @p mask(#attn.causal) layout(bshd) heads(4, 2) dims(64) dtype(bf16)
// expected-error @below {{expected at most 3 blocks and 12 warps a multiprocessor for target `sm_90a`, got: #tile.config<q_tile = 64, kv_tile = 128, warps = 8, blocks = 9>}}
attn.backward @grads of(@p) config(#tile.config<q_tile = 64, kv_tile = 128, warps = 8, blocks = 9>)

// -----

attn.problem @p mask(#attn.causal) layout(bshd) heads(4, 2) dims(64) dtype(bf16)
// expected-error @below {{expected a q_tile in multiples of 64, 4 or 8 warps, and a warpgroup for each 64 rows, where dQ is added up, got: #tile.config<q_tile = 64, kv_tile = 192, warps = 12, blocks = 1>}}
attn.backward @grads of(@p) config(#tile.config<q_tile = 64, kv_tile = 192, warps = 12, blocks = 1>)

// -----

attn.problem @p mask(#attn.causal) layout(bshd) heads(4, 2) dims(64) dtype(bf16)
// expected-error @below {{expected a q_tile in multiples of 64, 4 or 8 warps, and a warpgroup for each 64 rows, where dQ is added up, got: #tile.config<q_tile = 32, kv_tile = 64, warps = 4, blocks = 2>}}
attn.backward @grads of(@p) config(#tile.config<q_tile = 32, kv_tile = 64, warps = 4, blocks = 2>)

// -----

attn.problem @p mask(#attn.causal) layout(bshd) heads(4, 2) dims(64) dtype(bf16)
// expected-error @below {{expected a q_tile in multiples of 64, 4 or 8 warps, and a warpgroup for each 64 rows, where dQ is added up, got: #tile.config<q_tile = 128, kv_tile = 64, warps = 4, blocks = 1>}}
attn.backward @grads of(@p) config(#tile.config<q_tile = 128, kv_tile = 64, warps = 4, blocks = 1>)
