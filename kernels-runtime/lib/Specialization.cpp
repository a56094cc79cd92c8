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

// Rounds a length, so that few programs are compiled. SIMT rows have a size for each length to 4, `cta_per_sequence`
// for each multiple of 8, above 64 of 16, and single-pass schedules for 128, 192 and 256. Longer lengths are powers of
// two.
static int64_t roundLength(int64_t length) {
  if (length <= 4)
    return length;
  if (length <= 96)
    return alignTo(length, length <= 64 ? 8 : 16);
  if (length <= 256)
    return length <= 128 ? 128 : length <= 192 ? 192 : 256;
  return length > 512 && length < manyKeys ? manyKeys - 1 : powerOf2Ceil(length); // SIMT rows end there
}

// Packed calls show only the mean length. If it is an integer, sequences are taken to have equal lengths. Otherwise
// they are taken to have 1.5 times the mean, rounded up to a power of two: with random lengths this covers 3/4 of the
// sequences. It costs at most 1/7 of the time where a few long ones raised the mean (forward, 17 rows in tiles of 32).
static int64_t lengthOfMost(int64_t rows, int64_t batch) {
  if (rows % batch == 0)
    return roundLength(rows / batch);
  return powerOf2Ceil(divideCeil(3 * rows, 2 * batch));
}

// Few queries, one or two tiles, on many keys. The number of keys is not part of the program, so decoding compiles
// once. Measured on an H100 (docs/Schedules/trials/split_kv.md): with more tiles than multiprocessors, split-KV and its
// combine kernel pay if the heads of a group share a tile.
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

// SIMT rows: one warp goes over the keys of its rows, 0.4 us a key forward, however few warps there are. Measured on an
// H100 (docs/Schedules/by_length.md): below about 65,000 (sequence, head) pairs, where SIMT rows do not reach the
// bandwidth of memory, one CTA per sequence is faster from nine keys on; one or two rows count as four, which selects
// it. Above 128 keys tiles are faster, except for many sequences with narrow heads. Head dims beyond 256 have no other
// schedule, and backward passes have tiles above 128 keys.
static std::optional<ExpectedLengths> avoidSimtRows(const Rule &rule, int64_t work, ExpectedLengths lengths) {
  constexpr int64_t manySimtRows = 65536, manyLongSimtRows = 16384;
  int64_t dim = std::max(rule.dimQk, rule.dimV), rows = lengths.queries * rule.group();
  if (dim > widestOfTiles || rows > 4 || (lengths.keys > 128 && rule.backward))
    return lengths;
  if (lengths.keys > 128)
    return dim <= 64 && work >= manyLongSimtRows ? std::optional(lengths) : std::nullopt;
  if (rows > 2 || lengths.keys <= 8 || (rule.source == Source::Sizes && work >= manySimtRows))
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
    if (std::optional<ExpectedLengths> lengths = avoidSimtRows(rule, work, {roundLength(sizes.rowsQ), keys}))
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
  // The second kernel and its list of work tiles cost as much as the kernels on tiles for about 500 (sequence, head)
  // pairs; dense lengths need no list.
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
  return avoidSimtRows(rule, work, lengths);
}
