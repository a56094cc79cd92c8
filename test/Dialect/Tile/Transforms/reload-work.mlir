// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// `tile-reload-work`: behind the loop, words of the message are read again, and what follows from them is worked
// out anew.
//
// RUN: attn-opt %s -tile-reload-work | FileCheck %s

// CHECK-LABEL: tile.kernel @keys
// CHECK: ^bb0(%{{.*}}: i32, %b: i32, %rows: i32, %end: i32):
// CHECK: %[[WIDE:.*]] = arith.extsi %b
// CHECK: %[[ROW:.*]] = tile.advance %dk, %[[WIDE]]
// CHECK: tile.kv_loop
// CHECK: }
// CHECK-NEXT: %[[B:.*]] = tile.reload_work %mailbox[1] : !tile.mailbox<4>
// CHECK-NEXT: %[[AGAIN:.*]] = arith.extsi %[[B]]
// CHECK-NEXT: %[[TO:.*]] = tile.advance %dk, %[[AGAIN]]
// CHECK-NEXT: %[[ROWS:.*]] = tile.reload_work %mailbox[2] : !tile.mailbox<4>
// CHECK-NEXT: tile.store %[[TO]] stride(%dk_row), %dK rows(%[[ROWS]], %[[ROWS]])
// CHECK-NEXT: tile.release_work %mailbox : !tile.mailbox<4>
tile.kernel @keys(%dk: !tile.ptr<bf16>, %dk_row: i64, %blocks: i32, %queue: !tile.queue) target("sm_90a")
    grid(dense heads 1 keys) schedule(#tile.warp_specialized_backward<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
  %dK = tile.alloc "dK" : !tile.frag<64x64, 4>
  %mailbox = tile.alloc "mailbox" : !tile.mailbox<4>
  tile.roles registers(40, 240) producer {
  } consumer {
    tile.persistent_loop %blocks mailbox(%mailbox : !tile.mailbox<4>) {
    ^bb0(%block: i32, %b: i32 loc("b"), %rows: i32 loc("rows"), %end: i32 loc("end")):
      %zero = arith.constant 0 : i32
      %wide = arith.extsi %b : i32 to i64
      %to = tile.advance %dk, %wide : !tile.ptr<bf16>
      tile.clear %dK : !tile.frag<64x64, 4>
      tile.store %to stride(%dk_row), %dK rows(%rows, %rows) dim 64 : !tile.ptr<bf16>, !tile.frag<64x64, 4>
      tile.kv_loop [%zero, %end] tests [[]] carry() {
      ^bb0(%j: i32, %before: i32, %first: i1):
        tile.yield
      }
      tile.store %to stride(%dk_row), %dK rows(%rows, %rows) dim 64 : !tile.ptr<bf16>, !tile.frag<64x64, 4>
    }
  }
}

// Where nothing is wanted behind the loop, and where query tiles are at rest and leave room, nothing is recalled.
// CHECK-LABEL: tile.kernel @queries
// CHECK-NOT: tile.reload_work
// CHECK-NOT: tile.release_work
tile.kernel @queries(%o: !tile.ptr<bf16>, %o_row: i64, %blocks: i32, %queue: !tile.queue) target("sm_90a")
    grid(dense heads 1) schedule(#tile.warp_specialized<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
  %acc = tile.alloc "acc" : !tile.frag<64x64, 4>
  %mailbox = tile.alloc "mailbox" : !tile.mailbox<3>
  tile.roles registers(40, 240) producer {
  } consumer {
    tile.persistent_loop %blocks mailbox(%mailbox : !tile.mailbox<3>) {
    ^bb0(%block: i32, %rows: i32 loc("rows"), %end: i32 loc("end")):
      %zero = arith.constant 0 : i32
      tile.kv_loop [%zero, %end] tests [[]] carry() {
      ^bb0(%j: i32, %before: i32, %first: i1):
        tile.yield
      }
      tile.store %o stride(%o_row), %acc rows(%rows, %rows) dim 64 : !tile.ptr<bf16>, !tile.frag<64x64, 4>
    }
  }
}

// Accumulators of 256 columns leave 32 of 240 registers.
// CHECK-LABEL: tile.kernel @wide_queries
// CHECK: tile.kv_loop
// CHECK: tile.reload_work %mailbox[1]
// CHECK: tile.store
// CHECK-NEXT: tile.release_work
tile.kernel @wide_queries(%dq: !tile.ptr<bf16>, %dq_row: i64, %blocks: i32, %queue: !tile.queue) target("sm_90a")
    grid(dense heads 1) schedule(#tile.warp_specialized<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
  %mailbox = tile.alloc "mailbox" : !tile.mailbox<3>
  tile.roles registers(40, 240) producer {
  } consumer {
    %s = tile.alloc "s" : !tile.frag<64x64, 4>
    %dp = tile.alloc "dp" : !tile.frag<64x64, 4>
    %dQ = tile.alloc "dQ" : !tile.frag<64x256, 4>
    %ds = tile.alloc "ds" : !tile.register_operand<64x64xbf16, 4>
    tile.persistent_loop %blocks mailbox(%mailbox : !tile.mailbox<3>) {
    ^bb0(%block: i32, %rows: i32 loc("rows"), %end: i32 loc("end")):
      %zero = arith.constant 0 : i32
      tile.kv_loop [%zero, %end] tests [[]] carry() {
      ^bb0(%j: i32, %before: i32, %first: i1):
        tile.yield
      }
      tile.store %dq stride(%dq_row), %dQ rows(%rows, %rows) dim 256 : !tile.ptr<bf16>, !tile.frag<64x256, 4>
    }
  }
}
