// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// SIMT tiles. A GPU distributes a row over a group of lanes; here one thread stands for the group, the warp and the
// CTA, so a tile is a few rows of one head. The head dim is in the vector lanes; transposing does not pay off for a
// handful of rows.
#pragma once

#include "attn/block_map.h"
#include "attn/dropout_state.h"
#include "attn/find_sequence.h"
#include "attn/modify.h"
#include "attn/softmax.h"

namespace attn {

template <int Warps> ATTN_HELPER int global_warp_index() { return block_index(); }
template <int Lanes> ATTN_HELPER int lane_group_index() { return 0; }

// Elements of all types are converted when they are loaded. Rows are padded with zeros to whole vectors.
template <class Element, int RowCount, int ColCount, int LaneCount> struct SimtTile {
  static constexpr int Cols = round_up(ColCount, lanes);
  alignas(64) float rows[RowCount * Cols];
};
template <int Count, int KeyCount, int LaneCount> struct SimtScores {
  float v[Count][KeyCount];
};
// Running maximum (unscaled) and running sum of each row.
template <int Count, int LaneCount> struct SimtSoftmaxState {
  float maximum[Count], sum[Count];
};

template <class E, class T, int R, int C, int L, class Stride>
ATTN_TILE_OP void load_rows(SimtTile<E, R, C, L> &to, const T *from, Stride stride, int rows) {
  for (int r = 0; r < R; ++r) {
    float *__restrict dst = to.rows + r * to.Cols;
    for (int c = r < rows ? C : 0; c < to.Cols; ++c)
      dst[c] = 0.f;
    if (r >= rows)
      continue;
    const T *__restrict src = from + offset_of(stride, r);
    ATTN_VECTORIZE for (int c = 0; c < C; ++c) dst[c] = to_float(src[c]);
  }
}

template <class E, int R, int C, int L> ATTN_HELPER void clear(SimtTile<E, R, C, L> &x) {
  for (int i = 0; i < R * x.Cols; ++i)
    x.rows[i] = 0.f;
}
template <int R, int L> ATTN_HELPER void clear(SimtSoftmaxState<R, L> &row) {
  for (int r = 0; r < R; ++r)
    row.maximum[r] = -infinity, row.sum[r] = 0.f;
}

template <bool Negated = false, class E, class T, int R, int N, int C, int L>
ATTN_TILE_OP void mma_abt(SimtScores<R, N, L> &scores, const SimtTile<E, R, C, L> &q, const SimtTile<T, N, C, L> &k) {
  for (int r = 0; r < R; ++r)
    for (int n = 0; n < N; ++n) {
      Lanes sums = Lanes{};
      for (int c = 0; c < q.Cols; c += lanes)
        sums += at(q.rows + r * q.Cols + c) * at(k.rows + n * q.Cols + c);
      float sum = 0.f;
      for (int i = 0; i < lanes; ++i)
        sum += sums[i];
      scores.v[r][n] = Negated ? -sum : sum;
    }
}

template <int R, int N, int L, class First, class F>
ATTN_TILE_OP void apply_mask(SimtScores<R, N, L> &scores, First q0, int k0, F is_visible) {
  for (int r = 0; r < R; ++r)
    for (int n = 0; n < N; ++n)
      if (!is_visible(query_of(q0, r), k0 + n))
        scores.v[r][n] = -infinity;
}

template <int R, int N, int L, class First, class F>
ATTN_TILE_OP void modify(SimtScores<R, N, L> &scores, First q0, int k0, F f) {
  for (int r = 0; r < R; ++r)
    for (int n = 0; n < N; ++n)
      scores.v[r][n] = apply(f, scores.v[r][n], q0, r, k0 + n);
}
template <int R, int N, int L, class First, class Small, class F>
ATTN_TILE_OP void modify(SimtScores<R, N, L> &scores, First q0, int k0, float within, Small small, F f) {
  float largest = 0.f;
  for (int r = 0; r < R; ++r)
    for (int n = 0; n < N; ++n)
      largest = max(largest, abs(scores.v[r][n]));
  if (largest >= within)
    modify(scores, q0, k0, f);
  else
    modify(scores, q0, k0, small);
}

// As for fragments: maxima are those of unscaled scores, a NaN is never a maximum but makes its probability NaN, and a
// maximum of -Inf means that no key has been visible yet.
template <class E, int R, int N, int C, int L>
ATTN_TILE_OP void online_softmax(SimtScores<R, N, L> &scores, SimtSoftmaxState<R, L> &row, SimtTile<E, R, C, L> &acc,
                                 float scale) {
  for (int r = 0; r < R; ++r) {
    const float old = row.maximum[r];
    float top = old;
    for (int n = 0; n < N; ++n)
      top = scores.v[r][n] > top ? scores.v[r][n] : top;
    const float base = top == -infinity ? 0.f : top;
    const float factor = exp2((old - base) * scale);
    row.maximum[r] = top;
    row.sum[r] *= factor;
    for (int n = 0; n < N; ++n)
      row.sum[r] += scores.v[r][n] = exp2((scores.v[r][n] - base) * scale);
    if (factor != 1.f)
      for (int c = 0; c < acc.Cols; c += lanes)
        at(acc.rows + r * acc.Cols + c) *= factor;
  }
}

template <int R, int N, int L, class First, class D>
ATTN_TILE_OP void dropout(SimtScores<R, N, L> &scores, First q0, int k0, D state, int threshold, float factor = 1.f) {
  for (int r = 0; r < R; ++r) {
    const DropoutState own = state_of_row(state, q0, r);
    for (int n = 0; n < N; ++n) {
      float &x = scores.v[r][n];
      x = own.is_dropped(query_of(q0, r), k0 + n, threshold) ? 0.f : x * factor;
    }
  }
}
template <int R, int C, int L> ATTN_TILE_OP void scale(SimtTile<float, R, C, L> &x, float factor) {
  for (int i = 0; i < R * x.Cols; i += lanes)
    at(x.rows + i) *= factor;
}

// acc += P V; a weight of 0 may mean "masked", so 0 * NaN is not computed.
template <class E, class T, int R, int N, int C, int L>
ATTN_TILE_OP void mma_ab_guarded(SimtTile<E, R, C, L> &acc, const SimtScores<R, N, L> &p, const SimtTile<T, N, C, L> &v,
                                 bool = true) {
  for (int r = 0; r < R; ++r)
    for (int n = 0; n < N; ++n)
      if (const float weight = p.v[r][n]; weight != 0.f)
        for (int c = 0; c < acc.Cols; c += lanes)
          at(acc.rows + r * acc.Cols + c) += weight * at(v.rows + n * v.Cols + c);
}
template <class E, class T, int R, int N, int C, int L>
ATTN_HELPER void mma_ab(SimtTile<E, R, C, L> &acc, const SimtScores<R, N, L> &p, const SimtTile<T, N, C, L> &v) {
  mma_ab_guarded(acc, p, v);
}

template <class E, int R, int C, int L, class First, class F>
ATTN_TILE_OP void add_sink(SimtTile<E, R, C, L> &acc, SimtSoftmaxState<R, L> &row, float scale, First first, F f) {
  for (int r = 0; r < R; ++r) {
    const float factor = join_sink(sink_of(f, first, r), row.maximum[r], row.sum[r], scale);
    for (int c = 0; c < acc.Cols; c += lanes)
      at(acc.rows + r * acc.Cols + c) *= factor;
  }
}

template <class E, int R, int C, int L>
ATTN_TILE_OP void normalize(SimtTile<E, R, C, L> &acc, const SimtSoftmaxState<R, L> &row) {
  for (int r = 0; r < R; ++r) {
    const float sum = row.sum[r], inverse = 1.f / sum;
    for (int c = 0; c < acc.Cols; c += lanes) {
      Lanes &x = at(acc.rows + r * acc.Cols + c);
      x = sum == 0.f ? Lanes{} : x * inverse;
    }
  }
}

template <int Dim, class T, class Stride, class E, int R, int C, int L>
ATTN_TILE_OP void store(T *to, Stride stride, const SimtTile<E, R, C, L> &acc, int rows, int write_rows) {
  static_assert(Dim == C, "a SIMT tile is as wide as its rows");
  for (int r = 0; r < min(write_rows, R); ++r) {
    T *__restrict dst = to + offset_of(stride, r);
    const float *__restrict src = acc.rows + r * acc.Cols;
    if (r < rows) {
      ATTN_VECTORIZE for (int c = 0; c < Dim; ++c) round_to(dst[c], src[c]);
    } else {
      for (int c = 0; c < Dim; ++c)
        dst[c] = T{};
    }
  }
}
template <class Stride, int R, int L>
ATTN_TILE_OP void store_lse(float *to, Stride stride, const SimtSoftmaxState<R, L> &row, float scale, int rows,
                            int write_rows) {
  for (int r = 0; r < min(write_rows, R); ++r)
    to[offset_of(stride, r)] =
        r >= rows || row.sum[r] == 0.f ? -infinity : log_sum_exp(row.maximum[r], row.sum[r], scale);
}
template <int R, int L>
ATTN_HELPER void store_lse(float *to, const SimtSoftmaxState<R, L> &row, float scale, int rows, int write_rows) {
  store_lse(to, 1ll, row, scale, rows, write_rows);
}

// Clears rows that belong to no sequence: every `step`th query of [begin, end), with all heads of its pairs.
ATTN_HELPER long long query_stride(long long stride) { return stride; }
template <int H> ATTN_HELPER long long query_stride(PairStride<H> stride) { return stride.query; }
template <class Stride> constexpr int kHeadsOf = 1;
template <int H> constexpr int kHeadsOf<PairStride<H>> = H;
// Dim 1 is the LSE.
template <int Dim, class T> ATTN_HELPER void clear_element(T &x) { round_to(x, Dim == 1 ? -infinity : 0.f); }

template <int Dim, int LaneCount, class T, class Stride>
ATTN_TILE_OP void store_padding_rows(T *to, Stride stride, int begin, int end, int step) {
  for (long long q = begin; q < end; q += step)
    for (int h = 0; h < kHeadsOf<Stride>; ++h)
      for (int c = 0; c < Dim; ++c)
        clear_element<Dim>(to[q * query_stride(stride) + offset_of(stride, h) + c]);
}

} // namespace attn
