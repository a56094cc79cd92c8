// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The pass over all tokens that fills the segment table. Each warp reads 512 tokens at a time, most of which continue a
// run of tokens with the same id.
#pragma once
#include "attn/metadata/segment_table.cuh"

namespace attn {

// A warp's next 512 tokens, and the token before the first: a lane has the four tokens from 4 * lane on of each 128.
// Tokens with id 0 are padding.
constexpr int kLane = 16, kChunk = 32 * kLane; // tokens of a lane and of a warp
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
    for (int i = 0; i < kLane; ++i)
      x[i / 4][i % 4] = token_of(base, i) < end ? from[token_of(base, i)] : 0;
  }
}
ATTN_INLINE Chunk load_chunk(const Tokens &tokens, int base, int end) {
  Chunk c = {};
  if (base > 0 && base < end) {
    c.id_before = tokens.ids[base - 1];
    if (tokens.positions)
      c.position_before = tokens.positions[base - 1];
  }
  load_lane(tokens.ids, base, end, c.ids);
  if (tokens.positions)
    load_lane(tokens.positions, base, end, c.positions);
  return c;
}

// Records a border of a run: token `at` begins a run or is the first one after a run. Returns its id if a further token
// before `end` continues the run, else 0.
template <class SegmentTable>
ATTN_INLINE int record_border(SegmentTable &t, int side, const Tokens &tokens, int at, int end, int &status) {
  auto id_at = [&](int i) { return i >= 0 && i < tokens.count ? tokens.ids[i] : 0; };
  auto position_at = [&](int i) { return i >= 0 && i < tokens.count && tokens.positions ? tokens.positions[i] : 0; };
  const int id_left = id_at(at - 1), id_at_border = id_at(at), next = at + 1 < end ? id_at(at + 1) : 0;
  const int position_left = position_at(at - 1), position = position_at(at);
  if (const int id = checked_id(t, id_at_border, position, status)) {
    atomicAdd(&t.get(side, kCount, id - 1), -at);
    atomicMin(&t.get(side, kFirst, id - 1), at), atomicMin(&t.get(side, kLow, id - 1), position);
  }
  if (const int id = checked_id(t, id_left, position_left, status)) {
    atomicAdd(&t.get(side, kCount, id - 1), at);
    atomicMax(&t.get(side, kLast, id - 1), at - 1), atomicMax(&t.get(side, kHigh, id - 1), position_left);
  }
  return next == id_at_border ? id_at_border : 0;
}
template <class SegmentTable> ATTN_INLINE void record_step(SegmentTable &t, int side, int id, int step) {
  atomicMin(&t.get(side, kLeastStep, id - 1), step), atomicMax(&t.get(side, kMostStep, id - 1), step);
}

// The fast path for nearly all chunks: positions rise by the same step within all runs. A lane's four consecutive
// tokens are tested as one, and a run is described by its borders. Returns false, and records nothing, if the chunk is
// not of this kind.
template <class SegmentTable>
ATTN_INLINE bool record_even_chunk(SegmentTable &t, int side, const Tokens &tokens, int base, const Chunk &c,
                                   int &status) {
  bool has_step = false;
  int step = 0;
#pragma unroll
  for (int k = 0; k < kLane / 4; ++k)
    if (c.ids[k][0] != 0 && c.ids[k][0] == c.ids[k][1])
      has_step = true, step = c.positions[k][1] - c.positions[k][0];
  step = __shfl_sync(~0u, step, (__ffs(__ballot_sync(~0u, has_step)) - 1) & 31);
  // With a small step, two tokens of a run suffice to check its id and the range of its positions.
  unsigned most_id = 0, farthest = 0, irregular = 0, begins = 0; // bit i: token i begins a run
  auto observe = [&](int id, int position) {
    most_id = max(most_id, unsigned(id)), farthest = max(farthest, id ? unsigned(position) + kFar : 0u);
  };
  int id = c.id_before, position = c.position_before;
  observe(id, position), observe(c.ids[kLane / 4 - 1][3], c.positions[kLane / 4 - 1][3]);
#pragma unroll
  for (int k = 0; k < kLane / 4; ++k) {
    const int *const i = c.ids[k], *const p = c.positions[k];
    const int id_left = __shfl_up_sync(~0u, i[3], 1), position_left = __shfl_up_sync(~0u, p[3], 1);
    if (lane_index() > 0)
      id = id_left, position = position_left;
    const unsigned changes = (id ^ i[0]) | (i[0] ^ i[1]) | (i[1] ^ i[2]) | (i[2] ^ i[3]);
    const unsigned uneven =
        (p[0] - position - step) | (p[1] - p[0] - step) | (p[2] - p[1] - step) | (p[3] - p[2] - step);
    const int id_next = __shfl_sync(~0u, i[3], 31), position_next = __shfl_sync(~0u, p[3], 31); // for lane 0
    if ((changes | uneven) != 0 & (changes | i[0]) != 0) {
      observe(id, position);
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        const bool same = i[j] == id;
        begins |= unsigned(!same) << (4 * k + j), irregular |= same & id != 0 ? p[j] - position - step : 0;
        observe(i[j], p[j]);
        id = i[j], position = p[j];
      }
    }
    id = id_next, position = position_next;
  }
  if (!__all_sync(~0u, unsigned(step) <= kFar / kChunk & most_id <= SegmentTable::Segments & farthest <= 2u * kFar &
                           irregular == 0))
    return false;
  if (lane_index() == 0 && c.id_before != 0 && c.id_before == c.ids[0][0])
    record_step(t, side, c.id_before, step); // a run that began in an earlier chunk
#pragma unroll 1
  for (unsigned left = begins; left; left &= left - 1) {
    const int id = record_border(t, side, tokens, token_of(base, __ffs(left) - 1), base + kChunk, status);
    if (id)
      record_step(t, side, id, step);
  }
  return true;
}

// How each token relates to the one before it: whether it continues the run, and the step of its position.
struct Neighbours {
  int steps[kLane];
  unsigned begins, counts; // bit i: token i begins a run; token i is not padding
};
ATTN_INLINE Neighbours neighbours_of(const Chunk &c) {
  Neighbours n;
  n.begins = n.counts = 0;
  int id = c.id_before, position = c.position_before;
#pragma unroll
  for (int k = 0; k < kLane / 4; ++k) {
    const int id_left = __shfl_up_sync(~0u, c.ids[k][3], 1), position_left = __shfl_up_sync(~0u, c.positions[k][3], 1);
    if (lane_index() > 0)
      id = id_left, position = position_left;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      n.steps[4 * k + i] = c.positions[k][i] - position;
      n.begins |= (c.ids[k][i] != id) << (4 * k + i), n.counts |= (c.ids[k][i] != 0) << (4 * k + i);
      id = c.ids[k][i], position = c.positions[k][i];
    }
    id = __shfl_sync(~0u, id, 31), position = __shfl_sync(~0u, position, 31); // for lane 0
  }
  return n;
}

// From the bits of tokens that begin a run: the bits of the second token of each run, and of the chunk's first token,
// whose run may have begun in an earlier chunk.
ATTN_INLINE unsigned seconds_of(unsigned begins) {
  const unsigned left = __shfl_up_sync(~0u, begins, 1), far = __shfl_sync(~0u, begins, 31);
  return (begins << 1 & 0xeeee) | (lane_index() ? left >> 3 & 0x1111 : 1 | (far << 1 & 0x1110));
}

// The general path. While positions rise by one step, a run is described by its borders, and the step is recorded once
// for each run and chunk. Otherwise each token records its step and its positions.
template <class SegmentTable>
ATTN_INLINE void record_chunk(SegmentTable &t, int side, const Tokens &tokens, int base, Chunk &c, int &status) {
  c.id_before = checked_id(t, c.id_before, c.position_before, status);
#pragma unroll
  for (int i = 0; i < kLane; ++i)
    c.ids[i / 4][i % 4] = checked_id(t, c.ids[i / 4][i % 4], c.positions[i / 4][i % 4], status);
  const Neighbours n = neighbours_of(c);
  int least = kMost, most = kLeast;
#pragma unroll
  for (int i = 0; i < kLane; ++i)
    if (n.counts & ~n.begins & 1u << i)
      least = min(least, n.steps[i]), most = max(most, n.steps[i]);
  least = __reduce_min_sync(~0u, least), most = __reduce_max_sync(~0u, most);
  const bool rises = least == most && least >= 0;
  unsigned recorded = 0;
  const unsigned seconds = seconds_of(n.begins);
  if (rises) {
    recorded = n.counts & ~n.begins & seconds;
  } else if (least <= most) {
    recorded = n.counts & ~n.begins;
  }
#pragma unroll 1
  for (unsigned left = n.begins; left; left &= left - 1)
    record_border(t, side, tokens, token_of(base, __ffs(left) - 1), 0, status);
#pragma unroll
  for (int i = 0; i < kLane; ++i) {
    if (!(recorded >> i & 1))
      continue;
    const int own = c.ids[i / 4][i % 4], position_of_token = c.positions[i / 4][i % 4];
    record_step(t, side, own, n.steps[i]);
    if (rises)
      continue;
    atomicMin(&t.get(side, kLow, own - 1), min(position_of_token, position_of_token - n.steps[i])),
        atomicMax(&t.get(side, kHigh, own - 1), max(position_of_token, position_of_token - n.steps[i]));
  }
}

// The chunks of queries, then those of keys, distributed to the CTAs of a cluster in equal contiguous parts.
struct Chunks {
  const Tokens &q, &kv;
  int of_q, begin, end;
  template <class SegmentTable>
  ATTN_INLINE Chunks(const SegmentTable &, const Tokens &q, const Tokens &kv, bool self)
      : q(q), kv(kv), of_q((q.count + kChunk - 1) / kChunk) {
    const int all = of_q + (self ? 0 : (kv.count + kChunk - 1) / kChunk),
              each = (all + SegmentTable::Cluster - 1) / SegmentTable::Cluster;
    begin = min(cluster_rank<SegmentTable::Cluster>() * each, all), end = min(begin + each, all);
  }
  ATTN_INLINE int side(int i) const { return i >= of_q; }
  ATTN_INLINE int base(int i) const { return (i - (i >= of_q ? of_q : 0)) * kChunk; }
  ATTN_INLINE Tokens tokens(int i) const { return side_of(side(i), q, kv); }
  ATTN_INLINE Chunk load(int i) const {
    const Tokens t = tokens(i);
    return load_chunk(t, base(i), i < end ? t.count : 0);
  }
};

template <class SegmentTable> ATTN_INLINE void count_segments(SegmentTable &t, const Tokens &q, const Tokens &kv) {
  const bool self = q.ids == kv.ids && q.positions == kv.positions && q.count == kv.count;
  const int warps = blockDim.x / 32;
  t.clear(2 - self);
  for (int j = threadIdx.x; j < (SegmentTable::Segments + 31) / 32; j += blockDim.x)
    t.at.bad[j] = 0;
  if (threadIdx.x == 0)
    t.at.runs[0] = t.at.runs[1] = t.at.status = t.at.last = 0;
  if constexpr (SegmentTable::Cluster > 1)
    cluster_rank<SegmentTable::Cluster>() == 0 ? cluster_arrive() : cluster_arrive</*Relaxed=*/true>();
  const Chunks chunks(t, q, kv, self);
  int i = chunks.begin + warp_index();
  Chunk chunk = chunks.load(i);
  __syncthreads();
  int status = 0;
#pragma unroll 1
  while (i < chunks.end) {
    // A CTA without a cluster is not latency-bound and lacks the registers for a second chunk.
    constexpr bool Prefetches = SegmentTable::Cluster > 1;
    Chunk next;
    if (Prefetches)
      next = chunks.load(i + warps);
    const Tokens tokens = chunks.tokens(i);
    const int side = chunks.side(i), base = chunks.base(i);
    if (!record_even_chunk(t, side, tokens, base, chunk, status))
      record_chunk(t, side, tokens, base, chunk, status);
    if (base + kChunk == tokens.count && lane_index() == 31)
      record_border(t, side, tokens, tokens.count, 0, status);
    i += warps;
    chunk = Prefetches ? next : chunks.load(i);
  }
  if (status)
    atomicOr(&t.at.status, status);
  gather(t, 2 - self);
  if (self && cluster_rank<SegmentTable::Cluster>() == 0)
    for (int s = threadIdx.x; s < SegmentTable::Segments; s += blockDim.x)
#pragma unroll
      for (int field = 0; field < kFields; ++field)
        t.get(1, field, s) = t.get(0, field, s);
}

} // namespace attn
