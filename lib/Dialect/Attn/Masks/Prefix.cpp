// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Arrays.h"
#include "mlir/IR/DialectImplementation.h"

using namespace mlir;
using namespace attn;

bool PrefixMaskAttr::keeps(const MaskPoint &p) const { return p.k < (getLength() ? *getLength() : p.load(0, 0)); }

SmallVector<MaskOperand> PrefixMaskAttr::operands() const { return operandsOfCount(getLength(), getArray()); }

std::optional<IntervalList> PrefixMaskAttr::rowIntervals(IndexMath &math, const MaskScope &scope, Index) const {
  return IntervalList{{0, countOf(getLength(), math, scope, scope.lenK)}};
}

// Key k is seen by all rows or by none: over k, the ends of that list step back,
// so there are no `columnIntervals`.
TileRanges PrefixMaskAttr::queryRanges(IndexMath &math, const MaskScope &scope, Interval keys) const {
  Index prefix = countOf(getLength(), math, scope, scope.lenK);
  auto rowsIf = [&](Cond seen) { return IntervalList{{0, math.select(seen, scope.lenQ, 0)}}; };
  return {rowsIf(math.lt(keys.lo, prefix)), rowsIf(math.le(keys.hi, prefix))};
}

std::optional<Zones> PrefixMaskAttr::zones(IndexMath &math, const MaskScope &scope) const {
  Zone zone;
  zone.k.hi = countOf(getLength(), math, scope, scope.lenK);
  return Zones{zone};
}

bool PrefixMaskAttr::affine(AffineTerms &terms) const {
  if (getLength())
    terms.compare(AffineTerms::Key, *getLength());
  return getLength().has_value();
}

MaskInterface PrefixMaskAttr::simplified() const {
  return getLength() == 0 ? negated(FullMaskAttr::get(getContext())) : *this;
}

MaskInterface PrefixMaskAttr::intersected(MaskInterface other) const { return eitherCount(*this, other, false); }

MaskInterface PrefixMaskAttr::united(MaskInterface other) const { return eitherCount(*this, other, true); }

LogicalResult PrefixMaskAttr::verify(function_ref<InFlightDiagnostic()> emitError, std::optional<int64_t> length,
                                     StringRef array) {
  return verifyCount(emitError, "length of a prefix", length, array);
}

Attribute PrefixMaskAttr::parse(AsmParser &parser, Type) { return parseCounted<PrefixMaskAttr>(parser); }

void PrefixMaskAttr::print(AsmPrinter &printer) const { printCount(printer, getLength(), getArray()); }
