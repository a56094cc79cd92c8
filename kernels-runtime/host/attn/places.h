// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Where a block keeps its numbers, and how tiles get there.
//
// All of it lies on the stack: a place has no storage to share, so byte offsets
// are ignored, and nothing is initialised before a verb asks for it. 64 x 64
// tiles of head dim 256 take about 460 KiB, of which only touched lines cost
// anything.
//
// A query tile is often nearly empty (decoding has one row), so its valid row
// count travels with the data: Q -> scores -> row state. Verbs work on live
// rows and leave the others as they are; `store` never reads them.
#pragma once

#include "attn/numbers.h"
#include "attn/prelude.h"

namespace attn {

// The rows of a tile are consecutive queries, or pairs of a query and one of
// `Heads` heads that share keys: row r is then query r / Heads and head r % Heads
// from the first on. Verbs take either: where rows begin, and how far apart they
// lie in memory.
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

// Q, K and V have one type but two uses. Rows are as in memory, which suits
// keys and values: the products broadcast single elements of K and read V by
// vectors. The product wants queries in the lanes, so the first one after a
// copy turns the place into `turned`: once per block and not once per tile,
// since Q stays.
template <class T, int Rows_, int Cols_, int Pitch = Cols_> struct Smem {
  static constexpr int Rows = Rows_, Cols = Cols_;
  static constexpr int Lanes = (Rows + 15) / 16 * 16; // of a turned row
  static_assert(Cols % 16 == 0, "columns come in multiples of 16");
  explicit Smem(int = 0) {}

  alignas(64) float rows[Rows * Cols];
  alignas(64) mutable float turned[Cols * Lanes];
  mutable bool isTurned = false;
  int live = 0; // valid rows
  int dim = 0;  // columns that are not padding
};

// Scores lie key by key, `data[key * Rows + row]`: rows in the lanes. Outputs
// lie row by row, `data[row * Cols + column]`: columns in the lanes, ready to
// be stored, and a tile with one live row costs one row. No verb takes both, so
// no type tells.
template <int Rows, int Cols, int Warps> struct Frag {
  alignas(64) float data[Rows * Cols];
  int live = Rows;
};

// Running maximum (base 2, scaled) and running sum of each query row.
template <int Count, int Warps> struct Rows {
  alignas(64) float maximum[Count];
  alignas(64) float sum[Count];
  int live = 0;
};

ATTN_HELPER void fill(float *to, int count, float value) {
  for (int i = 0; i < count; ++i)
    to[i] = value;
}

template <int R, int C, int W> ATTN_VERB void clear(Frag<R, C, W> &frag) { fill(frag.data, R * C, 0.f); }

template <int R, int W> ATTN_VERB void clear(Rows<R, W> &row) {
  fill(row.maximum, R, -infinity);
  fill(row.sum, R, 0.f);
  row.live = 0;
}

// Whatever is not a valid element becomes 0: memory behind a sequence may hold
// NaN, and 0 * NaN would find its way into rows that never see it.
//
// Rows of one head lie far apart, so the hardware's prefetcher sees no stream;
// asking 16 rows ahead made decoding 1.7 times faster. Past the end of the tile
// that is the next tile, and past the end of the tensor a prefetch does
// nothing.
template <int Dim, class T, int R, int C, int P, class Stride>
ATTN_VERB void copy_async(Smem<T, R, C, P> &to, const T *from, Stride stride, int rows) {
  static_assert(Dim % 8 == 0 && Dim <= C, "copies move 16 bytes at a time");
  to.live = clamp(rows, 0, R);
  to.dim = Dim;
  to.isTurned = false;
  for (int r = 0; r < to.live; ++r) {
    const T *__restrict src = from + offset_of(stride, r);
    float *__restrict dst = to.rows + r * C;
    for (int c = 0; c < Dim; c += 64 / int(sizeof(T)))
      __builtin_prefetch(src + offset_of(stride, 16) + c);
    ATTN_VECTORIZE for (int c = 0; c < Dim; ++c) dst[c] = toFloat(src[c]);
    fill(dst + Dim, C - Dim, 0.f);
  }
  fill(to.rows + to.live * C, (R - to.live) * C, 0.f);
}

// A negative scale moves its sign into Q: the largest product is then the largest
// score, and -inf stays what it is.
template <class T, int R, int C, int P> ATTN_VERB void negate(Smem<T, R, C, P> &place) {
  for (int i = 0; i < place.live * C; ++i)
    place.rows[i] = -place.rows[i];
  place.isTurned = false;
}

// Copies are done when they return, and a block is one thread.
ATTN_HELPER void wait() {}

} // namespace attn
