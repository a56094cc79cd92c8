// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Windows of tokens: their number, offsets of compressed sequences, and the sequence of a packed row.
#pragma once
#include "attn/numbers.h"

namespace attn {

// Window i of a sequence has the tokens from i * Stride to i * Stride + Length - 1, all of them within it.
template <int Length, int Stride> ATTN_HELPER int windows_of(int tokens) {
  return tokens < Length ? 0 : (tokens - Length) / Stride + 1;
}

// The sequence of a row: the last one that begins at or before it. -1: the row is before or behind all sequences.
ATTN_HELPER int sequence_of(const int *cu, int batch, int row) {
  if (row < cu[0] || row >= cu[batch])
    return -1;
  int low = 0, high = batch; // cu[low] <= row < cu[high]
  while (high - low > 1) {
    const int middle = (low + high) / 2;
    (cu[middle] <= row ? low : high) = middle;
  }
  return low;
}

// cu_c[b] = windows of all sequences before b.
template <int Length, int Stride, int Threads>
ATTN_TILE_OP void compressed_offsets(int *cu_c, const int *cu, int batch) {
  int at = 0;
  for (int b = 0; b < batch; ++b) {
    cu_c[b] = at;
    at += windows_of<Length, Stride>(cu[b + 1] - cu[b]);
  }
  cu_c[batch] = at;
}

} // namespace attn
