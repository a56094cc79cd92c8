// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the operators of frameworks have in common: kernels by their problem and by the shapes of a call, and failures
// as Python reads them.
//
#ifndef ATTNC_KERNEL_TABLE_H
#define ATTNC_KERNEL_TABLE_H

#include "attn-c/Attn.h"
#include <array>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace attnc {

struct KernelDeleter {
  void operator()(attnKernel *kernel) const { attnDestroy(kernel); }
};
using OwnedKernel = std::unique_ptr<attnKernel, KernelDeleter>;

/// A contiguous result.
struct ResultShape {
  attnDtype dtype;
  int32_t rank;
  std::array<int64_t, attnMaxRank> extents;
};

/// The kernel for tensors of certain shapes and strides, and what a call with such has to allocate.
struct SpecializedKernel {
  OwnedKernel handle;
  std::vector<ResultShape> results;
  size_t workspaceBytes = 0;
};

class Kernel {
public:
  attnKernel *handle() const { return owned.get(); }
  size_t tensorCount() const { return isResultAt.size(); }
  bool isResult(size_t i) const { return isResultAt[i]; }

  /// Of `tensors`, dtypes, shapes and strides of operands and arrays are read. Null after a failure. The last shapes
  /// are kept: no library call is made for them again.
  std::shared_ptr<const SpecializedKernel> specialize(const attnTensor *tensors) const {
    thread_local std::vector<int64_t> key;
    key.clear();
    for (size_t i = 0; i < isResultAt.size(); ++i)
      if (!isResultAt[i])
        append(key, tensors[i]);
    {
      std::lock_guard lock(mutex);
      for (const Known &known : last)
        if (known.key == key)
          return known.kernel;
    }
    auto made = std::make_shared<SpecializedKernel>();
    if (!fill(*made, tensors))
      return nullptr;
    std::lock_guard lock(mutex);
    if (last.size() < keptShapes)
      last.push_back({key, made});
    else
      last[oldest++ % keptShapes] = {key, made};
    return made;
  }

private:
  friend const Kernel *kernelOf(std::string_view problem, std::string_view name, bool onCpu);
  static constexpr size_t keptShapes = 32;
  struct Known {
    std::vector<int64_t> key;
    std::shared_ptr<const SpecializedKernel> kernel;
  };

  static void append(std::vector<int64_t> &key, const attnTensor &tensor) {
    key.push_back(int64_t(tensor.dtype) << 32 | tensor.rank << 1 | (tensor.strides != nullptr));
    key.insert(key.end(), tensor.shape, tensor.shape + tensor.rank);
    if (tensor.strides)
      key.insert(key.end(), tensor.strides, tensor.strides + tensor.rank);
  }

  bool fill(SpecializedKernel &made, const attnTensor *given) const {
    std::vector<attnTensor> tensors(given, given + isResultAt.size());
    std::vector<std::array<int64_t, attnMaxRank>> extents(isResultAt.size());
    attnKernel *specialized = nullptr;
    if (attnSpecialize(owned.get(), tensors.data(), &specialized))
      return false;
    made.handle.reset(specialized);
    if (attnInferShapes(specialized, tensors.data(), reinterpret_cast<int64_t (*)[attnMaxRank]>(extents.data())) ||
        attnWorkspaceSize(specialized, tensors.data(), &made.workspaceBytes))
      return false;
    for (size_t i = 0; i < isResultAt.size(); ++i)
      if (isResultAt[i])
        made.results.push_back({tensors[i].dtype, tensors[i].rank, extents[i]});
    return true;
  }

  OwnedKernel owned;
  std::vector<bool> isResultAt;
  mutable std::mutex mutex;
  mutable std::vector<Known> last;
  mutable size_t oldest = 0;
};

/// The last failure of libattnc.so, ahead of it the name of the exception that Python makes of it.
inline std::string lastFailure() {
  static const char *const kinds[] = {"Error",       "ProblemError", "UnsupportedError",
                                      "TensorError", "CompileError", "DriverError"}; // as attnErrorKind numbers them
  return std::string("attnc.") + kinds[attnLastErrorKind()] + ": " + attnLastError();
}

/// The kernel of a problem, built; null after a failure. Kernels stay for as long as the process does.
inline const Kernel *kernelOf(std::string_view problem, std::string_view name, bool onCpu) {
  static std::shared_mutex mutex;
  static auto *kernels = new std::unordered_map<std::string, Kernel>;
  thread_local std::string key;
  key.assign(onCpu ? "c" : "g").append(name).append(1, '\0').append(problem);
  {
    std::shared_lock lock(mutex);
    if (auto found = kernels->find(key); found != kernels->end())
      return &found->second;
  }
  attnKernel *made = nullptr;
  if (attnCompile(std::string(problem).c_str(), std::string(name).c_str(), onCpu ? "cpu" : nullptr, &made))
    return nullptr;
  OwnedKernel compiled(made);
  std::unique_lock lock(mutex);
  auto [place, isNew] = kernels->try_emplace(key);
  if (isNew) { // no other thread was faster
    for (int i = 0, n = attnTensorCount(made); i < n; ++i)
      place->second.isResultAt.push_back(attnTensorIsResult(made, i));
    place->second.owned = std::move(compiled);
  }
  return &place->second;
}

} // namespace attnc

#endif // ATTNC_KERNEL_TABLE_H
