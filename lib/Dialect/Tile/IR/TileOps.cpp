// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "attn/Dialect/Tile/IR/Tile.h"

using namespace mlir;
using namespace attn::tile;

#define GET_OP_CLASSES
#include "attn/Dialect/Tile/IR/TileOps.cpp.inc"

OpFoldResult AdvanceOp::fold(FoldAdaptor adaptor) {
  auto offset = dyn_cast_or_null<IntegerAttr>(adaptor.getOffset());
  return offset && offset.getValue().isZero() ? getBase() : Value();
}

void BlockIndexOp::getAsmResultNames(OpAsmSetValueNameFn setName) { setName(getResult(), "block"); }

void PlaceOp::getAsmResultNames(OpAsmSetValueNameFn setName) { setName(getResult(), getName()); }

void FindSequenceOp::getAsmResultNames(OpAsmSetValueNameFn setName) {
  const char *names[] = {"b", "q0", "first", "rows", "write_rows"};
  for (auto [result, name] : llvm::zip(getResults(), names))
    setName(result, name);
}

void KeepOp::getAsmBlockArgumentNames(Region &region, OpAsmSetValueNameFn setName) {
  if (region.getNumArguments() == 2) {
    setName(region.getArgument(0), "q");
    setName(region.getArgument(1), "k");
  }
}

LogicalResult KeepOp::verify() {
  Type i32 = IntegerType::get(getContext(), 32);
  if (getBody().getArgumentTypes() != TypeRange({i32, i32}))
    return emitOpError("expected a region over (query row i32, key i32), got: ") << getBody().getArgumentTypes();
  for (Value kept : cast<YieldOp>(getBody().front().getTerminator()).getValues())
    if (!kept.getType().isInteger(1))
      return emitOpError("expected to yield conditions of type i1, got: ") << kept.getType();
  return success();
}

LogicalResult WaitOp::verify() {
  if (getTokens().empty() || !llvm::all_equal(getTokens().getTypes())) // C1
    return emitOpError("expected tokens of one kind, got: ") << getTokens().getTypes();
  return success();
}

LogicalResult CopyAsyncOp::verify() {
  SharedType dst = getDst().getType();
  int64_t dim = getDim();
  if (dim <= 0 || dim % 8 || dim > dst.getCols() || dst.getElement() != getSrc().getType().getElement()) // C1
    return emitOpError("expected dim in multiples of 8 up to the place's columns and one element type, got: dim ")
           << dim << ", " << getSrc().getType() << " into " << dst;
  return success();
}

namespace {
/// What shared and held tiles have in common.
struct TileShape {
  int64_t rows, cols;
  Type element;
  bool operator==(const TileShape &) const = default;
};
} // namespace

static TileShape shapeOf(Type type) {
  if (auto held = dyn_cast<HeldType>(type))
    return {held.getRows(), held.getCols(), held.getElement()};
  auto shared = cast<SharedType>(type);
  return {shared.getRows(), shared.getCols(), shared.getElement()};
}

LogicalResult HoldOp::verify() {
  if (!(shapeOf(getHeld().getType()) == shapeOf(getSrc().getType()))) // C1
    return emitOpError("expected tiles of the same shape and element type, got: ")
           << getHeld().getType() << " and " << getSrc().getType();
  return success();
}

LogicalResult SoftmaxStepOp::verify() {
  if (!(getScale().convertToDouble() > 0)) // C1
    return emitOpError("expected a positive scale, got: ") << getScale().convertToDouble();
  return success();
}

LogicalResult MmaQkOp::verify() {
  FragType s = getS().getType();
  TileShape q = shapeOf(getQ().getType()), k = shapeOf(getK().getType());
  if (s.getRows() != q.rows || s.getCols() != k.rows || q.cols != k.cols || q.element != k.element) // C1
    return emitOpError("expected s to be Q's rows by K's rows over equal columns, got: ")
           << s << " = " << getQ().getType() << " x " << getK().getType();
  return success();
}

LogicalResult MmaPvOp::verify() {
  FragType acc = getAcc().getType(), p = getP().getType();
  SharedType v = getV().getType();
  if (acc.getRows() != p.getRows() || acc.getWarps() != p.getWarps() || p.getCols() != v.getRows() ||
      acc.getCols() != v.getCols()) // C1
    return emitOpError("expected acc to be p's rows by V's columns over V's rows, got: ")
           << acc << " += " << p << " x " << v;
  return success();
}
