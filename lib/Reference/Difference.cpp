// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "attn/Reference/Difference.h"
#include "attn/Reference/Inputs.h"
#include <cmath>

using namespace attn;
using namespace attn::reference;

static double distance(double expected, double actual) {
  if (expected == actual || (std::isnan(expected) && std::isnan(actual)))
    return 0;
  double apart = std::fabs(expected - actual);
  return std::isfinite(apart) ? apart : std::numeric_limits<double>::infinity();
}

/// Has the element at an offset the bits that `poisonedResults` sets?
static bool isPoison(const Tensor &tensor, int64_t offset) {
  int64_t size = sizeOf(tensor.dtype());
  return llvm::all_of(tensor.bytes().slice(tensor.firstByte() + offset * size, size),
                      [](char byte) { return byte == char(0xff); });
}

/// Compares the elements at which `isKnown(index)`.
static Difference compare(const Tensor &expected, const Tensor &actual,
                          llvm::function_ref<bool(llvm::ArrayRef<int64_t>)> isKnown) {
  assert(expected.shape() == actual.shape() && "results of one problem");
  Difference result;
  double squares = 0;
  expected.forEachIndex([&](llvm::ArrayRef<int64_t> index) {
    if (!isKnown(index)) {
      result.written += !isPoison(actual, actual.offset(index));
      return;
    }
    double want = expected(index), apart = distance(want, actual(index));
    squares += apart * apart;
    ++result.compared;
    result.notFinite += !std::isfinite(want);
    if (std::isfinite(want))
      result.maxExpected = std::max(result.maxExpected, std::fabs(want));
    if (apart > result.maxAbs) {
      result.maxAbs = apart;
      result.worst.assign(index.begin(), index.end());
    }
  });
  result.rms = result.compared ? std::sqrt(squares / result.compared) : 0;
  return result;
}

Extent::Extent(const Tensor &tensor) {
  int64_t left = tensor.shape().back(); // of the row
  double squares = 0;
  tensor.forEachOffset([&](int64_t at) {
    double value = tensor.load(at);
    squares += value * value;
    if (std::isfinite(value))
      element = std::max(element, std::fabs(value));
    if (--left)
      return;
    if (std::isfinite(squares))
      row = std::max(row, std::sqrt(squares));
    squares = 0, left = tensor.shape().back();
  });
}

Difference attn::reference::difference(const Tensor &expected, const Tensor &actual) {
  return compare(expected, actual, [](llvm::ArrayRef<int64_t>) { return true; });
}

Difference attn::reference::differenceOfO(ProblemOp problem, const Outputs &expected, const Tensor &actual) {
  LayoutKind kind = problem.getOLayout().getKind();
  const Tensor &known = expected.known;
  return compare(expected.o, actual, [&](llvm::ArrayRef<int64_t> i) {
    switch (kind) { // index of o to index of lse
    case LayoutKind::bshd:
      return known({i[0], i[2], i[1]}) != 0;
    case LayoutKind::sbhd:
      return known({i[1], i[2], i[0]}) != 0;
    case LayoutKind::bhsd:
      return known({i[0], i[1], i[2]}) != 0;
    case LayoutKind::thd:
      return known({i[1], i[0]}) != 0;
    }
    llvm_unreachable("covered");
  });
}

Difference attn::reference::differenceOfLse(const Outputs &expected, const Tensor &actual) {
  return compare(expected.lse, actual, [&](llvm::ArrayRef<int64_t> i) { return expected.known(i) != 0; });
}

Difference attn::reference::differenceOfGradient(const Gradients &expected, llvm::StringRef name,
                                                 const Tensor &actual) {
  auto known = expected.known.find(name);
  return compare(expected.values.find(name)->second, actual, [&](llvm::ArrayRef<int64_t> index) {
    return known == expected.known.end() || known->second(index.drop_back()) != 0;
  });
}

/// Two steps of numbers of about this size, and half a step of numbers below the normal ones. Of float32 it is what
/// sums and exponentials leave, which are float32 too.
static double roundingOf(Dtype dtype, double size) {
  return dtype == Dtype::BF16  ? size / 128 + 0x1p-134
         : dtype == Dtype::F16 ? size / 1024 + 0x1p-25
                               : size * 0x1p-16 + 0x1p-126;
}
static double roundingOf(ProblemOp problem, double size) { return roundingOf(dtypeOf(problem), size); }

double attn::reference::toleranceOfO(ProblemOp problem, const Difference &found) {
  return roundingOf(problem, std::max(found.maxExpected, 1e-30));
}

/// What rounding o moves an element of dq or dk, or the gradient of an array by: delta, which is taken from o or found
/// anew, by so much a column at random. Where a gradient is a difference of equals, that is all there is.
static double movedByO(ProblemOp problem, const Tensors &inputs, llvm::StringRef gradient) {
  if (gradient == "dv" || inputs.count("delta")) // the kernel has the delta of the reference
    return 0;
  auto extentOf = [&](const char *name) { return Extent(inputs.find(name)->second); };
  double ofScore = extentOf("do").row * extentOf("o").row / std::sqrt(double(problem.getDimV()));
  if (gradient != "dq" && gradient != "dk")
    return ofScore;
  return std::fabs(problem.scaleOrDefault()) * extentOf(gradient == "dq" ? "k" : "q").element * ofScore;
}

double attn::reference::toleranceOfGradient(BackwardOp backward, const Tensors &inputs, llvm::StringRef name,
                                            const Difference &found) {
  ProblemOp problem = backward.getProblemOp();
  return roundingOf(problem, std::max(3 * found.maxExpected + movedByO(problem, inputs, name), 1e-30));
}

double attn::reference::toleranceOfResult(Dtype dtype, bool ofProgram, const Difference &found) {
  return dtype == Dtype::I32 ? 0 : roundingOf(dtype, std::max((ofProgram ? 3 : 1) * found.maxExpected, 1e-30));
}

double attn::reference::toleranceOfLse(const Difference &found) { return 1e-4 * std::max(1.0, found.maxExpected); }
