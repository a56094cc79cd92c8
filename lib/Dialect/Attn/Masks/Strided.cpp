// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Row q sees key k iff k and q + w have the same remainder, with w the shift of
// the diagonal less the offset, modulo the stride and not negative. Remainders
// are taken of what cannot be negative, and q's once for a row.
//
#include "Diagonal.h"
#include "mlir/IR/DialectImplementation.h"

using namespace mlir;
using namespace attn;

bool StridedMaskAttr::keeps(const MaskPoint &p) const {
  int64_t distance = diagonalOf(p, getDiagonal()) - p.k;
  return (distance % getStride() + getStride()) % getStride() == getOffset();
}

/// w above, within [0, stride].
static Index phaseOf(StridedMaskAttr mask, IndexMath &math, const MaskScope &scope) {
  int64_t stride = mask.getStride(), phase = mask.getOffset() ? stride - mask.getOffset() : 0;
  if (mask.getDiagonal() == Diagonal::top_left)
    return phase;
  Index shift = math.sub(math.add(math.rem(scope.lenK, stride), stride), math.rem(scope.lenQ, stride));
  return math.rem(math.add(shift, phase), stride);
}

/// From the first to the last of the positions in [0, extent) that have the
/// remainder of one of x, x + 1, ..., x + count - 1.
static TileRanges hullOf(IndexMath &math, Index x, Index count, int64_t stride, Index extent) {
  Index first = math.rem(x, stride); // the first stretch of `count` starts here, or ends behind 0
  Index lo = math.select(math.lt(stride, math.add(first, count)), 0, math.min(first, extent));
  Index behind =
      math.rem(math.sub(math.add(extent, stride - 1), first), stride); // of the last position, in its stretch
  Index rest = math.max(math.sub(behind, math.sub(count, 1)), 0);
  return {{{lo, math.max(math.sub(extent, rest), 0)}}, {}};
}

// Stride 1 is every key.
std::optional<IntervalList> StridedMaskAttr::rowIntervals(IndexMath &, const MaskScope &scope, Index) const {
  return getStride() == 1 ? std::optional(IntervalList{{0, scope.lenK}}) : std::nullopt;
}

TileRanges StridedMaskAttr::keyRanges(IndexMath &math, const MaskScope &scope, Interval queries) const {
  if (getStride() == 1)
    return {{{0, scope.lenK}}, {{0, scope.lenK}}};
  Index x = math.add(queries.lo, phaseOf(*this, math, scope));
  return hullOf(math, x, math.sub(queries.hi, queries.lo), getStride(), scope.lenK);
}

TileRanges StridedMaskAttr::queryRanges(IndexMath &math, const MaskScope &scope, Interval keys) const {
  if (getStride() == 1)
    return {{{0, scope.lenQ}}, {{0, scope.lenQ}}};
  Index x = math.add(keys.lo, math.sub(getStride(), phaseOf(*this, math, scope)));
  return hullOf(math, x, math.sub(keys.hi, keys.lo), getStride(), scope.lenQ);
}

Cond StridedMaskAttr::emitKeep(IndexMath &math, const MaskScope &scope, Index q, Index k) const {
  Index ofRow = math.rem(math.add(q, phaseOf(*this, math, scope)), getStride());
  return math.eq(math.rem(k, getStride()), ofRow);
}

// D - k takes every value between those at two corners.
TileTruth StridedMaskAttr::tileTruth(IndexMath &math, const MaskScope &scope, Interval queries, Interval keys) const {
  if (!queries.lo.isNumber() || !keys.lo.isNumber())
    return truthOfRanges(*this, math, scope, queries, keys);
  int64_t count = queries.hi.getNumber() - queries.lo.getNumber() + keys.hi.getNumber() - keys.lo.getNumber() - 1;
  if (getStride() == 1)
    return {Cond::of(true), Cond::of(true)};
  if (count >= getStride())
    return {Cond::of(true), Cond::of(false)};
  Index least = math.sub(math.add(queries.lo, diagonalShift(math, scope, getDiagonal())), math.sub(keys.hi, 1));
  int64_t missing = (getOffset() - least.getNumber()) % getStride(); // from the least one to the next that is visible
  missing += missing < 0 ? getStride() : 0;
  bool some = missing < count;
  return {Cond::runtime(some), Cond::runtime(some && count == 1)};
}

bool StridedMaskAttr::affine(AffineTerms &terms) const {
  if (getDiagonal() == Diagonal::bottom_right)
    terms.compare(AffineTerms::Diagonal, 0);
  terms.remainder(getStride());
  return true;
}

MaskInterface StridedMaskAttr::simplified() const {
  return getStride() == 1 ? MaskInterface(FullMaskAttr::get(getContext())) : *this;
}

/// Of strides of which one is a multiple of the other, and keys that the other has too.
static MaskInterface oneOf(StridedMaskAttr a, MaskInterface other, bool denser) {
  auto b = dyn_cast<StridedMaskAttr>(other);
  if (!b || a.getDiagonal() != b.getDiagonal() || b.getStride() % a.getStride())
    return {};
  if (b.getOffset() % a.getStride() == a.getOffset())
    return denser ? a : b;
  return denser ? MaskInterface() : negated(FullMaskAttr::get(a.getContext()));
}

MaskInterface StridedMaskAttr::intersected(MaskInterface other) const { return oneOf(*this, other, false); }

MaskInterface StridedMaskAttr::united(MaskInterface other) const { return oneOf(*this, other, true); }

LogicalResult StridedMaskAttr::verify(function_ref<InFlightDiagnostic()> emitError, int64_t stride, int64_t offset,
                                      Diagonal) {
  if (stride < 1 || stride > int64_t(1) << 29) // C1
    return emitError() << "expected `stride` within [1, 2^29], got: " << stride;
  if (offset < 0 || offset >= stride) // C2
    return emitError() << "expected `offset` within [0, stride), got: " << offset << " with stride = " << stride;
  return success();
}

Attribute StridedMaskAttr::parse(AsmParser &parser, Type) {
  SMLoc loc = parser.getCurrentLocation();
  std::optional<int64_t> stride, offset;
  Diagonal diagonal = Diagonal::top_left;
  auto parseNumber = [&](StringRef name, std::optional<int64_t> &number) -> ParseResult {
    if (number)
      return parser.emitError(parser.getCurrentLocation(), "`") << name << "` given twice";
    return failure(parser.parseEqual() || parser.parseInteger(number.emplace()));
  };
  auto parseItem = [&]() -> ParseResult {
    if (succeeded(parser.parseOptionalKeyword("stride")))
      return parseNumber("stride", stride);
    if (succeeded(parser.parseOptionalKeyword("offset")))
      return parseNumber("offset", offset);
    return parseDiagonal(parser, diagonal);
  };
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::LessGreater, parseItem))
    return {};
  if (!stride) { // C1
    parser.emitError(loc, "expected the `stride` of a strided mask");
    return {};
  }
  return parser.getChecked<StridedMaskAttr>(loc, parser.getContext(), *stride, offset.value_or(0), diagonal);
}

void StridedMaskAttr::print(AsmPrinter &printer) const {
  printer << "<stride = " << getStride();
  if (getOffset())
    printer << ", offset = " << getOffset();
  if (getDiagonal() != Diagonal::top_left)
    printer << ", " << stringifyDiagonal(getDiagonal());
  printer << ">";
}
