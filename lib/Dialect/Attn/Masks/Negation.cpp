// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// `not`, and `diff`, which is a way to write `and` with a `not`. What some row of
// a tile sees is the complement of what all of its rows see under the mask, and
// the reverse: what was exact stays so. The complement of an `or` is the
// intersection of complements, which makes shorter lists.
//
#include "Composite.h"
#include "mlir/IR/DialectImplementation.h"

using namespace mlir;
using namespace attn;

MaskInterface attn::negated(MaskInterface mask) {
  if (auto twice = dyn_cast<NotMaskAttr>(mask))
    return twice.getMasks().front();
  return NotMaskAttr::get(mask.getContext(), mask);
}

static MaskInterface maskIn(NotMaskAttr mask) { return mask.getMasks().front(); }

/// `rangesOf` a mask and its scope asks in one of the two directions.
template <typename RangesOf>
static TileRanges complementOf(NotMaskAttr mask, IndexMath &math, const MaskScope &scope, Index extent,
                               RangesOf rangesOf) {
  std::vector<MaskInterface> parts = mask.conjuncts();
  if (parts.size() == 1) {
    TileRanges r = rangesOf(maskIn(mask), scope);
    return shortened(math, {complement(math, r.all, extent), complement(math, r.some, extent)});
  }
  TileRanges result = {{{0, extent}}, {{0, extent}}};
  unsigned first = 0;
  for (MaskInterface part : parts) {
    TileRanges r = rangesOf(part, scope.ofChild(first));
    result = {intersect(math, result.some, r.some), intersect(math, result.all, r.all)};
    result = shortened(math, std::move(result));
    first += part.operands().size();
  }
  return result;
}

/// What is behind a line that starts at 0. Others leave two intervals, which meet in
/// the lines that are empty.
static std::optional<IntervalList> behind(std::optional<IntervalList> line, Index extent) {
  if (line && line->size() == 1 && line->front().lo.is(0))
    return IntervalList{{line->front().hi, extent}};
  return std::nullopt;
}

bool NotMaskAttr::keeps(const MaskPoint &point) const { return !maskIn(*this).keeps(point); }

std::optional<IntervalList> NotMaskAttr::rowIntervals(IndexMath &math, const MaskScope &scope, Index q) const {
  return behind(maskIn(*this).rowIntervals(math, scope, q), scope.lenK);
}

std::optional<IntervalList> NotMaskAttr::columnIntervals(IndexMath &math, const MaskScope &scope, Index k) const {
  return behind(maskIn(*this).columnIntervals(math, scope, k), scope.lenQ);
}

TileRanges NotMaskAttr::keyRanges(IndexMath &math, const MaskScope &scope, Interval queries) const {
  return complementOf(*this, math, scope, scope.lenK,
                      [&](MaskInterface m, const MaskScope &s) { return m.keyRanges(math, s, queries); });
}

TileRanges NotMaskAttr::queryRanges(IndexMath &math, const MaskScope &scope, Interval keys) const {
  return complementOf(*this, math, scope, scope.lenQ,
                      [&](MaskInterface m, const MaskScope &s) { return m.queryRanges(math, s, keys); });
}

Cond NotMaskAttr::emitKeep(IndexMath &math, const MaskScope &scope, Index q, Index k) const {
  return math.logicalNot(maskIn(*this).emitKeep(math, scope, q, k));
}

TileTruth NotMaskAttr::tileTruth(IndexMath &math, const MaskScope &scope, Interval queries, Interval keys) const {
  TileTruth truth = maskIn(*this).tileTruth(math, scope, queries, keys);
  return {math.logicalNot(truth.all), math.logicalNot(truth.some)};
}

SmallVector<MaskOperand> NotMaskAttr::operands() const { return maskIn(*this).operands(); }

// not (a or b) = not a and not b; their arrays keep their order.
std::vector<MaskInterface> NotMaskAttr::conjuncts() const {
  auto either = dyn_cast<OrMaskAttr>(maskIn(*this));
  if (!either)
    return {*this};
  std::vector<MaskInterface> result;
  for (MaskInterface mask : either.getMasks())
    llvm::append_range(result, negated(mask).conjuncts());
  return result;
}

ArrayRef<MaskInterface> NotMaskAttr::children() const { return getMasks(); }

bool NotMaskAttr::asksForHead() const { return false; }

std::optional<Zones> NotMaskAttr::zones(IndexMath &math, const MaskScope &scope) const {
  std::optional<Zones> zones = maskIn(*this).zones(math, scope);
  return zones ? complement(math, *zones) : std::nullopt;
}

bool NotMaskAttr::affine(AffineTerms &terms) const { return maskIn(*this).affine(terms); }

LogicalResult NotMaskAttr::verify(function_ref<InFlightDiagnostic()> emitError, ArrayRef<MaskInterface> masks,
                                  ArrayRef<unsigned>) {
  return verifyMasks(emitError, "not", masks, 1, 1);
}

static Attribute getNegated(AsmParser &parser, SMLoc loc, ArrayRef<MaskInterface> masks) {
  if (masks.size() == 1 && isa<NotMaskAttr>(masks.front()))
    return negated(masks.front());
  return parser.getChecked<NotMaskAttr>(loc, parser.getContext(), masks);
}

Attribute NotMaskAttr::parse(AsmParser &parser, Type) {
  SMLoc loc = parser.getCurrentLocation();
  SmallVector<MaskInterface> masks;
  if (parseMasks(parser, masks))
    return {};
  return getNegated(parser, loc, masks);
}

void NotMaskAttr::print(AsmPrinter &printer) const { printMasks(printer, getMasks()); }

//===--------------------------------------------------------------------===//
// diff
//===--------------------------------------------------------------------===//

Attribute DiffMaskAttr::parse(AsmParser &parser, Type) {
  SMLoc loc = parser.getCurrentLocation();
  auto emitError = [&] { return parser.emitError(loc); };
  SmallVector<MaskInterface> masks;
  if (parseMasks(parser, masks) || failed(verifyMasks(emitError, getMnemonic(), masks, 2, 2)))
    return {};
  Attribute without = getNegated(parser, loc, masks[1]);
  if (!without)
    return {};
  SmallVector<MaskInterface> parts = {masks[0], cast<MaskInterface>(without)};
  return parser.getChecked<AndMaskAttr>(loc, parser.getContext(), ArrayRef<MaskInterface>(parts));
}

// Parsed as another, so it never comes to this.
void DiffMaskAttr::print(AsmPrinter &) const {}
