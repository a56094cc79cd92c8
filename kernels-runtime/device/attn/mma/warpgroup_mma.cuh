// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Warpgroup matrix products: wgmma, 64 rows at a time, right operands from shared memory. They are asynchronous: their
// operands and results must not be touched until warpgroup_wait().
#pragma once
#include "attn/copy/swizzled.cuh"
#include "attn/mma/fragment.cuh"
#include "attn/ptx/wgmma.cuh"

namespace attn {

// Fences registers that a product reads or writes: the compiler assumes nothing about earlier contents and moves no
// access across it.
ATTN_INLINE void warpgroup_fence_operand(float &x) { asm volatile("" : "+f"(x)::"memory"); }
template <int R, int C, int W> ATTN_INLINE void warpgroup_fence_operand(Frag<R, C, W> &f) {
#pragma unroll
  for (int n = 0; n < f.Pieces; ++n)
#pragma unroll
    for (int i = 0; i < 4; ++i)
      warpgroup_fence_operand(f.v[0][n][i]);
}

// The k-steps of a product from Step on; all offsets are constants. The compiler tends to keep the sums of Q's
// descriptor and the offsets in registers across tiles, which is fine while there is room. Beyond a depth of 128, or
// with RecomputeDescriptors, the sums are recomputed at each use. (Four steps in one statement have not been measured
// for both at once, which gradients of wide heads use.)
template <bool Negate, bool RecomputeDescriptors, int Step, class T, int R, int N, int C, int Keys, int Pieces>
ATTN_INLINE void abt_steps(float (&s)[Pieces][4], unsigned long long q, unsigned long long k) {
  constexpr bool adds = RecomputeDescriptors || C > 128;
  constexpr int panel = Step / 4, within = Step % 4 * 2, at = panel * Swizzled<T, R, C>::PanelBytes / 16 + within,
                recomputed = adds ? at : 0;
  constexpr int steps = (C <= 128 || !RecomputeDescriptors) && Step + 4 <= C / 16 ? 4 : 1,
                k_at = panel * Swizzled<T, Keys, C>::PanelBytes / 16 + within;
  if constexpr (steps == 4)
    Wgmma<T, N>::template four_abt<Negate, recomputed, adds ? 0 : 2>(s, q + (at - recomputed), k + k_at, Step != 0);
  else
    Wgmma<T, N>::template abt<Negate, recomputed>(s, q + (at - recomputed), k + k_at, Step != 0);
  if constexpr (Step + steps < C / 16)
    abt_steps<Negate, RecomputeDescriptors, Step + steps, T, R, N, C, Keys>(s, q, k);
}
template <int Step, class T, int N, int C, int Pieces>
ATTN_INLINE void ab_steps(float (&acc)[Pieces][4], const unsigned (&p)[N / 16][4], unsigned long long v) {
  constexpr int steps = C > 64 && Step + 4 <= N / 16 ? 4 : 1; // at 64, gradients are 1 to 2 % slower with four
  if constexpr (steps == 4)
    Wgmma<T, C>::four_ab(acc, p + Step, v + Step * 128);
  else
    Wgmma<T, C>::ab(acc, p[Step], v + Step * 128);
  if constexpr (Step + steps < N / 16)
    ab_steps<Step + steps, T, N, C>(acc, p, v);
}

// s = Q K^T, or -Q K^T, for the warpgroup's 64 rows of Q, from address `rows` on, and the first N rows of K.
template <bool Negate, bool RecomputeDescriptors, class T, int C, int Rows, int R, int N, int W, int Keys>
ATTN_INLINE void mma_rows(Frag<R, N, W> &s, unsigned rows, const Swizzled<T, Keys, C> &K) {
  static_assert(R == 16 * W && W % 4 == 0 && N <= Keys);
  warpgroup_fence_operand(s);
  warpgroup_arrive();
  abt_steps<Negate, RecomputeDescriptors, 0, T, Rows, N, C, Keys>(s.v[0], make_descriptor(rows, 16),
                                                                  make_descriptor(K.address, 16));
  warpgroup_commit();
}
// If Q has fewer rows than the fragment, the memory behind it is multiplied, too; these results are not used.
template <bool Negate = false, bool RecomputeDescriptors = false, class T, int R, int N, int C, int W, int Rows,
          int Keys>
ATTN_INLINE void mma_abt(Frag<R, N, W> &s, const Swizzled<T, Rows, C> &Q, const Swizzled<T, Keys, C> &K) {
  static_assert(Rows > R - 64 && Rows <= R);
  mma_rows<Negate, RecomputeDescriptors, T, C, Rows>(s, Q.address + warp_index() / 4 * 64 * 128, K);
}

// The same for a warp-uniform address of the warpgroup's rows, so that descriptors are in uniform registers.
template <class T, int RowCount, int ColCount> struct WarpgroupRows {
  unsigned address;
};
template <class T, int R, int C> ATTN_INLINE WarpgroupRows<T, R, C> warpgroup_rows(const Swizzled<T, R, C> &tile) {
  return {unsigned(uniform(tile.address + threadIdx.x / 128 * 64 * 128))};
}
template <bool Negate = false, class T, int R, int N, int C, int W, int Keys>
ATTN_INLINE void mma_abt(Frag<R, N, W> &s, const WarpgroupRows<T, R, C> &Q, const Swizzled<T, Keys, C> &K) {
  mma_rows<Negate, false, T, C, R>(s, Q.address, K);
}

// The same for the rows of a tile from First on.
template <class T, int RowCount, int ColCount, int First> struct RowsFrom {
  unsigned address;
};
template <int First, class T, int R, int C>
ATTN_INLINE RowsFrom<T, R, C, First> rows_from(const Swizzled<T, R, C> &tile) {
  return {tile.address + First * 128};
}
template <bool Negate = false, bool RecomputeDescriptors = false, class T, int R, int N, int C, int W, int Rows,
          int First, int Keys>
ATTN_INLINE void mma_abt(Frag<R, N, W> &s, const RowsFrom<T, Rows, C, First> &Q, const Swizzled<T, Keys, C> &K) {
  static_assert(First % 64 == 0 && First < Rows);
  mma_rows<Negate, RecomputeDescriptors, T, C, Rows>(s, Q.address + warp_index() / 4 * 64 * 128, K);
}

// acc += P V, with the first N rows of V.
template <class T, int R, int N, int C, int W, int Keys>
ATTN_INLINE void mma_ab(Frag<R, C, W> &acc, const RegisterOperand<T, R, N, W> &p, const Swizzled<T, Keys, C> &V) {
  static_assert(N <= Keys);
  warpgroup_fence_operand(acc);
  warpgroup_arrive();
  ab_steps<0, T, N, C>(acc.v[0], p.v[0], make_descriptor(V.address, V.PanelBytes));
  warpgroup_commit();
}

// Waits until at most Later of the most recent products are still running; `f` is the result of an earlier one.
template <int Later, int R, int C, int W> ATTN_INLINE void warpgroup_wait(Frag<R, C, W> &f) {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(Later) : "memory");
  warpgroup_fence_operand(f);
}

} // namespace attn
