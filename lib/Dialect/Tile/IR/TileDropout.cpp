// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "attn/Dialect/Tile/IR/Tile.h"

using namespace mlir;
using namespace attn::tile;

LogicalResult attn::tile::verifyDropoutOperands(Operation *op, int64_t below) {
  if (below < 1 || below >= 1 << 15)
    return op->emitOpError("expected to drop what is below 1 to 2^15 - 1, got: ") << below;
  return success();
}

LogicalResult DropoutOp::verify() {
  bool operand = isa<RegisterOperandType>(getPlace().getType());
  if (getFactor() && (operand || getMarks())) // C2
    return emitOpError("expected a fragment or scores to multiply, and none to mark, got: ") << getPlace().getType();
  bool rows = isa<PairsType>(getRow0().getType()), columns = isa<PairsType>(getCol0().getType());
  if (((rows || columns) && (getTransposed() || getMarks())) || (columns && (operand || !rows))) // C3
    return emitOpError(
               "expected pairs only where nothing is transposed or marked, and in columns only of rows that are "
               "and not of what is "
               "operand, got: ")
           << getRow0().getType() << " and " << getCol0().getType();
  return verifyDropoutOperands(*this, getBelow()); // C1
}

LogicalResult DropoutBitsOp::verify() { return verifyDropoutOperands(*this, getBelow()); } // C1

LogicalResult DropoutGradScoresOp::verify() {
  FragType grad = getGrad().getType();
  for (Value place : {getP(), getWeighted()}) // C1
    if (auto operand = place ? dyn_cast<RegisterOperandType>(place.getType()) : RegisterOperandType();
        place && (operand ? std::tuple(operand.getRows(), operand.getCols(), operand.getWarps()) !=
                                std::tuple(grad.getRows(), grad.getCols(), grad.getWarps())
                          : place.getType() != grad))
      return emitOpError("expected probabilities and weights with the rows, columns and warps of ")
             << grad << ", got: " << place.getType();
  int64_t rows = getTransposed() ? grad.getCols() : grad.getRows();
  if (getStatistics().getType().getRows() != rows) // C2
    return emitOpError("expected row statistics of ") << rows << " rows, got: " << getStatistics().getType();
  return success();
}
