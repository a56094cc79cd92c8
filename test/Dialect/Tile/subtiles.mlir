// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Tiles of as many rows and keys as there are, and results a part of their columns at a time: what is written is what is
// read, and what is refused.
//
// RUN: rm -rf %t && split-file %s %t
// RUN: attn-opt %t/ops.mlir -tile-verify-async | attn-opt | FileCheck %t/ops.mlir
// RUN: attn-opt %t/ops.mlir -mlir-print-op-generic | attn-opt | FileCheck %t/ops.mlir
// RUN: attn-translate %t/ops.mlir | FileCheck %t/ops.mlir --check-prefix=TEXT
// RUN: attn-opt %t/errors.mlir -split-input-file -verify-diagnostics
// RUN: attn-opt %t/async.mlir -split-input-file -tile-verify-async -verify-diagnostics

//--- ops.mlir
// CHECK: schedule(#tile.cta_per_sequence<q_tile = 17, kv_tile = 24, warps = 2, ctas_per_sm = 12, column_parts = 2>)
tile.kernel @k(%q: !tile.ptr<bf16>, %n: i32, %stride: i64) target("sm_80")
    grid(packed heads 8 tiles 2) schedule(#tile.cta_per_sequence<q_tile = 17, kv_tile = 24, warps = 2, ctas_per_sm = 12, column_parts = 2>) {
  %c64 = arith.constant 64 : i32
  %Q = tile.alloc "Q" at 0 : !tile.shared<17x128xbf16, 136>
  %V = tile.alloc "V" at 4736 : !tile.shared<24x128xbf16, 136>
  %s = tile.alloc "s" : !tile.frag<32x24, 2>
  %acc = tile.alloc "acc" : !tile.frag<32x64, 2>
  %row = tile.alloc "row" : !tile.softmax_state<32, 2>
  // TEXT: attn::copy_async_once<128>(Q, q, stride, n);
  // CHECK: tile.copy_async once %Q, %q stride(%stride) rows(%n) dim 128
  %a = tile.copy_async once %Q, %q stride(%stride) rows(%n) dim 128 : !tile.shared<17x128xbf16, 136>, !tile.ptr<bf16>
  %b = tile.copy_async once %V, %q stride(%stride) rows(%n) dim 128 : !tile.shared<24x128xbf16, 136>, !tile.ptr<bf16>
  // TEXT: const bool finite = attn::wait_finite(V);
  // CHECK: tile.wait_finite %V after %{{.*}}, %{{.*}} : !tile.shared<24x128xbf16, 136>
  %finite = tile.wait_finite %V after %a, %b : !tile.shared<24x128xbf16, 136>
  // CHECK: tile.mma_abt %s, %Q, %V : !tile.frag<32x24, 2>, !tile.shared<17x128xbf16, 136>, !tile.shared<24x128xbf16, 136>
  %t = tile.mma_abt %s, %Q, %V : !tile.frag<32x24, 2>, !tile.shared<17x128xbf16, 136>, !tile.shared<24x128xbf16, 136>
  tile.wait %t : !tile.token<product>
  // TEXT: const bool thread_finite = attn::is_finite(s);
  // TEXT: const bool all_finite = attn::barrier_and(thread_finite);
  // CHECK: %[[OWN:.*]] = tile.is_finite %s : !tile.frag<32x24, 2>
  // CHECK: tile.barrier_and %[[OWN]]
  %own = tile.is_finite %s : !tile.frag<32x24, 2>
  %all = tile.barrier_and %own
  // TEXT: bool found;
  // TEXT-NEXT: if (all_finite) {
  // TEXT-NEXT: attn::reduce_row_sums(row);
  // TEXT-NEXT: found = thread_finite;
  // TEXT-NEXT: } else {
  // TEXT-NEXT: found = false;
  // TEXT: if (found) {
  %false = arith.constant false
  %found = scf.if %all -> (i1) {
    tile.reduce_row_sums %row : !tile.softmax_state<32, 2>
    scf.yield %own : i1
  } else {
    scf.yield %false : i1
  }
  scf.if %found {
    tile.reduce_row_sums %row : !tile.softmax_state<32, 2>
  }
  // TEXT: attn::reduce_row_sums(row);
  // CHECK: tile.reduce_row_sums %row : !tile.softmax_state<32, 2>
  tile.reduce_row_sums %row : !tile.softmax_state<32, 2>
  // TEXT: auto V_subtile = attn::subtile<24, 64>(V, 64);
  // CHECK: %[[PART:.*]] = tile.subtile %V from(%{{.*}}) : !tile.shared<24x128xbf16, 136> to !tile.shared<24x64xbf16, 136>
  %right = tile.subtile %V from(%c64) : !tile.shared<24x128xbf16, 136> to !tile.shared<24x64xbf16, 136>
  %u = tile.mma_ab %acc, %s, %right : !tile.frag<32x64, 2>, !tile.frag<32x24, 2>, !tile.shared<24x64xbf16, 136>
  tile.wait %u : !tile.token<product>
  // TEXT: attn::divide(acc, row);
  // CHECK: tile.normalize %acc, %row reduced : !tile.frag<32x64, 2>, !tile.softmax_state<32, 2>
  tile.normalize %acc, %row reduced : !tile.frag<32x64, 2>, !tile.softmax_state<32, 2>
  // TEXT: auto V_subtile_2 = attn::subtile<16, 128>(V);
  // CHECK: tile.subtile %V : !tile.shared<24x128xbf16, 136> to !tile.shared<16x128xbf16, 136>
  %few = tile.subtile %V : !tile.shared<24x128xbf16, 136> to !tile.shared<16x128xbf16, 136>
}

//--- errors.mlir
tile.kernel @k(%q: !tile.ptr<bf16>, %n: i32, %stride: i64) target("sm_80") grid(dense heads 1) schedule(#tile.tiled<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
  %Q = tile.alloc "Q" : !tile.shared<64x64xbf16, 72>
  %V = tile.alloc "V" : !tile.shared<64x64xbf16, 72>
  %a = tile.copy_async once %Q, %q stride(%stride) rows(%n) dim 64 : !tile.shared<64x64xbf16, 72>, !tile.ptr<bf16>
  // expected-error @below {{'tile.wait_finite' op expected a copy of the tile among those it waits for}}
  %finite = tile.wait_finite %V after %a : !tile.shared<64x64xbf16, 72>
}

// -----

tile.kernel @k() target("sm_80") grid(dense heads 1) schedule(#tile.tiled<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
  %V = tile.alloc "V" : !tile.shared<64x64xbf16, 72>
  // expected-error @below {{'tile.subtile' op expected rows and columns of a tile that is not swizzled, at its pitch, got: '!tile.shared<80x64xbf16, 72>' of '!tile.shared<64x64xbf16, 72>'}}
  %part = tile.subtile %V : !tile.shared<64x64xbf16, 72> to !tile.shared<80x64xbf16, 72>
}

// -----

tile.kernel @k() target("sm_80") grid(dense heads 1) schedule(#tile.tiled<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
  %s = tile.alloc "s" : !tile.frag<16x24, 1>
  %Q = tile.alloc "Q" : !tile.shared<17x128xbf16, 136>
  %K = tile.alloc "K" : !tile.shared<24x128xbf16, 136>
  // expected-error @below {{expected s to be Q's rows by K's rows over equal columns}}
  %t = tile.mma_abt %s, %Q, %K : !tile.frag<16x24, 1>, !tile.shared<17x128xbf16, 136>, !tile.shared<24x128xbf16, 136>
}

//--- async.mlir
tile.kernel @reads_too_early(%q: !tile.ptr<bf16>, %n: i32, %stride: i64) target("sm_80") grid(dense heads 1) schedule(#tile.tiled<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
  %V = tile.alloc "V" : !tile.shared<64x64xbf16, 72>
  %s = tile.alloc "s" : !tile.frag<64x16, 4>
  // expected-note @below {{while this is in flight into it}}
  %a = tile.copy_async once %V, %q stride(%stride) rows(%n) dim 64 : !tile.shared<64x64xbf16, 72>, !tile.ptr<bf16>
  %few = tile.subtile %V : !tile.shared<64x64xbf16, 72> to !tile.shared<16x64xbf16, 72>
  // expected-error @below {{'tile.mma_abt' op reads `V`}}
  %t = tile.mma_abt %s, %V, %few : !tile.frag<64x16, 4>, !tile.shared<64x64xbf16, 72>, !tile.shared<16x64xbf16, 72>
}

// -----

tile.kernel @overwrites(%q: !tile.ptr<bf16>, %n: i32, %stride: i64) target("sm_80") grid(dense heads 1) schedule(#tile.tiled<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
  %Q = tile.alloc "Q" : !tile.shared<64x64xbf16, 72>
  %V = tile.alloc "V" : !tile.shared<64x64xbf16, 72>
  %s = tile.alloc "s" : !tile.frag<64x16, 4>
  %few = tile.subtile %V : !tile.shared<64x64xbf16, 72> to !tile.shared<16x64xbf16, 72>
  // expected-note @below {{which other warps may still be reading here}}
  %t = tile.mma_abt %s, %Q, %few : !tile.frag<64x16, 4>, !tile.shared<64x64xbf16, 72>, !tile.shared<16x64xbf16, 72>
  tile.wait %t : !tile.token<product>
  // expected-error @below {{'tile.copy_async' op overwrites `V`}}
  %a = tile.copy_async %few, %q stride(%stride) rows(%n) dim 64 : !tile.shared<16x64xbf16, 72>, !tile.ptr<bf16>
  tile.wait %a : !tile.token<copy>
}
