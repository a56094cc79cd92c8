// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Element types, their conversions, and the two transcendental functions.
//
// Conversions are written on one element with integer operations and selects only, because that is the form compilers
// vectorise on every target; there is no _Float16 here (missing in older compilers, a library call without F16C). libm
// is not used either: an artifact then needs nothing but libc when loaded.
#pragma once

#include "attn/prelude.h"

namespace attn {

struct bf16 {
  unsigned short bits;
};
struct fp16 {
  unsigned short bits;
};

// Printed for constants that have no literal.
ATTN_HELPER float float_of(unsigned u) {
  float f;
  __builtin_memcpy(&f, &u, 4);
  return f;
}
ATTN_HELPER unsigned bits_of(float f) {
  unsigned u;
  __builtin_memcpy(&u, &f, 4);
  return u;
}

ATTN_HELPER float to_float(bf16 x) { return float_of(unsigned(x.bits) << 16); }

// A multiplication moves the exponent, which also normalizes subnormals; only Inf and NaN need a correction.
ATTN_HELPER float to_float(fp16 x) {
  const unsigned magnitude = x.bits & 0x7fffu;
  const unsigned scaled = bits_of(float_of(magnitude << 13) * 0x1p112f);
  const unsigned special = magnitude >= 0x7c00u ? 0x7f800000u : 0u;
  return float_of(scaled | special | (unsigned(x.bits) & 0x8000u) << 16);
}

// Round to nearest, ties to even; overflow gives Inf as IEEE does. A NaN keeps its sign but not its payload: rounding a
// payload up could turn it into Inf.
ATTN_HELPER void round_to(bf16 &to, float x) {
  const unsigned u = bits_of(x);
  const unsigned rounded = (u + 0x7fffu + (u >> 16 & 1u)) >> 16;
  const unsigned nan = u >> 16 | 0x7fc0u;
  to.bits = (unsigned short)((u & 0x7fffffffu) > 0x7f800000u ? nan : rounded);
}

// Three ranges, each computed and one selected. Below the normal range, adding 0.5 leaves exactly the bits a subnormal
// half keeps, rounded by the adder itself.
ATTN_HELPER void round_to(fp16 &to, float x) {
  const unsigned u = bits_of(x) & 0x7fffffffu;
  const unsigned normal = (u + 0xfffu + (u >> 13 & 1u) - (112u << 23)) >> 13;
  const unsigned small = bits_of(float_of(u) + 0.5f) - 0x3f000000u;
  unsigned r = u < 0x38800000u ? small : normal;
  r = u >= 0x477ff000u ? 0x7c00u : r; // 65520 and more: Inf
  r = u > 0x7f800000u ? 0x7e00u : r;
  to.bits = (unsigned short)(r | (bits_of(x) >> 16 & 0x8000u));
}

// Float32 elements, and float32 results of splits, need no conversion.
ATTN_HELPER float to_float(float x) { return x; }
ATTN_HELPER void round_to(float &to, float x) { to = x; }

// 2^x for x < 128, relative error at most 2e-7; -Inf gives 0, NaN gives NaN. It is exact where x is an integer: a key
// whose score is the row's maximum adds exactly 1 to the row's sum, and a row whose maximum stays is not scaled.
//
// Adding 1.5 * 2^23 + 127 rounds x to an integer n *and* leaves n + 127 in the low bits: shifted up they are the float
// 2^n. n = -127 becomes the float 0, so the lower clamp is the underflow to zero (results below 2^-126.5 are not worth
// a subnormal). It is written so that a NaN passes, and 2^n multiplies instead of being added to the exponent, because
// a NaN survives only the former.
ATTN_HELPER Lanes exp2(Lanes x) {
  x = splat(-127.f) > x ? splat(-127.f) : x;
  const Lanes shifted = x + 12583039.f;
  const Lanes f = x - (shifted - 12583039.f);
  // Minimax for 2^f on [-0.5, 0.5] among the polynomials of degree 5 that are 1 at 0: relative error 9.2e-8, below that
  // of fp32 arithmetic.
  Lanes p = 0.00967151299f + f * 0.00132647273f;
  p = 0.0555073358f + f * p;
  p = 0.240222424f + f * p;
  p = 0.693147004f + f * p;
  p = 1.f + f * p;
  return p * Lanes(IntLanes(shifted) << 23);
}
ATTN_HELPER float exp2(float x) { return x >= 128.f ? infinity : exp2(splat(x))[0]; }

// ln(x) in double: once per row, so plain and exact rather than fast. The mantissa is centred on 1 and the series is
// that of 2 atanh((m-1)/(m+1)).
ATTN_HELPER double natural_log(float x) {
  if (!(x > 0.f) || x == infinity)
    return x == 0.f ? -infinity : x > 0.f ? x : __builtin_nanf("");
  int exponent = 0;
  if (x < 0x1p-126f) {
    x *= 0x1p32f;
    exponent = -32;
  }
  const int offset = int(bits_of(x) - 0x3f3504f3u) >> 23; // mantissa in [sqrt(1/2), sqrt(2))
  exponent += offset;
  const double m = float_of(bits_of(x) - (unsigned(offset) << 23));
  const double t = (m - 1) / (m + 1), t2 = t * t;
  double sum = 0;
  for (int i = 17; i >= 1; i -= 2)
    sum = sum * t2 + 1.0 / i;
  return exponent * 0.6931471805599453 + 2 * t * sum;
}
ATTN_HELPER float sqrt(float x) { return __builtin_sqrtf(x); }
ATTN_HELPER float log2(float x) { return float(natural_log(x) * 1.4426950408889634); }

} // namespace attn
