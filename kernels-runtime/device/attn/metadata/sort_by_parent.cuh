// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A radix sort of the runs of a tree.
#pragma once
#include "attn/metadata/tree_runs.cuh"

namespace attn {

// A warp counts the digits of the runs [begin, end) of an array (null: of these indices themselves), 32 at a time;
// `place` gets for each run the number of earlier runs of the warp with the same digit.
template <class Digit, class Place>
ATTN_INLINE void count_digits(const int *runs, int begin, int end, int *count, Digit digit_of, Place place) {
  for (int base = begin; base < end; base += 32) {
    const int i = base + lane_index(), s = i >= end ? 0 : runs ? runs[i] : i, digit = i >= end ? -1 : digit_of(s);
    const unsigned same = __match_any_sync(~0u, digit);
    const int before = i < end ? count[digit] : 0;
    __syncwarp();
    if (i < end) {
      place(s, digit, before + __popc(same & (1u << lane_index()) - 1));
      if (__ffs(same) - 1 == lane_index())
        count[digit] = before + __popc(same);
    }
    __syncwarp();
  }
}

// A stable radix sort of the runs by their parent `up`; -1 comes first.
template <int N> ATTN_INLINE int *sort_by_parent(const Tree &f, const int *up, int *to, int *from) {
  constexpr int Bits = 7, Digits = 1 << Bits, Warps = Cta<N>::threads / 32, Groups = Cta<N>::threads / Digits;
  __shared__ int counts[Warps][Digits], places[Digits], sums[Digits];
  int (&count)[Digits] = counts[warp_index()];
  const auto part = f.ctas.part(f.count, Cta<N>::threads);
  int *const table = f.ctas.size > 1 ? f.table : sums;
  const int parts = (f.count + part.each - 1) / part.each, own = (part.each + Warps - 1) / Warps;
  const int begin = min(part.begin + warp_index() * own, part.end), end = min(begin + own, part.end);

  for (int shift = 0; f.count >> shift; shift += Bits, swap(to, from)) {
    const auto digit_of = [&](int s) { return up[s] + 1 >> shift & Digits - 1; };
    const int *const in_order = shift ? from : nullptr;
    for (int i = lane_index(); i < Digits; i += 32)
      count[i] = 0;
    __syncwarp();
    count_digits(in_order, begin, end, count, digit_of, [](int, int, int) {});
    __syncthreads();
    if (threadIdx.x < Digits) {
      int sum = 0;
      for (int w = 0; w < Warps; ++w) {
        const int x = counts[w][threadIdx.x];
        counts[w][threadIdx.x] = sum, sum += x;
      }
      if (f.ctas.index < parts)
        table[threadIdx.x * parts + f.ctas.index] = sum;
    }
    f.ctas.sync();
    int earlier_ctas = 0, all = 0, sum;
    const int digit = threadIdx.x / Groups;
    for (int b = threadIdx.x % Groups; b < parts; b += Groups) {
      const int x = table[digit * parts + b];
      all += x, earlier_ctas += b < f.ctas.index ? x : 0;
    }
    const int before = sum_before_thread<N>(all, sum); // includes threads of the same digit
#pragma unroll
    for (int bit = 1; bit < Groups; bit *= 2)
      earlier_ctas += __shfl_xor_sync(~0u, earlier_ctas, bit);
    if (threadIdx.x % Groups == 0)
      places[digit] = before + earlier_ctas;
    __syncthreads();
    count_digits(in_order, begin, end, count, digit_of,
                 [&](int s, int digit, int before) { to[places[digit] + before] = s; });
    f.ctas.sync();
  }
  return from;
}

} // namespace attn
