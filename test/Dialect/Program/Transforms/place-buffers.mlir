// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: attn-opt %s --pass-pipeline='builtin.module(program.def(program-place-buffers))' | FileCheck %s

tile.kernel @one(%a: !tile.ptr<i32>, %b: !tile.ptr<i32>) target("sm_80") grid(dense heads 1) schedule(#tile.tiled<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {}
tile.kernel @two(%a: !tile.ptr<i32>, %b: !tile.ptr<i32>, %c: !tile.ptr<i32>) target("sm_80") grid(dense heads 1) schedule(#tile.tiled<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {}

// `all` lives throughout; `early` is over when `late` begins, and what one launch alone needs lies over either.
// CHECK-LABEL: program.def @lives
program.def @lives {
  %q = program.tensor "q" operand : i32 [n]
  %o = program.tensor "o" result : i32 [n]
  // CHECK: program.buffer "early" : i32 [n] place 1
  %early = program.buffer "early" : i32 [n]
  // CHECK-NEXT: program.buffer "all" : i32 [2 * n] place 0
  %all = program.buffer "all" : i32 [2 * n]
  // CHECK-NEXT: program.buffer "late" : i32 [3 * n] place 1
  %late = program.buffer "late" : i32 [3 * n]
  // CHECK-NEXT: program.buffer "own" : i32 [4 * n] place 2
  %own = program.buffer "own" : i32 [4 * n]
  program.launch @two grid(query_tiles, n) (read %q, write %all, write %early)
  program.launch @two grid(query_tiles, n) (read %early, update %all, scratch %own)
  program.launch @two grid(query_tiles, n) (read %q, update %all, write %late)
  program.launch @two grid(query_tiles, n) (read %late, read %all, write %o)
}

// What follows from arrays alone may be used again, so that nothing else comes to lie there; what is gone by then lies anywhere.
// CHECK-LABEL: program.def @again
program.def @again {
  %q = program.tensor "q" operand : i32 [n]
  %a = program.tensor "a" array : i32 [n]
  %o = program.tensor "o" result : i32 [n]
  // CHECK: program.buffer "work" : i32 [n] place 0
  %work = program.buffer "work" : i32 [n]
  // CHECK-NEXT: program.buffer "ranges" : i32 [n] place 1
  %ranges = program.buffer "ranges" : i32 [n]
  // CHECK-NEXT: program.buffer "lists" : i32 [n] place 0
  %lists = program.buffer "lists" : i32 [n]
  // CHECK-NEXT: program.buffer "partial" : i32 [n] place 1
  %partial = program.buffer "partial" : i32 [n]
  program.launch @two grid(query_tiles, n) (read %a, write %ranges, scratch %work)
  program.launch @two grid(query_tiles, n) (read %a, read %ranges, write %lists)
  program.launch @two grid(query_tiles, n) (read %q, read %lists, write %partial)
  program.launch @one grid(query_tiles, n) (read %partial, write %o)
}

// A call that skips the second launch finds `kept` as it was, so what the first one needs does not lie there.
// CHECK-LABEL: program.def @kept
program.def @kept {
  %q = program.tensor "q" operand : i32 [n]
  %a = program.tensor "a" array : i32 [n]
  %o = program.tensor "o" result : i32 [n]
  // CHECK: program.buffer "own" : i32 [n] place 1
  %own = program.buffer "own" : i32 [n]
  // CHECK-NEXT: program.buffer "kept" : i32 [n] place 0
  %kept = program.buffer "kept" : i32 [n]
  program.launch @one grid(query_tiles, n) (read %q, scratch %own)
  program.launch @one grid(query_tiles, n) (read %a, write %kept)
  program.launch @two grid(query_tiles, n) (read %kept, read %q, write %o)
}

// What is outside of a repeat and touched in it lives through it, as slots do that take turns; what is of its body lives in the
// body. What an exchange sends lives to its wait.
// CHECK-LABEL: program.def @turns
program.def @turns {
  %q = program.tensor "q" operand : i32 [n]
  %o = program.tensor "o" result : i32 [n]
  // CHECK: program.buffer "before" : i32 [n] place 1
  %before = program.buffer "before" : i32 [n]
  // CHECK-NEXT: program.buffer "outside" : i32 [n] place 0
  %outside = program.buffer "outside" : i32 [n]
  // CHECK-NEXT: program.buffer "slot0" : i32 [n] place 1
  %slot0 = program.buffer "slot0" : i32 [n]
  // CHECK-NEXT: program.buffer "slot1" : i32 [n] place 2
  %slot1 = program.buffer "slot1" : i32 [n]
  // CHECK-NEXT: program.buffer "sent" : i32 [n] place 0
  %sent = program.buffer "sent" : i32 [n]
  // CHECK-NEXT: program.buffer "came" : i32 [n] place 1
  %came = program.buffer "came" : i32 [n]
  // CHECK-NEXT: program.buffer "after" : i32 [n] place 2
  %after = program.buffer "after" : i32 [n]
  program.launch @one grid(query_tiles, n) (read %q, write %before)
  program.launch @one grid(query_tiles, n) (read %before, write %outside)
  // CHECK: program.repeat "i"
  %last:3 = program.repeat "i" = n carry(%cur = %q, %next = %slot0, %spare = %slot1) {
    // CHECK-NEXT: program.buffer "first" : i32 [n] place 4
    %first = program.buffer "first" : i32 [n]
    // CHECK-NEXT: program.buffer "second" : i32 [n] place 3
    %second = program.buffer "second" : i32 [n]
    // CHECK-NEXT: program.buffer "third" : i32 [n] place 4
    %third = program.buffer "third" : i32 [n]
    program.exchange %next, %cur offset 1
    program.wait %next
    program.launch @two grid(query_tiles, n) (read %next, read %outside, write %first)
    program.launch @one grid(query_tiles, n) (read %first, write %second)
    program.launch @one grid(query_tiles, n) (read %second, write %third)
    program.launch @one grid(query_tiles, n) (read %third, scratch %second)
    program.yield %next, %spare, %next
  }
  program.launch @one grid(query_tiles, n) (read %last#0, write %sent)
  program.exchange %came, %sent offset 1
  program.launch @one grid(query_tiles, n) (read %q, write %after)
  program.wait %came
  program.launch @two grid(query_tiles, n) (read %came, read %after, write %o)
}
