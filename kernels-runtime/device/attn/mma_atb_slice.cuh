// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Products A^T B of 64 rows over several pairs of tiles, in column slices of 64 or 128; each warpgroup computes a
// slice.
#pragma once
#include "attn/epilogue.cuh"
#include "attn/hopper_backward.cuh"

namespace attn {

// Finds the tile addresses of a slice among pairs A, B, A, B, ...
template <int N> ATTN_INLINE void find_pair(unsigned (&)[2], int) {}
template <int N, class A, class B, class... More>
ATTN_INLINE void find_pair(unsigned (&at)[2], int piece, const A &a, const B &b, const More &...more) {
  constexpr int Chunks = N / 64;
  static_assert(A::Rows == B::Rows && A::Chunks == 1 && B::Chunks % Chunks == 0);
  if (piece >= 0)
    at[0] = a.address, at[1] = b.address + piece * Chunks * B::ChunkBytes;
  find_pair<N>(at, piece - B::Chunks / Chunks, more...);
}
// Depth blocks of 64 rows, the last one with the remainder, from `from` to `to`.
template <int Block, class A, int N>
ATTN_INLINE void atb_blocks(Frag<64, N, 4> &acc, int from, int to, unsigned long long a, unsigned long long b) {
  if (from <= Block && Block < to)
    atb_steps<Block * 4, typename A::T, min(Block * 64 + 64, A::Rows), N>(acc.v[0], a, b, true);
  if constexpr (Block * 64 + 64 < A::Rows)
    atb_blocks<Block + 1, A>(acc, from, to, a, b);
}
template <int N, class A, class... More>
ATTN_INLINE void mma_atb_slice(Frag<64, N, 4> &acc, int piece, int from, int to, const A &a, const More &...more) {
  unsigned at[2];
  find_pair<N>(at, piece, a, more...);
  clear(acc); // all blocks accumulate: if the first one
              // overwrote acc, ptxas would consider its registers live before it.
  warpgroup_fence_operand(acc);
  warpgroup_arrive();
  atb_blocks<0, A>(acc, from, to, make_descriptor(at[0], A::ChunkBytes), make_descriptor(at[1], A::ChunkBytes));
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
template <int N, class T> struct PieceOfResult : Result<N, T> {
  int columns;
};
template <int N, class T> ATTN_INLINE void find_result(PieceOfResult<N, T> &, int) {}
template <int N, class T, class R, class... More>
ATTN_INLINE void find_result(PieceOfResult<N, T> &found, int piece, const R &result, const More &...more) {
  if (piece >= 0)
    found.at = result.at + piece * N, found.stride = result.stride, found.factor = result.factor,
    found.columns = R::Dim - piece * N;
  find_result(found, piece - (R::Dim + N - 1) / N, more...);
}
// Stores rows [0, rows) rounded and zeros in rows [rows, write_rows).
template <int N, int Dim, class T, class... More>
ATTN_INLINE void store_slice(const Frag<64, N, 4> &acc, int piece, int rows, int write_rows,
                             const Result<Dim, T> &first, const More &...more) {
  PieceOfResult<N, T> to;
  find_result(to, piece, first, more...);
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
