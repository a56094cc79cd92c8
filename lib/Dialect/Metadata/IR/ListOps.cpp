// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "attn/Dialect/Metadata/IR/Metadata.h"

using namespace mlir;
using namespace attn::metadata;
using attn::tile::YieldOp;

void EntryRangeOp::getAsmResultNames(OpAsmSetValueNameFn setName) {
  setName(getLeast(), "least");
  setName(getLargest(), "largest");
  setName(getWhole(), "none_hidden");
}

void LoadRangesOp::getAsmResultNames(OpAsmSetValueNameFn setName) {
  for (auto [i, value] : llvm::enumerate(getValues()))
    setName(value, i % 2 ? "largest" : "least");
}

void GatheredOp::getAsmResultNames(OpAsmSetValueNameFn setName) {
  setName(getSome(), "some");
  setName(getAll(), "all");
}

LogicalResult GatherTilesOp::verify() { // C1
  bool hasLists = bool(getColumns()), hasEnd = bool(getEnd());
  if (hasLists == hasEnd || (hasLists && getTransposed()))
    return emitOpError("expected rows `begin` to `end` of bits, or a row of lists that is not transposed");
  return success();
}

LogicalResult IsListedOp::verify() { // C1
  bool hasLists = bool(getColumns());
  if (hasLists != bool(getCondition()) || (hasLists && getFirst()))
    return emitOpError("expected bits without a condition, or lists with a condition and without a first column");
  return success();
}

void CooperativeLoopOp::getAsmBlockArgumentNames(Region &region, OpAsmSetValueNameFn setName) {
  const char *const names[] = {"ctas", "b"};
  for (auto [argument, name] : llvm::zip(region.getArguments(), names))
    setName(argument, name);
}

LogicalResult CooperativeLoopOp::verify() { // C1
  Type arguments[] = {CooperativeCtasType::get(getContext()), IntegerType::get(getContext(), 32)};
  if (getBody().getArgumentTypes() != TypeRange(arguments))
    return emitOpError("expected a region over cooperative CTAs and a sequence of type i32, got: ")
           << getBody().getArgumentTypes();
  return success();
}

void SelectTilesOp::getAsmBlockArgumentNames(Region &region, OpAsmSetValueNameFn setName) {
  const char *const names[] = {&region == &getBody() || &region == &getInner() ? "j"
                               : &region == &getGroups()                       ? "g"
                                                                               : "from",
                               "to"};
  for (auto [argument, name] : llvm::zip(region.getArguments(), names))
    setName(argument, name);
}

LogicalResult SelectTilesOp::verify() { // C1
  Type i1 = IntegerType::get(getContext(), 1), i32 = IntegerType::get(getContext(), 32);
  struct Form {
    Region &region;
    SmallVector<Type> arguments, results;
    const char *over, *yields;
  } forms[] = {
      {getBody(), {i32}, {i1, i1}, "a tile's number of type i32", "two conditions: is some pair visible, and are all"},
      {getInner(),
       {i32},
       {i1, i1},
       "a tile's number of type i32",
       "two conditions of a tile inside: is some pair visible, and are all"},
      {getGroups(),
       {i32},
       {i1, i1, i1, i32, i32},
       "a group's number of type i32",
       "of a group whether some pair is visible, whether it is settled and inside, and bits of its tiles"},
      {getChunk(), {i32, i32}, {}, "two numbers of tiles of type i32", "nothing of a chunk"}};
  for (Form &form : forms) {
    if (form.region.getArgumentTypes() != TypeRange(form.arguments))
      return emitOpError("expected a region over ") << form.over << ", got: " << form.region.getArgumentTypes();
    auto yield = form.region.front().empty() ? YieldOp() : dyn_cast<YieldOp>(form.region.front().back());
    if (!yield || yield.getOperandTypes() != TypeRange(form.results))
      return emitOpError("expected to yield ") << form.yields;
  }
  return success();
}
