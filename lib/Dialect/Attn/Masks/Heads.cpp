// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// `heads`: which of its masks a head has is a number that the launch knows, so every
// answer is chosen from those of all masks. Lists are filled up with empty intervals,
// lest their lengths differ.
//
#include "Composite.h"
#include "mlir/IR/DialectImplementation.h"

using namespace mlir;
using namespace attn;

/// Of a head, in numbers.
static size_t maskOf(HeadsMaskAttr mask, const MaskPoint &point) {
  return point.head * int64_t(mask.getMasks().size()) / point.heads;
}

/// Folds the answers of all masks to that of the scope's head.
template <typename Answer, typename AnswerOf, typename Select>
static Answer choose(HeadsMaskAttr mask, IndexMath &math, const MaskScope &scope, AnswerOf answerOf, Select select) {
  ArrayRef<MaskInterface> masks = mask.getMasks();
  int64_t together = std::max<int64_t>(1, scope.heads / int64_t(masks.size()));
  Answer answer = answerOf(masks[0], scope.ofChild(mask.getFirstArray()[0]));
  for (size_t i = 1; i < masks.size(); ++i)
    answer = select(math.lt(scope.head, int64_t(i) * together), answer,
                    answerOf(masks[i], scope.ofChild(mask.getFirstArray()[i])));
  return answer;
}

static IntervalList selectList(IndexMath &math, Cond first, IntervalList a, IntervalList b) {
  while (a.size() != b.size()) {
    IntervalList &shorter = a.size() < b.size() ? a : b;
    shorter.push_back({0, 0});
  }
  IntervalList chosen;
  for (auto [x, y] : llvm::zip(a, b))
    chosen.push_back({math.select(first, x.lo, y.lo), math.select(first, x.hi, y.hi)});
  return chosen;
}

static TileRanges selectRanges(IndexMath &math, Cond first, const TileRanges &a, const TileRanges &b) {
  return {selectList(math, first, a.some, b.some), selectList(math, first, a.all, b.all)};
}

/// Of single intervals only, as those of other connectives.
template <typename LinesOf>
static std::optional<IntervalList> chooseLines(HeadsMaskAttr mask, IndexMath &math, const MaskScope &scope,
                                               LinesOf linesOf) {
  using Lists = std::optional<IntervalList>;
  return choose<Lists>(mask, math, scope, linesOf, [&](Cond first, const Lists &a, const Lists &b) -> Lists {
    if (!a || !b || a->size() != 1 || b->size() != 1)
      return std::nullopt;
    return selectList(math, first, *a, *b);
  });
}

bool HeadsMaskAttr::keeps(const MaskPoint &point) const {
  size_t i = maskOf(*this, point);
  return getMasks()[i].keeps(point.ofChild(getFirstArray()[i]));
}

std::optional<IntervalList> HeadsMaskAttr::rowIntervals(IndexMath &math, const MaskScope &scope, Index q) const {
  return chooseLines(*this, math, scope,
                     [&](MaskInterface m, const MaskScope &s) { return m.rowIntervals(math, s, q); });
}

std::optional<IntervalList> HeadsMaskAttr::columnIntervals(IndexMath &math, const MaskScope &scope, Index k) const {
  return chooseLines(*this, math, scope,
                     [&](MaskInterface m, const MaskScope &s) { return m.columnIntervals(math, s, k); });
}

TileRanges HeadsMaskAttr::keyRanges(IndexMath &math, const MaskScope &scope, Interval queries) const {
  return choose<TileRanges>(
      *this, math, scope, [&](MaskInterface m, const MaskScope &s) { return m.keyRanges(math, s, queries); },
      [&](Cond first, const TileRanges &a, const TileRanges &b) { return selectRanges(math, first, a, b); });
}

TileRanges HeadsMaskAttr::queryRanges(IndexMath &math, const MaskScope &scope, Interval keys) const {
  return choose<TileRanges>(
      *this, math, scope, [&](MaskInterface m, const MaskScope &s) { return m.queryRanges(math, s, keys); },
      [&](Cond first, const TileRanges &a, const TileRanges &b) { return selectRanges(math, first, a, b); });
}

Cond HeadsMaskAttr::emitKeep(IndexMath &math, const MaskScope &scope, Index q, Index k) const {
  return choose<Cond>(
      *this, math, scope, [&](MaskInterface m, const MaskScope &s) { return m.emitKeep(math, s, q, k); },
      [&](Cond first, Cond a, Cond b) {
        return math.logicalOr(math.logicalAnd(first, a), math.logicalAnd(math.logicalNot(first), b));
      });
}

SmallVector<MaskOperand> HeadsMaskAttr::operands() const { return allOperands(getMasks()); }

std::vector<MaskInterface> HeadsMaskAttr::conjuncts() const { return {*this}; }

ArrayRef<MaskInterface> HeadsMaskAttr::children() const { return getMasks(); }

TileTruth HeadsMaskAttr::tileTruth(IndexMath &math, const MaskScope &scope, Interval queries, Interval keys) const {
  return choose<TileTruth>(
      *this, math, scope, [&](MaskInterface m, const MaskScope &s) { return m.tileTruth(math, s, queries, keys); },
      [&](Cond first, const TileTruth &a, const TileTruth &b) {
        auto either = [&](Cond x, Cond y) {
          return math.logicalOr(math.logicalAnd(first, x), math.logicalAnd(math.logicalNot(first), y));
        };
        return TileTruth{either(a.some, b.some), either(a.all, b.all)};
      });
}

// A head is no term.
// Which of its masks' zones count is known at run time only.
std::optional<Zones> HeadsMaskAttr::zones(IndexMath &, const MaskScope &) const { return std::nullopt; }

bool HeadsMaskAttr::affine(AffineTerms &) const { return false; }

bool HeadsMaskAttr::asksForHead() const { return true; }

LogicalResult HeadsMaskAttr::verify(function_ref<InFlightDiagnostic()> emitError, ArrayRef<MaskInterface> masks,
                                    ArrayRef<unsigned>) {
  return verifyMasks(emitError, "heads", masks, 2, SIZE_MAX);
}

Attribute HeadsMaskAttr::parse(AsmParser &parser, Type) {
  SMLoc loc = parser.getCurrentLocation();
  SmallVector<MaskInterface> masks;
  if (parseMasks(parser, masks))
    return {};
  return parser.getChecked<HeadsMaskAttr>(loc, parser.getContext(), ArrayRef<MaskInterface>(masks));
}

void HeadsMaskAttr::print(AsmPrinter &printer) const { printMasks(printer, getMasks()); }
