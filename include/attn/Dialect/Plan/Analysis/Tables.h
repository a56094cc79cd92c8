// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a plan is for the sequences of a call: which tokens and heads each rank has of each value, and what it sends.
//
#ifndef ATTN_DIALECT_PLAN_ANALYSIS_TABLES_H
#define ATTN_DIALECT_PLAN_ANALYSIS_TABLES_H

#include "attn/Dialect/Attn/IR/Attn.h"
#include "attn/Dialect/Plan/IR/Plan.h"
#include "llvm/ADT/DenseMap.h"
#include <memory>

namespace attn::plan {

/// Heads [begin, end).
struct Heads {
  int64_t begin = 0, end = 0;

  int64_t size() const { return end - begin; }
  bool contain(Heads other) const { return other.size() == 0 || (begin <= other.begin && other.end <= end); }
  bool operator==(const Heads &) const = default;
};

/// What one rank has of a value: rows of its own shard or of another rank's, and their heads.
struct Held {
  std::shared_ptr<const Shard> rows = std::make_shared<Shard>();
  int64_t owner = 0; ///< the rank whose shard the rows are of
  Heads heads;

  bool empty() const { return rows->rows == 0 || heads.size() == 0; }
  int64_t rowHeads() const { return rows->rows * heads.size(); }
  /// Are these the same rows and heads of the same rank?
  bool sameAs(const Held &other) const { return owner == other.owner && heads == other.heads && *rows == *other.rows; }
};

/// Intervals of positions, sorted and apart.
using Positions = std::vector<std::pair<int64_t, int64_t>>;

/// Lengths and slots of a call, of queries and of keys. Sequences of the same number belong together.
struct CallSequences {
  std::vector<int64_t> lengths[2], slots[2]; ///< [0]: of queries, [1]: of keys
  llvm::function_ref<llvm::ArrayRef<Shard>(llvm::StringRef name)> given;
};

/// The problem for pieces of its sequences, with the same clauses.
mlir::OwningOpRef<ProblemOp> ofPieces(ProblemOp problem);
/// Why there is no such problem (attn.problem, C17); empty if there is.
std::string whyNoPieces(ProblemOp problem);

/// All ranks compute the tables of all ranks. Time and memory grow with ranks, steps and runs, and do not with lengths
/// beyond 256, but for `#plan.striped`, whose runs they are.
class Tables {
public:
  /// Otherwise what is wrong: sequences that the shardings refuse, or a plan that is wrong for them. A plan is right if
  /// each head of each query attends to each key that it sees exactly once (V6), each gradient of a key comes home
  /// exactly once (V7), and results are those of the rank's own rows and of all heads. These three checks take most of
  /// the time; `isChecked` says that they are known to hold. `alike`: tables of another plan of this problem, for the
  /// same ranks, shardings and sequences, whose shards are taken over.
  std::optional<std::string> compute(DefOp plan, ProblemOp problem, const CallSequences &sequences,
                                     bool isChecked = false, const Tables *alike = nullptr);

  int64_t ranks() const { return int64_t(seen.size()); }
  const Held &held(mlir::Value value, int64_t rank) const { return values.find(value)->second[rank]; }
  /// The rows that a rank has of queries or keys.
  const Shard &shardOf(bool ofKeys, int64_t rank) const { return *shards[ofKeys][rank]; }
  /// The rank that receives what `rank` sends.
  int64_t receiver(ExchangeOp exchange, int64_t rank) const;
  /// The rank that sends what `rank` receives.
  int64_t sender(ExchangeOp exchange, int64_t rank) const;
  /// Rows times heads that a rank sends.
  int64_t sent(ExchangeOp exchange, int64_t rank) const;
  /// The keys of a sequence that a rank's own queries see in some head; never too few, and exact where the mask's
  /// intervals are. All keys where a mask reads arrays.
  const Positions &seenBy(int64_t rank, int64_t sequence) const { return seen[rank][sequence]; }
  /// The heads of keys that these heads of queries use.
  Heads keyHeads(Heads ofQueries) const;

private:
  using Owners = llvm::SmallVector<int64_t, 2>; ///< sorted
  /// Gradients of a rank's keys from some heads of the queries of one rank, the owner. Sums have those of all parts.
  struct Contribution {
    std::shared_ptr<const Shard> keys;
    int64_t owner;
    Heads queryHeads;
  };

  /// Shards, and what their queries see.
  std::optional<std::string> distributeTokens(DefOp plan, MaskInterface mask, const CallSequences &sequences);
  void findSeen(MaskInterface mask, const CallSequences &sequences);
  void findAttending(DefOp plan);
  bool sees(int64_t rank, const Shard &keys) const;
  Held partOf(const Held &local, bool ofKeys, int64_t group, int64_t rank) const;
  Held sentRows(ExchangeOp exchange, int64_t from, int64_t to) const;
  std::optional<std::string> evaluate(mlir::Operation &step);
  std::optional<std::string> checkAttends(DefOp plan) const;
  std::optional<std::string> checkGradients(mlir::Value dkv) const;
  std::optional<std::string> checkStored(StoreOp store) const;

  std::vector<std::vector<Positions>> seen; ///< [rank][sequence]
  std::vector<std::shared_ptr<const Shard>> shards[2];
  int64_t heads[2] = {};
  llvm::DenseMap<mlir::Value, std::vector<Held>> values;
  /// The ranks whose queries attend to keys, where these are or where they are sent on to.
  llvm::DenseMap<mlir::Value, std::vector<Owners>> attending;
  llvm::DenseMap<mlir::Value, std::vector<std::vector<Contribution>>> contributions;
};

} // namespace attn::plan

#endif // ATTN_DIALECT_PLAN_ANALYSIS_TABLES_H
