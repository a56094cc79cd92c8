// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Runs of a tree: consecutive keys that follow each other in the tree, treated as one node.
#pragma once
#include "attn/scheduler/cooperative_ctas.cuh"

namespace attn {

// Maps keys to the index of their run.
struct Runs {
  const unsigned *begins; // a bit for each key
  const int *before;      // number of runs that begin in earlier words
  ATTN_INLINE int of(int key) const { return before[key / 32] + __popc(begins[key / 32] & ~0u >> (31 - key % 32)) - 1; }
};

// Shared memory for the arrays of up to N runs.
template <int N> struct TreeRuns {
  static constexpr int Most = N;
  int *place;
  ATTN_INLINE explicit TreeRuns(int offset) : place((int *)(shared_memory + offset)) {}
  ATTN_INLINE int *array(int i) const { return place + i * N; }
};

// The runs of a tree and the arrays to process them.
struct Tree {
  CooperativeCtas ctas;
  int count, keys;
  int *start, *size, *a, *b, *c, *d; // `count` entries each
  int *table;                        // for cooperative CTAs only: an eighth of `count`, and 128

  ATTN_INLINE int first() const { return ctas.index * blockDim.x + threadIdx.x; }
  ATTN_INLINE int step() const { return ctas.size * blockDim.x; }
  ATTN_INLINE int length(int s) const { return (s + 1 < count ? start[s + 1] : keys) - start[s]; }
};

ATTN_INLINE void swap(int *&a, int *&b) {
  int *const c = a;
  a = b, b = c;
}

// The sum over earlier CTAs of the group, and the sum over all.
template <int N> ATTN_INLINE int sum_before_cta(const CooperativeCtas &ctas, int *table, int own, int &all) {
  all = own;
  if (ctas.size == 1)
    return 0;
  if (threadIdx.x == 0)
    table[ctas.index] = own;
  ctas.sync();
  const int i = threadIdx.x, x = i < ctas.size ? table[i] : 0;
  int before;
  sum_before_thread<N>(i < ctas.index ? x : 0, before);
  sum_before_thread<N>(x, all);
  return before;
}

// numbers[to] += x, if `to` is valid. Most lanes of a warp often have the same `to`: their sum is added by the first
// lane.
ATTN_INLINE void add_to(int *numbers, int to, int x) {
  const bool same = to == __shfl_sync(~0u, to, 0);
  const int sum = __reduce_add_sync(~0u, same ? x : 0);
  if (to >= 0 && (!same || lane_index() == 0))
    atomicAdd(numbers + to, same ? sum : x);
}

// The number of keys of each run and of its descendants. f.c: the parent runs.
ATTN_INLINE void sum_subtrees(const Tree &f) {
  int *add = f.a, *next_add = f.b, *jump = f.c, *next_jump = f.d;
  for (int s = f.first(); s < f.count; s += f.step())
    f.size[s] = f.length(s), add[s] = next_add[s] = 0;
  bool more = true;
  // A run's size counts its descendants up to the current distance; a step adds it to the ancestor at that distance.
  for (f.ctas.sync(); more; swap(add, next_add), swap(jump, next_jump)) {
    bool jumps = false;
#pragma unroll 4
    for (int base = f.first() - lane_index(); base < f.count; base += f.step()) {
      const int s = base + lane_index(), to = s < f.count ? jump[s] : -1;
      int own = 0;
      if (s < f.count) {
        f.size[s] = own = f.size[s] + add[s], add[s] = 0;
        next_jump[s] = to >= 0 ? jump[to] : -1;
      }
      jumps |= to >= 0;
      add_to(next_add, to, own);
    }
    more = f.ctas.any(jumps);
  }
}

} // namespace attn
