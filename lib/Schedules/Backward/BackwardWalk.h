// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// For a gradients kernel with a stationary tile: which tiles (of keys for a stationary Q tile, else of queries) are
// streamed, in which order, and which mask tests each of them needs.
//
#ifndef ATTN_LIB_SCHEDULES_BACKWARD_BACKWARDWALK_H
#define ATTN_LIB_SCHEDULES_BACKWARD_BACKWARDWALK_H

#include "BackwardBody.h"
#include "GradientsKernel.h"
#include "attn/Schedules/KeyWalk.h"

namespace attn {

class BackwardWalk : protected BackwardBody {
protected:
  BackwardWalk(ProblemOp problem, tile::KernelOp kernel, GradientResults results, StridedMaskAttr residues);

  bool kernelIsPacked() { return layoutOf(ofKeys).isPacked(); }
  /// Do threads beside a dQ MMA warpgroup have registers for code that shortens the prologue and epilogue of a work
  /// tile? A loop over heads leaves none, nor does dropout.
  bool sparesRegisters() { return problem.getHeads() == problem.getKvHeads() && !dropout; }
  /// Is there exactly one modifier, with formulas for small scores, such as softcap?
  bool onlyModifierHasSmall();

  /// Evaluates the mask for the current head.
  void findWalk();
  /// Runs of tiles that the work tile's rows see.
  llvm::SmallVector<KeyRun> findRuns() {
    return findRuns(workTile.first, workTile.rows, ofKeys ? schedule.getKvTile() : schedule.getQTile());
  }
  /// Loop bounds for the rows of a warpgroup, if the loop is a single run; else empty.
  llvm::SmallVector<mlir::Value> findOwnBounds(llvm::ArrayRef<KeyRun> runs);
  /// Does KV tile `other` add to query tile `tile`?
  Cond adds(Index other, Index tile);
  /// The first KV tile that the query tile with first row `q0` may see; KV tiles below it do not add to dQ of its rows,
  /// even if their loops visit it.
  Index firstVisibleKvTile(Index q0);
  /// Is the first KV tile the only one that the query tile with first row `q0` sees, and does that KV tile visit it?
  Cond seesFirstKeyTileOnly(Index tile, Index q0);

  tile::ScheduleInterface schedule;
  GradientResults results;
  bool ofKeys;                          ///< KV tiles are stationary, query tiles streamed
  bool hasDqMma;                        ///< a dQ MMA warpgroup computes dQ
  bool hasTileLists;                    ///< lists of the streamed tiles exist
  std::function<Index(Index j)> tileAt; ///< the tile of the loop's index j; null: j itself
  WorkTile workTile;
  std::optional<KeyWalk> walk;

private:
  /// The positions of the KV tile, or query tile, whose first row in the sequence or piece is `first`.
  Interval positionsOfTile(bool keys, Index first);
  /// Runs for `rows` rows from `first` on, of a tile of `most` rows. Sets `tileAt`, which is the same for all rows of a
  /// work tile.
  llvm::SmallVector<KeyRun> findRuns(Index first, Index rows, int64_t most);
  /// Restricts the runs to this CTA's part of a loop that several CTAs share.
  void cutToSplit(llvm::MutableArrayRef<KeyRun> runs);
  /// Applies all mask tests to every tile of the runs if the condition holds.
  void testAll(llvm::MutableArrayRef<KeyRun> runs, Cond cond);

  llvm::SmallVector<int64_t> allTests;
};

} // namespace attn

#endif // ATTN_LIB_SCHEDULES_BACKWARD_BACKWARDWALK_H
