// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A slot that is given back ahead of its release.
//
// RUN: attn-opt %s -split-input-file -tile-verify-async -verify-diagnostics

// It is there again in each step, and gone behind the loops.
tile.kernel @in_steps(%map: !tile.map<64xbf16>, %n: i32, %some: i1, %lo: i32, %hi: i32) target("sm_90a") grid(dense heads 1)
    schedule(#tile.warp_specialized<q_tile = 64, kv_tile = 64, warps = 4, blocks = 1>) {
  %Q = tile.place "Q" : !tile.ring<1, !tile.shared<64x64xbf16, swizzled>>
  tile.roles registers(40, 240) producer {
    tile.fill %Q, %map at(%n, %n, %n) : !tile.ring<1, !tile.shared<64x64xbf16, swizzled>>, !tile.map<64xbf16>
  } consumer {
    %s = tile.place "s" : !tile.frag<64x64, 4>
    %q = tile.take %Q : !tile.ring<1, !tile.shared<64x64xbf16, swizzled>>
    tile.kv_loop [%lo, %hi] tests [[]] carry() {
    ^bb0(%j: i32, %next: i32, %more: i1):
      %t = tile.mma_qk %s, %q, %q : !tile.frag<64x64, 4>, !tile.shared<64x64xbf16, swizzled>, !tile.shared<64x64xbf16, swizzled>
      tile.wait %t : !tile.token<product>
      tile.release_early %Q unless %more : !tile.ring<1, !tile.shared<64x64xbf16, swizzled>>
      tile.yield
    }
    tile.kv_loop [%lo, %hi] tests [[]] carry() {
    ^bb0(%j: i32, %next: i32, %more: i1):
      %t = tile.mma_qk %s, %q, %q : !tile.frag<64x64, 4>, !tile.shared<64x64xbf16, swizzled>, !tile.shared<64x64xbf16, swizzled>
      tile.wait %t : !tile.token<product>
      tile.release_early %Q unless %more : !tile.ring<1, !tile.shared<64x64xbf16, swizzled>>
      tile.yield
    }
    tile.release %Q : !tile.ring<1, !tile.shared<64x64xbf16, swizzled>>
  }
}

// -----

tile.kernel @read_behind(%map: !tile.map<64xbf16>, %n: i32, %some: i1, %lo: i32, %hi: i32) target("sm_90a") grid(dense heads 1)
    schedule(#tile.warp_specialized<q_tile = 64, kv_tile = 64, warps = 4, blocks = 1>) {
  %Q = tile.place "Q" : !tile.ring<1, !tile.shared<64x64xbf16, swizzled>>
  tile.roles registers(40, 240) producer {
    tile.fill %Q, %map at(%n, %n, %n) : !tile.ring<1, !tile.shared<64x64xbf16, swizzled>>, !tile.map<64xbf16>
  } consumer {
    %s = tile.place "s" : !tile.frag<64x64, 4>
    %q = tile.take %Q : !tile.ring<1, !tile.shared<64x64xbf16, swizzled>>
    tile.kv_loop [%lo, %hi] tests [[]] carry() {
    ^bb0(%j: i32, %next: i32, %more: i1):
      %t = tile.mma_qk %s, %q, %q : !tile.frag<64x64, 4>, !tile.shared<64x64xbf16, swizzled>, !tile.shared<64x64xbf16, swizzled>
      tile.wait %t : !tile.token<product>
      tile.release_early %Q unless %more : !tile.ring<1, !tile.shared<64x64xbf16, swizzled>>
      // expected-error @below {{'tile.mma_qk' op reads a tile of a ring that it has released}}
      %u = tile.mma_qk %s, %q, %q : !tile.frag<64x64, 4>, !tile.shared<64x64xbf16, swizzled>, !tile.shared<64x64xbf16, swizzled>
      tile.wait %u : !tile.token<product>
      tile.yield
    }
    tile.release %Q : !tile.ring<1, !tile.shared<64x64xbf16, swizzled>>
  }
}

// -----

tile.kernel @read_behind_loops(%map: !tile.map<64xbf16>, %n: i32, %some: i1, %lo: i32, %hi: i32) target("sm_90a") grid(dense heads 1)
    schedule(#tile.warp_specialized<q_tile = 64, kv_tile = 64, warps = 4, blocks = 1>) {
  %Q = tile.place "Q" : !tile.ring<1, !tile.shared<64x64xbf16, swizzled>>
  tile.roles registers(40, 240) producer {
    tile.fill %Q, %map at(%n, %n, %n) : !tile.ring<1, !tile.shared<64x64xbf16, swizzled>>, !tile.map<64xbf16>
  } consumer {
    %s = tile.place "s" : !tile.frag<64x64, 4>
    %q = tile.take %Q : !tile.ring<1, !tile.shared<64x64xbf16, swizzled>>
    tile.kv_loop [%lo, %hi] tests [[]] carry() {
    ^bb0(%j: i32, %next: i32, %more: i1):
      %t = tile.mma_qk %s, %q, %q : !tile.frag<64x64, 4>, !tile.shared<64x64xbf16, swizzled>, !tile.shared<64x64xbf16, swizzled>
      tile.wait %t : !tile.token<product>
      tile.release_early %Q unless %more : !tile.ring<1, !tile.shared<64x64xbf16, swizzled>>
      tile.yield
    }
    // expected-error @below {{'tile.mma_qk' op reads a tile of a ring that it has released}}
    %t = tile.mma_qk %s, %q, %q : !tile.frag<64x64, 4>, !tile.shared<64x64xbf16, swizzled>, !tile.shared<64x64xbf16, swizzled>
    tile.wait %t : !tile.token<product>
    tile.release %Q : !tile.ring<1, !tile.shared<64x64xbf16, swizzled>>
  }
}

// -----

tile.kernel @in_flight(%map: !tile.map<64xbf16>, %n: i32, %some: i1, %lo: i32, %hi: i32) target("sm_90a") grid(dense heads 1)
    schedule(#tile.warp_specialized<q_tile = 64, kv_tile = 64, warps = 4, blocks = 1>) {
  %Q = tile.place "Q" : !tile.ring<1, !tile.shared<64x64xbf16, swizzled>>
  tile.roles registers(40, 240) producer {
    tile.fill %Q, %map at(%n, %n, %n) : !tile.ring<1, !tile.shared<64x64xbf16, swizzled>>, !tile.map<64xbf16>
  } consumer {
    %s = tile.place "s" : !tile.frag<64x64, 4>
    %q = tile.take %Q : !tile.ring<1, !tile.shared<64x64xbf16, swizzled>>
    tile.kv_loop [%lo, %hi] tests [[]] carry() {
    ^bb0(%j: i32, %next: i32, %more: i1):
      // expected-note @below {{while this is in flight and reads it}}
      %t = tile.mma_qk %s, %q, %q : !tile.frag<64x64, 4>, !tile.shared<64x64xbf16, swizzled>, !tile.shared<64x64xbf16, swizzled>
      // expected-error @below {{'tile.release_early' op releases `Q`}}
      tile.release_early %Q unless %more : !tile.ring<1, !tile.shared<64x64xbf16, swizzled>>
      tile.wait %t : !tile.token<product>
      tile.yield
    }
    tile.release %Q : !tile.ring<1, !tile.shared<64x64xbf16, swizzled>>
  }
}

// -----

tile.kernel @twice(%map: !tile.map<64xbf16>, %n: i32, %some: i1, %lo: i32, %hi: i32) target("sm_90a") grid(dense heads 1)
    schedule(#tile.warp_specialized<q_tile = 64, kv_tile = 64, warps = 4, blocks = 1>) {
  %Q = tile.place "Q" : !tile.ring<1, !tile.shared<64x64xbf16, swizzled>>
  tile.roles registers(40, 240) producer {
    tile.fill %Q, %map at(%n, %n, %n) : !tile.ring<1, !tile.shared<64x64xbf16, swizzled>>, !tile.map<64xbf16>
  } consumer {
    %s = tile.place "s" : !tile.frag<64x64, 4>
    %q = tile.take %Q : !tile.ring<1, !tile.shared<64x64xbf16, swizzled>>
    tile.kv_loop [%lo, %hi] tests [[]] carry() {
    ^bb0(%j: i32, %next: i32, %more: i1):
      %t = tile.mma_qk %s, %q, %q : !tile.frag<64x64, 4>, !tile.shared<64x64xbf16, swizzled>, !tile.shared<64x64xbf16, swizzled>
      tile.wait %t : !tile.token<product>
      tile.release_early %Q unless %more : !tile.ring<1, !tile.shared<64x64xbf16, swizzled>>
      // expected-error @below {{'tile.release_early' op releases a tile that is released}}
      tile.release_early %Q unless %more : !tile.ring<1, !tile.shared<64x64xbf16, swizzled>>
      tile.yield
    }
    tile.release %Q : !tile.ring<1, !tile.shared<64x64xbf16, swizzled>>
  }
}

// -----

tile.kernel @not_taken(%map: !tile.map<64xbf16>, %n: i32, %some: i1, %lo: i32, %hi: i32) target("sm_90a") grid(dense heads 1)
    schedule(#tile.warp_specialized<q_tile = 64, kv_tile = 64, warps = 4, blocks = 1>) {
  %Q = tile.place "Q" : !tile.ring<1, !tile.shared<64x64xbf16, swizzled>>
  tile.roles registers(40, 240) producer {
    tile.fill %Q, %map at(%n, %n, %n) : !tile.ring<1, !tile.shared<64x64xbf16, swizzled>>, !tile.map<64xbf16>
  } consumer {
    %s = tile.place "s" : !tile.frag<64x64, 4>
    tile.kv_loop [%lo, %hi] tests [[]] carry() {
    ^bb0(%j: i32, %next: i32, %more: i1):
      // expected-error @below {{'tile.release_early' op releases a ring from which nothing is taken}}
      tile.release_early %Q unless %more : !tile.ring<1, !tile.shared<64x64xbf16, swizzled>>
      tile.yield
    }
    %q = tile.take %Q : !tile.ring<1, !tile.shared<64x64xbf16, swizzled>>
    tile.release %Q : !tile.ring<1, !tile.shared<64x64xbf16, swizzled>>
  }
}

// -----

tile.kernel @other_condition(%map: !tile.map<64xbf16>, %n: i32, %some: i1, %lo: i32, %hi: i32) target("sm_90a") grid(dense heads 1)
    schedule(#tile.warp_specialized<q_tile = 64, kv_tile = 64, warps = 4, blocks = 1>) {
  %Q = tile.place "Q" : !tile.ring<1, !tile.shared<64x64xbf16, swizzled>>
  tile.roles registers(40, 240) producer {
    tile.fill %Q, %map at(%n, %n, %n) : !tile.ring<1, !tile.shared<64x64xbf16, swizzled>>, !tile.map<64xbf16>
  } consumer {
    %s = tile.place "s" : !tile.frag<64x64, 4>
    %q = tile.take %Q : !tile.ring<1, !tile.shared<64x64xbf16, swizzled>>
    tile.kv_loop [%lo, %hi] tests [[]] carry() {
    ^bb0(%j: i32, %next: i32, %more: i1):
      // expected-error @below {{'tile.release_early' op expected the `more` of its loop, got another condition}}
      tile.release_early %Q unless %some : !tile.ring<1, !tile.shared<64x64xbf16, swizzled>>
      tile.yield
    }
    tile.release %Q : !tile.ring<1, !tile.shared<64x64xbf16, swizzled>>
  }
}
