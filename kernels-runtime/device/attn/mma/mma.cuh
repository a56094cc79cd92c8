// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Matrix products on fragments: mma.m16n8k16, operands from shared memory by ldmatrix.
//
// Each right operand read from shared memory serves all row blocks of the warp. With two blocks (32 rows a warp),
// shared memory traffic per product halves; that, not the tensor core rate, decides between 16 and 32 rows.
#pragma once
#include "attn/mma/fragment.cuh"
#include "attn/ptx/mma.cuh"

namespace attn {

// Loads this warp's rows of Q into registers, once a tile, where there is room.
template <class T, int R, int C, int P, int W>
ATTN_INLINE void load_operand(RegisterOperand<T, R, C, W> &q, const Smem<T, R, C, P> &Q) {
  const int lane = lane_index();
  const unsigned from = Q.at(warp_index() * q.Blocks * 16 + lane % 16, lane / 16 * 8);
#pragma unroll
  for (int m = 0; m < q.Blocks; ++m)
#pragma unroll
    for (int k = 0; k < C / 16; ++k)
      load_matrices(q.v[m][k], from + (m * 16 * P + k * 16) * 2);
}

// s = Q K^T. Rows of K are keys, which is the "column major" right operand without a transpose. Q may lack the rows of
// the last warps: other rows are read in their place, and these results are not used.
template <class T, int R, int N, int RQ, int C, int PQ, int PK, int W>
ATTN_INLINE void mma_abt(Frag<R, N, W> &s, const Smem<T, RQ, C, PQ> &Q, const Smem<T, N, C, PK> &K) {
  static_assert(RQ == R || (RQ < R && R == 16 * W));
  const int lane = lane_index(), q_row = warp_index() * s.Blocks * 16 + lane % 16;
  const unsigned q_from = Q.at(RQ == R ? q_row : min(q_row, RQ - 1), lane / 16 * 8);
  const unsigned k_from = K.at(lane / 16 * 8 + lane % 8, lane / 8 % 2 * 8);
  clear(s);
#pragma unroll
  for (int k = 0; k < C; k += 16) {
    unsigned a[R / W / 16][4];
#pragma unroll
    for (int m = 0; m < s.Blocks; ++m)
      load_matrices(a[m], q_from + (m * 16 * PQ + k) * 2);
#pragma unroll
    for (int n = 0; n + 8 < N; n += 16) {
      unsigned b[4];
      load_matrices(b, k_from + (n * PK + k) * 2);
#pragma unroll
      for (int m = 0; m < s.Blocks; ++m) {
        mma<T>(s.v[m][n / 8], a[m], b[0], b[1]);
        mma<T>(s.v[m][n / 8 + 1], a[m], b[2], b[3]);
      }
    }
    if constexpr (N % 16 != 0) {
      unsigned b[2];
      load_matrices(b, k_from + ((N - 8) * PK + k) * 2);
#pragma unroll
      for (int m = 0; m < s.Blocks; ++m)
        mma<T>(s.v[m][s.Pieces - 1], a[m], b[0], b[1]);
    }
  }
}
template <class T, int R, int N, int C, int PK, int W>
ATTN_INLINE void mma_abt(Frag<R, N, W> &s, const RegisterOperand<T, R, C, W> &q, const Smem<T, N, C, PK> &K) {
  const int lane = lane_index();
  const unsigned k_from = K.at(lane / 16 * 8 + lane % 8, lane / 8 % 2 * 8);
  clear(s);
#pragma unroll
  for (int k = 0; k < C; k += 16)
#pragma unroll
    for (int n = 0; n < N; n += 16) {
      unsigned b[4];
      load_matrices(b, k_from + (n * PK + k) * 2);
#pragma unroll
      for (int m = 0; m < s.Blocks; ++m) {
        mma<T>(s.v[m][n / 8], q.v[m][k / 16], b[0], b[1]);
        mma<T>(s.v[m][n / 8 + 1], q.v[m][k / 16], b[2], b[3]);
      }
    }
}

// acc += P V for one depth step: keys k to k + 15, or the last eight.
template <class T, int R, int N, int C, int P, int W>
ATTN_INLINE void mma_depth(Frag<R, C, W> &acc, const unsigned (&p)[R / W / 16][4], const Smem<T, N, C, P> &V, int k) {
  if (N % 16 != 0 && k + 16 > N) {
    const unsigned v_from = V.at(lane_index() % 8, lane_index() / 8 % 2 * 8);
#pragma unroll
    for (int n = 0; n < C; n += 16) {
      unsigned b[2];
      load_matrices_transposed(b, v_from + (k * P + n) * 2);
#pragma unroll
      for (int m = 0; m < acc.Blocks; ++m) {
        mma<T>(acc.v[m][n / 8], p[m], b[0]);
        mma<T>(acc.v[m][n / 8 + 1], p[m], b[1]);
      }
    }
    return;
  }
  const unsigned v_from = V.at(lane_index() % 16, lane_index() / 16 * 8);
#pragma unroll
  for (int n = 0; n < C; n += 16) {
    unsigned b[4];
    load_matrices_transposed(b, v_from + (k * P + n) * 2);
#pragma unroll
    for (int m = 0; m < acc.Blocks; ++m) {
      mma<T>(acc.v[m][n / 8], p[m], b[0], b[1]);
      mma<T>(acc.v[m][n / 8 + 1], p[m], b[2], b[3]);
    }
  }
}

// acc += P V. There is no barrier and no branch between online_softmax() and this product: ptxas interleaves the
// exponentials of later keys with the products of earlier ones, which is all the overlap a warp needs.
template <class T, int R, int N, int C, int P, int W>
ATTN_INLINE void mma_ab(Frag<R, C, W> &acc, const Frag<R, N, W> &s, const Smem<T, N, C, P> &V) {
#pragma unroll
  for (int k = 0; k < N; k += 16) {
    unsigned p[R / W / 16][4];
#pragma unroll
    for (int m = 0; m < s.Blocks; ++m)
      pack_depth<T>(p[m], s, m, k);
    mma_depth(acc, p, V, k);
  }
}

} // namespace attn
