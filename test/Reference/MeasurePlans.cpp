// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "MeasurePlans.h"
#include "attn-rt/Driver.h"
#include "attn/ContextParallel/RunPlan.h"
#include "attn/Dialect/Plan/Analysis/Costs.h"
#include "llvm/Support/FormatVariadic.h"
#include <chrono>
#include <cstring>
#include <random>

using namespace attn;
using namespace attn::test;

void test::failIf(llvm::Error error, const llvm::Twine &what) {
  if (!error)
    return;
  llvm::errs() << "error: " << what << ": " << llvm::toString(std::move(error)) << "\n";
  exit(1);
}

/// Microseconds that a function takes: the median of 21.
static double timeOf(llvm::function_ref<void()> function) {
  std::vector<double> times;
  for (int i = 0; i < 21; ++i) {
    auto begin = std::chrono::steady_clock::now();
    function();
    times.push_back(std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin).count());
  }
  llvm::sort(times);
  return times[10];
}

void test::failIf(const rt::Error &error, const llvm::Twine &what) {
  failIf(llvm::createStringError(error.str()), what);
}

/// A plan bound to sequences, on each rank in turn, by kernels of the target; others say what it says.
static void bindAll(const MeasuredPlan &of, bool splits,
                    llvm::function_ref<void(const PlanKernels &kernels, Transport &transport,
                                            llvm::function_ref<std::unique_ptr<RankSteps>()> bind)>
                        visit) {
  auto [plan, problem, backward, sequences, targetText] = of;
  rt::Result<Target> target = Target::parse(targetText);
  if (!target)
    return failIf(target.error(), plan.getSymName());
  auto kernels = PlanKernels::create(problem, backward, *target);
  if (!kernels)
    return failIf(kernels.error(), plan.getSymName());
  if (splits)
    (*kernels)->splitPieces();
  const int64_t ranks = plan.getRanks();
  TransportFunctions functions;
  functions.allGather = [&](const void *own, void *all, size_t bytes) {
    for (int64_t other = 0; other < ranks; ++other)
      std::memcpy(static_cast<char *>(all) + other * bytes, own, bytes);
    return rt::Status();
  };
  functions.post = [](int64_t, int64_t, llvm::ArrayRef<MessagePart>, int64_t, llvm::ArrayRef<MessagePart>, rt::Stream) {
    return rt::Status();
  };
  functions.wait = [](int64_t, rt::Stream) { return rt::Status(); };
  functions.finish = [](rt::Stream) { return rt::Status(); };
  for (int64_t rank = 0; rank < ranks; ++rank) {
    MadeTransport transport = makeCallbackTransport(rank, ranks, functions);
    if (!transport)
      return failIf(transport.error(), plan.getSymName());
    visit(**kernels, **transport, [&] {
      auto bound = RankSteps::bind(plan, problem, backward, sequences, **transport, *kernels, /*isChecked=*/true);
      if (!bound)
        failIf(bound.error(), plan.getSymName());
      return std::move(*bound);
    });
  }
}

void test::printTimes(const MeasuredPlan &of) {
  auto [plan, problem, backward, sequences, target] = of;
  plan::Tables tables;
  double ofTables = timeOf([&] {
    if (std::optional<std::string> wrong = tables.compute(plan, problem, sequences, /*isChecked=*/true))
      failIf(llvm::createStringError(*wrong), plan.getSymName());
  });
  size_t runs = 0;
  for (int64_t rank = 0; rank < tables.ranks(); ++rank)
    runs += tables.shardOf(/*ofKeys=*/false, rank).runs.size();
  llvm::outs() << llvm::formatv("{{\"plan\": \"{0}\", \"runs\": {1}, \"tables_us\": {2:f1}", plan.getSymName(), runs,
                                ofTables);
  if (!target.empty()) {
    double most = 0;
    bindAll(of, /*splits=*/true, [&](const PlanKernels &, Transport &, auto bind) {
      bind(); // compiles the kernels
      most = std::max(most, timeOf([&] { bind(); }));
    });
    llvm::outs() << llvm::formatv(", \"bind_us\": {0:f1}", most);
  }
  llvm::outs() << "}\n";
}

void test::printMemory(const MeasuredPlan &of) {
  auto [plan, problem, backward, sequences, target] = of;
  plan::Tables tables;
  if (std::optional<std::string> wrong = tables.compute(plan, problem, sequences))
    failIf(llvm::createStringError(*wrong), plan.getSymName());
  double computed = 0, placed = 0;
  for (const plan::RankCosts &rank : plan::costsOf(plan, problem, tables, sequences, {}).ranks)
    computed = std::max(computed, rank.peakBytes);
  for (bool splits : {false, true}) {
    placed = 0;
    bindAll(of, splits, [&](const PlanKernels &, Transport &, auto bind) {
      placed = std::max(placed, double(bind()->valueBytes()));
    });
    llvm::outs() << llvm::formatv("{{\"plan\": \"{0}\", \"splits\": {1}, \"computed_mb\": {2:f1}, \"placed_mb\": "
                                  "{3:f1}}\n",
                                  plan.getSymName(), splits ? "true" : "false", computed / 1e6, placed / 1e6);
  }
}

void test::printRuns(const MeasuredPlan &of) {
  auto [plan, problem, backward, sequences, target] = of;
  auto check = [&](const auto &result) {
    if (!result)
      failIf(result.error(), plan.getSymName());
  };
  auto opened = rt::Driver::get();
  check(opened);
  const rt::Driver &driver = **opened;
  check(driver.ensureContext());
  plan::Tables tables;
  if (std::optional<std::string> wrong = tables.compute(plan, problem, sequences))
    failIf(llvm::createStringError(*wrong), plan.getSymName());
  llvm::outs() << llvm::formatv("{{\"plan\": \"{0}\", \"kernels_ms\": [", plan.getSymName());
  std::mt19937 random(1);
  bindAll(of, /*splits=*/false, [&](const PlanKernels &kernels, Transport &transport, auto bind) {
    const int64_t rank = transport.getRank();
    std::unique_ptr<RankSteps> steps = bind();
    std::vector<rt::DevicePtr> memory;
    auto allocate = [&](size_t bytes, bool isStatistic) {
      auto made = driver.alloc(bytes);
      check(made);
      memory.push_back(*made);
      std::vector<uint32_t> values(1 << 20);
      for (uint32_t &value : values) // two bf16 of up to 2, or an LSE of 12
        value = isStatistic ? 0x41400000 : (random() & 0x807f807f) | 0x3f003f00;
      for (size_t at = 0; at < bytes; at += values.size() * 4)
        check(driver.copyToDevice(*made + at, values.data(), std::min(bytes - at, values.size() * 4)));
      return *made;
    };
    struct Shape {
      std::vector<int64_t> extents, strides;
    };
    std::vector<std::unique_ptr<Shape>> shapes;
    std::map<std::string, TensorView> tensors;
    for (const rt::Program::Tensor &spec : kernels.getSignature(plan.getBackward()).tensors) {
      llvm::StringRef name = spec.name;
      if (!llvm::is_contained({"q", "k", "v", "o", "lse", "do", "dq", "dk", "dv", "dlse"}, name))
        failIf(llvm::createStringError("expected a problem without arrays, got: `" + spec.name + "`"),
               plan.getSymName());
      const bool isStatistic = name.ends_with("lse"), ofKeys = name.ends_with("k") || name.ends_with("v");
      const int64_t rows = tables.shardOf(ofKeys, rank).rows;
      const int64_t heads = ofKeys ? problem.getKvHeads() : problem.getHeads();
      const int64_t dim = isStatistic                                  ? 1
                          : name.ends_with("q") || name.ends_with("k") ? problem.getDimQk()
                                                                       : problem.getDimV();
      auto shape = std::make_unique<Shape>();
      shape->extents = isStatistic ? std::vector<int64_t>{heads, rows} : std::vector<int64_t>{rows, heads, dim};
      shape->strides = isStatistic ? std::vector<int64_t>{rows, 1} : std::vector<int64_t>{heads * dim, dim, 1};
      const size_t count = rows * heads * dim, width = rt::sizeOf(spec.dtype);
      rt::DevicePtr data = allocate(count * width, isStatistic);
      tensors[spec.name] = {reinterpret_cast<void *>(data), spec.dtype, shape->extents, shape->strides};
      shapes.push_back(std::move(shape));
    }
    auto bytes = steps->workspaceBytes(tensors);
    check(bytes);
    void *workspace = reinterpret_cast<void *>(allocate(*bytes, false)); // what would arrive is in it
    check(driver.synchronizeContext());
    auto stream = driver.createStream();
    auto begin = driver.createEvent(), end = driver.createEvent();
    check(stream), check(begin), check(end);
    std::vector<double> times;
    for (int i = 0; i < 11; ++i) {
      check(driver.record(*begin, *stream));
      check(steps->run(tensors, workspace, *stream, transport));
      check(driver.record(*end, *stream));
      check(driver.synchronizeEvent(*end));
      auto elapsed = driver.elapsedMs(*begin, *end);
      check(elapsed);
      times.push_back(*elapsed);
    }
    llvm::sort(times);
    llvm::outs() << llvm::formatv("{0}{1:f3}", rank ? ", " : "", times[5]);
    check(driver.destroyEvent(*begin)), check(driver.destroyEvent(*end)), check(driver.destroyStream(*stream));
    for (rt::DevicePtr pointer : memory)
      check(driver.free(pointer));
  });
  llvm::outs() << "]}\n";
  llvm::outs().flush();
}
