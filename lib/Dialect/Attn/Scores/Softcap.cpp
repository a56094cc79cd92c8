// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// cap * tanh(s / cap). The GPU's own approximation of tanh is right to 2^-11, as
// good as the inputs' rounding for some inputs and much worse for others (many
// small products that add up to a large score), and takes the unit that
// exponentials, which are short anyway, take too. Up to two fifths of the cap, and
// few scores are beyond, a polynomial is right to 2^-17 and cheaper.
//
#include "attn/Dialect/Attn/IR/Attn.h"
#include "mlir/IR/DialectImplementation.h"
#include <cmath>

using namespace mlir;
using namespace attn;

/// tanh(x) / x for |x| <= limit, over x^2: the least relative error is 6.3e-6.
static constexpr double limit = 0.4;
static constexpr double polynomial[] = {0.9999937530845565, -0.3326257921993455, 0.12127785063197698};

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
double SoftcapAttr::smallBelow(double factor) const {
  int exponent;
  double digits = std::frexp(std::min(limit / toArgument(*this, factor), 0x1p60), &exponent);
  return std::ldexp(std::floor(digits * 0x1p11), exponent - 11);
}

double SoftcapAttr::smallBecomes(double factor) const {
  return getCap().convertToDouble() * std::tanh(smallBelow(factor) * toArgument(*this, factor));
}

/// The factor that is left of a score is that of exponents of 2, so that nothing is left to
/// multiply by.
static constexpr double factorLeft = 0.69314718055994530942;

Score SoftcapAttr::emitScore(ScoreScope &scope, Score score) const {
  FloatMath &math = scope.each;
  double c = toArgument(*this, score.factor);
  Value tanh = math.tanh(math.mul(score.value, math.constant(c)));
  return {tanh, factorLeft, math.constant(getCap().convertToDouble() / factorLeft)};
}

Value SoftcapAttr::emitDerivative(ScoreScope &scope, Score score) const {
  FloatMath &math = scope.each;
  Value tanh = math.tanh(math.mul(score.value, math.constant(toArgument(*this, score.factor))));
  return math.fma(math.neg(tanh), tanh, math.constant(1));
}

Score SoftcapAttr::emitSmallScore(ScoreScope &scope, Score score) const {
  FloatMath &math = scope.each;
  double c = toArgument(*this, score.factor), within = smallBelow(score.factor);
  Value x = score.value;
  if (c < 0x1p-12 || c > 0x1p12) { // its powers would leave f32
    x = math.mul(x, math.constant(c));
    within *= c;
    c = 1;
  }
  // Over x^2 - within^2, whose sign says whether the score is small. The argument's factor
  // goes into the coefficients.
  Value beyond = math.named(math.fma(x, x, math.constant(-within * within)), "beyond"), sum;
  double limit = c * within, outside = getCap().convertToDouble() / factorLeft;
  const double shifted[] = {polynomial[0] + limit * limit * (polynomial[1] + limit * limit * polynomial[2]),
                            polynomial[1] + 2 * limit * limit * polynomial[2], polynomial[2]};
  for (int i = std::size(shifted) - 1; i >= 0; --i) {
    Value coefficient = math.constant(shifted[i] * std::pow(c, 2 * i + 1) * outside);
    sum = sum ? math.fma(sum, beyond, coefficient) : coefficient;
  }
  return {x, factorLeft, sum};
}

Value SoftcapAttr::emitSmallDerivative(ScoreScope &scope, Score score) const {
  FloatMath &math = scope.each;
  Score small = settled(math, emitSmallScore(scope, score));
  double toTanh = small.factor / getCap().convertToDouble(); // C1 keeps squares within f32
  return math.fma(math.mul(small.value, small.value), math.constant(-toTanh * toTanh), math.constant(1));
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
