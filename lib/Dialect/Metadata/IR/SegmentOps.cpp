// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "attn/Dialect/Metadata/IR/Metadata.h"

using namespace mlir;
using namespace attn::metadata;
using attn::tile::YieldOp;

/// A region from `count` integers to integers, of which `yields` says how many there may be.
static LogicalResult verifyNumbers(Operation *op, Region &body, size_t count, llvm::function_ref<bool(size_t)> yields,
                                   StringRef expected) {
  Type i32 = IntegerType::get(op->getContext(), 32);
  if (body.getArgumentTypes() != TypeRange(SmallVector<Type>(count, i32)))
    return op->emitOpError("expected a region over ")
           << count << " numbers of type i32, got: " << body.getArgumentTypes();
  auto yield = body.front().empty() ? YieldOp() : dyn_cast<YieldOp>(body.front().back());
  if (!yield || !yields(yield.getNumOperands()) ||
      llvm::any_of(yield.getOperandTypes(), [&](Type type) { return type != i32; }))
    return op->emitOpError("expected to yield ") << expected << " of type i32";
  return success();
}

static void name(Region &region, ArrayRef<StringRef> names, OpAsmSetValueNameFn setName) {
  for (auto [arg, name] : llvm::zip(region.getArguments(), names))
    setName(arg, name);
}

void BatchRowIndexOp::getAsmResultNames(OpAsmSetValueNameFn setName) { setName(getResult(), "row"); }

LogicalResult BoundSegmentsOp::verify() {
  return verifyNumbers(*this, getBody(), 6, [](size_t n) { return n == 3; }, "three numbers");
}

void BoundSegmentsOp::getAsmBlockArgumentNames(Region &region, OpAsmSetValueNameFn setName) {
  name(region, {"count_q", "low_q", "high_q", "count_kv", "low_kv", "high_kv"}, setName);
}

LogicalResult CheckSegmentsOp::verify() {
  return verifyNumbers(*this, getBody(), 3, [](size_t n) { return n == 2 || n == 4; }, "one or two pairs");
}

void CheckSegmentsOp::getAsmBlockArgumentNames(Region &region, OpAsmSetValueNameFn setName) {
  name(region, {"len_q", "len_kv", "shift"}, setName);
}

LogicalResult ListQueryTilesOp::verify() {
  return verifyNumbers(*this, getBody(), 2, [](size_t n) { return n == 1; }, "one number");
}

void ListQueryTilesOp::getAsmBlockArgumentNames(Region &region, OpAsmSetValueNameFn setName) {
  name(region, {"len_q", "len_kv"}, setName);
}

LogicalResult ListWorkTilesOp::verify() { // C1
  auto yield = getBody().front().empty() ? YieldOp() : dyn_cast<YieldOp>(getBody().front().back());
  if (getBody().getArgumentTypes() != TypeRange(IntegerType::get(getContext(), 32)) || !yield ||
      yield.getOperandTypes() != TypeRange(IntegerType::get(getContext(), 1)))
    return emitOpError("expected a region over a sequence's number of type i32 that yields one condition");
  return success();
}

LogicalResult SplitWalksOp::verify() { // C1
  return verifyNumbers(*this, getBody(), 1, [](size_t n) { return n == 1; }, "one number");
}

void SplitWalksOp::getAsmBlockArgumentNames(Region &region, OpAsmSetValueNameFn setName) {
  name(region, {"tile"}, setName);
}

void ListWorkTilesOp::getAsmBlockArgumentNames(Region &region, OpAsmSetValueNameFn setName) {
  name(region, {"b"}, setName);
}
