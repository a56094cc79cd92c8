// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "attn-rt/Specialization.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

using namespace attn::rt;
using Rule = SpecializationRule;
using Source = Rule::Source;

namespace {
/// The sizes of a call.
struct Sizes {
  int64_t batch, rowsQ, rowsKv;
};
} // namespace

static int64_t divideCeil(int64_t a, int64_t b) { return (a + b - 1) / b; }
static int64_t alignTo(int64_t a, int64_t b) { return divideCeil(a, b) * b; }
static int64_t powerOf2Ceil(int64_t a) {
  return a <= 0 ? 0 : static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(a)));
}

std::string ExpectedLengths::str() const { return fmt::format("expected_seqlen({}, {})", queries, keys); }

// Strips differ by each row; tiles of a sequence's own by 8, and from 64 on by 16; what has more than 96 is a look's,
// whose tiles have one of three sizes. Of more, it is for who compiles to find them too many.
static int64_t roundLength(int64_t length) {
  if (length <= 4)
    return length;
  if (length <= 96)
    return alignTo(length, length <= 64 ? 8 : 16);
  if (length <= 256)
    return length <= 128 ? 128 : length <= 192 ? 192 : 256;
  return length > 512 && length < manyKeys ? manyKeys - 1 : powerOf2Ceil(length); // strips end there
}

// Of packed rows there is an average. If that is a whole number, sequences are alike, as a rule. Else many are longer:
// lengths that have room for half as much again cover three quarters where lengths are random, and cost a seventh at
// most (forward, sequences of 17 in tiles of 32) where a few long ones made the average.
static int64_t lengthOfMost(int64_t rows, int64_t batch) {
  if (rows % batch == 0)
    return roundLength(rows / batch);
  return powerOf2Ceil(divideCeil(3 * rows, 2 * batch));
}

// A tile or two of queries on many keys: how many keys these are, no program asks. Measured on an H100
// (docs/Schedules/trials/split_kv.md): where a chip has fewer multiprocessors than there are tiles, parts of keys and
// the kernel that merges them pay if heads of a group share a tile.
static std::optional<ExpectedLengths> lengthsOfFewQueries(const Rule &rule, const Sizes &sizes) {
  constexpr int64_t manyTiles = 128, rowsOfTile = 128;
  int64_t queries = rule.packedQ ? lengthOfMost(sizes.rowsQ, sizes.batch) : roundLength(sizes.rowsQ);
  int64_t keys = rule.packedKv ? sizes.rowsKv / sizes.batch : sizes.rowsKv;
  if (!areFew(queries, keys))
    return std::nullopt;
  int64_t tiles = sizes.batch * rule.heads * divideCeil(queries, rowsOfTile);
  if (tiles >= manyTiles && (rule.group() == 1 || queries * rule.group() > rowsOfTile))
    return std::nullopt;
  return ExpectedLengths{queries, manyKeys};
}

// Where a row or two read the same keys (up to four of more than 128 keys), a warp walks them alone, 0.4 us a key
// forward, however few others there are. Measured on an H100 (docs/Schedules/by_length.md): until some 65,000 of
// them read at the bandwidth of memory, a tile of the sequence's own is faster from nine keys on. Of more than 128 keys
// tiles are, but for many sequences of narrow heads. Wide heads have nothing else, and gradients tiles of more keys.
static std::optional<ExpectedLengths> withoutFewWalks(const Rule &rule, int64_t work, ExpectedLengths lengths) {
  constexpr int64_t manyWalks = 65536, manyLongWalks = 16384;
  int64_t dim = std::max(rule.dimQk, rule.dimV), rows = lengths.queries * rule.group();
  if (dim > widestOfTiles || rows > 4 || (lengths.keys > 128 && rule.backward))
    return lengths;
  if (lengths.keys > 128)
    return dim <= 64 && work >= manyLongWalks ? std::optional(lengths) : std::nullopt;
  if (rows > 2 || lengths.keys <= 8 || (rule.source == Source::Sizes && work >= manyWalks))
    return lengths;
  return ExpectedLengths{divideCeil(4, rule.group()), lengths.keys};
}

static std::optional<ExpectedLengths> lengthsOfDense(const Rule &rule, const Sizes &sizes) {
  constexpr int64_t many = 128, longestStreamed = 256, longestOfTiles = 1024;
  int64_t work = sizes.batch * rule.heads, longest = std::max(sizes.rowsQ, sizes.rowsKv);
  if (longest <= longestStreamed && rule.source == Source::Sizes && work < many) {
    // Few sequences: what is saved is a launch's time, and programs are to be few, so lengths are powers of two. Wide
    // heads have one program.
    if (std::max(rule.dimQk, rule.dimV) > widestOfTiles)
      return std::nullopt;
    auto roughly = [](int64_t rows, int64_t least) { return std::max<int64_t>(least, powerOf2Ceil(rows)); };
    return ExpectedLengths{roughly(sizes.rowsQ, divideCeil(16, rule.group())), roughly(sizes.rowsKv, 16)};
  }
  if (longest <= longestStreamed) {
    bool grows =
        sizes.rowsQ <= 4 &&
        sizes.rowsQ <
            sizes.rowsKv; // as keys do when tokens are generated: a program for each eight of them would be many
    int64_t keys = grows ? powerOf2Ceil(sizes.rowsKv) : roundLength(sizes.rowsKv);
    if (std::optional<ExpectedLengths> lengths = withoutFewWalks(rule, work, {roundLength(sizes.rowsQ), keys}))
      return lengths;
  }
  if (rule.backward || longest > longestOfTiles)
    return std::nullopt;
  int64_t length = powerOf2Ceil(longest); // which tiles are the fastest goes by lengths, too
  return ExpectedLengths{length, length};
}

std::optional<ExpectedLengths> Rule::expectedFor(int64_t batch, int64_t rowsQ, int64_t rowsKv) const {
  const Rule &rule = *this;
  const Sizes sizes = {batch, rowsQ, rowsKv};
  // A kernel more and a list of slots take what tiles take for some 500 sequences and heads; dense lengths need no
  // list.
  constexpr int64_t leastPacked = 512, longestPacked = 64;
  if (rule.source == Source::Nothing || sizes.batch < 1 || sizes.rowsQ < 1 || sizes.rowsKv < 1)
    return std::nullopt;
  if (std::optional<ExpectedLengths> few =
          rule.source == Source::Sizes ? lengthsOfFewQueries(rule, sizes) : std::nullopt)
    return few;
  if (!rule.packedQ && !rule.packedKv)
    return lengthsOfDense(rule, sizes);
  if (!rule.packedQ || !rule.packedKv || rule.source != Source::Sizes)
    return std::nullopt;
  ExpectedLengths lengths = {lengthOfMost(sizes.rowsQ, sizes.batch), lengthOfMost(sizes.rowsKv, sizes.batch)};
  int64_t work = sizes.batch * rule.heads;
  if (work < leastPacked || lengths.queries > longestPacked || lengths.keys >= manyKeys)
    return std::nullopt;
  return withoutFewWalks(rule, work, lengths);
}
