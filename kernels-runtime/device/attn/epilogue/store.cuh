// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Results to global memory: rows [0, rows), and zeros, or an LSE of -inf, in the padding rows [rows, write_rows). Rows
// from write_rows on are never touched.
#pragma once
#include "attn/mma/fragment.cuh"
#include "attn/softmax/softmax.cuh"

namespace attn {

// Transposes within a quad: x[j] of lane t becomes x[t] of lane j. Four pieces of which each lane holds two columns
// become one piece a lane with all eight columns.
ATTN_INLINE void transpose_quad(unsigned (&x)[4], int lane) {
#pragma unroll
  for (int bit = 1; bit <= 2; bit *= 2)
#pragma unroll
    for (int j = 0; j < 4; ++j)
      if (!(j & bit)) {
        const bool upper = lane & bit;
        const unsigned got = __shfl_xor_sync(~0u, upper ? x[j] : x[j + bit], bit);
        x[j] = upper ? got : x[j], x[j + bit] = upper ? x[j + bit] : got;
      }
}

// A predicated 16 byte store. For a condition the compiler would emit a branch, and would not interleave the code
// around it.
ATTN_INLINE void store_if(bool some, void *to, const unsigned (&x)[4]) {
  asm volatile(
      "{\n.reg .pred p;\nsetp.ne.b32 p, %0, 0;\n@p st.global.v4.b32 [%1], {%2, %3, %4, %5};\n}" ::"r"((int)some),
      "l"(to), "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3])
      : "memory");
}

// Row i of the lane, four pieces from n on, times a factor, rounded: each lane of the quad gets 16 bytes, the eight
// columns of one piece.
template <class T, int R, int C, int W>
ATTN_INLINE void quad_pieces(unsigned (&x)[4], const Frag<R, C, W> &acc, int i, int n, float factor = 1,
                             unsigned mask = ~0u, int lane = lane_index()) {
#pragma unroll
  for (int j = 0; j < 4; ++j) {
    const float *const v = acc.v[i / 2][min(n + j, acc.Pieces - 1)] + i % 2 * 2;
    x[j] = pack<T>(v[0] * factor, v[1] * factor) & mask;
  }
  transpose_quad(x, lane);
}
// Are the columns that lane t of a quad holds after quad_pieces() below Dim?
template <int Dim> ATTN_INLINE bool is_inside(int n, int t) { return n + 4 <= Dim / 8 || n + t < Dim / 8; }

// Stores 16 bytes at a time. Without warp specialization the row address is made opaque: the compiler, short of
// registers, would otherwise recompute it for each store, and a mask for zero rows would take registers that
// one-CTA-per-sequence kernels lack. With warp specialization registers are needed elsewhere, and a predicate costs
// none.
template <int Dim, class T, class Stride, int R, int C, int W>
ATTN_INLINE void store(T *dst, Stride stride, const Frag<R, C, W> &acc, int rows, int write_rows) {
  constexpr bool without_roles = Cta<Dim * 0>::threads == 32 * W;
  const int t = lane_index() % 4;
#pragma unroll
  for (int i = 0; i < 2 * acc.Blocks; ++i) {
    const int r = acc.row(i);
    const unsigned mask = without_roles || r < rows ? ~0u : 0;
    T *to = dst + offset_of(stride, r) + t * 8;
    if constexpr (without_roles)
      asm volatile("" : "+l"(to));
#pragma unroll
    for (int n = 0; n < Dim / 8; n += 4) {
      unsigned x[4];
      quad_pieces<T>(x, acc, i, n, 1, mask);
      const bool inside = is_inside<Dim>(n, t);
      if constexpr (!without_roles) {
        store_if(r < write_rows && inside, to + n * 8, x);
      } else if (inside) {
        if (r < rows)
          *(uint4 *)(to + n * 8) = {x[0], x[1], x[2], x[3]};
        else if (r < write_rows)
          *(uint4 *)(to + n * 8) = {0, 0, 0, 0};
      }
    }
  }
}

// The float32 output of a split, for the combine kernel.
template <int Dim, class Stride, int R, int C, int W>
ATTN_INLINE void store(float *dst, Stride stride, const Frag<R, C, W> &acc, int rows, int write_rows) {
#pragma unroll
  for (int i = 0; i < 2 * acc.Blocks; ++i) {
    const int r = acc.row(i);
    if (r >= write_rows)
      continue;
#pragma unroll
    for (int n = 0; n < Dim / 8; ++n) {
      const float *v = acc.v[i / 2][n] + i % 2 * 2;
      *(float2 *)(dst + offset_of(stride, r) + acc.col(n)) = r < rows ? float2{v[0], v[1]} : float2{0, 0};
    }
  }
}

// The LSE; -inf for a row that sees no key and for padding. normalize() has reduced the row's sum over the quad.
template <class Lse, class Stride, int R, int W>
ATTN_INLINE void store_lse(const Lse &dst, Stride stride, const SoftmaxState<R, W> &row, float scale, int rows,
                           int write_rows) {
  if (lane_index() % 4 != 0)
    return;
#pragma unroll
  for (int i = 0; i < 2 * row.Blocks; ++i) {
    const int r = row.row(i);
    const bool empty = r >= rows || row.sum[i] == 0;
    if (r < write_rows)
      store_row_state(dst, offset_of(stride, r), empty, reference_of(row, i), row.sum[i], scale);
  }
}
template <class Lse, int R, int W>
ATTN_INLINE void store_lse(const Lse &dst, const SoftmaxState<R, W> &row, float scale, int rows, int write_rows) {
  store_lse(dst, 1ll, row, scale, rows, write_rows);
}

// Continues from a partial result: acc becomes O times the sum. Each row's sum goes to one of the four lanes that share
// the row. A row without visible keys keeps its state.
template <int Dim, int R, int C, int W>
ATTN_INLINE void resume(Frag<R, C, W> &acc, SoftmaxState<R, W> &row, const float *o, long long stride, const float *max,
                        const float *sum, int rows) {
#pragma unroll
  for (int i = 0; i < 2 * acc.Blocks; ++i) {
    const int r = acc.row(i);
    if (r >= rows || max[r] == -infinity())
      continue;
    const float total = fabsf(sum[r]);
    set_reference(row, i, {max[r], sum[r] < 0});
    row.sum[i] = lane_index() % 4 == 0 ? total : 0;
#pragma unroll
    for (int n = 0; n < Dim / 8; ++n) {
      float *v = acc.v[i / 2][n] + i % 2 * 2;
      const float2 pair = *(const float2 *)(o + r * stride + acc.col(n));
      v[0] = pair.x * total, v[1] = pair.y * total;
    }
  }
}

template <int Dim, int R, int C, int W>
ATTN_INLINE void add_rows(Frag<R, C, W> &acc, const float *from, long long stride, int rows) {
#pragma unroll
  for (int i = 0; i < 2 * acc.Blocks; ++i) {
    const int r = acc.row(i);
    if (r >= rows)
      continue;
#pragma unroll
    for (int n = 0; n < Dim / 8; ++n) {
      float *v = acc.v[i / 2][n] + i % 2 * 2;
      const float2 pair = *(const float2 *)(from + r * stride + acc.col(n));
      v[0] += pair.x, v[1] += pair.y;
    }
  }
}

// For tiles that consist of padding.
template <int Dim, int Rows, int Threads, class T, class Stride>
ATTN_INLINE void store_padding(T *dst, Stride stride, int write_rows, int thread = threadIdx.x) {
  constexpr int each = 16 / sizeof(T), parts = Dim / each;
  const int count = min(Rows, write_rows) * parts;
  for (int i = thread; i < count; i += Threads)
    *(uint4 *)(dst + offset_of(stride, i / parts) + i % parts * each) = {0, 0, 0, 0};
}
template <int Rows, int Threads, class Stride>
ATTN_INLINE void store_padding_lse(float *dst, Stride stride, int write_rows) {
  for (int r = threadIdx.x; r < min(Rows, write_rows); r += Threads)
    dst[offset_of(stride, r)] = -infinity();
}
template <int Rows, int Threads> ATTN_INLINE void store_padding_lse(float *dst, int write_rows) {
  store_padding_lse<Rows, Threads>(dst, 1ll, write_rows);
}

} // namespace attn
