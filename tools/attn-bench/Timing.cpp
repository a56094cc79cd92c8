// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Timing.h"
#include "attn-rt/Compiler.h"
#include "attn-rt/Driver.h"
#include <ctime>
#include <fstream>
#include <thread>

using namespace attn;
using namespace attn::bench;

namespace {
/// A launch's tensors in the memory of the kernel's device.
struct Buffers {
  const rt::Driver *driver = nullptr;
  std::vector<rt::DevicePtr> device;
  std::vector<std::vector<char>> host;
  std::vector<llvm::SmallVector<int64_t, 4>> shapes;
  llvm::SmallVector<TensorView> views;

  ~Buffers() {
    for (rt::DevicePtr ptr : device)
      (void)driver->free(ptr);
  }

  rt::Status add(const TensorSpec &spec, llvm::ArrayRef<int64_t> shape, llvm::ArrayRef<char> bytes) {
    void *data = nullptr;
    if (driver) {
      auto ptr = driver->alloc(bytes.size());
      if (!ptr)
        return ptr.status();
      device.push_back(*ptr);
      if (rt::Status s = driver->copyToDevice(*ptr, bytes.data(), bytes.size()); !s)
        return s;
      data = reinterpret_cast<void *>(*ptr);
    } else {
      host.emplace_back(bytes.begin(), bytes.end());
      data = host.back().data();
    }
    shapes.emplace_back(shape);
    views.push_back({data, spec.dtype, {}, {}});
    return {};
  }

  void link() {
    for (auto [view, shape] : llvm::zip(views, shapes))
      view.shape = shape;
  }
};
} // namespace

static double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
  return values[values.size() / 2];
}

/// `elements` bf16 values that look random: a block of normal ones, repeated (a
/// prime length, so that rows differ).
static std::vector<char> randomBytes(int64_t elements, reference::Dtype dtype, uint64_t seed) {
  reference::Tensor block(dtype, {std::min<int64_t>(elements, 1048573)});
  block.fillNormal(seed);
  std::vector<char> bytes(elements * 2);
  for (size_t at = 0; at < bytes.size(); at += block.bytes().size())
    std::copy_n(block.bytes().data(), std::min(block.bytes().size(), bytes.size() - at), bytes.data() + at);
  return bytes;
}

static rt::Status fill(Buffers &buffers, const Kernel &kernel, ProblemOp problem, const reference::InputSizes &wanted,
                       Timing &timing) {
  Sizes sizes{wanted.batch, wanted.seqlenQ, wanted.seqlenKv};
  auto total = [](const std::vector<int64_t> &lengths) {
    int64_t sum = 0;
    for (int64_t length : lengths)
      sum += length;
    return sum;
  };
  if (problem.getQLayout().isPacked())
    sizes = {int64_t(wanted.lengthsQ.size()), total(wanted.lengthsQ), total(wanted.lengthsKv)};
  uint64_t seed = 1;
  for (const TensorSpec &spec : kernel.getSignature().tensors) {
    llvm::SmallVector<int64_t, 4> shape = spec.shape(problem, sizes);
    int64_t elements = 1;
    for (int64_t extent : shape)
      elements *= extent;
    std::vector<char> bytes;
    if (spec.dtype == Dtype::I32) {
      std::vector<int32_t> sums(elements, 0);
      const auto &lengths = llvm::StringRef(spec.name).ends_with("_q") ? wanted.lengthsQ : wanted.lengthsKv;
      for (size_t i = 1; i < sums.size(); ++i)
        sums[i] = sums[i - 1] + lengths[i - 1];
      bytes.assign(reinterpret_cast<char *>(sums.data()), reinterpret_cast<char *>(sums.data() + sums.size()));
    } else if (spec.dtype == Dtype::F32) {
      bytes.assign(elements * 4, 0);
    } else {
      bytes = randomBytes(elements, reference::dtypeOf(problem), seed++);
    }
    timing.bytes += bytes.size();
    if (rt::Status s = buffers.add(spec, shape, bytes); !s)
      return s;
  }
  buffers.link();
  return {};
}

/// Times one launch after another on the wall clock.
static rt::Status timeHost(const Kernel &kernel, Buffers &buffers, double budgetMs, Timing &timing) {
  std::vector<double> samples;
  for (Clock total; samples.size() < 5 || total.ms() < budgetMs;) {
    Clock clock;
    if (rt::Status s = kernel.launch(buffers.views, nullptr); !s)
      return s;
    samples.push_back(clock.ms());
  }
  timing.medianMs = median(samples);
  return {};
}

static rt::Status timeDevice(const Kernel &kernel, Buffers &buffers, double budgetMs, Timing &timing) {
  const rt::Driver &driver = *buffers.driver;
  auto stream = driver.createStream();
  auto begin = driver.createEvent(), end = driver.createEvent();
  if (!stream || !begin || !end)
    return !stream ? stream.status() : !begin ? begin.status() : end.status();
  auto once = [&](double &ms, double &us) -> rt::Status {
    if (rt::Status s = driver.record(*begin, *stream); !s)
      return s;
    Clock clock;
    if (rt::Status s = kernel.launch(buffers.views, *stream); !s)
      return s;
    us = clock.ms() * 1e3;
    if (rt::Status s = driver.record(*end, *stream); !s)
      return s;
    if (rt::Status s = driver.synchronizeEvent(*end); !s)
      return s;
    auto elapsed = driver.elapsedMs(*begin, *end);
    if (!elapsed)
      return elapsed.status();
    ms = *elapsed;
    return {};
  };
  std::vector<double> samples, launches;
  rt::Status status;
  Clock total;
  for (int i = 0; status && (i < 15 || total.ms() < budgetMs); ++i) {
    double ms = 0, us = 0;
    status = once(ms, us);
    if (i >= 5) { // the first ones warm up
      samples.push_back(ms);
      launches.push_back(us);
    }
  }
  if (status) {
    timing.medianMs = median(samples);
    timing.launchUs = median(launches);
  }
  (void)driver.destroyEvent(*begin);
  (void)driver.destroyEvent(*end);
  (void)driver.destroyStream(*stream);
  return status;
}

rt::Result<Timing> bench::timeKernel(const Kernel &kernel, ProblemOp problem, const reference::InputSizes &sizes,
                                     double budgetMs) {
  Timing timing;
  Buffers buffers;
  if (!kernel.isHost()) {
    auto driver = rt::Driver::get();
    if (!driver)
      return driver.error();
    buffers.driver = *driver;
  }
  if (rt::Status s = fill(buffers, kernel, problem, sizes, timing); !s)
    return s.error();
  rt::Status status =
      kernel.isHost() ? timeHost(kernel, buffers, budgetMs, timing) : timeDevice(kernel, buffers, budgetMs, timing);
  if (!status)
    return status.error();
  return timing;
}

/// What the kernel calls the first CPU.
static std::string cpuName() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);)
    if (llvm::StringRef(line).starts_with("model name"))
      return llvm::StringRef(line).split(':').second.trim().str();
  return "unknown";
}

nlohmann::ordered_json bench::describeMachine(const Target &target) {
  nlohmann::ordered_json machine = {{"peer", "env"}, {"target", target.str()}};
  char date[32];
  std::time_t now = std::time(nullptr);
  std::strftime(date, sizeof date, "%Y-%m-%d", std::gmtime(&now));
  machine["date"] = date;
  if (target.isHost()) {
    machine["cpu"] = cpuName();
    machine["threads"] = std::thread::hardware_concurrency();
    return machine;
  }
  if (auto driver = rt::Driver::get()) {
    if (auto name = (*driver)->deviceName(0))
      machine["gpu"] = *name;
    machine["driver"] = (*driver)->version();
  }
  if (auto version = rt::createNvrtcCompiler()->version())
    machine["nvrtc"] = *version;
  return machine;
}
