// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef ATTN_TOOLS_ATTN_BENCH_TIMING_H
#define ATTN_TOOLS_ATTN_BENCH_TIMING_H

#include "Workload.h"
#include <chrono>
#include <nlohmann/json.hpp>

namespace attn::bench {

struct Timing {
  double medianMs = 0;  ///< of the kernel: CUDA events, or the wall clock on a CPU
  double launchUs = 0;  ///< host time of one launch, median
  double bytes = 0;     ///< of q, k, v, o and lse, each once
  std::string schedule; ///< that the launches had, by its name
};

/// Random inputs in the kernel's memory, a few launches to warm up, then as many
/// timed ones as `budgetMs` allows (at least 5).
rt::Result<Timing> timeKernel(const Kernel &kernel, Computation computation, const reference::InputSizes &sizes,
                              double budgetMs);

/// For kernels that take turns on one workload: a device's clocks drift by a tenth
/// over a run, so that only neighbouring samples can be compared.
class Turns {
public:
  static rt::Result<Turns> create(const Workload &work); ///< its stream and events live as long as the process

  /// Milliseconds of a launch, from a sample of several.
  rt::Result<double> msOf(const Kernel &kernel, int64_t launches) const;
  /// The same in a CUDA graph, for kernels that take no longer than a launch does.
  rt::Result<double> msInGraph(const Kernel &kernel, int64_t launches) const;
  /// Of one call, until its results are there.
  rt::Result<double> msOfCall(const Kernel &kernel) const;

private:
  explicit Turns(const Workload &work) : work(&work) {}

  const Workload *work;
  rt::Stream stream = nullptr;
  rt::Event begin = nullptr, end = nullptr;
};

double median(std::vector<double> values);
/// To multiples of 1 / unit, for lines that people read.
double rounded(double x, double unit = 1e4);

/// GPU, driver, NVRTC, date; or the CPU.
nlohmann::ordered_json describeMachine(const Target &target);

class Clock {
public:
  double ms() const {
    return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  }

private:
  std::chrono::steady_clock::time_point start = std::chrono::steady_clock::now();
};

} // namespace attn::bench

#endif // ATTN_TOOLS_ATTN_BENCH_TIMING_H
