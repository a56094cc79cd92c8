// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Queries on a kernel, a `tile.kv_loop` and its body.
//
#ifndef ATTN_LIB_DIALECT_TILE_TRANSFORMS_TILEWALK_H
#define ATTN_LIB_DIALECT_TILE_TRANSFORMS_TILEWALK_H

#include "attn/Dialect/Tile/IR/Tile.h"
#include "llvm/ADT/SetVector.h"

namespace attn::tile {

/// Is this a loop of a forward pass (online softmax), not of a backward pass (probabilities from LSE)?
bool isForward(KvLoopOp loop);

/// The wait for a token, if it is the token's only use and waits for no other token; else null.
WaitOp soleWait(mlir::Value token);

/// The backward slice of `op` within its block, in order, ending with `op`.
llvm::SetVector<mlir::Operation *> sliceOf(mlir::Operation *op);

/// A tile of the loop, and whether there is one.
struct TileOfWalk {
  mlir::Value tile, any;
};
TileOfWalk firstTile(KvLoopOp loop, mlir::OpBuilder &b);
TileOfWalk lastTile(KvLoopOp loop, mlir::OpBuilder &b);

/// 32-bit registers of a thread for the kernel's fragments, if all are live.
int64_t registersOfFragments(KernelOp kernel);

} // namespace attn::tile

#endif // ATTN_LIB_DIALECT_TILE_TRANSFORMS_TILEWALK_H
