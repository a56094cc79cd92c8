// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "attn/Dialect/Tile/IR/Tile.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace attn::tile;

#include "attn/Dialect/Tile/IR/TileDialect.cpp.inc"
#include "attn/Dialect/Tile/IR/TileEnums.cpp.inc"
#include "attn/Dialect/Tile/IR/TileScheduleInterface.cpp.inc"
#define GET_TYPEDEF_CLASSES
#include "attn/Dialect/Tile/IR/TileTypes.cpp.inc"
#define GET_ATTRDEF_CLASSES
#include "attn/Dialect/Tile/IR/TileAttrs.cpp.inc"

void TileDialect::initialize() {
  addTypes<
#define GET_TYPEDEF_LIST
#include "attn/Dialect/Tile/IR/TileTypes.cpp.inc"
      >();
  addAttributes<
#define GET_ATTRDEF_LIST
#include "attn/Dialect/Tile/IR/TileAttrs.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "attn/Dialect/Tile/IR/TileOps.cpp.inc"
      >();
  addInterface<BehaviorTable>(Definitions<
#define GET_OP_LIST
#include "attn/Dialect/Tile/IR/TileOps.cpp.inc"
                              >::all);
}

void *TileDialect::getRegisteredInterfaceForOp(TypeID interface, OperationName op) {
  return getRegisteredInterface<BehaviorTable>()->getModel(interface, op);
}
