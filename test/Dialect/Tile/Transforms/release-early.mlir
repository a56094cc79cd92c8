// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A slot that is given back ahead of its release.
//
// RUN: attn-opt %s -split-input-file -tile-verify-async -verify-diagnostics

// It is there again in each step, and gone behind the loops.
tile.kernel @in_steps(%map: !tile.tensor_map<64xbf16>, %n: i32, %some: i1, %lo: i32, %hi: i32) target("sm_90a") grid(dense heads 1)
    schedule(#tile.warp_specialized<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
  %Q = tile.alloc "Q" : !tile.ring<1, !tile.shared<64x64xbf16, swizzled>>
  tile.roles registers(40, 240) producer {
    tile.producer_load %Q, %map at(%n, %n, %n) : !tile.ring<1, !tile.shared<64x64xbf16, swizzled>>, !tile.tensor_map<64xbf16>
  } consumer {
    %s = tile.alloc "s" : !tile.frag<64x64, 4>
    %q = tile.consumer_wait %Q : !tile.ring<1, !tile.shared<64x64xbf16, swizzled>>
    tile.kv_loop [%lo, %hi] tests [[]] carry() {
    ^bb0(%j: i32, %next: i32, %more: i1):
      %t = tile.mma_abt %s, %q, %q : !tile.frag<64x64, 4>, !tile.shared<64x64xbf16, swizzled>, !tile.shared<64x64xbf16, swizzled>
      tile.wait %t : !tile.token<product>
      tile.consumer_release %Q unless(%more) : !tile.ring<1, !tile.shared<64x64xbf16, swizzled>>
      tile.yield
    }
    tile.kv_loop [%lo, %hi] tests [[]] carry() {
    ^bb0(%j: i32, %next: i32, %more: i1):
      %t = tile.mma_abt %s, %q, %q : !tile.frag<64x64, 4>, !tile.shared<64x64xbf16, swizzled>, !tile.shared<64x64xbf16, swizzled>
      tile.wait %t : !tile.token<product>
      tile.consumer_release %Q unless(%more) : !tile.ring<1, !tile.shared<64x64xbf16, swizzled>>
      tile.yield
    }
    tile.consumer_release %Q : !tile.ring<1, !tile.shared<64x64xbf16, swizzled>>
  }
}

// -----

tile.kernel @read_behind(%map: !tile.tensor_map<64xbf16>, %n: i32, %some: i1, %lo: i32, %hi: i32) target("sm_90a") grid(dense heads 1)
    schedule(#tile.warp_specialized<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
  %Q = tile.alloc "Q" : !tile.ring<1, !tile.shared<64x64xbf16, swizzled>>
  tile.roles registers(40, 240) producer {
    tile.producer_load %Q, %map at(%n, %n, %n) : !tile.ring<1, !tile.shared<64x64xbf16, swizzled>>, !tile.tensor_map<64xbf16>
  } consumer {
    %s = tile.alloc "s" : !tile.frag<64x64, 4>
    %q = tile.consumer_wait %Q : !tile.ring<1, !tile.shared<64x64xbf16, swizzled>>
    tile.kv_loop [%lo, %hi] tests [[]] carry() {
    ^bb0(%j: i32, %next: i32, %more: i1):
      %t = tile.mma_abt %s, %q, %q : !tile.frag<64x64, 4>, !tile.shared<64x64xbf16, swizzled>, !tile.shared<64x64xbf16, swizzled>
      tile.wait %t : !tile.token<product>
      tile.consumer_release %Q unless(%more) : !tile.ring<1, !tile.shared<64x64xbf16, swizzled>>
      // expected-error @below {{'tile.mma_abt' op reads a tile of a ring that it has released}}
      %u = tile.mma_abt %s, %q, %q : !tile.frag<64x64, 4>, !tile.shared<64x64xbf16, swizzled>, !tile.shared<64x64xbf16, swizzled>
      tile.wait %u : !tile.token<product>
      tile.yield
    }
    tile.consumer_release %Q : !tile.ring<1, !tile.shared<64x64xbf16, swizzled>>
  }
}

// -----

tile.kernel @read_behind_loops(%map: !tile.tensor_map<64xbf16>, %n: i32, %some: i1, %lo: i32, %hi: i32) target("sm_90a") grid(dense heads 1)
    schedule(#tile.warp_specialized<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
  %Q = tile.alloc "Q" : !tile.ring<1, !tile.shared<64x64xbf16, swizzled>>
  tile.roles registers(40, 240) producer {
    tile.producer_load %Q, %map at(%n, %n, %n) : !tile.ring<1, !tile.shared<64x64xbf16, swizzled>>, !tile.tensor_map<64xbf16>
  } consumer {
    %s = tile.alloc "s" : !tile.frag<64x64, 4>
    %q = tile.consumer_wait %Q : !tile.ring<1, !tile.shared<64x64xbf16, swizzled>>
    tile.kv_loop [%lo, %hi] tests [[]] carry() {
    ^bb0(%j: i32, %next: i32, %more: i1):
      %t = tile.mma_abt %s, %q, %q : !tile.frag<64x64, 4>, !tile.shared<64x64xbf16, swizzled>, !tile.shared<64x64xbf16, swizzled>
      tile.wait %t : !tile.token<product>
      tile.consumer_release %Q unless(%more) : !tile.ring<1, !tile.shared<64x64xbf16, swizzled>>
      tile.yield
    }
    // expected-error @below {{'tile.mma_abt' op reads a tile of a ring that it has released}}
    %t = tile.mma_abt %s, %q, %q : !tile.frag<64x64, 4>, !tile.shared<64x64xbf16, swizzled>, !tile.shared<64x64xbf16, swizzled>
    tile.wait %t : !tile.token<product>
    tile.consumer_release %Q : !tile.ring<1, !tile.shared<64x64xbf16, swizzled>>
  }
}

// -----

tile.kernel @in_flight(%map: !tile.tensor_map<64xbf16>, %n: i32, %some: i1, %lo: i32, %hi: i32) target("sm_90a") grid(dense heads 1)
    schedule(#tile.warp_specialized<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
  %Q = tile.alloc "Q" : !tile.ring<1, !tile.shared<64x64xbf16, swizzled>>
  tile.roles registers(40, 240) producer {
    tile.producer_load %Q, %map at(%n, %n, %n) : !tile.ring<1, !tile.shared<64x64xbf16, swizzled>>, !tile.tensor_map<64xbf16>
  } consumer {
    %s = tile.alloc "s" : !tile.frag<64x64, 4>
    %q = tile.consumer_wait %Q : !tile.ring<1, !tile.shared<64x64xbf16, swizzled>>
    tile.kv_loop [%lo, %hi] tests [[]] carry() {
    ^bb0(%j: i32, %next: i32, %more: i1):
      // expected-note @below {{while this is in flight and reads it}}
      %t = tile.mma_abt %s, %q, %q : !tile.frag<64x64, 4>, !tile.shared<64x64xbf16, swizzled>, !tile.shared<64x64xbf16, swizzled>
      // expected-error @below {{'tile.consumer_release' op releases `Q`}}
      tile.consumer_release %Q unless(%more) : !tile.ring<1, !tile.shared<64x64xbf16, swizzled>>
      tile.wait %t : !tile.token<product>
      tile.yield
    }
    tile.consumer_release %Q : !tile.ring<1, !tile.shared<64x64xbf16, swizzled>>
  }
}

// -----

tile.kernel @twice(%map: !tile.tensor_map<64xbf16>, %n: i32, %some: i1, %lo: i32, %hi: i32) target("sm_90a") grid(dense heads 1)
    schedule(#tile.warp_specialized<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
  %Q = tile.alloc "Q" : !tile.ring<1, !tile.shared<64x64xbf16, swizzled>>
  tile.roles registers(40, 240) producer {
    tile.producer_load %Q, %map at(%n, %n, %n) : !tile.ring<1, !tile.shared<64x64xbf16, swizzled>>, !tile.tensor_map<64xbf16>
  } consumer {
    %s = tile.alloc "s" : !tile.frag<64x64, 4>
    %q = tile.consumer_wait %Q : !tile.ring<1, !tile.shared<64x64xbf16, swizzled>>
    tile.kv_loop [%lo, %hi] tests [[]] carry() {
    ^bb0(%j: i32, %next: i32, %more: i1):
      %t = tile.mma_abt %s, %q, %q : !tile.frag<64x64, 4>, !tile.shared<64x64xbf16, swizzled>, !tile.shared<64x64xbf16, swizzled>
      tile.wait %t : !tile.token<product>
      tile.consumer_release %Q unless(%more) : !tile.ring<1, !tile.shared<64x64xbf16, swizzled>>
      // expected-error @below {{'tile.consumer_release' op releases a tile that is released}}
      tile.consumer_release %Q unless(%more) : !tile.ring<1, !tile.shared<64x64xbf16, swizzled>>
      tile.yield
    }
    tile.consumer_release %Q : !tile.ring<1, !tile.shared<64x64xbf16, swizzled>>
  }
}

// -----

tile.kernel @not_taken(%map: !tile.tensor_map<64xbf16>, %n: i32, %some: i1, %lo: i32, %hi: i32) target("sm_90a") grid(dense heads 1)
    schedule(#tile.warp_specialized<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
  %Q = tile.alloc "Q" : !tile.ring<1, !tile.shared<64x64xbf16, swizzled>>
  tile.roles registers(40, 240) producer {
    tile.producer_load %Q, %map at(%n, %n, %n) : !tile.ring<1, !tile.shared<64x64xbf16, swizzled>>, !tile.tensor_map<64xbf16>
  } consumer {
    %s = tile.alloc "s" : !tile.frag<64x64, 4>
    tile.kv_loop [%lo, %hi] tests [[]] carry() {
    ^bb0(%j: i32, %next: i32, %more: i1):
      // expected-error @below {{'tile.consumer_release' op releases a ring without a current tile}}
      tile.consumer_release %Q unless(%more) : !tile.ring<1, !tile.shared<64x64xbf16, swizzled>>
      tile.yield
    }
    %q = tile.consumer_wait %Q : !tile.ring<1, !tile.shared<64x64xbf16, swizzled>>
    tile.consumer_release %Q : !tile.ring<1, !tile.shared<64x64xbf16, swizzled>>
  }
}

// -----

tile.kernel @other_condition(%map: !tile.tensor_map<64xbf16>, %n: i32, %some: i1, %lo: i32, %hi: i32) target("sm_90a") grid(dense heads 1)
    schedule(#tile.warp_specialized<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
  %Q = tile.alloc "Q" : !tile.ring<1, !tile.shared<64x64xbf16, swizzled>>
  tile.roles registers(40, 240) producer {
    tile.producer_load %Q, %map at(%n, %n, %n) : !tile.ring<1, !tile.shared<64x64xbf16, swizzled>>, !tile.tensor_map<64xbf16>
  } consumer {
    %s = tile.alloc "s" : !tile.frag<64x64, 4>
    %q = tile.consumer_wait %Q : !tile.ring<1, !tile.shared<64x64xbf16, swizzled>>
    tile.kv_loop [%lo, %hi] tests [[]] carry() {
    ^bb0(%j: i32, %next: i32, %more: i1):
      // expected-error @below {{'tile.consumer_release' op expected the `more` of its loop, got another condition}}
      tile.consumer_release %Q unless(%some) : !tile.ring<1, !tile.shared<64x64xbf16, swizzled>>
      tile.yield
    }
    tile.consumer_release %Q : !tile.ring<1, !tile.shared<64x64xbf16, swizzled>>
  }
}
