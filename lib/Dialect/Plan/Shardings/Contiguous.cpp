// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "attn/Dialect/Plan/IR/Plan.h"

using namespace attn::plan;

std::optional<std::string> ContiguousAttr::distribute(const Sequences &sequences, std::vector<Shard> &shards) const {
  int64_t rows = sequences.allRows();
  shards.assign(sequences.ranks, {});
  int64_t slotBegin = 0, rank = 0;
  auto endOf = [&](int64_t rank) { return (rank + 1) * rows / sequences.ranks; };
  for (size_t sequence = 0; sequence < sequences.lengths.size(); ++sequence) {
    int64_t length = sequences.lengths[sequence], slotEnd = slotBegin + sequences.slot(sequence);
    for (int64_t row = slotBegin; row < slotEnd;) {
      while (endOf(rank) <= row)
        ++rank;
      int64_t begin = row - slotBegin, end = std::min(slotEnd, endOf(rank)) - slotBegin;
      shards[rank].addTokens(sequence, std::min(begin, length), std::min(end, length));
      shards[rank].addPadding(std::max(end, length) - std::max(begin, length));
      row = slotBegin + end;
    }
    slotBegin = slotEnd;
  }
  return std::nullopt;
}
