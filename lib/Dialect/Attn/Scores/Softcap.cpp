// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// cap * tanh(s / cap). The GPU's own approximation of tanh is right to 2^-11, as
// good as the inputs' rounding for some inputs and much worse for others (many
// small products that add up to a large score), and takes the unit that
// exponentials, which are short anyway, take too. Up to the cap, and few scores
// reach it, a polynomial is right to 2^-17 and cheaper.
//
#include "attn/Dialect/Attn/IR/Attn.h"
#include "mlir/IR/DialectImplementation.h"
#include <cmath>

using namespace mlir;
using namespace attn;

/// tanh(x) / x for |x| <= 1, over x^2: the least relative error is 6.9e-6.
static constexpr double polynomial[] = {0.999993072774371, -0.33298043752429896, 0.13036735907987856,
                                        -0.04481657454095464, 0.009035998663808983};

double SoftcapAttr::modify(const ScorePoint &, double score) const {
  double cap = getCap().convertToDouble();
  return cap * std::tanh(score / cap);
}

/// What a value is multiplied by to become the argument of tanh. Beyond the limit
/// all scores are 0 or at the cap either way.
static double toArgument(SoftcapAttr softcap, double factor) {
  return std::min(factor / softcap.getCap().convertToDouble(), 0x1p120);
}

double SoftcapAttr::smallBelow(double factor) const { return std::min(1 / toArgument(*this, factor), 0x1p120); }

Score SoftcapAttr::emitScore(ScoreScope &scope, Score score) const {
  FloatMath &math = scope.each;
  double c = toArgument(*this, score.factor);
  return {math.tanh(math.mul(score.value, math.constant(c))), getCap().convertToDouble()};
}

Score SoftcapAttr::emitSmallScore(ScoreScope &scope, Score score) const {
  FloatMath &math = scope.each;
  double c = toArgument(*this, score.factor);
  Value x = score.value;
  if (c < 0x1p-12 || c > 0x1p12) { // its powers would leave f32
    x = math.mul(x, math.constant(c));
    c = 1;
  }
  // The argument's factor goes into the coefficients.
  Value square = math.named(math.mul(x, x), "square"), sum;
  for (int i = std::size(polynomial) - 1; i >= 0; --i) {
    Value coefficient = math.constant(polynomial[i] * std::pow(c, 2 * i + 1));
    sum = sum ? math.fma(sum, square, coefficient) : coefficient;
  }
  return {math.mul(x, sum), getCap().convertToDouble()};
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
