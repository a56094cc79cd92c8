// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// From a plan to the launches and messages of one rank: the steps (RankPlanner.cpp), and the launches that make one
// result (PlanChains.cpp).
//
#ifndef ATTN_LIB_CONTEXTPARALLEL_RANKPLANNER_H
#define ATTN_LIB_CONTEXTPARALLEL_RANKPLANNER_H

#include "QueryParts.h"
#include "RankSteps.h"
#include "attn/Dialect/Program/IR/PlainData.h"

namespace attn {

/// What a rank has of a value: its tensors, as the kind of the value says, or nothing.
struct Place {
  plan::Held held;
  std::vector<PlacedTensor> parts;
  std::vector<Place> addends = {}; ///< the value is their sum, and has no memory; they may lack rows and heads
  bool isPacked = false;           ///< rows have other places than in the buffer whose gradients they are
};

/// Keys that a step attends to, or whose gradients it computes.
struct Term {
  mlir::Operation *step;
  size_t key; ///< the number among the step's keys
  std::shared_ptr<const plan::Shard> keys;
};

/// The steps that make one result of some queries, each from what the one before has left.
struct Chain {
  mlir::Value last;       ///< the result
  bool completes = false; ///< no other rank continues it
  bool isSingle = false;  ///< kernels have at most one piece of a sequence on each side
  std::vector<Term> terms;
  std::vector<QueryPart> parts; ///< whose keys are terms
  Place unfinished, finished;   ///< float32 results that launches continue, and complete ones
  bool isCleared = false;       ///< is something in all rows of `finished`?

  /// Is a launch the first, or the last, of a part? `term`: of its keys, the last one where keys are packed.
  bool isFirst(const QueryPart &part, size_t term) const { return part.packed || part.keys.front() == term; }
  bool isLast(const QueryPart &part, size_t term) const { return completes && part.keys.back() == term; }
};

/// Writes the steps of one rank.
class Planner {
public:
  Planner(plan::DefOp plan, ProblemOp problem, BackwardOp backward, const plan::CallSequences &sequences,
          const plan::Tables &tables, int64_t rank, PlanKernels &kernels, RankSteps::Steps &steps)
      : plan(plan), problem(problem), backward(backward), sequences(sequences), tables(tables), rank(rank),
        kernels(kernels), steps(steps), visibility(problem.getMask(), problem.getHeads(), sequences),
        group(int64_t(problem.getHeads()) / int64_t(problem.getKvHeads())), data(dtypeOf(problem.getDtype())) {
    if (backward)
      arrays = backward.getDifferentiatedArrays();
  }

  rt::Status build();

private:
  using Kind = plan::Kind;
  Place &of(mlir::Value value) { return places.find(value)->second; }
  const plan::Held &held(mlir::Value value) const { return tables.held(value, rank); }
  static Kind kindOf(mlir::Value value) {
    if (auto arrival = llvm::dyn_cast<plan::ArrivalType>(value.getType()))
      return arrival.getKind();
    return llvm::cast<plan::RowsType>(value.getType()).getKind();
  }
  static bool isComplete(mlir::Value value);
  /// The stored result that a value is, as the caller's tensors; none if it is another.
  std::vector<PlacedTensor> storedAs(mlir::Value value);

  PlacedTensor allocate(Dtype dtype, const plan::Held &held, int64_t dim, bool isStatistic = false);
  std::vector<PlacedTensor> allocate(Kind kind, const plan::Held &held, bool isComplete);
  /// Columns of a caller's tensor.
  int64_t dimOf(llvm::StringRef name) {
    return name == "q" || name == "k" || name == "dq" || name == "dk" ? problem.getDimQk() : problem.getDimV();
  }
  PlacedTensor integers(llvm::ArrayRef<int32_t> values, llvm::ArrayRef<int64_t> shape);
  PlacedTensor callers(llvm::StringRef name, Dtype dtype, bool isStatistic = false) {
    PlacedTensor tensor;
    tensor.memory = PlacedTensor::Memory::Caller;
    tensor.name = name.str(), tensor.dtype = dtype, tensor.isStatistic = isStatistic;
    return tensor;
  }
  std::vector<PlacedTensor> local(Kind kind);

  /// The arrays of the pieces of a side, and of its whole sequences, by name.
  const std::map<std::string, PlacedTensor> &piecesOf(bool ofKeys, const std::shared_ptr<const plan::Shard> &shard);
  /// Those of both sides.
  std::map<std::string, PlacedTensor> piecesOf(const std::shared_ptr<const plan::Shard> &queries,
                                               const std::shared_ptr<const plan::Shard> &keys) {
    std::map<std::string, PlacedTensor> all = piecesOf(false, queries);
    const std::map<std::string, PlacedTensor> &others = piecesOf(true, keys);
    all.insert(others.begin(), others.end());
    return all;
  }
  rt::Status launch(PlanKernels::Made kernel, std::map<std::string, PlacedTensor> tensors);
  /// Rows of a destination from those of sources, by token and head: copied, or with several sources added.
  rt::Status gather(const Place &to, llvm::ArrayRef<const Place *> from);
  PlacedTensor indexOf(const plan::Shard &to, llvm::ArrayRef<const plan::Shard *> from);
  bool isNeeded(const plan::Held &queries, const plan::Held &keys) const;
  /// Are partial results in memory that nothing else has? They have one use (plan.def, C3), and what is sent stays.
  static bool isOwn(const Place &partial) { return !partial.parts.empty() && partial.parts[0].isContiguous(); }

  /// Calls `visit` with parts of the query heads that use up to `most` whole kv heads, or a part of one: their number,
  /// those of kv heads, and the first of both among those that the rank has.
  rt::Status eachHeadPart(plan::Heads queries, plan::Heads keys, int64_t most,
                          llvm::function_ref<rt::Status(int64_t h, int64_t g, int64_t q0, int64_t k0)> visit);

  /// The chain of result `number` of a step, `plan.attend` or `plan.grads`.
  std::shared_ptr<Chain> chainOf(mlir::Operation *step, size_t number);
  bool isWorthSingle(const plan::Held &queries, llvm::ArrayRef<Term> terms);
  void findTerms(Chain &chain, llvm::ArrayRef<mlir::Operation *> chained);
  void findParts(Chain &chain);
  /// Packs the keys that a part sees, if these are few.
  void packKeys(const Chain &chain, QueryPart &part);
  /// The packed keys of a part.
  rt::Result<Place> pack(const Chain &chain, const QueryPart &part);
  /// Calls `visit` with the terms of a step whose keys have this number, and each part that has them.
  static rt::Status eachLaunch(const Chain &chain, mlir::Operation *step, size_t key,
                               llvm::function_ref<rt::Status(const QueryPart &part, size_t term)> visit);
  /// Where a launch writes: complete results, or those that others continue.
  Place &memoryOf(Chain &chain, Kind kind, bool isFinished);
  /// Complete gradients of rows in no part are zeros.
  rt::Status clear(Chain &chain);

  rt::Status exchange(plan::ExchangeOp op);
  rt::Status attend(plan::AttendOp op);
  rt::Status attend(Chain &chain, const QueryPart &part, size_t term, const Place &queries, const Place &keys);
  rt::Status differentiate(plan::GradsOp op);
  rt::Status differentiate(Chain &chain, const QueryPart &part, size_t term, const Place &queries, const Place &keys);
  /// Where a launch writes dK and dV of these keys, which are addends of those of their buffers from then on.
  std::vector<PlacedTensor> gradientsOf(const Chain &chain, const QueryPart &part, size_t term, const plan::Held &keys);
  /// Launches of a part whose results are not sent may wait for the next exchange in which this rank sends gradients:
  /// the message then moves meanwhile. Null: there is none.
  plan::ExchangeOp behind(plan::GradsOp op, const Chain &chain, const QueryPart &part) const;
  Place placeOf(mlir::Value dkv);
  rt::Status collect(mlir::Value result, mlir::ValueRange parts);
  rt::Status store(plan::StoreOp op);

  plan::DefOp plan;
  ProblemOp problem;
  BackwardOp backward;
  const plan::CallSequences &sequences;
  const plan::Tables &tables;
  int64_t rank;
  PlanKernels &kernels;
  RankSteps::Steps &steps;
  Visibility visibility;
  int64_t group; ///< query heads of a kv head
  Dtype data;
  llvm::SmallVector<ScoreOperand> arrays; ///< that have gradients
  PlacedTensor keyPositions;              ///< without a shape until they are needed
  llvm::DenseMap<mlir::Value, Place> places;
  llvm::DenseMap<mlir::Value, std::shared_ptr<Chain>> chains; ///< of each result
  std::map<const void *, std::vector<Place>> gradients; ///< addends of the gradients of keys, by the value of these
  llvm::DenseMap<mlir::Operation *, std::vector<std::function<rt::Status()>>> deferred; ///< behind an exchange
  llvm::DenseMap<mlir::Operation *, int64_t> numbers;                                   ///< of exchanges
  std::vector<std::pair<mlir::Value, Place>> packed; ///< parts of values that were sent
  std::map<std::pair<bool, const plan::Shard *>, std::map<std::string, PlacedTensor>> pieces;
  std::vector<std::shared_ptr<const plan::Shard>> kept; ///< whose pieces are known
};

} // namespace attn

#endif // ATTN_LIB_CONTEXTPARALLEL_RANKPLANNER_H
