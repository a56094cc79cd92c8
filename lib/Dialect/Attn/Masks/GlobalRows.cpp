// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A prefix with rows and keys swapped.
//
#include "Arrays.h"
#include "mlir/IR/DialectImplementation.h"

using namespace mlir;
using namespace attn;

bool GlobalRowsMaskAttr::keeps(const MaskPoint &p) const { return p.q < (getLength() ? *getLength() : p.load(0, 0)); }

SmallVector<MaskOperand> GlobalRowsMaskAttr::operands() const {
  if (getLength())
    return {};
  return {{getArray().str(), OperandShape::PerSequence, OperandHeads::shared, OperandEntries::End}};
}

std::optional<IntervalList> GlobalRowsMaskAttr::columnIntervals(IndexMath &math, const MaskScope &scope, Index) const {
  return IntervalList{{0, countOf(getLength(), math, scope, scope.lenQ)}};
}

// A row sees all keys or none: over rows, the ends of that list step back, so
// there are no `rowIntervals`.
TileRanges GlobalRowsMaskAttr::keyRanges(IndexMath &math, const MaskScope &scope, Interval queries) const {
  Index rows = countOf(getLength(), math, scope, scope.lenQ);
  auto keysIf = [&](Cond sees) { return IntervalList{{0, math.select(sees, scope.lenK, 0)}}; };
  return {keysIf(math.lt(queries.lo, rows)), keysIf(math.le(queries.hi, rows))};
}

Cond GlobalRowsMaskAttr::emitKeep(IndexMath &math, const MaskScope &scope, Index q, Index) const {
  return math.lt(q, countOf(getLength(), math, scope.uncut(), scope.lenQ));
}

bool GlobalRowsMaskAttr::affine(AffineTerms &terms) const {
  if (getLength())
    terms.compare(AffineTerms::Row, *getLength());
  return getLength().has_value();
}

MaskInterface GlobalRowsMaskAttr::simplified() const {
  return getLength() == 0 ? negated(FullMaskAttr::get(getContext())) : *this;
}

static MaskInterface either(GlobalRowsMaskAttr a, MaskInterface other, bool more) {
  auto b = dyn_cast<GlobalRowsMaskAttr>(other);
  if (!b || !a.getLength() || !b.getLength())
    return {};
  return (*a.getLength() > *b.getLength()) == more ? a : b;
}

MaskInterface GlobalRowsMaskAttr::intersected(MaskInterface other) const { return either(*this, other, false); }

MaskInterface GlobalRowsMaskAttr::united(MaskInterface other) const { return either(*this, other, true); }

LogicalResult GlobalRowsMaskAttr::verify(function_ref<InFlightDiagnostic()> emitError, std::optional<int64_t> length,
                                         StringRef array) {
  return verifyCount(emitError, "number of global rows", length, array);
}

Attribute GlobalRowsMaskAttr::parse(AsmParser &parser, Type) {
  SMLoc loc = parser.getCurrentLocation();
  std::optional<int64_t> length;
  std::string array;
  if (parseCount(parser, length, array))
    return {};
  return parser.getChecked<GlobalRowsMaskAttr>(loc, parser.getContext(), length, StringRef(array));
}

void GlobalRowsMaskAttr::print(AsmPrinter &printer) const { printCount(printer, getLength(), getArray()); }
