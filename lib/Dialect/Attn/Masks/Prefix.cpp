// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "attn/Dialect/Attn/IR/Attn.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace attn;

bool PrefixMaskAttr::keeps(const MaskPoint &p) const { return p.k < (getLength() ? *getLength() : p.load(0, 0)); }

SmallVector<MaskOperand> PrefixMaskAttr::operands() const {
  if (getLength())
    return {};
  return {{getArray().str(), OperandShape::PerSequence}};
}

/// The prefix as every row sees it.
static Index prefixOf(PrefixMaskAttr mask, IndexMath &math, const MaskScope &scope) {
  if (!scope.cut)
    return mask.getLength() ? Index(*mask.getLength()) : scope.load(0, 0);
  if (mask.getLength())
    return math.min(*mask.getLength(), scope.lenK);
  return math.clamp(scope.load(0, 0), 0, scope.lenK);
}

std::optional<IntervalList> PrefixMaskAttr::rowIntervals(IndexMath &math, const MaskScope &scope, Index) const {
  return IntervalList{{0, prefixOf(*this, math, scope)}};
}

// Key k is seen by all rows or by none: over k, the ends of that list step back,
// so there are no `columnIntervals`.
TileRanges PrefixMaskAttr::queryRanges(IndexMath &math, const MaskScope &scope, Interval keys) const {
  Index prefix = prefixOf(*this, math, scope);
  auto rowsIf = [&](Cond seen) { return IntervalList{{0, math.select(seen, scope.lenQ, 0)}}; };
  return {rowsIf(math.lt(keys.lo, prefix)), rowsIf(math.le(keys.hi, prefix))};
}

LogicalResult PrefixMaskAttr::verify(function_ref<InFlightDiagnostic()> emitError, std::optional<int64_t> length,
                                     StringRef array) {
  if (length.has_value() == !array.empty()) // C1
    return emitError() << "expected a prefix with either a length or the name of an array";
  if (length && (*length < 0 || *length > int64_t(1) << 30)) // C2
    return emitError() << "expected the length of a prefix within [0, 2^30], got: " << *length;
  auto isWord = [](char c) { return llvm::isAlnum(c) || c == '_'; };
  if (!length && (llvm::isDigit(array.front()) || !llvm::all_of(array, isWord))) // C3
    return emitError() << "expected an identifier as the name of a prefix's array, got: \"" << array << "\"";
  return success();
}

Attribute PrefixMaskAttr::parse(AsmParser &parser, Type) {
  SMLoc loc = parser.getCurrentLocation();
  std::optional<int64_t> length;
  std::string array;
  if (parser.parseLess())
    return {};
  if (failed(parser.parseOptionalString(&array)) && parser.parseInteger(length.emplace()))
    return {};
  if (parser.parseGreater())
    return {};
  return parser.getChecked<PrefixMaskAttr>(loc, parser.getContext(), length, StringRef(array));
}

void PrefixMaskAttr::print(AsmPrinter &printer) const {
  if (getLength())
    printer << "<" << *getLength() << ">";
  else
    printer << "<\"" << getArray() << "\">";
}
