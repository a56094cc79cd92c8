// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which shapes of a call have a program of their own, if the problem has no lengths.
//
#ifndef ATTN_RT_SPECIALIZATION_H
#define ATTN_RT_SPECIALIZATION_H

#include <compare>
#include <cstdint>
#include <optional>
#include <string>

namespace attn::rt {

/// The widest head dim that tiles have.
inline constexpr int64_t widestOfTiles = 256;
/// From so many keys on, one or two tiles of queries leave most multiprocessors idle without split-KV.
inline constexpr int64_t manyKeys = 1024;
constexpr bool areFew(int64_t queries, int64_t keys) {
  return queries <= 256 && keys >= manyKeys && keys >= 4 * queries;
}

/// Lengths of a sequence for which a program is made, like `expected_seqlen(queries, keys)`. The program is correct for
/// all lengths, and fast for these.
struct ExpectedLengths {
  int64_t queries = 0, keys = 0;

  std::string str() const; ///< "expected_seqlen(16, 32)"
  auto operator<=>(const ExpectedLengths &) const = default;
};

struct SpecializationRule {
  /// The sizes of a call that may choose its program.
  enum class Source {
    Nothing, ///< none: the problem has lengths
    Lengths, ///< lengths of dense layouts, but not the number of sequences, on which no bits may depend
    Sizes,   ///< all
  };
  Source source = Source::Nothing;
  int64_t heads = 1, kvHeads = 1, dimQk = 0, dimV = 0;
  bool packedQ = false, packedKv = false;
  bool backward = false; ///< a backward pass

  int64_t group() const { return heads / kvHeads; } ///< query heads of a kv head

  /// The lengths to specialise for: for calls of short sequences (if packed, of many), of up to 1024 dense rows and
  /// keys (forward), or of few queries on many keys; nullopt for others. Dense shapes give the lengths, packed ones the
  /// mean length; nothing is read from a device. Lengths are rounded up, since each result may be a program.
  /// (docs/Schedules/by_length.md has the measurements.)
  ///
  /// `rowsQ`, `rowsKv`: rows of a dense sequence, or of all packed sequences together.
  std::optional<ExpectedLengths> expectedFor(int64_t batch, int64_t rowsQ, int64_t rowsKv) const;
};

} // namespace attn::rt

#endif // ATTN_RT_SPECIALIZATION_H
