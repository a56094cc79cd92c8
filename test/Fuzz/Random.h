// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Choices from a seed, the same on every machine (std's distributions are not).
//
#ifndef ATTN_TEST_FUZZ_RANDOM_H
#define ATTN_TEST_FUZZ_RANDOM_H

#include <cmath>
#include <initializer_list>
#include <random>

namespace attn::fuzz {

class Random {
public:
  explicit Random(uint64_t a, uint64_t b = 0) {
    std::seed_seq seeds{uint32_t(a), uint32_t(a >> 32), uint32_t(b), uint32_t(b >> 32)};
    engine.seed(seeds);
  }
  uint64_t bits() { return engine(); }
  int64_t between(int64_t first, int64_t last) { return first + int64_t(engine() % uint64_t(last - first + 1)); }
  bool oneIn(int64_t n) { return engine() % n == 0; }
  template <typename T> T pick(std::initializer_list<T> choices) { return choices.begin()[engine() % choices.size()]; }
  /// Between 10^first and 10^last, on a logarithmic scale.
  double magnitude(double first, double last) {
    return std::pow(10.0, first + (last - first) * double(engine() >> 11) * 0x1p-53);
  }

private:
  std::mt19937_64 engine;
};

} // namespace attn::fuzz

#endif // ATTN_TEST_FUZZ_RANDOM_H
