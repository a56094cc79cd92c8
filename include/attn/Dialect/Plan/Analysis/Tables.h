// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a plan is for the sequences of a call: which tokens and heads each rank has of each value, and what it sends.
//
#ifndef ATTN_DIALECT_PLAN_ANALYSIS_TABLES_H
#define ATTN_DIALECT_PLAN_ANALYSIS_TABLES_H

#include "attn/Dialect/Attn/IR/Attn.h"
#include "attn/Dialect/Plan/IR/Plan.h"
#include "llvm/ADT/DenseMap.h"

namespace attn::plan {

/// Rows that one rank has of a value, and their heads.
struct Held {
  Shard shard;
  std::vector<int64_t> heads;

  bool empty() const { return shard.rows == 0 || heads.empty(); }
  int64_t rowHeads() const { return shard.rows * int64_t(heads.size()); }
};

/// Intervals of positions, sorted and apart.
using Positions = std::vector<std::pair<int64_t, int64_t>>;

/// Lengths and slots of a call, of queries and of keys. Sequences of the same number belong together.
struct CallSequences {
  std::vector<int64_t> lengths[2], slots[2]; ///< [0]: of queries, [1]: of keys
  llvm::function_ref<llvm::ArrayRef<Shard>(llvm::StringRef name)> given;
};

/// All ranks compute the tables of all ranks. Time and memory grow with ranks, steps and runs, and do not with lengths
/// beyond 4096.
class Tables {
public:
  /// Otherwise what is wrong: sequences that the shardings refuse, or a plan that is wrong for them. A plan is right if
  /// each rank attends to each key that its queries see exactly once (V6), each gradient of a key comes home exactly
  /// once (V7), and results are of the rank's own rows.
  std::optional<std::string> compute(DefOp plan, ProblemOp problem, const CallSequences &sequences);

  int64_t ranks() const { return int64_t(seen.size()); }
  const Held &held(mlir::Value value, int64_t rank) const { return values.find(value)->second[rank]; }
  /// The rank that receives what `rank` sends.
  int64_t receiver(ExchangeOp exchange, int64_t rank) const;
  /// Rows times heads that a rank sends.
  int64_t sent(ExchangeOp exchange, int64_t rank) const;
  /// The keys of a sequence that local queries of a rank see in some head; never too few, and exact where the mask's
  /// intervals are. All keys where a mask reads arrays.
  const Positions &seenBy(int64_t rank, int64_t sequence) const { return seen[rank][sequence]; }
  /// Do local queries of a rank see some of these tokens?
  bool sees(int64_t rank, const Shard &keys) const;

private:
  void findSeen(MaskInterface mask, const CallSequences &sequences);
  std::optional<std::string> evaluate(mlir::Operation &step);
  Held filtered(ExchangeOp exchange, const Held &from, int64_t source, int64_t rank) const;
  std::optional<std::string> checkAttends(DefOp plan) const;
  std::optional<std::string> checkStored(StoreOp store) const;

  std::vector<std::vector<Positions>> seen; ///< [rank][sequence]
  std::vector<Shard> shards[2];
  int64_t heads[2] = {};
  llvm::DenseMap<mlir::Value, std::vector<Held>> values;
  /// Gradients of a rank's keys from the queries of one rank, the origin. Sums have those of all parts.
  struct Contribution {
    Shard shard;
    int64_t origin;
  };
  llvm::DenseMap<mlir::Value, std::vector<std::vector<Contribution>>> contributions;
};

} // namespace attn::plan

#endif // ATTN_DIALECT_PLAN_ANALYSIS_TABLES_H
