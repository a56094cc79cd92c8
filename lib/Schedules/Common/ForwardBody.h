// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What forward kernels have in common, on tiles or on SIMT tiles: rows that may be pairs of a
// query and a head, and what score modifiers make of scores.
//
#ifndef ATTN_LIB_SCHEDULES_FORWARDBODY_H
#define ATTN_LIB_SCHEDULES_FORWARDBODY_H

#include "SequenceBody.h"

namespace attn {

class ForwardBody : protected SequenceBody {
protected:
  ForwardBody(ProblemOp problem, tile::KernelOp kernel, tile::ScheduleInterface schedule)
      : SequenceBody(problem, kernel), schedule(schedule) {}

  /// Heads that have tiles of their own.
  int64_t gridHeads() { return int64_t(problem.getHeads()) / schedule.getPackHeads(); }
  Index firstHead(Index gridHead) { return math.mul(gridHead, schedule.getPackHeads()); }
  /// The same of rows: where heads share a tile, a number for queries and one for heads.
  mlir::Value perRow(mlir::Value query, mlir::Value head, llvm::StringRef name = "") {
    return pairs(schedule.getPackHeads(), query, head, name);
  }
  mlir::Value strideOf(llvm::StringRef tensor) {
    return perRow(args[(tensor + "_row").str()], args[(tensor + "_head").str()]);
  }
  mlir::Value rowsOf(Index queries) { return math.value(math.mul(queries, schedule.getPackHeads())); }

  /// The kv head of `h`.
  void findKvHead();
  /// The same, where its keys lie and how many there are.
  void findKeys();

  /// An op for each score modifier, on the tile of keys from `k0` on, and before `loop` what
  /// does not depend on keys; returns by what scores are still to be multiplied.
  double modifyScores(mlir::Operation *loop, Index k0);
  /// The region of a score: what `emit` makes of the product, which is to be multiplied
  /// by `factor`. Returns by what the result is.
  double writeScore(mlir::Region &region, mlir::OpBuilder &before, double factor,
                    llvm::function_ref<Score(ScoreScope &, Score)> emit);

  /// What the sink of a row adds to it, if the problem has sinks: for `tile.add_sink`, and others that do
  /// the same. `counts`: whether this block is the one that adds it.
  void findSink(std::optional<Cond> counts = std::nullopt);
  void addSink(mlir::Value acc, mlir::Value row);
  void writeSink(mlir::Region &region);
  mlir::Value sinks(); ///< the array, if there is one

  tile::ScheduleInterface schedule;
  mlir::Value s;      ///< scores
  mlir::Value origin; ///< where the tile's rows begin
  mlir::Value sink;   ///< of rows of one head
  mlir::Value draws;  ///< what pairs are dropped by, if any are
  std::optional<Cond> sinkCounts;
};

} // namespace attn

#endif // ATTN_LIB_SCHEDULES_FORWARDBODY_H
