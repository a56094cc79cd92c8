// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// SIMT rows for gradients of short sequences: one kernel.
//
// RUN: rm -rf %t && split-file %s %t
// RUN: attn-opt %t/once.mlir -attn-choose-schedule="target=sm_90a" -convert-attn-to-tile -canonicalize -cse | FileCheck %t/once.mlir
// RUN: attn-opt %t/group.mlir -attn-choose-schedule="target=sm_80" -convert-attn-to-tile -canonicalize -cse | FileCheck %t/group.mlir
// RUN: attn-opt %t/modified.mlir -attn-choose-schedule="target=sm_80" -convert-attn-to-tile -canonicalize -cse | FileCheck %t/modified.mlir
// RUN: attn-opt %t/chosen.mlir -attn-choose-schedule="target=sm_90a" -convert-attn-to-tile | FileCheck %t/chosen.mlir
// RUN: attn-opt %t/errors.mlir -attn-choose-schedule -convert-attn-to-tile -split-input-file -verify-diagnostics

// In one walk, in two where sequences are longer than their max_seqlen, and where heads share keys.
// RUN: attn-run %t/once.mlir --target=cpu --check --lengths-q=1,0,1,1,1 --lengths-kv=16,3,1,0,7 | FileCheck %s --check-prefix=SAME
// RUN: attn-run %t/once.mlir --target=cpu --check --lengths-q=1,5,1 --lengths-kv=16,9,40 | FileCheck %s --check-prefix=SAME
// RUN: attn-run %t/group.mlir --target=cpu --check --lengths-q=1,0,7,30 --lengths-kv=5,30,0,100 | FileCheck %s --check-prefix=SAME
// RUN: attn-run %t/wide.mlir --target=cpu --check --batch=5 --seqlen-q=2 --seqlen-kv=13 | FileCheck %s --check-prefix=SAME
// RUN: attn-run %t/modified.mlir --target=cpu --check --lengths-q=1,0,1,4 --lengths-kv=16,3,1,30 | FileCheck %s --check-prefix=SAME
// SAME: ok       dq: max error
// SAME: ok       dk: max error
// SAME: ok       dv: max error

//--- once.mlir
// Neither o nor a kernel ahead: delta comes with dQ. What is held of keys makes dK without reading them again.
// CHECK: tile.kernel @grads(%q: !tile.ptr<bf16>, %k: !tile.ptr<bf16>, %v: !tile.ptr<bf16>, %lse: !tile.ptr<f32>, %do: !tile.ptr<bf16>,
// CHECK-SAME: target("sm_80") grid(packed heads 2 tiles 1) schedule(#tile.simt_rows<rows = 1, keys = 1, lanes = 16, warps = 4, ctas_per_sm = 6>)
// CHECK: %[[FITS:.*]] = arith.andi %{{.*}} : i1
// CHECK: scf.if %[[FITS]] {
// CHECK: %probabilities = tile.alloc "probabilities" : !tile.simt_probabilities<1x16, 16>
// CHECK: tile.load_row_statistics %row, %{{.*}} rows(%len_q) : !tile.simt_softmax_state<1, 16>
// CHECK: scf.for
// CHECK: tile.accumulate_delta %dp, %s, %row
// CHECK: tile.mma_ab %dQ, %dp, %K
// CHECK: tile.mma_ab %pK, %s, %K
// CHECK: tile.cache_probabilities %probabilities, %s, %dp
// CHECK: tile.mma_atb %dV, %s, %dO
// CHECK: tile.subtract_delta %dQ, %pK, %row by
// CHECK: scf.for
// CHECK-NOT: tile.load_rows
// CHECK: tile.cached_grad_scores %dp, %probabilities, %row
// CHECK: tile.mma_atb %dK, %dp, %Q
// CHECK: } else {
// CHECK: tile.store_delta
// CHECK: tile.barrier warp
// CHECK: tile.load_row_statistics %{{.*}} delta(
// CHECK: tile.grad_scores
// Rows behind a sequence, before the first and behind the last.
// CHECK: tile.store_padding %{{.*}} stride(%dq_row)
// CHECK: tile.store_padding %{{.*}} stride(%dk_row)
attn.problem @p mask(#attn.full) layout(thd padded) heads(4) dims(128) dtype(bf16) max_seqlen(1, 16)
attn.backward @grads of(@p)

//--- group.mlir
// CHECK: grid(packed heads 1 tiles 1) schedule(#tile.simt_rows<rows = 2, keys = 2, lanes = 8, warps = 4, ctas_per_sm = 4>)
// CHECK-NOT: tile.weights
// CHECK: scf.for %{{.*}} = %c0_i32 to %c2_i32
// CHECK: tile.load_row_statistics %row, %{{.*}} dlse(
// CHECK: tile.barrier warp
// CHECK: tile.load_rows %K
// CHECK: scf.for %{{.*}} = %c0_i32 to %c2_i32
// CHECK: tile.load_rows %Q
attn.problem @p mask(#attn.causal<bottom_right>) layout(thd) heads(6, 3) dims(64, 48) dtype(f16) max_seqlen(3, 9)
attn.backward @grads of(@p) deterministic dlse
  schedule(#tile.simt_rows<rows = 2, keys = 2, lanes = 8, warps = 4, ctas_per_sm = 4>)

//--- modified.mlir
// What weighs gradients is probability times derivative; what weighs dO, and adds up to delta, the probability.
// CHECK: %weighted = tile.alloc "weighted" : !tile.simt_scores<1x1, 16>
// CHECK: tile.probabilities %s, %row at(%{{.*}}, %{{.*}}) weighted(%weighted : !tile.simt_scores<1x1, 16>)
// CHECK: math.tanh
// CHECK: tile.accumulate_delta %dp, %s, %row weighted(%weighted : !tile.simt_scores<1x1, 16>)
// CHECK: tile.mma_ab %dQ, %dp, %K
// CHECK: tile.mma_ab %pK, %weighted, %K
// CHECK: tile.cache_probabilities %probabilities, %weighted, %dp
// CHECK: tile.mma_atb %dV, %s, %dO
// CHECK: tile.store_delta
// CHECK: tile.grad_scores %dp, %{{.*}}, %row
attn.problem @p mask(#attn.full) layout(thd) heads(4) dims(128) dtype(bf16) score([#attn.softcap<10.0>, #attn.alibi]) max_seqlen(1, 16)
attn.backward @grads of(@p)

//--- wide.mlir
attn.problem @p mask(#attn.band<left = 3, right = 1>) layout(bshd) heads(3) dims(512, 264) dtype(bf16) scale(-0.1) max_seqlen(2, 16)
attn.backward @grads of(@p)

//--- chosen.mlir
// If long, not.
// CHECK: tile.kernel @capped({{.*}}) target("sm_80") grid(dense heads 1 tiles 1) schedule(#tile.simt_rows<rows = 1, keys = 1, lanes = 16, warps = 4, ctas_per_sm = 6>)
// CHECK: tile.kernel @long({{.*}}) target("sm_90a") grid(dense heads 2 keys)
attn.problem @p mask(#attn.full) layout(bshd) heads(2) dims(128) dtype(bf16) score([#attn.softcap<10.0>]) max_seqlen(1, 16)
attn.backward @capped of(@p)
attn.problem @q mask(#attn.full) layout(bshd) heads(2) dims(128) dtype(bf16) max_seqlen(1, 512)
attn.backward @long of(@q)

//--- errors.mlir
attn.problem @p mask(#attn.full) layout(bshd) heads(2) dims(320) dtype(bf16) max_seqlen(1, 16)
// expected-error @below {{'attn.backward' op expected #tile.simt_rows for head dims beyond 256, got: dim 320 with #tile.backward_kernels<}}
attn.backward @grads of(@p) schedule(#tile.tiled_backward<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>)

// -----

attn.problem @p mask(#attn.full) layout(bshd) heads(4, 2) dims(64) dtype(bf16) max_seqlen(1, 16)
// expected-error @below {{'attn.backward' op expected all 2 query heads of a kv head packed in a backward pass, got: #tile.cta_per_sequence<q_tile = 16, kv_tile = 16, warps = 1, ctas_per_sm = 1>}}
attn.backward @grads of(@p) schedule(#tile.cta_per_sequence<q_tile = 16, kv_tile = 16, warps = 1, ctas_per_sm = 1>)

// -----

attn.problem @p mask(#attn.full) layout(bshd) heads(4, 2) dims(64) dtype(bf16) max_seqlen(1, 16)
// expected-error @below {{expected pack_heads = 1 in a backward pass with #tile.simt_rows, got: #tile.simt_rows<rows = 2}}
attn.backward @grads of(@p)
  schedule(#tile.simt_rows<rows = 2, keys = 2, lanes = 8, warps = 4, ctas_per_sm = 4, pack_heads = 2>)

// -----

attn.problem @p mask(#attn.full) layout(bshd) heads(2) dims(64) dtype(bf16) max_seqlen(1, 16)
// expected-error @below {{'attn.backward' op expected head dims up to 256 and a q_tile in multiples of 8, got: dim 64 with #tile.cta_per_sequence<q_tile = 17, kv_tile = 24, warps = 2, ctas_per_sm = 1>}}
attn.backward @grads of(@p) schedule(#tile.cta_per_sequence<q_tile = 17, kv_tile = 24, warps = 2, ctas_per_sm = 1>)

// -----

attn.problem @p mask(#attn.full) layout(bshd) heads(2) dims(64) dtype(bf16) max_seqlen(1, 16)
// expected-error @below {{'attn.backward' op expected a schedule with tiles of a grid with partial_kv, got: #tile.cta_per_sequence<q_tile = 16, kv_tile = 24, warps = 1, ctas_per_sm = 1>}}
attn.backward @grads of(@p) partial_kv
  schedule(#tile.cta_per_sequence<q_tile = 16, kv_tile = 24, warps = 1, ctas_per_sm = 1>)

// -----

attn.problem @p mask(#attn.heads<#attn.full, #attn.causal>) layout(bshd) heads(2) dims(64) dtype(bf16) max_seqlen(1, 16)
// expected-error @below {{expected a schedule with tiles of a grid for a mask that differs between heads, got: #tile.simt_rows<}}
attn.backward @grads of(@p) schedule(#tile.simt_rows<rows = 2, keys = 2, lanes = 8, warps = 4, ctas_per_sm = 4>)
