// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: attn-opt %s --split-input-file --pass-pipeline='builtin.module(attn-choose-schedule{target=sm_90a},convert-attn-to-tile,program.def(program-place-buffers))' | FileCheck %s

// dQ is added up: the first CTA in order stores, so nothing is cleared but the counters.
// CHECK: program.def @grads_program {
// CHECK: %do = program.tensor "do" operand
// CHECK-NEXT: %dq = program.tensor "dq" result : bf16 [batch, seqlen_q, 8, 64] strided(0, 1, 2)
// CHECK: %row_statistics = program.buffer "row_statistics" : f32 [2, 8, batch * ceil_div(seqlen_q, 128) * 128] place {{[0-9]+}}
// CHECK: program.launch @grads_preprocess grid(query_tiles, {{.*}}) (read %o, read %lse, read %do, write %row_statistics or zero, write %dq_semaphore or zero,
// CHECK: program.launch @grads grid(kv_tiles, 4 * (batch * ceil_div(seqlen_kv, 128))) (write %dk or zero, write %dv or zero, read %row_statistics, write %dq_accumulator, update %dq_semaphore,
// CHECK: program.launch @grads_postprocess grid(query_tiles, {{.*}}) (write %dq or zero, read %dq_accumulator, read %dq_semaphore,
attn.problem @p mask(#attn.causal) layout(bshd) heads(8, 4) dims(64) dtype(bf16)
attn.backward @grads of(@p)

// -----

// Rows of dQ have three writers: the kernel of short sequences, the key tile that alone sees them, and the sums of the others.
// CHECK: program.def @short_program {
// CHECK: program.launch @short_short grid(sequence_tiles, {{.*}}) ({{.*}}write %dq rows(0 of 3) or zero, write %dk rows(0 of 2) or zero, write %dv rows(0 of 2) or zero,
// CHECK: program.launch @short_work_tiles grid(clusters, 1)
// CHECK: program.launch @short grid(kv_tiles, {{.*}}write %dq rows(1 of 3), write %dk rows(1 of 2), write %dv rows(1 of 2),
// CHECK: program.launch @short_postprocess grid(query_tiles, {{.*}}) (write %dq rows(2 of 3),
attn.problem @p mask(#attn.causal) layout(thd) heads(8) dims(64) dtype(bf16) expected_seqlen(16)
attn.backward @short of(@p)

// -----

// Gradients of a sink and of a bias: sums over rows or keys in a buffer, and their totals.
// CHECK: program.def @learned_program {
// CHECK: %dbias = program.tensor "dbias" result : f32 [seqlen_kv]
// CHECK-NEXT: %dsinks = program.tensor "dsinks" result : f32 [8]
// CHECK: program.launch @learned_dbias_parts grid(sequence_tiles, 8 * max(batch, 1) * 32) ({{.*}}write %partial_dbias
// CHECK: program.launch @learned_dbias grid(sequence_tiles, 8 * max(batch, 1)) ({{.*}}write %dbias{{.*}}read %partial_dbias
// CHECK: program.launch @learned_dsinks grid(sequence_tiles, 8 * max(batch, 1)) ({{.*}}write %dsinks
attn.problem @p mask(#attn.causal) layout(bshd) heads(8) dims(64) dtype(bf16) score(#attn.bias<"bias", k>) sink("sinks")
attn.backward @learned of(@p) requires_grad(["bias", "sinks"])

// -----

// A KV tile that several CTAs share is added up by a kernel of its own.
// CHECK: program.def @shared_program {
// CHECK: program.launch @shared_q_splits grid(clusters, 1) (write %q_splits or zero, write %q_split_counts or zero, write %split_tiles or zero, size 8 * multiprocessors,
// CHECK: program.launch @shared grid(kv_tiles, 2 * (batch * ceil_div(seqlen_kv, 128)) + 8 * multiprocessors) (write %dk rows(0 of 2) or zero, write %dv rows(0 of 2) or zero,
// CHECK-SAME: read %q_splits, read %q_split_counts, write %partial_dk or zero, write %partial_dv or zero,
// CHECK: program.launch @shared_combine grid(kv_tiles, min(2 * (batch * ceil_div(seqlen_kv, 8)), 2048)) (write %dk rows(1 of 2), write %dv rows(1 of 2), read %q_split_counts, read %split_tiles, read %partial_dk, read %partial_dv,
attn.problem @p mask(#attn.causal) layout(bshd) heads(8, 2) dims(64) dtype(bf16)
attn.backward @shared of(@p)
