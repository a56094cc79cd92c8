// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which schedule `attn-choose-schedule` writes on a problem, with the reason, and on the module for which chip. (What it makes
// of those that are given: given-schedules.mlir.)
//
// RUN: rm -rf %t && split-file %s %t
// RUN: attn-opt %t/forward.mlir -attn-choose-schedule=target=sm_90a | FileCheck %t/forward.mlir --check-prefixes=BOTH,HOPPER
// RUN: attn-opt %t/forward.mlir -attn-choose-schedule | FileCheck %t/forward.mlir --check-prefixes=BOTH,AMPERE
// RUN: attn-opt %t/backward.mlir -attn-choose-schedule=target=sm_90a | FileCheck %t/backward.mlir --check-prefixes=BOTH,HOPPER
// RUN: attn-opt %t/backward.mlir -attn-choose-schedule="target=sm_80 arch=86" | FileCheck %t/backward.mlir --check-prefixes=BOTH,AMPERE
// RUN: attn-opt %t/fallback.mlir -attn-choose-schedule="target=sm_90a fallback=1" | FileCheck %t/fallback.mlir --check-prefix=ONE
// RUN: attn-opt %t/fallback.mlir -attn-choose-schedule="target=sm_90a fallback=2" | FileCheck %t/fallback.mlir --check-prefix=TWO
// RUN: attn-opt %t/fallback.mlir -attn-choose-schedule="target=sm_90a fallback=99" | FileCheck %t/fallback.mlir --check-prefix=LAST
//
// What is chosen is kept: a second run changes nothing, whatever alternative it is asked for.
// RUN: attn-opt %t/forward.mlir -attn-choose-schedule=target=sm_90a -o %t/once
// RUN: attn-opt %t/once -attn-choose-schedule="target=sm_90a fallback=1" -o %t/twice
// RUN: diff %t/once %t/twice
// RUN: attn-opt %t/backward.mlir -attn-choose-schedule=target=sm_90a -o %t/once
// RUN: attn-opt %t/once -attn-choose-schedule="target=sm_90a fallback=1" -o %t/twice
// RUN: diff %t/once %t/twice
// RUN: attn-opt %t/forward.mlir -attn-choose-schedule=target=cpu -o %t/once
// RUN: attn-opt %t/once -attn-choose-schedule="target=cpu" -o %t/twice
// RUN: diff %t/once %t/twice
//
// RUN: not attn-opt %t/forward.mlir -attn-choose-schedule=fallback=-1 2>&1 | FileCheck %s --check-prefix=NEGATIVE
// NEGATIVE: error: expected fallback not to be negative, got: -1

//--- forward.mlir
// HOPPER: module attributes {tile.target = #tile.target<"sm_90a", chip = 90>}
// AMPERE: module attributes {tile.target = #tile.target<"sm_80", chip = 80>}

// BOTH: attn.problem @short {{.*}} schedule(#tile.by_length<short_sequences = #tile.cta_per_sequence<q_tile = 16, kv_tile = 16, warps = 1, ctas_per_sm = 16, pack_heads = 4, column_parts = 1>,
// HOPPER-SAME: long_sequences = #tile.warp_specialized<q_tile = 192, kv_tile = 128, warps = 12, ctas_per_sm = 1, q_stages = 2, pingpong = true>>)
// AMPERE-SAME: long_sequences = #tile.tiled<q_tile = 128, kv_tile = 64, warps = 4, ctas_per_sm = 2, q_in_registers = true>>)
// BOTH-SAME: schedule_reason("expected_seqlen(4, 4) and heads(4, 4): short sequences, and enough query rows for tiles of each sequence; without max_seqlen some sequences may be longer")
attn.problem @short mask(#attn.causal) layout(thd) heads(4) dims(64) dtype(bf16) expected_seqlen(4)

// BOTH: attn.problem @one_row {{.*}} schedule(#tile.simt_rows<rows = 1, keys = 4, lanes = 16, warps = 4, ctas_per_sm = 10>)
// BOTH-SAME: schedule_reason("max_seqlen(1, 16) and heads(4, 4): short sequences, and too few query rows share a kv head to fill half a tile")
attn.problem @one_row mask(#attn.full) layout(bshd) heads(4) dims(128) dtype(bf16) max_seqlen(1, 16)

// BOTH: attn.problem @rows {{.*}} schedule(#tile.cta_per_sequence<q_tile = 17, kv_tile = 24, warps = 2, ctas_per_sm = 12, column_parts = 2>)
// BOTH-SAME: schedule_reason("max_seqlen(17, 17) and heads(4, 4): short sequences, and enough query rows for tiles of each sequence")
attn.problem @rows mask(#attn.full) layout(bshd) heads(4) dims(128) dtype(bf16) max_seqlen(17)

// HOPPER: attn.problem @few {{.*}} schedule(#tile.split_kv<of = #tile.warp_specialized<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1, stages = 3, pack_heads = 2>>)
// AMPERE: attn.problem @few {{.*}} schedule(#tile.split_kv<of = #tile.tiled<q_tile = 128, kv_tile = 64, warps = 4, ctas_per_sm = 2, single_loop = true, pack_heads = 2>>)
// BOTH-SAME: schedule_reason("expected_seqlen(1, 32768) and heads(4, 2): with few queries and many keys, query tiles alone leave most multiprocessors idle")
attn.problem @few mask(#attn.full) layout(bshd) heads(4, 2) dims(128) dtype(bf16) expected_seqlen(1, 32768)

// Entries of keys take registers, and two CTAs of a narrow head hide each other's waits.
// HOPPER: attn.problem @narrow_few {{.*}} schedule(#tile.split_kv<of = #tile.warp_specialized<q_tile = 64, kv_tile = 128, warps = 4, ctas_per_sm = 1, stages = 3, pack_heads = 2>>)
attn.problem @narrow_few mask(#attn.full) layout(bshd) heads(4, 2) dims(64) dtype(bf16) expected_seqlen(1, 32768)
// HOPPER: attn.problem @narrow_bias {{.*}} schedule(#tile.split_kv<of = #tile.warp_specialized<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 2, stages = 3, single_loop = true, pack_heads = 2>>)
attn.problem @narrow_bias mask(#attn.full) layout(bshd) heads(4, 2) dims(64) dtype(bf16) score([#attn.bias<"bias", bhqk>]) expected_seqlen(1, 32768)
// HOPPER: attn.problem @wide_rows {{.*}} schedule(#tile.split_kv<of = #tile.warp_specialized<q_tile = 128, kv_tile = 64, warps = 8, ctas_per_sm = 1, pack_heads = 2>>)
attn.problem @wide_rows mask(#attn.full) layout(bshd) heads(4, 2) dims(256) dtype(bf16) expected_seqlen(64, 32768)

// HOPPER: attn.problem @narrow_v {{.*}} schedule(#tile.warp_specialized<q_tile = 128, kv_tile = 128, warps = 8, ctas_per_sm = 1>)
attn.problem @narrow_v mask(#attn.causal) layout(bshd) heads(4) dims(192, 128) dtype(bf16)

// HOPPER: attn.problem @wide_v {{.*}} schedule(#tile.warp_specialized<q_tile = 128, kv_tile = 96, warps = 8, ctas_per_sm = 1>)
attn.problem @wide_v mask(#attn.causal) layout(bshd) heads(4) dims(192) dtype(bf16)

// HOPPER: attn.problem @plain {{.*}} schedule(#tile.warp_specialized<q_tile = 128, kv_tile = 128, warps = 8, ctas_per_sm = 1, q_stages = 2>)
// AMPERE: attn.problem @plain {{.*}} schedule(#tile.tiled<q_tile = 128, kv_tile = 64, warps = 4, ctas_per_sm = 2>)
// BOTH-SAME: schedule_reason("neither max_seqlen nor expected_seqlen says that sequences are short")
attn.problem @plain mask(#attn.causal) layout(bshd) heads(4) dims(128) dtype(bf16)

// HOPPER: attn.problem @bounded {{.*}} schedule(#tile.single_pass<q_tile = 192, kv_tile = 64, kv_tiles = 3, warps = 12, ctas_per_sm = 1, stages = 1>)
// AMPERE: attn.problem @bounded {{.*}} schedule(#tile.tiled<q_tile = 128, kv_tile = 64, warps = 4, ctas_per_sm = 2, single_loop = true>)
// BOTH-SAME: schedule_reason("max_seqlen(192, 192) and heads(4, 4): long sequences")
attn.problem @bounded mask(#attn.full) layout(thd) heads(4) dims(128) dtype(bf16) max_seqlen(192, 192)

// Head dims beyond 256 have SIMT rows, however long sequences are.
// BOTH: attn.problem @wide {{.*}} schedule(#tile.simt_rows<rows = 1, {{.*}}) schedule_reason("head dims beyond 256 do not fit a tile")
attn.problem @wide mask(#attn.full) layout(bshd) heads(4) dims(512) dtype(bf16)

// What is described for others has none.
// BOTH: attn.problem @described
// BOTH-NOT: schedule
attn.problem @described mask(#attn.full) layout(bshd) heads(4) dims(64) dtype(bf16) {sym_visibility = "private"}

//--- backward.mlir
// HOPPER: module attributes {tile.target = #tile.target<"sm_90a", chip = 90>}
// AMPERE: module attributes {tile.target = #tile.target<"sm_80", chip = 86>}
attn.problem @p mask(#attn.causal) layout(bshd) heads(4) dims(128) dtype(bf16) {sym_visibility = "private"}

// HOPPER: attn.backward @grads {{.*}} schedule(#tile.backward_kernels<accumulation = first_stores, dkdv = #tile.warp_specialized_backward<q_tile = 64, kv_tile = 128, warps = 8, ctas_per_sm = 1, single_loop = true, dq_columns = 64>>)
// HOPPER-SAME: schedule_reason("neither max_seqlen nor expected_seqlen says that sequences are short")
// AMPERE: attn.backward @grads {{.*}} schedule(#tile.backward_kernels<accumulation = separate, dkdv = #tile.tiled_backward<q_tile = 32, kv_tile = 64, warps = 4, ctas_per_sm = 1>, dq = #tile.tiled_backward<q_tile = 64, kv_tile = 32, warps = 4, ctas_per_sm = 1>>)
// AMPERE-SAME: schedule_reason("neither max_seqlen nor expected_seqlen says that sequences are short; dQ has a kernel of its own: the target does not accumulate dQ")
attn.backward @grads of(@p)

// HOPPER: attn.backward @in_order {{.*}} deterministic schedule(#tile.backward_kernels<accumulation = ordered, dkdv =
// AMPERE: attn.backward @in_order {{.*}} deterministic schedule(#tile.backward_kernels<accumulation = separate, dkdv =
attn.backward @in_order of(@p) deterministic

// Where arrays decide which key tiles add to dQ, no tile is known to be the first, and no order either.
attn.problem @documents mask(#attn.document) layout(thd) heads(4) dims(128) dtype(bf16) {sym_visibility = "private"}
// HOPPER: attn.backward @of_documents {{.*}} schedule(#tile.backward_kernels<accumulation = unordered, dkdv =
attn.backward @of_documents of(@documents)
// HOPPER: attn.backward @documents_in_order {{.*}} schedule(#tile.backward_kernels<accumulation = separate, dkdv = {{.*}}, dq = #tile.warp_specialized_backward<
// HOPPER-SAME: dQ has a kernel of its own: arrays of the mask decide which key tiles add to it")
attn.backward @documents_in_order of(@documents) deterministic

// Wide heads have a kernel for dV.
attn.problem @wide mask(#attn.causal) layout(bshd) heads(4) dims(256) dtype(bf16) {sym_visibility = "private"}
// HOPPER: attn.backward @wide_grads {{.*}} schedule(#tile.backward_kernels<accumulation = unordered, dkdv = #tile.warp_specialized_backward<{{[^>]*}}>, dv = #tile.warp_specialized_backward<{{[^>]*}}>>)
// AMPERE: attn.backward @wide_grads {{.*}} schedule(#tile.backward_kernels<accumulation = separate, dkdv = #tile.tiled_backward<{{[^>]*}}>, dv = #tile.tiled_backward<{{[^>]*}}>, dq = #tile.tiled_backward<{{[^>]*}}>>)
attn.backward @wide_grads of(@wide)

// All pairs of a sequence in one tile, and kernels for those that are longer than it says.
attn.problem @p100 mask(#attn.full) layout(thd) heads(4) dims(128) dtype(bf16) max_seqlen(100) {sym_visibility = "private"}
// HOPPER: attn.backward @short {{.*}} schedule(#tile.by_length<short_sequences = #tile.single_pass_backward<q_tile = 112, kv_tile = 112, warps = 8, ctas_per_sm = 1, stages = 1, q_stages = 2>, long_sequences = #tile.backward_kernels<accumulation = first_stores, dkdv = #tile.warp_specialized_backward<
// HOPPER-SAME: schedule_reason("max_seqlen(100, 100) and heads(4, 4): one tile has all pairs of a sequence")
attn.backward @short of(@p100)
attn.problem @p200 mask(#attn.full) layout(thd) heads(4) dims(64) dtype(bf16) max_seqlen(200) {sym_visibility = "private"}
// HOPPER: attn.backward @longer {{.*}} schedule(#tile.by_length<short_sequences = #tile.stationary_q_backward<q_tile = 208, kv_tile = 64, kv_tiles = 4, warps = 8,
// HOPPER-SAME: long_sequences = #tile.backward_kernels<
// HOPPER-SAME: schedule_reason("max_seqlen(200, 200) and heads(4, 4): all query rows of a sequence stay in one CTA, and K/V tiles are streamed past them")
attn.backward @longer of(@p200)

// A maximum that says that all are short; without one, some may be longer.
attn.problem @rows mask(#attn.full) layout(thd) heads(4) dims(128) dtype(bf16) max_seqlen(1, 16) {sym_visibility = "private"}
// BOTH: attn.backward @one_row {{.*}} schedule(#tile.simt_rows<rows = 1, keys = 1, lanes = 16, warps = 4, ctas_per_sm = {{[0-9]+}}>)
attn.backward @one_row of(@rows)
attn.problem @typical mask(#attn.full) layout(thd) heads(4) dims(64) dtype(bf16) expected_seqlen(4) {sym_visibility = "private"}
// BOTH: attn.backward @some_longer {{.*}} schedule(#tile.by_length<short_sequences = #tile.cta_per_sequence<{{[^>]*}}>, long_sequences = #tile.backward_kernels<
// BOTH-SAME: without max_seqlen some sequences may be longer
attn.backward @some_longer of(@typical)

//--- fallback.mlir
// A single loop, then narrower KV tiles.
// ONE: @p mask{{.*}} schedule(#tile.warp_specialized<q_tile = 128, kv_tile = 128, warps = 8, ctas_per_sm = 1, q_stages = 2, single_loop = true>)
// TWO: @p mask{{.*}} schedule(#tile.warp_specialized<q_tile = 128, kv_tile = 96, warps = 8, ctas_per_sm = 1, q_stages = 2, single_loop = true>)
// LAST: @p mask{{.*}} schedule(#tile.warp_specialized<q_tile = 128, kv_tile = 16, warps = 8, ctas_per_sm = 1, q_stages = 2, single_loop = true>)
attn.problem @p mask(#attn.causal) layout(bshd) heads(4) dims(128) dtype(bf16)
// The long sequences' schedule changes when all alternatives of short ones have been tried.
// ONE: @short mask{{.*}} schedule(#tile.by_length<short_sequences = #tile.cta_per_sequence<q_tile = 16, kv_tile = 16, warps = 1, ctas_per_sm = 12, pack_heads = 4, column_parts = 1>, long_sequences = #tile.warp_specialized<q_tile = 192, kv_tile = 128, warps = 12, ctas_per_sm = 1, q_stages = 2, pingpong = true>>)
// TWO: @short mask{{.*}} ctas_per_sm = 9, pack_heads = 4, column_parts = 1>, long_sequences = #tile.warp_specialized<q_tile = 192, kv_tile = 128, warps = 12, ctas_per_sm = 1, q_stages = 2, pingpong = true>>)
// LAST: @short mask{{.*}} ctas_per_sm = 1, pack_heads = 4, column_parts = 1>, long_sequences = #tile.warp_specialized<q_tile = 192, kv_tile = 16, warps = 12, ctas_per_sm = 1, q_stages = 2, pingpong = true, single_loop = true>>)
attn.problem @short mask(#attn.causal) layout(thd) heads(4) dims(64) dtype(bf16) expected_seqlen(4)
// Fewer columns for a dQ MMA warpgroup, none of them, and then a dQ kernel of its own.
// ONE: attn.backward @grads {{.*}} schedule(#tile.backward_kernels<accumulation = first_stores, dkdv = #tile.warp_specialized_backward<q_tile = 64, kv_tile = 128, warps = 8, ctas_per_sm = 1, single_loop = true, dq_columns = 32>>)
// TWO: attn.backward @grads {{.*}} schedule(#tile.backward_kernels<accumulation = first_stores, dkdv = #tile.warp_specialized_backward<q_tile = 64, kv_tile = 128, warps = 8, ctas_per_sm = 1, single_loop = true>>)
// LAST: attn.backward @grads {{.*}} schedule(#tile.backward_kernels<accumulation = separate, dkdv = {{.*}}, dq = #tile.warp_specialized_backward<
// LAST-SAME: dQ has a kernel of its own: registers do not suffice for accumulation")
attn.backward @grads of(@p)
