// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Products A^T B of 64 rows, of several pairs of tiles, in pieces of 64 columns, each a warpgroup's.
#pragma once
#include "attn/statistics.cuh"

namespace attn {

// Of pairs A, B, A, B ... of tiles, where those of a piece begin.
ATTN_INLINE void find_pair(unsigned (&)[2], int) {}
template <class A, class B, class... More> ATTN_INLINE void find_pair(unsigned (&at)[2], int piece, const A &a, const B &b, const More &...more) {
  static_assert(A::Rows == B::Rows && A::Chunks == 1);
  if (piece >= 0) at[0] = a.address, at[1] = b.address + piece * B::ChunkBytes;
  find_pair(at, piece - B::Chunks, more...);
}
template <class A, class... More> ATTN_INLINE void mma_piece(Frag<64, 64, 4> &acc, int piece, const A &a, const More &...more) {
  unsigned at[2];
  find_pair(at, piece, a, more...);
  settle(acc);
  begin_products();
  tn_steps<0, typename A::T, A::Rows, 64>(acc.v[0], describe(at[0], A::ChunkBytes), describe(at[1], A::ChunkBytes));
  end_products();
}

// Where the rows of a product with Dim columns go, and by what they are multiplied.
template <int Columns, class T> struct Result {
  static constexpr int Dim = Columns;
  T *at;
  long long stride;
  float factor;
};
template <int Dim, class T> ATTN_INLINE Result<Dim, T> result(T *at, long long stride, float factor) { return {at, stride, factor}; }
template <class T> struct PieceOfResult : Result<64, T> { int columns; };
template <class T> ATTN_INLINE void find_result(PieceOfResult<T> &, int) {}
template <class T, class R, class... More> ATTN_INLINE void find_result(PieceOfResult<T> &found, int piece, const R &result, const More &...more) {
  if (piece >= 0) found.at = result.at + piece * 64, found.stride = result.stride, found.factor = result.factor, found.columns = R::Dim - piece * 64;
  find_result(found, piece - (R::Dim + 63) / 64, more...);
}
// Rounded rows [0, rows), zero rows [rows, write_rows).
template <int Dim, class T, class... More>
ATTN_INLINE void store_piece(const Frag<64, 64, 4> &acc, int piece, int rows, int write_rows, const Result<Dim, T> &first, const More &...more) {
  PieceOfResult<T> to;
  find_result(to, piece, first, more...);
  const int t = lane_index() % 4;
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const int r = warp_index() % 4 * 16 + i * 8 + lane_index() / 4;
#pragma unroll
    for (int n = 0; n < 8; n += 4) {
      unsigned x[4];
      quad_pieces<T>(x, acc, i, n, to.factor, r < rows ? ~0u : 0);
      store_if(r < write_rows && (n + t) * 8 < to.columns, to.at + r * to.stride + (n + t) * 8, x);
    }
  }
}

}  // namespace attn
