// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Random numbers of dropout: Philox (Salmon et al., 2011), as `attn.problem` defines it. They depend only on a seed and
// on the position of a (query, key) pair, so any kernel can recompute them. A call covers four pairs, {q, q + 8} x {k,
// k + 8}: one thread holds all four both in a fragment of queries by keys and in one of keys by queries.
#pragma once
#include "attn/ptx/prelude.cuh"

namespace attn {

ATTN_INLINE unsigned high_word(unsigned long long x) { return unsigned(x >> 32); }

// Philox2x32 with 7 rounds, the fewest that pass all published test batteries.
ATTN_INLINE uint2 philox2(unsigned x, unsigned y, unsigned key) {
#pragma unroll
  for (int round = 0; round < 7; ++round) {
    const unsigned long long product = 0xd256d193ull * x;
    x = high_word(product) ^ y ^ (key + round * 0x9e3779b9), y = unsigned(product);
  }
  return {x, y};
}
// Philox4x32 with 10 rounds. It runs at most once a tile and is not unrolled.
ATTN_INLINE uint4 philox4(uint4 x, unsigned key, unsigned other) {
#pragma unroll 1
  for (int round = 0; round < 10; ++round) {
    const unsigned long long even = 0xd2511f53ull * x.x, odd = 0xcd9e8d57ull * x.z;
    x = {high_word(odd) ^ x.y ^ key, unsigned(odd), high_word(even) ^ x.w ^ other, unsigned(even)};
    key += 0x9e3779b9, other += 0xbb67ae85;
  }
  return x;
}

// Maps the two positions that share a call to the same index.
ATTN_INLINE unsigned philox_index(unsigned position) { return position / 16 * 8 + position % 8; }

// The dropout state of a sequence and head.
struct DropoutState {
  unsigned key, x, y;

  // The bits of a pair are half q / 8 % 2 of word k / 8 % 2.
  ATTN_INLINE uint2 words(int q, int k) const { return philox2(x ^ philox_index(q), y ^ philox_index(k), key); }
  ATTN_INLINE bool is_dropped(int q, int k, int threshold) const {
    const uint2 pair = words(q, k);
    return ((k & 8 ? pair.y : pair.x) >> (2 * (q & 8)) & 0x7fff) < threshold;
  }
};
// Makes the state warp-uniform at the use: values derived from it are then in uniform registers and not kept across a
// loop.
ATTN_INLINE DropoutState uniform(DropoutState state) {
  return {unsigned(uniform(state.key)), unsigned(uniform(state.x)), unsigned(uniform(state.y))};
}
// The dropout states of all heads of a sequence.
struct DropoutStatePerHead {
  uint4 seed;
  int b;

  ATTN_INLINE DropoutState of(int head) const {
    const uint4 own = philox4({seed.z, seed.w, unsigned(b), unsigned(head)}, seed.x, seed.y);
    return {own.x, own.y, own.z};
  }
};
ATTN_INLINE DropoutStatePerHead dropout_state(const int *seed, int b) {
  return {{unsigned(seed[0]), unsigned(seed[1]), unsigned(seed[2]), unsigned(seed[3])}, b};
}
ATTN_INLINE DropoutState dropout_state(const int *seed, int b, int head) { return dropout_state(seed, b).of(head); }

// The state of row r.
ATTN_INLINE DropoutState state_of_row(DropoutState state, int, int) { return state; }
template <int H> ATTN_INLINE DropoutState state_of_row(DropoutStatePerHead state, Pairs<H> first, int r) {
  return state.of(first.head + r % H);
}

// Compares the 15 bits of both halves of a word with the threshold in one instruction. As positive float16 numbers they
// order as integers do, and a NaN counts as larger (unordered). From 0x7c00 on the threshold would be a NaN itself.
ATTN_INLINE void keep_pair(bool &low, bool &high, unsigned word, int threshold) {
  if (threshold <= 0x7c00) {
    unsigned a, b;
    asm("{ .reg .pred p, q; .reg .b32 x; abs.f16x2 x, %2; setp.geu.f16x2 p|q, x, %3; selp.u32 %0, 1, 0, p; selp.u32 "
        "%1, 1, 0, q; }"
        : "=r"(a), "=r"(b)
        : "r"(word), "r"(threshold << 16 | threshold));
    low = a, high = b;
  } else {
    low = int(word & 0x7fff) >= threshold, high = int(word >> 16 & 0x7fff) >= threshold;
  }
}
// The same as a mask of two halves.
ATTN_INLINE unsigned keep_mask(unsigned word, int threshold) {
  if (threshold <= 0x7c00) {
    unsigned mask;
    asm("{ .reg .b32 x; abs.f16x2 x, %1; set.geu.u32.f16x2 %0, x, %2; }"
        : "=r"(mask)
        : "r"(word), "r"(threshold << 16 | threshold));
    return mask;
  }
  return (int(word & 0x7fff) >= threshold ? 0xffff : 0) | (int(word >> 16 & 0x7fff) >= threshold ? 0xffff0000 : 0);
}

} // namespace attn
