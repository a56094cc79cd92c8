// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What consumers need not find out again: numbers that a producer sends with a block's.
//
#ifndef ATTN_LIB_DIALECT_TILE_TRANSFORMS_PUBLISHEDNUMBERS_H
#define ATTN_LIB_DIALECT_TILE_TRANSFORMS_PUBLISHEDNUMBERS_H

#include "attn/Dialect/Tile/IR/Tile.h"
#include "mlir/IR/IRMapping.h"

namespace attn::tile {

/// Do the bounds of walks take hundreds of numbers, as of masks of many parts?
bool worksOutMuch(mlir::Block &block);
/// Numbers of a branch that follow from others alone are made ahead of it, where they can be sent. A few are as soon
/// made again, where there are registers for that.
void hoistNumbers(PersistentLoopOp program, bool scarce);
/// The producer sends these scalars once it knows them; the consumer gets them with
/// the block's number, which so waits for no memory and divides no integers.
void sendScalars(PersistentLoopOp producer, PersistentLoopOp consumer, const mlir::IRMapping &inProducer);

} // namespace attn::tile

#endif // ATTN_LIB_DIALECT_TILE_TRANSFORMS_PUBLISHEDNUMBERS_H
