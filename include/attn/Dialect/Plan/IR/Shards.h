// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which tokens a rank has: plain data, made by shardings (PlanShardings.td).
//
#ifndef ATTN_DIALECT_PLAN_IR_SHARDS_H
#define ATTN_DIALECT_PLAN_IR_SHARDS_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringRef.h"
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace attn::plan {

/// Rows of a rank's buffers that hold consecutive positions of one sequence.
struct Run {
  int64_t row, sequence, position, length;

  bool operator==(const Run &) const = default;
};

/// What one rank has: `rows` rows of each buffer, padding included, and the tokens in them. Runs ascend by rows.
struct Shard {
  int64_t rows = 0;
  std::vector<Run> runs;

  /// Appends rows for positions [begin, end) of a sequence.
  void addTokens(int64_t sequence, int64_t begin, int64_t end);
  /// Appends rows [begin, end) of a sequence's slot; those from its length on are padding.
  void addRows(int64_t sequence, int64_t length, int64_t begin, int64_t end);
  int64_t tokens() const;

  bool operator==(const Shard &) const = default;
};

/// The sequences of a call, and the ranks among which they are distributed.
/// The most ranks of a plan. A gather of n ranks has n exchanges, and tables have n ranks of each.
inline constexpr int64_t mostRanks = 256;

struct Sequences {
  llvm::ArrayRef<int64_t> lengths; ///< tokens
  /// Rows in the whole buffer, at least as many as tokens; the rows behind the tokens are padding. Empty: the lengths.
  llvm::ArrayRef<int64_t> slots;
  int64_t ranks = 1;
  /// Visible pairs of query rows [begin, end) of a sequence, for shardings that balance work. Null: one of each row.
  llvm::function_ref<int64_t(int64_t sequence, int64_t begin, int64_t end)> pairs;
  /// The caller's shards of a name; empty if there are none. Null: there are none at all.
  llvm::function_ref<llvm::ArrayRef<Shard>(llvm::StringRef name)> given;

  int64_t slot(size_t sequence) const { return slots.empty() ? lengths[sequence] : slots[sequence]; }
  int64_t allRows() const;
  int64_t allTokens() const;
};

/// Distributes the rows of the whole buffer. `owner` returns the rank of a row, and where its rows end.
std::vector<Shard> distributeRows(const Sequences &sequences,
                                  llvm::function_ref<std::pair<int64_t, int64_t>(int64_t row)> owner);

/// What is wrong with lengths, slots or ranks, if anything is.
std::optional<std::string> checkSequences(const Sequences &sequences);

/// What is wrong with shards, if anything is: a token on no rank or on two, a token that does not exist, rows that two
/// runs share or that a rank does not have, runs out of order. O(runs log runs).
std::optional<std::string> checkShards(const Sequences &sequences, llvm::ArrayRef<Shard> shards);

} // namespace attn::plan

#endif // ATTN_DIALECT_PLAN_IR_SHARDS_H
