// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Arrays.h"
#include "mlir/IR/DialectImplementation.h"

using namespace mlir;
using namespace attn;

namespace {
enum Operand : unsigned { Node = 0, First = 1, End = 2 };
} // namespace

bool TreeMaskAttr::keeps(const MaskPoint &p) const {
  int64_t node = p.load(Node, p.q);
  return p.load(First, p.k) <= node && node < p.load(End, p.k);
}

SmallVector<MaskOperand> TreeMaskAttr::operands() const {
  constexpr auto shared = OperandHeads::shared;
  return {{getNode().str(), OperandShape::PerQuery, shared, OperandEntries::Own},
          {getFirst().str(), OperandShape::PerKey, shared, OperandEntries::Own},
          {getEnd().str(), OperandShape::PerKey, shared, OperandEntries::End}};
}

Cond TreeMaskAttr::emitKeep(IndexMath &math, const MaskScope &scope, Index q, Index k) const {
  Index node = scope.load(Node, q);
  return math.logicalAnd(math.le(scope.load(First, k), node), math.lt(node, scope.load(End, k)));
}

TileTruth TreeMaskAttr::tileTruth(IndexMath &math, const MaskScope &scope, Interval queries, Interval keys) const {
  std::optional<EntryRange> node = entriesOf(scope, Node, queries), first = entriesOf(scope, First, keys),
                            end = entriesOf(scope, End, keys);
  if (!node || !first || !end)
    return anything;
  return {math.logicalAnd(math.le(first->least, node->largest), math.lt(node->least, end->largest)),
          math.logicalAnd(math.le(first->largest, node->least), math.lt(node->largest, end->least))};
}

LogicalResult TreeMaskAttr::verify(function_ref<InFlightDiagnostic()> emitError, StringRef node, StringRef first,
                                   StringRef end) {
  return verifyArrayNames(emitError, "a tree's nodes", {node, first, end}); // C1
}

Attribute TreeMaskAttr::parse(AsmParser &parser, Type) {
  SMLoc loc = parser.getCurrentLocation();
  std::string names[3];
  if (parseArrayNames(parser, names))
    return {};
  return parser.getChecked<TreeMaskAttr>(loc, parser.getContext(), StringRef(names[0]), StringRef(names[1]),
                                         StringRef(names[2]));
}

void TreeMaskAttr::print(AsmPrinter &printer) const { printArrayNames(printer, {getNode(), getFirst(), getEnd()}); }
