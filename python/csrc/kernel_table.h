// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the operators of frameworks have in common: kernels by their problem, and failures as Python reads them.
//
#ifndef ATTNC_KERNEL_TABLE_H
#define ATTNC_KERNEL_TABLE_H

#include "attn-c/Attn.h"
#include <mutex>
#include <shared_mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace attnc {

struct Kernel {
  attnKernel *handle = nullptr;
  std::vector<bool> isResult;
};

struct KernelDeleter {
  void operator()(attnKernel *kernel) const { attnDestroy(kernel); }
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
  Kernel made;
  if (attnCompile(std::string(problem).c_str(), std::string(name).c_str(), onCpu ? "cpu" : nullptr, &made.handle))
    return nullptr;
  for (int i = 0, n = attnTensorCount(made.handle); i < n; ++i)
    made.isResult.push_back(attnTensorIsResult(made.handle, i));
  std::unique_lock lock(mutex);
  auto [place, isNew] = kernels->emplace(key, made);
  if (!isNew) // another thread was faster
    attnDestroy(made.handle);
  return &place->second;
}

} // namespace attnc

#endif // ATTNC_KERNEL_TABLE_H
