// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Common to the kernels of a backward pass: the work tile of a CTA, and the addresses of row statistics, dQ accumulator
// and semaphores.
//
#ifndef ATTN_LIB_SCHEDULES_BACKWARD_BACKWARDBODY_H
#define ATTN_LIB_SCHEDULES_BACKWARD_BACKWARDBODY_H

#include "Schedules/Common/AttentionBody.h"
#include "Schedules/Common/Workspace.h"

namespace attn {

class BackwardBody : protected AttentionBody {
protected:
  using AttentionBody::AttentionBody;

  /// The number of queries, or of keys, of all sequences of one head, each sequence rounded up to whole tiles.
  mlir::Value tiledRows() { return args["row_statistics_head"]; }
  mlir::Value tiledKeys();
  /// Distance between LSE and delta in `row_statistics`.
  mlir::Value statisticsPitch() { return args["row_statistics_kind"]; }
  /// The first row of the CTA's sequence among `tiledRows()`.
  mlir::Value firstTiledRow() { return firstTiledRow(/*keys=*/false, firstQuery); }
  /// The same for queries or keys; `first` is the sequence's first row among all tokens if that side is packed.
  mlir::Value firstTiledRow(bool keys, Index first);
  /// The number of a head among those of all residues: row statistics and the dQ accumulator have the rows of each
  /// residue one behind another, as those of a head.
  Index numberOf(Index head) {
    return rowStride == 1 ? head : math.add(math.mul(queryResidue, int64_t(problem.getHeads())), head);
  }
  /// Rows of the dQ accumulator for each head and residue.
  Index rowsOfAccumulator();
  /// The row of the dQ accumulator for a row of q: the row in the tensor, or, with residues, the number `inResidue` in
  /// its sequence. (32 bits suffice: more rows would take 256 GiB or more.)
  Index dqAccumulatorRow(Index row, Index inResidue, Index head);
  /// The dQ accumulator from `accumulatorRow` on.
  mlir::Value dqAccumulatorPointer(Index accumulatorRow);
  /// The semaphore of a query tile: one for each `semaphoreRows` rows of a sequence, and one for the remaining rows.
  /// Its address is computed from `accumulatorRow` and the index of the sequence and head, since dQ store warps lack
  /// registers for two row indices.
  mlir::Value semaphorePointer(Index accumulatorRow, Index head);
  /// LSE and delta of the sequence's rows from `q` on; `firstRow` is its first row among `tiledRows()`.
  mlir::Value rowStatisticsPointer(mlir::Value firstRow, Index head, Index q);
  /// The first query of the sequence, among all tokens if packed.
  Index findFirstQuery();

  /// The work tile of a CTA.
  struct WorkTile {
    Index first = 0;   ///< its first row, in its sequence; with residues, among the rows of its residue
    Index row = 0;     ///< its first row in the tensor
    Index rows = 0;    ///< rows to compute
    Index written = 0; ///< rows to write: those computed and padding
    Index head = 0;    ///< query head, or kv head for tiles of keys
    Index number = 0;  ///< index of the tile among those of all sequences
    std::optional<TilePart> part;
  };
  /// The CTA's tile of queries, or of keys. Sets `batch` and `queryResidue`. With residues, `takeRowsOf` has to follow.
  WorkTile findWorkTile(bool keys, int64_t tileRows, Order order);
  /// The rows of a residue in a tile that has all positions.
  void takeRowsOf(Index residue, WorkTile &workTile);
  /// The number of CTAs that compute something, if it is not that of the grid.
  std::optional<Index> workItems;

private:
  /// The index of row `q` of a sequence among `tiledRows()` of all heads.
  mlir::Value tiledRow(mlir::Value firstRow, Index head, Index q);
  /// The head of a number among those of all residues; sets `queryResidue`.
  Index headOf(Index number, bool keys);
  int64_t headsOf(bool keys) { return keys ? problem.getKvHeads() : problem.getHeads(); }
  WorkTile denseWorkTile(bool keys, int64_t tileRows, Order order);
  WorkTile packedWorkTile(bool keys, int64_t tileRows, Order order);
};

} // namespace attn

#endif // ATTN_LIB_SCHEDULES_BACKWARD_BACKWARDBODY_H
