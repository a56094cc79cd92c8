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

void WarpgroupOp::getAsmResultNames(OpAsmSetValueNameFn setName) { setName(getResult(), "warpgroup"); }

void QueryRowsOp::getAsmResultNames(OpAsmSetValueNameFn setName) {
  setName(getFirst(), "first_query");
  setName(getBehind(), "behind_query");
}

void PlaceOp::getAsmResultNames(OpAsmSetValueNameFn setName) { setName(getResult(), getName()); }

void FindSequenceOp::getAsmResultNames(OpAsmSetValueNameFn setName) {
  for (OpResult result : getResults())
    setName(result, nameOf(result));
}

StringRef FindSequenceOp::nameOf(OpResult result) {
  const char *names[] = {"b", "q0", "first", "rows", "write_rows"};
  return names[result.getResultNumber()];
}

static void nameTestArguments(Region &region, OpAsmSetValueNameFn setName) {
  if (region.getNumArguments() == 2) {
    setName(region.getArgument(0), "q");
    setName(region.getArgument(1), "k");
  }
}

/// A region over a pair that yields whether it is visible.
static LogicalResult verifyTest(Operation *op, Region &body) {
  Type i32 = IntegerType::get(op->getContext(), 32);
  if (body.getArgumentTypes() != TypeRange({i32, i32}))
    return op->emitOpError("expected a region over (query row i32, key i32), got: ") << body.getArgumentTypes();
  for (Value kept : cast<YieldOp>(body.front().getTerminator()).getValues())
    if (!kept.getType().isInteger(1))
      return op->emitOpError("expected to yield conditions of type i1, got: ") << kept.getType();
  return success();
}

/// A region that turns a score into another.
static LogicalResult verifyModifier(Operation *op, Region &body) {
  Type i32 = IntegerType::get(op->getContext(), 32), f32 = Float32Type::get(op->getContext());
  if (body.getArgumentTypes() != TypeRange({f32, i32, i32, i32, f32}))
    return op->emitOpError("expected a region over (score f32, query row i32, key i32, base i32, ahead f32), got: ")
           << body.getArgumentTypes();
  auto yield = dyn_cast<YieldOp>(body.front().getTerminator());
  if (!yield ||
      (yield.getValues().getTypes() != TypeRange(f32) && yield.getValues().getTypes() != TypeRange({f32, f32, f32})))
    return op->emitOpError("expected to yield a score of type f32, or three f32 of which it is a * b + c");
  return success();
}

static void nameModifierArguments(Region &region, OpAsmSetValueNameFn setName) {
  const char *names[] = {"score", "q", "k", "base", "ahead"};
  for (auto [arg, name] : llvm::zip(region.getArguments(), names))
    setName(arg, name);
}

void ModifyOp::getAsmBlockArgumentNames(Region &region, OpAsmSetValueNameFn setName) {
  nameModifierArguments(region, setName);
}

LogicalResult ModifyOp::verify() {
  if (getWithin().has_value() == getSmall().empty() || (getWithin() && !(getWithin()->convertToDouble() > 0))) // C1
    return emitOpError("expected a positive bound `within` and a region for smaller scores, or neither");
  if (getWithin() && failed(verifyModifier(*this, getSmall())))
    return failure();
  return verifyModifier(*this, getBody());
}

void WeighOp::getAsmBlockArgumentNames(Region &region, OpAsmSetValueNameFn setName) {
  nameModifierArguments(region, setName);
}

void KeepOp::getAsmBlockArgumentNames(Region &region, OpAsmSetValueNameFn setName) {
  nameTestArguments(region, setName);
}

LogicalResult KeepOp::verify() { return verifyTest(*this, getBody()); }

void RepairOp::getAsmBlockArgumentNames(Region &region, OpAsmSetValueNameFn setName) {
  &region == &getModify() ? nameModifierArguments(region, setName) : nameTestArguments(region, setName);
}

LogicalResult RepairOp::verify() {
  if (!getModify().empty() && failed(verifyModifier(*this, getModify())))
    return failure();
  return verifyTest(*this, getBody());
}

void TakeOp::getAsmResultNames(OpAsmSetValueNameFn setName) {
  if (auto place = getRing().getDefiningOp<PlaceOp>())
    setName(getTile(), (place.getName() + "_tile").str());
}

void PersistOp::getAsmBlockArgumentNames(Region &region, OpAsmSetValueNameFn setName) {
  for (BlockArgument arg : region.getArguments())
    setName(arg, nameOf(arg));
}

StringRef PersistOp::nameOf(BlockArgument word) {
  auto named = dyn_cast<NameLoc>(word.getLoc());
  return word.getArgNumber() == 0 ? "block" : named ? named.getName().getValue() : "word";
}

LogicalResult PersistOp::verify() {
  if (getBody().getNumArguments() < 1 ||
      !llvm::all_of(getBody().getArgumentTypes(), [](Type type) { return type.isInteger(32); }))
    return emitOpError("expected a region over (block i32, further words i32), got: ") << getBody().getArgumentTypes();
  return success();
}

LogicalResult SendOp::verify() {
  if (int64_t(getWords().size()) != getFeed().getType().getWords()) // C1
    return emitOpError("expected ") << getFeed().getType().getWords() << " words, got: " << getWords().size();
  return success();
}

/// Does a box of the map fill the tile?
static LogicalResult verifyBox(Operation *op, SharedType tile, MapType map) {
  if (!tile.isSwizzled() || tile.getRows() != map.getRows() || tile.getElement() != map.getElement()) // C1
    return op->emitOpError("expected a swizzled tile of the map's rows and element type, got: ")
           << tile << " and " << map;
  return success();
}

LogicalResult CopyBoxOp::verify() { return verifyBox(*this, getDst().getType(), getMap().getType()); }

LogicalResult FillOp::verify() { return verifyBox(*this, getRing().getType().getTile(), getMap().getType()); }

/// Are probabilities of the scores' shape?
static LogicalResult verifyHolds(Operation *op, HeldType p, FragType s) {
  if (p.getRows() != s.getRows() || p.getCols() != s.getCols() || p.getWarps() != s.getWarps())
    return op->emitOpError("expected the same rows, columns and warps, got: ") << p << " and " << s;
  return success();
}

LogicalResult RoundOp::verify() { return verifyHolds(*this, getP().getType(), getS().getType()); } // C1

LogicalResult LoadOp::verify() {
  if (getUniform() && !getType().isInteger(32)) // C1
    return emitOpError("expected i32 elements in a uniform load, got: ") << getType();
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

static LogicalResult verifyScale(Operation *op, const APFloat &scale) {
  if (!(scale.convertToDouble() > 0)) // C1
    return op->emitOpError("expected a positive scale, got: ") << scale.convertToDouble();
  return success();
}

LogicalResult SoftmaxStepOp::verify() { return verifyScale(*this, getScale()); }

LogicalResult SoftmaxOp::verify() { return verifyScale(*this, getScale()); }

LogicalResult WeighOp::verify() {
  if (failed(verifyScale(*this, getScale())) ||                       // C1
      failed(verifyHolds(*this, getP().getType(), getS().getType()))) // C2
    return failure();
  if (getAt().size() != (getModify().empty() ? 0 : 2)) // C3
    return emitOpError("expected `at` two numbers and a region `modify`, or neither");
  if (getWithin().has_value() == getSmall().empty() ||
      (getWithin() && (getModify().empty() || !(getWithin()->convertToDouble() > 0)))) // C3
    return emitOpError("expected a positive bound `within` and a region for smaller scores, or neither");
  for (Region *region : {&getSmall(), &getModify()})
    if (!region->empty() && failed(verifyModifier(*this, *region)))
      return failure();
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
  FragType acc = getAcc().getType();
  SharedType v = getV().getType();
  auto fits = [&](auto p) {
    return acc.getRows() == p.getRows() && acc.getWarps() == p.getWarps() && p.getCols() == v.getRows() &&
           acc.getCols() == v.getCols();
  };
  Type p = getP().getType();
  if (!(isa<HeldType>(p) ? fits(cast<HeldType>(p)) : fits(cast<FragType>(p)))) // C1
    return emitOpError("expected acc to be p's rows by V's columns over V's rows, got: ")
           << acc << " += " << p << " x " << v;
  return success();
}
