// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Rows of queries that see the same keys: those that see no other rank's keys are complete after one launch.
//
#ifndef ATTN_LIB_CONTEXTPARALLEL_QUERYPARTS_H
#define ATTN_LIB_CONTEXTPARALLEL_QUERYPARTS_H

#include "attn/Dialect/Plan/Analysis/Tables.h"

namespace attn {

/// Positions [begin, end) of a sequence.
struct Span {
  int64_t begin = 0, end = 0;

  bool empty() const { return begin >= end; }
  Span common(Span other) const { return {std::max(begin, other.begin), std::min(end, other.end)}; }
};

/// The positions of a run.
inline Span spanOf(const plan::Run &run) { return {run.position, run.position + run.length}; }

/// Adds runs of other rows of the same buffer. Runs ascend by rows.
void addRuns(plan::Shard &shard, llvm::ArrayRef<plan::Run> runs);

/// Which queries and keys of a sequence see each other in some head: the first to the last of them by the intervals of
/// the mask, so never too few. All, where a mask reads arrays.
class Visibility {
public:
  Visibility(MaskInterface mask, int64_t heads, const plan::CallSequences &sequences);
  Span queriesThatSee(int64_t sequence, Span keys);
  Span keysSeenBy(int64_t sequence, Span queries);

private:
  Span known(int64_t sequence, bool ofKeys, Span from);
  Span hull(int64_t sequence, bool ofKeys, Span from) const;
  MaskInterface mask;
  const plan::CallSequences &sequences;
  int64_t heads;
  bool readsArrays;
  llvm::DenseMap<std::tuple<int64_t, int64_t, int64_t>, Span> spans; ///< by sequence and side, and positions
};

/// Rows of a buffer of queries, and the buffers of keys, by number and ascending, of which they may see some.
struct QueryPart {
  std::shared_ptr<const plan::Shard> rows;
  llvm::SmallVector<size_t> keys;
  /// The keys that rows see, of all their buffers, in one that is packed for them; null: each has a launch.
  std::shared_ptr<const plan::Shard> packed = nullptr;
};

/// Parts by the buffers that rows see. Rows that also see others join a part if they are fewer than `leastRows`. Rows
/// that see none are in a part without keys. `single`: a part has at most one run of a sequence; `queries` may have
/// several.
std::vector<QueryPart> partsOf(const plan::Shard &queries, llvm::ArrayRef<const plan::Shard *> keys,
                               Visibility &visibility, int64_t leastRows, bool single);

/// Shards that have together the runs of this one, and at most one run of a sequence each.
std::vector<std::shared_ptr<const plan::Shard>> singleRuns(const plan::Shard &shard);

/// The most runs that a sequence has.
int64_t mostRuns(const plan::Shard &shard);

/// The keys of several buffers that the queries see, in a shard of these alone, by sequence and position.
std::shared_ptr<const plan::Shard> packedKeys(llvm::ArrayRef<const plan::Shard *> keys, const plan::Shard &queries,
                                              Visibility &visibility);

/// The keys that the queries see, in a shard of the same rows.
std::shared_ptr<const plan::Shard> keysSeen(const plan::Shard &keys, const plan::Shard &queries,
                                            Visibility &visibility);

} // namespace attn

#endif // ATTN_LIB_CONTEXTPARALLEL_QUERYPARTS_H
