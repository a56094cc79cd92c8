// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "../Masks/Diagonal.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/bit.h"
#include <cmath>

using namespace mlir;
using namespace attn;

/// slope(h) = 2^(-4 n / p) with a whole number n: 2 (h + 1), or 2 (h - p) + 1 from p on.
static double slopeOf(const ScorePoint &p) {
  int64_t power = llvm::bit_floor(uint64_t(p.heads));
  int64_t n = p.head < power ? 2 * (p.head + 1) : 2 * (p.head - power) + 1;
  return std::exp2(-4.0 * n / power);
}

double AlibiAttr::modify(const ScorePoint &p, double score) const {
  int64_t diagonal = diagonalOf(p, getDiagonal());
  double slope = getSlopes().empty() ? slopeOf(p) : p.entryOf(operands().front());
  return score - slope * std::abs(diagonal - p.k);
}

double AlibiAttr::derivative(const ScorePoint &, double) const { return 1; }

Value AlibiAttr::emitDerivative(ScoreScope &, Score) const { return {}; }

double AlibiAttr::entryDerivative(const ScorePoint &p, double, unsigned) const {
  return -std::abs(diagonalOf(p, getDiagonal()) - p.k);
}

Value AlibiAttr::emitEntryDerivative(ScoreScope &scope, Score, unsigned) const {
  IndexMath indices = scope.each.indices(), before = scope.once.indices();
  Index diagonal = indices.add(scope.q, diagonalShift(before, scope.sequence, getDiagonal()));
  return scope.each.neg(scope.each.abs(scope.each.convert(indices.sub(scope.k, diagonal))));
}

SmallVector<ScoreOperand> AlibiAttr::operands() const {
  if (getSlopes().empty())
    return {};
  return {{getSlopes().str(), {ScoreOperand::Head}}};
}

static Value slopeOf(ScoreScope &scope) {
  FloatMath &math = scope.once;
  IndexMath indices = math.indices();
  int64_t power = llvm::bit_floor(uint64_t(scope.heads));
  Index head = scope.sequence.head, n = indices.mul(indices.add(head, 1), 2);
  if (power != scope.heads)
    n = indices.select(indices.lt(head, power), n, indices.add(indices.mul(indices.sub(head, power), 2), 1));
  n = indices.named(n, "slope_number");
  return math.exp2(math.mul(math.convert(n), math.constant(-4.0 / power)));
}

std::optional<Diagonal> AlibiAttr::peak() const { return getDiagonal(); }

/// One instruction a score if rows see no key beyond the diagonal, since slope * (k - D)
/// is slope * ahead and a number of the row. Else two: slope * (D - k) as an FMA with a
/// constant, and its size subtracted. A slope that may be negative needs one more then.
Score AlibiAttr::emitScore(ScoreScope &scope, Score score) const {
  FloatMath &each = scope.each;
  score = moderate(each, score);
  bool oneSided = scope.reach(getDiagonal()).value_or(1) <= 0, given = !getSlopes().empty();
  bool negative = given && !oneSided;
  Value natural = given ? scope.entry(operands().front(), 0) : slopeOf(scope);
  Value slope = scope.once.mul(natural, scope.once.constant((negative ? -1 : 1) / score.factor));
  slope = scope.once.named(slope, negative ? "minus_slope" : "slope");
  IndexMath indices = each.indices(), before = scope.once.indices();
  Index diagonal = indices.add(scope.from, diagonalShift(before, scope.sequence, getDiagonal()));
  Value first = each.convert(indices.sub(scope.base, diagonal));
  if (oneSided)
    return {each.fma(scope.ahead, slope, score.value), score.factor, {}, each.mul(first, slope)};
  if (given)
    return {each.fma(each.abs(each.add(first, scope.ahead)), slope, score.value), score.factor};
  first = each.mul(first, slope);
  Value bias = each.fma(scope.ahead, slope, first);
  return {each.sub(score.value, each.abs(bias)), score.factor};
}

LogicalResult AlibiAttr::verify(function_ref<InFlightDiagnostic()> emitError, StringRef slopes, Diagonal) {
  if (!slopes.empty() && !isIdentifier(slopes)) // C1
    return emitError() << "expected an identifier as the name of an array of slopes, got: \"" << slopes << "\"";
  return success();
}

Attribute AlibiAttr::parse(AsmParser &parser, Type) {
  SMLoc loc = parser.getCurrentLocation();
  std::string slopes;
  Diagonal diagonal = Diagonal::top_left;
  if (succeeded(parser.parseOptionalLess())) {
    bool named = succeeded(parser.parseOptionalString(&slopes));
    if (named && slopes.empty()) // C1
      return parser.emitError(loc, "expected an identifier as the name of an array of slopes, got: \"\""), Attribute();
    if (!named || succeeded(parser.parseOptionalComma()))
      if (parseDiagonal(parser, diagonal))
        return {};
    if (parser.parseGreater())
      return {};
  }
  return parser.getChecked<AlibiAttr>(loc, parser.getContext(), StringRef(slopes), diagonal);
}

void AlibiAttr::print(AsmPrinter &printer) const {
  bool named = !getSlopes().empty(), moved = getDiagonal() != Diagonal::top_left;
  if (!named && !moved)
    return;
  printer << "<";
  if (named)
    printer << '"' << getSlopes() << '"' << (moved ? ", " : "");
  if (moved)
    printer << stringifyDiagonal(getDiagonal());
  printer << ">";
}
