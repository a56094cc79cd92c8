// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Loops that `tile-overlap-products` does not know how to turn.
//
// RUN: attn-opt %s -tile-overlap-products -split-input-file -verify-diagnostics

tile.kernel @no_values(%lo: i32, %hi: i32) target("sm_90a") grid(dense heads 1)
    schedule(#tile.warp_specialized<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
  %q_operand = tile.alloc "q_operand" : !tile.register_operand<64x64xbf16, 4>
  %K = tile.alloc "K" : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>
  tile.roles registers(40, 240) producer {
  } consumer {
    %s = tile.alloc "s" : !tile.frag<64x64, 4>
    %acc = tile.alloc "acc" : !tile.frag<64x64, 4>
    %row = tile.alloc "row" : !tile.softmax_state<64, 4>
    // No product with V.
    // expected-error @below {{expected one product with K and one with V, each behind what takes its tile}}
    tile.kv_loop [%lo, %hi] tests [[]] carry() {
    ^bb0(%j: i32, %next: i32, %more: i1):
      %k = tile.consumer_wait %K : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>
      %ts = tile.mma_abt %s, %q_operand, %k : !tile.frag<64x64, 4>, !tile.register_operand<64x64xbf16, 4>, !tile.shared<64x64xbf16, swizzled>
      tile.wait %ts : !tile.token<product>
      tile.consumer_release %K : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>
      tile.online_softmax %s, %row, %acc scale 0.125 : !tile.frag<64x64, 4>, !tile.softmax_state<64, 4>, !tile.frag<64x64, 4>
      tile.yield
    }
  }
}

// -----

tile.kernel @no_scores(%lo: i32, %hi: i32) target("sm_90a") grid(dense heads 1)
    schedule(#tile.warp_specialized<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
  %V = tile.alloc "V" : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>
  tile.roles registers(40, 240) producer {
  } consumer {
    %s = tile.alloc "s" : !tile.frag<64x64, 4>
    %acc = tile.alloc "acc" : !tile.frag<64x64, 4>
    %row = tile.alloc "row" : !tile.softmax_state<64, 4>
    // None with K.
    // expected-error @below {{expected one product with K and one with V, each behind what takes its tile}}
    tile.kv_loop [%lo, %hi] tests [[]] carry() {
    ^bb0(%j: i32, %next: i32, %more: i1):
      tile.online_softmax %s, %row, %acc scale 0.125 : !tile.frag<64x64, 4>, !tile.softmax_state<64, 4>, !tile.frag<64x64, 4>
      %v = tile.consumer_wait %V : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>
      %ta = tile.mma_ab %acc, %s, %v : !tile.frag<64x64, 4>, !tile.frag<64x64, 4>, !tile.shared<64x64xbf16, swizzled>
      tile.wait %ta : !tile.token<product>
      tile.consumer_release %V : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>
      tile.yield
    }
  }
}

// -----

tile.kernel @no_softmax(%lo: i32, %hi: i32) target("sm_90a") grid(dense heads 1)
    schedule(#tile.warp_specialized<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
  %q_operand = tile.alloc "q_operand" : !tile.register_operand<64x64xbf16, 4>
  %K = tile.alloc "K" : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>
  %V = tile.alloc "V" : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>
  tile.roles registers(40, 240) producer {
  } consumer {
    %s = tile.alloc "s" : !tile.frag<64x64, 4>
    %acc = tile.alloc "acc" : !tile.frag<64x64, 4>
    // No step between them.
    // expected-error @below {{expected one product with K and one with V, each behind what takes its tile}}
    tile.kv_loop [%lo, %hi] tests [[]] carry() {
    ^bb0(%j: i32, %next: i32, %more: i1):
      %k = tile.consumer_wait %K : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>
      %ts = tile.mma_abt %s, %q_operand, %k : !tile.frag<64x64, 4>, !tile.register_operand<64x64xbf16, 4>, !tile.shared<64x64xbf16, swizzled>
      tile.wait %ts : !tile.token<product>
      tile.consumer_release %K : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>
      %v = tile.consumer_wait %V : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>
      %ta = tile.mma_ab %acc, %s, %v : !tile.frag<64x64, 4>, !tile.frag<64x64, 4>, !tile.shared<64x64xbf16, swizzled>
      tile.wait %ta : !tile.token<product>
      tile.consumer_release %V : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>
      tile.yield
    }
  }
}

// -----

tile.kernel @two_scores(%lo: i32, %hi: i32) target("sm_90a") grid(dense heads 1)
    schedule(#tile.warp_specialized<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
  %q_operand = tile.alloc "q_operand" : !tile.register_operand<64x64xbf16, 4>
  %K = tile.alloc "K" : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>
  %V = tile.alloc "V" : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>
  tile.roles registers(40, 240) producer {
  } consumer {
    %s = tile.alloc "s" : !tile.frag<64x64, 4>
    %acc = tile.alloc "acc" : !tile.frag<64x64, 4>
    %row = tile.alloc "row" : !tile.softmax_state<64, 4>
    // Two products with K.
    // expected-error @below {{expected one product with K and one with V, each behind what takes its tile}}
    tile.kv_loop [%lo, %hi] tests [[]] carry() {
    ^bb0(%j: i32, %next: i32, %more: i1):
      %k = tile.consumer_wait %K : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>
      %ts = tile.mma_abt %s, %q_operand, %k : !tile.frag<64x64, 4>, !tile.register_operand<64x64xbf16, 4>, !tile.shared<64x64xbf16, swizzled>
      tile.wait %ts : !tile.token<product>
      %tu = tile.mma_abt %s, %q_operand, %k : !tile.frag<64x64, 4>, !tile.register_operand<64x64xbf16, 4>, !tile.shared<64x64xbf16, swizzled>
      tile.wait %tu : !tile.token<product>
      tile.consumer_release %K : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>
      tile.online_softmax %s, %row, %acc scale 0.125 : !tile.frag<64x64, 4>, !tile.softmax_state<64, 4>, !tile.frag<64x64, 4>
      %v = tile.consumer_wait %V : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>
      %ta = tile.mma_ab %acc, %s, %v : !tile.frag<64x64, 4>, !tile.frag<64x64, 4>, !tile.shared<64x64xbf16, swizzled>
      tile.wait %ta : !tile.token<product>
      tile.consumer_release %V : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>
      tile.yield
    }
  }
}

// -----

tile.kernel @two_values(%lo: i32, %hi: i32) target("sm_90a") grid(dense heads 1)
    schedule(#tile.warp_specialized<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
  %q_operand = tile.alloc "q_operand" : !tile.register_operand<64x64xbf16, 4>
  %K = tile.alloc "K" : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>
  %V = tile.alloc "V" : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>
  tile.roles registers(40, 240) producer {
  } consumer {
    %s = tile.alloc "s" : !tile.frag<64x64, 4>
    %acc = tile.alloc "acc" : !tile.frag<64x64, 4>
    %row = tile.alloc "row" : !tile.softmax_state<64, 4>
    // Two with V: P is rounded once, and the second could not read it.
    // expected-error @below {{expected one product with K and one with V, each behind what takes its tile}}
    tile.kv_loop [%lo, %hi] tests [[]] carry() {
    ^bb0(%j: i32, %next: i32, %more: i1):
      %k = tile.consumer_wait %K : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>
      %ts = tile.mma_abt %s, %q_operand, %k : !tile.frag<64x64, 4>, !tile.register_operand<64x64xbf16, 4>, !tile.shared<64x64xbf16, swizzled>
      tile.wait %ts : !tile.token<product>
      tile.consumer_release %K : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>
      tile.online_softmax %s, %row, %acc scale 0.125 : !tile.frag<64x64, 4>, !tile.softmax_state<64, 4>, !tile.frag<64x64, 4>
      %v = tile.consumer_wait %V : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>
      %ta = tile.mma_ab %acc, %s, %v : !tile.frag<64x64, 4>, !tile.frag<64x64, 4>, !tile.shared<64x64xbf16, swizzled>
      tile.wait %ta : !tile.token<product>
      %tb = tile.mma_ab %acc, %s, %v : !tile.frag<64x64, 4>, !tile.frag<64x64, 4>, !tile.shared<64x64xbf16, swizzled>
      tile.wait %tb : !tile.token<product>
      tile.consumer_release %V : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>
      tile.yield
    }
  }
}

// -----

tile.kernel @turned(%lo: i32, %hi: i32) target("sm_90a") grid(dense heads 1)
    schedule(#tile.warp_specialized<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
  %q_operand = tile.alloc "q_operand" : !tile.register_operand<64x64xbf16, 4>
  %K = tile.alloc "K" : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>
  %V = tile.alloc "V" : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>
  tile.roles registers(40, 240) producer {
  } consumer {
    %s = tile.alloc "s" : !tile.frag<64x64, 4>
    %acc = tile.alloc "acc" : !tile.frag<64x64, 4>
    %row = tile.alloc "row" : !tile.softmax_state<64, 4>
    // Turned already: P is held.
    // expected-error @below {{expected one product with K and one with V, each behind what takes its tile}}
    tile.kv_loop [%lo, %hi] tests [[]] carry() {
    ^bb0(%j: i32, %next: i32, %more: i1):
      %k = tile.consumer_wait %K : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>
      %ts = tile.mma_abt %s, %q_operand, %k : !tile.frag<64x64, 4>, !tile.register_operand<64x64xbf16, 4>, !tile.shared<64x64xbf16, swizzled>
      tile.wait %ts : !tile.token<product>
      tile.consumer_release %K : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>
      tile.online_softmax %s, %row, %acc scale 0.125 : !tile.frag<64x64, 4>, !tile.softmax_state<64, 4>, !tile.frag<64x64, 4>
      %v = tile.consumer_wait %V : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>
      %ta = tile.mma_ab %acc, %q_operand, %v : !tile.frag<64x64, 4>, !tile.register_operand<64x64xbf16, 4>, !tile.shared<64x64xbf16, swizzled>
      tile.wait %ta : !tile.token<product>
      tile.consumer_release %V : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>
      tile.yield
    }
  }
}

// -----

tile.kernel @other_p(%lo: i32, %hi: i32) target("sm_90a") grid(dense heads 1)
    schedule(#tile.warp_specialized<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
  %q_operand = tile.alloc "q_operand" : !tile.register_operand<64x64xbf16, 4>
  %K = tile.alloc "K" : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>
  %V = tile.alloc "V" : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>
  tile.roles registers(40, 240) producer {
  } consumer {
    %s = tile.alloc "s" : !tile.frag<64x64, 4>
    %acc = tile.alloc "acc" : !tile.frag<64x64, 4>
    %row = tile.alloc "row" : !tile.softmax_state<64, 4>
    %other = tile.alloc "other" : !tile.frag<64x64, 4>
    // P is not what the softmax made.
    // expected-error @below {{expected one product with K and one with V, each behind what takes its tile}}
    tile.kv_loop [%lo, %hi] tests [[]] carry() {
    ^bb0(%j: i32, %next: i32, %more: i1):
      %k = tile.consumer_wait %K : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>
      %ts = tile.mma_abt %s, %q_operand, %k : !tile.frag<64x64, 4>, !tile.register_operand<64x64xbf16, 4>, !tile.shared<64x64xbf16, swizzled>
      tile.wait %ts : !tile.token<product>
      tile.consumer_release %K : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>
      tile.online_softmax %s, %row, %acc scale 0.125 : !tile.frag<64x64, 4>, !tile.softmax_state<64, 4>, !tile.frag<64x64, 4>
      %v = tile.consumer_wait %V : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>
      %ta = tile.mma_ab %acc, %other, %v : !tile.frag<64x64, 4>, !tile.frag<64x64, 4>, !tile.shared<64x64xbf16, swizzled>
      tile.wait %ta : !tile.token<product>
      tile.consumer_release %V : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>
      tile.yield
    }
  }
}

// -----

tile.kernel @other_scores(%lo: i32, %hi: i32) target("sm_90a") grid(dense heads 1)
    schedule(#tile.warp_specialized<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
  %q_operand = tile.alloc "q_operand" : !tile.register_operand<64x64xbf16, 4>
  %K = tile.alloc "K" : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>
  %V = tile.alloc "V" : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>
  tile.roles registers(40, 240) producer {
  } consumer {
    %s = tile.alloc "s" : !tile.frag<64x64, 4>
    %acc = tile.alloc "acc" : !tile.frag<64x64, 4>
    %row = tile.alloc "row" : !tile.softmax_state<64, 4>
    %other = tile.alloc "other" : !tile.frag<64x64, 4>
    // The softmax is not of the scores.
    // expected-error @below {{expected one product with K and one with V, each behind what takes its tile}}
    tile.kv_loop [%lo, %hi] tests [[]] carry() {
    ^bb0(%j: i32, %next: i32, %more: i1):
      %k = tile.consumer_wait %K : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>
      %ts = tile.mma_abt %s, %q_operand, %k : !tile.frag<64x64, 4>, !tile.register_operand<64x64xbf16, 4>, !tile.shared<64x64xbf16, swizzled>
      tile.wait %ts : !tile.token<product>
      tile.consumer_release %K : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>
      tile.online_softmax %other, %row, %acc scale 0.125 : !tile.frag<64x64, 4>, !tile.softmax_state<64, 4>, !tile.frag<64x64, 4>
      %v = tile.consumer_wait %V : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>
      %ta = tile.mma_ab %acc, %other, %v : !tile.frag<64x64, 4>, !tile.frag<64x64, 4>, !tile.shared<64x64xbf16, swizzled>
      tile.wait %ta : !tile.token<product>
      tile.consumer_release %V : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>
      tile.yield
    }
  }
}

// -----

tile.kernel @other_acc(%lo: i32, %hi: i32) target("sm_90a") grid(dense heads 1)
    schedule(#tile.warp_specialized<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
  %q_operand = tile.alloc "q_operand" : !tile.register_operand<64x64xbf16, 4>
  %K = tile.alloc "K" : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>
  %V = tile.alloc "V" : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>
  tile.roles registers(40, 240) producer {
  } consumer {
    %s = tile.alloc "s" : !tile.frag<64x64, 4>
    %acc = tile.alloc "acc" : !tile.frag<64x64, 4>
    %row = tile.alloc "row" : !tile.softmax_state<64, 4>
    %other = tile.alloc "other" : !tile.frag<64x64, 4>
    // Another accumulator than the softmax rescales.
    // expected-error @below {{expected one product with K and one with V, each behind what takes its tile}}
    tile.kv_loop [%lo, %hi] tests [[]] carry() {
    ^bb0(%j: i32, %next: i32, %more: i1):
      %k = tile.consumer_wait %K : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>
      %ts = tile.mma_abt %s, %q_operand, %k : !tile.frag<64x64, 4>, !tile.register_operand<64x64xbf16, 4>, !tile.shared<64x64xbf16, swizzled>
      tile.wait %ts : !tile.token<product>
      tile.consumer_release %K : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>
      tile.online_softmax %s, %row, %acc scale 0.125 : !tile.frag<64x64, 4>, !tile.softmax_state<64, 4>, !tile.frag<64x64, 4>
      %v = tile.consumer_wait %V : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>
      %ta = tile.mma_ab %other, %s, %v : !tile.frag<64x64, 4>, !tile.frag<64x64, 4>, !tile.shared<64x64xbf16, swizzled>
      tile.wait %ta : !tile.token<product>
      tile.consumer_release %V : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>
      tile.yield
    }
  }
}

// -----

tile.kernel @values_first(%lo: i32, %hi: i32) target("sm_90a") grid(dense heads 1)
    schedule(#tile.warp_specialized<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
  %q_operand = tile.alloc "q_operand" : !tile.register_operand<64x64xbf16, 4>
  %K = tile.alloc "K" : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>
  %V = tile.alloc "V" : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>
  tile.roles registers(40, 240) producer {
  } consumer {
    %s = tile.alloc "s" : !tile.frag<64x64, 4>
    %acc = tile.alloc "acc" : !tile.frag<64x64, 4>
    %row = tile.alloc "row" : !tile.softmax_state<64, 4>
    // V is taken before K: it would be held for a whole iteration.
    // expected-error @below {{expected one product with K and one with V, each behind what takes its tile}}
    tile.kv_loop [%lo, %hi] tests [[]] carry() {
    ^bb0(%j: i32, %next: i32, %more: i1):
      %v = tile.consumer_wait %V : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>
      %k = tile.consumer_wait %K : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>
      %ts = tile.mma_abt %s, %q_operand, %k : !tile.frag<64x64, 4>, !tile.register_operand<64x64xbf16, 4>, !tile.shared<64x64xbf16, swizzled>
      tile.wait %ts : !tile.token<product>
      tile.consumer_release %K : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>
      tile.online_softmax %s, %row, %acc scale 0.125 : !tile.frag<64x64, 4>, !tile.softmax_state<64, 4>, !tile.frag<64x64, 4>
      %ta = tile.mma_ab %acc, %s, %v : !tile.frag<64x64, 4>, !tile.frag<64x64, 4>, !tile.shared<64x64xbf16, swizzled>
      tile.wait %ta : !tile.token<product>
      tile.consumer_release %V : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>
      tile.yield
    }
  }
}

// -----

tile.kernel @resident_values(%lo: i32, %hi: i32) target("sm_90a") grid(dense heads 1)
    schedule(#tile.warp_specialized<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
  %q_operand = tile.alloc "q_operand" : !tile.register_operand<64x64xbf16, 4>
  %K = tile.alloc "K" : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>
  %V = tile.alloc "V" : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>
  tile.roles registers(40, 240) producer {
  } consumer {
    %s = tile.alloc "s" : !tile.frag<64x64, 4>
    %acc = tile.alloc "acc" : !tile.frag<64x64, 4>
    %row = tile.alloc "row" : !tile.softmax_state<64, 4>
    %v = tile.consumer_wait %V : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>
    // V is taken once, outside.
    // expected-error @below {{expected one product with K and one with V, each behind what takes its tile}}
    tile.kv_loop [%lo, %hi] tests [[]] carry() {
    ^bb0(%j: i32, %next: i32, %more: i1):
      %k = tile.consumer_wait %K : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>
      %ts = tile.mma_abt %s, %q_operand, %k : !tile.frag<64x64, 4>, !tile.register_operand<64x64xbf16, 4>, !tile.shared<64x64xbf16, swizzled>
      tile.wait %ts : !tile.token<product>
      tile.consumer_release %K : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>
      tile.online_softmax %s, %row, %acc scale 0.125 : !tile.frag<64x64, 4>, !tile.softmax_state<64, 4>, !tile.frag<64x64, 4>
      %ta = tile.mma_ab %acc, %s, %v : !tile.frag<64x64, 4>, !tile.frag<64x64, 4>, !tile.shared<64x64xbf16, swizzled>
      tile.wait %ta : !tile.token<product>
      tile.yield
    }
    tile.consumer_release %V : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>
  }
}

// -----

tile.kernel @resident_keys(%lo: i32, %hi: i32) target("sm_90a") grid(dense heads 1)
    schedule(#tile.warp_specialized<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
  %q_operand = tile.alloc "q_operand" : !tile.register_operand<64x64xbf16, 4>
  %K = tile.alloc "K" : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>
  %V = tile.alloc "V" : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>
  tile.roles registers(40, 240) producer {
  } consumer {
    %k = tile.consumer_wait %K : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>
    %s = tile.alloc "s" : !tile.frag<64x64, 4>
    %acc = tile.alloc "acc" : !tile.frag<64x64, 4>
    %row = tile.alloc "row" : !tile.softmax_state<64, 4>
    // K is taken once, outside.
    // expected-error @below {{expected one product with K and one with V, each behind what takes its tile}}
    tile.kv_loop [%lo, %hi] tests [[]] carry() {
    ^bb0(%j: i32, %next: i32, %more: i1):
      %ts = tile.mma_abt %s, %q_operand, %k : !tile.frag<64x64, 4>, !tile.register_operand<64x64xbf16, 4>, !tile.shared<64x64xbf16, swizzled>
      tile.wait %ts : !tile.token<product>
      tile.online_softmax %s, %row, %acc scale 0.125 : !tile.frag<64x64, 4>, !tile.softmax_state<64, 4>, !tile.frag<64x64, 4>
      %v = tile.consumer_wait %V : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>
      %ta = tile.mma_ab %acc, %s, %v : !tile.frag<64x64, 4>, !tile.frag<64x64, 4>, !tile.shared<64x64xbf16, swizzled>
      tile.wait %ta : !tile.token<product>
      tile.consumer_release %V : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>
      tile.yield
    }
    tile.consumer_release %K : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>
  }
}

// -----

tile.kernel @together(%lo: i32, %hi: i32) target("sm_90a") grid(dense heads 1)
    schedule(#tile.warp_specialized<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
  %q_operand = tile.alloc "q_operand" : !tile.register_operand<64x64xbf16, 4>
  %K = tile.alloc "K" : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>
  %V = tile.alloc "V" : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>
  tile.roles registers(40, 240) producer {
  } consumer {
    %s = tile.alloc "s" : !tile.frag<64x64, 4>
    %acc = tile.alloc "acc" : !tile.frag<64x64, 4>
    %row = tile.alloc "row" : !tile.softmax_state<64, 4>
    // One wait for both products.
    // expected-error @below {{expected one product with K and one with V, each behind what takes its tile}}
    tile.kv_loop [%lo, %hi] tests [[]] carry() {
    ^bb0(%j: i32, %next: i32, %more: i1):
      %k = tile.consumer_wait %K : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>
      %ts = tile.mma_abt %s, %q_operand, %k : !tile.frag<64x64, 4>, !tile.register_operand<64x64xbf16, 4>, !tile.shared<64x64xbf16, swizzled>
      tile.online_softmax %s, %row, %acc scale 0.125 : !tile.frag<64x64, 4>, !tile.softmax_state<64, 4>, !tile.frag<64x64, 4>
      %v = tile.consumer_wait %V : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>
      %ta = tile.mma_ab %acc, %s, %v : !tile.frag<64x64, 4>, !tile.frag<64x64, 4>, !tile.shared<64x64xbf16, swizzled>
      tile.wait %ts, %ta : !tile.token<product>, !tile.token<product>
      tile.consumer_release %K : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>
      tile.consumer_release %V : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>
      tile.yield
    }
  }
}

// -----

tile.kernel @late(%lo: i32, %hi: i32) target("sm_90a") grid(dense heads 1)
    schedule(#tile.warp_specialized<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
  %q_operand = tile.alloc "q_operand" : !tile.register_operand<64x64xbf16, 4>
  %K = tile.alloc "K" : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>
  %V = tile.alloc "V" : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>
  tile.roles registers(40, 240) producer {
  } consumer {
    %s = tile.alloc "s" : !tile.frag<64x64, 4>
    %acc = tile.alloc "acc" : !tile.frag<64x64, 4>
    %row = tile.alloc "row" : !tile.softmax_state<64, 4>
    // The scores are not there yet when the softmax reads them.
    // expected-error @below {{expected one product with K and one with V, each behind what takes its tile}}
    tile.kv_loop [%lo, %hi] tests [[]] carry() {
    ^bb0(%j: i32, %next: i32, %more: i1):
      %k = tile.consumer_wait %K : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>
      %ts = tile.mma_abt %s, %q_operand, %k : !tile.frag<64x64, 4>, !tile.register_operand<64x64xbf16, 4>, !tile.shared<64x64xbf16, swizzled>
      tile.online_softmax %s, %row, %acc scale 0.125 : !tile.frag<64x64, 4>, !tile.softmax_state<64, 4>, !tile.frag<64x64, 4>
      tile.wait %ts : !tile.token<product>
      tile.consumer_release %K : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>
      %v = tile.consumer_wait %V : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>
      %ta = tile.mma_ab %acc, %s, %v : !tile.frag<64x64, 4>, !tile.frag<64x64, 4>, !tile.shared<64x64xbf16, swizzled>
      tile.wait %ta : !tile.token<product>
      tile.consumer_release %V : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>
      tile.yield
    }
  }
}

// -----

tile.kernel @no_wait(%lo: i32, %hi: i32) target("sm_90a") grid(dense heads 1)
    schedule(#tile.warp_specialized<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
  %q_operand = tile.alloc "q_operand" : !tile.register_operand<64x64xbf16, 4>
  %K = tile.alloc "K" : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>
  %V = tile.alloc "V" : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>
  tile.roles registers(40, 240) producer {
  } consumer {
    %s = tile.alloc "s" : !tile.frag<64x64, 4>
    %acc = tile.alloc "acc" : !tile.frag<64x64, 4>
    %row = tile.alloc "row" : !tile.softmax_state<64, 4>
    // Nobody waits for the product with V.
    // expected-error @below {{expected one product with K and one with V, each behind what takes its tile}}
    tile.kv_loop [%lo, %hi] tests [[]] carry() {
    ^bb0(%j: i32, %next: i32, %more: i1):
      %k = tile.consumer_wait %K : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>
      %ts = tile.mma_abt %s, %q_operand, %k : !tile.frag<64x64, 4>, !tile.register_operand<64x64xbf16, 4>, !tile.shared<64x64xbf16, swizzled>
      tile.wait %ts : !tile.token<product>
      tile.consumer_release %K : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>
      tile.online_softmax %s, %row, %acc scale 0.125 : !tile.frag<64x64, 4>, !tile.softmax_state<64, 4>, !tile.frag<64x64, 4>
      %v = tile.consumer_wait %V : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>
      %ta = tile.mma_ab %acc, %s, %v : !tile.frag<64x64, 4>, !tile.frag<64x64, 4>, !tile.shared<64x64xbf16, swizzled>
      tile.consumer_release %V : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>
      tile.yield
    }
  }
}

// -----

tile.kernel @carried(%lo: i32, %hi: i32) target("sm_90a") grid(dense heads 1)
    schedule(#tile.warp_specialized<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
  %q_operand = tile.alloc "q_operand" : !tile.register_operand<64x64xbf16, 4>
  %K = tile.alloc "K" : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>
  %V = tile.alloc "V" : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>
  tile.roles registers(40, 240) producer {
  } consumer {
    %s = tile.alloc "s" : !tile.frag<64x64, 4>
    %acc = tile.alloc "acc" : !tile.frag<64x64, 4>
    %row = tile.alloc "row" : !tile.softmax_state<64, 4>
    %fixed = tile.alloc "fixed" : !tile.shared<64x64xbf16, swizzled>
    %other = tile.alloc "other" : !tile.frag<64x64, 4>
    %t0 = tile.mma_abt %other, %q_operand, %fixed : !tile.frag<64x64, 4>, !tile.register_operand<64x64xbf16, 4>, !tile.shared<64x64xbf16, swizzled>
    // Something goes around the loop.
    // expected-error @below {{expected one product with K and one with V, each behind what takes its tile}}
    %r = tile.kv_loop [%lo, %hi] tests [[]] carry(%t0 : !tile.token<product>) {
    ^bb0(%j: i32, %next: i32, %more: i1, %c: !tile.token<product>):
      %k = tile.consumer_wait %K : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>
      %ts = tile.mma_abt %s, %q_operand, %k : !tile.frag<64x64, 4>, !tile.register_operand<64x64xbf16, 4>, !tile.shared<64x64xbf16, swizzled>
      tile.wait %ts : !tile.token<product>
      tile.consumer_release %K : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>
      tile.online_softmax %s, %row, %acc scale 0.125 : !tile.frag<64x64, 4>, !tile.softmax_state<64, 4>, !tile.frag<64x64, 4>
      %v = tile.consumer_wait %V : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>
      %ta = tile.mma_ab %acc, %s, %v : !tile.frag<64x64, 4>, !tile.frag<64x64, 4>, !tile.shared<64x64xbf16, swizzled>
      tile.wait %ta : !tile.token<product>
      tile.consumer_release %V : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>
      tile.yield %c : !tile.token<product>
    }
    tile.wait %r : !tile.token<product>
  }
}
