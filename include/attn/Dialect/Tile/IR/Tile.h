// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The `tile` dialect: kernels over tiles and asynchronous tokens. See TileDialect.td.
//
#ifndef ATTN_DIALECT_TILE_IR_TILE_H
#define ATTN_DIALECT_TILE_IR_TILE_H

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "attn/Dialect/Tile/IR/TileInterfaces.h"

#include "attn/Dialect/Tile/IR/TileDialect.h.inc"
#include "attn/Dialect/Tile/IR/TileEnums.h.inc"

#include "attn/Dialect/Tile/IR/TileScheduleInterface.h.inc"

#define GET_TYPEDEF_CLASSES
#include "attn/Dialect/Tile/IR/TileTypes.h.inc"

#define GET_ATTRDEF_CLASSES
#include "attn/Dialect/Tile/IR/TileAttrs.h.inc"

namespace attn::tile {
/// The name of a module's `#tile.target`.
constexpr llvm::StringLiteral targetAttrName = "tile.target";
/// The warp-specialization part of a kernel's schedule; null if all warps do the same.
WarpSpecializedInterface warpSpecializationOf(mlir::Attribute schedule);
} // namespace attn::tile

#define GET_OP_CLASSES
#include "attn/Dialect/Tile/IR/TileOps.h.inc"

namespace attn::tile {
/// Is this a valid number of lanes for a group?
bool isLaneCount(int64_t lanes);
/// Verifies that these are all fragments, or all SIMT tiles of equally many lanes.
mlir::LogicalResult verifyLanesOf(mlir::Operation *op, mlir::ValueRange places);
/// Verifies a region that yields the score of a sink, for rows that begin at `q0`.
mlir::LogicalResult verifySink(mlir::Operation *op, mlir::Region &body, mlir::Value q0);
/// Recomputes values that follow from the kernel's 32-bit arguments within this op, from `begin` on
/// (`tile.optimization_barrier`), instead of keeping them in registers.
void recomputeInLoop(mlir::Operation *of, mlir::OpBuilder begin);
/// The allocation that a tile is a part of, or the tile itself.
mlir::Value wholeOf(mlir::Value tile);
/// Is the op a product of tiles, in flight until its token is waited for?
bool isProduct(mlir::Operation *op);
/// Element types of q, k, v, o and their gradients that a target's kernels support, and their list for messages.
llvm::SmallVector<mlir::Type> dataTypesOf(llvm::StringRef target, mlir::MLIRContext *context);
std::string textOfDataTypes(llvm::StringRef target);
/// The same for the target of the op's kernel.
bool isDataType(mlir::Operation *op, mlir::Type element);
std::string textOfDataTypes(mlir::Operation *op);
/// Verifies the threshold of random bits.
mlir::LogicalResult verifyDropoutOperands(mlir::Operation *op, int64_t below);
} // namespace attn::tile

#endif // ATTN_DIALECT_TILE_IR_TILE_H
