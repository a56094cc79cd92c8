// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Parts of the keys, back together.
#pragma once
#include "attn/softmax.cuh"

namespace attn {

// A warp for each row, a lane for every 32nd four columns. Weights are worked out 32 parts at a time, one a lane; o of a part whose weight is 0 is not
// read, as a part without keys has none. Sums go over the parts in order. A NaN is no part's maximum, but a weight.
template <int Dim, int Rows, int Threads, class T>
ATTN_INLINE void merge(T *o, long long stride, float *lse, const float *partial_o, const float *partial_lse, int splits, long long pitch, int rows) {
  constexpr float log2e = 1.44269504088896f;
  constexpr int Own = (Dim / 4 + 31) / 32;
  const int lane = lane_index();
  for (int r = warp_index(); r < min(Rows, rows); r += Threads / 32) {
    float top = -infinity();
    for (int s = lane; s < splits; s += 32) top = max(top, partial_lse[s * pitch + r]);
#pragma unroll
    for (int bit = 16; bit; bit /= 2) top = max(top, __shfl_xor_sync(~0u, top, bit));

    float sum = 0, out[Own][4] = {};
    for (int first = 0; first < splits; first += 32) {
      const float own = first + lane < splits ? partial_lse[(first + lane) * pitch + r] : -infinity();
      const float weight = own == -infinity() ? 0 : exp2((own - top) * log2e);
      const int count = min(32, splits - first);
#pragma unroll 8
      for (int s = 0; s < count; ++s) {
        const float w = __shfl_sync(~0u, weight, s);
        sum += w;
        const float *from = partial_o + ((first + s) * pitch + r) * Dim;
#pragma unroll
        for (int i = 0; i < Own; ++i)
          if (lane + i * 32 < Dim / 4) {
            float4 x = {0, 0, 0, 0};
            if (w != 0) x = *(const float4 *)(from + (lane + i * 32) * 4);
            out[i][0] = fmaf(w, x.x, out[i][0]), out[i][1] = fmaf(w, x.y, out[i][1]);
            out[i][2] = fmaf(w, x.z, out[i][2]), out[i][3] = fmaf(w, x.w, out[i][3]);
          }
      }
    }
    const float factor = sum == 0 ? 0 : reciprocal(sum);
#pragma unroll
    for (int i = 0; i < Own; ++i)
      if (lane + i * 32 < Dim / 4)
        *(uint2 *)(o + r * stride + (lane + i * 32) * 4) = {pack<T>(out[i][0] * factor, out[i][1] * factor), pack<T>(out[i][2] * factor, out[i][3] * factor)};
    if (lse && lane == 0) lse[r] = sum == 0 ? -infinity() : log_sum_exp(top * log2e, sum);
  }
}

}  // namespace attn
