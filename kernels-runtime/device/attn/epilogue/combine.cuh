// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The combine kernels of splits of keys, and of queries.
#pragma once
#include "attn/softmax/reference.cuh"

namespace attn {

// A split stores its softmax state and not its LSE, because a float32 LSE next to a large score has no bits left for
// the sum.
ATTN_INLINE Reference split_reference(const float *max, const float *sum, long long at) {
  return max[at] == -infinity() ? Reference{-infinity(), true} : Reference{max[at], sum[at] < 0};
}
ATTN_INLINE Reference larger(Reference a, Reference b, float scale) {
  return b.empty() ? a : a.empty() || conversion_exponent(a, b, scale) < 0 ? b : a;
}
// A warp combines one row; each lane has four columns of every 128. The weights of 32 splits are computed at a time,
// one in each lane. The partial O of a split with weight 0 is not read, since a split without visible keys stores none.
// Sums run over the splits in order. A NaN reaches the result through a split's sum and so through its weight.
template <int Dim, int Rows, int Threads, class T>
ATTN_INLINE void combine(T *o, long long stride, float *lse, const float *partial_o, const float *partial_max,
                         const float *partial_sum, float scale, int splits, long long pitch, int rows) {
  constexpr int Own = (Dim / 4 + 31) / 32;
  const int lane = lane_index();
  for (int r = warp_index(); r < min(Rows, rows); r += Threads / 32) {
    Reference top = {-infinity(), true};
    for (int s = lane; s < splits; s += 32)
      top = larger(top, split_reference(partial_max, partial_sum, s * pitch + r), scale);
#pragma unroll
    for (int bit = 16; bit; bit /= 2)
      top = larger(top, {__shfl_xor_sync(~0u, top.max, bit), __shfl_xor_sync(~0u, int(top.unscaled), bit) != 0}, scale);

    float sum = 0, out[Own][4] = {};
    for (int first = 0; first < splits; first += 32) {
      float weight = 0;
      if (const long long at = (first + lane) * pitch + r; first + lane < splits && partial_max[at] != -infinity())
        weight = exp2(conversion_exponent(split_reference(partial_max, partial_sum, at), top, scale)) *
                 fabsf(partial_sum[at]);
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
            if (w != 0)
              x = *(const float4 *)(from + (lane + i * 32) * 4);
            out[i][0] = fmaf(w, x.x, out[i][0]), out[i][1] = fmaf(w, x.y, out[i][1]);
            out[i][2] = fmaf(w, x.z, out[i][2]), out[i][3] = fmaf(w, x.w, out[i][3]);
          }
      }
    }
    const float factor = sum == 0 ? 0 : reciprocal(sum);
#pragma unroll
    for (int i = 0; i < Own; ++i)
      if (lane + i * 32 < Dim / 4)
        *(uint2 *)(o + r * stride + (lane + i * 32) * 4) = {pack<T>(out[i][0] * factor, out[i][1] * factor),
                                                            pack<T>(out[i][2] * factor, out[i][3] * factor)};
    if (lse && lane == 0)
      store_row_state(lse, r, sum == 0, top, sum, scale);
  }
}

// A warp adds up one row; each lane has four columns of every 128. Partial sums of a tile are `pitch` rows apart.
template <int Dim, int Rows, int Threads, class T>
ATTN_INLINE void combine_sums(T *dst, long long stride, const float *partial, int splits, int pitch, int rows) {
  constexpr int Own = (Dim / 4 + 31) / 32;
  const int lane = lane_index();
  for (int r = warp_index(); r < min(Rows, rows); r += Threads / 32) {
    float out[Own][4] = {};
#pragma unroll(8 / Own)
    for (int s = 0; s < splits; ++s) {
      const float *from = partial + ((long long)s * pitch + r) * Dim;
#pragma unroll
      for (int i = 0; i < Own; ++i)
        if (lane + i * 32 < Dim / 4) {
          const float4 x = *(const float4 *)(from + (lane + i * 32) * 4);
          out[i][0] += x.x, out[i][1] += x.y, out[i][2] += x.z, out[i][3] += x.w;
        }
    }
#pragma unroll
    for (int i = 0; i < Own; ++i)
      if (lane + i * 32 < Dim / 4) {
        T *to = dst + r * stride + (lane + i * 32) * 4;
        if constexpr (sizeof(T) == 4)
          *(float4 *)to = {out[i][0], out[i][1], out[i][2], out[i][3]};
        else
          *(uint2 *)to = {pack<T>(out[i][0], out[i][1]), pack<T>(out[i][2], out[i][3])};
      }
  }
}

} // namespace attn
