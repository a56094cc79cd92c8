// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Dropout on fragments and operands. The first row and column of a fragment are multiples of 16, so a thread has all
// four pairs of a Philox call, and the loop over calls needs no test; unless they are `Unaligned`: then each pair has a
// call of its own.
#pragma once
#include "attn/mma/fragment.cuh"
#include "attn/softmax/dropout_state.cuh"

namespace attn {

// A first row or column that need not be a multiple of 16.
struct Unaligned {
  int at;
  ATTN_INLINE operator int() const { return at; }
};
template <class First> constexpr bool is_unaligned = false;
template <> constexpr bool is_unaligned<Unaligned> = true;

// Calls f(m, n, c, keep) for each Philox call of a fragment whose rows are queries or, with Transposed, keys: element
// (m, n + i / 2, i % 2 * 2 + c) is kept if keep[i].
template <bool Transposed, int R, int N, int W, class First, class F>
ATTN_INLINE void with_keep_mask(const Frag<R, N, W> &s, First row0, First column0, DropoutState state, int threshold,
                                F f) {
  static_assert(N % 16 == 0);
  state = uniform(state);
#pragma unroll
  for (int m = 0; m < s.Blocks; ++m) {
    const int row = row0 + s.row(2 * m);
#pragma unroll
    for (int n = 0; n < s.Pieces; n += 2)
#pragma unroll
      for (int c = 0; c < 2; ++c) {
        const int column = column0 + s.col(n) + c;
        bool keep[4];
        if constexpr (is_unaligned<First>) {
#pragma unroll
          for (int i = 0; i < 4; ++i) { // two rows of a column, then those of the next piece's
            const int r = row + i % 2 * 8, own = column + i / 2 * 8;
            keep[i] = !(Transposed ? state.is_dropped(own, r, threshold) : state.is_dropped(r, own, threshold));
          }
          f(m, n, c, keep);
          continue;
        }
        const uint2 pair = Transposed ? state.words(column, row) : state.words(row, column);
        keep_pair(keep[0], keep[Transposed ? 2 : 1], pair.x, threshold);
        keep_pair(keep[Transposed ? 1 : 2], keep[3], pair.y, threshold);
        f(m, n, c, keep);
      }
  }
}

template <bool Transposed, int R, int N, int W, class First>
ATTN_INLINE void dropout_fragment(Frag<R, N, W> &s, First row0, First column0, DropoutState state, int threshold,
                                  float factor) {
  with_keep_mask<Transposed>(s, row0, column0, state, threshold, [&](int m, int n, int c, const bool (&keep)[4]) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      float &x = s.v[m][n + i / 2][i % 2 * 2 + c];
      x = keep[i] ? x * factor : 0;
    }
  });
}
template <int R, int N, int W, class First>
ATTN_INLINE void dropout(Frag<R, N, W> &s, First row0, First column0, DropoutState state, int threshold,
                         float factor = 1) {
  dropout_fragment<false>(s, row0, column0, state, threshold, factor);
}
template <int R, int N, int W, class First>
ATTN_INLINE void dropout_transposed(Frag<R, N, W> &s, First row0, First column0, DropoutState state, int threshold,
                                    float factor = 1) {
  dropout_fragment<true>(s, row0, column0, state, threshold, factor);
}

// Dropout in the sign bit: dropped probabilities become negative.
template <bool Transposed, int R, int N, int W, class First>
ATTN_INLINE void dropout_in_sign_fragment(Frag<R, N, W> &s, First row0, First column0, DropoutState state,
                                          int threshold) {
  with_keep_mask<Transposed>(s, row0, column0, state, threshold, [&](int m, int n, int c, const bool (&keep)[4]) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      float &x = s.v[m][n + i / 2][i % 2 * 2 + c];
      x = keep[i] ? x : -x;
    }
  });
}
template <int R, int N, int W, class First>
ATTN_INLINE void dropout_in_sign(Frag<R, N, W> &s, First row0, First column0, DropoutState state, int threshold) {
  dropout_in_sign_fragment<false>(s, row0, column0, state, threshold);
}
template <int R, int N, int W, class First>
ATTN_INLINE void dropout_in_sign_transposed(Frag<R, N, W> &s, First row0, First column0, DropoutState state,
                                            int threshold) {
  dropout_in_sign_fragment<true>(s, row0, column0, state, threshold);
}

// Calls f(register, keep mask) for each register of an operand. A register has two columns of a row, whose bits come
// from two calls.
template <bool Transposed, class T, int R, int N, int W, class First, class F>
ATTN_INLINE void with_keep_mask(RegisterOperand<T, R, N, W> &p, First row0, First column0, DropoutState state,
                                int threshold, F f) {
  state = uniform(state);
#pragma unroll
  for (int m = 0; m < p.Blocks; ++m)
#pragma unroll
    for (int k = 0; k < N / 16; ++k) {
      const int row = row0 + p.row(2 * m), column = column0 + k * 16 + lane_index() % 4 * 2;
      if constexpr (is_unaligned<First>) {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          unsigned mask = 0;
#pragma unroll
          for (int c = 0; c < 2; ++c) {
            const int r = row + i % 2 * 8, own = column + i / 2 * 8 + c;
            const bool drops = Transposed ? state.is_dropped(own, r, threshold) : state.is_dropped(r, own, threshold);
            mask |= drops ? 0 : 0xffffu << 16 * c;
          }
          f(p.v[m][k][i], mask);
        }
        continue;
      }
      const uint2 even = Transposed ? state.words(column, row) : state.words(row, column),
                  odd = Transposed ? state.words(column + 1, row) : state.words(row, column + 1);
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int second_word = Transposed ? i % 2 : i / 2, second_half = Transposed ? i / 2 : i % 2;
        f(p.v[m][k][i], keep_mask(__byte_perm(second_word ? even.y : even.x, second_word ? odd.y : odd.x,
                                              second_half ? 0x7632 : 0x5410),
                                  threshold));
      }
    }
}
template <class T, int R, int N, int W, class First>
ATTN_INLINE void dropout(RegisterOperand<T, R, N, W> &p, First row0, First column0, DropoutState state, int threshold) {
  with_keep_mask<false>(p, row0, column0, state, threshold, [](unsigned &pair, unsigned mask) { pair &= mask; });
}
// The keep masks themselves. NOTE: volatile, so that the compiler does not move the computation to the use: masks are
// computed while products run.
template <class T, int R, int N, int W, class First>
ATTN_INLINE void dropout_bits(RegisterOperand<T, R, N, W> &bits, First row0, First column0, DropoutState state,
                              int threshold) {
  with_keep_mask<false>(bits, row0, column0, state, threshold, [](unsigned &pair, unsigned mask) {
    asm volatile("mov.b32 %0, %1;" : "=r"(pair) : "r"(mask));
  });
}
template <class T, int R, int N, int W>
ATTN_INLINE void apply_dropout_bits(RegisterOperand<T, R, N, W> &p, const RegisterOperand<T, R, N, W> &bits) {
#pragma unroll
  for (int m = 0; m < p.Blocks; ++m)
#pragma unroll
    for (int k = 0; k < N / 16; ++k)
#pragma unroll
      for (int i = 0; i < 4; ++i)
        p.v[m][k][i] &= bits.v[m][k][i];
}
template <class T, int R, int N, int W, class First>
ATTN_INLINE void dropout_transposed(RegisterOperand<T, R, N, W> &p, First row0, First column0, DropoutState state,
                                    int threshold) {
  with_keep_mask<true>(p, row0, column0, state, threshold, [](unsigned &pair, unsigned mask) { pair &= mask; });
}
template <class T, int R, int N, int W, class First>
ATTN_INLINE void dropout_in_sign_transposed(RegisterOperand<T, R, N, W> &p, First row0, First column0,
                                            DropoutState state, int threshold) {
  with_keep_mask<true>(p, row0, column0, state, threshold,
                       [](unsigned &pair, unsigned mask) { pair |= ~mask & 0x80008000; });
}

// The same for rows, or rows and columns, that are pairs of a position and a head.
template <int R, int N, int W, int H, class Column>
ATTN_INLINE void dropout(Frag<R, N, W> &s, Pairs<H> row0, Column column0, DropoutStatePerHead state, int threshold,
                         float factor = 1) {
#pragma unroll
  for (int i = 0; i < 2 * s.Blocks; ++i) {
    const int r = s.row(i), q = query_of(row0, r);
    const DropoutState own = state_of_row(state, row0, r);
#pragma unroll
    for (int n = 0; n < s.Pieces; ++n)
#pragma unroll
      for (int c = 0; c < 2; ++c) {
        float &x = s.v[i / 2][n][i % 2 * 2 + c];
        x = own.is_dropped(q, query_of(column0, s.col(n) + c), threshold) ? 0 : x * factor;
      }
  }
}

// A call covers two of an operand's columns, which are keys. Each row of a thread has its own calls.
template <class T, int R, int N, int W, int H>
ATTN_INLINE void dropout(RegisterOperand<T, R, N, W> &p, Pairs<H> row0, int column0, DropoutStatePerHead state,
                         int threshold) {
#pragma unroll
  for (int i = 0; i < 2 * p.Blocks; ++i) {
    const int r = p.row(i), q = query_of(row0, r);
    const unsigned halves = q & 8 ? 0x7632 : 0x5410;
    const DropoutState own = state_of_row(state, row0, r);
#pragma unroll
    for (int k = 0; k < N / 16; ++k) {
      const int column = column0 + k * 16 + lane_index() % 4 * 2;
      const uint2 even = own.words(q, column), odd = own.words(q, column + 1);
      p.v[i / 2][k][i % 2] &= keep_mask(__byte_perm(even.x, odd.x, halves), threshold);
      p.v[i / 2][k][i % 2 + 2] &= keep_mask(__byte_perm(even.y, odd.y, halves), threshold);
    }
  }
}

// Dropout of recompute_rows(): which pairs are dropped, and the factor of those that are kept.
template <class D> struct Dropout {
  D state;
  int threshold;
  float factor;
  template <class First> ATTN_INLINE bool operator()(First first, int r, int key) const {
    return state_of_row(state, first, r).is_dropped(query_of(first, r), key, threshold);
  }
};
template <class D> Dropout(D, int, float) -> Dropout<D>;
struct NoDropout {
  static constexpr float factor = 1;
  template <class First> ATTN_INLINE bool operator()(First, int, int) const { return false; }
};

} // namespace attn
