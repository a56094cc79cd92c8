// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Rows of tensors in another order, or sums of rows: tile.gather_rows.
#pragma once
#include "attn/ptx/prelude.cuh"

namespace attn {

// A part: its rows, and the strides of rows and heads.
template <class T> struct Part {
  const T *rows;
  long long row, head;
};
template <class T> ATTN_INLINE Part<T> part_of(const T *rows, long long row, long long head) {
  return {rows, row, head};
}

ATTN_INLINE float float_of(float x) { return x; }
template <class T> ATTN_INLINE float float_of(T x) { return to_float(x); }

// Adds Width elements of a row to `sums`.
template <int Width, class T> ATTN_INLINE void add_unit(float (&sums)[Width], const T *from) {
  if constexpr (Width == 1)
    sums[0] += float_of(*from);
  else {
    constexpr int words = Width * sizeof(T) / 16;
    union {
      uint4 word[words];
      T element[Width];
    } unit;
#pragma unroll
    for (int i = 0; i < words; ++i)
      unit.word[i] = ((const uint4 *)from)[i];
#pragma unroll
    for (int i = 0; i < Width; ++i)
      sums[i] += float_of(unit.element[i]);
  }
}
template <int Width, class T> ATTN_INLINE void store_unit(T *to, const float (&sums)[Width]) {
  if constexpr (Width == 1)
    round_to(*to, sums[0]);
  else {
    constexpr int words = Width * sizeof(T) / 16;
    union {
      uint4 word[words];
      T element[Width];
    } unit;
#pragma unroll
    for (int i = 0; i < Width; ++i)
      round_to(unit.element[i], sums[i]);
#pragma unroll
    for (int i = 0; i < words; ++i)
      ((uint4 *)to)[i] = unit.word[i];
  }
}

// Adds what parts have for the row at `index`, each `total` further on.
template <int Width> ATTN_INLINE void add_parts(float (&)[Width], const int *, int, int, int) {}
template <int Width, class First, class... Rest>
ATTN_INLINE void add_parts(float (&sums)[Width], const int *index, int total, int head, int column, Part<First> part,
                           Part<Rest>... rest) {
  if (const int from = *index; from >= 0)
    add_unit(sums, part.rows + from * part.row + head * part.head + column);
  add_parts(sums, index + total, total, head, column, rest...);
}

// The CTA's rows of the result: units of 16 bytes (of the narrower elements), or single elements.
template <int Heads, int Dim, int Threads, class T, class First, class... Rest>
ATTN_INLINE void gather_rows(T *result, long long row, long long head, const int *index, int total, int first, int rows,
                             Part<First> part, Part<Rest>... rest) {
  constexpr int width = Dim == 1 ? 1 : 8, in_head = Dim / width, in_row = Heads * in_head;
#pragma unroll 4
  for (int i = threadIdx.x; i < rows * in_row; i += Threads) {
    const int r = first + i / in_row, h = i % in_row / in_head, column = i % in_head * width;
    T *to = result + r * row + h * head + column;
    if constexpr (sizeof...(Rest) == 0 && sizeof(T) == sizeof(First)) { // as they are
      const int from = index[r];
      const First *unit = part.rows + from * part.row + h * part.head + column;
      if constexpr (width == 1)
        *to = from < 0 ? T{} : T(*unit);
      else {
#pragma unroll
        for (int word = 0; word < int(width * sizeof(T) / 16); ++word)
          ((uint4 *)to)[word] = from < 0 ? uint4{0, 0, 0, 0} : ((const uint4 *)unit)[word];
      }
    } else {
      float sums[width] = {};
      add_parts(sums, index + r, total, h, column, part, rest...);
      store_unit(to, sums);
    }
  }
}

} // namespace attn
