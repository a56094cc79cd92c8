// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What `tile-verify-async` reports of tiles that are passed, put and published.
//
// RUN: attn-opt %s -tile-verify-async -split-input-file -verify-diagnostics

tile.kernel @whole(%map: !tile.map<64xbf16>, %n: i32, %some: i1, %lo: i32, %hi: i32) target("sm_90a") grid(dense heads 1 keys)
    schedule(#tile.warp_specialized_backward<q_tile = 64, kv_tile = 128, warps = 8, blocks = 1, single_loop = true, dq_columns = 64>) {
  %Q = tile.place "Q" : !tile.ring<2, !tile.shared<64x128xbf16, swizzled>>
  %dS = tile.place "dS" : !tile.ring<2, !tile.shared<128x64xbf16, swizzled>>
  tile.roles registers(32, 208, 64) producer {
    tile.fill %Q, %map at(%n, %n, %n) : !tile.ring<2, !tile.shared<64x128xbf16, swizzled>>, !tile.map<64xbf16>
  } consumer {
    %p = tile.place "p" : !tile.held<128x64xbf16, 8>
    %s = tile.place "s" : !tile.frag<128x64, 8>
    %dK = tile.place "dK" : !tile.frag<128x128, 8>
    // All is well: nothing is waited for, a tile that may not be there is taken, what was put is published, a passed tile is given back.
    %none = tile.no_product
    tile.wait %none : !tile.token<product>
    %q = tile.take %Q : !tile.ring<2, !tile.shared<64x128xbf16, swizzled>>
    tile.put %dS, %p : !tile.ring<2, !tile.shared<128x64xbf16, swizzled>>, !tile.held<128x64xbf16, 8>
    %passed = tile.pass %Q : !tile.ring<2, !tile.shared<64x128xbf16, swizzled>>
    %t = tile.mma_pv %dK, %p, %passed : !tile.frag<128x128, 8>, !tile.held<128x64xbf16, 8>, !tile.shared<64x128xbf16, swizzled>
    tile.publish %dS : !tile.ring<2, !tile.shared<128x64xbf16, swizzled>>
    tile.wait %t : !tile.token<product>
    tile.release %Q passed : !tile.ring<2, !tile.shared<64x128xbf16, swizzled>>
  } reducer {
    %ds = tile.take %dS : !tile.ring<2, !tile.shared<128x64xbf16, swizzled>>
    tile.release %dS : !tile.ring<2, !tile.shared<128x64xbf16, swizzled>>
  }
}

// -----

tile.kernel @not_passed(%map: !tile.map<64xbf16>, %n: i32, %some: i1, %lo: i32, %hi: i32) target("sm_90a") grid(dense heads 1 keys)
    schedule(#tile.warp_specialized_backward<q_tile = 64, kv_tile = 128, warps = 8, blocks = 1, single_loop = true, dq_columns = 64>) {
  %Q = tile.place "Q" : !tile.ring<2, !tile.shared<64x128xbf16, swizzled>>
  %dS = tile.place "dS" : !tile.ring<2, !tile.shared<128x64xbf16, swizzled>>
  tile.roles registers(32, 208, 64) producer {
    tile.fill %Q, %map at(%n, %n, %n) : !tile.ring<2, !tile.shared<64x128xbf16, swizzled>>, !tile.map<64xbf16>
  } consumer {
    %p = tile.place "p" : !tile.held<128x64xbf16, 8>
    %s = tile.place "s" : !tile.frag<128x64, 8>
    // expected-error @below {{'tile.pass' op passes a tile of a ring from which nothing is taken}}
    %passed = tile.pass %Q : !tile.ring<2, !tile.shared<64x128xbf16, swizzled>>
    %q = tile.take %Q : !tile.ring<2, !tile.shared<64x128xbf16, swizzled>>
  } reducer {
    %ds = tile.take %dS : !tile.ring<2, !tile.shared<128x64xbf16, swizzled>>
    tile.release %dS : !tile.ring<2, !tile.shared<128x64xbf16, swizzled>>
  }
}

// -----

tile.kernel @old_name(%map: !tile.map<64xbf16>, %n: i32, %some: i1, %lo: i32, %hi: i32) target("sm_90a") grid(dense heads 1 keys)
    schedule(#tile.warp_specialized_backward<q_tile = 64, kv_tile = 128, warps = 8, blocks = 1, single_loop = true, dq_columns = 64>) {
  %Q = tile.place "Q" : !tile.ring<2, !tile.shared<64x128xbf16, swizzled>>
  %dS = tile.place "dS" : !tile.ring<2, !tile.shared<128x64xbf16, swizzled>>
  tile.roles registers(32, 208, 64) producer {
    tile.fill %Q, %map at(%n, %n, %n) : !tile.ring<2, !tile.shared<64x128xbf16, swizzled>>, !tile.map<64xbf16>
  } consumer {
    %p = tile.place "p" : !tile.held<128x64xbf16, 8>
    %s = tile.place "s" : !tile.frag<128x64, 8>
    %dK = tile.place "dK" : !tile.frag<128x128, 8>
    %q = tile.take %Q : !tile.ring<2, !tile.shared<64x128xbf16, swizzled>>
    %passed = tile.pass %Q : !tile.ring<2, !tile.shared<64x128xbf16, swizzled>>
    // What was passed has another name.
    // expected-error @below {{'tile.mma_pv' op reads a tile of a ring that it has released}}
    %t = tile.mma_pv %dK, %p, %q : !tile.frag<128x128, 8>, !tile.held<128x64xbf16, 8>, !tile.shared<64x128xbf16, swizzled>
    tile.wait %t : !tile.token<product>
    tile.release %Q passed : !tile.ring<2, !tile.shared<64x128xbf16, swizzled>>
  } reducer {
    %ds = tile.take %dS : !tile.ring<2, !tile.shared<128x64xbf16, swizzled>>
    tile.release %dS : !tile.ring<2, !tile.shared<128x64xbf16, swizzled>>
  }
}

// -----

tile.kernel @twice_passed(%map: !tile.map<64xbf16>, %n: i32, %some: i1, %lo: i32, %hi: i32) target("sm_90a") grid(dense heads 1 keys)
    schedule(#tile.warp_specialized_backward<q_tile = 64, kv_tile = 128, warps = 8, blocks = 1, single_loop = true, dq_columns = 64>) {
  %Q = tile.place "Q" : !tile.ring<2, !tile.shared<64x128xbf16, swizzled>>
  %dS = tile.place "dS" : !tile.ring<2, !tile.shared<128x64xbf16, swizzled>>
  tile.roles registers(32, 208, 64) producer {
    tile.fill %Q, %map at(%n, %n, %n) : !tile.ring<2, !tile.shared<64x128xbf16, swizzled>>, !tile.map<64xbf16>
  } consumer {
    %p = tile.place "p" : !tile.held<128x64xbf16, 8>
    %s = tile.place "s" : !tile.frag<128x64, 8>
    %q = tile.take %Q : !tile.ring<2, !tile.shared<64x128xbf16, swizzled>>
    // expected-note @below {{of which this one is not released}}
    %one = tile.pass %Q : !tile.ring<2, !tile.shared<64x128xbf16, swizzled>>
    %r = tile.take %Q : !tile.ring<2, !tile.shared<64x128xbf16, swizzled>>
    // expected-error @below {{'tile.pass' op passes a tile of `Q`}}
    %two = tile.pass %Q : !tile.ring<2, !tile.shared<64x128xbf16, swizzled>>
  } reducer {
    %ds = tile.take %dS : !tile.ring<2, !tile.shared<128x64xbf16, swizzled>>
    tile.release %dS : !tile.ring<2, !tile.shared<128x64xbf16, swizzled>>
  }
}

// -----

tile.kernel @never_released(%map: !tile.map<64xbf16>, %n: i32, %some: i1, %lo: i32, %hi: i32) target("sm_90a") grid(dense heads 1 keys)
    schedule(#tile.warp_specialized_backward<q_tile = 64, kv_tile = 128, warps = 8, blocks = 1, single_loop = true, dq_columns = 64>) {
  %Q = tile.place "Q" : !tile.ring<2, !tile.shared<64x128xbf16, swizzled>>
  %dS = tile.place "dS" : !tile.ring<2, !tile.shared<128x64xbf16, swizzled>>
  tile.roles registers(32, 208, 64) producer {
    tile.fill %Q, %map at(%n, %n, %n) : !tile.ring<2, !tile.shared<64x128xbf16, swizzled>>, !tile.map<64xbf16>
  } consumer {
    %p = tile.place "p" : !tile.held<128x64xbf16, 8>
    %s = tile.place "s" : !tile.frag<128x64, 8>
    %q = tile.take %Q : !tile.ring<2, !tile.shared<64x128xbf16, swizzled>>
    // expected-error @below {{'tile.pass' op is never followed by a release}}
    %passed = tile.pass %Q : !tile.ring<2, !tile.shared<64x128xbf16, swizzled>>
  } reducer {
    %ds = tile.take %dS : !tile.ring<2, !tile.shared<128x64xbf16, swizzled>>
    tile.release %dS : !tile.ring<2, !tile.shared<128x64xbf16, swizzled>>
  }
}

// -----

tile.kernel @nothing_passed(%map: !tile.map<64xbf16>, %n: i32, %some: i1, %lo: i32, %hi: i32) target("sm_90a") grid(dense heads 1 keys)
    schedule(#tile.warp_specialized_backward<q_tile = 64, kv_tile = 128, warps = 8, blocks = 1, single_loop = true, dq_columns = 64>) {
  %Q = tile.place "Q" : !tile.ring<2, !tile.shared<64x128xbf16, swizzled>>
  %dS = tile.place "dS" : !tile.ring<2, !tile.shared<128x64xbf16, swizzled>>
  tile.roles registers(32, 208, 64) producer {
    tile.fill %Q, %map at(%n, %n, %n) : !tile.ring<2, !tile.shared<64x128xbf16, swizzled>>, !tile.map<64xbf16>
  } consumer {
    %p = tile.place "p" : !tile.held<128x64xbf16, 8>
    %s = tile.place "s" : !tile.frag<128x64, 8>
    %q = tile.take %Q : !tile.ring<2, !tile.shared<64x128xbf16, swizzled>>
    // expected-error @below {{'tile.release' op releases what was passed of a ring of which nothing was}}
    tile.release %Q passed : !tile.ring<2, !tile.shared<64x128xbf16, swizzled>>
  } reducer {
    %ds = tile.take %dS : !tile.ring<2, !tile.shared<128x64xbf16, swizzled>>
    tile.release %dS : !tile.ring<2, !tile.shared<128x64xbf16, swizzled>>
  }
}

// -----

tile.kernel @in_flight(%map: !tile.map<64xbf16>, %n: i32, %some: i1, %lo: i32, %hi: i32) target("sm_90a") grid(dense heads 1 keys)
    schedule(#tile.warp_specialized_backward<q_tile = 64, kv_tile = 128, warps = 8, blocks = 1, single_loop = true, dq_columns = 64>) {
  %Q = tile.place "Q" : !tile.ring<2, !tile.shared<64x128xbf16, swizzled>>
  %dS = tile.place "dS" : !tile.ring<2, !tile.shared<128x64xbf16, swizzled>>
  tile.roles registers(32, 208, 64) producer {
    tile.fill %Q, %map at(%n, %n, %n) : !tile.ring<2, !tile.shared<64x128xbf16, swizzled>>, !tile.map<64xbf16>
  } consumer {
    %p = tile.place "p" : !tile.held<128x64xbf16, 8>
    %s = tile.place "s" : !tile.frag<128x64, 8>
    %dK = tile.place "dK" : !tile.frag<128x128, 8>
    %q = tile.take %Q : !tile.ring<2, !tile.shared<64x128xbf16, swizzled>>
    %passed = tile.pass %Q : !tile.ring<2, !tile.shared<64x128xbf16, swizzled>>
    // expected-note @below {{while this is in flight and reads it}}
    %t = tile.mma_pv %dK, %p, %passed : !tile.frag<128x128, 8>, !tile.held<128x64xbf16, 8>, !tile.shared<64x128xbf16, swizzled>
    // expected-error @below {{'tile.release' op releases `Q`}}
    tile.release %Q passed : !tile.ring<2, !tile.shared<64x128xbf16, swizzled>>
    tile.wait %t : !tile.token<product>
  } reducer {
    %ds = tile.take %dS : !tile.ring<2, !tile.shared<128x64xbf16, swizzled>>
    tile.release %dS : !tile.ring<2, !tile.shared<128x64xbf16, swizzled>>
  }
}

// -----

tile.kernel @stand_in(%map: !tile.map<64xbf16>, %n: i32, %some: i1, %lo: i32, %hi: i32) target("sm_90a") grid(dense heads 1 keys)
    schedule(#tile.warp_specialized_backward<q_tile = 64, kv_tile = 128, warps = 8, blocks = 1, single_loop = true, dq_columns = 64>) {
  %Q = tile.place "Q" : !tile.ring<2, !tile.shared<64x128xbf16, swizzled>>
  %dS = tile.place "dS" : !tile.ring<2, !tile.shared<128x64xbf16, swizzled>>
  tile.roles registers(32, 208, 64) producer {
    tile.fill %Q, %map at(%n, %n, %n) : !tile.ring<2, !tile.shared<64x128xbf16, swizzled>>, !tile.map<64xbf16>
  } consumer {
    %p = tile.place "p" : !tile.held<128x64xbf16, 8>
    %s = tile.place "s" : !tile.frag<128x64, 8>
    %dK = tile.place "dK" : !tile.frag<128x128, 8>
    %q = tile.take %Q : !tile.ring<2, !tile.shared<64x128xbf16, swizzled>>
    %passed = tile.pass %Q : !tile.ring<2, !tile.shared<64x128xbf16, swizzled>>
    // A product that reads the passed tile if there is no next one.
    %next = tile.take %Q if(%some) else(%passed : !tile.shared<64x128xbf16, swizzled>) : !tile.ring<2, !tile.shared<64x128xbf16, swizzled>>
    // expected-note @below {{while this is in flight and reads it}}
    %t = tile.mma_pv %dK, %p, %next : !tile.frag<128x128, 8>, !tile.held<128x64xbf16, 8>, !tile.shared<64x128xbf16, swizzled>
    // expected-error @below {{'tile.release' op releases `Q`}}
    tile.release %Q passed : !tile.ring<2, !tile.shared<64x128xbf16, swizzled>>
    tile.wait %t : !tile.token<product>
  } reducer {
    %ds = tile.take %dS : !tile.ring<2, !tile.shared<128x64xbf16, swizzled>>
    tile.release %dS : !tile.ring<2, !tile.shared<128x64xbf16, swizzled>>
  }
}

// -----

tile.kernel @one_branch(%map: !tile.map<64xbf16>, %n: i32, %some: i1, %lo: i32, %hi: i32) target("sm_90a") grid(dense heads 1 keys)
    schedule(#tile.warp_specialized_backward<q_tile = 64, kv_tile = 128, warps = 8, blocks = 1, single_loop = true, dq_columns = 64>) {
  %Q = tile.place "Q" : !tile.ring<2, !tile.shared<64x128xbf16, swizzled>>
  %dS = tile.place "dS" : !tile.ring<2, !tile.shared<128x64xbf16, swizzled>>
  tile.roles registers(32, 208, 64) producer {
    tile.fill %Q, %map at(%n, %n, %n) : !tile.ring<2, !tile.shared<64x128xbf16, swizzled>>, !tile.map<64xbf16>
  } consumer {
    %p = tile.place "p" : !tile.held<128x64xbf16, 8>
    %s = tile.place "s" : !tile.frag<128x64, 8>
    %q = tile.take %Q : !tile.ring<2, !tile.shared<64x128xbf16, swizzled>>
    %passed = tile.pass %Q : !tile.ring<2, !tile.shared<64x128xbf16, swizzled>>
    // expected-error @below {{'scf.if' op takes from a ring or releases it in one branch and not in the other}}
    scf.if %some {
      tile.release %Q passed : !tile.ring<2, !tile.shared<64x128xbf16, swizzled>>
    }
  } reducer {
    %ds = tile.take %dS : !tile.ring<2, !tile.shared<128x64xbf16, swizzled>>
    tile.release %dS : !tile.ring<2, !tile.shared<128x64xbf16, swizzled>>
  }
}

// -----

tile.kernel @twice_put(%map: !tile.map<64xbf16>, %n: i32, %some: i1, %lo: i32, %hi: i32) target("sm_90a") grid(dense heads 1 keys)
    schedule(#tile.warp_specialized_backward<q_tile = 64, kv_tile = 128, warps = 8, blocks = 1, single_loop = true, dq_columns = 64>) {
  %dS = tile.place "dS" : !tile.ring<2, !tile.shared<128x64xbf16, swizzled>>
  tile.roles registers(32, 208, 64) producer {
  } consumer {
    %p = tile.place "p" : !tile.held<128x64xbf16, 8>
    %s = tile.place "s" : !tile.frag<128x64, 8>
    // expected-note @below {{of which this one is not published}}
    tile.put %dS, %p : !tile.ring<2, !tile.shared<128x64xbf16, swizzled>>, !tile.held<128x64xbf16, 8>
    // expected-error @below {{'tile.put' op puts a tile into `dS`}}
    tile.put %dS, %p : !tile.ring<2, !tile.shared<128x64xbf16, swizzled>>, !tile.held<128x64xbf16, 8>
    tile.publish %dS : !tile.ring<2, !tile.shared<128x64xbf16, swizzled>>
  } reducer {
    %ds = tile.take %dS : !tile.ring<2, !tile.shared<128x64xbf16, swizzled>>
    tile.release %dS : !tile.ring<2, !tile.shared<128x64xbf16, swizzled>>
  }
}

// -----

tile.kernel @not_published(%map: !tile.map<64xbf16>, %n: i32, %some: i1, %lo: i32, %hi: i32) target("sm_90a") grid(dense heads 1 keys)
    schedule(#tile.warp_specialized_backward<q_tile = 64, kv_tile = 128, warps = 8, blocks = 1, single_loop = true, dq_columns = 64>) {
  %dS = tile.place "dS" : !tile.ring<2, !tile.shared<128x64xbf16, swizzled>>
  tile.roles registers(32, 208, 64) producer {
  } consumer {
    %p = tile.place "p" : !tile.held<128x64xbf16, 8>
    %s = tile.place "s" : !tile.frag<128x64, 8>
    // expected-error @below {{'tile.put' op is never published}}
    tile.put %dS, %p : !tile.ring<2, !tile.shared<128x64xbf16, swizzled>>, !tile.held<128x64xbf16, 8>
  } reducer {
    %ds = tile.take %dS : !tile.ring<2, !tile.shared<128x64xbf16, swizzled>>
    tile.release %dS : !tile.ring<2, !tile.shared<128x64xbf16, swizzled>>
  }
}

// -----

tile.kernel @not_put(%map: !tile.map<64xbf16>, %n: i32, %some: i1, %lo: i32, %hi: i32) target("sm_90a") grid(dense heads 1 keys)
    schedule(#tile.warp_specialized_backward<q_tile = 64, kv_tile = 128, warps = 8, blocks = 1, single_loop = true, dq_columns = 64>) {
  %dS = tile.place "dS" : !tile.ring<2, !tile.shared<128x64xbf16, swizzled>>
  tile.roles registers(32, 208, 64) producer {
  } consumer {
    %p = tile.place "p" : !tile.held<128x64xbf16, 8>
    %s = tile.place "s" : !tile.frag<128x64, 8>
    // expected-error @below {{'tile.publish' op publishes a ring into which nothing was put}}
    tile.publish %dS : !tile.ring<2, !tile.shared<128x64xbf16, swizzled>>
    tile.put %dS, %p : !tile.ring<2, !tile.shared<128x64xbf16, swizzled>>, !tile.held<128x64xbf16, 8>
  } reducer {
    %ds = tile.take %dS : !tile.ring<2, !tile.shared<128x64xbf16, swizzled>>
    tile.release %dS : !tile.ring<2, !tile.shared<128x64xbf16, swizzled>>
  }
}

// -----

tile.kernel @not_rounded(%map: !tile.map<64xbf16>, %n: i32, %some: i1, %lo: i32, %hi: i32) target("sm_90a") grid(dense heads 1 keys)
    schedule(#tile.warp_specialized_backward<q_tile = 64, kv_tile = 128, warps = 8, blocks = 1, single_loop = true, dq_columns = 64>) {
  %Q = tile.place "Q" : !tile.ring<2, !tile.shared<64x128xbf16, swizzled>>
  %K = tile.place "K" : !tile.shared<128x128xbf16, swizzled>
  tile.roles registers(32, 208, 64) producer {
    tile.fill %Q, %map at(%n, %n, %n) : !tile.ring<2, !tile.shared<64x128xbf16, swizzled>>, !tile.map<64xbf16>
  } consumer {
    %p = tile.place "p" : !tile.held<128x64xbf16, 8>
    %s = tile.place "s" : !tile.frag<128x64, 8>
    %dK = tile.place "dK" : !tile.frag<128x128, 8>
    %q = tile.take %Q : !tile.ring<2, !tile.shared<64x128xbf16, swizzled>>
    // expected-note @below {{while this is in flight into it}}
    %t = tile.mma_qk %s, %K, %q : !tile.frag<128x64, 8>, !tile.shared<128x128xbf16, swizzled>, !tile.shared<64x128xbf16, swizzled>
    // Scores are rounded before they are there.
    // expected-error @below {{'tile.round' op reads `s`}}
    tile.round %p, %s {at_once} : !tile.held<128x64xbf16, 8>, !tile.frag<128x64, 8>
    tile.wait %t : !tile.token<product>
    tile.release %Q : !tile.ring<2, !tile.shared<64x128xbf16, swizzled>>
  } reducer {
  }
}

// -----

tile.kernel @covered(%map: !tile.map<64xbf16>, %n: i32, %some: i1, %lo: i32, %hi: i32) target("sm_90a") grid(dense heads 1 keys)
    schedule(#tile.warp_specialized_backward<q_tile = 64, kv_tile = 128, warps = 8, blocks = 1, single_loop = true, dq_columns = 64>) {
  %dS = tile.place "dS" : !tile.ring<2, !tile.shared<128x64xbf16, swizzled>>
  tile.roles registers(32, 208, 64) producer {
  } consumer {
    %p = tile.place "p" : !tile.held<128x64xbf16, 8>
    %s = tile.place "s" : !tile.frag<128x64, 8>
    %aside = tile.aside %dS : !tile.ring<2, !tile.shared<128x64xbf16, swizzled>>, !tile.held<128x64xbf16, 8>
    // expected-note @below {{which was put there here}}
    tile.put %dS, %p : !tile.ring<2, !tile.shared<128x64xbf16, swizzled>>, !tile.held<128x64xbf16, 8>
    tile.publish %dS : !tile.ring<2, !tile.shared<128x64xbf16, swizzled>>
    // Where it was aside, dS lies now.
    // expected-error @below {{'tile.round' op reads or writes what was aside in a slot where a tile lies now}}
    tile.round %aside, %s : !tile.held<128x64xbf16, 8>, !tile.frag<128x64, 8>
  } reducer {
    %ds = tile.take %dS : !tile.ring<2, !tile.shared<128x64xbf16, swizzled>>
    tile.release %dS : !tile.ring<2, !tile.shared<128x64xbf16, swizzled>>
  }
}
