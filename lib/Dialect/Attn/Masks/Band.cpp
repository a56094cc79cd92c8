// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Diagonal.h"
#include "mlir/IR/DialectImplementation.h"

using namespace mlir;
using namespace attn;

bool BandMaskAttr::keeps(const MaskPoint &p) const {
  int64_t diagonal = diagonalOf(p, getDiagonal());
  return (!getLeft() || p.k >= diagonal - *getLeft()) && (!getRight() || p.k <= diagonal + *getRight());
}

std::optional<IntervalList> BandMaskAttr::rowIntervals(IndexMath &math, const MaskScope &scope, Index q) const {
  return diagonalRow(math, scope, getDiagonal(), getLeft(), getRight(), q);
}

std::optional<IntervalList> BandMaskAttr::columnIntervals(IndexMath &math, const MaskScope &scope, Index k) const {
  return diagonalColumn(math, scope, getDiagonal(), getLeft(), getRight(), k);
}

std::optional<int64_t> BandMaskAttr::reach(Diagonal diagonal) const {
  return diagonal == getDiagonal() ? getRight() : std::nullopt;
}

std::optional<Zones> BandMaskAttr::zones(IndexMath &, const MaskScope &) const {
  return diagonalZones(*DiagonalBounds::of(*this));
}

bool BandMaskAttr::affine(AffineTerms &terms) const { return diagonalTerms(terms, *DiagonalBounds::of(*this)); }

MaskInterface BandMaskAttr::simplified() const { return DiagonalBounds::of(*this)->mask(getContext()); }

MaskInterface BandMaskAttr::intersected(MaskInterface other) const { return intersectBounds(*this, other); }

MaskInterface BandMaskAttr::united(MaskInterface other) const { return uniteBounds(*this, other); }

MaskInterface BandMaskAttr::complemented() const { return complementBounds(*this); }

//===--------------------------------------------------------------------===//
// What causal masks and bands are to each other
//===--------------------------------------------------------------------===//

std::optional<DiagonalBounds> DiagonalBounds::of(MaskInterface mask) {
  if (auto causal = dyn_cast<CausalMaskAttr>(mask))
    return DiagonalBounds{std::nullopt, 0, causal.getDiagonal()};
  if (auto band = dyn_cast<BandMaskAttr>(mask))
    return DiagonalBounds{band.getLeft(), band.getRight(), band.getDiagonal()};
  return std::nullopt;
}

MaskInterface DiagonalBounds::mask(MLIRContext *context) const {
  if (!left && !right)
    return FullMaskAttr::get(context);
  if (left && right && *left + *right < 0)
    return negated(FullMaskAttr::get(context));
  if (!left && right == 0)
    return CausalMaskAttr::get(context, diagonal);
  return BandMaskAttr::get(context, left, right, diagonal);
}

/// The bounds of both, if they count from the same diagonal.
static std::optional<std::pair<DiagonalBounds, DiagonalBounds>> boundsOf(MaskInterface a, MaskInterface b) {
  std::optional<DiagonalBounds> x = DiagonalBounds::of(a), y = DiagonalBounds::of(b);
  if (!x || !y || x->diagonal != y->diagonal)
    return std::nullopt;
  return std::pair(*x, *y);
}

MaskInterface attn::intersectBounds(MaskInterface a, MaskInterface b) {
  auto both = boundsOf(a, b);
  if (!both)
    return {};
  auto tighter = [](Bound x, Bound y) { return x && y ? std::min(x, y) : x ? x : y; };
  auto [x, y] = *both;
  return DiagonalBounds{tighter(x.left, y.left), tighter(x.right, y.right), x.diagonal}.mask(a.getContext());
}

MaskInterface attn::uniteBounds(MaskInterface a, MaskInterface b) {
  auto both = boundsOf(a, b);
  if (!both)
    return {};
  auto [x, y] = *both;
  // Keys from D - left to D + right: with a gap between two of these, the union is none.
  auto apart = [](const DiagonalBounds &x, const DiagonalBounds &y) {
    return x.right && y.left && *x.right + 1 < -*y.left;
  };
  if (apart(x, y) || apart(y, x))
    return {};
  auto wider = [](Bound x, Bound y) { return x && y ? std::max(x, y) : std::nullopt; };
  return DiagonalBounds{wider(x.left, y.left), wider(x.right, y.right), x.diagonal}.mask(a.getContext());
}

MaskInterface attn::complementBounds(MaskInterface mask) {
  DiagonalBounds bounds = *DiagonalBounds::of(mask);
  if (bounds.left && bounds.right)
    return {};
  Bound other = -(bounds.left ? *bounds.left : *bounds.right) - 1;
  if (*other < -(int64_t(1) << 30)) // no band's bound
    return {};
  std::swap(bounds.left, bounds.right);
  (bounds.left ? bounds.left : bounds.right) = other;
  return bounds.mask(mask.getContext());
}

bool attn::diagonalTerms(AffineTerms &terms, const DiagonalBounds &bounds) {
  auto term = bounds.diagonal == Diagonal::top_left ? AffineTerms::KeyMinusRow : AffineTerms::KeyMinusDiagonal;
  if (bounds.left)
    terms.compare(term, -*bounds.left);
  if (bounds.right)
    terms.compare(term, *bounds.right + 1);
  return true;
}

Zones attn::diagonalZones(const DiagonalBounds &bounds) {
  Zone zone;
  if (bounds.left)
    zone.band(bounds.diagonal).lo = -*bounds.left;
  if (bounds.right)
    zone.band(bounds.diagonal).hi = *bounds.right + 1;
  return {zone};
}

LogicalResult BandMaskAttr::verify(function_ref<InFlightDiagnostic()> emitError, std::optional<int64_t> left,
                                   std::optional<int64_t> right, Diagonal) {
  if (!left && !right) // C1
    return emitError() << "expected a band with `left`, `right` or both (`#attn.full` has no bound)";
  constexpr int64_t limit = int64_t(1) << 30;
  for (auto [name, bound] : {std::pair("left", left), std::pair("right", right)})
    if (bound && (*bound < -limit || *bound > limit)) // C3
      return emitError() << "expected `" << name << "` of a band within [-2^30, 2^30], got: " << *bound;
  if (left && right && *left + *right < 0) // C2
    return emitError() << "expected left + right >= 0 in a band (else no pair is visible), got: left = " << *left
                       << ", right = " << *right;
  return success();
}

Attribute BandMaskAttr::parse(AsmParser &parser, Type) {
  SMLoc loc = parser.getCurrentLocation();
  std::optional<int64_t> left, right;
  Diagonal diagonal = Diagonal::top_left;
  auto parseBound = [&](std::optional<int64_t> &bound) {
    SMLoc loc = parser.getCurrentLocation();
    if (bound)
      return ParseResult(parser.emitError(loc, "bound of a band given twice"));
    return ParseResult(failure(parser.parseEqual() || parser.parseInteger(bound.emplace())));
  };
  auto parseItem = [&]() -> ParseResult {
    if (succeeded(parser.parseOptionalKeyword("left")))
      return parseBound(left);
    if (succeeded(parser.parseOptionalKeyword("right")))
      return parseBound(right);
    return parseDiagonal(parser, diagonal, "`left = N`, `right = N`, ");
  };
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::LessGreater, parseItem))
    return {};
  return parser.getChecked<BandMaskAttr>(loc, parser.getContext(), left, right, diagonal);
}

void BandMaskAttr::print(AsmPrinter &printer) const {
  printer << "<";
  if (getLeft())
    printer << "left = " << *getLeft();
  if (getRight())
    printer << (getLeft() ? ", " : "") << "right = " << *getRight();
  if (getDiagonal() != Diagonal::top_left)
    printer << ", " << stringifyDiagonal(getDiagonal());
  printer << ">";
}
