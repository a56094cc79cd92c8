// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Programs that `tile-verify-async` accepts: the plain one, the pipelined one, and
// both after they were split.
//
// RUN: attn-opt %s -tile-verify-async | FileCheck %s
// RUN: attn-opt %s -tile-pipeline-kv -tile-verify-async | FileCheck %s
// RUN: attn-opt %s -tile-split-kv-loop -tile-verify-async | FileCheck %s
// RUN: attn-opt %s -tile-pipeline-kv -tile-split-kv-loop -tile-verify-async | FileCheck %s
// RUN: attn-opt %s -tile-pipeline-kv -tile-split-kv-loop -canonicalize -cse -tile-verify-async | FileCheck %s

// CHECK-LABEL: tile.kernel @one_run
tile.kernel @one_run(%q: !tile.ptr<bf16>, %stride: i64, %n: i32, %lo: i32, %mid: i32, %hi: i32) target("sm_80")
    grid(dense heads 1) schedule(#tile.tiled<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
  %Q = tile.alloc "Q" : !tile.shared<64x64xbf16, 72>
  %K = tile.alloc "K" : !tile.shared<64x64xbf16, 72>
  %V = tile.alloc "V" : !tile.shared<64x64xbf16, 72>
  %s = tile.alloc "s" : !tile.frag<64x64, 4>
  %acc = tile.alloc "acc" : !tile.frag<64x64, 4>
  %row = tile.alloc "row" : !tile.softmax_state<64, 4>
  %tq = tile.copy_async %Q, %q stride(%stride) rows(%n) dim 64 : !tile.shared<64x64xbf16, 72>, !tile.ptr<bf16>
  tile.wait %tq : !tile.token<copy>
  tile.kv_loop [%lo, %mid, %hi] tests [[0, 1], []] carry() {
  ^bb0(%j: i32, %next: i32, %more: i1):
    %tk = tile.copy_async %K, %q stride(%stride) rows(%n) dim 64 : !tile.shared<64x64xbf16, 72>, !tile.ptr<bf16>
    tile.wait %tk : !tile.token<copy>
    %ts = tile.mma_abt %s, %Q, %K : !tile.frag<64x64, 4>, !tile.shared<64x64xbf16, 72>, !tile.shared<64x64xbf16, 72>
    tile.wait %ts : !tile.token<product>
    tile.apply_mask %s at(%n, %j) : !tile.frag<64x64, 4> {
    ^bb0(%query: i32, %key: i32):
      %after = arith.cmpi sle, %lo, %key : i32
      %before = arith.cmpi sle, %key, %query : i32
      tile.yield %after, %before : i1, i1
    }
    tile.online_softmax %s, %row, %acc scale 0.125 : !tile.frag<64x64, 4>, !tile.softmax_state<64, 4>, !tile.frag<64x64, 4>
    %tv = tile.copy_async %V, %q stride(%stride) rows(%n) dim 64 : !tile.shared<64x64xbf16, 72>, !tile.ptr<bf16>
    tile.wait %tv : !tile.token<copy>
    %ta = tile.mma_ab %acc, %s, %V {guarded} : !tile.frag<64x64, 4>, !tile.frag<64x64, 4>, !tile.shared<64x64xbf16, 72>
    tile.wait %ta : !tile.token<product>
    tile.yield
  }
  tile.normalize %acc, %row : !tile.frag<64x64, 4>, !tile.softmax_state<64, 4>
  tile.store %q stride(%stride), %acc rows(%n, %n) dim 64 : !tile.ptr<bf16>, !tile.frag<64x64, 4>
}

// CHECK-LABEL: tile.kernel @two_runs
tile.kernel @two_runs(%q: !tile.ptr<bf16>, %stride: i64, %n: i32, %lo: i32, %mid: i32, %hi: i32) target("sm_80")
    grid(dense heads 1) schedule(#tile.tiled<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
  %Q = tile.alloc "Q" : !tile.shared<64x64xbf16, 72>
  %K = tile.alloc "K" : !tile.shared<64x64xbf16, 72>
  %V = tile.alloc "V" : !tile.shared<64x64xbf16, 72>
  %s = tile.alloc "s" : !tile.frag<64x64, 4>
  %acc = tile.alloc "acc" : !tile.frag<64x64, 4>
  %row = tile.alloc "row" : !tile.softmax_state<64, 4>
  %tq = tile.copy_async %Q, %q stride(%stride) rows(%n) dim 64 : !tile.shared<64x64xbf16, 72>, !tile.ptr<bf16>
  tile.wait %tq : !tile.token<copy>
  tile.kv_loop [%lo, %n] tests [[0, 1]], [%mid, %hi] tests [[]] carry() {
  ^bb0(%j: i32, %next: i32, %more: i1):
    %tk = tile.copy_async %K, %q stride(%stride) rows(%n) dim 64 : !tile.shared<64x64xbf16, 72>, !tile.ptr<bf16>
    tile.wait %tk : !tile.token<copy>
    %ts = tile.mma_abt %s, %Q, %K : !tile.frag<64x64, 4>, !tile.shared<64x64xbf16, 72>, !tile.shared<64x64xbf16, 72>
    tile.wait %ts : !tile.token<product>
    tile.apply_mask %s at(%n, %j) : !tile.frag<64x64, 4> {
    ^bb0(%query: i32, %key: i32):
      %after = arith.cmpi sle, %lo, %key : i32
      %before = arith.cmpi sle, %key, %query : i32
      tile.yield %after, %before : i1, i1
    }
    tile.online_softmax %s, %row, %acc scale 0.125 : !tile.frag<64x64, 4>, !tile.softmax_state<64, 4>, !tile.frag<64x64, 4>
    %tv = tile.copy_async %V, %q stride(%stride) rows(%n) dim 64 : !tile.shared<64x64xbf16, 72>, !tile.ptr<bf16>
    tile.wait %tv : !tile.token<copy>
    %ta = tile.mma_ab %acc, %s, %V {guarded} : !tile.frag<64x64, 4>, !tile.frag<64x64, 4>, !tile.shared<64x64xbf16, 72>
    tile.wait %ta : !tile.token<product>
    tile.yield
  }
}

// A copy that may not start counts as landed; both branches wait; two tokens in one wait.
// CHECK-LABEL: tile.kernel @branches
tile.kernel @branches(%q: !tile.ptr<bf16>, %stride: i64, %n: i32, %lo: i32, %mid: i32, %hi: i32) target("sm_80")
    grid(dense heads 1) schedule(#tile.tiled<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
  %Q = tile.alloc "Q" : !tile.shared<64x64xbf16, 72>
  %K = tile.alloc "K" : !tile.shared<64x64xbf16, 72>
  %V = tile.alloc "V" : !tile.shared<64x64xbf16, 72>
  %s = tile.alloc "s" : !tile.frag<64x64, 4>
  %acc = tile.alloc "acc" : !tile.frag<64x64, 4>
  %row = tile.alloc "row" : !tile.softmax_state<64, 4>
  %some = arith.cmpi slt, %lo, %hi : i32
  %t = tile.copy_async %K, %q stride(%stride) rows(%n) dim 64 when(%some) : !tile.shared<64x64xbf16, 72>, !tile.ptr<bf16>
  scf.if %some {
    tile.wait %t : !tile.token<copy>
  } else {
    tile.wait %t : !tile.token<copy>
  }
  %a = tile.copy_async %K, %q stride(%stride) rows(%n) dim 64 : !tile.shared<64x64xbf16, 72>, !tile.ptr<bf16>
  %b = tile.copy_async %V, %q stride(%stride) rows(%n) dim 64 : !tile.shared<64x64xbf16, 72>, !tile.ptr<bf16>
  tile.wait %a, %b : !tile.token<copy>, !tile.token<copy>
}

// Rings: a tile is read until its release, around loops and in branches that both leave
// it as they found it; two rings at a time; the same ring after its release.
// CHECK-LABEL: tile.kernel @rings
tile.kernel @rings(%map: !tile.tensor_map<64xbf16>, %n: i32, %lo: i32, %hi: i32, %blocks: i32, %queue: !tile.queue)
    target("sm_90a") grid(dense heads 1) schedule(#tile.warp_specialized<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
  %K = tile.alloc "K" : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>
  %V = tile.alloc "V" : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>
  %nobody = tile.alloc "nobody" : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>
  %mailbox = tile.alloc "mailbox" : !tile.mailbox<1>
  tile.roles registers(40, 232) producer {
    tile.persistent_loop %blocks, %queue mailbox(%mailbox : !tile.mailbox<1>) {
    ^bb0(%block: i32):
      tile.publish_work %mailbox(%block) : !tile.mailbox<1>
      tile.producer_load %K, %map at(%n, %n, %n) : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>, !tile.tensor_map<64xbf16>
      tile.producer_load %V, %map at(%n, %n, %n) : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>, !tile.tensor_map<64xbf16>
    }
  } consumer {
    %s = tile.alloc "s" : !tile.frag<64x64, 4>
    %acc = tile.alloc "acc" : !tile.frag<64x64, 4>
    %row = tile.alloc "row" : !tile.softmax_state<64, 4>
    %q_operand = tile.alloc "q_operand" : !tile.register_operand<64x64xbf16, 4>
    %p = tile.alloc "p" : !tile.register_operand<64x64xbf16, 4>
    %one = arith.constant 1 : i32
    %some = arith.cmpi slt, %lo, %hi : i32
    tile.persistent_loop %blocks mailbox(%mailbox : !tile.mailbox<1>) {
    ^bb0(%block: i32):
      // Taken before the loop, given back and taken anew in each iteration.
      %first = tile.consumer_wait %K : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>
      scf.for %j = %lo to %hi step %one : i32 {
        tile.consumer_release %K : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>
        %k = tile.consumer_wait %K : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>
        %v = tile.consumer_wait %V : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>
        %tv = tile.copy_tma %v, %map at(%j, %n, %n) : !tile.shared<64x64xbf16, swizzled>, !tile.tensor_map<64xbf16>
        tile.wait %tv : !tile.token<copy>
        %ts = tile.mma_abt %s, %q_operand, %k : !tile.frag<64x64, 4>, !tile.register_operand<64x64xbf16, 4>, !tile.shared<64x64xbf16, swizzled>
        %ta = tile.mma_ab %acc, %p, %v : !tile.frag<64x64, 4>, !tile.register_operand<64x64xbf16, 4>, !tile.shared<64x64xbf16, swizzled>
        tile.wait %ts : !tile.token<product>
        tile.online_softmax %s, %row scale 0.5 : !tile.frag<64x64, 4>, !tile.softmax_state<64, 4>
        tile.wait %ta : !tile.token<product>
        tile.consumer_release %V : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>
        tile.rescale %acc, %row : !tile.frag<64x64, 4>, !tile.softmax_state<64, 4>
        tile.convert %p, %s : !tile.register_operand<64x64xbf16, 4>, !tile.frag<64x64, 4>
      }
      scf.if %some {
        tile.consumer_release %K : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>
        %v = tile.consumer_wait %V : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>
        tile.load_operand %q_operand, %v : !tile.register_operand<64x64xbf16, 4>, !tile.shared<64x64xbf16, swizzled>
        tile.consumer_release %V : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>
      } else {
        tile.consumer_release %K : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>
      }
      scf.if %some {
        %k = tile.consumer_wait %K : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>
        tile.load_operand %q_operand, %k : !tile.register_operand<64x64xbf16, 4>, !tile.shared<64x64xbf16, swizzled>
        tile.consumer_release %K : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>
      }
    }
  }
}
