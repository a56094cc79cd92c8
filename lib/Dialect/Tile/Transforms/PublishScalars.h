// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Scalars of a work tile that the producer publishes to consumers through the mailbox.
//
#ifndef ATTN_LIB_DIALECT_TILE_TRANSFORMS_PUBLISHSCALARS_H
#define ATTN_LIB_DIALECT_TILE_TRANSFORMS_PUBLISHSCALARS_H

#include "attn/Dialect/Tile/IR/Tile.h"
#include "mlir/IR/IRMapping.h"

namespace attn::tile {

/// Does the block have more than 100 arith ops, as bounds of masks with many terms do?
bool hasManyArithOps(mlir::Block &block);
/// Hoists scalars out of branches, so that they can be published: all of them if registers are `scarce`, otherwise only
/// those of branches with much arithmetic (recomputing a few is as fast).
void hoistScalars(PersistentLoopOp program, bool scarce);
/// Publishes scalars of a work tile with its number: consumers so wait for no loads and divide no integers.
void publishScalars(PersistentLoopOp producer, PersistentLoopOp consumer, const mlir::IRMapping &inProducer);

} // namespace attn::tile

#endif // ATTN_LIB_DIALECT_TILE_TRANSFORMS_PUBLISHSCALARS_H
