// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The one look at all tokens: each warp has 512 at a time, and most of these go on as those before them did.
#pragma once
#include "attn/table.cuh"

namespace attn {

// A warp's next 512 tokens: a lane has four from 4 * lane on, and four of each 128 behind them; and the token before the first. Id 0: does not count.
constexpr int kLane = 16, kChunk = 32 * kLane;
struct Chunk {
  int ids[kLane / 4][4], positions[kLane / 4][4], id_before, position_before;
};
ATTN_INLINE int token_of(int base, int i) { return base + i / 4 * 128 + 4 * lane_index() + i % 4; }
// A lane's elements of an array; 0 from `end` on.
ATTN_INLINE void load_lane(const int *from, int base, int end, int (&x)[kLane / 4][4]) {
  if (base + kChunk <= end && ((unsigned long long)(from + base) & 15) == 0) {
#pragma unroll
    for (int k = 0; k < kLane / 4; ++k) {
      const int4 v = *(const int4 *)(from + token_of(base, 4 * k));
      x[k][0] = v.x, x[k][1] = v.y, x[k][2] = v.z, x[k][3] = v.w;
    }
  } else {
#pragma unroll
    for (int i = 0; i < kLane; ++i) x[i / 4][i % 4] = token_of(base, i) < end ? from[token_of(base, i)] : 0;
  }
}
ATTN_INLINE Chunk load_chunk(const Tokens &tokens, int base, int end) {
  Chunk c = {};
  if (base > 0 && base < end) {
    c.id_before = tokens.ids[base - 1];
    if (tokens.positions) c.position_before = tokens.positions[base - 1];
  }
  load_lane(tokens.ids, base, end, c.ids);
  if (tokens.positions) load_lane(tokens.positions, base, end, c.positions);
  return c;
}

// What tokens are to those before them: of the same run or not, and the step from there.
struct Neighbours {
  int steps[kLane];
  unsigned begins, counts;  // bit i: token i begins a run; it is of a segment
};
ATTN_INLINE Neighbours neighbours_of(const Chunk &c) {
  Neighbours n;
  n.begins = n.counts = 0;
  int id = c.id_before, position = c.position_before;
#pragma unroll
  for (int k = 0; k < kLane / 4; ++k) {
    const int id_left = __shfl_up_sync(~0u, c.ids[k][3], 1), position_left = __shfl_up_sync(~0u, c.positions[k][3], 1);
    if (lane_index() > 0) id = id_left, position = position_left;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      n.steps[4 * k + i] = c.positions[k][i] - position;
      n.begins |= (c.ids[k][i] != id) << (4 * k + i), n.counts |= (c.ids[k][i] != 0) << (4 * k + i);
      id = c.ids[k][i], position = c.positions[k][i];
    }
    id = __shfl_sync(~0u, id, 31), position = __shfl_sync(~0u, position, 31);  // for lane 0
  }
  return n;
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
  return (begins << 1 & 0xeeee) | (lane_index() ? left >> 3 & 0x1111 : 1 | (far << 1 & 0x1110));
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
  const Neighbours n = neighbours_of(c);
  unsigned most_id = c.id_before, uneven = 0;
  int low = c.position_before, high = c.position_before;
#pragma unroll
  for (int i = 0; i < kLane; ++i)
    most_id = max(most_id, unsigned(c.ids[i / 4][i % 4])), low = min(low, c.positions[i / 4][i % 4]), high = max(high, c.positions[i / 4][i % 4]);
  const unsigned inside = __ballot_sync(~0u, (n.counts & ~n.begins >> 1 & 1) != 0);  // lanes that know the step
  const int step = __shfl_sync(~0u, n.steps[1], __ffs(inside) - 1);
#pragma unroll
  for (int i = 0; i < kLane; ++i)
    if (n.counts & ~n.begins & 1u << i) uneven |= n.steps[i] ^ step;
  if (!inside || step < 0 || !__all_sync(~0u, most_id <= Table::Segments && !is_far(low) && !is_far(high) && uneven == 0)) return false;
  int status = 0;
#pragma unroll 1
  for (unsigned left = n.begins; left; left &= left - 1) note_border(t, side, tokens, token_of(base, __ffs(left) - 1), status);
#pragma unroll 1
  for (unsigned left = n.counts & ~n.begins & seconds_of(n.begins); left; left &= left - 1)
    note_step(t, side, tokens.ids[token_of(base, __ffs(left) - 1)], step);
  return true;
}

// What there is to know of a run is at its borders, as long as positions rise by the same step, which is noted once a run and chunk. Where they do not,
// each token notes its step and positions.
template <class Table> ATTN_INLINE void note_chunk(Table &t, int side, const Tokens &tokens, int base, Chunk &c, int &status) {
  c.id_before = checked_id(t, c.id_before, c.position_before, status);
#pragma unroll
  for (int i = 0; i < kLane; ++i) c.ids[i / 4][i % 4] = checked_id(t, c.ids[i / 4][i % 4], c.positions[i / 4][i % 4], status);
  const Neighbours n = neighbours_of(c);
  int least = kMost, most = kLeast;
#pragma unroll
  for (int i = 0; i < kLane; ++i)
    if (n.counts & ~n.begins & 1u << i) least = min(least, n.steps[i]), most = max(most, n.steps[i]);
  least = __reduce_min_sync(~0u, least), most = __reduce_max_sync(~0u, most);
  const bool rises = least == most && least >= 0;
  unsigned noted = 0;
  const unsigned seconds = seconds_of(n.begins);
  if (rises) {
    noted = n.counts & ~n.begins & seconds;
  } else if (least <= most) {
    noted = n.counts & ~n.begins;
  }
#pragma unroll 1
  for (unsigned left = n.begins; left; left &= left - 1) note_border(t, side, tokens, token_of(base, __ffs(left) - 1), status);
#pragma unroll
  for (int i = 0; i < kLane; ++i) {
    if (!(noted >> i & 1)) continue;
    const int own = c.ids[i / 4][i % 4], here = c.positions[i / 4][i % 4];
    note_step(t, side, own, n.steps[i]);
    if (rises) continue;
    atomicMin(&t.get(side, kLow, own - 1), min(here, here - n.steps[i])), atomicMax(&t.get(side, kHigh, own - 1), max(here, here - n.steps[i]));
  }
}

// The chunks of both sides, one behind the other, dealt out to the blocks of a cluster in equal parts.
struct Chunks {
  const Tokens &q, &kv;
  int of_q, begin, end;
  template <class Table> ATTN_INLINE Chunks(const Table &, const Tokens &q, const Tokens &kv, bool self) : q(q), kv(kv), of_q((q.count + kChunk - 1) / kChunk) {
    const int all = of_q + (self ? 0 : (kv.count + kChunk - 1) / kChunk), each = (all + Table::Cluster - 1) / Table::Cluster;
    begin = min(cluster_rank<Table::Cluster>() * each, all), end = min(begin + each, all);
  }
  ATTN_INLINE int side(int i) const { return i >= of_q; }
  ATTN_INLINE int base(int i) const { return (i - (i >= of_q ? of_q : 0)) * kChunk; }
  ATTN_INLINE Tokens tokens(int i) const { return side_of(side(i), q, kv); }
  ATTN_INLINE Chunk load(int i) const {
    const Tokens t = tokens(i);
    return load_chunk(t, base(i), i < end ? t.count : 0);
  }
};

template <class Table> ATTN_INLINE void count_segments(Table &t, const Tokens &q, const Tokens &kv) {
  const bool self = q.ids == kv.ids && q.positions == kv.positions && q.count == kv.count;
  const int warps = blockDim.x / 32;
  t.clear(2 - self);
  for (int j = threadIdx.x; j < (Table::Segments + 31) / 32; j += blockDim.x) t.at.bad[j] = 0;
  if (threadIdx.x == 0) t.at.runs[0] = t.at.runs[1] = t.at.status = t.at.last = 0;
  if constexpr (Table::Cluster > 1) cluster_rank<Table::Cluster>() == 0 ? cluster_arrive() : cluster_arrive</*Relaxed=*/true>();
  const Chunks chunks(t, q, kv, self);
  int i = chunks.begin + warp_index();
  Chunk chunk = chunks.load(i);
  __syncthreads();
  int status = 0;
#pragma unroll 1
  for (; i < chunks.end; chunk = chunks.load(i)) {
    const Tokens tokens = chunks.tokens(i);
    const int side = chunks.side(i), base = chunks.base(i);
    if (!(note_plain_chunk(t, side, base, chunk) || note_bordered_chunk(t, side, tokens, base, chunk)))
      note_chunk(t, side, tokens, base, chunk, status);
    if (base + kChunk == tokens.count && lane_index() == 31) note_border(t, side, tokens, tokens.count, status);
    i += warps;
  }
  if (status) atomicOr(&t.at.status, status);
  gather(t, 2 - self);
  if (self && cluster_rank<Table::Cluster>() == 0)
    for (int s = threadIdx.x; s < Table::Segments; s += blockDim.x)
#pragma unroll
      for (int field = 0; field < kFields; ++field) t.get(1, field, s) = t.get(0, field, s);
}

}  // namespace attn
