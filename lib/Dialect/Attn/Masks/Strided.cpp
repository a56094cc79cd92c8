// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Row q sees key k iff k and q + w have the same remainder, with w the shift of
// the diagonal less the offset, modulo the stride and not negative. Remainders
// are taken of what cannot be negative, and q's once for a row.
//
#include "Diagonal.h"
#include "mlir/IR/DialectImplementation.h"
#include <numeric>

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

Index attn::residueOfKeys(StridedMaskAttr strided, IndexMath &math, const MaskScope &scope, Index row) {
  return math.rem(math.add(row, phaseOf(strided, math, scope)), strided.getStride());
}

std::optional<ResidueMask> attn::findResidues(MaskInterface mask, int64_t most) {
  auto divisorOf = [=](StridedMaskAttr strided) {
    int64_t divisor = std::min(most, strided.getStride());
    while (strided.getStride() % divisor)
      --divisor;
    return divisor;
  };
  StridedMaskAttr best;
  for (MaskInterface conjunct : mask.conjuncts())
    if (auto strided = dyn_cast<StridedMaskAttr>(conjunct); strided && (!best || divisorOf(strided) > divisorOf(best)))
      best = strided;
  int64_t stride = best ? divisorOf(best) : 1;
  if (stride == 1)
    return std::nullopt;
  SmallVector<MaskInterface> rest;
  for (MaskInterface conjunct : mask.conjuncts())
    if (conjunct != best || stride != best.getStride())
      rest.push_back(conjunct);
  MLIRContext *context = mask.getContext();
  return ResidueMask{StridedMaskAttr::get(context, stride, best.getOffset() % stride, best.getDiagonal()),
                     rest.empty()       ? MaskInterface(FullMaskAttr::get(context))
                     : rest.size() == 1 ? rest.front()
                                        : AndMaskAttr::get(context, rest)};
}

Cond StridedMaskAttr::emitKeep(IndexMath &math, const MaskScope &scope, Index q, Index k) const {
  return math.eq(math.rem(k, getStride()), residueOfKeys(*this, math, scope, q));
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

constexpr int64_t longestStride = int64_t(1) << 29;

/// The mask that `other` is, if it counts from the same diagonal.
static StridedMaskAttr alike(StridedMaskAttr mask, MaskInterface other) {
  auto strided = dyn_cast<StridedMaskAttr>(other);
  return strided && strided.getDiagonal() == mask.getDiagonal() ? strided : StridedMaskAttr();
}

/// The number below `modulus` that makes 1 of a, modulo it; they have no common divisor.
static int64_t inverseOf(int64_t a, int64_t modulus) {
  int64_t before = 0, x = 1;
  for (int64_t rest = modulus, next = a % modulus; next > 1;) {
    int64_t quotient = rest / next;
    std::tie(rest, next) = std::pair(next, rest % next);
    std::tie(before, x) = std::pair(x, before - quotient * x);
  }
  return (x % modulus + modulus) % modulus;
}

// Keys that both strides have are as far apart as their least common multiple (the Chinese remainder theorem).
MaskInterface StridedMaskAttr::intersected(MaskInterface mask) const {
  StridedMaskAttr other = alike(*this, mask);
  if (!other)
    return {};
  int64_t common = std::gcd(getStride(), other.getStride()), steps = other.getStride() / common;
  int64_t distance = other.getOffset() - getOffset();
  if (distance % common)
    return negated(FullMaskAttr::get(getContext()));
  if (getStride() > longestStride / steps) // no mask's
    return {};
  int64_t step = (distance / common % steps + steps) % steps * inverseOf(getStride() / common, steps) % steps;
  return get(getContext(), getStride() * steps, getOffset() + getStride() * step, getDiagonal());
}

MaskInterface StridedMaskAttr::united(MaskInterface mask) const {
  StridedMaskAttr other = alike(*this, mask);
  if (!other)
    return {};
  if (other.getStride() % getStride() == 0 && other.getOffset() % getStride() == getOffset())
    return *this;
  return complemented() == other ? FullMaskAttr::get(getContext()) : MaskInterface();
}

MaskInterface StridedMaskAttr::complemented() const {
  return getStride() == 2 ? get(getContext(), 2, 1 - getOffset(), getDiagonal()) : MaskInterface();
}

LogicalResult StridedMaskAttr::verify(function_ref<InFlightDiagnostic()> emitError, int64_t stride, int64_t offset,
                                      Diagonal) {
  if (stride < 1 || stride > longestStride) // C1
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
    return parseDiagonal(parser, diagonal, "`stride = N`, `offset = N`, ");
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
