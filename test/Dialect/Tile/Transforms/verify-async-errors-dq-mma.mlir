// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What `tile-verify-async` reports of tiles that are advanced, stored and committed.
//
// RUN: attn-opt %s -tile-verify-async -split-input-file -verify-diagnostics

tile.kernel @whole(%map: !tile.tensor_map<64xbf16>, %n: i32, %some: i1, %lo: i32, %hi: i32) target("sm_90a") grid(dense heads 1 keys)
    schedule(#tile.warp_specialized_backward<q_tile = 64, kv_tile = 128, warps = 8, ctas_per_sm = 1, single_loop = true, dq_columns = 64>) {
  %Q = tile.alloc "Q" : !tile.ring<2, !tile.shared<64x128xbf16, swizzled>>
  %dS = tile.alloc "dS" ring stored_for_dq_mma : !tile.ring<2, !tile.shared<128x64xbf16, swizzled>>
  tile.roles registers(32, 208, 64) producer {
    tile.producer_load %Q, %map at(%n, %n, %n) : !tile.ring<2, !tile.shared<64x128xbf16, swizzled>>, !tile.tensor_map<64xbf16>
  } consumer {
    %p = tile.alloc "p" : !tile.register_operand<128x64xbf16, 8>
    %s = tile.alloc "s" : !tile.frag<128x64, 8>
    %dK = tile.alloc "dK" : !tile.frag<128x128, 8>
    // No error: a null product is waited for, a tile that may be absent is waited for, a stored tile is committed, an advanced tile is released.
    %none = tile.null_product
    tile.wait %none : !tile.token<product>
    %q = tile.consumer_wait %Q : !tile.ring<2, !tile.shared<64x128xbf16, swizzled>>
    tile.producer_store %dS, %p : !tile.ring<2, !tile.shared<128x64xbf16, swizzled>>, !tile.register_operand<128x64xbf16, 8>
    %passed = tile.consumer_advance %Q : !tile.ring<2, !tile.shared<64x128xbf16, swizzled>>
    %t = tile.mma_ab %dK, %p, %passed : !tile.frag<128x128, 8>, !tile.register_operand<128x64xbf16, 8>, !tile.shared<64x128xbf16, swizzled>
    tile.producer_commit %dS : !tile.ring<2, !tile.shared<128x64xbf16, swizzled>>
    tile.wait %t : !tile.token<product>
    tile.consumer_release %Q passed : !tile.ring<2, !tile.shared<64x128xbf16, swizzled>>
  } dq_mma {
    %ds = tile.consumer_wait %dS : !tile.ring<2, !tile.shared<128x64xbf16, swizzled>>
    tile.consumer_release %dS : !tile.ring<2, !tile.shared<128x64xbf16, swizzled>>
  }
}

// -----

tile.kernel @ring_of_other_roles(%map: !tile.tensor_map<64xbf16>, %n: i32, %some: i1, %lo: i32, %hi: i32) target("sm_90a") grid(dense heads 1 keys)
    schedule(#tile.warp_specialized_backward<q_tile = 64, kv_tile = 128, warps = 8, ctas_per_sm = 1, single_loop = true, dq_columns = 64>) {
  %Q = tile.alloc "Q" : !tile.ring<2, !tile.shared<64x128xbf16, swizzled>>
  // expected-error @below {{'tile.alloc' op expected `ring stored_for_dq_mma` as its uses have it, got: loaded}}
  %dS = tile.alloc "dS" : !tile.ring<2, !tile.shared<128x64xbf16, swizzled>>
  tile.roles registers(32, 208, 64) producer {
    tile.producer_load %Q, %map at(%n, %n, %n) : !tile.ring<2, !tile.shared<64x128xbf16, swizzled>>, !tile.tensor_map<64xbf16>
  } consumer {
    %p = tile.alloc "p" : !tile.register_operand<128x64xbf16, 8>
    %s = tile.alloc "s" : !tile.frag<128x64, 8>
    %dK = tile.alloc "dK" : !tile.frag<128x128, 8>
    %none = tile.null_product
    tile.wait %none : !tile.token<product>
    %q = tile.consumer_wait %Q : !tile.ring<2, !tile.shared<64x128xbf16, swizzled>>
    tile.producer_store %dS, %p : !tile.ring<2, !tile.shared<128x64xbf16, swizzled>>, !tile.register_operand<128x64xbf16, 8>
    %passed = tile.consumer_advance %Q : !tile.ring<2, !tile.shared<64x128xbf16, swizzled>>
    %t = tile.mma_ab %dK, %p, %passed : !tile.frag<128x128, 8>, !tile.register_operand<128x64xbf16, 8>, !tile.shared<64x128xbf16, swizzled>
    tile.producer_commit %dS : !tile.ring<2, !tile.shared<128x64xbf16, swizzled>>
    tile.wait %t : !tile.token<product>
    tile.consumer_release %Q passed : !tile.ring<2, !tile.shared<64x128xbf16, swizzled>>
  } dq_mma {
    %ds = tile.consumer_wait %dS : !tile.ring<2, !tile.shared<128x64xbf16, swizzled>>
    tile.consumer_release %dS : !tile.ring<2, !tile.shared<128x64xbf16, swizzled>>
  }
}

// -----

tile.kernel @stored_in_else(%map: !tile.tensor_map<64xbf16>, %n: i32, %some: i1, %lo: i32, %hi: i32) target("sm_90a") grid(dense heads 1 keys)
    schedule(#tile.warp_specialized_backward<q_tile = 64, kv_tile = 128, warps = 8, ctas_per_sm = 1, single_loop = true, dq_columns = 64>) {
  %Q = tile.alloc "Q" : !tile.ring<2, !tile.shared<64x128xbf16, swizzled>>
  %dS = tile.alloc "dS" ring stored_for_dq_mma : !tile.ring<2, !tile.shared<128x64xbf16, swizzled>>
  tile.roles registers(32, 208, 64) producer {
    tile.producer_load %Q, %map at(%n, %n, %n) : !tile.ring<2, !tile.shared<64x128xbf16, swizzled>>, !tile.tensor_map<64xbf16>
  } consumer {
    %p = tile.alloc "p" : !tile.register_operand<128x64xbf16, 8>
    %s = tile.alloc "s" : !tile.frag<128x64, 8>
    %dK = tile.alloc "dK" : !tile.frag<128x128, 8>
    %none = tile.null_product
    tile.wait %none : !tile.token<product>
    %q = tile.consumer_wait %Q : !tile.ring<2, !tile.shared<64x128xbf16, swizzled>>
    tile.producer_store %dS, %p : !tile.ring<2, !tile.shared<128x64xbf16, swizzled>>, !tile.register_operand<128x64xbf16, 8>
    %passed = tile.consumer_advance %Q : !tile.ring<2, !tile.shared<64x128xbf16, swizzled>>
    %t = tile.mma_ab %dK, %p, %passed : !tile.frag<128x128, 8>, !tile.register_operand<128x64xbf16, 8>, !tile.shared<64x128xbf16, swizzled>
    tile.producer_commit %dS : !tile.ring<2, !tile.shared<128x64xbf16, swizzled>>
    scf.if %some {
    } else {
      // expected-error @below {{'tile.producer_store' op is never committed}}
      tile.producer_store %dS, %p : !tile.ring<2, !tile.shared<128x64xbf16, swizzled>>, !tile.register_operand<128x64xbf16, 8>
    }
    tile.wait %t : !tile.token<product>
    tile.consumer_release %Q passed : !tile.ring<2, !tile.shared<64x128xbf16, swizzled>>
  } dq_mma {
    %ds = tile.consumer_wait %dS : !tile.ring<2, !tile.shared<128x64xbf16, swizzled>>
    tile.consumer_release %dS : !tile.ring<2, !tile.shared<128x64xbf16, swizzled>>
  }
}

// -----

tile.kernel @not_passed(%map: !tile.tensor_map<64xbf16>, %n: i32, %some: i1, %lo: i32, %hi: i32) target("sm_90a") grid(dense heads 1 keys)
    schedule(#tile.warp_specialized_backward<q_tile = 64, kv_tile = 128, warps = 8, ctas_per_sm = 1, single_loop = true, dq_columns = 64>) {
  %Q = tile.alloc "Q" : !tile.ring<2, !tile.shared<64x128xbf16, swizzled>>
  %dS = tile.alloc "dS" : !tile.ring<2, !tile.shared<128x64xbf16, swizzled>>
  tile.roles registers(32, 208, 64) producer {
    tile.producer_load %Q, %map at(%n, %n, %n) : !tile.ring<2, !tile.shared<64x128xbf16, swizzled>>, !tile.tensor_map<64xbf16>
  } consumer {
    %p = tile.alloc "p" : !tile.register_operand<128x64xbf16, 8>
    %s = tile.alloc "s" : !tile.frag<128x64, 8>
    // expected-error @below {{'tile.consumer_advance' op advances a ring without a current tile}}
    %passed = tile.consumer_advance %Q : !tile.ring<2, !tile.shared<64x128xbf16, swizzled>>
    %q = tile.consumer_wait %Q : !tile.ring<2, !tile.shared<64x128xbf16, swizzled>>
  } dq_mma {
    %ds = tile.consumer_wait %dS : !tile.ring<2, !tile.shared<128x64xbf16, swizzled>>
    tile.consumer_release %dS : !tile.ring<2, !tile.shared<128x64xbf16, swizzled>>
  }
}

// -----

tile.kernel @old_name(%map: !tile.tensor_map<64xbf16>, %n: i32, %some: i1, %lo: i32, %hi: i32) target("sm_90a") grid(dense heads 1 keys)
    schedule(#tile.warp_specialized_backward<q_tile = 64, kv_tile = 128, warps = 8, ctas_per_sm = 1, single_loop = true, dq_columns = 64>) {
  %Q = tile.alloc "Q" : !tile.ring<2, !tile.shared<64x128xbf16, swizzled>>
  %dS = tile.alloc "dS" : !tile.ring<2, !tile.shared<128x64xbf16, swizzled>>
  tile.roles registers(32, 208, 64) producer {
    tile.producer_load %Q, %map at(%n, %n, %n) : !tile.ring<2, !tile.shared<64x128xbf16, swizzled>>, !tile.tensor_map<64xbf16>
  } consumer {
    %p = tile.alloc "p" : !tile.register_operand<128x64xbf16, 8>
    %s = tile.alloc "s" : !tile.frag<128x64, 8>
    %dK = tile.alloc "dK" : !tile.frag<128x128, 8>
    %q = tile.consumer_wait %Q : !tile.ring<2, !tile.shared<64x128xbf16, swizzled>>
    %passed = tile.consumer_advance %Q : !tile.ring<2, !tile.shared<64x128xbf16, swizzled>>
    // What was passed has another name.
    // expected-error @below {{'tile.mma_ab' op reads a tile of a ring that it has released}}
    %t = tile.mma_ab %dK, %p, %q : !tile.frag<128x128, 8>, !tile.register_operand<128x64xbf16, 8>, !tile.shared<64x128xbf16, swizzled>
    tile.wait %t : !tile.token<product>
    tile.consumer_release %Q passed : !tile.ring<2, !tile.shared<64x128xbf16, swizzled>>
  } dq_mma {
    %ds = tile.consumer_wait %dS : !tile.ring<2, !tile.shared<128x64xbf16, swizzled>>
    tile.consumer_release %dS : !tile.ring<2, !tile.shared<128x64xbf16, swizzled>>
  }
}

// -----

tile.kernel @twice_passed(%map: !tile.tensor_map<64xbf16>, %n: i32, %some: i1, %lo: i32, %hi: i32) target("sm_90a") grid(dense heads 1 keys)
    schedule(#tile.warp_specialized_backward<q_tile = 64, kv_tile = 128, warps = 8, ctas_per_sm = 1, single_loop = true, dq_columns = 64>) {
  %Q = tile.alloc "Q" : !tile.ring<2, !tile.shared<64x128xbf16, swizzled>>
  %dS = tile.alloc "dS" : !tile.ring<2, !tile.shared<128x64xbf16, swizzled>>
  tile.roles registers(32, 208, 64) producer {
    tile.producer_load %Q, %map at(%n, %n, %n) : !tile.ring<2, !tile.shared<64x128xbf16, swizzled>>, !tile.tensor_map<64xbf16>
  } consumer {
    %p = tile.alloc "p" : !tile.register_operand<128x64xbf16, 8>
    %s = tile.alloc "s" : !tile.frag<128x64, 8>
    %q = tile.consumer_wait %Q : !tile.ring<2, !tile.shared<64x128xbf16, swizzled>>
    // expected-note @below {{of which this one is not released}}
    %one = tile.consumer_advance %Q : !tile.ring<2, !tile.shared<64x128xbf16, swizzled>>
    %r = tile.consumer_wait %Q : !tile.ring<2, !tile.shared<64x128xbf16, swizzled>>
    // expected-error @below {{'tile.consumer_advance' op advances `Q`}}
    %two = tile.consumer_advance %Q : !tile.ring<2, !tile.shared<64x128xbf16, swizzled>>
  } dq_mma {
    %ds = tile.consumer_wait %dS : !tile.ring<2, !tile.shared<128x64xbf16, swizzled>>
    tile.consumer_release %dS : !tile.ring<2, !tile.shared<128x64xbf16, swizzled>>
  }
}

// -----

tile.kernel @never_released(%map: !tile.tensor_map<64xbf16>, %n: i32, %some: i1, %lo: i32, %hi: i32) target("sm_90a") grid(dense heads 1 keys)
    schedule(#tile.warp_specialized_backward<q_tile = 64, kv_tile = 128, warps = 8, ctas_per_sm = 1, single_loop = true, dq_columns = 64>) {
  %Q = tile.alloc "Q" : !tile.ring<2, !tile.shared<64x128xbf16, swizzled>>
  %dS = tile.alloc "dS" : !tile.ring<2, !tile.shared<128x64xbf16, swizzled>>
  tile.roles registers(32, 208, 64) producer {
    tile.producer_load %Q, %map at(%n, %n, %n) : !tile.ring<2, !tile.shared<64x128xbf16, swizzled>>, !tile.tensor_map<64xbf16>
  } consumer {
    %p = tile.alloc "p" : !tile.register_operand<128x64xbf16, 8>
    %s = tile.alloc "s" : !tile.frag<128x64, 8>
    %q = tile.consumer_wait %Q : !tile.ring<2, !tile.shared<64x128xbf16, swizzled>>
    // expected-error @below {{'tile.consumer_advance' op is never followed by a release}}
    %passed = tile.consumer_advance %Q : !tile.ring<2, !tile.shared<64x128xbf16, swizzled>>
  } dq_mma {
    %ds = tile.consumer_wait %dS : !tile.ring<2, !tile.shared<128x64xbf16, swizzled>>
    tile.consumer_release %dS : !tile.ring<2, !tile.shared<128x64xbf16, swizzled>>
  }
}

// -----

tile.kernel @nothing_passed(%map: !tile.tensor_map<64xbf16>, %n: i32, %some: i1, %lo: i32, %hi: i32) target("sm_90a") grid(dense heads 1 keys)
    schedule(#tile.warp_specialized_backward<q_tile = 64, kv_tile = 128, warps = 8, ctas_per_sm = 1, single_loop = true, dq_columns = 64>) {
  %Q = tile.alloc "Q" : !tile.ring<2, !tile.shared<64x128xbf16, swizzled>>
  %dS = tile.alloc "dS" : !tile.ring<2, !tile.shared<128x64xbf16, swizzled>>
  tile.roles registers(32, 208, 64) producer {
    tile.producer_load %Q, %map at(%n, %n, %n) : !tile.ring<2, !tile.shared<64x128xbf16, swizzled>>, !tile.tensor_map<64xbf16>
  } consumer {
    %p = tile.alloc "p" : !tile.register_operand<128x64xbf16, 8>
    %s = tile.alloc "s" : !tile.frag<128x64, 8>
    %q = tile.consumer_wait %Q : !tile.ring<2, !tile.shared<64x128xbf16, swizzled>>
    // expected-error @below {{'tile.consumer_release' op releases the previous tile of a ring that was not advanced}}
    tile.consumer_release %Q passed : !tile.ring<2, !tile.shared<64x128xbf16, swizzled>>
  } dq_mma {
    %ds = tile.consumer_wait %dS : !tile.ring<2, !tile.shared<128x64xbf16, swizzled>>
    tile.consumer_release %dS : !tile.ring<2, !tile.shared<128x64xbf16, swizzled>>
  }
}

// -----

tile.kernel @in_flight(%map: !tile.tensor_map<64xbf16>, %n: i32, %some: i1, %lo: i32, %hi: i32) target("sm_90a") grid(dense heads 1 keys)
    schedule(#tile.warp_specialized_backward<q_tile = 64, kv_tile = 128, warps = 8, ctas_per_sm = 1, single_loop = true, dq_columns = 64>) {
  %Q = tile.alloc "Q" : !tile.ring<2, !tile.shared<64x128xbf16, swizzled>>
  %dS = tile.alloc "dS" : !tile.ring<2, !tile.shared<128x64xbf16, swizzled>>
  tile.roles registers(32, 208, 64) producer {
    tile.producer_load %Q, %map at(%n, %n, %n) : !tile.ring<2, !tile.shared<64x128xbf16, swizzled>>, !tile.tensor_map<64xbf16>
  } consumer {
    %p = tile.alloc "p" : !tile.register_operand<128x64xbf16, 8>
    %s = tile.alloc "s" : !tile.frag<128x64, 8>
    %dK = tile.alloc "dK" : !tile.frag<128x128, 8>
    %q = tile.consumer_wait %Q : !tile.ring<2, !tile.shared<64x128xbf16, swizzled>>
    %passed = tile.consumer_advance %Q : !tile.ring<2, !tile.shared<64x128xbf16, swizzled>>
    // expected-note @below {{while this is in flight and reads it}}
    %t = tile.mma_ab %dK, %p, %passed : !tile.frag<128x128, 8>, !tile.register_operand<128x64xbf16, 8>, !tile.shared<64x128xbf16, swizzled>
    // expected-error @below {{'tile.consumer_release' op releases `Q`}}
    tile.consumer_release %Q passed : !tile.ring<2, !tile.shared<64x128xbf16, swizzled>>
    tile.wait %t : !tile.token<product>
  } dq_mma {
    %ds = tile.consumer_wait %dS : !tile.ring<2, !tile.shared<128x64xbf16, swizzled>>
    tile.consumer_release %dS : !tile.ring<2, !tile.shared<128x64xbf16, swizzled>>
  }
}

// -----

tile.kernel @stand_in(%map: !tile.tensor_map<64xbf16>, %n: i32, %some: i1, %lo: i32, %hi: i32) target("sm_90a") grid(dense heads 1 keys)
    schedule(#tile.warp_specialized_backward<q_tile = 64, kv_tile = 128, warps = 8, ctas_per_sm = 1, single_loop = true, dq_columns = 64>) {
  %Q = tile.alloc "Q" : !tile.ring<2, !tile.shared<64x128xbf16, swizzled>>
  %dS = tile.alloc "dS" : !tile.ring<2, !tile.shared<128x64xbf16, swizzled>>
  tile.roles registers(32, 208, 64) producer {
    tile.producer_load %Q, %map at(%n, %n, %n) : !tile.ring<2, !tile.shared<64x128xbf16, swizzled>>, !tile.tensor_map<64xbf16>
  } consumer {
    %p = tile.alloc "p" : !tile.register_operand<128x64xbf16, 8>
    %s = tile.alloc "s" : !tile.frag<128x64, 8>
    %dK = tile.alloc "dK" : !tile.frag<128x128, 8>
    %q = tile.consumer_wait %Q : !tile.ring<2, !tile.shared<64x128xbf16, swizzled>>
    %passed = tile.consumer_advance %Q : !tile.ring<2, !tile.shared<64x128xbf16, swizzled>>
    // A product that reads the passed tile if there is no next one.
    %next = tile.consumer_wait %Q if(%some) else(%passed : !tile.shared<64x128xbf16, swizzled>) : !tile.ring<2, !tile.shared<64x128xbf16, swizzled>>
    // expected-note @below {{while this is in flight and reads it}}
    %t = tile.mma_ab %dK, %p, %next : !tile.frag<128x128, 8>, !tile.register_operand<128x64xbf16, 8>, !tile.shared<64x128xbf16, swizzled>
    // expected-error @below {{'tile.consumer_release' op releases `Q`}}
    tile.consumer_release %Q passed : !tile.ring<2, !tile.shared<64x128xbf16, swizzled>>
    tile.wait %t : !tile.token<product>
  } dq_mma {
    %ds = tile.consumer_wait %dS : !tile.ring<2, !tile.shared<128x64xbf16, swizzled>>
    tile.consumer_release %dS : !tile.ring<2, !tile.shared<128x64xbf16, swizzled>>
  }
}

// -----

tile.kernel @one_branch(%map: !tile.tensor_map<64xbf16>, %n: i32, %some: i1, %lo: i32, %hi: i32) target("sm_90a") grid(dense heads 1 keys)
    schedule(#tile.warp_specialized_backward<q_tile = 64, kv_tile = 128, warps = 8, ctas_per_sm = 1, single_loop = true, dq_columns = 64>) {
  %Q = tile.alloc "Q" : !tile.ring<2, !tile.shared<64x128xbf16, swizzled>>
  %dS = tile.alloc "dS" : !tile.ring<2, !tile.shared<128x64xbf16, swizzled>>
  tile.roles registers(32, 208, 64) producer {
    tile.producer_load %Q, %map at(%n, %n, %n) : !tile.ring<2, !tile.shared<64x128xbf16, swizzled>>, !tile.tensor_map<64xbf16>
  } consumer {
    %p = tile.alloc "p" : !tile.register_operand<128x64xbf16, 8>
    %s = tile.alloc "s" : !tile.frag<128x64, 8>
    %q = tile.consumer_wait %Q : !tile.ring<2, !tile.shared<64x128xbf16, swizzled>>
    %passed = tile.consumer_advance %Q : !tile.ring<2, !tile.shared<64x128xbf16, swizzled>>
    // expected-error @below {{'scf.if' op waits for or releases a ring's tile in one branch and not in the other}}
    scf.if %some {
      tile.consumer_release %Q passed : !tile.ring<2, !tile.shared<64x128xbf16, swizzled>>
    }
  } dq_mma {
    %ds = tile.consumer_wait %dS : !tile.ring<2, !tile.shared<128x64xbf16, swizzled>>
    tile.consumer_release %dS : !tile.ring<2, !tile.shared<128x64xbf16, swizzled>>
  }
}

// -----

tile.kernel @twice_put(%map: !tile.tensor_map<64xbf16>, %n: i32, %some: i1, %lo: i32, %hi: i32) target("sm_90a") grid(dense heads 1 keys)
    schedule(#tile.warp_specialized_backward<q_tile = 64, kv_tile = 128, warps = 8, ctas_per_sm = 1, single_loop = true, dq_columns = 64>) {
  %dS = tile.alloc "dS" : !tile.ring<2, !tile.shared<128x64xbf16, swizzled>>
  tile.roles registers(32, 208, 64) producer {
  } consumer {
    %p = tile.alloc "p" : !tile.register_operand<128x64xbf16, 8>
    %s = tile.alloc "s" : !tile.frag<128x64, 8>
    // expected-note @below {{of which this one is not committed}}
    tile.producer_store %dS, %p : !tile.ring<2, !tile.shared<128x64xbf16, swizzled>>, !tile.register_operand<128x64xbf16, 8>
    // expected-error @below {{'tile.producer_store' op stores a tile into `dS`}}
    tile.producer_store %dS, %p : !tile.ring<2, !tile.shared<128x64xbf16, swizzled>>, !tile.register_operand<128x64xbf16, 8>
    tile.producer_commit %dS : !tile.ring<2, !tile.shared<128x64xbf16, swizzled>>
  } dq_mma {
    %ds = tile.consumer_wait %dS : !tile.ring<2, !tile.shared<128x64xbf16, swizzled>>
    tile.consumer_release %dS : !tile.ring<2, !tile.shared<128x64xbf16, swizzled>>
  }
}

// -----

tile.kernel @not_published(%map: !tile.tensor_map<64xbf16>, %n: i32, %some: i1, %lo: i32, %hi: i32) target("sm_90a") grid(dense heads 1 keys)
    schedule(#tile.warp_specialized_backward<q_tile = 64, kv_tile = 128, warps = 8, ctas_per_sm = 1, single_loop = true, dq_columns = 64>) {
  %dS = tile.alloc "dS" : !tile.ring<2, !tile.shared<128x64xbf16, swizzled>>
  tile.roles registers(32, 208, 64) producer {
  } consumer {
    %p = tile.alloc "p" : !tile.register_operand<128x64xbf16, 8>
    %s = tile.alloc "s" : !tile.frag<128x64, 8>
    // expected-error @below {{'tile.producer_store' op is never committed}}
    tile.producer_store %dS, %p : !tile.ring<2, !tile.shared<128x64xbf16, swizzled>>, !tile.register_operand<128x64xbf16, 8>
  } dq_mma {
    %ds = tile.consumer_wait %dS : !tile.ring<2, !tile.shared<128x64xbf16, swizzled>>
    tile.consumer_release %dS : !tile.ring<2, !tile.shared<128x64xbf16, swizzled>>
  }
}

// -----

tile.kernel @not_put(%map: !tile.tensor_map<64xbf16>, %n: i32, %some: i1, %lo: i32, %hi: i32) target("sm_90a") grid(dense heads 1 keys)
    schedule(#tile.warp_specialized_backward<q_tile = 64, kv_tile = 128, warps = 8, ctas_per_sm = 1, single_loop = true, dq_columns = 64>) {
  %dS = tile.alloc "dS" : !tile.ring<2, !tile.shared<128x64xbf16, swizzled>>
  tile.roles registers(32, 208, 64) producer {
  } consumer {
    %p = tile.alloc "p" : !tile.register_operand<128x64xbf16, 8>
    %s = tile.alloc "s" : !tile.frag<128x64, 8>
    // expected-error @below {{'tile.producer_commit' op commits a ring into which nothing was stored}}
    tile.producer_commit %dS : !tile.ring<2, !tile.shared<128x64xbf16, swizzled>>
    tile.producer_store %dS, %p : !tile.ring<2, !tile.shared<128x64xbf16, swizzled>>, !tile.register_operand<128x64xbf16, 8>
  } dq_mma {
    %ds = tile.consumer_wait %dS : !tile.ring<2, !tile.shared<128x64xbf16, swizzled>>
    tile.consumer_release %dS : !tile.ring<2, !tile.shared<128x64xbf16, swizzled>>
  }
}

// -----

tile.kernel @not_rounded(%map: !tile.tensor_map<64xbf16>, %n: i32, %some: i1, %lo: i32, %hi: i32) target("sm_90a") grid(dense heads 1 keys)
    schedule(#tile.warp_specialized_backward<q_tile = 64, kv_tile = 128, warps = 8, ctas_per_sm = 1, single_loop = true, dq_columns = 64>) {
  %Q = tile.alloc "Q" : !tile.ring<2, !tile.shared<64x128xbf16, swizzled>>
  %K = tile.alloc "K" : !tile.shared<128x128xbf16, swizzled>
  tile.roles registers(32, 208, 64) producer {
    tile.producer_load %Q, %map at(%n, %n, %n) : !tile.ring<2, !tile.shared<64x128xbf16, swizzled>>, !tile.tensor_map<64xbf16>
  } consumer {
    %p = tile.alloc "p" : !tile.register_operand<128x64xbf16, 8>
    %s = tile.alloc "s" : !tile.frag<128x64, 8>
    %dK = tile.alloc "dK" : !tile.frag<128x128, 8>
    %q = tile.consumer_wait %Q : !tile.ring<2, !tile.shared<64x128xbf16, swizzled>>
    // expected-note @below {{while this is in flight into it}}
    %t = tile.mma_abt %s, %K, %q : !tile.frag<128x64, 8>, !tile.shared<128x128xbf16, swizzled>, !tile.shared<64x128xbf16, swizzled>
    // Scores are rounded before they are there.
    // expected-error @below {{'tile.convert' op reads `s`}}
    tile.convert %p, %s {at_once} : !tile.register_operand<128x64xbf16, 8>, !tile.frag<128x64, 8>
    tile.wait %t : !tile.token<product>
    tile.consumer_release %Q : !tile.ring<2, !tile.shared<64x128xbf16, swizzled>>
  } dq_mma {
  }
}

// -----

tile.kernel @covered(%map: !tile.tensor_map<64xbf16>, %n: i32, %some: i1, %lo: i32, %hi: i32) target("sm_90a") grid(dense heads 1 keys)
    schedule(#tile.warp_specialized_backward<q_tile = 64, kv_tile = 128, warps = 8, ctas_per_sm = 1, single_loop = true, dq_columns = 64>) {
  %dS = tile.alloc "dS" : !tile.ring<2, !tile.shared<128x64xbf16, swizzled>>
  tile.roles registers(32, 208, 64) producer {
  } consumer {
    %p = tile.alloc "p" : !tile.register_operand<128x64xbf16, 8>
    %s = tile.alloc "s" : !tile.frag<128x64, 8>
    %stash = tile.stash %dS : !tile.ring<2, !tile.shared<128x64xbf16, swizzled>>, !tile.register_operand<128x64xbf16, 8>
    // expected-note @below {{which is stored there here}}
    tile.producer_store %dS, %p : !tile.ring<2, !tile.shared<128x64xbf16, swizzled>>, !tile.register_operand<128x64xbf16, 8>
    tile.producer_commit %dS : !tile.ring<2, !tile.shared<128x64xbf16, swizzled>>
    // Where it was aside, dS lies now.
    // expected-error @below {{'tile.convert' op reads or writes a stash in a slot where a tile lies now}}
    tile.convert %stash, %s : !tile.register_operand<128x64xbf16, 8>, !tile.frag<128x64, 8>
  } dq_mma {
    %ds = tile.consumer_wait %dS : !tile.ring<2, !tile.shared<128x64xbf16, swizzled>>
    tile.consumer_release %dS : !tile.ring<2, !tile.shared<128x64xbf16, swizzled>>
  }
}

// -----

tile.kernel @covered_in_else(%map: !tile.tensor_map<64xbf16>, %n: i32, %some: i1, %lo: i32, %hi: i32) target("sm_90a") grid(dense heads 1 keys)
    schedule(#tile.warp_specialized_backward<q_tile = 64, kv_tile = 128, warps = 8, ctas_per_sm = 1, single_loop = true, dq_columns = 64>) {
  %dS = tile.alloc "dS" : !tile.ring<2, !tile.shared<128x64xbf16, swizzled>>
  tile.roles registers(32, 208, 64) producer {
  } consumer {
    %p = tile.alloc "p" : !tile.register_operand<128x64xbf16, 8>
    %s = tile.alloc "s" : !tile.frag<128x64, 8>
    %stash = tile.stash %dS : !tile.ring<2, !tile.shared<128x64xbf16, swizzled>>, !tile.register_operand<128x64xbf16, 8>
    scf.if %some {
    } else {
      // expected-note @below {{which is stored there here}}
      tile.producer_store %dS, %p : !tile.ring<2, !tile.shared<128x64xbf16, swizzled>>, !tile.register_operand<128x64xbf16, 8>
      tile.producer_commit %dS : !tile.ring<2, !tile.shared<128x64xbf16, swizzled>>
    }
    // expected-error @below {{'tile.convert' op reads or writes a stash in a slot where a tile lies now}}
    tile.convert %stash, %s : !tile.register_operand<128x64xbf16, 8>, !tile.frag<128x64, 8>
  } dq_mma {
    %ds = tile.consumer_wait %dS : !tile.ring<2, !tile.shared<128x64xbf16, swizzled>>
    tile.consumer_release %dS : !tile.ring<2, !tile.shared<128x64xbf16, swizzled>>
  }
}
