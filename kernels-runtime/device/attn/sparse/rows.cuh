// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Rows of several tensors of one shape, and units of 8 columns of them.
#pragma once
#include "attn/epilogue/gather_rows.cuh"

namespace attn {

// Arguments of a call by their number, pointers too: how many tensors a function has depends on its template arguments.
template <int Count> struct Arguments {
  long long value[Count];
  template <class T> ATTN_INLINE T *pointer(int i) const { return (T *)value[i]; }
};
template <class... Values> ATTN_INLINE Arguments<sizeof...(Values)> arguments_of(Values... values) {
  return {{(long long)values...}};
}

// What the pointer of this number among arguments points to.
template <int Number, class First, class... Rest> struct ElementAt : ElementAt<Number - 1, Rest...> {};
template <class T, class... Rest> struct ElementAt<0, T *, Rest...> {
  using Type = T;
};
template <class T, class... Rest> struct ElementAt<0, const T *, Rest...> {
  using Type = T;
};
template <int Number, class... Arguments> using ElementOf = typename ElementAt<Number, Arguments...>::Type;

// A row of dense sequences of one length; packed tensors have one sequence, and a batch stride of 0.
struct DenseRow {
  int batch, row;
  ATTN_INLINE DenseRow(int number, int seqlen) : batch(number / seqlen), row(number % seqlen) {}
};
// Strides of batch, rows and heads are arguments `at` and behind it.
template <int Count>
ATTN_INLINE long long offset_of(const Arguments<Count> &arguments, int at, const DenseRow &row, int head) {
  return row.batch * arguments.value[at] + row.row * arguments.value[at + 1] + head * arguments.value[at + 2];
}

} // namespace attn
