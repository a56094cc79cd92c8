// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "attn/Dialect/Tile/IR/Tile.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace attn::tile;

LogicalResult LoadRowsOp::verify() {
  Type from = getSrc().getType().getElement();
  if (auto operand = dyn_cast<RegisterOperandType>(getDst().getType())) {
    int64_t dim = getDim().value_or(0);
    if (operand.getRows() != 16 * operand.getWarps() || !dim || operand.getCols() != int64_t(llvm::alignTo(dim, 32)) ||
        operand.getElement() != from || !getStride().getType().isInteger(64)) // C2
      return emitOpError("expected 16 rows a warp of `dim` columns, rounded up to 32, of the pointer's element type, "
                         "and one stride, got: ")
             << operand << ", dim " << dim << ", " << from;
    return success();
  }
  Type to = cast<SimtTileType>(getDst().getType()).getElement();
  if (getDim()) // C1
    return emitOpError("expected `dim` with a register operand, got: ") << getDst().getType();
  if (!isDataType(*this, from) || (from != to && !to.isF32())) // C1
    return emitOpError("expected rows of ")
           << textOfDataTypes(*this) << " into a SIMT tile of the same or of f32, got: " << from << " into " << to;
  return success();
}

LogicalResult StorePaddingOp::verify() {
  bool tile = bool(getWriteRows()), range = getBegin() && getEnd() && getStep() && getLanes();
  if (tile == range || (tile && (getBegin() || getEnd() || getStep() || getLanes()))) // C3
    return emitOpError("expected `rows`, or `from`, `to`, `step` and `lanes`");
  if (tile)
    return success();
  Type element = getDst().getType().getElement();
  int64_t dim = getDim();
  bool ok = dim == 1 ? element.isF32() : isDataType(*this, element) && dim > 0 && dim % 8 == 0;
  if (!ok) // C1
    return emitOpError("expected dim in multiples of 8 of ")
           << textOfDataTypes(*this) << ", or 1 of f32, got: dim " << dim << ", " << element;
  if (!isLaneCount(*getLanes())) // C2
    return emitOpError("expected 1, 2, 4, 8, 16 or 32 lanes, got: ") << int64_t(*getLanes());
  return success();
}

/// The lanes of a SIMT tile; 0 for a tile of fragments.
static int64_t lanesOf(Value place) {
  Type type = place.getType();
  if (auto tile = dyn_cast<SimtTileType>(type))
    return tile.getLanes();
  if (auto scores = dyn_cast<SimtScoresType>(type))
    return scores.getLanes();
  if (auto weights = dyn_cast<SimtProbabilitiesType>(type))
    return weights.getLanes();
  auto rows = dyn_cast<SimtSoftmaxStateType>(type);
  return rows ? rows.getLanes() : 0;
}

LogicalResult attn::tile::verifyLanesOf(Operation *op, ValueRange places) {
  if (!llvm::all_equal(llvm::map_range(places, lanesOf)))
    return op->emitOpError("expected places of fragments, or of SIMT tiles of as many lanes, got: ")
           << places.getTypes();
  return success();
}

LogicalResult LoadRowStatisticsOp::verify() {
  if (getGradLse() && getDelta()) // C1
    return emitOpError("expected one of dlse and delta, got: both");
  if (getGradLse() && bool(getStride()) != bool(getGradStride())) // C2
    return emitOpError("expected strides of both lse and dlse, or of neither, got: that of ")
           << (getStride() ? "lse" : "dlse");
  if (isa<SoftmaxStateType>(getRow().getType()) && (getStride() || getDelta())) // C3
    return emitOpError("expected no stride and no delta with ") << getRow().getType();
  return success();
}

LogicalResult AccumulateDeltaOp::verify() { // C1
  if (getWeighted() && getWeighted().getType() != getP().getType())
    return emitOpError("expected weighted of type ") << getP().getType() << ", got: " << getWeighted().getType();
  return verifyLanesOf(*this, getOperands());
}
LogicalResult SubtractDeltaOp::verify() { return verifyLanesOf(*this, getOperands()); }                  // C1
LogicalResult CacheProbabilitiesOp::verify() { return verifyLanesOf(*this, getOperands().drop_back()); } // C1
LogicalResult CachedGradScoresOp::verify() { return verifyLanesOf(*this, getOperands().drop_back()); }   // C1
