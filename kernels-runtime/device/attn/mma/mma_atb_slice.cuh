// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Products A^T B with 64 result rows for several pairs of tiles. The columns of all results are cut into slices of 64
// or 128, which are numbered through the pairs; each warpgroup computes a slice.
#pragma once
#include "attn/epilogue/store.cuh"
#include "attn/mma/warpgroup_mma_atb.cuh"

namespace attn {

// Finds the tile addresses of a slice among pairs A, B, A, B, ...
template <int N> ATTN_INLINE void find_pair(unsigned (&)[2], int /*slice*/) {}
template <int N, class A, class B, class... More>
ATTN_INLINE void find_pair(unsigned (&at)[2], int slice, const A &a, const B &b, const More &...more) {
  constexpr int Panels = N / 64;
  static_assert(A::Rows == B::Rows && A::Panels == 1 && B::Panels % Panels == 0);
  if (slice >= 0)
    at[0] = a.address, at[1] = b.address + slice * Panels * B::PanelBytes;
  find_pair<N>(at, slice - B::Panels / Panels, more...);
}
// The depth blocks [first_block, end_block), of 64 rows each, the last one of the tile with the remainder.
template <int Block, class A, int N>
ATTN_INLINE void atb_blocks(Frag<64, N, 4> &acc, int first_block, int end_block, unsigned long long a,
                            unsigned long long b) {
  if (first_block <= Block && Block < end_block)
    atb_steps<Block * 4, typename A::T, min(Block * 64 + 64, A::Rows), N>(acc.v[0], a, b, true);
  if constexpr (Block * 64 + 64 < A::Rows)
    atb_blocks<Block + 1, A>(acc, first_block, end_block, a, b);
}
template <int N, class A, class... More>
ATTN_INLINE void mma_atb_slice(Frag<64, N, 4> &acc, int slice, int first_block, int end_block, const A &a,
                               const More &...more) {
  unsigned at[2];
  find_pair<N>(at, slice, a, more...);
  // All blocks accumulate: if the first one overwrote acc, ptxas would consider its registers live before it.
  clear(acc);
  warpgroup_fence_operand(acc);
  warpgroup_arrive();
  atb_blocks<0, A>(acc, first_block, end_block, make_descriptor(at[0], A::PanelBytes),
                   make_descriptor(at[1], A::PanelBytes));
  warpgroup_commit();
}

// Destination of the rows of a product with Dim columns, and their factor.
template <int Columns, class T> struct Result {
  static constexpr int Dim = Columns;
  T *at;
  long long stride;
  float factor;
};
template <int Dim, class T> ATTN_INLINE Result<Dim, T> result(T *at, long long stride, float factor) {
  return {at, stride, factor};
}
template <int N, class T> struct ResultSlice : Result<N, T> {
  int columns; // those of the result from the slice on
};
template <int N, class T> ATTN_INLINE void find_result(ResultSlice<N, T> &, int /*slice*/) {}
template <int N, class T, class R, class... More>
ATTN_INLINE void find_result(ResultSlice<N, T> &found, int slice, const R &result, const More &...more) {
  if (slice >= 0)
    found.at = result.at + slice * N, found.stride = result.stride, found.factor = result.factor,
    found.columns = R::Dim - slice * N;
  find_result(found, slice - (R::Dim + N - 1) / N, more...);
}
// Stores rows [0, rows) rounded and zeros in rows [rows, write_rows).
template <int N, int Dim, class T, class... More>
ATTN_INLINE void store_slice(const Frag<64, N, 4> &acc, int slice, int rows, int write_rows,
                             const Result<Dim, T> &first, const More &...more) {
  ResultSlice<N, T> to;
  find_result(to, slice, first, more...);
  const unsigned thread = reread_thread_index(), t = thread % 4;
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const int r = thread % 128 / 32 * 16 + i * 8 + thread % 32 / 4;
#pragma unroll
    for (int n = 0; n < N / 8; n += 4) {
      unsigned x[4];
      quad_pieces<T>(x, acc, i, n, to.factor, r < rows ? ~0u : 0);
      store_if(r < write_rows && (n + t) * 8 < to.columns, to.at + r * to.stride + (n + t) * 8, x);
    }
  }
}

} // namespace attn
