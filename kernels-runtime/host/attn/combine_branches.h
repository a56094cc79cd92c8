// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The sum of branches, each times a gate (attn.combine), its gradients, and plain sums (attn.add).
#pragma once
#include "attn/rows.h"

namespace attn {

// exp(x) to 1e-7, without libm: 2^n times a polynomial.
ATTN_HELPER float exp_of(float x) {
  if (!(x > -103.0f)) // a NaN stays
    return x <= -103.0f ? 0.0f : x;
  if (x > 88.7f)
    return infinity;
  const double y = (double)x * 1.4426950408889634;
  const int n = (int)(y + (y < 0 ? -0.5 : 0.5));
  const double r = (y - n) * 0.6931471805599453;
  double sum = 1, term = 1;
  for (int i = 1; i < 12; ++i)
    sum += term *= r / i;
  double power = 1;
  const double step = n < 0 ? 0.5 : 2;
  for (int i = 0; i < (n < 0 ? -n : n); ++i)
    power *= step;
  return (float)(sum * power);
}
ATTN_HELPER float sigmoid(float x) { return 1.0f / (1.0f + exp_of(-x)); }

// The other arguments are: the strides of o; pointers of branches; their strides; with Sigmoid, the gates, which are
// contiguous; the length of a sequence; the CTA's first row and how many it has.
template <int Branches, int Heads, int Dim, bool Sigmoid, bool WideGates, int Threads, class T, class... Rest>
ATTN_TILE_OP void combine_branches(T *o, Rest... rest) {
  constexpr int gates_at = 3 + 4 * Branches, sizes = gates_at + Sigmoid;
  const auto a = arguments_of(rest...);
  const int seqlen = a.value[sizes], first = a.value[sizes + 1], rows = a.value[sizes + 2];
  for (int number = first; number < first + rows; ++number)
    for (int h = 0; h < Heads; ++h) {
      const DenseRow row(number, seqlen);
      const long long gate = ((long long)number * Heads + h) * Branches;
      float sums[Dim] = {};
      for (int branch = 0; branch < Branches; ++branch) {
        float g = 1.0f / Branches;
        if constexpr (Sigmoid && WideGates)
          g = sigmoid(a.template pointer<const float>(gates_at)[gate + branch]);
        else if constexpr (Sigmoid)
          g = sigmoid(to_float(a.template pointer<const T>(gates_at)[gate + branch]));
        add_row<Dim>(sums, a.template pointer<const T>(3 + branch) + offset_of(a, 3 + Branches + 3 * branch, row, h),
                     g);
      }
      store_row<Dim>(o + offset_of(a, 0, row, h), sums);
    }
}

// -log(sigmoid(x)).
ATTN_HELPER float minus_log_sigmoid(float x) {
  return (x < 0 ? -x : 0.0f) + (float)natural_log(1 + exp_of(x < 0 ? x : -x));
}

// What backward passes of branches read, and gradients of gates. The other arguments are: pointers of the other deltas,
// of gated LSEs and, with Sigmoid, of dgates; pointers of branches, of LSEs and, with Sigmoid, of gates; the pointer of
// do; strides of branches and of do; strides (batch, head) of LSEs, of deltas and of gated LSEs; the length of a
// sequence; the CTA's first row and how many it has.
template <int Branches, int Heads, int Dim, bool Sigmoid, int Threads, class... Rest>
ATTN_TILE_OP void combine_branches_backward(float *first_delta, Rest... rest) {
  constexpr int gated_at = Branches - 1, dgates_at = gated_at + Branches, o_at = dgates_at + Sigmoid,
                lse_at = o_at + Branches, gates_at = lse_at + Branches, do_at = gates_at + Sigmoid,
                o_strides = do_at + 1, do_strides = o_strides + 3 * Branches, lse_strides = do_strides + 3,
                delta_strides = lse_strides + 2 * Branches, gated_strides = delta_strides + 2 * Branches,
                sizes = gated_strides + 2 * Branches;
  using T = ElementOf<do_at, Rest...>;
  using Gate = ElementOf<Sigmoid ? gates_at : do_at, Rest...>;
  const auto a = arguments_of(rest...);
  const int seqlen = a.value[sizes], first = a.value[sizes + 1], rows = a.value[sizes + 2];
  for (int number = first; number < first + rows; ++number)
    for (int h = 0; h < Heads; ++h) {
      const DenseRow row(number, seqlen);
      const auto at = [&](int strides) { return row.batch * a.value[strides] + h * a.value[strides + 1] + row.row; };
      const T *gradient = a.template pointer<const T>(do_at) + offset_of(a, do_strides, row, h);
      for (int branch = 0; branch < Branches; ++branch) {
        const T *values = a.template pointer<const T>(o_at + branch) + offset_of(a, o_strides + 3 * branch, row, h);
        float dot = 0;
        for (int c = 0; c < Dim; ++c)
          dot += to_float(gradient[c]) * to_float(values[c]);
        (branch ? a.template pointer<float>(branch - 1) : first_delta)[at(delta_strides + 2 * branch)] = dot;
        float lse = a.template pointer<const float>(lse_at + branch)[at(lse_strides + 2 * branch)];
        if constexpr (Sigmoid) {
          const long long gate = ((long long)number * Heads + h) * Branches + branch;
          const float x = to_float(a.template pointer<const Gate>(gates_at)[gate]), g = sigmoid(x);
          round_to(a.template pointer<Gate>(dgates_at)[gate], g * (1 - g) * dot);
          lse += lse == -infinity ? 0.0f : minus_log_sigmoid(x);
        } else {
          lse += (float)natural_log(Branches);
        }
        a.template pointer<float>(gated_at + branch)[at(gated_strides + 2 * branch)] = lse;
      }
    }
}

// The other arguments are: the strides of the result; pointers of parts; their strides; the length of a sequence; the
// CTA's first row and how many it has.
template <int Parts, int Heads, int Dim, bool Wide, int Threads, class T, class... Rest>
ATTN_TILE_OP void add_parts_of_rows(T *result, Rest... rest) {
  constexpr int sizes = 3 + 4 * Parts;
  const auto a = arguments_of(rest...);
  const int seqlen = a.value[sizes], first = a.value[sizes + 1], rows = a.value[sizes + 2];
  for (int number = first; number < first + rows; ++number)
    for (int h = 0; h < Heads; ++h) {
      const DenseRow row(number, seqlen);
      float sums[Dim] = {};
      for (int part = 0; part < Parts; ++part) {
        const long long at = offset_of(a, 3 + Parts + 3 * part, row, h);
        if constexpr (Wide)
          add_row<Dim>(sums, a.template pointer<const float>(3 + part) + at);
        else
          add_row<Dim>(sums, a.template pointer<const T>(3 + part) + at);
      }
      store_row<Dim>(result + offset_of(a, 0, row, h), sums);
    }
}

} // namespace attn
