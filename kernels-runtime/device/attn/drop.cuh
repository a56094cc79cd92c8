// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Dropout on fragments. Their first rows and columns are multiples of 16, so a thread has all pairs of a call, and a
// loop over calls needs no test.
#pragma once
#include "attn/draws.cuh"
#include "attn/fragment.cuh"

namespace attn {

// Calls f(m, n, c, keeps) for each call, of a fragment whose rows are queries or, Turned, keys: of its elements (m, n +
// i / 2, i % 2 * 2 + c), those with keeps[i] stay.
template <bool Turned, int R, int N, int W, class F>
ATTN_INLINE void with_kept(const Frag<R, N, W> &s, int row0, int column0, Draws draws, int below, F f) {
  static_assert(N % 16 == 0);
  draws = uniform(draws);
#pragma unroll
  for (int m = 0; m < s.Blocks; ++m) {
    const int row = row0 + s.row(2 * m);
#pragma unroll
    for (int n = 0; n < s.Pieces; n += 2)
#pragma unroll
      for (int c = 0; c < 2; ++c) {
        const int column = column0 + s.col(n) + c;
        const uint2 pair = Turned ? draws.words(column, row) : draws.words(row, column);
        bool keeps[4];
        kept(keeps[0], keeps[Turned ? 2 : 1], pair.x, below);
        kept(keeps[Turned ? 1 : 2], keeps[3], pair.y, below);
        f(m, n, c, keeps);
      }
  }
}

template <bool Turned, int R, int N, int W>
ATTN_INLINE void drop_whole(Frag<R, N, W> &s, int row0, int column0, Draws draws, int below, float factor) {
  with_kept<Turned>(s, row0, column0, draws, below, [&](int m, int n, int c, const bool (&keeps)[4]) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      float &x = s.v[m][n + i / 2][i % 2 * 2 + c];
      x = keeps[i] ? x * factor : 0;
    }
  });
}
template <int R, int N, int W>
ATTN_INLINE void drop(Frag<R, N, W> &s, int row0, int column0, Draws draws, int below, float factor = 1) {
  drop_whole<false>(s, row0, column0, draws, below, factor);
}
template <int R, int N, int W>
ATTN_INLINE void drop_turned(Frag<R, N, W> &s, int row0, int column0, Draws draws, int below, float factor = 1) {
  drop_whole<true>(s, row0, column0, draws, below, factor);
}

// Those of dropped pairs become negative.
template <bool Turned, int R, int N, int W>
ATTN_INLINE void mark_whole(Frag<R, N, W> &s, int row0, int column0, Draws draws, int below) {
  with_kept<Turned>(s, row0, column0, draws, below, [&](int m, int n, int c, const bool (&keeps)[4]) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      float &x = s.v[m][n + i / 2][i % 2 * 2 + c];
      x = keeps[i] ? x : -x;
    }
  });
}
template <int R, int N, int W>
ATTN_INLINE void mark_dropped(Frag<R, N, W> &s, int row0, int column0, Draws draws, int below) {
  mark_whole<false>(s, row0, column0, draws, below);
}
template <int R, int N, int W>
ATTN_INLINE void mark_dropped_turned(Frag<R, N, W> &s, int row0, int column0, Draws draws, int below) {
  mark_whole<true>(s, row0, column0, draws, below);
}

// Calls f(register, mask of what it keeps) of what is held: a register has two columns of a row, whose calls are two.
template <bool Turned, class T, int R, int N, int W, class F>
ATTN_INLINE void with_kept(Held<T, R, N, W> &p, int row0, int column0, Draws draws, int below, F f) {
  draws = uniform(draws);
#pragma unroll
  for (int m = 0; m < p.Blocks; ++m)
#pragma unroll
    for (int k = 0; k < N / 16; ++k) {
      const int row = row0 + p.row(2 * m), column = column0 + k * 16 + lane_index() % 4 * 2;
      const uint2 even = Turned ? draws.words(column, row) : draws.words(row, column),
                  odd = Turned ? draws.words(column + 1, row) : draws.words(row, column + 1);
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int ofKeys = Turned ? i % 2 : i / 2, ofQueries = Turned ? i / 2 : i % 2;
        f(p.v[m][k][i],
          kept_mask(__byte_perm(ofKeys ? even.y : even.x, ofKeys ? odd.y : odd.x, ofQueries ? 0x7632 : 0x5410), below));
      }
    }
}
template <class T, int R, int N, int W>
ATTN_INLINE void drop(Held<T, R, N, W> &p, int row0, int column0, Draws draws, int below) {
  with_kept<false>(p, row0, column0, draws, below, [](unsigned &pair, unsigned mask) { pair &= mask; });
}
// The same in two halves. NOTE: volatile, so that masks are not put off until they are asked for: they are there to be
// made while products run.
template <class T, int R, int N, int W>
ATTN_INLINE void draw(Held<T, R, N, W> &kept, int row0, int column0, Draws draws, int below) {
  with_kept<false>(kept, row0, column0, draws, below, [](unsigned &pair, unsigned mask) {
    asm volatile("mov.b32 %0, %1;" : "=r"(pair) : "r"(mask));
  });
}
template <class T, int R, int N, int W> ATTN_INLINE void drop_drawn(Held<T, R, N, W> &p, const Held<T, R, N, W> &kept) {
#pragma unroll
  for (int m = 0; m < p.Blocks; ++m)
#pragma unroll
    for (int k = 0; k < N / 16; ++k)
#pragma unroll
      for (int i = 0; i < 4; ++i)
        p.v[m][k][i] &= kept.v[m][k][i];
}
template <class T, int R, int N, int W>
ATTN_INLINE void drop_turned(Held<T, R, N, W> &p, int row0, int column0, Draws draws, int below) {
  with_kept<true>(p, row0, column0, draws, below, [](unsigned &pair, unsigned mask) { pair &= mask; });
}
template <class T, int R, int N, int W>
ATTN_INLINE void mark_dropped_turned(Held<T, R, N, W> &p, int row0, int column0, Draws draws, int below) {
  with_kept<true>(p, row0, column0, draws, below, [](unsigned &pair, unsigned mask) { pair |= ~mask & 0x80008000; });
}

// Rows, or both sides, that are pairs of a position and a head.
template <int R, int N, int W, int H, class Column>
ATTN_INLINE void drop(Frag<R, N, W> &s, Pairs<H> row0, Column column0, DrawsOfHeads draws, int below,
                      float factor = 1) {
#pragma unroll
  for (int i = 0; i < 2 * s.Blocks; ++i) {
    const int r = s.row(i), q = query_of(row0, r);
    const Draws own = draws_of(draws, row0, r);
#pragma unroll
    for (int n = 0; n < s.Pieces; ++n)
#pragma unroll
      for (int c = 0; c < 2; ++c) {
        float &x = s.v[i / 2][n][i % 2 * 2 + c];
        x = own.drops(q, query_of(column0, s.col(n) + c), below) ? 0 : x * factor;
      }
  }
}

// Of what is held, columns are keys, of which a call has two. Rows of a thread have calls of their own.
template <class T, int R, int N, int W, int H>
ATTN_INLINE void drop(Held<T, R, N, W> &p, Pairs<H> row0, int column0, DrawsOfHeads draws, int below) {
#pragma unroll
  for (int i = 0; i < 2 * p.Blocks; ++i) {
    const int r = p.row(i), q = query_of(row0, r);
    const unsigned halves = q & 8 ? 0x7632 : 0x5410;
    const Draws own = draws_of(draws, row0, r);
#pragma unroll
    for (int k = 0; k < N / 16; ++k) {
      const int column = column0 + k * 16 + lane_index() % 4 * 2;
      const uint2 even = own.words(q, column), odd = own.words(q, column + 1);
      p.v[i / 2][k][i % 2] &= kept_mask(__byte_perm(even.x, odd.x, halves), below);
      p.v[i / 2][k][i % 2 + 2] &= kept_mask(__byte_perm(even.y, odd.y, halves), below);
    }
  }
}

// What a repair leaves out, and by what it multiplies.
template <class D> struct Dropped {
  D draws;
  int below;
  float factor;
  template <class First> ATTN_INLINE bool operator()(First first, int r, int key) const {
    return draws_of(draws, first, r).drops(query_of(first, r), key, below);
  }
};
template <class D> Dropped(D, int, float) -> Dropped<D>;
struct NoneDropped {
  static constexpr float factor = 1;
  template <class First> ATTN_INLINE bool operator()(First, int, int) const { return false; }
};

} // namespace attn
