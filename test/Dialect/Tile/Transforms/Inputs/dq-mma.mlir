// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The walk of a key tile over query tiles, for kernels whose dQ a reducer makes.
tile.kernel @keys(%dk: !tile.ptr<bf16>, %dk_row: i64, %row_statistics: !tile.ptr<f32>, %dq_accumulator: !tile.ptr<f32>, %pitch: i64, %n: i32,
                  %q_map: !tile.tensor_map<64xbf16, packed>, %k_map: !tile.tensor_map<128xbf16>, %blocks: i32, %queue: !tile.queue) target("sm_90a")
    grid(dense heads 1 keys) schedule(#tile.warp_specialized_backward<q_tile = 64, kv_tile = 128, warps = 8, ctas_per_sm = 1, single_loop = true, dq_columns = 64>) {
  %Q = tile.alloc "Q" : !tile.shared<64x128xbf16, swizzled>
  %K = tile.alloc "K" : !tile.shared<128x128xbf16, swizzled>
  %V = tile.alloc "V" : !tile.shared<128x128xbf16, swizzled>
  %dO = tile.alloc "dO" : !tile.shared<64x128xbf16, swizzled>
  %stats = tile.alloc "stats" : !tile.row_statistics<64>
  %s = tile.alloc "s" : !tile.frag<128x64, 8>
  %dK = tile.alloc "dK" : !tile.frag<128x128, 8>
  %dV = tile.alloc "dV" : !tile.frag<128x128, 8>
  %p = tile.alloc "p" : !tile.register_operand<128x64xbf16, 8>
  %dS = tile.alloc "dS" : !tile.ring<2, !tile.shared<128x64xbf16, swizzled>>
  %dQ = tile.alloc "dQ" : !tile.frag<128x64, 8>
  %staging = tile.alloc "staging" : !tile.staging<2, 32768>
  tile.persistent_loop %blocks, %queue {
  ^bb0(%block: i32):
    %k0 = arith.remui %block, %n : i32 loc("k0")
    %bound = arith.divui %block, %n : i32 loc("bound")
    %begin = arith.divui %k0, %n : i32 loc("begin")
    %end = arith.divui %n, %k0 : i32 loc("end")
    %tk = tile.copy_tma %K, %k_map at(%k0, %n, %n) : !tile.shared<128x128xbf16, swizzled>, !tile.tensor_map<128xbf16>
    %tv = tile.copy_tma %V, %k_map at(%k0, %n, %n) : !tile.shared<128x128xbf16, swizzled>, !tile.tensor_map<128xbf16>
    tile.clear %dK : !tile.frag<128x128, 8>
    tile.clear %dV : !tile.frag<128x128, 8>
    tile.wait %tk : !tile.token<copy>
    tile.wait %tv : !tile.token<copy>
    tile.kv_loop [%begin, %end] tests [[0]] carry() {
    ^bb0(%j: i32, %next: i32, %more: i1):
      %left = arith.subi %n, %j : i32
      %tq = tile.copy_tma %Q, %q_map at(%j, %n) rows(%left) : !tile.shared<64x128xbf16, swizzled>, !tile.tensor_map<64xbf16, packed>
      tile.wait %tq : !tile.token<copy>
      %ts = tile.mma_abt %s, %K, %Q {recomputed} : !tile.frag<128x64, 8>, !tile.shared<128x128xbf16, swizzled>, !tile.shared<64x128xbf16, swizzled>
      tile.wait %ts : !tile.token<product>
      %tt = tile.copy_row_statistics %stats, %row_statistics pitch(%pitch) : !tile.row_statistics<64>
      tile.wait %tt : !tile.token<copy>
      tile.apply_mask %s at(%k0, %j) transposed : !tile.frag<128x64, 8> {
      ^bb0(%k: i32, %q: i32):
        %seen = arith.cmpi slt, %k, %bound : i32
        tile.yield %seen : i1
      }
      tile.probabilities %s, %stats at(%k0, %j) scale 0.125 transposed : !tile.frag<128x64, 8>, !tile.row_statistics<64>
      tile.convert %p, %s {at_once} : !tile.register_operand<128x64xbf16, 8>, !tile.frag<128x64, 8>
      %to = tile.copy_tma %dO, %q_map at(%j, %n) rows(%left) : !tile.shared<64x128xbf16, swizzled>, !tile.tensor_map<64xbf16, packed>
      tile.wait %to : !tile.token<copy>
      %tp = tile.mma_abt %s, %V, %dO {recomputed} : !tile.frag<128x64, 8>, !tile.shared<128x128xbf16, swizzled>, !tile.shared<64x128xbf16, swizzled>
      %tdv = tile.mma_ab %dV, %p, %dO : !tile.frag<128x128, 8>, !tile.register_operand<128x64xbf16, 8>, !tile.shared<64x128xbf16, swizzled>
      tile.wait %tp : !tile.token<product>
      tile.grad_scores %s, %p, %stats transposed : !tile.frag<128x64, 8>, !tile.register_operand<128x64xbf16, 8>, !tile.row_statistics<64>
      tile.wait %tdv : !tile.token<product>
      tile.convert %p, %s {at_once} : !tile.register_operand<128x64xbf16, 8>, !tile.frag<128x64, 8>
      %dS_tile = tile.store_and_sync %dS, %p : !tile.ring<2, !tile.shared<128x64xbf16, swizzled>>, !tile.register_operand<128x64xbf16, 8>
      %tdq = tile.mma_atb %dQ, %dS_tile, %K : !tile.frag<128x64, 8>, !tile.shared<128x64xbf16, swizzled>, !tile.shared<128x128xbf16, swizzled>
      %tdk = tile.mma_ab %dK, %p, %Q : !tile.frag<128x128, 8>, !tile.register_operand<128x64xbf16, 8>, !tile.shared<64x128xbf16, swizzled>
      tile.wait %tdq : !tile.token<product>
      tile.add_global %dq_accumulator, %dQ left(%left) through(%staging : !tile.staging<2, 32768>) : !tile.frag<128x64, 8>
      tile.wait %tdk : !tile.token<product>
      tile.yield
    }
    tile.store %dk stride(%dk_row), %dK rows(%k0, %k0) dim 128 : !tile.ptr<bf16>, !tile.frag<128x128, 8>
    tile.store %dk stride(%dk_row), %dV rows(%k0, %k0) dim 128 : !tile.ptr<bf16>, !tile.frag<128x128, 8>
  }
}
