// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Common to the kernels of a backward pass: the work tile of a CTA, and the addresses of row statistics, dQ accumulator
// and semaphores.
//
#ifndef ATTN_LIB_SCHEDULES_BACKWARD_BACKWARDBODY_H
#define ATTN_LIB_SCHEDULES_BACKWARD_BACKWARDBODY_H

#include "Schedules/Common/SequenceBody.h"
#include "Schedules/Common/Workspace.h"

namespace attn {

class BackwardBody : protected SequenceBody {
protected:
  using SequenceBody::SequenceBody;

  /// Queries, or keys, of all sequences of one head, each sequence rounded up to whole tiles.
  mlir::Value tiledRows() { return args["row_statistics_head"]; }
  mlir::Value tiledKeys();
  /// Distance between LSE and delta in `row_statistics`.
  mlir::Value statisticsPitch() { return args["row_statistics_kind"]; }
  /// The first such row of the CTA's sequence, whose first query is `firstQuery`.
  mlir::Value firstTiledRow() { return firstTiledRow(/*keys=*/false, firstQuery); }
  /// The same for either side; `first` is the sequence's first row among all tokens if the side is packed.
  mlir::Value firstTiledRow(bool keys, Index first);
  /// The index of a row of q among those of all heads. (32 bits suffice: more rows of float32 sums would be 256 GiB or
  /// more.)
  Index sumRow(Index row, Index head) { return math.add(times(head, rowsInAll()), rowInAll(row, batch)); }
  /// The dQ accumulator from that row on.
  mlir::Value sumPointer(Index sumRow);
  /// The semaphore of a query tile: one for `rowsOfOrderCounter` rows of a sequence or the rest of it. Its address is
  /// computed from `sumRow` and the sequence's index among all heads', since dQ store warps lack registers for two row
  /// indices.
  mlir::Value turnPointer(Index sumRow, Index head);
  mlir::Value statisticsPointer(mlir::Value firstRow, Index head, Index q);
  /// The first query of the sequence, among all tokens if packed.
  Index findFirstQuery();

  /// The work tile of a CTA.
  struct Slot {
    Index first = 0;             ///< its first row, in its sequence
    Index row = 0;               ///< its first row in the tensor
    Index rows = 0, written = 0; ///< to compute; to write, with padding
    Index head = 0;
    Index number = 0; ///< index of the tile among those of all sequences
  };
  /// The CTA's tile of queries, or of keys. Sets `batch`.
  Slot slotOf(bool keys, int64_t tileRows, Order order);

private:
  /// Row q of a sequence among those of all heads in whole tiles.
  mlir::Value tiledRow(mlir::Value firstRow, Index head, Index q);
  int64_t headsOf(bool keys) { return keys ? problem.getKvHeads() : problem.getHeads(); }
  Slot denseWorkTile(bool keys, int64_t tileRows, Order order);
  Slot packedWorkTile(bool keys, int64_t tileRows, Order order);
};

} // namespace attn

#endif // ATTN_LIB_SCHEDULES_BACKWARD_BACKWARDBODY_H
