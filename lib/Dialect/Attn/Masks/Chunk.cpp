// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Diagonal.h"
#include "mlir/IR/DialectImplementation.h"

using namespace mlir;
using namespace attn;

bool ChunkMaskAttr::keeps(const MaskPoint &p) const {
  int64_t position = diagonalOf(p, getDiagonal());
  return position >= 0 && position / getLength() == p.k / getLength();
}

/// [lo, lo + length), with `clamps` within [0, extent).
static IntervalList chunkAt(IndexMath &math, Index lo, int64_t length, Index extent, bool clamps, bool mayBeNegative) {
  Index hi = math.add(lo, length);
  if (!clamps)
    return {{lo, hi}};
  auto at = [&](Index end) { return math.min(mayBeNegative ? math.max(end, 0) : end, extent); };
  return {{at(lo), at(hi)}};
}

// Row by row the chunk stays or is the next one, so ends never step back.
std::optional<IntervalList> ChunkMaskAttr::rowIntervals(IndexMath &math, const MaskScope &scope, Index q) const {
  int64_t length = getLength();
  if (getDiagonal() == Diagonal::top_left)
    return chunkAt(math, math.mul(math.floorDiv(q, length), length), length, scope.lenK, scope.clamps, false);
  // Rows before the first key fall into a chunk that ends at 0.
  Index position = math.add(q, diagonalShift(math, scope, getDiagonal()));
  Index next = math.floorDiv(math.max(math.add(position, length), 0), length);
  return chunkAt(math, math.sub(math.mul(next, length), length), length, scope.lenK, scope.clamps, true);
}

std::optional<IntervalList> ChunkMaskAttr::columnIntervals(IndexMath &math, const MaskScope &scope, Index k) const {
  Index begin = math.mul(math.floorDiv(k, getLength()), getLength());
  Index lo = math.sub(begin, diagonalShift(math, scope, getDiagonal()));
  return chunkAt(math, lo, getLength(), scope.lenQ, scope.clamps, getDiagonal() == Diagonal::bottom_right);
}

std::optional<Zones> ChunkMaskAttr::zones(IndexMath &, const MaskScope &) const {
  Zone zone;
  zone.chunks.push_back({Zone::Chunk::Within, getLength(), getDiagonal()});
  return Zones{zone};
}

bool ChunkMaskAttr::affine(AffineTerms &terms) const {
  bool ofRow = getDiagonal() == Diagonal::top_left;
  terms.quotient(ofRow ? AffineTerms::KeyMinusRow : AffineTerms::KeyMinusDiagonal, getLength());
  if (!ofRow)
    terms.compare(AffineTerms::Diagonal, 0);
  return true;
}

MaskInterface ChunkMaskAttr::simplified() const {
  return getLength() == 1 ? MaskInterface(BandMaskAttr::get(getContext(), 0, 0, getDiagonal())) : *this;
}

/// Of chunks that consist of others: the shorter or the longer ones.
static MaskInterface oneOf(ChunkMaskAttr a, MaskInterface other, bool longer) {
  auto b = dyn_cast<ChunkMaskAttr>(other);
  if (!b || a.getDiagonal() != b.getDiagonal() || b.getLength() % a.getLength())
    return {};
  return longer ? b : a;
}

MaskInterface ChunkMaskAttr::intersected(MaskInterface other) const { return oneOf(*this, other, false); }

MaskInterface ChunkMaskAttr::united(MaskInterface other) const { return oneOf(*this, other, true); }

LogicalResult ChunkMaskAttr::verify(function_ref<InFlightDiagnostic()> emitError, int64_t length, Diagonal) {
  if (length < 1 || length > int64_t(1) << 29) // C1
    return emitError() << "expected the length of a chunk within [1, 2^29], got: " << length;
  return success();
}

Attribute ChunkMaskAttr::parse(AsmParser &parser, Type) {
  SMLoc loc = parser.getCurrentLocation();
  int64_t length;
  Diagonal diagonal = Diagonal::top_left;
  if (parser.parseLess() || parser.parseInteger(length))
    return {};
  if (succeeded(parser.parseOptionalComma()) && parseDiagonal(parser, diagonal))
    return {};
  if (parser.parseGreater())
    return {};
  return parser.getChecked<ChunkMaskAttr>(loc, parser.getContext(), length, diagonal);
}

void ChunkMaskAttr::print(AsmPrinter &printer) const {
  printer << "<" << getLength();
  if (getDiagonal() != Diagonal::top_left)
    printer << ", " << stringifyDiagonal(getDiagonal());
  printer << ">";
}
