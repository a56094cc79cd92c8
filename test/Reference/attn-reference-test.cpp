// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Runs the reference interpreter on .npy files, without kernels and runtime:
//   attn-reference-test FILE.mlir --arg NAME=FILE.npy... --result NAME=FILE.npy... [--one-row-in=N]
// `--self-test` checks tensors instead: rounding, random numbers, strides.
//
#include "attn/Reference/Difference.h"
#include "attn/Reference/Npy.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Parser/Parser.h"
#include "llvm/ADT/APFloat.h"
#include "llvm/Support/CommandLine.h"
#include <cmath>

using namespace attn;
using namespace attn::reference;
namespace cl = llvm::cl;

static cl::opt<std::string> file(cl::Positional, cl::desc("FILE.mlir"));
static cl::list<std::string> args("arg", cl::desc("NAME=FILE.npy of an operand or array"));
static cl::list<std::string>
    results("result", cl::desc("NAME=FILE.npy of o, lse or known, or of a gradient where there is an `attn.backward`"));
static cl::opt<int64_t> every("one-row-in", cl::init(1), cl::desc("evaluate one row in N"));
static cl::opt<bool> selfTest("self-test", cl::desc("check tensors"));

static int failures = 0;

static void check(bool holds, const llvm::Twine &what) {
  if (holds)
    return;
  llvm::errs() << "failed: " << what << "\n";
  ++failures;
}

//===--------------------------------------------------------------------===//
// Self test
//===--------------------------------------------------------------------===//

static uint64_t roundedByLLVM(double value, const llvm::fltSemantics &semantics) {
  llvm::APFloat f(value);
  bool lost;
  f.convert(semantics, llvm::APFloat::rmNearestTiesToEven, &lost);
  return f.bitcastToAPInt().getZExtValue();
}

static void checkRounding(double value) {
  Tensor bf16(Dtype::BF16, {1}), f16(Dtype::F16, {1});
  bf16.store(0, value), f16.store(0, value);
  if (std::isnan(value)) {
    check(std::isnan(bf16.load(0)) && std::isnan(f16.load(0)), "NaN stays NaN");
    return;
  }
  check(*bf16.data<uint16_t>() == roundedByLLVM(value, llvm::APFloat::BFloat()), "bf16 of " + std::to_string(value));
  check(*f16.data<uint16_t>() == roundedByLLVM(value, llvm::APFloat::IEEEhalf()), "f16 of " + std::to_string(value));
}

static void checkRounding() {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    // What 16 bits hold survives; halfway to the neighbour, and a bit beside that, rounds as IEEE says.
    for (double value : {fromBF16(bits), fromF16(bits)})
      for (double nudge : {0.0, 0x1p-9, 0x1p-12, 0x1p-9 + 0x1p-45, 0x1p-12 - 0x1p-45})
        checkRounding(value * (1 + nudge));
    if (!std::isnan(fromF16(bits)))
      check(toF16(fromF16(bits)) == bits, "f16 bits survive");
    if (!std::isnan(fromBF16(bits)))
      check(toBF16(fromBF16(bits)) == bits, "bf16 bits survive");
  }
  for (double value : {65504.0, 65519.999, 65520.0, 0x1p-25, 0x1.0001p-25, 0x1p-24, 0x1.8p-24, 1e300, -1e300, 1e-320,
                       0x1.fffffffp127, -0.0})
    checkRounding(value);
}

static void checkTensors() {
  Tensor a(Dtype::F64, {1000, 1000}), b(Dtype::F32, {1000, 1000}), c(Dtype::F64, {1000, 1000});
  a.fillNormal(7), b.fillNormal(7), c.fillNormal(8);
  double mean = 0, variance = 0, fourth = 0, mixed = 0, lag = 0;
  for (int64_t i = 0; i < 1000000; ++i) {
    double x = a.load(i);
    check(float(x) == b.load(i), "the same numbers in every type");
    mean += x / 1e6, variance += x * x / 1e6, fourth += x * x * x * x / 1e6, mixed += x * c.load(i) / 1e6;
    lag += i ? x * a.load(i - 1) / 1e6 : 0;
  }
  check(std::fabs(mean) < 0.005 && std::fabs(variance - 1) < 0.01 && std::fabs(fourth - 3) < 0.05, "normal moments");
  check(std::fabs(mixed) < 0.005 && std::fabs(lag) < 0.005, "independent numbers");
  llvm::outs() << llvm::format("seed 7: %.6f %.6f %.6f\n", a.load(0), a.load(1), a.load(999999));

  // k of a packed QKV [2 tokens, 3, 2 heads, 4]: strided and dense hold the same.
  Tensor packed(Dtype::BF16, {2, 2, 4}, {24, 8, 1}), dense(Dtype::BF16, {2, 2, 4});
  packed.fillNormal(1), dense.fillNormal(1);
  check(!packed.isContiguous() && packed.bytes().size() == 2 * (24 + 8 + 4), "strided extent");
  check(packed.to(Dtype::BF16).bytes() == dense.bytes(), "strided values");
  check(packed({1, 1, 3}) == dense({1, 1, 3}) && packed.offset({1, 1}) == 32, "strided access");
  check(Tensor(Dtype::F32, {0, 3}).bytes().empty() && Tensor(Dtype::F32, {}).numElements() == 1, "empty and scalar");
}

/// Rows that the reference does not know count only if they have been written.
static void checkDifferences() {
  Outputs expected{{}, Tensor(Dtype::F64, {2, 3}), Tensor(Dtype::I32, {2, 3}), {}};
  for (Dtype dtype : {Dtype::BF16, Dtype::F16, Dtype::F32}) {
    expected.known.fill(1);
    Tensor actual(dtype, {2, 3});
    llvm::fill(actual.bytes(), char(0xff));
    Difference all = differenceOfLse(expected, actual);
    check(std::isinf(all.maxAbs) && all.compared == 6 && all.written == 0, "NaN is no 0");
    expected.known.store(1, 0), expected.known.store(5, 0);
    for (int64_t i : {0, 2, 3, 4})
      actual.store(i, 0);
    Difference kept = differenceOfLse(expected, actual);
    check(kept.maxAbs == 0 && kept.compared == 4 && kept.written == 0, "padding keeps its bits");
    actual.store(5, 0);
    Difference written = differenceOfLse(expected, actual);
    check(written.maxAbs == 0 && written.compared == 4 && written.written == 1, "padding is overwritten");
  }
}

/// Polynomials of small scores against the definition.
static void checkSmallScores() {
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  context.loadDialect<AttnDialect>();
  auto evaluate = [](llvm::ArrayRef<double> polynomial, double x) {
    double sum = 0;
    for (double coefficient : llvm::reverse(polynomial))
      sum = sum * x + coefficient;
    return sum;
  };
  for (double cap : {1.0, 30.0, 50.0, 100.0, 0x1p-60, 0x1p60})
    for (auto [factor, error] : {std::pair(0.08838834764831845, 0.0),
                                 {1.0, 0.0},
                                 {1e-30, 0.0},
                                 {1e30, 0.0},
                                 {0.08838834764831845, 0x1p-10},
                                 {1e-30, 0x1p-10}}) {
      ScoreModifierInterface softcap = SoftcapAttr::get(&context, llvm::APFloat(cap));
      double within = softcap.smallBelow(factor, error), worst = 0, worstSize = 0, worstSlope = 0;
      llvm::SmallVector<double> score = softcap.smallScore(factor, error),
                                slope = softcap.smallDerivative(factor, error);
      check(within > 0 && !score.empty() && !slope.empty(), "softcap knows small scores");
      for (double x = -1; x <= 1; x += 1.0 / 512) {
        double natural = x * within * factor, expected = softcap.modify(ScorePoint(), natural);
        double off = std::fabs(x * evaluate(score, x * x) - expected);
        worst = std::max(worst, off / std::max(std::fabs(expected), 1e-300)), worstSize = std::max(worstSize, off);
        worstSlope =
            std::max(worstSlope, std::fabs(evaluate(slope, x * x) - softcap.derivative(ScorePoint(), natural)));
      }
      // Two coefficients where an error of so much does not matter.
      bool coarse = error > 0 && cap < 60;
      check(score.size() == (coarse ? 2 : 3) && slope.size() == score.size(),
            "a small score is as right as it needs to be, of a cap of " + std::to_string(cap));
      check(factor / cap > 0x1p120 || (coarse ? worstSize <= error : worst < 0x1p-16),
            "a small score is right to 2^-16, or to what matters");
      check(factor / cap > 0x1p120 || worstSlope < (coarse ? 8e-4 : 2e-4), "and its slope to 2e-4 or 8e-4");
    }
}

//===--------------------------------------------------------------------===//
// Interpreter
//===--------------------------------------------------------------------===//

static llvm::Error run() {
  mlir::DialectRegistry registry;
  registry.insert<AttnDialect>();
  mlir::MLIRContext context(registry, mlir::MLIRContext::Threading::DISABLED);
  auto module = mlir::parseSourceFile<mlir::ModuleOp>(file, &context);
  if (!module)
    return llvm::createStringError("cannot parse `" + file + "`");
  auto problems = module->getOps<ProblemOp>();
  if (problems.empty())
    return llvm::createStringError("expected an `attn.problem` in `" + file + "`, got: none");
  ProblemOp problem = *problems.begin();

  Tensors inputs;
  auto backwards = module->getOps<BackwardOp>();
  Computation computation = backwards.empty() ? Computation(problem) : Computation(*backwards.begin());
  std::vector<ProblemTensor> list = tensorsOf(computation);
  for (const std::string &arg : args) {
    auto [name, path] = llvm::StringRef(arg).split('=');
    bool isInt = llvm::any_of(
        list, [&, name = name](const ProblemTensor &t) { return t.name == name && t.element == ProblemTensor::Int32; });
    llvm::Expected<Tensor> tensor = readNpy(path, isInt ? Dtype::I32 : Dtype::F32);
    if (!tensor)
      return tensor.takeError();
    inputs[name] = std::move(*tensor);
  }
  if (computation.backward) {
    llvm::Expected<Tensors> gradients = interpret(computation.backward, inputs);
    if (!gradients)
      return gradients.takeError();
    for (const std::string &result : results) {
      auto [name, path] = llvm::StringRef(result).split('=');
      if (llvm::Error failure = writeNpy(path, gradients->lookup(name)))
        return failure;
    }
    return llvm::Error::success();
  }
  llvm::Expected<Outputs> outputs = interpret(problem, inputs, oneRowIn(every));
  if (!outputs)
    return outputs.takeError();
  Difference self = differenceOfO(problem, *outputs, outputs->o);
  check(self.maxAbs == 0 && self.worst.empty(), "a result agrees with itself");
  for (const std::string &result : results) {
    auto [name, path] = llvm::StringRef(result).split('=');
    const Tensor &tensor = name == "o" ? outputs->o : name == "lse" ? outputs->lse : outputs->known;
    if (llvm::Error failure = writeNpy(path, tensor))
      return failure;
  }
  return llvm::Error::success();
}

int main(int argc, char **argv) {
  cl::ParseCommandLineOptions(argc, argv, "runs the reference interpreter\n");
  if (selfTest) {
    checkRounding();
    checkTensors();
    checkDifferences();
    checkSmallScores();
  } else if (llvm::Error failure = run()) {
    llvm::errs() << "error: " << llvm::toString(std::move(failure)) << "\n";
    return 1;
  }
  return failures ? 1 : 0;
}
