// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Random numbers that follow from a seed and from a pair's place alone, so that any kernel may draw them again: Philox
// (Salmon et al., 2011), whose rounds are a multiplication and an exclusive or. `attn.problem` says which numbers a
// pair has. A call is for four pairs, {q, q + 8} x {k, k + 8}: a thread has all four in a fragment of queries by keys,
// and in one of keys by queries.
#pragma once
#include "attn/prelude.cuh"

namespace attn {

ATTN_INLINE unsigned high_word(unsigned long long x) { return unsigned(x >> 32); }

// Philox2x32, 7 rounds: the fewest of which no battery of tests has shown anything.
ATTN_INLINE uint2 philox2(unsigned x, unsigned y, unsigned key) {
#pragma unroll
  for (int round = 0; round < 7; ++round) {
    const unsigned long long product = 0xd256d193ull * x;
    x = high_word(product) ^ y ^ (key + round * 0x9e3779b9), y = unsigned(product);
  }
  return {x, y};
}
// Philox4x32, 10 rounds. Once a tile or less: it is not unrolled.
ATTN_INLINE uint4 philox4(uint4 x, unsigned key, unsigned other) {
#pragma unroll 1
  for (int round = 0; round < 10; ++round) {
    const unsigned long long even = 0xd2511f53ull * x.x, odd = 0xcd9e8d57ull * x.z;
    x = {high_word(odd) ^ x.y ^ key, unsigned(odd), high_word(even) ^ x.w ^ other, unsigned(even)};
    key += 0x9e3779b9, other += 0xbb67ae85;
  }
  return x;
}

// Positions of which one call is for two count as one.
ATTN_INLINE unsigned drawn_at(unsigned position) { return position / 16 * 8 + position % 8; }

// Of a sequence and head.
struct Draws {
  unsigned key, x, y;

  // Half q / 8 % 2 of word k / 8 % 2 is the pair's.
  ATTN_INLINE uint2 words(int q, int k) const { return philox2(x ^ drawn_at(q), y ^ drawn_at(k), key); }
  ATTN_INLINE bool drops(int q, int k, int below) const {
    const uint2 pair = words(q, k);
    return ((k & 8 ? pair.y : pair.x) >> (2 * (q & 8)) & 0x7fff) < below;
  }
};
// The same in all lanes, and worked out anew: what follows from it alone is in uniform registers and not kept around a
// loop.
ATTN_INLINE Draws uniform(Draws draws) {
  return {unsigned(uniform(draws.key)), unsigned(uniform(draws.x)), unsigned(uniform(draws.y))};
}
// Of a sequence's heads.
struct DrawsOfHeads {
  uint4 seed;
  int b;

  ATTN_INLINE Draws of(int head) const {
    const uint4 own = philox4({seed.z, seed.w, unsigned(b), unsigned(head)}, seed.x, seed.y);
    return {own.x, own.y, own.z};
  }
};
ATTN_INLINE DrawsOfHeads draws(const int *seed, int b) {
  return {{unsigned(seed[0]), unsigned(seed[1]), unsigned(seed[2]), unsigned(seed[3])}, b};
}
ATTN_INLINE Draws draws(const int *seed, int b, int head) { return draws(seed, b).of(head); }

// Those of row r.
ATTN_INLINE Draws draws_of(Draws draws, int, int) { return draws; }
template <int H> ATTN_INLINE Draws draws_of(DrawsOfHeads draws, Pairs<H> first, int r) {
  return draws.of(first.head + r % H);
}

// The 15 bits of either half of a word as positive halves, of which a larger number is larger, and so is no number if
// it is not ordered: one instruction compares both. From 0x7c00 on, `below` would be no number itself.
ATTN_INLINE void kept(bool &low, bool &high, unsigned word, int below) {
  if (below <= 0x7c00) {
    unsigned a, b;
    asm("{ .reg .pred p, q; .reg .b32 x; abs.f16x2 x, %2; setp.geu.f16x2 p|q, x, %3; selp.u32 %0, 1, 0, p; selp.u32 "
        "%1, 1, 0, q; }"
        : "=r"(a), "=r"(b)
        : "r"(word), "r"(below << 16 | below));
    low = a, high = b;
  } else {
    low = int(word & 0x7fff) >= below, high = int(word >> 16 & 0x7fff) >= below;
  }
}
// The same as a mask of two halves.
ATTN_INLINE unsigned kept_mask(unsigned word, int below) {
  if (below <= 0x7c00) {
    unsigned mask;
    asm("{ .reg .b32 x; abs.f16x2 x, %1; set.geu.u32.f16x2 %0, x, %2; }"
        : "=r"(mask)
        : "r"(word), "r"(below << 16 | below));
    return mask;
  }
  return (int(word & 0x7fff) >= below ? 0xffff : 0) | (int(word >> 16 & 0x7fff) >= below ? 0xffff0000 : 0);
}

} // namespace attn
