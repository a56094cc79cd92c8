// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "attn/API/LaunchHint.h"
#include "llvm/Support/MathExtras.h"
#include <fmt/format.h>

using namespace attn;

std::string LaunchHint::str() const { return fmt::format("typical({}, {})", queries, keys); }

// Strips differ by each row; tiles of a sequence's own by 8, and from 64 on by 16; what has more than 96 is a look's, whose tiles have one of three sizes. Of
// more, it is for who compiles to find keys too many.
static int64_t roundLength(int64_t length) {
  if (length <= 4)
    return length;
  if (length <= 96)
    return llvm::alignTo(length, length <= 64 ? 8 : 16);
  if (length <= 256)
    return length <= 128 ? 128 : length <= 192 ? 192 : 256;
  return std::min<int64_t>(llvm::PowerOf2Ceil(length), 1024);
}

// Of packed rows there is an average. If that is a whole number, sequences are alike, as a rule. Else many are longer: a hint that has room for half as much again
// covers three quarters where lengths are random, and costs a seventh at most (forward, sequences of 17 in tiles of 32) where a few long ones made the average.
static int64_t lengthOfMost(int64_t rows, int64_t batch) {
  if (rows % batch == 0)
    return roundLength(rows / batch);
  return std::min<int64_t>(llvm::PowerOf2Ceil(llvm::divideCeil(3 * rows, 2 * batch)), 1024);
}

std::optional<LaunchHint> attn::hintOf(const FixedSizes &fixed, const Sizes &sizes) {
  // A kernel more and a list of slots take what tiles take for some 500 sequences and heads; dense lengths need no list. Of fewer, a tile of sums each
  // (`fewRows` in ChooseBackward.cpp) is little memory.
  constexpr int64_t leastPacked = 512, leastDense = 128, longestPacked = 64, longestDense = 256;
  if (fixed.packedQ != fixed.packedKv || fixed.segments || sizes.batch < 1 || sizes.rowsQ < 1 || sizes.rowsKv < 1)
    return std::nullopt;
  int64_t work = sizes.batch * fixed.heads;
  if (!fixed.packedQ) {
    if (work < leastDense || std::max(sizes.rowsQ, sizes.rowsKv) > longestDense)
      return std::nullopt;
    return LaunchHint{roundLength(sizes.rowsQ), roundLength(sizes.rowsKv)};
  }
  LaunchHint hint = {lengthOfMost(sizes.rowsQ, sizes.batch), lengthOfMost(sizes.rowsKv, sizes.batch)};
  if (work < leastPacked || hint.queries > longestPacked)
    return std::nullopt;
  return hint;
}
