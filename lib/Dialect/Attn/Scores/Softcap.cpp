// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// cap * tanh(s / cap). The GPU's own approximation of tanh is right to 2^-11, as
// good as the inputs' rounding for some inputs and much worse for others (many
// small products that add up to a large score), and takes the unit that
// exponentials, which are short anyway, take too. Up to two fifths of the cap, and
// few scores are beyond, a polynomial is right to 2^-17 and cheaper; up to a quarter
// a shorter one to 2^-13.
//
#include "attn/Dialect/Attn/IR/Attn.h"
#include "mlir/IR/DialectImplementation.h"
#include <cmath>

using namespace mlir;
using namespace attn;

namespace {
/// For |x| <= limit: tanh(x) / x over x^2 with the least relative error, and the derivative of tanh, over x^2, with the
/// least square error but for the 1.
struct Formula {
  double limit, error;
  ArrayRef<double> score, slope;
};
} // namespace
static constexpr double fineScore[] = {0.9999937530845565, -0.3326257921993455, 0.12127785063197698};
static constexpr double fineSlope[] = {1, -0.9969407733246535, 0.5958837068600257}; // right to 1.1e-4
static constexpr double coarseScore[] = {0.99993664735561938, -0.32518500352749785};
static constexpr double coarseSlope[] = {1, -0.97103382252268244}; // to 7.1e-4
static const Formula fine = {0.4, 6.3e-6, fineScore, fineSlope}, coarse = {0.25, 6.4e-5, coarseScore, coarseSlope};

/// The shortest one that is right enough.
static const Formula &formulaOf(SoftcapAttr softcap, double error) {
  return coarse.error * coarse.limit * softcap.getCap().convertToDouble() <= error ? coarse : fine;
}

double SoftcapAttr::modify(const ScorePoint &, double score) const {
  double cap = getCap().convertToDouble();
  return cap * std::tanh(score / cap);
}

double SoftcapAttr::derivative(const ScorePoint &, double score) const {
  double tanh = std::tanh(score / getCap().convertToDouble());
  return 1 - tanh * tanh;
}

/// What a value is multiplied by to become the argument of tanh. Beyond the limit
/// all scores are 0 or at the cap either way.
static double toArgument(SoftcapAttr softcap, double factor) {
  return std::min(factor / softcap.getCap().convertToDouble(), 0x1p120);
}

/// A number of few digits, whose square is a float too: who tests and who computes
/// with the difference of squares have the same number.
double SoftcapAttr::smallBelow(double factor, double error) const {
  int exponent;
  double digits = std::frexp(std::min(formulaOf(*this, error).limit / toArgument(*this, factor), 0x1p60), &exponent);
  return std::ldexp(std::floor(digits * 0x1p11), exponent - 11);
}

double SoftcapAttr::smallBecomes(double factor) const {
  return getCap().convertToDouble() * std::tanh(smallBelow(factor, /*error=*/0) * toArgument(*this, factor));
}

/// tanh is right to 2^-22, absolutely, and so are scores to that part of the cap. Of larger caps small arguments take
/// the series.
static Value emitTanh(FloatMath &math, Value x, double cap) {
  constexpr double large = 0x1p9, within = 0.25;
  constexpr double series[] = {1, -1.0 / 3, 2.0 / 15,
                               -17.0 / 315}; // of tanh(x) / x over x^2; what follows is 2^-21 of it at most
  Value tanh = math.tanh(x);
  if (cap <= large)
    return tanh;
  Value ratio = SmallValue(math, x, /*within=*/1, SmallValue::Square).evaluate(series);
  return math.select(math.less(math.abs(x), math.constant(within)), math.mul(x, ratio), tanh);
}

Score SoftcapAttr::emitScore(ScoreScope &scope, Score score) const {
  FloatMath &math = scope.each;
  double cap = getCap().convertToDouble();
  Value tanh = emitTanh(math, math.mul(score.value, math.constant(toArgument(*this, score.factor))), cap);
  return {tanh, factorOfExponents, math.constant(cap / factorOfExponents)};
}

Value SoftcapAttr::emitDerivative(ScoreScope &scope, Score score) const {
  FloatMath &math = scope.each;
  Value tanh = math.tanh(math.mul(score.value, math.constant(toArgument(*this, score.factor))));
  return math.fma(math.neg(tanh), tanh, math.constant(1));
}

SmallVector<double> SoftcapAttr::smallScore(double factor, double error) const {
  double most = toArgument(*this, factor) * smallBelow(factor, error), cap = getCap().convertToDouble();
  SmallVector<double> score;
  for (auto [i, coefficient] : llvm::enumerate(formulaOf(*this, error).score))
    score.push_back(cap * coefficient * std::pow(most, 2 * i + 1));
  return score;
}

SmallVector<double> SoftcapAttr::smallDerivative(double factor, double error) const {
  double most = toArgument(*this, factor) * smallBelow(factor, error);
  SmallVector<double> slope;
  for (auto [i, coefficient] : llvm::enumerate(formulaOf(*this, error).slope))
    slope.push_back(coefficient * std::pow(most, 2 * i));
  return slope;
}

LogicalResult SoftcapAttr::verify(function_ref<InFlightDiagnostic()> emitError, APFloat cap) {
  double number = cap.convertToDouble();
  if (!(number >= 0x1p-60 && number <= 0x1p60)) // C1
    return emitError() << "expected the cap of scores from 2^-60 to 2^60, got: " << number;
  return success();
}

Attribute SoftcapAttr::parse(AsmParser &parser, Type) {
  SMLoc loc = parser.getCurrentLocation();
  double cap = 0;
  if (parser.parseLess() || parser.parseFloat(cap) || parser.parseGreater())
    return {};
  return parser.getChecked<SoftcapAttr>(loc, parser.getContext(), APFloat(cap));
}

void SoftcapAttr::print(AsmPrinter &printer) const {
  printer << "<";
  printer.printFloat(getCap());
  printer << ">";
}
