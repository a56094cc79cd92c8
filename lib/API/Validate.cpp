// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// $ATTN_VALIDATE: some rows of a launch's results, against the definition. What the mask
// makes visible is asked of its expression as it was written, pair by pair; nothing that
// the kernel was made with has a part in it.
//
#include "attn/API/Jit.h"
#include "attn/Reference/Difference.h"
#include "attn/Reference/Segments.h"
#include <atomic>
#include <cstdlib>
#include <fmt/format.h>

using namespace attn;

/// How many rows; 0: none; nothing: it is no number.
static std::optional<int64_t> rowsToValidate() {
  static const std::optional<int64_t> rows = [] {
    const char *value = std::getenv("ATTN_VALIDATE");
    int64_t number = 0;
    bool wrong = value && *value && (llvm::StringRef(value).getAsInteger(10, number) || number < 0);
    return wrong ? std::nullopt : std::optional(number);
  }();
  return rows;
}

static reference::Dtype typeOf(Dtype dtype) {
  const reference::Dtype types[] = {reference::Dtype::BF16, reference::Dtype::F16, reference::Dtype::F32,
                                    reference::Dtype::I32};
  return types[int(dtype)];
}

using Wanted = std::function<bool(const reference::Row &)>;

static rt::Status judge(llvm::StringRef result, const reference::Difference &found, double tolerance) {
  if (found.maxAbs <= tolerance)
    return {};
  return rt::Error{fmt::format("expected `{}` as the problem defines it, within {:.3g} ($ATTN_VALIDATE), got: {:.3g} "
                               "off at {}",
                               result.str(), tolerance, found.maxAbs, reference::shapeText(found.worst))};
}

/// Integers are right or wrong: the first `count` of a result.
static rt::Status judgeIntegers(llvm::StringRef result, const reference::Tensor &expected,
                                const reference::Tensor &actual, int64_t count) {
  rt::Status status;
  int64_t number = 0;
  expected.forEachIndex([&](llvm::ArrayRef<int64_t> index) {
    if (number++ < count && status && expected(index) != actual(index))
      status = rt::Error{fmt::format("expected `{}` as the problem defines it, {} at {} ($ATTN_VALIDATE), got: {}",
                                     result.str(), int64_t(expected(index)), reference::shapeText(index),
                                     int64_t(actual(index)))};
  });
  return status;
}

static rt::Status judgeForward(ProblemOp problem, const reference::Tensors &inputs, const reference::Tensors &results,
                               const Wanted &wanted) {
  auto expected = reference::interpret(problem, inputs, wanted);
  if (!expected)
    return rt::Error{llvm::toString(expected.takeError())};
  auto status = results.find("status"); // of ids
  if (status != results.end())
    if (rt::Status good = judgeIntegers("status", expected->status, status->second, expected->status.numElements());
        !good)
      return good;
  reference::Difference o = reference::differenceOfO(problem, *expected, results.find("o")->second);
  if (rt::Status good = judge("o", o, reference::toleranceOfO(problem, o)); !good || !problem.hasLse())
    return good;
  reference::Difference lse = reference::differenceOfLse(*expected, results.find("lse")->second);
  return judge("lse", lse, reference::toleranceOfLse(lse));
}

static rt::Status judgeBackward(BackwardOp backward, const reference::Tensors &inputs,
                                const reference::Tensors &results, const Wanted &wanted) {
  auto expected = reference::interpret(backward, inputs, wanted, wanted);
  if (!expected)
    return rt::Error{llvm::toString(expected.takeError())};
  for (const ProblemTensor &spec : tensorsOf(backward)) {
    if (spec.role != ProblemTensor::Result)
      continue;
    llvm::StringRef name = spec.name;
    reference::Difference found = reference::differenceOfGradient(*expected, name, results.find(name)->second);
    if (rt::Status good = judge(name, found, reference::toleranceOfGradient(backward, inputs, name, found)); !good)
      return good;
  }
  return {};
}

/// All of them: which tokens of a row are in a segment follows from all of its tokens.
static rt::Status judgeSegments(SegmentsOp segments, const reference::Tensors &inputs,
                                const reference::Tensors &results) {
  auto expected = reference::interpret(segments, inputs);
  if (!expected)
    return rt::Error{llvm::toString(expected.takeError())};
  for (const ProblemTensor &spec : tensorsOf(segments)) {
    if (spec.role != ProblemTensor::Result)
      continue;
    const reference::Tensor &result = expected->find(spec.name)->second;
    bool isList = spec.name == "tiles_q"; // what is behind its end means nothing
    int64_t count = isList ? int64_t(expected->find("tile_count")->second.load(0)) : result.numElements();
    if (rt::Status good = judgeIntegers(spec.name, result, results.find(spec.name)->second, count); !good)
      return good;
  }
  return {};
}

rt::Status Kernel::validate(Tensors views, rt::Stream stream) const {
  if (!rowsToValidate())
    return rt::Error{fmt::format("expected a number of rows in $ATTN_VALIDATE, got: {}", std::getenv("ATTN_VALIDATE"))};
  const int64_t rows = *rowsToValidate();
  if (rows == 0)
    return {};
  Compilation compilation;
  auto module = compilation.parse(text, "problem");
  if (!module)
    return module.error();
  rt::Result<mlir::Operation *> program = findProgram(**module, name);
  if (!program)
    return program.error();

  reference::Tensors inputs, results;
  for (auto [spec, view] : llvm::zip_equal(getTensors(), views)) {
    llvm::SmallVector<int64_t, 4> strides;
    for (int axis = 0; axis < view.rank(); ++axis)
      strides.push_back(view.strideOf(axis));
    reference::Tensor &tensor = (spec.isResult() ? results : inputs)[spec.name];
    tensor = reference::Tensor(typeOf(view.dtype), view.shape, strides);
    if (rt::Status copied =
            built.load()->loaded->copyToHost(tensor.bytes().data(), tensor.bytes().size(), view, stream);
        !copied)
      return copied;
  }
  // Others with each launch.
  static std::atomic<int64_t> turn = 0;
  int64_t launched = 1; // rows of all heads
  if (int q = indexOf("q"); q >= 0)
    for (int64_t extent : views[q].shape.first(views[q].shape.size() - 1))
      launched *= extent;
  const int64_t shift = turn++, one = std::max<int64_t>(1, launched / rows);
  auto wanted = [=](const reference::Row &row) {
    return (row.row + 3 * row.head + 5 * row.sequence + shift) % one == 0;
  };
  if (mlir::isa<GatherRowsOp, ComputationInterface, attn::ProgramOp>(*program)) // no problems
    return {};
  if (auto problem = mlir::dyn_cast<ProblemOp>(*program);
      problem && (problem.getPartialIn() || problem.getPartialOut()))
    return {}; // what they are part of is judged by the plan's tests
  if (auto segments = mlir::dyn_cast<SegmentsOp>(*program))
    return judgeSegments(segments, inputs, results);
  if (auto backward = mlir::dyn_cast<BackwardOp>(*program))
    return judgeBackward(backward, inputs, results, wanted);
  return judgeForward(mlir::cast<ProblemOp>(*program), inputs, results, wanted);
}
