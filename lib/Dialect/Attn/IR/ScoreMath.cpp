// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "attn/Dialect/Attn/IR/ScoreScope.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include <algorithm>
#include <cmath>
#include <limits>

using namespace mlir;
using namespace attn;

Value FloatMath::constant(double number) {
  constexpr double largest = std::numeric_limits<float>::max();
  return arith::ConstantOp::create(builder, loc, builder.getF32FloatAttr(std::clamp(number, -largest, largest)));
}

Value FloatMath::add(Value a, Value b) { return arith::AddFOp::create(builder, loc, a, b); }
Value FloatMath::sub(Value a, Value b) { return arith::SubFOp::create(builder, loc, a, b); }
Value FloatMath::mul(Value a, Value b) { return arith::MulFOp::create(builder, loc, a, b); }
Value FloatMath::fma(Value a, Value b, Value c) { return math::FmaOp::create(builder, loc, a, b, c); }
Value FloatMath::neg(Value a) { return arith::NegFOp::create(builder, loc, a); }
Value FloatMath::abs(Value a) { return math::AbsFOp::create(builder, loc, a); }
Value FloatMath::tanh(Value a) { return math::TanhOp::create(builder, loc, a); }
Value FloatMath::exp2(Value a) { return math::Exp2Op::create(builder, loc, a); }
Value FloatMath::log2(Value a) { return math::Log2Op::create(builder, loc, a); }
Value FloatMath::sqrt(Value a) { return math::SqrtOp::create(builder, loc, a); }
Value FloatMath::div(Value a, Value b) { return arith::DivFOp::create(builder, loc, a, b); }
Value FloatMath::less(Value a, Value b) { return arith::CmpFOp::create(builder, loc, arith::CmpFPredicate::OLT, a, b); }
Value FloatMath::lessEqual(Value a, Value b) {
  return arith::CmpFOp::create(builder, loc, arith::CmpFPredicate::OLE, a, b);
}
Value FloatMath::select(Value condition, Value yes, Value no) {
  return arith::SelectOp::create(builder, loc, condition, yes, no);
}

Value FloatMath::convert(Index a) {
  return arith::SIToFPOp::create(builder, loc, builder.getF32Type(), indices().value(a));
}

Value FloatMath::named(Value a, llvm::StringRef name) {
  a.getDefiningOp()->setLoc(NameLoc::get(builder.getStringAttr(name), loc));
  return a;
}

SmallValue::SmallValue(FloatMath &math, Value value, double bound, Argument over, bool narrow)
    : math(math), x(value), within(bound), over(over) {
  if (narrow || bound < 0x1p-13 || bound > 0x1p11) {
    x = math.mul(x, math.constant(1 / bound));
    within = 1;
  }
  argument = over == Square ? math.named(math.mul(x, x), "square")
                            : math.named(math.fma(x, x, math.constant(-within * within)), "beyond");
}

SmallVector<double> SmallValue::coefficients(ArrayRef<double> polynomial) const {
  SmallVector<double> to(polynomial);
  if (over == Beyond) // (x / within)^2 = beyond / within^2 + 1
    for (size_t done = 0; done < to.size(); ++done)
      for (size_t i = to.size() - 1; i > done; --i)
        to[i - 1] += to[i];
  for (auto [i, coefficient] : llvm::enumerate(to))
    coefficient /= std::pow(within, 2 * i);
  return to;
}

Value SmallValue::evaluate(ArrayRef<double> polynomial) const {
  Value sum;
  for (double coefficient : llvm::reverse(coefficients(polynomial)))
    sum = sum ? math.fma(sum, argument, math.constant(coefficient)) : math.constant(coefficient);
  return sum;
}

Score SmallValue::score(ArrayRef<double> polynomial) const {
  SmallVector<double> scaled(polynomial);
  for (double &coefficient : scaled)
    coefficient /= within * factorOfExponents;
  return {x, factorOfExponents, evaluate(scaled)};
}

Score attn::settled(FloatMath &math, Score score) {
  Value value = score.value;
  if (score.times && score.offset)
    value = math.fma(value, score.times, score.offset);
  else if (score.times)
    value = math.mul(value, score.times);
  else if (score.offset)
    value = math.add(value, score.offset);
  return {value, score.factor};
}

Score attn::moderate(FloatMath &math, Score score) {
  if (score.factor >= 0x1p-60 && score.factor <= 0x1p60)
    return score;
  return {math.mul(score.value, math.constant(score.factor)), 1};
}
