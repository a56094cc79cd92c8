// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What cannot be printed: an error at the op, a non-zero exit, and no text at
// all, not even of the kernels that could be printed.
//
// RUN: rm -rf %t && split-file %s %t
// RUN: not attn-translate %t/walk.mlir > %t/walk.out 2> %t/walk.err
// RUN: FileCheck %s --check-prefix=WALK --input-file=%t/walk.err
// RUN: test ! -s %t/walk.out
// RUN: not attn-translate %t/scalar.mlir 2>&1 | FileCheck %s --check-prefix=SCALAR
// RUN: not attn-translate %t/compare.mlir 2>&1 | FileCheck %s --check-prefix=COMPARE
// RUN: not attn-translate %t/persist.mlir --target=sm_90a 2>&1 | FileCheck %s --check-prefix=PERSIST
// RUN: not attn-translate %t/walk.mlir --compile --quiet 2>&1 | FileCheck %s --check-prefix=WALK

// Other things that end a translation, with the file and the place.
// RUN: not attn-translate %t/malformed.mlir 2>&1 | FileCheck %s --check-prefix=MALFORMED
// RUN: not attn-translate %t/nowhere.mlir 2>&1 | FileCheck %s --check-prefix=MISSING
// RUN: not attn-translate %t/malformed.mlir --target=sm_90 2>&1 | FileCheck %s --check-prefix=TARGET
// MALFORMED: error: `{{.*}}malformed.mlir` is not a valid module
// MALFORMED: {{.*}}malformed.mlir:2:55: error: custom op 'attn.problem' expected layout `bshd`, `sbhd`, `bhsd` or `thd`, got: dense
// MISSING: error: cannot read `{{.*}}nowhere.mlir`: No such file or directory
// TARGET: error: expected target `cpu`, `sm_90a`, `sm_80` or `sm_80:<chip>` with chip 80, 86, 87, 89, 90, 100 or 120, got: sm_90

// WALK: error: printing for sm_80 failed
// WALK: {{.*}}walk.mlir:10:3: error: 'tile.kv_loop' op cannot be printed as source
// WALK-NOT: error
// SCALAR: {{.*}}scalar.mlir:3:8: error: 'arith.shli' op cannot be printed as source
// COMPARE: {{.*}}compare.mlir:3:8: error: 'arith.cmpi' op cannot be printed as source
// PERSIST: error: printing for sm_90a failed
// PERSIST: {{.*}}persist.mlir:4:3: error: 'tile.persistent_loop' op cannot be printed as source

//--- walk.mlir
tile.kernel @good(%n: i32) target("sm_80") grid(dense heads 1)
    schedule(#tile.tiled<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
  %row = tile.alloc "row" : !tile.softmax_state<64, 4>
  tile.clear %row : !tile.softmax_state<64, 4>
}
tile.kernel @not_split(%n: i32) target("sm_80") grid(dense heads 1)
    schedule(#tile.tiled<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
  %row = tile.alloc "row" : !tile.softmax_state<64, 4>
  tile.clear %row : !tile.softmax_state<64, 4>
  tile.kv_loop [%n, %n] tests [[]] carry() {
  ^bb0(%j: i32, %next: i32, %more: i1):
    tile.yield
  }
}
//--- scalar.mlir
tile.kernel @shift(%n: i32) target("sm_80") grid(dense heads 1)
    schedule(#tile.tiled<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
  %x = arith.shli %n, %n : i32
}
//--- compare.mlir
tile.kernel @unsigned(%n: i32) target("sm_80") grid(dense heads 1)
    schedule(#tile.tiled<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
  %x = arith.cmpi ult, %n, %n : i32
}
//--- persist.mlir
// Without roles nobody tells the block's number.
tile.kernel @no_roles(%blocks: i32, %queue: !tile.queue) target("sm_90a") grid(dense heads 1)
    schedule(#tile.warp_specialized<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
  tile.persistent_loop %blocks, %queue {
  ^bb0(%block: i32):
  }
}
//--- malformed.mlir
// two lines
attn.problem @packed_causal mask(#attn.causal) layout(dense) heads(8) dims(64) dtype(bf16)
