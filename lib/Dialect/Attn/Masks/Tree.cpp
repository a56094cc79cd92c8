// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Both forms of a tree: by numbers of nodes, and by parents, of which a kernel ahead makes these.
//
#include "Arrays.h"
#include "Diagonal.h"
#include "mlir/IR/DialectImplementation.h"

using namespace mlir;
using namespace attn;

namespace {
enum : unsigned { Node = 0, First = 1, End = 2 };

/// What a mask asks whose operands from `at` on are these three.
struct Numbers {
  unsigned at;

  Cond keep(IndexMath &math, const MaskScope &scope, Index q, Index k) const {
    Index node = scope.load(at + Node, q);
    return math.logicalAnd(math.le(scope.load(at + First, k), node), math.lt(node, scope.load(at + End, k)));
  }

  TileTruth truth(IndexMath &math, const MaskScope &scope, Interval queries, Interval keys) const {
    std::optional<EntryRange> node = entriesOf(scope, at + Node, queries), first = entriesOf(scope, at + First, keys),
                              end = entriesOf(scope, at + End, keys);
    if (!node || !first || !end)
      return anything;
    return {math.logicalAnd(math.le(first->least, node->largest), math.lt(node->least, end->largest)),
            math.logicalAnd(math.le(first->largest, node->least), math.lt(node->largest, end->least))};
  }
};
} // namespace

//===--------------------------------------------------------------------===//
// By numbers
//===--------------------------------------------------------------------===//

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
  return Numbers{0}.keep(math, scope, q, k);
}

TileTruth TreeMaskAttr::tileTruth(IndexMath &math, const MaskScope &scope, Interval queries, Interval keys) const {
  return Numbers{0}.truth(math, scope, queries, keys);
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

//===--------------------------------------------------------------------===//
// By parents
//===--------------------------------------------------------------------===//

bool AncestorsMaskAttr::keeps(const MaskPoint &p) const {
  int64_t key = diagonalOf(p, Diagonal::bottom_right);
  while (key > p.k) {
    int64_t parent = p.load(0, key);
    key = parent < key ? parent : -1;
  }
  return key == p.k;
}

/// Behind the parents, what is made of them.
SmallVector<MaskOperand> AncestorsMaskAttr::operands() const {
  std::string parent = getParent().str();
  SmallVector<MaskOperand> list = {{parent, OperandShape::PerKey, OperandHeads::shared, OperandEntries::Parent},
                                   {parent + "_node", OperandShape::PerQuery},
                                   {parent + "_first", OperandShape::PerKey},
                                   {parent + "_end", OperandShape::PerKey}};
  for (MaskOperand &made : MutableArrayRef(list).drop_front())
    made.madeOf = parent;
  return list;
}

// No key follows a later one.
TileRanges AncestorsMaskAttr::keyRanges(IndexMath &math, const MaskScope &scope, Interval queries) const {
  return {diagonalRow(math, scope, Diagonal::bottom_right, std::nullopt, 0, math.sub(queries.hi, 1)), {}};
}

TileRanges AncestorsMaskAttr::queryRanges(IndexMath &math, const MaskScope &scope, Interval keys) const {
  return {diagonalColumn(math, scope, Diagonal::bottom_right, std::nullopt, 0, keys.lo), {}};
}

std::optional<int64_t> AncestorsMaskAttr::reach(Diagonal diagonal) const {
  return diagonal == Diagonal::bottom_right ? std::optional<int64_t>(0) : std::nullopt;
}

Cond AncestorsMaskAttr::emitKeep(IndexMath &math, const MaskScope &scope, Index q, Index k) const {
  return Numbers{1}.keep(math, scope, q, k);
}

TileTruth AncestorsMaskAttr::tileTruth(IndexMath &math, const MaskScope &scope, Interval queries, Interval keys) const {
  return Numbers{1}.truth(math, scope, queries, keys);
}

LogicalResult AncestorsMaskAttr::verify(function_ref<InFlightDiagnostic()> emitError, StringRef parent) {
  return verifyArrayNames(emitError, "parents", parent); // C1
}

Attribute AncestorsMaskAttr::parse(AsmParser &parser, Type) {
  SMLoc loc = parser.getCurrentLocation();
  std::string name;
  if (parseArrayNames(parser, name))
    return {};
  return parser.getChecked<AncestorsMaskAttr>(loc, parser.getContext(), StringRef(name));
}

void AncestorsMaskAttr::print(AsmPrinter &printer) const { printArrayNames(printer, getParent()); }
