// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "attn/Dialect/Tile/IR/Tile.h"

using namespace mlir;
using namespace attn::tile;

#include "attn/Dialect/Tile/IR/TileInterfaces.cpp.inc"
#include "attn/Dialect/Tile/IR/TilePlaceInterface.cpp.inc"

BehaviorTable::BehaviorTable(Dialect *dialect, ArrayRef<Definition> definitions) : Base(dialect) {
  for (const Definition &definition : definitions)
    model.behaviors[definition.op] = &definition.behavior;
}

const Behavior &BehaviorTable::Model::getBehavior(Operation *op) const {
  return *behaviors.lookup(op->getName().getStringRef());
}

void *BehaviorTable::getModel(TypeID interface, OperationName op) const {
  bool isDefined = model.behaviors.contains(op.getStringRef());
  return interface == TileOpInterface::getInterfaceID() && isDefined ? &model : nullptr;
}

bool attn::tile::isShared(Type type) { return isa<SharedType, RowStatisticsType>(type); }

/// The access to an operand whose definition declares none, by its type.
static char letterOf(Type type) {
  if (isa<PtrType, TensorMapType>(type))
    return 'r';
  return isa<PlaceTypeInterface>(type) ? 'u' : '-';
}

SmallVector<Access, 4> TileOpInterface::getAccesses() {
  Operation *op = getOperation();
  StringRef letters = getBehavior().letters;
  auto segments = op->getAttrOfType<DenseI32ArrayAttr>("operandSegmentSizes");
  int64_t stars = letters.count('*'), fixed = letters.size() - 2 * stars;
  // Without segment sizes, variadic operands are equally long.
  int64_t many = stars ? (op->getNumOperands() - fixed) / stars : 0;
  SmallVector<Access, 4> accesses;
  MutableArrayRef<OpOperand> operands = op->getOpOperands();
  for (int64_t i = 0; !letters.empty(); ++i) {
    char said = letters.front();
    bool star = letters.drop_front().starts_with("*");
    letters = letters.drop_front(1 + star);
    int64_t count = segments ? segments[i] : star ? many : 1;
    for (OpOperand &operand : operands.take_front(count))
      if (char letter = said == '?' ? letterOf(operand.get().getType()) : said; letter != '-')
        accesses.push_back({&operand, /*reads=*/letter != 'w', /*writes=*/letter != 'r'});
    operands = operands.drop_front(count);
  }
  return accesses;
}

Value TileOpInterface::getTokenOfAccesses() {
  for (Value result : getOperation()->getResults())
    if (isa<TokenType>(result.getType()))
      return result;
  return {};
}

bool TileOpInterface::endsWithBarrier() {
  auto writesShared = [](Access access) { return access.writes && isShared(access.place().getType()); };
  return !getTokenOfAccesses() && llvm::any_of(getAccesses(), writesShared);
}

Access attn::tile::accessOf(OpOperand &operand) {
  if (auto op = dyn_cast<TileOpInterface>(operand.getOwner()))
    for (Access access : op.getAccesses())
      if (access.operand == &operand)
        return access;
  return {&operand, false, false};
}

bool attn::tile::isProduct(Operation *op) {
  auto behavior = dyn_cast<TileOpInterface>(op);
  Value token = behavior ? behavior.getTokenOfAccesses() : Value();
  return token && cast<TokenType>(token.getType()).getKind() == TokenKind::product && !behavior.getAccesses().empty();
}
