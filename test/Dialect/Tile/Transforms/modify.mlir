// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Passes take `tile.modify` along with the scores: to where the product is waited for,
// before the mask's test, into every segment.
//
// RUN: attn-opt %s --attn-pipeline="target=sm_80 arch=90" | FileCheck %s --check-prefix=SM80
// RUN: attn-opt %s --attn-pipeline="target=sm_90a" | FileCheck %s --check-prefix=SM90

// Full tiles have no test, but their scores are modified like all others. (The walk
// begins at the diagonal.)
// SM80: scf.for
// SM80: tile.wait %{{.*}} : !tile.token<product>
// SM80: tile.modify %s
// SM80: tile.apply_mask %s
// SM80: tile.online_softmax
// SM80: scf.for
// SM80: tile.modify %s
// SM80-NOT: tile.apply_mask
// SM80: tile.online_softmax

// Roles: nothing of it where tiles are only brought; in the consumer once for the
// first tile, then where both products are over. Without a test it is part of what weighs.
// SM90: producer {
// SM90-NOT: tile.modify
// SM90: } consumer {
// SM90: tile.mma_abt
// SM90: tile.wait
// SM90: tile.modify
// SM90: tile.apply_mask
// SM90: tile.online_softmax %s
// SM90: scf.for
// SM90: tile.mma_abt
// SM90: tile.mma_ab %
// SM90: tile.wait
// SM90: tile.modify
// SM90: tile.apply_mask
// SM90: tile.softmax_convert %p, %s, %row scale 1.250000e-01 : !tile.register_operand
// SM90: scf.for
// SM90: tile.mma_ab %
// SM90-NOT: tile.modify
// SM90-NOT: tile.apply_mask
// SM90: tile.softmax_convert %p, %s, %row scale 1.250000e-01 at(%q0, %k0) : {{.*}} modify {
// SM90: tile.recompute_rows
// SM90: modify {
attn.problem @p mask(#attn.causal) layout(bshd) heads(8) dims(64) dtype(bf16) score([#attn.alibi])
