// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "attn/API/LaunchHint.h"
#include "attn/Conversion/Schedule.h"
#include "llvm/Support/MathExtras.h"
#include <fmt/format.h>

using namespace attn;

std::string LaunchHint::str() const { return fmt::format("typical({}, {})", queries, keys); }

// Strips differ by each row; tiles of a sequence's own by 8, and from 64 on by 16; what has more than 96 is a look's, whose tiles have one of three sizes. Of
// more, it is for who compiles to find them too many.
static int64_t roundLength(int64_t length) {
  if (length <= 4)
    return length;
  if (length <= 96)
    return llvm::alignTo(length, length <= 64 ? 8 : 16);
  if (length <= 256)
    return length <= 128 ? 128 : length <= 192 ? 192 : 256;
  return length > 512 && length < manyKeys ? manyKeys - 1 : llvm::PowerOf2Ceil(length); // strips end there
}

// Of packed rows there is an average. If that is a whole number, sequences are alike, as a rule. Else many are longer: a hint that has room for half as much again
// covers three quarters where lengths are random, and costs a seventh at most (forward, sequences of 17 in tiles of 32) where a few long ones made the average.
static int64_t lengthOfMost(int64_t rows, int64_t batch) {
  if (rows % batch == 0)
    return roundLength(rows / batch);
  return llvm::PowerOf2Ceil(llvm::divideCeil(3 * rows, 2 * batch));
}

// A tile or two of queries on many keys: how many keys these are, no program asks. Measured on an H100 (docs/Schedules/few-queries.md): where a
// chip has fewer multiprocessors than there are tiles, parts of keys and the kernel that merges them pay if heads of a group share a tile.
static std::optional<LaunchHint> hintOfFew(const FixedSizes &fixed, const Sizes &sizes) {
  constexpr int64_t manyTiles = 128, rowsOfTile = 128;
  int64_t queries = fixed.packedQ ? lengthOfMost(sizes.rowsQ, sizes.batch) : roundLength(sizes.rowsQ);
  int64_t keys = fixed.packedKv ? sizes.rowsKv / sizes.batch : sizes.rowsKv;
  if (!areFew(queries, keys))
    return std::nullopt;
  int64_t tiles = sizes.batch * fixed.heads * llvm::divideCeil(queries, rowsOfTile);
  if (tiles >= manyTiles && (fixed.group() == 1 || queries * fixed.group() > rowsOfTile))
    return std::nullopt;
  return LaunchHint{queries, manyKeys};
}

// Where a row or two read the same keys (up to four of more than 128 keys), a warp walks them alone, 0.4 us a key forward, however few others there are. Measured on an
// H100 (docs/Schedules/streaming.md, 3): until some 65,000 of them read at the bandwidth of memory, a tile of the sequence's own is faster from nine keys on. Of more than
// 128 keys tiles are, but for many sequences of narrow heads. Wide heads have nothing else, and gradients tiles of more keys.
static std::optional<LaunchHint> withoutFewWalks(HintSource source, const FixedSizes &fixed, int64_t work, LaunchHint hint) {
  constexpr int64_t manyWalks = 65536, manyLongWalks = 16384;
  int64_t dim = std::max(fixed.dimQk, fixed.dimV), rows = hint.queries * fixed.group();
  if (dim > widestOfTiles || rows > 4 || (hint.keys > 128 && fixed.backward))
    return hint;
  if (hint.keys > 128)
    return dim <= 64 && work >= manyLongWalks ? std::optional(hint) : std::nullopt;
  if (rows > 2 || hint.keys <= 8 || (source == HintSource::Sizes && work >= manyWalks))
    return hint;
  return LaunchHint{int64_t(llvm::divideCeil(4, fixed.group())), hint.keys};
}

static std::optional<LaunchHint> hintOfDense(HintSource source, const FixedSizes &fixed, const Sizes &sizes) {
  constexpr int64_t many = 128, longestStreamed = 256, longestOfTiles = 1024;
  int64_t work = sizes.batch * fixed.heads, longest = std::max(sizes.rowsQ, sizes.rowsKv);
  if (longest <= longestStreamed && source == HintSource::Sizes && work < many) {
    // Few sequences: what is saved is a launch's time, and programs are to be few, so lengths are powers of two. Wide heads have one program.
    if (std::max(fixed.dimQk, fixed.dimV) > widestOfTiles)
      return std::nullopt;
    auto roughly = [](int64_t rows, int64_t least) { return std::max<int64_t>(least, llvm::PowerOf2Ceil(rows)); };
    return LaunchHint{roughly(sizes.rowsQ, llvm::divideCeil(16, fixed.group())), roughly(sizes.rowsKv, 16)};
  }
  if (longest <= longestStreamed) {
    bool grows = sizes.rowsQ <= 4 && sizes.rowsQ < sizes.rowsKv; // as keys do when tokens are generated: a program for each eight of them would be many
    int64_t keys = grows ? int64_t(llvm::PowerOf2Ceil(sizes.rowsKv)) : roundLength(sizes.rowsKv);
    if (std::optional<LaunchHint> hint = withoutFewWalks(source, fixed, work, {roundLength(sizes.rowsQ), keys}))
      return hint;
  }
  if (fixed.backward || longest > longestOfTiles)
    return std::nullopt;
  int64_t length = llvm::PowerOf2Ceil(longest); // which tiles are the fastest goes by lengths, too
  return LaunchHint{length, length};
}

std::optional<LaunchHint> attn::hintOf(HintSource source, const FixedSizes &fixed, const Sizes &sizes) {
  // A kernel more and a list of slots take what tiles take for some 500 sequences and heads; dense lengths need no list.
  constexpr int64_t leastPacked = 512, longestPacked = 64;
  if (source == HintSource::Nothing || fixed.segments || sizes.batch < 1 || sizes.rowsQ < 1 || sizes.rowsKv < 1)
    return std::nullopt;
  if (std::optional<LaunchHint> few = source == HintSource::Sizes ? hintOfFew(fixed, sizes) : std::nullopt)
    return few;
  if (!fixed.packedQ && !fixed.packedKv)
    return hintOfDense(source, fixed, sizes);
  if (!fixed.packedQ || !fixed.packedKv || source != HintSource::Sizes)
    return std::nullopt;
  LaunchHint hint = {lengthOfMost(sizes.rowsQ, sizes.batch), lengthOfMost(sizes.rowsKv, sizes.batch)};
  int64_t work = sizes.batch * fixed.heads;
  if (work < leastPacked || hint.queries > longestPacked || hint.keys >= manyKeys)
    return std::nullopt;
  return withoutFewWalks(source, fixed, work, hint);
}
