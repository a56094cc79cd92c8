// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Lengths and offsets of segments from the ids and positions of tokens. A cluster of blocks has a row of the batch and each block a part of
// its tokens; what is known of a segment lies in tables in shared memory, which the blocks of a cluster add up between the steps.
//
// All arithmetic is on integers whose order does not matter (counts, minima, maxima) or whose order is that of tokens, so results do not depend
// on how blocks and warps take turns.
#pragma once
#include "attn/cluster.cuh"

namespace attn {

// The tokens of one side of a row.
struct Tokens {
  const int *ids, *positions;  // no positions: they do not count
  int count;
};
ATTN_INLINE Tokens tokens(const int *ids, int row, int count) { return {ids + (long long)row * count, nullptr, count}; }
ATTN_INLINE Tokens tokens(const int *ids, int row, int count, const int *positions, int position_rows) {
  return {ids + (long long)row * count, positions + (long long)(row % position_rows) * count, count};
}

// What the table has of each id and side.
enum Field { kCount, kFirst, kLast, kLow, kHigh, kFields };
constexpr int kLeast = -2147483647 - 1, kMost = 2147483647;
ATTN_INLINE int neutral(int field) { return field == kCount ? 0 : field == kFirst || field == kLow ? kMost : kLeast; }

enum Status { kBadId = 1, kSplit = 2, kPositions = 4, kBadPosition = 8 };

// Bounds: the least position of a query, the highest of a key, the shift between them.
struct Bounds { int least, most, shift; };
// A claim: key <= query + diagonal if and only if its position <= that of the query + shift.
struct Claim { int diagonal, shift; };
template <int N> struct Claims { Claim claim[N]; };

constexpr int kBuckets = 256;
template <int S, int Blocks, int Bytes> struct Table {
  static constexpr int Segments = S, Cluster = Blocks, Items = 2 * kFields * S;
  using Fields = int[2][kFields][S];
  struct Layout {
    union {
      Fields tables[Blocks > 1 ? 2 : 1];  // of this block's tokens, and of all tokens of the row
      struct { int counts[32][kBuckets], begins[kBuckets]; } sort;
    };
    int least[S], most[S], shift[S];
    int starts[2][S + 1];         // of runs that begin among this block's tokens
    unsigned bad[(S + 31) / 32];  // segments without a place among the sequences
    int runs[2], status, last, totals[3][32];
  };
  static_assert(sizeof(Layout) <= Bytes);
  Layout &at;
  ATTN_INLINE explicit Table(int offset) : at(*reinterpret_cast<Layout *>(shared_memory + offset)) {
    clear();
    for (int i = threadIdx.x; i < (S + 31) / 32; i += blockDim.x) at.bad[i] = 0;
    if (threadIdx.x == 0) at.runs[0] = at.runs[1] = at.status = at.last = 0;
    __syncthreads();
  }
  ATTN_INLINE void clear() {
    for (int i = threadIdx.x; i < Items; i += blockDim.x) mine()[i] = neutral(i / S % kFields);
  }
  ATTN_INLINE int *mine() { return &at.tables[0][0][0][0]; }
  ATTN_INLINE int *mine(int side, int field, int segment) { return &at.tables[0][side][field][segment]; }
  ATTN_INLINE int *row() { return &at.tables[Blocks > 1][0][0][0]; }
  ATTN_INLINE int get(int side, int field, int segment) { return at.tables[Blocks > 1][side][field][segment]; }
  // One run of tokens?
  ATTN_INLINE bool whole(int side, int segment) {
    return get(side, kLast, segment) - get(side, kFirst, segment) + 1 == get(side, kCount, segment);
  }
  ATTN_INLINE void flag(int segment, int status) {
    atomicOr(&at.bad[segment / 32], 1u << segment % 32);
    atomicOr(&at.status, status);
  }
  ATTN_INLINE bool is_bad(int segment) { return at.bad[segment / 32] >> segment % 32 & 1; }
};

// Adds up the tables of the cluster: each block has a part of the items, reads it everywhere and writes the sum everywhere.
template <class Table> ATTN_INLINE void meet(Table &t) {
  if constexpr (Table::Cluster == 1) {
    __syncthreads();
  } else {
    constexpr int Part = (Table::Items + Table::Cluster - 1) / Table::Cluster;
    cluster_sync<Table::Cluster>();
    for (int i = threadIdx.x; i < Part; i += blockDim.x) {
      const int item = cluster_rank<Table::Cluster>() * Part + i;
      if (item >= Table::Items) break;
      int x[Table::Cluster], field = item / Table::Segments % kFields;
#pragma unroll
      for (int r = 0; r < Table::Cluster; ++r) x[r] = *of_block<Table::Cluster>(t.mine() + item, r);
#pragma unroll
      for (int r = 1; r < Table::Cluster; ++r)
        x[0] = field == kCount ? x[0] + x[r] : field == kFirst || field == kLow ? min(x[0], x[r]) : max(x[0], x[r]);
#pragma unroll
      for (int r = 0; r < Table::Cluster; ++r) *of_block<Table::Cluster>(t.row() + item, r) = x[0];
    }
    cluster_sync<Table::Cluster>();
  }
}

// A block's part of a side's tokens, in multiples of four.
struct Part { int begin, end; };
template <class Table> ATTN_INLINE Part part_of(const Table &, const Tokens &tokens) {
  const int each = ((tokens.count + Table::Cluster - 1) / Table::Cluster + 3) / 4 * 4;
  const int begin = min(cluster_rank<Table::Cluster>() * each, tokens.count);
  return {begin, min(begin + each, tokens.count)};
}

// Four elements from `at` on, 0 from `end` on.
ATTN_INLINE void load_four(const int *from, int at, int end, int (&x)[4]) {
  if (at + 4 <= end && ((unsigned long long)(from + at) & 15) == 0) {
    const int4 v = *(const int4 *)(from + at);
    x[0] = v.x, x[1] = v.y, x[2] = v.z, x[3] = v.w;
  } else {
#pragma unroll
    for (int i = 0; i < 4; ++i) x[i] = at + i < end ? from[at + i] : 0;
  }
}

struct Seen {
  int x[kFields] = {0, kMost, kLeast, kMost, kLeast};
  ATTN_INLINE void add(int token, int position) {
    x[kCount] += 1, x[kFirst] = min(x[kFirst], token), x[kLast] = max(x[kLast], token);
    x[kLow] = min(x[kLow], position), x[kHigh] = max(x[kHigh], position);
  }
};
template <class Table> ATTN_INLINE void note(Table &t, int side, int id, const Seen &seen) {
  atomicAdd(t.mine(side, kCount, id - 1), seen.x[kCount]);
  atomicMin(t.mine(side, kFirst, id - 1), seen.x[kFirst]), atomicMax(t.mine(side, kLast, id - 1), seen.x[kLast]);
  atomicMin(t.mine(side, kLow, id - 1), seen.x[kLow]), atomicMax(t.mine(side, kHigh, id - 1), seen.x[kHigh]);
}
// Four tokens of each lane; id 0: not counted. Most warps see one segment only, and add it up before they write.
template <class Table> ATTN_INLINE void note_four(Table &t, int side, int at, const int (&ids)[4], const int (&positions)[4]) {
  int high = 0, low = kMost;
#pragma unroll
  for (int i = 0; i < 4; ++i) high = max(high, ids[i]), low = ids[i] ? min(low, ids[i]) : low;
  high = __reduce_max_sync(~0u, high), low = __reduce_min_sync(~0u, low);
  if (high == 0) return;
  Seen seen;
  if (high == low) {
#pragma unroll
    for (int i = 0; i < 4; ++i)
      if (ids[i]) seen.add(at + i, positions[i]);
    seen.x[kCount] = __reduce_add_sync(~0u, seen.x[kCount]);
    seen.x[kFirst] = __reduce_min_sync(~0u, seen.x[kFirst]), seen.x[kLast] = __reduce_max_sync(~0u, seen.x[kLast]);
    seen.x[kLow] = __reduce_min_sync(~0u, seen.x[kLow]), seen.x[kHigh] = __reduce_max_sync(~0u, seen.x[kHigh]);
    if (lane_index() == 0) note(t, side, high, seen);
    return;
  }
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    if (ids[i]) seen.add(at + i, positions[i]);
    if (ids[i] && (i == 3 || ids[i + 1] != ids[i])) note(t, side, ids[i], seen), seen = Seen();
  }
}

constexpr int kFar = 1 << 29;
ATTN_INLINE bool is_far(int position) { return position > kFar || position < -kFar; }
// An id that counts, or 0. Sets the status of those that never do.
template <class Table> ATTN_INLINE int checked_id(Table &t, int id, int position) {
  if (unsigned(id) > Table::Segments) { atomicOr(&t.at.status, kBadId); return 0; }
  if (id && is_far(position)) { atomicOr(&t.at.status, kBadPosition); return 0; }
  return id;
}
template <class Table> ATTN_INLINE bool is_within(Table &t, int side, int id, int position) {
  return side == 0 ? position >= t.at.least[id - 1] : position <= t.at.most[id - 1];
}

template <class Table> ATTN_INLINE void count_side(Table &t, int side, const Tokens &tokens) {
  const Part part = part_of(t, tokens);
  for (int base = part.begin; base < part.end; base += 4 * blockDim.x) {
    const int at = base + 4 * threadIdx.x;
    int ids[4], positions[4] = {};
    load_four(tokens.ids, at, part.end, ids);
    if (tokens.positions) load_four(tokens.positions, at, part.end, positions);
#pragma unroll
    for (int i = 0; i < 4; ++i) ids[i] = checked_id(t, ids[i], positions[i]);
    note_four(t, side, at, ids, positions);
  }
}
template <class Table> ATTN_INLINE void count_segments(Table &t, const Tokens &q, const Tokens &kv) {
  count_side(t, 0, q), count_side(t, 1, kv);
  meet(t);
}

// Every block for itself, from the row's table. Its own is clear afterwards.
template <bool Whole, class Table, class Bound> ATTN_INLINE void bound_segments(Table &t, Bound bound) {
  for (int s = threadIdx.x; s < Table::Segments; s += blockDim.x) {
    Bounds b = {kMost, kLeast, 0};  // nobody
    if (t.get(0, kCount, s) > 0 && t.get(1, kCount, s) > 0) {
      if (!Whole || (t.whole(0, s) && t.whole(1, s)))
        b = bound(t.get(0, kCount, s), t.get(0, kLow, s), t.get(0, kHigh, s), t.get(1, kCount, s), t.get(1, kLow, s), t.get(1, kHigh, s));
      else
        t.flag(s, kSplit);
    }
    t.at.least[s] = b.least, t.at.most[s] = b.most, t.at.shift[s] = b.shift;
  }
  __syncthreads();
  t.clear();
  __syncthreads();
}

// Keeps starts of runs in the order of tokens: `has` of up to four of a thread's.
template <class Table> ATTN_INLINE void append_starts(Table &t, int side, int &runs, int at, const bool (&has)[4]) {
  if (!__syncthreads_or(has[0] | has[1] | has[2] | has[3])) return;
  unsigned votes[4];
  int before = 0, sum = 0;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    votes[i] = __ballot_sync(~0u, has[i]);
    before += __popc(votes[i] & ((1u << lane_index()) - 1)), sum += __popc(votes[i]);
  }
  if (lane_index() == 0) t.at.totals[0][warp_index()] = sum;
  __syncthreads();
  const int warps = blockDim.x / 32;
  int total = lane_index() < warps ? t.at.totals[0][lane_index()] : 0;
  before += runs + __reduce_add_sync(~0u, lane_index() < warp_index() ? total : 0);
  runs += __reduce_add_sync(~0u, total);
#pragma unroll
  for (int i = 0; i < 4; ++i)
    if (has[i]) {
      if (before <= Table::Segments) t.at.starts[side][before] = at + i;
      ++before;
    }
  __syncthreads();
}

template <class Table> ATTN_INLINE void select_side(Table &t, int side, const Tokens &tokens, int *to) {
  const Part part = part_of(t, tokens);
  int runs = 0;
  for (int base = part.begin; base < part.end; base += 4 * blockDim.x) {
    const int at = base + 4 * threadIdx.x;
    int ids[4], positions[4] = {}, previous = 0;
    load_four(tokens.ids, at, part.end, ids);
    if (tokens.positions) load_four(tokens.positions, at, part.end, positions);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      ids[i] = checked_id(t, ids[i], positions[i]);
      if (ids[i] && !is_within(t, side, ids[i], positions[i])) ids[i] = 0;
    }
    if (at > 0 && at < part.end) {
      const int position = tokens.positions ? tokens.positions[at - 1] : 0;
      previous = checked_id(t, tokens.ids[at - 1], position);
      if (previous && !is_within(t, side, previous, position)) previous = 0;
    }
    bool starts[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) starts[i] = ids[i] && ids[i] != (i ? ids[i - 1] : previous);
    note_four(t, side, at, ids, positions);
    append_starts(t, side, runs, at, starts);
    if (to) {
      int *place = to + (long long)(blockIdx.x / Table::Cluster) * tokens.count + at;
#pragma unroll
      for (int i = 0; i < 4; ++i)
        if (at + i < part.end) place[i] = ids[i];
    }
  }
  if (threadIdx.x == 0) t.at.runs[side] = runs;
}
template <class Table>
ATTN_INLINE void select_segments(Table &t, const Tokens &q, const Tokens &kv, int *ids_q = nullptr, int *ids_kv = nullptr) {
  select_side(t, 0, q, ids_q), select_side(t, 1, kv, ids_kv);
  meet(t);
  for (int s = threadIdx.x; s < Table::Segments; s += blockDim.x)
    if (t.get(0, kCount, s) > 0 && !(t.whole(0, s) && t.whole(1, s))) t.flag(s, kSplit);
  __syncthreads();
}

// Claims are about all pairs of a segment. Where the diagonal passes between pairs, it is enough to ask at each query for the last key before it and
// the first behind it, and at each key likewise: positions then rise along the diagonal, and all other pairs follow. Where it passes by, extremes say.
template <class Table, class Says> ATTN_INLINE void check_segments(Table &t, const Tokens &q, const Tokens &kv, Says claims) {
  for (int s = threadIdx.x; s < Table::Segments; s += blockDim.x) {
    const int n = t.get(0, kCount, s), m = t.get(1, kCount, s);
    if (n == 0 || m == 0 || t.is_bad(s)) continue;
    for (const auto &c : claims(n, m, t.at.shift[s]).claim)
      if ((c.diagonal >= m - 1 && t.get(1, kHigh, s) > (long long)t.get(0, kLow, s) + c.shift) ||
          (c.diagonal <= -n && t.get(1, kLow, s) <= (long long)t.get(0, kHigh, s) + c.shift))
        t.flag(s, kPositions);
  }
  for (int side = 0; side < 2; ++side) {
    const Tokens own = {side ? kv.ids : q.ids, side ? kv.positions : q.positions, side ? kv.count : q.count};  // no address: both stay in registers
    const Part part = part_of(t, own);
    for (int at = part.begin + threadIdx.x; at < part.end; at += blockDim.x) {
      const int id = own.ids[at], s = id - 1;
      const long long position = own.positions[at];
      if (id <= 0 || id > Table::Segments || is_far(position) || !is_within(t, side, id, position) || t.is_bad(s)) continue;
      const int n = t.get(0, kCount, s), m = t.get(1, kCount, s), i = at - t.get(side, kFirst, s);
      const int *other = side ? q.positions + t.get(0, kFirst, s) : kv.positions + t.get(1, kFirst, s);
      bool holds = true;
      for (const auto &c : claims(n, m, t.at.shift[s]).claim) {
        if (c.diagonal >= m - 1 || c.diagonal <= -n) continue;
        const int j = side ? i - c.diagonal : i + c.diagonal;
        if (side) {
          if (j <= n - 1) holds &= position <= (long long)other[max(j, 0)] + c.shift;
          if (j - 1 >= 0) holds &= position > (long long)other[min(j - 1, n - 1)] + c.shift;
        } else {
          if (j >= 0) holds &= other[min(j, m - 1)] <= position + c.shift;
          if (j + 1 <= m - 1) holds &= other[max(j + 1, 0)] > position + c.shift;
        }
      }
      if (!holds) t.flag(s, kPositions);
    }
  }
  __syncthreads();
}

// Afterwards only the first block of a cluster goes on, and knows what all have found.
template <class Table>
ATTN_INLINE void write_segments(Table &t, int *seqlens_q, int *seqlens_kv, int *offsets_q, int *offsets_kv, int *status) {
  constexpr int S = Table::Segments, Cluster = Table::Cluster;
  const long long row = blockIdx.x / Cluster;
  const int rank = cluster_rank<Cluster>();
  cluster_sync<Cluster>();
  for (int side = 0; side < 2; ++side) {
    int *const lengths = (side ? seqlens_kv : seqlens_q) + row * S, *const offsets = (side ? offsets_kv : offsets_q) + row * (S + 1);
    int before = 0, sum = 0;
    for (int r = 0; r < Cluster; ++r) {
      const int runs = *of_block<Cluster>(&t.at.runs[side], r);
      before += r < rank ? runs : 0, sum += runs;
    }
    for (int i = threadIdx.x; i < min(t.at.runs[side], S + 1) && before + i <= S; i += blockDim.x) offsets[before + i] = t.at.starts[side][i];
    if (rank != 0) continue;
    for (int i = sum + threadIdx.x; i <= S; i += blockDim.x) offsets[i] = -1;
    for (int s = threadIdx.x; s < S; s += blockDim.x) lengths[s] = t.get(side, kCount, s);
  }
  if (rank == 0)
    for (int r = 1; r < Cluster; ++r) {
      for (int i = threadIdx.x; i < (S + 31) / 32; i += blockDim.x) t.at.bad[i] |= *of_block<Cluster>(&t.at.bad[i], r);
      if (threadIdx.x == 0) t.at.status |= *of_block<Cluster>(&t.at.status, r);
    }
  cluster_sync<Cluster>();  // nobody leaves while others read, and rank 0 sees all offsets
  if (rank == 0 && threadIdx.x == 0) status[row] = t.at.status;
}

}  // namespace attn
