// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Common to forward kernels on tiles and on SIMT tiles: rows that may be pairs of a query and a packed head, and score
// modifiers.
//
#ifndef ATTN_LIB_SCHEDULES_COMMON_FORWARDBODY_H
#define ATTN_LIB_SCHEDULES_COMMON_FORWARDBODY_H

#include "AttentionBody.h"

namespace attn {

class ForwardBody : protected AttentionBody {
protected:
  ForwardBody(ProblemOp problem, tile::KernelOp kernel, tile::ScheduleInterface schedule)
      : AttentionBody(problem, kernel), schedule(schedule) {}

  /// Groups of packed heads, each with tiles of its own.
  int64_t gridHeads() { return int64_t(problem.getHeads()) / schedule.getPackHeads(); }
  Index firstHead(Index gridHead) { return math.mul(gridHead, schedule.getPackHeads()); }
  /// A value for each row: with packed heads, a pair of one for queries and one for heads.
  mlir::Value perRow(mlir::Value query, mlir::Value head, llvm::StringRef name = "") {
    return pairs(schedule.getPackHeads(), query, head, name);
  }
  mlir::Value strideOf(llvm::StringRef tensor) { return perRow(rowStrideOf(tensor), args[(tensor + "_head").str()]); }
  mlir::Value rowsOf(Index queries) { return math.value(math.mul(queries, schedule.getPackHeads())); }

  /// Sets the kv head of `h`.
  void findKvHead();
  /// Finds the kv head, its keys and their number.
  void findKeys();

  /// One step: the scores of a query tile and a KV tile become probabilities.
  struct Step {
    KeyWalk &walk;
    mlir::Value q, k, scores;            ///< operands and result of the first product
    mlir::Value row;                     ///< softmax state
    mlir::Value acc;                     ///< rescaled where a row's maximum rises; null in a single pass over all keys
    Index k0 = 0;                        ///< the tile's first key
    int64_t kvHeads = 1;                 ///< packed in a tile; columns are pairs of a key and a kv head
    bool negated = false;                ///< the product is negated, since the scale is negative
    bool rising = false;                 ///< scores rise along the loop
    bool recomputed = false;             ///< rows with large scores are recomputed after the loop
    mlir::Operation *loop = nullptr;     ///< what depends on no key is computed before it
    std::optional<Cond> tested;          ///< the mask is applied only if it holds
    std::function<void()> beforeSoftmax; ///< emits ops between mask and softmax
  };
  /// Emits the product of Q and K, score modifiers, mask and softmax of a step.
  void emitScoresAndSoftmax(const Step &step);
  /// Emits dropout of the step's probabilities.
  void dropProbabilities(const Step &step);
  /// acc += P V
  void accumulateValues(mlir::Value acc, mlir::Value p, mlir::Value v, bool guarded);

  /// Fills the region of a score with what `emit` makes of the product, which still lacks `factor`. Returns the factor
  /// that the result lacks.
  double writeScore(mlir::Region &region, mlir::OpBuilder &before, double factor,
                    llvm::function_ref<Score(ScoreScope &, Score)> emit);

  /// Finds the sink's score, if the problem has sinks, for `tile.add_sink` and similar ops. `counts`: whether this CTA
  /// adds it.
  void findSink(std::optional<Cond> counts = std::nullopt);
  void addSink(mlir::Value acc, mlir::Value row);
  void writeSink(mlir::Region &region);
  mlir::Value sinks(); ///< the array, if there is one

  tile::ScheduleInterface schedule;
  Index keyRows = 0;        ///< the sequence's keys, or those of `keyResidue`
  mlir::Value s;            ///< scores
  mlir::Value origin;       ///< the tile's first row
  mlir::Value sink;         ///< the sink's score, for rows of one head
  mlir::Value dropoutState; ///< null without dropout
  std::optional<Cond> sinkCounts;

private:
  mlir::Value firstColumn(const Step &step) {
    mlir::Value k0 = math.value(step.k0);
    return step.kvHeads == 1 ? k0 : pairs(step.kvHeads, k0, math.value(0));
  }
  /// Emits an op for each score modifier, on the KV tile from `k0` on, and before `loop` what does not depend on keys.
  /// Returns the factor still to be applied to scores.
  double modifyScores(mlir::Value scores, mlir::Operation *loop, Index k0);
};

} // namespace attn

#endif // ATTN_LIB_SCHEDULES_COMMON_FORWARDBODY_H
