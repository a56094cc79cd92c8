// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Numbers for trees that are given by parents. Keys that follow each other in a row are a run, which is one node: of a text with some continuations there are few.
// A run ends where one begins that follows something else, and behind each key that such a one follows. What a walk would find out, sums along paths find, whose steps double.
#pragma once
#include "attn/prelude.cuh"

namespace attn {

// One of so many runs.
struct Runs {
  static constexpr int Most = 1536;  // in shared memory
  const unsigned *begins;            // a bit for each key
  const int *before;                 // runs that begin in words ahead of it
  ATTN_INLINE int of(int key) const { return before[key / 32] + __popc(begins[key / 32] & ~0u >> (31 - key % 32)) - 1; }
};

ATTN_INLINE void swap(int *&a, int *&b) { int *const c = a; a = b, b = c; }

// The sum over the runs of each tree: what `own` says of a run comes to all runs above it. `spare` and `jumps` are for work; `up` stays.
ATTN_INLINE int *sum_below(int count, const int *up, int *own, int *spare, int *jump, int *next_jump) {
  for (int s = threadIdx.x; s < count; s += blockDim.x) jump[s] = up[s];
  bool more = true;
  while (more) {
    __syncthreads();
#pragma unroll 8
    for (int s = threadIdx.x; s < count; s += blockDim.x) spare[s] = own[s];
    __syncthreads();
    bool jumps = false;
#pragma unroll 8
    for (int s = threadIdx.x; s < count; s += blockDim.x) {
      const int to = jump[s];
      if (to >= 0) atomicAdd(spare + to, own[s]), jumps = true;
      next_jump[s] = to >= 0 ? jump[to] : -1;
    }
    more = __syncthreads_or(jumps);
    swap(own, spare), swap(jump, next_jump);
  }
  return own;
}

// The sum over the runs above each, and its own.
ATTN_INLINE int *sum_above(int count, int *up, int *own, int *spare, int *next_up) {
  bool more = true;
  while (more) {
    __syncthreads();
    bool jumps = false;
#pragma unroll 8
    for (int s = threadIdx.x; s < count; s += blockDim.x) {
      const int to = up[s];
      jumps |= to >= 0;
      spare[s] = own[s] + (to >= 0 ? own[to] : 0);
      next_up[s] = to >= 0 ? up[to] : -1;
    }
    more = __syncthreads_or(jumps);
    swap(own, spare), swap(up, next_up);
  }
  return own;
}

// Each run takes `size` numbers of its parent's, which are `taken` up to somewhere, in their order: place[s] is where its own begin. Warps take turns.
ATTN_INLINE void take_numbers(int count, const int *up, const int *size, int *taken, int *place) {
  __shared__ int of_roots;
  if (threadIdx.x == 0) of_roots = 0;
  for (int base = 0; base < count; base += blockDim.x) {
    const int s = base + threadIdx.x, parent = s < count ? up[s] : -2, own = s < count ? size[s] : 0;
    const unsigned peers = __match_any_sync(~0u, parent);
    int before = 0, sum = 0;
    for (int lane = 0; lane < 32; ++lane) {
      const int x = __shfl_sync(~0u, own, lane) & -(int)(peers >> lane & 1);
      sum += x, before += lane < lane_index() ? x : 0;
    }
    for (int warp = 0; warp < min((int)blockDim.x, count - base + 31) / 32; ++warp) {
      __syncthreads();
      if (warp != warp_index()) continue;
      const int first = __ffs(peers) - 1;
      int *const number = parent >= 0 ? taken + parent : &of_roots;
      const int ahead = __shfl_sync(~0u, s < count ? *number : 0, first);
      if (s < count) place[s] = ahead + before;
      __syncwarp();
      if (s < count & lane_index() == first) *number = ahead + sum;
    }
  }
}

template <int N = 0> ATTN_INLINE void number_tree(int *node, int *first, int *end, int *work, const int *parents, long long queries, int len_q, long long keys, int len_kv) {
  __shared__ int held[6][Runs::Most];
  const int words = (len_kv + 31) / 32, threads = blockDim.x;
  parents += keys, first += keys, end += keys, node += queries, work += 5 * keys;
  unsigned *const begins = (unsigned *)work;
  int *const before = work + words;
  const auto parent_of = [&](int k) { return (unsigned)parents[k] < (unsigned)k ? parents[k] : -1; };

  for (int w = threadIdx.x; w < words; w += threads) begins[w] = 0;
  __syncthreads();
  const auto begin = [&](int k) { atomicOr(begins + k / 32, 1u << k % 32); };
#pragma unroll 8
  for (int k = threadIdx.x; k < len_kv; k += threads) {
    const int parent = parent_of(k);
    if (k > 0 & parent == k - 1) continue;
    begin(k);
    if (parent >= 0) begin(parent + 1);
  }
  __syncthreads();
  int count = 0;
  for (int base = 0; base < words; base += threads) {
    const int w = base + threadIdx.x;
    int all;
    const int ahead = sum_before_thread<N>(w < words ? __popc(begins[w]) : 0, all);
    if (w < words) before[w] = count + ahead;
    count += all;
  }
  __syncthreads();

  // What is needed at the end does not lie where the results go.
  const bool fits = count <= Runs::Most;
  const auto array = [&](int i) { return fits ? held[i] : i == 4 ? first : i == 5 ? end : work + 2 * words + i * len_kv; };
  int *const start = array(0), *const up = array(4), *size = array(1), *const spare = array(2), *const other = array(3), *const jump = array(5);
  const Runs runs = {begins, before};
  for (int w = threadIdx.x; w < words; w += threads) {
    int s = before[w];
    for (unsigned left = begins[w]; left; left &= left - 1, ++s) {
      const int k = 32 * w + __ffs(left) - 1, parent = parent_of(k);
      start[s] = k, up[s] = parent < 0 ? -1 : runs.of(parent);
    }
  }
  __syncthreads();
  const auto length = [&](int s) { return (s + 1 < count ? start[s + 1] : len_kv) - start[s]; };
  for (int s = threadIdx.x; s < count; s += threads) size[s] = length(s);
  size = sum_below(count, up, size, spare, jump, other);
  int *const taken = size == spare ? array(1) : spare;
  for (int s = threadIdx.x; s < count; s += threads) taken[s] = length(s);
  take_numbers(count, up, size, taken, other);
  const int *const number = sum_above(count, up, other, taken, jump);

  const int ahead = len_kv - len_q;  // of a row's own key
#pragma unroll 4
  for (int k = threadIdx.x; k < len_kv; k += threads) {
    const int s = runs.of(k), begin = number[s], own = begin + k - start[s];
    first[k] = own, end[k] = begin + size[s];
    if (k >= ahead) node[k - ahead] = own;
  }
  for (int q = threadIdx.x; q < -ahead; q += threads) node[q] = -1;
  __syncthreads();
}

}  // namespace attn
