// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Clauses under their names of version 0.1: accepted with a warning, and printed under the new ones.
// RUN: attn-opt %s --split-input-file --verify-diagnostics | FileCheck %s

//      CHECK: attn.problem @hints {{.*}} expected_seqlen(16, 32) max_seqlen(64) kv_list_capacity(512){{$}}
// CHECK-NEXT: attn.backward @grads of(@hints) partial_kv requires_grad(["sinks"]){{$}}
// expected-warning @+3 {{`typical` is now `expected_seqlen`; the old name is accepted until version 0.2}}
// expected-warning @+2 {{`bounds` is now `max_seqlen`; the old name is accepted until version 0.2}}
// expected-warning @+1 {{`visits` is now `kv_list_capacity`; the old name is accepted until version 0.2}}
attn.problem @hints mask(#attn.document) layout(thd) heads(1) dims(64) dtype(bf16) sink("sinks") typical(16, 32) bounds(64) visits(512)
// expected-warning @+2 {{`learned` is now `requires_grad`; the old name is accepted until version 0.2}}
// expected-warning @+1 {{`merged` is now `partial_kv`; the old name is accepted until version 0.2}}
attn.backward @grads of(@hints) learned(["sinks"]) merged

// -----

// One clause under both names.
// expected-error @+1 {{expected each clause once, got: `typical` again, before as `expected_seqlen`}}
attn.problem @twice mask(#attn.full) layout(thd) heads(1) dims(64) dtype(bf16) expected_seqlen(16) typical(16)
