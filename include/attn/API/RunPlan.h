// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Runs a context-parallel plan: kernels of a problem whose tensors hold pieces of sequences, and messages between
// ranks.
//
#ifndef ATTN_API_RUNPLAN_H
#define ATTN_API_RUNPLAN_H

#include "attn/API/Jit.h"
#include "attn/Dialect/Plan/Analysis/Tables.h"
#include <condition_variable>

namespace attn {

/// Query heads from `first` on, and how many kv heads they use: whole ones, or a part of one.
struct PlanHeads {
  int64_t first, count, kvCount;
};

/// The kernels of a plan, made when they are first asked for. They know neither ranks nor lengths. Safe to use from
/// several threads.
class PlanKernels {
public:
  using Made = rt::Result<std::shared_ptr<const Kernel>>;

  /// Refuses problems that pieces of sequences do not have (attn.problem, C17). `backward`: null for a plan of results.
  static rt::Result<std::shared_ptr<PlanKernels>> create(ProblemOp problem, BackwardOp backward, const Target &target);

  /// Attention of some heads over some keys: begins or continues a partial result, and leaves one or completes it.
  Made attend(const PlanHeads &heads, bool continues, bool isPartial);
  /// Gradients of some heads over some keys: dQ is added to that over other keys, and float32 unless it is complete.
  Made differentiate(const PlanHeads &heads, bool adds, bool isComplete);
  /// Rows in another order, or sums of rows (`attn.gather_rows`).
  Made gatherRows(int64_t parts, int64_t heads, int64_t dim, Dtype dtype, Dtype from);

  const Target &getTarget() const { return target; }
  bool haveBackward() const { return !backward.empty(); }

private:
  PlanKernels() = default;
  /// The kernel of this key, made from `text` when it is first asked for.
  Made make(const std::string &key, llvm::StringRef name, llvm::function_ref<rt::Result<std::string>()> text);

  std::string problem, backward; ///< texts
  Target target;
  std::mutex mutex;
  std::map<std::string, std::shared_ptr<const Kernel>> made; ///< by what was asked for
};

/// Memory of a message, contiguous.
struct MessagePart {
  void *data;
  size_t bytes;
};

/// How ranks reach each other. All ranks post the same exchanges in the same order.
class Transport {
public:
  virtual ~Transport() = default;
  /// Begins exchange `number` of a run. What is sent was computed on `stream` and does not change until the end of the
  /// run; what is received is written any time from now on. Without parts nothing is sent, or received.
  virtual rt::Status post(int64_t number, int64_t to, llvm::ArrayRef<MessagePart> sent, int64_t from,
                          llvm::ArrayRef<MessagePart> received, rt::Stream stream) = 0;
  /// What is put on `stream` afterwards finds what exchange `number` received.
  virtual rt::Status wait(int64_t number, rt::Stream stream) = 0;
  /// Ends a run: memory that was sent may change.
  virtual rt::Status finish(rt::Stream stream) = 0;
};

/// The ranks of one process, each a thread, on a CPU or on one GPU: for tests, and for plans on one device. Memory of
/// each rank stays until all have returned, also where one has failed.
class LocalRanks {
public:
  LocalRanks(int64_t ranks, bool isHost);
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
                                                       int64_t rank, std::shared_ptr<PlanKernels> kernels);
  ~RankSteps();

  /// Bytes of the values that the rank receives and computes, and of integers.
  size_t valueBytes() const;
  /// Bytes of memory that a run needs with such tensors, aligned to 256: those, and the workspace of its kernels.
  rt::Result<size_t> workspaceBytes(const std::map<std::string, TensorView> &tensors) const;

  /// Runs the rank's steps. `tensors`, by name: `q`, `k`, `v`, `o`, `lse`, and in a backward pass `do`, `dq`, `dk`,
  /// `dv` (with `dlse`, that too), all of the rank's own rows [rows, heads, dim], `lse` [heads, rows]; and the
  /// problem's arrays, the same on all ranks: what has an entry for each row or key has those of the whole sequences,
  /// one behind the other without padding, by heads if it has these: [total] or [heads, total].
  rt::Status run(const std::map<std::string, TensorView> &tensors, void *workspace, rt::Stream stream,
                 Transport &transport) const;

  struct Steps;

private:
  explicit RankSteps(std::unique_ptr<Steps> steps);
  std::unique_ptr<Steps> steps;
};

} // namespace attn

#endif // ATTN_API_RUNPLAN_H
