// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Warpgroup products A^T B: both operands are in shared memory, and the depth is their rows.
#pragma once
#include "attn/mma/warpgroup_mma.cuh"

namespace attn {

// The k-steps of a product from Step on; `more`: accumulates.
template <int Step, class T, int K, int N, int Pieces>
ATTN_INLINE void atb_steps(float (&acc)[Pieces][4], unsigned long long a, unsigned long long b, bool more = false) {
  constexpr int steps = Step + 4 <= K / 16 ? 4 : 1;
  if constexpr (steps == 4)
    Wgmma<T, N>::template four_atb<Step * 128>(acc, a, b, more);
  else
    Wgmma<T, N>::template atb<Step * 128>(acc, a, b, more);
  if constexpr (Step + steps < K / 16)
    atb_steps<Step + steps, T, K, N>(acc, a, b, true);
}
// acc = A^T B, one block of 64 rows: blocks are numbered by A's columns first, then by B's.
template <class T, int R, int C, int W, int K, int M, int N>
ATTN_INLINE void mma_atb_block(Frag<R, C, W> &acc, const Swizzled<T, K, M> &A, const Swizzled<T, K, N> &B, int block) {
  constexpr int blocks = M / 64;
  const int part = block / blocks;
  const unsigned long long a = make_descriptor(A.address + block % blocks * A.PanelBytes, A.PanelBytes);
  warpgroup_fence_operand(acc);
  warpgroup_arrive();
  if constexpr (C % 64 == 0 || 64 % C == 0) {
    const int column = part * C;
    atb_steps<0, T, K, C>(acc.v[0], a,
                          make_descriptor(B.address + column / 64 * B.PanelBytes + column % 64 * 2, B.PanelBytes));
  } else {
    // Half of 192 columns: the first or the last panel, then half of the middle one (DqColumns).
    static_assert(C == 96);
    auto &panel = *reinterpret_cast<float (*)[8][4]>(&acc.v[0][0]);
    auto &half = *reinterpret_cast<float (*)[4][4]>(&acc.v[0][8]);
    atb_steps<0, T, K, 64>(panel, a, make_descriptor(B.address + part * 2 * B.PanelBytes, B.PanelBytes));
    atb_steps<0, T, K, 32>(half, a, make_descriptor(B.address + B.PanelBytes + part * 64, B.PanelBytes));
  }
  warpgroup_commit();
}
// One block for each warpgroup, or block At by a single warpgroup.
template <class T, int R, int C, int W, int K, int M, int N>
ATTN_INLINE void mma_atb(Frag<R, C, W> &acc, const Swizzled<T, K, M> &A, const Swizzled<T, K, N> &B) {
  mma_atb_block(acc, A, B, warp_index() / 4);
}
template <int At, class T, int C, int K, int M, int N>
ATTN_INLINE void mma_atb(Frag<64, C, 4> &acc, const Swizzled<T, K, M> &A, const Swizzled<T, K, N> &B) {
  mma_atb_block(acc, A, B, At);
}

} // namespace attn
