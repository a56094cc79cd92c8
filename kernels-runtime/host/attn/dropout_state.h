// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Random numbers that depend only on a seed and on the position of a (query, key) pair: Philox (Salmon et al., 2011).
// `attn.problem` defines the numbers of a pair.
#pragma once

#include "attn/fragment.h"

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

ATTN_HELPER unsigned philox_index(unsigned position) { return position / 16 * 8 + position % 8; }

// The dropout state of a sequence and head.
struct DropoutState {
  unsigned key, x, y;

  __attribute__((always_inline)) bool is_dropped(int q, int k, int threshold) const {
    unsigned a = x ^ philox_index(q), b = y ^ philox_index(k);
    for (unsigned round = 0; round < 7; ++round) {
      const unsigned long long product = 0xd256d193ull * a;
      a = unsigned(product >> 32) ^ b ^ (key + round * 0x9e3779b9u);
      b = unsigned(product);
    }
    return int((k & 8 ? b : a) >> (2 * (q & 8)) & 0x7fff) < threshold;
  }
};
// The dropout states of all heads of a sequence.
struct DropoutStatePerHead {
  const int *seed;
  int b;

  __attribute__((always_inline)) DropoutState of(int head) const {
    const Words4 own = philox4({unsigned(seed[2]), unsigned(seed[3]), unsigned(b), unsigned(head)}, unsigned(seed[0]),
                               unsigned(seed[1]));
    return {own.x, own.y, own.z};
  }
};
ATTN_HELPER DropoutStatePerHead dropout_state(const int *seed, int b) { return {seed, b}; }
ATTN_HELPER DropoutState dropout_state(const int *seed, int b, int head) { return dropout_state(seed, b).of(head); }

// The state of row r.
ATTN_HELPER DropoutState state_of_row(DropoutState state, int, int) { return state; }
template <int H> ATTN_HELPER DropoutState state_of_row(DropoutStatePerHead state, Pairs<H> first, int r) {
  return state.of(first.head + r % H);
}

} // namespace attn
