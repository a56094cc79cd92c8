// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Numbers the nodes of trees that are given by parents, in preorder. Consecutive keys that follow each other in the
// tree form a run, which is treated as one node: a text with a few continuations has few runs. A run ends before a key
// whose parent is not the preceding key, and after a key that is the parent of such a key. Subtree sizes and numbers
// are sums along paths, computed by pointer doubling; runs are sorted by their parents, and children are numbered in
// that order.
#pragma once
#include "attn/metadata/sort_by_parent.cuh"

namespace attn {

// Each run's first preorder number relative to its parent, then absolute by pointer doubling; f.c: the parent runs.
// Returns f.a or f.b.
template <int N> ATTN_INLINE int *assign_numbers(const Tree &f) {
  int *up = f.c, *next_up = f.d, *const order = sort_by_parent<N>(f, up, f.a, f.b);
  int *own = order == f.a ? f.b : f.a, *next = order;
  // Prefix sums in sorted order; the prefix at the first child of a run is subtracted from all its children.
  int *const prefix = next_up;
  const auto part = f.ctas.part(f.count, Cta<N>::threads);
  int sum = 0, all;
  for (int i = part.begin + threadIdx.x; i < part.end; i += blockDim.x)
    sum += f.size[order[i]];
  sum_before_thread<N>(sum, all);
  int number = sum_before_cta<N>(f.ctas, f.table, all, sum);
  for (int base = part.begin; base < part.end; base += blockDim.x) {
    const int i = base + threadIdx.x, s = i < part.end ? order[i] : 0;
    const int place = number + sum_before_thread<N>(i < part.end ? f.size[s] : 0, all);
    number += all;
    if (i >= part.end)
      continue;
    own[s] = place;
    if (up[s] >= 0 && up[order[i - 1]] != up[s])
      prefix[up[s]] = place; // the prefix at run 0, whose parent is -1, is 0
  }
  f.ctas.sync();
  for (int s = f.first(); s < f.count; s += f.step())
    if (up[s] >= 0)
      own[s] += f.length(up[s]) - prefix[up[s]];
  bool more = true;
  for (f.ctas.sync(); more; swap(own, next), swap(up, next_up)) {
    bool jumps = false;
#pragma unroll 4
    for (int s = f.first(); s < f.count; s += f.step()) {
      const int to = up[s];
      jumps |= to >= 0;
      next[s] = own[s] + (to >= 0 ? own[to] : 0);
      next_up[s] = to >= 0 ? up[to] : -1;
    }
    more = f.ctas.any(jumps);
  }
  return own;
}

// Numbers one tree: `node` gets the number of each query's node, [first, end) the numbers of each key's subtree.
// `queries` and `keys` are the offsets of the sequence, `work` is scratch memory.
template <int N = 0, class SharedRuns>
__device__ __noinline__ void number_tree(int *node, int *first, int *end, int *work, const int *parents,
                                         long long queries, int len_q, long long keys, int len_kv,
                                         SharedRuns shared_runs, CooperativeCtas ctas = CooperativeCtas()) {
  const int words = (len_kv + 31) / 32, warps = blockDim.x / 32;
  parents += keys, first += keys, end += keys, node += queries, work += 5 * keys;
  unsigned *const begins = (unsigned *)work;
  int *const before = work + words;
  const auto parent_of = [&](int k) { return (unsigned)parents[k] < (unsigned)k ? parents[k] : -1; };
  const auto scratch = [&](int i) { return work + 2 * words + (long long)i * len_kv; };

  const auto part = ctas.part(words);
#pragma unroll 4
  for (int w = part.begin + warp_index(); w < part.end; w += warps) {
    const int k = 32 * w + lane_index();
    const unsigned bits = __ballot_sync(~0u, k < len_kv && (k == 0 || parent_of(k) != k - 1));
    if (lane_index() == 0)
      begins[w] = bits;
  }
  ctas.sync();
#pragma unroll 4
  for (int k = 32 * part.begin + threadIdx.x; k < min(32 * part.end, len_kv); k += blockDim.x) {
    const int parent = parent_of(k), next = parent + 1;
    if (parent < 0 || next == k)
      continue;
    // Many keys may set the same bit: a bit that is already set needs no atomic.
    const bool is = *(volatile unsigned *)(begins + next / 32) >> next % 32 & 1;
    if (!is)
      atomicOr(begins + next / 32, 1u << next % 32);
  }
  ctas.sync();
  int own = 0, count, all;
  for (int w = part.begin + threadIdx.x; w < part.end; w += blockDim.x)
    own += __popc(begins[w]);
  sum_before_thread<N>(own, all);
  int runs_before = sum_before_cta<N>(ctas, scratch(3), all, count);
  for (int base = part.begin; base < part.end; base += blockDim.x) {
    const int w = base + threadIdx.x,
              to = runs_before + sum_before_thread<N>(w < part.end ? __popc(begins[w]) : 0, all);
    if (w < part.end)
      before[w] = to;
    runs_before += all;
  }
  __syncthreads();
  const Runs runs = {begins, before};
#pragma unroll 4
  for (int k = 32 * part.begin + threadIdx.x; k < min(32 * part.end, len_kv); k += blockDim.x)
    if (begins[k / 32] >> k % 32 & 1)
      scratch(0)[runs.of(k)] = k;
  ctas.sync();

  // Two arrays use the memory of the results; arrays that are needed at the end must not. If there are few runs, each
  // CTA processes all of them in shared memory, and no CTA waits for another.
  const bool fits = count <= SharedRuns::Most;
  Tree f = {ctas, count, len_kv, scratch(0), scratch(1), scratch(2), scratch(3), first, end, scratch(4)};
  if (fits) {
    f = {CooperativeCtas(),
         count,
         len_kv,
         shared_runs.array(0),
         shared_runs.array(1),
         shared_runs.array(2),
         shared_runs.array(3),
         shared_runs.array(4),
         shared_runs.array(5),
         nullptr};
    for (int s = threadIdx.x; s < count; s += blockDim.x)
      f.start[s] = scratch(0)[s];
    __syncthreads();
  }
  const auto find_parents = [&] {
#pragma unroll 4
    for (int s = f.first(); s < count; s += f.step()) {
      const int parent = parent_of(f.start[s]);
      f.c[s] = parent < 0 ? -1 : runs.of(parent);
    }
  };
  find_parents();
  sum_subtrees(f);
  find_parents(); // again: their array has been overwritten
  f.ctas.sync();
  const int *const number = assign_numbers<N>(f);

  const int own_key = len_kv - len_q; // query q is key q + own_key
  const int thread = ctas.index * blockDim.x + threadIdx.x, threads = ctas.size * blockDim.x;
#pragma unroll 4
  for (int k = thread; k < len_kv; k += threads) {
    const int s = runs.of(k), begin = number[s], own = begin + k - f.start[s];
    first[k] = own, end[k] = begin + f.size[s];
    if (k >= own_key)
      node[k - own_key] = own;
  }
  for (int q = thread; q < -own_key; q += threads)
    node[q] = -1;
  __syncthreads();
}

} // namespace attn
