// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Storage of tiles, and copies into it.
//
// All tiles live on the stack: they do not share storage, so byte offsets are ignored, and nothing is initialized
// before a tile op does so. 64 x 64 tiles of head dim 256 take about 460 KiB, of which only touched lines cost
// anything.
//
// A query tile is often nearly empty (decoding has one row), so its number of valid rows is passed along with the data:
// Q -> scores -> softmax state. Tile ops process live rows and leave the others as they are; `store` never reads those.
#pragma once

#include "attn/numbers.h"
#include "attn/prelude.h"

namespace attn {

// The rows of a tile are consecutive queries, or, with packed GQA heads, pairs of a query and one of `Heads` heads that
// share a KV head: row r is query r / Heads and head r % Heads, counted from the first. Tile ops take either kind: the
// first row, and the stride between rows in memory.
template <int Heads> struct Pairs {
  int query, head;
};
template <int Heads> struct PairStride {
  long long query, head;
};
ATTN_HELPER int query_of(int first, int r) { return first + r; }
template <int H> ATTN_HELPER int query_of(Pairs<H> first, int r) { return first.query + r / H; }
ATTN_HELPER long long offset_of(long long stride, int r) { return r * stride; }
template <int H> ATTN_HELPER long long offset_of(PairStride<H> stride, int r) {
  return r / H * stride.query + r % H * stride.head;
}

// Q, K and V have one type but two uses. Rows are stored as in memory, which suits keys and values: the products
// broadcast single elements of K and read vectors of V. The product wants queries in the vector lanes, so the first
// product after a copy fills `transposed`: once per CTA and not once per KV tile, since Q is stationary.
template <class T, int RowCount, int ColCount, int Pitch = ColCount> struct Smem {
  static constexpr int Rows = RowCount, Cols = ColCount;
  static constexpr int Lanes = (Rows + 15) / 16 * 16; // of a transposed row
  static_assert(Cols % 16 == 0, "columns come in multiples of 16");
  explicit Smem(int = 0) {}

  alignas(64) float rows[Rows * Cols];
  alignas(64) mutable float transposed[Cols * Lanes];
  mutable bool is_transposed = false;
  int live = 0; // valid rows
  int dim = 0;  // columns that are not padding
};

// Scores are stored key by key, `data[key * Rows + row]`, with rows in the vector lanes. Outputs are stored row by row,
// `data[row * Cols + column]`, with columns in the lanes, ready to be stored, and a tile with one live row costs one
// row. No tile op takes both, so the type does not distinguish them.
template <int Rows, int Cols, int Warps> struct Frag {
  alignas(64) float data[Rows * Cols];
  int live = Rows;
};

// Running maximum (unscaled) and running sum of each query row.
template <int Count, int Warps> struct SoftmaxState {
  alignas(64) float maximum[Count];
  alignas(64) float sum[Count];
  int live = 0;
};

ATTN_HELPER void fill(float *to, int count, float value) {
  for (int i = 0; i < count; ++i)
    to[i] = value;
}

template <int R, int C, int W> ATTN_TILE_OP void clear(Frag<R, C, W> &frag) { fill(frag.data, R * C, 0.f); }

template <int R, int W> ATTN_TILE_OP void clear(SoftmaxState<R, W> &row) {
  fill(row.maximum, R, -infinity);
  fill(row.sum, R, 0.f);
  row.live = 0;
}

// The first row of a tile that is copied; those before it become 0.
struct FirstRow {
  int number;
};

// Elements that are not valid become 0: memory behind a sequence may hold NaN, and 0 * NaN would reach rows that never
// see it.
//
// Rows of one head are far apart, so the hardware prefetcher detects no stream; prefetching 16 rows ahead makes
// decoding 1.7 times as fast. Past the end of the tile these rows belong to the next tile, and past the end of the
// tensor a prefetch has no effect.
template <int Dim, class T, int R, int C, int P, class Stride>
ATTN_TILE_OP void copy_async(Smem<T, R, C, P> &to, const T *from, Stride stride, int rows, FirstRow first = {0}) {
  static_assert(Dim % 8 == 0 && Dim <= C, "copies move 16 bytes at a time");
  to.live = clamp(rows, 0, R);
  to.dim = Dim;
  to.is_transposed = false;
  const int begin = clamp(first.number, 0, to.live);
  fill(to.rows, begin * C, 0.f);
  for (int r = begin; r < to.live; ++r) {
    const T *__restrict src = from + offset_of(stride, r);
    float *__restrict dst = to.rows + r * C;
    for (int c = 0; c < Dim; c += 64 / int(sizeof(T)))
      __builtin_prefetch(src + offset_of(stride, 16) + c);
    ATTN_VECTORIZE for (int c = 0; c < Dim; ++c) dst[c] = to_float(src[c]);
    fill(dst + Dim, C - Dim, 0.f);
  }
  fill(to.rows + to.live * C, (R - to.live) * C, 0.f);
}

// Moves the sign of a negative scale into Q: the largest product is then the largest score, and masked scores stay
// -Inf.
template <class T, int R, int C, int P> ATTN_TILE_OP void negate(Smem<T, R, C, P> &place) {
  for (int i = 0; i < place.live * C; ++i)
    place.rows[i] = -place.rows[i];
  place.is_transposed = false;
}

// Copies are synchronous, and a CTA is one thread.
ATTN_HELPER void wait_copies_and_sync() {}

} // namespace attn
