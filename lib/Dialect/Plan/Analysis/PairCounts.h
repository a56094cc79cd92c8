// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How many pairs of queries and keys are visible, for shardings that balance work.
//
#ifndef ATTN_LIB_DIALECT_PLAN_ANALYSIS_PAIRCOUNTS_H
#define ATTN_LIB_DIALECT_PLAN_ANALYSIS_PAIRCOUNTS_H

#include "attn/Dialect/Attn/IR/Attn.h"

namespace attn::plan {

/// Visible pairs of query rows, for the balance of work. The number of keys that a row sees is taken to be linear
/// between rows where it is found to be at five of them, as it is under bands and chunks, so that a sequence takes few
/// evaluations of the mask.
class PairCounts {
public:
  /// Of sequences of so many queries and keys.
  PairCounts(MaskInterface mask, int64_t heads, llvm::ArrayRef<int64_t> lenQ, llvm::ArrayRef<int64_t> lenK)
      : mask(mask), lenQ(lenQ), lenK(lenK), readsArrays(!mask.operands().empty()), known(lenQ.size()) {
    scope.heads = distinctHeads(mask, heads);
  }

  int64_t count(int64_t sequence, int64_t begin, int64_t end) {
    if (readsArrays)
      return (end - begin) * lenK[sequence];
    if (begin >= end || !lenK[sequence])
      return 0;
    const std::vector<Rows> &all = rowsOf(sequence);
    return before(all, end) - before(all, begin);
  }

private:
  /// Consecutive rows, up to the next ones, and the keys that the first and the last of them see.
  struct Rows {
    int64_t begin, end, first, last;
    int64_t before = 0; ///< pairs of earlier rows

    /// Pairs of the first rows of these.
    int64_t pairs(int64_t rows) const {
      double slope = end - begin > 1 ? double(last - first) / double(end - begin - 1) : 0;
      return int64_t(double(rows) * (double(first) + slope * 0.5 * double(rows - 1)));
    }
  };

  static int64_t before(const std::vector<Rows> &all, int64_t row) {
    auto next = llvm::partition_point(all, [&](const Rows &rows) { return rows.end < row; });
    return next == all.end() ? 0 : next->before + next->pairs(row - next->begin);
  }

  int64_t keysOf(int64_t row) {
    int64_t keys = 0;
    for (int64_t head = 0; head < scope.heads; ++head) {
      scope.head = Index::position(head);
      keys += countKeys(mask, scope, row);
    }
    return keys;
  }

  /// Appends rows [begin, end), whose first and last row see so many keys.
  void divide(std::vector<Rows> &all, int64_t begin, int64_t end, int64_t first, int64_t last, int64_t fewest) {
    const int64_t distance = end - begin - 1, middle = begin + distance / 2;
    if (distance <= 1 || end - begin <= fewest)
      return append(all, {begin, end, first, last});
    auto isLinear = [&](int64_t row, int64_t keys) {
      return std::abs((keys - first) * distance - (last - first) * (row - begin)) <= distance;
    };
    const int64_t keys = keysOf(middle), early = begin + distance / 4, late = begin + distance - distance / 4;
    if (isLinear(middle, keys) && isLinear(early, keysOf(early)) && isLinear(late, keysOf(late)))
      return append(all, {begin, end, first, last});
    divide(all, begin, middle + 1, first, keys, fewest);
    divide(all, middle + 1, end, keysOf(middle + 1), last, fewest);
  }
  static void append(std::vector<Rows> &all, Rows rows) {
    rows.before = all.empty() ? 0 : all.back().before + all.back().pairs(all.back().end - all.back().begin);
    all.push_back(rows);
  }

  const std::vector<Rows> &rowsOf(int64_t sequence) {
    std::vector<Rows> &all = known[sequence];
    if (all.empty()) {
      const int64_t rows = lenQ[sequence];
      scope.lenQ = Index::position(rows), scope.lenK = Index::position(lenK[sequence]);
      divide(all, 0, rows, keysOf(0), keysOf(rows - 1), /*fewest=*/rows / 256);
    }
    return all;
  }

  MaskInterface mask;
  llvm::ArrayRef<int64_t> lenQ, lenK;
  MaskScope scope;
  bool readsArrays;
  std::vector<std::vector<Rows>> known; ///< by sequence
};
} // namespace attn::plan

#endif // ATTN_LIB_DIALECT_PLAN_ANALYSIS_PAIRCOUNTS_H
