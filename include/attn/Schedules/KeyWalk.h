// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// From a mask to the walk over key tiles: which runs of tiles, cut into which
// segments, and which element tests each segment needs.
//
#ifndef ATTN_SCHEDULES_KEYWALK_H
#define ATTN_SCHEDULES_KEYWALK_H

#include "attn/Schedules/AttnToTile.h"

namespace attn {

/// A run of tiles: segment i is bounds[i] <= j < bounds[i + 1] and needs tests[i].
struct KeyRun {
  llvm::SmallVector<Index> bounds;
  llvm::SmallVector<llvm::SmallVector<int64_t>> tests;
};

/// Do kernels ahead of attention list the key tiles that each query tile of this schedule visits? Where
/// masks leave tiles out (`leavesTilesOut`), unless there are few keys, or they are shared out.
bool hasTileLists(ProblemOp problem, tile::ScheduleInterface schedule);

/// May kernels of this problem have such lists, with some schedule?
bool mayListTiles(ProblemOp problem);

/// How many compares the test of a mask's pairs has: of rows' intervals the ends within a sequence, of a leaf without
/// such one.
unsigned comparesOf(MaskInterface mask);
/// More than an interval's ends: they take registers that rows at rest, or random numbers, leave few of.
inline bool hasManyTests(MaskInterface mask) { return comparesOf(mask) > 2; }
/// Does a row's interval take a division, as that of chunks whose length is no power of two? It takes registers, too.
bool dividesRows(MaskInterface mask);
/// Do all leaves show a row intervals of keys? Else a test has to work something out for each pair.
bool showsIntervals(MaskInterface mask);

/// May there be query tiles that see keys of the first tile only, and is that easily said, since a walk over keys is
/// one run? (Bounds are looked at of the first head's mask.) In short sequences there are; of long ones where runs
/// begin with the first key and later rows' are longer, as under a causal mask.
bool someEndInFirstTile(MaskInterface mask, bool someAreShort);

/// How many tiles the runs have.
Index countTiles(IndexMath &math, llvm::ArrayRef<KeyRun> runs);

/// Leaves the tiles `from` to `to` of the runs, counted through all of them.
void cutTiles(IndexMath &math, llvm::MutableArrayRef<KeyRun> runs, Index from, Index to);

/// The same tiles from the last to the first: number j of them is tile `tiles` - 1 - j.
llvm::SmallVector<KeyRun> mirrored(IndexMath &math, llvm::ArrayRef<KeyRun> runs, Index tiles);

/// From the first tile of the runs to behind the last one; empty if there is no run, or only one without tiles. Of
/// several without any it may have some.
Interval hullOf(IndexMath &math, llvm::ArrayRef<KeyRun> runs);

/// The tiles that need no test, if the runs are a single one and it has any.
std::optional<Interval> fullOf(llvm::ArrayRef<KeyRun> runs);

/// A problem's mask with the sequence's bounds, as a conjunction. Conjuncts
/// whose rows are single intervals are merged into two compares, `lower` (if
/// any) and `upper`; the others are tests of their own.
class KeyWalk {
public:
  KeyWalk(MaskInterface mask, MaskScope scope);

  /// The runs for the rows `queries` (not empty) and key tiles of `kvTile` keys.
  llvm::SmallVector<KeyRun> runs(IndexMath &math, Interval queries, int64_t kvTile);

  /// The reverse: the runs of query tiles of `qTile` rows for `keys` (not empty). Rows
  /// behind the sequence's last are not tested for: they weigh nothing.
  llvm::SmallVector<KeyRun> queryRuns(IndexMath &math, Interval keys, int64_t qTile);

  /// The walk along a list of tiles of which the first `full` need no test and those from there to `behind` do.
  KeyRun listed(Index full, Index behind) { return {{0, full, behind}, {{}, numbers()}}; }

  /// Do rows have a first key other than 0, as under a window? Then a run has
  /// three segments and not two.
  bool hasLowerTest() const { return lower; }

  /// Is there a key that some row of its sequence may not see?
  bool hidesKeys() const { return hides; }

  /// Do rows see a small part of a long sequence, as under a window? Then a query
  /// tile has few key tiles, and starting and ending it counts.
  bool isLocal();

  /// Is such a walk a single run of so many keys at most? Then rows of one tile differ much in the tiles they need.
  bool isShort(int64_t most = 2048);

  /// Has each row another last key than the one before it, as under a window, and not in a chunk?
  bool slides();

  /// Are the query tiles of a key tile one run, as they are not where some keys are seen from afar?
  bool hasOneRun();

  /// Have the first keys of a long sequence a far longer walk over queries than others, as sinks have?
  bool beginsWithLongest();

  /// Do later rows see more keys than earlier ones, as under a causal mask? Then
  /// a grid is better walked from its end.
  bool growsWithRows();

  /// The conditions, in the order the runs' tests number them.
  llvm::SmallVector<Cond> tests(IndexMath &math, Index q, Index k);

  using Tests = llvm::SmallVector<int64_t>;
  /// The numbers of all tests, or of all but the lower bound's.
  Tests numbers(bool withLower = true);

private:
  /// The runs of `tile` rows or keys each. `last`: the tests of what follows full tiles of
  /// a single run; `whole`, if any: an end that needs no test for those beyond it.
  llvm::SmallVector<KeyRun> runsOf(IndexMath &math, const TileRanges &ranges, int64_t tile, const Tests &last,
                                   std::optional<Index> whole);

  /// How many keys row `q` sees of a sequence of `probeLength`.
  int64_t keysOf(int64_t q);

  struct Conjunct {
    MaskInterface mask;
    MaskScope scope;
  };
  /// The row interval that the merged conjuncts leave.
  Interval row(IndexMath &math, Index q);
  MaskInterface mask;
  MaskScope scope;
  llvm::SmallVector<Conjunct> intervals, others;
  bool lower = false, hides = false;
};

} // namespace attn

#endif // ATTN_SCHEDULES_KEYWALK_H
