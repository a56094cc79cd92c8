// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// `tile-walk-by-warpgroup`: in the consumer, the rows of a walk become the warpgroup's own,
// and tiles that only other warpgroups need are taken and released unread.
//
// RUN: attn-opt %s -tile-walk-by-warpgroup | FileCheck %s
// RUN: attn-opt %s -tile-walk-by-warpgroup -mlir-print-op-generic | attn-opt | FileCheck %s
// RUN: attn-opt %s -tile-walk-by-warpgroup -tile-verify-async
// RUN: attn-opt %s -tile-walk-by-warpgroup -canonicalize -cse -tile-verify-async

// Causal: where a walk ends follows from the last row, where it begins from none. The
// producer brings what all rows need.
// CHECK-LABEL: tile.kernel @causal
// CHECK: producer {
// CHECK-NEXT: %[[ALL:.*]] = arith.addi %q0, %rows : i32
// CHECK-NEXT: %[[END:.*]] = arith.divui %[[ALL]], %n
// CHECK-NEXT: tile.kv_loop [%zero, %[[END]]]

// The warpgroup's rows, and whether there are any.
// CHECK: } consumer {
// CHECK: %[[WG:.*]] = tile.warpgroup
// CHECK-NEXT: %[[OFFSET:.*]] = arith.muli %[[WG]], %c64_i32
// CHECK-NEXT: %[[FIRST:.*]] = arith.addi %q0, %[[OFFSET]]
// CHECK-NEXT: %[[ALL:.*]] = arith.addi %q0, %rows
// CHECK-NEXT: %[[OWN:.*]] = arith.addi %[[FIRST]], %c64_i32
// CHECK-NEXT: %[[BEHIND:.*]] = arith.minsi %[[ALL]], %[[OWN]]
// CHECK-NEXT: %[[ANY:.*]] = arith.cmpi slt, %[[FIRST]], %[[BEHIND]]
// CHECK-NEXT: %[[FULL:.*]] = arith.divui %[[FIRST]], %n
// The block's end, and this warpgroup's.
// CHECK-NEXT: %[[BLOCK:.*]] = arith.addi %q0, %rows
// CHECK-NEXT: %[[BLOCKEND:.*]] = arith.divui %[[BLOCK]], %n
// CHECK-NEXT: %[[OWNEND:.*]] = arith.divui %[[BEHIND]], %n
// Its bounds lie within the block's; without rows it visits nothing. The common begin stays.
// CHECK-NEXT: %[[A:.*]] = arith.minsi %[[FULL]], %[[BLOCKEND]]
// CHECK-NEXT: %[[B:.*]] = arith.maxsi %[[A]], %zero
// CHECK-NEXT: %[[MID:.*]] = arith.select %[[ANY]], %[[B]], %zero
// CHECK-NEXT: %[[C:.*]] = arith.minsi %[[OWNEND]], %[[BLOCKEND]]
// CHECK-NEXT: %[[D:.*]] = arith.maxsi %[[C]], %zero
// CHECK-NEXT: %[[LAST:.*]] = arith.select %[[ANY]], %[[D]], %zero
// CHECK-NOT: scf.for
// CHECK: tile.kv_loop [%zero, %[[MID]], %[[LAST]]] tests {{\[\[}}], [0]]
// What others need is skipped behind everything else, as often as there are rings.
// CHECK: tile.store %o
// CHECK: scf.for %{{.*}} = %[[LAST]] to %[[BLOCKEND]] step
// CHECK-NEXT: tile.take %K
// CHECK-NEXT: tile.release %K
// CHECK-NEXT: tile.take %V
// CHECK-NEXT: tile.release %V
// CHECK-NEXT: }
// CHECK-NOT: scf.for
// CHECK-NOT: tile.query_rows
tile.kernel @causal(%q0: i32, %rows: i32, %n: i32, %zero: i32, %o: !tile.ptr<bf16>, %o_row: i64, %map: !tile.map<64xbf16>)
    target("sm_90a") grid(dense heads 1) config(<q_tile = 128, kv_tile = 64, warps = 8, blocks = 1, narrow = true>) {
  %K = tile.place "K" : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>
  %V = tile.place "V" : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>
  tile.roles registers(40, 232) producer {
    %first, %behind = tile.query_rows %q0, %rows
    %end = arith.divui %behind, %n : i32
    tile.kv_loop [%zero, %end] tests [[]] carry() {
    ^bb0(%j: i32, %next: i32, %more: i1):
      tile.fill %K, %map at(%j, %n, %n) : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>, !tile.map<64xbf16>
      tile.fill %V, %map at(%j, %n, %n) : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>, !tile.map<64xbf16>
      tile.yield
    }
  } consumer {
    %acc = tile.place "acc" : !tile.frag<128x64, 8>
    %first, %behind = tile.query_rows %q0, %rows
    %full = arith.divui %first, %n : i32
    %end = arith.divui %behind, %n : i32
    tile.kv_loop [%zero, %full, %end] tests [[], [0]] carry() {
    ^bb0(%j: i32, %next: i32, %more: i1):
      %k = tile.take %K : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>
      tile.release %K : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>
      tile.keep %acc at(%q0, %j) : !tile.frag<128x64, 8> {
      ^bb0(%query: i32, %key: i32):
        %below = arith.cmpi sle, %key, %query : i32
        tile.yield %below : i1
      }
      %v = tile.take %V : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>
      tile.release %V : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>
      tile.yield
    }
    tile.store %o stride(%o_row), %acc rows(%rows, %rows) dim 64 : !tile.ptr<bf16>, !tile.frag<128x64, 8>
  }
}

// A window: walks begin later as well, so what comes before a warpgroup's first tile is
// skipped ahead of the loop, in the order in which it was brought.
// CHECK-LABEL: tile.kernel @window
// CHECK: } consumer {
// CHECK: scf.if
// CHECK: %[[WG:.*]] = tile.warpgroup
// CHECK: %[[ANY:.*]] = arith.cmpi slt
// CHECK: %[[BLOCKBEGIN:.*]] = arith.divui %q0, %n
// CHECK-NEXT: %[[OWNBEGIN:.*]] = arith.divui %{{.*}}, %n
// CHECK: %[[BLOCKEND:.*]] = arith.divui %{{.*}}, %n
// CHECK-NEXT: %[[OWNEND:.*]] = arith.divui %{{.*}}, %n
// CHECK-NEXT: %[[A:.*]] = arith.minsi %[[OWNBEGIN]], %[[BLOCKEND]]
// CHECK-NEXT: %[[B:.*]] = arith.maxsi %[[A]], %[[BLOCKBEGIN]]
// CHECK-NEXT: %[[FROM:.*]] = arith.select %[[ANY]], %[[B]], %[[BLOCKBEGIN]]
// CHECK-NEXT: %[[C:.*]] = arith.minsi %[[OWNEND]], %[[BLOCKEND]]
// CHECK-NEXT: %[[D:.*]] = arith.maxsi %[[C]], %[[BLOCKBEGIN]]
// CHECK-NEXT: %[[TO:.*]] = arith.select %[[ANY]], %[[D]], %[[BLOCKBEGIN]]
// CHECK: scf.for %{{.*}} = %[[BLOCKBEGIN]] to %[[FROM]] step
// CHECK-NEXT: tile.take %K
// CHECK-NEXT: tile.release %K
// CHECK-NEXT: }
// CHECK-NEXT: tile.kv_loop [%[[FROM]], %[[TO]]]
// Within the branch that has the walk, at its end.
// CHECK: tile.clear %acc
// CHECK: scf.for %{{.*}} = %[[TO]] to %[[BLOCKEND]] step
// CHECK-NEXT: tile.take %K
// CHECK-NEXT: tile.release %K
// CHECK-NEXT: }
// CHECK-NEXT: }
tile.kernel @window(%q0: i32, %rows: i32, %n: i32, %live: i1, %map: !tile.map<64xbf16>)
    target("sm_90a") grid(dense heads 1) config(<q_tile = 192, kv_tile = 64, warps = 12, blocks = 1, narrow = true>) {
  %K = tile.place "K" : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>
  tile.roles registers(32, 160) producer {
    tile.fill %K, %map at(%n, %n, %n) : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>, !tile.map<64xbf16>
  } consumer {
    %acc = tile.place "acc" : !tile.frag<192x64, 12>
    scf.if %live {
      %first, %behind = tile.query_rows %q0, %rows
      %begin = arith.divui %first, %n : i32
      %end = arith.divui %behind, %n : i32
      tile.kv_loop [%begin, %end] tests [[]] carry() {
      ^bb0(%j: i32, %next: i32, %more: i1):
        %k = tile.take %K : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>
        tile.release %K : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>
        tile.yield
      }
      tile.clear %acc : !tile.frag<192x64, 12>
    }
  }
}

// Not where the config does not ask for it,
// CHECK-LABEL: tile.kernel @not_asked
// CHECK: } consumer {
// CHECK-NOT: tile.warpgroup
// CHECK: %[[ALL:.*]] = arith.addi %q0, %rows
// CHECK-NEXT: %[[END:.*]] = arith.divui %[[ALL]], %n
// CHECK-NEXT: tile.kv_loop [%q0, %[[END]]]
// CHECK-NOT: scf.for
tile.kernel @not_asked(%q0: i32, %rows: i32, %n: i32, %map: !tile.map<64xbf16>)
    target("sm_90a") grid(dense heads 1) config(<q_tile = 128, kv_tile = 64, warps = 8, blocks = 1>) {
  %K = tile.place "K" : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>
  tile.roles registers(40, 232) producer {
    tile.fill %K, %map at(%n, %n, %n) : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>, !tile.map<64xbf16>
  } consumer {
    %first, %behind = tile.query_rows %q0, %rows
    %end = arith.divui %behind, %n : i32
    tile.kv_loop [%first, %end] tests [[]] carry() {
    ^bb0(%j: i32, %next: i32, %more: i1):
      %k = tile.take %K : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>
      tile.release %K : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>
      tile.yield
    }
  }
}

// nor where a walk has several runs: what lies between one's end and the next one's begin
// would have to be skipped as well.
// CHECK-LABEL: tile.kernel @several_runs
// CHECK: } consumer {
// CHECK-NOT: tile.warpgroup
// CHECK: %[[ALL:.*]] = arith.addi %q0, %rows
// CHECK-NEXT: %[[END:.*]] = arith.divui %[[ALL]], %n
// CHECK-NEXT: tile.kv_loop [%zero, %q0] tests {{\[\[}}]], [%q0, %[[END]]] tests
// CHECK-NOT: scf.for
tile.kernel @several_runs(%q0: i32, %rows: i32, %n: i32, %zero: i32, %map: !tile.map<64xbf16>)
    target("sm_90a") grid(dense heads 1) config(<q_tile = 128, kv_tile = 64, warps = 8, blocks = 1, narrow = true>) {
  %K = tile.place "K" : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>
  tile.roles registers(40, 232) producer {
    tile.fill %K, %map at(%n, %n, %n) : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>, !tile.map<64xbf16>
  } consumer {
    %first, %behind = tile.query_rows %q0, %rows
    %end = arith.divui %behind, %n : i32
    tile.kv_loop [%zero, %first] tests [[]], [%first, %end] tests [[]] carry() {
    ^bb0(%j: i32, %next: i32, %more: i1):
      %k = tile.take %K : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>
      tile.release %K : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>
      tile.yield
    }
  }
}

// Without roles there is nobody else's tile, and rows are the block's.
// CHECK-LABEL: tile.kernel @no_roles
// CHECK-NEXT: %[[ALL:.*]] = arith.addi %q0, %rows
// CHECK-NEXT: tile.kv_loop [%q0, %[[ALL]]]
tile.kernel @no_roles(%q0: i32, %rows: i32) target("sm_90a") grid(dense heads 1)
    config(<q_tile = 128, kv_tile = 64, warps = 8, blocks = 1, narrow = true>) {
  %first, %behind = tile.query_rows %q0, %rows
  tile.kv_loop [%first, %behind] tests [[]] carry() {
  ^bb0(%j: i32, %next: i32, %more: i1):
    tile.yield
  }
}
