// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// `and` and `or`, generic over their masks. For key ranges, with A and B seen
// by a tile: some(A or B) and all(A and B) follow exactly from those of A and
// B; some(A and B) is bounded by the intersection and all(A or B) by the union,
// so both stay on the safe side. Where the rows themselves are known as
// intervals, these are used, since they are exact.
//
#include "Composite.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/ScopeExit.h"

using namespace mlir;
using namespace attn;

using Combine = IntervalList (*)(IndexMath &, ArrayRef<Interval>, ArrayRef<Interval>);
using Lists = std::optional<IntervalList>;

/// Calls `visit(mask, scope)` for each mask, in the scope of its own arrays.
template <typename Composite, typename Visit>
static void forEach(Composite composite, const MaskScope &scope, Visit visit) {
  for (auto [mask, first] : llvm::zip(composite.getMasks(), composite.getFirstArray()))
    visit(mask, scope.ofChild(first));
}

TileRanges attn::shortened(IndexMath &math, TileRanges ranges) {
  if (ranges.all.size() > maxIntervals)
    ranges.all.truncate(maxIntervals);
  if (ranges.some.size() > maxIntervals) {
    Interval hull = {INT32_MAX, 0};
    for (const Interval &i : ranges.some) {
      Cond empty = math.le(i.hi, i.lo);
      hull = {math.select(empty, hull.lo, math.min(hull.lo, i.lo)),
              math.select(empty, hull.hi, math.max(hull.hi, i.hi))};
    }
    hull.lo = math.min(hull.lo, hull.hi); // nothing at all: empty
    ranges.some = {hull};
  }
  return ranges;
}

/// Folds the ranges of all masks, `some` and `all` alike, with one operation.
template <typename Composite, typename Ranges>
static TileRanges foldRanges(Composite composite, IndexMath &math, const MaskScope &scope, Combine combine,
                             Ranges ranges) {
  std::optional<TileRanges> result;
  forEach(composite, scope, [&](MaskInterface mask, const MaskScope &child) {
    TileRanges r = ranges(mask, child);
    result = result ? TileRanges{combine(math, result->some, r.some), combine(math, result->all, r.all)} : r;
    result = shortened(math, std::move(*result));
  });
  return *result;
}

template <typename Composite, typename LinesOf, typename CombineLines>
static Lists foldLines(Composite composite, const MaskScope &scope, LinesOf linesOf, CombineLines combine) {
  Lists result;
  bool first = true;
  forEach(composite, scope, [&](MaskInterface mask, const MaskScope &child) {
    Lists lines = first || result ? linesOf(mask, child) : Lists();
    result = first ? lines : (lines && result ? combine(*result, *lines) : Lists());
    first = false;
  });
  return result;
}

template <typename Composite, typename Join>
static Cond foldKeep(Composite composite, IndexMath &math, const MaskScope &scope, Index q, Index k, Join join) {
  std::optional<Cond> result;
  forEach(composite, scope, [&](MaskInterface mask, const MaskScope &child) {
    Cond keep = mask.emitKeep(math, child, q, k);
    result = result ? join(*result, keep) : keep;
  });
  return *result;
}

SmallVector<MaskOperand> attn::allOperands(ArrayRef<MaskInterface> masks) {
  SmallVector<MaskOperand> result;
  for (MaskInterface mask : masks)
    result.append(mask.operands());
  return result;
}

SmallVector<unsigned> attn::firstArrays(ArrayRef<MaskInterface> masks) {
  SmallVector<unsigned> result = {0};
  for (MaskInterface mask : masks)
    result.push_back(result.back() + mask.operands().size());
  return result;
}

bool attn::allAffine(ArrayRef<MaskInterface> masks, AffineTerms &terms) {
  return llvm::all_of(masks, [&](MaskInterface mask) { return mask.affine(terms); });
}

/// Is there a mask that keeps the point (`wanted`), or drops it (not `wanted`)?
template <typename Composite> static bool anyKeeps(Composite composite, const MaskPoint &point, bool wanted) {
  ArrayRef<unsigned> first = composite.getFirstArray();
  for (auto [i, mask] : llvm::enumerate(composite.getMasks())) {
    bool ownArrays = first[i] > 0 && first[i + 1] > first[i];
    bool kept = ownArrays ? mask.keeps(point.ofChild(first[i])) : mask.keeps(point); // not copied: that is slow
    if (kept == wanted)
      return true;
  }
  return false;
}

static unsigned depthOf(MaskInterface mask) {
  unsigned depth = 0;
  for (MaskInterface child : mask.children())
    depth = std::max(depth, depthOf(child));
  return depth + 1;
}

LogicalResult attn::verifyMasks(function_ref<InFlightDiagnostic()> emitError, StringRef name,
                                ArrayRef<MaskInterface> masks, size_t least, size_t most) {
  if (masks.size() < least || masks.size() > most) { // C1
    static const char *const words[] = {"", "one mask", "two masks"};
    return emitError() << "expected " << (least == most ? "exactly " : "at least ") << words[least] << " in `#attn."
                       << name << "`, got: " << masks.size();
  }
  for (MaskInterface mask : masks)
    if (depthOf(mask) >= 32) // C2
      return emitError() << "expected masks nested at most 32 deep, got: " << depthOf(mask) + 1;
  unsigned leaves = 0; // that a pair is tested for
  for (MaskInterface mask : masks) {
    unsigned own = leavesOf(mask);
    leaves = name == "heads" ? std::max(leaves, own) : leaves + own;
  }
  if (leaves > 64) // C3, of heads C4
    return emitError() << "expected at most 64 masks to make one of, got: " << leaves
                       << "; intervals of rows or columns say the same with arrays";
  return success();
}

ParseResult attn::parseMask(AsmParser &parser, MaskInterface &mask) {
  SMLoc loc = parser.getCurrentLocation();
  const char *expected = "expected a mask such as #attn.causal, got: ";
  if (StringRef word; succeeded(parser.parseOptionalKeyword(&word)))
    return parser.emitError(loc, expected) << "`" << word << "`";
  Attribute parsed;
  if (parser.parseAttribute(parsed))
    return failure();
  if (!(mask = dyn_cast<MaskInterface>(parsed)))
    return parser.emitError(loc, expected) << parsed;
  return success();
}

ParseResult attn::parseMasks(AsmParser &parser, SmallVectorImpl<MaskInterface> &masks) {
  // The parser calls itself for each level; verifiers, that refuse far fewer, come when it is back.
  constexpr int deepest = 1000;
  static thread_local int depth = 0;
  if (depth == deepest)
    return parser.emitError(parser.getCurrentLocation(), "expected masks nested at most 32 deep, got: more than ")
           << deepest;
  ++depth;
  llvm::scope_exit leave([] { --depth; });
  return parser.parseCommaSeparatedList(AsmParser::Delimiter::LessGreater,
                                        [&] { return parseMask(parser, masks.emplace_back()); });
}

template <typename Composite> static Attribute parseComposite(AsmParser &parser) {
  SMLoc loc = parser.getCurrentLocation();
  SmallVector<MaskInterface> masks;
  if (parseMasks(parser, masks))
    return {};
  return parser.getChecked<Composite>(loc, parser.getContext(), ArrayRef<MaskInterface>(masks));
}

void attn::printMasks(AsmPrinter &printer, ArrayRef<MaskInterface> masks) {
  printer << "<";
  llvm::interleaveComma(masks, printer.getStream(), [&](MaskInterface mask) { printer << mask; });
  printer << ">";
}

/// What the parts say, and the lists, which know of parts that do not meet. In code, where parts
/// read entries or are predicates, lists are not asked: the walk goes along them anyway.
template <typename Composite, typename Join>
static TileTruth truthOfParts(Composite composite, IndexMath &math, const MaskScope &scope, Interval queries,
                              Interval keys, Join join) {
  bool code = !queries.lo.isNumber() || !keys.lo.isNumber();
  if (code && !readsPositions(composite) && !hasPredicate(composite))
    return truthOfRanges(composite, math, scope, queries, keys);
  std::optional<TileTruth> result;
  forEach(composite, scope, [&](MaskInterface mask, const MaskScope &child) {
    TileTruth part = mask.tileTruth(math, child, queries, keys);
    result = result ? TileTruth{join(result->some, part.some), join(result->all, part.all)} : part;
  });
  if (code)
    return *result;
  TileTruth lists = truthOfRanges(composite, math, scope, queries, keys);
  return {math.logicalAnd(result->some, lists.some), math.logicalOr(result->all, lists.all)};
}

//===--------------------------------------------------------------------===//
// and
//===--------------------------------------------------------------------===//

bool AndMaskAttr::keeps(const MaskPoint &point) const { return !anyKeeps(*this, point, false); }

/// The intersection of two lines of one interval each (known-empty ones are
/// kept: every line of a mask has the same number of intervals).
static Lists meetLines(IndexMath &math, const IntervalList &a, const IntervalList &b) {
  if (a.size() != 1 || b.size() != 1)
    return std::nullopt;
  return IntervalList{{math.max(a[0].lo, b[0].lo), math.min(a[0].hi, b[0].hi)}};
}

Lists AndMaskAttr::rowIntervals(IndexMath &math, const MaskScope &scope, Index q) const {
  return foldLines(
      *this, scope, [&](MaskInterface m, const MaskScope &s) { return m.rowIntervals(math, s, q); },
      [&](const IntervalList &a, const IntervalList &b) { return meetLines(math, a, b); });
}

Lists AndMaskAttr::columnIntervals(IndexMath &math, const MaskScope &scope, Index k) const {
  return foldLines(
      *this, scope, [&](MaskInterface m, const MaskScope &s) { return m.columnIntervals(math, s, k); },
      [&](const IntervalList &a, const IntervalList &b) { return meetLines(math, a, b); });
}

std::optional<Zones> AndMaskAttr::zones(IndexMath &math, const MaskScope &scope) const {
  std::optional<Zones> result = Zones{Zone()};
  forEach(*this, scope, [&](MaskInterface mask, const MaskScope &child) {
    std::optional<Zones> zones = result ? mask.zones(math, child) : std::nullopt;
    result = zones ? intersect(math, *result, *zones) : std::nullopt;
  });
  return result;
}

/// What parts say of a tile's lines, intersected; where that is not exact of those that are unions of zones, what
/// these say.
template <typename RangesOf>
static TileRanges rangesOfAll(AndMaskAttr mask, IndexMath &math, const MaskScope &scope, Lines lines, Interval which,
                              RangesOf rangesOf) {
  Zones known = {Zone()};
  bool cross = false; // do some zones of two parts never meet?
  SmallVector<IntervalList> others;
  TileRanges ranges =
      foldRanges(mask, math, scope, Combine(intersect), [&](MaskInterface part, const MaskScope &child) {
        TileRanges own = rangesOf(part, child);
        std::optional<Zones> zones = part.zones(math, child), both;
        if (zones && (both = intersect(math, known, *zones))) {
          cross |= both->size() < known.size() * zones->size();
          known = *both;
        } else {
          others.push_back(own.some);
        }
        return own;
      });
  if (!cross && linesAreEnough(known, lines))
    return ranges;
  ranges.some = seenBySome(math, scope, known, lines, which);
  for (const IntervalList &other : others)
    ranges.some = intersect(math, ranges.some, other);
  return shortened(math, std::move(ranges));
}

TileRanges AndMaskAttr::keyRanges(IndexMath &math, const MaskScope &scope, Interval queries) const {
  return rangesOfAll(*this, math, scope, Lines::Rows, queries,
                     [&](MaskInterface m, const MaskScope &s) { return m.keyRanges(math, s, queries); });
}

TileRanges AndMaskAttr::queryRanges(IndexMath &math, const MaskScope &scope, Interval keys) const {
  return rangesOfAll(*this, math, scope, Lines::Columns, keys,
                     [&](MaskInterface m, const MaskScope &s) { return m.queryRanges(math, s, keys); });
}

Cond AndMaskAttr::emitKeep(IndexMath &math, const MaskScope &scope, Index q, Index k) const {
  return foldKeep(*this, math, scope, q, k, [&](Cond a, Cond b) { return math.logicalAnd(a, b); });
}

SmallVector<MaskOperand> AndMaskAttr::operands() const { return allOperands(getMasks()); }

std::vector<MaskInterface> AndMaskAttr::conjuncts() const {
  std::vector<MaskInterface> result;
  for (MaskInterface mask : getMasks())
    llvm::append_range(result, mask.conjuncts());
  return result;
}

ArrayRef<MaskInterface> AndMaskAttr::children() const { return getMasks(); }

bool AndMaskAttr::affine(AffineTerms &terms) const { return allAffine(getMasks(), terms); }

bool AndMaskAttr::asksForHead() const { return false; }

TileTruth AndMaskAttr::tileTruth(IndexMath &math, const MaskScope &scope, Interval queries, Interval keys) const {
  return truthOfParts(*this, math, scope, queries, keys, [&](Cond a, Cond b) { return math.logicalAnd(a, b); });
}

LogicalResult AndMaskAttr::verify(function_ref<InFlightDiagnostic()> emitError, ArrayRef<MaskInterface> masks,
                                  ArrayRef<unsigned>) {
  return verifyMasks(emitError, "and", masks, 2, SIZE_MAX);
}

Attribute AndMaskAttr::parse(AsmParser &parser, Type) { return parseComposite<AndMaskAttr>(parser); }

void AndMaskAttr::print(AsmPrinter &printer) const { printMasks(printer, getMasks()); }

//===--------------------------------------------------------------------===//
// or
//===--------------------------------------------------------------------===//

bool OrMaskAttr::keeps(const MaskPoint &point) const { return anyKeeps(*this, point, true); }

/// The union of two lines as one interval, where both start at 0, as a prefix and
/// a causal row do. Other unions may have a hole, and intervals that merge from
/// some row on would break the order.
static Lists joinLines(IndexMath &math, const IntervalList &a, const IntervalList &b) {
  if (a.size() != 1 || b.size() != 1)
    return std::nullopt;
  if (a[0].lo.is(0) && b[0].lo.is(0))
    return IntervalList{{0, math.max(a[0].hi, b[0].hi)}};
  return std::nullopt;
}

Lists OrMaskAttr::rowIntervals(IndexMath &math, const MaskScope &scope, Index q) const {
  return foldLines(
      *this, scope, [&](MaskInterface m, const MaskScope &s) { return m.rowIntervals(math, s, q); },
      [&](const IntervalList &a, const IntervalList &b) { return joinLines(math, a, b); });
}

Lists OrMaskAttr::columnIntervals(IndexMath &math, const MaskScope &scope, Index k) const {
  return foldLines(
      *this, scope, [&](MaskInterface m, const MaskScope &s) { return m.columnIntervals(math, s, k); },
      [&](const IntervalList &a, const IntervalList &b) { return joinLines(math, a, b); });
}

TileRanges OrMaskAttr::keyRanges(IndexMath &math, const MaskScope &scope, Interval queries) const {
  if (rowIntervals(math, scope, queries.lo))
    return keyRangesOfRows(*this, math, scope, queries);
  return foldRanges(*this, math, scope, unite,
                    [&](MaskInterface m, const MaskScope &s) { return m.keyRanges(math, s, queries); });
}

TileRanges OrMaskAttr::queryRanges(IndexMath &math, const MaskScope &scope, Interval keys) const {
  if (columnIntervals(math, scope, keys.lo))
    return queryRangesOfColumns(*this, math, scope, keys);
  return foldRanges(*this, math, scope, unite,
                    [&](MaskInterface m, const MaskScope &s) { return m.queryRanges(math, s, keys); });
}

Cond OrMaskAttr::emitKeep(IndexMath &math, const MaskScope &scope, Index q, Index k) const {
  if (Lists row = rowIntervals(math, scope.withoutClamping(), q))
    return contains(math, *row, k);
  return foldKeep(*this, math, scope, q, k, [&](Cond a, Cond b) { return math.logicalOr(a, b); });
}

SmallVector<MaskOperand> OrMaskAttr::operands() const { return allOperands(getMasks()); }

std::vector<MaskInterface> OrMaskAttr::conjuncts() const { return {*this}; }

ArrayRef<MaskInterface> OrMaskAttr::children() const { return getMasks(); }

std::optional<Zones> OrMaskAttr::zones(IndexMath &math, const MaskScope &scope) const {
  std::optional<Zones> result = Zones();
  forEach(*this, scope, [&](MaskInterface mask, const MaskScope &child) {
    std::optional<Zones> zones = result ? mask.zones(math, child) : std::nullopt;
    result = zones ? unite(*result, *zones) : std::nullopt;
  });
  return result;
}

bool OrMaskAttr::affine(AffineTerms &terms) const { return allAffine(getMasks(), terms); }

bool OrMaskAttr::asksForHead() const { return false; }

TileTruth OrMaskAttr::tileTruth(IndexMath &math, const MaskScope &scope, Interval queries, Interval keys) const {
  return truthOfParts(*this, math, scope, queries, keys, [&](Cond a, Cond b) { return math.logicalOr(a, b); });
}

LogicalResult OrMaskAttr::verify(function_ref<InFlightDiagnostic()> emitError, ArrayRef<MaskInterface> masks,
                                 ArrayRef<unsigned>) {
  return verifyMasks(emitError, "or", masks, 2, SIZE_MAX);
}

Attribute OrMaskAttr::parse(AsmParser &parser, Type) { return parseComposite<OrMaskAttr>(parser); }

void OrMaskAttr::print(AsmPrinter &printer) const { printMasks(printer, getMasks()); }
