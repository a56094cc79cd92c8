// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Lengths and offsets of segments, as in device/attn/metadata: one thread processes a batch row, so all steps are plain
// loops.
#pragma once

#include "attn/prelude.h"

namespace attn {

struct Tokens {
  const int *ids, *positions; // null: the problem has no positions
  int row, count;
};
ATTN_HELPER Tokens tokens(const int *ids, int row, int count) {
  return {ids + (long long)row * count, nullptr, row, count};
}
ATTN_HELPER Tokens tokens(const int *ids, int row, int count, const int *positions, int position_rows) {
  return {ids + (long long)row * count, positions + (long long)(row % position_rows) * count, row, count};
}

enum Status { kBadId = 1, kSplit = 2, kPositions = 4, kBadPosition = 8 };
constexpr int kLeast = -2147483647 - 1, kMost = 2147483647;

struct Bounds {
  int least, most, shift;
};
struct DiagonalCheck {
  int diagonal, shift;
};
template <int N> struct DiagonalChecks {
  DiagonalCheck check[N];
};

// The tokens of an id on one side.
struct SegmentSpan {
  int count = 0, first = kMost, last = kLeast, low = kMost, high = kLeast;
  bool is_contiguous() const { return last - first + 1 == count; }
};

template <int N> ATTN_HELPER int batch_row_index() { return block_index() / N; }

template <int S, int CtaCount, int Bytes> struct SegmentTable {
  static_assert(CtaCount == 1, "a CPU has no clusters");
  static constexpr int Segments = S;
  SegmentSpan seen[2][S];
  Bounds bounds[S];
  bool bad[S] = {};
  int starts[2][S + 1], runs[2] = {0, 0}, status = 0;
  bool last = false;
  explicit SegmentTable(int) {}
  void flag(int segment, int what) { bad[segment] = true, status |= what; }
};

template <class T> ATTN_HELPER int checked_id(T &t, const Tokens &x, int i) {
  constexpr int far = 1 << 29;
  const int id = x.ids[i];
  if (id < 0 || id > T::Segments) {
    t.status |= kBadId;
    return 0;
  }
  if (id && x.positions && (x.positions[i] > far || x.positions[i] < -far)) {
    t.status |= kBadPosition;
    return 0;
  }
  return id;
}
ATTN_HELPER int position_of(const Tokens &x, int i) { return x.positions ? x.positions[i] : 0; }
template <class T> ATTN_HELPER void record(T &t, int side, int id, int i, int p) {
  SegmentSpan &s = t.seen[side][id - 1];
  s.count += 1;
  s.first = min(s.first, i), s.last = max(s.last, i);
  s.low = min(s.low, p), s.high = max(s.high, p);
}
template <class T> ATTN_HELPER int selected_id(T &t, int side, const Tokens &x, int i) {
  const int id = checked_id(t, x, i), p = position_of(x, i);
  if (id == 0)
    return 0;
  const Bounds &b = t.bounds[id - 1];
  return (side == 0 ? p >= b.least : p <= b.most) ? id : 0;
}

template <class T> ATTN_TILE_OP void count_segments(T &t, const Tokens &q, const Tokens &kv) {
  for (int side = 0; side < 2; ++side) {
    const Tokens &x = side ? kv : q;
    for (int i = 0; i < x.count; ++i)
      if (const int id = checked_id(t, x, i))
        record(t, side, id, i, position_of(x, i));
  }
}

template <bool RequireContiguous, class T, class Bound>
ATTN_TILE_OP void bound_segments(T &t, const Tokens &, Bound bound) {
  for (int s = 0; s < T::Segments; ++s) {
    SegmentSpan &q = t.seen[0][s], &kv = t.seen[1][s];
    t.bounds[s] = {kMost, kLeast, 0}; // selects no token
    if (q.count > 0 && kv.count > 0) {
      if (!RequireContiguous || (q.is_contiguous() && kv.is_contiguous()))
        t.bounds[s] = bound(q.count, q.low, q.high, kv.count, kv.low, kv.high);
      else
        t.flag(s, kSplit);
    }
    q = kv = SegmentSpan();
  }
}

template <class T>
ATTN_TILE_OP void select_segments(T &t, const Tokens &q, const Tokens &kv, int *ids_q = nullptr,
                                  int *ids_kv = nullptr) {
  for (int side = 0; side < 2; ++side) {
    const Tokens &x = side ? kv : q;
    int *const to = side ? ids_kv : ids_q;
    int previous = 0;
    for (int i = 0; i < x.count; ++i) {
      const int id = selected_id(t, side, x, i);
      if (id)
        record(t, side, id, i, position_of(x, i));
      if (id && id != previous && t.runs[side]++ <= T::Segments)
        t.starts[side][t.runs[side] - 1] = i;
      if (to)
        to[(long long)x.row * x.count + i] = id;
      previous = id;
    }
  }
  for (int s = 0; s < T::Segments; ++s)
    if (t.seen[0][s].count > 0 && !(t.seen[0][s].is_contiguous() && t.seen[1][s].is_contiguous()))
      t.flag(s, kSplit);
}

template <class T, class Checks>
ATTN_TILE_OP void check_segments(T &t, const Tokens &q, const Tokens &kv, Checks checks) {
  for (int s = 0; s < T::Segments; ++s) {
    const SegmentSpan &a = t.seen[0][s], &b = t.seen[1][s];
    const int n = a.count, m = b.count;
    if (n == 0 || m == 0 || t.bad[s])
      continue;
    bool holds = true;
    const int *p = q.positions + a.first, *c = kv.positions + b.first;
    for (const DiagonalCheck &check : checks(n, m, t.bounds[s].shift).check) {
      const int d = check.diagonal;
      const long long shift = check.shift;
      if (d >= m - 1) {
        holds &= b.high <= a.low + shift;
      } else if (d <= -n) {
        holds &= b.low > a.high + shift;
      } else {
        for (int i = 0; i < n; ++i) {
          const int j = i + d;
          if (j >= 0)
            holds &= c[min(j, m - 1)] <= p[i] + shift;
          if (j + 1 <= m - 1)
            holds &= c[max(j + 1, 0)] > p[i] + shift;
        }
        for (int j = 0; j < m; ++j) {
          const int i = j - d;
          if (i <= n - 1)
            holds &= c[j] <= p[max(i, 0)] + shift;
          if (i - 1 >= 0)
            holds &= c[j] > p[min(i - 1, n - 1)] + shift;
        }
      }
    }
    if (!holds)
      t.flag(s, kPositions);
  }
}

template <class T>
ATTN_TILE_OP void write_segments(T &t, int *seqlens_q, int *seqlens_kv, int *offsets_q, int *offsets_kv, int *status) {
  constexpr int S = T::Segments;
  const long long row = block_index();
  for (int side = 0; side < 2; ++side) {
    for (int s = 0; s < S; ++s)
      (side ? seqlens_kv : seqlens_q)[row * S + s] = t.seen[side][s].count;
    for (int i = 0; i <= S; ++i)
      (side ? offsets_kv : offsets_q)[row * (S + 1) + i] = i < t.runs[side] ? t.starts[side][i] : -1;
  }
  status[row] = t.status;
}

template <class T>
ATTN_TILE_OP void write_sequences(T &t, const Tokens &q, const Tokens &kv, unsigned *queue, int rows, int *cu_q,
                                  int *offsets_q, int *cu_kv, int *offsets_kv) {
  constexpr int S = T::Segments;
  const int row = q.row, size = rows * S;
  int order[S], count = 0; // segments that are sequences, by their first query
  for (int s = 0; s < S; ++s) {
    if (t.seen[0][s].count == 0 || t.bad[s])
      continue;
    int i = count++;
    for (; i > 0 && t.seen[0][order[i - 1]].first > t.seen[0][s].first; --i)
      order[i] = order[i - 1];
    order[i] = s;
  }
  for (int i = 0; i < S; ++i) {
    const long long place = (long long)row * S + i;
    const SegmentSpan a = i < count ? t.seen[0][order[i]] : SegmentSpan();
    const SegmentSpan b = i < count ? t.seen[1][order[i]] : SegmentSpan();
    cu_q[place + 1] = a.count, cu_kv[place + 1] = b.count;
    offsets_q[place] = row * q.count + (a.count ? a.first : 0);
    offsets_kv[place] = row * kv.count + (b.count ? b.first : 0);
  }
  t.last = __atomic_add_fetch(queue, 1, __ATOMIC_ACQ_REL) == unsigned(rows);
  if (!t.last)
    return;
  *queue = 0;
  int used = 0;
  cu_q[0] = cu_kv[0] = 0;
  for (int i = 0; i < size; ++i) {
    if (cu_q[i + 1] == 0)
      continue;
    offsets_q[used] = offsets_q[i], offsets_kv[used] = offsets_kv[i];
    cu_q[used + 1] = cu_q[used] + cu_q[i + 1];
    cu_kv[used + 1] = cu_kv[used] + cu_kv[i + 1];
    ++used;
  }
  for (int i = used; i <= size; ++i) {
    offsets_q[i] = rows * q.count, offsets_kv[i] = rows * kv.count;
    if (i < size)
      cu_q[i + 1] = cu_q[used], cu_kv[i + 1] = cu_kv[used];
  }
}

template <int QTile, class T, class Cost>
ATTN_TILE_OP void list_query_tiles(T &t, const Tokens &q, const Tokens &kv, int rows, const int *cu_q,
                                   const int *offsets_q, const int *cu_kv, int *list, int *list_length, Cost cost) {
  if (!t.last)
    return;
  constexpr int buckets = 256;
  const int sequences = rows * T::Segments, total = rows * q.count;
  const long long longest = max(kv.count, 1);
  int begins[buckets + 1] = {};
  for (int pass = 0; pass < 2; ++pass) {
    for (int b = sequences; b >= -1; --b) { // the first and the last: padding
      const int begin = b < 0 ? 0 : offsets_q[b];
      const int end = b < sequences ? offsets_q[b + 1] : total;
      const bool real = b >= 0 && b < sequences;
      const int len_q = real ? cu_q[b + 1] - cu_q[b] : 0;
      const int len_kv = real ? cu_kv[b + 1] - cu_kv[b] : 0;
      const long long keys = max(cost(len_q, len_kv), 0);
      const long long steps = (keys * (buckets - 1) + longest - 1) / longest;
      const int costs = buckets - 1 - int(min(steps, buckets - 1ll));
      const int slot0 = b < 0 ? 0 : begin / QTile + b + 1;
      for (int i = (end - begin + QTile - 1) / QTile; i-- > 0;) {
        const int bucket = i * QTile < len_q ? costs : buckets - 1;
        if (pass)
          list[begins[bucket]++] = slot0 + i;
        else
          ++begins[bucket + 1];
      }
    }
    for (int i = 0; !pass && i < buckets; ++i)
      begins[i + 1] += begins[i];
  }
  *list_length = begins[buckets - 1]; // end of the last bucket but padding
}

} // namespace attn
