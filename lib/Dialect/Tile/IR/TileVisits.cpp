// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "attn/Dialect/Tile/IR/Tile.h"

using namespace mlir;
using namespace attn::tile;

void EntryRangeOp::getAsmResultNames(OpAsmSetValueNameFn setName) {
  setName(getLeast(), "least");
  setName(getLargest(), "largest");
  setName(getWhole(), "whole");
}

void SelectTilesOp::getAsmResultNames(OpAsmSetValueNameFn setName) {
  setName(getFull(), "full");
  setName(getPartial(), "partial");
}

void SelectTilesOp::getAsmBlockArgumentNames(Region &region, OpAsmSetValueNameFn setName) {
  if (region.getNumArguments() == 1)
    setName(region.getArgument(0), "j");
}

LogicalResult SelectTilesOp::verify() {
  if (getBody().getArgumentTypes() != TypeRange(IntegerType::get(getContext(), 32))) // C1
    return emitOpError("expected a region over a tile's number of type i32, got: ") << getBody().getArgumentTypes();
  auto yield = getBody().front().empty() ? YieldOp() : dyn_cast<YieldOp>(getBody().front().back());
  Type i1 = IntegerType::get(getContext(), 1);
  if (!yield || yield.getOperandTypes() != TypeRange({i1, i1}))
    return emitOpError("expected to yield two conditions: is some pair visible, and are all");
  return success();
}
