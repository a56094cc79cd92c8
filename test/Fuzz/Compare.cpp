// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Compare.h"
#include "attn/API/Compile.h"
#include "attn/Reference/Inputs.h"
#include "attn/Reference/Interpreter.h"
#include <cmath>
#include <fmt/format.h>

using namespace attn;
using namespace attn::fuzz;
using namespace attn::reference;

/// Offset of a row's first element; `batch` is 0 in packed tensors.
static int64_t offsetOf(const Tensor &tensor, const ProblemTensor &spec, int64_t batch, int64_t head, int64_t row) {
  int64_t at = row * tensor.strides()[spec.rowAxis] + head * tensor.strides()[spec.headAxis];
  return at + (spec.batchAxis < 0 ? 0 : batch * tensor.strides()[spec.batchAxis]);
}

/// The inputs with other values in place of v.
static Tensors withV(const Tensors &inputs, double (*change)(double)) {
  Tensors result = inputs;
  Tensor &v = result["v"];
  v.forEachOffset([&](int64_t at) { v.store(at, change(v.load(at))); });
  return result;
}

/// o is then sum(p |v|), what errors of p scale with, or the weight of what is not finite in v.
static double magnitude(double v) { return std::fabs(v); }
static double isSpecial(double v) { return !std::isfinite(v); }

static double largestNorm(const Tensor &tensor, const ProblemTensor &spec) {
  std::vector<double> values(tensor.shape().back());
  double largest = 0;
  for (int64_t b = 0; b < (spec.batchAxis < 0 ? 1 : tensor.shape()[spec.batchAxis]); ++b)
    for (int64_t h = 0; h < tensor.shape()[spec.headAxis]; ++h)
      for (int64_t r = 0; r < tensor.shape()[spec.rowAxis]; ++r) {
        tensor.load(offsetOf(tensor, spec, b, h, r), 1, values);
        double squares = 0;
        for (double value : values)
          squares += value * value;
        if (std::isfinite(squares))
          largest = std::max(largest, squares);
      }
  return std::sqrt(largest);
}

static bool isPoison(const Tensor &tensor, int64_t at) {
  const char *bytes = tensor.bytes().data() + at * sizeOf(tensor.dtype());
  return std::all_of(bytes, bytes + sizeOf(tensor.dtype()), [](char c) { return c == char(0xff); });
}

/// Every element is written and no other byte.
static std::string checkWrites(const Tensor &tensor, llvm::StringRef name) {
  std::vector<bool> owned(tensor.bytes().size() / sizeOf(tensor.dtype()), false);
  std::string failure;
  tensor.forEachElement([&](llvm::ArrayRef<int64_t> index, int64_t at) {
    owned[at] = true;
    if (failure.empty() && isPoison(tensor, at))
      failure = fmt::format("{}{} is not written", name.str(), shapeText(index));
  });
  for (size_t at = 0; at < owned.size() && failure.empty(); ++at)
    if (!owned[at] && !isPoison(tensor, at))
      failure = fmt::format("{}: element {} of the buffer belongs to no index and is written", name.str(), at);
  return failure;
}

Undropped::Undropped(Computation computation)
    : module(computation.getOperation()->getParentOfType<mlir::ModuleOp>().clone()), name(computation.getName()) {
  if (std::optional<Dropout> dropout = computation.problem.dropoutInForce())
    seed = dropout->seed, factor = dropout->factor();
  ProblemOp plain = this->computation().problem;
  plain.removeDropoutAttr();
  plain.removeSeedAttr();
}

Computation Undropped::computation() const { return *findComputation(*module, name); }

Tensors Undropped::inputs(const Tensors &all) const {
  Tensors own = all;
  own.erase(seed);
  return own;
}

namespace {
class Comparison {
public:
  Comparison(Computation computation, const Problem &made)
      : backward(computation.backward), problem(computation.problem), made(made), precision(Precision::of(problem)) {
    for (ProblemTensor &spec : tensorsOf(computation))
      specs.emplace(spec.name, spec);
    // A float32 sum of products, relative to the product of the norms: the error
    // of a dot product grows with the square root of its length or slower.
    largestScore = std::fabs(problem.scaleOrDefault()) * largestNorm(made.inputs.find("q")->second, spec("q")) *
                   largestNorm(made.inputs.find("k")->second, spec("k"));
    scoreError = 0x1p-21 * largestScore;
    double size = largestScore;
    for (ScoreModifierInterface modifier : problem.getModifiers())
      if (auto softcap = llvm::dyn_cast<SoftcapAttr>(modifier)) {
        double cap = softcap.getCap().convertToDouble();
        size = std::min(size, cap);
        scoreError += (problem.getDtype().isF32() ? 0 : 0x1p-17) * size +
                      0x1p-22 * cap; // the polynomial's, or that of tanh by exponentials
      } else {
        size += made.sizes.rowsQ + made.sizes.rowsKv; // no slope is above 1
        scoreError += 0x1p-21 * size;
      }
    if (std::optional<Dropout> dropout = problem.dropoutInForce())
      keptFactor = dropout->factor();
    const Tensor &v = made.inputs.find("v")->second;
    v.forEachOffset([&](int64_t at) {
      double value = std::fabs(v.load(at));
      largestV = std::isfinite(value) ? std::max(largestV, value) : largestV;
    });
  }

  Verdict run() {
    for (const auto &[name, result] : made.results)
      if (verdict.failure.empty())
        verdict.failure = checkWrites(result, name);
    if (largestScore > 0x1p30) // neighbours in float32 are e^128 apart
      return verdict;
    if (backward) {
      Verdict gradients = verdict.failure.empty() ? compareBackward(backward, made, scoreError) : verdict;
      return gradients;
    }
    int64_t work = made.sizes.batch * std::max<int64_t>(made.sizes.rowsQ, 1) * std::max<int64_t>(made.sizes.rowsKv, 1) *
                   int64_t(problem.getHeads()) * int64_t(problem.getDimQk() + problem.getDimV() + 30);
    wanted = oneRowIn(work / 20'000'000 + 1);
    auto exact = interpret(problem, made.exact, wanted), rounded = interpret(problem, made.inputs, wanted),
         absolute = interpret(problem, withV(made.inputs, magnitude), wanted);
    for (auto *outputs : {&exact, &rounded, &absolute})
      if (!*outputs) {
        fail(llvm::toString(outputs->takeError()));
        return verdict;
      }
    compareO(exact->o, absolute->o, *rounded);
    if (problem.hasLse())
      compareLse(*rounded);
    return verdict;
  }

private:
  const ProblemTensor &spec(const std::string &name) const { return specs.find(name)->second; }
  void fail(std::string what) {
    if (verdict.failure.empty())
      verdict.failure = std::move(what);
  }

  /// May a NaN or infinity of an input be absent from this element of o? Where
  /// the scale is 0 (q and k do not count), and where its weight is 0 in P's type.
  bool mayVanish(llvm::ArrayRef<int64_t> index) {
    if (problem.scaleOrDefault() == 0)
      return true;
    if (!specialWeights) {
      auto weights = interpret(problem, withV(made.inputs, isSpecial), wanted);
      if (!weights)
        return fail(llvm::toString(weights.takeError())), false;
      specialWeights = std::move(weights->o);
    }
    return (*specialWeights)(index) < (problem.getDtype().isF16() ? 0x1p-24 : 0x1p-120);
  }

  /// A dropped pair's v may be looked at: 0 times a NaN of it is one.
  bool mayMeetDropped(llvm::ArrayRef<int64_t> index) {
    if (!problem.dropoutInForce())
      return false;
    if (!undropped) {
      Undropped plain(problem);
      auto outputs = interpret(plain.computation().problem, plain.inputs(made.inputs), wanted);
      if (!outputs)
        return fail(llvm::toString(outputs.takeError())), false;
      undropped = std::move(outputs->o);
    }
    return !std::isfinite((*undropped)(index));
  }

  /// Scores of -Inf that come from inputs, not from the mask, leave a row without
  /// weights; 0 times a NaN of v, which the row may see, is then as good as 0.
  bool mayMeetSpecials(double lse) const {
    auto has = [&](const char *name) {
      const Tensor &tensor = made.inputs.find(name)->second;
      bool found = false;
      tensor.forEachOffset([&](int64_t at) { found |= !std::isfinite(tensor.load(at)); });
      return found;
    };
    return lse == -HUGE_VAL && has("v") && (has("q") || has("k"));
  }

  void compareO(const Tensor &a, const Tensor &absolute, const Outputs &rounded) {
    const Tensor &b = rounded.o, &lse = rounded.lse, &known = rounded.known;
    const Tensor &ours = made.results.find("o")->second;
    const ProblemTensor &o = spec("o");
    // lse has the same rows, with axes of its own.
    ProblemTensor statistics(
        "lse", ProblemTensor::Result, ProblemTensor::Float32,
        llvm::ArrayRef<ProblemTensor::Axis>{ProblemTensor::Batch, ProblemTensor::Heads, ProblemTensor::RowsQ}
            .drop_front(o.batchAxis < 0));
    double squaresOurs = 0, squaresB = 0, squaresO = 0, squaresWeighted = 0, fourthPowers = 0;
    int64_t terms = 0;
    ours.forEachIndex([&](llvm::ArrayRef<int64_t> index) {
      int64_t batch = o.batchAxis < 0 ? 0 : index[o.batchAxis];
      int64_t row = offsetOf(known, statistics, batch, index[o.headAxis], index[o.rowAxis]);
      if (!known.load(row))
        return;
      ++verdict.compared;
      double got = ours(index), want = b(index), exact = a(index);
      if (!std::isfinite(want) || std::fabs(want) > precision.largest * 0.99) {
        if (std::isfinite(got) && !std::isfinite(want) && !mayVanish(index))
          fail(fmt::format("o{}: expected {}, got: {}", shapeText(index), want, got));
        return;
      }
      if (!std::isfinite(got) && ((want == 0 && mayMeetSpecials(lse.load(row))) || mayMeetDropped(index)))
        return;
      double weighted = absolute(index);
      // f16: P itself has an absolute error where it is subnormal, a key at most.
      // Exponentials that are subnormal are 0, as beside a sink far above all scores.
      double flushed = (problem.getDtype().isF16() ? 0x1p-24 : 0x1p-125) * made.sizes.rowsKv * largestV * keptFactor;
      double unit = precision.unit, bound = 2 * unit * std::fabs(want) +
                                            (2 * unit + std::expm1(std::min(2 * scoreError, 600.0))) * weighted +
                                            flushed + precision.tiny;
      double ratio = std::fabs(got - want) / bound;
      if (!(ratio <= 1))
        fail(fmt::format("o{}: expected {:.8g}, got: {:.8g}, bound {:.3g}", shapeText(index), want, got, bound));
      verdict.elementRatio = std::max(verdict.elementRatio, ratio);
      if (!std::isfinite(exact))
        return;
      Tensor one(ours.dtype(), {1});
      one.store(0, want);
      squaresOurs += (got - exact) * (got - exact);
      squaresB += (one.load(0) - exact) * (one.load(0) - exact);
      squaresO += want * want;
      squaresWeighted += weighted * weighted;
      fourthPowers += weighted * weighted * weighted * weighted;
      ++terms;
    });
    if (problem.getDtype().isF32())
      return;
    // Norms say something where no few rows outweigh all others.
    double effective = squaresWeighted * squaresWeighted / fourthPowers;
    if (!(effective >= 32 * double(problem.getDimV())))
      return;
    // A v of ones or of a large offset, or a row of one key, is rounded by nothing; a weight that
    // counts for most of o is, and moves it by a unit in the mean. Elsewhere B is more than that.
    squaresB = std::max(squaresB, precision.unit * precision.unit * squaresO);
    // Where values are subnormal, a bit of them is all that counts.
    verdict.normRatio = std::sqrt(squaresOurs / (squaresB + terms * precision.tiny * precision.tiny));
    if (!(verdict.normRatio <= 2))
      fail(fmt::format("o: error {:.3g} times that of rounding inputs and output", verdict.normRatio));
  }

  void compareLse(const Outputs &expected) {
    const Tensor &ours = made.results.find("lse")->second;
    ours.forEachIndex([&](llvm::ArrayRef<int64_t> index) {
      if (!expected.known(index))
        return;
      double got = ours(index), want = expected.lse(index);
      if (want == got)
        return;
      if (!std::isfinite(want)) {
        // Which of NaN and +Inf it is depends on the order of sums.
        bool alike = want == -HUGE_VAL ? got == want : !std::isfinite(got) && got != -HUGE_VAL;
        if (!alike && problem.scaleOrDefault() != 0)
          fail(fmt::format("lse{}: expected {}, got: {}", shapeText(index), want, got));
        return;
      }
      double bound = 1e-4 * std::max(1.0, std::fabs(want)) + 2 * scoreError;
      double ratio = std::fabs(got - want) / bound;
      if (!(ratio <= 1))
        fail(fmt::format("lse{}: expected {:.8g}, got: {:.8g}, bound {:.3g}", shapeText(index), want, got, bound));
      verdict.lseRatio = std::max(verdict.lseRatio, ratio);
    });
  }

  BackwardOp backward; ///< null: forward
  ProblemOp problem;
  const Problem &made;
  std::map<std::string, ProblemTensor> specs;
  std::function<bool(const Row &)> wanted;
  std::optional<Tensor> specialWeights;
  std::optional<Tensor> undropped; ///< o without dropout
  const Precision precision;
  double largestScore, scoreError, largestV = 0;
  double keptFactor = 1; ///< of probabilities
  Verdict verdict;
};
} // namespace

Verdict attn::fuzz::compare(Computation computation, const Problem &made) {
  return Comparison(computation, made).run();
}
