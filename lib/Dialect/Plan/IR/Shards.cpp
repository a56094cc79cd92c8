// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "attn/Dialect/Plan/IR/Shards.h"
#include "llvm/ADT/STLExtras.h"
#include <fmt/format.h>

using namespace attn::plan;

void Shard::addTokens(int64_t sequence, int64_t begin, int64_t end) {
  if (begin >= end)
    return;
  if (!runs.empty()) {
    Run &last = runs.back();
    if (last.sequence == sequence && last.position + last.length == begin && last.row + last.length == rows) {
      last.length += end - begin, rows += end - begin;
      return;
    }
  }
  runs.push_back({rows, sequence, begin, end - begin});
  rows += end - begin;
}

void Shard::addRows(int64_t sequence, int64_t length, int64_t begin, int64_t end) {
  addTokens(sequence, std::min(begin, length), std::min(end, length));
  rows += std::max(end, length) - std::max(begin, length);
}

int64_t Shard::tokens() const {
  int64_t count = 0;
  for (const Run &run : runs)
    count += run.length;
  return count;
}

int64_t Sequences::allRows() const {
  int64_t count = 0;
  for (size_t i = 0; i < lengths.size(); ++i)
    count += slot(i);
  return count;
}

int64_t Sequences::allTokens() const {
  int64_t count = 0;
  for (int64_t length : lengths)
    count += length;
  return count;
}

std::vector<Shard> attn::plan::distributeRows(const Sequences &sequences,
                                              llvm::function_ref<std::pair<int64_t, int64_t>(int64_t row)> owner) {
  std::vector<Shard> shards(sequences.ranks);
  int64_t begin = 0; // of the slot
  for (auto [sequence, length] : llvm::enumerate(sequences.lengths)) {
    int64_t end = begin + sequences.slot(sequence);
    for (int64_t row = begin; row < end;) {
      auto [rank, next] = owner(row);
      next = std::min(next, end);
      shards[rank].addRows(sequence, length, row - begin, next - begin);
      row = next;
    }
    begin = end;
  }
  return shards;
}

std::optional<std::string> attn::plan::checkSequences(const Sequences &sequences) {
  constexpr int64_t most = int64_t(1) << 30;
  if (sequences.ranks < 1 || sequences.ranks > mostRanks)
    return fmt::format("expected from 1 to {} ranks, got: {}", mostRanks, sequences.ranks);
  if (!sequences.slots.empty() && sequences.slots.size() != sequences.lengths.size())
    return fmt::format("expected as many slots as sequences ({}), got: {}", sequences.lengths.size(),
                       sequences.slots.size());
  for (auto [i, length] : llvm::enumerate(sequences.lengths)) {
    if (length < 0 || length > most)
      return fmt::format("expected lengths from 0 to {}, got: {} of sequence {}", most, length, i);
    if (int64_t slot = sequences.slot(i); slot < length || slot > most)
      return fmt::format("expected slots that hold their sequences, up to {} rows, got: {} rows for the {} tokens of "
                         "sequence {}",
                         most, slot, length, i);
  }
  return std::nullopt;
}

/// The runs of a rank: in its rows, apart, and of tokens that exist.
static std::optional<std::string> checkRuns(const Sequences &sequences, const Shard &shard, size_t rank) {
  constexpr int64_t most = int64_t(1) << 40;
  if (shard.rows < 0 || shard.rows > most)
    return fmt::format("expected from 0 to {} rows, got: {} of rank {}", most, shard.rows, rank);
  int64_t free = 0;
  for (const Run &run : shard.runs) {
    auto wrong = [&](std::string_view expected) {
      return fmt::format("expected {}, got: rows [{}, {}) of rank {} for positions [{}, {}) of sequence {}", expected,
                         run.row, run.row + run.length, rank, run.position, run.position + run.length, run.sequence);
    };
    if (run.length < 1)
      return wrong("runs of 1 row or more");
    if (run.sequence < 0 || run.sequence >= int64_t(sequences.lengths.size()))
      return wrong(fmt::format("one of {} sequences", sequences.lengths.size()));
    int64_t length = sequences.lengths[run.sequence];
    if (run.position < 0 || run.position > length - run.length)
      return wrong(fmt::format("positions within the sequence's {} tokens", length));
    if (run.row < free)
      return wrong(fmt::format("runs that ascend by rows, from row {} on", free));
    if (run.row > shard.rows - run.length)
      return wrong(fmt::format("rows below {}", shard.rows));
    free = run.row + run.length;
  }
  return std::nullopt;
}

std::optional<std::string> attn::plan::checkShards(const Sequences &sequences, llvm::ArrayRef<Shard> shards) {
  if (int64_t(shards.size()) != sequences.ranks)
    return fmt::format("expected shards of {} ranks, got: {}", sequences.ranks, shards.size());
  struct Owned {
    int64_t sequence, position, end;
    size_t rank;
  };
  std::vector<Owned> all;
  for (auto [rank, shard] : llvm::enumerate(shards)) {
    if (std::optional<std::string> wrong = checkRuns(sequences, shard, rank))
      return wrong;
    for (const Run &run : shard.runs)
      all.push_back({run.sequence, run.position, run.position + run.length, rank});
  }
  llvm::sort(all, [](const Owned &a, const Owned &b) {
    return std::tie(a.sequence, a.position, a.rank) < std::tie(b.sequence, b.position, b.rank);
  });
  auto next = all.begin();
  for (auto [sequence, length] : llvm::enumerate(sequences.lengths)) {
    int64_t covered = 0;
    size_t before = 0;
    for (; next != all.end() && next->sequence == int64_t(sequence); ++next) {
      if (next->position > covered)
        break;
      if (next->position < covered)
        return fmt::format("expected each token on one rank, got: position {} of sequence {} on ranks {} and {}",
                           next->position, sequence, before, next->rank);
      covered = next->end, before = next->rank;
    }
    if (covered < length)
      return fmt::format("expected each token on a rank, got: position {} of sequence {} on none", covered, sequence);
  }
  return std::nullopt;
}
