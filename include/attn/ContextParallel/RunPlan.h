// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Runs a context-parallel plan: kernels of a problem whose tensors hold pieces of sequences, and messages between
// ranks.
//
#ifndef ATTN_CONTEXTPARALLEL_RUNPLAN_H
#define ATTN_CONTEXTPARALLEL_RUNPLAN_H

#include "attn/API/Jit.h"
#include "attn/ContextParallel/Transport.h"
#include "attn/Dialect/Plan/Analysis/Tables.h"

namespace attn {

/// Query heads from `first` on, and how many kv heads they use: whole ones, or a part of one.
struct PlanHeads {
  int64_t first, count, kvCount;
};

/// The kernels of a plan, lowered when they are first asked for, and built by `RankSteps::create`. They know neither
/// ranks nor lengths. Safe to use from several threads.
class PlanKernels {
public:
  using Made = rt::Result<std::shared_ptr<const Kernel>>;

  /// Refuses problems that pieces of sequences do not have (attn.problem, C17). `backward`: null for a plan of results.
  static rt::Result<std::shared_ptr<PlanKernels>> create(ProblemOp problem, BackwardOp backward, const Target &target);

  /// Attention of some heads over some keys: begins or continues a partial result, and leaves one or completes it.
  Made attend(const PlanHeads &heads, bool continues, bool isPartial, bool keepsPadding);
  /// Gradients of some heads over some keys: dQ is added to that over other keys, and float32 unless it is complete.
  /// `isSingle`: with `single_pieces` and `keep_padding`.
  Made differentiate(const PlanHeads &heads, bool adds, bool isComplete, bool isSingle);
  /// Rows in another order, or sums of rows (`attn.gather_rows`).
  Made gatherRows(int64_t parts, int64_t heads, int64_t dim, Dtype dtype, Dtype from);

  /// Are gradients computed for single pieces of sequences? Only kernels without a loop over pieces compute dK, dV and
  /// dQ together.
  bool splitsPieces();
  /// Rows that are complete earlier than others have a launch of their own if their float32 results have so many bytes.
  int64_t leastSplit() const { return splitFrom; }
  /// Gradients are computed for single pieces if a launch has so many pairs, on average, times query heads and head
  /// dim. A loop over pieces takes 1.4 times as long (seven products, not five), and a launch some 15 us more.
  double leastSingle() const { return singleFrom; }
  /// How many kv heads a launch of gradients for single pieces has at most, of so many queries and keys. Float32 dQ of
  /// more than 512 MB is slower: 65,536 queries and keys of 32 heads take 385 ms in one launch, and 301 in four
  /// (docs/results/2026-11-30-h200-plan-kernels.jsonl). Launches of few KV tiles are not divided.
  int64_t mostKvHeads(int64_t queries, int64_t keys) const;
  /// For tests: computes gradients for single pieces on any target.
  void splitPieces() { splits = true; }
  /// For tests: the same, and divides rows and pieces wherever that is possible.
  void splitAll() { splits = true, splitFrom = 0, singleFrom = 0, dividesHeads = true; }

  const Target &getTarget() const { return target; }
  bool haveBackward() const { return !backward.empty(); }
  /// The tensors of a run (`RankSteps::run`), as a program without steps.
  const rt::Program &getSignature(bool ofGradients) const { return signatures[ofGradients]; }

private:
  PlanKernels() = default;
  /// The kernel of this key, made from `text` when it is first asked for.
  Made make(const std::string &key, llvm::StringRef name, llvm::function_ref<rt::Result<std::string>()> text);

  PlanHeads named(PlanHeads heads) const;

  std::string problem, backward; ///< texts
  rt::Program signatures[2];
  Target target;
  int64_t splitFrom = int64_t(64) << 20;
  double singleFrom = 2e9;
  bool dividesHeads = false;               ///< always
  bool isAlike = false;                    ///< heads differ in nothing but their rows
  int64_t kvHeads = 1, queryHeadBytes = 1; ///< of the problem; float32 bytes of a row's dQ of the heads of a kv head
  std::mutex mutex;
  std::optional<bool> splits;
  std::map<std::string, std::shared_ptr<const Kernel>> made; ///< by what was asked for
};

/// The ranks of one process, each a thread, on a CPU or on one GPU. Memory of each rank stays until all have returned,
/// also where one has failed. A wait of more than `timeout` seconds is an error that names the rank (0: no limit), and
/// all later calls fail.
class LocalRanks {
public:
  LocalRanks(int64_t ranks, bool isHost, double timeout = 0);
  ~LocalRanks();
  Transport &of(int64_t rank);
  /// A rank has failed: others return an error instead of waiting for it, in this run and in later ones.
  void abandon();

private:
  struct State;
  std::unique_ptr<State> state;
};

/// The steps of one rank for the sequences of a call.
class RankSteps {
public:
  /// `tables`: those of the plan for these sequences. Compiles the kernels that this rank runs.
  static rt::Result<std::unique_ptr<RankSteps>> create(plan::DefOp plan, ProblemOp problem, BackwardOp backward,
                                                       const plan::CallSequences &sequences, const plan::Tables &tables,
                                                       int64_t rank, std::shared_ptr<PlanKernels> kernels) {
    auto steps = lower(plan, problem, backward, sequences, tables, rank, std::move(kernels));
    rt::Status built = steps ? (*steps)->build() : rt::Status();
    return built ? std::move(steps) : rt::Result<std::unique_ptr<RankSteps>>(built.error());
  }
  /// The same for `transport`, which has to stay. All ranks call it: they compare builds, plans, problems and
  /// sequences, and compile then. An error is one on all ranks, and names a rank and what differs. `isChecked`: as
  /// `Tables::compute`. `beforeWaiting` is called when the ops are no longer used.
  static rt::Result<std::unique_ptr<RankSteps>> bind(plan::DefOp plan, ProblemOp problem, BackwardOp backward,
                                                     const plan::CallSequences &sequences, Transport &transport,
                                                     std::shared_ptr<PlanKernels> kernels, bool isChecked = false,
                                                     llvm::function_ref<void()> beforeWaiting = {});
  /// Tells ranks that call `bind` an error of this one.
  static void refuse(Transport &transport, const rt::Error &error);
  ~RankSteps();

  /// Bytes of memory that a run needs with such tensors, aligned to 256: the workspace of its kernels, and if the
  /// transport has no memory for them (`Transport::route`) the values that the rank receives and computes.
  rt::Result<size_t> workspaceBytes(const std::map<std::string, TensorView> &tensors) const;

  /// Bytes of the values that the rank receives and computes.
  size_t valueBytes() const;

  /// Runs the rank's steps. `tensors`, by name: `q`, `k`, `v`, `o`, `lse`, and in a backward pass `do`, `dq`, `dk`,
  /// `dv` (with `dlse`, that too), all of the rank's own rows [rows, heads, dim], `lse` [heads, rows]; and the
  /// problem's arrays, the same on all ranks: what has an entry for each row or key has those of the whole sequences,
  /// one behind the other without padding, by heads if it has these: [total] or [heads, total].
  rt::Status run(const std::map<std::string, TensorView> &tensors, void *workspace, rt::Stream stream,
                 Transport &transport) const;

  struct Steps;

private:
  explicit RankSteps(std::unique_ptr<Steps> steps);
  /// Steps whose kernels are not compiled.
  static rt::Result<std::unique_ptr<RankSteps>> lower(plan::DefOp plan, ProblemOp problem, BackwardOp backward,
                                                      const plan::CallSequences &sequences, const plan::Tables &tables,
                                                      int64_t rank, std::shared_ptr<PlanKernels> kernels);
  bool isBuilt() const;
  rt::Status build();
  rt::Status runSteps(const std::map<std::string, TensorView> &tensors, char *values, char *workspace,
                      rt::Stream stream, Transport &transport) const;
  std::unique_ptr<Steps> steps;
  std::shared_ptr<const Transport::Route> route;
};

} // namespace attn

#endif // ATTN_CONTEXTPARALLEL_RUNPLAN_H
