// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which shapes of a call have a program of their own, where its problem says nothing of lengths.
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
/// From so many keys on, a few queries, of a tile or two, leave most of a chip idle with their tiles alone.
inline constexpr int64_t manyKeys = 1024;
constexpr bool areFew(int64_t queries, int64_t keys) {
  return queries <= 256 && keys >= manyKeys && keys >= 4 * queries;
}

/// Lengths of a sequence that a program is made for, as `expected_seqlen(queries, keys)` says them. It is right for
/// others.
struct ExpectedLengths {
  int64_t queries = 0, keys = 0;

  std::string str() const; ///< "expected_seqlen(16, 32)"
  auto operator<=>(const ExpectedLengths &) const = default;
};

struct SpecializationRule {
  /// What of a call's shapes may choose its program.
  enum class Source {
    Nothing, ///< the problem says how long sequences are
    Lengths, ///< lengths of dense layouts, and not the number of sequences, on which no bits may depend
    Sizes,   ///< all
  };
  Source source = Source::Nothing;
  int64_t heads = 1, kvHeads = 1, dimQk = 0, dimV = 0;
  bool packedQ = false, packedKv = false;
  bool backward = false; ///< of gradients

  int64_t group() const { return heads / kvHeads; } ///< query heads of a kv head

  /// The lengths that suit a call of short sequences (packed ones: of many), of up to 1024 dense rows and keys
  /// (forward), or of few queries on many keys; nothing for others. Dense shapes say lengths, packed ones their
  /// average; nothing is read from a device. Different answers are few, as each may be a program: lengths are rounded
  /// up. (docs/Schedules/by_length.md has the measurements.)
  ///
  /// `rowsQ`, `rowsKv`: of a dense sequence, or of all packed ones.
  std::optional<ExpectedLengths> expectedFor(int64_t batch, int64_t rowsQ, int64_t rowsKv) const;
};

} // namespace attn::rt

#endif // ATTN_RT_SPECIALIZATION_H
