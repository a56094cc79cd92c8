// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What several passes ask of a kernel, a `tile.kv_loop` and its body.
//
#ifndef ATTN_LIB_TILE_TRANSFORMS_TILEWALK_H
#define ATTN_LIB_TILE_TRANSFORMS_TILEWALK_H

#include "attn/Dialect/Tile/IR/Tile.h"
#include "llvm/ADT/SetVector.h"

namespace attn::tile {

/// Does the walk turn scores into weights by a softmax, or does it take them from statistics?
bool isForward(KvLoopOp loop);

/// The wait for a token, if that is all that happens to it and it waits for nothing else.
WaitOp soleWait(mlir::Value token);

/// What `op` needs from its own block, in order, itself last.
llvm::SetVector<mlir::Operation *> sliceOf(mlir::Operation *op);

/// A tile of the walk, and whether there is one.
struct TileOfWalk {
  mlir::Value tile, any;
};
TileOfWalk firstTile(KvLoopOp loop, mlir::OpBuilder &b);
TileOfWalk lastTile(KvLoopOp loop, mlir::OpBuilder &b);

/// 32-bit registers that a thread's share of the kernel's fragments takes, if all are live.
int64_t registersOfFragments(KernelOp kernel);

} // namespace attn::tile

#endif // ATTN_LIB_TILE_TRANSFORMS_TILEWALK_H
