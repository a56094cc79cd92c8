// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Arrays.h"
#include "mlir/IR/DialectImplementation.h"

using namespace mlir;
using namespace attn;

namespace {
enum Operand : unsigned { QueryIds = 0, KeyIds = 1 };
} // namespace

static constexpr StringRef usualNames[] = {"segment_ids_q", "segment_ids_kv"};

bool DocumentMaskAttr::keeps(const MaskPoint &p) const {
  int64_t id = p.load(QueryIds, p.q);
  return id != 0 && id == p.load(KeyIds, p.k);
}

SmallVector<MaskOperand> DocumentMaskAttr::operands() const {
  return {{getIdsQ().str(), OperandShape::PerQuery}, {getIdsKv().str(), OperandShape::PerKey}};
}

Cond DocumentMaskAttr::emitKeep(IndexMath &math, const MaskScope &scope, Index q, Index k) const {
  Index id = scope.load(QueryIds, q);
  return math.logicalAnd(math.logicalNot(math.eq(id, 0)), math.eq(id, scope.load(KeyIds, k)));
}

LogicalResult DocumentMaskAttr::verify(function_ref<InFlightDiagnostic()> emitError, StringRef idsQ, StringRef idsKv) {
  return verifyArrayNames(emitError, "ids", {idsQ, idsKv}); // C1
}

Attribute DocumentMaskAttr::parse(AsmParser &parser, Type) {
  SMLoc loc = parser.getCurrentLocation();
  std::string names[] = {usualNames[0].str(), usualNames[1].str()};
  if (succeeded(parser.parseOptionalLess()) &&
      (parser.parseString(&names[0]) || parser.parseComma() || parser.parseString(&names[1]) || parser.parseGreater()))
    return {};
  return parser.getChecked<DocumentMaskAttr>(loc, parser.getContext(), StringRef(names[0]), StringRef(names[1]));
}

void DocumentMaskAttr::print(AsmPrinter &printer) const {
  StringRef names[] = {getIdsQ(), getIdsKv()};
  if (ArrayRef<StringRef>(names) != ArrayRef<StringRef>(usualNames))
    printArrayNames(printer, names);
}
