// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What follows for every mask from a few of its methods.
//
#include "attn/Dialect/Attn/IR/Attn.h"

using namespace attn;

MaskScope MaskScope::ofChild(unsigned first) const {
  MaskScope child = *this;
  child.load = [load = load, first](unsigned operand, Index position) { return load(first + operand, position); };
  if (extremes)
    child.extremes = [extremes = extremes, first](unsigned operand, Interval positions) {
      return extremes(first + operand, positions);
    };
  return child;
}

/// Interval number i of a line between `first` and `last` (both given as lists)
/// runs from i.lo to i.hi, and both ends never step back along the lines.
static TileRanges rangesBetween(IndexMath &math, const IntervalList &first, const IntervalList &last) {
  assert(first.size() == last.size() && "a mask's lists have one length");
  TileRanges ranges;
  for (auto [a, b] : llvm::zip(first, last)) {
    ranges.some.push_back({a.lo, b.hi});
    ranges.all.push_back({b.lo, a.hi});
  }
  return ranges;
}

/// Any tile may be visible in part.
static TileRanges anyOf(Index extent) { return {{{0, extent}}, {}}; }

TileRanges attn::keyRangesOfRows(MaskInterface mask, IndexMath &math, const MaskScope &scope, Interval queries) {
  std::optional<IntervalList> first = mask.rowIntervals(math, scope, queries.lo);
  if (!first)
    return anyOf(scope.lenK);
  return rangesBetween(math, *first, *mask.rowIntervals(math, scope, math.sub(queries.hi, 1)));
}

TileRanges attn::queryRangesOfColumns(MaskInterface mask, IndexMath &math, const MaskScope &scope, Interval keys) {
  std::optional<IntervalList> first = mask.columnIntervals(math, scope, keys.lo);
  if (!first)
    return anyOf(scope.lenQ);
  return rangesBetween(math, *first, *mask.columnIntervals(math, scope, math.sub(keys.hi, 1)));
}

Cond attn::keepOfRow(MaskInterface mask, IndexMath &math, const MaskScope &scope, Index q, Index k) {
  return contains(math, *mask.rowIntervals(math, scope.uncut(), q), k);
}

static bool meets(const IntervalList &list, Interval box) {
  return llvm::any_of(list, [&](const Interval &i) {
    return std::max(i.lo.getNumber(), box.lo.getNumber()) < std::min(i.hi.getNumber(), box.hi.getNumber());
  });
}

TileClass attn::classOfRanges(MaskInterface mask, const MaskScope &scope, Interval queries, Interval keys) {
  IndexMath math;
  TileRanges ranges = mask.keyRanges(math, scope, queries);
  if (!meets(ranges.some, keys))
    return TileClass::Empty;
  IntervalList missing = intersect(math, complement(math, ranges.all, keys.hi), {keys});
  return meets(missing, keys) ? TileClass::Partial : TileClass::Full;
}

int64_t attn::countKeys(MaskInterface mask, const MaskScope &scope, int64_t q) {
  IndexMath math;
  int64_t keys = 0;
  for (const Interval &i : mask.keyRanges(math, scope, {Index::runtime(q), Index::runtime(q + 1)}).some)
    keys += std::max<int64_t>(0, i.hi.getNumber() - i.lo.getNumber());
  return keys;
}

std::optional<int64_t> attn::reachOf(MaskInterface mask, Diagonal diagonal) {
  std::optional<int64_t> least;
  for (MaskInterface conjunct : mask.conjuncts())
    if (std::optional<int64_t> reach = conjunct.reach(diagonal))
      least = std::min(*reach, least.value_or(*reach));
  return least;
}

llvm::SmallVector<MaskOperand> attn::distinctOperands(MaskInterface mask) {
  llvm::SmallVector<MaskOperand> distinct;
  for (MaskOperand &operand : mask.operands())
    if (!llvm::is_contained(distinct, operand))
      distinct.push_back(std::move(operand));
  return distinct;
}
