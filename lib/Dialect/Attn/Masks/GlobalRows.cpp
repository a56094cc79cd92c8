// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A prefix with rows and keys swapped.
//
#include "Arrays.h"
#include "mlir/IR/DialectImplementation.h"

using namespace mlir;
using namespace attn;

bool GlobalRowsMaskAttr::keeps(const MaskPoint &p) const { return p.q < (getLength() ? *getLength() : p.load(0, 0)); }

SmallVector<MaskOperand> GlobalRowsMaskAttr::operands() const { return operandsOfCount(getLength(), getArray()); }

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
  return math.lt(q, countOf(getLength(), math, scope.withoutClamping(), scope.lenQ));
}

std::optional<Zones> GlobalRowsMaskAttr::zones(IndexMath &math, const MaskScope &scope) const {
  Zone zone;
  zone.q.hi = countOf(getLength(), math, scope, scope.lenQ);
  return Zones{zone};
}

bool GlobalRowsMaskAttr::affine(AffineTerms &terms) const {
  if (getLength())
    terms.compare(AffineTerms::Row, *getLength());
  return getLength().has_value();
}

MaskInterface GlobalRowsMaskAttr::simplified() const {
  return getLength() == 0 ? negated(FullMaskAttr::get(getContext())) : *this;
}

MaskInterface GlobalRowsMaskAttr::intersected(MaskInterface other) const { return eitherCount(*this, other, false); }

MaskInterface GlobalRowsMaskAttr::united(MaskInterface other) const { return eitherCount(*this, other, true); }

LogicalResult GlobalRowsMaskAttr::verify(function_ref<InFlightDiagnostic()> emitError, std::optional<int64_t> length,
                                         StringRef array) {
  return verifyCount(emitError, "number of global rows", length, array);
}

Attribute GlobalRowsMaskAttr::parse(AsmParser &parser, Type) { return parseCounted<GlobalRowsMaskAttr>(parser); }

void GlobalRowsMaskAttr::print(AsmPrinter &printer) const { printCount(printer, getLength(), getArray()); }
