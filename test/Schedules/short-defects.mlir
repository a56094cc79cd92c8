// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What kernels for short sequences elsewhere got wrong, each held against the reference: on strips (one query), on a
// sequence's own tile, with heads side by side in it. On a GPU: test/Device/streaming.py.
//
// RUN: rm -rf %t && split-file %s %t

// Steps in 16 bits: inputs of one size, sixteen keys; the tolerance is that of rounding inputs and output once.
// RUN: attn-run %t/one.mlir --target=cpu --check --lengths-q=1,1,1,1 --lengths-kv=16,16,16,16 | FileCheck %s
// RUN: attn-run %t/many.mlir --target=cpu --check --lengths-q=16,16,16 --lengths-kv=16,16,16 | FileCheck %s
// A sequence without keys in float16, where -1e9 is -inf: o and gradients 0, lse -inf. And one without queries.
// RUN: attn-run %t/one.mlir --target=cpu --check --lengths-q=1,1,0,1 --lengths-kv=0,16,5,0 | FileCheck %s
// RUN: attn-run %t/many.mlir --target=cpu --check --lengths-q=16,3,0,0 --lengths-kv=0,16,5,0 | FileCheck %s
// RUN: attn-run %t/sides.mlir --target=cpu --check --lengths-q=4,3,0,0 --lengths-kv=0,4,4,0 | FileCheck %s
// Tail rows: one to nine sequences, and 257, of three heads.
// RUN: attn-run %t/one.mlir --target=cpu --check --lengths-q=1 --lengths-kv=7 | FileCheck %s
// RUN: attn-run %t/one.mlir --target=cpu --check --lengths-q=1,1,1,1,1,1,1,1,1 --lengths-kv=3,5,7,9,1,2,4,6,8 | FileCheck %s
// RUN: attn-run %t/dense.mlir --target=cpu --check --batch=257 --seqlen-q=3 --seqlen-kv=5 | FileCheck %s
// RUN: attn-run %t/dense.mlir --target=cpu --check --batch=1 --seqlen-q=17 --seqlen-kv=33 | FileCheck %s
// A window and groups of heads: computed, not ignored.
// RUN: attn-run %t/window.mlir --target=cpu --check --lengths-q=9,5,13 --lengths-kv=16,9,13 | FileCheck %s
// CHECK: ok       dq: max error
// CHECK: ok       dk: max error
// CHECK: ok       dv: max error
// CHECK-NOT: FAILED
// RUN: attn-run %t/forward.mlir --target=cpu --check --lengths-q=9,0,13 --lengths-kv=16,9,0 | FileCheck %s --check-prefix=FORWARD
// FORWARD-COUNT-2: {{^}}ok

// Offsets are 64 bits from the row's number on.
// RUN: attn-translate %t/far.mlir --target=sm_90a | FileCheck %s --check-prefix=FAR
// FAR: auto *const k_rows = k + ((long long)first_key * k_row + (long long){{.*}} * k_head);
// FAR-NOT: {{[^)]}}k0 * k_row
// Every barrier is under conditions that a block's threads share: the number of its sequence and lengths.
// RUN: attn-translate %t/many.mlir --target=sm_90a | FileCheck %s --check-prefix=UNIFORM
// UNIFORM: const int block = attn::block_index();
// UNIFORM: const int b = block / 3;
// UNIFORM: if (b < sequences) {
// UNIFORM: const int len_q = attn::uniform(
// UNIFORM: const int len_kv = attn::uniform(
// UNIFORM: attn::barrier();
// UNIFORM-NOT: lane_index

//--- one.mlir
attn.problem @p mask(#attn.full) layout(thd padded) heads(3) dims(128) dtype(f16) max_seqlen(1, 16)
attn.backward @g of(@p)

//--- many.mlir
attn.problem @p mask(#attn.full) layout(thd padded) heads(3) dims(64) dtype(f16) max_seqlen(16, 16)
attn.backward @g of(@p)

//--- sides.mlir
attn.problem @p mask(#attn.causal) layout(thd padded) heads(8) dims(64) dtype(f16) max_seqlen(4, 4)
attn.backward @g of(@p)

//--- dense.mlir
attn.problem @p mask(#attn.full) layout(bshd) heads(3) dims(64) dtype(bf16) max_seqlen(3, 5)
attn.backward @g of(@p)

//--- window.mlir
attn.problem @p mask(#attn.band<left = 2, right = 1>) layout(thd) heads(6, 3) dims(64) dtype(bf16) max_seqlen(13, 16)
attn.backward @g of(@p)

//--- forward.mlir
attn.problem @p mask(#attn.band<left = 2, right = 1>) layout(thd) heads(6, 3) dims(64) dtype(bf16) max_seqlen(13, 16)

//--- far.mlir
attn.problem @p mask(#attn.full) layout(thd) heads(16) dims(512) dtype(bf16) max_seqlen(1, 16)
