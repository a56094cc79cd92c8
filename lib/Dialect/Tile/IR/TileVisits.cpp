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
    setName(region.getArgument(0), &region == &getBody() ? "j" : "g");
}

LogicalResult SelectTilesOp::verify() {
  for (Region *of : getRegions()) { // C1
    Region &region = *of;
    bool tiles = of == &getBody();
    if (region.getArgumentTypes() != TypeRange(IntegerType::get(getContext(), 32)))
      return emitOpError("expected a region over a ")
             << (tiles ? "tile" : "group") << "'s number of type i32, got: " << region.getArgumentTypes();
    auto yield = region.front().empty() ? YieldOp() : dyn_cast<YieldOp>(region.front().back());
    Type i1 = IntegerType::get(getContext(), 1);
    if (!yield || yield.getOperandTypes() != (tiles ? TypeRange({i1, i1}) : TypeRange(i1)))
      return emitOpError(tiles ? "expected to yield two conditions: is some pair visible, and are all"
                               : "expected to yield a condition of a group: is some pair visible");
  }
  return success();
}
