// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Programs that `tile-assign-roles` cannot split.
//
// RUN: attn-opt %s -tile-assign-roles -split-input-file -verify-diagnostics

// Nothing to split,
// expected-error @below {{expected one `tile.persistent_loop` around the kernel's program}}
tile.kernel @plain(%map: !tile.tensor_map<64xbf16>, %n: i32, %lo: i32, %hi: i32, %blocks: i32, %queue: !tile.queue) target("sm_90a")
    grid(dense heads 1) schedule(#tile.warp_specialized<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
}

// -----

// or nobody knows what.
// expected-error @below {{expected one `tile.persistent_loop` around the kernel's program}}
tile.kernel @twofold(%map: !tile.tensor_map<64xbf16>, %n: i32, %lo: i32, %hi: i32, %blocks: i32, %queue: !tile.queue) target("sm_90a")
    grid(dense heads 1) schedule(#tile.warp_specialized<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
  tile.persistent_loop %blocks, %queue {
  ^bb0(%block: i32):
  }
  tile.persistent_loop %blocks, %queue {
  ^bb0(%block: i32):
  }
}

// -----

tile.kernel @never(%map: !tile.tensor_map<64xbf16>, %n: i32, %lo: i32, %hi: i32, %blocks: i32, %queue: !tile.queue) target("sm_90a")
    grid(dense heads 1) schedule(#tile.warp_specialized<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
  %Q = tile.alloc "Q" : !tile.shared<64x64xbf16, swizzled>
  %q_operand = tile.alloc "q_operand" : !tile.register_operand<64x64xbf16, 4>
  tile.persistent_loop %blocks, %queue {
  ^bb0(%block: i32):
    // Nobody waits.
    // expected-error @below {{'tile.copy_tma' op expected one wait beside it, and what reads its place behind that, before another copy to it}}
    %t = tile.copy_tma %Q, %map at(%n, %n, %n) : !tile.shared<64x64xbf16, swizzled>, !tile.tensor_map<64xbf16>
  }
}

// -----

tile.kernel @twice_waited(%map: !tile.tensor_map<64xbf16>, %n: i32, %lo: i32, %hi: i32, %blocks: i32, %queue: !tile.queue) target("sm_90a")
    grid(dense heads 1) schedule(#tile.warp_specialized<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
  %Q = tile.alloc "Q" : !tile.shared<64x64xbf16, swizzled>
  %q_operand = tile.alloc "q_operand" : !tile.register_operand<64x64xbf16, 4>
  tile.persistent_loop %blocks, %queue {
  ^bb0(%block: i32):
    // Two waits: where is it taken?
    %some = arith.cmpi slt, %lo, %hi : i32
    // expected-error @below {{'tile.copy_tma' op expected one wait beside it, and what reads its place behind that, before another copy to it}}
    %t = tile.copy_tma %Q, %map at(%n, %n, %n) : !tile.shared<64x64xbf16, swizzled>, !tile.tensor_map<64xbf16>
    scf.if %some {
      tile.wait %t : !tile.token<copy>
    } else {
      tile.wait %t : !tile.token<copy>
    }
  }
}

// -----

tile.kernel @together(%map: !tile.tensor_map<64xbf16>, %n: i32, %lo: i32, %hi: i32, %blocks: i32, %queue: !tile.queue) target("sm_90a")
    grid(dense heads 1) schedule(#tile.warp_specialized<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
  %Q = tile.alloc "Q" : !tile.shared<64x64xbf16, swizzled>
  %q_operand = tile.alloc "q_operand" : !tile.register_operand<64x64xbf16, 4>
  %K = tile.alloc "K" : !tile.shared<64x64xbf16, swizzled>
  tile.persistent_loop %blocks, %queue {
  ^bb0(%block: i32):
    // One wait for two copies.
    // expected-error @below {{'tile.copy_tma' op expected one wait beside it, and what reads its place behind that, before another copy to it}}
    %t = tile.copy_tma %Q, %map at(%n, %n, %n) : !tile.shared<64x64xbf16, swizzled>, !tile.tensor_map<64xbf16>
    %u = tile.copy_tma %K, %map at(%n, %n, %n) : !tile.shared<64x64xbf16, swizzled>, !tile.tensor_map<64xbf16>
    tile.wait %t, %u : !tile.token<copy>, !tile.token<copy>
  }
}

// -----

tile.kernel @branch(%map: !tile.tensor_map<64xbf16>, %n: i32, %lo: i32, %hi: i32, %blocks: i32, %queue: !tile.queue) target("sm_90a")
    grid(dense heads 1) schedule(#tile.warp_specialized<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
  %Q = tile.alloc "Q" : !tile.shared<64x64xbf16, swizzled>
  %q_operand = tile.alloc "q_operand" : !tile.register_operand<64x64xbf16, 4>
  tile.persistent_loop %blocks, %queue {
  ^bb0(%block: i32):
    // A tile would be filled always and taken sometimes.
    %some = arith.cmpi slt, %lo, %hi : i32
    // expected-error @below {{'tile.copy_tma' op expected one wait beside it, and what reads its place behind that, before another copy to it}}
    %t = tile.copy_tma %Q, %map at(%n, %n, %n) : !tile.shared<64x64xbf16, swizzled>, !tile.tensor_map<64xbf16>
    scf.if %some {
      tile.wait %t : !tile.token<copy>
    }
  }
}

// -----

tile.kernel @twice(%map: !tile.tensor_map<64xbf16>, %n: i32, %lo: i32, %hi: i32, %blocks: i32, %queue: !tile.queue) target("sm_90a")
    grid(dense heads 1) schedule(#tile.warp_specialized<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
  %Q = tile.alloc "Q" : !tile.shared<64x64xbf16, swizzled>
  %q_operand = tile.alloc "q_operand" : !tile.register_operand<64x64xbf16, 4>
  tile.persistent_loop %blocks, %queue {
  ^bb0(%block: i32):
    // Filled twice, or not: nobody knows what is read.
    // expected-error @below {{'tile.copy_tma' op expected one wait beside it, and what reads its place behind that, before another copy to it}}
    %t = tile.copy_tma %Q, %map at(%n, %n, %n) : !tile.shared<64x64xbf16, swizzled>, !tile.tensor_map<64xbf16>
    tile.wait %t : !tile.token<copy>
    %some = arith.cmpi slt, %lo, %hi : i32
    scf.if %some {
      %u = tile.copy_tma %Q, %map at(%n, %n, %n) : !tile.shared<64x64xbf16, swizzled>, !tile.tensor_map<64xbf16>
      tile.wait %u : !tile.token<copy>
    }
    tile.load_operand %q_operand, %Q : !tile.register_operand<64x64xbf16, 4>, !tile.shared<64x64xbf16, swizzled>
  }
}

// -----

tile.kernel @before(%map: !tile.tensor_map<64xbf16>, %n: i32, %lo: i32, %hi: i32, %blocks: i32, %queue: !tile.queue) target("sm_90a")
    grid(dense heads 1) schedule(#tile.warp_specialized<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
  %Q = tile.alloc "Q" : !tile.shared<64x64xbf16, swizzled>
  %q_operand = tile.alloc "q_operand" : !tile.register_operand<64x64xbf16, 4>
  tile.persistent_loop %blocks, %queue {
  ^bb0(%block: i32):
    // Read before it is waited for, when the tile is not taken yet.
    // expected-error @below {{'tile.copy_tma' op expected one wait beside it, and what reads its place behind that, before another copy to it}}
    %t = tile.copy_tma %Q, %map at(%n, %n, %n) : !tile.shared<64x64xbf16, swizzled>, !tile.tensor_map<64xbf16>
    tile.load_operand %q_operand, %Q : !tile.register_operand<64x64xbf16, 4>, !tile.shared<64x64xbf16, swizzled>
    tile.wait %t : !tile.token<copy>
  }
}

// -----

tile.kernel @outside(%map: !tile.tensor_map<64xbf16>, %n: i32, %lo: i32, %hi: i32, %blocks: i32, %queue: !tile.queue) target("sm_90a")
    grid(dense heads 1) schedule(#tile.warp_specialized<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
  %Q = tile.alloc "Q" : !tile.shared<64x64xbf16, swizzled>
  %q_operand = tile.alloc "q_operand" : !tile.register_operand<64x64xbf16, 4>
  tile.persistent_loop %blocks, %queue {
  ^bb0(%block: i32):
    // Read where the tile is not known.
    %some = arith.cmpi slt, %lo, %hi : i32
    scf.if %some {
      // expected-error @below {{'tile.copy_tma' op expected one wait beside it, and what reads its place behind that, before another copy to it}}
      %t = tile.copy_tma %Q, %map at(%n, %n, %n) : !tile.shared<64x64xbf16, swizzled>, !tile.tensor_map<64xbf16>
      tile.wait %t : !tile.token<copy>
    }
    tile.load_operand %q_operand, %Q : !tile.register_operand<64x64xbf16, 4>, !tile.shared<64x64xbf16, swizzled>
  }
}

// -----

tile.kernel @no_place(%Q: !tile.shared<64x64xbf16, swizzled>, %map: !tile.tensor_map<64xbf16>, %n: i32, %blocks: i32,
                      %queue: !tile.queue) target("sm_90a") grid(dense heads 1)
    schedule(#tile.warp_specialized<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
  tile.persistent_loop %blocks, %queue {
  ^bb0(%block: i32):
    // Not a place of this kernel.
    // expected-error @below {{'tile.copy_tma' op expected one wait beside it, and what reads its place behind that, before another copy to it}}
    %t = tile.copy_tma %Q, %map at(%n, %n, %n) : !tile.shared<64x64xbf16, swizzled>, !tile.tensor_map<64xbf16>
    tile.wait %t : !tile.token<copy>
  }
}

// -----

tile.kernel @carried(%map: !tile.tensor_map<64xbf16>, %n: i32, %lo: i32, %hi: i32, %blocks: i32, %queue: !tile.queue) target("sm_90a")
    grid(dense heads 1) schedule(#tile.warp_specialized<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
  %Q = tile.alloc "Q" : !tile.shared<64x64xbf16, swizzled>
  %q_operand = tile.alloc "q_operand" : !tile.register_operand<64x64xbf16, 4>
  %s = tile.alloc "s" : !tile.frag<64x64, 4>
  tile.persistent_loop %blocks, %queue {
  ^bb0(%block: i32):
    // A product that goes around a loop, of which the producer's copy has no part.
    // expected-error @below {{'tile.mma_abt' op expected its token to be waited for and not to be carried around a loop}}
    %t = tile.mma_abt %s, %q_operand, %Q : !tile.frag<64x64, 4>, !tile.register_operand<64x64xbf16, 4>, !tile.shared<64x64xbf16, swizzled>
    %r = tile.kv_loop [%lo, %hi] tests [[]] carry(%t : !tile.token<product>) {
    ^bb0(%j: i32, %next: i32, %more: i1, %c: !tile.token<product>):
      tile.yield %c : !tile.token<product>
    }
    tile.wait %r : !tile.token<product>
  }
}

// -----

// The dQ MMA warpgroup has nothing to do.
// expected-error @below {{expected `tile.store_and_sync` and a staged `tile.add_global`, since the schedule has dq_columns}}
tile.kernel @idle(%map: !tile.tensor_map<64xbf16>, %n: i32, %blocks: i32, %queue: !tile.queue) target("sm_90a")
    grid(dense heads 1 keys) schedule(#tile.warp_specialized_backward<q_tile = 64, kv_tile = 128, warps = 8, ctas_per_sm = 1, single_loop = true, dq_columns = 64>) {
  tile.persistent_loop %blocks, %queue {
  ^bb0(%block: i32):
  }
}
