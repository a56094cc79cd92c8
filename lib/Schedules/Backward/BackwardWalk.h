// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Of a kernel of gradients: which tiles of the other side pass by the tile at rest, in which order, and what each of
// them has to be tested for.
//
#ifndef ATTN_LIB_SCHEDULES_BACKWARDWALK_H
#define ATTN_LIB_SCHEDULES_BACKWARDWALK_H

#include "BackwardBody.h"
#include "BackwardKernel.h"
#include "attn/Schedules/KeyWalk.h"

namespace attn {

class BackwardWalk : protected BackwardBody {
protected:
  BackwardWalk(ProblemOp problem, tile::KernelOp kernel, GradientResults results);

  bool kernelIsPacked() { return layoutOf(ofKeys).isPacked(); }
  /// Has a thread beside a reducer a register or two for what makes a tile's beginning and end shorter? A loop over
  /// heads and random numbers leave none.
  bool sparesRegisters() { return problem.getHeads() == problem.getKvHeads() && !dropout; }
  /// Is there one modifier, with formulas for small scores, as softcap has?
  bool onlyModifierHasSmall();

  /// What the mask says of the head at hand.
  void findWalk();
  /// Of the slot's rows.
  llvm::SmallVector<KeyRun> findRuns() { return findRuns(slot.first, slot.rows, schedule.getKvTile()); }
  /// Of the rows that a warpgroup has: where a walk is one run, the bounds of what those see.
  llvm::SmallVector<mlir::Value> findOwnBounds(llvm::ArrayRef<KeyRun> runs);
  /// Does key tile `other` come by query tile `tile`?
  Cond adds(Index other, Index tile);
  /// Of a query tile, whose first row is `q0`: is the first tile of keys the only one, and comes by it?
  Cond seesFirstKeyTileOnly(Index tile, Index q0);

  tile::ScheduleInterface schedule;
  GradientResults results;
  bool ofKeys;                          ///< key tiles are at rest
  bool reduces;                         ///< a role of its own makes dQ
  bool lists;                           ///< of the tiles that pass by are there
  std::function<Index(Index j)> tileAt; ///< which one the walk's number j is; none: j
  Slot slot;
  std::optional<KeyWalk> walk;

private:
  /// Of so many `rows`, from `first` on; a tile has `most`. Sets `tileAt`, which is the same for all rows of a slot.
  llvm::SmallVector<KeyRun> findRuns(Index first, Index rows, int64_t most);
  /// No tile of the runs is full if the condition holds.
  void testAll(llvm::MutableArrayRef<KeyRun> runs, Cond cond);

  llvm::SmallVector<int64_t> allTests;
};

} // namespace attn

#endif // ATTN_LIB_SCHEDULES_BACKWARDWALK_H
