// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "attn/Dialect/Attn/IR/Attn.h"
#include "mlir/IR/DialectImplementation.h"

using namespace mlir;
using namespace attn;

namespace {
enum Operand : unsigned { QueryIds = 0, KeyIds = 1 };
} // namespace

bool DocumentMaskAttr::keeps(const MaskPoint &p) const {
  int64_t id = p.load(QueryIds, p.q);
  return id != 0 && id == p.load(KeyIds, p.k);
}

SmallVector<MaskOperand> DocumentMaskAttr::operands() const {
  return {{"segment_ids_q", OperandShape::PerQuery}, {"segment_ids_kv", OperandShape::PerKey}};
}

bool DocumentMaskAttr::worksPacked() const { return false; }

// Ids stand in memory in any order, so nothing is known of a tile before it is
// read: every tile may be visible in part.
TileRanges DocumentMaskAttr::keyRanges(IndexMath &, const MaskScope &scope, Interval) const {
  return {{{0, scope.lenK}}, {}};
}

TileRanges DocumentMaskAttr::queryRanges(IndexMath &, const MaskScope &scope, Interval) const {
  return {{{0, scope.lenQ}}, {}};
}

Cond DocumentMaskAttr::emitKeep(IndexMath &math, const MaskScope &scope, Index q, Index k) const {
  Index id = scope.load(QueryIds, q);
  return math.logicalAnd(math.logicalNot(math.eq(id, 0)), math.eq(id, scope.load(KeyIds, k)));
}

// The parser of MLIR skips what a parameterless attribute leaves behind; we don't.
Attribute DocumentMaskAttr::parse(AsmParser &parser, Type) {
  SMLoc loc = parser.getCurrentLocation();
  if (succeeded(parser.parseOptionalLess()))
    return parser.emitError(loc, "expected no parameters of `#attn.document`"), Attribute();
  return get(parser.getContext());
}

void DocumentMaskAttr::print(AsmPrinter &) const {}
