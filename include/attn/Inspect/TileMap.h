// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A sequence's score matrix under a mask, cut into tiles: what is visible in each, and which
// of them a kernel's walk visits.
//
#ifndef ATTN_INSPECT_TILEMAP_H
#define ATTN_INSPECT_TILEMAP_H

#include "attn/Reference/Sequences.h"
#include "attn/Schedules/KeyWalk.h"

namespace attn {

struct TileCounts {
  double tiles = 0, visited = 0;
  double full = 0;  ///< of the visited ones: all pairs are visible, and the mask is not applied
  double empty = 0; ///< of the visited ones: without a visible pair; -1 where there are too many to look
  double pairs = 0, visible = 0;
  bool exact = true; ///< or `visible` is from some rows

  TileCounts &operator+=(const TileCounts &o);
};

class TileMap {
public:
  /// `lists`: the kernel visits the tiles that it finds listed, and not all that lie on its way. With a `rowStride`
  /// (`#tile.by_residue`) each cell of qTile x kvTile positions has that many tiles, one for each residue, and `walked`
  /// is the rest of the mask.
  TileMap(MaskInterface mask, MaskInterface walked, const reference::Sequences &sequences, int64_t sequence,
          int64_t head, int64_t qTile, int64_t kvTile, int64_t rowStride, bool lists);

  TileCounts count();

  /// A rectangle of whole tiles: all are skipped, all are full, the mask is applied to some, or some are visited
  /// although no pair is visible.
  enum class Cell : char { Skipped, Full, Partial, Empty };
  struct Cells {
    int64_t tilesDown = 1, tilesAcross = 1; ///< in a cell
    std::vector<std::vector<Cell>> rows;
  };
  /// At most so many along each axis.
  Cells cells(int64_t most);

  /// Is this pair visible?
  bool keeps(int64_t q, int64_t k);

  int64_t lenQ, lenK;
  int64_t qTile, kvTile; ///< positions that a tile spans

private:
  std::vector<KeyRun> runsOf(int64_t q0);
  /// What the mask's analysis says, and where it cannot tell and pairs are few, what they say.
  TileClass classOf(Interval queries, Interval keys);
  int64_t visibleIn(int64_t q);

  MaskInterface mask, walked;
  int64_t tilesOfCell;
  MaskPoint point;
  MaskScope scope;
  bool canLook; ///< at every pair
  bool lists;
};

} // namespace attn

#endif // ATTN_INSPECT_TILEMAP_H
