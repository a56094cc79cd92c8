// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "DropoutReference.h"

using namespace attn;
using namespace attn::reference;

using Words = std::array<uint32_t, 4>;

static uint32_t high(uint64_t product) { return product >> 32; }

/// Philox4x32-10 (Salmon et al., 2011).
static Words philox4(Words x, uint32_t key0, uint32_t key1) {
  for (int round = 0; round < 10; ++round) {
    uint64_t even = uint64_t(0xD2511F53) * x[0], odd = uint64_t(0xCD9E8D57) * x[2];
    x = {high(odd) ^ x[1] ^ key0, uint32_t(odd), high(even) ^ x[3] ^ key1, uint32_t(even)};
    key0 += 0x9E3779B9, key1 += 0xBB67AE85;
  }
  return x;
}

/// Philox2x32-7.
static std::array<uint32_t, 2> philox2(uint32_t x, uint32_t y, uint32_t key) {
  for (int round = 0; round < 7; ++round) {
    uint64_t product = uint64_t(0xD256D193) * x;
    x = high(product) ^ key ^ y, y = uint32_t(product);
    key += 0x9E3779B9;
  }
  return {x, y};
}

DropoutReference::DropoutReference(ProblemOp problem, const Tensors &inputs) : dropout(problem.dropoutInForce()) {
  if (!dropout)
    return;
  const Tensor &words = inputs.find(dropout->seed)->second;
  for (int64_t i = 0; i < Dropout::words; ++i)
    seed[i] = uint32_t(int32_t(words({i})));
}

double DropoutReference::factor(const Row &row, int64_t k) const {
  if (!dropout)
    return 1;
  Words stream = philox4({seed[2], seed[3], uint32_t(row.sequence), uint32_t(row.head)}, seed[0], seed[1]);
  uint32_t q = row.row;
  auto words = philox2(stream[1] ^ (q / 16 * 8 + q % 8), stream[2] ^ uint32_t(k / 16 * 8 + k % 8), stream[0]);
  uint32_t bits = words[k / 8 % 2] >> (16 * (q / 8 % 2)) & 0x7fff;
  return bits < dropout->below ? 0 : dropout->factor();
}
