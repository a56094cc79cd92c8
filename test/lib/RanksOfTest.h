// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Runs a plan by kernels, on ranks that are threads of this process, and compares its results with the reference.
//
#ifndef ATTN_TEST_LIB_RANKSOFTEST_H
#define ATTN_TEST_LIB_RANKSOFTEST_H

#include "attn-rt/Driver.h"
#include "attn/ContextParallel/RunPlan.h"
#include "attn/Reference/Difference.h"
#include "attn/Reference/Inputs.h"
#include "attn/Reference/Interpreter.h"
#include "attn/Reference/Sequences.h"
#include "llvm/Support/FormatVariadic.h"
#include <thread>

namespace attn::test {

/// A tensor on the device of a target, or on the host.
class Placed {
public:
  Placed(reference::Tensor tensor, const rt::Driver *driver) : host(std::move(tensor)), driver(driver) {
    if (!driver)
      return;
    device = *driver->alloc(std::max<size_t>(host.bytes().size(), 1));
    (void)driver->copyToDevice(device, host.bytes().data(), host.bytes().size());
  }
  Placed(const Placed &) = delete;
  ~Placed() {
    if (device)
      (void)driver->free(device);
  }
  TensorView view() {
    using rt::Dtype;
    const Dtype types[] = {Dtype::BF16, Dtype::F16, Dtype::F32, Dtype::F32, Dtype::I32}; // as reference::Dtype
    return {driver ? reinterpret_cast<void *>(device) : host.data<char>(), types[int(host.dtype())], host.shape(),
            host.strides()};
  }
  reference::Tensor &fetch() {
    if (driver)
      (void)driver->copyToHost(host.bytes().data(), device, host.bytes().size());
    return host;
  }

private:
  reference::Tensor host;
  const rt::Driver *driver;
  rt::DevicePtr device = 0;
};

class KernelRanks {
public:
  /// Whether there are kernels for the plan; an error if their results are wrong. `splitsAll`: as
  /// `PlanKernels::splitAll`.
  llvm::Expected<bool> run(plan::DefOp plan, ProblemOp problem, BackwardOp backward,
                           const plan::CallSequences &sequences, const reference::Tensors &inputs,
                           const std::string &target, bool splitsAll = false);

private:
  std::map<std::string, std::shared_ptr<PlanKernels>> kernels; ///< by texts and target
};

/// The index of a row in a tensor of all sequences; of LSE with `head` before rows.
inline llvm::SmallVector<int64_t, 4> indexOf(LayoutAttr layout, bool isStatistic, int64_t sequence, int64_t row,
                                             int64_t position, int64_t head) {
  if (isStatistic)
    return layout.isPacked() ? llvm::SmallVector<int64_t, 4>{head, row}
                             : llvm::SmallVector<int64_t, 4>{sequence, head, position};
  switch (layout.getKind()) {
  case LayoutKind::bshd:
    return {sequence, position, head};
  case LayoutKind::sbhd:
    return {position, sequence, head};
  case LayoutKind::bhsd:
    return {sequence, head, position};
  case LayoutKind::thd:
    return {row, head};
  }
  llvm_unreachable("covered");
}

inline llvm::Expected<bool> KernelRanks::run(plan::DefOp plan, ProblemOp problem, BackwardOp backward,
                                             const plan::CallSequences &sequences, const reference::Tensors &inputs,
                                             const std::string &targetText, bool splitsAll) {
  using namespace reference;
  auto fail = [](const rt::Error &error) { return llvm::createStringError(error.str()); };
  rt::Result<Target> target = Target::parse(targetText);
  if (!target)
    return fail(target.error());
  std::string key;
  llvm::raw_string_ostream(key) << problem << bool(backward) << splitsAll << target->str();
  std::shared_ptr<PlanKernels> &own = kernels[key];
  if (!own) {
    auto made = PlanKernels::create(problem, backward, *target);
    if (!made) // no pieces of such a problem
      return false;
    own = *made;
    if (splitsAll)
      own->splitAll();
  }
  const rt::Driver *driver = nullptr;
  if (!target->isHost()) {
    auto opened = rt::Driver::get();
    if (!opened)
      return fail(opened.error());
    driver = *opened;
    if (auto context = driver->ensureContext(); !context)
      return fail(context.error());
  }
  plan::Tables tables;
  if (std::optional<std::string> wrong = tables.compute(plan, problem, sequences))
    return llvm::createStringError(*wrong);
  Computation computation = backward ? Computation(backward) : Computation(problem);
  llvm::Expected<Sizes> sizes = checkTensors(computation, inputs);
  if (!sizes)
    return sizes.takeError();
  Sequences of(problem, inputs, *sizes);
  std::vector<ProblemTensor> specs = tensorsOf(computation);

  struct Own {
    std::map<std::string, std::unique_ptr<Placed>> tensors;
    std::map<std::string, TensorView> views;
    std::unique_ptr<RankSteps> steps;
    std::unique_ptr<Placed> workspace;
    rt::Status status;
  };
  const int64_t ranks = tables.ranks();
  std::vector<Own> all(ranks);
  mlir::Value locals[2];
  plan.walk([&](plan::LocalOp local) { locals[plan::isRows(local.getRows().getType(), plan::Kind::kv)] = local; });
  auto layoutOf = [&](llvm::StringRef name) {
    return name == "k" || name == "dk"   ? problem.getKLayout()
           : name == "v" || name == "dv" ? problem.getVLayout()
           : name == "o" || name == "do" ? problem.getOLayout()
                                         : problem.getQLayout();
  };
  auto isOfKeys = [](const ProblemTensor &spec) {
    return spec.name == "k" || spec.name == "v" || spec.name == "dk" || spec.name == "dv";
  };
  auto isOfArray = [&](const ProblemTensor &spec) {
    return backward && spec.role == ProblemTensor::Result &&
           llvm::any_of(backward.getDifferentiatedArrays(),
                        [&](const ScoreOperand &array) { return gradientOf(array) == spec.name; });
  };
  /// Calls `visit(row in the shard, index in the whole tensor)` for each token and head.
  auto eachRow = [&](const ProblemTensor &spec, int64_t rank, auto visit) {
    bool ofKeys = isOfKeys(spec);
    bool isStatistic = !spec.hasRowStride();
    int64_t heads = ofKeys ? problem.getKvHeads() : problem.getHeads();
    for (const plan::Run &run : tables.held(locals[ofKeys], rank).rows->runs)
      for (int64_t i = 0; i < run.length; ++i)
        for (int64_t head = 0; head < heads; ++head) {
          int64_t position = run.position + i;
          int64_t row = ofKeys ? of.keyRow(run.sequence, position) : of.queryRow(run.sequence, position);
          visit(run.row + i, head, indexOf(layoutOf(spec.name), isStatistic, run.sequence, row, position, head));
        }
  };
  for (auto [rank, own] : llvm::enumerate(all)) {
    for (const ProblemTensor &spec : specs) {
      Tensor local;
      if (spec.role == ProblemTensor::Array) {
        if (llvm::StringRef(spec.name).starts_with("cu_seqlens_"))
          continue;
        const Tensor &given = inputs.find(spec.name)->second;
        Shape shape(given.shape());
        const bool hasPositions = shape.size() == 2 && spec.element == ProblemTensor::Int32;
        if (hasPositions && spec.axes[0] == ProblemTensor::Batch) // of all sequences
          shape = {shape[0] * shape[1]};
        local = Tensor(given.dtype(), shape);
        std::memcpy(local.data<char>(), given.data<char>(), local.bytes().size());
      } else if (isOfArray(spec)) {
        local = Tensor(reference::Dtype::F32, spec.shape(computation, *sizes));
        llvm::fill(local.bytes(), char(0xff));
      } else {
        bool ofKeys = isOfKeys(spec);
        int64_t rows = tables.held(locals[ofKeys], rank).rows->rows,
                heads = ofKeys ? problem.getKvHeads() : problem.getHeads();
        bool isStatistic = !spec.hasRowStride();
        reference::Dtype dtype = isStatistic ? reference::Dtype::F32 : reference::dtypeOf(problem);
        int64_t dim = spec.axes.back() == ProblemTensor::DimQk ? problem.getDimQk() : problem.getDimV();
        local = isStatistic ? Tensor(dtype, {heads, rows}) : Tensor(dtype, {rows, heads, dim});
        llvm::fill(local.bytes(), char(0xff)); // NaN in padding, and in results
        if (spec.role == ProblemTensor::Operand) {
          const Tensor &whole = inputs.find(spec.name)->second;
          eachRow(spec, rank, [&](int64_t row, int64_t head, llvm::ArrayRef<int64_t> index) {
            if (isStatistic)
              return local.store(local.offset({head, row}), whole(index));
            for (int64_t d = 0; d < dim; ++d)
              local.store(local.offset({row, head}) + d, whole.load(whole.offset(index) + d * whole.strides().back()));
          });
        }
      }
      auto &placed = own.tensors[spec.name] = std::make_unique<Placed>(std::move(local), driver);
      own.views[spec.name] = placed->view();
    }
    auto steps = RankSteps::create(plan, problem, backward, sequences, tables, rank, this->kernels[key]);
    if (!steps)
      return fail(steps.error());
    own.steps = std::move(*steps);
    auto bytes = own.steps->workspaceBytes(own.views);
    if (!bytes)
      return fail(bytes.error());
    Tensor workspace(reference::Dtype::F32, {int64_t(*bytes) / 4 + 64});
    llvm::fill(workspace.bytes(), char(0xff));
    own.workspace = std::make_unique<Placed>(std::move(workspace), driver);
  }
  if (driver) // a copy from pageable memory may be on its way when it returns, and streams do not wait for it
    if (rt::Status done = driver->synchronizeContext(); !done)
      return fail(done.error());
  LocalRanks local(ranks, target->isHost());
  std::vector<std::thread> threads;
  for (int64_t rank = 0; rank < ranks; ++rank)
    threads.emplace_back([&, rank] {
      rt::Stream stream = nullptr;
      if (driver) {
        (void)driver->ensureContext();
        rt::Result<rt::Stream> made = driver->createStream();
        if (!made) {
          all[rank].status = made.error();
          return local.abandon();
        }
        stream = *made;
      }
      auto *memory = static_cast<char *>(all[rank].workspace->view().data);
      memory += (256 - reinterpret_cast<uintptr_t>(memory) % 256) % 256;
      all[rank].status = all[rank].steps->run(all[rank].views, memory, stream, local.of(rank));
      if (!all[rank].status)
        local.abandon();
      if (driver)
        (void)driver->destroyStream(stream);
    });
  for (std::thread &thread : threads)
    thread.join();
  for (auto [rank, own] : llvm::enumerate(all))
    if (!own.status)
      return llvm::createStringError("rank " + std::to_string(rank) + ": " + own.status.error().str());

  // Results of all ranks as those of one.
  Tensors results;
  for (const ProblemTensor &spec : specs) {
    if (spec.role != ProblemTensor::Result)
      continue;
    Tensor &whole = results[spec.name] = Tensor(reference::Dtype::F32, spec.shape(computation, *sizes));
    if (isOfArray(spec)) { // the ranks' sum
      for (Own &own : all) {
        Tensor &part = own.tensors[spec.name]->fetch();
        whole.forEachIndex(
            [&](llvm::ArrayRef<int64_t> index) { whole.store(whole.offset(index), whole(index) + part(index)); });
      }
      continue;
    }
    bool isStatistic = !spec.hasRowStride();
    if (isStatistic) // padding
      whole.fill(-std::numeric_limits<double>::infinity());
    for (auto [rank, own] : llvm::enumerate(all)) {
      Tensor &part = own.tensors[spec.name]->fetch();
      std::vector<bool> isToken(part.shape()[isStatistic ? 1 : 0], false);
      eachRow(spec, rank, [&](int64_t row, int64_t, llvm::ArrayRef<int64_t>) { isToken[row] = true; });
      std::string wrong;
      part.forEachElement([&](llvm::ArrayRef<int64_t> index, int64_t at) {
        if (!isStatistic && !isToken[index[0]] && part.load(at) != 0 && wrong.empty())
          wrong = llvm::formatv("expected zeros in padding of {0} on rank {1}, got: {2} in row {3}", spec.name, rank,
                                part.load(at), index[0]);
      });
      if (!wrong.empty())
        return llvm::createStringError(wrong);
      eachRow(spec, rank, [&](int64_t row, int64_t head, llvm::ArrayRef<int64_t> index) {
        if (isStatistic)
          return whole.store(whole.offset(index), part.load(part.offset({head, row})));
        for (int64_t d = 0; d < part.shape().back(); ++d)
          whole.store(whole.offset(index) + d * whole.strides().back(), part.load(part.offset({row, head}) + d));
      });
    }
  }
  auto judge = [&](llvm::StringRef name, const Difference &found, double tolerance) -> llvm::Error {
    if (found.maxAbs <= tolerance)
      return llvm::Error::success();
    return llvm::createStringError(llvm::formatv("expected {0} within {1}, got: {2} off at {3}", name, tolerance,
                                                 found.maxAbs, shapeText(found.worst)));
  };
  if (!backward) {
    llvm::Expected<Outputs> expected = interpret(problem, inputs);
    if (!expected)
      return expected.takeError();
    Difference o = differenceOfO(problem, *expected, results["o"]);
    if (llvm::Error wrong = judge("o", o, toleranceOfO(problem, o)))
      return wrong;
    Difference lse = differenceOfLse(*expected, results["lse"]);
    if (llvm::Error wrong = judge("lse", lse, toleranceOfLse(lse)))
      return wrong;
    return true;
  }
  auto every = [](const Row &) { return true; };
  llvm::Expected<Gradients> expected = interpret(backward, inputs, every, every);
  if (!expected)
    return expected.takeError();
  std::vector<std::string> names = {"dq", "dk", "dv"};
  for (const ScoreOperand &array : backward.getDifferentiatedArrays())
    names.push_back(gradientOf(array));
  for (llvm::StringRef name : names) {
    Difference found = differenceOfGradient(*expected, name, results[name]);
    if (llvm::Error wrong = judge(name, found, toleranceOfGradient(backward, inputs, name, found)))
      return wrong;
  }
  return true;
}

} // namespace attn::test

#endif // ATTN_TEST_LIB_RANKSOFTEST_H
