// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Timing.h"
#include "attn-rt/Compiler.h"
#include <cmath>
#include <ctime>
#include <fstream>
#include <thread>

using namespace attn;
using namespace attn::bench;

double bench::median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
  return values[values.size() / 2];
}

double bench::rounded(double x, double unit) { return std::round(x * unit) / unit; }

/// Times one launch after another on the wall clock.
static rt::Status timeHost(const Kernel &kernel, const Workload &work, double budgetMs, Timing &timing) {
  std::vector<double> samples;
  for (Clock total; samples.size() < 5 || total.ms() < budgetMs;) {
    Clock clock;
    if (rt::Status s = work.launch(kernel, nullptr); !s)
      return s;
    samples.push_back(clock.ms());
  }
  timing.medianMs = median(samples);
  return {};
}

static rt::Status timeDevice(const Kernel &kernel, const Workload &work, double budgetMs, Timing &timing) {
  const rt::Driver &driver = *work.getDriver();
  auto stream = driver.createStream();
  auto begin = driver.createEvent(), end = driver.createEvent();
  if (!stream || !begin || !end)
    return !stream ? stream.status() : !begin ? begin.status() : end.status();
  auto once = [&](double &ms, double &us) -> rt::Status {
    if (rt::Status s = driver.record(*begin, *stream); !s)
      return s;
    Clock clock;
    if (rt::Status s = work.launch(kernel, *stream); !s)
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

rt::Result<Timing> bench::timeKernel(const Kernel &kernel, Computation computation, const reference::InputSizes &sizes,
                                     double budgetMs) {
  auto work = Workload::create(kernel, computation, sizes);
  if (!work)
    return work.error();
  Timing timing;
  timing.bytes = (*work)->getBytes();
  rt::Result<std::shared_ptr<const Kernel>> special = kernel.specialize((*work)->getViews());
  if (!special)
    return special.error();
  const Kernel &timed = **special;
  timing.schedule = llvm::StringRef(timed.getSchedule()).split(';').first.str();
  rt::Status status =
      timed.isHost() ? timeHost(timed, **work, budgetMs, timing) : timeDevice(timed, **work, budgetMs, timing);
  if (!status)
    return status.error();
  return timing;
}

rt::Result<Turns> Turns::create(const Workload &work) {
  Turns turns(work);
  const rt::Driver *driver = work.getDriver();
  if (!driver)
    return turns;
  auto stream = driver->createStream();
  auto begin = driver->createEvent(), end = driver->createEvent();
  if (!stream || !begin || !end)
    return !stream ? stream.error() : !begin ? begin.error() : end.error();
  turns.stream = *stream, turns.begin = *begin, turns.end = *end;
  return turns;
}

rt::Result<double> Turns::msOf(const Kernel &kernel, int64_t launches) const {
  const rt::Driver *driver = work->getDriver();
  rt::Status status = work->launch(kernel, stream); // the host is ahead from here on
  if (status && driver)
    status = driver->record(begin, stream);
  Clock clock;
  for (int64_t i = 0; status && i < launches; ++i)
    status = work->launch(kernel, stream);
  if (status && driver)
    status = driver->record(end, stream);
  if (status && driver)
    status = driver->synchronizeEvent(end);
  if (!status)
    return status.error();
  if (!driver)
    return clock.ms() / launches;
  rt::Result<float> elapsed = driver->elapsedMs(begin, end);
  if (!elapsed)
    return elapsed.error();
  return *elapsed / launches;
}

rt::Result<double> Turns::msOfCall(const Kernel &kernel) const {
  Clock clock;
  rt::Status status = work->launch(kernel, stream);
  if (status && work->getDriver())
    status = work->getDriver()->synchronize(stream);
  if (!status)
    return status.error();
  return clock.ms();
}

rt::Result<double> Turns::msInGraph(const Kernel &kernel, int64_t launches) const {
  const rt::Driver *driver = work->getDriver();
  if (!driver)
    return msOf(kernel, launches);
  if (rt::Status begun = driver->beginCapture(stream); !begun)
    return begun.error();
  rt::Status status;
  for (int64_t i = 0; status && i < launches; ++i)
    status = work->launch(kernel, stream);
  rt::Result<rt::GraphExec> graph = driver->endCapture(stream);
  if (!status || !graph)
    return !status ? status.error() : graph.error();
  std::vector<double> samples;
  for (int i = 0; status && i < 3; ++i) { // the first brings the graph to the device
    status = driver->record(begin, stream);
    if (status)
      status = driver->launchGraph(*graph, stream);
    if (status)
      status = driver->record(end, stream);
    if (status)
      status = driver->synchronizeEvent(end);
    rt::Result<float> elapsed = status ? driver->elapsedMs(begin, end) : rt::Result<float>(status.error());
    if (elapsed)
      samples.push_back(*elapsed / launches);
    else
      status = elapsed.status();
  }
  (void)driver->destroyGraph(*graph);
  if (!status)
    return status.error();
  return median(samples);
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
