// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The sum of branches, each times a gate (attn.combine), its gradients, and plain sums (attn.add).
#pragma once
#include "attn/sparse/rows.cuh"

namespace attn {

// 1 / (1 + exp(-x)): 0 and 1 where exp overflows or vanishes.
ATTN_INLINE float sigmoid(float x) { return 1.0f / (1.0f + exp2(-x * 1.44269504f)); }

// Of rest: the strides of o; pointers of branches; their strides; the gates, contiguous, if there are any; the length
// of a sequence, the CTA's first row and how many it has.
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

// Gradients of branches and of gates. Of rest: pointers of further gradients of branches, and of dgates with Sigmoid;
// with Sigmoid, pointers of branches and of gates; that of do; strides of gradients of branches, of branches (Sigmoid)
// and of do; the length of a sequence, the first row, rows.
template <int Branches, int Heads, int Dim, bool Sigmoid, bool WideGates, int Threads, class T, class... Rest>
ATTN_INLINE void combine_branches_backward(T *first_grad, Rest... rest) {
  constexpr int read = Sigmoid ? Branches + 1 : 0, dgates_at = Branches - 1, o_at = dgates_at + Sigmoid,
                gates_at = o_at + Branches, do_at = o_at + read, grad_strides = do_at + 1,
                o_strides = grad_strides + 3 * Branches, do_strides = o_strides + (Sigmoid ? 3 * Branches : 0),
                sizes = do_strides + 3;
  constexpr int in_head = Dim / 8, lanes = in_head > 16  ? 32
                                           : in_head > 8 ? 16
                                           : in_head > 4 ? 8
                                           : in_head > 2 ? 4
                                                         : in_head;
  const auto a = arguments_of(rest...);
  const int seqlen = a.value[sizes], first = a.value[sizes + 1], rows = a.value[sizes + 2];
  const int lane = threadIdx.x % lanes;
  // All lanes of a warp go through the loop together.
  for (int i = threadIdx.x / lanes; i - int(threadIdx.x / lanes) < rows * Heads; i += Threads / lanes) {
    const bool live = i < rows * Heads;
    const int number = first + (live ? i / Heads : 0), h = live ? i % Heads : 0;
    const DenseRow row(number, seqlen);
    const long long gate = ((long long)number * Heads + h) * Branches;
    const T *gradient = a.template pointer<const T>(do_at) + offset_of(a, do_strides, row, h);
#pragma unroll
    for (int branch = 0; branch < Branches; ++branch) {
      float g = 1.0f / Branches;
      if constexpr (Sigmoid && WideGates)
        g = sigmoid(a.template pointer<const float>(gates_at)[gate + branch]);
      else if constexpr (Sigmoid)
        g = sigmoid(to_float(a.template pointer<const T>(gates_at)[gate + branch]));
      T *to =
          (branch ? a.template pointer<T>(branch - 1) : first_grad) + offset_of(a, grad_strides + 3 * branch, row, h);
      float dot = 0;
      for (int unit = lane; unit < in_head; unit += lanes) {
        float own[8] = {}, scaled[8];
        add_unit(own, gradient + unit * 8);
        if constexpr (Sigmoid) {
          float values[8] = {};
          add_unit(values, a.template pointer<const T>(o_at + branch) + offset_of(a, o_strides + 3 * branch, row, h) +
                               unit * 8);
#pragma unroll
          for (int c = 0; c < 8; ++c)
            dot += own[c] * values[c];
        }
#pragma unroll
        for (int c = 0; c < 8; ++c)
          scaled[c] = g * own[c];
        if (live)
          store_unit(to + unit * 8, scaled);
      }
      if constexpr (Sigmoid) {
#pragma unroll
        for (int step = lanes / 2; step; step /= 2)
          dot += __shfl_xor_sync(~0u, dot, step);
        if (live && lane == 0) {
          const float of_gate = g * (1 - g) * dot;
          if constexpr (WideGates)
            a.template pointer<float>(dgates_at)[gate + branch] = of_gate;
          else
            round_to(a.template pointer<T>(dgates_at)[gate + branch], of_gate);
        }
      }
    }
  }
}

// Of rest: the strides of the result, pointers of parts, their strides, the length of a sequence, the first row, rows.
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
