// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Dropout in gradients: numbers are drawn once where one kernel makes both dK and dV.
//
// RUN: attn-opt %s -attn-choose-schedule -convert-attn-to-tile -canonicalize | FileCheck %s
// RUN: attn-translate %s --target=sm_90a | FileCheck %s --check-prefix=TEXT

// CHECK-LABEL: tile.kernel @grads(
// CHECK: tile.probabilities
// CHECK-NEXT: tile.dropout %s at(%k0, %q0) dropout(%{{.*}}) below 3277 transposed marks
// CHECK-NEXT: tile.wait
// CHECK-NEXT: tile.dropout_grad_scores %dp, %s, %stats by 1.111{{.*}} transposed
// CHECK-NEXT: tile.mma_ab %dV, %s
// CHECK: tile.scale %dV by 1.111
// CHECK-LABEL: tile.kernel @grads_dq(
// CHECK: tile.probabilities
// CHECK-NEXT: tile.wait
// CHECK-NEXT: tile.dropout %dp at(%q0, %k0) dropout(%{{.*}}) below 3277 by 1.111{{.*}} : !tile.frag
// CHECK-NEXT: tile.grad_scores %dp, %s, %stats
// CHECK-LABEL: tile.kernel @grads_dsinks(
// Beside a dQ MMA warpgroup there is room for one tile of scores: the product with dO comes where they were.
// TEXT: attn::probabilities<true>(s, stats_tile,
// TEXT: attn::convert_at_once(p, s);
// TEXT: attn::mma_abt(s, V_rows, dO_tile);
// TEXT: attn::dropout_in_sign_transposed(p, k0{{.*}}, q0, dropout_state, 3277);
// TEXT-NEXT: attn::warpgroup_wait<0>(s);
// TEXT-NEXT: attn::dropout_grad_scores<true>(s, p, stats_tile, 1.111118646e+00f);
// TEXT-NEXT: attn::mma_ab(dV, p, dO_tile);
// TEXT-NEXT: attn::warpgroup_wait<0>(dV);
// TEXT-NEXT: attn::consumer_release(dO);
// TEXT-NEXT: attn::convert_at_once(p, s);
// TEXT-NEXT: attn::producer_store(dS, p);
// TEXT: attn::producer_commit(dS);
// TEXT-NEXT: attn::consumer_release_fenced(stats);
attn.problem @p mask(#attn.causal) layout(bshd) heads(8) dims(128) dtype(bf16) sink("sinks") dropout(0.1, "seed")
attn.backward @grads of(@p) requires_grad(["sinks"])
