// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Expressions of scores in two domains, numbers and code, each with the derivative by one thing
// (forward differentiation).
//
#include "../Expressions/ExpressionDomains.h"
#include "llvm/ADT/bit.h"
#include <cmath>

using namespace attn;
using namespace attn::expression;

namespace {
/// Integers and truth values of one domain, real numbers of another.
template <typename Ints, typename Reals> struct ScoreDomain {
  struct Value {
    typename Ints::Value integer = {};
    typename Reals::Value real = {};
  };
  Ints ints;
  Reals reals;

  Value number(int64_t constant) { return {ints.number(constant)}; }
  Value load(Array array) { return {ints.load(array)}; }
  Value variable(Opcode op) { return {ints.variable(op)}; }
  Value byConstant(Opcode op, Value a, int64_t c) { return {ints.byConstant(op, a.integer, c)}; }
  Value inverse(Value a) { return {ints.inverse(a.integer)}; }
  Value select(Value condition, Value yes, Value no) {
    return {ints.select(condition.integer, yes.integer, no.integer)};
  }
  Value binary(Opcode op, Value a, Value b) { return {ints.binary(op, a.integer, b.integer)}; }

  void real(Opcode op, int64_t constant, llvm::SmallVectorImpl<Value> &stack) {
    Value operands[3];
    unsigned count = operandsOfReal(op);
    for (unsigned i = count; i-- > 0;)
      operands[i] = stack.pop_back_val();
    auto &[a, b, c] = operands;
    if (op == RealNumber)
      stack.push_back({{}, reals.number(llvm::bit_cast<double>(constant))});
    else if (op == RealLoad)
      stack.push_back({{}, reals.load(RealArray::unpack(constant).number)});
    else if (op == OwnScore)
      stack.push_back({{}, reals.score()});
    else if (op == ToReal)
      stack.push_back({{}, reals.convert(a.integer)});
    else if (op == RealSelect)
      stack.push_back({{}, reals.select(a.integer, b.real, c.real)});
    else if (op == RealLess || op == RealLessEqual)
      stack.push_back({reals.less(op, a.real, b.real)});
    else
      stack.push_back({{}, count == 1 ? reals.unary(op, a.real) : reals.binary(op, a.real, b.real)});
  }
};

struct DualNumbers {
  using Value = DualNumber;
  const ScorePoint &point;
  llvm::ArrayRef<ScoreOperand> arrays;
  double own;
  int by;

  Value number(double constant) { return {constant}; }
  Value score() { return {own, double(by < 0)}; }
  Value load(unsigned array) { return {point.entryOf(arrays[array]), double(by == int(array))}; }
  Value convert(int64_t a) { return {double(a)}; }
  Value select(int64_t condition, Value yes, Value no) { return condition ? yes : no; }
  int64_t less(Opcode op, Value a, Value b) { return op == RealLess ? a.value < b.value : a.value <= b.value; }
  Value unary(Opcode op, Value a) {
    switch (op) {
    case Exp:
      return {std::exp(a.value), std::exp(a.value) * a.slope};
    case Log:
      return {std::log(a.value), a.slope / a.value};
    case Sqrt:
      return {std::sqrt(a.value), a.slope / (2 * std::sqrt(a.value))};
    case Tanh:
      return {std::tanh(a.value), a.slope * (1 - std::tanh(a.value) * std::tanh(a.value))};
    default:
      return a.value < 0 ? Value{-a.value, -a.slope} : a;
    }
  }
  Value binary(Opcode op, Value a, Value b) {
    switch (op) {
    case RealAdd:
      return {a.value + b.value, a.slope + b.slope};
    case RealSub:
      return {a.value - b.value, a.slope - b.slope};
    case RealMul:
      return {a.value * b.value, a.slope * b.value + a.value * b.slope};
    case RealDiv:
      return {a.value / b.value, (a.slope - a.value / b.value * b.slope) / b.value};
    case RealMin: // a NaN stays one
      return a.value < b.value || std::isnan(a.value) ? a : b;
    default:
      return b.value < a.value || std::isnan(a.value) ? a : b;
    }
  }
};

struct DualEmission {
  using Value = DualValue;
  ScoreScope &scope;
  llvm::ArrayRef<ScoreOperand> arrays;
  mlir::Value own;
  int by;
  FloatMath &math = scope.each;

  Value number(double constant) { return {math.constant(constant), {}}; }
  Value score() { return {own, {}, by < 0}; }
  Value load(unsigned array) { return {scope.entry(arrays[array], 0), {}, by == int(array)}; }
  Value convert(const Emission::Value &a) { return {math.convert(a.integer), {}}; }
  Value select(const Emission::Value &condition, Value yes, Value no) {
    mlir::Value holds = math.indices().value(condition.truth);
    Value result = {math.select(holds, yes.value, no.value), {}, yes.isOne && no.isOne};
    if (changes(yes) || changes(no))
      result.slope = result.isOne ? mlir::Value() : math.select(holds, slopeOf(yes), slopeOf(no));
    return result;
  }
  Emission::Value less(Opcode op, Value a, Value b) {
    return {0, Cond::of(op == RealLess ? math.less(a.value, b.value) : math.lessEqual(a.value, b.value))};
  }
  Value unary(Opcode op, Value a) {
    mlir::Value x = a.value;
    constexpr double log2e = 1.44269504088896340736;
    switch (op) {
    case Exp:
      x = math.exp2(math.mul(x, math.constant(log2e)));
      return {x, times(a, [&] { return x; })};
    case Log:
      return {math.mul(math.log2(x), math.constant(1 / log2e)),
              times(a, [&] { return math.div(math.constant(1), x); })};
    case Sqrt:
      x = math.sqrt(x);
      return {x, times(a, [&] { return math.div(math.constant(0.5), x); })};
    case Tanh:
      x = math.tanh(x);
      return {x, times(a, [&] { return math.fma(math.neg(x), x, math.constant(1)); })};
    default:
      return {math.abs(x), times(a, [&] {
                return math.select(math.less(x, math.constant(0)), math.constant(-1), math.constant(1));
              })};
    }
  }
  Value binary(Opcode op, Value a, Value b) {
    mlir::Value x = a.value, y = b.value;
    switch (op) {
    case RealAdd:
      if (!changes(a) || !changes(b))
        return {math.add(x, y), a.slope ? a.slope : b.slope, a.isOne || b.isOne};
      return {math.add(x, y), math.add(slopeOf(a), slopeOf(b))};
    case RealSub:
      if (!changes(b))
        return {math.sub(x, y), a.slope, a.isOne};
      return {math.sub(x, y), changes(a) ? math.sub(slopeOf(a), slopeOf(b)) : math.neg(slopeOf(b))};
    case RealMul:
      return {math.mul(x, y), sum(times(a, [&] { return y; }), times(b, [&] { return x; }))};
    case RealDiv: {
      mlir::Value quotient = math.div(x, y);
      mlir::Value ofB = times(b, [&] { return math.neg(math.div(quotient, y)); });
      return {quotient, sum(times(a, [&] { return math.div(math.constant(1), y); }), ofB)};
    }
    default: {
      mlir::Value first = op == RealMin ? math.less(x, y) : math.less(y, x);
      mlir::Value second = op == RealMin ? math.lessEqual(y, x) : math.lessEqual(x, y);
      Value result = {math.select(first, x, math.select(second, y, math.add(x, y))), {}, a.isOne && b.isOne};
      if (!result.isOne && (changes(a) || changes(b)))
        result.slope = math.select(first, slopeOf(a), slopeOf(b));
      return result;
    }
    }
  }

private:
  static bool changes(const Value &a) { return a.slope || a.isOne; }
  mlir::Value slopeOf(const Value &a) { return a.slope ? a.slope : math.constant(a.isOne); }
  /// The slope times what `factor` says, if there is a slope.
  mlir::Value times(const Value &a, llvm::function_ref<mlir::Value()> factor) {
    return a.isOne ? factor() : a.slope ? math.mul(a.slope, factor()) : mlir::Value();
  }
  mlir::Value sum(mlir::Value a, mlir::Value b) { return a && b ? math.add(a, b) : a ? a : b; }
};
} // namespace

DualNumber expression::evaluateScore(Code code, const ScorePoint &point, llvm::ArrayRef<ScoreOperand> arrays,
                                     double score, int by) {
  ScoreDomain<Numbers, DualNumbers> domain{{point}, {point, arrays, score, by}};
  return run(code, domain).real;
}

DualValue expression::emitScore(Code code, ScoreScope &scope, llvm::ArrayRef<ScoreOperand> arrays, mlir::Value score,
                                int by) {
  IndexMath math = scope.each.indices();
  ScoreDomain<Emission, DualEmission> domain{{math, scope.sequence, scope.q, scope.k}, {scope, arrays, score, by}};
  return run(code, domain).real;
}
