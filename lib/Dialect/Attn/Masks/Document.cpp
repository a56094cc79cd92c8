// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Arrays.h"
#include "mlir/IR/DialectImplementation.h"

using namespace mlir;
using namespace attn;

namespace {
enum : unsigned { QueryIds = 0, KeyIds = 1 };
} // namespace

static constexpr StringRef usualNames[] = {"segment_ids_q", "segment_ids_kv"};

bool DocumentMaskAttr::keeps(const MaskPoint &p) const {
  int64_t id = p.load(QueryIds, p.q);
  return id != 0 && id == p.load(KeyIds, p.k);
}

SmallVector<MaskOperand> DocumentMaskAttr::operands() const {
  MaskOperand q{getIdsQ().str(), OperandShape::PerQuery}, kv{getIdsKv().str(), OperandShape::PerKey};
  q.hidden = kv.hidden = 0;
  return {q, kv};
}

TileTruth DocumentMaskAttr::tileTruth(IndexMath &math, const MaskScope &scope, Interval queries, Interval keys) const {
  std::optional<EntryRange> q = entriesOf(scope, QueryIds, queries), k = entriesOf(scope, KeyIds, keys);
  if (!q || !k)
    return anything;
  Index least = math.max(q->least, k->least), largest = math.min(q->largest, k->largest);
  Cond whole = math.logicalAnd(q->whole, k->whole),
       one = math.eq(math.min(q->least, k->least), math.max(q->largest, k->largest));
  return {math.le(least, largest), math.logicalAnd(whole, one)};
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
