// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Diagonal.h"
#include "mlir/IR/DialectImplementation.h"

using namespace mlir;
using namespace attn;

bool CausalMaskAttr::keeps(const MaskPoint &p) const { return p.k <= diagonalOf(p, getDiagonal()); }

std::optional<IntervalList> CausalMaskAttr::rowIntervals(IndexMath &math, const MaskScope &scope, Index q) const {
  return diagonalRow(math, scope, getDiagonal(), /*left=*/std::nullopt, /*right=*/0, q);
}

std::optional<IntervalList> CausalMaskAttr::columnIntervals(IndexMath &math, const MaskScope &scope, Index k) const {
  return diagonalColumn(math, scope, getDiagonal(), /*left=*/std::nullopt, /*right=*/0, k);
}

std::optional<int64_t> CausalMaskAttr::reach(Diagonal diagonal) const {
  return diagonal == getDiagonal() ? std::optional<int64_t>(0) : std::nullopt;
}

std::optional<Zones> CausalMaskAttr::zones(IndexMath &, const MaskScope &) const {
  return diagonalZones(*DiagonalBounds::of(*this));
}

bool CausalMaskAttr::affine(AffineTerms &terms) const { return diagonalTerms(terms, *DiagonalBounds::of(*this)); }

MaskInterface CausalMaskAttr::intersected(MaskInterface other) const { return intersectBounds(*this, other); }

MaskInterface CausalMaskAttr::united(MaskInterface other) const { return uniteBounds(*this, other); }

MaskInterface CausalMaskAttr::complemented() const { return complementBounds(*this); }

ParseResult attn::parseDiagonal(AsmParser &parser, Diagonal &diagonal, StringRef others) {
  SMLoc loc = parser.getCurrentLocation();
  StringRef keyword;
  if (parser.parseKeyword(&keyword))
    return failure();
  std::optional<Diagonal> parsed = symbolizeDiagonal(keyword);
  if (!parsed)
    return parser.emitError(loc, "expected ") << others << "`top_left` or `bottom_right`, got: " << keyword;
  diagonal = *parsed;
  return success();
}

Attribute CausalMaskAttr::parse(AsmParser &parser, Type) {
  Diagonal diagonal = Diagonal::top_left;
  if (succeeded(parser.parseOptionalLess()) && (parseDiagonal(parser, diagonal) || parser.parseGreater()))
    return {};
  return get(parser.getContext(), diagonal);
}

void CausalMaskAttr::print(AsmPrinter &printer) const {
  if (getDiagonal() != Diagonal::top_left)
    printer << "<" << stringifyDiagonal(getDiagonal()) << ">";
}
