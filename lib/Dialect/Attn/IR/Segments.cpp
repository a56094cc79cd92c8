// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "attn/Dialect/Attn/IR/Attn.h"

using namespace mlir;
using namespace attn;

std::optional<SegmentRule> SegmentRule::of(MaskInterface mask) {
  Attribute attr = mask;
  if (isa<FullMaskAttr>(attr))
    return SegmentRule{};
  auto ofDiagonal = [](Diagonal d) { return d == Diagonal::top_left ? Causal : BottomRight; };
  if (auto causal = dyn_cast<CausalMaskAttr>(attr))
    return SegmentRule{ofDiagonal(causal.getDiagonal()), {}, {}};
  auto band = dyn_cast<BandMaskAttr>(attr);
  if (!band)
    return std::nullopt;
  for (std::optional<int64_t> bound : {band.getLeft(), band.getRight()})
    if (bound && (*bound < 0 || *bound >= int64_t(1) << 29))
      return std::nullopt;
  if (band.getRight() == 0)
    return SegmentRule{ofDiagonal(band.getDiagonal()), band.getLeft(), {}};
  if (band.getDiagonal() != Diagonal::top_left) // of positions there is no such window
    return std::nullopt;
  return SegmentRule{Padding, band.getLeft(), band.getRight()};
}

LogicalResult SegmentsOp::verify() {
  if (!SegmentRule::of(getMask())) // C1
    return emitOpError(
               "expected mask #attn.full, #attn.causal, #attn.causal<bottom_right> or a band of one of them with "
               "bounds from 0 to 2^29 - 1 (bottom_right: with right = 0), got: ")
           << getMask();
  if (int64_t n = getSegments(); n < 1 || n > 2048) // C2
    return emitOpError("expected segments from 1 to 2048, got: ") << n;
  if (std::optional<int64_t> tile = getTiles(); tile && (*tile < 16 || *tile > 256 || *tile % 16)) // C3
    return emitOpError("expected tiles in multiples of 16 from 16 to 256, got: ") << *tile;
  if (!isIdentifier(getSymName())) // C4
    return emitOpError("expected an identifier as its name, got: \"") << getSymName() << "\"";
  return success();
}
