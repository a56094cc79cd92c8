// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What device headers of the online softmax are written with, for one lane on a CPU: it has all keys of its two rows,
// so exchanges between lanes change nothing, and a vote is its own.
#pragma once
#include <cmath>
#include <cstring>

#define ATTN_INLINE inline

namespace attn {

constexpr float kLargest = 3.402823466e38f;
inline float infinity() { return INFINITY; }
inline float not_a_number() { return NAN; }
inline float exp2(float x) { // subnormal results are flushed
  const float y = ::exp2f(x);
  return y < 1.17549435e-38f ? 0 : y;
}
inline float log2(float x) { return ::log2f(x); }
inline float reciprocal(float x) { return 1 / x; }
inline float max(float a, float b) { return fmaxf(a, b); }
inline float min(float a, float b) { return fminf(a, b); }
inline int lane_index() { return 0; }
inline bool __any_sync(unsigned, bool x) { return x; }
inline float __shfl_xor_sync(unsigned, float x, int) { return x; }
inline int __float_as_int(float x) {
  int y;
  memcpy(&y, &x, 4);
  return y;
}
inline float __int_as_float(int x) {
  float y;
  memcpy(&y, &x, 4);
  return y;
}

template <int Heads> struct Pairs {
  int query, head;
};
template <int R, int W> struct RowShape {
  static constexpr int Blocks = 1;
  static int row(int i) { return i; }
};
template <int R, int C, int W> struct Frag : RowShape<R, W> {
  static constexpr int Pieces = C / 8;
  float v[1][C / 8][4];
  int col(int) const { return 0; }
};
template <class T, int R, int C, int W> struct RegisterOperand {
  unsigned v[1][(C + 15) / 16][4];
};
template <class T> unsigned pack(float, float) { return 0; }
template <class T, int R, int N, int W> void pack_depth(unsigned (&)[4], const Frag<R, N, W> &, int, int) {}
template <int R, int C, int W> void scale_row(Frag<R, C, W> &acc, int i, float factor) { // as mma/fragment.cuh
  for (auto &piece : acc.v[0])
    piece[2 * i] *= factor, piece[2 * i + 1] *= factor;
}
template <int R, int N, int W> void warpgroup_fence_operand(Frag<R, N, W> &) {}

struct LinearScore {
  float a, b, c;
  operator float() const { return fmaf(a, b, c); }
};
struct Unmodified {
  float operator()(float score, int, int, int, float, int = 0) const { return score; }
};
template <int R, int N, int W, class F> void modify(Frag<R, N, W> &s, int, int, F f) {
  for (auto &piece : s.v[0])
    for (float &x : piece)
      x = f(x, 0, 0, 0, 0.f);
}

} // namespace attn
