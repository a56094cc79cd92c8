// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Lengths and offsets of segments from the ids and positions of tokens. A cluster of blocks has a row of the batch and each block a part of
// its tokens; what is known of a segment lies in tables in shared memory, which the blocks of a cluster add up between the steps.
//
// Where each segment is one run of tokens whose positions rise by the same step on both sides, one look at the tokens is enough: which of them see
// something, and whether that is the mask of lengths and offsets, is then arithmetic on a segment's first token, count, lowest position and step. Only
// rows that have another segment are looked at again.
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

// What the table has of each id and side: how many tokens, the first and the last, and of positions the lowest, the highest, and the lowest and highest
// step from a token to the next.
enum Field { kCount, kFirst, kLast, kLow, kHigh, kLeastStep, kMostStep, kFields };
constexpr int kLeast = -2147483647 - 1, kMost = 2147483647;
ATTN_INLINE bool is_least(int field) { return field == kFirst || field == kLow || field == kLeastStep; }
ATTN_INLINE int neutral(int field) { return field == kCount ? 0 : is_least(field) ? kMost : kLeast; }

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
    int order[S];                 // segments in the order of their tokens, then -1
    unsigned bad[(S + 31) / 32];  // segments without a place among the sequences
    int runs[2], status, last, totals[3][32];
  };
  static_assert(sizeof(Layout) <= Bytes);
  Layout &at;
  bool is_even = false;  // the row: in each of its segments
  bool asked = false;    // have tokens been looked at again?
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
  ATTN_INLINE void set(int side, int field, int segment, int to) { at.tables[Blocks > 1][side][field][segment] = to; }
  // One run of tokens?
  ATTN_INLINE bool whole(int side, int segment) {
    return get(side, kLast, segment) - get(side, kFirst, segment) + 1 == get(side, kCount, segment);
  }
  // And its positions rise evenly?
  ATTN_INLINE bool even(int side, int segment) {
    const int step = get(side, kLeastStep, segment);
    return whole(side, segment) && (get(side, kCount, segment) == 1 || (step > 0 && step == get(side, kMostStep, segment)));
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
    if (threadIdx.x == 0 && t.at.status) atomicOr(of_block<Table::Cluster>(&t.at.status, 0), t.at.status);
    for (int i = threadIdx.x; i < Part; i += blockDim.x) {
      const int item = cluster_rank<Table::Cluster>() * Part + i;
      if (item >= Table::Items) break;
      int x[Table::Cluster], field = item / Table::Segments % kFields;
#pragma unroll
      for (int r = 0; r < Table::Cluster; ++r) x[r] = *of_block<Table::Cluster>(t.mine() + item, r);
#pragma unroll
      for (int r = 1; r < Table::Cluster; ++r)
        x[0] = field == kCount ? x[0] + x[r] : is_least(field) ? min(x[0], x[r]) : max(x[0], x[r]);
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
  int x[kFields] = {0, kMost, kLeast, kMost, kLeast, kMost, kLeast};
  ATTN_INLINE void add(int token, int position) {
    x[kCount] += 1, x[kFirst] = min(x[kFirst], token), x[kLast] = max(x[kLast], token);
    x[kLow] = min(x[kLow], position), x[kHigh] = max(x[kHigh], position);
  }
  ATTN_INLINE void add_step(int step) { x[kLeastStep] = min(x[kLeastStep], step), x[kMostStep] = max(x[kMostStep], step); }
  // What all lanes have seen.
  ATTN_INLINE void add_lanes() {
#pragma unroll
    for (int f = 0; f < kFields; ++f)
      x[f] = f == kCount ? __reduce_add_sync(~0u, x[f]) : is_least(f) ? __reduce_min_sync(~0u, x[f]) : __reduce_max_sync(~0u, x[f]);
  }
};
template <class Table> ATTN_INLINE void note(Table &t, int side, int id, const Seen &seen) {
#pragma unroll
  for (int f = 0; f < kFields; ++f) {
    int *const to = t.mine(side, f, id - 1);
    f == kCount ? atomicAdd(to, seen.x[f]) : is_least(f) ? atomicMin(to, seen.x[f]) : atomicMax(to, seen.x[f]);
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

// A warp's next 256 tokens: a lane has four from 4 * lane on, and four 128 behind them. Id 0: does not count.
constexpr int kLane = 8, kChunk = 32 * kLane;
struct Chunk {
  int ids[kLane], positions[kLane], steps[kLane];
  unsigned begins;  // bit i: token i is of another segment than the one before it, or the first
};
ATTN_INLINE int token_of(int base, int i) { return base + i / 4 * 128 + 4 * lane_index() + i % 4; }
template <class Table> ATTN_INLINE void load_chunk(Table &t, const Tokens &tokens, int base, int end, Chunk &c) {
  int (*ids)[4] = reinterpret_cast<int (*)[4]>(c.ids), (*positions)[4] = reinterpret_cast<int (*)[4]>(c.positions);
  int id = 0, position = 0;  // of the token before
  if (lane_index() == 0 && base > 0) {
    id = tokens.ids[base - 1];
    if (tokens.positions) position = tokens.positions[base - 1];
  }
#pragma unroll
  for (int k = 0; k < kLane / 4; ++k) {
    load_four(tokens.ids, token_of(base, 4 * k), end, ids[k]);
    if (tokens.positions)
      load_four(tokens.positions, token_of(base, 4 * k), end, positions[k]);
    else
      positions[k][0] = positions[k][1] = positions[k][2] = positions[k][3] = 0;
  }
#pragma unroll
  for (int i = 0; i < kLane; ++i) c.ids[i] = checked_id(t, c.ids[i], c.positions[i]);
  c.begins = 0;
#pragma unroll
  for (int k = 0; k < kLane / 4; ++k) {
    const int id_left = __shfl_up_sync(~0u, ids[k][3], 1), position_left = __shfl_up_sync(~0u, positions[k][3], 1);
    if (lane_index() > 0) id = id_left, position = position_left;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      c.steps[4 * k + i] = positions[k][i] - (i ? positions[k][i - 1] : position);
      if (ids[k][i] != (i ? ids[k][i - 1] : id)) c.begins |= 1u << (4 * k + i);
    }
    id = __shfl_sync(~0u, ids[k][3], 31), position = __shfl_sync(~0u, positions[k][3], 31);  // for lane 0
  }
}

// Most warps see one segment only; where there are a few, each is added up in turn.
template <class Table> ATTN_INLINE void note_chunk(Table &t, int side, int base, const Chunk &c) {
  const int id = __shfl_sync(~0u, c.ids[0], 0);
  int other = 0;
#pragma unroll
  for (int i = 0; i < kLane; ++i) other |= c.ids[i] ^ id;
  if (__all_sync(~0u, other == 0)) {
    if (id == 0) return;
    Seen seen;
#pragma unroll
    for (int i = 0; i < kLane; ++i)
      if (!(c.begins >> i & 1)) seen.add_step(c.steps[i]);
    seen.x[kLeastStep] = __reduce_min_sync(~0u, seen.x[kLeastStep]), seen.x[kMostStep] = __reduce_max_sync(~0u, seen.x[kMostStep]);
    seen.x[kCount] = kChunk, seen.x[kFirst] = base, seen.x[kLast] = base + kChunk - 1;
    if (seen.x[kLeastStep] >= 0) {  // they rise
      seen.x[kLow] = __shfl_sync(~0u, c.positions[0], 0), seen.x[kHigh] = __shfl_sync(~0u, c.positions[kLane - 1], 31);
    } else {
#pragma unroll
      for (int i = 0; i < kLane; ++i) seen.x[kLow] = min(seen.x[kLow], c.positions[i]), seen.x[kHigh] = max(seen.x[kHigh], c.positions[i]);
      seen.x[kLow] = __reduce_min_sync(~0u, seen.x[kLow]), seen.x[kHigh] = __reduce_max_sync(~0u, seen.x[kHigh]);
    }
    if (lane_index() == 0) note(t, side, id, seen);
    return;
  }
  unsigned left = 0;  // tokens that are still to be noted
#pragma unroll
  for (int i = 0; i < kLane; ++i) left |= (c.ids[i] != 0) << i;
  for (int turn = 0; turn < 4; ++turn) {
    int next = 0;
#pragma unroll
    for (int i = 0; i < kLane; ++i)
      if (left >> i & 1) next = c.ids[i];
    next = __reduce_max_sync(~0u, next);
    if (next == 0) return;
    Seen seen;
#pragma unroll
    for (int i = 0; i < kLane; ++i)
      if (c.ids[i] == next) {
        left &= ~(1u << i);
        seen.add(token_of(base, i), c.positions[i]);
        if (!(c.begins >> i & 1)) seen.add_step(c.steps[i]);
      }
    seen.add_lanes();
    if (lane_index() == 0) note(t, side, next, seen);
  }
#pragma unroll
  for (int i = 0; i < kLane; ++i)
    if (left >> i & 1) {
      Seen seen;
      seen.add(token_of(base, i), c.positions[i]);
      if (!(c.begins >> i & 1)) seen.add_step(c.steps[i]);
      note(t, side, c.ids[i], seen);
    }
}

template <class Table> ATTN_INLINE void count_side(Table &t, int side, const Tokens &tokens) {
  const Part part = part_of(t, tokens);
  for (int base = part.begin + warp_index() * kChunk; base < part.end; base += blockDim.x / 32 * kChunk) {
    Chunk chunk;
    load_chunk(t, tokens, base, part.end, chunk);
    note_chunk(t, side, base, chunk);
  }
}
template <class Table> ATTN_INLINE void count_segments(Table &t, const Tokens &q, const Tokens &kv) {
  count_side(t, 0, q);
  if (q.ids == kv.ids && q.positions == kv.positions && q.count == kv.count) {  // self-attention
    __syncthreads();
    for (int i = threadIdx.x; i < kFields * Table::Segments; i += blockDim.x) *(t.mine(1, 0, 0) + i) = *(t.mine() + i);
  } else {
    count_side(t, 1, kv);
  }
  meet(t);
}

ATTN_INLINE long long floor_div(long long a, int b) { return a / b - (a % b < 0); }

// Every block for itself, from the row's table. Of an even row it is what remains of each segment afterwards; of others each block's own table is empty.
template <bool Whole, class Table, class Bound> ATTN_INLINE void bound_segments(Table &t, const Tokens &q, Bound bound) {
  bool even = true;
  for (int s = threadIdx.x; s < Table::Segments; s += blockDim.x) {
    Bounds b = {kMost, kLeast, 0};  // nobody
    if (t.get(0, kCount, s) > 0 && t.get(1, kCount, s) > 0) {
      const bool whole = t.whole(0, s) && t.whole(1, s);
      if (!Whole || whole)
        b = bound(t.get(0, kCount, s), t.get(0, kLow, s), t.get(0, kHigh, s), t.get(1, kCount, s), t.get(1, kLow, s), t.get(1, kHigh, s));
      else
        t.flag(s, kSplit);
      even &= q.positions ? t.even(0, s) && t.even(1, s) : whole;
    }
    t.at.least[s] = b.least, t.at.most[s] = b.most, t.at.shift[s] = b.shift;
  }
  t.is_even = !__syncthreads_or(!even);
  if (!t.is_even) {
    t.clear();
  } else {
    for (int s = threadIdx.x; s < Table::Segments; s += blockDim.x) {
      int n = t.get(0, kCount, s), m = t.get(1, kCount, s);
      if (n == 0 || m == 0) {
        n = m = 0;
      } else if (q.positions) {  // queries from the least position on, keys up to the highest
        const int step_q = n > 1 ? t.get(0, kLeastStep, s) : 1, step_kv = m > 1 ? t.get(1, kLeastStep, s) : 1, low = t.get(0, kLow, s);
        const int before = int(min(max(-floor_div((long long)low - t.at.least[s], step_q), 0ll), (long long)n));
        n -= before, m = int(min(max(floor_div((long long)t.at.most[s] - t.get(1, kLow, s), step_kv) + 1, 0ll), (long long)m));
        t.set(0, kFirst, s, t.get(0, kFirst, s) + before), t.set(0, kLow, s, low + before * step_q);
      }
      t.set(0, kCount, s, n), t.set(1, kCount, s, m);
    }
  }
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

// Writes the ids of selected tokens of an even row.
template <class Table> ATTN_INLINE void map_side(Table &t, int side, const Tokens &tokens, int *to) {
  const Part part = part_of(t, tokens);
  for (int at = part.begin + threadIdx.x; at < part.end; at += blockDim.x) {
    int id = tokens.ids[at];
    if (id <= 0 || id > Table::Segments || unsigned(at - t.get(side, kFirst, id - 1)) >= unsigned(t.get(side, kCount, id - 1))) id = 0;
    to[(long long)row_index<Table::Cluster>() * tokens.count + at] = id;
  }
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
    Seen seen;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      starts[i] = ids[i] && ids[i] != (i ? ids[i - 1] : previous);
      if (ids[i]) seen.add(at + i, positions[i]);
      if (ids[i] && (i == 3 || ids[i + 1] != ids[i])) note(t, side, ids[i], seen), seen = Seen();
    }
    append_starts(t, side, runs, at, starts);
    if (to) {
      int *place = to + (long long)row_index<Table::Cluster>() * tokens.count + at;
#pragma unroll
      for (int i = 0; i < 4; ++i)
        if (at + i < part.end) place[i] = ids[i];
    }
  }
  if (threadIdx.x == 0) t.at.runs[side] = runs;
}
template <class Table>
ATTN_INLINE void select_segments(Table &t, const Tokens &q, const Tokens &kv, int *ids_q = nullptr, int *ids_kv = nullptr) {
  if (t.is_even) {
    if (ids_q) map_side(t, 0, q, ids_q), map_side(t, 1, kv, ids_kv);
    return;
  }
  select_side(t, 0, q, ids_q), select_side(t, 1, kv, ids_kv);
  meet(t);
  for (int s = threadIdx.x; s < Table::Segments; s += blockDim.x)
    if (t.get(0, kCount, s) > 0 && !(t.whole(0, s) && t.whole(1, s))) t.flag(s, kSplit);
  __syncthreads();
}

// Claims are about all pairs of a segment. In an even row with the same step on both sides, the diagonal of positions is a number. Else, where the
// claimed diagonal passes between pairs, it is enough to ask at each query for the last key before it and the first behind it, and at each key
// likewise: positions then rise along the diagonal, and all other pairs follow. Where it passes by, extremes say.
template <class Table, class Says> ATTN_INLINE void check_segments(Table &t, const Tokens &q, const Tokens &kv, Says claims) {
  bool asks = false;
  if (t.is_even) {
    for (int s = threadIdx.x; s < Table::Segments; s += blockDim.x) {
      const int n = t.get(0, kCount, s), m = t.get(1, kCount, s), step_q = t.get(0, kLeastStep, s), step_kv = t.get(1, kLeastStep, s);
      if (n == 0 || m == 0) continue;
      if (n > 1 && m > 1 && step_q != step_kv) { asks = true; continue; }
      const int step = n > 1 ? step_q : m > 1 ? step_kv : 1;
      for (const auto &c : claims(n, m, t.at.shift[s]).claim) {
        const long long d = floor_div((long long)t.get(0, kLow, s) - t.get(1, kLow, s) + c.shift, step);
        if (d != c.diagonal && !(d >= m - 1 && c.diagonal >= m - 1) && !(d <= -n && c.diagonal <= -n)) t.flag(s, kPositions);
      }
    }
    t.asked = __syncthreads_or(asks);
    if (!t.asked) return;
    for (int s = threadIdx.x; s < Table::Segments; s += blockDim.x) {  // which tokens are left, and their highest positions
      const int n = t.get(0, kCount, s), m = t.get(1, kCount, s);
      if (n == 0 || m == 0) continue;
      t.set(0, kHigh, s, q.positions[t.get(0, kFirst, s) + n - 1]), t.set(1, kHigh, s, kv.positions[t.get(1, kFirst, s) + m - 1]);
    }
    __syncthreads();
  }
  for (int s = threadIdx.x; s < Table::Segments; s += blockDim.x) {
    const int n = t.get(0, kCount, s), m = t.get(1, kCount, s);
    if (n == 0 || m == 0 || t.is_bad(s)) continue;
    for (const auto &c : claims(n, m, t.at.shift[s]).claim)
      if ((c.diagonal >= m - 1 && t.get(1, kHigh, s) > (long long)t.get(0, kLow, s) + c.shift) ||
          (c.diagonal <= -n && t.get(1, kLow, s) <= (long long)t.get(0, kHigh, s) + c.shift))
        t.flag(s, kPositions);
  }
#pragma unroll
  for (int side = 0; side < 2; ++side) {
    const Tokens &own = side ? kv : q;
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

// Sums over the block: of each of N numbers those of the threads before, and the total.
template <int N, class Table> ATTN_INLINE void sums_before(Table &t, const int (&x)[N], int (&before)[N], int (&total)[N]) {
  __syncthreads();
#pragma unroll
  for (int k = 0; k < N; ++k) {
    int sum = x[k];
#pragma unroll
    for (int d = 1; d < 32; d *= 2) {
      const int y = __shfl_up_sync(~0u, sum, d);
      if (lane_index() >= d) sum += y;
    }
    if (lane_index() == 31) t.at.totals[k][warp_index()] = sum;
    before[k] = sum - x[k];
  }
  __syncthreads();
#pragma unroll
  for (int k = 0; k < N; ++k) {
    const int of_warp = lane_index() < blockDim.x / 32 ? t.at.totals[k][lane_index()] : 0;
    before[k] += __reduce_add_sync(~0u, lane_index() < warp_index() ? of_warp : 0);
    total[k] = __reduce_add_sync(~0u, of_warp);
  }
}

// The segments of a side in the order of their first tokens, which is that of ids most of the time; -1 behind the last. Returns how many.
template <class Table> ATTN_INLINE int sort_segments(Table &t, int side) {
  constexpr int S = Table::Segments;
  int count = 0;
  bool sorted = true;
  for (int base = 0; base < S; base += blockDim.x) {
    const int s = base + threadIdx.x, taken[1] = {s < S && t.get(side, kCount, s) > 0};
    int before[1], total[1];
    sums_before(t, taken, before, total);
    if (taken[0]) t.at.order[count + before[0]] = s;
    count += total[0];
  }
  __syncthreads();
  for (int i = threadIdx.x; i < S; i += blockDim.x) {
    if (i >= count) t.at.order[i] = -1;
    if (i + 1 < count) sorted &= t.get(side, kFirst, t.at.order[i]) < t.get(side, kFirst, t.at.order[i + 1]);
  }
  if (__syncthreads_or(!sorted)) {
    for (int s = threadIdx.x; s < S; s += blockDim.x) {
      if (t.get(side, kCount, s) == 0) continue;
      int before = 0;
      for (int r = 0; r < S; ++r) before += t.get(side, kCount, r) > 0 && t.get(side, kFirst, r) < t.get(side, kFirst, s);
      t.at.order[before] = s;
    }
    __syncthreads();
  }
  return count;
}

// Afterwards only the first block of a cluster goes on. It knows what all have found, and the order of segments on the side of q.
template <class Table>
ATTN_INLINE void write_segments(Table &t, int *seqlens_q, int *seqlens_kv, int *offsets_q, int *offsets_kv, int *status) {
  constexpr int S = Table::Segments, Cluster = Table::Cluster;
  const long long row = row_index<Cluster>();
  const int rank = cluster_rank<Cluster>();
  if (!t.is_even || t.asked) cluster_sync<Cluster>();  // what blocks have found for themselves
#pragma unroll
  for (int side = 1; side >= 0; --side) {
    int *const lengths = (side ? seqlens_kv : seqlens_q) + row * S, *const offsets = (side ? offsets_kv : offsets_q) + row * (S + 1);
    int runs = 0;
    if (!t.is_even) {  // starts lie in all blocks
      int before = 0;
      for (int r = 0; r < Cluster; ++r) {
        const int of_other = *of_block<Cluster>(&t.at.runs[side], r);
        before += r < rank ? of_other : 0, runs += of_other;
      }
      for (int i = threadIdx.x; i < min(t.at.runs[side], S + 1) && before + i <= S; i += blockDim.x) offsets[before + i] = t.at.starts[side][i];
    }
    if (rank != 0) continue;
    if (t.is_even || side == 0) {
      const int count = sort_segments(t, side);
      for (int i = threadIdx.x; t.is_even && i < count; i += blockDim.x) offsets[i] = t.get(side, kFirst, t.at.order[i]);
      if (t.is_even) runs = count;
    }
    for (int i = runs + threadIdx.x; i <= S; i += blockDim.x) offsets[i] = -1;
    for (int s = threadIdx.x; s < S; s += blockDim.x) lengths[s] = t.get(side, kCount, s);
  }
  if (!t.is_even || t.asked) {
    if (rank == 0)
      for (int r = 1; r < Cluster; ++r) {
        for (int i = threadIdx.x; i < (S + 31) / 32; i += blockDim.x) t.at.bad[i] |= *of_block<Cluster>(&t.at.bad[i], r);
        if (threadIdx.x == 0) t.at.status |= *of_block<Cluster>(&t.at.status, r);
      }
    cluster_sync<Cluster>();  // nobody leaves while others read
  }
  if (rank == 0 && threadIdx.x == 0) status[row] = t.at.status;
}

}  // namespace attn
