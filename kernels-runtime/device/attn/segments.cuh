// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Lengths and offsets of segments from the ids and positions of tokens. A cluster of blocks has a row of the batch and each block a part of its tokens;
// what they know of segments is added up in shared memory of the first block, which does the rest; only maps of ids are written by all.
//
// Where each segment of both sides is one run of tokens whose positions rise by the same step on both, one look at the tokens is enough: which of them
// see something, and whether that is the mask of lengths and offsets, is then arithmetic on a segment's first token, count, lowest position and step. Rows
// that have another segment are looked at again, by the first block alone: they are rare, and most of them are mistakes.
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
ATTN_INLINE Tokens side_of(int side, const Tokens &q, const Tokens &kv) {  // in registers
  return {side ? kv.ids : q.ids, side ? kv.positions : q.positions, side ? kv.count : q.count};
}
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
  struct Layout {
    union {
      int items[2][kFields][S];
      struct { int counts[32][kBuckets], begins[kBuckets]; } sort;
    };
    int least[S], most[S], shift[S];
    int starts[2][S + 1];         // of runs of an uneven row
    unsigned bad[(S + 31) / 32];  // segments without a place among the sequences
    int runs[2], status, last, totals[3][32];
  };
  static_assert(sizeof(Layout) <= Bytes);
  Layout &at;
  bool is_even = false;  // the row, in each of its segments
  ATTN_INLINE explicit Table(int offset) : at(*reinterpret_cast<Layout *>(shared_memory + offset)) {}
  ATTN_INLINE void clear() {
    for (int i = threadIdx.x; i < Items; i += blockDim.x) items()[i] = neutral(i / S % kFields);
  }
  ATTN_INLINE int *items() { return &at.items[0][0][0]; }
  ATTN_INLINE int &get(int side, int field, int segment) { return at.items[side][field][segment]; }
  // Segments in the order of their first tokens, then -1: where their last tokens were, which are of no use by then.
  ATTN_INLINE int &order(int side, int i) { return at.items[side][kLast][i]; }
  // Both sides have tokens of it?
  ATTN_INLINE bool meets(int segment) { return get(0, kCount, segment) > 0 && get(1, kCount, segment) > 0; }
  // One run of tokens?
  ATTN_INLINE bool whole(int side, int segment) {
    return get(side, kLast, segment) - get(side, kFirst, segment) + 1 == get(side, kCount, segment);
  }
  // Whole, and positions rise by the same step on both sides?
  ATTN_INLINE bool even(int segment) {
    const int n = get(0, kCount, segment), m = get(1, kCount, segment), step_q = get(0, kLeastStep, segment), step_kv = get(1, kLeastStep, segment);
    return whole(0, segment) && whole(1, segment) && (n == 1 || (step_q > 0 && step_q == get(0, kMostStep, segment))) &&
           (m == 1 || (step_kv > 0 && step_kv == get(1, kMostStep, segment))) && (n == 1 || m == 1 || step_q == step_kv);
  }
  ATTN_INLINE void flag(int segment, int status) {
    atomicOr(&at.bad[segment / 32], 1u << segment % 32);
    atomicOr(&at.status, status);
  }
  ATTN_INLINE bool is_bad(int segment) { return at.bad[segment / 32] >> segment % 32 & 1; }
};

// Adds to *to, or makes it the least or the most, by field.
ATTN_INLINE void combine(int field, int *to, int x) { field == kCount ? atomicAdd(to, x) : is_least(field) ? atomicMin(to, x) : atomicMax(to, x); }

// Adds up the tables of a cluster's blocks in the first of them; all tables have been cleared. `sides`: of q only, or both.
template <class Table> ATTN_INLINE void gather(Table &t, int sides) {
  __syncthreads();
  if constexpr (Table::Cluster > 1) {
    cluster_wait();
    if (cluster_rank<Table::Cluster>() != 0) {
      for (int i = threadIdx.x; i < sides * kFields * Table::Segments; i += blockDim.x) {
        const int field = i / Table::Segments % kFields, x = t.items()[i];
        if (x != neutral(field)) combine(field, of_block<Table::Cluster>(t.items() + i, 0), x);
      }
      if (threadIdx.x == 0 && t.at.status) atomicOr(of_block<Table::Cluster>(&t.at.status, 0), t.at.status);
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

constexpr int kFar = 1 << 29;
ATTN_INLINE bool is_far(int position) { return position > kFar || position < -kFar; }
// An id that counts, or 0; adds the status of those that never do.
template <class Table> ATTN_INLINE int checked_id(const Table &, int id, int position, int &status) {
  const bool bad = unsigned(id) > Table::Segments, far = id != 0 && is_far(position);
  status |= bad ? kBadId : far ? kBadPosition : 0;
  return bad || far ? 0 : id;
}
template <class Table> ATTN_INLINE bool is_within(Table &t, int side, int id, int position) {
  return side == 0 ? position >= t.at.least[id - 1] : position <= t.at.most[id - 1];
}

// A warp's next 256 tokens: a lane has four from 4 * lane on, and four 128 behind them; and the token before the first. Id 0: does not count.
constexpr int kLane = 8, kChunk = 32 * kLane;
struct Chunk {
  int ids[kLane / 4][4], positions[kLane / 4][4], id_before, position_before;
};
ATTN_INLINE int token_of(int base, int i) { return base + i / 4 * 128 + 4 * lane_index() + i % 4; }
ATTN_INLINE Chunk load_chunk(const Tokens &tokens, int base, int end) {
  Chunk c;
  c.id_before = c.position_before = 0;
  if (base > 0 && base < end) {
    c.id_before = tokens.ids[base - 1];
    if (tokens.positions) c.position_before = tokens.positions[base - 1];
  }
#pragma unroll
  for (int k = 0; k < kLane / 4; ++k) {
    load_four(tokens.ids, token_of(base, 4 * k), end, c.ids[k]);
    if (tokens.positions)
      load_four(tokens.positions, token_of(base, 4 * k), end, c.positions[k]);
    else
      c.positions[k][0] = c.positions[k][1] = c.positions[k][2] = c.positions[k][3] = 0;
  }
  return c;
}

// Token `at` begins a run, or is the first behind one.
template <class Table> ATTN_INLINE void note_border(Table &t, int side, const Tokens &tokens, int at, int &status) {
  if (at < tokens.count) {
    const int position = tokens.positions ? tokens.positions[at] : 0, id = checked_id(t, tokens.ids[at], position, status);
    if (id) {
      atomicAdd(&t.get(side, kCount, id - 1), -at);
      atomicMin(&t.get(side, kFirst, id - 1), at), atomicMin(&t.get(side, kLow, id - 1), position);
    }
  }
  if (at > 0) {
    const int position = tokens.positions ? tokens.positions[at - 1] : 0, id = checked_id(t, tokens.ids[at - 1], position, status);
    if (id) {
      atomicAdd(&t.get(side, kCount, id - 1), at);
      atomicMax(&t.get(side, kLast, id - 1), at - 1), atomicMax(&t.get(side, kHigh, id - 1), position);
    }
  }
}
// Of the bits of tokens that begin a run: those of the tokens behind them, and the chunk's first, whose run may have begun elsewhere.
ATTN_INLINE unsigned seconds_of(unsigned begins) {
  const unsigned left = __shfl_up_sync(~0u, begins, 1), far = __shfl_sync(~0u, begins, 31);
  return (begins << 1 & 0xee) | (lane_index() ? left >> 3 & 0x11 : 1 | (far << 1 & 0x10));
}
template <class Table> ATTN_INLINE void note_step(Table &t, int side, int id, int step) {
  atomicMin(&t.get(side, kLeastStep, id - 1), step), atomicMax(&t.get(side, kMostStep, id - 1), step);
}

// Most chunks continue a segment evenly, or padding: there is a step to note at most. False: nothing is noted, it is another chunk.
template <class Table> ATTN_INLINE bool note_plain_chunk(Table &t, int side, int base, const Chunk &c) {
  const int id = c.id_before, first = __shfl_sync(~0u, c.positions[0][0], 0), step = first - c.position_before;
  const int own = first + 4 * lane_index() * step, last = first + (kChunk - 1) * step;
  unsigned ids = 0, positions = 0;
#pragma unroll
  for (int i = 0; i < kLane; ++i) {
    ids |= c.ids[i / 4][i % 4] ^ id;
    positions |= (c.positions[i / 4][i % 4] - step * (i / 4 * 128 + i % 4)) ^ own;
  }
  if (base == 0 || unsigned(id) > Table::Segments || !__all_sync(~0u, ids == 0)) return false;
  if (id == 0) return true;
  if (step < 0 || step > kFar / kChunk || is_far(first) || is_far(last) || is_far(c.position_before) || !__all_sync(~0u, positions == 0)) return false;
  if (lane_index() == 0) note_step(t, side, id, step);
  return true;
}

// Runs that begin and end, and the same step in all of them.
template <class Table> ATTN_INLINE bool note_bordered_chunk(Table &t, int side, const Tokens &tokens, int base, const Chunk &c) {
  unsigned most_id = c.id_before, begins = 0, uneven = 0;
  int low = c.position_before, high = c.position_before, id = c.id_before, position = c.position_before, steps[kLane];
#pragma unroll
  for (int k = 0; k < kLane / 4; ++k) {
    const int id_left = __shfl_up_sync(~0u, c.ids[k][3], 1), position_left = __shfl_up_sync(~0u, c.positions[k][3], 1);
    if (lane_index() > 0) id = id_left, position = position_left;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      most_id = max(most_id, unsigned(c.ids[k][i])), low = min(low, c.positions[k][i]), high = max(high, c.positions[k][i]);
      steps[4 * k + i] = c.positions[k][i] - position;
      if (c.ids[k][i] != id) begins |= 1u << (4 * k + i);
      id = c.ids[k][i], position = c.positions[k][i];
    }
    id = __shfl_sync(~0u, id, 31), position = __shfl_sync(~0u, position, 31);  // for lane 0
  }
  const unsigned inside = __ballot_sync(~0u, c.ids[0][0] != 0 && !(begins & 2));  // lanes that know the step
  const int step = __shfl_sync(~0u, steps[1], __ffs(inside) - 1);
#pragma unroll
  for (int i = 0; i < kLane; ++i)
    if (c.ids[i / 4][i % 4] && !(begins >> i & 1)) uneven |= steps[i] ^ step;
  if (!inside || step < 0 || !__all_sync(~0u, most_id <= Table::Segments && !is_far(low) && !is_far(high) && uneven == 0)) return false;
  int status = 0;
#pragma unroll 1
  for (unsigned left = begins; left; left &= left - 1) note_border(t, side, tokens, token_of(base, __ffs(left) - 1), status);
  unsigned counts = 0;
#pragma unroll
  for (int i = 0; i < kLane; ++i) counts |= (c.ids[i / 4][i % 4] != 0) << i;
#pragma unroll 1
  for (unsigned left = counts & ~begins & seconds_of(begins); left; left &= left - 1)
    note_step(t, side, tokens.ids[token_of(base, __ffs(left) - 1)], step);
  return true;
}

// What there is to know of a run is at its borders, as long as positions rise by the same step, which is noted once a run and chunk. Where they do not,
// each token notes its step and positions.
template <class Table> ATTN_INLINE void note_chunk(Table &t, int side, const Tokens &tokens, int base, int end, Chunk &c, int &status) {
  unsigned begins = 0, counts = 0;  // bit i: token i begins a run; it is of a segment
  int steps[kLane], least = kMost, most = kLeast;
  int id = c.id_before, position = c.position_before;
  id = checked_id(t, id, position, status);
#pragma unroll
  for (int i = 0; i < kLane; ++i) c.ids[i / 4][i % 4] = checked_id(t, c.ids[i / 4][i % 4], c.positions[i / 4][i % 4], status);
#pragma unroll
  for (int k = 0; k < kLane / 4; ++k) {
    const int id_left = __shfl_up_sync(~0u, c.ids[k][3], 1), position_left = __shfl_up_sync(~0u, c.positions[k][3], 1);
    if (lane_index() > 0) id = id_left, position = position_left;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int bit = 4 * k + i;
      const bool begun = c.ids[k][i] != (i ? c.ids[k][i - 1] : id), counted = c.ids[k][i] != 0;
      steps[bit] = c.positions[k][i] - (i ? c.positions[k][i - 1] : position);
      begins |= begun << bit, counts |= counted << bit;
      if (counted && !begun) least = min(least, steps[bit]), most = max(most, steps[bit]);
    }
    id = __shfl_sync(~0u, c.ids[k][3], 31), position = __shfl_sync(~0u, c.positions[k][3], 31);  // for lane 0
  }
  least = __reduce_min_sync(~0u, least), most = __reduce_max_sync(~0u, most);
  const bool rises = least == most && least >= 0;
  unsigned borders = 0, noted = 0;
#pragma unroll
  for (int i = 0; i < kLane; ++i) borders |= (token_of(base, i) < end) << i;
  borders &= begins;
  const unsigned seconds = seconds_of(begins);
  if (rises) {
    noted = counts & ~begins & seconds;
  } else if (least <= most) {
    noted = counts & ~begins;
  }
#pragma unroll 1
  for (; borders; borders &= borders - 1) note_border(t, side, tokens, token_of(base, __ffs(borders) - 1), status);
  if (end == tokens.count && end - 1 - base < kChunk && lane_index() == 31) note_border(t, side, tokens, end, status);
#pragma unroll
  for (int i = 0; i < kLane; ++i) {
    if (!(noted >> i & 1)) continue;
    const int own = c.ids[i / 4][i % 4], here = c.positions[i / 4][i % 4];
    note_step(t, side, own, steps[i]);
    if (rises) continue;
    atomicMin(&t.get(side, kLow, own - 1), min(here, here - steps[i])), atomicMax(&t.get(side, kHigh, own - 1), max(here, here - steps[i]));
  }
}

template <class Table> ATTN_INLINE void count_segments(Table &t, const Tokens &q, const Tokens &kv) {
  const bool self = q.ids == kv.ids && q.positions == kv.positions && q.count == kv.count;
  const int own = warp_index() * kChunk, stride = blockDim.x / 32 * kChunk;
  t.clear();
  for (int i = threadIdx.x; i < (Table::Segments + 31) / 32; i += blockDim.x) t.at.bad[i] = 0;
  if (threadIdx.x == 0) t.at.runs[0] = t.at.runs[1] = t.at.status = t.at.last = 0;
  if constexpr (Table::Cluster > 1) cluster_arrive();
  Part part = part_of(t, q);
  Chunk next = load_chunk(q, part.begin + own, part.end);
  __syncthreads();
  int status = 0;
#pragma unroll 1
  for (int side = 0; side < 2 - self; ++side) {
    const Tokens tokens = side_of(side, q, kv);
    if (side == 1) part = part_of(t, tokens), next = load_chunk(tokens, part.begin + own, part.end);
#pragma unroll 1
    for (int base = part.begin + own; base < part.end; base += stride) {
      Chunk chunk = next;
      next = load_chunk(tokens, base + stride, part.end);
      const bool ends = base + kChunk > part.end || base + kChunk == tokens.count;  // before its last token, or with the row's
      if (ends || !(note_plain_chunk(t, side, base, chunk) || note_bordered_chunk(t, side, tokens, base, chunk)))
        note_chunk(t, side, tokens, base, part.end, chunk, status);
    }
  }
  if (status) atomicOr(&t.at.status, status);
  gather(t, 2 - self);
  if (self && cluster_rank<Table::Cluster>() == 0) {
    for (int i = threadIdx.x; i < kFields * Table::Segments; i += blockDim.x) t.items()[kFields * Table::Segments + i] = t.items()[i];
    __syncthreads();
  }
}

// From here on the first block of a cluster is on its own. Of an even row its table is of what remains of each segment afterwards; of others it is empty.
template <bool Whole, class Table, class Bound> ATTN_INLINE void bound_segments(Table &t, const Tokens &q, Bound bound) {
  if (cluster_rank<Table::Cluster>() != 0) return;
  bool uneven = false;
  for (int s = threadIdx.x; s < Table::Segments; s += blockDim.x)
    if (t.meets(s)) uneven |= !(q.positions ? t.even(s) : t.whole(0, s) && t.whole(1, s));
  t.is_even = !__syncthreads_or(uneven);
  for (int s = threadIdx.x; s < Table::Segments; s += blockDim.x) {
    Bounds b = {kMost, kLeast, 0};  // nobody
    int n = t.get(0, kCount, s), m = t.get(1, kCount, s);
    if (!t.meets(s)) {
      n = m = 0;
    } else if (Whole && !(t.whole(0, s) && t.whole(1, s))) {
      t.flag(s, kSplit);
    } else {
      const int low_q = t.get(0, kLow, s), high_q = t.get(0, kHigh, s), low_kv = t.get(1, kLow, s), high_kv = t.get(1, kHigh, s);
      b = bound(n, low_q, high_q, m, low_kv, high_kv);
      if (t.is_even && q.positions) {  // queries from the least position on, keys up to the highest
        const unsigned step_q = n > 1 ? t.get(0, kLeastStep, s) : 1, step_kv = m > 1 ? t.get(1, kLeastStep, s) : 1;
        const int before = b.least <= low_q ? 0 : b.least > high_q ? n : int((unsigned(b.least - low_q) + step_q - 1) / step_q);
        n -= before, m = b.most < low_kv ? 0 : b.most >= high_kv ? m : int(unsigned(b.most - low_kv) / step_kv) + 1;
        t.get(0, kFirst, s) += before, t.get(0, kLow, s) = low_q + before * int(step_q);
      }
    }
    t.at.least[s] = b.least, t.at.most[s] = b.most, t.at.shift[s] = b.shift;
    if (t.is_even) t.get(0, kCount, s) = n, t.get(1, kCount, s) = m;
  }
  __syncthreads();
  if (!t.is_even) {
    t.clear();
    __syncthreads();
  }
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

// The id of a token that is selected, or 0.
template <class Table> ATTN_INLINE int selected_id(Table &t, int side, const Tokens &tokens, int at, int &status) {
  if (at < 0 || at >= tokens.count) return 0;
  const int position = tokens.positions ? tokens.positions[at] : 0, id = checked_id(t, tokens.ids[at], position, status);
  return id && is_within(t, side, id, position) ? id : 0;
}

template <class Table> ATTN_INLINE void select_side(Table &t, int side, const Tokens &tokens) {
  int runs = 0, status = 0;
#pragma unroll 1
  for (int base = 0; base < tokens.count; base += 4 * blockDim.x) {
    const int at = base + 4 * threadIdx.x;
    int previous = selected_id(t, side, tokens, at - 1, status);
    bool starts[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int id = selected_id(t, side, tokens, at + i, status);
      starts[i] = id && id != previous;
      previous = id;
      if (!id) continue;
      const int position = tokens.positions ? tokens.positions[at + i] : 0;
      atomicAdd(&t.get(side, kCount, id - 1), 1);
      atomicMin(&t.get(side, kFirst, id - 1), at + i), atomicMax(&t.get(side, kLast, id - 1), at + i);
      atomicMin(&t.get(side, kLow, id - 1), position), atomicMax(&t.get(side, kHigh, id - 1), position);
    }
    append_starts(t, side, runs, at, starts);
  }
  if (threadIdx.x == 0) t.at.runs[side] = runs;
}

// Writes the ids of selected tokens: by all blocks, which have the first one's bounds.
template <class Table> ATTN_INLINE void map_segments(Table &t, const Tokens &q, const Tokens &kv, int *ids_q, int *ids_kv) {
  constexpr int S = Table::Segments;
  cluster_sync<Table::Cluster>();
  if (cluster_rank<Table::Cluster>() != 0)
    for (int i = threadIdx.x; i < 2 * S; i += blockDim.x) t.at.least[i] = *of_block<Table::Cluster>(t.at.least + i, 0);
  cluster_sync<Table::Cluster>();
  int status = 0;
#pragma unroll 1
  for (int side = 0; side < 2; ++side) {
    const Tokens tokens = side_of(side, q, kv);
    const Part part = part_of(t, tokens);
    int *const to = (side ? ids_kv : ids_q) + (long long)row_index<Table::Cluster>() * tokens.count;
#pragma unroll 1
    for (int at = part.begin + threadIdx.x; at < part.end; at += blockDim.x) to[at] = selected_id(t, side, tokens, at, status);
  }
}

template <class Table>
ATTN_INLINE void select_segments(Table &t, const Tokens &q, const Tokens &kv, int *ids_q = nullptr, int *ids_kv = nullptr) {
  if (ids_q) map_segments(t, q, kv, ids_q, ids_kv);
  if (t.is_even || cluster_rank<Table::Cluster>() != 0) return;
#pragma unroll 1
  for (int side = 0; side < 2; ++side) select_side(t, side, side_of(side, q, kv));
  __syncthreads();
  for (int s = threadIdx.x; s < Table::Segments; s += blockDim.x)
    if (t.get(0, kCount, s) > 0 && !(t.whole(0, s) && t.whole(1, s))) t.flag(s, kSplit);
  __syncthreads();
}

// Claims are about all pairs of a segment. Of an even row the diagonal of positions is a number. Else, where the claimed diagonal passes between
// pairs, it is enough to ask at each query for the last key before it and the first behind it, and at each key likewise: positions then rise along
// the diagonal, and all other pairs follow. Where it passes by, extremes say.
template <class Table, class Says> ATTN_INLINE void check_segments(Table &t, const Tokens &q, const Tokens &kv, Says claims) {
  if (cluster_rank<Table::Cluster>() != 0) return;
  if (t.is_even) {
    for (int s = threadIdx.x; s < Table::Segments; s += blockDim.x) {
      const int n = t.get(0, kCount, s), m = t.get(1, kCount, s), step = n > 1 ? t.get(0, kLeastStep, s) : m > 1 ? t.get(1, kLeastStep, s) : 1;
      if (n == 0 || m == 0) continue;
      for (const auto &c : claims(n, m, t.at.shift[s]).claim) {
        // Positions have their diagonal where x / step is.
        const long long x = (long long)t.get(0, kLow, s) - t.get(1, kLow, s) + c.shift, d = c.diagonal;
        const bool same = d * step <= x && x < (d + 1) * step;
        const bool all = d >= m - 1 && x >= (long long)(m - 1) * step, none = d <= -n && x < (long long)(1 - n) * step;
        if (!same && !all && !none) t.flag(s, kPositions);
      }
    }
    __syncthreads();
    return;
  }
  for (int s = threadIdx.x; s < Table::Segments; s += blockDim.x) {
    const int n = t.get(0, kCount, s), m = t.get(1, kCount, s);
    if (n == 0 || m == 0 || t.is_bad(s)) continue;
    for (const auto &c : claims(n, m, t.at.shift[s]).claim)
      if ((c.diagonal >= m - 1 && t.get(1, kHigh, s) > (long long)t.get(0, kLow, s) + c.shift) ||
          (c.diagonal <= -n && t.get(1, kLow, s) <= (long long)t.get(0, kHigh, s) + c.shift))
        t.flag(s, kPositions);
  }
#pragma unroll 1
  for (int side = 0; side < 2; ++side) {
    const Tokens own = side_of(side, q, kv);
#pragma unroll 1
    for (int at = threadIdx.x; at < own.count; at += blockDim.x) {
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

// The segments of both sides in the order of their first tokens, which is that of ids most of the time; -1 behind the last. Says how many.
template <class Table> ATTN_INLINE void sort_segments(Table &t, int (&counts)[2]) {
  constexpr int S = Table::Segments;
  counts[0] = counts[1] = 0;
  for (int base = 0; base < S; base += blockDim.x) {
    const int s = base + threadIdx.x, taken[2] = {s < S && t.get(0, kCount, s) > 0, s < S && t.get(1, kCount, s) > 0};
    int before[2], total[2];
    sums_before(t, taken, before, total);
#pragma unroll
    for (int side = 0; side < 2; ++side) {
      if (taken[side]) t.order(side, counts[side] + before[side]) = s;
      counts[side] += total[side];
    }
  }
  __syncthreads();
  bool unsorted = false;
#pragma unroll
  for (int side = 0; side < 2; ++side)
    for (int i = threadIdx.x; i < S; i += blockDim.x) {
      if (i >= counts[side]) t.order(side, i) = -1;
      if (i + 1 < counts[side]) unsorted |= t.get(side, kFirst, t.order(side, i)) > t.get(side, kFirst, t.order(side, i + 1));
    }
  if (!__syncthreads_or(unsorted)) return;
#pragma unroll 1
  for (int i = threadIdx.x; i < 2 * S; i += blockDim.x) {
    const int side = i / S, s = i % S;
    if (t.get(side, kCount, s) == 0) continue;
    int before = 0;
#pragma unroll 1
    for (int other = 0; other < S; ++other) before += t.get(side, kCount, other) > 0 && t.get(side, kFirst, other) < t.get(side, kFirst, s);
    t.order(side, before) = s;
  }
  __syncthreads();
}

template <class Table>
ATTN_INLINE void write_segments(Table &t, int *seqlens_q, int *seqlens_kv, int *offsets_q, int *offsets_kv, int *status) {
  constexpr int S = Table::Segments;
  if (cluster_rank<Table::Cluster>() != 0) return;
  const long long row = row_index<Table::Cluster>();
  int counts[2];
  sort_segments(t, counts);
#pragma unroll
  for (int side = 0; side < 2; ++side) {
    int *const lengths = (side ? seqlens_kv : seqlens_q) + row * S, *const offsets = (side ? offsets_kv : offsets_q) + row * (S + 1);
    const int runs = t.is_even ? counts[side] : t.at.runs[side];
    for (int i = threadIdx.x; i <= S; i += blockDim.x)
      offsets[i] = i >= runs ? -1 : t.is_even ? t.get(side, kFirst, t.order(side, i)) : t.at.starts[side][i];
    for (int s = threadIdx.x; s < S; s += blockDim.x) lengths[s] = t.get(side, kCount, s);
  }
  if (threadIdx.x == 0) status[row] = t.at.status;
}

}  // namespace attn
