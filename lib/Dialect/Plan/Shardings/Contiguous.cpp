// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "attn/Dialect/Plan/IR/Plan.h"

using namespace attn::plan;

std::optional<std::string> ContiguousAttr::distribute(const Sequences &sequences, std::vector<Shard> &shards) const {
  int64_t rows = sequences.allRows(), rank = 0;
  auto endOf = [&](int64_t rank) { return (rank + 1) * rows / sequences.ranks; };
  shards = distributeRows(sequences, [&](int64_t row) {
    while (endOf(rank) <= row)
      ++rank;
    return std::pair(rank, endOf(rank));
  });
  return std::nullopt;
}
