// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a cluster of blocks knows of the segments of its row, in shared memory, and which tokens it is about.
#pragma once
#include "attn/cluster.cuh"

namespace attn {

// The tokens of one side of a row.
struct Tokens {
  const int *ids, *positions; // no positions: they do not count
  int count;
};
ATTN_INLINE Tokens side_of(int side, const Tokens &q, const Tokens &kv) { // in registers
  return {side ? kv.ids : q.ids, side ? kv.positions : q.positions, side ? kv.count : q.count};
}
ATTN_INLINE Tokens tokens(const int *ids, int row, int count) { return {ids + (long long)row * count, nullptr, count}; }
ATTN_INLINE Tokens tokens(const int *ids, int row, int count, const int *positions, int position_rows) {
  return {ids + (long long)row * count, positions + (long long)(row % position_rows) * count, count};
}

// What the table has of each id and side: how many tokens, the first and the last, and of positions the lowest, the
// highest, and the lowest and highest step from a token to the next.
enum Field { kCount, kFirst, kLast, kLow, kHigh, kLeastStep, kMostStep, kFields };
constexpr int kLeast = -2147483647 - 1, kMost = 2147483647;
ATTN_INLINE bool is_least(int field) { return field == kFirst || field == kLow || field == kLeastStep; }
ATTN_INLINE int neutral(int field) { return field == kCount ? 0 : is_least(field) ? kMost : kLeast; }

enum Status { kBadId = 1, kSplit = 2, kPositions = 4, kBadPosition = 8 };

// Bounds: the least position of a query, the highest of a key, the shift between them.
struct Bounds {
  int least, most, shift;
};
// A claim: key <= query + diagonal if and only if its position <= that of the query + shift.
struct Claim {
  int diagonal, shift;
};
template <int N> struct Claims {
  Claim claim[N];
};

constexpr int kBuckets = 256;
template <int S, int Blocks, int Bytes> struct Table {
  static constexpr int Segments = S, Cluster = Blocks;
  struct Layout {
    union {
      int items[2][kFields][S];
      struct {
        int counts[32][kBuckets], begins[kBuckets];
      } sort;
    };
    int least[S], most[S], shift[S];
    int starts[2][S + 1];        // of runs of an uneven row
    unsigned bad[(S + 31) / 32]; // segments without a place among the sequences
    int runs[2], status, last, totals[2][3][32];
  };
  static_assert(sizeof(Layout) <= Bytes);
  Layout &at;
  bool is_even = false; // the row, in each of its segments
  ATTN_INLINE explicit Table(int offset) : at(*reinterpret_cast<Layout *>(shared_memory + offset)) {}
  int sums = 0; // that the block has made, whose parts have two places by turns
  ATTN_INLINE void clear(int sides) {
#pragma unroll 1
    for (int i = threadIdx.x; i < sides * S; i += blockDim.x)
#pragma unroll
      for (int field = 0; field < kFields; ++field)
        get(i / S, field, i % S) = neutral(field);
  }
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
    const int n = get(0, kCount, segment), m = get(1, kCount, segment), step_q = get(0, kLeastStep, segment),
              step_kv = get(1, kLeastStep, segment);
    return whole(0, segment) && whole(1, segment) && (n == 1 || (step_q > 0 && step_q == get(0, kMostStep, segment))) &&
           (m == 1 || (step_kv > 0 && step_kv == get(1, kMostStep, segment))) &&
           (n == 1 || m == 1 || step_q == step_kv);
  }
  ATTN_INLINE void flag(int segment, int status) {
    atomicOr(&at.bad[segment / 32], 1u << segment % 32);
    atomicOr(&at.status, status);
  }
  ATTN_INLINE bool is_bad(int segment) { return at.bad[segment / 32] >> segment % 32 & 1; }
};

// Adds to *to, or makes it the least or the most, by field.
ATTN_INLINE void combine(int field, int *to, int x) {
  field == kCount ? atomicAdd(to, x) : is_least(field) ? atomicMin(to, x) : atomicMax(to, x);
}

// Adds up the tables of a cluster's blocks in the first of them, which has said that its own is cleared. `sides`: of q
// only, or both.
template <class Table> ATTN_INLINE void gather(Table &t, int sides) {
  __syncthreads();
  if constexpr (Table::Cluster > 1) {
    cluster_wait();
    if (cluster_rank<Table::Cluster>() != 0) {
      for (int i = threadIdx.x; i < sides * Table::Segments; i += blockDim.x) {
        int *const own = &t.get(i / Table::Segments, 0, i % Table::Segments), *const to =
                                                                                  of_block<Table::Cluster>(own, 0);
        int x[kFields];
#pragma unroll
        for (int field = 0; field < kFields; ++field)
          x[field] = own[field * Table::Segments];
#pragma unroll
        for (int field = 0; field < kFields; ++field)
          if (x[field] != neutral(field))
            combine(field, to + field * Table::Segments, x[field]);
      }
      if (threadIdx.x == 0 && t.at.status)
        atomicOr(of_block<Table::Cluster>(&t.at.status, 0), t.at.status);
    }
    cluster_sync<Table::Cluster>();
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

} // namespace attn
