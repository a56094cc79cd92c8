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
    return parseDiagonal(parser, diagonal);
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
