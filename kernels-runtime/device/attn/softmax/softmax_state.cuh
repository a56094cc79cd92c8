// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The softmax state of query rows in registers.
#pragma once
#include "attn/mma/fragment.cuh"

namespace attn {

// How far a row's maximum may grow, in base 2, before sums and outputs are rescaled. P is then up to 2^8 times as
// large. A factor that a whole row has in common changes exponents, not the relative precision of P in bf16 and fp16,
// and float32 sums hold it. After the first tiles hardly any row exceeds it, so neither the quad reduction nor the
// rescaling of the accumulator is executed.
constexpr float kRescaleThresholdExponent = 8, kRescaleThreshold = 256;
constexpr int kRescaleThresholdBits = 0x43800000; // bits of kRescaleThreshold

// Softmax state of each query row: the reference that probabilities are relative to (reference.cuh) and their sum so
// far. The sum is per lane until normalize() adds those of the quad; rescaling treats all lanes alike.
template <int RowCount, int WarpCount> struct SoftmaxState : RowShape<RowCount, WarpCount> {
  float max[RowCount / WarpCount / 8], sum[RowCount / WarpCount / 8];
  float rescale_factor[RowCount / WarpCount / 8]; // factor of the sums in the last step, if needs_rescale
  bool needs_rescale;
  // softmax_convert() computes maxima once a lane's sum of a tile exceeds this: kRescaleThreshold. (A thread has at
  // most 64 columns of a row, so some probability is then above 4.) If rows have an unscaled reference, which has to be
  // checked in every tile, it is a NaN whose payload has a bit for each such row: one comparison then detects both
  // cases, and one register holds both.
  float rescale_threshold;
  ATTN_INLINE int unscaled_rows() const { return __float_as_int(rescale_threshold) & 0xff; }
  ATTN_INLINE void set_unscaled_rows(int rows) {
    rescale_threshold = __int_as_float(rows ? 0x7fc00000 | rows : kRescaleThresholdBits);
  }
};

template <int R, int W> ATTN_INLINE void clear(SoftmaxState<R, W> &row) {
#pragma unroll
  for (int i = 0; i < 2 * row.Blocks; ++i)
    row.max[i] = -kLargest, row.sum[i] = 0;
  row.set_unscaled_rows(0);
}

} // namespace attn
