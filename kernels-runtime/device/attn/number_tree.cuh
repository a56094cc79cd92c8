// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Numbers for trees that are given by parents. Keys that follow each other in a row are a run, which is one node: of a
// text with some continuations there are few. A run ends where one begins that follows something else, and behind each
// key that such a one follows. What a walk would find out, sums along paths find, whose steps double; runs are sorted
// by their parents, which have numbers for each in that order.
#pragma once
#include "attn/team.cuh"

namespace attn {

// One of so many runs.
struct Runs {
  const unsigned *begins; // a bit for each key
  const int *before;      // runs that begin in words ahead of it
  ATTN_INLINE int of(int key) const { return before[key / 32] + __popc(begins[key / 32] & ~0u >> (31 - key % 32)) - 1; }
};

// A place in shared memory for what follows of so many runs.
template <int N> struct Forest {
  static constexpr int Most = N;
  int *place;
  ATTN_INLINE explicit Forest(int offset) : place((int *)(shared_memory + offset)) {}
  ATTN_INLINE int *array(int i) const { return place + i * N; }
};

// The runs of a tree, and room to work on them.
struct Tree {
  Team team;
  int count, keys;
  int *start, *size, *a, *b, *c, *d; // room for `count` each
  int *table;                        // of teams only: for an eighth of them, and 128

  ATTN_INLINE int first() const { return team.index * blockDim.x + threadIdx.x; }
  ATTN_INLINE int step() const { return team.size * blockDim.x; }
  ATTN_INLINE int length(int s) const { return (s + 1 < count ? start[s + 1] : keys) - start[s]; }
};

ATTN_INLINE void swap(int *&a, int *&b) {
  int *const c = a;
  a = b, b = c;
}

// The sum over the blocks of a team ahead of this one, and over all.
template <int N> ATTN_INLINE int sum_before_block(const Team &team, int *table, int own, int &all) {
  all = own;
  if (team.size == 1)
    return 0;
  if (threadIdx.x == 0)
    table[team.index] = own;
  team.sync();
  const int i = threadIdx.x, x = i < team.size ? table[i] : 0;
  int ahead;
  sum_before_thread<N>(i < team.index ? x : 0, ahead);
  sum_before_thread<N>(x, all);
  return ahead;
}

// numbers[to] += x, if there is one. Many a warp has one place for most of its lanes: its first lane adds what is for
// the same as its own.
ATTN_INLINE void add_to(int *numbers, int to, int x) {
  const bool same = to == __shfl_sync(~0u, to, 0);
  const int sum = __reduce_add_sync(~0u, same ? x : 0);
  if (to >= 0 && (!same || lane_index() == 0))
    atomicAdd(numbers + to, same ? sum : x);
}

// How many keys runs and those below them have. f.c: the runs above.
ATTN_INLINE void sum_below(const Tree &f) {
  int *add = f.a, *next_add = f.b, *jump = f.c, *next_jump = f.d;
  for (int s = f.first(); s < f.count; s += f.step())
    f.size[s] = f.length(s), add[s] = next_add[s] = 0;
  bool more = true;
  // A run's size counts those so far below it; in a step it comes to the run that is so far above.
  for (f.team.sync(); more; swap(add, next_add), swap(jump, next_jump)) {
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
    more = f.team.any(jumps);
  }
}

// A warp counts the digits of some runs (null: of these very numbers), 32 by 32, and hears of each how many are ahead
// with the same.
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

// The runs in the order of those above them, which are `up`, and of runs with the same in theirs; -1 is the first.
template <int N> ATTN_INLINE int *sort_by_parent(const Tree &f, const int *up, int *to, int *from) {
  constexpr int Bits = 7, Digits = 1 << Bits, Warps = Block<N>::threads / 32, Groups = Block<N>::threads / Digits;
  __shared__ int counts[Warps][Digits], places[Digits], sums[Digits];
  int (&count)[Digits] = counts[warp_index()];
  const auto part = f.team.part(f.count, Block<N>::threads);
  int *const table = f.team.size > 1 ? f.table : sums;
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
      if (f.team.index < parts)
        table[threadIdx.x * parts + f.team.index] = sum;
    }
    f.team.sync();
    int ahead = 0, all = 0, sum;
    const int digit = threadIdx.x / Groups;
    for (int b = threadIdx.x % Groups; b < parts; b += Groups) {
      const int x = table[digit * parts + b];
      all += x, ahead += b < f.team.index ? x : 0;
    }
    const int before = sum_before_thread<N>(all, sum); // of threads of the same digit too
#pragma unroll
    for (int bit = 1; bit < Groups; bit *= 2)
      ahead += __shfl_xor_sync(~0u, ahead, bit);
    if (threadIdx.x % Groups == 0)
      places[digit] = before + ahead;
    __syncthreads();
    count_digits(in_order, begin, end, count, digit_of,
                 [&](int s, int digit, int ahead) { to[places[digit] + ahead] = s; });
    f.team.sync();
  }
  return from;
}

// Each run's first number, of those that the run above it has; f.c: the runs above. Returns where they are: f.a or f.b.
template <int N> ATTN_INLINE int *take_numbers(const Tree &f) {
  int *up = f.c, *next_up = f.d, *const order = sort_by_parent<N>(f, up, f.a, f.b);
  int *own = order == f.a ? f.b : f.a, *next = order;
  // Numbers in that order; the first of each run's are what is ahead of those below it.
  int *const ahead = next_up;
  const auto part = f.team.part(f.count, Block<N>::threads);
  int sum = 0, all;
  for (int i = part.begin + threadIdx.x; i < part.end; i += blockDim.x)
    sum += f.size[order[i]];
  sum_before_thread<N>(sum, all);
  int number = sum_before_block<N>(f.team, f.table, all, sum);
  for (int base = part.begin; base < part.end; base += blockDim.x) {
    const int i = base + threadIdx.x, s = i < part.end ? order[i] : 0;
    const int place = number + sum_before_thread<N>(i < part.end ? f.size[s] : 0, all);
    number += all;
    if (i >= part.end)
      continue;
    own[s] = place;
    if (up[s] >= 0 && up[order[i - 1]] != up[s])
      ahead[up[s]] = place; // that of run 0, -1, is the first
  }
  f.team.sync();
  for (int s = f.first(); s < f.count; s += f.step())
    if (up[s] >= 0)
      own[s] += f.length(up[s]) - ahead[up[s]];
  bool more = true;
  for (f.team.sync(); more; swap(own, next), swap(up, next_up)) {
    bool jumps = false;
#pragma unroll 4
    for (int s = f.first(); s < f.count; s += f.step()) {
      const int to = up[s];
      jumps |= to >= 0;
      next[s] = own[s] + (to >= 0 ? own[to] : 0);
      next_up[s] = to >= 0 ? up[to] : -1;
    }
    more = f.team.any(jumps);
  }
  return own;
}

template <int N = 0, class Room>
__device__ __noinline__ void number_tree(int *node, int *first, int *end, int *work, const int *parents,
                                         long long queries, int len_q, long long keys, int len_kv, Room held,
                                         Team team = Team()) {
  const int words = (len_kv + 31) / 32, warps = blockDim.x / 32;
  parents += keys, first += keys, end += keys, node += queries, work += 5 * keys;
  unsigned *const begins = (unsigned *)work;
  int *const before = work + words;
  const auto parent_of = [&](int k) { return (unsigned)parents[k] < (unsigned)k ? parents[k] : -1; };
  const auto room = [&](int i) { return work + 2 * words + (long long)i * len_kv; };

  const auto part = team.part(words);
#pragma unroll 4
  for (int w = part.begin + warp_index(); w < part.end; w += warps) {
    const int k = 32 * w + lane_index();
    const unsigned bits = __ballot_sync(~0u, k < len_kv && (k == 0 || parent_of(k) != k - 1));
    if (lane_index() == 0)
      begins[w] = bits;
  }
  team.sync();
#pragma unroll 4
  for (int k = 32 * part.begin + threadIdx.x; k < min(32 * part.end, len_kv); k += blockDim.x) {
    const int parent = parent_of(k), next = parent + 1;
    if (parent < 0 || next == k)
      continue;
    // Many a key has the same: it is enough if some ask for the bit.
    const bool is = *(volatile unsigned *)(begins + next / 32) >> next % 32 & 1;
    if (!is)
      atomicOr(begins + next / 32, 1u << next % 32);
  }
  team.sync();
  int own = 0, count, all;
  for (int w = part.begin + threadIdx.x; w < part.end; w += blockDim.x)
    own += __popc(begins[w]);
  sum_before_thread<N>(own, all);
  int ahead = sum_before_block<N>(team, room(3), all, count);
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
  team.sync();

  // What is needed at the end does not lie where the results go. Few runs are each block's, so that nobody waits.
  const bool fits = count <= Room::Most;
  Tree f = {team, count, len_kv, room(0), room(1), room(2), room(3), first, end, room(4)};
  if (fits) {
    f = {Team(),        count,         len_kv,        held.array(0), held.array(1),
         held.array(2), held.array(3), held.array(4), held.array(5), nullptr};
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
  find_parents(); // anew: their array was for work
  f.team.sync();
  const int *const number = take_numbers<N>(f);

  const int behind = len_kv - len_q; // of a row's own key
  const int thread = team.index * blockDim.x + threadIdx.x, threads = team.size * blockDim.x;
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
