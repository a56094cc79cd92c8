// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Placement of ring releases.
//
#ifndef ATTN_LIB_DIALECT_TILE_TRANSFORMS_RELEASES_H
#define ATTN_LIB_DIALECT_TILE_TRANSFORMS_RELEASES_H

#include "attn/Dialect/Tile/IR/Tile.h"

namespace attn::tile {

/// The op after which `user` no longer reads its tiles: its wait for an asynchronous product, else `user` itself.
mlir::Operation *endOf(mlir::Operation *user);
/// The last op of `block` that is or contains one of `ends`; null if there is none.
mlir::Operation *lastIn(mlir::Block &block, llvm::ArrayRef<mlir::Operation *> ends);
/// For a single-stage ring whose wait precedes a branch or loop `around`: releases its tile within `around`, after the
/// last reader, so that the next tile is loaded meanwhile.
void releaseInside(mlir::Operation *around, mlir::Value ring, llvm::ArrayRef<mlir::Operation *> ends);

} // namespace attn::tile

#endif // ATTN_LIB_DIALECT_TILE_TRANSFORMS_RELEASES_H
