// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Where a ring's slot is given back.
//
#ifndef ATTN_LIB_DIALECT_TILE_TRANSFORMS_RELEASES_H
#define ATTN_LIB_DIALECT_TILE_TRANSFORMS_RELEASES_H

#include "attn/Dialect/Tile/IR/Tile.h"

namespace attn::tile {

/// When is `user` done with the tiles it reads?
mlir::Operation *endOf(mlir::Operation *user);
/// The last of these in a block, by what of it they are in; null if none is there.
mlir::Operation *lastIn(mlir::Block &block, llvm::ArrayRef<mlir::Operation *> ends);
/// Gives back what was taken ahead of branches or a loop where its last reader in there is done, not behind them: of a
/// ring of one slot, what comes next is brought meanwhile.
void releaseInside(mlir::Operation *around, mlir::Value ring, llvm::ArrayRef<mlir::Operation *> ends);

} // namespace attn::tile

#endif // ATTN_LIB_DIALECT_TILE_TRANSFORMS_RELEASES_H
