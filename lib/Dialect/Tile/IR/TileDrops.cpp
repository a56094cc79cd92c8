// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "attn/Dialect/Tile/IR/Tile.h"

using namespace mlir;
using namespace attn::tile;

LogicalResult attn::tile::verifyDropped(Operation *op, int64_t below) {
  if (below < 1 || below >= 1 << 15)
    return op->emitOpError("expected to drop what is below 1 to 2^15 - 1, got: ") << below;
  return success();
}

LogicalResult DropOp::verify() {
  bool held = isa<HeldType>(getPlace().getType());
  if (held && getFactor()) // C2
    return emitOpError("expected a fragment or scores to multiply, got: ") << getPlace().getType();
  bool pairs = isa<PairsType>(getRow0().getType()) || isa<PairsType>(getCol0().getType());
  if ((pairs && (held || getTurned())) || (held && getTurned())) // C3
    return emitOpError("expected rows and columns that are plain and not turned of what is held, and rows of queries of pairs, got: ")
           << getRow0().getType() << " and " << getCol0().getType() << (getTurned() ? " turned" : "") << " of "
           << getPlace().getType();
  return verifyDropped(*this, getBelow()); // C1
}

LogicalResult DropGradsOp::verify() {
  FragType grad = getGrad().getType();
  int64_t rows = getTurned() ? grad.getCols() : grad.getRows();
  if (getStatistics().getType().getRows() != rows) // C2
    return emitOpError("expected statistics of ") << rows << " rows, got: " << getStatistics().getType();
  if (getWeighted()) { // C3
    auto shapeOf = [](auto type) { return std::tuple(type.getRows(), type.getCols(), type.getWarps()); };
    Type type = getWeighted().getType();
    if (isa<FragType>(type) ? type != grad : shapeOf(cast<HeldType>(type)) != shapeOf(grad))
      return emitOpError("expected weights with the rows, columns and warps of ") << grad << ", got: " << type;
  }
  return verifyDropped(*this, getBelow()); // C1
}
