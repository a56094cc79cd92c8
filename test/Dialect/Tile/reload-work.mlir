// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Words of a message that are read again behind a loop.
//
// RUN: attn-opt %s -split-input-file -verify-diagnostics | FileCheck %s
// RUN: attn-opt %s -split-input-file -verify-diagnostics -mlir-print-op-generic | FileCheck %s --check-prefix=GENERIC

tile.kernel @k(%blocks: i32, %queue: !tile.queue) target("sm_90a") grid(dense heads 1 keys)
    schedule(#tile.warp_specialized_backward<q_tile = 64, kv_tile = 128, warps = 8, ctas_per_sm = 1>) {
  %mailbox = tile.alloc "mailbox" : !tile.mailbox<2>
  // CHECK: tile.reload_work %mailbox[1] : !tile.mailbox<2>
  // GENERIC: "tile.reload_work"({{.*}}) <{word = 1 : i64}> : (!tile.mailbox<2>) -> i32
  %0 = tile.reload_work %mailbox[1] : !tile.mailbox<2>
  // CHECK: tile.release_work %mailbox : !tile.mailbox<2>
  // GENERIC: "tile.release_work"({{.*}}) : (!tile.mailbox<2>) -> ()
  tile.release_work %mailbox : !tile.mailbox<2>
}

// -----

tile.kernel @k(%blocks: i32, %queue: !tile.queue) target("sm_90a") grid(dense heads 1 keys)
    schedule(#tile.warp_specialized_backward<q_tile = 64, kv_tile = 128, warps = 8, ctas_per_sm = 1>) {
  %mailbox = tile.alloc "mailbox" : !tile.mailbox<2>
  // C1
  // expected-error @below {{'tile.reload_work' op expected a word from 0 to 1, got: 2}}
  %0 = tile.reload_work %mailbox[2] : !tile.mailbox<2>
}

// -----

tile.kernel @k(%blocks: i32, %queue: !tile.queue) target("sm_90a") grid(dense heads 1 keys)
    schedule(#tile.warp_specialized_backward<q_tile = 64, kv_tile = 128, warps = 8, ctas_per_sm = 1>) {
  %mailbox = tile.alloc "mailbox" : !tile.mailbox<2>
  // C1
  // expected-error @below {{'tile.reload_work' op expected a word from 0 to 1, got: -1}}
  %0 = tile.reload_work %mailbox[-1] : !tile.mailbox<2>
}
