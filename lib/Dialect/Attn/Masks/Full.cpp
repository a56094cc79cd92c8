// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "attn/Dialect/Attn/IR/Attn.h"
#include "mlir/IR/DialectImplementation.h"

using namespace mlir;
using namespace attn;

bool FullMaskAttr::keeps(const MaskPoint &) const { return true; }

std::optional<IntervalList> FullMaskAttr::rowIntervals(IndexMath &, const MaskScope &scope, Index) const {
  return IntervalList{{0, scope.lenK}};
}

std::optional<IntervalList> FullMaskAttr::columnIntervals(IndexMath &, const MaskScope &scope, Index) const {
  return IntervalList{{0, scope.lenQ}};
}

std::optional<Zones> FullMaskAttr::zones(IndexMath &, const MaskScope &) const { return Zones{Zone()}; }

bool FullMaskAttr::affine(AffineTerms &) const { return true; }

// The parser of MLIR skips what a parameterless attribute leaves behind; we don't.
Attribute FullMaskAttr::parse(AsmParser &parser, Type) {
  SMLoc loc = parser.getCurrentLocation();
  if (succeeded(parser.parseOptionalLess()))
    return parser.emitError(loc, "expected no parameters of `#attn.full`"), Attribute();
  return get(parser.getContext());
}

void FullMaskAttr::print(AsmPrinter &) const {}
