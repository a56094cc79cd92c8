// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What is read for each score, or for each head, and added or multiplied.
//
#include "../Masks/Diagonal.h"
#include "mlir/IR/DialectImplementation.h"

using namespace mlir;
using namespace attn;

static LogicalResult verifyName(function_ref<InFlightDiagnostic()> emitError, StringRef of, StringRef name) {
  if (!isIdentifier(name)) // C1
    return emitError() << "expected an identifier as the name of an array of " << of << ", got: \"" << name << "\"";
  return success();
}

/// value * factor + addend in natural units, in which it stays: divided by a small factor, a large addend (padding is
/// often hidden by the least finite float) would not be finite.
static Score plus(ScoreScope &scope, Score score, Value addend) {
  FloatMath &math = scope.each;
  if (score.factor == 1)
    return {math.add(score.value, addend), 1};
  return {math.fma(score.value, math.constant(score.factor), addend), 1};
}

//===--------------------------------------------------------------------===//
// head_scale
//===--------------------------------------------------------------------===//

SmallVector<ScoreOperand> HeadScaleAttr::operands() const { return {{getScales().str(), {ScoreOperand::Head}}}; }

double HeadScaleAttr::modify(const ScorePoint &p, double score) const { return score * p.entryOf(operands().front()); }

Score HeadScaleAttr::emitScore(ScoreScope &scope, Score score) const {
  return {scope.each.mul(score.value, scope.entry(operands().front(), 0)), score.factor};
}

double HeadScaleAttr::derivative(const ScorePoint &p, double) const { return p.entryOf(operands().front()); }

Value HeadScaleAttr::emitDerivative(ScoreScope &scope, Score) const { return scope.entry(operands().front(), 0); }

double HeadScaleAttr::entryDerivative(const ScorePoint &, double score, unsigned) const { return score; }

Value HeadScaleAttr::emitEntryDerivative(ScoreScope &scope, Score score, unsigned) const {
  return scope.each.mul(score.value, scope.each.constant(score.factor));
}

LogicalResult HeadScaleAttr::verify(function_ref<InFlightDiagnostic()> emitError, StringRef scales) {
  return verifyName(emitError, "factors", scales);
}

//===--------------------------------------------------------------------===//
// bias
//===--------------------------------------------------------------------===//

static constexpr StringRef allAxes = "bhqk"; // as ScoreOperand counts them

SmallVector<ScoreOperand> BiasAttr::operands() const {
  ScoreOperand array{getArray().str(), {}};
  for (char axis : getAxes())
    array.axes.push_back(ScoreOperand::Axis(allAxes.find(axis)));
  return {array};
}

bool BiasAttr::mayRepeat() const { return true; }

double BiasAttr::modify(const ScorePoint &p, double score) const { return score + p.entryOf(operands().front()); }

Score BiasAttr::emitScore(ScoreScope &scope, Score score) const {
  return plus(scope, score, scope.entry(operands().front(), 0));
}

double BiasAttr::derivative(const ScorePoint &, double) const { return 1; }

Value BiasAttr::emitDerivative(ScoreScope &, Score) const { return {}; }

double BiasAttr::entryDerivative(const ScorePoint &, double, unsigned) const { return 1; }

Value BiasAttr::emitEntryDerivative(ScoreScope &, Score, unsigned) const { return {}; }

LogicalResult BiasAttr::verify(function_ref<InFlightDiagnostic()> emitError, StringRef array, StringRef axes) {
  size_t next = 0;
  for (char axis : axes) {
    size_t at = allAxes.find(axis);
    if (at == StringRef::npos || at < next)
      next = SIZE_MAX;
    else if (next != SIZE_MAX)
      next = at + 1;
  }
  if (axes.empty() || next == SIZE_MAX) // C2
    return emitError() << "expected the axes of a bias as some of `bhqk` in this order, got: " << axes;
  return verifyName(emitError, "biases", array);
}

Attribute BiasAttr::parse(AsmParser &parser, Type) {
  SMLoc loc = parser.getCurrentLocation();
  std::string array;
  StringRef axes;
  if (parser.parseLess() || parser.parseString(&array) || parser.parseComma() || parser.parseKeyword(&axes) ||
      parser.parseGreater())
    return {};
  return parser.getChecked<BiasAttr>(loc, parser.getContext(), StringRef(array), axes);
}

void BiasAttr::print(AsmPrinter &printer) const { printer << "<\"" << getArray() << "\", " << getAxes() << ">"; }

//===--------------------------------------------------------------------===//
// relative_bias
//===--------------------------------------------------------------------===//

SmallVector<ScoreOperand> RelativeBiasAttr::operands() const {
  return {{getTable().str(), {ScoreOperand::Head, ScoreOperand::Table}, 2 * getReach() + 1, getDiagonal()}};
}

double RelativeBiasAttr::modify(const ScorePoint &p, double score) const {
  int64_t away = p.k - diagonalOf(p, getDiagonal());
  return score + p.entryOf(operands().front(), std::clamp(away, -getReach(), getReach()) + getReach());
}

Score RelativeBiasAttr::emitScore(ScoreScope &scope, Score score) const {
  IndexMath math = scope.each.indices(), before = scope.once.indices();
  Index diagonal = math.add(scope.q, diagonalShift(before, scope.sequence, getDiagonal()));
  Index at = math.add(math.clamp(math.sub(scope.k, diagonal), -getReach(), getReach()), getReach());
  return plus(scope, score, scope.entry(operands().front(), at));
}

double RelativeBiasAttr::derivative(const ScorePoint &, double) const { return 1; }

Value RelativeBiasAttr::emitDerivative(ScoreScope &, Score) const { return {}; }

double RelativeBiasAttr::entryDerivative(const ScorePoint &, double, unsigned) const { return 1; }

Value RelativeBiasAttr::emitEntryDerivative(ScoreScope &, Score, unsigned) const { return {}; }

LogicalResult RelativeBiasAttr::verify(function_ref<InFlightDiagnostic()> emitError, StringRef table, int64_t reach,
                                       Diagonal) {
  if (reach < 1 || reach > int64_t(1) << 20) // C2
    return emitError() << "expected the largest distance of a relative bias from 1 to 2^20, got: " << reach;
  return verifyName(emitError, "biases", table);
}

Attribute RelativeBiasAttr::parse(AsmParser &parser, Type) {
  SMLoc loc = parser.getCurrentLocation();
  std::string table;
  int64_t reach = 0;
  Diagonal diagonal = Diagonal::top_left;
  if (parser.parseLess() || parser.parseString(&table) || parser.parseComma() || parser.parseInteger(reach))
    return {};
  if (succeeded(parser.parseOptionalComma()) && parseDiagonal(parser, diagonal))
    return {};
  if (parser.parseGreater())
    return {};
  return parser.getChecked<RelativeBiasAttr>(loc, parser.getContext(), StringRef(table), reach, diagonal);
}

void RelativeBiasAttr::print(AsmPrinter &printer) const {
  printer << "<\"" << getTable() << "\", " << getReach();
  if (getDiagonal() != Diagonal::top_left)
    printer << ", " << stringifyDiagonal(getDiagonal());
  printer << ">";
}
