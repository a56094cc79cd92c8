// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A plan's steps for one rank and the sequences of a call: launches and messages, with all memory placed.
//
#ifndef ATTN_LIB_CONTEXTPARALLEL_RANKSTEPS_H
#define ATTN_LIB_CONTEXTPARALLEL_RANKSTEPS_H

#include "attn/ContextParallel/RunPlan.h"
#include <variant>

namespace attn {

/// An op as text, and a line break.
std::string textOf(mlir::Operation *op);

/// A tensor, [rows, heads, dim] or, of LSE and softmax states, [heads, rows].
struct PlacedTensor {
  enum class Memory {
    Values,   ///< what the rank computes and receives, contiguous
    Integers, ///< arrays that the host has written
    Caller    ///< the caller's tensor of this name, with its own shape
  };
  Memory memory = Memory::Values;
  std::string name;   ///< of the caller's
  int64_t value = -1; ///< of Values: its number
  size_t offset = 0;  ///< in the memory of values or integers, in bytes; of values after `placeValues`
  Dtype dtype = Dtype::F32;
  llvm::SmallVector<int64_t, 3> shape; ///< not of the caller's
  int64_t firstHead = 0, heads = -1;   ///< a part of the heads; -1: all
  bool isStatistic = false;            ///< [heads, rows]
  bool asRows = false;                 ///< a statistic as [rows, heads, 1]

  bool isCallers() const { return memory == Memory::Caller; }
  bool isContiguous() const { return !isCallers() && heads < 0; }
  size_t bytes() const;
  PlacedTensor ofHeads(int64_t first, int64_t count) const {
    PlacedTensor part = *this;
    part.firstHead += first, part.heads = count;
    return part;
  }
};

struct RankSteps::Steps {
  struct Launch {
    std::shared_ptr<const Kernel> kernel;
    std::vector<PlacedTensor> tensors; ///< in the kernel's order
  };
  struct Post {
    int64_t number, to, from;
    std::vector<PlacedTensor> sent, received; ///< contiguous
  };
  struct Wait {
    int64_t number;
    std::optional<int64_t> from, to; ///< the ranks of what was received, and sent
  };
  /// A tensor becomes 0.
  struct Clear {
    PlacedTensor tensor; ///< contiguous
  };
  std::vector<std::variant<Launch, Post, Wait, Clear>> actions;
  std::vector<size_t> sizes; ///< of each value, in bytes
  size_t values = 0;         ///< bytes of all of them, once they are placed
  std::vector<int32_t> integers;
  /// Shapes of the caller's tensors that hold rows of this rank, by name.
  std::map<std::string, llvm::SmallVector<int64_t, 3>> shapes;
  int64_t rank = 0;
  std::shared_ptr<PlanNames> names = std::make_shared<PlanNames>();
  const rt::Driver *driver = nullptr; ///< null: a CPU
  rt::Context context = nullptr;      ///< whose device has the integers
  rt::DevicePtr onDevice = 0;

  Steps() = default;
  Steps(const Steps &) = delete;
  ~Steps();
  rt::Status checkShapes(const std::map<std::string, TensorView> &tensors) const;
  /// Values that are not needed at the same time share memory.
  void placeValues();
  /// Brings the integers to the device of the current context.
  rt::Status place();
  /// Builds all kernels.
  rt::Status build() const;
  rt::Status clear(const TensorView &tensor, rt::Stream stream) const;
  ReceivePlan receivePlan() const;

  /// A tensor with its address.
  struct Resolved {
    void *data = nullptr;
    Dtype dtype = Dtype::F32;
    llvm::SmallVector<int64_t, 3> shape, strides;
    TensorView view() const { return {data, dtype, shape, strides}; }
  };
  using Given = std::map<std::string, TensorView>;
  rt::Result<Resolved> resolve(const PlacedTensor &tensor, const Given &given, char *values) const;
  rt::Result<std::vector<Resolved>> resolve(llvm::ArrayRef<PlacedTensor> tensors, const Given &given,
                                            char *values) const;
};

/// Fills in the steps of a rank.
rt::Status planRank(plan::DefOp plan, ProblemOp problem, BackwardOp backward, const plan::CallSequences &sequences,
                    const plan::Tables &tables, int64_t rank, PlanKernels &kernels, RankSteps::Steps &steps);

} // namespace attn

#endif // ATTN_LIB_CONTEXTPARALLEL_RANKSTEPS_H
