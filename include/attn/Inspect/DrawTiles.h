// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef ATTN_INSPECT_DRAWTILES_H
#define ATTN_INSPECT_DRAWTILES_H

#include "attn/Inspect/TileMap.h"

namespace attn {

/// One character for a cell.
void drawText(llvm::raw_ostream &os, TileMap &map);

/// Tiles as rectangles; where pairs are few, each of them as well.
void drawSvg(llvm::raw_ostream &os, TileMap &map, llvm::StringRef title);

} // namespace attn

#endif // ATTN_INSPECT_DRAWTILES_H
