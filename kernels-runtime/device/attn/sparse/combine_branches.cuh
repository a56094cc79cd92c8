// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The sum of branches, each times a gate (attn.combine), its gradients, and plain sums (attn.add).
#pragma once
#include "attn/sparse/rows.cuh"

namespace attn {

// 1 / (1 + exp(-x)): 0 and 1 where exp overflows or vanishes.
ATTN_INLINE float sigmoid(float x) { return 1.0f / (1.0f + exp2(-x * 1.44269504f)); }

// The other arguments are: the strides of o; pointers of branches; their strides; with Sigmoid, the gates, which are
// contiguous; the length of a sequence; the CTA's first row and how many it has.
template <int Branches, int Heads, int Dim, bool Sigmoid, bool WideGates, int Threads, class T, class... Rest>
ATTN_INLINE void combine_branches(T *o, Rest... rest) {
  constexpr int in_head = Dim / 8, in_row = Heads * in_head, gates_at = 3 + 4 * Branches, sizes = gates_at + Sigmoid;
  const auto a = arguments_of(rest...);
  const int seqlen = a.value[sizes], first = a.value[sizes + 1], rows = a.value[sizes + 2];
  for (int i = threadIdx.x; i < rows * in_row; i += Threads) {
    const int number = first + i / in_row, h = i % in_row / in_head, column = i % in_head * 8;
    const DenseRow row(number, seqlen);
    const long long gate = ((long long)number * Heads + h) * Branches;
    float sums[8] = {};
#pragma unroll
    for (int branch = 0; branch < Branches; ++branch) {
      float g = 1.0f / Branches, values[8] = {};
      if constexpr (Sigmoid && WideGates)
        g = sigmoid(a.template pointer<const float>(gates_at)[gate + branch]);
      else if constexpr (Sigmoid)
        g = sigmoid(to_float(a.template pointer<const T>(gates_at)[gate + branch]));
      add_unit(values,
               a.template pointer<const T>(3 + branch) + offset_of(a, 3 + Branches + 3 * branch, row, h) + column);
#pragma unroll
      for (int c = 0; c < 8; ++c)
        sums[c] += g * values[c];
    }
    store_unit(o + offset_of(a, 0, row, h) + column, sums);
  }
}

// -log(sigmoid(x)), to rounding where sigmoid(x) is close to 0 or 1.
ATTN_INLINE float minus_log_sigmoid(float x) {
  return max(-x, 0.0f) + log1pf(exp2(-fabsf(x) * 1.44269504f)); // NaN: max drops it, the sum does not
}

// What backward passes of branches read, and gradients of gates. The other arguments are: pointers of the other deltas,
// of gated LSEs and, with Sigmoid, of dgates; pointers of branches, of LSEs and, with Sigmoid, of gates; the pointer of
// do; strides of branches and of do; strides (batch, head) of LSEs, of deltas and of gated LSEs; the length of a
// sequence; the CTA's first row and how many it has.
template <int Branches, int Heads, int Dim, bool Sigmoid, int Threads, class... Rest>
ATTN_INLINE void combine_branches_backward(float *first_delta, Rest... rest) {
  constexpr int gated_at = Branches - 1, dgates_at = gated_at + Branches, o_at = dgates_at + Sigmoid,
                lse_at = o_at + Branches, gates_at = lse_at + Branches, do_at = gates_at + Sigmoid,
                o_strides = do_at + 1, do_strides = o_strides + 3 * Branches, lse_strides = do_strides + 3,
                delta_strides = lse_strides + 2 * Branches, gated_strides = delta_strides + 2 * Branches,
                sizes = gated_strides + 2 * Branches;
  constexpr int in_head = Dim / 8, lanes = in_head > 16  ? 32
                                           : in_head > 8 ? 16
                                           : in_head > 4 ? 8
                                           : in_head > 2 ? 4
                                                         : in_head;
  using T = ElementOf<do_at, Rest...>;
  using Gate = ElementOf<Sigmoid ? gates_at : do_at, Rest...>;
  const auto a = arguments_of(rest...);
  const int seqlen = a.value[sizes], first = a.value[sizes + 1], rows = a.value[sizes + 2];
  const int lane = threadIdx.x % lanes;
  const auto at = [&](int strides, const DenseRow &row, int h) {
    return row.batch * a.value[strides] + h * a.value[strides + 1] + row.row;
  };
  // All lanes of a warp go through the loop together. Rows of a head are next to each other in LSEs.
  for (int i = threadIdx.x / lanes; i - int(threadIdx.x / lanes) < rows * Heads; i += Threads / lanes) {
    const bool live = i < rows * Heads;
    const int number = first + (live ? i % rows : 0), h = live ? i / rows : 0;
    const DenseRow row(number, seqlen);
    const T *gradient = a.template pointer<const T>(do_at) + offset_of(a, do_strides, row, h);
    float dots[Branches] = {};
    for (int unit = lane; unit < in_head; unit += lanes) {
      float own[8] = {};
      add_unit(own, gradient + unit * 8);
#pragma unroll
      for (int branch = 0; branch < Branches; ++branch) {
        float values[8] = {};
        add_unit(values,
                 a.template pointer<const T>(o_at + branch) + offset_of(a, o_strides + 3 * branch, row, h) + unit * 8);
#pragma unroll
        for (int c = 0; c < 8; ++c)
          dots[branch] += own[c] * values[c];
      }
    }
#pragma unroll
    for (int branch = 0; branch < Branches; ++branch) {
#pragma unroll
      for (int step = lanes / 2; step; step /= 2)
        dots[branch] += __shfl_xor_sync(~0u, dots[branch], step);
      if (!live || lane)
        continue;
      float *const deltas = branch ? a.template pointer<float>(branch - 1) : first_delta;
      deltas[at(delta_strides + 2 * branch, row, h)] = dots[branch];
      float lse = a.template pointer<const float>(lse_at + branch)[at(lse_strides + 2 * branch, row, h)];
      if constexpr (Sigmoid) {
        const long long gate = ((long long)number * Heads + h) * Branches + branch;
        const float x = float_of(a.template pointer<const Gate>(gates_at)[gate]), g = sigmoid(x);
        round_to(a.template pointer<Gate>(dgates_at)[gate], g * (1 - g) * dots[branch]);
        lse += lse == -infinity() ? 0 : minus_log_sigmoid(x);
      } else {
        lse += logf(Branches);
      }
      a.template pointer<float>(gated_at + branch)[at(gated_strides + 2 * branch, row, h)] = lse;
    }
  }
}

// The other arguments are: the strides of the result; pointers of parts; their strides; the length of a sequence; the
// CTA's first row and how many it has.
template <int Parts, int Heads, int Dim, bool Wide, int Threads, class T, class... Rest>
ATTN_INLINE void add_parts_of_rows(T *result, Rest... rest) {
  constexpr int in_head = Dim / 8, in_row = Heads * in_head, sizes = 3 + 4 * Parts;
  const auto a = arguments_of(rest...);
  const int seqlen = a.value[sizes], first = a.value[sizes + 1], rows = a.value[sizes + 2];
  for (int i = threadIdx.x; i < rows * in_row; i += Threads) {
    const int h = i % in_row / in_head, column = i % in_head * 8;
    const DenseRow row(first + i / in_row, seqlen);
    float sums[8] = {};
#pragma unroll
    for (int part = 0; part < Parts; ++part) {
      const long long at = offset_of(a, 3 + Parts + 3 * part, row, h) + column;
      if constexpr (Wide)
        add_unit(sums, a.template pointer<const float>(3 + part) + at);
      else
        add_unit(sums, a.template pointer<const T>(3 + part) + at);
    }
    store_unit(result + offset_of(a, 0, row, h) + column, sums);
  }
}

} // namespace attn
