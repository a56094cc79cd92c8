// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What a backward pass becomes: rows' statistics, dK and dV with key tiles at rest, dQ with query tiles at rest.
// RUN: attn-opt %s -attn-choose-schedule=target=cpu -convert-attn-to-tile | FileCheck %s
// RUN: attn-opt %s -attn-choose-schedule=target=sm_90a -convert-attn-to-tile | FileCheck %s --check-prefix=HOPPER

attn.problem @p mask(#attn.causal) layout(thd) heads(4, 2) dims(64) dtype(bf16) {sym_visibility = "private"}
attn.backward @grads of(@p) dlse

// CHECK-NOT: attn.
// CHECK: tile.kernel @grads_preprocess({{.*}}) target("cpu") grid(packed heads 4) schedule(#tile.auxiliary<q_tile = 128
// CHECK: tile.preprocess %tile_statistics {{.*}} dlse(

// Key tiles and kv heads; for both query heads of one.
// CHECK: tile.kernel @grads({{.*}}) target("cpu") grid(packed heads 2 keys)
// CHECK: scf.if
// CHECK: tile.store_padding %dk_rows
// CHECK: tile.store_padding %dv_rows
// CHECK: scf.for
// CHECK: tile.kv_loop [%begin, %full_begin, %end] tests {{\[\[}}0], []] carry()
// CHECK: tile.mma_abt %s, %K, %Q
// CHECK: tile.mma_abt %dp, %V, %dO
// CHECK: tile.apply_mask %s at({{.*}}) transposed
// CHECK-NEXT: (%k{{.*}}: i32, %q{{.*}}: i32):
// CHECK: tile.probabilities %s, %stats at({{.*}}) scale 1.250000e-01 transposed
// CHECK: tile.mma_ab %dV, %s, %dO
// CHECK: tile.grad_scores %dp, %s, %stats transposed
// CHECK: tile.mma_ab %dK, %dp, %Q
// CHECK: tile.barrier
// CHECK: tile.scale %dK by 1.250000e-01

// CHECK: tile.kernel @grads_dq({{.*}}) target("cpu") grid(packed heads 4)
// CHECK: tile.store_padding %dq_rows
// CHECK: tile.kv_loop
// CHECK: tile.mma_abt %s, %Q, %K
// CHECK: tile.mma_abt %dp, %dO, %V
// CHECK: tile.mma_ab %dQ, %dp, %K

// Boxes end where the sequence does: what another one has behind it would join its gradients. Weights, and then gradients of
// scores, are held in registers, where scores were.
// HOPPER: tile.kernel @grads_preprocess({{.*}}) target("sm_80")
// HOPPER: tile.kernel @grads({{.*}}) target("sm_90a") {{.*}}dq_columns = 32
// HOPPER: tile.copy_tma %K, %k_map at(%[[KEY:.*]], %kv_head) rows(%[[KEYS:.*]]) : {{.*}}, !tile.tensor_map<128xbf16, packed>
// HOPPER-NEXT: tile.copy_tma %V, %v_map at(%[[KEY]], %kv_head) rows(%[[KEYS]]) : {{.*}}, !tile.tensor_map<128xbf16, packed>
// HOPPER: %[[LEFT:.*]] = arith.subi %len_q, %q0
// HOPPER: tile.copy_tma %Q, %q_map at(%[[QUERY:.*]], %h) rows(%[[LEFT]]) : {{.*}}, !tile.tensor_map<128xbf16, packed>
// HOPPER: tile.convert %p, %s {at_once}
// HOPPER-NEXT: tile.copy_tma %dO, %do_map at(%[[QUERY]], %h) rows(%[[LEFT]]) : {{.*}}, !tile.tensor_map<128xbf16, packed>
// HOPPER: tile.mma_abt %s, %V, %dO
// HOPPER: tile.mma_ab %dV, %p, %dO
// HOPPER: tile.grad_scores %s, %p, %stats transposed
// HOPPER: tile.convert %p, %s {at_once}
// dQ is added up by key tiles, by a warpgroup of its own, and rounded by a kernel of its own.
// HOPPER: tile.store_and_sync %dS, %p
// HOPPER: tile.mma_atb %dQ, %dS_tile, %K : !tile.frag<256x32, 16>
// HOPPER: tile.mma_ab %dK, %p, %Q
// Tiles of packed sequences one after the other: the last queries first, in the order of key tiles.
// HOPPER: tile.add_global %accumulator, %dQ left(%{{[^)]*}}) through(%staging : !tile.staging<2, 32768>) semaphore(%semaphore of %key_tile)
// HOPPER-NEXT: (%[[OTHER:.*]]: i32):
// HOPPER: tile.yield %{{.*}} : i1
// HOPPER-NOT: tile.barrier
// HOPPER: tile.kernel @grads_postprocess({{.*}}) target("sm_80")
// HOPPER: tile.postprocess %dq_rows stride(%dq_row), %accumulator rows(%rows of %write_rows) by 1.250000e-01 dim 64 columns 32 semaphore(%semaphore) :

// The next tile's keys come while this one's are in use; its values, too, if they are narrow.
// RUN: sed 's/heads(4, 2)/heads(4)/' %s | attn-opt -attn-choose-schedule=target=sm_90a -convert-attn-to-tile | FileCheck %s --check-prefix=AHEAD
// AHEAD: tile.kernel @grads({{.*}}) target("sm_90a") {{.*}}dq_columns = 32
// AHEAD: tile.alloc "K" slots 2
// AHEAD: tile.alloc "V" slots 2
// AHEAD: tile.alloc "staging" : !tile.staging<1, 32768>
// AHEAD-NOT: tile.index warpgroup

// Query tiles as narrow as what a warpgroup has of the keys: each walks along those that its own keys see. Not where heads share keys, or scores of packed
// rows, or in order, are changed: there are no registers for it; nor with ALiBi.
// RUN: sed 's/dims(64)/dims(128)/; s/heads(4, 2)/heads(4)/' %s | attn-opt -attn-choose-schedule=target=sm_90a -convert-attn-to-tile | FileCheck %s --check-prefix=OWN
// RUN: sed 's/dims(64)/dims(128)/; s/heads(4, 2)/heads(4)/; s/dtype/score([#attn.softcap<30.0>]) dtype/' %s | attn-opt -attn-choose-schedule=target=sm_90a -convert-attn-to-tile | FileCheck %s --check-prefix=SAME
// RUN: sed 's/dims(64)/dims(128)/' %s | attn-opt -attn-choose-schedule=target=sm_90a -convert-attn-to-tile | FileCheck %s --check-prefix=SAME
// OWN: tile.kernel @grads({{.*}}) target("sm_90a") {{.*}}dq_columns = 64
// OWN: tile.alloc "K" slots 2
// OWN: tile.alloc "V" :
// OWN: %warpgroup = tile.index warpgroup
// OWN: tile.kv_loop [%{{.*}}, %{{.*}}, %[[ALL:.*]]] tests {{.*}} own [%{{.*}}, %{{.*}}, %{{.*}}] carry()
// SAME: tile.kernel @grads({{.*}}) target("sm_90a")
// SAME-NOT: tile.index warpgroup
// RUN: sed 's/thd/bshd/; s/dims(64)/dims(128)/; s/heads(4, 2)/heads(4)/; s/dtype/score([#attn.softcap<30.0>]) dtype/' %s | attn-opt -attn-choose-schedule=target=sm_90a -convert-attn-to-tile | FileCheck %s --check-prefix=CAPPED
// CAPPED: tile.kv_loop {{.*}} own [%{{.*}}, %{{.*}}, %{{.*}}] carry()
// RUN: sed 's/thd/bshd/; s/dims(64)/dims(128)/; s/heads(4, 2)/heads(4)/; s/dtype/score([#attn.softcap<30.0>]) dtype/; s/dlse/deterministic/' %s | attn-opt -attn-choose-schedule=target=sm_90a -convert-attn-to-tile | FileCheck %s --check-prefix=SAME
// RUN: sed 's/thd/bshd/; s/dims(64)/dims(128)/; s/heads(4, 2)/heads(4)/; s/dtype/score([#attn.alibi]) dtype/' %s | attn-opt -attn-choose-schedule=target=sm_90a -convert-attn-to-tile | FileCheck %s --check-prefix=SAME

// Heads that share keys but no mask: each walks its own tiles. A mask's arrays are of that head, too.
// RUN: sed 's/attn.causal/attn.heads<#attn.causal, #attn.band<left = 7>>/' %s | attn-opt -attn-choose-schedule=target=cpu -convert-attn-to-tile | FileCheck %s --check-prefix=HEADS
// HEADS: tile.kernel @grads(
// HEADS: scf.for %[[I:.*]] =
// HEADS: %h = arith.addi %{{.*}}, %[[I]]
// HEADS: %[[FIRST:.*]] = arith.cmpi slt, %h, %{{.*}}
// HEADS: arith.select %[[FIRST]]
// HEADS: tile.kv_loop
// HEADS: tile.kernel @grads_dq(

// Of wide heads, dV has a kernel of its own, and the one of dK adds up dQ, when dK is done.
// RUN: sed 's/dims(64)/dims(256)/' %s | attn-opt -attn-choose-schedule=target=sm_90a -convert-attn-to-tile | FileCheck %s --check-prefix=WIDE
// WIDE-NOT: clears(
// WIDE: tile.kernel @grads_dv({{.*}}kv_tile = 128
// WIDE: tile.clear %dq_accumulator count(%{{.*}}) block(%{{.*}} of %blocks) : !tile.ptr<f32>
// WIDE: tile.kv_loop
// WIDE-NOT: tile.store_and_sync %
// WIDE: tile.kernel @grads({{.*}}kv_tile = 128{{.*}}stages = 1
// WIDE: tile.store_and_sync %dS, %ds
// WIDE-NEXT: %[[DK:.*]] = tile.mma_ab %dK, %ds, %Q
// WIDE-NEXT: tile.wait %[[DK]]
// WIDE-NEXT: %[[DQ:.*]] = tile.mma_atb %dQ, %dS_tile, %K
// WIDE-NEXT: tile.wait %[[DQ]]
// WIDE: tile.add_global %accumulator, %dQ left(%{{[^)]*}}) : !tile.frag<128x128, 8>
// WIDE: tile.postprocess %dq_rows stride(%dq_row), %accumulator rows({{.*}}) by 6.250000e-02 dim 256 columns 128 from_registers :

// RUN: sed 's/dims(64)/dims(256)/; s/thd/bshd/' %s | attn-opt -attn-choose-schedule=target=sm_90a -convert-attn-to-tile | FileCheck %s --check-prefix=KEYLESS
// Without keys no block clears.
// KEYLESS: tile.clear
// KEYLESS: tile.kernel @grads_postprocess
// KEYLESS: %[[ANY:.*]] = arith.cmpi slt, %{{.*}}, %seqlen_kv
// KEYLESS: %[[ROWS:.*]] = arith.select %[[ANY]], %rows, %
// KEYLESS: tile.postprocess {{.*}} rows(%[[ROWS]] of %rows) {{.*}} columns 128

// Without sums, where slots of long sequences are listed, as dK: lists are of one kind of key tiles.
// RUN: sed 's/dims(64)/dims(192)/; s/#attn.causal/#attn.prefix<64>/; s/dtype(bf16)/dtype(bf16) expected_seqlen(4, 16)/; s/dlse/deterministic/' %s | attn-opt -attn-choose-schedule=target=sm_90a -convert-attn-to-tile | FileCheck %s --check-prefix=LISTED
// LISTED: tile.kernel @grads_dv({{.*}}kv_tile = 64
// LISTED: tile.kernel @grads({{.*}}kv_tile = 64

// Dense ones in any order, but behind the first, which writes. Where arrays say who that is, sums begin with 0.
// RUN: sed 's/thd/bshd/' %s | attn-opt -attn-choose-schedule=target=sm_90a -convert-attn-to-tile | FileCheck %s --check-prefix=DENSE
// DENSE: tile.preprocess {{.*}}semaphore(%semaphore)
// DENSE: tile.copy_tma %K, %k_map at(%{{[^,]*}}, %kv_head, %b) : {{.*}}, !tile.tensor_map<128xbf16>
// DENSE: %query_tiles =
// DENSE: tile.copy_tma %Q, %q_map at(%{{[^,]*}}, %h, %b) : {{.*}}, !tile.tensor_map<128xbf16>
// DENSE: tile.add_global %accumulator, %dQ left(%{{[^)]*}}) through(%staging : !tile.staging<2, 32768>) semaphore(%semaphore{{.*}} of %key_tile) after_first : !tile.frag
// DENSE: tile.postprocess %dq_rows stride(%dq_row), %accumulator rows(%rows of %rows) by 1.250000e-01 dim 64 columns 32 semaphore(%semaphore) :
// Rows whose keys are all in the first tile are not accumulated. Not where a dQ MMA warpgroup has few columns, but of packed
// rows; of dense ones not under masks whose walks begin
// elsewhere, or end for all rows alike, nor of packed ones where heads share keys; else packed sequences may be short under any mask of one run.
// RUN: sed 's/thd/bshd/; s/dims(64)/dims(128)/' %s | attn-opt -attn-choose-schedule=target=sm_90a -convert-attn-to-tile | FileCheck %s --check-prefix=ALONE -DSLOTS=2
// RUN: attn-opt %s -attn-choose-schedule=target=sm_90a -convert-attn-to-tile | FileCheck %s --check-prefixes=ALONE,PADDING -DSLOTS=2
// RUN: sed 's/heads(4, 2)/heads(4)/; s/attn.causal/attn.full/' %s | attn-opt -attn-choose-schedule=target=sm_90a -convert-attn-to-tile | FileCheck %s --check-prefixes=ALONE,PADDING -DSLOTS=1
// RUN: sed 's/heads(4, 2)/heads(4)/; s/attn.causal/attn.band<left = 99, right = 99>/' %s | attn-opt -attn-choose-schedule=target=sm_90a -convert-attn-to-tile | FileCheck %s --check-prefixes=ALONE,PADDING -DSLOTS=1
// ALONE: %[[ONE:.*]] = arith.cmpi sle, %end{{.*}}, %c1_i32
// ALONE: %[[ALONE:.*]] = arith.andi %[[ONE]], %{{.*}}
// ALONE: tile.add_global %accumulator, %dQ left(%{{[^)]*}}) through(%staging : !tile.staging<[[SLOTS]], 32768>) semaphore(%semaphore{{.*}} of %key_tile){{.*}} sole_writer(%[[ALONE]]) to(%dq_rows : !tile.ptr<bf16> stride %dq_row rows %{{.*}} by {{.*}} dim {{64|128}}) : !tile.frag
// ALONE: %[[DONE:.*]] = arith.cmpi slt, %{{.*}}, %c0_i32
// ALONE: scf.if %[[DONE]] {
// PADDING: tile.store_padding
// ALONE: } else {
// ALONE-NEXT: arith.constant
// ALONE-NEXT: arith.extsi
// ALONE-NEXT: arith.muli
// ALONE-NEXT: %accumulator = tile.advance %dq_accumulator
// ALONE-NEXT: tile.postprocess
// RUN: sed 's/thd/bshd/; s/dims(64)/dims(128)/; s/attn.causal/attn.full/' %s | attn-opt -attn-choose-schedule=target=sm_90a -convert-attn-to-tile | FileCheck %s --check-prefix=SUMMED
// RUN: sed 's/thd/bshd/; s/dims(64)/dims(128)/; s/attn.causal/attn.band<left = 99, right = 0>/' %s | attn-opt -attn-choose-schedule=target=sm_90a -convert-attn-to-tile | FileCheck %s --check-prefix=SUMMED
// RUN: sed 's/attn.causal/attn.full/' %s | attn-opt -attn-choose-schedule=target=sm_90a -convert-attn-to-tile | FileCheck %s --check-prefix=SUMMED
// RUN: sed 's/heads(4, 2)/heads(4)/; s/attn.causal/attn.or<#attn.prefix<4>, #attn.band<left = 99, right = 0>>/' %s | attn-opt -attn-choose-schedule=target=sm_90a -convert-attn-to-tile | FileCheck %s --check-prefix=SUMMED
// SUMMED: tile.add_global {{.*}} : !tile.frag
// SUMMED-NOT: alone(

// RUN: sed 's/thd/bshd/; s/attn.causal/attn.prefix<"lengths">/' %s | attn-opt -attn-choose-schedule=target=sm_90a -convert-attn-to-tile | FileCheck %s --check-prefix=CLEARED
// CLEARED: tile.preprocess {{.*}}clears(%accumulator) columns 64
// CLEARED: tile.add_global %accumulator, %dQ left(%{{[^)]*}}) through(%staging : !tile.staging<2, 32768>) : !tile.frag

// If asked for, dense ones in order, too, and heads of a group one after the other.
// RUN: sed 's/thd/bshd/; s/dlse/deterministic dlse/' %s | attn-opt -attn-choose-schedule=target=sm_90a -convert-attn-to-tile | FileCheck %s --check-prefix=TURNS
// TURNS: tile.kernel @grads_preprocess({{.*}}dq_semaphore
// TURNS: tile.preprocess {{.*}}semaphore(%semaphore)
// TURNS: tile.kernel @grads({{.*}}dq_semaphore
// TURNS: %heads_per_group = arith.minsi
// TURNS: %query_tiles =
// TURNS: tile.add_global {{.*}} semaphore(%semaphore of %key_tile)

// Staged where sums have 128 columns. Narrower and wider ones are added from registers: where there is a dQ
// MMA warpgroup more heads are interleaved then, and keys have two slots.
// RUN: sed 's/thd/bshd/; s/dlse/deterministic/; s/heads(4, 2)/heads(4)/; s/dims(64)/dims(128)/' %s | attn-opt -attn-choose-schedule=target=sm_90a -convert-attn-to-tile | FileCheck %s --check-prefix=STAGED
// STAGED: tile.kernel @grads(
// STAGED-NOT: slots 2
// STAGED: tile.alloc "staging" : !tile.staging<2, 32768>
// STAGED: %[[GROUP:.*]] = arith.muli %c16_i32, %tiles
// STAGED: arith.divui %block, %[[GROUP]]
// RUN: sed 's/thd/bshd/; s/dlse/deterministic/; s/heads(4, 2)/heads(4)/' %s | attn-opt -attn-choose-schedule=target=sm_90a -convert-attn-to-tile | FileCheck %s --check-prefix=NARROW
// NARROW: tile.kernel @grads(
// NARROW: %K = tile.alloc "K" slots 2 :
// NARROW: tile.alloc "order" : !tile.staging<2, 0>
// NARROW: %[[SHORT:.*]] = arith.divui %c384_i32, %tiles
// NARROW: %[[LEAST:.*]] = arith.maxsi %[[SHORT]], %c32_i32
// NARROW: %heads_per_group = arith.minsi %[[LEAST]], %c64_i32
// NARROW: tile.add_global %accumulator, %dQ left(%{{[^)]*}}) through(%order : !tile.staging<2, 0>) semaphore(%semaphore{{.*}} of %key_tile) : !tile.frag
// Of wide heads fewer are interleaved.
// RUN: sed 's/thd/bshd/; s/dlse/deterministic/; s/dims(64)/dims(256)/' %s | attn-opt -attn-choose-schedule=target=sm_90a -convert-attn-to-tile | FileCheck %s --check-prefix=FEWER
// FEWER: tile.kernel @grads(
// FEWER: %[[SHORT:.*]] = arith.divui %c128_i32{{.*}}, %tiles
// FEWER: %[[LEAST:.*]] = arith.maxsi %[[SHORT]], %c8_i32
// FEWER: %heads_per_group = arith.minsi %[[LEAST]], %c16_i32
// RUN: sed 's/dlse/deterministic/; s/dims(64)/dims(256)/' %s | attn-opt -attn-choose-schedule=target=sm_90a -convert-attn-to-tile | FileCheck %s --check-prefix=GATED
// GATED: tile.preprocess {{.*}}semaphore(%semaphore)
// Nobody clears what the first tile writes.
// GATED: tile.kernel @grads_dv(
// GATED-NOT: tile.clear {{.*}} count(
// GATED: tile.kernel @grads({{.*}}dq_semaphore
// GATED: tile.alloc "order" : !tile.staging<2, 0>
// GATED: tile.mma_ab %dK
// GATED: tile.mma_atb %dQ
// GATED: tile.add_global %accumulator, %dQ left(%{{[^)]*}}) through(%order : !tile.staging<2, 0>) semaphore(%semaphore{{.*}} of %key_tile) : !tile.frag
// GATED: tile.postprocess %dq_rows stride(%dq_row), %accumulator rows(%rows of %write_rows) by 6.250000e-02 dim 256 columns 128 from_registers semaphore(%semaphore) :

// Not where tiles that add before are not known, or would be waited for long: there
// query tiles are at rest for dQ, as on all other targets.
// RUN: sed 's/dlse/deterministic dlse/; s/attn.causal/attn.document/' %s | attn-opt -attn-choose-schedule=target=sm_90a -convert-attn-to-tile | FileCheck %s --check-prefix=ORDERED
// RUN: sed 's/dlse/deterministic dlse/; s/attn.causal/attn.or<#attn.prefix<4>, #attn.band<left = 99, right = 0>>/' %s | attn-opt -attn-choose-schedule=target=sm_90a -convert-attn-to-tile | FileCheck %s --check-prefix=ORDERED
// RUN: sed 's/dlse/deterministic dlse/; s/attn.causal/attn.document/; s/dims(64)/dims(256)/' %s | attn-opt -attn-choose-schedule=target=sm_90a -convert-attn-to-tile | FileCheck %s --check-prefix=ORDERED
// ORDERED-NOT: tile.add_global
// ORDERED: tile.kernel @grads_dq({{.*}}) target("sm_90a")
// ORDERED: tile.mma_ab %dQ, %ds, %K
