// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Random numbers that follow from a seed and from a pair's place alone: Philox
// (Salmon et al., 2011). `attn.problem` says which numbers a pair has.
#pragma once

#include "attn/places.h"

namespace attn {

struct Words4 {
  unsigned x, y, z, w;
};
ATTN_HELPER Words4 philox4(Words4 x, unsigned key, unsigned other) {
  for (int round = 0; round < 10; ++round) {
    const unsigned long long even = 0xd2511f53ull * x.x, odd = 0xcd9e8d57ull * x.z;
    x = {unsigned(odd >> 32) ^ x.y ^ key, unsigned(odd), unsigned(even >> 32) ^ x.w ^ other, unsigned(even)};
    key += 0x9e3779b9u, other += 0xbb67ae85u;
  }
  return x;
}

ATTN_HELPER unsigned drawn_at(unsigned position) { return position / 16 * 8 + position % 8; }

// Of a sequence and head.
struct Draws {
  unsigned key, x, y;

  __attribute__((always_inline)) bool drops(int q, int k, int below) const {
    unsigned a = x ^ drawn_at(q), b = y ^ drawn_at(k);
    for (unsigned round = 0; round < 7; ++round) {
      const unsigned long long product = 0xd256d193ull * a;
      a = unsigned(product >> 32) ^ b ^ (key + round * 0x9e3779b9u);
      b = unsigned(product);
    }
    return int((k & 8 ? b : a) >> (2 * (q & 8)) & 0x7fff) < below;
  }
};
// Of a sequence's heads.
struct DrawsOfHeads {
  const int *seed;
  int b;

  __attribute__((always_inline)) Draws of(int head) const {
    const Words4 own = philox4({unsigned(seed[2]), unsigned(seed[3]), unsigned(b), unsigned(head)}, unsigned(seed[0]),
                               unsigned(seed[1]));
    return {own.x, own.y, own.z};
  }
};
ATTN_HELPER DrawsOfHeads draws(const int *seed, int b) { return {seed, b}; }
ATTN_HELPER Draws draws(const int *seed, int b, int head) { return draws(seed, b).of(head); }

// Those of row r.
ATTN_HELPER Draws draws_of(Draws draws, int, int) { return draws; }
template <int H> ATTN_HELPER Draws draws_of(DrawsOfHeads draws, Pairs<H> first, int r) {
  return draws.of(first.head + r % H);
}

} // namespace attn
