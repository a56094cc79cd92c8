// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// `tile-assign-roles` with a reducer: what is added up in memory is multiplied by a warpgroup of its own.
//
// RUN: attn-opt %S/Inputs/dq-mma.mlir -tile-assign-roles | FileCheck %s
// RUN: attn-opt %S/Inputs/dq-mma.mlir -tile-assign-roles -mlir-print-op-generic | attn-opt - | FileCheck %s
// RUN: attn-opt %S/Inputs/dq-mma.mlir -tile-assign-roles -tile-verify-async
// RUN: sed 's/dq_columns = 64/dq_columns = 32/; s/%dQ = .*/%dQ = tile.alloc "dQ" : !tile.frag<256x32, 16>/; s/%dQ\(.*\)frag<128x64, 8>/%dQ\1frag<256x32, 16>/' \
// RUN:   %S/Inputs/dq-mma.mlir > %t.mlir
// RUN: attn-opt %t.mlir -tile-assign-roles | FileCheck %s --check-prefix=NARROW

// The staging place is cut up: a slot for each block of 64 rows that the reducer makes.
// CHECK: %staging = tile.alloc "staging" : !tile.staging<4, 16384>
// The reducer's registers are half its columns and 32.
// CHECK: tile.roles registers(32, 208, 64) producer {

// Those that compute put dS where the reducer takes it, and neither multiply nor add it.
// CHECK: } consumer {
// CHECK-NOT: "dQ"
// CHECK: tile.producer_store %dS, %p
// CHECK-NEXT: tile.producer_commit %dS
// CHECK-NEXT: tile.mma_ab %dK
// CHECK-NOT: tile.mma_atb
// CHECK-NOT: tile.stage

// It has a place for one block, takes K for itself, and gives a tile of dS back when the last block has read it.
// CHECK: } dq_mma {
// CHECK-NEXT: %dQ = tile.alloc "dQ" : !tile.frag<64x64, 4>
// CHECK-NEXT: tile.persistent_loop %blocks mailbox(%mailbox
// CHECK: %K_tile = tile.consumer_wait %K
// CHECK-NEXT: tile.kv_loop
// CHECK-NEXT: ^bb0
// CHECK-NEXT: %[[TILE:.*]] = tile.consumer_wait %dS
// CHECK-NEXT: %[[A:.*]] = tile.mma_atb %dQ, %[[TILE]], %K_tile block 0 of 2
// CHECK-NEXT: tile.wait %[[A]]
// CHECK-NEXT: tile.stage %staging, %dQ
// CHECK-NEXT: %[[B:.*]] = tile.mma_atb %dQ, %[[TILE]], %K_tile block 1 of 2
// CHECK-NEXT: tile.wait %[[B]]
// CHECK-NEXT: tile.consumer_release %dS
// CHECK-NEXT: tile.stage %staging, %dQ
// CHECK-NEXT: tile.yield
// CHECK-NEXT: }
// CHECK-NEXT: tile.consumer_release %K

// CHECK: } dq_store {
// CHECK: tile.add_staged %dq_accumulator, %staging left(%{{.*}}) columns 64 blocks 2

// Where nothing is staged, it adds each block for itself, and its turn is over with the last.
// RUN: sed 's/(%%dk:/(%%semaphore: !tile.ptr<i32>, %%dk:/; s/"staging" : !tile.staging<2, 32768>/"order" : !tile.staging<2, 0>/' %S/Inputs/dq-mma.mlir > %t.args.mlir
// RUN: sed '/add_global/s/<2, 32768>) : \(.*\)/<2, 0>) semaphore(%%semaphore of %%j) : \1 {\n^bb0(%%o: i32):\n%%a = arith.cmpi slt, %%o, %%j : i32\ntile.yield %%a : i1\n}/' \
// RUN:   %t.args.mlir | attn-opt -tile-assign-roles | FileCheck %s --check-prefix=REGISTERS
// REGISTERS: %order = tile.alloc "order" : !tile.staging<2, 0>
// REGISTERS: } consumer {
// REGISTERS-NOT: tile.add_global_ordered
// REGISTERS: } dq_mma {
// REGISTERS: block 0 of 2
// REGISTERS: tile.add_global_ordered %dq_accumulator, %dQ left(%[[LEFT:.*]]), %order : !tile.frag<64x64, 4>, !tile.staging<2, 0>
// REGISTERS: block 1 of 2
// REGISTERS: tile.add_global_ordered %dq_accumulator, %dQ left(%[[LEFT]]), %order block 1 last : !tile.frag<64x64, 4>, !tile.staging<2, 0>
// REGISTERS: } dq_store {
// REGISTERS: tile.add_staged %dq_accumulator, %order left(%{{.*}}) semaphore(%semaphore of %{{.*}}) columns 64 blocks 2 : !tile.staging<2, 0>

// Rows of one key tile only are no sum: the reducer writes them, those of the second block 64 columns further, and the adder says that there is nothing to add.
// RUN: sed 's/(%%dk:/(%%dq: !tile.ptr<bf16>, %%semaphore: !tile.ptr<i32>, %%alone: i1, %%rows: i32, %%dk:/' %S/Inputs/dq-mma.mlir > %t.args.mlir
// RUN: sed '/add_global/s/) : \(.*\)/) semaphore(%%semaphore of %%j) sole_writer(%%alone) to(%%dq : !tile.ptr<bf16> stride %%dk_row rows %%rows by 0.5 dim 120) : \1 {\n^bb0(%%o: i32):\n%%a = arith.cmpi slt, %%o, %%j : i32\ntile.yield %%a : i1\n}/' \
// RUN:   %t.args.mlir | attn-opt -tile-assign-roles -canonicalize | FileCheck %s --check-prefix=ALONE
// ALONE: } dq_mma {
// ALONE: block 0 of 2
// ALONE: scf.if %alone {
// ALONE-NEXT: tile.store %dq stride(%dk_row), %dQ by 5.000000e-01 rows(%[[ROWS:.*]]) dim 64
// ALONE-NEXT: } else {
// ALONE-NEXT: tile.stage %staging, %dQ
// ALONE: block 1 of 2
// ALONE: scf.if %alone {
// ALONE: %[[TO:.*]] = tile.advance %dq, %c64_i64
// ALONE-NEXT: tile.store %[[TO]] stride(%dk_row), %dQ by 5.000000e-01 rows(%[[ROWS]]) dim 56
// ALONE-NEXT: } else {
// ALONE-NEXT: tile.stage %staging, %dQ
// ALONE: } dq_store {
// ALONE: scf.if %alone {
// ALONE-NEXT: tile.skip_add %semaphore
// ALONE-NEXT: } else {
// ALONE-NEXT: tile.add_staged %dq_accumulator, %staging left(%{{.*}}) semaphore(%semaphore of %{{.*}}) columns 64 blocks 2

// The same where nothing is staged: of rows that are alone nobody has a turn, so none is over.
// RUN: sed 's/"staging" : !tile.staging<2, 32768>/"order" : !tile.staging<2, 0>/' %t.args.mlir > %t.turns.mlir
// RUN: sed '/add_global/s/<2, 32768>) : \(.*\)/<2, 0>) semaphore(%%semaphore of %%j) sole_writer(%%alone) to(%%dq : !tile.ptr<bf16> stride %%dk_row rows %%rows by 0.5 dim 120) : \1 {\n^bb0(%%o: i32):\n%%a = arith.cmpi slt, %%o, %%j : i32\ntile.yield %%a : i1\n}/' \
// RUN:   %t.turns.mlir | attn-opt -tile-assign-roles -canonicalize | FileCheck %s --check-prefix=NO-TURN
// NO-TURN: } dq_mma {
// NO-TURN: block 0 of 2
// NO-TURN: scf.if %alone {
// NO-TURN-NEXT: tile.store
// NO-TURN-NEXT: } else {
// NO-TURN-NEXT: tile.add_global_ordered %dq_accumulator, %dQ left(%{{.*}}), %order : !tile.frag
// NO-TURN: block 1 of 2
// NO-TURN: scf.if %alone {
// NO-TURN: tile.store
// NO-TURN-NEXT: } else {
// NO-TURN-NEXT: tile.add_global_ordered %dq_accumulator, %dQ left(%{{.*}}), %order block 1 last
// NO-TURN: } dq_store {
// NO-TURN: scf.if %alone {
// NO-TURN-NEXT: tile.skip_add %semaphore
// NO-TURN-NEXT: } else {
// NO-TURN-NEXT: tile.add_staged %dq_accumulator, %order left(%{{.*}}) semaphore(%semaphore of %{{.*}}) columns 64 blocks 2

// With 32 columns there are twice as many blocks, and registers for those that compute.
// NARROW: %staging = tile.alloc "staging" : !tile.staging<8, 8192>
// NARROW: tile.roles registers(32, 216, 48) producer {
// NARROW: block 3 of 4
// NARROW: blocks 4
