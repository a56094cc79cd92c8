// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Combines the partial results of splits, in order.
#pragma once

#include "attn/softmax.h"

namespace attn {

// A split without visible keys has a maximum of -Inf, and its output is not read. A NaN reaches the result through a
// split's sum and so through its weight.
template <int Dim, int M, int Threads, class T>
ATTN_TILE_OP void combine(T *to, long long stride, float *lse, const float *partial_out, const float *partial_max,
                          const float *partial_sum, float scale, int splits, long long pitch, int rows) {
  for (int r = 0; r < min(M, rows); ++r) {
    float top = -infinity;
    for (int s = 0; s < splits; ++s) {
      const float part = partial_max[s * pitch + r];
      top = part > top ? part : top;
    }
    float out[Dim] = {}, sum = 0.f;
    for (int s = 0; s < splits; ++s) {
      const float part = partial_max[s * pitch + r];
      if (part == -infinity)
        continue;
      const float weight = exp2((part - top) * scale) * partial_sum[s * pitch + r];
      const float *__restrict from = partial_out + (s * pitch + r) * Dim;
      ATTN_VECTORIZE for (int c = 0; c < Dim; ++c) out[c] += weight * from[c];
      sum += weight;
    }
    const float inverse = sum == 0.f ? 0.f : 1.f / sum;
    for (int c = 0; c < Dim; ++c)
      round_to(to[r * stride + c], out[c] * inverse);
    if (lse)
      lse[r] = sum == 0.f ? -infinity : log_sum_exp(top, sum, scale);
  }
}

// Adds up partial sums of a tile, which are `pitch` rows apart.
template <int Dim, int M, int Threads, class T>
ATTN_TILE_OP void combine_sums(T *to, long long stride, const float *partial, int splits, int pitch, int rows) {
  for (int r = 0; r < min(M, rows); ++r) {
    float out[Dim] = {};
    for (int s = 0; s < splits; ++s) {
      const float *__restrict from = partial + ((long long)s * pitch + r) * Dim;
      ATTN_VECTORIZE for (int c = 0; c < Dim; ++c) out[c] += from[c];
    }
    for (int c = 0; c < Dim; ++c)
      round_to(to[r * stride + c], out[c]);
  }
}

} // namespace attn
