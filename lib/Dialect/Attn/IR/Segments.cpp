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

LogicalResult attn::verifySegmentRule(Operation *op, MaskInterface mask, int64_t segments) {
  if (!SegmentRule::of(mask))
    return op->emitOpError(
               "expected mask #attn.full, #attn.causal, #attn.causal<bottom_right> or a band of one of them "
               "with bounds from 0 to 2^29 - 1 (bottom_right: with right = 0), got: ")
           << mask;
  if (segments < 1 || segments > 2048)
    return op->emitOpError("expected segments from 1 to 2048, got: ") << segments;
  return success();
}

LogicalResult attn::verifyListedTile(Operation *op, int64_t queries) {
  if (queries < 16 || queries > 256 || queries % 16)
    return op->emitOpError("expected tiles in multiples of 16 from 16 to 256, got: ") << queries;
  return success();
}

SegmentsOp attn::expandSegments(ProblemOp problem) {
  OpBuilder b(problem);
  std::string name = freeSymbol(problem->getParentOp(), problem.getSymName() + "_segments");
  auto segments = SegmentsOp::create(b, problem.getLoc(), b.getStringAttr(name), problem.getMask(),
                                     problem.getSegmentsAttr(), /*maps=*/UnitAttr(), /*tiles=*/IntegerAttr());
  problem.removeSegmentsAttr();
  return segments;
}

LogicalResult SegmentsOp::verify() {
  if (failed(verifySegmentRule(*this, getMask(), getSegments()))) // C1, C2
    return failure();
  if (getTiles() && failed(verifyListedTile(*this, *getTiles()))) // C3
    return failure();
  if (!isIdentifier(getSymName())) // C4
    return emitOpError("expected an identifier as its name, got: \"") << getSymName() << "\"";
  return success();
}
