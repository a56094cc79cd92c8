// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Windows of tokens: their number, offsets of compressed sequences, and the sequence of a packed row.
#pragma once
#include "attn/ptx/prelude.cuh"

namespace attn {

// Window i of a sequence has the tokens from i * Stride to i * Stride + Length - 1, all of them within it.
template <int Length, int Stride> ATTN_INLINE int windows_of(int tokens) {
  return tokens < Length ? 0 : (tokens - Length) / Stride + 1;
}

// The sequence of a row: the last one that begins at or before it. -1: the row is before or behind all sequences.
ATTN_INLINE int sequence_of(const int *cu, int batch, int row) {
  if (row < cu[0] || row >= cu[batch])
    return -1;
  int low = 0, high = batch; // cu[low] <= row < cu[high]
  while (high - low > 1) {
    const int middle = (low + high) / 2;
    (cu[middle] <= row ? low : high) = middle;
  }
  return low;
}

// cu_c[b] = windows of all sequences before b. One CTA. A thread has `each` sequences in a row.
template <int Length, int Stride, int Threads>
ATTN_INLINE void compressed_offsets(int *cu_c, const int *cu, int batch) {
  __shared__ int sums[Threads / 32];
  const int each = (batch + Threads - 1) / Threads, first = min(int(threadIdx.x) * each, batch),
            end = min(first + each, batch);
  int own = 0;
  for (int b = first; b < end; ++b)
    own += windows_of<Length, Stride>(cu[b + 1] - cu[b]);
  int upto = own; // with the threads before it
#pragma unroll
  for (int step = 1; step < 32; step *= 2) {
    const int before = __shfl_up_sync(~0u, upto, step);
    upto += lane_index() >= step ? before : 0;
  }
  if (lane_index() == 31)
    sums[warp_index()] = upto;
  __syncthreads();
  int at = upto - own;
  for (int warp = 0; warp < warp_index(); ++warp)
    at += sums[warp];
  for (int b = first; b < end; ++b) {
    cu_c[b] = at;
    at += windows_of<Length, Stride>(cu[b + 1] - cu[b]);
  }
  if (threadIdx.x == Threads - 1)
    cu_c[batch] = at;
}

} // namespace attn
