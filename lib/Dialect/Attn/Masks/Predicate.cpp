// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "../Expressions/Expression.h"

using namespace mlir;
using namespace attn;

bool PredicateMaskAttr::keeps(const MaskPoint &p) const { return expression::evaluate(getCode(), p); }

SmallVector<MaskOperand> PredicateMaskAttr::operands() const {
  SmallVector<MaskOperand> arrays(getNames().size());
  for (size_t i = 0; i < getCode().size(); i += 1 + expression::hasConstant(getCode()[i]))
    if (getCode()[i] == expression::Load) {
      auto array = expression::Array::unpack(getCode()[i + 1]);
      arrays[array.number] = {getNames()[array.number].str(), array.shape, array.heads};
    }
  return arrays;
}

bool PredicateMaskAttr::asksForHead() const {
  for (size_t i = 0; i < getCode().size(); i += 1 + expression::hasConstant(getCode()[i]))
    if (getCode()[i] == expression::Head)
      return true;
  return false;
}

/// All of [0, extent) or nothing of it, by what is known of rows (or keys) alone.
static IntervalList wholeIf(IndexMath &math, Cond holds, Index extent) { return {{0, math.select(holds, extent, 0)}}; }

TileRanges PredicateMaskAttr::keyRanges(IndexMath &math, const MaskScope &scope, Interval queries) const {
  TileTruth truth = expression::classify(getCode(), math, scope, queries, {0, scope.lenK});
  return {wholeIf(math, truth.some, scope.lenK), wholeIf(math, truth.all, scope.lenK)};
}

TileRanges PredicateMaskAttr::queryRanges(IndexMath &math, const MaskScope &scope, Interval keys) const {
  TileTruth truth = expression::classify(getCode(), math, scope, {0, scope.lenQ}, keys);
  return {wholeIf(math, truth.some, scope.lenQ), wholeIf(math, truth.all, scope.lenQ)};
}

Cond PredicateMaskAttr::emitKeep(IndexMath &math, const MaskScope &scope, Index q, Index k) const {
  return expression::emit(getCode(), math, scope, q, k);
}

TileTruth PredicateMaskAttr::tileTruth(IndexMath &math, const MaskScope &scope, Interval queries, Interval keys) const {
  return expression::classify(getCode(), math, scope, queries, keys);
}

LogicalResult PredicateMaskAttr::verify(function_ref<InFlightDiagnostic()> emitError, ArrayRef<int64_t> code,
                                        ArrayRef<StringAttr>) {
  if (auto overflow = expression::findOverflow(code)) // C2
    return emitError() << "expected integers within 64 bits in a predicate (`min` and `max` bound them), got: "
                       << *overflow;
  return success();
}

Attribute PredicateMaskAttr::parse(AsmParser &parser, Type) { // C1, C3
  return expression::parseAttr<PredicateMaskAttr>(parser, expression::parse);
}

void PredicateMaskAttr::print(AsmPrinter &printer) const { expression::printAttr(printer, getCode(), getNames()); }
