// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Numbers the nodes of trees that are given by parents, in preorder. Consecutive keys that follow each other in the
// tree form a run, which is treated as one node: a text with a few continuations has few runs. A run ends before a key
// whose parent is not the preceding key, and after a key that is the parent of such a key. Subtree sizes and numbers
// are sums along paths, computed by pointer doubling; runs are sorted by their parents, and children are numbered in
// that order.
#pragma once
#include "attn/cooperative_ctas.cuh"

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

// The sum over earlier CTAs of the group, and over all.
template <int N> ATTN_INLINE int sum_before_block(const CooperativeCtas &ctas, int *table, int own, int &all) {
  all = own;
  if (ctas.size == 1)
    return 0;
  if (threadIdx.x == 0)
    table[ctas.index] = own;
  ctas.sync();
  const int i = threadIdx.x, x = i < ctas.size ? table[i] : 0;
  int ahead;
  sum_before_thread<N>(i < ctas.index ? x : 0, ahead);
  sum_before_thread<N>(x, all);
  return ahead;
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
ATTN_INLINE void sum_below(const Tree &f) {
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

// A warp counts the digits of the runs [begin, end) of an array (null: of these indices themselves), 32 at a time;
// `place` gets for each run the number of earlier runs of the warp with the same digit.
template <class Digit, class Place>
ATTN_INLINE void count_digits(const int *runs, int begin, int end, int *count, Digit digit_of, Place place) {
  for (int base = begin; base < end; base += 32) {
    const int i = base + lane_index(), s = i >= end ? 0 : runs ? runs[i] : i, digit = i >= end ? -1 : digit_of(s);
    const unsigned same = __match_any_sync(~0u, digit);
    const int ahead = i < end ? count[digit] : 0;
    __syncwarp();
    if (i < end) {
      place(s, digit, ahead + __popc(same & (1u << lane_index()) - 1));
      if (__ffs(same) - 1 == lane_index())
        count[digit] = ahead + __popc(same);
    }
    __syncwarp();
  }
}

// A stable radix sort of the runs by their parent `up`; -1 comes first.
template <int N> ATTN_INLINE int *sort_by_parent(const Tree &f, const int *up, int *to, int *from) {
  constexpr int Bits = 7, Digits = 1 << Bits, Warps = Block<N>::threads / 32, Groups = Block<N>::threads / Digits;
  __shared__ int counts[Warps][Digits], places[Digits], sums[Digits];
  int (&count)[Digits] = counts[warp_index()];
  const auto part = f.ctas.part(f.count, Block<N>::threads);
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
    int ahead = 0, all = 0, sum;
    const int digit = threadIdx.x / Groups;
    for (int b = threadIdx.x % Groups; b < parts; b += Groups) {
      const int x = table[digit * parts + b];
      all += x, ahead += b < f.ctas.index ? x : 0;
    }
    const int before = sum_before_thread<N>(all, sum); // includes threads of the same digit
#pragma unroll
    for (int bit = 1; bit < Groups; bit *= 2)
      ahead += __shfl_xor_sync(~0u, ahead, bit);
    if (threadIdx.x % Groups == 0)
      places[digit] = before + ahead;
    __syncthreads();
    count_digits(in_order, begin, end, count, digit_of,
                 [&](int s, int digit, int ahead) { to[places[digit] + ahead] = s; });
    f.ctas.sync();
  }
  return from;
}

// Each run's first preorder number relative to its parent, then absolute by pointer doubling; f.c: the parent runs.
// Returns f.a or f.b.
template <int N> ATTN_INLINE int *assign_numbers(const Tree &f) {
  int *up = f.c, *next_up = f.d, *const order = sort_by_parent<N>(f, up, f.a, f.b);
  int *own = order == f.a ? f.b : f.a, *next = order;
  // Prefix sums in sorted order; the prefix at the first child of a run is subtracted from all its children.
  int *const ahead = next_up;
  const auto part = f.ctas.part(f.count, Block<N>::threads);
  int sum = 0, all;
  for (int i = part.begin + threadIdx.x; i < part.end; i += blockDim.x)
    sum += f.size[order[i]];
  sum_before_thread<N>(sum, all);
  int number = sum_before_block<N>(f.ctas, f.table, all, sum);
  for (int base = part.begin; base < part.end; base += blockDim.x) {
    const int i = base + threadIdx.x, s = i < part.end ? order[i] : 0;
    const int place = number + sum_before_thread<N>(i < part.end ? f.size[s] : 0, all);
    number += all;
    if (i >= part.end)
      continue;
    own[s] = place;
    if (up[s] >= 0 && up[order[i - 1]] != up[s])
      ahead[up[s]] = place; // the prefix at run 0, whose parent is -1, is 0
  }
  f.ctas.sync();
  for (int s = f.first(); s < f.count; s += f.step())
    if (up[s] >= 0)
      own[s] += f.length(up[s]) - ahead[up[s]];
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

template <int N = 0, class Room>
__device__ __noinline__ void number_tree(int *node, int *first, int *end, int *work, const int *parents,
                                         long long queries, int len_q, long long keys, int len_kv, Room shared_room,
                                         CooperativeCtas ctas = CooperativeCtas()) {
  const int words = (len_kv + 31) / 32, warps = blockDim.x / 32;
  parents += keys, first += keys, end += keys, node += queries, work += 5 * keys;
  unsigned *const begins = (unsigned *)work;
  int *const before = work + words;
  const auto parent_of = [&](int k) { return (unsigned)parents[k] < (unsigned)k ? parents[k] : -1; };
  const auto room = [&](int i) { return work + 2 * words + (long long)i * len_kv; };

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
  int ahead = sum_before_block<N>(ctas, room(3), all, count);
  for (int base = part.begin; base < part.end; base += blockDim.x) {
    const int w = base + threadIdx.x, to = ahead + sum_before_thread<N>(w < part.end ? __popc(begins[w]) : 0, all);
    if (w < part.end)
      before[w] = to;
    ahead += all;
  }
  __syncthreads();
  const Runs runs = {begins, before};
#pragma unroll 4
  for (int k = 32 * part.begin + threadIdx.x; k < min(32 * part.end, len_kv); k += blockDim.x)
    if (begins[k / 32] >> k % 32 & 1)
      room(0)[runs.of(k)] = k;
  ctas.sync();

  // Arrays that are needed at the end must not overlap the results. If there are few runs, each CTA processes all of
  // them in shared memory, and no CTA waits for another.
  const bool fits = count <= Room::Most;
  Tree f = {ctas, count, len_kv, room(0), room(1), room(2), room(3), first, end, room(4)};
  if (fits) {
    f = {CooperativeCtas(),
         count,
         len_kv,
         shared_room.array(0),
         shared_room.array(1),
         shared_room.array(2),
         shared_room.array(3),
         shared_room.array(4),
         shared_room.array(5),
         nullptr};
    for (int s = threadIdx.x; s < count; s += blockDim.x)
      f.start[s] = room(0)[s];
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
  sum_below(f);
  find_parents(); // again: their array has been overwritten
  f.ctas.sync();
  const int *const number = assign_numbers<N>(f);

  const int behind = len_kv - len_q; // offset of a query's own key
  const int thread = ctas.index * blockDim.x + threadIdx.x, threads = ctas.size * blockDim.x;
#pragma unroll 4
  for (int k = thread; k < len_kv; k += threads) {
    const int s = runs.of(k), begin = number[s], own = begin + k - f.start[s];
    first[k] = own, end[k] = begin + f.size[s];
    if (k >= behind)
      node[k - behind] = own;
  }
  for (int q = thread; q < -behind; q += threads)
    node[q] = -1;
  __syncthreads();
}

} // namespace attn
