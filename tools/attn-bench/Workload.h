// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a kernel is timed on: its tensors in the memory of its device, and
// how much there is to compute.
//
#ifndef ATTN_TOOLS_ATTN_BENCH_WORKLOAD_H
#define ATTN_TOOLS_ATTN_BENCH_WORKLOAD_H

#include "attn-rt/Driver.h"
#include "attn/API/Jit.h"
#include "attn/Reference/Inputs.h"

namespace attn::bench {

/// Floating point operations of both products on visible pairs, if the mask alone says which those are.
std::optional<double> flopsOf(ProblemOp problem, const reference::InputSizes &sizes);

/// Inputs that look random and poisoned results.
class Workload {
public:
  static rt::Result<std::unique_ptr<Workload>> create(const Kernel &kernel, Computation computation,
                                                      const reference::InputSizes &sizes);
  /// A launch of any kernel on these inputs, results poisoned.
  static rt::Result<std::unique_ptr<Workload>> create(const Kernel &kernel,
                                                      const llvm::StringMap<reference::Tensor> &inputs);
  ~Workload();

  llvm::ArrayRef<TensorView> getViews() const { return views; }
  /// Launches the kernel on the views, with a workspace if it needs one.
  rt::Status launch(const Kernel &kernel, rt::Stream stream) const;
  double getBytes() const { return bytes; } ///< of all tensors, each once
  /// Null on a CPU.
  const rt::Driver *getDriver() const { return driver; }

  /// Poisons o, runs the kernel once and gives back what it wrote.
  rt::Result<reference::Tensor> outputOf(const Kernel &kernel) const;

private:
  Workload() = default;
  rt::Status findMemory(const Kernel &kernel);
  rt::Status add(const rt::Program::Tensor &spec, const reference::Tensor &tensor);

  const rt::Driver *driver = nullptr;
  std::vector<rt::DevicePtr> device;
  std::vector<std::vector<char>> host;
  std::vector<llvm::SmallVector<int64_t, 4>> shapes;
  llvm::SmallVector<TensorView> views;
  reference::Tensor output; ///< o, poisoned
  size_t outputIndex = 0;
  double bytes = 0;
  mutable size_t workspaceSize = 0; ///< the largest that a kernel has needed so far
  mutable rt::DevicePtr deviceWorkspace = 0;
  mutable std::vector<char> hostWorkspace;
};

/// How far `actual` is from `expected`, relative, in the 2-norm of up to 2^18 elements.
double distance(const reference::Tensor &actual, const reference::Tensor &expected);

} // namespace attn::bench

#endif // ATTN_TOOLS_ATTN_BENCH_WORKLOAD_H
