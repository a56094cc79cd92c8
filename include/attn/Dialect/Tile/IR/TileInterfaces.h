// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What an op of the dialect reads and writes, and which role runs it. See TileInterfaces.td.
//
#ifndef ATTN_DIALECT_TILE_IR_TILEINTERFACES_H
#define ATTN_DIALECT_TILE_IR_TILEINTERFACES_H

#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "llvm/ADT/StringMap.h"
#include <optional>

namespace attn::tile {

/// The warps of a CTA that run an op: `compute` are consumers and the dQ MMA warpgroup.
enum class Role { any, producer, compute, dq_store };

/// What a CTA or a warp of a kernel computes: query (or KV) tiles of any sequence, or the rows of a sequence and some
/// heads, for which it has an index of its own.
enum class WorkUnit { tile, cta_per_sequence, warp_per_sequence };

/// What TableGen emits for an op.
struct Behavior {
  Role role;
  /// One letter for each operand of the definition: r (read), w (written), u (both), - (neither) or ? (by its type),
  /// with a star if it is variadic.
  const char *letters;
};

struct Definition {
  llvm::StringLiteral op;
  Behavior behavior;
};
/// All ops of a dialect, by its GET_OP_LIST.
template <typename... Ops> struct Definitions {
  static constexpr Definition all[] = {{Ops::getOperationName(), Ops::behavior}...};
};

/// An op's access to an operand: an allocation, or the memory that a pointer refers to.
struct Access {
  mlir::OpOperand *operand;
  bool reads, writes;
  mlir::Value place() const { return operand->get(); }
};

/// Is this a tile, or row statistics, in shared memory of all warps? (Rings and the like have barriers of their own.)
bool isShared(mlir::Type type);
/// The access of an operand's owner; none if the owner declares none.
Access accessOf(mlir::OpOperand &operand);

} // namespace attn::tile

#include "attn/Dialect/Tile/IR/TileInterfaces.h.inc"
#include "attn/Dialect/Tile/IR/TilePlaceInterface.h.inc"

namespace attn::tile {

/// `TileOpInterface` for all ops of a dialect. A model of the interface for each op would be several times as much
/// code, and its traits would lengthen the symbols of each op.
class BehaviorTable : public mlir::DialectInterface::Base<BehaviorTable> {
public:
  BehaviorTable(mlir::Dialect *dialect, llvm::ArrayRef<Definition> definitions);
  /// What `getRegisteredInterfaceForOp` of the dialect returns.
  void *getModel(mlir::TypeID interface, mlir::OperationName op) const;

private:
  struct Model : TileOpInterface::FallbackModel<Model> {
    const Behavior &getBehavior(mlir::Operation *op) const;
    llvm::StringMap<const Behavior *> behaviors;
  };
  mutable Model model; ///< the caller takes it as a pointer to void
};

} // namespace attn::tile

#endif // ATTN_DIALECT_TILE_IR_TILEINTERFACES_H
