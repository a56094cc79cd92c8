// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What `tile-verify-async` reports of rings, roles and the halves of the softmax.
//
// RUN: attn-opt %s -tile-verify-async -split-input-file -verify-diagnostics

tile.kernel @read_after(%map: !tile.tensor_map<64xbf16>, %n: i32, %some: i1, %lo: i32, %hi: i32) target("sm_90a") grid(dense heads 1)
    schedule(#tile.warp_specialized<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
  %K = tile.alloc "K" : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>
  tile.roles registers(40, 232) producer {
    tile.producer_load %K, %map at(%n, %n, %n) : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>, !tile.tensor_map<64xbf16>
  } consumer {
    %s = tile.alloc "s" : !tile.frag<64x64, 4>
    %q_operand = tile.alloc "q_operand" : !tile.register_operand<64x64xbf16, 4>
    // A tile is read after its release, when it may be filled anew.
    %k = tile.consumer_wait %K : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>
    tile.consumer_release %K : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>
    // expected-error @below {{'tile.load_operand' op reads a tile of a ring that it has released}}
    tile.load_operand %q_operand, %k : !tile.register_operand<64x64xbf16, 4>, !tile.shared<64x64xbf16, swizzled>
  }
}

// -----

tile.kernel @product_after(%map: !tile.tensor_map<64xbf16>, %n: i32, %some: i1, %lo: i32, %hi: i32) target("sm_90a") grid(dense heads 1)
    schedule(#tile.warp_specialized<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
  %K = tile.alloc "K" : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>
  tile.roles registers(40, 232) producer {
    tile.producer_load %K, %map at(%n, %n, %n) : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>, !tile.tensor_map<64xbf16>
  } consumer {
    %s = tile.alloc "s" : !tile.frag<64x64, 4>
    %q_operand = tile.alloc "q_operand" : !tile.register_operand<64x64xbf16, 4>
    // By a product,
    %k = tile.consumer_wait %K : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>
    tile.consumer_release %K : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>
    // expected-error @below {{'tile.mma_abt' op reads a tile of a ring that it has released}}
    %t = tile.mma_abt %s, %q_operand, %k : !tile.frag<64x64, 4>, !tile.register_operand<64x64xbf16, 4>, !tile.shared<64x64xbf16, swizzled>
    tile.wait %t : !tile.token<product>
  }
}

// -----

tile.kernel @values_after(%map: !tile.tensor_map<64xbf16>, %n: i32, %some: i1, %lo: i32, %hi: i32) target("sm_90a") grid(dense heads 1)
    schedule(#tile.warp_specialized<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
  %K = tile.alloc "K" : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>
  tile.roles registers(40, 232) producer {
    tile.producer_load %K, %map at(%n, %n, %n) : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>, !tile.tensor_map<64xbf16>
  } consumer {
    %acc = tile.alloc "acc" : !tile.frag<64x64, 4>
    %p = tile.alloc "p" : !tile.register_operand<64x64xbf16, 4>
    // by that with V,
    %k = tile.consumer_wait %K : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>
    tile.consumer_release %K : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>
    // expected-error @below {{'tile.mma_ab' op reads a tile of a ring that it has released}}
    %t = tile.mma_ab %acc, %p, %k : !tile.frag<64x64, 4>, !tile.register_operand<64x64xbf16, 4>, !tile.shared<64x64xbf16, swizzled>
    tile.wait %t : !tile.token<product>
  }
}

// -----

tile.kernel @negate_after(%map: !tile.tensor_map<64xbf16>, %n: i32, %some: i1, %lo: i32, %hi: i32) target("sm_90a") grid(dense heads 1)
    schedule(#tile.warp_specialized<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
  %K = tile.alloc "K" : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>
  tile.roles registers(40, 232) producer {
    tile.producer_load %K, %map at(%n, %n, %n) : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>, !tile.tensor_map<64xbf16>
  } consumer {
    // or written.
    %k = tile.consumer_wait %K : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>
    tile.consumer_release %K : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>
    // expected-error @below {{'tile.scale' op reads a tile of a ring that it has released}}
    tile.scale %k by -1.000000e+00 : !tile.shared<64x64xbf16, swizzled>
  }
}

// -----

tile.kernel @read_before_take(%map: !tile.tensor_map<64xbf16>, %n: i32, %some: i1, %lo: i32, %hi: i32) target("sm_90a") grid(dense heads 1)
    schedule(#tile.warp_specialized<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
  %K = tile.alloc "K" : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>
  tile.roles registers(40, 232) producer {
    tile.producer_load %K, %map at(%n, %n, %n) : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>, !tile.tensor_map<64xbf16>
  } consumer {
    %q_operand = tile.alloc "q_operand" : !tile.register_operand<64x64xbf16, 4>
    // In the second iteration the tile taken before the loop is gone.
    %k = tile.consumer_wait %K : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>
    scf.for %j = %lo to %hi step %n : i32 {
      // expected-error @below {{'tile.load_operand' op reads a tile of a ring that it has released}}
      tile.load_operand %q_operand, %k : !tile.register_operand<64x64xbf16, 4>, !tile.shared<64x64xbf16, swizzled>
      tile.consumer_release %K : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>
      %again = tile.consumer_wait %K : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>
    }
    tile.consumer_release %K : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>
  }
}

// -----

tile.kernel @read_after_branches(%map: !tile.tensor_map<64xbf16>, %n: i32, %some: i1, %lo: i32, %hi: i32) target("sm_90a") grid(dense heads 1)
    schedule(#tile.warp_specialized<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
  %K = tile.alloc "K" : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>
  tile.roles registers(40, 232) producer {
    tile.producer_load %K, %map at(%n, %n, %n) : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>, !tile.tensor_map<64xbf16>
  } consumer {
    %q_operand = tile.alloc "q_operand" : !tile.register_operand<64x64xbf16, 4>
    // Gone after either branch.
    %k = tile.consumer_wait %K : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>
    scf.if %some {
      tile.consumer_release %K : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>
    } else {
      tile.consumer_release %K : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>
    }
    // expected-error @below {{'tile.load_operand' op reads a tile of a ring that it has released}}
    tile.load_operand %q_operand, %k : !tile.register_operand<64x64xbf16, 4>, !tile.shared<64x64xbf16, swizzled>
  }
}

// -----

tile.kernel @read_after_one_branch(%map: !tile.tensor_map<64xbf16>, %n: i32, %some: i1, %lo: i32, %hi: i32) target("sm_90a") grid(dense heads 1)
    schedule(#tile.warp_specialized<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
  %K = tile.alloc "K" : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>
  tile.roles registers(40, 232) producer {
    tile.producer_load %K, %map at(%n, %n, %n) : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>, !tile.tensor_map<64xbf16>
  } consumer {
    %q_operand = tile.alloc "q_operand" : !tile.register_operand<64x64xbf16, 4>
    // Or after one that goes on to the next tile.
    %k = tile.consumer_wait %K : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>
    scf.if %some {
    } else {
      tile.consumer_release %K : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>
      %next_tile = tile.consumer_wait %K : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>
    }
    // expected-error @below {{'tile.load_operand' op reads a tile of a ring that it has released}}
    tile.load_operand %q_operand, %k : !tile.register_operand<64x64xbf16, 4>, !tile.shared<64x64xbf16, swizzled>
    tile.consumer_release %K : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>
  }
}

// -----

tile.kernel @release_in_flight(%map: !tile.tensor_map<64xbf16>, %n: i32, %some: i1, %lo: i32, %hi: i32) target("sm_90a") grid(dense heads 1)
    schedule(#tile.warp_specialized<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
  %K = tile.alloc "K" : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>
  tile.roles registers(40, 232) producer {
    tile.producer_load %K, %map at(%n, %n, %n) : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>, !tile.tensor_map<64xbf16>
  } consumer {
    %s = tile.alloc "s" : !tile.frag<64x64, 4>
    %q_operand = tile.alloc "q_operand" : !tile.register_operand<64x64xbf16, 4>
    // A product reads the tile while its slot is given back.
    %k = tile.consumer_wait %K : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>
    // expected-note @below {{while this is in flight and reads it}}
    %t = tile.mma_abt %s, %q_operand, %k : !tile.frag<64x64, 4>, !tile.register_operand<64x64xbf16, 4>, !tile.shared<64x64xbf16, swizzled>
    // expected-error @below {{'tile.consumer_release' op releases `K`}}
    tile.consumer_release %K : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>
    tile.wait %t : !tile.token<product>
  }
}

// -----

tile.kernel @release_values_in_flight(%map: !tile.tensor_map<64xbf16>, %n: i32, %some: i1, %lo: i32, %hi: i32) target("sm_90a") grid(dense heads 1)
    schedule(#tile.warp_specialized<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
  %K = tile.alloc "K" : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>
  tile.roles registers(40, 232) producer {
    tile.producer_load %K, %map at(%n, %n, %n) : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>, !tile.tensor_map<64xbf16>
  } consumer {
    %s = tile.alloc "s" : !tile.frag<64x64, 4>
    %acc = tile.alloc "acc" : !tile.frag<64x64, 4>
    %p = tile.alloc "p" : !tile.register_operand<64x64xbf16, 4>
    %q_operand = tile.alloc "q_operand" : !tile.register_operand<64x64xbf16, 4>
    // Likewise one into the accumulator, while another was waited for.
    %k = tile.consumer_wait %K : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>
    %u = tile.mma_abt %s, %q_operand, %k : !tile.frag<64x64, 4>, !tile.register_operand<64x64xbf16, 4>, !tile.shared<64x64xbf16, swizzled>
    // expected-note @below {{while this is in flight and reads it}}
    %t = tile.mma_ab %acc, %p, %k : !tile.frag<64x64, 4>, !tile.register_operand<64x64xbf16, 4>, !tile.shared<64x64xbf16, swizzled>
    tile.wait %u : !tile.token<product>
    // expected-error @below {{'tile.consumer_release' op releases `K`}}
    tile.consumer_release %K : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>
    tile.wait %t : !tile.token<product>
  }
}

// -----

tile.kernel @box_read(%map: !tile.tensor_map<64xbf16>, %n: i32, %some: i1, %lo: i32, %hi: i32) target("sm_90a") grid(dense heads 1)
    schedule(#tile.warp_specialized<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
  %K = tile.alloc "K" : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>
  tile.roles registers(40, 232) producer {
    tile.producer_load %K, %map at(%n, %n, %n) : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>, !tile.tensor_map<64xbf16>
  } consumer {
    %acc = tile.alloc "acc" : !tile.frag<64x64, 4>
    %p = tile.alloc "p" : !tile.register_operand<64x64xbf16, 4>
    // A box comes under a product that reads what was there.
    %k = tile.consumer_wait %K : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>
    // expected-note @below {{which other warps may still be reading here}}
    %t = tile.mma_ab %acc, %p, %k : !tile.frag<64x64, 4>, !tile.register_operand<64x64xbf16, 4>, !tile.shared<64x64xbf16, swizzled>
    // expected-error @below {{'tile.copy_tma' op overwrites a place}}
    %u = tile.copy_tma %k, %map at(%n, %n, %n) : !tile.shared<64x64xbf16, swizzled>, !tile.tensor_map<64xbf16>
    tile.wait %u : !tile.token<copy>
    tile.wait %t : !tile.token<product>
    tile.consumer_release %K : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>
  }
}

// -----

tile.kernel @round_read(%map: !tile.tensor_map<64xbf16>, %n: i32, %some: i1, %lo: i32, %hi: i32) target("sm_90a") grid(dense heads 1)
    schedule(#tile.warp_specialized<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
  %K = tile.alloc "K" : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>
  tile.roles registers(40, 232) producer {
    tile.producer_load %K, %map at(%n, %n, %n) : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>, !tile.tensor_map<64xbf16>
  } consumer {
    %s = tile.alloc "s" : !tile.frag<64x64, 4>
    %acc = tile.alloc "acc" : !tile.frag<64x64, 4>
    %p = tile.alloc "p" : !tile.register_operand<64x64xbf16, 4>
    // P is made anew under the product that reads it.
    %k = tile.consumer_wait %K : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>
    // expected-note @below {{while this is in flight and reads it}}
    %t = tile.mma_ab %acc, %p, %k : !tile.frag<64x64, 4>, !tile.register_operand<64x64xbf16, 4>, !tile.shared<64x64xbf16, swizzled>
    // expected-error @below {{'tile.convert' op writes `p`}}
    tile.convert %p, %s : !tile.register_operand<64x64xbf16, 4>, !tile.frag<64x64, 4>
    tile.wait %t : !tile.token<product>
    tile.consumer_release %K : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>
  }
}

// -----

tile.kernel @weigh_read(%map: !tile.tensor_map<64xbf16>, %n: i32, %some: i1, %lo: i32, %hi: i32) target("sm_90a") grid(dense heads 1)
    schedule(#tile.warp_specialized<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
  %K = tile.alloc "K" : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>
  tile.roles registers(40, 232) producer {
    tile.producer_load %K, %map at(%n, %n, %n) : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>, !tile.tensor_map<64xbf16>
  } consumer {
    %s = tile.alloc "s" : !tile.frag<64x64, 4>
    %row = tile.alloc "row" : !tile.softmax_state<64, 4>
    %acc = tile.alloc "acc" : !tile.frag<64x64, 4>
    %p = tile.alloc "p" : !tile.register_operand<64x64xbf16, 4>
    // The same of both at once.
    %k = tile.consumer_wait %K : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>
    // expected-note @below {{while this is in flight and reads it}}
    %t = tile.mma_ab %acc, %p, %k : !tile.frag<64x64, 4>, !tile.register_operand<64x64xbf16, 4>, !tile.shared<64x64xbf16, swizzled>
    // expected-error @below {{'tile.softmax_convert' op writes `p`}}
    tile.softmax_convert %p, %s, %row scale 0.5 : !tile.register_operand<64x64xbf16, 4>, !tile.frag<64x64, 4>, !tile.softmax_state<64, 4>
    tile.wait %t : !tile.token<product>
    tile.consumer_release %K : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>
  }
}

// -----

tile.kernel @round_scores(%map: !tile.tensor_map<64xbf16>, %n: i32, %some: i1, %lo: i32, %hi: i32) target("sm_90a") grid(dense heads 1)
    schedule(#tile.warp_specialized<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
  %K = tile.alloc "K" : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>
  tile.roles registers(40, 232) producer {
    tile.producer_load %K, %map at(%n, %n, %n) : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>, !tile.tensor_map<64xbf16>
  } consumer {
    %s = tile.alloc "s" : !tile.frag<64x64, 4>
    %p = tile.alloc "p" : !tile.register_operand<64x64xbf16, 4>
    %q_operand = tile.alloc "q_operand" : !tile.register_operand<64x64xbf16, 4>
    // P is made of scores that are not there yet.
    %k = tile.consumer_wait %K : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>
    // expected-note @below {{while this is in flight into it}}
    %t = tile.mma_abt %s, %q_operand, %k : !tile.frag<64x64, 4>, !tile.register_operand<64x64xbf16, 4>, !tile.shared<64x64xbf16, swizzled>
    // expected-error @below {{'tile.convert' op reads `s`}}
    tile.convert %p, %s : !tile.register_operand<64x64xbf16, 4>, !tile.frag<64x64, 4>
    tile.wait %t : !tile.token<product>
    tile.consumer_release %K : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>
  }
}

// -----

tile.kernel @rescale(%map: !tile.tensor_map<64xbf16>, %n: i32, %some: i1, %lo: i32, %hi: i32) target("sm_90a") grid(dense heads 1)
    schedule(#tile.warp_specialized<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
  %K = tile.alloc "K" : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>
  tile.roles registers(40, 232) producer {
    tile.producer_load %K, %map at(%n, %n, %n) : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>, !tile.tensor_map<64xbf16>
  } consumer {
    %acc = tile.alloc "acc" : !tile.frag<64x64, 4>
    %row = tile.alloc "row" : !tile.softmax_state<64, 4>
    %p = tile.alloc "p" : !tile.register_operand<64x64xbf16, 4>
    // The accumulator is rescaled under a product into it.
    %k = tile.consumer_wait %K : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>
    // expected-note @below {{while this is in flight into it}}
    %t = tile.mma_ab %acc, %p, %k : !tile.frag<64x64, 4>, !tile.register_operand<64x64xbf16, 4>, !tile.shared<64x64xbf16, swizzled>
    // expected-error @below {{'tile.rescale' op writes `acc`}}
    tile.rescale %acc, %row : !tile.frag<64x64, 4>, !tile.softmax_state<64, 4>
    tile.wait %t : !tile.token<product>
    tile.consumer_release %K : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>
  }
}

// -----

tile.kernel @softmax(%map: !tile.tensor_map<64xbf16>, %n: i32, %some: i1, %lo: i32, %hi: i32) target("sm_90a") grid(dense heads 1)
    schedule(#tile.warp_specialized<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
  %K = tile.alloc "K" : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>
  tile.roles registers(40, 232) producer {
    tile.producer_load %K, %map at(%n, %n, %n) : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>, !tile.tensor_map<64xbf16>
  } consumer {
    %s = tile.alloc "s" : !tile.frag<64x64, 4>
    %row = tile.alloc "row" : !tile.softmax_state<64, 4>
    %q_operand = tile.alloc "q_operand" : !tile.register_operand<64x64xbf16, 4>
    // A softmax of scores that are not there yet.
    %k = tile.consumer_wait %K : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>
    // expected-note @below {{while this is in flight into it}}
    %t = tile.mma_abt %s, %q_operand, %k : !tile.frag<64x64, 4>, !tile.register_operand<64x64xbf16, 4>, !tile.shared<64x64xbf16, swizzled>
    // expected-error @below {{'tile.online_softmax' op writes `s`}}
    tile.online_softmax %s, %row scale 0.5 : !tile.frag<64x64, 4>, !tile.softmax_state<64, 4>
    tile.wait %t : !tile.token<product>
    tile.consumer_release %K : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>
  }
}

// -----

tile.kernel @take_twice(%map: !tile.tensor_map<64xbf16>, %n: i32, %some: i1, %lo: i32, %hi: i32) target("sm_90a") grid(dense heads 1)
    schedule(#tile.warp_specialized<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
  %K = tile.alloc "K" : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>
  tile.roles registers(40, 232) producer {
    tile.producer_load %K, %map at(%n, %n, %n) : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>, !tile.tensor_map<64xbf16>
  } consumer {
    // The ring's next tile is taken while the last is kept: `tile.consumer_release` could not say which one it means.
    // expected-note @below {{of which this tile is not released}}
    %k = tile.consumer_wait %K : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>
    // expected-error @below {{'tile.consumer_wait' op waits for a tile of `K`}}
    %next_tile = tile.consumer_wait %K : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>
    tile.consumer_release %K : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>
  }
}

// -----

tile.kernel @take_around(%map: !tile.tensor_map<64xbf16>, %n: i32, %some: i1, %lo: i32, %hi: i32) target("sm_90a") grid(dense heads 1)
    schedule(#tile.warp_specialized<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
  %K = tile.alloc "K" : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>
  tile.roles registers(40, 232) producer {
    tile.producer_load %K, %map at(%n, %n, %n) : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>, !tile.tensor_map<64xbf16>
  } consumer {
    // The same, around a loop.
    scf.for %j = %lo to %hi step %n : i32 {
      // expected-note @below {{of which this tile is not released}}
      // expected-error @below {{'tile.consumer_wait' op waits for a tile of `K`}}
      %k = tile.consumer_wait %K : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>
    }
  }
}

// -----

tile.kernel @release_first(%map: !tile.tensor_map<64xbf16>, %n: i32, %some: i1, %lo: i32, %hi: i32) target("sm_90a") grid(dense heads 1)
    schedule(#tile.warp_specialized<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
  %K = tile.alloc "K" : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>
  tile.roles registers(40, 232) producer {
    tile.producer_load %K, %map at(%n, %n, %n) : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>, !tile.tensor_map<64xbf16>
  } consumer {
    // Nothing was taken,
    // expected-error @below {{'tile.consumer_release' op releases a ring without a current tile}}
    tile.consumer_release %K : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>
    %k = tile.consumer_wait %K : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>
    tile.consumer_release %K : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>
  }
}

// -----

tile.kernel @release_twice(%map: !tile.tensor_map<64xbf16>, %n: i32, %some: i1, %lo: i32, %hi: i32) target("sm_90a") grid(dense heads 1)
    schedule(#tile.warp_specialized<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
  %K = tile.alloc "K" : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>
  tile.roles registers(40, 232) producer {
    tile.producer_load %K, %map at(%n, %n, %n) : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>, !tile.tensor_map<64xbf16>
  } consumer {
    // or not since the last release,
    %k = tile.consumer_wait %K : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>
    tile.consumer_release %K : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>
    // expected-error @below {{'tile.consumer_release' op releases a ring without a current tile}}
    tile.consumer_release %K : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>
  }
}

// -----

tile.kernel @release_around(%map: !tile.tensor_map<64xbf16>, %n: i32, %some: i1, %lo: i32, %hi: i32) target("sm_90a") grid(dense heads 1)
    schedule(#tile.warp_specialized<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
  %K = tile.alloc "K" : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>
  tile.roles registers(40, 232) producer {
    tile.producer_load %K, %map at(%n, %n, %n) : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>, !tile.tensor_map<64xbf16>
  } consumer {
    // or only before the loop.
    %k = tile.consumer_wait %K : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>
    scf.for %j = %lo to %hi step %n : i32 {
      // expected-error @below {{'tile.consumer_release' op releases a ring without a current tile}}
      tile.consumer_release %K : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>
    }
  }
}

// -----

tile.kernel @kept(%map: !tile.tensor_map<64xbf16>, %n: i32, %some: i1, %lo: i32, %hi: i32) target("sm_90a") grid(dense heads 1)
    schedule(#tile.warp_specialized<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
  %K = tile.alloc "K" : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>
  tile.roles registers(40, 232) producer {
    tile.producer_load %K, %map at(%n, %n, %n) : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>, !tile.tensor_map<64xbf16>
  } consumer {
    %q_operand = tile.alloc "q_operand" : !tile.register_operand<64x64xbf16, 4>
    // Nobody gives the slot back, and the producer waits forever.
    // expected-error @below {{'tile.consumer_wait' op is never followed by a release}}
    %k = tile.consumer_wait %K : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>
    tile.load_operand %q_operand, %k : !tile.register_operand<64x64xbf16, 4>, !tile.shared<64x64xbf16, swizzled>
  }
}

// -----

tile.kernel @one_branch(%map: !tile.tensor_map<64xbf16>, %n: i32, %some: i1, %lo: i32, %hi: i32) target("sm_90a") grid(dense heads 1)
    schedule(#tile.warp_specialized<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
  %K = tile.alloc "K" : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>
  tile.roles registers(40, 232) producer {
    tile.producer_load %K, %map at(%n, %n, %n) : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>, !tile.tensor_map<64xbf16>
  } consumer {
    // Given back sometimes.
    %k = tile.consumer_wait %K : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>
    // expected-error @below {{'scf.if' op waits for or releases a ring's tile in one branch and not in the other}}
    scf.if %some {
      tile.consumer_release %K : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>
    }
  }
}

// -----

tile.kernel @other_branch(%map: !tile.tensor_map<64xbf16>, %n: i32, %some: i1, %lo: i32, %hi: i32) target("sm_90a") grid(dense heads 1)
    schedule(#tile.warp_specialized<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
  %K = tile.alloc "K" : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>
  tile.roles registers(40, 232) producer {
    tile.producer_load %K, %map at(%n, %n, %n) : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>, !tile.tensor_map<64xbf16>
  } consumer {
    // Or in the other case only.
    %k = tile.consumer_wait %K : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>
    // expected-error @below {{'scf.if' op waits for or releases a ring's tile in one branch and not in the other}}
    scf.if %some {
    } else {
      tile.consumer_release %K : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>
    }
  }
}

// -----

tile.kernel @take_in_branch(%map: !tile.tensor_map<64xbf16>, %n: i32, %some: i1, %lo: i32, %hi: i32) target("sm_90a") grid(dense heads 1)
    schedule(#tile.warp_specialized<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
  %K = tile.alloc "K" : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>
  tile.roles registers(40, 232) producer {
    tile.producer_load %K, %map at(%n, %n, %n) : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>, !tile.tensor_map<64xbf16>
  } consumer {
    // Taken sometimes, released always.
    // expected-error @below {{'scf.if' op waits for or releases a ring's tile in one branch and not in the other}}
    scf.if %some {
      %k = tile.consumer_wait %K : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>
    }
    tile.consumer_release %K : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>
  }
}

// -----

tile.kernel @in_flight(%map: !tile.tensor_map<64xbf16>, %n: i32, %some: i1, %lo: i32, %hi: i32) target("sm_90a") grid(dense heads 1)
    schedule(#tile.warp_specialized<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
  %K = tile.alloc "K" : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>
  tile.roles registers(40, 232) producer {
    tile.producer_load %K, %map at(%n, %n, %n) : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>, !tile.tensor_map<64xbf16>
  } consumer {
    %s = tile.alloc "s" : !tile.frag<64x64, 4>
    %q_operand = tile.alloc "q_operand" : !tile.register_operand<64x64xbf16, 4>
    // A role ends with a product under way.
    %k = tile.consumer_wait %K : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>
    // expected-error @below {{'tile.mma_abt' op is never waited for}}
    %t = tile.mma_abt %s, %q_operand, %k : !tile.frag<64x64, 4>, !tile.register_operand<64x64xbf16, 4>, !tile.shared<64x64xbf16, swizzled>
  }
}

// -----

tile.kernel @box(%map: !tile.tensor_map<64xbf16>, %n: i32, %some: i1, %lo: i32, %hi: i32) target("sm_90a") grid(dense heads 1)
    schedule(#tile.warp_specialized<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
  %K = tile.alloc "K" : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>
  %Q = tile.alloc "Q" : !tile.shared<64x64xbf16, swizzled>
  tile.roles registers(40, 232) producer {
    tile.producer_load %K, %map at(%n, %n, %n) : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>, !tile.tensor_map<64xbf16>
  } consumer {
    %q_operand = tile.alloc "q_operand" : !tile.register_operand<64x64xbf16, 4>
    // A box is as much in flight as any copy:
    // expected-note @below {{while this is in flight into it}}
    %t = tile.copy_tma %Q, %map at(%n, %n, %n) : !tile.shared<64x64xbf16, swizzled>, !tile.tensor_map<64xbf16>
    // expected-error @below {{'tile.load_operand' op reads `Q`}}
    tile.load_operand %q_operand, %Q : !tile.register_operand<64x64xbf16, 4>, !tile.shared<64x64xbf16, swizzled>
    tile.wait %t : !tile.token<copy>
    %k = tile.consumer_wait %K : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>
    tile.consumer_release %K : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>
  }
}

// -----

tile.kernel @box_twice(%map: !tile.tensor_map<64xbf16>, %n: i32, %some: i1, %lo: i32, %hi: i32) target("sm_90a") grid(dense heads 1)
    schedule(#tile.warp_specialized<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
  %K = tile.alloc "K" : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>
  %Q = tile.alloc "Q" : !tile.shared<64x64xbf16, swizzled>
  tile.roles registers(40, 232) producer {
    tile.producer_load %K, %map at(%n, %n, %n) : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>, !tile.tensor_map<64xbf16>
  } consumer {
    // nothing else may be copied to its place,
    // expected-note @below {{while this is in flight into it}}
    %t = tile.copy_tma %Q, %map at(%n, %n, %n) : !tile.shared<64x64xbf16, swizzled>, !tile.tensor_map<64xbf16>
    // expected-error @below {{'tile.copy_tma' op writes `Q`}}
    %u = tile.copy_tma %Q, %map at(%n, %n, %n) : !tile.shared<64x64xbf16, swizzled>, !tile.tensor_map<64xbf16>
    tile.wait %t, %u : !tile.token<copy>, !tile.token<copy>
    %k = tile.consumer_wait %K : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>
    tile.consumer_release %K : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>
  }
}

// -----

tile.kernel @box_never(%map: !tile.tensor_map<64xbf16>, %n: i32, %some: i1, %lo: i32, %hi: i32) target("sm_90a") grid(dense heads 1)
    schedule(#tile.warp_specialized<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
  %K = tile.alloc "K" : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>
  %Q = tile.alloc "Q" : !tile.shared<64x64xbf16, swizzled>
  tile.roles registers(40, 232) producer {
    tile.producer_load %K, %map at(%n, %n, %n) : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>, !tile.tensor_map<64xbf16>
  } consumer {
    // and somebody has to wait for it.
    // expected-error @below {{'tile.copy_tma' op is never waited for}}
    %t = tile.copy_tma %Q, %map at(%n, %n, %n) : !tile.shared<64x64xbf16, swizzled>, !tile.tensor_map<64xbf16>
    %k = tile.consumer_wait %K : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>
    tile.consumer_release %K : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>
  }
}

// -----

tile.kernel @only_filled(%map: !tile.tensor_map<64xbf16>, %n: i32, %blocks: i32) target("sm_90a") grid(dense heads 1)
    schedule(#tile.warp_specialized<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
  // Nobody takes what is filled.
  // expected-error @below {{'tile.alloc' op expected a ring with a producer and a consumer, got: one with only a producer}}
  %K = tile.alloc "K" : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>
  tile.roles registers(40, 232) producer {
    tile.producer_load %K, %map at(%n, %n, %n) : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>, !tile.tensor_map<64xbf16>
  } consumer {
  }
}

// -----

tile.kernel @only_taken(%map: !tile.tensor_map<64xbf16>, %n: i32, %blocks: i32) target("sm_90a") grid(dense heads 1)
    schedule(#tile.warp_specialized<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
  // Nobody fills what is taken.
  // expected-error @below {{'tile.alloc' op expected a ring with a producer and a consumer, got: one with only a consumer}}
  %K = tile.alloc "K" : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>
  tile.roles registers(40, 232) producer {
  } consumer {
    %k = tile.consumer_wait %K : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>
    tile.consumer_release %K : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>
  }
}

// -----

tile.kernel @persist(%map: !tile.tensor_map<64xbf16>, %n: i32, %blocks: i32) target("sm_90a") grid(dense heads 1)
    schedule(#tile.warp_specialized<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
  %K = tile.alloc "K" : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>
  tile.roles registers(40, 232) producer {
    tile.producer_load %K, %map at(%n, %n, %n) : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>, !tile.tensor_map<64xbf16>
  } consumer {
    // A tile that is kept until the next block number.
    tile.persistent_loop %blocks {
    ^bb0(%block: i32):
      // expected-note @below {{of which this tile is not released}}
      // expected-error @below {{'tile.consumer_wait' op waits for a tile of `K`}}
      %k = tile.consumer_wait %K : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>
    }
  }
}

// -----

tile.kernel @own_tiles(%map: !tile.tensor_map<64xbf16>, %n: i32, %blocks: i32) target("sm_90a") grid(dense heads 1)
    schedule(#tile.warp_specialized<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
  %K = tile.alloc "K" : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>
  tile.roles registers(32, 208, 64) producer {
    tile.producer_load %K, %map at(%n, %n, %n) : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>, !tile.tensor_map<64xbf16>
  } consumer {
    // Roles are looked at one by one: the consumers' tile is not the reducer's to release.
    // expected-error @below {{'tile.consumer_wait' op is never followed by a release}}
    %k = tile.consumer_wait %K : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>
  } dq_mma {
    tile.consumer_release %K : !tile.ring<2, !tile.shared<64x64xbf16, swizzled>>
  }
}
