// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How long a plan takes, what it sends and what memory it needs: computed from its tables, not measured. All ranks
// compute the same numbers, so that all choose the same plan.
//
#ifndef ATTN_DIALECT_PLAN_ANALYSIS_COSTS_H
#define ATTN_DIALECT_PLAN_ANALYSIS_COSTS_H

#include "attn/Dialect/Plan/Analysis/Tables.h"

namespace attn::plan {

/// What a rank and its link reach. An H200, as measured: products at head dim 128 and 16,384 tokens under a causal mask
/// (docs/results/2026-11-30-h200-peers.jsonl), copies between two GPUs of a host by the copy engine, both ways at once.
struct Rates {
  double forwardTflops = 730, backwardTflops = 620; ///< 10^12 operations a second, of visited tiles
  double copyGbps = 4200;                           ///< 10^9 bytes a second, read and written
  double linkGbps = 385;                            ///< 10^9 bytes a second, each way
  double messageUs = 11, launchUs = 4;              ///< microseconds before a message moves, and of a kernel
};

struct RankCosts {
  double pairs = 0;      ///< of visited tiles, times heads
  double computeMs = 0;  ///< of its kernels
  double finishedMs = 0; ///< when its last result is there
  double receivedBytes = 0;
  double peakBytes = 0; ///< of values that are there at a time, without the rank's own rows
};

/// A kernel of `rank`, or a message to it.
struct TimelineEntry {
  int64_t rank;
  double beginMs, endMs;
  bool isMessage;
};

struct PlanCosts {
  std::vector<RankCosts> ranks;
  std::vector<TimelineEntry> timeline;

  double milliseconds() const;
  /// How much longer the plan takes than the kernels of the rank with the most work.
  double exposedMs() const;
  /// The most work of a rank, of the mean.
  double balance() const;
};

/// The tiles that queries visit, which plans of the same problem, shards and sequences have in common.
class VisitedTiles;
std::shared_ptr<VisitedTiles> visitedTiles(MaskInterface mask, const CallSequences &sequences);

/// Messages are sent in order, one after the other each way, while kernels run. A tile has 128 rows and 128 keys; some
/// tiles of a run stand for others.
/// `tiles`: those of other plans, whose tables stay, for the same problem, shards and sequences; null: none.
PlanCosts costsOf(DefOp plan, ProblemOp problem, const Tables &tables, const CallSequences &sequences,
                  const Rates &rates, std::shared_ptr<VisitedTiles> tiles = nullptr);

} // namespace attn::plan

#endif // ATTN_DIALECT_PLAN_ANALYSIS_COSTS_H
