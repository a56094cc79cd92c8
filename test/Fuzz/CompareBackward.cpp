// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Gradients against the reference, B on the rounded inputs and A on the exact ones.
//
#include "Compare.h"
#include "attn/Reference/Difference.h"
#include <cmath>
#include <fmt/format.h>

using namespace attn;
using namespace attn::fuzz;
using namespace attn::reference;

static bool hasInfinity(const Tensor &tensor) {
  bool found = false;
  tensor.forEachOffset([&](int64_t at) { found |= std::isinf(tensor.load(at)); });
  return found;
}

/// With a `do` of ones, dv is the sum of the probabilities with which rows see a key.
static llvm::Expected<Tensor> columnSums(BackwardOp backward, const Tensors &inputs) {
  Tensors ones = inputs;
  Tensor &cotangent = ones["do"];
  cotangent.forEachOffset([&](int64_t at) { cotangent.store(at, 1); });
  llvm::Expected<Tensors> gradients = interpret(backward, ones, {"dv"});
  if (!gradients)
    return gradients.takeError();
  return std::move((*gradients)["dv"]);
}

Verdict attn::fuzz::compareBackward(BackwardOp backward, const Problem &made, double scoreError) {
  Verdict verdict;
  auto fail = [&](std::string what) {
    if (verdict.failure.empty())
      verdict.failure = std::move(what);
  };
  ProblemOp problem = backward.getProblemOp();
  auto exact = interpret(backward, made.exact), rounded = interpret(backward, made.inputs);
  Undropped plain(backward);
  auto sums = columnSums(plain.computation().backward, plain.inputs(made.inputs));
  for (auto *gradients : {&exact, &rounded})
    if (!*gradients)
      fail(llvm::toString(gradients->takeError()));
  if (!sums)
    fail(llvm::toString(sums.takeError()));
  if (!verdict.failure.empty())
    return verdict;

  auto extentOf = [&](const char *name) { return Extent(made.inputs.find(name)->second); };
  const Precision precision = Precision::of(problem);
  double unit = precision.unit, tiny = 2 * precision.tiny, largestResult = 0.99 * precision.largest;
  double scores = std::expm1(std::min(2 * scoreError, 600.0)), scale = std::fabs(problem.scaleOrDefault());
  // A gradient of a probability is at most this, and its float32 error so much of it.
  double grad = extentOf("do").row * (plain.factor * extentOf("v").row + extentOf("o").row);
  bool overflows =
      plain.factor > 1 && hasInfinity(made.inputs.find("o")->second); // and delta with it, if it is not found on chip
  if (backward.getDlse())
    grad += Extent(made.inputs.find("dlse")->second).element;
  bool steep = problem.getDtype().isF16() &&
               grad > largestResult; // gradients of scores, which are rounded too, may be beyond float16
  double mostSeen = plain.factor * Extent(*sums).element;
  // Of an array nothing is rounded but to float32: a row's weights add up to 1 at most, and a score changes with an
  // entry by another score, a distance, or about 1.
  double change = 2 * std::max({1.0, scoreError * 0x1p21, double(made.sizes.rowsQ + made.sizes.rowsKv)});
  for (const ScoreOperand &array : backward.getDifferentiatedArrays()) {
    bool isBias = array.has(ScoreOperand::Query) || array.has(ScoreOperand::Key) || array.has(ScoreOperand::Table);
    double rows = (array.has(ScoreOperand::Query) ? 1 : double(made.sizes.rowsQ)) *
                  (array.has(ScoreOperand::Head) ? 1 : double(problem.getHeads())) *
                  (array.has(ScoreOperand::Batch) ? 1 : double(std::max<int64_t>(made.sizes.batch, 1)));
    double most = (0x1p-16 + scores) * grad * rows * (isBias ? 2 : change);
    const Tensor &ours = made.results.find(gradientOf(array))->second, &b = rounded->find(gradientOf(array))->second;
    ours.forEachIndex([&](llvm::ArrayRef<int64_t> index) {
      double got = ours(index), want = b(index), bound = most + 0x1p-16 * std::fabs(want) + tiny;
      if (overflows && (!std::isfinite(want) || !std::isfinite(got)))
        return; // a row's delta is infinite, and all that is multiplied by it
      ++verdict.compared;
      if (!(std::fabs(got - want) <= bound))
        fail(fmt::format("{}{}: expected {:.8g}, got: {:.8g}, bound {:.3g}", gradientOf(array), shapeText(index), want,
                         got, bound));
    });
  }
  double rowsOfKey = double(made.sizes.rowsQ * (problem.getHeads() / problem.getKvHeads()));
  // What is rounded to float16 before it is multiplied, and is next to nothing there: half a step for each row that
  // sees a key. Gradients of scores may be products with weights that are rounded: with dropout, and where registers
  // have no second copy of these.
  double weights = plain.factor * tiny / 2 * extentOf("do").element * rowsOfKey;
  double ofScores = (tiny / 2 + 0x1p-126) * scale * grad; // probabilities that are no normal numbers are 0
  weights += 0x1p-126 * plain.factor * extentOf("do").element * rowsOfKey;
  struct Bound {
    const char *name;
    double most, flushed;
  } bounds[] = {
      {"dq", scale * grad * extentOf("k").element,
       weights + ofScores * extentOf("k").element * double(made.sizes.rowsKv)},
      {"dk", scale * grad * extentOf("q").element * mostSeen, weights + ofScores * extentOf("q").element * rowsOfKey},
      {"dv", extentOf("do").element * mostSeen, weights}};
  for (auto [name, most, flushed] : bounds) {
    const Tensor &ours = made.results.find(name)->second, &a = exact->find(name)->second,
                 &b = rounded->find(name)->second;
    double apart = 0, moved = 0, size = 0;
    ours.forEachIndex([&, name = name, most = most, flushed = flushed](llvm::ArrayRef<int64_t> index) {
      double got = ours(index), want = b(index);
      if (std::fabs(want) > largestResult || (overflows && !std::isfinite(want)))
        return; // float16 overflows
      ++verdict.compared;
      double bound = (4 * unit + scores) * most + 2 * unit * std::fabs(want) + tiny + flushed;
      if (!std::isfinite(got) && (std::fabs(want) + bound > largestResult || (steep && llvm::StringRef(name) != "dv")))
        return; // within the bound, and beyond float16, or a difference of two such
      double ratio = std::fabs(got - want) / bound;
      if (!(ratio <= 1))
        fail(fmt::format("{}{}: expected {:.8g}, got: {:.8g}, bound {:.3g}", name, shapeText(index), want, got, bound));
      verdict.elementRatio = std::max(verdict.elementRatio, std::isfinite(ratio) ? ratio : 0);
      apart += (got - want) * (got - want), moved += (want - a(index)) * (want - a(index)), size += want * want;
    });
    double floor = (0x1p-16 + scores) * most * std::sqrt(double(ours.numElements()));
    // Errors of rounding average, but of a few rows, which may be one number each: then all elements are rounded the
    // same way, twice.
    double limit = 3 * std::sqrt(moved) + (rowsOfKey < 16 ? 4 : 3) * unit * std::sqrt(size) + floor +
                   tiny * ours.numElements() + flushed * std::sqrt(double(ours.numElements()));
    if (limit > 0)
      verdict.normRatio = std::max(verdict.normRatio, 2 * std::sqrt(apart) / limit);
    if (!(std::sqrt(apart) <= limit))
      fail(fmt::format("{}: an error of norm {:.3g}, expected at most {:.3g}", name, std::sqrt(apart), limit));
  }
  return verdict;
}
