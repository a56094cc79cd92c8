// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "attn/API/LaunchHint.h"
#include "llvm/Support/MathExtras.h"
#include <fmt/format.h>

using namespace attn;

std::string LaunchHint::str() const { return fmt::format("typical({}, {})", queries, keys); }

// Strips differ by each row; tiles of a sequence's own by 8, and from 64 on by 16; what has more than 96 is a look's, whose tiles have one of three sizes.
static int64_t roundLength(int64_t length) {
  if (length <= 4)
    return length;
  if (length > 96)
    return length <= 128 ? 128 : length <= 192 ? 192 : 256;
  return llvm::alignTo(length, length <= 64 ? 8 : 16);
}

std::optional<LaunchHint> attn::hintOf(const FixedSizes &fixed, const Sizes &sizes) {
  // A kernel more and a list of slots take what tiles take for some 500 sequences and heads; dense lengths need no list. Of fewer, a tile of sums each
  // (`fewRows` in ChooseBackward.cpp) is little memory.
  constexpr int64_t leastPacked = 512, leastDense = 128, longestDense = 256;
  // Sequences of 64 rows are the longest that a class of short ones has (`shortLimit`), and it is for who compiles to find keys too many.
  constexpr int64_t queriesPacked = 64, keysPacked = 1024;
  if (fixed.packedQ != fixed.packedKv || fixed.segments || sizes.batch < 1 || sizes.rowsQ < 1 || sizes.rowsKv < 1)
    return std::nullopt;
  int64_t work = sizes.batch * fixed.heads;
  if (!fixed.packedQ) {
    if (work < leastDense || std::max(sizes.rowsQ, sizes.rowsKv) > longestDense)
      return std::nullopt;
    return LaunchHint{roundLength(sizes.rowsQ), roundLength(sizes.rowsKv)};
  }
  int64_t queries = llvm::divideCeil(sizes.rowsQ, sizes.batch), keys = llvm::divideCeil(sizes.rowsKv, sizes.batch);
  if (work < leastPacked || queries > queriesPacked)
    return std::nullopt;
  return LaunchHint{int64_t(llvm::PowerOf2Ceil(queries)), std::min<int64_t>(llvm::PowerOf2Ceil(keys), keysPacked)};
}
