// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The walk of a key tile over query tiles, for kernels whose dQ a reducer makes.
tile.kernel @keys(%dk: !tile.ptr<bf16>, %dk_row: i64, %statistics: !tile.ptr<f32>, %dq_sum: !tile.ptr<f32>, %pitch: i64, %n: i32,
                  %q_map: !tile.map<64xbf16, packed>, %k_map: !tile.map<128xbf16>, %blocks: i32, %queue: !tile.queue) target("sm_90a")
    grid(dense heads 1 keys) schedule(#tile.warp_specialized_backward<q_tile = 64, kv_tile = 128, warps = 8, blocks = 1, single_loop = true, dq_columns = 64>) {
  %Q = tile.place "Q" : !tile.shared<64x128xbf16, swizzled>
  %K = tile.place "K" : !tile.shared<128x128xbf16, swizzled>
  %V = tile.place "V" : !tile.shared<128x128xbf16, swizzled>
  %dO = tile.place "dO" : !tile.shared<64x128xbf16, swizzled>
  %stats = tile.place "stats" : !tile.statistics<64>
  %s = tile.place "s" : !tile.frag<128x64, 8>
  %dK = tile.place "dK" : !tile.frag<128x128, 8>
  %dV = tile.place "dV" : !tile.frag<128x128, 8>
  %p = tile.place "p" : !tile.held<128x64xbf16, 8>
  %dS = tile.place "dS" : !tile.ring<2, !tile.shared<128x64xbf16, swizzled>>
  %dQ = tile.place "dQ" : !tile.frag<128x64, 8>
  %staging = tile.place "staging" : !tile.staging<2, 32768>
  tile.persist %blocks, %queue {
  ^bb0(%block: i32):
    %k0 = arith.remui %block, %n : i32 loc("k0")
    %bound = arith.divui %block, %n : i32 loc("bound")
    %begin = arith.divui %k0, %n : i32 loc("begin")
    %end = arith.divui %n, %k0 : i32 loc("end")
    %tk = tile.copy_box %K, %k_map at(%k0, %n, %n) : !tile.shared<128x128xbf16, swizzled>, !tile.map<128xbf16>
    %tv = tile.copy_box %V, %k_map at(%k0, %n, %n) : !tile.shared<128x128xbf16, swizzled>, !tile.map<128xbf16>
    tile.clear %dK : !tile.frag<128x128, 8>
    tile.clear %dV : !tile.frag<128x128, 8>
    tile.wait %tk : !tile.token<copy>
    tile.wait %tv : !tile.token<copy>
    tile.kv_loop [%begin, %end] tests [[0]] carry() {
    ^bb0(%j: i32, %next: i32, %more: i1):
      %left = arith.subi %n, %j : i32
      %tq = tile.copy_box %Q, %q_map at(%j, %n) rows(%left) : !tile.shared<64x128xbf16, swizzled>, !tile.map<64xbf16, packed>
      tile.wait %tq : !tile.token<copy>
      %ts = tile.mma_qk %s, %K, %Q {late} : !tile.frag<128x64, 8>, !tile.shared<128x128xbf16, swizzled>, !tile.shared<64x128xbf16, swizzled>
      tile.wait %ts : !tile.token<product>
      %tt = tile.copy_statistics %stats, %statistics pitch(%pitch) : !tile.statistics<64>
      tile.wait %tt : !tile.token<copy>
      tile.keep %s at(%k0, %j) turned : !tile.frag<128x64, 8> {
      ^bb0(%k: i32, %q: i32):
        %seen = arith.cmpi slt, %k, %bound : i32
        tile.yield %seen : i1
      }
      tile.probabilities %s, %stats at(%k0, %j) scale 0.125 turned : !tile.frag<128x64, 8>, !tile.statistics<64>
      tile.round %p, %s {at_once} : !tile.held<128x64xbf16, 8>, !tile.frag<128x64, 8>
      %to = tile.copy_box %dO, %q_map at(%j, %n) rows(%left) : !tile.shared<64x128xbf16, swizzled>, !tile.map<64xbf16, packed>
      tile.wait %to : !tile.token<copy>
      %tp = tile.mma_qk %s, %V, %dO {late} : !tile.frag<128x64, 8>, !tile.shared<128x128xbf16, swizzled>, !tile.shared<64x128xbf16, swizzled>
      %tdv = tile.mma_pv %dV, %p, %dO : !tile.frag<128x128, 8>, !tile.held<128x64xbf16, 8>, !tile.shared<64x128xbf16, swizzled>
      tile.wait %tp : !tile.token<product>
      tile.grad_scores %s, %p, %stats turned : !tile.frag<128x64, 8>, !tile.held<128x64xbf16, 8>, !tile.statistics<64>
      tile.wait %tdv : !tile.token<product>
      tile.round %p, %s {at_once} : !tile.held<128x64xbf16, 8>, !tile.frag<128x64, 8>
      %dS_tile = tile.share %dS, %p : !tile.ring<2, !tile.shared<128x64xbf16, swizzled>>, !tile.held<128x64xbf16, 8>
      %tdq = tile.mma_tn %dQ, %dS_tile, %K : !tile.frag<128x64, 8>, !tile.shared<128x64xbf16, swizzled>, !tile.shared<128x128xbf16, swizzled>
      %tdk = tile.mma_pv %dK, %p, %Q : !tile.frag<128x128, 8>, !tile.held<128x64xbf16, 8>, !tile.shared<64x128xbf16, swizzled>
      tile.wait %tdq : !tile.token<product>
      tile.add_sum %dq_sum, %dQ left(%left) through(%staging : !tile.staging<2, 32768>) : !tile.frag<128x64, 8>
      tile.wait %tdk : !tile.token<product>
      tile.yield
    }
    tile.store %dk stride(%dk_row), %dK rows(%k0, %k0) dim 128 : !tile.ptr<bf16>, !tile.frag<128x128, 8>
    tile.store %dk stride(%dk_row), %dV rows(%k0, %k0) dim 128 : !tile.ptr<bf16>, !tile.frag<128x128, 8>
  }
}
