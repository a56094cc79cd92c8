// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Sinks, and gradients of arrays.
//
#include "attn/Dialect/Tile/IR/Tile.h"

using namespace mlir;
using namespace attn::tile;

void AddSinkOp::getAsmBlockArgumentNames(Region &region, OpAsmSetValueNameFn setName) {
  for (BlockArgument head : region.getArguments())
    setName(head, "h");
}

LogicalResult attn::tile::verifySink(Operation *op, Region &body, Value q0) {
  SmallVector<Type> expected(isa<PairsType>(q0.getType()), IntegerType::get(op->getContext(), 32));
  if (body.getArgumentTypes() != TypeRange(expected))
    return op->emitOpError("expected a region ")
           << (expected.empty() ? "without arguments" : "over (head i32)") << ", got: " << body.getArgumentTypes();
  auto yield = dyn_cast<YieldOp>(body.front().getTerminator());
  if (!yield || yield.getValues().getTypes() != TypeRange(Float32Type::get(op->getContext())))
    return op->emitOpError("expected to yield the score of a sink, of type f32");
  return success();
}

LogicalResult AddSinkOp::verify() {
  if (failed(verifyLanesOf(*this, {getAcc(), getRow()}))) // C1
    return failure();
  return verifySink(*this, getBody(), getQ0()); // C2
}

LogicalResult StoreSumsOp::verify() {
  FragType acc = getAcc().getType();
  if (bool(getPitch()) != bool(getPlace()) || (getPlace() && acc.getRows() != acc.getCols())) // C1
    return emitOpError("expected `pitch` and `through` together, with as many rows as columns, got: ") << acc;
  return success();
}
