// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "../Expressions/Expression.h"

using namespace mlir;
using namespace attn;
using namespace attn::expression;

static constexpr int byScore = -1;

SmallVector<ScoreOperand> ScoreFunctionAttr::operands() const {
  SmallVector<ScoreOperand> arrays(getNames().size());
  for (size_t i = 0; i < getCode().size(); i += 1 + hasConstant(getCode()[i]))
    if (getCode()[i] == RealLoad) {
      RealArray array = RealArray::unpack(getCode()[i + 1]);
      arrays[array.number] = {getNames()[array.number].str(), {}};
      for (int axis = ScoreOperand::Batch; axis <= ScoreOperand::Key; ++axis) // as letters number them
        if (array.axes >> axis & 1)
          arrays[array.number].axes.push_back(ScoreOperand::Axis(axis));
    }
  return arrays;
}

bool ScoreFunctionAttr::mayRepeat() const { return true; }

double ScoreFunctionAttr::modify(const ScorePoint &p, double score) const {
  return evaluateScore(getCode(), p, operands(), score, byScore).value;
}

double ScoreFunctionAttr::derivative(const ScorePoint &p, double score) const {
  return evaluateScore(getCode(), p, operands(), score, byScore).slope;
}

double ScoreFunctionAttr::entryDerivative(const ScorePoint &p, double score, unsigned operand) const {
  return evaluateScore(getCode(), p, operands(), score, operand).slope;
}

static DualValue emit(ScoreFunctionAttr function, ScoreScope &scope, attn::Score score, int by) {
  Value natural = score.factor == 1 ? score.value : scope.each.mul(score.value, scope.each.constant(score.factor));
  return expression::emitScore(function.getCode(), scope, function.operands(), natural, by);
}

attn::Score ScoreFunctionAttr::emitScore(ScoreScope &scope, attn::Score score) const {
  return {emit(*this, scope, score, byScore).value, 1};
}

/// The slope as a number; null if it is 1.
static Value slopeOf(ScoreScope &scope, const DualValue &dual) {
  return dual.isOne ? Value() : dual.slope ? dual.slope : scope.each.constant(0);
}

Value ScoreFunctionAttr::emitDerivative(ScoreScope &scope, attn::Score score) const {
  return slopeOf(scope, emit(*this, scope, score, byScore));
}

Value ScoreFunctionAttr::emitEntryDerivative(ScoreScope &scope, attn::Score score, unsigned operand) const {
  return slopeOf(scope, emit(*this, scope, score, operand));
}

LogicalResult ScoreFunctionAttr::verify(function_ref<InFlightDiagnostic()> emitError, ArrayRef<int64_t> code,
                                        ArrayRef<StringAttr> names) {
  if (auto overflow = findOverflow(code)) // C2
    return emitError() << "expected integers within 64 bits in a score (`min` and `max` bound them), got: "
                       << *overflow;
  for (StringAttr name : names)
    if (!isIdentifier(name))
      return emitError() << "expected an identifier as the name of an array, got: " << name;
  return success();
}

Attribute ScoreFunctionAttr::parse(AsmParser &parser, Type) { // C1, C3
  return parseAttr<ScoreFunctionAttr>(parser, parseScore);
}

void ScoreFunctionAttr::print(AsmPrinter &printer) const { printAttr(printer, getCode(), getNames()); }
