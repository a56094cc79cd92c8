// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What follows for every mask from a few of its methods.
//
#include "attn/Dialect/Attn/IR/Attn.h"
#include <numeric>

using namespace attn;

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
  return contains(math, *mask.rowIntervals(math, scope.withoutClamping(), q), k);
}

TileTruth attn::truthOfRanges(MaskInterface mask, IndexMath &math, const MaskScope &scope, Interval queries,
                              Interval keys) {
  MaskScope lists = scope;
  lists.extremes = nullptr; // those of a tile's keys are not of all that a list is over
  TileRanges ranges = mask.keyRanges(math, lists, queries);
  TileTruth truth = {Cond::of(false), Cond::of(false)};
  for (const Interval &i : ranges.some)
    truth.some = math.logicalOr(truth.some, math.lt(math.max(i.lo, keys.lo), math.min(i.hi, keys.hi)));
  for (const Interval &i : ranges.all)
    truth.all = math.logicalOr(truth.all, math.logicalAnd(math.le(i.lo, keys.lo), math.le(keys.hi, i.hi)));
  return truth;
}

TileClass attn::classify(MaskInterface mask, const MaskScope &scope, Interval queries, Interval keys) {
  IndexMath math;
  TileTruth truth = mask.tileTruth(math, scope, queries, keys);
  return !truth.some.getNumber() ? TileClass::Empty : truth.all.getNumber() ? TileClass::Full : TileClass::Partial;
}

int64_t attn::headsOf(MaskInterface mask) {
  int64_t heads = mlir::isa<HeadsMaskAttr>(mask) ? mask.children().size() : 1;
  for (MaskInterface child : mask.children())
    heads = std::min<int64_t>(std::lcm(heads, headsOf(child)), 65536);
  return heads;
}

int64_t attn::distinctHeads(MaskInterface mask, int64_t heads) {
  return hasPredicate(mask) && dependsOnHead(mask) ? heads : headsOf(mask);
}

unsigned attn::leavesOf(MaskInterface mask) {
  unsigned leaves = mask.children().empty();
  for (MaskInterface child : mask.children()) {
    unsigned own = leavesOf(child);
    leaves = mlir::isa<HeadsMaskAttr>(mask) ? std::max(leaves, own) : leaves + own;
  }
  return leaves;
}

bool attn::hasPredicate(MaskInterface mask) {
  return mlir::isa<PredicateMaskAttr>(mask) || llvm::any_of(mask.children(), hasPredicate);
}

bool attn::readsPositions(MaskInterface mask) {
  return llvm::any_of(mask.operands(), [](const MaskOperand &o) { return !o.isOne(); });
}

namespace {
/// Tiles of a sample.
struct SampledTiles {
  int64_t all = 0, inRuns = 0, empty = 0; ///< `empty`: of those in the runs of their query tile
};
} // namespace

/// Looks at the KV tiles of eight query tiles.
static SampledTiles sampleTiles(MaskInterface mask, int64_t rows, int64_t keys) {
  constexpr int64_t length = 8192, looks = 8;
  auto tileAt = [&](int64_t i, int64_t tile) {
    return Interval{Index::position(i * tile), Index::position(std::min((i + 1) * tile, length))};
  };
  MaskScope scope;
  scope.lenQ = scope.lenK = length;
  scope.heads = headsOf(mask);
  IndexMath math;
  SampledTiles tiles;
  for (int64_t look = 0; look < looks; ++look) {
    Interval queries = tileAt((2 * look + 1) * (length / rows) / (2 * looks), rows);
    IntervalList runs = mask.keyRanges(math, scope, queries).some;
    for (int64_t j = 0; j * keys < length; ++j, ++tiles.all) {
      if (llvm::none_of(runs, [&](const Interval &run) {
            return run.lo.getNumber() < (j + 1) * keys && j * keys < run.hi.getNumber();
          }))
        continue;
      ++tiles.inRuns;
      tiles.empty += !mask.tileTruth(math, scope, queries, tileAt(j, keys)).some.getNumber();
    }
  }
  return tiles;
}

bool attn::leavesTilesOut(MaskInterface mask) {
  if (readsPositions(mask))
    return true;
  if (!hasPredicate(mask) || !mask.operands().empty())
    return false;
  SampledTiles tiles = sampleTiles(mask, 128, 128);
  return 8 * tiles.empty > tiles.inRuns;
}

double attn::partInVisibleTiles(MaskInterface mask, int64_t rows, int64_t keys) {
  SampledTiles tiles = sampleTiles(mask, rows, keys);
  return double(tiles.inRuns - tiles.empty) / double(tiles.all);
}

int64_t attn::countKeys(MaskInterface mask, const MaskScope &scope, int64_t q) {
  IndexMath math;
  if (std::optional<IntervalList> row = mask.rowIntervals(math, scope, Index::position(q)))
    return countOf(*row);
  return countOf(mask.keyRanges(math, scope, {Index::position(q), Index::position(q + 1)}).some);
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

std::optional<llvm::SmallVector<MaskOperand>> attn::boundingLists(MaskInterface mask) {
  llvm::SmallVector<MaskOperand> lists;
  if (mlir::isa<AndMaskAttr>(mask)) {
    for (MaskInterface part : mask.children())
      if (auto bounds = boundingLists(part))
        return bounds;
    return std::nullopt;
  }
  if (mlir::isa<OrMaskAttr, HeadsMaskAttr>(mask)) {
    for (MaskInterface part : mask.children()) {
      auto bounds = boundingLists(part);
      if (!bounds)
        return std::nullopt;
      lists.append(*bounds);
    }
    return lists;
  }
  for (MaskOperand &operand : mask.operands())
    if (mlir::isa<BlockMapMaskAttr, BlockListMaskAttr>(mask) && operand.lists)
      lists.push_back(std::move(operand));
  return lists.empty() ? std::nullopt : std::optional(lists);
}

size_t attn::rangedIndex(llvm::ArrayRef<MaskOperand> ranged, const MaskOperand &array) {
  return llvm::find_if(ranged, [&](const MaskOperand &o) { return o == array && o.hidden == array.hidden; }) -
         ranged.begin();
}

llvm::SmallVector<MaskOperand> attn::rangedArrays(MaskInterface mask, OperandShape shape) {
  llvm::SmallVector<MaskOperand> ranged;
  for (MaskOperand &operand : mask.operands())
    if (operand.shape == shape && rangedIndex(ranged, operand) == ranged.size())
      ranged.push_back(std::move(operand));
  return ranged;
}
