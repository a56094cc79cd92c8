// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "QueryParts.h"
#include <map>

using namespace attn;
using plan::Run;
using plan::Shard;

Visibility::Visibility(MaskInterface mask, int64_t heads, const plan::CallSequences &sequences)
    : mask(mask), sequences(sequences), heads(distinctHeads(mask, heads)), readsArrays(!mask.operands().empty()) {}

Span Visibility::hull(int64_t sequence, bool ofKeys, Span from) const {
  const int64_t length = sequences.lengths[ofKeys][sequence], lenQ = sequences.lengths[0][sequence],
                lenK = sequences.lengths[1][sequence];
  if (from.empty() || !lenQ || !lenK)
    return {};
  if (readsArrays)
    return {0, length};
  IndexMath math;
  MaskScope scope;
  scope.lenQ = Index::position(lenQ), scope.lenK = Index::position(lenK), scope.heads = heads;
  Span all = {length, 0};
  Interval others = {Index::position(from.begin), Index::position(from.end)};
  for (int64_t head = 0; head < heads; ++head) {
    scope.head = Index::position(head);
    TileRanges ranges = ofKeys ? mask.keyRanges(math, scope, others) : mask.queryRanges(math, scope, others);
    for (const Interval &interval : ranges.some) {
      Span span = {std::max<int64_t>(interval.lo.getNumber(), 0), std::min(interval.hi.getNumber(), length)};
      if (!span.empty())
        all = {std::min(all.begin, span.begin), std::max(all.end, span.end)};
    }
  }
  return all;
}

Span Visibility::known(int64_t sequence, bool ofKeys, Span from) {
  auto [found, isNew] = spans.try_emplace(std::tuple(2 * sequence + ofKeys, from.begin, from.end));
  if (isNew)
    found->second = hull(sequence, ofKeys, from);
  return found->second;
}

Span Visibility::queriesThatSee(int64_t sequence, Span keys) { return known(sequence, /*ofKeys=*/false, keys); }

Span Visibility::keysSeenBy(int64_t sequence, Span queries) { return known(sequence, /*ofKeys=*/true, queries); }

void attn::addRuns(Shard &shard, llvm::ArrayRef<Run> runs) {
  llvm::append_range(shard.runs, runs);
  llvm::sort(shard.runs, [](const Run &a, const Run &b) { return a.row < b.row; });
}

/// The rows of the run that have these positions.
static Run partOf(const Run &run, Span span) {
  return {run.row + span.begin - run.position, run.sequence, span.begin, span.end - span.begin};
}

/// The queries that see keys of a buffer, by sequences: those of each run of keys, which may overlap.
static std::map<int64_t, std::vector<Span>> queriesThatSee(const Shard &keys, Visibility &visibility) {
  std::map<int64_t, std::vector<Span>> all;
  for (const Run &run : keys.runs)
    if (Span span = visibility.queriesThatSee(run.sequence, spanOf(run)); !span.empty())
      all[run.sequence].push_back(span);
  return all;
}

namespace {
/// Rows that see the same buffers.
struct Class {
  std::vector<Run> runs;
  int64_t rows = 0;
};
using Classes = std::map<llvm::SmallVector<size_t>, Class>;
} // namespace

/// Classes with few rows join the smallest that sees all their buffers and more.
static void joinSmall(Classes &classes, int64_t leastRows) {
  for (auto it = classes.begin(); it != classes.end();) {
    const auto &[keys, own] = *it;
    auto into = classes.end();
    for (auto other = classes.begin(); other != classes.end() && own.rows < leastRows && !keys.empty(); ++other)
      if (other != it && std::includes(other->first.begin(), other->first.end(), keys.begin(), keys.end()) &&
          (into == classes.end() || other->first.size() < into->first.size()))
        into = other;
    if (into == classes.end()) {
      ++it;
      continue;
    }
    into->second.rows += own.rows;
    llvm::append_range(into->second.runs, own.runs);
    it = classes.erase(it);
  }
}

std::vector<QueryPart> attn::partsOf(const Shard &queries, llvm::ArrayRef<const Shard *> keys, Visibility &visibility,
                                     int64_t leastRows, bool single) {
  std::vector<std::map<int64_t, std::vector<Span>>> seeing;
  for (const Shard *buffer : keys)
    seeing.push_back(queriesThatSee(*buffer, visibility));
  Classes classes;
  std::vector<int64_t> bounds;
  for (const Run &run : queries.runs) {
    const Span own = spanOf(run);
    bounds = {own.begin, own.end};
    for (auto &spans : seeing)
      if (auto found = spans.find(run.sequence); found != spans.end())
        for (Span span : found->second)
          if (Span common = span.common(own); !common.empty())
            bounds.insert(bounds.end(), {common.begin, common.end});
    llvm::sort(bounds);
    for (size_t i = 1; i < bounds.size(); ++i) {
      const Span between = {bounds[i - 1], bounds[i]};
      if (between.empty())
        continue;
      llvm::SmallVector<size_t> seen;
      for (auto [number, spans] : llvm::enumerate(seeing))
        if (auto found = spans.find(run.sequence); found != spans.end())
          if (llvm::any_of(found->second, [&](Span span) { return !span.common(between).empty(); }))
            seen.push_back(number);
      Class &of = classes[seen];
      of.runs.push_back(partOf(run, between));
      of.rows += between.end - between.begin;
    }
  }
  joinSmall(classes, leastRows);
  std::vector<QueryPart> parts;
  for (auto &[seen, own] : classes) {
    llvm::sort(own.runs, [](const Run &a, const Run &b) { return a.row < b.row; });
    auto whole = std::make_shared<Shard>();
    for (const Run &run : own.runs)
      if (Run *last = whole->runs.empty() ? nullptr : &whole->runs.back();
          last && last->sequence == run.sequence && last->row + last->length == run.row &&
          last->position + last->length == run.position)
        last->length += run.length;
      else
        whole->runs.push_back(run);
    whole->rows = queries.rows;
    if (!single)
      parts.push_back({whole, seen});
    else
      for (std::shared_ptr<const Shard> &rows : singleRuns(*whole))
        parts.push_back({rows, seen});
  }
  return parts;
}

std::vector<std::shared_ptr<const Shard>> attn::singleRuns(const Shard &shard) {
  std::vector<std::shared_ptr<Shard>> all;
  std::map<int64_t, size_t> counts; // runs of each sequence so far
  for (const Run &run : shard.runs) {
    if (!run.length)
      continue;
    size_t number = counts[run.sequence]++;
    if (number == all.size())
      all.push_back(std::make_shared<Shard>(Shard{shard.rows, {}}));
    all[number]->runs.push_back(run);
  }
  return {all.begin(), all.end()};
}

int64_t attn::mostRuns(const Shard &shard) {
  std::map<int64_t, int64_t> counts;
  int64_t most = 0;
  for (const Run &run : shard.runs)
    if (run.length)
      most = std::max(most, ++counts[run.sequence]);
  return most;
}

std::shared_ptr<const Shard> attn::keysSeen(const Shard &keys, const Shard &queries, Visibility &visibility) {
  std::map<int64_t, std::vector<Span>> seen;
  for (const Run &run : queries.runs)
    if (Span span = visibility.keysSeenBy(run.sequence, spanOf(run)); !span.empty())
      seen[run.sequence].push_back(span);
  auto part = std::make_shared<Shard>(Shard{keys.rows, {}});
  for (const Run &run : keys.runs) {
    auto found = seen.find(run.sequence);
    if (found == seen.end())
      continue;
    Span own = spanOf(run), all = {own.end, own.begin};
    for (Span span : found->second)
      if (Span common = span.common(own); !common.empty())
        all = {std::min(all.begin, common.begin), std::max(all.end, common.end)};
    if (!all.empty())
      part->runs.push_back(partOf(run, all));
  }
  return part;
}

std::shared_ptr<const plan::Shard> attn::packedKeys(llvm::ArrayRef<const Shard *> keys, const Shard &queries,
                                                    Visibility &visibility) {
  std::vector<Run> runs;
  for (const Shard *buffer : keys)
    llvm::append_range(runs, keysSeen(*buffer, queries, visibility)->runs);
  llvm::sort(runs, [](const Run &a, const Run &b) {
    return std::pair(a.sequence, a.position) < std::pair(b.sequence, b.position);
  });
  auto packed = std::make_shared<Shard>();
  for (const Run &run : runs)
    packed->addTokens(run.sequence, run.position, run.position + run.length);
  return packed;
}
