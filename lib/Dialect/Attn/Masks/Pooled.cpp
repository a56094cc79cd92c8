// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Arrays.h"
#include "mlir/IR/DialectImplementation.h"

using namespace mlir;
using namespace attn;

SmallVector<MaskOperand> PooledMaskAttr::operands() const {
  return operandsOfCount(getArray().empty() ? std::optional<int64_t>(0) : std::nullopt, getArray());
}

bool PooledMaskAttr::keeps(const MaskPoint &p) const {
  int64_t position = getArray().empty() ? p.q : p.q + p.load(0, 0) - p.lenQ;
  return p.k * getStride() + getLength() - 1 <= position;
}

/// What a row's number lacks of its position.
static Index shiftOf(PooledMaskAttr mask, IndexMath &math, const MaskScope &scope) {
  return mask.getArray().empty() ? Index(0) : math.sub(scope.load(0, 0), scope.lenQ);
}

// A later row sees as many windows or more.
std::optional<IntervalList> PooledMaskAttr::rowIntervals(IndexMath &math, const MaskScope &scope, Index q) const {
  // Windows that end at the row or before: one less would end a stride before the first one's end.
  int64_t before = getStride() - getLength() + 1;
  Index end = math.add(math.add(q, shiftOf(*this, math, scope)), before);
  Index count = math.floorDiv(getArray().empty() && before >= 0 ? end : math.max(end, 0), getStride());
  return IntervalList{{0, scope.clamps ? math.min(count, scope.lenK) : count}};
}

std::optional<IntervalList> PooledMaskAttr::columnIntervals(IndexMath &math, const MaskScope &scope, Index k) const {
  // Keys of a tile beyond the last one have positions beyond 2^31, if the stride is long.
  constexpr int64_t farthest = int64_t(1) << 30;
  Index first = math.add(math.mul(math.min(k, farthest / getStride()), getStride()), getLength() - 1);
  Index lo = math.sub(first, shiftOf(*this, math, scope));
  return IntervalList{{scope.clamps ? math.clamp(lo, 0, scope.lenQ) : lo, scope.lenQ}};
}

MaskInterface PooledMaskAttr::simplified() const {
  bool isCausal = getLength() == 1 && getStride() == 1 && getArray().empty();
  return isCausal ? MaskInterface(CausalMaskAttr::get(getContext(), Diagonal::top_left)) : *this;
}

/// The mask with the shorter or the longer windows, if those of both begin at the same positions.
static MaskInterface oneOf(PooledMaskAttr a, MaskInterface other, bool longer) {
  auto b = dyn_cast<PooledMaskAttr>(other);
  if (!b || a.getStride() != b.getStride() || a.getArray() != b.getArray())
    return {};
  return (a.getLength() > b.getLength()) == longer ? a : b;
}

MaskInterface PooledMaskAttr::intersected(MaskInterface other) const { return oneOf(*this, other, true); }

MaskInterface PooledMaskAttr::united(MaskInterface other) const { return oneOf(*this, other, false); }

LogicalResult PooledMaskAttr::verify(function_ref<InFlightDiagnostic()> emitError, int64_t length, int64_t stride,
                                     StringRef array) {
  constexpr int64_t most = int64_t(1) << 20;
  for (auto [name, number] : {std::pair("length", length), std::pair("stride", stride)})
    if (number < 1 || number > most) // C1
      return emitError() << "expected the " << name << " of pooled windows within [1, 2^20], got: " << number;
  return array.empty() ? success() : verifyArrayNames(emitError, "numbers of positions", array); // C2
}

Attribute PooledMaskAttr::parse(AsmParser &parser, Type) {
  SMLoc loc = parser.getCurrentLocation();
  int64_t length, stride;
  std::string array;
  if (parser.parseLess() || parser.parseKeyword("length") || parser.parseEqual() || parser.parseInteger(length) ||
      parser.parseComma() || parser.parseKeyword("stride") || parser.parseEqual() || parser.parseInteger(stride))
    return {};
  if (succeeded(parser.parseOptionalComma()) &&
      (parser.parseKeyword("keys") || parser.parseEqual() || parser.parseString(&array)))
    return {};
  if (parser.parseGreater())
    return {};
  return parser.getChecked<PooledMaskAttr>(loc, parser.getContext(), length, stride, StringRef(array));
}

void PooledMaskAttr::print(AsmPrinter &printer) const {
  printer << "<length = " << getLength() << ", stride = " << getStride();
  if (!getArray().empty()) {
    printer << ", keys = ";
    printer.printString(getArray());
  }
  printer << ">";
}
