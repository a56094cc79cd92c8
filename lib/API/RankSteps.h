// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A plan's steps for one rank and the sequences of a call: launches and messages, with all memory placed.
//
#ifndef ATTN_LIB_API_RANKSTEPS_H
#define ATTN_LIB_API_RANKSTEPS_H

#include "attn/API/RunPlan.h"
#include <variant>

namespace attn {

/// A tensor, [rows, heads, dim] or, of LSE and softmax states, [heads, rows].
struct PlacedTensor {
  enum class Memory {
    Values,   ///< of the workspace: what the rank computes and receives, contiguous
    Integers, ///< of the workspace: arrays that the host writes
    Caller    ///< the caller's tensor of this name, with its own shape
  };
  Memory memory = Memory::Values;
  std::string name;  ///< of the caller's
  size_t offset = 0; ///< in the workspace, in bytes
  Dtype dtype = Dtype::F32;
  llvm::SmallVector<int64_t, 3> shape; ///< in the workspace
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
  };
  std::vector<std::variant<Launch, Post, Wait>> actions;
  size_t values = 0;             ///< bytes of values
  std::vector<int32_t> integers; ///< in front of them
  bool isHost = false;

  size_t integerBytes() const { return llvm::alignTo(integers.size() * sizeof(int32_t), 256); }

  /// A tensor with its address.
  struct Resolved {
    void *data = nullptr;
    Dtype dtype = Dtype::F32;
    llvm::SmallVector<int64_t, 3> shape, strides;
    TensorView view() const { return {data, dtype, shape, strides}; }
  };
  using Given = std::map<std::string, TensorView>;
  rt::Result<Resolved> resolve(const PlacedTensor &tensor, const Given &given, char *workspace) const;
  rt::Result<std::vector<Resolved>> resolve(llvm::ArrayRef<PlacedTensor> tensors, const Given &given,
                                            char *workspace) const;
};

/// Fills in the steps of a rank.
rt::Status planRank(plan::DefOp plan, ProblemOp problem, BackwardOp backward, const plan::CallSequences &sequences,
                    const plan::Tables &tables, int64_t rank, PlanKernels &kernels, RankSteps::Steps &steps);

} // namespace attn

#endif // ATTN_LIB_API_RANKSTEPS_H
