// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The functions of kernels-runtime/host/attn that replace libm's.
//
#include "attn/modify.h"
#include <cmath>
#include <cstdio>

static int failures = 0;

static void expectWithin(const char *what, double at, double expected, double actual, double tolerance) {
  if (std::fabs(actual - expected) <= tolerance || failures++ > 10)
    return;
  std::printf("expected %s(%.9g) to be %.17g within %.3g, got: %.17g\n", what, at, expected, tolerance, actual);
}

static void testExp2() {
  for (int n = -126; n < 128; ++n) {
    expectWithin("exp2", n, std::ldexp(1.0, n), attn::exp2(float(n)), 0);
    expectWithin("log2", std::ldexp(1.0, n), n, attn::log2(float(std::ldexp(1.0, n))), 0);
  }
  expectWithin("exp2", -INFINITY, 0, attn::exp2(-INFINITY), 0);
  expectWithin("1 / exp2", 128, 0, 1 / attn::exp2(128.f), 0);
  if (!std::isnan(attn::exp2(NAN)) && ++failures)
    std::puts("expected exp2(NaN) to be NaN");
  for (int i = -(1 << 20); i <= 1 << 20; ++i) {
    const float x = float(i) / (1 << 17); // [-8, 8]
    expectWithin("exp2", x, std::exp2(double(x)), attn::exp2(x), 2e-7 * std::exp2(double(x)));
    expectWithin("tanh", x, std::tanh(double(x)), attn::tanh(x), 3e-7);
  }
  expectWithin("tanh", 0, 0, attn::tanh(0.f), 0);
}

/// The log-sum-exp of equal scores, as a row of CPU kernels adds them up.
static void testEqualScores() {
  float sum = 0;
  for (int key = 1; key <= 100000; ++key) {
    sum += attn::exp2(0.f);
    if (key % 997 == 0)
      expectWithin("ln of a sum of exp2(0)", key, std::log(double(key)), attn::natural_log(sum),
                   1e-15 * std::log(double(key)));
  }
}

int main() {
  testExp2();
  testEqualScores();
  for (double x = 1e-44; x < 3e38; x *= 1.37)
    expectWithin("natural_log", float(x), std::log(double(float(x))), attn::natural_log(float(x)), 1e-13);
  if (!failures)
    std::puts("numbers are right");
  return failures != 0;
}
