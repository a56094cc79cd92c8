// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Row statistics in the registers of the threads that own the rows, for kernels with stationary Q: delta is computed
// there, from O and dO or from P and dP, and not read from memory.
#pragma once
#include "attn/backward/row_statistics.cuh"
#include "attn/copy/swizzled.cuh"
#include "attn/ptx/mbarrier.cuh"
#include "attn/softmax/softmax.cuh"

namespace attn {

// Loads row statistics into a softmax state: the LSE in base 2 as the maximum (+inf for a row that sees no key or one
// past the end), the known part of delta as the sum.
template <int R, int W>
ATTN_INLINE void load_row_statistics(SoftmaxState<R, W> &row, const float *lse, long long, const float *known,
                                     long long, float sign, int rows) {
#pragma unroll
  for (int i = 0; i < R / W / 8; ++i) {
    const int r = row.recomputed_row(i);
    row.max[i] = lse_in_base_2(r < rows ? lse[r] : -infinity());
    row.sum[i] = known && r < rows ? sign * known[r] : 0;
  }
}
// Calls f(m, n, i, row of the lane) for each element. Two elements of each row alternate.
template <int R, int N, int W, class F> ATTN_INLINE void each_element(const Frag<R, N, W> &s, F f) {
#pragma unroll
  for (int m = 0; m < s.Blocks; ++m)
#pragma unroll
    for (int n = 0; n < s.Pieces; ++n)
#pragma unroll
      for (int i = 0; i < 4; ++i)
        f(m, n, i, 2 * m + i / 2);
}
template <bool Transposed, int R, int N, int W>
ATTN_INLINE void probabilities(Frag<R, N, W> &s, const SoftmaxState<R, W> &row, float scale) {
  static_assert(!Transposed);
  each_element(s, [&](int m, int n, int i, int r) { s.v[m][n][i] = exp2(fmaf(s.v[m][n][i], scale, -row.max[r])); });
}
// Loads rows into the registers of an operand, 16 bytes at a time: the four lanes of a quad share a row, and a lane's
// units of a row follow each other. The order of columns is not that of an operand of a product.
template <int Dim, class T, int R, int C, int W>
ATTN_INLINE void load_operand_rows(RegisterOperand<T, R, C, W> &operand, const T *src, long long stride, int rows) {
  constexpr int Own = C / 32;
  const unsigned t = reread_thread_index() % 4u;
#pragma unroll
  for (int n = 0; n < 2 * Own; ++n) {
    const int r = operand.recomputed_row(n / Own), column = (t + n % Own * 4) * 8;
    const uint4 x = r < rows && (Dim % 32 == 0 || column < Dim) ? *(const uint4 *)(src + r * stride + column) : uint4();
    operand.v[0][n][0] = x.x, operand.v[0][n][1] = x.y, operand.v[0][n][2] = x.z, operand.v[0][n][3] = x.w;
  }
}
// 16 bytes of O: unit n from an operand that load_operand_rows() filled, or from a tile of the layout of dO, at the
// offset `from`.
template <class T, int R, int C, int W>
ATTN_INLINE uint4 unit_of(const RegisterOperand<T, R, C, W> &o, int n, int /*from*/) {
  return {o.v[0][n][0], o.v[0][n][1], o.v[0][n][2], o.v[0][n][3]};
}
template <class T, int N, int M> ATTN_INLINE uint4 unit_of(const Swizzled<T, N, M> &o, int /*n*/, int from) {
  return unit_at(o.address + from);
}
// Adds rowsum(O * dO) of the tile's rows from First on to the sums. A tile may have the rows of the first warps only;
// the sums of other warps are not used.
template <int First = 0, int R, int W, class O, class T, int N, int M>
ATTN_INLINE void add_delta(SoftmaxState<R, W> &row, const O &o, const Swizzled<T, N, M> &grad) {
  constexpr int Own = (M + 31) / 32;
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const int r = min(First + row.recomputed_row(i), N - 1);
    float sum = 0;
#pragma unroll
    for (int j = 0; j < Own; ++j) {
      const int unit = lane_index() % 4 + 4 * j;
      const int from = unit / 8 * grad.PanelBytes + r * 128 + (unit % 8 ^ r % 8) * 16;
      const uint4 x = unit_at(grad.address + from), w = unit_of(o, i * Own + j, from);
      const unsigned y[4] = {x.x, x.y, x.z, x.w}, z[4] = {w.x, w.y, w.z, w.w};
#pragma unroll
      for (int k = 0; k < 4; ++k)
        sum = fmaf(low_half<T>(y[k]), low_half<T>(z[k]), fmaf(high_half<T>(y[k]), high_half<T>(z[k]), sum));
    }
    row.sum[i] += quad_sum(sum);
  }
  fence_async();
  __syncwarp(); // all lanes have read O, whose slot one lane may release
}

// For rows whose keys are all in the fragment: x becomes p * (x - delta), where delta is the known part plus the row's
// sum of p * x. All sums are computed first: row by row, ptxas lacks registers for the next products. Known: the known
// part is all of delta. HasDropout: pairs with a negative p are dropped, and x of other pairs is multiplied by
// `factor`.
template <bool HasDropout = false, bool Known = false, int R, int N, int W>
ATTN_INLINE void single_pass_grads(Frag<R, N, W> &x, Frag<R, N, W> &p, const SoftmaxState<R, W> &row,
                                   float factor = 1) {
  float delta[R / W / 8] = {};
  auto weight = [&](int m, int n, int i) { return HasDropout ? fabsf(p.v[m][n][i]) : p.v[m][n][i]; };
  auto scale = [&](int m, int n, int i) {
    if (HasDropout)
      x.v[m][n][i] = p.v[m][n][i] < 0 ? 0 : x.v[m][n][i] * factor;
  };
  if (!Known)
    each_element(x, [&](int m, int n, int i, int r) {
      scale(m, n, i), delta[r] = fmaf(weight(m, n, i), x.v[m][n][i], delta[r]);
    });
#pragma unroll
  for (int i = 0; i < 2 * x.Blocks; ++i)
    delta[i] = (Known ? 0 : quad_sum(delta[i])) + row.sum[i];
  each_element(x, [&](int m, int n, int i, int r) {
    if (Known)
      scale(m, n, i);
    x.v[m][n][i] = weight(m, n, i) * (x.v[m][n][i] - delta[r]);
    if (HasDropout)
      asm("max.NaN.f32 %0, %0, 0f00000000;" : "+f"(p.v[m][n][i])); // one instruction, and a NaN stays a NaN
  });
}

} // namespace attn
