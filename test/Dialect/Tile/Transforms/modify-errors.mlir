// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// `tile.modify` touches the scores.
//
// RUN: attn-opt %s --pass-pipeline="builtin.module(tile.kernel(tile-verify-async))" -verify-diagnostics

tile.kernel @k(%q0: i32, %k0: i32) target("sm_80") grid(dense heads 1)
    schedule(#tile.tiled<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
  %Q = tile.alloc "Q" : !tile.shared<64x64xbf16, 72>
  %K = tile.alloc "K" : !tile.shared<64x64xbf16, 72>
  %s = tile.alloc "s" : !tile.frag<64x64, 4>
  // expected-note @below {{while this is in flight into it}}
  %t = tile.mma_abt %s, %Q, %K : !tile.frag<64x64, 4>, !tile.shared<64x64xbf16, 72>, !tile.shared<64x64xbf16, 72>
  // expected-error @below {{'tile.modify' op writes `s`}}
  tile.modify %s at(%q0, %k0) : !tile.frag<64x64, 4> {
  ^bb0(%score: f32, %q: i32, %k: i32, %base: i32, %column_offset: f32):
    tile.yield %score : f32
  }
  tile.wait %t : !tile.token<product>
}
