// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Row statistics of the backward pass: the LSE in base 2 and delta of each query row, in shared memory.
#pragma once
#include "attn/ptx/prelude.cuh"

namespace attn {

// The row statistics of a tile. Delta is subtracted from the gradients of a row's probabilities. All LSEs come first,
// then all deltas.
template <int Count> struct RowStatistics {
  static constexpr int Rows = Count, Bytes = 8 * Count;
  static constexpr bool ReadByLanes = true;
  unsigned address;

  ATTN_INLINE explicit RowStatistics(int offset)
      : address(unsigned(__cvta_generic_to_shared(shared_memory)) + offset) {}
  static ATTN_INLINE RowStatistics at_address(unsigned address) {
    RowStatistics s(0);
    s.address = address;
    return s;
  }
  ATTN_INLINE unsigned lse(int row) const { return address + row * 4; }
  ATTN_INLINE unsigned delta(int row) const { return address + (Count + row) * 4; }
};

// NOTE: volatile, so that no read moves across a barrier.
ATTN_INLINE float shared_float(unsigned address) {
  float x;
  asm volatile("ld.shared.f32 %0, [%1];" : "=f"(x) : "r"(address));
  return x;
}
ATTN_INLINE float2 shared_floats(unsigned address) {
  float2 x;
  asm volatile("ld.shared.v2.f32 {%0, %1}, [%2];" : "=f"(x.x), "=f"(x.y) : "r"(address));
  return x;
}

// LSE in base 2, as probabilities need it: +inf for a row that sees no key, finite for other rows. Both the LSE and the
// result are float32, so from kLseExactBelow on exp(score - LSE) could exceed 1 + 2^-10, and at an LSE of 1e9 it could
// be infinite. There the result is raised by the largest possible rounding error, 2.25 * 2^-24 of its size (rounding of
// the LSE, of the product and of log2(e)). Probabilities are then at most 1 + 2^-10 and no loop has to clamp them. This
// requires scores that equal those of the forward pass bit for bit, which holds because the same products compute them.
// The LSE of several splits has been rounded more often: from kFractionsBelow on, where a float32 has no fraction bits,
// four more half ulps cover that. Probabilities are multiplied by 2^exponent.
constexpr float kLseExactBelow = 8192, kFractionsBelow = 1 << 23;
ATTN_INLINE float lse_in_base_2(float lse, float exponent = 0) {
  constexpr float log2e = 1.442695041f, half_ulp = 5.96e-8f;
  if (lse == -infinity())
    return infinity();
  const float size = min(fabsf(lse) * log2e, kLargest);
  const float raise =
      fmaf(max(size - kLseExactBelow, 0.f), 2.25f * half_ulp, max(size - kFractionsBelow, 0.f) * (4 * half_ulp));
  return max(fmaf(lse, log2e, raise - exponent), -kLargest);
}

// Begins to copy row statistics, as copy_async() does tiles.
template <int N> ATTN_INLINE void copy_row_statistics(const RowStatistics<N> &to, const float *from, long long pitch) {
  for (int i = threadIdx.x; i < N / 2; i += blockDim.x) {
    const float *const x = i < N / 4 ? from + i * 4 : from + pitch + (i - N / 4) * 4;
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to.address + i * 16), "l"(x) : "memory");
  }
  asm volatile("cp.async.commit_group;" ::: "memory");
}

} // namespace attn
