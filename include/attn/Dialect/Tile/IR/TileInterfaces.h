// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What an op of the dialect reads and writes, and who runs it. See TileInterfaces.td.
//
#ifndef ATTN_DIALECT_TILE_IR_TILEINTERFACES_H
#define ATTN_DIALECT_TILE_IR_TILEINTERFACES_H

#include "mlir/IR/OpDefinition.h"

namespace attn::tile {

/// The part of a block that runs an op: `compute` is consumers and the dQ MMA warpgroup.
enum class Role { any, producer, compute, dq_store };

/// What TableGen writes of an op.
struct Behavior {
  Role role;
  /// One for each operand of the definition: r (read), w (written), u (both), - (neither) or ? (as the type says), with
  /// a star if it is any number of operands.
  const char *letters;
};

/// What an op does to one of its operands: a place, or where a pointer leads.
struct Access {
  mlir::OpOperand *operand;
  bool reads, writes;
  mlir::Value place() const { return operand->get(); }
};

/// Does a tile, or statistics, lie in shared memory for all warps? (Rings and the like have barriers of their own.)
bool isShared(mlir::Type type);
/// What the owner of an operand does to it: nothing, if it does not say.
Access accessOf(mlir::OpOperand &operand);

} // namespace attn::tile

#include "attn/Dialect/Tile/IR/TileInterfaces.h.inc"

#endif // ATTN_DIALECT_TILE_IR_TILEINTERFACES_H
