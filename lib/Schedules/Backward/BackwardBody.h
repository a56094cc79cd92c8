// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What kernels of a backward pass have in common: which tile of which sequence a block has,
// and where the statistics of its rows and its part of the sum of dQ lie.
//
#ifndef ATTN_LIB_SCHEDULES_BACKWARDBODY_H
#define ATTN_LIB_SCHEDULES_BACKWARDBODY_H

#include "Schedules/Common/SequenceBody.h"
#include "Schedules/Common/Workspace.h"

namespace attn {

class BackwardBody : protected SequenceBody {
protected:
  using SequenceBody::SequenceBody;

  /// Rows of queries, or of keys, of all sequences in whole tiles, of one head.
  mlir::Value tiledRows() { return args["row_statistics_head"]; }
  mlir::Value tiledKeys();
  /// From statistics of one kind to those of the other.
  mlir::Value statisticsPitch() { return args["row_statistics_kind"]; }
  /// The first one of the block's sequence, behind `firstQuery`.
  mlir::Value firstTiledRow() { return firstTiledRow(/*keys=*/false, firstQuery); }
  /// The same of either side, by the sequence's first row among all tokens where they are packed.
  mlir::Value firstTiledRow(bool keys, Index first);
  /// Of a row of q's tensor, which of all heads' it is. (So many rows of float32 sums as 32 bits cannot number are 256
  /// GiB or more.)
  Index sumRow(Index row, Index head) { return math.add(times(head, rowsInAll()), rowInAll(row, batch)); }
  /// The sum of dQ from there on.
  mlir::Value sumPointer(Index sumRow);
  /// The counter of those who added to it, one for `rowsOfOrderCounter` rows from the sequence's first on or what is
  /// left of them. It is found from the same number, and the sequence's among all heads', since adders have no
  /// registers for two places in two tensors.
  mlir::Value turnPointer(Index sumRow, Index head);
  mlir::Value statisticsPointer(mlir::Value firstRow, Index head, Index q);
  /// The first query of the sequence, among all tokens where they are packed.
  Index findFirstQuery();

  /// Which tile of which sequence a block has.
  struct Slot {
    Index first = 0;             ///< its first row, in its sequence
    Index row = 0;               ///< the same as a row of the tensor
    Index rows = 0, written = 0; ///< to compute and to write
    Index head = 0;
    Index number = 0; ///< of the tile, among those of all sequences
  };
  /// A tile of queries, or of keys. Sets `batch`.
  Slot slotOf(bool keys, int64_t tileRows, Order order);

private:
  /// Row q of a sequence, of all heads' in whole tiles.
  mlir::Value tiledRow(mlir::Value firstRow, Index head, Index q);
  int64_t headsOf(bool keys) { return keys ? problem.getKvHeads() : problem.getHeads(); }
  Slot denseWorkTile(bool keys, int64_t tileRows, Order order);
  Slot packedWorkTile(bool keys, int64_t tileRows, Order order);
};

} // namespace attn

#endif // ATTN_LIB_SCHEDULES_BACKWARDBODY_H
