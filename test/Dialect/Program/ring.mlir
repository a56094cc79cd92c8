// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Context parallelism by hand: a ring forward, its gradients, which come home by one more exchange, and a gather of
// uneven shards. All ranks have the same text; kernels know no rank.
//
// RUN: attn-opt %s | attn-opt | FileCheck %s
// RUN: attn-opt %s --mlir-print-op-generic | attn-opt | FileCheck %s
// RUN: attn-opt %s --pass-pipeline='builtin.module(program.def(program-place-buffers))' | FileCheck %s --check-prefix=PLACE
// RUN: attn-translate %s --program | FileCheck %s --check-prefix=DATA

// The attention kernel of a step adds its partial result to `acc` and `acc_lse` in its epilogue.
tile.kernel @attend(%q: !tile.ptr<bf16>, %k: !tile.ptr<bf16>, %v: !tile.ptr<bf16>, %acc: !tile.ptr<f32>, %acc_lse: !tile.ptr<f32>,
                    %rows_q: i32, %rows_kv: i32, %k_map: !tile.tensor_map<64xbf16>, %blocks: i32, %queue: !tile.queue)
    target("sm_90a") grid(dense heads 16) schedule(#tile.warp_specialized<q_tile = 128, kv_tile = 64, warps = 8, ctas_per_sm = 1>) {}
tile.kernel @store(%acc: !tile.ptr<f32>, %acc_lse: !tile.ptr<f32>, %o: !tile.ptr<bf16>, %lse: !tile.ptr<f32>)
    target("sm_90a") grid(dense heads 16) schedule(#tile.auxiliary<q_tile = 128, kv_tile = 64, warps = 4, ctas_per_sm = 2>) {}

// CHECK-LABEL: program.def @ring_forward {
// PLACE-LABEL: program.def @ring_forward {
// DATA: "name": "ring_forward"
program.def @ring_forward {
  %q = program.tensor "q" operand : bf16 [1, rows, 16, 128]
  %k = program.tensor "k" operand : bf16 [1, rows, 2, 128]
  %v = program.tensor "v" operand : bf16 [1, rows, 2, 128]
  %o = program.tensor "o" result : bf16 [1, rows, 16, 128]
  %lse = program.tensor "lse" result : f32 [1, 16, rows]
  // CHECK: program.table "visits" [ranks]
  program.table "visits" [ranks]
  // Both slots of both operands live through the repeat, beside the accumulators.
  // PLACE: "acc" {{.*}} place 0
  // PLACE: "acc_lse" {{.*}} place 1
  %acc = program.buffer "acc" : f32 [1, rows, 16, 128]
  %acc_lse = program.buffer "acc_lse" : f32 [1, 16, rows]
  // PLACE: "k0" {{.*}} place 2
  // PLACE: "k1" {{.*}} place 3
  // PLACE: "v0" {{.*}} place 4
  // PLACE: "v1" {{.*}} place 5
  %k0 = program.buffer "k0" : bf16 [1, rows, 2, 128]
  %k1 = program.buffer "k1" : bf16 [1, rows, 2, 128]
  %v0 = program.buffer "v0" : bf16 [1, rows, 2, 128]
  %v1 = program.buffer "v1" : bf16 [1, rows, 2, 128]
  program.launch @attend grid(query_tiles, 16 * ceil_div(rows, 128))
      (read %q, read %k, read %v, write %acc, write %acc_lse, size rows, size rows, read map %k axes(1, 2, 0), blocks, counter)
  // CHECK: %[[LAST:.*]]:6 = program.repeat "step" = ranks - 1 carry(%k_cur = %k, %k_next = %k0, %k_spare = %k1, %v_cur = %v, %v_next = %v0, %v_spare = %v1) {
  // DATA: "kind": "repeat",
  // DATA-NEXT: "variable": "step",
  // DATA-NEXT: "count": "ranks - 1",
  // DATA-NEXT: "carried": [
  // DATA-NEXT: {
  // DATA-NEXT: "value": 11,
  // DATA-NEXT: "initial": 1,
  // DATA-NEXT: "next": 12
  %last:6 = program.repeat "step" = ranks - 1 carry(%k_cur = %k, %k_next = %k0, %k_spare = %k1, %v_cur = %v, %v_next = %v0, %v_spare = %v1) {
    // CHECK-NEXT: program.exchange %k_next, %k_cur offset 1
    // DATA: "kind": "exchange",
    // DATA-NEXT: "destination": 12,
    // DATA-NEXT: "source": 11,
    // DATA-NEXT: "offset": "1",
    program.exchange %k_next, %k_cur offset 1
    program.exchange %v_next, %v_cur offset 1
    // CHECK: program.wait %k_next
    // DATA: "kind": "wait",
    // DATA-NEXT: "destination": 12
    program.wait %k_next
    program.wait %v_next
    // CHECK: program.when visits[step + 1] {
    // DATA: "kind": "when",
    // DATA-NEXT: "count": "visits[step + 1]",
    program.when visits[step + 1] {
      program.launch @attend grid(query_tiles, 16 * ceil_div(rows, 128))
          (read %q, read %k_next, read %v_next, update %acc, update %acc_lse, size rows, size rows, read map %k_next axes(1, 2, 0), blocks, counter)
    }
    // CHECK: program.yield %k_next, %k_spare, %k_next, %v_next, %v_spare, %v_next
    program.yield %k_next, %k_spare, %k_next, %v_next, %v_spare, %v_next
  }
  program.launch @store grid(query_tiles, 16 * ceil_div(rows, 128)) (read %acc, read %acc_lse, write %o, write %lse)
}

tile.kernel @attend_first(%q: !tile.ptr<bf16>, %k: !tile.ptr<bf16>, %acc: !tile.ptr<f32>)
    target("sm_90a") grid(dense heads 16) schedule(#tile.warp_specialized<q_tile = 128, kv_tile = 64, warps = 8, ctas_per_sm = 1>) {}
tile.kernel @store_acc(%acc: !tile.ptr<f32>, %o: !tile.ptr<bf16>)
    target("sm_90a") grid(dense heads 16) schedule(#tile.auxiliary<q_tile = 128, kv_tile = 64, warps = 4, ctas_per_sm = 2>) {}

// The wait of an exchange may be the next iteration's: it goes with the memory, whichever slot that is.
// CHECK-LABEL: program.def @ring_prefetched {
program.def @ring_prefetched {
  %q = program.tensor "q" operand : bf16 [rows, 16, 128]
  %k = program.tensor "k" operand : bf16 [rows, 16, 128]
  %o = program.tensor "o" result : bf16 [rows, 16, 128]
  %acc = program.buffer "acc" : f32 [rows, 16, 128]
  %slot0 = program.buffer "slot0" : bf16 [rows, 16, 128]
  %slot1 = program.buffer "slot1" : bf16 [rows, 16, 128]
  program.exchange %slot0, %k offset 1
  program.launch @attend_first grid(query_tiles, 16 * ceil_div(rows, 128)) (read %q, read %k, write %acc)
  // CHECK: %[[LAST:.*]]:2 = program.repeat "step" = ranks - 1 carry(%cur = %slot0, %next = %slot1) {
  // CHECK-NEXT: program.wait %cur
  // CHECK-NEXT: program.exchange %next, %cur offset 1
  %last:2 = program.repeat "step" = ranks - 1 carry(%cur = %slot0, %next = %slot1) {
    program.wait %cur
    program.exchange %next, %cur offset 1
    program.launch @attend_first grid(query_tiles, 16 * ceil_div(rows, 128)) (read %q, read %cur, update %acc)
    program.yield %next, %cur
  }
  // CHECK: program.wait %[[LAST]]#0
  program.wait %last#0
  program.launch @store_acc grid(query_tiles, 16 * ceil_div(rows, 128)) (read %acc, write %o)
}

tile.kernel @delta(%o: !tile.ptr<bf16>, %do: !tile.ptr<bf16>, %delta: !tile.ptr<f32>)
    target("sm_90a") grid(dense heads 16) schedule(#tile.auxiliary<q_tile = 128, kv_tile = 64, warps = 4, ctas_per_sm = 2>) {}
tile.kernel @grads(%q: !tile.ptr<bf16>, %k: !tile.ptr<bf16>, %do: !tile.ptr<bf16>, %lse: !tile.ptr<f32>, %delta: !tile.ptr<f32>,
                   %dq: !tile.ptr<f32>, %dk: !tile.ptr<f32>)
    target("sm_90a") grid(dense heads 2 keys) schedule(#tile.auxiliary<q_tile = 128, kv_tile = 64, warps = 4, ctas_per_sm = 2>) {}
tile.kernel @round(%sum: !tile.ptr<f32>, %to: !tile.ptr<bf16>)
    target("sm_90a") grid(dense heads 2) schedule(#tile.auxiliary<q_tile = 128, kv_tile = 64, warps = 4, ctas_per_sm = 2>) {}

// Keys and the sums of their gradients go round together. Behind the last step a rank has the sums of the next rank's
// keys, which go home one rank further. Gradients are f32 while they travel, and are rounded once.
// CHECK-LABEL: program.def @ring_backward {
// PLACE-LABEL: program.def @ring_backward {
program.def @ring_backward {
  %q = program.tensor "q" operand : bf16 [rows, 16, 128]
  %k = program.tensor "k" operand : bf16 [rows, 2, 128]
  %o = program.tensor "o" operand : bf16 [rows, 16, 128]
  %lse = program.tensor "lse" operand : f32 [16, rows]
  %do = program.tensor "do" operand : bf16 [rows, 16, 128]
  %dq = program.tensor "dq" result : bf16 [rows, 16, 128]
  %dk = program.tensor "dk" result : bf16 [rows, 2, 128]
  // `delta` is read in the last step and `home` comes behind it: one place.
  // PLACE: "delta" {{.*}} place 2
  // PLACE: "dq_accumulator" {{.*}} place 0
  %delta = program.buffer "delta" : f32 [16, rows]
  %dq_accumulator = program.buffer "dq_accumulator" : f32 [rows, 16, 128]
  %k0 = program.buffer "k0" : bf16 [rows, 2, 128]
  %k1 = program.buffer "k1" : bf16 [rows, 2, 128]
  // PLACE: "dk0" {{.*}} place 1
  // PLACE: "dk1" {{.*}} place 3
  %dk0 = program.buffer "dk0" : f32 [rows, 2, 128]
  %dk1 = program.buffer "dk1" : f32 [rows, 2, 128]
  // PLACE: "home" {{.*}} place 2
  %home = program.buffer "home" : f32 [rows, 2, 128]
  program.launch @delta grid(query_tiles, 16 * ceil_div(rows, 128)) (read %o, read %do, write %delta)
  program.clear %dq_accumulator
  program.clear %dk0
  program.launch @grads grid(kv_tiles, 2 * ceil_div(rows, 64)) (read %q, read %k, read %do, read %lse, read %delta, update %dq_accumulator, update %dk0)
  // CHECK: %[[LAST:.*]]:5 = program.repeat "step" = ranks - 1
  %last:5 = program.repeat "step" = ranks - 1 carry(%cur = %k, %next = %k0, %spare = %k1, %sum = %dk0, %sum_next = %dk1) {
    program.exchange %next, %cur offset 1
    program.exchange %sum_next, %sum offset 1
    program.wait %next
    program.wait %sum_next
    program.launch @grads grid(kv_tiles, 2 * ceil_div(rows, 64)) (read %q, read %next, read %do, read %lse, read %delta, update %dq_accumulator, update %sum_next)
    program.yield %next, %spare, %next, %sum_next, %sum
  }
  // CHECK: program.exchange %home, %[[LAST]]#3 offset 1
  program.exchange %home, %last#3 offset 1
  program.launch @round grid(query_tiles, 2 * ceil_div(rows, 128)) (read %dq_accumulator, write %dq)
  program.wait %home
  program.launch @round grid(query_tiles, 2 * ceil_div(rows, 128)) (read %home, write %dk)
}

tile.kernel @attend_all(%q: !tile.ptr<bf16>, %k: !tile.ptr<bf16>, %others: !tile.ptr<bf16>, %o: !tile.ptr<bf16>)
    target("sm_90a") grid(dense heads 16) schedule(#tile.warp_specialized<q_tile = 128, kv_tile = 64, warps = 8, ctas_per_sm = 1>) {}

// Shards are uneven: rank r has `shard[r]` rows of the `most` that buffers have room for, and needs `needed[s, r]` of rank
// s. All exchanges are in flight at once.
// CHECK-LABEL: program.def @gather {
program.def @gather {
  program.table "shard" [ranks]
  program.table "needed" [ranks * ranks]
  %q = program.tensor "q" operand : bf16 [most, 16, 128]
  %k = program.tensor "k" operand : bf16 [most, 2, 128]
  %o = program.tensor "o" result : bf16 [most, 16, 128]
  // CHECK: program.size "own" = shard[rank]
  program.size "own" = shard[rank]
  %others = program.buffer "others" : bf16 [(ranks - 1) * most, 2, 128]
  // CHECK: program.repeat "step" = ranks - 1 {
  program.repeat "step" = ranks - 1 {
    // CHECK-NEXT: program.exchange %others rows(step of ranks - 1), %k offset step + 1 rows(send needed[rank * ranks + mod(rank + step + 1, ranks)], receive needed[mod(rank - step - 1, ranks) * ranks + rank])
    program.exchange %others rows(step of ranks - 1), %k offset step + 1
        rows(send needed[rank * ranks + mod(rank + step + 1, ranks)], receive needed[mod(rank - step - 1, ranks) * ranks + rank])
  }
  // CHECK-NEXT: }
  // CHECK-NEXT: program.wait %others
  program.wait %others
  program.launch @attend_all grid(query_tiles, 16 * ceil_div(own, 128)) (read %q, read %k, read %others, write %o)
}
