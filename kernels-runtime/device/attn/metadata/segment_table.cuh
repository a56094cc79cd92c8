// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The segment table in shared memory, which a cluster of CTAs fills for the segments of its batch row, and views of the
// row's tokens.
#pragma once
#include "attn/ptx/cluster.cuh"

namespace attn {

// The tokens of one side (queries or keys) of a row.
struct Tokens {
  const int *ids, *positions; // null: the problem has no positions
  int count;
};
// Selected field by field, so that all of it stays in registers.
ATTN_INLINE Tokens side_of(int side, const Tokens &q, const Tokens &kv) {
  return {side ? kv.ids : q.ids, side ? kv.positions : q.positions, side ? kv.count : q.count};
}
ATTN_INLINE Tokens tokens(const int *ids, int row, int count) { return {ids + (long long)row * count, nullptr, count}; }
ATTN_INLINE Tokens tokens(const int *ids, int row, int count, const int *positions, int position_rows) {
  return {ids + (long long)row * count, positions + (long long)(row % position_rows) * count, count};
}

// Fields for each id and side: the number of tokens, the first and the last one; the lowest and highest position, and
// the lowest and highest step of positions between neighbours.
enum Field { kCount, kFirst, kLast, kLow, kHigh, kLeastStep, kMostStep, kFields };
constexpr int kLeast = -2147483647 - 1, kMost = 2147483647;
ATTN_INLINE bool is_least(int field) { return field == kFirst || field == kLow || field == kLeastStep; }
ATTN_INLINE int neutral(int field) { return field == kCount ? 0 : is_least(field) ? kMost : kLeast; }

// Bits of a row's status: an id that is out of range, a segment that is not contiguous, positions that do not follow
// the mask of lengths and offsets, a position that is out of range.
enum Status { kBadId = 1, kSplit = 2, kPositions = 4, kBadPosition = 8 };

// Limits of visible tokens: the least position of a query, the highest of a key, and the shift between both.
struct Bounds {
  int least, most, shift;
};
// The statement to check: key <= query + diagonal if and only if the key's position <= the query's position + shift.
struct DiagonalCheck {
  int diagonal, shift;
};
template <int N> struct DiagonalChecks {
  DiagonalCheck check[N];
};

constexpr int kBuckets = 256; // of the sort of query tiles by cost
template <int S, int CtaCount, int Bytes> struct SegmentTable {
  static constexpr int Segments = S, Cluster = CtaCount;
  struct Layout {
    union {
      int items[2][kFields][S];
      struct {
        int counts[32][kBuckets], begins[kBuckets];
      } sort;
    };
    int least[S], most[S], shift[S];
    int starts[2][S + 1];        // starts of runs in an uneven row
    unsigned bad[(S + 31) / 32]; // segments that are left out of the sequences
    int runs[2], status, last, totals[2][3][32];
  };
  static_assert(sizeof(Layout) <= Bytes);
  Layout &at;
  bool is_even = false; // even() is true for every segment of the row
  ATTN_INLINE explicit SegmentTable(int offset) : at(*reinterpret_cast<Layout *>(shared_memory + offset)) {}
  int sums = 0; // number of sums over the CTA so far; their buffers alternate
  ATTN_INLINE void clear(int sides) {
#pragma unroll 1
    for (int i = threadIdx.x; i < sides * S; i += blockDim.x)
#pragma unroll
      for (int field = 0; field < kFields; ++field)
        get(i / S, field, i % S) = neutral(field);
  }
  ATTN_INLINE int &get(int side, int field, int segment) { return at.items[side][field][segment]; }
  // Segments in the order of their first tokens, then -1. They overlay the field kLast, which is not needed any more.
  ATTN_INLINE int &order(int side, int i) { return at.items[side][kLast][i]; }
  // Do both sides have tokens of the segment?
  ATTN_INLINE bool on_both_sides(int segment) { return get(0, kCount, segment) > 0 && get(1, kCount, segment) > 0; }
  // Are the segment's tokens contiguous?
  ATTN_INLINE bool is_contiguous(int side, int segment) {
    return get(side, kLast, segment) - get(side, kFirst, segment) + 1 == get(side, kCount, segment);
  }
  // Is the segment contiguous on both sides, with positions that rise by one common step?
  ATTN_INLINE bool even(int segment) {
    const int n = get(0, kCount, segment), m = get(1, kCount, segment), step_q = get(0, kLeastStep, segment),
              step_kv = get(1, kLeastStep, segment);
    return is_contiguous(0, segment) && is_contiguous(1, segment) &&
           (n == 1 || (step_q > 0 && step_q == get(0, kMostStep, segment))) &&
           (m == 1 || (step_kv > 0 && step_kv == get(1, kMostStep, segment))) &&
           (n == 1 || m == 1 || step_q == step_kv);
  }
  ATTN_INLINE void flag(int segment, int status) {
    atomicOr(&at.bad[segment / 32], 1u << segment % 32);
    atomicOr(&at.status, status);
  }
  ATTN_INLINE bool is_bad(int segment) { return at.bad[segment / 32] >> segment % 32 & 1; }
};

// Reduces into *to by sum, minimum or maximum, according to the field.
ATTN_INLINE void reduce_field(int field, int *to, int x) {
  field == kCount ? atomicAdd(to, x) : is_least(field) ? atomicMin(to, x) : atomicMax(to, x);
}

// Reduces the tables of a cluster's CTAs into that of the first CTA, which has arrived after clearing its own. `sides`:
// 1 for queries only, or 2.
template <class SegmentTable> ATTN_INLINE void gather(SegmentTable &t, int sides) {
  __syncthreads();
  if constexpr (SegmentTable::Cluster > 1) {
    cluster_wait();
    if (cluster_rank<SegmentTable::Cluster>() != 0) {
      for (int i = threadIdx.x; i < sides * SegmentTable::Segments; i += blockDim.x) {
        int *const own = &t.get(i / SegmentTable::Segments, 0, i % SegmentTable::Segments),
                   *const to = map_shared_rank<SegmentTable::Cluster>(own, 0);
        int x[kFields];
#pragma unroll
        for (int field = 0; field < kFields; ++field)
          x[field] = own[field * SegmentTable::Segments];
#pragma unroll
        for (int field = 0; field < kFields; ++field)
          if (x[field] != neutral(field))
            reduce_field(field, to + field * SegmentTable::Segments, x[field]);
      }
      if (threadIdx.x == 0 && t.at.status)
        atomicOr(map_shared_rank<SegmentTable::Cluster>(&t.at.status, 0), t.at.status);
    }
    cluster_sync<SegmentTable::Cluster>();
  }
}

constexpr int kFar = 1 << 29; // positions beyond are out of range
ATTN_INLINE bool is_far(int position) { return position > kFar || position < -kFar; }
// The id of a token, or 0 for a token that is padding or invalid, whose status is added.
template <class SegmentTable> ATTN_INLINE int checked_id(const SegmentTable &, int id, int position, int &status) {
  const bool bad = unsigned(id) > SegmentTable::Segments, far = id != 0 && is_far(position);
  status |= bad ? kBadId : far ? kBadPosition : 0;
  return bad || far ? 0 : id;
}
template <class SegmentTable> ATTN_INLINE bool is_within(SegmentTable &t, int side, int id, int position) {
  return side == 0 ? position >= t.at.least[id - 1] : position <= t.at.most[id - 1];
}

} // namespace attn
